//! Global memory: address ranges with access rights, over owned bytes or borrowed host memory.
//!
//! This is one concrete type rather than a trait: a guest address is looked up in a short sorted list of
//! ranges, and owned spaces and host ranges differ only in who frees the bytes. So memory handlers are
//! compiled once.
//!
//! LDS and scratch are absent on purpose. They belong to a workgroup, not to the device; the scheduler owns
//! their buffers.

pub mod access;
mod error;
mod owned;
mod range;

#[cfg(test)]
mod tests;

pub use error::{AllocError, MapError, MemError};
pub use range::{Finder, HostRange};

use isa_spec::pcode::ir::Space;
use owned::Owned;
use range::{FoundRanges, MAX_FOUND};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use wavesim_isa::arch::Arch;
use wavesim_isa::operand::FLAT_SCRATCH_BASE;

/// Base of the owned space: far away from zero and from the apertures.
pub const OWNED_BASE: u64 = 0x7000_0000_0000;
/// The LDS aperture of FLAT addressing: 2^32 bytes outside global memory (LLVM AMDGPUUsage, *Memory Spaces*).
pub const SHARED_BASE: u64 = 0x0001_0000_0000_0000;
/// The scratch aperture, likewise.
pub const PRIVATE_BASE: u64 = 0x0002_0000_0000_0000;
/// Buffer addresses from here on are out of the buffer's range: loads return zero, stores do nothing. Offsets
/// that semantics add to such an address leave it in this region.
pub const NOWHERE: u64 = 1 << 63;

/// The target of an instruction's address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// An address in global memory.
    Global(u64),
    /// An offset in the workgroup's LDS.
    Lds(u64),
    /// An offset in the lane's scratch.
    Scratch(u64),
    /// Outside a buffer's range.
    Nowhere,
}

impl Place {
    /// Resolves an address of an instruction that accesses `space`. Flat addresses in an aperture become
    /// offsets in it. On CDNA 5, they also contain the lane, which is taken to be the one that accesses.
    #[inline(always)]
    pub fn of(space: Space, addr: u64) -> Place {
        match space {
            Space::Lds => Place::Lds(addr),
            Space::Scratch => Place::Scratch(addr),
            Space::Flat if addr >> 32 == SHARED_BASE >> 32 => Place::Lds(addr & 0xffff_ffff),
            Space::Flat if addr >> 32 == PRIVATE_BASE >> 32 => Place::Scratch(addr & 0xffff_ffff),
            Space::Flat if addr >> 58 == FLAT_SCRATCH_BASE >> 58 => Place::Scratch(addr & 0xffff_ffff),
            Space::Buffer if addr >= NOWHERE => Place::Nowhere,
            _ => Place::Global(addr),
        }
    }
}
/// Size of an aperture.
const APERTURE: u64 = 1 << 32;

/// Returns the byte address of a word in word-addressed memory ([`Memory::word_addressed`]).
#[inline(always)]
pub fn word_address(word: u64) -> u64 {
    OWNED_BASE.wrapping_add(word.wrapping_mul(WORD))
}

/// Returns the number of the word that contains a byte address.
pub fn word_of(address: u64) -> u64 {
    address.wrapping_sub(OWNED_BASE) / WORD
}

/// Converts a byte address in global memory to the architecture's own unit.
pub fn own_address(arch: Arch, address: u64) -> u64 {
    if arch.machine().is_some() { word_of(address) } else { address }
}

/// Bytes of a word in word-addressed memory.
pub const WORD: u64 = 4;

/// A named allocation, for diagnostics.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Region {
    /// The name shown in diagnostics: a kernel parameter, or one chosen by the allocator's caller.
    pub name: String,
    /// Address of the first byte.
    pub base: u64,
    /// Length in bytes, without padding and guards after it.
    pub len: u64,
}

