//! The memory map of the process, for checking which addresses are readable and writable. With it, an invalid
//! pointer is an error instead of a signal.
//!
//! Listing the thousands of ranges that a process can have takes a millisecond. Where the operating system
//! supports it (Linux 6.11 and newer), single addresses are queried instead. The map is never cached across
//! API calls.

use crate::error::Error;
use std::ffi::{c_char, c_void};
use wavesim::memory::{Finder, HostRange, access};

/// Maximum length of a string in bytes.
pub const MAX_STRING: u64 = 4096;

/// A contiguous readable range with uniform permissions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mapped {
    /// Address of the first byte.
    pub base: u64,
    /// Size in bytes.
    pub len: u64,
    /// Whether the range is also writable.
    pub writable: bool,
}

/// The memory map of the process.
pub struct AddressSpace {
    map: Map,
}

enum Map {
    /// Ranges are queried one at a time.
    #[cfg(target_os = "linux")]
    Query(std::fs::File),
    /// A snapshot, ordered by address. Later changes by other threads are not visible.
    #[cfg(any(target_os = "linux", test))]
    List(Vec<Mapped>),
    /// The host provides no memory map.
    #[cfg(not(target_os = "linux"))]
    Unknown,
}

/// Structures that begin with their own size.
///
/// # Safety
/// The type must be `repr(C)` and valid for any bit pattern, and its first four bytes must be the size.
pub unsafe trait Sized32: Copy {
    /// The name in messages.
    const NAME: &'static str;
}

// SAFETY: the `repr(C)` structure has only integers and raw pointers, and `struct_size` is the first field.
unsafe impl Sized32 for crate::wavesim_launch {
    const NAME: &'static str = "launch";
}

// SAFETY: the `repr(C)` structure has only integers and raw pointers, and `struct_size` is the first field.
unsafe impl Sized32 for crate::wavesim_object_launch {
    const NAME: &'static str = "object_launch";
}

// SAFETY: the `repr(C)` structure has only numbers, and `struct_size` is the first field.
unsafe impl Sized32 for crate::wavesim_exploration {
    const NAME: &'static str = "exploration";
}

// SAFETY: the `repr(C)` structure has only integers, and `struct_size` is the first field.
unsafe impl Sized32 for crate::wavesim_kernel {
    const NAME: &'static str = "kernel";
}

// SAFETY: the `repr(C)` structure has only integers, and `struct_size` is the first field.
unsafe impl Sized32 for crate::wavesim_argument {
    const NAME: &'static str = "argument";
}

impl AddressSpace {
    /// Opens the memory map of this process, `/proc/self/maps`.
    #[cfg(target_os = "linux")]
    pub fn now() -> Result<AddressSpace, Error> {
        // Opened for every call: after a fork, an open file would still refer to the parent's map.
        let mut file = std::fs::File::open("/proc/self/maps")?;
        if query::is_supported(&file) {
            return Ok(AddressSpace { map: Map::Query(file) });
        }
        let mut text = Vec::new();
        std::io::Read::read_to_end(&mut file, &mut text)?;
        Ok(AddressSpace { map: Map::List(parse(&text)) })
    }

    /// Returns a map that accepts all pointers, because this host provides none.
    #[cfg(not(target_os = "linux"))]
    pub fn now() -> Result<AddressSpace, Error> {
        Ok(AddressSpace { map: Map::Unknown })
    }

    /// Returns the memory of the process, for kernels that can access all of it.
    pub fn finder(self) -> Result<ProcessMemory, Error> {
        #[cfg(not(target_os = "linux"))]
        if matches!(self.map, Map::Unknown) {
            return Err(std::io::Error::from(std::io::ErrorKind::Unsupported).into());
        }
        Ok(ProcessMemory(self))
    }

    /// Returns the range that contains an address.
    fn find(&self, address: u64) -> Option<Mapped> {
        match &self.map {
            #[cfg(target_os = "linux")]
            Map::Query(file) => query::find(file, address),
            #[cfg(any(target_os = "linux", test))]
            Map::List(ranges) => {
                let at = ranges.partition_point(|r| r.base + (r.len - 1) < address);
                ranges.get(at).copied().filter(|r| r.base <= address)
            }
            #[cfg(not(target_os = "linux"))]
            Map::Unknown => {
                // Every address may be mapped.
                let _ = address;
                Some(Mapped { base: 0, len: u64::MAX, writable: true })
            }
        }
    }

