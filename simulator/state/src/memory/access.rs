//! Accesses to memory that other host threads may access at the same time: global memory, which is shared by
//! the threads that run workgroups and by the embedder's own threads.
//!
//! A kernel with a data race is a wrong kernel, but it must not cause undefined behaviour in the simulator.
//! Plain Rust accesses would, and relaxed 32-bit atomics alone would keep block copies from using vector
//! instructions, because compilers do not combine atomics. So there are two implementations of the same few
//! functions:
//!
//! - On x86-64, `asm!` blocks of one move instruction each. The compiler must treat them as opaque accesses.
//!   For the host they are ordinary moves, whose races its memory model defines for every size and alignment,
//!   even where threads access the same location with different sizes. An aligned access of up to eight bytes
//!   is single-copy atomic.
//! - Elsewhere, under Miri, and with `--cfg portable_memory` (sanitizers do not instrument `asm!`), relaxed
//!   atomics of the access's size where the address is aligned, and of bytes where it is not.
//!
//! Nothing here creates a reference to the memory.

#[cfg(any(test, not(all(target_arch = "x86_64", not(any(miri, portable_memory))))))]
mod portable;
#[cfg(test)]
mod tests;
#[cfg(all(target_arch = "x86_64", not(any(miri, portable_memory))))]
mod x86_64;

#[cfg(not(all(target_arch = "x86_64", not(any(miri, portable_memory)))))]
use portable as host;
#[cfg(all(target_arch = "x86_64", not(any(miri, portable_memory))))]
use x86_64 as host;

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

#[cfg(target_arch = "x86_64")]
pub use host::{broadcast_u32_at, load_256, load_256_at, load_halves, store_256, store_halves};
pub use host::{load_u8, load_u16, load_u32, load_u64, store_u8, store_u16, store_u32, store_u64};
pub use host::{load_u8_at, load_u16_at, load_u32_at, load_u64_at};
pub use host::{store_u8_at, store_u16_at, store_u32_at, store_u64_at};

/// Loads and stores at a base and an offset, for one kind of memory.
pub trait Access {
    /// # Safety
    /// The byte can be read.
    unsafe fn load_u8(base: *const u8, offset: usize) -> u8;
    /// # Safety
    /// The bytes can be read.
    unsafe fn load_u16(base: *const u8, offset: usize) -> u16;
    /// # Safety
    /// The bytes can be read.
    unsafe fn load_u32(base: *const u8, offset: usize) -> u32;
    /// # Safety
    /// The bytes can be read.
    unsafe fn load_u64(base: *const u8, offset: usize) -> u64;
    /// # Safety
    /// The byte can be written.
    unsafe fn store_u8(base: *mut u8, offset: usize, value: u8);
    /// # Safety
    /// The bytes can be written.
    unsafe fn store_u16(base: *mut u8, offset: usize, value: u16);
    /// # Safety
    /// The bytes can be written.
    unsafe fn store_u32(base: *mut u8, offset: usize, value: u32);
    /// # Safety
    /// The bytes can be written.
    unsafe fn store_u64(base: *mut u8, offset: usize, value: u64);
    /// Loads one dword and broadcasts it to eight lanes.
    ///
    /// # Safety
    /// The bytes can be read; the host has AVX2.
    #[cfg(target_arch = "x86_64")]
    unsafe fn broadcast_u32(base: *const u8, offset: usize) -> std::arch::x86_64::__m256i;
    /// # Safety
    /// The bytes can be read; the host has AVX2.
    #[cfg(target_arch = "x86_64")]
    unsafe fn load_256(base: *const u8, offset: usize) -> std::arch::x86_64::__m256i;
}

/// Memory that other host threads may access; uses the functions of this module.
pub enum Shared {}

/// Memory of one workgroup or wave, which a single host thread runs. Uses plain Rust accesses, which the
/// compiler can fold and combine.
pub enum Own {}

