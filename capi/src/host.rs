//! The calling process's memory: which addresses can be read and written. A wrong pointer is then an error, not a signal.

use crate::error::Error;
use std::ffi::{c_char, c_void};
use wavesim::memory::access;

/// Bytes of a text at most.
pub const MAX_STRING: u64 = 4096;

/// Consecutive mapped bytes with the same rights, all readable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mapped {
    pub base: u64,
    pub len: u64,
    pub writable: bool,
}

/// What was mapped at one moment. What other threads map or unmap later is not seen.
pub struct Space {
    /// By address. `None`: this host does not tell.
    ranges: Option<Vec<Mapped>>,
}

/// Structures that begin with their own size.
///
/// # Safety
/// `repr(C)`, any bits are valid, and the first four bytes are the size.
pub unsafe trait Sized32: Copy {
    const NAME: &'static str;
}

// SAFETY: integers and raw pointers only; `struct_size` is first.
unsafe impl Sized32 for crate::wavesim_launch {
    const NAME: &'static str = "launch";
}

// SAFETY: integers and raw pointers only; `struct_size` is first.
unsafe impl Sized32 for crate::wavesim_object_launch {
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

    /// All that can be read.
    pub fn ranges(&self) -> Result<&[Mapped], Error> {
        let unsupported = || std::io::Error::from(std::io::ErrorKind::Unsupported);
        Ok(self.ranges.as_deref().ok_or_else(unsupported)?)
    }

    /// How many bytes from `address` on are mapped.
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
    /// If the host does not tell what is mapped, `from` must be valid.
    pub unsafe fn bytes(&self, what: &'static str, from: *const c_void, len: u64) -> Result<Vec<u8>, Error> {
        self.check(what, from as u64, len, false)?;
        let mut bytes = vec![0; len as usize];
        // SAFETY: readable, as just checked or promised, and not the new bytes. Other threads of the caller may write it.
        unsafe { access::read(from.cast(), &mut bytes) };
        Ok(bytes)
    }

    /// A text that ends with a zero byte.
    ///
    /// # Safety
    /// As of [`Space::bytes`], up to the zero byte.
    pub unsafe fn string(&self, what: &'static str, from: *const c_char) -> Result<String, Error> {
        self.check(what, from as u64, 1, false)?;
        let reach = self.reach(from as u64, false).min(MAX_STRING) as usize;
        let mut bytes = Vec::new();
        for at in 0..reach {
            // SAFETY: `reach` bytes are readable; on hosts that do not tell, the text's own are, and no others are looked at.
            match unsafe { access::load_u8_at(from.cast(), at) } {
                0 => return String::from_utf8(bytes).map_err(|_| Error::Text(what)),
                byte => bytes.push(byte),
            }
        }
        Err(Error::Text(what))
    }

    /// A structure, after a look at its size.
    ///
    /// # Safety
    /// As of [`Space::bytes`].
    pub unsafe fn sized<T: Sized32>(&self, what: &'static str, from: *const T) -> Result<T, Error> {
        self.check(what, from as u64, 4, false)?;
        // SAFETY: four bytes are readable.
        let given = unsafe { access::load_u32(from.cast()) };
        let expected = size_of::<T>() as u32;
        if given != expected {
            return Err(Error::StructSize { what: T::NAME, given, expected });
        }
        self.check(what, from as u64, expected as u64, false)?;
        // SAFETY: as many bytes are readable, and any are a `T`.
        Ok(unsafe { from.read_unaligned() })
    }
}

/// Fills the caller's structure.
///
/// # Safety
/// If the host does not tell what is mapped, `to` must be valid.
pub unsafe fn write<T: Copy>(what: &'static str, to: *mut T, value: T) -> Result<(), Error> {
    Space::now()?.check(what, to as u64, size_of::<T>() as u64, true)?;
    // SAFETY: writable, as just checked or promised; the caller lends it.
    unsafe { to.write_unaligned(value) };
    Ok(())
}

/// Lines of `/proc/self/maps` (proc(5)): `start-end rwxp offset device inode path`. Neighbours with the same rights become one.
/// Left out: what cannot be read, and what reading may harm or never answer (devices, the kernel's own pages).
#[cfg(any(target_os = "linux", test))]
fn parse(maps: &[u8]) -> Vec<Mapped> {
    let mut out: Vec<Mapped> = Vec::new();
    for line in String::from_utf8_lossy(maps).lines() {
        let mut words = line.split_whitespace();
        let (Some(place), Some(rights)) = (words.next(), words.next()) else { continue };
        let path = words.nth(3).unwrap_or_default();
        let device = path.starts_with("/dev/") && !path.starts_with("/dev/shm/") && path != "/dev/zero";
        let hex = |text: &str| u64::from_str_radix(text, 16).ok();
        let Some((base, end)) = place.split_once('-').and_then(|(a, b)| Some((hex(a)?, hex(b)?))) else {
            continue;
        };
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
        // SAFETY: the host tells what is mapped.
        let string = |at: *const c_char| unsafe { space.string("s", at) };
        assert_eq!(string(c"gfx1100".as_ptr()).unwrap(), "gfx1100");
        assert!(matches!(string(8 as *const c_char), Err(Error::Pointer { .. })));
        let long = vec![b'x'; MAX_STRING as usize + 1];
        assert!(matches!(string(long.as_ptr().cast()), Err(Error::Text("s"))));
    }
}
