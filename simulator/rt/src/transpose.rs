//! Moves of four-dword elements of 32 consecutive lanes to and from lane vectors: transposes of 4 x 4 dwords,
//! eight lanes at a time.

use wavesim_state::LaneVec;
use wavesim_state::host::Avx2;
use wavesim_state::memory::access;

/// Loads 32 elements.
///
/// # Safety
/// 512 bytes at `from` can be read; `fast` is a proof for this host (H1).
#[inline(always)]
pub unsafe fn load_quads(fast: Option<Avx2>, from: *const u8, vecs: &mut [LaneVec; 4]) {
    #[cfg(target_arch = "x86_64")]
    if fast.is_some() {
        // SAFETY: `fast` proves AVX2 (H1); the caller upholds the same contract.
        return unsafe { load_quads_avx2(from, vecs) };
    }
    let _ = fast;
    // SAFETY: the caller upholds the same contract.
    unsafe { load_quads_anywhere(from, vecs) }
}

/// Stores 32 elements.
///
/// # Safety
/// 512 bytes at `to` can be written; `fast` is a proof for this host (H1).
#[inline(always)]
pub unsafe fn store_quads(fast: Option<Avx2>, to: *mut u8, vecs: &[LaneVec; 4]) {
    #[cfg(target_arch = "x86_64")]
    if fast.is_some() {
        // SAFETY: `fast` proves AVX2 (H1); the caller upholds the same contract.
        return unsafe { store_quads_avx2(to, vecs) };
    }
    let _ = fast;
    // SAFETY: the caller upholds the same contract.
    unsafe { store_quads_anywhere(to, vecs) }
}

/// # Safety
/// As for [`load_quads`].
#[inline(never)]
unsafe fn load_quads_anywhere(from: *const u8, vecs: &mut [LaneVec; 4]) {
    for l in 0..32 {
        // SAFETY: the caller guarantees 512 bytes, 32 times 16.
        let element = unsafe { super::memory::element::<access::Shared, 16, 4>(from, 16 * l) };
        for (vec, value) in vecs.iter_mut().zip(element) {
            vec.0[l] = value;
        }
    }
}

/// # Safety
/// As for [`store_quads`].
#[inline(never)]
unsafe fn store_quads_anywhere(to: *mut u8, vecs: &[LaneVec; 4]) {
    for l in 0..32 {
        // SAFETY: the caller guarantees 512 bytes, 32 times 16.
        unsafe { super::memory::set_element::<access::Shared, 16, 4>(to, 16 * l, vecs, l) };
    }
}

#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::*;

/// Transposes lanes `n` and `n + 4`, in the halves of vector `n`, to one vector per dword. The function is
/// its own inverse.
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
unsafe fn load_quads_avx2(from: *const u8, vecs: &mut [LaneVec; 4]) {
    // SAFETY: the caller guarantees AVX2 (H1) and 512 bytes, four times 128.
    unsafe {
        load_eight::<0>(from, vecs);
        load_eight::<8>(from.wrapping_add(128), vecs);
        load_eight::<16>(from.wrapping_add(256), vecs);
        load_eight::<24>(from.wrapping_add(384), vecs);
    }
}

/// Loads the elements of eight lanes from lane `FIRST` on. Called four times, because a loop is not always
/// unrolled.
///
/// # Safety
/// 128 bytes at `from` can be read.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
#[inline]
unsafe fn load_eight<const FIRST: usize>(from: *const u8, vecs: &mut [LaneVec; 4]) {
    // SAFETY: the caller guarantees 128 bytes.
    let pairs = unsafe {
        [
            access::load_halves::<0, 64>(from),
            access::load_halves::<16, 80>(from),
            access::load_halves::<32, 96>(from),
            access::load_halves::<48, 112>(from),
        ]
    };
    for (vec, vector) in vecs.iter_mut().zip(transpose(pairs)) {
        // SAFETY: the slice has eight of the vector's 32 dwords.
        unsafe { _mm256_storeu_si256(vec.0[FIRST..FIRST + 8].as_mut_ptr().cast(), vector) };
    }
}

/// # Safety
/// As for [`store_quads`].
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
#[inline]
unsafe fn store_quads_avx2(to: *mut u8, vecs: &[LaneVec; 4]) {
    // SAFETY: the caller guarantees AVX2 (H1) and 512 bytes, four times 128.
    unsafe {
        store_eight::<0>(to, vecs);
        store_eight::<8>(to.wrapping_add(128), vecs);
        store_eight::<16>(to.wrapping_add(256), vecs);
        store_eight::<24>(to.wrapping_add(384), vecs);
    }
}

/// Stores the elements of eight lanes from lane `FIRST` on.
///
/// # Safety
/// 128 bytes at `to` can be written.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
#[inline]
unsafe fn store_eight<const FIRST: usize>(to: *mut u8, vecs: &[LaneVec; 4]) {
    // SAFETY: the slice has eight of the vector's 32 dwords.
    let eight = |k: usize| unsafe { _mm256_loadu_si256(vecs[k].0[FIRST..FIRST + 8].as_ptr().cast()) };
    let [a, b, c, d] = transpose([eight(0), eight(1), eight(2), eight(3)]);
    // SAFETY: the caller guarantees 128 bytes.
    unsafe {
        access::store_halves::<0, 64>(to, a);
        access::store_halves::<16, 80>(to, b);
        access::store_halves::<32, 96>(to, c);
        access::store_halves::<48, 112>(to, d);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quads_go_to_rows_and_back() {
        let memory: Vec<u8> = (0..513u32).map(|b| ((b * 31) >> 3) as u8).collect();
        for fast in [None, Avx2::detect()] {
            let mut vecs = [LaneVec::ZERO; 4];
            let mut back = vec![0; 512];
            // SAFETY: 512 bytes follow the first one, unaligned on purpose.
            unsafe {
                load_quads(fast, memory[1..].as_ptr(), &mut vecs);
                store_quads(fast, back.as_mut_ptr(), &vecs);
            }
            assert_eq!(back, memory[1..]);
            for l in 0..32 {
                for (k, vec) in vecs.iter().enumerate() {
                    let at = 1 + 16 * l + 4 * k;
                    assert_eq!(vec.0[l].to_le_bytes(), memory[at..at + 4], "lane {l}, dword {k}");
                }
            }
        }
    }
}
