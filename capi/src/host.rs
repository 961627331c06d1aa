//! The memory map of the process: which addresses can be read and written. A wrong pointer is then an error, not a signal.

use crate::error::Error;
use std::ffi::{c_char, c_void};
use wavesim::memory::access;

/// The longest string in bytes.
pub const MAX_STRING: u64 = 4096;

/// Consecutive mapped bytes with the same permissions, all readable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mapped {
    pub base: u64,
    pub len: u64,
    pub writable: bool,
}

/// The memory map at one time. Later changes by other threads are not seen.
pub struct Space {
    /// Ordered by address. `None`: this host has no readable memory map.
    ranges: Option<Vec<Mapped>>,
}

/// Structures that begin with their own size.
///
/// # Safety
/// The type must be `repr(C)` and valid for any bits, and its first four bytes must be the size.
pub unsafe trait Sized32: Copy {
    /// The name in messages.
    const NAME: &'static str;
}

// SAFETY: integers and raw pointers only; `struct_size` is first.
unsafe impl Sized32 for crate::wavesim_launch {
    /// The name in messages.
    const NAME: &'static str = "launch";
}

// SAFETY: integers and raw pointers only; `struct_size` is first.
unsafe impl Sized32 for crate::wavesim_object_launch {
    /// The name in messages.
    const NAME: &'static str = "object_launch";
}

impl Space {
    #[cfg(target_os = "linux")]
    pub fn now() -> Result<Space, Error> {
        Ok(Space { ranges: Some(parse(&std::fs::read("/proc/self/maps")?)) })
    }

    #[cfg(not(target_os = "linux"))]
    pub fn now() -> Result<Space, Error> {
        Ok(Space { ranges: None })
    }

    /// All readable ranges.
    pub fn ranges(&self) -> Result<&[Mapped], Error> {
        let unsupported = || std::io::Error::from(std::io::ErrorKind::Unsupported);
        Ok(self.ranges.as_deref().ok_or_else(unsupported)?)
    }

    /// The number of bytes from `address` on that are mapped.
    fn reach(&self, address: u64, write: bool) -> u64 {
        let Some(ranges) = &self.ranges else { return u64::MAX - address };
        let first = ranges.partition_point(|r| r.base + (r.len - 1) < address);
        let mut end = address;
        for range in &ranges[first..] {
            if range.base > end || write && !range.writable {
                break;
            }
            end = range.base + range.len;
        }
        end - address
    }

    /// Whether `len` bytes can be read, and written if `write`.
    pub fn check(&self, what: &'static str, address: u64, len: u64, write: bool) -> Result<(), Error> {
        if address == 0 {
            return Err(Error::Null(what));
        }
        if self.reach(address, write) < len {
            return Err(Error::Pointer { what, address, len, write });
        }
        Ok(())
    }

    /// A copy of `len` bytes.
    ///
    /// # Safety
    /// If the memory map is not available, `from` must be valid.
    pub unsafe fn bytes(&self, what: &'static str, from: *const c_void, len: u64) -> Result<Vec<u8>, Error> {
        self.check(what, from as u64, len, false)?;
        let mut bytes = vec![0; len as usize];
        // SAFETY: readable, as just checked or required of the caller, and disjoint from `bytes`. `access::read` allows
        // concurrent writes.
        unsafe { access::read(from.cast(), &mut bytes) };
        Ok(bytes)
    }

    /// A string that ends with a zero byte.
    ///
    /// # Safety
    /// That of [`Space::bytes`], up to the zero byte.
    pub unsafe fn string(&self, what: &'static str, from: *const c_char) -> Result<String, Error> {
        self.check(what, from as u64, 1, false)?;
        let reach = self.reach(from as u64, false).min(MAX_STRING) as usize;
        let mut bytes = Vec::new();
        for at in 0..reach {
            // SAFETY: `reach` bytes are readable; without a memory map, those up to the zero byte are, and no others are read.
            match unsafe { access::load_u8_at(from.cast(), at) } {
                0 => return String::from_utf8(bytes).map_err(|_| Error::Text(what)),
                byte => bytes.push(byte),
            }
        }
        Err(Error::Text(what))
    }

