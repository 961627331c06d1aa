//! Fast path for unit-stride offsets: all lanes are active, and in each packet every element directly follows
//! the one before it. Most accesses have a unit stride, and testing for it costs a fraction of the general
//! scan.

use crate::access::addresses::{MAX_U32, MIN_U32};
use crate::arith::builder::R;
use crate::frame::{HALF_BYTES, LANE_VEC_BYTES};
use crate::state::access::ResolvedAccess;
use crate::state::emitter::Emitter;
use wavesim_x64::Code;
use wavesim_x64::inst::{Cc, Class, Inst, Int1, Int2, Label, Mem, Size, V, Width};

/// The size of a register in a packet.
const PACKET_BYTES: usize = 32;

/// Summary of the low address words of an access, assuming a unit stride.
struct UnitStrideSummary {
    /// The bits that differ from a unit stride; zero if the assumption holds.
    differences: V,
    /// The maximum and the minimum of the packets' first lanes.
    max_first: V,
    min_first: V,
}

impl Emitter<'_> {
    /// Returns what [`Emitter::scan_offsets`] returns; code that finds a unit stride skips the code of
    /// `scan`.
    pub fn scan_unless_unit_stride(
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
            let UnitStrideSummary { differences, max_first, min_first: low } =
                self.summarise_packets(location);
            self.b.f.branch_if_any(differences, differences, general);
            let last = 7 * location.access.bytes as i64;
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
                    let last = self.add_imm(high, last);
                    [self.b.f.int2(Int2::Or, w, last, beyond), low]
                }
                None => {
                    // An offset from 2 GiB on is beyond every limit. A unit stride may wrap around at 32 bits
                    // in later lanes.
                    let first = self.b.f.int1(Int1::SignExtend32, w, high);
                    let last = self.add_imm(first, last);
                    let beyond = self.b.f.int2(Int2::Sar, w, first, 63);
                    [self.b.f.int2(Int2::Or, w, last, beyond), low]
                }
                Some(origin) => {
                    // All lanes must have the same high word, without wrapping around in it, and no lane may
                    // precede the origin.
                    let last = self.add_imm(high, last);
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
            self.b.f.push(Inst::Const { d: *contiguous, bits: 1 });
            self.b.f.push(Inst::Const { d: *uniform, bits: 0 });
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

    fn summarise_packets(&mut self, location: &ResolvedAccess) -> UnitStrideSummary {
        let (add, or) = (Code::VEX_Vpaddd_ymm_ymm_ymmm256, Code::VEX_Vpor_ymm_ymm_ymmm256);
        let lanes = self.b.f.vconst(std::array::from_fn(|lane| lane as u32 * stride(location)));
        let mut all: Option<UnitStrideSummary> = None;
        let high_word = location.access.address64.then(|| self.broadcast_first_lane(location, 1, 0));
        for packet in 0..if self.wave64 { 8 } else { 4 } {
            let first = self.broadcast_first_lane(location, 0, packet);
            let wanted = self.b.f.rvm(add, first, lanes, None);
            let mut differences = self.differences_from(location, 0, packet, wanted);
            if let Some(high_word) = high_word {
                let high = self.differences_from(location, 1, packet, high_word);
                differences = self.b.f.rvm(or, differences, high, None);
            }
            all = Some(match all {
                None => UnitStrideSummary { differences, max_first: first, min_first: first },
                Some(all) => UnitStrideSummary {
                    differences: self.b.f.rvm(or, all.differences, differences, None),
                    max_first: self.b.f.rvm(MAX_U32, all.max_first, first, None),
                    min_first: self.b.f.rvm(MIN_U32, all.min_first, first, None),
                },
            });
        }
        all.unwrap_or(UnitStrideSummary { differences: lanes, max_first: lanes, min_first: lanes })
    }

    /// Broadcasts a word of a packet's first lane.
    fn broadcast_first_lane(&mut self, location: &ResolvedAccess, word: usize, packet: usize) -> V {
        let d = self.b.f.fresh(Class::Vec);
        let from = Mem { base: self.b.vectors, disp: packet_displacement(location, word, packet) };
        self.b.f.push(Inst::SplatLoad { d, from });
        d
    }

    /// Returns the bits of a packet's words that differ from the expected ones.
    fn differences_from(&mut self, location: &ResolvedAccess, word: usize, packet: usize, wanted: V) -> V {
        let found = self.b.f.vload(self.b.vectors, packet_displacement(location, word, packet), true);
        self.b.f.rvm(Code::VEX_Vpxor_ymm_ymm_ymmm256, wanted, found, None)
    }
}

/// The distance between adjacent lanes in the register, whose shift the size is a multiple of.
fn stride(location: &ResolvedAccess) -> u32 {
    location.access.bytes as u32 >> location.access.shift
}

/// The displacement of a packet's offset or address words from the first register.
fn packet_displacement(location: &ResolvedAccess, word: usize, packet: usize) -> i32 {
    let half = packet / 4 * HALF_BYTES;
    ((location.access.register as usize + word) * LANE_VEC_BYTES + half + packet % 4 * PACKET_BYTES) as i32
}
