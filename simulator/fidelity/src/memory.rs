//! Inexact bits of memory: global memory, the LDS of workgroups, the scratch of lanes.

use crate::origin::{SetId, Sets};
use foldhash::HashMap;
use wavesim_machine::exec::watch::{Access, Place};

/// Inexact bits of a dword.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cell {
    /// Mask of the inexact bits.
    pub bits: u32,
    /// Where they come from.
    pub set: SetId,
    /// Index of the instruction that has stored them last.
    pub stored_by: u32,
}

/// A wave of a workgroup, both numbered by the observer.
#[derive(Debug, Clone, Copy)]
pub struct Owner {
    /// Number of the workgroup in the order of starts.
    pub group: u64,
    /// Number of the wave in its workgroup.
    pub wave: u32,
}

type Key = (Place, u64, u64);

/// The inexact bits of all memory.
#[derive(Debug, Default)]
pub struct TaintedMemory {
    cells: HashMap<Key, Cell>,
    /// By place of an element: the number of float sums.
    sums: HashMap<Key, u32>,
}

/// Returns the number of the memory that an access of a lane belongs to.
fn space(access: &Access, owner: Owner) -> u64 {
    match access.place {
        Place::Scratch => {
            owner.group << 16 | u64::from(owner.wave) << 6 | u64::from(access.lane.unwrap_or(0))
        }
        Place::Lds => owner.group,
        _ => 0,
    }
}

impl TaintedMemory {
    /// Returns whether every bit is exact.
    pub fn is_exact(&self) -> bool {
        self.cells.is_empty()
    }

    /// Forgets the memory of a workgroup that has ended.
    pub fn end_group(&mut self, group: u64) {
        let ended = |key: &Key| match key.0 {
            Place::Lds => key.1 == group,
            Place::Scratch => key.1 >> 16 == group,
            _ => false,
        };
        self.cells.retain(|key, _| !ended(key));
        self.sums.retain(|key, _| !ended(key));
    }

    /// Returns the cells of an access of one lane, each with the offset of its dword from the access: the access may
    /// begin within a dword.
    pub fn cells(&self, access: &Access, owner: Owner) -> impl Iterator<Item = (i64, Cell)> + '_ {
        let (place, space, start) = (access.place, space(access, owner), access.address);
        let end = if self.cells.is_empty() { start } else { start.saturating_add(access.size_bytes.into()) };
        (start & !3..end).step_by(4).filter_map(move |address| {
            let cell = self.cells.get(&(place, space, address))?;
            Some((address.wrapping_sub(start) as i64, *cell))
        })
    }

    /// Returns the cells of a range of global memory, with their addresses.
    pub fn range(&self, start: u64, end: u64) -> Vec<(u64, Cell)> {
        let inside = |key: &Key| key.0 == Place::Global && key.2.saturating_add(4) > start && key.2 < end;
        let mut found: Vec<(u64, Cell)> =
            self.cells.iter().filter(|(key, _)| inside(key)).map(|(key, cell)| (key.2, *cell)).collect();
        found.sort_unstable_by_key(|(address, _)| *address);
        found
    }

    /// Sets the inexact bits of a byte that a lane stores; `None` for an exact one.
    pub fn store_byte(
        &mut self,
        access: &Access,
        owner: Owner,
        offset: u64,
        (bits, set): (u8, Option<SetId>),
        stored_by: u32,
        sets: &mut Sets,
    ) {
        let address = access.address.wrapping_add(offset);
        let shift = 8 * (address & 3) as u32;
        let key = (access.place, space(access, owner), address & !3);
        let mask = 0xff << shift;
        match (self.cells.get_mut(&key), set) {
            (Some(cell), Some(set)) => {
                let others = cell.bits & !mask;
                let set = if others == 0 { set } else { sets.union(cell.set, set) };
                *cell = Cell { bits: others | u32::from(bits) << shift, set, stored_by };
            }
            (Some(cell), None) => {
                cell.bits &= !mask;
                if cell.bits == 0 {
                    self.cells.remove(&key);
                }
            }
            (None, Some(set)) => {
                self.cells.insert(key, Cell { bits: u32::from(bits) << shift, set, stored_by });
            }
            (None, None) => {}
        }
    }

    /// Sets whether all bits that a lane stores are inexact.
    pub fn store(
        &mut self,
        access: &Access,
        owner: Owner,
        set: Option<SetId>,
        stored_by: u32,
        sets: &mut Sets,
    ) {
        for offset in 0..u64::from(access.size_bytes) {
            self.store_byte(access, owner, offset, (0xff, set), stored_by, sets);
        }
    }

    /// Counts a sum at an address. Returns the number of earlier ones.
    pub fn count_sum(&mut self, access: &Access, owner: Owner) -> u32 {
        let count = self.sums.entry((access.place, space(access, owner), access.address)).or_default();
        *count += 1;
        *count - 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::origin::{Cause, Origin, Sets};

    const OWNER: Owner = Owner { group: 3, wave: 1 };

    fn access(place: Place, address: u64, size_bytes: u8) -> Access {
        Access { place, address, size_bytes, lanes: 1, stride: 0, write: true, outside: false, lane: Some(5) }
    }

    #[test]
    fn bytes_become_inexact_and_exact() {
        let sets = &mut Sets::default();
        let set = sets.single(Origin { index: 0, cause: Cause::Order });
        let mut memory = TaintedMemory::default();
        memory.store(&access(Place::Global, 0x102, 4), OWNER, Some(set), 7, sets);
        let cells: Vec<_> = memory.range(0x100, 0x108).iter().map(|(at, cell)| (*at, cell.bits)).collect();
        assert_eq!(cells, [(0x100, 0xffff_0000), (0x104, 0xffff)]);
        let seen: Vec<_> = memory.cells(&access(Place::Global, 0x102, 4), OWNER).map(|(at, _)| at).collect();
        assert_eq!(seen, [-2, 2]);
        memory.store(&access(Place::Global, 0x104, 2), OWNER, None, 8, sets);
        assert_eq!(memory.range(0, u64::MAX).len(), 1);
        memory.store(&access(Place::Global, 0x100, 8), OWNER, None, 8, sets);
        assert!(memory.is_exact());
    }

    #[test]
    fn lanes_and_workgroups_have_their_own_memory() {
        let sets = &mut Sets::default();
        let set = sets.single(Origin { index: 0, cause: Cause::Order });
        let mut memory = TaintedMemory::default();
        for place in [Place::Lds, Place::Scratch] {
            memory.store(&access(place, 0, 4), OWNER, Some(set), 0, sets);
            let other_lane = Access { lane: Some(6), ..access(place, 0, 4) };
            let shared = place == Place::Lds;
            assert_eq!(memory.cells(&other_lane, OWNER).count(), usize::from(shared));
            assert_eq!(memory.cells(&access(place, 0, 4), Owner { group: 4, ..OWNER }).count(), 0);
        }
        memory.end_group(4);
        assert!(!memory.is_exact());
        memory.end_group(3);
        assert!(memory.is_exact());
    }
}
