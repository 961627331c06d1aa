//! Sources of handlers: registers and constants in place, scalars copied to all lanes, masks.

use super::context::Cx;
use crate::exec::op::{Op, Place, Source};
use crate::memory::{PRIVATE_BASE, SHARED_BASE};
use crate::state::wave::{NULL, ROWS, SCALARS, SGPRS, STAGE, STAGE_VECS, is_denormal};
use crate::state::{Half, LaneVec};

/// The clamp bit of the instruction.
#[inline(always)]
pub fn clamp(op: &Op) -> bool {
    op.flags & Op::CLAMP != 0
}

/// The register file of a half, for [`stage`], [`old_vecs`] and [`write()`].
#[inline(always)]
pub fn file(cx: &Cx<'_>, half: usize) -> Half {
    cx.wave.half(half)
}

/// The lane vectors of a source for one half: registers and constants in place, scalars copied to all lanes.
///
/// They are valid until the next call for the same slot.
///
/// # Safety
/// `file` is the wave's, and the source an operation's that keeps to the invariants of lowered code
/// (`exec::validate`; SAFETY comments name its rules).
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
        debug_assert!(at + DWORDS <= ROWS);
        return file.at(at);
    }
    // SAFETY: by the contract.
    unsafe { stage_scalar(cx, file, source, slot, DWORDS) }
}

/// [`stage`] of a scalar. Out of line: each handler stages several.
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
        // SAFETY: by the contract.
        unsafe { splat::<true>(first, words) }
    }
    let (words, first) = (scalar_words(cx, source, dwords), file.at(STAGE + STAGE_VECS * slot));
    let words = &words[..dwords.min(STAGE_VECS)];
    // SAFETY: W1: the staged sources are part of every file; H1 for the vectors.
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

/// Writes words to all lanes of consecutive vectors.
///
/// # Safety
/// As many can be written from `first` on; `AVX2` only if the host has it.
#[inline(always)]
pub(super) unsafe fn splat<const AVX2: bool>(first: *mut LaneVec, words: &[u32]) {
    for (k, value) in words.iter().enumerate() {
        // SAFETY: by the contract.
        unsafe {
            if AVX2 {
                fill(&mut *first.add(k), *value);
            } else {
                *first.add(k) = LaneVec::splat(*value);
            }
        }
    }
}

/// The first `dwords` words of a scalar source, 4 at most. Others mean nothing.
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
/// As for [`stage`], for an operation of [`crate::exec::op::Variant::Fast`], or with its scalars broadcast: O4 or O7.
#[inline(always)]
pub unsafe fn fast_source(file: Half, source: Source) -> *const LaneVec {
    debug_assert!(source.is_vector());
    // One base for all sources: the compiler sees that no result in registers can overlap them.
    file.at(source.vector_offset())
}

/// Copies the SGPRs that an operation lists ([`Op::BROADCAST`]) to their hidden lane vectors in each half.
#[inline(always)]
pub fn broadcast(cx: &mut Cx<'_>, op: &Op) {
    for (sgpr, vec) in op.broadcasts() {
        let value = cx.wave.sgprs[sgpr];
        for half in 0..cx.wave.halves() {
            let file = file(cx, half);
            // SAFETY: W1: the copies of SGPRs are part of every file.
            unsafe {
                *file.at(vec) = LaneVec::splat(value);
                file.set_no_denormals(vec, !is_denormal(value));
            }
        }
    }
}

/// [`broadcast`] in one half, only of SGPRs that changed since they were last copied.
///
/// # Safety
/// The operation lists SGPRs (O5), the file is the wave's, and the host has AVX2 (H1).
#[inline(always)]
pub unsafe fn fast_broadcast(cx: &Cx<'_>, op: &Op, file: Half) {
    let mut list = op.imm;
    // A loop of unknown length: one or two rounds, not worth unrolling.
    loop {
        let sgpr = (list & 0xff) as usize;
        if sgpr == Op::NO_SCALAR as usize {
            return;
        }
        let value = cx.wave.sgprs[sgpr % SGPRS];
        let at = SCALARS + sgpr;
        debug_assert!(at < ROWS);
        // SAFETY: O5 and W1.
        let vec = unsafe { &mut *file.at(at) };
        if vec.0[0] != value {
            // SAFETY: by the contract.
            unsafe {
                fill(vec, value);
                file.set_no_denormals(at, !is_denormal(value));
            }
        }
        list = list >> 8 | (Op::NO_SCALAR as u32) << 24;
    }
}

/// [`fast_broadcast`] in both halves of a wave of 64.
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
        debug_assert!(at < ROWS);
        // SAFETY: O5 and W1; the halves are apart.
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
        // SAFETY: by the contract; a lane vector is four aligned SIMD vectors.
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