/// Global memory, shared by the threads that run workgroups and possibly by the embedder's. A guest's data
/// race is the guest's error: all accesses go through [`access`], which gives races defined behaviour, and
/// there is never a reference to guest bytes.
pub struct Memory {
    id: u64,
    /// Sorted by base, without overlaps.
    ranges: Vec<HostRange>,
    owned: Option<Owned>,
    /// Bump allocator of the owned space: the next free address.
    next: u64,
    /// Sorted by base, as the bump allocator creates them.
    regions: Vec<Region>,
    /// Bytes that the allocator leaves free after each allocation.
    guard: u64,
    /// Number of host threads that run kernels on this memory.
    threads_running: AtomicU32,
    /// Some of the memory is mapped from the host, and other threads may access it at any time.
    host_mapped: bool,
    /// For word-addressed memory: a bit for each word that has been stored to.
    touched: Option<Owned>,
    /// Finds ranges for addresses that no listed range contains.
    found: Option<Box<FoundRanges>>,
}

// SAFETY: the pointers refer to memory that outlives the `Memory`: owned memory does, and the caller of
// `map_host` guarantees it for the rest. Any thread may access it.
unsafe impl Send for Memory {}
// SAFETY: as above; concurrent accesses go through `access` or atomics.
unsafe impl Sync for Memory {}

impl Memory {
    /// Creates an owned, zeroed space of `bytes`. Guest programs can access only what [`Memory::alloc`] has
    /// returned.
    pub fn new(bytes: u64) -> Result<Memory, AllocError> {
        let owned = Owned::zeroed(bytes).ok_or(AllocError::Host { bytes })?;
        let range = HostRange { base: OWNED_BASE, len: 0, host: owned.as_ptr(), writable: true };
        Ok(Memory {
            id: fresh_id(),
            ranges: vec![range],
            owned: Some(owned),
            next: OWNED_BASE,
            regions: Vec::new(),
            guard: 0,
            threads_running: AtomicU32::new(0),
            host_mapped: false,
            touched: None,
            found: None,
        })
    }

    /// As [`Memory::new`], with at least `guard` bytes between allocations, so that a checked run can tell an
    /// access beyond one allocation from an access to the next.
    pub fn with_guard(bytes: u64, guard: u64) -> Result<Memory, AllocError> {
        Ok(Memory { guard, ..Memory::new(bytes)? })
    }

    /// Creates the data memory of a word-addressed machine (32-bit words): a single allocation, with a record
    /// of the words stored to.
    pub fn word_addressed(words: u64) -> Result<Memory, AllocError> {
        let bytes = words.saturating_mul(WORD);
        let mut memory = Memory::new(bytes)?;
        memory.alloc(bytes, WORD, "memory")?;
        let bits = Owned::zeroed(words.div_ceil(64).saturating_mul(8));
        memory.touched = Some(bits.ok_or(AllocError::Host { bytes: words / 8 })?);
        Ok(memory)
    }

    /// Records a store to `words` words beginning at a byte address, all of them in bounds.
    #[inline(always)]
    pub fn touch(&self, address: u64, words: u64) {
        let first = address.wrapping_sub(OWNED_BASE) / WORD;
        for word in first..first + words {
            let Some(cell) = self.touched_cell(word / 64) else { return };
            let bit = 1 << (word % 64);
            // The bit is usually set already: testing it costs less than an atomic update.
            if cell.load(Ordering::Relaxed) & bit == 0 {
                cell.fetch_or(bit, Ordering::Relaxed);
            }
        }
    }

    #[inline(always)]
    fn touched_cell(&self, index: u64) -> Option<&AtomicU64> {
        let bits = self.touched.as_ref().filter(|bits| index < bits.len() / 8)?;
        // SAFETY: the index is inside the allocation, which is page-aligned and lives as long as `self`. The
        // bits are accessed only through these atomics.
        Some(unsafe { AtomicU64::from_ptr(bits.as_ptr().cast::<u64>().add(index as usize)) })
    }

    /// Returns the words stored to, with their values, in address order; nothing for byte-addressed memory.
    pub fn touched(&self) -> impl Iterator<Item = (u32, u32)> {
        let cells = self.touched.as_ref().map_or(0, |bits| bits.len() / 8);
        let set = (0..cells).flat_map(|at| {
            let mut bits = self.touched_cell(at).map_or(0, |cell| cell.load(Ordering::Relaxed));
            std::iter::from_fn(move || {
                let bit = (bits != 0).then(|| bits.trailing_zeros() as u64)?;
                bits &= bits - 1;
                Some(at * 64 + bit)
            })
        });
        set.filter_map(|word| Some((word as u32, u32::from_le_bytes(self.load(word_address(word)).ok()?))))
    }

