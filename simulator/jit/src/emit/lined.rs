//! Offsets of lanes that are lined up: all lanes are active, and in each packet each is one element after the one before it. Most accesses
//! are so, and it takes a fraction of what looking at any offsets does.

use super::memory::{HIGHER, LOWER, Located};
use super::{Emitter, R};
use crate::frame::{HALF_BYTES, LANE_VEC_BYTES};
use wavesim_x64::Code;
use wavesim_x64::inst::{Cc, Class, Inst, Int1, Int2, Label, Mem, Size, V, Width};

/// Bytes of a register in a packet.
const PACKET_BYTES: usize = 32;

/// What the low words of lanes' addresses are, if they are lined up.
struct InPackets {
    /// Bits that differ from what they would be then.
    differences: V,
    /// The highest one of the first lanes of packets, and the lowest.
    highest: V,
    lowest: V,
}

impl Emitter<'_> {
    /// What [`Emitter::look`] gives of offsets that are lined up, else what `look` gives.
    pub fn unless_lined_up(
        &mut self,
        kinds: &[&Located],
        full: V,
        look: impl FnOnce(&mut Self) -> R<Vec<[V; 4]>>,
    ) -> R<Vec<[V; 4]>> {
        let [other, on]: [Label; 2] = [(); 2].map(|()| self.f.label());
        let results: Vec<[V; 4]> = kinds.iter().map(|_| [(); 4].map(|()| self.f.fresh(Class::Int))).collect();
        self.f.branch(Cc::Eq, Width::W32, full, 0, other);
        let w = Width::W64;
        for (kind, [farthest, together, same, lowest]) in kinds.iter().zip(&results) {
            let InPackets { differences, highest, lowest: low } = self.in_packets(kind);
            self.f.branch_if_any(differences, differences, other);
            let last = 7 * step(kind) as i64;
            let low = self.f.low_int(low);
            let high = self.f.low_int(highest);
            let bounds = match kind.origin {
                None => {
                    // From 2 GiB on, beyond every limit; later lanes may be lined up around the end of 32 bits.
                    let first = self.f.int1(Int1::SignExtend32, w, high);
                    let last = self.plus(first, last);
                    let beyond = self.f.int2(Int2::Sar, w, first, 63);
                    [self.f.int2(Int2::Or, w, last, beyond), low]
                }
                Some(origin) => {
                    // All have the same high word, around whose end they may not be lined up, and none is before the begin of memory.
                    let last = self.plus(high, last);
                    let above = self.f.int2(Int2::Shr, w, last, 32);
                    self.f.branch(Cc::Ne, w, above, 0, other);
                    let high_word = self.f.load(Size::B4, self.vectors, place_of(kind, 1, 0));
                    let high_word = self.f.int2(Int2::Shl, w, high_word, 32);
                    let base = self.f.int2(Int2::Sub, w, high_word, origin);
                    let [last, low] = [last, low].map(|v| self.f.int2(Int2::Add, w, base, v));
                    self.f.branch(Cc::LtS, w, low, 0, other);
                    self.f.branch(Cc::GtS, w, last, i32::MAX, other);
                    [last, low]
                }
            };
            self.f.assign(*farthest, bounds[0]);
            self.f.assign(*lowest, bounds[1]);
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

    fn in_packets(&mut self, kind: &Located) -> InPackets {
        let (add, or) = (Code::VEX_Vpaddd_ymm_ymm_ymmm256, Code::VEX_Vpor_ymm_ymm_ymmm256);
        let lanes = self.f.vconst(std::array::from_fn(|lane| lane as u32 * step(kind)));
        let mut all: Option<InPackets> = None;
        let high_word = kind.access.wide.then(|| self.in_all_lanes(kind, 1, 0));
        for packet in 0..if self.wide_wave { 8 } else { 4 } {
            let first = self.in_all_lanes(kind, 0, packet);
            let wanted = self.f.rvm(add, first, lanes, None);
            let mut differences = self.differing(kind, 0, packet, wanted);
            if let Some(high_word) = high_word {
                let high = self.differing(kind, 1, packet, high_word);
                differences = self.f.rvm(or, differences, high, None);
            }
            all = Some(match all {
                None => InPackets { differences, highest: first, lowest: first },
                Some(all) => InPackets {
                    differences: self.f.rvm(or, all.differences, differences, None),
                    highest: self.f.rvm(HIGHER, all.highest, first, None),
                    lowest: self.f.rvm(LOWER, all.lowest, first, None),
                },
            });
        }
        all.unwrap_or(InPackets { differences: lanes, highest: lanes, lowest: lanes })
    }

    /// A word of the first lane of a packet.
    fn in_all_lanes(&mut self, kind: &Located, word: usize, packet: usize) -> V {
        let d = self.f.fresh(Class::Vec);
        let from = Mem { base: self.vectors, disp: place_of(kind, word, packet) };
        self.f.push(Inst::SplatLoad { d, from });
        d
    }

    /// Bits of a packet's words that differ from others.
    fn differing(&mut self, kind: &Located, word: usize, packet: usize, wanted: V) -> V {
        let found = self.f.vload(self.vectors, place_of(kind, word, packet), true);
        self.f.rvm(Code::VEX_Vpxor_ymm_ymm_ymmm256, wanted, found, None)
    }
}

/// How far each lane is from the one before it.
fn step(kind: &Located) -> u32 {
    kind.access.bytes as u32
}

/// Where a word of a packet's offsets or addresses is, from the first register on.
fn place_of(kind: &Located, word: usize, packet: usize) -> i32 {
    let half = packet / 4 * HALF_BYTES;
    ((kind.access.register as usize + word) * LANE_VEC_BYTES + half + packet % 4 * PACKET_BYTES) as i32
}
