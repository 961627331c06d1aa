//! Prefetches of global memory: kernels step through it in strides that the host's prefetcher does not follow.

use super::Emitter;
use super::memory::ResolvedAccess;
use super::steady::{Steady, SteadyOffsets};
use crate::frame::{LANE_VEC_BYTES, frame_offset, wave_offset};
use crate::prefetch::{AHEAD_SHIFT, MIN_REPEATS, prefetch_next_wave};
use std::collections::HashMap;
use std::mem::offset_of;
use wavesim_machine::state::wave::{STREAMS, Stream};
use wavesim_x64::inst::{Cc, Class, Inst, Int2, Mem, Size, Src, V, Width};

impl Emitter<'_> {
    /// Prefetches what the instruction will access four loop iterations from now if its address keeps advancing
    /// by the same stride. The target is the second-level cache, which supports more outstanding lines than the
    /// first. Where a wave starts a loop that the previous wave ran, [`prefetch_next_wave`] prefetches the first
    /// iterations of the wave that follows.
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
        let args = [Src::Value(address), Src::Imm(stream as i32), Src::Imm(disp), Src::Imm(lines)];
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
        let ahead = self.f.int2(Int2::Shl, w, step, AHEAD_SHIFT);
        let base = self.f.int2(Int2::Add, w, address, ahead);
        self.prefetch_lines(location, base, false);
        self.f.push(Inst::Label(done));
    }

    fn prefetch_lines(&mut self, location: &ResolvedAccess, base: V, near: bool) {
        let (_, disp) = location.host();
        for line in 0..lines(location) {
            self.f.push(Inst::Prefetch { near, from: Mem { base, disp: disp + 64 * line } });
        }
    }

    /// Returns the index of the stream of an access.
    fn stream(&self, location: &ResolvedAccess) -> usize {
        self.ops[location.access.op_index as usize].number as usize % STREAMS
    }

    /// As [`Emitter::prefetch`], for steady iterations, whose strides are known. What the next iteration loads is
    /// in the second-level cache by now, and is prefetched into the first.
    pub fn prefetch_steadily(&mut self, steady: &Steady) {
        let w = Width::W64;
        for (location, SteadyOffsets { low, step, .. }) in steady.streams() {
            if !location.access.store {
                let (host, _) = location.host();
                let offset = self.f.int2(Int2::Add, w, *low, *step);
                let base = self.f.int2(Int2::Add, w, host, offset);
                self.prefetch_lines(location, base, true);
            }
        }
        let mut ahead = HashMap::new();
        let done = self.f.label();
        for (location, SteadyOffsets { register, low, step, room }) in steady.streams() {
            let offset = *ahead.entry(*register).or_insert_with(|| {
                let distance = self.f.int2(Int2::Shl, w, *step, AHEAD_SHIFT);
                self.f.int2(Int2::Add, w, *low, distance)
            });
            self.f.branch(Cc::GtU, w, offset, *room, done);
            let (host, _) = location.host();
            let base = self.f.int2(Int2::Add, w, host, offset);
            self.prefetch_lines(location, base, false);
        }
        self.f.push(Inst::Label(done));
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

/// Returns the number of cache lines of a coalesced access by 32 lanes.
fn lines(location: &ResolvedAccess) -> i32 {
    (location.access.bytes as i32 / 2).max(1)
}

/// Returns the offsets of a stream's last address, stride and number of repeats.
fn stream_fields(stream: usize) -> [i32; 3] {
    [offset_of!(Stream, last), offset_of!(Stream, stride), offset_of!(Stream, repeats)]
        .map(|field| wave_offset::STREAMS + (size_of::<Stream>() * stream + field) as i32)
}
