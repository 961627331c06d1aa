//! Prefetches of global memory: kernels step through it in strides that the host's prefetcher does not follow.

use super::Emitter;
use super::memory::{ResolvedAccess, ResolvedAccesses};
use super::packet::Packet;
use super::steady::{Steady, SteadyOffsets};
use crate::frame::{LANE_VEC_BYTES, frame_offset, wave_offset};
use crate::prefetch::{MIN_REPEATS, start_loop};
use std::mem::offset_of;
use wavesim_machine::state::stream::{STREAMS, Stream};
use wavesim_x64::inst::{Cc, Class, Inst, Int2, Mem, Size, Src, V, Width};

impl Emitter<'_> {
    /// Prefetches what the instruction will access a few loop iterations from now if its address keeps
    /// advancing by the same stride. The target is the second-level cache, which supports more outstanding
    /// lines than the first. The last iterations prefetch the first ones of the next loop: see
    /// [`start_loop`].
    pub fn prefetch(&mut self, location: &ResolvedAccess) {
        let access = &location.access;
        if access.is_in_lds() {
            return;
        }
        let w = Width::W64;
        let (host, _) = location.host();
        let stream = self.stream(location);
        let mut offset = self.f.load(Size::B4, self.vectors, access.register as i32 * LANE_VEC_BYTES as i32);
        if let Some([low, _]) = location.origin_words {
            offset = self.f.int2(Int2::Sub, Width::W32, offset, low);
        }
        let address = self.f.int2(Int2::Add, w, host, offset);
        let at = |field| stream_field(stream, field);
        let before = self.f.load(Size::B8, self.sgprs, at(offset_of!(Stream, last)));
        let step = self.f.int2(Int2::Sub, w, address, before);
        self.f.store(Size::B8, self.sgprs, at(offset_of!(Stream, last)), address);
        let [steady, new_stride, counted, goes_on] = [(); 4].map(|()| self.f.label());
        let repeats = Mem { base: self.sgprs, disp: at(offset_of!(Stream, repeats)) };
        let (count, stride) = (self.f.fresh(Class::Int), self.f.fresh(Class::Int));
        self.f.push(Inst::Load { size: Size::B8, d: count, from: repeats });
        let from = Mem { base: self.sgprs, disp: at(offset_of!(Stream, stride)) };
        self.f.push(Inst::Load { size: Size::B8, d: stride, from });
        self.f.branch(Cc::Eq, w, step, Src::Value(stride), steady);
        self.f.branch(Cc::LtU, w, count, MIN_REPEATS, new_stride);
        for (n, arg) in (0..).zip([Src::Value(address), Src::Imm(stream as i32)]) {
            self.f.store(Size::B8, self.frame, frame_offset::LANE_BUFFER + 8 * n, arg);
        }
        self.call_cold(start_loop as *const () as u64);
        self.f.push(Inst::Const { d: count, bits: 0 });
        self.f.push(Inst::Jump(counted));
        self.f.push(Inst::Label(new_stride));
        self.f.store(Size::B8, self.sgprs, from.disp, step);
        self.f.assign(stride, step);
        self.f.push(Inst::Const { d: count, bits: u64::MAX });
        self.f.push(Inst::Label(steady));
        self.f.push(Inst::Int2 { op: Int2::Add, width: w, d: count, a: count, b: Src::Imm(1) });
        self.f.store(Size::B8, self.sgprs, repeats.disp, count);
        self.f.push(Inst::Label(counted));
        let ahead = self.f.int2(Int2::Shl, w, stride, AHEAD_SHIFT);
        let target = self.f.fresh(Class::Int);
        self.f.push(Inst::Int2 { op: Int2::Add, width: w, d: target, a: address, b: Src::Value(ahead) });
        let number = self.add_imm(count, AHEAD);
        let end = self.f.load(Size::B8, self.sgprs, at(offset_of!(Stream, accesses)));
        self.f.branch(Cc::LtU, w, number, Src::Value(end), goes_on);
        let to_next = self.f.load(Size::B8, self.sgprs, at(offset_of!(Stream, to_next)));
        self.f.push(Inst::Int2 { op: Int2::Add, width: w, d: target, a: target, b: Src::Value(to_next) });
        self.f.push(Inst::Label(goes_on));
        self.prefetch_lines(location, target, lines(location));
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

    /// Loads what steady iterations need to know about the next loop, if these offsets have a stream.
    pub fn next_loop(&mut self, resolved: &ResolvedAccesses, register: u16) -> Option<NextLoop> {
        let w = Width::W64;
        let of_register = |location: &&ResolvedAccess| location.access.register == register;
        let location = streams(resolved).into_iter().find(of_register)?;
        let stream = self.stream(location);
        let [accesses, repeats, to_next] =
            [offset_of!(Stream, accesses), offset_of!(Stream, repeats), offset_of!(Stream, to_next)]
                .map(|field| self.f.load(Size::B8, self.sgprs, stream_field(stream, field)));
        let left = self.f.int2(Int2::Sub, w, accesses, repeats);
        Some(NextLoop { iterations: self.add_imm(left, -1 - AHEAD), to_next })
    }

    /// As [`Emitter::prefetch`], for steady iterations, whose strides are known. Returns the accesses that
    /// are prefetched packet by packet ([`Emitter::prefetch_packet`]), each with the distance.
    pub fn prefetch_steadily(&mut self, steady: &Steady) -> Vec<(ResolvedAccess, V)> {
        let w = Width::W64;
        let mut by_packet = Vec::new();
        for offsets in &steady.offsets {
            let Some(NextLoop { iterations, to_next }) = offsets.next else { continue };
            let (distance, goes_on) = (self.f.fresh(Class::Int), self.f.label());
            let set = |e: &mut Self, op, a, b| e.f.push(Inst::Int2 { op, width: w, d: distance, a, b });
            set(self, Int2::Shl, offsets.step, Src::Imm(AHEAD_SHIFT));
            self.f.branch(Cc::LtS, w, steady.count, Src::Value(iterations), goes_on);
            set(self, Int2::Add, distance, Src::Value(to_next));
            self.f.push(Inst::Label(goes_on));
            let of_register = |location: &&ResolvedAccess| location.access.register == offsets.register;
            for location in streams(&steady.run.resolved).into_iter().filter(of_register) {
                if covers_lines(location) {
                    by_packet.push((location.clone(), distance));
                    continue;
                }
                let (host, _) = location.host();
                let base = self.f.int2(Int2::Add, w, host, offsets.low);
                let base = self.f.int2(Int2::Add, w, base, distance);
                self.prefetch_lines(location, base, lines(location));
            }
        }
        by_packet
    }

    /// Prefetches what a packet of a later iteration accesses. Between the packets, prefetches delay loads
    /// less than all at once. Stores that may go past the caches prefetch only if they do not.
    pub fn prefetch_packets(&mut self, resolved: &ResolvedAccesses, packet: &mut Packet) {
        let streams = |location| resolved.cached.is_some() && resolved.may_stream(location);
        for (location, distance) in resolved.prefetches.iter().filter(|(location, _)| !streams(location)) {
            self.prefetch_packet(location, *distance, packet);
        }
    }

    /// Prefetches a packet of an access.
    pub fn prefetch_packet(&mut self, location: &ResolvedAccess, distance: V, packet: &mut Packet) {
        let Mem { base, .. } = self.shared_first_lane(location, packet);
        let base = self.f.int2(Int2::Add, Width::W64, base, distance);
        self.prefetch_lines(location, base, lines(location) / PACKETS);
    }

    /// Updates the streams after some steady iterations, so that the next access continues them.
    pub fn record_streams(&mut self, steady: &Steady) {
        let w = Width::W64;
        for location in streams(&steady.run.resolved) {
            let of_register = |offsets: &&SteadyOffsets| offsets.register == location.access.register;
            let Some(SteadyOffsets { low, step, .. }) = steady.offsets.iter().find(of_register) else {
                continue;
            };
            let (host, _) = location.host();
            let stream = self.stream(location);
            let [last, stride, repeats] =
                [offset_of!(Stream, last), offset_of!(Stream, stride), offset_of!(Stream, repeats)]
                    .map(|field| stream_field(stream, field));
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

/// What steady iterations know about the loop that is expected to follow.
#[derive(Clone, Copy)]
pub struct NextLoop {
    /// The number of steady iterations that prefetch for their own loop.
    iterations: V,
    /// [`Stream::to_next`].
    to_next: V,
}

/// Returns the accesses of global memory, one of those with the same address.
fn streams(resolved: &ResolvedAccesses) -> Vec<&ResolvedAccess> {
    let all = &resolved.accesses;
    let first = |n: usize| !all[..n].iter().any(|before| before.has_same_address(&all[n]));
    let distinct = all.iter().enumerate().filter(|(n, one)| first(*n) && !one.access.is_in_lds());
    distinct.map(|(_, one)| one).collect()
}

/// The number of packets of 32 lanes.
const PACKETS: i32 = 4;

/// Returns whether each packet of a coalesced access has whole cache lines.
pub fn covers_lines(location: &ResolvedAccess) -> bool {
    lines(location) >= PACKETS
}

/// How many loop iterations ahead memory is prefetched, as a power of two.
const AHEAD_SHIFT: i32 = 3;
const AHEAD: i64 = 1 << AHEAD_SHIFT;

/// Returns the number of cache lines of a coalesced access by 32 lanes.
fn lines(location: &ResolvedAccess) -> i32 {
    (location.access.bytes as i32 / 2).max(1)
}

/// Returns the offset of a field of a stream.
fn stream_field(stream: usize, field: usize) -> i32 {
    wave_offset::STREAMS + (size_of::<Stream>() * stream + field) as i32
}
