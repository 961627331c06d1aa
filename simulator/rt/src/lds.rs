//! Loads and stores of 32 lanes in LDS: 32-bit offsets, a single bounds check, and fast paths for groups of
//! eight lanes with unit-stride or uniform offsets.

// A lane number indexes several lane vectors at once.
#![allow(clippy::needless_range_loop)]

use super::context::{Cx, Flow};
use super::memory::{element, load_fallback, set_element, store_fallback, sums};
use isa_spec::pcode::ir::Space;
use wavesim_state::LaneVec;
use wavesim_state::host::Avx2;
use wavesim_state::memory::access::{Access, Own};

/// Converts an LDS address to an offset. Addresses of more than 32 bits are beyond every allocation.
#[inline(always)]
pub fn lds_offset(addr: u64) -> u32 {
    if addr >> 32 == 0 { addr as u32 } else { u32::MAX }
}

/// Returns the bytes of LDS of the workgroup, also in an observed run.
pub fn lds_size(cx: &Cx<'_>) -> u32 {
    // In an observed run, one of the two is empty.
    let watched = cx.watch.as_ref().map_or(0, |watch| watch.lds.len());
    cx.lds.len().max(watched) as u32
}

/// Loads `DWORDS` registers for 32 lanes.
#[inline(always)]
pub fn load_lds<const BYTES: usize, const DWORDS: usize>(
    cx: &mut Cx<'_>,
    offsets: &LaneVec,
    exec: u32,
    lane_base: u32,
) -> Result<[LaneVec; DWORDS], Flow> {
    let mut at = *offsets;
    if !is_inside::<BYTES>(cx, &mut at, exec) {
        return load_fallback::<BYTES, DWORDS>(cx, Space::Lds, &sums(0, offsets), exec, lane_base, |cx| {
            load_lds::<BYTES, DWORDS>(cx, offsets, exec, lane_base)
        });
    }
    let mut vecs = [LaneVec::ZERO; DWORDS];
    let lds = cx.lds.as_ptr();
    if BYTES == 4 {
        // SAFETY: `is_inside` has checked that four bytes at every offset are in the allocation. `vecs` is
        // local; `cx.fast` proves AVX2 (H1).
        unsafe { load_words::<Own, 1>(cx.fast, [lds], &at, [&mut vecs[0]]) };
        return Ok(vecs);
    }
    for l in 0..32 {
        // SAFETY: `is_inside` has checked that `BYTES` bytes at every offset are in the allocation.
        let element = unsafe { element::<Own, BYTES, DWORDS>(lds, at.0[l] as usize) };
        for k in 0..DWORDS {
            vecs[k].0[l] = element[k];
        }
    }
    Ok(vecs)
}

/// Stores the registers of 32 lanes in lane order: if several lanes have the same address, the last one wins.
#[inline(always)]
pub fn store_lds<const BYTES: usize, const DWORDS: usize>(
    cx: &mut Cx<'_>,
    offsets: &LaneVec,
    exec: u32,
    lane_base: u32,
    vecs: &[LaneVec; DWORDS],
) -> Result<(), Flow> {
    let mut at = *offsets;
    if !is_inside::<BYTES>(cx, &mut at, exec) {
        return store_fallback::<BYTES, DWORDS>(
            cx,
            Space::Lds,
            &sums(0, offsets),
            exec,
            lane_base,
            vecs,
            |cx| store_lds::<BYTES, DWORDS>(cx, offsets, exec, lane_base, vecs),
        );
    }
    let lds = cx.lds.as_mut_ptr();
    if BYTES == 4 && exec == u32::MAX {
        // SAFETY: `is_inside` has checked that four bytes at every offset are in the allocation; `cx.fast`
        // proves AVX2 (H1).
        unsafe { store_words(cx.fast, lds, &at, &vecs[0]) };
        return Ok(());
    }
    for l in 0..32 {
        if exec >> l & 1 == 1 {
            // SAFETY: `is_inside` has checked that `BYTES` bytes at every active lane's offset are in the
            // allocation.
            unsafe { set_element::<Own, BYTES, DWORDS>(lds, at.0[l] as usize, vecs, l) };
        }
    }
    Ok(())
}

