//! Ranges of addresses that have host memory, listed or found when they are accessed.

use std::sync::OnceLock;

/// Finds the ranges of an address space that nobody has listed, such as that of the process.
pub trait Finder: Send + Sync {
    /// The range that an address is in. The same address always gives the same range.
    fn find(&self, address: u64) -> Option<HostRange>;
}

/// Host memory at an address.
#[derive(Debug, Clone, Copy)]
pub struct HostRange {
    pub base: u64,
    pub len: u64,
    pub host: *mut u8,
    pub writable: bool,
}

/// Ranges that were found, up to [`FOUND`] of them; further ones are looked up at each access.
pub(super) struct Found {
    pub(super) finder: Box<dyn Finder>,
    pub(super) ranges: [OnceLock<HostRange>; FOUND],
}

/// Kernels use few ranges: code, arguments, and those that their buffers are in.
pub(super) const FOUND: usize = 16;

impl HostRange {
    /// No memory.
    pub const EMPTY: HostRange = HostRange { base: 0, len: 0, host: std::ptr::null_mut(), writable: false };

    /// Host address of `len` bytes that are all in it.
    #[inline(always)]
    pub fn host_of(&self, address: u64, len: u64, write: bool) -> Option<*mut u8> {
        let offset = address.wrapping_sub(self.base);
        if offset < self.len && len <= self.len - offset && (self.writable || !write) {
            return Some(self.host.wrapping_add(offset as usize));
        }
        None
    }

    /// Whether an address is in it.
    #[inline(always)]
    pub fn contains(&self, address: u64) -> bool {
        address.wrapping_sub(self.base) < self.len
    }
}

impl Found {
    pub(super) fn range_of(&self, address: u64) -> Option<HostRange> {
        for known in &self.ranges {
            let range = match known.get() {
                Some(range) => range,
                None => {
                    let found = self.find(address)?;
                    // Another thread may have put another range here.
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

// SAFETY: the pointers are to memory that outlives the `Memory` (owned, or promised by `map_host`'s caller), and any thread may use them.
unsafe impl Send for HostRange {}
// SAFETY: as above.
unsafe impl Sync for HostRange {}
