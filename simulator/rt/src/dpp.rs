//! DPP: permutes the lanes of a source. `exec::lower::dpp` has resolved the control to source lanes.

use super::context::Cx;
use super::lane_moves::gather_lanes;
use crate::op::Dpp;
use wavesim_state::LaneVec;

/// Returns true if a lane may lack a source because the source lane is inactive.
#[inline(always)]
pub fn depends_on_exec(cx: &Cx<'_>, moves: &Dpp) -> bool {
    (!moves.fetch || moves.across.is_some()) && cx.wave.exec() != cx.wave.full_mask()
}

/// Returns the lanes of a half that have a source. `by_exec` is the result of [`depends_on_exec`].
#[inline(always)]
pub fn with_source(cx: &Cx<'_>, moves: &Dpp, half: usize, by_exec: bool) -> u32 {
    if by_exec { with_active_source(cx, moves, half) } else { !moves.outside[half & 1] }
}

/// Returns the lanes of a half that have an active source.
#[inline(never)]
fn with_active_source(cx: &Cx<'_>, moves: &Dpp, half: usize) -> u32 {
    // SAFETY: every half of a wave has a mask (W1).
    let valid = unsafe { gather(cx, moves, half, cx.wave.mask_ptrs()) };
    (0..32).fold(0, |bits, l| bits | valid.0[l] & 1 << l)
}

/// Returns the source lane's value for each lane of a half, or zero without a source. `vecs` has the vector
/// of each half.
///
/// # Safety
/// The first vector is readable; in a wave of 64, both are.
#[inline(never)]
pub unsafe fn gather(cx: &Cx<'_>, moves: &Dpp, half: usize, vecs: [*const LaneVec; 2]) -> LaneVec {
    // SAFETY: the caller upholds the same contract; `cx.fast` proves that the host has AVX2.
    unsafe {
        if cx.fast.is_some() {
            with_vectors(cx, moves, half, vecs)
        } else {
            gather_by::<false>(cx, moves, half, vecs)
        }
    }
}

/// # Safety
/// As for [`gather`], on a host with AVX2.
#[cfg_attr(target_arch = "x86_64", target_feature(enable = "avx2"))]
#[inline(never)]
unsafe fn with_vectors(cx: &Cx<'_>, moves: &Dpp, half: usize, vecs: [*const LaneVec; 2]) -> LaneVec {
    // SAFETY: the caller upholds the same contract, on a host with AVX2.
    unsafe { gather_by::<true>(cx, moves, half, vecs) }
}

/// # Safety
/// As for [`gather`]; `AVX2` is set only if the host has it.
#[inline(always)]
unsafe fn gather_by<const AVX2: bool>(
    cx: &Cx<'_>,
    moves: &Dpp,
    half: usize,
    vecs: [*const LaneVec; 2],
) -> LaneVec {
    // SAFETY: the caller guarantees the vectors, and AVX2 if it is set.
    unsafe {
        let Some(across) = &moves.across else { return permuted::<AVX2>(&*vecs[half & 1], &moves.from) };
        let across = &across.as_chunks::<32>().0[half & 1];
        let mut from = LaneVec::ZERO;
        for (from, lane) in from.0.iter_mut().zip(across) {
            *from = *lane as u32;
        }
        gather_lanes::<AVX2>(vecs, &from, cx.wave.size())
    }
}

/// Stages a register of a half, permuted by DPP. With `by_exec` (the result of [`depends_on_exec`]), lanes
/// whose source is inactive get zero.
///
/// # Safety
/// `vec` and `staged` are inside the register file.
#[inline(never)]
pub unsafe fn stage(cx: &Cx<'_>, moves: &Dpp, half: usize, vec: usize, staged: usize, by_exec: bool) {
    // SAFETY: the caller guarantees that the file of every half contains the vectors, and its mask (W1).
    unsafe {
        let mut new = gather(cx, moves, half, [0, 1].map(|half| cx.wave.half(half).at(vec).cast_const()));
        if by_exec {
            let active = gather(cx, moves, half, cx.wave.mask_ptrs());
            for l in 0..32 {
                new.0[l] &= active.0[l];
            }
        }
        let file = cx.wave.half(half);
        *file.at(staged) = new;
        file.set_no_denormals(staged, false);
    }
}

/// Permutes lanes within their rows of 16.
///
/// # Safety
/// `AVX2` is set only if the host has it.
#[inline(always)]
pub unsafe fn permuted<const AVX2: bool>(row: &LaneVec, from: &[u8; 32]) -> LaneVec {
    let mut out = LaneVec::ZERO;
    #[cfg(target_arch = "x86_64")]
    if AVX2 {
        use std::arch::x86_64::*;
        // SAFETY: the caller guarantees AVX2; a lane vector is four aligned SIMD vectors, and `from` has
        // eight bytes for each.
        unsafe {
            let vectors = row.0.as_ptr().cast::<__m256i>();
            let to = out.0.as_mut_ptr().cast::<__m256i>();
            for k in 0..4 {
                // Sign extension makes `Dpp::NO_SOURCE` negative.
                let lanes = _mm256_cvtepi8_epi32(_mm_loadl_epi64(from.as_ptr().add(8 * k).cast()));
                let first = 2 * (k / 2);
                let low = _mm256_permutevar8x32_epi32(_mm256_load_si256(vectors.add(first)), lanes);
                let high = _mm256_permutevar8x32_epi32(_mm256_load_si256(vectors.add(first + 1)), lanes);
                // Bit 3 of the lane selects one of the two, as a sign bit.
                let which = _mm256_castsi256_ps(_mm256_slli_epi32::<28>(lanes));
                let value = _mm256_blendv_ps(_mm256_castsi256_ps(low), _mm256_castsi256_ps(high), which);
                let no_source = _mm256_srai_epi32::<31>(lanes);
                _mm256_store_si256(to.add(k), _mm256_andnot_si256(no_source, _mm256_castps_si256(value)));
            }
        }
        return out;
    }
    for (value, lane) in out.0.iter_mut().zip(from) {
        *value = row.0.get(*lane as usize).copied().unwrap_or(0);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use wavesim_state::host::Avx2;

    #[test]
    fn lanes_come_from_their_rows() {
        let row = LaneVec(std::array::from_fn(|l| 100 + l as u32));
        let patterns: [fn(u8) -> u8; 5] = [
            |l| l,
            |l| l & 16 | (15 - (l & 15)),
            |l| l & 16 | (l + 3) & 15,
            |l| l ^ 9,
            |l| if l & 15 == 0 { Dpp::NO_SOURCE } else { l - 1 },
        ];
        for pattern in patterns {
            let from: [u8; 32] = std::array::from_fn(|l| pattern(l as u8));
            let expected = LaneVec(from.map(|l| if l == Dpp::NO_SOURCE { 0 } else { 100 + l as u32 }));
            // SAFETY: `AVX2` is not set.
            assert_eq!(unsafe { permuted::<false>(&row, &from) }, expected);
            if Avx2::detect().is_some() {
                #[cfg_attr(target_arch = "x86_64", target_feature(enable = "avx2"))]
                unsafe fn fast(row: &LaneVec, from: &[u8; 32]) -> LaneVec {
                    // SAFETY: the host has AVX2.
                    unsafe { permuted::<true>(row, from) }
                }
                // SAFETY: as above.
                assert_eq!(unsafe { fast(&row, &from) }, expected);
            }
        }
    }
}
