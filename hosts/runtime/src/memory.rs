//! Memory that kernels can access: device allocations, and mapped memory of the embedding program.
//!
//! By default, accesses are bounds-checked to the byte ([`Bounds::Exact`]). Because GPUs map whole pages,
//! compilers may widen a scalar load of 2 bytes to the aligned word that contains them, which [`Bounds::Words`] permits,
//! and a 12-byte load to 16 bytes; [`Bounds::Pages`] permits this. [`Bounds::Trust`] permits
//! every address of the process, so an invalid pointer crashes it, as in native code.

use crate::Error;
use memmap2::{MmapOptions, MmapRaw};
use std::any::Any;
use std::fmt;
use std::sync::Arc;
use wavesim::memory::{MapError, Memory};

/// Bytes between allocations, so that an access past the end of one does not hit the next.
const GUARD_BYTES: usize = 4096;
/// Bytes before and after an allocation that programs did not ask for, so that a wrong index of a kernel does not
/// reach it. Only addresses are reserved.
const APART_BYTES: usize = 1 << 20;
/// Minimum size of allocations that are backed by the host's huge pages.
#[cfg(target_os = "linux")]
const HUGE_BYTES: usize = 4 << 20;
/// Page size that [`Bounds::Pages`] rounds to.
pub(crate) const PAGE_BYTES: u64 = 4096;
/// Word size that [`Bounds::Words`] rounds to.
const WORD_BYTES: u64 = 4;
/// End of the user address space on 64-bit hosts (x86-64 and AArch64 with 48-bit addresses).
const PROCESS_END: u64 = 1 << 47;

/// Granularity of bounds checks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Bounds {
    /// Kernels can access the bytes of allocations and of mapped memory.
    #[default]
    Exact,
    /// Kernels can access all bytes of the aligned words of 4 bytes that contain them.
    Words,
    /// Kernels can access all bytes of the pages that contain them.
    Pages,
    /// Kernels can access all memory of the process.
    Trust,
}

/// Host memory that kernels can access.
#[derive(Debug, Clone)]
pub struct HostMemory {
    /// Address that kernels use.
    address: u64,
    host: *mut u8,
    len: u64,
    writable: bool,
    /// Name in messages and bounds checks; empty if unnamed.
    name: Arc<str>,
    /// Keeps the memory valid.
    _owner: Option<Owner>,
}

/// Object that keeps memory of the embedding program valid while it is alive.
pub type Owner = Arc<dyn Any + Send + Sync>;

// SAFETY: callers of `HostMemory::new` guarantee that all threads may access the memory.
unsafe impl Send for HostMemory {}
// SAFETY: as above.
unsafe impl Sync for HostMemory {}

impl HostMemory {
    /// Describes `len` bytes at `host` that kernels access at `address`.
    ///
    /// # Safety
    /// The requirements of [`Memory::map_host`] must hold while this value, a device that it is mapped on, or
    /// a launch that started while it was mapped exists. With an owner ([`HostMemory::owned_by`]), they must
    /// hold while the owner exists.
    pub unsafe fn new(address: u64, host: *mut u8, len: u64, writable: bool, name: &str) -> HostMemory {
        HostMemory { address, host, len, writable, name: name.into(), _owner: None }
    }

    /// Attaches the object that keeps the memory valid. Devices and launches that can access the memory hold
    /// it.
    pub fn owned_by(self, owner: Owner) -> HostMemory {
        HostMemory { _owner: Some(owner), ..self }
    }

    /// Returns the first address that kernels use.
    pub fn address(&self) -> u64 {
        self.address
    }

    /// Returns the size in bytes.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Returns true if the size is 0.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns true if kernels can write to the memory.
    pub fn is_writable(&self) -> bool {
        self.writable
    }

    /// Returns the name used in messages.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the address of the last byte.
    fn last(&self) -> u64 {
        self.address.saturating_add(self.len.saturating_sub(1))
    }

    /// Whether two ranges share a byte.
    pub(crate) fn overlaps(&self, other: &HostMemory) -> bool {
        self.len != 0 && other.len != 0 && self.address <= other.last() && other.address <= self.last()
    }

    /// Rounds the range outwards to multiples of a size, at most a page, if kernels use host addresses.
    fn rounded(&self, to: u64) -> HostMemory {
        if self.address != self.host.addr() as u64 || self.len == 0 {
            return self.clone();
        }
        let before = self.address % to;
        let end = self.address.saturating_add(self.len).checked_next_multiple_of(to);
        let address = self.address - before;
        let len = end.map_or(self.len + before, |end| end - address);
        HostMemory { address, host: self.host.wrapping_sub(before as usize), len, ..self.clone() }
    }
}

