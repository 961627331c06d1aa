//! The test binary's allocator: the system's, counting for each thread what it asks for and what it holds.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

struct Counting;

thread_local! {
    /// Blocks that this thread has asked for.
    pub static BLOCKS: Cell<u64> = const { Cell::new(0) };
    /// Bytes that this thread holds, and the most that it held since somebody set this.
    pub static HELD: Cell<usize> = const { Cell::new(0) };
    pub static MOST: Cell<usize> = const { Cell::new(0) };
}

fn count(more: usize, less: usize) {
    // A thread that ends has no counters any more.
    let _ = HELD.try_with(|held| {
        // What another thread took may be given back here.
        held.set((held.get() + more).saturating_sub(less));
        let _ = MOST.try_with(|most| most.set(most.get().max(held.get())));
    });
    if more > 0 {
        let _ = BLOCKS.try_with(|blocks| blocks.set(blocks.get() + 1));
    }
}

// SAFETY: the system's allocator does the work.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size(), 0);
        // SAFETY: as ours.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout.size(), 0);
        // SAFETY: as ours.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        count(0, layout.size());
        // SAFETY: as ours.
        unsafe { System.dealloc(at, layout) }
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(size, layout.size());
        // SAFETY: as ours.
        unsafe { System.realloc(at, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;