/// A word of the scalar file, for an operation of [`crate::exec::op::Variant::Fast`].
///
/// # Safety
/// The source is of an operation that keeps to O6, or to O7.
#[inline(always)]
pub unsafe fn fast_scalar1(cx: &Cx<'_>, source: Source) -> u32 {
    debug_assert!(source.is_scalar());
    // SAFETY: by the contract.
    unsafe { *cx.wave.sgprs.get_unchecked(source.scalar_word()) }
}

/// Two words of the scalar file, as for [`fast_scalar1`].
///
/// # Safety
/// As for [`fast_scalar1`], where two words are read.
#[inline(always)]
pub unsafe fn fast_scalar2(cx: &Cx<'_>, source: Source) -> u64 {
    let at = source.scalar_word();
    debug_assert!(source.is_scalar() && at + 1 < cx.wave.sgprs.len());
    // SAFETY: by the contract.
    let [low, high] = unsafe { [*cx.wave.sgprs.get_unchecked(at), *cx.wave.sgprs.get_unchecked(at + 1)] };
    low as u64 | (high as u64) << 32
}

/// Dword `k` of a scalar source.
#[inline(always)]
fn scalar_dword(cx: &Cx<'_>, source: Source, k: u32) -> u32 {
    if !source.is_scalar() {
        return special_dword(cx, source, k);
    }
    let at = source.number() as u32;
    if (at as usize) < SGPRS {
        // More words of null are null, not what follows it.
        return if k > 0 && source == Source::NULL { 0 } else { cx.wave.sgpr(at + k) };
    }
    cx.wave.sgprs.get((at + k) as usize).copied().unwrap_or(0)
}

#[inline(never)]
fn special_dword(cx: &Cx<'_>, source: Source, k: u32) -> u32 {
    match source.place() {
        Place::Scc if k == 0 => cx.wave.scc,
        Place::Vccz if k == 0 => (cx.wave.vcc() == 0) as u32,
        Place::Execz if k == 0 => (cx.wave.exec() == 0) as u32,
        Place::SharedBase if k > 0 => (SHARED_BASE >> 32) as u32,
        Place::PrivateBase if k > 0 => (PRIVATE_BASE >> 32) as u32,
        Place::Limit if k == 0 => u32::MAX,
        Place::Pool(slot) => {
            let at = cx.raw(cx.op).pool[slot] as usize + k as usize;
            cx.consts.get(at).copied().unwrap_or(0)
        }
        _ => 0,
    }
}

/// A scalar source of one register, for the whole wave.
#[inline(always)]
pub fn scalar1(cx: &Cx<'_>, source: Source) -> u32 {
    scalar_dword(cx, source, 0)
}

/// A scalar source of two registers.
#[inline(always)]
pub fn scalar2(cx: &Cx<'_>, source: Source) -> u64 {
    scalar_dword(cx, source, 0) as u64 | (scalar_dword(cx, source, 1) as u64) << 32
}

/// A scalar source of four registers.
#[inline(always)]
pub fn scalar4(cx: &Cx<'_>, source: Source) -> u128 {
    (0..4).fold(0, |v, k| v | (scalar_dword(cx, source, k) as u128) << (32 * k))
}

/// A source of an instruction that runs once a wave, its modifiers applied.
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

/// The bits of a mask, which is SGPRs, that are the context's half's.
#[inline(always)]
pub fn half_mask(cx: &Cx<'_>, source: Source) -> u32 {
    debug_assert!(source.is_scalar());
    if source == Source::NULL { 0 } else { cx.wave.sgpr((source.scalar_word() + cx.half()) as u32) }
}

/// The mask of lanes `32 * half` and following.
#[inline(always)]
pub fn read_mask_half(cx: &Cx<'_>, source: Source, half: usize) -> u32 {
    scalar_dword(cx, source, half as u32)
}

/// A VGPR by a number that the body computed: [`Wave::indexed_vgpr`](crate::state::Wave::indexed_vgpr).
#[inline(always)]
pub fn vgpr(cx: &Cx<'_>, lane: u32, reg: u32) -> u32 {
    cx.wave.indexed_vgpr(lane, reg)
}

/// Dword `index` of an operand in any lane of the wave.
#[inline(always)]
pub fn operand_lane(cx: &Cx<'_>, source: Source, lane: u32, index: u32) -> u32 {
    if source.is_vector() {
        if lane < cx.wave.size() { cx.wave.vgpr(lane, source.number() as u32 + index) } else { 0 }
    } else {
        scalar_dword(cx, source, index)
    }
}

/// Another lane of a staged source, in the same half.
///
/// # Safety
/// `vecs` came from [`stage`].
#[inline(always)]
pub unsafe fn staged_lane(vecs: *const LaneVec, lane: u32, lane_base: u32) -> u32 {
    // SAFETY: by the contract; the index is masked.
    unsafe { (*vecs).0[(lane.wrapping_sub(lane_base) & 31) as usize] }
}