    /// Returns the number of accessible bytes from `address` on. Stops searching once `enough` bytes are
    /// found.
    fn accessible_bytes(&self, address: u64, enough: u64, write: bool) -> u64 {
        let mut end = address;
        while end - address < enough
            && let Some(range) = self.find(end).filter(|range| range.writable || !write)
            && range.base + range.len > end
        {
            end = range.base + range.len;
        }
        end - address
    }

    /// Checks that `len` bytes are readable, or writable if `write`.
    pub fn check(&self, what: &'static str, address: u64, len: u64, write: bool) -> Result<(), Error> {
        if address == 0 {
            return Err(Error::Null(what));
        }
        if self.accessible_bytes(address, len, write) < len {
            return Err(Error::Pointer { what, address, len, write });
        }
        Ok(())
    }

    /// Returns a copy of `len` bytes.
    ///
    /// # Safety
    /// If the memory map is not available, `from` must be valid.
    pub unsafe fn bytes(&self, what: &'static str, from: *const c_void, len: u64) -> Result<Vec<u8>, Error> {
        self.check(what, from as u64, len, false)?;
        let mut bytes = vec![0; len as usize];
        // SAFETY: `check` has verified that the memory is readable (without a memory map, the caller
        // guarantees it), and it is disjoint from the new `bytes`. `access::read` permits concurrent writes.
        unsafe { access::read(from.cast(), &mut bytes) };
        Ok(bytes)
    }

    /// Reads a NUL-terminated string.
    ///
    /// # Safety
    /// The requirements of [`AddressSpace::bytes`] must hold for the string including its NUL.
    pub unsafe fn string(&self, what: &'static str, from: *const c_char) -> Result<String, Error> {
        self.check(what, from as u64, 1, false)?;
        let limit = self.accessible_bytes(from as u64, MAX_STRING, false).min(MAX_STRING) as usize;
        let mut bytes = Vec::new();
        for at in 0..limit {
            // SAFETY: `limit` bytes are readable. Without a memory map, the caller guarantees the bytes up to
            // the NUL, and the loop reads no others.
            match unsafe { access::load_u8_at(from.cast(), at) } {
                0 => return String::from_utf8(bytes).map_err(|_| Error::Text(what)),
                byte => bytes.push(byte),
            }
        }
        Err(Error::Text(what))
    }

    /// Reads a structure after checking its `struct_size`.
    ///
    /// # Safety
    /// The requirements of [`AddressSpace::bytes`] must hold.
    pub unsafe fn sized<T: Sized32>(&self, what: &'static str, from: *const T) -> Result<T, Error> {
        self.check(what, from as u64, 4, false)?;
        // SAFETY: `check` has verified that four bytes are readable.
        let given = unsafe { access::load_u32(from.cast()) };
        let expected = size_of::<T>() as u32;
        if given != expected {
            return Err(Error::StructSize { what: T::NAME, given, expected });
        }
        self.check(what, from as u64, expected as u64, false)?;
        // SAFETY: `check` has verified that the bytes are readable, and any bit pattern is a valid `T`
        // (`Sized32`).
        Ok(unsafe { from.read_unaligned() })
    }
}

/// The memory of the process, identity-mapped for kernels.
pub struct ProcessMemory(AddressSpace);

impl Finder for ProcessMemory {
    fn find(&self, address: u64) -> Option<HostRange> {
        let range = self.0.find(address)?;
        let (mut base, mut end) = (range.base, range.base + range.len);
        // The system lists adjacent ranges separately even if they differ only in attributes irrelevant here.
        let compatible = |at: u64| self.0.find(at).filter(|other| other.writable == range.writable);
        while let Some(before) = base.checked_sub(1).and_then(compatible) {
            base = before.base;
        }
        while let Some(after) = compatible(end) {
            end = after.base + after.len;
        }
        let host = std::ptr::with_exposed_provenance_mut(base as usize);
        Some(HostRange { base, len: end - base, host, writable: range.writable })
    }
}

