//! Fast path for unit-stride offsets: all lanes are active, and in each packet every element directly follows
//! the one before it. Most accesses have a unit stride, and testing for it costs a fraction of the general
//! scan.

use super::memory::{HIGHER, LOWER, Located};
use super::{Emitter, R};
use crate::frame::{HALF_BYTES, LANE_VEC_BYTES};
use wavesim_x64::Code;
use wavesim_x64::inst::{Cc, Class, Inst, Int1, Int2, Label, Mem, Size, V, Width};

/// The size of a register in a packet.
const PACKET_BYTES: usize = 32;

/// Summary of the low address words of an access, assuming a unit stride.
struct InPackets {
    /// The bits that differ from a unit stride; zero if the assumption holds.
    differences: V,
    /// The maximum and the minimum of the packets' first lanes.
    highest: V,
    lowest: V,
}

impl Emitter<'_> {
    /// Returns what [`Emitter::scan_offsets`] returns; code that finds a unit stride skips the code of
    /// `scan`.
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
                    // An offset from 2 GiB on is beyond every limit. A unit stride may wrap around at 32 bits
                    // in later lanes.
                    let first = self.f.int1(Int1::SignExtend32, w, high);
                    let last = self.plus(first, last);
                    let beyond = self.f.int2(Int2::Sar, w, first, 63);
                    [self.f.int2(Int2::Or, w, last, beyond), low]
                }
                Some(origin) => {
                    // All lanes must have the same high word, without wrapping around in it, and no lane may
                    // precede the origin.
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

    /// Broadcasts a word of a packet's first lane.
    fn in_all_lanes(&mut self, kind: &Located, word: usize, packet: usize) -> V {
        let d = self.f.fresh(Class::Vec);
        let from = Mem { base: self.vectors, disp: place_of(kind, word, packet) };
        self.f.push(Inst::SplatLoad { d, from });
        d
    }

    /// Returns the bits of a packet's words that differ from the expected ones.
    fn differing(&mut self, kind: &Located, word: usize, packet: usize, wanted: V) -> V {
        let found = self.f.vload(self.vectors, place_of(kind, word, packet), true);
        self.f.rvm(Code::VEX_Vpxor_ymm_ymm_ymmm256, wanted, found, None)
    }
}

/// The distance between adjacent lanes.
fn step(kind: &Located) -> u32 {
    kind.access.bytes as u32
}

/// The displacement of a packet's offset or address words from the first register.
fn place_of(kind: &Located, word: usize, packet: usize) -> i32 {
    let half = packet / 4 * HALF_BYTES;
    ((kind.access.register as usize + word) * LANE_VEC_BYTES + half + packet % 4 * PACKET_BYTES) as i32
}
