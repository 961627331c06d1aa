//! The allocator of the test binary: the system allocator with per-thread counters of allocations and live
//! bytes.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

struct CountingAllocator;

thread_local! {
    /// Number of allocations by this thread.
    pub static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
    /// Bytes currently allocated by this thread.
    pub static LIVE_BYTES: Cell<usize> = const { Cell::new(0) };
    /// Maximum of `LIVE_BYTES` since this counter was last set.
    pub static PEAK_BYTES: Cell<usize> = const { Cell::new(0) };
}

fn count(more: usize, less: usize) {
    // The counters are unavailable while the thread exits.
    let _ = LIVE_BYTES.try_with(|live| {
        // Saturates, because this thread may free memory of other threads.
        live.set((live.get() + more).saturating_sub(less));
        let _ = PEAK_BYTES.try_with(|peak| peak.set(peak.get().max(live.get())));
    });
    if more > 0 {
        let _ = ALLOCATIONS.try_with(|count| count.set(count.get() + 1));
    }
}

// SAFETY: all methods forward to the system allocator.
unsafe impl GlobalAlloc for CountingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size(), 0);
        // SAFETY: the caller meets the same requirements.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout.size(), 0);
        // SAFETY: the caller meets the same requirements.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        count(0, layout.size());
        // SAFETY: the caller meets the same requirements.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(size, layout.size());
        // SAFETY: the caller meets the same requirements.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;
