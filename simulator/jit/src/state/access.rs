//! Loads and stores of a run, before and after their addresses are resolved.

use crate::arith::val::Val;
use crate::state::sequences::Sequence;
use std::collections::{BTreeMap, HashMap};
use wavesim_x64::inst::V;

/// If the addresses of two contiguous accesses are closer than this, one packet's bytes overlap in them.
const PACKET_BYTES: i32 = 32;

/// Where the lanes' offsets come from: the words of a register, shifted left. A sum that does not fit in a word is no
/// valid offset.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LaneOffsets {
    pub register: u16,
    pub shift: u8,
}

/// A vector load or store, before its address is resolved.
#[derive(Clone)]
pub struct Access {
    /// The register with the per-lane part of the address.
    pub register: u16,
    /// By how many bits a per-lane part of 32 bits is shifted left.
    pub shift: u8,
    /// The per-lane part has 64 bits; its high words are in the next register.
    pub address64: bool,
    pub store: bool,
    /// Addresses are offsets in LDS.
    pub lds: bool,
    /// Registers per lane: 1, 2 or 4.
    pub registers: usize,
    /// Bytes per lane.
    pub bytes: usize,
    /// The uniform part of the address; in LDS, the offset that is added to the lanes' offsets.
    pub base: Val,
    /// The per-lane part in bytes, as 64 bits, if it is a sequence: see [`crate::tune::sequences`].
    pub sequence: Option<Sequence>,
}

impl Access {
    pub fn is_in_lds(&self) -> bool {
        self.lds
    }

    /// Returns where the lanes' offsets come from.
    pub fn offsets(&self) -> LaneOffsets {
        LaneOffsets { register: self.register, shift: self.shift }
    }

    /// Returns the constant that is added to the lanes' offsets in LDS or to their 64-bit addresses, and the
    /// end of the element that begins there.
    pub fn constant_base(&self) -> Option<(i32, i32)> {
        match self.base {
            Val::Const(base) if (self.lds || self.address64) && base < 1 << 30 => {
                Some((base as i32, base as i32 + self.bytes as i32))
            }
            _ => None,
        }
    }

    /// Returns whether the addresses of two accesses differ by a constant.
    pub fn differs_by_constant(&self, other: &Access) -> bool {
        let key = |access: &Access| {
            (access.offsets(), access.lds, access.address64, access.store && access.address64)
        };
        key(self) == key(other) && self.constant_base().is_some() && other.constant_base().is_some()
    }

    /// Returns the largest element end among the accesses that differ from this one by a constant.
    pub fn common_end(&self, all: &[Access]) -> i64 {
        let alike = all.iter().filter(|other| self.differs_by_constant(other));
        alike.filter_map(Access::constant_base).map(|(_, end)| end).max().unwrap_or(0).into()
    }
}

/// An access with resolved addresses. Lane `n` is at `host + disp + offset[n]`; offsets must not exceed
/// `limit`.
#[derive(Clone)]
pub struct ResolvedAccess {
    pub access: Access,
    pub host: V,
    /// A constant that is added to the host address.
    pub disp: i32,
    pub limit: V,
    /// The origin that offsets of 64-bit addresses are relative to: as two words, and as one integer.
    pub origin_words: Option<[V; 2]>,
    pub origin: Option<V>,
    /// The index of its [`AccessGroup`].
    pub group: usize,
}

impl ResolvedAccess {
    /// Returns the host address of a lane with offset 0, and the displacement.
    pub fn host(&self) -> (V, i32) {
        (self.host, self.disp)
    }

    /// Returns whether both accesses are statically known to have the same address in every lane.
    pub fn has_same_address(&self, other: &ResolvedAccess) -> bool {
        let (a, b) = (&self.access, &other.access);
        // Between two accesses, a register may have become another sequence.
        a.sequence == b.sequence
            && (a.offsets(), a.address64, a.lds, a.bytes) == (b.offsets(), b.address64, b.lds, b.bytes)
            && a.base == b.base
    }

