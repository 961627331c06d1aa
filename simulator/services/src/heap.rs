//! The device heap, for `malloc` in kernels. A kernel can access the whole heap, because the set of
//! accessible ranges is fixed when the kernel starts. The device libraries (`ockl`) carve small blocks out of
//! 2 MiB slabs themselves. Their bookkeeping records are at the start of the heap and initially zero. Kernels
//! access the records without a request to the host, so the records exist even if the host has no memory for
//! blocks.

use crate::lock;
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard};

/// Size and alignment of a slab. The alignment lets the device libraries compute a slab's start from a
/// pointer into it.
const SLAB_BYTES: u64 = 2 << 20;
/// Bytes reserved for the records: enough for one aligned slab at any start address.
pub const RECORDS_BYTES: u64 = 2 * SLAB_BYTES;
/// Size granularity and alignment of other blocks. The device libraries treat a pointer with this alignment
/// as a block allocated by the host.
const BLOCK_BYTES: u64 = 4096;

/// The heap of a device.
#[derive(Debug)]
pub struct Heap {
    /// Address of the device libraries' records.
    records: u64,
    blocks: Mutex<Blocks>,
}

/// Sizes of blocks, by address.
#[derive(Debug, Default)]
struct Blocks {
    free: BTreeMap<u64, u64>,
    used: BTreeMap<u64, u64>,
    /// Number of changes of `used`.
    version: u64,
}

impl Heap {
    /// Creates an empty heap in `len` bytes of zeroed memory at `address`: [`RECORDS_BYTES`], and the blocks. Without
    /// blocks, `malloc` on the device returns null.
    pub fn new(address: u64, len: u64) -> Heap {
        let records = address.next_multiple_of(SLAB_BYTES);
        let bytes = len.saturating_sub(RECORDS_BYTES);
        let free = (bytes != 0).then_some((records + SLAB_BYTES, bytes));
        let blocks = Blocks { free: free.into_iter().collect(), ..Blocks::default() };
        Heap { records, blocks: Mutex::new(blocks) }
    }

    /// Returns the addresses and sizes of the blocks that kernels have allocated and not freed.
    pub fn used(&self) -> Vec<(u64, u64)> {
        self.blocks().used.iter().map(|(address, len)| (*address, *len)).collect()
    }

    /// Returns a number that changes with the result of [`Heap::used`].
    pub fn version(&self) -> u64 {
        self.blocks().version
    }

    fn blocks(&self) -> MutexGuard<'_, Blocks> {
        lock(&self.blocks)
    }

    /// Returns the address of the records: the hidden argument `hidden_heap_v1`.
    pub fn records(&self) -> u64 {
        self.records
    }

    /// Serves a request of the device libraries. A nonzero address frees its block and returns 0; address 0
    /// allocates a block of `len` bytes and returns its address, or 0 on failure.
    pub fn request(&self, address: u64, len: u64) -> u64 {
        let mut blocks = self.blocks();
        match address {
            0 => blocks.allocate(len),
            _ => {
                blocks.free(address);
                0
            }
        }
    }
}

impl Blocks {
    /// Allocates a block first-fit. Returns its address, or 0 if no free block is large enough.
    fn allocate(&mut self, len: u64) -> u64 {
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
        self.version += 1;
        at
    }

    /// Frees a block and merges it with adjacent free blocks. Addresses that are not blocks are ignored,
    /// since kernels can free anything.
    fn free(&mut self, mut address: u64) {
        let Some(mut len) = self.used.remove(&address) else { return };
        self.version += 1;
        if let Some((&before, &size)) = self.free.range(..address).next_back()
            && before + size == address
        {
            self.free.remove(&before);
            (address, len) = (before, size + len);
        }
        if let Some(size) = self.free.remove(&(address + len)) {
            len += size;
        }
        self.free.insert(address, len);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_aligned_and_merged() {
        let all = 64 << 20;
        let heap = Heap::new(0x12_3000, RECORDS_BYTES + all);
        let (small, slab, large) =
            (heap.request(0, 5000), heap.request(0, SLAB_BYTES), heap.request(0, 10_000));
        assert!(small.is_multiple_of(BLOCK_BYTES) && slab.is_multiple_of(SLAB_BYTES));
        // The alignment gap before the slab is used.
        assert!(small >= heap.records() + SLAB_BYTES && large == small + 8192 && slab > large);
        assert_eq!(heap.used(), [(small, 8192), (large, 12_288), (slab, SLAB_BYTES)]);
        for block in [slab, small, large, large, 17] {
            assert_eq!(heap.request(block, 0), 0);
        }
        assert_eq!(heap.request(0, all), heap.records() + SLAB_BYTES);
        assert_eq!((heap.request(0, 1), heap.request(0, u64::MAX)), (0, 0));
    }

    #[test]
    fn a_heap_without_blocks_has_records() {
        let heap = Heap::new(4096, RECORDS_BYTES);
        assert_eq!((heap.request(0, 1), heap.request(0, SLAB_BYTES)), (0, 0));
        assert!(heap.records() >= 4096 && heap.records() + SLAB_BYTES <= 4096 + RECORDS_BYTES);
    }
}
