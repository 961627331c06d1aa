//! Global memory: address ranges with access rights, over owned bytes or borrowed host memory.
//!
//! One concrete type rather than a trait: a guest address is looked up in a short sorted list of ranges; owned spaces and host
//! ranges differ only in who frees the bytes. So the memory handlers exist once.
//!
//! Absent on purpose: LDS and scratch. They belong to a workgroup, not to the device, and live in the scheduler's buffers.

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
use range::{FOUND, Found};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use wavesim_isa::arch::Arch;

/// Base of the owned space: far from zero and from the apertures.
pub const OWNED_BASE: u64 = 0x7000_0000_0000;
/// Apertures of FLAT addressing: 2^32 bytes each, outside global memory (LLVM AMDGPUUsage, *Memory Spaces*).
pub const SHARED_BASE: u64 = 0x0001_0000_0000_0000;
/// As [`SHARED_BASE`], of the lanes' private memory.
pub const PRIVATE_BASE: u64 = 0x0002_0000_0000_0000;
/// Buffer addresses from here on are out of the buffer's range: loads give zero, stores do nothing. What a body adds to such an address
/// leaves it there.
pub const NOWHERE: u64 = 1 << 63;

/// Where an address of an instruction leads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// An address in global memory.
    Global(u64),
    /// An offset in the workgroup's LDS.
    Lds(u64),
    /// An offset in the lane's private memory.
    Scratch(u64),
    /// Out of a buffer's range.
    Nowhere,
}

impl Place {
    /// The place of an address of an instruction that accesses this space. Flat addresses in an aperture lose its base.
    #[inline(always)]
    pub fn of(space: Space, addr: u64) -> Place {
        match space {
            Space::Lds => Place::Lds(addr),
            Space::Scratch => Place::Scratch(addr),
            Space::Flat if addr >> 32 == SHARED_BASE >> 32 => Place::Lds(addr & 0xffff_ffff),
            Space::Flat if addr >> 32 == PRIVATE_BASE >> 32 => Place::Scratch(addr & 0xffff_ffff),
            Space::Buffer if addr >= NOWHERE => Place::Nowhere,
            _ => Place::Global(addr),
        }
    }
}
/// Bytes of an aperture.
const APERTURE: u64 = 1 << 32;

/// Byte address of a word of a memory that counts words ([`Memory::of_words`]).
#[inline(always)]
pub fn word_address(word: u64) -> u64 {
    OWNED_BASE.wrapping_add(word.wrapping_mul(WORD))
}

/// The word that a byte address is in.
pub fn word_of(address: u64) -> u64 {
    address.wrapping_sub(OWNED_BASE) / WORD
}

/// An address of global memory as an architecture counts it, from bytes.
pub fn own_address(arch: Arch, address: u64) -> u64 {
    if arch.machine().is_some() { word_of(address) } else { address }
}

/// Bytes of such a word.
pub const WORD: u64 = 4;

/// A named allocation, for messages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Region {
    /// As messages show it: a kernel's parameter, or what the allocator's caller chose.
    pub name: String,
    /// Address of the first byte.
    pub base: u64,
    /// Bytes, without padding and guards after it.
    pub len: u64,
}

/// Global memory. Shared by the threads that run workgroups, and perhaps by the embedder's: a guest's data race is the guest's error,
/// so all accesses go through [`access`], which defines them, and there is never a reference to guest bytes.
pub struct Memory {
    id: u64,
    /// By base; they do not overlap.
    ranges: Vec<HostRange>,
    owned: Option<Owned>,
    /// Bump allocator of the owned space: next free address.
    next: u64,
    /// By base, as the allocator made them.
    regions: Vec<Region>,
    /// Bytes that the allocator leaves free after each allocation.
    guard: u64,
    /// Host threads that run on it.
    runners: AtomicU32,
    /// Some of it is the host's own, and may always be somebody else's too.
    foreign: bool,
    /// Of a memory that counts words: a bit for each that was stored to.
    touched: Option<Owned>,
    /// Where addresses are looked for that are in none of the ranges.
    found: Option<Box<Found>>,
}