/// A device allocation, zeroed and page-aligned.
#[derive(Debug)]
pub struct Allocation {
    map: MmapRaw,
    /// Bytes before the allocation that are reserved.
    before: usize,
    len: u64,
    name: Arc<str>,
    /// The file behind the pages, once processes share them.
    #[cfg(target_os = "linux")]
    shared: std::sync::OnceLock<SharedFile>,
}

/// The seals of shared files: their size is final.
#[cfg(target_os = "linux")]
const SIZE_SEALS: libc::c_int = libc::F_SEAL_SHRINK | libc::F_SEAL_GROW | libc::F_SEAL_SEAL;

/// A file without a name, which is the memory of an allocation.
#[cfg(target_os = "linux")]
#[derive(Debug)]
pub(crate) struct SharedFile(pub(crate) std::fs::File);

#[cfg(target_os = "linux")]
impl SharedFile {
    /// Creates a file of zeros, of at least `len` bytes and whole pages. Its size is final, so that pages that are
    /// mapped do not disappear, whatever another process does with the file.
    pub(crate) fn new(len: u64) -> std::io::Result<SharedFile> {
        use std::os::fd::{AsRawFd, FromRawFd};
        // SAFETY: the name is NUL-terminated.
        let descriptor =
            unsafe { libc::memfd_create(c"wavesim".as_ptr(), libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING) };
        if descriptor < 0 {
            return Err(std::io::Error::last_os_error());
        }
        // SAFETY: the descriptor is new, and nothing else owns it.
        let file = unsafe { std::fs::File::from_raw_fd(descriptor) };
        file.set_len(len.max(1).next_multiple_of(PAGE_BYTES))?;
        // SAFETY: the call has no pointers.
        if unsafe { libc::fcntl(file.as_raw_fd(), libc::F_ADD_SEALS, SIZE_SEALS) } < 0 {
            return Err(std::io::Error::last_os_error());
        }
        Ok(SharedFile(file))
    }

    /// Whether the size of a file is final, as that of all shared memory.
    pub(crate) fn is_sealed(file: &std::fs::File) -> bool {
        use std::os::fd::AsRawFd;
        // SAFETY: the call has no pointers.
        let seals = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_GET_SEALS) };
        seals >= 0 && seals & SIZE_SEALS == SIZE_SEALS
    }
}

impl Allocation {
    /// Allocates `len` bytes. The host commits pages on first access.
    pub fn new(len: u64, name: &str) -> Result<Allocation, Error> {
        Allocation::with_guards(len, name, 0, GUARD_BYTES)
    }

    /// Allocates `len` bytes for the runtime itself, away from the allocations of the program.
    pub(crate) fn apart(len: u64, name: &str) -> Result<Allocation, Error> {
        Allocation::with_guards(len, name, APART_BYTES, APART_BYTES)
    }

    /// Allocates `len` bytes, and reserves `before` and `after` bytes around them; `before` consists of whole
    /// pages.
    fn with_guards(len: u64, name: &str, before: usize, after: usize) -> Result<Allocation, Error> {
        let failed = || Error::HostMemory { bytes: len, name: name.to_string() };
        let size = usize::try_from(len).ok().and_then(|n| n.max(1).checked_add(before + after));
        let size = size.ok_or_else(failed)?;
        // Programs allocate most of a device's memory and use little of it, so the host reserves nothing.
        let map = MmapOptions::new().len(size).no_reserve_swap().map_anon().map_err(|_| failed())?;
        // One page fault per 4 KiB costs programs with large arrays as much time as their kernels.
        #[cfg(target_os = "linux")]
        if size >= HUGE_BYTES {
            // On hosts without huge pages the call fails, and small pages are used.
            let _ = map.advise(memmap2::Advice::HugePage);
        }
        Ok(Allocation {
            map: map.into(),
            before,
            len,
            name: name.into(),
            #[cfg(target_os = "linux")]
            shared: Default::default(),
        })
    }

    /// Maps the first `len` bytes of a file that another process shares.
    #[cfg(target_os = "linux")]
    pub(crate) fn of_file(file: std::fs::File, len: u64, name: &str) -> Result<Allocation, Error> {
        let allocation = Allocation::new(len, name)?;
        allocation.map_file(&file).map_err(Error::Shared)?;
        // A new allocation has no file.
        let _ = allocation.shared.set(SharedFile(file));
        Ok(allocation)
    }

