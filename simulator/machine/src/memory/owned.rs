//! Zeroed bytes of our own, straight from the allocator: large spaces cost nothing until touched, and a size that the host does
//! not have is an answer, not an abort.

use std::alloc::{Layout, alloc_zeroed, dealloc};

/// An aligned block of zeroed bytes.
pub struct Owned {
    /// The first aligned byte of the allocation.
    ptr: *mut u8,
    allocation: Option<(*mut u8, Layout)>,
    len: u64,
}

/// Buffers aligned in the guest are aligned in the host up to this.
const ALIGN: usize = 4096;

impl Owned {
    /// `None` if the host has no such memory.
    pub fn zeroed(len: u64) -> Option<Owned> {
        if len == 0 {
            return Some(Owned { ptr: std::ptr::without_provenance_mut(ALIGN), allocation: None, len });
        }
        // Aligned by hand: the allocator clears what it aligns by touching every page, and new pages are zero already.
        let layout = Layout::from_size_align(usize::try_from(len).ok()?.checked_add(ALIGN)?, 1).ok()?;
        // SAFETY: the size is not zero.
        let start = unsafe { alloc_zeroed(layout) };
        if start.is_null() {
            return None;
        }
        // SAFETY: at most ALIGN - 1 bytes on, and there are ALIGN more than `len`.
        let ptr = unsafe { start.add(start.align_offset(ALIGN)) };
        Some(Owned { ptr, allocation: Some((start, layout)), len })
    }

    /// The first byte, at a multiple of 4096.
    pub fn as_ptr(&self) -> *mut u8 {
        self.ptr
    }

    /// Bytes that may be accessed.
    pub fn len(&self) -> u64 {
        self.len
    }
}

impl Drop for Owned {
    fn drop(&mut self) {
        if let Some((start, layout)) = self.allocation {
            // SAFETY: allocated by `zeroed` with this layout.
            unsafe { dealloc(start, layout) };
        }
    }
}
