//! Zeroed bytes of our own, straight from the allocator: large spaces cost nothing until touched, and a size that the host does
//! not have is an answer, not an abort.

use std::alloc::{Layout, alloc_zeroed, dealloc};

/// An aligned block of zeroed bytes.
pub struct Owned {
    ptr: *mut u8,
    layout: Option<Layout>,
    len: u64,
}

/// Buffers aligned in the guest are aligned in the host up to this.
const ALIGN: usize = 4096;

impl Owned {
    /// `None` if the host has no such memory.
    pub fn zeroed(len: u64) -> Option<Owned> {
        if len == 0 {
            return Some(Owned { ptr: std::ptr::without_provenance_mut(ALIGN), layout: None, len });
        }
        let layout = Layout::from_size_align(usize::try_from(len).ok()?, ALIGN).ok()?;
        // SAFETY: the size is not zero.
        let ptr = unsafe { alloc_zeroed(layout) };
        (!ptr.is_null()).then_some(Owned { ptr, layout: Some(layout), len })
    }

    pub fn as_ptr(&self) -> *mut u8 {
        self.ptr
    }

    pub fn len(&self) -> u64 {
        self.len
    }
}

impl Drop for Owned {
    fn drop(&mut self) {
        if let Some(layout) = self.layout {
            // SAFETY: allocated by `zeroed` with this layout.
            unsafe { dealloc(self.ptr, layout) };
        }
    }
}
