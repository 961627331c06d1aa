//! The ranges of global memory that compiled code accessed last, with their host addresses.

use crate::frame::{Frame, called};
use std::mem::{MaybeUninit, offset_of};
use wavesim_machine::memory::HostRange;

/// The number of cached ranges for vector loads, and for vector stores. Which one an access uses is fixed at
/// compile time.
pub const RANGES: usize = 8;

/// The number of cached ranges for scalar loads.
pub const SCALAR_RANGES: usize = 4;
/// The index of the first of them.
pub const FIRST_SCALAR_RANGE: usize = 2 * RANGES;
/// The number of all cached ranges.
const COUNT: usize = FIRST_SCALAR_RANGE + SCALAR_RANGES;

/// Cached ranges of global memory: those for vector loads, then those for vector stores, then those for
/// scalar loads.
#[repr(C)]
pub struct RangeCache {
    /// Sizes in bytes; 0 for an empty entry.
    len: [u64; COUNT],
    /// Guest addresses. A lookup compares them even if the entry is empty.
    base: [u64; COUNT],
    /// Host addresses of valid entries. Since every entry to compiled code creates a cache, they are not
    /// initialised then.
    host: [MaybeUninit<*mut u8>; COUNT],
}

impl RangeCache {
    /// Returns an empty cache.
    #[inline(always)]
    pub fn empty() -> RangeCache {
        RangeCache { len: [0; COUNT], base: [0; COUNT], host: [const { MaybeUninit::uninit() }; COUNT] }
    }

    /// Returns an entry that is not empty: guest address, size, host address.
    pub fn entry(&self, entry: usize) -> Option<(u64, u64, *mut u8)> {
        let (base, len) = (self.base[entry], self.len[entry]);
        // SAFETY: `find_range` writes host addresses together with sizes.
        (len > 0).then(|| (base, len, unsafe { self.host[entry].assume_init() }))
    }

    /// Returns the offset of an entry's size.
    pub const fn len_at(entry: usize) -> usize {
        offset_of!(RangeCache, len) + 8 * entry
    }

    /// Returns the offset of an entry's guest address.
    pub const fn base_at(entry: usize) -> usize {
        offset_of!(RangeCache, base) + 8 * entry
    }

    /// Returns the offset of an entry's host address.
    pub const fn host_at(entry: usize) -> usize {
        offset_of!(RangeCache, host) + 8 * entry
    }
}

/// The index of [`find_range`]'s result in [`Frame::lane_buffer`], after its arguments.
pub const FOUND_SLOT: usize = 3;

called! {
    /// Finds the range that contains some bytes, and caches it in an entry of [`Frame::ranges`]; for the
    /// entries of stores, it must be writable. [`Frame::lane_buffer`] has the address, the entry's index and
    /// the number of bytes; the result is 0 if there is no such range.
    ///
    /// # Safety
    /// Must be called by compiled code with its frame, and with the index of an entry.
    pub unsafe fn find_range(frame: *mut Frame) -> () {
        // SAFETY: the contract guarantees a valid frame, whose buffer has the arguments.
        let [address, entry, bytes] = unsafe { (&raw const (*frame).lane_buffer).cast::<[u64; 3]>().read() };
        // SAFETY: the contract guarantees a valid frame; no other reference to the context exists during the
        // call.
        let cx = unsafe { Frame::cx(frame) };
        let entry = entry as usize;
        let found = cx.memory.range_of(address).filter(|range| {
            range.host_of(address, bytes, (RANGES..FIRST_SCALAR_RANGE).contains(&entry)).is_some()
        });
        // SAFETY: the contract guarantees that the index is valid; the buffer is longer than the arguments
        // and the result.
        unsafe {
            if let Some(HostRange { base, len, host, .. }) = &found {
                (*frame).ranges.len[entry] = *len;
                (*frame).ranges.base[entry] = *base;
                (*frame).ranges.host[entry].write(*host);
            }
            (&raw mut (*frame).lane_buffer).cast::<u64>().add(FOUND_SLOT).write(found.is_some() as u64);
        }
    }
}
