//! Global memory: address ranges with access rights, over owned bytes or borrowed host memory.
//!
//! One concrete type rather than a trait: a guest address is looked up in a short sorted list of ranges, the first range first;
//! owned spaces and host ranges differ only in who frees the bytes. So the memory handlers exist once.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// Base of the owned space: far from zero and from the apertures.
pub const OWNED_BASE: u64 = 0x7000_0000_0000;
/// Apertures of FLAT addressing: 2^32 bytes each, outside global memory (LLVM AMDGPUUsage, *Memory Spaces*).
pub const SHARED_BASE: u64 = 0x0001_0000_0000_0000;
pub const PRIVATE_BASE: u64 = 0x0002_0000_0000_0000;

/// Where an access failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemError {
    pub address: u64,
    pub size_bytes: u32,
    pub write: bool,
}

/// Why an allocation failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AllocError {
    #[error(
        "{name} needs {wanted} bytes but {left} of {total} bytes of global memory are free (--global-memsize MB sets the size)"
    )]
    Full { name: String, wanted: u64, left: u64, total: u64 },
}

/// A named allocation, for messages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Region {
    pub name: String,
    pub base: u64,
    pub len: u64,
}

/// Global memory. Shared by the threads that run workgroups: guest races are guest errors, so accesses go through raw pointers
/// and never create references to guest bytes.
pub struct Memory {
    ranges: Vec<Range>,
    owned: Option<Box<[u64]>>,
    /// Bump allocator of the owned space: next free address.
    next: u64,
    regions: Vec<Region>,
}

#[derive(Clone, Copy)]
struct Range {
    base: u64,
    len: u64,
    host: *mut u8,
    writable: bool,
}

// SAFETY: the pointers are to memory that outlives the `Memory` (owned, or promised by `map_host`'s caller); all access is by raw
// reads and writes of plain bytes, atomics where atomicity matters.
unsafe impl Send for Memory {}
// SAFETY: as above; concurrent plain accesses are the guest program's data races.
unsafe impl Sync for Memory {}

impl Memory {
    /// An owned space of `bytes`, zeroed.
    pub fn new(bytes: u64) -> Memory {
        let mut owned = vec![0u64; bytes.div_ceil(8) as usize].into_boxed_slice();
        let host = owned.as_mut_ptr().cast::<u8>();
        let range = Range { base: OWNED_BASE, len: bytes, host, writable: true };
        Memory { ranges: vec![range], owned: Some(owned), next: OWNED_BASE, regions: Vec::new() }
    }

    /// No memory at all; `map_host` adds ranges.
    pub fn empty() -> Memory {
        Memory { ranges: Vec::new(), owned: None, next: OWNED_BASE, regions: Vec::new() }
    }

    /// Adds host memory at guest address `base`.
    ///
    /// # Safety
    /// `host..host+len` must stay valid for reads (and writes if `writable`) as long as this `Memory` lives.
    pub unsafe fn map_host(&mut self, base: u64, host: *mut u8, len: u64, writable: bool) {
        self.ranges.push(Range { base, len, host, writable });
        self.ranges.sort_by_key(|r| r.base);
    }

    /// Reserves `len` bytes of the owned space.
    pub fn alloc(&mut self, len: u64, align: u64, name: &str) -> Result<u64, AllocError> {
        let total = self.owned.as_ref().map_or(0, |o| o.len() as u64 * 8);
        let end = OWNED_BASE + total;
        let align = align.max(1).next_power_of_two();
        let base = self.next.checked_next_multiple_of(align).unwrap_or(u64::MAX);
        if base > end || len > end - base {
            return Err(AllocError::Full {
                name: name.to_string(),
                wanted: len,
                left: end.saturating_sub(self.next),
                total,
            });
        }
        self.next = base + len;
        self.regions.push(Region { name: name.to_string(), base, len });
        Ok(base)
    }

    pub fn regions(&self) -> &[Region] {
        &self.regions
    }