    /// Returns whether the memory is word-addressed ([`Memory::word_addressed`]).
    pub fn is_word_addressed(&self) -> bool {
        self.touched.is_some()
    }

    /// Converts a byte address to the unit in which the program counts addresses.
    pub fn own_address(&self, address: u64) -> u64 {
        if self.is_word_addressed() { word_of(address) } else { address }
    }

    /// Creates an empty memory, to which `map_host` adds ranges.
    pub fn empty() -> Memory {
        Memory {
            id: fresh_id(),
            ranges: Vec::new(),
            owned: None,
            next: OWNED_BASE,
            regions: Vec::new(),
            guard: 0,
            threads_running: AtomicU32::new(0),
            host_mapped: false,
            touched: None,
            found: None,
        }
    }

    /// Maps host memory at guest address `base`.
    ///
    /// # Safety
    /// While this `Memory` is used, `len` bytes at `host` stay valid for reads, and for writes if `writable`;
    /// others access them only through atomics or as [`access`] does, and no Rust reference to them is used.
    pub unsafe fn map_host(
        &mut self,
        base: u64,
        host: *mut u8,
        len: u64,
        writable: bool,
    ) -> Result<(), MapError> {
        if len == 0 {
            return Ok(());
        }
        // The range may end at the last byte of the address space.
        let last = base.checked_add(len - 1).ok_or(MapError::Wraps { base, len })?;
        let reserved = self.owned.as_ref().map(|o| (OWNED_BASE, o.len()));
        let at = self.ranges.partition_point(|r| r.base < base);
        // Only adjacent ranges can overlap; on each side, one of them may be the owned range while it is
        // empty. A process may have thousands of ranges.
        let window = &self.ranges[at.saturating_sub(2)..(at + 2).min(self.ranges.len())];
        let taken = window.iter().map(|r| (r.base, r.len)).chain(reserved);
        for (other, other_len) in taken.filter(|t| t.1 != 0) {
            if base <= other + (other_len - 1) && other <= last {
                return Err(MapError::Overlap { base, len, other, other_len });
            }
        }
        self.ranges.insert(at, HostRange { base, len, host, writable });
        self.host_mapped = true;
        Ok(())
    }

    /// Lets `finder` find further ranges, each when it is first accessed.
    ///
    /// # Safety
    /// Each range that `finder` returns satisfies the contract of [`Memory::map_host`] from then on.
    pub unsafe fn map_on_demand(&mut self, finder: Box<dyn Finder>) {
        self.found = Some(Box::new(FoundRanges { finder, ranges: [const { OnceLock::new() }; MAX_FOUND] }));
        self.host_mapped = true;
    }

    /// Allocates `len` bytes of the owned space. `align` is rounded up to a power of two.
    pub fn alloc(&mut self, len: u64, align: u64, name: &str) -> Result<u64, AllocError> {
        let bad_align = || AllocError::Alignment { name: name.to_string(), align };
        let step = align.max(1).checked_next_power_of_two().ok_or_else(bad_align)?;
        let total = self.owned.as_ref().map_or(0, Owned::len);
        let end = OWNED_BASE + total;
        let guard = if self.regions.is_empty() { 0 } else { self.guard };
        let from = self.next.checked_add(guard).ok_or_else(bad_align)?;
        let base = from.checked_next_multiple_of(step).ok_or_else(bad_align)?;
        if base > end || len > end - base {
            let left = end - self.next;
            return Err(AllocError::Full { name: name.to_string(), wanted: len, left, total });
        }
        self.next = base + len;
        self.regions.push(Region { name: name.to_string(), base, len });
        if let Some(range) = self.ranges.iter_mut().find(|r| r.base == OWNED_BASE) {
            range.len = self.next - OWNED_BASE;
        }
        Ok(base)
    }