/// Queries of single ranges of the memory map (`PROCMAP_QUERY`, linux/fs.h).
#[cfg(target_os = "linux")]
mod query {
    use super::{Mapped, is_memory};
    use std::ffi::c_ulong;
    use std::fs::File;
    use std::io::Error;
    use std::os::fd::AsRawFd;
    use std::sync::OnceLock;

    /// `struct procmap_query`.
    #[repr(C)]
    #[derive(Default)]
    struct Query {
        size: u64,
        flags: u64,
        address: u64,
        start: u64,
        end: u64,
        rights: u64,
        page_size: u64,
        offset: u64,
        inode: u64,
        device: [u32; 2],
        name_size: u32,
        build_id_size: u32,
        name: u64,
        build_id: u64,
    }

    /// `_IOWR('f', 17, struct procmap_query)`.
    const PROCMAP_QUERY: c_ulong =
        3 << 30 | (size_of::<Query>() as c_ulong) << 16 | (b'f' as c_ulong) << 8 | 17;
    const READABLE: u64 = 1;
    const WRITABLE: u64 = 2;
    /// Maximum length of a name (`PATH_MAX`).
    const MAX_NAME: usize = 4096;

    fn query(file: &File, address: u64, name: &mut [u8]) -> Result<Query, Error> {
        let mut query = Query {
            size: size_of::<Query>() as u64,
            address,
            name_size: name.len() as u32,
            name: if name.is_empty() { 0 } else { name.as_mut_ptr() as u64 },
            ..Query::default()
        };
        // SAFETY: the kernel writes to `query` and at most `name_size` bytes to `name`; both are valid for
        // writes.
        match unsafe { libc::ioctl(file.as_raw_fd(), PROCMAP_QUERY as _, &raw mut query) } {
            0 => Ok(query),
            _ => Err(Error::last_os_error()),
        }
    }

    /// Returns true if the operating system's kernel supports the query.
    pub fn is_supported(file: &File) -> bool {
        static SUPPORTED: OnceLock<bool> = OnceLock::new();
        let local = 0u8;
        *SUPPORTED.get_or_init(|| find(file, &raw const local as u64).is_some())
    }

    pub fn find(file: &File, address: u64) -> Option<Mapped> {
        let mut name = [0; MAX_NAME];
        let found = query(file, address, &mut name).ok()?;
        let len = (found.name_size as usize).saturating_sub(1).min(name.len());
        let usable = found.rights & READABLE != 0 && is_memory(&name[..len]);
        let (base, len) = (found.start, found.end.checked_sub(found.start)?);
        usable.then_some(Mapped { base, len, writable: found.rights & WRITABLE != 0 })
    }
}

/// Returns true if a range with this path or name is ordinary memory. Reads of device memory and of the
/// operating system's special pages can have side effects or block.
#[cfg(any(target_os = "linux", test))]
fn is_memory(name: &[u8]) -> bool {
    let device =
        name.starts_with(b"/dev/") && !name.starts_with(b"/dev/shm/") && !name.starts_with(b"/dev/zero");
    !device && !name.starts_with(b"[v")
}

/// Writes a value to memory of the caller.
///
/// # Safety
/// If the memory map is not available, `to` must be valid.
pub unsafe fn write<T: Copy>(what: &'static str, to: *mut T, value: T) -> Result<(), Error> {
    AddressSpace::now()?.check(what, to as u64, size_of::<T>() as u64, true)?;
    // SAFETY: `check` has verified that the memory is writable; without a memory map, the caller guarantees
    // it.
    unsafe { to.write_unaligned(value) };
    Ok(())
}

/// Writes a value like [`write`], unless `to` is null.
///
/// # Safety
/// `to` must be null or meet the requirements of [`write`].
pub unsafe fn write_unless_null<T: Copy>(what: &'static str, to: *mut T, value: T) -> Result<(), Error> {
    // SAFETY: the caller guarantees it.
    if to.is_null() { Ok(()) } else { unsafe { write(what, to, value) } }
}

