//! Elements of four dwords to and from rows, 32 lanes one after the other: transposes of 4 x 4 dwords, eight lanes at a time.

use crate::machine::Row;
use crate::memory::access;

/// Loads 32 elements.
///
/// # Safety
/// 512 bytes at `from` can be read; `fast` is the host's.
#[inline(always)]
pub unsafe fn load_quads(fast: bool, from: *const u8, rows: &mut [Row; 4]) {
    #[cfg(target_arch = "x86_64")]
    if fast {
        // SAFETY: the host has AVX2, and by the contract.
        return unsafe { load_quads_avx2(from, rows) };
    }
    let _ = fast;
    // SAFETY: by the contract.
    unsafe { load_quads_anywhere(from, rows) }
}

/// Stores 32 elements.
///
/// # Safety
/// 512 bytes at `to` can be written; `fast` is the host's.
#[inline(always)]
pub unsafe fn store_quads(fast: bool, to: *mut u8, rows: &[Row; 4]) {
    #[cfg(target_arch = "x86_64")]
    if fast {
        // SAFETY: the host has AVX2, and by the contract.
        return unsafe { store_quads_avx2(to, rows) };
    }
    let _ = fast;
    // SAFETY: by the contract.
    unsafe { store_quads_anywhere(to, rows) }
}

/// # Safety
/// As for [`load_quads`].
#[inline(never)]
unsafe fn load_quads_anywhere(from: *const u8, rows: &mut [Row; 4]) {
    for l in 0..32 {
        // SAFETY: by the contract.
        let element = unsafe { super::memory::element::<16, 4>(from, 16 * l) };
        for (row, value) in rows.iter_mut().zip(element) {
            row.0[l] = value;
        }
    }
}

/// # Safety
/// As for [`store_quads`].
#[inline(never)]
unsafe fn store_quads_anywhere(to: *mut u8, rows: &[Row; 4]) {
    for l in 0..32 {
        // SAFETY: by the contract.
        unsafe { super::memory::set_element::<16, 4>(to, 16 * l, rows, l) };
    }
}

#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::*;

/// A pair of vectors from the low halves of two, and from their high halves.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
#[inline]
fn halves(a: __m256i, b: __m256i) -> (__m256i, __m256i) {
    (_mm256_permute2x128_si256::<0x20>(a, b), _mm256_permute2x128_si256::<0x31>(a, b))
}

/// Lanes `n` and `n + 4` in the halves of vector `n`, to a vector for each dword; and the other way round, as it is its own inverse.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
#[inline]
fn transpose([a, b, c, d]: [__m256i; 4]) -> [__m256i; 4] {
    let (low, high) = (_mm256_unpacklo_epi32(a, b), _mm256_unpackhi_epi32(a, b));
    let (low2, high2) = (_mm256_unpacklo_epi32(c, d), _mm256_unpackhi_epi32(c, d));
    [
        _mm256_unpacklo_epi64(low, low2),
        _mm256_unpackhi_epi64(low, low2),
        _mm256_unpacklo_epi64(high, high2),
        _mm256_unpackhi_epi64(high, high2),
    ]
}

/// # Safety
/// As for [`load_quads`].
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
#[inline]
unsafe fn load_quads_avx2(from: *const u8, rows: &mut [Row; 4]) {
    for first in [0, 8, 16, 24] {
        let at = from.wrapping_add(16 * first);
        // SAFETY: by the contract: lanes below 32.
        let (a, b, c, d) = unsafe {
            (
                access::load_256::<0>(at),
                access::load_256::<32>(at),
                access::load_256::<64>(at),
                access::load_256::<96>(at),
            )
        };
        // Two lanes a vector, to lanes `n` and `n + 4`.
        let ((a, b), (c, d)) = (halves(a, c), halves(b, d));
        let vectors = transpose([a, b, c, d]);
        for (row, vector) in rows.iter_mut().zip(vectors) {
            // SAFETY: eight of the row's 32 dwords.
            unsafe { _mm256_storeu_si256(row.0[first..first + 8].as_mut_ptr().cast(), vector) };
        }
    }
}

/// # Safety
/// As for [`store_quads`].
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
#[inline]
unsafe fn store_quads_avx2(to: *mut u8, rows: &[Row; 4]) {
    for first in [0, 8, 16, 24] {
        // SAFETY: eight of the row's 32 dwords.
        let eight = |k: usize| unsafe { _mm256_loadu_si256(rows[k].0[first..first + 8].as_ptr().cast()) };
        let [a, b, c, d] = transpose([eight(0), eight(1), eight(2), eight(3)]);
        // Lanes `n` and `n + 4`, to two lanes a vector.
        let ((a, c), (b, d)) = (halves(a, b), halves(c, d));
        let at = to.wrapping_add(16 * first);
        // SAFETY: by the contract: lanes below 32.
        unsafe {
            access::store_256::<0>(at, a);
            access::store_256::<32>(at, b);
            access::store_256::<64>(at, c);
            access::store_256::<96>(at, d);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quads_go_to_rows_and_back() {
        let memory: Vec<u8> = (0..513u32).map(|b| ((b * 31) >> 3) as u8).collect();
        for fast in [false, crate::exec::interp::host_is_fast()] {
            let mut rows = [Row::ZERO; 4];
            let mut back = vec![0; 512];
            // SAFETY: there are 512 bytes behind the first, which leaves them unaligned.
            unsafe {
                load_quads(fast, memory[1..].as_ptr(), &mut rows);
                store_quads(fast, back.as_mut_ptr(), &rows);
            }
            assert_eq!(back, memory[1..]);
            for l in 0..32 {
                for (k, row) in rows.iter().enumerate() {
                    let at = 1 + 16 * l + 4 * k;
                    assert_eq!(row.0[l].to_le_bytes(), memory[at..at + 4], "lane {l}, dword {k}");
                }
            }
        }
    }
}
