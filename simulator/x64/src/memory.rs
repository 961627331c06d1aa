//! Executable memory, which is never writable and executable at once.

use crate::compile::Compiled;
use crate::error::CompileError;

#[cfg(not(all(target_vendor = "apple", target_arch = "aarch64")))]
use anonymous::Mapping;
#[cfg(all(target_vendor = "apple", target_arch = "aarch64"))]
use apple::Mapping;

/// The least page size of hosts.
const PAGE: usize = 4096;

/// Owns machine code, which can be called until this is dropped.
#[derive(Debug, Default)]
pub struct Memory {
    mappings: Vec<Mapping>,
    bytes: usize,
}

impl Memory {
    /// Creates an empty memory.
    pub fn new() -> Memory {
        Memory::default()
    }

    /// Makes a function executable and returns its entry. The entry is valid as long as `self`.
    pub fn add(&mut self, code: Compiled) -> Result<*const u8, CompileError> {
        let failed = |error: std::io::Error| CompileError::Memory(error.to_string());
        // The page alignment exceeds that of the constants.
        let mapping = Mapping::new(&code.bytes).map_err(failed)?;
        let entry = mapping.as_ptr();
        self.bytes += code.bytes.len().next_multiple_of(PAGE);
        self.mappings.push(mapping);
        Ok(entry)
    }

    /// Returns the size of the mapped memory in bytes; each function begins on a page of its own.
    pub fn bytes(&self) -> usize {
        self.bytes
    }
}

/// Memory that is written first and becomes executable then.
#[cfg(not(all(target_vendor = "apple", target_arch = "aarch64")))]
mod anonymous {
    use memmap2::{Mmap, MmapMut};

    #[derive(Debug)]
    pub struct Mapping(Mmap);

    impl Mapping {
        pub fn new(code: &[u8]) -> std::io::Result<Mapping> {
            let mut mapping = MmapMut::map_anon(code.len())?;
            mapping.copy_from_slice(code);
            make_visible(&mapping);
            Ok(Mapping(mapping.make_exec()?))
        }

        pub fn as_ptr(&self) -> *const u8 {
            self.0.as_ptr()
        }
    }

    /// Does nothing: the host's instruction fetch sees what is written.
    #[cfg(not(target_arch = "aarch64"))]
    fn make_visible(_: &[u8]) {}

    /// Makes written instructions visible to instruction fetch (Arm's manual, *Synchronization and coherency issues
    /// between data and instruction accesses*).
    #[cfg(target_arch = "aarch64")]
    fn make_visible(code: &[u8]) {
        use std::arch::asm;
        let begin = code.as_ptr().addr();
        let end = begin + code.len();
        // SAFETY: user code may read CTR_EL0, and clean and invalidate cache lines of memory that it can read.
        unsafe {
            let sizes: usize;
            asm!("mrs {}, ctr_el0", out(reg) sizes, options(nomem, nostack, preserves_flags));
            // The logarithms of the numbers of words of the smallest lines.
            let (data, instructions) = (4 << (sizes >> 16 & 15), 4 << (sizes & 15));
            for line in (begin & !(data - 1)..end).step_by(data) {
                asm!("dc cvau, {}", in(reg) line, options(nostack, preserves_flags));
            }
            asm!("dsb ish", options(nostack, preserves_flags));
            for line in (begin & !(instructions - 1)..end).step_by(instructions) {
                asm!("ic ivau, {}", in(reg) line, options(nostack, preserves_flags));
            }
            asm!("dsb ish", "isb", options(nostack, preserves_flags));
        }
    }
}

/// Memory of Apple's processors, whose pages are writable or executable for each thread: only memory that is mapped for
/// it may become executable in programs with the hardened runtime (Apple, *Porting just-in-time compilers to Apple
/// silicon*).
#[cfg(all(target_vendor = "apple", target_arch = "aarch64"))]
mod apple {
    use std::ffi::{c_int, c_void};
    use std::ptr::NonNull;

    /// From sys/mman.h.
    const READ_WRITE_EXECUTE: c_int = 7;
    const PRIVATE_ANONYMOUS_JIT: c_int = 0x2 | 0x1000 | 0x800;

    unsafe extern "C" {
        fn mmap(
            at: *mut c_void,
            size: usize,
            protection: c_int,
            flags: c_int,
            file: c_int,
            offset: i64,
        ) -> *mut c_void;
        fn munmap(at: *mut c_void, size: usize) -> c_int;
        fn pthread_jit_write_protect_np(enabled: c_int);
        fn sys_icache_invalidate(start: *mut c_void, size: usize);
    }

    #[derive(Debug)]
    pub struct Mapping {
        start: NonNull<c_void>,
        size: usize,
    }

    // SAFETY: the memory belongs to the mapping, and is not written after it has been created.
    unsafe impl Send for Mapping {}
    // SAFETY: as above.
    unsafe impl Sync for Mapping {}

    impl Mapping {
        pub fn new(code: &[u8]) -> std::io::Result<Mapping> {
            let size = code.len().max(1);
            // SAFETY: a new mapping, at an address that the system chooses.
            let start =
                unsafe { mmap(std::ptr::null_mut(), size, READ_WRITE_EXECUTE, PRIVATE_ANONYMOUS_JIT, -1, 0) };
            let Some(start) = NonNull::new(start).filter(|start| start.as_ptr().addr() != usize::MAX) else {
                return Err(std::io::Error::last_os_error());
            };
            let mapping = Mapping { start, size };
            // SAFETY: the mapping has the size, and nobody else knows it. This thread executes no compiled code between
            // the two changes of protection.
            unsafe {
                pthread_jit_write_protect_np(0);
                std::ptr::copy_nonoverlapping(code.as_ptr(), start.as_ptr().cast(), code.len());
                pthread_jit_write_protect_np(1);
                sys_icache_invalidate(start.as_ptr(), size);
            }
            Ok(mapping)
        }

        pub fn as_ptr(&self) -> *const u8 {
            self.start.as_ptr().cast()
        }
    }

    impl Drop for Mapping {
        fn drop(&mut self) {
            // SAFETY: the mapping was created with this size, and is not used any more.
            unsafe { munmap(self.start.as_ptr(), self.size) };
        }
    }
}