    /// Replaces the pages of the allocation by those of a file, with the same contents. Nothing must write to the
    /// allocation during the call.
    #[cfg(target_os = "linux")]
    pub(crate) fn share(&self) -> std::io::Result<&SharedFile> {
        use std::os::fd::AsRawFd;
        /// Parts that are zero are not copied, so that memory that was never used takes none.
        const PART: u64 = 64 << 10;
        static ONE_AT_A_TIME: std::sync::Mutex<()> = std::sync::Mutex::new(());
        let _lock = crate::launch::lock(&ONE_AT_A_TIME);
        if let Some(shared) = self.shared.get() {
            return Ok(shared);
        }
        let SharedFile(file) = SharedFile::new(self.len)?;
        let mut bytes = vec![0; PART as usize];
        for offset in (0..self.len).step_by(PART as usize) {
            let part = PART.min(self.len - offset) as usize;
            let from = self.start().wrapping_add(offset as usize);
            // SAFETY: the part is inside the allocation. The C library copies, since kernels may read it, too.
            unsafe { libc::memcpy(bytes.as_mut_ptr().cast(), from.cast(), part) };
            if bytes[..part].iter().all(|byte| *byte == 0) {
                continue;
            }
            let mut written = 0;
            while written < part {
                let at = (offset as usize + written) as libc::off_t;
                // SAFETY: the rest of the part is inside the buffer.
                let n = unsafe {
                    libc::pwrite(file.as_raw_fd(), bytes[written..].as_ptr().cast(), part - written, at)
                };
                match n {
                    1.. => written += n as usize,
                    _ => return Err(std::io::Error::last_os_error()),
                }
            }
        }
        self.map_file(&file)?;
        Ok(self.shared.get_or_init(|| SharedFile(file)))
    }

    /// Maps a file in place of the allocation's own pages.
    #[cfg(target_os = "linux")]
    fn map_file(&self, file: &std::fs::File) -> std::io::Result<()> {
        use std::os::fd::AsRawFd;
        let size = self.len.max(1).next_multiple_of(PAGE_BYTES) as usize;
        let (access, kind) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED | libc::MAP_FIXED);
        // SAFETY: the pages belong to `self.map`, which has at least a page after the `len` bytes and begins with a
        // page, as `before` does. They stay mapped until it is dropped, which unmaps whatever is there.
        let at = unsafe { libc::mmap(self.start().cast(), size, access, kind, file.as_raw_fd(), 0) };
        if at == libc::MAP_FAILED { Err(std::io::Error::last_os_error()) } else { Ok(()) }
    }

    /// Returns the address, which is the same for the host and for kernels.
    pub fn address(&self) -> u64 {
        self.start().addr() as u64
    }

    fn start(&self) -> *mut u8 {
        self.map.as_mut_ptr().wrapping_add(self.before)
    }

    /// Returns the size in bytes.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Returns true if the size is 0.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the name used in messages.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the allocation as memory that kernels can access.
    pub(crate) fn range(&self) -> HostMemory {
        self.part(self.address(), self.len)
    }

    /// Returns `len` bytes at an address inside the allocation as memory that kernels can access.
    pub(crate) fn part(&self, address: u64, len: u64) -> HostMemory {
        let offset = address - self.address();
        assert!(offset <= self.len && len <= self.len - offset, "a part that is outside the allocation");
        let (host, name) = (self.start().wrapping_add(offset as usize), self.name.clone());
        HostMemory { address, host, len, writable: true, name, _owner: None }
    }
}

/// Reason why addresses that a program has reserved cannot be changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum VirtualError {
    /// A part that is not inside the reserved addresses.
    #[error("{len} bytes at 0x{address:x} are not inside the {reserved} reserved bytes at 0x{start:x}")]
    Outside {
        /// The part's address.
        address: u64,
        /// The part's size in bytes.
        len: u64,
        /// The first reserved address.
        start: u64,
        /// The number of reserved bytes.
        reserved: u64,
    },
    /// A part that is mapped already.
    #[error("0x{0:x} is mapped already")]
    Occupied(u64),
    /// A part that is not mapped.
    #[error("0x{0:x} is not mapped")]
    Unmapped(u64),
    /// A part that does not consist of whole mappings.
    #[error(
        "0x{address:x} is not where a mapping begins or ends; the one around it has {len} bytes at 0x{start:x}"
    )]
    Partial {
        /// The address.
        address: u64,
        /// The address of the mapping.
        start: u64,
        /// The size of the mapping in bytes.
        len: u64,
    },
    /// Addresses or sizes that are not whole pages.
    #[error("0x{0:x} is not a multiple of the page size, {PAGE_BYTES}")]
    Page(u64),
    /// More memory than there is.
    #[error("{len} bytes at offset {offset} of memory of {of} bytes")]
    Memory {
        /// The offset.
        offset: u64,
        /// The size in bytes.
        len: u64,
        /// The size of the memory in bytes.
        of: u64,
    },
}

