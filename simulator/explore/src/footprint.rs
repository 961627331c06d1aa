//! The memory that a step accesses, and whether two steps can be exchanged.

use wavesim_engine::sched::group::RunningGroup;
use wavesim_machine::exec::watch::{Access, Place};
use wavesim_machine::state::wave::SGPRS;

/// A memory in which accesses can conflict.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Space {
    /// Global memory.
    Global,
    /// LDS of a workgroup.
    Lds(u64),
    /// The barriers of a workgroup, by index.
    Barriers(u64),
    /// Messages to the host.
    Messages,
    /// The registers of a wave that its delayed operations are going to write, by the number of the operation.
    Registers(u32),
    /// A cache, by line.
    Cache(u32),
}

/// Consecutive bytes of a space.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Range {
    /// The memory.
    pub space: Space,
    /// Address of the first byte.
    pub start: u64,
    /// Address after the last byte.
    pub end: u64,
}

/// The bytes that a step loads and stores, each list sorted and without overlaps.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Footprint {
    /// Bytes loaded.
    pub loads: Vec<Range>,
    /// Bytes stored.
    pub stores: Vec<Range>,
}

impl Footprint {
    /// Adds an access of a workgroup; scratch is private to a lane, and other waves cannot see it.
    pub fn add(&mut self, group: u64, access: &Access) {
        let space = match access.place {
            Place::Global => Space::Global,
            Place::Lds => Space::Lds(group),
            Place::Scratch | Place::Nowhere => return,
        };
        if access.outside {
            return;
        }
        let list = if access.write { &mut self.stores } else { &mut self.loads };
        if access.stride == 0 || access.stride == access.size_bytes {
            let end = access.address.saturating_add(access.len_bytes());
            list.push(Range { space, start: access.address, end });
        } else {
            list.extend(access.each().map(|one| Range {
                space,
                start: one.address,
                end: one.address.saturating_add(one.size_bytes.into()),
            }));
        }
    }

    /// Adds a use of something that is not memory, which conflicts with every other use of it.
    pub fn add_object(&mut self, space: Space, index: u64) {
        self.stores.push(Range { space, start: index, end: index + 1 });
    }

    /// Sorts the lists and merges what overlaps. To be called after the last addition.
    pub fn finish(&mut self) {
        merge(&mut self.loads);
        merge(&mut self.stores);
    }

    /// Adds what another step accesses.
    pub fn join(&mut self, other: &Footprint) {
        self.loads.extend(&other.loads);
        self.stores.extend(&other.stores);
        self.finish();
    }

    /// Returns whether there are no accesses.
    pub fn is_empty(&self) -> bool {
        self.loads.is_empty() && self.stores.is_empty()
    }

    /// Returns a range that one of the two stores and the other accesses: their order may then matter.
    pub fn conflict(&self, other: &Footprint) -> Option<Range> {
        overlap(&self.stores, &other.stores)
            .or_else(|| overlap(&self.stores, &other.loads))
            .or_else(|| overlap(&self.loads, &other.stores))
    }

    /// Returns a range that this step loads and the other stores.
    pub fn reads_from(&self, other: &Footprint) -> Option<Range> {
        overlap(&self.loads, &other.stores)
    }
}

fn merge(list: &mut Vec<Range>) {
    if list.len() < 2 {
        return;
    }
    list.sort_unstable();
    list.dedup_by(|next, last| {
        let joins = next.space == last.space && next.start <= last.end;
        if joins {
            last.end = last.end.max(next.end);
        }
        joins
    });
}

/// Returns the first common bytes of two sorted lists.
fn overlap(a: &[Range], b: &[Range]) -> Option<Range> {
    let (mut i, mut j) = (0, 0);
    while let (Some(x), Some(y)) = (a.get(i), b.get(j)) {
        if x.space == y.space && x.start < y.end && y.start < x.end {
            return Some(Range { space: x.space, start: x.start.max(y.start), end: x.end.min(y.end) });
        }
        if (x.space, x.end) <= (y.space, y.end) { i += 1 } else { j += 1 }
    }
    None
}

/// Returns a number that identifies the registers of a wave, its program counter included. `vgprs` are those that can
/// have changed since its start.
pub fn wave_hash(group: &RunningGroup<'_>, wave: usize, vgprs: &[u16]) -> u64 {
    use std::hash::{BuildHasher, Hash, Hasher};
    let wave = &group.slots[wave].wave;
    let mut hasher = foldhash::quality::FixedState::with_seed(0x5eed).build_hasher();
    wave.sgprs[..SGPRS].hash(&mut hasher);
    (wave.scc, wave.pc, wave.mode, wave.joined, wave.passed).hash(&mut hasher);
    for register in vgprs {
        for half in 0..wave.halves() {
            wave.lane_vec(half, *register as usize).0.hash(&mut hasher);
        }
    }
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn access(address: u64, lanes: u8, stride: u8, write: bool) -> Access {
        let (place, size_bytes, lane) = (Place::Global, 4, Some(0));
        Access { place, address, size_bytes, lanes, stride, write, outside: false, lane }
    }

    fn footprint(list: &[Access]) -> Footprint {
        let mut out = Footprint::default();
        list.iter().for_each(|access| out.add(0, access));
        out.finish();
        out
    }

    #[test]
    fn stores_conflict_with_accesses_of_the_same_bytes() {
        let store = footprint(&[access(0x100, 4, 4, true), access(0x200, 1, 0, true)]);
        assert!(store.conflict(&footprint(&[access(0x10c, 1, 0, false)])).is_some());
        assert!(store.conflict(&footprint(&[access(0x110, 1, 0, true)])).is_none());
        assert_eq!(store.conflict(&footprint(&[access(0x200, 8, 4, false)])).map(|r| r.start), Some(0x200));
        let load = footprint(&[access(0x100, 4, 4, false)]);
        assert!(load.conflict(&load).is_none());
        assert!(load.conflict(&store).is_some() && load.reads_from(&store).is_some());
        assert!(store.reads_from(&store).is_none());
    }

    #[test]
    fn lds_belongs_to_a_workgroup() {
        let one = |group| {
            let mut out = Footprint::default();
            out.add(group, &Access { place: Place::Lds, ..access(0, 1, 0, true) });
            out.finish();
            out
        };
        assert!(one(1).conflict(&one(1)).is_some());
        assert!(one(1).conflict(&one(2)).is_none());
    }

    #[test]
    fn ranges_are_merged() {
        let all = footprint(&[access(8, 1, 0, true), access(0, 2, 4, true), access(4, 2, 4, true)]);
        assert_eq!(all.stores, [Range { space: Space::Global, start: 0, end: 12 }]);
    }
}