// SAFETY: the pointers are to memory that outlives the `Memory` (owned, or promised by `map_host`'s caller), and any thread may use them.
unsafe impl Send for Memory {}
// SAFETY: as above; what several threads access at once they access by `access`, or by atomics.
unsafe impl Sync for Memory {}

impl Memory {
    /// An owned space of `bytes`, zeroed. Guest programs reach only what [`Memory::alloc`] has given out.
    pub fn new(bytes: u64) -> Result<Memory, AllocError> {
        let owned = Owned::zeroed(bytes).ok_or(AllocError::Host { bytes })?;
        let range = HostRange { base: OWNED_BASE, len: 0, host: owned.as_ptr(), writable: true };
        Ok(Memory {
            id: number(),
            ranges: vec![range],
            owned: Some(owned),
            next: OWNED_BASE,
            regions: Vec::new(),
            guard: 0,
            runners: AtomicU32::new(0),
            foreign: false,
            touched: None,
            found: None,
        })
    }

    /// As [`Memory::new`], with at least `guard` bytes between allocations: a checked run separates an access beyond one from an access
    /// to the next.
    pub fn with_guard(bytes: u64, guard: u64) -> Result<Memory, AllocError> {
        Ok(Memory { guard, ..Memory::new(bytes)? })
    }

    /// The data memory of a machine whose addresses count words of 32 bits: all of it one allocation, and a note of the words stored to.
    pub fn of_words(words: u64) -> Result<Memory, AllocError> {
        let bytes = words.saturating_mul(WORD);
        let mut memory = Memory::new(bytes)?;
        memory.alloc(bytes, WORD, "memory")?;
        let bits = Owned::zeroed(words.div_ceil(64).saturating_mul(8));
        memory.touched = Some(bits.ok_or(AllocError::Host { bytes: words / 8 })?);
        Ok(memory)
    }

    /// Takes note of a store to `words` words from a byte address on, all of them inside.
    #[inline(always)]
    pub fn touch(&self, address: u64, words: u64) {
        let first = address.wrapping_sub(OWNED_BASE) / WORD;
        for word in first..first + words {
            let Some(cell) = self.touched_cell(word / 64) else { return };
            let bit = 1 << (word % 64);
            // It is usually set: testing costs less than an atomic change.
            if cell.load(Ordering::Relaxed) & bit == 0 {
                cell.fetch_or(bit, Ordering::Relaxed);
            }
        }
    }

    #[inline(always)]
    fn touched_cell(&self, index: u64) -> Option<&AtomicU64> {
        let bits = self.touched.as_ref().filter(|bits| index < bits.len() / 8)?;
        // SAFETY: inside the allocation, which is aligned to pages and lives as long as `self`; only these atomics touch it.
        Some(unsafe { AtomicU64::from_ptr(bits.as_ptr().cast::<u64>().add(index as usize)) })
    }

    /// The words stored to, with their values, by address. Of a memory that does not count words: none.
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

    /// Whether its addresses count words ([`Memory::of_words`]).
    pub fn counts_words(&self) -> bool {
        self.touched.is_some()
    }

    /// The address as the program counts it.
    pub fn own_address(&self, address: u64) -> u64 {
        if self.counts_words() { word_of(address) } else { address }
    }

    /// No memory at all; `map_host` adds ranges.
    pub fn empty() -> Memory {
        Memory {
            id: number(),
            ranges: Vec::new(),
            owned: None,
            next: OWNED_BASE,
            regions: Vec::new(),
            guard: 0,
            runners: AtomicU32::new(0),
            foreign: false,
            touched: None,
            found: None,
        }
    }

