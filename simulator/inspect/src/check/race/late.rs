//! Accesses that were outstanding when their wave released them: at a barrier, or at a store or atomic that another wave reads.
//!
//! Such an access is ordered only for waves that acquire a later release, one that comes after its wait.

use std::collections::BTreeMap;

/// Accesses of a wave at most: of the older ones, whoever could race with them has gone on.
const MOST: usize = 4096;

/// A wave's accesses that were complete only after one of its releases.
#[derive(Debug, Default, Clone)]
pub struct Late {
    /// The epoch at which it was complete, by epoch and PC of the access.
    complete: BTreeMap<(u32, u32), u32>,
}

impl Late {
    /// An access of an epoch is complete now. Of a store, the next epoch begins directly after it.
    #[inline]
    pub fn retire(&mut self, epoch: u32, pc: u32, store: bool, now: u32) {
        if now > epoch + store as u32 {
            self.insert((epoch, pc), now);
        }
    }

    #[inline(never)]
    fn insert(&mut self, access: (u32, u32), now: u32) {
        self.complete.insert(access, now);
        if self.complete.len() > MOST {
            self.complete.pop_first();
        }
    }

    /// No access was late.
    pub fn is_empty(&self) -> bool {
        self.complete.is_empty()
    }

    /// Whether an access was incomplete when the wave released `clock`.
    pub fn incomplete(&self, epoch: u32, pc: u32, clock: u32) -> bool {
        self.complete.get(&(epoch, pc)).is_some_and(|&complete| clock < complete)
    }
}
