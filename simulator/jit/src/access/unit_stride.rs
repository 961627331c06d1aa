//! Fast path for offsets of all lanes that are unit-stride or, in loads, uniform: in each packet every element directly
//! follows the one before it, or is the same one. Most accesses are, and testing for it costs a fraction of the
//! general scan. Whether an access has a unit stride is data of the code, not a branch.

use crate::access::addresses::{MAX_U32, MIN_U32};
use crate::arith::builder::R;
use crate::frame::{HALF_BYTES, LANE_VEC_BYTES};
use crate::state::access::{Access, ResolvedAccess};
use crate::state::emitter::Emitter;
use wavesim_x64::Code;
use wavesim_x64::inst::{Cc, Class, Inst, Int1, Int2, Label, Mem, Size, Src, V, Width};

/// The size of a register in a packet.
const PACKET_BYTES: usize = 32;

/// How the offsets of an access advance in a packet, as its first two lanes suggest.
struct Steps {
    /// The words of the lanes' offsets, relative to those of the first lane.
    words: V,
    /// The last lane's offset relative to the first lane's, in bytes.
    last: Src,
    /// 1 if the lanes of each packet advance by the size of an element, otherwise 0.
    contiguous: Src,
    /// 1 if the lanes of each packet have one offset, otherwise 0. The offsets of packets may differ.
    uniform: Src,
}

/// Summary of the low address words of an access, assuming [`Steps`].
struct PacketSummary {
    /// The bits that differ from what the steps say; zero if the assumption holds.
    differences: V,
    /// The maximum and the minimum of the packets' first lanes.
    max_first: V,
    min_first: V,
}