    /// Adds host memory at guest address `base`.
    ///
    /// # Safety
    /// As long as this `Memory` is used, `len` bytes from `host` on stay valid for reads, and for writes if `writable`; meanwhile
    /// others access them by atomics or as [`access`] does, and no Rust reference to them is used.
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
        // The last byte may be the address space's last.
        let last = base.checked_add(len - 1).ok_or(MapError::Wraps { base, len })?;
        let reserved = self.owned.as_ref().map(|o| (OWNED_BASE, o.len()));
        let at = self.ranges.partition_point(|r| r.base < base);
        // Adjacent ranges are enough; on each side, one may be the owned range while it is empty. Processes have thousands of ranges.
        let window = &self.ranges[at.saturating_sub(2)..(at + 2).min(self.ranges.len())];
        let taken = window.iter().map(|r| (r.base, r.len)).chain(reserved);
        for (other, other_len) in taken.filter(|t| t.1 != 0) {
            if base <= other + (other_len - 1) && other <= last {
                return Err(MapError::Overlap { base, len, other, other_len });
            }
        }
        self.ranges.insert(at, HostRange { base, len, host, writable });
        self.foreign = true;
        Ok(())
    }

    /// Adds the ranges that `finder` finds, each when it is first accessed.
    ///
    /// # Safety
    /// That of [`Memory::map_host`] for each of them, from then on.
    pub unsafe fn map_found(&mut self, finder: Box<dyn Finder>) {
        self.found = Some(Box::new(Found { finder, ranges: [const { OnceLock::new() }; FOUND] }));
        self.foreign = true;
    }

    /// Reserves `len` bytes of the owned space. `align` is rounded up to a power of two.
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

    /// A copy of all that was allocated.
    pub fn snapshot(&self) -> Vec<u8> {
        let mut bytes = vec![0; (self.next - OWNED_BASE) as usize];
        // All of it is one range.
        let read = self.read(OWNED_BASE, &mut bytes);
        debug_assert!(read.is_ok());
        bytes
    }

    /// Puts a copy back that [`Memory::snapshot`] made.
    pub fn restore(&self, bytes: &[u8]) {
        let written = self.write(OWNED_BASE, bytes);
        debug_assert!(written.is_ok());
    }

    /// Gives a name to a part of the memory, for messages and for the checks of bounds.
    pub fn name(&mut self, base: u64, len: u64, name: &str) {
        let at = self.regions.partition_point(|r| r.base <= base);
        self.regions.insert(at, Region { name: name.to_string(), base, len });
    }

    /// Allocations, by address.
    pub fn regions(&self) -> &[Region] {
        &self.regions
    }

    /// `name+0x10` for an address in or shortly after an allocation.
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

    /// What a failed access tried, and the likeliest reason, for a message.
    pub fn explain(&self, e: &MemError) -> String {
        if self.counts_words() {
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

    /// The one bounds check: host address of `size` bytes at `address`.
    #[inline(always)]
    fn locate(&self, address: u64, size: u64, write: bool) -> Result<*mut u8, MemError> {
        // Programs have one range, hosts a handful; `search` is for the others.
        match self.host_of_first(address, size, write) {
            Some(host) => Ok(host),
            None => self.search(address, size, write),
        }
    }

    /// Host address of `len` bytes that are all in the first range, which may be all there is.
    #[inline(always)]
    fn host_of_first(&self, address: u64, len: u64, write: bool) -> Option<*mut u8> {
        self.ranges.first()?.host_of(address, len, write)
    }

    /// Host address of `len` bytes that are all in one range, for accesses of many lanes at once.
    #[inline(always)]
    pub fn host(&self, address: u64, len: u64, write: bool) -> Option<*mut u8> {
        self.locate(address, len, write).ok()
    }

    #[inline(never)]
    fn search(&self, address: u64, size: u64, write: bool) -> Result<*mut u8, MemError> {
        let host = self.range_of(address).and_then(|range| range.host_of(address, size, write));
        host.ok_or(MemError { address, size_bytes: size.min(u32::MAX as u64) as u32, write })
    }

    /// The range that an address is in.
    pub fn range_of(&self, address: u64) -> Option<HostRange> {
        let at = self.ranges.partition_point(|r| r.base <= address);
        let listed = at.checked_sub(1).map(|at| self.ranges[at]).filter(|range| range.contains(address));
        listed.or_else(|| self.found.as_ref()?.range_of(address))
    }

    /// A number that no other memory has.
    #[inline(always)]
    pub fn id(&self) -> u64 {
        self.id
    }

    /// `N` bytes.
    #[inline(always)]
    pub fn load<const N: usize>(&self, address: u64) -> Result<[u8; N], MemError> {
        let at = self.locate(address, N as u64, false)?;
        // SAFETY: N bytes at `at` are inside a range.
        Ok(unsafe { access::load(at) })
    }

    /// `N` bytes; an error if any of them is outside of a range or read-only, and then nothing is stored.
    #[inline(always)]
    pub fn store<const N: usize>(&self, address: u64, bytes: [u8; N]) -> Result<(), MemError> {
        let at = self.locate(address, N as u64, true)?;
        // SAFETY: N bytes at `at` are inside a writable range.
        unsafe { access::store(at, bytes) };
        Ok(())
    }

    /// 1 to 16 bytes as a number.
    pub fn load_value(&self, address: u64, size: u32) -> Result<u128, MemError> {
        let mut bytes = [0; 16];
        self.read(address, &mut bytes[..(size as usize).min(16)])?;
        Ok(u128::from_le_bytes(bytes))
    }

    /// The low `size` (1 to 16) bytes of `value`.
    pub fn store_value(&self, address: u64, size: u32, value: u128) -> Result<(), MemError> {
        self.write(address, &value.to_le_bytes()[..(size as usize).min(16)])
    }

    /// As many bytes as `out` has, all in one range.
    pub fn read(&self, address: u64, out: &mut [u8]) -> Result<(), MemError> {
        if out.is_empty() {
            return Ok(());
        }
        let at = self.locate(address, out.len() as u64, false)?;
        // SAFETY: as many bytes at `at` are inside a range; `out` is a reference, and so none of them (see `map_host`).
        unsafe { access::read(at, out) };
        Ok(())
    }

    /// All of `bytes` to one range that can be written.
    pub fn write(&self, address: u64, bytes: &[u8]) -> Result<(), MemError> {
        if bytes.is_empty() {
            return Ok(());
        }
        let at = self.locate(address, bytes.len() as u64, true)?;
        // SAFETY: as many bytes at `at` are inside a writable range; `bytes` is a reference, and so none of them (see `map_host`).
        unsafe { access::write(at, bytes) };
        Ok(())
    }

    /// Takes note that so many host threads run on this memory, until the answer is dropped.
    pub fn run_on(&self, threads: u32) -> Running<'_> {
        self.runners.fetch_add(threads, Ordering::SeqCst);
        Running { memory: self, threads }
    }

    /// Whether other host threads may access it now: then atomics must be the host's.
    #[inline(always)]
    pub fn is_shared(&self) -> bool {
        self.foreign || self.runners.load(Ordering::Relaxed) > 1
    }

    /// Compare-and-exchange on a naturally aligned word: `Ok(Ok(old))` if it was `old`, else the present one.
    pub fn cas32(&self, address: u64, old: u32, new: u32) -> Result<Result<u32, u32>, MemError> {
        let at = self.aligned(address, 4)?;
        // SAFETY: aligned, inside a writable range; other threads access it by `access` or atomics.
        let cell = unsafe { AtomicU32::from_ptr(at.cast()) };
        Ok(cell.compare_exchange(old, new, Ordering::SeqCst, Ordering::SeqCst))
    }

    /// As [`Memory::cas32`], 64 bits.
    pub fn cas64(&self, address: u64, old: u64, new: u64) -> Result<Result<u64, u64>, MemError> {
        let at = self.aligned(address, 8)?;
        // SAFETY: as in `cas32`.
        let cell = unsafe { AtomicU64::from_ptr(at.cast()) };
        Ok(cell.compare_exchange(old, new, Ordering::SeqCst, Ordering::SeqCst))
    }

    /// The host's alignment counts, as it is what the host's atomics need; [`owned`] and sensible hosts keep the guest's.
    fn aligned(&self, address: u64, size: u32) -> Result<*mut u8, MemError> {
        let at = self.locate(address, size as u64, true)?;
        if (at as usize).is_multiple_of(size as usize) {
            return Ok(at);
        }
        Err(MemError { address, size_bytes: size, write: true })
    }
}

/// A number for a memory, never 0.
fn number() -> u64 {
    static LAST: AtomicU64 = AtomicU64::new(0);
    LAST.fetch_add(1, Ordering::Relaxed) + 1
}

/// Host threads run on a memory ([`Memory::run_on`]).
pub struct Running<'a> {
    memory: &'a Memory,
    threads: u32,
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.memory.runners.fetch_sub(self.threads, Ordering::SeqCst);
    }
}
