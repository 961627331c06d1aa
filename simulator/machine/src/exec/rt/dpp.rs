//! DPP: moves the lanes of a source. `exec::lower::dpp` has resolved the control to lanes.

use super::context::Cx;
use super::lane_moves::any_lane;
use crate::exec::op::Dpp;
use crate::state::LaneVec;

/// Whether lanes may have no source because that is not active.
#[inline(always)]
pub fn depends_on_exec(cx: &Cx<'_>, moves: &Dpp) -> bool {
    (!moves.fetch || moves.across.is_some()) && cx.wave.exec() != cx.wave.full_mask()
}

/// Lanes of a half that have a source. `by_exec`: [`depends_on_exec`].
#[inline(always)]
pub fn with_source(cx: &Cx<'_>, moves: &Dpp, half: usize, by_exec: bool) -> u32 {
    if by_exec { with_active_source(cx, moves, half) } else { !moves.outside[half & 1] }
}

#[inline(never)]
fn with_active_source(cx: &Cx<'_>, moves: &Dpp, half: usize) -> u32 {
    // SAFETY: W1: each half has a mask.
    let valid = unsafe { moved(cx, moves, half, cx.wave.masks()) };
    (0..32).fold(0, |bits, l| bits | valid.0[l] & 1 << l)
}

/// The lanes of a half from where they come from, of a vector of each half; zero if that is nowhere.
///
/// # Safety
/// The vectors can be read, the second one in a wave of 64.
#[inline(never)]
pub unsafe fn moved(cx: &Cx<'_>, moves: &Dpp, half: usize, vecs: [*const LaneVec; 2]) -> LaneVec {
    // SAFETY: by the contract; the host has AVX2 where the context says so.
    unsafe {
        if cx.fast.is_some() {
            with_vectors(cx, moves, half, vecs)
        } else {
            by::<false>(cx, moves, half, vecs)
        }
    }
}

/// # Safety
/// As for [`moved`], on a host with AVX2.
#[cfg_attr(target_arch = "x86_64", target_feature(enable = "avx2"))]
#[inline(never)]
unsafe fn with_vectors(cx: &Cx<'_>, moves: &Dpp, half: usize, vecs: [*const LaneVec; 2]) -> LaneVec {
    // SAFETY: by the contract.
    unsafe { by::<true>(cx, moves, half, vecs) }
}

/// # Safety
/// As for [`moved`]; `AVX2` only if the host has it.
#[inline(always)]
unsafe fn by<const AVX2: bool>(cx: &Cx<'_>, moves: &Dpp, half: usize, vecs: [*const LaneVec; 2]) -> LaneVec {
    // SAFETY: by the contract.
    unsafe {
        let Some(across) = &moves.across else { return permuted::<AVX2>(&*vecs[half & 1], &moves.from) };
        let across = &across.as_chunks::<32>().0[half & 1];
        let mut from = LaneVec::ZERO;
        for (from, lane) in from.0.iter_mut().zip(across) {
            *from = *lane as u32;
        }
        any_lane::<AVX2>(vecs, &from, cx.wave.size())
    }
}

/// Stages a register of a half as [`moved`], of active lanes alone if DPP [depends on EXEC](depends_on_exec).
///
/// # Safety
/// `vec` is one of the register file.
#[inline(never)]
pub unsafe fn stage(cx: &Cx<'_>, moves: &Dpp, half: usize, vec: usize, staged: usize, by_exec: bool) {
    // SAFETY: by the contract, W1.
    unsafe {
        let mut new = moved(cx, moves, half, [0, 1].map(|half| cx.wave.half(half).at(vec).cast_const()));
        if by_exec {
            let active = moved(cx, moves, half, cx.wave.masks());
            for l in 0..32 {
                new.0[l] &= active.0[l];
            }
        }
        let file = cx.wave.half(half);
        *file.at(staged) = new;
        file.set_no_denormals(staged, false);
    }
}

/// Each lane from its source, which is in its row of 16.
///
/// # Safety
/// `AVX2` only if the host has it.
#[inline(always)]
pub unsafe fn permuted<const AVX2: bool>(row: &LaneVec, from: &[u8; 32]) -> LaneVec {
    let mut out = LaneVec::ZERO;
    #[cfg(target_arch = "x86_64")]
    if AVX2 {
        use std::arch::x86_64::*;
        // SAFETY: by the contract; a lane vector is four aligned SIMD vectors, and `from` has eight bytes for each.
        unsafe {
            let vectors = row.0.as_ptr().cast::<__m256i>();
            let to = out.0.as_mut_ptr().cast::<__m256i>();
            for k in 0..4 {
                // `Dpp::NOWHERE` is negative.
                let lanes = _mm256_cvtepi8_epi32(_mm_loadl_epi64(from.as_ptr().add(8 * k).cast()));
                let first = 2 * (k / 2);
                let low = _mm256_permutevar8x32_epi32(_mm256_load_si256(vectors.add(first)), lanes);
                let high = _mm256_permutevar8x32_epi32(_mm256_load_si256(vectors.add(first + 1)), lanes);
                // Bit 3 of the lane is which of the two, as a sign.
                let which = _mm256_castsi256_ps(_mm256_slli_epi32::<28>(lanes));
                let value = _mm256_blendv_ps(_mm256_castsi256_ps(low), _mm256_castsi256_ps(high), which);
                let nowhere = _mm256_srai_epi32::<31>(lanes);
                _mm256_store_si256(to.add(k), _mm256_andnot_si256(nowhere, _mm256_castps_si256(value)));
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
    use crate::state::host::Avx2;

    #[test]
    fn lanes_come_from_their_rows() {
        let row = LaneVec(std::array::from_fn(|l| 100 + l as u32));
        let patterns: [fn(u8) -> u8; 5] = [
            |l| l,
            |l| l & 16 | (15 - (l & 15)),
            |l| l & 16 | (l + 3) & 15,
            |l| l ^ 9,
            |l| if l & 15 == 0 { Dpp::NOWHERE } else { l - 1 },
        ];
        for pattern in patterns {
            let from: [u8; 32] = std::array::from_fn(|l| pattern(l as u8));
            let expected = LaneVec(from.map(|l| if l == Dpp::NOWHERE { 0 } else { 100 + l as u32 }));
            // SAFETY: without vectors.
            assert_eq!(unsafe { permuted::<false>(&row, &from) }, expected);
            if Avx2::detect().is_some() {
                #[cfg_attr(target_arch = "x86_64", target_feature(enable = "avx2"))]
                unsafe fn fast(row: &LaneVec, from: &[u8; 32]) -> LaneVec {
                    // SAFETY: the host has AVX2.
                    unsafe { permuted::<true>(row, from) }
                }
                // SAFETY: likewise.
                assert_eq!(unsafe { fast(&row, &from) }, expected);
            }
        }
    }
}
