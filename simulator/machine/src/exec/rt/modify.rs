//! Input modifiers and DPP, on sources that are lane vectors.

use super::context::Cx;
use super::operands::lanes_of;
use crate::exec::op::{Dpp, Ext, Op, Part};
use crate::state::LaneVec;
use crate::state::wave::{LANE_VECS, STAGE, STAGE_VECS};

/// Applies modifiers and DPP to staged sources; returns the lanes that still execute.
///
/// # Safety
/// The sources came from [`stage`](super::stage).
#[inline(always)]
pub unsafe fn modify(
    cx: &mut Cx<'_>,
    op: &Op,
    half: usize,
    exec: u32,
    sources: &mut [(usize, *const LaneVec)],
) -> u32 {
    // SAFETY: by the contract; the host has AVX2 where the context says so.
    unsafe {
        if cx.fast.is_some() {
            with_vectors(cx, op, half, exec, sources)
        } else {
            portably(cx, op, half, exec, sources)
        }
    }
}

/// # Safety
/// As for [`modify`], on a host with AVX2.
#[cfg_attr(target_arch = "x86_64", target_feature(enable = "avx2"))]
#[inline(never)]
unsafe fn with_vectors(
    cx: &mut Cx<'_>,
    op: &Op,
    half: usize,
    exec: u32,
    sources: &mut [(usize, *const LaneVec)],
) -> u32 {
    // SAFETY: by the contract.
    unsafe { by::<true>(cx, op, half, exec, sources) }
}

/// # Safety
/// As for [`modify`].
#[inline(never)]
unsafe fn portably(
    cx: &mut Cx<'_>,
    op: &Op,
    half: usize,
    exec: u32,
    sources: &mut [(usize, *const LaneVec)],
) -> u32 {
    // SAFETY: by the contract.
    unsafe { by::<false>(cx, op, half, exec, sources) }
}

/// # Safety
/// As for [`modify`]; `AVX2` only if the host has it.
#[inline(always)]
unsafe fn by<const AVX2: bool>(
    cx: &mut Cx<'_>,
    op: &Op,
    half: usize,
    exec: u32,
    sources: &mut [(usize, *const LaneVec)],
) -> u32 {
    let ext = cx.raw(op);
    let (mut active, mut valid) = (exec, u32::MAX);
    // It switches lanes off even if the body reads no source.
    if let Some(dpp) = &ext.dpp {
        valid = match &dpp.across {
            Some(from) => across_valid(from, cx.wave.exec(), half) & !dpp.outside[half & 1],
            None => with_source(dpp, exec, half),
        };
        active &= !dpp.disabled[half & 1] & if dpp.bound { u32::MAX } else { valid };
    }
    for (index, rows) in sources.iter_mut() {
        let i = *index;
        let bit = |bits: u8| bits >> i & 1 == 1;
        let dwords = if ext.sign_at[i] == 63 { 2 } else { 1 };
        let moved = if i == 0 { ext.dpp.as_ref() } else { None };
        let part = ext.sdwa.filter(|s| s.sources.get(i).is_some_and(|part| *part != Part::WHOLE));
        let changed = bit(ext.abs_bits | ext.neg_bits | ext.high_bits | ext.narrow_bits | ext.packed_bits);
        if !changed && moved.is_none() && part.is_none() {
            continue;
        }
        let staged = STAGE + STAGE_VECS * i;
        for k in 0..dwords {
            // SAFETY: by the contract; where two are read, O2 and W1: vectors of the file, and staged ones, have four after them.
            let mut row = unsafe { *rows.add(k) };
            if let Some(dpp) = moved {
                row = match &dpp.across {
                    Some(from) => across(cx, op.src[i].number() as usize + k, half, from),
                    // SAFETY: by the contract.
                    None => unsafe { permuted::<AVX2>(&row, &dpp.from) },
                };
                if valid != u32::MAX {
                    let mask = lanes_of(valid);
                    for l in 0..32 {
                        row.0[l] &= mask.0[l];
                    }
                }
            }
            if let Some(sdwa) = part {
                row.0.iter_mut().for_each(|value| *value = sdwa.sources[i].read(*value, sdwa.signed[i]));
            }
            if changed {
                change(ext, i, k + 1 == dwords, &mut row);
            }
            cx.wave.vectors[staged + k] = row;
        }
        *rows = cx.wave.vectors[staged..].as_ptr();
    }
    active
}