/// Returns whether the elements of all active lanes are inside the allocation; sets the offsets of inactive
/// lanes to 0.
#[inline(always)]
fn is_inside<const BYTES: usize>(cx: &Cx<'_>, lanes: &mut LaneVec, exec: u32) -> bool {
    // Elements are whole dwords, or parts of one.
    if BYTES > 2 && !BYTES.is_multiple_of(4) {
        return false;
    }
    let Some(last) = last_offset(cx, BYTES) else { return false };
    #[cfg(target_arch = "x86_64")]
    if cx.fast.is_some() {
        // SAFETY: `cx.fast` proves AVX2 (H1).
        return unsafe { is_below_avx2(lanes, exec, last) };
    }
    is_below_anywhere(lanes, exec, last)
}

/// Returns the last offset at which an element is inside the allocation.
#[inline(always)]
pub(super) fn last_offset(cx: &Cx<'_>, bytes: usize) -> Option<u32> {
    cx.lds.len().checked_sub(bytes).map(|last| last as u32)
}

/// Returns whether no active lane's offset is above `last`; sets the offsets of inactive lanes to 0.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
#[inline(never)]
fn is_below_avx2(lanes: &mut LaneVec, exec: u32, last: u32) -> bool {
    switch_off(lanes, exec);
    // SAFETY: this function is compiled for AVX2, so its caller guarantees it (H1).
    unsafe { is_below(lanes, last) }
}

#[inline(never)]
fn is_below_anywhere(lanes: &mut LaneVec, exec: u32, last: u32) -> bool {
    switch_off(lanes, exec);
    lanes.0.iter().all(|offset| *offset <= last)
}

/// Returns whether no offset is above `last`.
///
/// # Safety
/// The host has AVX2 (H1; x86-64).
#[inline(always)]
pub(super) unsafe fn is_below(lanes: &LaneVec, last: u32) -> bool {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::*;
        let [a, b, c, d] = simd_vectors(lanes);
        // SAFETY: the caller guarantees that the host has AVX2.
        unsafe {
            let highest = _mm256_max_epu32(_mm256_max_epu32(a, b), _mm256_max_epu32(c, d));
            let last = _mm256_set1_epi32(last as i32);
            let above = _mm256_xor_si256(_mm256_max_epu32(highest, last), last);
            _mm256_testz_si256(above, above) == 1
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    lanes.0.iter().all(|offset| *offset <= last)
}

#[inline(always)]
fn switch_off(lanes: &mut LaneVec, exec: u32) {
    if exec != u32::MAX {
        for l in 0..32 {
            lanes.0[l] = if exec & 1 << l != 0 { lanes.0[l] } else { 0 };
        }
    }
}

/// Splits a lane vector into SIMD vectors of eight lanes. Kernels with tiles of 8 or 16 lanes have unit
/// stride within these, but not across all 32 lanes.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub(super) fn simd_vectors(vec: &LaneVec) -> [std::arch::x86_64::__m256i; 4] {
    // SAFETY: every bit pattern is valid for SIMD vectors, and four of them have the size of a lane vector.
    unsafe { std::mem::transmute(*vec) }
}

/// Byte offsets of eight consecutive words.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
#[inline]
fn consecutive() -> std::arch::x86_64::__m256i {
    std::arch::x86_64::_mm256_setr_epi32(0, 4, 8, 12, 16, 20, 24, 28)
}

/// Loads one word per lane from each of `from`, all at the same offsets, in LDS or global memory.
///
/// # Safety
/// Four bytes at every offset can be read, and each of `vecs` can be written; `fast` is a proof for this host
/// (H1).
#[inline(always)]
pub unsafe fn load_words<A: Access, const N: usize>(
    fast: Option<Avx2>,
    from: [*const u8; N],
    offsets: &LaneVec,
    vecs: [*mut LaneVec; N],
) {
    #[cfg(target_arch = "x86_64")]
    if fast.is_some() {
        // SAFETY: `fast` proves AVX2 (H1); the caller upholds the same contract.
        return unsafe { load_words_avx2::<A, N>(from, offsets, vecs) };
    }
    let _ = fast;
    // SAFETY: the caller upholds the same contract.
    unsafe { load_words_anywhere::<A, N>(from, offsets, vecs) }
}

/// # Safety
/// As for [`load_words`].
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
#[inline]
unsafe fn load_words_avx2<A: Access, const N: usize>(
    from: [*const u8; N],
    offsets: &LaneVec,
    vecs: [*mut LaneVec; N],
) {
    // SAFETY: the caller upholds the same contract, with AVX2.
    unsafe { load_words_by_8::<A, N>(from, offsets, vecs) }
}

