//! Checkpoints of a run: copies of the whole state, dense near the present and sparse far from it.
//!
//! Memory is kept in pages, which neighbours share as long as their content is the same. When all checkpoints together
//! take more than the limit, those go whose gap is smallest for their distance from the present.

use super::pages::Page;
use super::timeline::{Groups, Parked};
use super::written::Sgprs;
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;
use wavesim_engine::sched::group::Group;

/// Checkpoints that are kept whatever they take: without any near the present, each step back would repeat the run from far away.
pub const LEAST: usize = 8;

/// The state at a time.
pub(super) struct Checkpoint<'a> {
    /// Wave-instructions of the dispatch before it.
    pub time: u64,
    /// The workgroup with all its registers, LDS and scratch.
    pub group: Group<'a>,
    /// Number of the workgroup.
    pub index: u64,
    /// Those that have begun and wait.
    pub groups: Groups<'a>,
    /// The wave whose turn it is, and how many steps of its turn it has taken.
    pub turn: (usize, u64),
    /// SGPRs that each wave has written.
    pub written: Vec<Sgprs>,
    /// Global memory.
    pub pages: Vec<Page>,
}

/// Checkpoints in the order of their times. The first one is the start of the run and always there.
pub(super) struct Checkpoints<'a> {
    list: Vec<Checkpoint<'a>>,
    /// How many checkpoints have a parked workgroup.
    shared: HashMap<*const Parked<'a>, usize>,
    /// Bytes that all take.
    bytes: usize,
    /// Bytes that all may take; a few are kept even then.
    pub limit: usize,
}

impl<'a> Checkpoints<'a> {
    /// None yet; `limit` in bytes.
    pub fn new(limit: usize) -> Checkpoints<'a> {
        Checkpoints { list: Vec::new(), shared: HashMap::new(), bytes: 0, limit }
    }

    /// The last one at a time or before it.
    pub fn before(&self, time: u64) -> &Checkpoint<'a> {
        &self.list[self.list.partition_point(|c| c.time <= time).saturating_sub(1)]
    }

    /// Adds the state at a time, unless there is one.
    pub fn insert(&mut self, new: Checkpoint<'a>) {
        let time = new.time;
        let at = self.list.partition_point(|c| c.time < time);
        if self.list.get(at).is_some_and(|c| c.time == time) {
            return;
        }
        // Pages that no other checkpoint has.
        let own = new.pages.iter().filter(|page| Arc::strong_count(page) == 1).map(|page| page.len());
        self.bytes += new.group.bytes() + own.sum::<usize>();
        for parked in &new.groups.parked {
            let count = self.shared.entry(Rc::as_ptr(parked)).or_default();
            *count += 1;
            if *count == 1 {
                self.bytes += parked.bytes();
            }
        }
        self.list.insert(at, new);
        while self.bytes > self.limit && self.list.len() > LEAST {
            self.thin(time);
        }
    }

    /// Drops the one that is missed least at a time.
    fn thin(&mut self, now: u64) {
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

    fn remove(&mut self, at: usize) {
        let old = self.list.remove(at);
        let unshared = old.pages.iter().filter(|page| Arc::strong_count(page) == 1);
        self.bytes -= old.group.bytes() + unshared.map(|page| page.len()).sum::<usize>();
        for parked in &old.groups.parked {
            let key = Rc::as_ptr(parked);
            if let Some(count) = self.shared.get_mut(&key) {
                *count -= 1;
                if *count == 0 {
                    self.shared.remove(&key);
                    self.bytes -= parked.bytes();
                }
            }
        }
    }

    /// Drops those after a time.
    pub fn truncate(&mut self, time: u64) {
        while self.list.len() > 1 && self.list.last().is_some_and(|c| c.time > time) {
            self.remove(self.list.len() - 1);
        }
    }

    /// How many there are, and the bytes that they take.
    pub fn size(&self) -> (usize, usize) {
        (self.list.len(), self.bytes)
    }
}
