//! Checkpoints of a run: copies of the whole state, dense near the present and sparse far from it.
//!
//! Memory is kept in pages, which neighbours share as long as their content is the same. When all checkpoints together
//! take more than the limit, those go whose gap is smallest for their distance from the present.

use std::sync::Arc;
use wavesim_engine::sched::group::Group;

/// Bytes of a page.
const PAGE: usize = 1 << 16;

/// The state at a time.
pub(super) struct Checkpoint<'a> {
    pub time: u64,
    pub group: Group<'a>,
    /// Number of the workgroup.
    pub index: u64,
    pub turn: (usize, u64),
    pages: Vec<Arc<[u8]>>,
}

impl Checkpoint<'_> {
    /// The content of global memory.
    pub fn memory(&self) -> Vec<u8> {
        self.pages.iter().flat_map(|page| page.iter().copied()).collect()
    }
}

/// Checkpoints in the order of their times. The first one is the start of the run and always there.
pub(super) struct Checkpoints<'a> {
    list: Vec<Checkpoint<'a>>,
    /// Bytes that all take.
    bytes: usize,
    /// Bytes that all may take; the first one and the last one are kept even then.
    pub limit: usize,
}

impl<'a> Checkpoints<'a> {
    pub fn new(limit: usize) -> Checkpoints<'a> {
        Checkpoints { list: Vec::new(), bytes: 0, limit }
    }

    /// The last one at a time or before it.
    pub fn before(&self, time: u64) -> &Checkpoint<'a> {
        &self.list[self.list.partition_point(|c| c.time <= time).saturating_sub(1)]
    }

    /// Adds the state at a time, unless there is one.
    pub fn insert(&mut self, time: u64, group: Group<'a>, index: u64, turn: (usize, u64), memory: &[u8]) {
        let at = self.list.partition_point(|c| c.time < time);
        if self.list.get(at).is_some_and(|c| c.time == time) {
            return;
        }
        let neighbour = at.checked_sub(1).map(|before| &self.list[before].pages);
        let mut new = group.bytes();
        let pages = memory.chunks(PAGE).enumerate().map(|(k, page)| {
            match neighbour.and_then(|pages| pages.get(k)).filter(|known| known[..] == *page) {
                Some(known) => known.clone(),
                None => {
                    new += page.len();
                    page.into()
                }
            }
        });
        let pages = pages.collect();
        self.bytes += new;
        self.list.insert(at, Checkpoint { time, group, index, turn, pages });
        while self.bytes > self.limit && self.list.len() > 2 {
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
