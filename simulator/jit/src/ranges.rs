//! The ranges of global memory that compiled code accessed last, with their host addresses.

use std::mem::{MaybeUninit, offset_of};

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
        // SAFETY: `set` writes host addresses together with sizes.
        (len > 0).then(|| (base, len, unsafe { self.host[entry].assume_init() }))
    }

    /// Caches a range in an entry.
    pub fn set(&mut self, entry: usize, base: u64, len: u64, host: *mut u8) {
        (self.len[entry], self.base[entry]) = (len, base);
        self.host[entry].write(host);
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
