//! Accesses through single host instructions.

use std::arch::asm;
use std::arch::x86_64::__m256i;

/// Loads and stores in one instruction: at an address, and at a base plus an offset.
macro_rules! accesses {
    ($ty:ty, $wide:ty, $moved:literal, $size:literal, $value:literal,
        $load:ident, $load_at:ident, $store:ident, $store_at:ident) => {
        /// # Safety
        /// The bytes at `at` can be read.
        #[inline(always)]
        pub unsafe fn $load(at: *const u8) -> $ty {
            let value: $wide;
            // SAFETY: the caller guarantees that the bytes can be read. `pure` lets the compiler drop a load
            // whose value is unused, as it may drop a relaxed atomic load.
            unsafe {
                asm!(concat!($moved, ", ", $size, " ptr [{at}]"), value = lateout(reg) value, at = in(reg) at,
                    options(pure, readonly, nostack, preserves_flags));
            }
            value as $ty
        }

        /// # Safety
        /// The bytes at `base + offset` can be read.
        #[inline(always)]
        pub unsafe fn $load_at(base: *const u8, offset: usize) -> $ty {
            let value: $wide;
            // SAFETY: the caller guarantees that the bytes can be read.
            unsafe {
                asm!(concat!($moved, ", ", $size, " ptr [{base} + {offset}]"), value = lateout(reg) value,
                    base = in(reg) base, offset = in(reg) offset,
                    options(pure, readonly, nostack, preserves_flags));
            }
            value as $ty
        }

        /// # Safety
        /// The bytes at `at` can be written.
        #[inline(always)]
        pub unsafe fn $store(at: *mut u8, value: $ty) {
            // SAFETY: the caller guarantees that the bytes can be written.
            unsafe {
                asm!(concat!("mov ", $size, " ptr [{at}], ", $value), value = in(reg) value as $wide,
                    at = in(reg) at, options(nostack, preserves_flags));
            }
        }

        /// # Safety
        /// The bytes at `base + offset` can be written.
        #[inline(always)]
        pub unsafe fn $store_at(base: *mut u8, offset: usize, value: $ty) {
            // SAFETY: the caller guarantees that the bytes can be written.
            unsafe {
                asm!(concat!("mov ", $size, " ptr [{base} + {offset}], ", $value), value = in(reg) value as $wide,
                    base = in(reg) base, offset = in(reg) offset, options(nostack, preserves_flags));
            }
        }
    };
}

accesses!(u8, u32, "movzx {value:e}", "byte", "{value:l}", load_u8, load_u8_at, store_u8, store_u8_at);
accesses!(u16, u32, "movzx {value:e}", "word", "{value:x}", load_u16, load_u16_at, store_u16, store_u16_at);
accesses!(u32, u32, "mov {value:e}", "dword", "{value:e}", load_u32, load_u32_at, store_u32, store_u32_at);
accesses!(u64, u64, "mov {value}", "qword", "{value}", load_u64, load_u64_at, store_u64, store_u64_at);

/// Loads 32 bytes at a constant offset.
///
/// # Safety
/// The bytes at `base + OFFSET` can be read.
#[target_feature(enable = "avx")]
#[inline]
pub unsafe fn load_256<const OFFSET: usize>(base: *const u8) -> __m256i {
    let value: __m256i;
    // SAFETY: the caller guarantees that the bytes can be read.
    unsafe {
        asm!("vmovdqu {value}, ymmword ptr [{base} + {offset}]", value = lateout(ymm_reg) value,
            base = in(reg) base, offset = const OFFSET,
            options(pure, readonly, nostack, preserves_flags));
    }
    value
}

/// Loads 32 bytes at a variable offset.
///
/// # Safety
/// The bytes at `base + offset` can be read.
#[target_feature(enable = "avx")]
#[inline]
pub unsafe fn load_256_at(base: *const u8, offset: usize) -> __m256i {
    let value: __m256i;
    // SAFETY: the caller guarantees that the bytes can be read.
    unsafe {
        asm!("vmovdqu {value}, ymmword ptr [{base} + {offset}]", value = lateout(ymm_reg) value,
            base = in(reg) base, offset = in(reg) offset,
            options(pure, readonly, nostack, preserves_flags));
    }
    value
}

/// Loads one dword and broadcasts it to eight lanes.
///
/// # Safety
/// The bytes at `base + offset` can be read.
#[target_feature(enable = "avx2")]
#[inline]
pub unsafe fn broadcast_u32_at(base: *const u8, offset: usize) -> __m256i {
    let value: __m256i;
    // SAFETY: the caller guarantees that the bytes can be read.
    unsafe {
        asm!("vpbroadcastd {value}, dword ptr [{base} + {offset}]", value = lateout(ymm_reg) value,
            base = in(reg) base, offset = in(reg) offset,
            options(pure, readonly, nostack, preserves_flags));
    }
    value
}

/// # Safety
/// The bytes at `base + OFFSET` can be written.
#[target_feature(enable = "avx")]
#[inline]
pub unsafe fn store_256<const OFFSET: usize>(base: *mut u8, value: __m256i) {
    // SAFETY: the caller guarantees that the bytes can be written.
    unsafe {
        asm!("vmovdqu ymmword ptr [{base} + {offset}], {value}", value = in(ymm_reg) value,
            base = in(reg) base, offset = const OFFSET, options(nostack, preserves_flags));
    }
}

/// Loads the low and the high half of a vector from two offsets.
///
/// # Safety
/// The bytes at `base + LOW` and `base + HIGH` can be read.
#[target_feature(enable = "avx2")]
#[inline]
pub unsafe fn load_halves<const LOW: usize, const HIGH: usize>(base: *const u8) -> __m256i {
    let value: __m256i;
    // SAFETY: the caller guarantees that 16 bytes at each offset can be read.
    unsafe {
        asm!("vmovdqu {value:x}, xmmword ptr [{base} + {low}]",
            "vinserti128 {value}, {value}, xmmword ptr [{base} + {high}], 1",
            value = lateout(ymm_reg) value, base = in(reg) base, low = const LOW, high = const HIGH,
            options(pure, readonly, nostack, preserves_flags));
    }
    value
}

/// Stores the low and the high half of a vector at two offsets.
///
/// # Safety
/// The bytes at `base + LOW` and `base + HIGH` can be written.
#[target_feature(enable = "avx2")]
#[inline]
pub unsafe fn store_halves<const LOW: usize, const HIGH: usize>(base: *mut u8, value: __m256i) {
    // SAFETY: the caller guarantees that 16 bytes at each offset can be written.
    unsafe {
        asm!("vmovdqu xmmword ptr [{base} + {low}], {value:x}",
            "vextracti128 xmmword ptr [{base} + {high}], {value}, 1",
            value = in(ymm_reg) value, base = in(reg) base, low = const LOW, high = const HIGH,
            options(nostack, preserves_flags));
    }
}
