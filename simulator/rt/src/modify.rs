//! Input modifiers of staged sources. DPP comes first ([`dpp`]).

use super::context::Cx;
use super::dpp;
use crate::op::{Ext, Op, Part};
use wavesim_state::LaneVec;
use wavesim_state::wave::{STAGE, STAGE_VECS};

/// Applies modifiers and DPP to staged sources; returns the lanes that remain active.
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
    // SAFETY: the caller upholds the same contract; `cx.fast` proves that the host has AVX2.
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
    // SAFETY: the caller upholds the same contract, on a host with AVX2.
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
    // SAFETY: the caller upholds the same contract.
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
    let lanes = lanes(cx, op, half, exec);
    for (slot, vecs) in sources.iter_mut() {
        // SAFETY: the caller guarantees that the sources are staged, and that the host has AVX2 if `AVX2` is
        // set.
        if unsafe { source::<AVX2>(cx, op, *slot, half, lanes, *vecs) } {
            *vecs = cx.wave.half(half).at(STAGE + STAGE_VECS * *slot);
        }
    }
    lanes.active
}

/// The lanes of a half after DPP.
#[derive(Clone, Copy)]
pub(super) struct Lanes {
    /// Lanes that execute.
    pub active: u32,
    /// Lanes whose source lane is inactive read zero.
    by_exec: bool,
}

/// Returns which of the lanes in EXEC execute an operation with modifiers. DPP disables lanes even if the
/// semantics read no source.
#[inline(always)]
pub(super) fn lanes(cx: &Cx<'_>, op: &Op, half: usize, exec: u32) -> Lanes {
    let Some(moves) = &cx.raw(op).dpp else { return Lanes { active: exec, by_exec: false } };
    let by_exec = dpp::depends_on_exec(cx, moves);
    let mut active = exec & !moves.disabled[half & 1];
    if !moves.bound {
        active &= dpp::with_source(cx, moves, half, by_exec);
    }
    Lanes { active, by_exec }
}

/// Applies the modifiers of the source in slot `i`, if it has any, and stores the result in its staging
/// vectors. Returns whether it did.
///
/// # Safety
/// [`stage`](super::stage) returned `vecs` for this half of the wave; `AVX2` is set only if the host has it.
#[inline(always)]
pub(super) unsafe fn source<const AVX2: bool>(
    cx: &mut Cx<'_>,
    op: &Op,
    i: usize,
    half: usize,
    lanes: Lanes,
    vecs: *const LaneVec,
) -> bool {
    let ext = cx.raw(op);
    let bit = |bits: u8| bits >> i & 1 == 1;
    let moved = if i == 0 { ext.dpp.as_ref() } else { None };
    let part = ext.sdwa.filter(|s| s.sources.get(i).is_some_and(|part| *part != Part::WHOLE));
    let changed = bit(ext.abs_bits | ext.neg_bits | ext.high_bits | ext.narrow_bits | ext.packed_bits);
    if !changed && moved.is_none() && part.is_none() {
        return false;
    }
    let dwords = if ext.sign_at[i] == 63 { 2 } else { 1 };
    for k in 0..dwords {
        // SAFETY: the caller guarantees the first vector. Where two are read, O2 and W1 hold: a source
        // vector, or a staged one, is followed by at least three more.
        let mut vec = unsafe { *vecs.add(k) };
        if let Some(moves) = moved {
            let (first, staged) = (op.src[i].number() as usize + k, vecs.wrapping_add(k));
            // If sources cross rows, the lowering has copied the register, so neither half has been
            // overwritten yet.
            let each = match moves.across {
                Some(_) => [0, 1].map(|half| cx.wave.half(half).at(first).cast_const()),
                None => [staged; 2],
            };
            // SAFETY: the caller guarantees the vector of this half; across halves, the source is a lane
            // vector (O2), which both files contain (W1).
            vec = unsafe { dpp::gather(cx, moves, half, each) };
            if lanes.by_exec {
                // SAFETY: every half of a wave has a mask (W1).
                let mask = unsafe { dpp::gather(cx, moves, half, cx.wave.mask_ptrs()) };
                for l in 0..32 {
                    vec.0[l] &= mask.0[l];
                }
            }
        }
        if let Some(sdwa) = part {
            vec.0.iter_mut().for_each(|value| *value = sdwa.sources[i].read(*value, sdwa.signed[i]));
        }
        if changed {
            change(ext, i, k + 1 == dwords, &mut vec);
        }
        let (file, at) = (cx.wave.half(half), STAGE + STAGE_VECS * i + k);
        // SAFETY: the staging vectors are part of every file (W1). The flags are kept up to date for fast
        // handlers.
        unsafe {
            *file.at(at) = vec;
            file.set_no_denormals(at, false);
        }
    }
    true
}

/// Applies half selection, absolute value and sign to source `i`; `last` marks the dword that contains the
/// sign.
#[inline(always)]
fn change(ext: &Ext, i: usize, last: bool, vec: &mut LaneVec) {
    let bit = |bits: u8| bits >> i & 1;
    if bit(ext.narrow_bits) == 1 {
        let shift = 16 * bit(ext.high_bits) as u32;
        for l in 0..32 {
            vec.0[l] = vec.0[l] >> shift & 0xffff;
        }
    }
    if bit(ext.packed_bits) == 1 {
        let (low, high) = (16 * bit(ext.packed_sel) as u32, 16 * bit(ext.packed_sel_hi) as u32);
        let signs = (bit(ext.packed_neg) as u32) << 15 | (bit(ext.packed_neg_hi) as u32) << 31;
        for l in 0..32 {
            let v = vec.0[l];
            vec.0[l] = ((v >> high & 0xffff) << 16 | v >> low & 0xffff) ^ signs;
        }
    }
    if last {
        let sign = 1 << (ext.sign_at[i] & 31);
        let keep = !(sign * bit(ext.abs_bits) as u32);
        let flip = sign * bit(ext.neg_bits) as u32;
        for l in 0..32 {
            vec.0[l] = vec.0[l] & keep ^ flip;
        }
    }
}