    /// Returns a copy of all allocated bytes.
    pub fn snapshot(&self) -> Vec<u8> {
        let mut bytes = vec![0; (self.next - OWNED_BASE) as usize];
        // All allocations are in one range.
        let read = self.read(OWNED_BASE, &mut bytes);
        debug_assert!(read.is_ok());
        bytes
    }

    /// Restores a copy made by [`Memory::snapshot`].
    pub fn restore(&self, bytes: &[u8]) {
        let written = self.write(OWNED_BASE, bytes);
        debug_assert!(written.is_ok());
    }

    /// Names a part of the memory, for diagnostics and bounds checks.
    pub fn name(&mut self, base: u64, len: u64, name: &str) {
        let at = self.regions.partition_point(|r| r.base <= base);
        self.regions.insert(at, Region { name: name.to_string(), base, len });
    }

    /// Returns the allocations in address order.
    pub fn regions(&self) -> &[Region] {
        &self.regions
    }

    /// Returns `name+0x10` for an address in or shortly after an allocation.
    pub fn describe(&self, address: u64) -> Option<String> {
        let at = self.regions.partition_point(|r| r.base <= address);
        let region = self.regions.get(at.checked_sub(1)?)?;
        let offset = address - region.base;
        if offset < region.len {
            return Some(format!("{}+0x{offset:x}", region.name));
        }
        let beyond = offset - region.len;
        (beyond < 4096).then(|| match beyond {
            0 => format!("just beyond the end of {}", region.name),
            _ => format!("{beyond} bytes beyond the end of {}", region.name),
        })
    }

    /// Describes a failed access and its likeliest cause.
    pub fn explain(&self, e: &MemError) -> String {
        if self.is_word_addressed() {
            let words = self.regions.iter().map(|r| r.len).sum::<u64>() / WORD;
            return format!(
                "{} at address {} is outside of the {words} words of memory (--global-memsize MB sets the size)",
                if e.write { "store" } else { "load" },
                self.own_address(e.address),
            );
        }
        let what = format!(
            "{} of {} bytes at 0x{:x}",
            if e.write { "store" } else { "load" },
            e.size_bytes,
            e.address
        );
        if e.write && self.locate(e.address, e.size_bytes as u64, false).is_ok() {
            return format!("{what} goes to read-only memory");
        }
        let window = self.describe(e.address).map(|d| format!(" ({d})")).unwrap_or_default();
        let hint = match e.address {
            0..4096 => "; the pointer is null",
            a if a.wrapping_sub(SHARED_BASE) < APERTURE => {
                "; it is an LDS address, which only FLAT and DS instructions reach"
            }
            a if a.wrapping_sub(PRIVATE_BASE) < APERTURE => {
                "; it is a scratch address, which only FLAT and SCRATCH instructions reach"
            }
            _ => "",
        };
        format!("{what}{window} is outside every buffer{hint}")
    }

    /// Checks bounds and returns the host address of `size` bytes at `address`. All accesses go through this
    /// check.
    #[inline(always)]
    fn locate(&self, address: u64, size: u64, write: bool) -> Result<*mut u8, MemError> {
        // Most programs use a single range; `search` handles the others.
        match self.host_of_first(address, size, write) {
            Some(host) => Ok(host),
            None => self.search(address, size, write),
        }
    }

    /// Returns the host address of `len` bytes if all of them are in the first range, often the only one.
    #[inline(always)]
    fn host_of_first(&self, address: u64, len: u64, write: bool) -> Option<*mut u8> {
        self.ranges.first()?.host_of(address, len, write)
    }

    /// Returns the host address of `len` bytes if all of them are in one range, for accesses of many lanes at
    /// once.
    #[inline(always)]
    pub fn host(&self, address: u64, len: u64, write: bool) -> Option<*mut u8> {
        self.locate(address, len, write).ok()
    }

    #[inline(never)]
    fn search(&self, address: u64, size: u64, write: bool) -> Result<*mut u8, MemError> {
        let host = self.range_of(address).and_then(|range| range.host_of(address, size, write));
        host.ok_or(MemError { address, size_bytes: size.min(u32::MAX as u64) as u32, write })
    }