    /// A structure, if it has the expected size.
    ///
    /// # Safety
    /// That of [`Space::bytes`].
    pub unsafe fn sized<T: Sized32>(&self, what: &'static str, from: *const T) -> Result<T, Error> {
        self.check(what, from as u64, 4, false)?;
        // SAFETY: four bytes are readable.
        let given = unsafe { access::load_u32(from.cast()) };
        let expected = size_of::<T>() as u32;
        if given != expected {
            return Err(Error::StructSize { what: T::NAME, given, expected });
        }
        self.check(what, from as u64, expected as u64, false)?;
        // SAFETY: the bytes are readable, and any bits are a valid `T`.
        Ok(unsafe { from.read_unaligned() })
    }
}

/// Writes to a structure of the caller.
///
/// # Safety
/// If the memory map is not available, `to` must be valid.
pub unsafe fn write<T: Copy>(what: &'static str, to: *mut T, value: T) -> Result<(), Error> {
    Space::now()?.check(what, to as u64, size_of::<T>() as u64, true)?;
    // SAFETY: writable, as just checked or required of the caller.
    unsafe { to.write_unaligned(value) };
    Ok(())
}

/// Parses `/proc/self/maps` (proc(5)): `start-end rwxp offset device inode path`. Adjacent ranges with the same permissions are
/// merged. Unreadable ranges are left out, and those where reading may have effects or block (devices, pages of the kernel).
///
/// The file is read in parts. A range that another thread enlarges in between is found twice: of the second, what lies beyond the
/// first is taken.
#[cfg(any(target_os = "linux", test))]
fn parse(maps: &[u8]) -> Vec<Mapped> {
    let mut out: Vec<Mapped> = Vec::new();
    let mut seen = 0;
    for line in String::from_utf8_lossy(maps).lines() {
        let mut words = line.split_whitespace();
        let (Some(place), Some(rights)) = (words.next(), words.next()) else { continue };
        let path = words.nth(3).unwrap_or_default();
        let device = path.starts_with("/dev/") && !path.starts_with("/dev/shm/") && path != "/dev/zero";
        let hex = |text: &str| u64::from_str_radix(text, 16).ok();
        let Some((base, end)) = place.split_once('-').and_then(|(a, b)| Some((hex(a)?, hex(b)?))) else {
            continue;
        };
        let base = base.max(seen);
        seen = seen.max(end);
        if !rights.starts_with('r') || device || path.starts_with("[v") || base >= end {
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
    fn maps_are_read() {
        let range = |base, len, writable| Mapped { base, len, writable };
        let expected =
            [range(0x400000, 0x3000, false), range(0x403000, 0x2000, true), range(0x600000, 0x1000, true)];
        assert_eq!(parse(MAPS), expected);
        assert_eq!(parse(b"\xff\xfe\n0-\n-0 r\n"), []);
    }

    #[test]
    fn ranges_that_grow_meanwhile_do_not_overlap() {
        let maps = b"1000-3000 rw-p 0 00:00 0\n3000-9000 ---p 0 00:00 0\n1000-4000 rw-p 0 00:00 0\n4000-9000 ---p 0 00:00 0\n9000-a000 r--p 0 00:00 0\n";
        let range = |base, len, writable| Mapped { base, len, writable };
        assert_eq!(parse(maps), [range(0x1000, 0x2000, true), range(0x9000, 0x1000, false)]);
        let maps = b"1000-3000 rw-p 0 00:00 0\n1000-4000 rw-p 0 00:00 0\n";
        assert_eq!(parse(maps), [range(0x1000, 0x3000, true)]);
    }

    #[test]
    fn checks_cross_neighbours() {
        let space = Space { ranges: Some(parse(MAPS)) };
        let fits = |address, len, write| space.check("x", address, len, write).is_ok();
        assert!(fits(0x400000, 0x5000, false) && !fits(0x400000, 0x5001, false));
        assert!(fits(0x403000, 0x2000, true) && !fits(0x402fff, 2, true));
        assert!(!fits(0, 0, false) && !fits(0x3fffff, 1, false) && !fits(u64::MAX, 1, false));
        assert!(fits(0x600fff, 1, true) && !fits(0x600fff, 2, false));
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn own_memory_is_seen() {
        let space = Space::now().unwrap();
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