/// Writes a NUL-terminated string to memory of the caller, truncated to `len` bytes including the NUL.
///
/// # Safety
/// If the memory map is not available, `to` must be valid for `len` bytes.
pub unsafe fn write_text(what: &'static str, to: *mut c_char, len: u64, text: &str) -> Result<(), Error> {
    if len == 0 {
        return Err(Error::Text(what));
    }
    let kept = text.len().min(len as usize - 1);
    AddressSpace::now()?.check(what, to as u64, kept as u64 + 1, true)?;
    for (at, byte) in text.bytes().take(kept).chain([0]).enumerate() {
        // SAFETY: `check` has verified that the memory is writable; without a memory map, the caller
        // guarantees it.
        unsafe { to.add(at).write(byte as c_char) };
    }
    Ok(())
}

/// Parses `/proc/self/maps` (proc(5)): `start-end rwxp offset device inode path`. Merges adjacent ranges with
/// the same permissions. Omits unreadable ranges and ranges that are not ordinary memory.
///
/// The file is not read atomically. A range that another thread grows during the read can be listed twice;
/// only the part of the second entry beyond the first is used.
#[cfg(any(target_os = "linux", test))]
fn parse(maps: &[u8]) -> Vec<Mapped> {
    let mut out: Vec<Mapped> = Vec::new();
    let mut seen = 0;
    for line in String::from_utf8_lossy(maps).lines() {
        let mut words = line.split_whitespace();
        let (Some(range), Some(rights)) = (words.next(), words.next()) else { continue };
        let path = words.nth(3).unwrap_or_default();
        let hex = |text: &str| u64::from_str_radix(text, 16).ok();
        let Some((base, end)) = range.split_once('-').and_then(|(a, b)| Some((hex(a)?, hex(b)?))) else {
            continue;
        };
        let base = base.max(seen);
        seen = seen.max(end);
        if !rights.starts_with('r') || !is_memory(path.as_bytes()) || base >= end {
            continue;
        }
        let writable = rights.as_bytes().get(1) == Some(&b'w');
        match out.last_mut() {
            Some(last) if last.base + last.len == base && last.writable == writable => last.len += end - base,
            _ => out.push(Mapped { base, len: end - base, writable }),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAPS: &[u8] = b"\
00400000-00401000 r--p 00000000 08:01 42                                 /usr/bin/python3 (deleted)
00401000-00403000 r-xp 00001000 08:01 42                                 /usr/bin/python3
00403000-00404000 rw-p 00003000 08:01 42                                 /usr/bin/python3
00404000-00405000 rw-p 00000000 00:00 0                                  [heap]
00405000-00406000 ---p 00000000 00:00 0
00500000-00501000 rw-s 00000000 00:05 7                                  /dev/dri/card0
00600000-00601000 rw-s 00000000 00:05 7                                  /dev/shm/x
7fff0000-7fff1000 r--p 00000000 00:00 0                                  [vvar]
ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0                  [vsyscall]
nonsense
";

    #[test]
    fn maps_are_parsed() {
        let range = |base, len, writable| Mapped { base, len, writable };
        let expected =
            [range(0x400000, 0x3000, false), range(0x403000, 0x2000, true), range(0x600000, 0x1000, true)];
        assert_eq!(parse(MAPS), expected);
        assert_eq!(parse(b"\xff\xfe\n0-\n-0 r\n"), []);
    }

    #[test]
    fn ranges_that_grow_during_the_read_do_not_overlap() {
        let maps = b"1000-3000 rw-p 0 00:00 0\n3000-9000 ---p 0 00:00 0\n1000-4000 rw-p 0 00:00 0\n4000-9000 ---p 0 00:00 0\n9000-a000 r--p 0 00:00 0\n";
        let range = |base, len, writable| Mapped { base, len, writable };
        assert_eq!(parse(maps), [range(0x1000, 0x2000, true), range(0x9000, 0x1000, false)]);
        let maps = b"1000-3000 rw-p 0 00:00 0\n1000-4000 rw-p 0 00:00 0\n";
        assert_eq!(parse(maps), [range(0x1000, 0x3000, true)]);
    }

    #[test]
    fn checks_span_adjacent_ranges() {
        let space = AddressSpace { map: Map::List(parse(MAPS)) };
        let fits = |address, len, write| space.check("x", address, len, write).is_ok();
        assert!(fits(0x400000, 0x5000, false) && !fits(0x400000, 0x5001, false));
        assert!(fits(0x403000, 0x2000, true) && !fits(0x402fff, 2, true));
        assert!(!fits(0, 0, false) && !fits(0x3fffff, 1, false) && !fits(u64::MAX, 1, false));
        assert!(fits(0x600fff, 1, true) && !fits(0x600fff, 2, false));
    }

    /// Queries and the list agree, including on adjacent ranges with the same permissions.
    #[test]
    #[cfg(target_os = "linux")]
    fn queries_agree_with_the_list() {
        let (local, constant, heap) = (5u64, "text", vec![0u8; 1 << 20]);
        let text = std::fs::read("/proc/self/maps").unwrap();
        let list = AddressSpace { map: Map::List(parse(&text)) };
        let space = AddressSpace::now().unwrap();
        if !matches!(space.map, Map::Query(_)) {
            println!("skipped: this kernel has only the list");
            return;
        }
        for address in [&raw const local as u64, constant.as_ptr() as u64, heap.as_ptr() as u64] {
            let of = |space: &AddressSpace| space.find(address).map(|r| r.writable);
            assert_eq!(of(&space), of(&list), "0x{address:x}");
            assert!(of(&space).is_some());
        }
        for address in [0, 0x1000, u64::MAX, 0xffff_ffff_ff60_0000] {
            assert_eq!(space.find(address), None, "0x{address:x}");
        }
        // The list is a snapshot, whereas queries see later changes.
        let page = memory_map(1);
        assert!(AddressSpace::now().unwrap().check("page", page as u64, 4096, true).is_ok());
        // SAFETY: the page was just mapped, and nothing else uses it.
        unsafe { libc::mprotect(page, 4096, libc::PROT_READ) };
        assert!(space.check("page", page as u64, 4096, true).is_err());
        assert!(space.check("page", page as u64, 4096, false).is_ok());
        // SAFETY: as above.
        unsafe { libc::munmap(page, 4096) };
        assert!(space.check("page", page as u64, 1, false).is_err());
        assert!(space.find(&raw const local as u64).is_some());
    }

    /// Maps new pages.
    #[cfg(target_os = "linux")]
    fn memory_map(pages: usize) -> *mut c_void {
        let (rights, how) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        // SAFETY: the kernel chooses free addresses.
        let at = unsafe { libc::mmap(std::ptr::null_mut(), 4096 * pages, rights, how, -1, 0) };
        assert_ne!(at, libc::MAP_FAILED);
        at
    }

    /// Adjacent ranges that differ only in attributes invisible to kernels are merged.
    #[test]
    #[cfg(target_os = "linux")]
    fn adjacent_ranges_are_merged() {
        let pages = memory_map(3);
        let middle = pages.wrapping_byte_add(4096);
        // SAFETY: the pages were just mapped, and nothing else uses them.
        unsafe { libc::madvise(middle, 4096, libc::MADV_DONTDUMP) };
        let range = AddressSpace::now().unwrap().finder().unwrap().find(middle as u64).unwrap();
        assert!(range.base <= pages as u64 && range.base + range.len >= pages as u64 + 3 * 4096);
        assert!(range.writable);
        // SAFETY: as above.
        unsafe { libc::munmap(pages, 3 * 4096) };
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn own_memory_is_accessible() {
        let space = AddressSpace::now().unwrap();
        let (local, constant) = (5u64, "text");
        assert!(space.check("local", &raw const local as u64, 8, true).is_ok());
        assert!(space.check("constant", constant.as_ptr() as u64, 4, false).is_ok());
        assert!(space.check("constant", constant.as_ptr() as u64, 4, true).is_err());
        // SAFETY: the memory map is available.
        let string = |at: *const c_char| unsafe { space.string("s", at) };
        assert_eq!(string(c"gfx1100".as_ptr()).unwrap(), "gfx1100");
        assert!(matches!(string(8 as *const c_char), Err(Error::Pointer { .. })));
        let long = vec![b'x'; MAX_STRING as usize + 1];
        assert!(matches!(string(long.as_ptr().cast()), Err(Error::Text("s"))));
    }
}
