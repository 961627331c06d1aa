//! Accesses through relaxed atomics.

#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::*;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64};

macro_rules! accesses {
    ($ty:ty, $atomic:ty, $load:ident, $load_at:ident, $store:ident, $store_at:ident) => {
        /// # Safety
        /// The bytes at `at` can be read.
        #[inline(always)]
        pub unsafe fn $load(at: *const u8) -> $ty {
            let at = at.cast_mut();
            // SAFETY: the caller guarantees that the bytes can be read. The access is aligned, or made byte
            // by byte. A load through an atomic writes nothing.
            unsafe {
                if at.cast::<$ty>().is_aligned() {
                    return <$atomic>::from_ptr(at.cast()).load(Relaxed);
                }
                let byte = |k| AtomicU8::from_ptr(at.add(k)).load(Relaxed);
                <$ty>::from_ne_bytes(std::array::from_fn(byte))
            }
        }

        /// # Safety
        /// The bytes at `base + offset` can be read.
        #[inline(always)]
        pub unsafe fn $load_at(base: *const u8, offset: usize) -> $ty {
            // SAFETY: the caller upholds the contract of this function, which is that of the callee.
            unsafe { $load(base.add(offset)) }
        }

        /// # Safety
        /// The bytes at `at` can be written.
        #[inline(always)]
        pub unsafe fn $store(at: *mut u8, value: $ty) {
            // SAFETY: the caller guarantees that the bytes can be written. The access is aligned, or made
            // byte by byte.
            unsafe {
                if at.cast::<$ty>().is_aligned() {
                    return <$atomic>::from_ptr(at.cast()).store(value, Relaxed);
                }
                for (k, byte) in value.to_ne_bytes().into_iter().enumerate() {
                    AtomicU8::from_ptr(at.add(k)).store(byte, Relaxed);
                }
            }
        }

        /// # Safety
        /// The bytes at `base + offset` can be written.
        #[inline(always)]
        pub unsafe fn $store_at(base: *mut u8, offset: usize, value: $ty) {
            // SAFETY: the caller upholds the contract of this function, which is that of the callee.
            unsafe { $store(base.add(offset), value) }
        }
    };
}

accesses!(u8, AtomicU8, load_u8, load_u8_at, store_u8, store_u8_at);
accesses!(u16, AtomicU16, load_u16, load_u16_at, store_u16, store_u16_at);
accesses!(u32, AtomicU32, load_u32, load_u32_at, store_u32, store_u32_at);
accesses!(u64, AtomicU64, load_u64, load_u64_at, store_u64, store_u64_at);

/// # Safety
/// The bytes at `base + offset` can be read.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx")]
#[inline]
pub unsafe fn load_256_at(base: *const u8, offset: usize) -> __m256i {
    // SAFETY: the caller guarantees that 32 bytes can be read.
    let [a, b, c, d] = [0, 8, 16, 24].map(|at| unsafe { load_u64_at(base, offset + at) } as i64);
    _mm256_set_epi64x(d, c, b, a)
}

/// # Safety
/// The bytes at `base + OFFSET` can be read.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx")]
#[inline]
pub unsafe fn load_256<const OFFSET: usize>(base: *const u8) -> __m256i {
    // SAFETY: the caller guarantees that 32 bytes can be read.
    unsafe { load_256_at(base, OFFSET) }
}

/// # Safety
/// The bytes at `base + offset` can be read.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
#[inline]
pub unsafe fn broadcast_u32_at(base: *const u8, offset: usize) -> __m256i {
    // SAFETY: the caller guarantees that four bytes can be read.
    _mm256_set1_epi32(unsafe { load_u32_at(base, offset) } as i32)
}

/// # Safety
/// The bytes at `base + OFFSET` can be written.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx")]
#[inline]
pub unsafe fn store_256<const OFFSET: usize>(base: *mut u8, value: __m256i) {
    // SAFETY: the caller guarantees that 32 bytes can be written. Every bit pattern is valid for words.
    unsafe {
        let words: [u64; 4] = std::mem::transmute(value);
        for (k, word) in words.into_iter().enumerate() {
            store_u64_at(base, OFFSET + 8 * k, word);
        }
    }
}

/// # Safety
/// The bytes at `base + LOW` and `base + HIGH` can be read.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx")]
#[inline]
pub unsafe fn load_halves<const LOW: usize, const HIGH: usize>(base: *const u8) -> __m256i {
    // SAFETY: the caller guarantees that 16 bytes at each offset can be read.
    let [a, b, c, d] = [LOW, LOW + 8, HIGH, HIGH + 8].map(|at| unsafe { load_u64_at(base, at) } as i64);
    _mm256_set_epi64x(d, c, b, a)
}

/// # Safety
/// The bytes at `base + LOW` and `base + HIGH` can be written.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx")]
#[inline]
pub unsafe fn store_halves<const LOW: usize, const HIGH: usize>(base: *mut u8, value: __m256i) {
    // SAFETY: the caller guarantees that 16 bytes at each offset can be written. Every bit pattern is valid
    // for words.
    unsafe {
        let words: [u64; 4] = std::mem::transmute(value);
        for (word, at) in words.into_iter().zip([LOW, LOW + 8, HIGH, HIGH + 8]) {
            store_u64_at(base, at, word);
        }
    }
}
