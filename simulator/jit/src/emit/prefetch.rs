//! Prefetches of global memory: kernels step through it in strides that the host's own prefetcher does not follow.

use super::Emitter;
use super::memory::{Access, Located};
use crate::frame::{LANE_VEC_BYTES, at, of_wave};
use crate::prefetch::{AHEAD_SHIFT, LONG, next_wave};
use std::mem::offset_of;
use wavesim_machine::state::wave::{STREAMS, Stream};
use wavesim_x64::inst::{Cc, Class, Inst, Int2, Mem, Size, Src, Width};

impl Emitter<'_> {
    /// Prefetches what the same instruction will access four iterations of its loop from now, if its address advances as it did. The
    /// prefetches go to the second-level cache, which has more misses in flight than the first. Where a wave begins a loop that the
    /// wave before it has run, [`next_wave`] prefetches for the first iterations of the wave after it.
    pub fn prefetch(&mut self, place: &Located) {
        let Access { register, bytes, at: number, .. } = place.access;
        if place.access.is_in_lds() {
            return;
        }
        let w = Width::W64;
        let (host, disp) = place.host();
        let mut offset = self.f.load(Size::B4, self.vectors, register as i32 * LANE_VEC_BYTES as i32);
        if let Some([low, _]) = place.from {
            offset = self.f.int2(Int2::Sub, Width::W32, offset, low);
        }
        let host = self.f.int2(Int2::Add, w, host, offset);
        let stream = self.ops[number as usize].number as usize % STREAMS;
        let field = |field: usize| of_wave::STREAMS + (size_of::<Stream>() * stream + field) as i32;
        let [last, stride, repeats] = [
            field(offset_of!(Stream, last)),
            field(offset_of!(Stream, stride)),
            field(offset_of!(Stream, repeats)),
        ];
        let before = self.f.load(Size::B8, self.sgprs, last);
        let step = self.f.int2(Int2::Sub, w, host, before);
        self.f.store(Size::B8, self.sgprs, last, host);
        let [steady, short, done] = [(); 3].map(|()| self.f.label());
        let count = self.f.fresh(Class::Int);
        self.f.push(Inst::Load { size: Size::B8, d: count, from: Mem { base: self.sgprs, disp: repeats } });
        let known = self.f.load(Size::B8, self.sgprs, stride);
        self.f.branch(Cc::Eq, w, step, Src::Value(known), steady);
        self.f.branch(Cc::LtU, w, count, LONG, short);
        // Those of the lanes of a half, if they are contiguous.
        let lines = (bytes as i32 / 2).max(1);
        for (n, arg) in (0..).zip([Src::Value(host), Src::Imm(stream as i32), Src::Imm(disp), Src::Imm(lines)]) {
            self.f.store(Size::B8, self.frame, at::ROOM + 8 * n, arg);
        }
        self.rare(next_wave as *const () as u64);
        self.f.push(Inst::Jump(done));
        self.f.push(Inst::Label(short));
        self.f.store(Size::B8, self.sgprs, stride, step);
        self.f.push(Inst::Const { d: count, bits: u64::MAX });
        self.f.push(Inst::Label(steady));
        let one_more = self.plus(count, 1);
        self.f.store(Size::B8, self.sgprs, repeats, one_more);
        let ahead = self.f.int2(Int2::Shl, w, step, AHEAD_SHIFT);
        let base = self.f.int2(Int2::Add, w, host, ahead);
        for line in 0..lines {
            self.f.push(Inst::Prefetch { from: Mem { base, disp: disp + 64 * line } });
        }
        self.f.push(Inst::Label(done));
    }
}
