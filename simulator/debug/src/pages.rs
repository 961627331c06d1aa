//! Global memory in pages: tracks the pages that differ from the checkpoint taken or restored last.
//!
//! Taking or restoring a checkpoint copies only the pages that stores have changed since. The accesses of
//! each observed instruction identify these pages. Memory of the host is only part of checkpoints if the host
//! has passed its ranges.

use std::ops::Range;
use std::sync::{Arc, Weak};
use wavesim_machine::exec::watch::{Access, Place};
use wavesim_machine::memory::{Memory, OWNED_BASE};

/// Page size in bytes.
pub(super) const PAGE: usize = 1 << 16;

/// A page of a checkpoint; checkpoints share identical pages.
pub(super) type Page = Arc<[u8]>;

/// Dirty-page state of global memory relative to a checkpoint.
#[derive(Default)]
pub(super) struct Pages {
    /// Addresses of memory of the host that checkpoints contain.
    host: Vec<Range<u64>>,
    /// The addresses of the pages, sorted; a page is inside one range of memory.
    places: Vec<Range<u64>>,
    /// Pages of the checkpoint. The references are weak, as the checkpoint may have been dropped since.
    base: Vec<Weak<[u8]>>,
    /// By page: whether it may have changed since.
    dirty: Vec<bool>,
    count: usize,
}

impl Pages {
    /// Creates the state for memory, some of which belongs to the host.
    pub fn new(host: Vec<Range<u64>>) -> Pages {
        Pages { host, ..Pages::default() }
    }

    /// Marks the pages that accesses have changed.
    #[inline]
    pub fn mark(&mut self, accesses: &[Access]) {
        for a in accesses.iter().filter(|a| a.write && a.place == Place::Global && !a.outside) {
            self.mark_bytes(a.address, a.len_bytes());
        }
    }

    /// Marks the pages of some bytes.
    #[inline]
    pub fn mark_bytes(&mut self, address: u64, len: u64) {
        let end = address.saturating_add(len.max(1));
        let first = self.places.partition_point(|place| place.end <= address);
        let places = self.places[first..].iter();
        for (_, dirty) in places.zip(&mut self.dirty[first..]).take_while(|(place, _)| place.start < end) {
            self.count += !*dirty as usize;
            *dirty = true;
        }
    }

    /// Returns the number of bytes that the next checkpoint copies.
    pub fn dirty_bytes(&self) -> u64 {
        (self.count * PAGE) as u64
    }

    /// Returns the current pages for a checkpoint. Unchanged pages are shared with the last checkpoint.
    pub fn take(&mut self, memory: &Memory) -> Vec<Page> {
        if self.places.is_empty() {
            let own = OWNED_BASE..OWNED_BASE + memory.snapshot().len() as u64;
            let mut all: Vec<Range<u64>> = self.host.iter().cloned().chain([own]).collect();
            all.sort_by_key(|range| range.start);
            let split = |range: Range<u64>| {
                let end = range.end;
                let starts = (range.start..end).step_by(PAGE);
                starts.map(move |start| start..end.min(start + PAGE as u64))
            };
            self.places = all.into_iter().flat_map(split).collect();
            self.base = self.places.iter().map(|_| Weak::<[u8; 0]>::new() as Weak<[u8]>).collect();
            self.dirty = vec![true; self.places.len()];
        }
        let mut buffer = vec![0; PAGE];
        let mut page = |k: usize| {
            let known = self.base[k].upgrade();
            if let Some(known) = known.as_ref().filter(|_| !self.dirty[k]) {
                return known.clone();
            }
            let place = &self.places[k];
            let now = &mut buffer[..(place.end - place.start) as usize];
            let read = memory.read(place.start, now);
            debug_assert!(read.is_ok(), "a page is inside one range");
            known.filter(|known| known[..] == *now).unwrap_or_else(|| Page::from(&*now))
        };
        let pages: Vec<Page> = (0..self.base.len()).map(&mut page).collect();
        self.set_base(&pages);
        pages
    }

    /// Restores the pages of a checkpoint.
    pub fn restore(&mut self, pages: &[Page], memory: &Memory) {
        for (k, page) in pages.iter().enumerate() {
            let same =
                self.base.get(k).is_some_and(|base| std::ptr::addr_eq(base.as_ptr(), Arc::as_ptr(page)));
            if !same || self.dirty[k] {
                let written = memory.write(self.places[k].start, page);
                debug_assert!(written.is_ok(), "a checkpoint is of this memory");
            }
        }
        self.set_base(pages);
    }

    fn set_base(&mut self, pages: &[Page]) {
        self.base.clear();
        self.base.extend(pages.iter().map(Arc::downgrade));
        self.dirty.clear();
        self.dirty.resize(pages.len(), false);
        self.count = 0;
    }
}
