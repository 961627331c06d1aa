//! Memory that kernels allocate while they run: device `malloc`. A kernel can access the whole heap, as what it can access is fixed
//! when it starts. The device libraries (`ockl`) divide small blocks themselves, out of slabs of 2 MiB; their records are at the
//! heap's beginning, and are zero at first. Kernels access them without asking, so that there are records even where the host has no
//! memory for blocks.

use crate::Error;
use crate::memory::{Allocation, HostMemory};
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

/// Bytes of the heap. The host gives pages when they are touched.
pub const HEAP_BYTES: u64 = 1 << 30;
/// Size and alignment of a slab: pointers into it lead to its beginning.
const SLAB_BYTES: u64 = 2 << 20;
/// Bytes for the records: a slab, wherever the heap begins.
const RECORDS_BYTES: u64 = 2 * SLAB_BYTES;
/// Sizes and alignments of other blocks. A pointer that is aligned so is a block of the host's.
const BLOCK_BYTES: u64 = 4096;

/// The heap of a device.
pub struct Heap {
    memory: Allocation,
    /// Address of the device libraries' records.
    records: u64,
    blocks: Mutex<Blocks>,
}

/// Sizes of blocks by their addresses.
#[derive(Default)]
struct Blocks {
    free: BTreeMap<u64, u64>,
    used: BTreeMap<u64, u64>,
}

impl Heap {
    /// An empty heap. If the host has no room for it, one without blocks: device `malloc` gives null.
    pub fn new() -> Result<Heap, Error> {
        Heap::with_blocks_or_none(HEAP_BYTES - RECORDS_BYTES)
    }

    fn with_blocks_or_none(bytes: u64) -> Result<Heap, Error> {
        Heap::with_blocks(bytes).or_else(|_| Heap::with_blocks(0))
    }

    /// An empty heap with so many bytes for blocks.
    fn with_blocks(bytes: u64) -> Result<Heap, Error> {
        let memory = Allocation::new(RECORDS_BYTES + bytes, "device heap")?;
        let records = memory.address().next_multiple_of(SLAB_BYTES);
        let free = (bytes != 0).then_some((records + SLAB_BYTES, bytes));
        let blocks = Blocks { free: free.into_iter().collect(), used: BTreeMap::new() };
        Ok(Heap { memory, records, blocks: Mutex::new(blocks) })
    }

    /// All of it.
    pub fn range(&self) -> HostMemory {
        self.memory.range()
    }

    /// `hidden_heap_v1`.
    pub fn records(&self) -> u64 {
        self.records
    }

    /// What the device libraries ask for: with an address, to free its block; without, for a block. Its address, or 0.
    pub fn request(&self, address: u64, len: u64) -> u64 {
        let mut blocks = self.blocks.lock().unwrap_or_else(PoisonError::into_inner);
        match address {
            0 => blocks.take(len),
            _ => {
                blocks.give_back(address);
                0
            }
        }
    }
}

impl Blocks {
    /// A block of the first free part that is large enough.
    fn take(&mut self, len: u64) -> u64 {
        let Some(len) = len.max(1).checked_next_multiple_of(BLOCK_BYTES) else { return 0 };
        let alignment = if len.is_multiple_of(SLAB_BYTES) { SLAB_BYTES } else { BLOCK_BYTES };
        let fit = self.free.iter().find_map(|(&start, &size)| {
            let at = start.next_multiple_of(alignment);
            (at - start <= size && size - (at - start) >= len).then_some((start, size, at))
        });
        let Some((start, size, at)) = fit else { return 0 };
        self.free.remove(&start);
        if at != start {
            self.free.insert(start, at - start);
        }
        if start + size != at + len {
            self.free.insert(at + len, start + size - at - len);
        }
        self.used.insert(at, len);
        at
    }

    /// Joins a block with free neighbours. What is none is ignored: kernels may free anything.
    fn give_back(&mut self, mut at: u64) {
        let Some(mut len) = self.used.remove(&at) else { return };
        if let Some((&before, &size)) = self.free.range(..at).next_back()
            && before + size == at
        {
            self.free.remove(&before);
            (at, len) = (before, size + len);
        }
        if let Some(size) = self.free.remove(&(at + len)) {
            len += size;
        }
        self.free.insert(at, len);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_aligned_and_joined_again() {
        let heap = Heap::new().unwrap();
        let (small, slab, large) =
            (heap.request(0, 5000), heap.request(0, SLAB_BYTES), heap.request(0, 10_000));
        assert!(small.is_multiple_of(BLOCK_BYTES) && slab.is_multiple_of(SLAB_BYTES));
        // Between the first and the slab there is room.
        assert!(small >= heap.records() + SLAB_BYTES && large == small + 8192 && slab > large);
        for block in [slab, small, large, large, 17] {
            assert_eq!(heap.request(block, 0), 0);
        }
        let all = HEAP_BYTES - RECORDS_BYTES;
        assert_eq!(heap.request(0, all), heap.records() + SLAB_BYTES);
        assert_eq!((heap.request(0, 1), heap.request(0, u64::MAX)), (0, 0));
    }
    #[test]
    fn a_heap_without_blocks_has_records() {
        // More than any process has.
        let heap = Heap::with_blocks_or_none(1 << 60).unwrap();
        assert_eq!((heap.request(0, 1), heap.request(0, SLAB_BYTES)), (0, 0));
        let memory = crate::memory::memory(&[heap.range()], crate::memory::Bounds::Exact).unwrap();
        for at in [0, SLAB_BYTES - 8] {
            assert_eq!(memory.load::<8>(heap.records() + at), Ok([0; 8]));
        }
    }
}
