//! Offsets of lanes that are lined up: all lanes are active, and each is one element after the one before it. Most accesses are so, and it
//! takes a fraction of what looking at any offsets does.

use super::memory::Located;
use super::{Emitter, R};
use crate::frame::{HALF_BYTES, LANE_VEC_BYTES};
use wavesim_x64::Code;
use wavesim_x64::inst::{Cc, Class, Inst, Int1, Int2, Label, Mem, Size, V, Width};

/// Bytes of a register in a packet.
const PACKET_BYTES: usize = 32;

impl Emitter<'_> {
    /// What [`Emitter::look`] gives of offsets that are lined up, else what `look` gives.
    pub fn unless_lined_up(
        &mut self,
        kinds: &[&Located],
        full: V,
        look: impl FnOnce(&mut Self) -> R<Vec<[V; 3]>>,
    ) -> R<Vec<[V; 3]>> {
        if kinds.iter().any(|kind| kind.from.is_some()) {
            return look(self);
        }
        let [other, on]: [Label; 2] = [(); 2].map(|()| self.f.label());
        let results: Vec<[V; 3]> = kinds.iter().map(|_| [(); 3].map(|()| self.f.fresh(Class::Int))).collect();
        self.f.branch(Cc::Eq, Width::W32, full, 0, other);
        for kind in kinds {
            let differences = self.differences(kind);
            self.f.branch_if_any(differences, differences, other);
        }
        let lanes = if self.wide_wave { 64 } else { 32 };
        for (kind, [farthest, together, same]) in kinds.iter().zip(&results) {
            let first = self.f.load(Size::B4, self.vectors, place_of(kind, 0));
            // From 2 GiB on, beyond every limit; later lanes may be lined up around the end of 32 bits.
            let first = self.f.int1(Int1::SignExtend32, Width::W64, first);
            let last = self.plus(first, (lanes - 1) * step(kind) as i64);
            let beyond = self.f.int2(Int2::Sar, Width::W64, first, 63);
            let last = self.f.int2(Int2::Or, Width::W64, last, beyond);
            self.f.assign(*farthest, last);
            self.f.push(Inst::Const { d: *together, bits: 1 });
            self.f.push(Inst::Const { d: *same, bits: 0 });
        }
        self.f.push(Inst::Jump(on));
        self.f.push(Inst::Label(other));
        let found = look(self)?;
        for (found, out) in found.iter().flatten().zip(results.iter().flatten()) {
            self.f.assign(*out, *found);
        }
        self.f.push(Inst::Label(on));
        Ok(results)
    }

    /// Bits that differ from what offsets would be if they were lined up.
    fn differences(&mut self, kind: &Located) -> V {
        let (add, xor) = (Code::VEX_Vpaddd_ymm_ymm_ymmm256, Code::VEX_Vpxor_ymm_ymm_ymmm256);
        let first = self.f.fresh(Class::Vec);
        let from = Mem { base: self.vectors, disp: place_of(kind, 0) };
        self.f.push(Inst::SplatLoad { d: first, from });
        let lanes = self.f.vconst(std::array::from_fn(|lane| lane as u32 * step(kind)));
        let mut wanted = self.f.rvm(add, first, lanes, None);
        let mut differences: Option<V> = None;
        for packet in 0..if self.wide_wave { 8 } else { 4 } {
            if packet > 0 {
                let next = self.f.vconst([8 * step(kind); 8]);
                wanted = self.f.rvm(add, wanted, next, None);
            }
            let found = self.f.vload(self.vectors, place_of(kind, packet), true);
            let difference = self.f.rvm(xor, wanted, found, None);
            differences = Some(match differences {
                None => difference,
                Some(all) => self.f.rvm(Code::VEX_Vpor_ymm_ymm_ymmm256, all, difference, None),
            });
        }
        differences.unwrap_or(wanted)
    }
}

/// How far each lane is from the one before it.
fn step(kind: &Located) -> u32 {
    kind.access.bytes as u32
}

/// Where a packet's offsets are, from the first register on.
fn place_of(kind: &Located, packet: usize) -> i32 {
    let half = packet / 4 * HALF_BYTES;
    (kind.access.register as usize * LANE_VEC_BYTES + half + packet % 4 * PACKET_BYTES) as i32
}