macro_rules! integers {
    ($($ty:ty, $load:ident, $load_at:ident, $store:ident, $store_at:ident;)*) => {
        impl Access for Shared {
            $(
                #[inline(always)]
                unsafe fn $load(base: *const u8, offset: usize) -> $ty {
                    // SAFETY: the caller upholds the contract of this method, which is that of the function.
                    unsafe { $load_at(base, offset) }
                }

                #[inline(always)]
                unsafe fn $store(base: *mut u8, offset: usize, value: $ty) {
                    // SAFETY: the caller upholds the contract of this method, which is that of the function.
                    unsafe { $store_at(base, offset, value) }
                }
            )*

            #[cfg(target_arch = "x86_64")]
            #[inline(always)]
            unsafe fn broadcast_u32(base: *const u8, offset: usize) -> std::arch::x86_64::__m256i {
                // SAFETY: the caller guarantees that the bytes can be read and that the host has AVX2.
                unsafe { broadcast_u32_at(base, offset) }
            }

            #[cfg(target_arch = "x86_64")]
            #[inline(always)]
            unsafe fn load_256(base: *const u8, offset: usize) -> std::arch::x86_64::__m256i {
                // SAFETY: the caller guarantees that the bytes can be read and that the host has AVX2.
                unsafe { load_256_at(base, offset) }
            }
        }

        impl Access for Own {
            $(
                #[inline(always)]
                unsafe fn $load(base: *const u8, offset: usize) -> $ty {
                    // SAFETY: the caller guarantees that the bytes can be read.
                    unsafe { base.add(offset).cast::<$ty>().read_unaligned() }
                }

                #[inline(always)]
                unsafe fn $store(base: *mut u8, offset: usize, value: $ty) {
                    // SAFETY: the caller guarantees that the bytes can be written.
                    unsafe { base.add(offset).cast::<$ty>().write_unaligned(value) }
                }
            )*

            #[cfg(target_arch = "x86_64")]
            #[inline(always)]
            unsafe fn broadcast_u32(base: *const u8, offset: usize) -> std::arch::x86_64::__m256i {
                // SAFETY: the caller guarantees that the bytes can be read and that the host has AVX2.
                unsafe { std::arch::x86_64::_mm256_set1_epi32(Own::load_u32(base, offset) as i32) }
            }

            #[cfg(target_arch = "x86_64")]
            #[inline(always)]
            unsafe fn load_256(base: *const u8, offset: usize) -> std::arch::x86_64::__m256i {
                // SAFETY: the caller guarantees that the bytes can be read and that the host has AVX2.
                unsafe { std::arch::x86_64::_mm256_loadu_si256(base.add(offset).cast()) }
            }
        }
    };
}

integers! {
    u8, load_u8, load_u8_at, store_u8, store_u8_at;
    u16, load_u16, load_u16_at, store_u16, store_u16_at;
    u32, load_u32, load_u32_at, store_u32, store_u32_at;
    u64, load_u64, load_u64_at, store_u64, store_u64_at;
}

/// Stores a naturally aligned word of 4 bytes if it still is `old`, in one step; returns whether it was. For all threads,
/// such exchanges happen in one order.
///
/// # Safety
/// The word can be written, and its address is a multiple of 4.
#[inline(always)]
pub unsafe fn exchange_u32(pointer: *mut u8, old: u32, new: u32) -> bool {
    // SAFETY: the caller guarantees a valid, aligned word, which others access through this module.
    let word = unsafe { AtomicU32::from_ptr(pointer.cast()) };
    word.compare_exchange(old, new, Ordering::SeqCst, Ordering::SeqCst).is_ok()
}

/// As [`exchange_u32`], 8 bytes.
///
/// # Safety
/// The word can be written, and its address is a multiple of 8.
#[inline(always)]
pub unsafe fn exchange_u64(pointer: *mut u8, old: u64, new: u64) -> bool {
    // SAFETY: as in `exchange_u32`.
    let word = unsafe { AtomicU64::from_ptr(pointer.cast()) };
    word.compare_exchange(old, new, Ordering::SeqCst, Ordering::SeqCst).is_ok()
}

/// Loads `N` bytes in as few accesses as possible.
///
/// # Safety
/// The bytes can be read.
#[inline(always)]
pub unsafe fn load<const N: usize>(pointer: *const u8) -> [u8; N] {
    let mut bytes = [0; N];
    let mut done = 0;
    // SAFETY: the caller guarantees that `N` bytes can be read; only bytes below `N` are.
    unsafe {
        while N - done >= 8 {
            bytes[done..done + 8].copy_from_slice(&load_u64(pointer.add(done)).to_ne_bytes());
            done += 8;
        }
        if N - done >= 4 {
            bytes[done..done + 4].copy_from_slice(&load_u32(pointer.add(done)).to_ne_bytes());
            done += 4;
        }
        if N - done >= 2 {
            bytes[done..done + 2].copy_from_slice(&load_u16(pointer.add(done)).to_ne_bytes());
            done += 2;
        }
        if N - done >= 1 {
            bytes[done] = load_u8(pointer.add(done));
        }
    }
    bytes
}

