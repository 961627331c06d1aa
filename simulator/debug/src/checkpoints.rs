//! Checkpoints of a run: copies of the whole state, dense near the current time and sparse far from it.
//!
//! Memory is kept in pages, which consecutive checkpoints share while the content is the same. When all
//! checkpoints together exceed the limit, those are evicted whose gap is smallest relative to their distance
//! from the current time.

use super::pages::Page;
use super::timeline::{Groups, SuspendedGroup};
use super::tracked::Tracked;
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;
use wavesim_engine::caches::Saved;
use wavesim_engine::sched::group::RunningGroup;

/// Minimum number of checkpoints, kept regardless of the limit. Without any near the current time, each step
/// back would replay a long part of the run.
pub const MIN_CHECKPOINTS: usize = 8;

/// A copy of the state at a time.
pub(super) struct Checkpoint<'a> {
    /// Wave-instructions of the dispatch executed before the checkpoint.
    pub time: u64,
    /// The running workgroup with all its registers, LDS and scratch.
    pub group: RunningGroup<'a>,
    /// Number of the workgroup.
    pub index: u64,
    /// The suspended workgroups.
    pub groups: Groups<'a>,
    /// The wave whose turn it is, and the number of steps of its turn that it has taken.
    pub turn: (usize, u64),
    /// What is tracked of each wave.
    pub tracked: Vec<Tracked>,
    /// Global memory.
    pub pages: Vec<Page>,
    /// What caches hold, with delayed memory.
    pub caches: Saved,
}

/// All checkpoints, in the order of their times. The first one is the start of the run and is never dropped.
pub(super) struct Checkpoints<'a> {
    list: Vec<Checkpoint<'a>>,
    /// Number of checkpoints that refer to a suspended workgroup.
    shared: HashMap<*const SuspendedGroup<'a>, usize>,
    /// Total size in bytes.
    bytes: usize,
    /// Maximum total size in bytes; [`MIN_CHECKPOINTS`] are kept even beyond it.
    pub limit: usize,
}

impl<'a> Checkpoints<'a> {
    /// Creates an empty list with a limit in bytes.
    pub fn new(limit: usize) -> Checkpoints<'a> {
        Checkpoints { list: Vec::new(), shared: HashMap::new(), bytes: 0, limit }
    }

    /// Returns the last checkpoint at or before a time.
    pub fn before(&self, time: u64) -> &Checkpoint<'a> {
        &self.list[self.list.partition_point(|c| c.time <= time).saturating_sub(1)]
    }

    /// Adds a checkpoint, unless one exists for its time.
    pub fn insert(&mut self, new: Checkpoint<'a>) {
        let time = new.time;
        let at = self.list.partition_point(|c| c.time < time);
        if self.list.get(at).is_some_and(|c| c.time == time) {
            return;
        }
        // Pages that no other checkpoint shares.
        let own = new.pages.iter().filter(|page| Arc::strong_count(page) == 1).map(|page| page.len());
        self.bytes += new.group.bytes() + own.sum::<usize>();
        for suspended in &new.groups.suspended {
            let count = self.shared.entry(Rc::as_ptr(suspended)).or_default();
            *count += 1;
            if *count == 1 {
                self.bytes += suspended.bytes();
            }
        }
        self.list.insert(at, new);
        while self.bytes > self.limit && self.list.len() > MIN_CHECKPOINTS {
            self.evict(time);
        }
    }

    /// Drops the checkpoint whose loss costs least at a time.
    fn evict(&mut self, now: u64) {
        let cost = |at: usize| {
            let (before, after) = (self.list[at - 1].time, self.list[at + 1].time);
            let distance = before.abs_diff(now).min(after.abs_diff(now));
            (after - before) as f64 / (distance + 1) as f64
        };
        let least = (1..self.list.len() - 1).min_by(|a, b| cost(*a).total_cmp(&cost(*b)));
        if let Some(at) = least {
            self.remove(at);
        }
    }

    fn remove(&mut self, index: usize) {
        let old = self.list.remove(index);
        let unshared = old.pages.iter().filter(|page| Arc::strong_count(page) == 1);
        self.bytes -= old.group.bytes() + unshared.map(|page| page.len()).sum::<usize>();
        for suspended in &old.groups.suspended {
            let key = Rc::as_ptr(suspended);
            if let Some(count) = self.shared.get_mut(&key) {
                *count -= 1;
                if *count == 0 {
                    self.shared.remove(&key);
                    self.bytes -= suspended.bytes();
                }
            }
        }
    }

    /// Drops the checkpoints after a time.
    pub fn truncate(&mut self, time: u64) {
        while self.list.len() > 1 && self.list.last().is_some_and(|c| c.time > time) {
            self.remove(self.list.len() - 1);
        }
    }

    /// Returns the number of checkpoints and their total size in bytes.
    pub fn size(&self) -> (usize, usize) {
        (self.list.len(), self.bytes)
    }
}