    /// Returns whether the lanes have the same offsets in both accesses: those of sequences are relative to lane 0.
    pub fn has_same_offsets(&self, other: &ResolvedAccess) -> bool {
        let stride = |location: &ResolvedAccess| location.access.sequence.map(|sequence| sequence.stride);
        if stride(self).is_some() || stride(other).is_some() {
            return stride(self) == stride(other);
        }
        self.access.offsets() == other.access.offsets() && self.origin_words == other.origin_words
    }
}

/// Accesses with the same offsets and the same size, whose offsets are classified once.
#[derive(Clone, Copy)]
pub struct AccessGroup {
    /// 1 if all lanes are active and each packet's addresses are contiguous.
    pub contiguous: V,
    /// 1 if all lanes are active and each packet's addresses are uniform.
    pub uniform: V,
}

/// The classification of the lanes' offsets.
pub struct OffsetSummary {
    /// The EXEC that it holds for.
    pub exec: V,
    /// The largest offset of an active lane.
    pub max_offset: V,
    /// A lower bound of the offsets.
    pub min_offset: V,
    /// See [`AccessGroup::uniform`].
    pub uniform: V,
    /// See [`AccessGroup::contiguous`], by element size in bytes.
    pub contiguous: BTreeMap<usize, V>,
}

/// The accesses of a run, resolved.
#[derive(Clone, Default)]
pub struct ResolvedAccesses {
    pub accesses: Vec<ResolvedAccess>,
    pub groups: Vec<AccessGroup>,
    pub path: Path,
    /// What packets prefetch, and how far ahead in bytes.
    pub prefetches: Vec<(ResolvedAccess, V)>,
}

/// The path that code is being emitted for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Path {
    #[default]
    Slow,
    /// See [`super::fast_path`].
    Fast,
    /// The fast path in a versioned iteration: see [`super::versioning`].
    Versioned,
}

impl ResolvedAccesses {
    /// Returns the same accesses for another path.
    pub fn on(&self, path: Path) -> ResolvedAccesses {
        ResolvedAccesses { path, ..self.clone() }
    }

    pub fn is_fast(&self) -> bool {
        self.path != Path::Slow
    }
}

impl ResolvedAccesses {
    /// Returns whether a group is expected to be contiguous rather than uniform. If each lane loads
    /// consecutive words, these are mostly a matrix row or list items that all lanes share.
    pub fn expects_contiguous(&self, group: usize) -> bool {
        let members = || self.accesses.iter().filter(|location| location.group == group);
        if let Some(sequence) = members().find_map(|location| location.access.sequence) {
            return sequence.stride != 0;
        }
        if members().any(|location| location.access.store) {
            return true;
        }
        let mut resolved: Vec<(V, i32)> = members().map(ResolvedAccess::host).collect();
        resolved.sort_unstable();
        resolved.dedup();
        !resolved.windows(2).any(|pair| pair[0].0 == pair[1].0 && pair[1].1 - pair[0].1 < PACKET_BYTES)
    }
}

/// Addresses of a unit: what is known about the offsets of lanes, and the cached ranges in use.
#[derive(Default)]
pub struct Addresses {
    /// The number of global memory accesses emitted so far. It spreads them over the cached ranges.
    pub range_count: usize,
    /// The base operands of scalar loads. Each gets a cached range of its own.
    pub scalar_bases: Vec<[u16; 4]>,
    /// Classified lane offsets, by their source and, for 64-bit addresses, the words of their origin.
    pub summaries: HashMap<(LaneOffsets, Option<[V; 2]>), OffsetSummary>,
    /// The offsets whose classification is cached across blocks.
    pub slots: OffsetSlots,
    /// The EXEC value that was last compared with all ones, and the result.
    pub exec_full: Option<(V, V)>,
}

/// The offsets whose classification is cached: slots of the wave's cache, by source and access size in bytes.
#[derive(Default)]
pub struct OffsetSlots(pub BTreeMap<(LaneOffsets, usize), usize>);

impl OffsetSlots {
    /// Returns the slots of matching registers as a bit mask.
    pub fn bits_of(&self, of: impl Fn(u16) -> bool) -> u64 {
        self.0.iter().filter(|((offsets, _), _)| of(offsets.register)).fold(0, |all, (_, n)| all | 1 << n)
    }
}
