//! The counters of outstanding memory operations.

use wavesim_asm::dialect::advice;
use wavesim_isa::arch::facts::Counter;

/// Returns the instruction that waits until at most `n` operations of a counter are outstanding.
pub fn wait_instruction(counter: Counter, n: usize) -> String {
    advice::wait_instruction(counter.name(), n)
}

/// A set of counters. An operation is counted in one or two.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counters(u16);

impl Counters {
    pub(super) fn one(counter: Counter) -> Counters {
        Counters(1 << counter as u8)
    }

    pub(super) fn with(self, counter: Counter) -> Counters {
        Counters(self.0 | 1 << counter as u8)
    }

    /// Returns the counters that have nothing outstanding after these waits.
    pub fn drained_by(waits: &[(Counter, u32)]) -> Counters {
        Counters(waits.iter().filter(|wait| wait.1 == 0).fold(0, |all, wait| all | 1 << wait.0 as u8))
    }

    /// Returns whether the set is a superset of another.
    pub fn is_superset(self, others: Counters) -> bool {
        others.0 & !self.0 == 0
    }

    /// Returns the union of two sets.
    pub fn union(self, others: Counters) -> Counters {
        Counters(self.0 | others.0)
    }

    /// Returns whether a counter is in the set.
    pub fn contains(self, counter: Counter) -> bool {
        self.0 >> counter as u8 & 1 == 1
    }

    pub(super) fn remove(&mut self, counter: Counter) {
        self.0 &= !(1 << counter as u8);
    }

    /// Returns whether the set is empty.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    pub(super) fn iter(self) -> impl Iterator<Item = Counter> {
        Counter::ALL.into_iter().filter(move |c| self.contains(*c))
    }
}