/// Stores `N` bytes: the reverse of [`load`].
///
/// # Safety
/// `N` bytes can be written.
#[inline(always)]
pub unsafe fn store<const N: usize>(pointer: *mut u8, bytes: [u8; N]) {
    let part = |from: usize, len: usize| {
        let mut part = [0; 8];
        part[..len].copy_from_slice(&bytes[from..from + len]);
        part
    };
    let mut done = 0;
    // SAFETY: the caller guarantees that `N` bytes can be written; only bytes below `N` are.
    unsafe {
        while N - done >= 8 {
            store_u64(pointer.add(done), u64::from_ne_bytes(part(done, 8)));
            done += 8;
        }
        if N - done >= 4 {
            let [a, b, c, d, ..] = part(done, 4);
            store_u32(pointer.add(done), u32::from_ne_bytes([a, b, c, d]));
            done += 4;
        }
        if N - done >= 2 {
            let [a, b, ..] = part(done, 2);
            store_u16(pointer.add(done), u16::from_ne_bytes([a, b]));
            done += 2;
        }
        if N - done >= 1 {
            store_u8(pointer.add(done), bytes[done]);
        }
    }
}

/// Copies bytes from memory to `out`.
///
/// # Safety
/// `out.len()` bytes at `from` can be read and do not overlap `out`.
pub unsafe fn read(from: *const u8, out: &mut [u8]) {
    let (words, rest) = out.as_chunks_mut::<8>();
    let whole = 8 * words.len();
    for (word, at) in words.iter_mut().zip((0..).step_by(8)) {
        // SAFETY: the caller guarantees that `out.len()` bytes can be read.
        *word = unsafe { load_u64_at(from, at) }.to_ne_bytes();
    }
    for (byte, at) in rest.iter_mut().zip(whole..) {
        // SAFETY: the caller guarantees that `out.len()` bytes can be read.
        *byte = unsafe { load_u8_at(from, at) };
    }
}

/// Copies `bytes` to memory.
///
/// # Safety
/// `bytes.len()` bytes at `to` can be written and do not overlap `bytes`.
pub unsafe fn write(to: *mut u8, bytes: &[u8]) {
    let (words, rest) = bytes.as_chunks::<8>();
    let whole = 8 * words.len();
    for (word, at) in words.iter().zip((0..).step_by(8)) {
        // SAFETY: the caller guarantees that `bytes.len()` bytes can be written.
        unsafe { store_u64_at(to, at, u64::from_ne_bytes(*word)) };
    }
    for (byte, at) in rest.iter().zip(whole..) {
        // SAFETY: the caller guarantees that `bytes.len()` bytes can be written.
        unsafe { store_u8_at(to, at, *byte) };
    }
}

/// Loads 32 consecutive dwords.
///
/// # Safety
/// 128 bytes at `from` can be read. On x86-64 the host has AVX.
#[inline(always)]
pub unsafe fn load_lane_vec(from: *const u8) -> [u32; 32] {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: the caller guarantees that 128 bytes can be read and that the host has AVX. Every bit pattern
    // is valid for dwords.
    unsafe {
        std::mem::transmute([
            load_256::<0>(from),
            load_256::<32>(from),
            load_256::<64>(from),
            load_256::<96>(from),
        ])
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        let mut vec = [0; 32];
        for l in 0..32 {
            // SAFETY: the caller guarantees that 128 bytes can be read.
            vec[l] = unsafe { load_u32(from.add(4 * l)) };
        }
        vec
    }
}

/// Stores 32 consecutive dwords: the reverse of [`load_lane_vec`].
///
/// # Safety
/// 128 bytes at `to` can be written. On x86-64 the host has AVX.
#[inline(always)]
pub unsafe fn store_lane_vec(to: *mut u8, vec: &[u32; 32]) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: the caller guarantees that 128 bytes can be written and that the host has AVX. Every bit
    // pattern is valid for SIMD vectors.
    unsafe {
        let [a, b, c, d]: [std::arch::x86_64::__m256i; 4] = std::mem::transmute(*vec);
        store_256::<0>(to, a);
        store_256::<32>(to, b);
        store_256::<64>(to, c);
        store_256::<96>(to, d);
    }
    #[cfg(not(target_arch = "x86_64"))]
    for l in 0..32 {
        // SAFETY: the caller guarantees that 128 bytes can be written.
        unsafe { store_u32(to.add(4 * l), vec[l]) };
    }
}