impl Emitter<'_> {
    /// Returns what [`Emitter::scan_offsets`] returns; code that finds only unit strides and uniform offsets skips the
    /// code of `scan`.
    pub fn scan_unless_regular(
        &mut self,
        locations: &[&ResolvedAccess],
        full: V,
        scan: impl FnOnce(&mut Self) -> R<Vec<[V; 4]>>,
    ) -> R<Vec<[V; 4]>> {
        let [general, join]: [Label; 2] = [(); 2].map(|()| self.b.f.label());
        let results: Vec<[V; 4]> =
            locations.iter().map(|_| [(); 4].map(|()| self.b.f.fresh(Class::Int))).collect();
        self.b.f.branch(Cc::Eq, Width::W32, full, 0, general);
        let w = Width::W64;
        for (location, [max_offset, contiguous, uniform, min_offset]) in locations.iter().zip(&results) {
            let steps = self.packet_steps(location, general);
            let PacketSummary { differences, max_first, min_first: low } =
                self.summarise_packets(location, steps.words);
            self.b.f.branch_if_any(differences, differences, general);
            let add_last = |e: &mut Self, first: V| e.b.f.int2(Int2::Add, w, first, steps.last);
            let [low, high] = [low, max_first].map(|v| {
                let first = self.b.f.low_int(v);
                let shift = location.access.shift as i32;
                if shift > 0 { self.b.f.int2(Int2::Shl, w, first, shift) } else { first }
            });
            let bounds = match location.origin {
                None if location.access.shift > 0 => {
                    // As below; shifted offsets have more than 32 bits.
                    let largest = self.b.f.iconst(i32::MAX as u64);
                    let room = self.b.f.int2(Int2::Sub, w, largest, high);
                    let beyond = self.b.f.int2(Int2::Sar, w, room, 63);
                    let last = add_last(self, high);
                    [self.b.f.int2(Int2::Or, w, last, beyond), low]
                }
                None => {
                    // An offset from 2 GiB on is beyond every limit. A unit stride may wrap around at 32 bits
                    // in later lanes.
                    let first = self.b.f.int1(Int1::SignExtend32, w, high);
                    let last = add_last(self, first);
                    let beyond = self.b.f.int2(Int2::Sar, w, first, 63);
                    [self.b.f.int2(Int2::Or, w, last, beyond), low]
                }
                Some(origin) => {
                    // All lanes must have the same high word, without wrapping around in it, and no lane may
                    // precede the origin.
                    let last = add_last(self, high);
                    let above = self.b.f.int2(Int2::Shr, w, last, 32);
                    self.b.f.branch(Cc::Ne, w, above, 0, general);
                    let high_word =
                        self.b.f.load(Size::B4, self.b.vectors, packet_displacement(location, 1, 0));
                    let high_word = self.b.f.int2(Int2::Shl, w, high_word, 32);
                    let base = self.b.f.int2(Int2::Sub, w, high_word, origin);
                    let [last, low] = [last, low].map(|v| self.b.f.int2(Int2::Add, w, base, v));
                    self.b.f.branch(Cc::LtS, w, low, 0, general);
                    self.b.f.branch(Cc::GtS, w, last, i32::MAX, general);
                    [last, low]
                }
            };
            self.b.f.assign(*max_offset, bounds[0]);
            self.b.f.assign(*min_offset, bounds[1]);
            for (d, known) in [(*contiguous, steps.contiguous), (*uniform, steps.uniform)] {
                match known {
                    Src::Value(v) => self.b.f.assign(d, v),
                    Src::Imm(bits) => self.b.f.push(Inst::Const { d, bits: bits as u64 }),
                }
            }
        }
        self.b.f.push(Inst::Jump(join));
        self.b.f.push(Inst::Label(general));
        let found = scan(self)?;
        for (found, out) in found.iter().flatten().zip(results.iter().flatten()) {
            self.b.f.assign(*out, *found);
        }
        self.b.f.push(Inst::Label(join));
        Ok(results)
    }

    /// Returns how the offsets of an access advance, if its first two lanes suggest one of the two ways.
    fn packet_steps(&mut self, location: &ResolvedAccess, general: Label) -> Steps {
        let Access { bytes, shift, store, .. } = location.access;
        let unit = bytes as u32 >> shift;
        if store || !unit.is_power_of_two() {
            // Stores to one address have no fast path.
            let words = self.b.f.vconst(std::array::from_fn(|lane| lane as u32 * unit));
            let last = Src::Imm(7 * bytes as i32);
            return Steps { words, last, contiguous: Src::Imm(1), uniform: Src::Imm(0) };
        }
        let [first, second] = [0, 1].map(|lane| self.broadcast_lane(location, 0, 0, lane));
        let step = self.b.f.rvm(Code::VEX_Vpsubd_ymm_ymm_ymmm256, second, first, None);
        let lanes = self.b.f.vconst(std::array::from_fn(|lane| lane as u32));
        let words = self.b.f.rvm(Code::VEX_Vpmulld_ymm_ymm_ymmm256, step, lanes, None);
        let step = self.b.f.low_int(step);
        let others = self.b.f.int2(Int2::And, Width::W32, step, !unit as i32);
        self.b.f.branch(Cc::Ne, Width::W32, others, 0, general);
        let contiguous = self.b.f.int2(Int2::Shr, Width::W32, step, unit.trailing_zeros() as i32);
        let uniform = self.b.f.int2(Int2::Xor, Width::W32, contiguous, 1);
        let last = self.b.f.int2(Int2::Mul, Width::W64, step, 7 << shift);
        let [last, contiguous, uniform] = [last, contiguous, uniform].map(Src::Value);
        Steps { words, last, contiguous, uniform }
    }

    fn summarise_packets(&mut self, location: &ResolvedAccess, words: V) -> PacketSummary {
        let (add, or) = (Code::VEX_Vpaddd_ymm_ymm_ymmm256, Code::VEX_Vpor_ymm_ymm_ymmm256);
        let mut all: Option<PacketSummary> = None;
        let high_word = location.access.address64.then(|| self.broadcast_lane(location, 1, 0, 0));
        for packet in 0..if self.wave64 { 8 } else { 4 } {
            let first = self.broadcast_lane(location, 0, packet, 0);
            let wanted = self.b.f.rvm(add, first, words, None);
            let mut differences = self.differences_from(location, 0, packet, wanted);
            if let Some(high_word) = high_word {
                let high = self.differences_from(location, 1, packet, high_word);
                differences = self.b.f.rvm(or, differences, high, None);
            }
            all = Some(match all {
                None => PacketSummary { differences, max_first: first, min_first: first },
                Some(all) => PacketSummary {
                    differences: self.b.f.rvm(or, all.differences, differences, None),
                    max_first: self.b.f.rvm(MAX_U32, all.max_first, first, None),
                    min_first: self.b.f.rvm(MIN_U32, all.min_first, first, None),
                },
            });
        }
        all.unwrap_or(PacketSummary { differences: words, max_first: words, min_first: words })
    }

    /// Broadcasts a word of one of a packet's lanes.
    fn broadcast_lane(&mut self, location: &ResolvedAccess, word: usize, packet: usize, lane: i32) -> V {
        let d = self.b.f.fresh(Class::Vec);
        let disp = packet_displacement(location, word, packet) + 4 * lane;
        let from = Mem { base: self.b.vectors, disp };
        self.b.f.push(Inst::SplatLoad { d, from });
        d
    }

    /// Returns the bits of a packet's words that differ from the expected ones.
    fn differences_from(&mut self, location: &ResolvedAccess, word: usize, packet: usize, wanted: V) -> V {
        let found = self.b.f.vload(self.b.vectors, packet_displacement(location, word, packet), true);
        self.b.f.rvm(Code::VEX_Vpxor_ymm_ymm_ymmm256, wanted, found, None)
    }
}

/// The displacement of a packet's offset or address words from the first register.
fn packet_displacement(location: &ResolvedAccess, word: usize, packet: usize) -> i32 {
    let half = packet / 4 * HALF_BYTES;
    ((location.access.register as usize + word) * LANE_VEC_BYTES + half + packet % 4 * PACKET_BYTES) as i32
}
