//! Memory that kernels can access: allocations of a device, and memory of the embedding program.
//!
//! A kernel can access exactly what it was given ([`Bounds::Exact`]). Compilers may widen a load of 12 bytes to 16, as
//! GPUs map whole pages: [`Bounds::Pages`] permits it. [`Bounds::Trust`] permits every address of the process; a wrong
//! pointer is then a crash, as in native code.

use crate::Error;
use memmap2::{MmapMut, MmapRaw};
use std::any::Any;
use std::fmt;
use std::sync::Arc;
use wavesim::memory::{MapError, Memory};

/// Bytes between allocations, so that an access beyond the end of one is not in the next.
const GUARD_BYTES: usize = 4096;
/// Allocations from this size on are in the host's huge pages.
#[cfg(target_os = "linux")]
const HUGE_BYTES: usize = 4 << 20;
/// Bytes of a page, to which [`Bounds::Pages`] rounds.
const PAGE_BYTES: u64 = 4096;
/// Behind the last address of a process on 64-bit hosts (x86-64 and AArch64 with 48-bit addresses).
const PROCESS_END: u64 = 1 << 47;

/// What a kernel can access.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Bounds {
    /// The bytes of allocations and of mapped memory.
    #[default]
    Exact,
    /// The pages that they are in.
    Pages,
    /// All of the process's memory.
    Trust,
}

/// Host memory that kernels can access.
#[derive(Debug, Clone)]
pub struct HostMemory {
    /// Address for kernels.
    address: u64,
    host: *mut u8,
    len: u64,
    writable: bool,
    /// For messages and checks of bounds; empty: it has none.
    name: Arc<str>,
    /// Keeps the memory valid.
    _owner: Option<Owner>,
}

/// What keeps memory of the embedding program valid for as long as it exists.
pub type Owner = Arc<dyn Any + Send + Sync>;

// SAFETY: `HostMemory::new` requires that all threads may use the memory.
unsafe impl Send for HostMemory {}
// SAFETY: as above.
unsafe impl Sync for HostMemory {}

impl HostMemory {
    /// `len` bytes at `host`, which kernels access at `address`.
    ///
    /// # Safety
    /// That of [`Memory::map_host`], for as long as this value, a device that it is mapped on, or a launch that began while it
    /// was mapped exists; or for as long as its owner does ([`HostMemory::owned_by`]).
    pub unsafe fn new(address: u64, host: *mut u8, len: u64, writable: bool, name: &str) -> HostMemory {
        HostMemory { address, host, len, writable, name: name.into(), _owner: None }
    }

    /// The same memory, which this keeps valid: devices and launches that can access the memory keep it.
    pub fn owned_by(self, owner: Owner) -> HostMemory {
        HostMemory { _owner: Some(owner), ..self }
    }

    /// First address for kernels.
    pub fn address(&self) -> u64 {
        self.address
    }

    /// Size in bytes.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether it has no bytes.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Whether kernels can write to it.
    pub fn is_writable(&self) -> bool {
        self.writable
    }

    /// The name in messages.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The last byte.
    fn last(&self) -> u64 {
        self.address.saturating_add(self.len.saturating_sub(1))
    }

    /// Whether two ranges share a byte.
    pub(crate) fn overlaps(&self, other: &HostMemory) -> bool {
        self.len != 0 && other.len != 0 && self.address <= other.last() && other.address <= self.last()
    }

    /// The pages that it is in, if kernels use the host's addresses.
    fn pages(&self) -> HostMemory {
        if self.address != self.host.addr() as u64 || self.len == 0 {
            return self.clone();
        }
        let before = self.address % PAGE_BYTES;
        let end = self.address.saturating_add(self.len).checked_next_multiple_of(PAGE_BYTES);
        let address = self.address - before;
        let len = end.map_or(self.len + before, |end| end - address);
        HostMemory { address, host: self.host.wrapping_sub(before as usize), len, ..self.clone() }
    }
}

/// An allocation of a device, zeroed, at a page of its own.
#[derive(Debug)]
pub struct Allocation {
    map: MmapRaw,
    len: u64,
    name: Arc<str>,
}

impl Allocation {
    /// Allocates `len` bytes. Pages are taken from the host when they are touched.
    pub fn new(len: u64, name: &str) -> Result<Allocation, Error> {
        let failed = || Error::HostMemory { bytes: len, name: name.to_string() };
        let size =
            usize::try_from(len).ok().and_then(|n| n.max(1).checked_add(GUARD_BYTES)).ok_or_else(failed)?;
        let map = MmapMut::map_anon(size).map_err(|_| failed())?;
        // A fault of the host for each 4 KiB costs programs with large arrays as much as their kernels.
        #[cfg(target_os = "linux")]
        if size >= HUGE_BYTES {
            // Hosts without huge pages refuse, and use small ones.
            let _ = map.advise(memmap2::Advice::HugePage);
        }
        Ok(Allocation { map: map.into(), len, name: name.into() })
    }

    /// Its address, in the process and for kernels.
    pub fn address(&self) -> u64 {
        self.map.as_mut_ptr().addr() as u64
    }

