//! DPP: permutes the lanes of a source. `exec::lower::dpp` has resolved the control to source lanes.

use super::context::Cx;
use crate::exec::op::Dpp;
use crate::state::LaneVec;
use crate::state::wave::LANE_VECS;

/// Returns the lanes that have a DPP source.
#[inline(always)]
pub fn with_source(dpp: &Dpp, exec: u32, half: usize) -> u32 {
    let outside = dpp.outside[half & 1];
    if dpp.fetch || exec == u32::MAX {
        return !outside;
    }
    let mut valid = 0;
    for l in 0..32 {
        valid |= (exec >> (dpp.from[l] & 31) & 1) << l;
    }
    valid & !outside
}

/// Returns the lanes of a half whose source, anywhere in the wave, is active.
pub fn across_valid(from: &[u8; 64], exec: u64, half: usize) -> u32 {
    let of_half = from.iter().skip(32 * half).take(32);
    of_half.enumerate().fold(0, |valid, (lane, from)| valid | ((exec >> (from & 63)) as u32 & 1) << lane)
}

/// Permutes the lanes of a half, with sources anywhere in the wave. The lowering has copied the register, so
/// neither half has been overwritten yet.
#[inline(never)]
pub fn across(cx: &Cx<'_>, register: usize, half: usize, from: &[u8; 64]) -> LaneVec {
    let mut out = LaneVec::ZERO;
    for (value, lane) in out.0.iter_mut().zip(from.iter().skip(32 * half)) {
        let row = cx.wave.vectors.get(*lane as usize / 32 * LANE_VECS + register);
        *value = row.map_or(0, |row| row.0[*lane as usize % 32]);
    }
    out
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
                let lanes = _mm256_cvtepu8_epi32(_mm_loadl_epi64(from.as_ptr().add(8 * k).cast()));
                let first = 2 * (k / 2);
                let low = _mm256_permutevar8x32_epi32(_mm256_load_si256(vectors.add(first)), lanes);
                let high = _mm256_permutevar8x32_epi32(_mm256_load_si256(vectors.add(first + 1)), lanes);
                // Bit 3 of the lane selects one of the two, as a sign bit.
                let which = _mm256_castsi256_ps(_mm256_slli_epi32::<28>(lanes));
                let value = _mm256_blendv_ps(_mm256_castsi256_ps(low), _mm256_castsi256_ps(high), which);
                _mm256_store_si256(to.add(k), _mm256_castps_si256(value));
            }
        }
        return out;
    }
    for (value, lane) in out.0.iter_mut().zip(from) {
        *value = row.0[(lane & 31) as usize];
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
        let patterns: [fn(u8) -> u8; 4] =
            [|l| l, |l| l & 16 | (15 - (l & 15)), |l| l & 16 | (l + 3) & 15, |l| l ^ 9];
        for pattern in patterns {
            let from: [u8; 32] = std::array::from_fn(|l| pattern(l as u8));
            let expected = LaneVec(from.map(|l| 100 + l as u32));
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
