//! Caches: what instructions mean for them ([`Policy`]), for the check of races and for delayed memory; and, for delayed
//! memory, what they hold, and which of them each wave sits behind.
//!
//! A store takes effect in memory, and in the caches that its wave sits behind; other caches keep a line as it was when a
//! load brought it there, until an invalidation. Lines are never evicted otherwise, so that stale values show. A load that
//! may hit in a cache gets what the cache holds. Where stores of less than device scope stay in the L1 cache of their wave
//! (`release_writes_back`, [`wavesim_isa::arch::facts::Facts`]), waves behind others see the bytes before them until a
//! write-back.

mod contents;
mod placement;
mod policy;

pub(crate) use contents::overlay;
pub use contents::{LINE, Reason, Source, Stale, Touch};
pub use placement::{Arrangement, Cache, Placement};
pub use policy::{Caches, DEVICE, Policy, WORKGROUP};

use contents::{Contents, Seen};
use std::sync::{Mutex, MutexGuard};
use wavesim_machine::exec::watch::Logs;
use wavesim_machine::memory::Memory;

/// The caches of a launch. Workgroups that run on several threads share them.
#[derive(Debug, Default)]
pub struct SharedCaches(Mutex<State>);

#[derive(Debug, Clone, Default)]
struct State {
    arrangement: Option<Arrangement>,
    contents: Contents,
}

/// What all caches of a launch hold at a time.
#[derive(Debug, Clone, Default)]
pub struct Saved(State);

impl SharedCaches {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Empties all caches, for a dispatch that starts.
    pub fn clear(&self) {
        self.lock().contents.clear();
    }

    /// Sets how workgroups that start from now on are spread over caches; `None` for caches that are always coherent.
    pub fn arrange(&self, arrangement: Option<Arrangement>) {
        self.lock().arrangement = arrangement;
    }

    /// Returns how workgroups are spread over caches.
    pub fn arrangement(&self) -> Option<Arrangement> {
        self.lock().arrangement
    }

    /// Returns what the caches hold.
    pub fn save(&self) -> Saved {
        Saved(self.lock().clone())
    }

    /// Restores what the caches held.
    pub fn restore(&self, saved: &Saved) {
        self.lock().clone_from(&saved.0);
    }

    /// Records from now on what uses caches, for [`SharedCaches::take_touched`].
    pub fn record(&self) {
        self.lock().contents.touched = Some(Vec::new());
    }

    /// Returns the uses of caches since the last call.
    pub fn take_touched(&self) -> Vec<Touch> {
        self.lock().contents.touched.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// Returns the accesses since the last call that did not see the newest value.
    pub fn take_stale(&self) -> Vec<Stale> {
        std::mem::take(&mut self.lock().contents.stale)
    }

    pub(crate) fn access(
        &self,
        placement: &Placement,
        policy: Policy,
        index: usize,
        logs: &Logs,
        memory: &Memory,
    ) -> Seen {
        let mut state = self.lock();
        if state.contents.touched.is_none() {
            // Nobody asks for them.
            state.contents.stale.clear();
        }
        state.contents.access(placement, policy, index, logs, memory)
    }

    pub(crate) fn invalidate(&self, placement: &Placement, caches: Caches) {
        self.lock().contents.invalidate(placement, caches);
    }

    pub(crate) fn write_back(&self, placement: &Placement) {
        self.lock().contents.write_back(placement);
    }

    pub(crate) fn flush(&self) {
        self.lock().contents.flush();
    }
}
