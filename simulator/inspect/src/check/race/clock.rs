//! Vector clocks, which represent the happens-before relation between accesses of different waves.

use std::collections::BTreeMap;

/// The latest epoch of each wave that happened before. Epochs start at 1; 0 means none.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct VectorClock {
    /// Epochs of the waves of the same workgroup, by index.
    pub own: Vec<u32>,
    /// Epochs of waves of other workgroups, by wave number.
    pub foreign: BTreeMap<u32, u32>,
}

impl VectorClock {
    /// Returns the initial clock in a workgroup of `waves` waves: nothing happened before.
    pub fn new(waves: usize) -> VectorClock {
        VectorClock { own: vec![0; waves], foreign: BTreeMap::new() }
    }

    /// Returns the epoch of a wave, given by its number; `first` is the number of the workgroup's first wave.
    #[inline(always)]
    pub fn epoch_of(&self, first: u32, wave: u32) -> u32 {
        match self.own.get(wave.wrapping_sub(first) as usize) {
            Some(&epoch) => epoch,
            None if self.foreign.is_empty() => 0,
            None => self.foreign_epoch(wave),
        }
    }

    #[inline(never)]
    fn foreign_epoch(&self, wave: u32) -> u32 {
        self.foreign.get(&wave).copied().unwrap_or(0)
    }

    /// Joins (takes the element-wise maximum of) this clock and another clock of the same workgroup.
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

    /// Returns all epochs by wave number. Unlike indices, wave numbers are valid in every workgroup.
    pub fn by_wave_number(&self, first: u32) -> BTreeMap<u32, u32> {
        let mut out = self.foreign.clone();
        out.extend((first..).zip(self.own.iter().copied()));
        out
    }
}