/// # Safety
/// As for [`load_words`]; the caller is compiled for AVX2 (H1).
#[cfg(target_arch = "x86_64")]
#[inline(always)]
unsafe fn load_words_by_8<A: Access, const N: usize>(
    from: [*const u8; N],
    offsets: *const LaneVec,
    vecs: [*mut LaneVec; N],
) {
    // SAFETY: the caller upholds the same contract, with AVX2.
    unsafe {
        // All offsets are read before the first word is written, because `vecs` may contain them.
        let [a, b, c, d] = simd_vectors(&*offsets);
        load_eight::<A, N>(from, a, vecs, 0);
        load_eight::<A, N>(from, b, vecs, 1);
        load_eight::<A, N>(from, c, vecs, 2);
        load_eight::<A, N>(from, d, vecs, 3);
    }
}

/// Loads the words of lanes `8 * k` to `8 * k + 7`.
///
/// # Safety
/// As for [`load_words_by_8`].
#[cfg(target_arch = "x86_64")]
#[inline(always)]
unsafe fn load_eight<A: Access, const N: usize>(
    from: [*const u8; N],
    at: std::arch::x86_64::__m256i,
    vecs: [*mut LaneVec; N],
    k: usize,
) {
    use std::arch::x86_64::*;
    // SAFETY: the caller guarantees the words at all offsets. With unit stride they are eight consecutive
    // words.
    unsafe {
        let first = _mm256_cvtsi256_si32(at) as u32 as usize;
        let apart = _mm256_sub_epi32(at, _mm256_broadcastd_epi32(_mm256_castsi256_si128(at)));
        let unlike = _mm256_xor_si256(apart, consecutive());
        if _mm256_testz_si256(apart, apart) == 1 {
            for n in 0..N {
                _mm256_storeu_si256(vecs[n].cast::<__m256i>().add(k), A::broadcast_u32(from[n], first));
            }
        } else if _mm256_testz_si256(unlike, unlike) == 1 {
            for n in 0..N {
                _mm256_storeu_si256(vecs[n].cast::<__m256i>().add(k), A::load_256(from[n], first));
            }
        } else {
            let lanes = std::mem::transmute::<__m256i, [u32; 8]>(at);
            for n in 0..N {
                for l in 0..8 {
                    (*vecs[n]).0[8 * k + l] = A::load_u32(from[n], lanes[l] as usize);
                }
            }
        }
    }
}

/// [`load_words`], inlined into a fast handler. `offsets` may be one of `vecs`.
///
/// # Safety
/// As for [`load_words`]; the host has AVX2 (H1).
#[inline(always)]
pub(super) unsafe fn load_words_inline<A: Access, const N: usize>(
    from: [*const u8; N],
    offsets: *const LaneVec,
    vecs: [*mut LaneVec; N],
) {
    // SAFETY: the caller upholds the same contract, with AVX2.
    unsafe {
        #[cfg(target_arch = "x86_64")]
        load_words_by_8::<A, N>(from, offsets, vecs);
        #[cfg(not(target_arch = "x86_64"))]
        load_words_anywhere::<A, N>(from, &{ *offsets }, vecs);
    }
}

/// # Safety
/// As for [`load_words`].
#[inline(never)]
unsafe fn load_words_anywhere<A: Access, const N: usize>(
    from: [*const u8; N],
    offsets: &LaneVec,
    vecs: [*mut LaneVec; N],
) {
    for n in 0..N {
        for l in 0..32 {
            // SAFETY: the caller guarantees that four bytes at every offset can be read.
            unsafe { (*vecs[n]).0[l] = A::load_u32(from[n], offsets.0[l] as usize) };
        }
    }
}

/// Stores one word per lane, for all lanes.
///
/// # Safety
/// Four bytes at every offset can be written; `fast` is a proof for this host (H1).
#[inline(always)]
pub(super) unsafe fn store_words(fast: Option<Avx2>, to: *mut u8, offsets: &LaneVec, vec: &LaneVec) {
    #[cfg(target_arch = "x86_64")]
    if fast.is_some() {
        // SAFETY: `fast` proves AVX2 (H1); the caller upholds the same contract.
        return unsafe { store_words_avx2(to, offsets, vec) };
    }
    let _ = fast;
    // SAFETY: the caller upholds the same contract.
    unsafe { store_words_anywhere(to, offsets, vec) }
}

