//! Accesses to memory that other host threads may be accessing: global memory, which workgroups on several threads and the embedder's
//! own threads share.
//!
//! A kernel with a data race is a wrong kernel, but it must not be undefined behaviour of the simulator. Plain Rust accesses would make
//! it that, and relaxed atomics of 32 bits alone would cost the block copies their vectors: compilers do not combine atomics. So there
//! are two implementations of the same few functions:
//!
//! * On x86-64, `asm!` blocks of one move instruction each. To the compiler they are accesses by code that it does not see; to the
//!   host they are ordinary moves, whose races its memory model defines for every size and alignment, as it does where threads access one
//!   place with different sizes. An aligned access of up to eight bytes is single-copy atomic.
//! * Elsewhere, under Miri, and with `--cfg portable_memory` (sanitizers do not see into `asm!`), relaxed atomics of the access's size
//!   where the address is aligned, and of bytes where it is not.
//!
//! Nothing here makes a reference to the memory.

#[cfg(not(all(target_arch = "x86_64", not(any(miri, portable_memory)))))]
use portable as host;
#[cfg(all(target_arch = "x86_64", not(any(miri, portable_memory))))]
use x86_64 as host;

#[cfg(target_arch = "x86_64")]
pub use host::{broadcast_u32_at, load_256, load_256_at, load_halves, store_256, store_halves};
pub use host::{load_u8, load_u16, load_u32, load_u64, store_u8, store_u16, store_u32, store_u64};
pub use host::{load_u8_at, load_u16_at, load_u32_at, load_u64_at};
pub use host::{store_u8_at, store_u16_at, store_u32_at, store_u64_at};

/// How bytes at a base and an offset are accessed, by whose they are.
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
    /// One dword eight times.
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

/// Memory that other host threads may be accessing: by the functions of this module.
pub enum Shared {}

/// Memory of one workgroup or wave, which one host thread runs: plain Rust, so that the compiler can fold and combine the accesses.
pub enum Own {}

