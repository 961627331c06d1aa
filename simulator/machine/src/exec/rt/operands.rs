//! Operands of handlers: sources as lane vectors, modifiers, results and masks.

use super::context::{Cx, Flow};
use crate::exec::op::{Op, Part, Place, Source};
use crate::exec::output as modifier;
use crate::memory::{PRIVATE_BASE, SHARED_BASE};
use crate::state::wave::{NULL, ROWS, SCALARS, SGPRS, STAGE, STAGE_VECS, is_denormal};
use crate::state::{Half, LaneVec};
use isa_spec::pcode::ir::Ty;

/// Kind of a float result, for the output modifiers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Out {
    /// No float: no output modifier applies.
    Bits,
    /// f16 in the low half.
    F16,
    /// bf16 in the low half.
    BF16,
    /// f32.
    F32,
    /// f64, in two registers.
    F64,
    /// An f16 in each half.
    PackedF16,
}

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
    for (sgpr, row) in op.broadcasts() {
        let value = cx.wave.sgprs[sgpr];
        for half in 0..cx.wave.halves() {
            let file = file(cx, half);
            // SAFETY: W1: the copies of SGPRs are part of every file.
            unsafe {
                *file.at(row) = LaneVec::splat(value);
                file.set_no_denormals(row, !is_denormal(value));
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
        let row = unsafe { &mut *file.at(at) };
        if row.0[0] != value {
            // SAFETY: by the contract.
            unsafe {
                fill(row, value);
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
            let rows = (&mut *first.at(at), &mut *second.at(at));
            if rows.0.0[0] != value || rows.1.0[0] != value {
                fill(rows.0, value);
                fill(rows.1, value);
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
unsafe fn fill(row: &mut LaneVec, value: u32) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::*;
        // SAFETY: by the contract; a lane vector is four aligned SIMD vectors.
        unsafe {
            let (at, value) = (row.0.as_mut_ptr().cast::<__m256i>(), _mm256_set1_epi32(value as i32));
            (0..4).for_each(|k| _mm256_store_si256(at.add(k), value));
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        *row = LaneVec::splat(value);
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

/// A scalar result of `DWORDS` registers, of an operation of [`crate::exec::op::Variant::Fast`].
///
/// # Safety
/// The operation keeps to O6.
#[inline(always)]
pub unsafe fn fast_set_scalar<const DWORDS: usize>(cx: &mut Cx<'_>, op: &Op, value: u64) {
    for k in 0..DWORDS {
        let at = op.d as usize + k;
        debug_assert!(at < NULL);
        // SAFETY: by the contract.
        unsafe { *cx.wave.sgprs.get_unchecked_mut(at) = (value >> (32 * k)) as u32 };
    }
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

/// A scalar result of `DWORDS` registers.
#[inline(always)]
pub fn set_scalar<const DWORDS: usize>(cx: &mut Cx<'_>, op: &Op, value: u128) {
    let value = if op.flags & Op::OUTPUT != 0 { scalar_output(cx, op, value) } else { value };
    cx.wave.set_sgprs(op.d as u32, DWORDS as u32, value);
}

/// Output modifiers of the few vector instructions that write a scalar.
#[inline(never)]
fn scalar_output(cx: &Cx<'_>, op: &Op, value: u128) -> u128 {
    let ext = cx.raw(op);
    let ty = if ext.half_result { Ty::F16 } else { Ty::F32 };
    let scaled = modifier::omod(value, ty, ext.omod as u32, cx.wave.mode, cx.arch);
    if clamp(op) { modifier::clamp(scaled, ty, cx.wave.mode, cx.arch) } else { scaled }
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

/// Writes a mask to the SGPR with this operand code, and the next one in a wave of 64.
#[inline(always)]
pub fn set_mask(cx: &mut Cx<'_>, code: u16, value: u64) {
    cx.wave.set_sgprs(code as u32, cx.wave.size() / 32, value as u128);
}

/// Writes the bits of the context's half to the SGPR of a mask that are the half's.
#[inline(always)]
pub fn set_half_mask(cx: &mut Cx<'_>, code: u16, bits: u32) {
    if code as usize != NULL {
        cx.wave.set_sgpr(code as u32 + cx.half() as u32, bits);
    }
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

/// Sets a VGPR by a number that the body computed: [`Wave::set_indexed_vgpr`](crate::state::Wave::set_indexed_vgpr).
#[inline(always)]
pub fn set_vgpr(cx: &mut Cx<'_>, lane: u32, reg: u32, value: u32) {
    cx.wave.set_indexed_vgpr(lane, reg, value);
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
/// `rows` came from [`stage`].
#[inline(always)]
pub unsafe fn staged_lane(rows: *const LaneVec, lane: u32, lane_base: u32) -> u32 {
    // SAFETY: by the contract; the index is masked.
    unsafe { (*rows).0[(lane.wrapping_sub(lane_base) & 31) as usize] }
}

/// The destination's lane vectors before the operation.
///
/// # Safety
/// As for [`stage`].
#[inline(always)]
pub unsafe fn old_vecs(file: Half, op: &Op) -> *const LaneVec {
    if op.flags & Op::SCALAR_DEST != 0 {
        static ZEROS: [LaneVec; 4] = [LaneVec::ZERO; 4];
        return ZEROS.as_ptr();
    }
    debug_assert!((op.d as usize) < ROWS);
    file.at(op.d as usize)
}

/// The half of a 16-bit destination.
#[inline(always)]
pub fn old_half(op: &Op, dword: u32) -> u32 {
    if op.flags & Op::HIGH != 0 { dword >> 16 } else { dword & 0xffff }
}

/// OR of all lanes.
#[inline(always)]
pub fn gather(row: &LaneVec) -> u32 {
    row.0.iter().fold(0, |a, b| a | b)
}

/// Writes a result to the active lanes.
///
/// # Safety
/// As for [`stage`].
#[inline(always)]
pub unsafe fn write<const N: usize>(
    cx: &Cx<'_>,
    file: Half,
    op: &Op,
    exec: u32,
    fmt: Out,
    rows: [LaneVec; N],
) {
    let at = op.d as usize;
    debug_assert!(at + N <= ROWS);
    if exec == u32::MAX && op.flags & Op::OUTPUT == 0 {
        for (k, new) in rows.into_iter().enumerate() {
            // SAFETY: O3 and W1; nothing else refers to the vector.
            unsafe {
                file.set_no_denormals(at + k, false);
                *file.at(at + k) = new;
            }
        }
        return;
    }
    // A copy: `rows` itself can stay in registers.
    let mut rest = rows;
    // SAFETY: by the contract.
    unsafe { write_some(cx, file, op, exec, fmt, &mut rest) }
}

/// [`write()`] to lanes that are not all, or after output modifiers. Out of line: hundreds of handlers have it.
///
/// # Safety
/// As for [`stage`]; the result has as many vectors.
#[inline(never)]
pub(super) unsafe fn write_some(cx: &Cx<'_>, file: Half, op: &Op, exec: u32, fmt: Out, rows: &mut [LaneVec]) {
    /// # Safety
    /// As for [`write_some`].
    #[inline(always)]
    unsafe fn merge(file: Half, op: &Op, exec: u32, rows: &[LaneVec]) {
        // SAFETY: by the contract.
        let mask = unsafe { lane_mask(file, exec) };
        for (k, new) in rows.iter().enumerate() {
            // SAFETY: O3 and W1; nothing else refers to the vector.
            let old = unsafe {
                file.set_no_denormals(op.d as usize + k, false);
                &mut *file.at(op.d as usize + k)
            };
            for l in 0..32 {
                old.0[l] = old.0[l] & !mask.0[l] | new.0[l] & mask.0[l];
            }
        }
    }
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2")]
    unsafe fn merge_avx2(file: Half, op: &Op, exec: u32, rows: &[LaneVec]) {
        // SAFETY: by the contract.
        unsafe { merge(file, op, exec, rows) }
    }
    if op.flags & Op::OUTPUT != 0 {
        if op.flags & Op::NO_RESULT != 0 {
            return;
        }
        output(cx, op, fmt, rows);
        // SAFETY: O3 and W1; nothing else refers to the vector.
        place(cx, op, unsafe { &*file.at(op.d as usize) }, rows);
    }
    // SAFETY: by the contract; H1 for the vectors.
    unsafe {
        #[cfg(target_arch = "x86_64")]
        if cx.fast.is_some() {
            return merge_avx2(file, op, exec, rows);
        }
        merge(file, op, exec, rows);
    }
}

/// Whether all sources of a fast handler have the flag for no f32 denormals.
///
/// # Safety
/// As for [`fast_source`].
#[inline(always)]
pub unsafe fn have_no_denormals<const N: usize>(file: Half, sources: [Source; N]) -> bool {
    // Numbers, not booleans: one branch for all.
    // SAFETY: O4: they are lane vectors.
    let clean = |source: Source| unsafe { file.flags(source.vector_offset()) };
    sources.into_iter().fold(1, |all, source| all & clean(source)) != 0
}

/// Searches the lane vectors without the flag for denormals, and sets the flag of those that have none: a register that a loop only
/// reads is searched once. Whether none has any.
///
/// # Safety
/// As for [`fast_source`].
#[inline(always)]
pub unsafe fn search_denormals<const N: usize>(file: Half, sources: [Source; N]) -> bool {
    let mut all = true;
    for source in sources {
        let at = source.number() as usize;
        debug_assert!(at < ROWS);
        // SAFETY: O4: it is a lane vector.
        unsafe {
            if have_no_denormals(file, [source]) {
                continue;
            }
            let found = has_denormal(&*file.at(at));
            file.set_no_denormals(at, !found);
            all &= !found;
        }
    }
    all
}

/// The destination may now hold denormals.
///
/// # Safety
/// As for [`fast_write`].
#[inline(always)]
pub unsafe fn written<const N: usize>(file: Half, d: u16) {
    for k in 0..N {
        // SAFETY: by the contract.
        unsafe { file.set_no_denormals(d as usize + k, false) };
    }
}

/// The destination's f32 values were flushed.
///
/// # Safety
/// As for [`fast_write`].
#[inline(always)]
pub unsafe fn flushed(file: Half, op: &Op, exec: u32) {
    // SAFETY: by the contract.
    unsafe {
        match exec {
            u32::MAX => file.set_no_denormals(op.d as usize, true),
            // The other lanes are as they were.
            _ => file.mark_written(op.d as usize),
        }
    }
}

/// [`fast_write`] of f32 values whose denormals become zeros. They are searched after the write: the compiler does not vectorise a result
/// that is examined before it is stored.
///
/// # Safety
/// As for [`fast_write`].
#[inline(always)]
pub unsafe fn flushing_write(cx: &mut Cx<'_>, file: Half, op: &Op, exec: u32, row: LaneVec) -> Flow {
    // SAFETY: by the contract, here and below.
    unsafe {
        fast_write(file, op, exec, [row]);
        flushed(file, op, exec);
        // Rare, and perhaps only in a lane that is not active.
        if has_denormal(&row) { flush_written(cx, op) } else { Flow::NEXT }
    }
}

/// The result of a tail call. If the compiler saw the value, it would make a call and rebuild the value after it, instead of a jump.
#[inline(always)]
pub fn tail_call(flow: Flow) -> Flow {
    Flow(std::hint::black_box(flow.0))
}

/// Flushes the f32 denormals in the active lanes of the result: the last step of a handler.
///
/// # Safety
/// As for [`fast_write`].
#[cold]
#[inline(never)]
pub unsafe fn flush_written(cx: &mut Cx<'_>, op: &Op) -> Flow {
    // SAFETY: by the contract: O3, W1.
    let (active, row) = unsafe { (cx.file.mask(), &mut *cx.file.at(op.d as usize)) };
    for (value, active) in row.0.iter_mut().zip(active.0) {
        if active != 0 && is_denormal(*value) {
            *value &= 0x8000_0000;
        }
    }
    Flow::NEXT
}

#[inline(always)]
fn has_denormal(row: &LaneVec) -> bool {
    // Twice the word is its magnitude, without the sign; less one, a zero is the greatest of all numbers, and denormals are the least.
    const LEAST_NORMAL: u32 = (0x0080_0000 << 1) - 1;
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::*;
        // SAFETY: H1: only fast handlers call this; a lane vector is four aligned SIMD vectors.
        unsafe {
            let vectors = row.0.as_ptr().cast::<__m256i>();
            let one = _mm256_set1_epi32(-1);
            let magnitude = |k: usize| {
                let v = _mm256_load_si256(vectors.add(k));
                _mm256_add_epi32(_mm256_add_epi32(v, v), one)
            };
            let low = _mm256_min_epu32(magnitude(0), magnitude(1));
            let high = _mm256_min_epu32(magnitude(2), magnitude(3));
            let least = _mm256_min_epu32(low, high);
            let normal = _mm256_max_epu32(least, _mm256_set1_epi32(LEAST_NORMAL as i32));
            _mm256_movemask_epi8(_mm256_cmpeq_epi32(normal, least)) != -1
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    row.0.iter().fold(false, |found, v| found | ((v << 1).wrapping_sub(1) < LEAST_NORMAL))
}

/// Marks the branch that calls it as cold, so that the other one falls through.
#[cold]
#[inline(always)]
fn cold_path() {}

/// [`write()`] without output modifiers.
///
/// # Safety
/// As for [`fast_source`].
#[inline(always)]
pub unsafe fn fast_write<const N: usize>(file: Half, op: &Op, exec: u32, rows: [LaneVec; N]) {
    let at = op.d as usize;
    debug_assert!(at + N <= ROWS);
    // SAFETY: O3 and W1; nothing else refers to the vectors.
    let old = unsafe { &mut *file.at(at).cast::<[LaneVec; N]>() };
    if exec == u32::MAX {
        // Not `copy_from_slice`: without LTO that is a call, and `rows` would go through memory.
        *old = rows;
        return;
    }
    cold_path();
    // EXEC is the wave's own here, and so is its mask. By value, so that the compiler sees no overlap of result and mask. By index,
    // because `zip` would stay a call.
    // SAFETY: by the contract.
    let mask = unsafe { file.mask() };
    for k in 0..N {
        let mut merged = old[k];
        for l in 0..32 {
            merged.0[l] = merged.0[l] & !mask.0[l] | rows[k].0[l] & mask.0[l];
        }
        old[k] = merged;
    }
}

/// EXEC as lanes: the wave's own copy, unless an instruction narrowed it for itself.
///
/// # Safety
/// The file is the wave's.
#[inline(always)]
unsafe fn lane_mask(file: Half, exec: u32) -> LaneVec {
    // SAFETY: by the contract.
    unsafe { if exec == file.exec() { file.mask() } else { lanes_of(exec) } }
}

/// Writes a 16-bit result to its half of the register.
///
/// # Safety
/// As for [`stage`].
#[inline(always)]
pub unsafe fn write_half(cx: &Cx<'_>, file: Half, op: &Op, exec: u32, fmt: Out, mut rows: [LaneVec; 1]) {
    let mut placed = false;
    if op.flags & Op::OUTPUT != 0 {
        if op.flags & Op::NO_RESULT != 0 {
            return;
        }
        let mut scaled = rows;
        output(cx, op, fmt, &mut scaled);
        // SAFETY: as below.
        placed = place(cx, op, unsafe { &*file.at(op.d as usize) }, &mut scaled);
        rows = scaled;
    }
    // SAFETY: by the contract.
    let mask = unsafe { lane_mask(file, exec) };
    let (shift, keep, bits) = match op.flags & Op::HIGH {
        // What is left of the register is in the result already.
        _ if placed => (0, 0, u32::MAX),
        0 => (0, 0xffff_0000, 0xffff),
        _ => (16, 0xffff, 0xffff),
    };
    debug_assert!((op.d as usize) < ROWS);
    // SAFETY: O3 and W1; nothing else refers to the vector.
    let old = unsafe {
        file.set_no_denormals(op.d as usize, false);
        &mut *file.at(op.d as usize)
    };
    for l in 0..32 {
        let new = old.0[l] & keep | (rows[0].0[l] & bits) << shift;
        old.0[l] = old.0[l] & !mask.0[l] | new & mask.0[l];
    }
}

#[inline(never)]
pub(super) fn lanes_of(exec: u32) -> LaneVec {
    let mut row = LaneVec::ZERO;
    for (lane, mask) in row.0.iter_mut().enumerate() {
        *mask = 0u32.wrapping_sub(exec >> lane & 1);
    }
    row
}

/// The part of the register that a result is for (SDWA, and 16-bit results of CDNA), with what becomes of the rest. Whether there is one.
#[inline(never)]
fn place(cx: &Cx<'_>, op: &Op, old: &LaneVec, rows: &mut [LaneVec]) -> bool {
    if let Some(sdwa) = cx.raw(op).sdwa
        && sdwa.result != Part::WHOLE
        && let [row] = rows
    {
        for (new, old) in row.0.iter_mut().zip(old.0) {
            *new = sdwa.result.write(*new, old, sdwa.rest);
        }
        return true;
    }
    false
}

/// omod and float clamp.
#[inline(never)]
fn output(cx: &Cx<'_>, op: &Op, fmt: Out, rows: &mut [LaneVec]) {
    let ext = cx.raw(op);
    let ty = match fmt {
        Out::Bits => return,
        Out::F16 => Ty::F16,
        Out::BF16 => Ty::BF16,
        Out::F32 => Ty::F32,
        Out::F64 => Ty::F64,
        Out::PackedF16 => {
            for v in rows[0].0.iter_mut() {
                let half =
                    |h: u32| modifier::clamp(h as u128 & 0xffff, Ty::F16, cx.wave.mode, cx.arch) as u32;
                if clamp(op) {
                    *v = half(*v) | half(*v >> 16) << 16;
                }
            }
            return;
        }
    };
    for l in 0..32 {
        let mut v = rows[0].0[l] as u128;
        if ty == Ty::F64 {
            v |= (rows[1].0[l] as u128) << 32;
        }
        v = modifier::omod(v, ty, ext.omod as u32, cx.wave.mode, cx.arch);
        if clamp(op) {
            v = modifier::clamp(v, ty, cx.wave.mode, cx.arch);
        }
        rows[0].0[l] = v as u32;
        if ty == Ty::F64 {
            rows[1].0[l] = (v >> 32) as u32;
        }
    }
}