    /// Size in bytes.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether it has no bytes.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The name in messages.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// As memory that kernels can access.
    pub(crate) fn range(&self) -> HostMemory {
        let host = self.map.as_mut_ptr();
        let (address, len, name) = (self.address(), self.len, self.name.clone());
        HostMemory { address, host, len, writable: true, name, _owner: None }
    }
}

/// An allocation that was freed. Its addresses are not reused for a while, so that late accesses are recognised.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Freed {
    /// Its address.
    pub address: u64,
    /// Its size in bytes.
    pub len: u64,
    /// Its name.
    pub name: Arc<str>,
    /// The launches that the device had seen when it was freed.
    pub launches: u64,
}

impl fmt::Display for Freed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, len, address) = (&self.name, self.len, self.address);
        write!(f, "use after free: `{name}` ({len} bytes at 0x{address:x}) was freed ")?;
        match self.launches {
            0 => write!(f, "before the first launch"),
            last => write!(f, "after launch {last}"),
        }
    }
}

/// Ranges as the memory of a launch. Ranges that overlap become one if host and kernel agree on the addresses.
pub(crate) fn memory(ranges: &[HostMemory], bounds: Bounds) -> Result<Memory, MapError> {
    let mut memory = Memory::empty();
    if bounds == Bounds::Trust {
        let host = std::ptr::with_exposed_provenance_mut(PAGE_BYTES as usize);
        // SAFETY: whoever chose `Bounds::Trust` vouches for all pointers (`Device::set_bounds`).
        unsafe { memory.map_host(PAGE_BYTES, host, PROCESS_END - PAGE_BYTES, true)? };
        return Ok(memory);
    }
    let rounded = |r: &HostMemory| if bounds == Bounds::Pages { r.pages() } else { r.clone() };
    let mut sorted: Vec<HostMemory> = ranges.iter().filter(|r| r.len != 0).map(rounded).collect();
    sorted.sort_by_key(|r| r.address);
    let mut merged: Vec<HostMemory> = Vec::with_capacity(sorted.len());
    for range in sorted {
        match merged.last_mut() {
            Some(last) if last.overlaps(&range) && same_offset(last, &range) => {
                last.len = last.last().max(range.last()) - last.address + 1;
                last.writable |= range.writable;
            }
            _ => merged.push(range),
        }
    }
    for r in &merged {
        // SAFETY: required of the callers of `HostMemory::new`; allocations outlive the launch (`Space`).
        unsafe { memory.map_host(r.address, r.host, r.len, r.writable)? };
    }
    for r in ranges.iter().filter(|r| !r.name.is_empty()) {
        memory.name(r.address, r.len, &r.name);
    }
    Ok(memory)
}

/// Whether two ranges have the same distance between the kernel's address and the host's.
fn same_offset(a: &HostMemory, b: &HostMemory) -> bool {
    a.address.wrapping_sub(a.host.addr() as u64) == b.address.wrapping_sub(b.host.addr() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(address: u64, len: u64, writable: bool) -> HostMemory {
        // SAFETY: nothing accesses it.
        unsafe {
            HostMemory::new(address, std::ptr::without_provenance_mut(address as usize), len, writable, "r")
        }
    }

    fn readable(memory: &Memory, address: u64, len: u64) -> bool {
        memory.host(address, len, false).is_some()
    }

    #[test]
    fn overlapping_ranges_become_one() {
        let list = [range(0x1010, 0x20, false), range(0x1000, 0x18, true), range(0x1030, 0x10, true)];
        let memory = memory(&list, Bounds::Exact).unwrap();
        assert!(readable(&memory, 0x1000, 0x30) && !readable(&memory, 0x1000, 0x31));
        // Neighbours remain two, so that an access across their border is found.
        assert!(readable(&memory, 0x1030, 0x10) && !readable(&memory, 0x102c, 8));
    }

    #[test]
    fn other_addresses_of_the_host_do_not_merge() {
        let mut other = range(0x1008, 0x10, true);
        other.host = other.host.wrapping_add(1);
        assert!(matches!(
            memory(&[range(0x1000, 0x10, true), other], Bounds::Exact),
            Err(MapError::Overlap { .. })
        ));
    }

    #[test]
    fn bounds_are_rounded_to_pages() {
        let list = [range(0x1ffc, 12, true), range(0x2100, 4, true)];
        let exact = memory(&list, Bounds::Exact).unwrap();
        assert!(readable(&exact, 0x1ffc, 12) && !readable(&exact, 0x1ffc, 16));
        let pages = memory(&list, Bounds::Pages).unwrap();
        assert!(
            readable(&pages, 0x1ffc, 16) && readable(&pages, 0x1000, 0x2000) && !readable(&pages, 0x3000, 1)
        );
    }

    #[test]
    fn allocations_are_zeroed_and_apart() {
        let (a, b) = (Allocation::new(4096, "a").unwrap(), Allocation::new(1, "b").unwrap());
        assert!(a.address().is_multiple_of(4096) && a.address().abs_diff(b.address()) >= 8192);
        let memory = memory(&[a.range(), b.range()], Bounds::Exact).unwrap();
        assert_eq!(memory.load::<8>(a.address() + 4088), Ok([0; 8]));
        assert!(memory.load::<8>(a.address() + 4089).is_err() && memory.load::<2>(b.address()).is_err());
        assert!(matches!(Allocation::new(u64::MAX, "c"), Err(Error::HostMemory { .. })));
    }
}