/// A freed allocation. Its addresses are quarantined for a while, so that accesses after the free are
/// recognised.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Freed {
    /// Address.
    pub address: u64,
    /// Size in bytes.
    pub len: u64,
    /// Name.
    pub name: Arc<str>,
    /// Number of launches on the device before the free.
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

/// Builds the memory of a launch from ranges. Overlapping ranges are merged if they have the same offset
/// between kernel and host addresses.
pub(crate) fn memory(ranges: &[HostMemory], bounds: Bounds) -> Result<Memory, MapError> {
    let mut memory = Memory::empty();
    if bounds == Bounds::Trust {
        let host = std::ptr::with_exposed_provenance_mut(PAGE_BYTES as usize);
        // SAFETY: the caller of `Device::set_bounds` that chose `Bounds::Trust` guarantees that all pointers
        // are valid.
        unsafe { memory.map_host(PAGE_BYTES, host, PROCESS_END - PAGE_BYTES, true)? };
        return Ok(memory);
    }
    let rounded = |r: &HostMemory| match bounds {
        Bounds::Words => r.rounded(WORD_BYTES),
        Bounds::Pages => r.rounded(PAGE_BYTES),
        Bounds::Exact | Bounds::Trust => r.clone(),
    };
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
        // SAFETY: callers of `HostMemory::new` guarantee validity; `LaunchMemory` keeps allocations alive
        // during the launch.
        unsafe { memory.map_host(r.address, r.host, r.len, r.writable)? };
    }
    for r in ranges.iter().filter(|r| !r.name.is_empty()) {
        memory.name(r.address, r.len, &r.name);
    }
    Ok(memory)
}

/// Returns true if two ranges have the same offset between kernel and host addresses.
fn same_offset(a: &HostMemory, b: &HostMemory) -> bool {
    a.address.wrapping_sub(a.host.addr() as u64) == b.address.wrapping_sub(b.host.addr() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(address: u64, len: u64, writable: bool) -> HostMemory {
        // SAFETY: the tests never access the memory.
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
        // Adjacent ranges stay separate, so that an access across their boundary is detected.
        assert!(readable(&memory, 0x1030, 0x10) && !readable(&memory, 0x102c, 8));
    }

    #[test]
    fn ranges_with_different_host_offsets_do_not_merge() {
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
        let odd = [range(0x1002, 4, true), range(0x2100, 5, true)];
        let words = memory(&odd, Bounds::Words).unwrap();
        assert!(readable(&words, 0x1000, 8) && readable(&words, 0x2104, 4));
        assert!(!readable(&words, 0xfff, 1) && !readable(&words, 0x1008, 1) && !readable(&words, 0x2108, 1));
    }

    /// Only the pages that are touched take memory of the host.
    #[cfg(target_os = "linux")]
    #[test]
    fn large_allocations_take_no_memory() {
        let large = Allocation::new(1 << 40, "large").unwrap();
        let memory = memory(&[large.range()], Bounds::Exact).unwrap();
        memory.store(large.address() + (1 << 39), [1, 2, 3, 4]).unwrap();
        assert_eq!(memory.load::<8>(large.address() + (1 << 39)), Ok([1, 2, 3, 4, 0, 0, 0, 0]));
    }

    #[test]
    fn allocations_are_zeroed_and_separated() {
        let (a, b) = (Allocation::new(4096, "a").unwrap(), Allocation::new(1, "b").unwrap());
        assert!(a.address().is_multiple_of(4096) && a.address().abs_diff(b.address()) >= 8192);
        let memory = memory(&[a.range(), b.range()], Bounds::Exact).unwrap();
        assert_eq!(memory.load::<8>(a.address() + 4088), Ok([0; 8]));
        assert!(memory.load::<8>(a.address() + 4089).is_err() && memory.load::<2>(b.address()).is_err());
        assert!(matches!(Allocation::new(u64::MAX, "c"), Err(Error::HostMemory { .. })));
    }
}