    /// Returns the range that contains an address.
    pub fn range_of(&self, address: u64) -> Option<HostRange> {
        let at = self.ranges.partition_point(|r| r.base <= address);
        let listed = at.checked_sub(1).map(|at| self.ranges[at]).filter(|range| range.contains(address));
        listed.or_else(|| self.found.as_ref()?.range_of(address))
    }

    /// A number that identifies this memory.
    #[inline(always)]
    pub fn id(&self) -> u64 {
        self.id
    }

    /// Loads `N` bytes.
    #[inline(always)]
    pub fn load<const N: usize>(&self, address: u64) -> Result<[u8; N], MemError> {
        let at = self.locate(address, N as u64, false)?;
        // SAFETY: `locate` has checked that `N` bytes at `at` are inside a range.
        Ok(unsafe { access::load(at) })
    }

    /// Stores `N` bytes. If any of them is outside all ranges or read-only, returns an error and stores
    /// nothing.
    #[inline(always)]
    pub fn store<const N: usize>(&self, address: u64, bytes: [u8; N]) -> Result<(), MemError> {
        let at = self.locate(address, N as u64, true)?;
        // SAFETY: `locate` has checked that `N` bytes at `at` are inside a writable range.
        unsafe { access::store(at, bytes) };
        Ok(())
    }

    /// Loads a number of 1 to 16 bytes.
    pub fn load_value(&self, address: u64, size: u32) -> Result<u128, MemError> {
        let mut bytes = [0; 16];
        self.read(address, &mut bytes[..(size as usize).min(16)])?;
        Ok(u128::from_le_bytes(bytes))
    }

    /// Stores the low `size` (1 to 16) bytes of `value`.
    pub fn store_value(&self, address: u64, size: u32, value: u128) -> Result<(), MemError> {
        self.write(address, &value.to_le_bytes()[..(size as usize).min(16)])
    }

    /// Reads `out.len()` bytes, all in one range.
    pub fn read(&self, address: u64, out: &mut [u8]) -> Result<(), MemError> {
        if out.is_empty() {
            return Ok(());
        }
        let at = self.locate(address, out.len() as u64, false)?;
        // SAFETY: `locate` has checked that the bytes are inside a range. They do not overlap `out`, because
        // no reference to guest bytes exists (see `map_host`).
        unsafe { access::read(at, out) };
        Ok(())
    }

    /// Writes `bytes`, all to one writable range.
    pub fn write(&self, address: u64, bytes: &[u8]) -> Result<(), MemError> {
        if bytes.is_empty() {
            return Ok(());
        }
        let at = self.locate(address, bytes.len() as u64, true)?;
        // SAFETY: `locate` has checked that the bytes are inside a writable range. They do not overlap
        // `bytes`, because no reference to guest bytes exists (see `map_host`).
        unsafe { access::write(at, bytes) };
        Ok(())
    }

    /// Registers host threads that run on this memory until the returned guard is dropped.
    pub fn register_threads(&self, threads: u32) -> ThreadGuard<'_> {
        self.threads_running.fetch_add(threads, Ordering::SeqCst);
        ThreadGuard { memory: self, threads }
    }

    /// Returns whether other host threads may access the memory now, so that guest atomics must use host
    /// atomics.
    #[inline(always)]
    pub fn is_shared(&self) -> bool {
        self.host_mapped || self.threads_running.load(Ordering::Relaxed) > 1
    }
}

/// Returns a fresh identifier, never 0.
fn fresh_id() -> u64 {
    static LAST: AtomicU64 = AtomicU64::new(0);
    LAST.fetch_add(1, Ordering::Relaxed) + 1
}

/// A guard that registers host threads on a memory ([`Memory::register_threads`]).
pub struct ThreadGuard<'a> {
    memory: &'a Memory,
    threads: u32,
}

impl Drop for ThreadGuard<'_> {
    fn drop(&mut self) {
        self.memory.threads_running.fetch_sub(self.threads, Ordering::SeqCst);
    }
}