macro_rules! integers {
    ($($ty:ty, $load:ident, $load_at:ident, $store:ident, $store_at:ident;)*) => {
        impl Access for Shared {
            $(
                #[inline(always)]
                unsafe fn $load(base: *const u8, offset: usize) -> $ty {
                    // SAFETY: by the contract.
                    unsafe { $load_at(base, offset) }
                }

                #[inline(always)]
                unsafe fn $store(base: *mut u8, offset: usize, value: $ty) {
                    // SAFETY: by the contract.
                    unsafe { $store_at(base, offset, value) }
                }
            )*

            #[cfg(target_arch = "x86_64")]
            #[inline(always)]
            unsafe fn broadcast_u32(base: *const u8, offset: usize) -> std::arch::x86_64::__m256i {
                // SAFETY: by the contract.
                unsafe { broadcast_u32_at(base, offset) }
            }

            #[cfg(target_arch = "x86_64")]
            #[inline(always)]
            unsafe fn load_256(base: *const u8, offset: usize) -> std::arch::x86_64::__m256i {
                // SAFETY: by the contract.
                unsafe { load_256_at(base, offset) }
            }
        }

        impl Access for Own {
            $(
                #[inline(always)]
                unsafe fn $load(base: *const u8, offset: usize) -> $ty {
                    // SAFETY: by the contract.
                    unsafe { base.add(offset).cast::<$ty>().read_unaligned() }
                }

                #[inline(always)]
                unsafe fn $store(base: *mut u8, offset: usize, value: $ty) {
                    // SAFETY: by the contract.
                    unsafe { base.add(offset).cast::<$ty>().write_unaligned(value) }
                }
            )*

            #[cfg(target_arch = "x86_64")]
            #[inline(always)]
            unsafe fn broadcast_u32(base: *const u8, offset: usize) -> std::arch::x86_64::__m256i {
                // SAFETY: by the contract.
                unsafe { std::arch::x86_64::_mm256_set1_epi32(Own::load_u32(base, offset) as i32) }
            }

            #[cfg(target_arch = "x86_64")]
            #[inline(always)]
            unsafe fn load_256(base: *const u8, offset: usize) -> std::arch::x86_64::__m256i {
                // SAFETY: by the contract.
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

/// `N` bytes, in as few accesses as there are.
///
/// # Safety
/// The bytes can be read.
#[inline(always)]
pub unsafe fn load<const N: usize>(at: *const u8) -> [u8; N] {
    let mut bytes = [0; N];
    let mut done = 0;
    // SAFETY: by the contract: only bytes below `N`.
    unsafe {
        while N - done >= 8 {
            bytes[done..done + 8].copy_from_slice(&load_u64(at.add(done)).to_ne_bytes());
            done += 8;
        }
        if N - done >= 4 {
            bytes[done..done + 4].copy_from_slice(&load_u32(at.add(done)).to_ne_bytes());
            done += 4;
        }
        if N - done >= 2 {
            bytes[done..done + 2].copy_from_slice(&load_u16(at.add(done)).to_ne_bytes());
            done += 2;
        }
        if N - done >= 1 {
            bytes[done] = load_u8(at.add(done));
        }
    }
    bytes
}

/// The reverse of [`load`].
///
/// # Safety
/// `N` bytes can be written.
#[inline(always)]
pub unsafe fn store<const N: usize>(at: *mut u8, bytes: [u8; N]) {
    let part = |from: usize, len: usize| {
        let mut part = [0; 8];
        part[..len].copy_from_slice(&bytes[from..from + len]);
        part
    };
    let mut done = 0;
    // SAFETY: by the contract: only bytes below `N`.
    unsafe {
        while N - done >= 8 {
            store_u64(at.add(done), u64::from_ne_bytes(part(done, 8)));
            done += 8;
        }
        if N - done >= 4 {
            let [a, b, c, d, ..] = part(done, 4);
            store_u32(at.add(done), u32::from_ne_bytes([a, b, c, d]));
            done += 4;
        }
        if N - done >= 2 {
            let [a, b, ..] = part(done, 2);
            store_u16(at.add(done), u16::from_ne_bytes([a, b]));
            done += 2;
        }
        if N - done >= 1 {
            store_u8(at.add(done), bytes[done]);
        }
    }
}

/// Copies memory out.
///
/// # Safety
/// `out.len()` bytes at `from` can be read, and are not those of `out`.
pub unsafe fn read(from: *const u8, out: &mut [u8]) {
    let (words, rest) = out.as_chunks_mut::<8>();
    let whole = 8 * words.len();
    for (word, at) in words.iter_mut().zip((0..).step_by(8)) {
        // SAFETY: by the contract.
        *word = unsafe { load_u64_at(from, at) }.to_ne_bytes();
    }
    for (byte, at) in rest.iter_mut().zip(whole..) {
        // SAFETY: by the contract.
        *byte = unsafe { load_u8_at(from, at) };
    }
}

/// Copies into memory.
///
/// # Safety
/// `bytes.len()` bytes at `to` can be written, and are not those of `bytes`.
pub unsafe fn write(to: *mut u8, bytes: &[u8]) {
    let (words, rest) = bytes.as_chunks::<8>();
    let whole = 8 * words.len();
    for (word, at) in words.iter().zip((0..).step_by(8)) {
        // SAFETY: by the contract.
        unsafe { store_u64_at(to, at, u64::from_ne_bytes(*word)) };
    }
    for (byte, at) in rest.iter().zip(whole..) {
        // SAFETY: by the contract.
        unsafe { store_u8_at(to, at, *byte) };
    }
}

/// 32 dwords, one after the other.
///
/// # Safety
/// 128 bytes at `from` can be read. On x86-64 the host has AVX.
#[inline(always)]
pub unsafe fn load_lane_vec(from: *const u8) -> [u32; 32] {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: by the contract; any bits are dwords.
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
        let mut row = [0; 32];
        for l in 0..32 {
            // SAFETY: by the contract.
            row[l] = unsafe { load_u32(from.add(4 * l)) };
        }
        row
    }
}

/// The reverse of [`load_lane_vec`].
///
/// # Safety
/// 128 bytes at `to` can be written. On x86-64 the host has AVX.
#[inline(always)]
pub unsafe fn store_lane_vec(to: *mut u8, row: &[u32; 32]) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: by the contract; any bits are vectors.
    unsafe {
        let [a, b, c, d]: [std::arch::x86_64::__m256i; 4] = std::mem::transmute(*row);
        store_256::<0>(to, a);
        store_256::<32>(to, b);
        store_256::<64>(to, c);
        store_256::<96>(to, d);
    }
    #[cfg(not(target_arch = "x86_64"))]
    for l in 0..32 {
        // SAFETY: by the contract.
        unsafe { store_u32(to.add(4 * l), row[l]) };
    }
}

/// By the host's own instructions.
#[cfg(all(target_arch = "x86_64", not(any(miri, portable_memory))))]
mod x86_64 {
    use std::arch::asm;
    use std::arch::x86_64::__m256i;

    /// Loads and stores by one instruction: of an address, and of a base and an offset.
    macro_rules! accesses {
        ($ty:ty, $wide:ty, $moved:literal, $size:literal, $value:literal,
            $load:ident, $load_at:ident, $store:ident, $store_at:ident) => {
            /// # Safety
            /// The bytes at `at` can be read.
            #[inline(always)]
            pub unsafe fn $load(at: *const u8) -> $ty {
                let value: $wide;
                // SAFETY: a load of bytes that can be read. `pure`: one that nobody needs may be left out, as a relaxed atomic's.
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
                // SAFETY: as above.
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
                // SAFETY: a store to bytes that can be written.
                unsafe {
                    asm!(concat!("mov ", $size, " ptr [{at}], ", $value), value = in(reg) value as $wide,
                        at = in(reg) at, options(nostack, preserves_flags));
                }
            }

            /// # Safety
            /// The bytes at `base + offset` can be written.
            #[inline(always)]
            pub unsafe fn $store_at(base: *mut u8, offset: usize, value: $ty) {
                // SAFETY: as above.
                unsafe {
                    asm!(concat!("mov ", $size, " ptr [{base} + {offset}], ", $value), value = in(reg) value as $wide,
                        base = in(reg) base, offset = in(reg) offset, options(nostack, preserves_flags));
                }
            }
        };
    }

    accesses!(u8, u32, "movzx {value:e}", "byte", "{value:l}", load_u8, load_u8_at, store_u8, store_u8_at);
    accesses!(
        u16,
        u32,
        "movzx {value:e}",
        "word",
        "{value:x}",
        load_u16,
        load_u16_at,
        store_u16,
        store_u16_at
    );
    accesses!(
        u32,
        u32,
        "mov {value:e}",
        "dword",
        "{value:e}",
        load_u32,
        load_u32_at,
        store_u32,
        store_u32_at
    );
    accesses!(u64, u64, "mov {value}", "qword", "{value}", load_u64, load_u64_at, store_u64, store_u64_at);

    /// The same for vectors, at an offset that the compiler knows.
    ///
    /// # Safety
    /// The bytes at `base + OFFSET` can be read.
    #[target_feature(enable = "avx")]
    #[inline]
    pub unsafe fn load_256<const OFFSET: usize>(base: *const u8) -> __m256i {
        let value: __m256i;
        // SAFETY: as above.
        unsafe {
            asm!("vmovdqu {value}, ymmword ptr [{base} + {offset}]", value = lateout(ymm_reg) value,
                base = in(reg) base, offset = const OFFSET,
                options(pure, readonly, nostack, preserves_flags));
        }
        value
    }

    /// At an offset that it does not know.
    ///
    /// # Safety
    /// The bytes at `base + offset` can be read.
    #[target_feature(enable = "avx")]
    #[inline]
    pub unsafe fn load_256_at(base: *const u8, offset: usize) -> __m256i {
        let value: __m256i;
        // SAFETY: as above.
        unsafe {
            asm!("vmovdqu {value}, ymmword ptr [{base} + {offset}]", value = lateout(ymm_reg) value,
                base = in(reg) base, offset = in(reg) offset,
                options(pure, readonly, nostack, preserves_flags));
        }
        value
    }

    /// One dword eight times.
    ///
    /// # Safety
    /// The bytes at `base + offset` can be read.
    #[target_feature(enable = "avx2")]
    #[inline]
    pub unsafe fn broadcast_u32_at(base: *const u8, offset: usize) -> __m256i {
        let value: __m256i;
        // SAFETY: as above.
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
        // SAFETY: as above.
        unsafe {
            asm!("vmovdqu ymmword ptr [{base} + {offset}], {value}", value = in(ymm_reg) value,
                base = in(reg) base, offset = const OFFSET, options(nostack, preserves_flags));
        }
    }

    /// 16 bytes each for the low and the high half of a vector.
    ///
    /// # Safety
    /// The bytes at `base + LOW` and `base + HIGH` can be read.
    #[target_feature(enable = "avx2")]
    #[inline]
    pub unsafe fn load_halves<const LOW: usize, const HIGH: usize>(base: *const u8) -> __m256i {
        let value: __m256i;
        // SAFETY: as above.
        unsafe {
            asm!("vmovdqu {value:x}, xmmword ptr [{base} + {low}]",
                "vinserti128 {value}, {value}, xmmword ptr [{base} + {high}], 1",
                value = lateout(ymm_reg) value, base = in(reg) base, low = const LOW, high = const HIGH,
                options(pure, readonly, nostack, preserves_flags));
        }
        value
    }

    /// The low and the high half of a vector, each to a place of its own.
    ///
    /// # Safety
    /// The bytes at `base + LOW` and `base + HIGH` can be written.
    #[target_feature(enable = "avx2")]
    #[inline]
    pub unsafe fn store_halves<const LOW: usize, const HIGH: usize>(base: *mut u8, value: __m256i) {
        // SAFETY: as above.
        unsafe {
            asm!("vmovdqu xmmword ptr [{base} + {low}], {value:x}",
                "vextracti128 xmmword ptr [{base} + {high}], {value}, 1",
                value = in(ymm_reg) value, base = in(reg) base, low = const LOW, high = const HIGH,
                options(nostack, preserves_flags));
        }
    }
}

/// By relaxed atomics.
#[cfg(any(test, not(all(target_arch = "x86_64", not(any(miri, portable_memory))))))]
mod portable {
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
                // SAFETY: by the contract; aligned, or byte by byte. A load through an atomic writes nothing.
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
                // SAFETY: by the contract.
                unsafe { $load(base.add(offset)) }
            }

            /// # Safety
            /// The bytes at `at` can be written.
            #[inline(always)]
            pub unsafe fn $store(at: *mut u8, value: $ty) {
                // SAFETY: by the contract; aligned, or byte by byte.
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
                // SAFETY: by the contract.
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
        // SAFETY: by the contract.
        let [a, b, c, d] = [0, 8, 16, 24].map(|at| unsafe { load_u64_at(base, offset + at) } as i64);
        _mm256_set_epi64x(d, c, b, a)
    }

    /// # Safety
    /// The bytes at `base + OFFSET` can be read.
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx")]
    #[inline]
    pub unsafe fn load_256<const OFFSET: usize>(base: *const u8) -> __m256i {
        // SAFETY: by the contract.
        unsafe { load_256_at(base, OFFSET) }
    }

    /// # Safety
    /// The bytes at `base + offset` can be read.
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2")]
    #[inline]
    pub unsafe fn broadcast_u32_at(base: *const u8, offset: usize) -> __m256i {
        // SAFETY: by the contract.
        _mm256_set1_epi32(unsafe { load_u32_at(base, offset) } as i32)
    }

    /// # Safety
    /// The bytes at `base + OFFSET` can be written.
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx")]
    #[inline]
    pub unsafe fn store_256<const OFFSET: usize>(base: *mut u8, value: __m256i) {
        // SAFETY: by the contract; any bits are words.
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
        // SAFETY: by the contract.
        let [a, b, c, d] = [LOW, LOW + 8, HIGH, HIGH + 8].map(|at| unsafe { load_u64_at(base, at) } as i64);
        _mm256_set_epi64x(d, c, b, a)
    }

    /// # Safety
    /// The bytes at `base + LOW` and `base + HIGH` can be written.
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx")]
    #[inline]
    pub unsafe fn store_halves<const LOW: usize, const HIGH: usize>(base: *mut u8, value: __m256i) {
        // SAFETY: by the contract; any bits are words.
        unsafe {
            let words: [u64; 4] = std::mem::transmute(value);
            for (word, at) in words.into_iter().zip([LOW, LOW + 8, HIGH, HIGH + 8]) {
                store_u64_at(base, at, word);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every size at every alignment, by both implementations.
    #[test]
    fn what_is_stored_is_loaded() {
        macro_rules! scalars {
            ($by:ident, $at:ident, $($load:ident $load_at:ident $store:ident $store_at:ident $value:literal,)*) => {$(
                let mut memory = [0u8; 64];
                // SAFETY: 16 bytes are before and after the place.
                unsafe {
                    let base = memory.as_mut_ptr();
                    $by::$store(base.add(16 + $at), $value);
                    assert_eq!($by::$load_at(base, 16 + $at), $value);
                    $by::$store_at(base, 24 + $at, $value);
                    assert_eq!($by::$load(base.add(24 + $at)), $value);
                }
                let bytes = $value.to_ne_bytes();
                let mut expected = [0u8; 64];
                expected[16 + $at..][..bytes.len()].copy_from_slice(&bytes);
                expected[24 + $at..][..bytes.len()].copy_from_slice(&bytes);
                assert_eq!(memory, expected);
            )*};
        }
        macro_rules! by {
            ($by:ident) => {
                for at in 0..8 {
                    scalars!(
                        $by, at,
                        load_u8 load_u8_at store_u8 store_u8_at 0x81u8,
                        load_u16 load_u16_at store_u16 store_u16_at 0x8123u16,
                        load_u32 load_u32_at store_u32 store_u32_at 0x8123_4567u32,
                        load_u64 load_u64_at store_u64 store_u64_at 0x8123_4567_89ab_cdefu64,
                    );
                }
            };
        }
        by!(host);
        by!(portable);
    }

    #[test]
    fn arrays_and_slices_are_copied_whole() {
        fn array<const N: usize>(memory: &mut [u8; 40]) {
            let bytes: [u8; N] = std::array::from_fn(|k| 1 + k as u8);
            // SAFETY: at most 16 bytes, three in.
            unsafe { store(memory.as_mut_ptr().add(3), bytes) };
            let end = 3 + N;
            assert!(memory[3..end] == bytes && memory[..3] == [0; 3] && memory[end..] == [0; 40][end..]);
            // SAFETY: likewise.
            assert_eq!(unsafe { load::<N>(memory.as_ptr().add(3)) }, bytes);
            *memory = [0; 40];
        }
        let mut memory = [0u8; 40];
        array::<1>(&mut memory);
        array::<2>(&mut memory);
        array::<3>(&mut memory);
        array::<4>(&mut memory);
        array::<6>(&mut memory);
        array::<7>(&mut memory);
        array::<8>(&mut memory);
        array::<12>(&mut memory);
        array::<16>(&mut memory);
        for len in 0..=24 {
            let bytes: Vec<u8> = (1..=len as u8).collect();
            let (mut memory, mut back) = ([0u8; 40], vec![0; len]);
            // SAFETY: at most 24 bytes, five in.
            unsafe {
                write(memory.as_mut_ptr().add(5), &bytes);
                read(memory.as_ptr().add(5), &mut back);
            }
            assert_eq!(back, bytes);
            assert!(memory[..5] == [0; 5] && memory[5 + len..].iter().all(|b| *b == 0));
        }
    }

    #[cfg(target_arch = "x86_64")]
    #[test]
    fn rows_are_their_dwords() {
        if !std::arch::is_x86_feature_detected!("avx2") {
            println!("skipped: the host has no AVX2");
            return;
        }
        let row: [u32; 32] = std::array::from_fn(|l| 0x0102_0304 * l as u32);
        for at in [0, 1, 4] {
            let mut memory = [0u8; 136];
            // SAFETY: 128 bytes follow the place, and the host has AVX2.
            let back = unsafe {
                store_lane_vec(memory.as_mut_ptr().add(at), &row);
                load_lane_vec(memory.as_ptr().add(at))
            };
            assert_eq!(back, row);
            let bytes: Vec<u8> = row.iter().flat_map(|word| word.to_ne_bytes()).collect();
            assert_eq!(memory[at..at + 128], bytes);
            // SAFETY: as above.
            unsafe {
                let vector = portable::load_256::<32>(memory.as_ptr().add(at));
                portable::store_256::<64>(memory.as_mut_ptr().add(at), vector);
                store_256::<0>(memory.as_mut_ptr().add(at), load_256_at(memory.as_ptr(), at + 96));
                let moved = load_lane_vec(memory.as_ptr().add(at));
                assert!(moved[16..24] == row[8..16] && moved[..8] == row[24..]);
                store_256::<0>(memory.as_mut_ptr().add(at), broadcast_u32_at(memory.as_ptr(), at + 36));
                store_256::<96>(
                    memory.as_mut_ptr().add(at),
                    portable::broadcast_u32_at(memory.as_ptr(), at + 40),
                );
                let moved = load_lane_vec(memory.as_ptr().add(at));
                assert!(moved[..8] == [row[9]; 8] && moved[24..] == [row[10]; 8]);
                store_lane_vec(memory.as_mut_ptr().add(at), &row);
                let halves = load_halves::<16, 80>(memory.as_ptr().add(at));
                portable::store_halves::<96, 0>(memory.as_mut_ptr().add(at), halves);
                let moved = load_lane_vec(memory.as_ptr().add(at));
                assert!(moved[24..28] == row[4..8] && moved[..4] == row[20..24]);
                let halves = portable::load_halves::<0, 96>(memory.as_ptr().add(at));
                store_halves::<64, 48>(memory.as_mut_ptr().add(at), halves);
                let moved = load_lane_vec(memory.as_ptr().add(at));
                assert!(moved[16..20] == row[20..24] && moved[12..16] == row[4..8]);
            }
        }
    }
}
