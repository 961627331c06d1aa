//! Sources of handlers: registers and constants in place, broadcast scalars, masks.

use super::context::Cx;
use crate::op::{DecodedSource, Op, Source};
use wavesim_state::memory::{PRIVATE_BASE, SHARED_BASE};
use wavesim_state::wave::{NULL, OPERAND_VECS, SCALARS, SGPRS, STAGE, STAGE_VECS, is_denormal};
use wavesim_state::{Half, LaneVec};

/// Returns the clamp bit of the instruction.
#[inline(always)]
pub fn clamp(op: &Op) -> bool {
    op.flags & Op::CLAMP != 0
}

/// Returns the register file of a half, for [`stage`], [`old_vecs`] and [`write()`].
#[inline(always)]
pub fn file(cx: &Cx<'_>, half: usize) -> Half {
    cx.wave.half(half)
}

/// Returns the lane vectors of a source for one half: registers and constants in place, scalars broadcast to
/// all lanes.
///
/// They are valid until the next call for the same slot.
///
/// # Safety
/// `file` belongs to the wave, and the source to an operation that satisfies the invariants of lowered code
/// (`wavesim_program::validate`; SAFETY comments cite them by name).
#[inline(always)]
pub unsafe fn stage<const DWORDS: usize>(
    cx: &mut Cx<'_>,
    file: Half,
    source: Source,
    slot: usize,
) -> *const LaneVec {
    const { assert!(DWORDS <= STAGE_VECS) };
    if source.is_vector() {
        let at = source.number() as usize;
        debug_assert!(at + DWORDS <= OPERAND_VECS);
        return file.at(at);
    }
    // SAFETY: the caller upholds the same contract.
    unsafe { stage_scalar(cx, file, source, slot, DWORDS) }
}

/// [`stage`] for a scalar. Out of line, because each handler stages several.
///
/// # Safety
/// As for [`stage`].
#[inline(never)]
unsafe fn stage_scalar(
    cx: &Cx<'_>,
    file: Half,
    source: Source,
    slot: usize,
    dwords: usize,
) -> *const LaneVec {
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2")]
    unsafe fn splat_avx2(first: *mut LaneVec, words: &[u32]) {
        // SAFETY: the caller guarantees AVX2 and that the vectors can be written.
        unsafe { splat::<true>(first, words) }
    }
    let (words, first) = (scalar_words(cx, source, dwords), file.at(STAGE + STAGE_VECS * slot));
    let words = &words[..dwords.min(STAGE_VECS)];
    // SAFETY: the staging vectors are part of every file (W1); `cx.fast` proves AVX2 (H1).
    unsafe {
        #[cfg(target_arch = "x86_64")]
        if cx.fast.is_some() {
            splat_avx2(first, words);
            return first;
        }
        splat::<false>(first, words);
    }
    first
}

/// Broadcasts words to consecutive vectors, one each.
///
/// # Safety
/// The vectors from `first` on can be written; `AVX2` is set only if the host has it.
#[inline(always)]
pub(super) unsafe fn splat<const AVX2: bool>(first: *mut LaneVec, words: &[u32]) {
    for (k, value) in words.iter().enumerate() {
        // SAFETY: the caller guarantees that the vectors can be written, and AVX2 if it is set.
        unsafe {
            if AVX2 {
                fill(&mut *first.add(k), *value);
            } else {
                *first.add(k) = LaneVec::splat(*value);
            }
        }
    }
}

/// Returns the first `dwords` words of a scalar source, at most 4; further ones are arbitrary.
#[inline(always)]
pub(super) fn scalar_words(cx: &Cx<'_>, source: Source, dwords: usize) -> [u32; 4] {
    let at = source.scalar_word();
    if at + 4 <= NULL {
        return std::array::from_fn(|k| cx.wave.sgprs[at + k]);
    }
    if source == Source::NULL {
        return [0; 4];
    }
    std::array::from_fn(|k| if k < dwords { scalar_dword(cx, source, k as u32) } else { 0 })
}

/// [`stage`] for a fast handler: every source is a lane vector of the wave's file.
///
/// # Safety
/// As for [`stage`], for an operation of [`crate::op::Variant::Fast`], or one whose scalars have been
/// broadcast (O4 or O7).
#[inline(always)]
pub unsafe fn fast_source(file: Half, source: Source) -> *const LaneVec {
    debug_assert!(source.is_vector());
    // All sources have the same base, so that the compiler sees that results in registers cannot overlap
    // them.
    file.at(source.vector_offset())
}