    /// `name+0x10` for an address in or near an allocation.
    pub fn describe(&self, address: u64) -> Option<String> {
        let region = self.regions.iter().rev().find(|r| r.base <= address)?;
        let offset = address - region.base;
        if offset < region.len {
            return Some(format!("{}+0x{offset:x}", region.name));
        }
        (offset < region.len + 4096)
            .then(|| format!("{} bytes beyond the end of {}", offset - region.len, region.name))
    }

    #[inline(always)]
    fn locate(&self, address: u64, size: u64, write: bool) -> Result<*mut u8, MemError> {
        for range in &self.ranges {
            let offset = address.wrapping_sub(range.base);
            if offset < range.len && size <= range.len - offset && (range.writable || !write) {
                // SAFETY: offset is inside the range.
                return Ok(unsafe { range.host.add(offset as usize) });
            }
        }
        Err(MemError { address, size_bytes: size as u32, write })
    }

    /// `N` bytes, little-endian value's bytes.
    #[inline(always)]
    pub fn load<const N: usize>(&self, address: u64) -> Result<[u8; N], MemError> {
        let at = self.locate(address, N as u64, false)?;
        // SAFETY: N bytes at `at` are inside a range.
        Ok(unsafe { at.cast::<[u8; N]>().read_unaligned() })
    }

    #[inline(always)]
    pub fn store<const N: usize>(&self, address: u64, bytes: [u8; N]) -> Result<(), MemError> {
        let at = self.locate(address, N as u64, true)?;
        // SAFETY: N bytes at `at` are inside a writable range.
        unsafe { at.cast::<[u8; N]>().write_unaligned(bytes) };
        Ok(())
    }

    /// Up to 16 bytes as a number.
    pub fn load_value(&self, address: u64, size: u32) -> Result<u128, MemError> {
        let mut bytes = [0; 16];
        self.read(address, &mut bytes[..size as usize])?;
        Ok(u128::from_le_bytes(bytes))
    }

    pub fn store_value(&self, address: u64, size: u32, value: u128) -> Result<(), MemError> {
        self.write(address, &value.to_le_bytes()[..size as usize])
    }

    pub fn read(&self, address: u64, out: &mut [u8]) -> Result<(), MemError> {
        let at = self.locate(address, out.len() as u64, false)?;
        // SAFETY: `out.len()` bytes at `at` are inside a range; `out` is ours.
        unsafe { std::ptr::copy(at, out.as_mut_ptr(), out.len()) };
        Ok(())
    }

    pub fn write(&self, address: u64, bytes: &[u8]) -> Result<(), MemError> {
        let at = self.locate(address, bytes.len() as u64, true)?;
        // SAFETY: as many bytes at `at` are inside a writable range.
        unsafe { std::ptr::copy(bytes.as_ptr(), at, bytes.len()) };
        Ok(())
    }

    /// Host pointer to `len` consecutive bytes, for copies of whole rows.
    #[inline(always)]
    pub fn span(&self, address: u64, len: u64, write: bool) -> Result<*mut u8, MemError> {
        self.locate(address, len, write)
    }

    /// Compare-and-exchange on an aligned word: the old value if it was `old`, else the present one.
    pub fn cas32(&self, address: u64, old: u32, new: u32) -> Result<Result<u32, u32>, MemError> {
        let at = self.locate(address, 4, true)?;
        if !(at as usize).is_multiple_of(4) {
            return Err(MemError { address, size_bytes: 4, write: true });
        }
        // SAFETY: aligned, inside a writable range; other threads access it as plain words or atomics.
        let cell = unsafe { AtomicU32::from_ptr(at.cast()) };
        Ok(cell.compare_exchange(old, new, Ordering::SeqCst, Ordering::SeqCst))
    }

    pub fn cas64(&self, address: u64, old: u64, new: u64) -> Result<Result<u64, u64>, MemError> {
        let at = self.locate(address, 8, true)?;
        if !(at as usize).is_multiple_of(8) {
            return Err(MemError { address, size_bytes: 8, write: true });
        }
        // SAFETY: as in `cas32`.
        let cell = unsafe { AtomicU64::from_ptr(at.cast()) };
        Ok(cell.compare_exchange(old, new, Ordering::SeqCst, Ordering::SeqCst))
    }
}
