//! Accesses that were still outstanding when their wave performed a release: at a barrier, or at a store or
//! atomic that another wave reads.
//!
//! Such an access is ordered only for waves that acquire a later release, one performed after the wait for
//! the access.

use std::collections::BTreeMap;

/// Maximum number of entries per wave. When an older entry is dropped, the waves whose accesses could race
/// with it have usually moved on.
const MAX_ENTRIES: usize = 4096;

/// The accesses of a wave that completed only after one of its releases.
#[derive(Debug, Default, Clone)]
pub struct LateCompletions {
    /// The epoch at which an access completed, by the access's epoch and PC.
    complete: BTreeMap<(u32, u32), u32>,
}

impl LateCompletions {
    /// Records that an access issued in `epoch` has completed in epoch `now`. The epoch after a store's
    /// begins directly after the store.
    #[inline]
    pub fn retire(&mut self, epoch: u32, pc: u32, store: bool, now: u32) {
        if now > epoch + store as u32 {
            self.insert((epoch, pc), now);
        }
    }

    #[inline(never)]
    fn insert(&mut self, access: (u32, u32), now: u32) {
        self.complete.insert(access, now);
        if self.complete.len() > MAX_ENTRIES {
            self.complete.pop_first();
        }
    }

    /// Returns whether no access completed late.
    pub fn is_empty(&self) -> bool {
        self.complete.is_empty()
    }

    /// Returns whether an access was incomplete when the wave released `clock`.
    pub fn incomplete(&self, epoch: u32, pc: u32, clock: u32) -> bool {
        self.complete.get(&(epoch, pc)).is_some_and(|&complete| clock < complete)
    }
}
