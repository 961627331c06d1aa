//! Global memory in pages: tracks the pages that differ from the checkpoint taken or restored last.
//!
//! Taking or restoring a checkpoint copies only the pages that stores have changed since. The accesses of
//! each observed instruction identify these pages.

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
    /// Pages of the checkpoint. The references are weak, as the checkpoint may have been dropped since.
    base: Vec<Weak<[u8]>>,
    /// By page: whether it may have changed since.
    dirty: Vec<bool>,
    count: usize,
    /// Size of memory in bytes.
    len: usize,
}

impl Pages {
    /// Marks the pages that accesses have changed.
    #[inline]
    pub fn mark(&mut self, accesses: &[Access]) {
        for a in accesses.iter().filter(|a| a.write && a.place == Place::Global && !a.outside) {
            self.mark_bytes(a.address, a.len_bytes());
        }
    }

    /// Marks the pages of some bytes. Host memory is not part of checkpoints.
    #[inline]
    pub fn mark_bytes(&mut self, address: u64, len: u64) {
        let Some(start) = address.checked_sub(OWNED_BASE) else { return };
        let last = (start + len.max(1) - 1) / PAGE as u64;
        for page in start / PAGE as u64..=last {
            if let Some(dirty) = self.dirty.get_mut(page as usize) {
                self.count += !*dirty as usize;
                *dirty = true;
            }
        }
    }

    /// Returns the number of bytes that the next checkpoint copies.
    pub fn dirty_bytes(&self) -> u64 {
        (self.count * PAGE) as u64
    }

    /// Returns the current pages for a checkpoint. Unchanged pages are shared with the last checkpoint.
    pub fn take(&mut self, memory: &Memory) -> Vec<Page> {
        if self.base.is_empty() {
            let all = memory.snapshot();
            self.len = all.len();
            let pages: Vec<Page> = all.chunks(PAGE).map(Page::from).collect();
            self.set_base(&pages);
            return pages;
        }
        let mut buffer = vec![0; PAGE];
        let mut page = |k: usize| {
            let known = self.base[k].upgrade();
            if let Some(known) = known.as_ref().filter(|_| !self.dirty[k]) {
                return known.clone();
            }
            let now = &mut buffer[..PAGE.min(self.len - k * PAGE)];
            let read = memory.read(OWNED_BASE + (k * PAGE) as u64, now);
            debug_assert!(read.is_ok(), "all of it is one range");
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
                let written = memory.write(OWNED_BASE + (k * PAGE) as u64, page);
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