/// Lanes that DPP has a source for.
#[inline(always)]
fn with_source(dpp: &Dpp, exec: u32, half: usize) -> u32 {
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

/// Lanes of a half whose source, anywhere in the wave, is active.
fn across_valid(from: &[u8; 64], exec: u64, half: usize) -> u32 {
    let of_half = from.iter().skip(32 * half).take(32);
    of_half.enumerate().fold(0, |valid, (lane, from)| valid | ((exec >> (from & 63)) as u32 & 1) << lane)
}

/// Each lane of a half from its source anywhere in the wave. The lowering has copied the register: no half has been written yet.
#[inline(never)]
fn across(cx: &Cx<'_>, register: usize, half: usize, from: &[u8; 64]) -> LaneVec {
    let mut out = LaneVec::ZERO;
    for (value, lane) in out.0.iter_mut().zip(from.iter().skip(32 * half)) {
        let row = cx.wave.vectors.get(*lane as usize / 32 * LANE_VECS + register);
        *value = row.map_or(0, |row| row.0[*lane as usize % 32]);
    }
    out
}

/// Each lane from its source, which is in its row of 16.
///
/// # Safety
/// `AVX2` only if the host has it.
#[inline(always)]
unsafe fn permuted<const AVX2: bool>(row: &LaneVec, from: &[u8; 32]) -> LaneVec {
    let mut out = LaneVec::ZERO;
    #[cfg(target_arch = "x86_64")]
    if AVX2 {
        use std::arch::x86_64::*;
        // SAFETY: by the contract; a lane vector is four aligned SIMD vectors, and `from` has eight bytes for each.
        unsafe {
            let vectors = row.0.as_ptr().cast::<__m256i>();
            let to = out.0.as_mut_ptr().cast::<__m256i>();
            for k in 0..4 {
                let lanes = _mm256_cvtepu8_epi32(_mm_loadl_epi64(from.as_ptr().add(8 * k).cast()));
                let first = 2 * (k / 2);
                let low = _mm256_permutevar8x32_epi32(_mm256_load_si256(vectors.add(first)), lanes);
                let high = _mm256_permutevar8x32_epi32(_mm256_load_si256(vectors.add(first + 1)), lanes);
                // Bit 3 of the lane is which of the two, as a sign.
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

/// Halves, absolute value and sign of source `i`; `last`: this dword has the sign.
#[inline(always)]
fn change(ext: &Ext, i: usize, last: bool, row: &mut LaneVec) {
    let bit = |bits: u8| bits >> i & 1;
    if bit(ext.narrow_bits) == 1 {
        let shift = 16 * bit(ext.high_bits) as u32;
        for l in 0..32 {
            row.0[l] = row.0[l] >> shift & 0xffff;
        }
    }
    if bit(ext.packed_bits) == 1 {
        let (low, high) = (16 * bit(ext.packed_sel) as u32, 16 * bit(ext.packed_sel_hi) as u32);
        let signs = (bit(ext.packed_neg) as u32) << 15 | (bit(ext.packed_neg_hi) as u32) << 31;
        for l in 0..32 {
            let v = row.0[l];
            row.0[l] = ((v >> high & 0xffff) << 16 | v >> low & 0xffff) ^ signs;
        }
    }
    if last {
        let sign = 1 << (ext.sign_at[i] & 31);
        let keep = !(sign * bit(ext.abs_bits) as u32);
        let flip = sign * bit(ext.neg_bits) as u32;
        for l in 0..32 {
            row.0[l] = row.0[l] & keep ^ flip;
        }
    }
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
