//! Address ranges backed by host memory, listed or found on first access.

use std::sync::OnceLock;

/// Finds ranges of an address space that are not listed, such as that of the process.
pub trait Finder: Send + Sync {
    /// Returns the range that contains an address. The same address always yields the same range.
    fn find(&self, address: u64) -> Option<HostRange>;
}

/// An address range backed by host memory.
#[derive(Debug, Clone, Copy)]
pub struct HostRange {
    pub base: u64,
    pub len: u64,
    pub host: *mut u8,
    pub writable: bool,
}

/// Ranges found so far, up to [`MAX_FOUND`]; further ones are looked up at each access.
pub(super) struct FoundRanges {
    pub(super) finder: Box<dyn Finder>,
    pub(super) ranges: [OnceLock<HostRange>; MAX_FOUND],
}

/// Enough for most kernels, which access few ranges: code, arguments, and those that contain their buffers.
pub(super) const MAX_FOUND: usize = 16;

impl HostRange {
    /// An empty range.
    pub const EMPTY: HostRange = HostRange { base: 0, len: 0, host: std::ptr::null_mut(), writable: false };

    /// Returns the host address of `len` bytes if all of them are in the range.
    #[inline(always)]
    pub fn host_of(&self, address: u64, len: u64, write: bool) -> Option<*mut u8> {
        let offset = address.wrapping_sub(self.base);
        if offset < self.len && len <= self.len - offset && (self.writable || !write) {
            return Some(self.host.wrapping_add(offset as usize));
        }
        None
    }

    /// Returns whether the range contains an address.
    #[inline(always)]
    pub fn contains(&self, address: u64) -> bool {
        address.wrapping_sub(self.base) < self.len
    }
}

impl FoundRanges {
    pub(super) fn range_of(&self, address: u64) -> Option<HostRange> {
        for known in &self.ranges {
            let range = match known.get() {
                Some(range) => range,
                None => {
                    let found = self.find(address)?;
                    // Another thread may have stored another range in this slot.
                    let here = known.get_or_init(|| found);
                    if here.base != found.base {
                        return Some(found);
                    }
                    here
                }
            };
            if range.contains(address) {
                return Some(*range);
            }
        }
        self.find(address)
    }

    fn find(&self, address: u64) -> Option<HostRange> {
        self.finder.find(address).filter(|range| range.contains(address))
    }
}

// SAFETY: the pointers refer to memory that outlives the `Memory`: owned memory does, and the caller of
// `map_host` guarantees it for the rest. Any thread may access it.
unsafe impl Send for HostRange {}
// SAFETY: as above.
unsafe impl Sync for HostRange {}
