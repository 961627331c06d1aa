//! Vector clocks: which accesses of other waves happened before.

use std::collections::BTreeMap;

/// Epochs of waves that happened before. Epochs start at 1; 0 is never.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct VectorClock {
    /// Of the waves of its workgroup, by index.
    pub own: Vec<u32>,
    /// Of waves of other workgroups, by number.
    pub foreign: BTreeMap<u32, u32>,
}

impl VectorClock {
    /// For a workgroup of so many waves: nothing has happened before.
    pub fn new(waves: usize) -> VectorClock {
        VectorClock { own: vec![0; waves], foreign: BTreeMap::new() }
    }

    /// The epoch of a wave, by number; `first` is that of the workgroup's first wave.
    #[inline(always)]
    pub fn of(&self, first: u32, wave: u32) -> u32 {
        match self.own.get(wave.wrapping_sub(first) as usize) {
            Some(&epoch) => epoch,
            None if self.foreign.is_empty() => 0,
            None => self.of_foreign(wave),
        }
    }

    #[inline(never)]
    fn of_foreign(&self, wave: u32) -> u32 {
        self.foreign.get(&wave).copied().unwrap_or(0)
    }

    /// Takes over what another clock of the workgroup has.
    pub fn join(&mut self, other: &VectorClock) {
        for (a, b) in self.own.iter_mut().zip(&other.own) {
            *a = (*a).max(*b);
        }
        if other.foreign.is_empty() {
            return;
        }
        for (&wave, &epoch) in &other.foreign {
            let entry = self.foreign.entry(wave).or_default();
            *entry = epoch.max(*entry);
        }
    }

    /// All epochs by wave number, which holds in every workgroup.
    pub fn numbered(&self, first: u32) -> BTreeMap<u32, u32> {
        let mut out = self.foreign.clone();
        out.extend((first..).zip(self.own.iter().copied()));
        out
    }
}