/// # Safety
/// As for [`store_words`].
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
#[inline]
unsafe fn store_words_avx2(to: *mut u8, offsets: &LaneVec, vec: &LaneVec) {
    use std::arch::x86_64::*;
    let (at, words) = (simd_vectors(offsets), simd_vectors(vec));
    for k in 0..4 {
        let apart = _mm256_sub_epi32(at[k], _mm256_broadcastd_epi32(_mm256_castsi256_si128(at[k])));
        let unlike = _mm256_xor_si256(apart, consecutive());
        // SAFETY: the caller guarantees the words at all offsets. With unit stride they are eight consecutive
        // words.
        unsafe {
            if _mm256_testz_si256(unlike, unlike) == 1 {
                _mm256_storeu_si256(to.add(offsets.0[8 * k] as usize).cast(), words[k]);
            } else {
                for l in 8 * k..8 * k + 8 {
                    to.add(offsets.0[l] as usize).cast::<u32>().write_unaligned(vec.0[l]);
                }
            }
        }
    }
}

/// # Safety
/// As for [`store_words`].
#[inline(never)]
unsafe fn store_words_anywhere(to: *mut u8, offsets: &LaneVec, vec: &LaneVec) {
    for l in 0..32 {
        // SAFETY: the caller guarantees that four bytes at every offset can be written.
        unsafe { to.add(offsets.0[l] as usize).cast::<u32>().write_unaligned(vec.0[l]) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the words at the offsets.
    fn expected(memory: &[u8], offsets: &LaneVec) -> Vec<u32> {
        let word = |at: u32| memory[at as usize..at as usize + 4].try_into().map(u32::from_le_bytes);
        offsets.0.iter().map(|at| word(*at).expect("four bytes")).collect()
    }

    #[test]
    fn offsets_of_active_lanes_are_inside() {
        for exec in [u32::MAX, 0, 1 << 7, 0x8000_0001, 0x00ff_ff00] {
            let offsets =
                LaneVec(std::array::from_fn(|l| (l as u32).wrapping_mul(0x9e37_79b9) ^ 0x8000_0000));
            let active = |l: usize| if exec >> l & 1 == 1 { offsets.0[l] } else { 0 };
            let expected = LaneVec(std::array::from_fn(active));
            let highest = expected.0.into_iter().max().unwrap_or(0);
            for last in [highest.saturating_sub(1), highest, highest.saturating_add(1), 0, u32::MAX] {
                let mut portable = offsets;
                assert_eq!(is_below_anywhere(&mut portable, exec, last), highest <= last);
                assert_eq!(portable, expected);
                #[cfg(target_arch = "x86_64")]
                if wavesim_state::host::Avx2::detect().is_some() {
                    let mut fast = offsets;
                    // SAFETY: the host has AVX2, as just detected.
                    let below = unsafe { is_below_avx2(&mut fast, exec, last) };
                    assert_eq!((below, fast), (highest <= last, expected));
                }
            }
        }
    }

    #[test]
    fn words_in_every_pattern() {
        let memory: Vec<u8> = (0..512u32).map(|b| ((b * 37) >> 2) as u8).collect();
        let patterns: [fn(u32) -> u32; 6] = [
            |l| 4 * l,
            |_| 12,
            |l| 4 * (l & 15) + 3,
            |l| 100 * (l / 16),
            |l| 4 * (31 - l),
            |l| if l == 19 { 400 } else { 4 * l },
        ];
        for pattern in patterns {
            let offsets = LaneVec(std::array::from_fn(|l| pattern(l as u32)));
            let mut one_by_one = memory.clone();
            let words = LaneVec(std::array::from_fn(|l| 0x0101_0101 * l as u32));
            for (at, word) in offsets.0.iter().zip(words.0) {
                one_by_one[*at as usize..*at as usize + 4].copy_from_slice(&word.to_le_bytes());
            }
            for fast in [None, Avx2::detect()] {
                let (mut vec, mut stored) = (LaneVec::ZERO, memory.clone());
                // SAFETY: all offsets are in bounds.
                unsafe { load_words::<Own, 1>(fast, [memory.as_ptr()], &offsets, [&mut vec]) };
                assert_eq!(vec.0.to_vec(), expected(&memory, &offsets));
                // SAFETY: as above.
                unsafe { store_words(fast, stored.as_mut_ptr(), &offsets, &words) };
                assert_eq!(stored, one_by_one);
            }
        }
    }
}
