//! Zeroed bytes straight from the allocator: a large space costs nothing until it is touched, and a failed
//! allocation is an error, not an abort.

use std::alloc::{Layout, alloc_zeroed, dealloc};

/// An aligned block of zeroed bytes.
pub struct Owned {
    /// The first aligned byte of the allocation.
    ptr: *mut u8,
    allocation: Option<(*mut u8, Layout)>,
    len: u64,
}

/// Guest alignment is preserved in the host up to this value.
const ALIGN: usize = 4096;

impl Owned {
    /// Allocates `len` zeroed bytes; `None` if the host cannot provide them.
    pub fn zeroed(len: u64) -> Option<Owned> {
        if len == 0 {
            return Some(Owned { ptr: std::ptr::without_provenance_mut(ALIGN), allocation: None, len });
        }
        // Aligned by hand: for a larger alignment the allocator would zero every page, though new pages are
        // zero already.
        let layout = Layout::from_size_align(usize::try_from(len).ok()?.checked_add(ALIGN)?, 1).ok()?;
        // SAFETY: the layout's size is not zero.
        let start = unsafe { alloc_zeroed(layout) };
        if start.is_null() {
            return None;
        }
        // SAFETY: the offset is at most ALIGN - 1, and the allocation has ALIGN bytes more than `len`.
        let ptr = unsafe { start.add(start.align_offset(ALIGN)) };
        Some(Owned { ptr, allocation: Some((start, layout)), len })
    }

    /// The first byte, at an address that is a multiple of 4096.
    pub fn as_ptr(&self) -> *mut u8 {
        self.ptr
    }

    /// Number of accessible bytes.
    pub fn len(&self) -> u64 {
        self.len
    }
}

impl Drop for Owned {
    fn drop(&mut self) {
        if let Some((start, layout)) = self.allocation {
            // SAFETY: `zeroed` allocated `start` with this layout.
            unsafe { dealloc(start, layout) };
        }
    }
}
