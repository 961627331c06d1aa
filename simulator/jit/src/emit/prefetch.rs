//! Prefetches of global memory: kernels step through it in strides that the host's prefetcher does not follow.

use super::Emitter;
use super::memory::{ResolvedAccess, ResolvedAccesses};
use super::packet::Packet;
use super::steady::{Steady, SteadyOffsets};
use crate::frame::{LANE_VEC_BYTES, frame_offset, wave_offset};
use crate::prefetch::{MAX_AHEAD, MIN_REPEATS, prefetch_next_wave};
use std::collections::HashMap;
use std::mem::offset_of;
use wavesim_machine::state::wave::{STREAMS, Stream};
use wavesim_x64::inst::{Cc, Class, Inst, Int2, Mem, Size, Src, V, Width};

impl Emitter<'_> {
    /// Prefetches what the instruction will access a few loop iterations from now if its address keeps
    /// advancing by the same stride. The target is the second-level cache, which supports more outstanding
    /// lines than the first. Where a wave starts a loop that the previous wave ran, [`prefetch_next_wave`]
    /// prefetches the first iterations of the wave that follows.
    pub fn prefetch(&mut self, location: &ResolvedAccess) {
        let access = &location.access;
        if access.is_in_lds() {
            return;
        }
        let w = Width::W64;
        let (host, disp) = location.host();
        let lines = lines(location);
        let stream = self.stream(location);
        let mut offset = self.f.load(Size::B4, self.vectors, access.register as i32 * LANE_VEC_BYTES as i32);
        if let Some([low, _]) = location.origin_words {
            offset = self.f.int2(Int2::Sub, Width::W32, offset, low);
        }
        let address = self.f.int2(Int2::Add, w, host, offset);
        let [last, stride, repeats] = stream_fields(stream);
        let before = self.f.load(Size::B8, self.sgprs, last);
        let step = self.f.int2(Int2::Sub, w, address, before);
        self.f.store(Size::B8, self.sgprs, last, address);
        let [steady, new_stride, done] = [(); 3].map(|()| self.f.label());
        let count = self.f.fresh(Class::Int);
        self.f.push(Inst::Load { size: Size::B8, d: count, from: Mem { base: self.sgprs, disp: repeats } });
        let expected = self.f.load(Size::B8, self.sgprs, stride);
        self.f.branch(Cc::Eq, w, step, Src::Value(expected), steady);
        self.f.branch(Cc::LtU, w, count, MIN_REPEATS, new_stride);
        let ahead = Src::Imm(1 << ahead_shift(location));
        let args = [Src::Value(address), Src::Imm(stream as i32), Src::Imm(disp), Src::Imm(lines), ahead];
        for (n, arg) in (0..).zip(args) {
            self.f.store(Size::B8, self.frame, frame_offset::LANE_BUFFER + 8 * n, arg);
        }
        self.call_cold(prefetch_next_wave as *const () as u64);
        self.f.push(Inst::Jump(done));
        self.f.push(Inst::Label(new_stride));
        self.f.store(Size::B8, self.sgprs, stride, step);
        self.f.push(Inst::Const { d: count, bits: u64::MAX });
        self.f.push(Inst::Label(steady));
        let count = self.add_imm(count, 1);
        self.f.store(Size::B8, self.sgprs, repeats, count);
        let ahead = self.f.int2(Int2::Shl, w, step, ahead_shift(location));
        let base = self.f.int2(Int2::Add, w, address, ahead);
        self.prefetch_lines(location, base, lines);
        self.f.push(Inst::Label(done));
    }

    fn prefetch_lines(&mut self, location: &ResolvedAccess, base: V, lines: i32) {
        let (_, disp) = location.host();
        for line in 0..lines {
            self.f.push(Inst::Prefetch { from: Mem { base, disp: disp + 64 * line } });
        }
    }

    /// Returns the index of the stream of an access.
    fn stream(&self, location: &ResolvedAccess) -> usize {
        self.ops[location.access.op_index as usize].number as usize % STREAMS
    }

    /// As [`Emitter::prefetch`], for steady iterations, whose strides are known. Returns the accesses that
    /// are prefetched packet by packet ([`Emitter::prefetch_packet`]), each with the distance.
    pub fn prefetch_steadily(&mut self, steady: &Steady) -> Vec<(ResolvedAccess, V)> {
        let w = Width::W64;
        // By offset register and shift: the offset that is prefetched, and its distance.
        let mut offsets = HashMap::new();
        let mut by_packet = Vec::new();
        for (location, SteadyOffsets { register, low, step, room }) in steady.streams() {
            let shift = ahead_shift(location);
            let [offset, distance] = *offsets.entry((*register, shift)).or_insert_with(|| {
                let distance = self.f.int2(Int2::Shl, w, *step, shift);
                let offset = self.f.int2(Int2::Add, w, *low, distance);
                // Beyond the end of memory, only what is cached already is prefetched.
                let (inside, zero) = (self.f.compare(Cc::LeU, w, offset, *room), self.f.iconst(0));
                let distance = self.f.select(inside, distance, zero);
                [self.f.int2(Int2::Add, w, *low, distance), distance]
            });
            if covers_lines(location) {
                by_packet.push((location.clone(), distance));
            } else {
                let (host, _) = location.host();
                let base = self.f.int2(Int2::Add, w, host, offset);
                self.prefetch_lines(location, base, lines(location));
            }
        }
        by_packet
    }

    /// Prefetches what a packet of a later iteration accesses. Between the packets, prefetches delay loads
    /// less than all at once.
    pub fn prefetch_packet(&mut self, resolved: &ResolvedAccesses, packet: &mut Packet) {
        for (location, distance) in &resolved.prefetches {
            let Mem { base, .. } = self.shared_first_lane(location, packet);
            let base = self.f.int2(Int2::Add, Width::W64, base, *distance);
            self.prefetch_lines(location, base, lines(location) / PACKETS);
        }
    }

    /// Updates the streams after some steady iterations, so that the next access continues them.
    pub fn record_streams(&mut self, steady: &Steady) {
        let w = Width::W64;
        for (location, SteadyOffsets { low, step, .. }) in steady.streams() {
            let (host, _) = location.host();
            let [last, stride, repeats] = stream_fields(self.stream(location));
            let before = self.f.int2(Int2::Sub, w, *low, *step);
            let address = self.f.int2(Int2::Add, w, host, before);
            self.f.store(Size::B8, self.sgprs, last, address);
            self.f.store(Size::B8, self.sgprs, stride, *step);
            let count = self.f.load(Size::B8, self.sgprs, repeats);
            let count = self.f.int2(Int2::Add, w, count, steady.count);
            self.f.store(Size::B8, self.sgprs, repeats, count);
        }
    }
}

/// The number of packets of 32 lanes.
const PACKETS: i32 = 4;

/// Returns whether each packet of a coalesced access has whole cache lines.
fn covers_lines(location: &ResolvedAccess) -> bool {
    lines(location) >= PACKETS
}

/// Returns how many loop iterations ahead memory is prefetched, as a power of two: the more lines an
/// iteration accesses, the earlier they displace each other.
fn ahead_shift(location: &ResolvedAccess) -> i32 {
    let shift = if covers_lines(location) { 1 } else { 2 };
    debug_assert!(1 << shift <= MAX_AHEAD);
    shift
}

/// Returns the number of cache lines of a coalesced access by 32 lanes.
fn lines(location: &ResolvedAccess) -> i32 {
    (location.access.bytes as i32 / 2).max(1)
}

/// Returns the offsets of a stream's last address, stride and number of repeats.
fn stream_fields(stream: usize) -> [i32; 3] {
    [offset_of!(Stream, last), offset_of!(Stream, stride), offset_of!(Stream, repeats)]
        .map(|field| wave_offset::STREAMS + (size_of::<Stream>() * stream + field) as i32)
}