/// Copies the SGPRs that an operation lists ([`Op::BROADCAST`]) to their hidden lane vectors in each half.
#[inline(always)]
pub fn broadcast(cx: &mut Cx<'_>, op: &Op) {
    for (sgpr, vec) in op.broadcasts() {
        let value = cx.wave.sgprs[sgpr];
        for half in 0..cx.wave.halves() {
            let file = file(cx, half);
            // SAFETY: the copies of SGPRs are part of every file (W1).
            unsafe {
                *file.at(vec) = LaneVec::splat(value);
                file.set_no_denormals(vec, !is_denormal(value));
            }
        }
    }
}

/// [`broadcast`] in one half, only for SGPRs that have changed since they were last copied.
///
/// # Safety
/// The operation lists SGPRs (O5), the file is the wave's, and the host has AVX2 (H1).
#[inline(always)]
pub unsafe fn fast_broadcast(cx: &Cx<'_>, op: &Op, file: Half) {
    let mut list = op.imm;
    // A loop of unknown length: one or two iterations, not worth unrolling.
    loop {
        let sgpr = (list & 0xff) as usize;
        if sgpr == Op::NO_SCALAR as usize {
            return;
        }
        let value = cx.wave.sgprs[sgpr % SGPRS];
        let at = SCALARS + sgpr;
        debug_assert!(at < OPERAND_VECS);
        // SAFETY: the listed SGPR has a copy in the file (O5, W1).
        let vec = unsafe { &mut *file.at(at) };
        if vec.0[0] != value {
            // SAFETY: the caller guarantees AVX2 and that the file belongs to the wave.
            unsafe {
                fill(vec, value);
                file.set_no_denormals(at, !is_denormal(value));
            }
        }
        list = list >> 8 | (Op::NO_SCALAR as u32) << 24;
    }
}

/// [`fast_broadcast`] in both halves of a wave of 64 lanes.
///
/// # Safety
/// As for [`fast_broadcast`], in a wave of 64.
#[inline(always)]
pub unsafe fn fast_broadcast_both(cx: &Cx<'_>, op: &Op) {
    let [first, second] = cx.both();
    let mut list = op.imm;
    loop {
        let sgpr = (list & 0xff) as usize;
        if sgpr == Op::NO_SCALAR as usize {
            return;
        }
        let value = cx.wave.sgprs[sgpr % SGPRS];
        let at = SCALARS + sgpr;
        debug_assert!(at < OPERAND_VECS);
        // SAFETY: the listed SGPR has a copy in each file (O5, W1), and the files are disjoint.
        unsafe {
            let vecs = (&mut *first.at(at), &mut *second.at(at));
            if vecs.0.0[0] != value || vecs.1.0[0] != value {
                fill(vecs.0, value);
                fill(vecs.1, value);
                let normal = !is_denormal(value);
                first.set_no_denormals(at, normal);
                second.set_no_denormals(at, normal);
            }
        }
        list = list >> 8 | (Op::NO_SCALAR as u32) << 24;
    }
}

/// Sets all lanes to one word.
///
/// # Safety
/// The host has AVX2 (H1).
#[inline(always)]
unsafe fn fill(vec: &mut LaneVec, value: u32) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::*;
        // SAFETY: the caller guarantees AVX2; a lane vector is four aligned SIMD vectors.
        unsafe {
            let (at, value) = (vec.0.as_mut_ptr().cast::<__m256i>(), _mm256_set1_epi32(value as i32));
            (0..4).for_each(|k| _mm256_store_si256(at.add(k), value));
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        *vec = LaneVec::splat(value);
    }
}

/// Returns a word of the scalar file, for an operation of [`crate::op::Variant::Fast`].
///
/// # Safety
/// The source belongs to an operation that satisfies O6 or O7.
#[inline(always)]
pub unsafe fn fast_scalar1(cx: &Cx<'_>, source: Source) -> u32 {
    debug_assert!(source.is_scalar());
    // SAFETY: the caller guarantees that the word is in the scalar file.
    unsafe { *cx.wave.sgprs.get_unchecked(source.scalar_word()) }
}

/// Returns two words of the scalar file, as [`fast_scalar1`] does.
///
/// # Safety
/// As for [`fast_scalar1`], for two words.
#[inline(always)]
pub unsafe fn fast_scalar2(cx: &Cx<'_>, source: Source) -> u64 {
    let at = source.scalar_word();
    debug_assert!(source.is_scalar() && at + 1 < cx.wave.sgprs.len());
    // SAFETY: the caller guarantees that both words are in the scalar file.
    let [low, high] = unsafe { [*cx.wave.sgprs.get_unchecked(at), *cx.wave.sgprs.get_unchecked(at + 1)] };
    low as u64 | (high as u64) << 32
}

/// Returns dword `k` of a scalar source.
#[inline(always)]
fn scalar_dword(cx: &Cx<'_>, source: Source, k: u32) -> u32 {
    if !source.is_scalar() {
        return special_dword(cx, source, k);
    }
    let at = source.number() as u32;
    if (at as usize) < SGPRS {
        // All dwords of null are zero, rather than the registers after it.
        return if k > 0 && source == Source::NULL { 0 } else { cx.wave.sgpr(at + k) };
    }
    cx.wave.sgprs.get((at + k) as usize).copied().unwrap_or(0)
}

#[inline(never)]
fn special_dword(cx: &Cx<'_>, source: Source, k: u32) -> u32 {
    match source.decode() {
        DecodedSource::Scc if k == 0 => cx.wave.scc,
        DecodedSource::Vccz if k == 0 => (cx.wave.vcc() == 0) as u32,
        DecodedSource::Execz if k == 0 => (cx.wave.exec() == 0) as u32,
        DecodedSource::SharedBase if k > 0 => (SHARED_BASE >> 32) as u32,
        DecodedSource::PrivateBase if k > 0 => (PRIVATE_BASE >> 32) as u32,
        DecodedSource::Limit if k == 0 => u32::MAX,
        DecodedSource::Pool(slot) => {
            let at = cx.raw(cx.op).pool[slot] as usize + k as usize;
            cx.consts.get(at).copied().unwrap_or(0)
        }
        _ => 0,
    }
}

/// Returns a scalar source of one register, for the whole wave.
#[inline(always)]
pub fn scalar1(cx: &Cx<'_>, source: Source) -> u32 {
    scalar_dword(cx, source, 0)
}

/// Returns a scalar source of two registers.
#[inline(always)]
pub fn scalar2(cx: &Cx<'_>, source: Source) -> u64 {
    scalar_dword(cx, source, 0) as u64 | (scalar_dword(cx, source, 1) as u64) << 32
}

/// Returns a scalar source of four registers.
#[inline(always)]
pub fn scalar4(cx: &Cx<'_>, source: Source) -> u128 {
    (0..4).fold(0, |v, k| v | (scalar_dword(cx, source, k) as u128) << (32 * k))
}

/// Applies the modifiers of a source of an instruction that runs once per wave.
#[inline(always)]
pub fn once_source(cx: &Cx<'_>, op: &Op, source: usize, value: u128) -> u128 {
    if op.flags & Op::MODIFY == 0 { value } else { once_modified(cx, op, source, value) }
}

#[inline(never)]
fn once_modified(cx: &Cx<'_>, op: &Op, source: usize, value: u128) -> u128 {
    let ext = cx.raw(op);
    let bit = |bits: u8| bits >> source & 1 == 1;
    let sign = 1u128 << ext.sign_at[source];
    let mut out = value;
    if bit(ext.narrow_bits) {
        out = out >> if bit(ext.high_bits) { 16 } else { 0 } & 0xffff;
    }
    if bit(ext.abs_bits) {
        out &= !sign;
    }
    if bit(ext.neg_bits) {
        out ^= sign;
    }
    out
}

/// Returns the bits of a mask in SGPRs that belong to the context's half.
#[inline(always)]
pub fn half_mask(cx: &Cx<'_>, source: Source) -> u32 {
    debug_assert!(source.is_scalar());
    if source == Source::NULL { 0 } else { cx.wave.sgpr((source.scalar_word() + cx.half()) as u32) }
}

/// Returns the mask of lanes `32 * half` to `32 * half + 31`.
#[inline(always)]
pub fn read_mask_half(cx: &Cx<'_>, source: Source, half: usize) -> u32 {
    scalar_dword(cx, source, half as u32)
}

/// Returns a VGPR by a computed number: [`Wave::indexed_vgpr`](wavesim_state::Wave::indexed_vgpr).
#[inline(always)]
pub fn vgpr(cx: &Cx<'_>, lane: u32, reg: u32) -> u32 {
    cx.wave.indexed_vgpr(lane, reg)
}

/// Returns dword `index` of an operand in any lane of the wave.
#[inline(always)]
pub fn operand_lane(cx: &Cx<'_>, source: Source, lane: u32, index: u32) -> u32 {
    if source.is_vector() {
        if lane < cx.wave.size() { cx.wave.vgpr(lane, source.number() as u32 + index) } else { 0 }
    } else {
        scalar_dword(cx, source, index)
    }
}

/// Returns another lane of a staged source in the same half.
///
/// # Safety
/// [`stage`] returned `vecs`.
#[inline(always)]
pub unsafe fn staged_lane(vecs: *const LaneVec, lane: u32, lane_base: u32) -> u32 {
    // SAFETY: the caller guarantees the vector; the index is masked.
    unsafe { (*vecs).0[(lane.wrapping_sub(lane_base) & 31) as usize] }
}
