//! Results of handlers: writes registers and masks, after output modifiers.

use super::context::Cx;
use super::operands::clamp;
use crate::op::{Op, Part};
use crate::output as modifier;
use isa_spec::pcode::ir::Ty;
use wavesim_state::wave::{NULL, OPERAND_VECS};
use wavesim_state::{Half, LaneVec};

/// The kind of a result, for the output modifiers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Out {
    /// Not a float: no output modifier applies.
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

/// Writes a scalar result of `DWORDS` registers.
#[inline(always)]
pub fn set_scalar<const DWORDS: usize>(cx: &mut Cx<'_>, op: &Op, value: u128) {
    let value = if op.flags & Op::OUTPUT != 0 { scalar_output(cx, op, value) } else { value };
    cx.wave.set_sgprs(op.d as u32, DWORDS as u32, value);
}

/// Applies the output modifiers of the few vector instructions that write a scalar.
#[inline(never)]
fn scalar_output(cx: &Cx<'_>, op: &Op, value: u128) -> u128 {
    let ext = cx.raw(op);
    let ty = if ext.half_result { Ty::F16 } else { Ty::F32 };
    let scaled = modifier::omod(value, ty, ext.omod as u32, cx.wave.mode, cx.arch);
    if clamp(op) { modifier::clamp(scaled, ty, cx.wave.mode, cx.arch) } else { scaled }
}

/// Writes a scalar result of `DWORDS` registers for an operation of [`crate::op::Variant::Fast`].
///
/// # Safety
/// The operation satisfies O6.
#[inline(always)]
pub unsafe fn fast_set_scalar<const DWORDS: usize>(cx: &mut Cx<'_>, op: &Op, value: u64) {
    for k in 0..DWORDS {
        let at = op.d as usize + k;
        debug_assert!(at < NULL);
        // SAFETY: the caller guarantees O6, so all registers are below NULL.
        unsafe { *cx.wave.sgprs.get_unchecked_mut(at) = (value >> (32 * k)) as u32 };
    }
}

/// Writes a mask to the SGPR with this operand code, and the next one in a wave of 64.
#[inline(always)]
pub fn set_mask(cx: &mut Cx<'_>, code: u16, value: u64) {
    cx.wave.set_sgprs(code as u32, cx.wave.size() / 32, value as u128);
}

/// Writes the bits of the context's half to the half's SGPR of a mask.
#[inline(always)]
pub fn set_half_mask(cx: &mut Cx<'_>, code: u16, bits: u32) {
    if code as usize != NULL {
        cx.wave.set_sgpr(code as u32 + cx.half() as u32, bits);
    }
}

/// Sets a VGPR by a computed number: [`Wave::set_indexed_vgpr`](wavesim_state::Wave::set_indexed_vgpr).
#[inline(always)]
pub fn set_vgpr(cx: &mut Cx<'_>, lane: u32, reg: u32, value: u32) {
    cx.wave.set_indexed_vgpr(lane, reg, value);
}

/// Sets a VGPR by a computed number, in the active lanes of a half.
///
/// # Safety
/// The file belongs to the wave.
#[inline(never)]
pub unsafe fn set_active_lanes(cx: &Cx<'_>, file: Half, exec: u32, reg: u32, new: &LaneVec) {
    if !cx.wave.has_vgpr(reg) {
        return;
    }
    // SAFETY: the wave has this VGPR, so the caller's file contains it (W1); nothing else refers to it.
    unsafe {
        let mask = lane_mask(file, exec);
        file.set_no_denormals(reg as usize, false);
        let old = &mut *file.at(reg as usize);
        for l in 0..32 {
            old.0[l] = old.0[l] & !mask.0[l] | new.0[l] & mask.0[l];
        }
    }
}

/// Returns the destination's lane vectors before the operation.
///
/// # Safety
/// As for [`stage`].
#[inline(always)]
pub unsafe fn old_vecs(file: Half, op: &Op) -> *const LaneVec {
    if op.flags & Op::SCALAR_DEST != 0 {
        static ZEROS: [LaneVec; 4] = [LaneVec::ZERO; 4];
        return ZEROS.as_ptr();
    }
    debug_assert!((op.d as usize) < OPERAND_VECS);
    file.at(op.d as usize)
}

/// Extracts the half of a 16-bit destination.
#[inline(always)]
pub fn old_half(op: &Op, dword: u32) -> u32 {
    if op.flags & Op::HIGH != 0 { dword >> 16 } else { dword & 0xffff }
}

/// Returns the bitwise OR of all lanes.
#[inline(always)]
pub fn gather(vec: &LaneVec) -> u32 {
    vec.0.iter().fold(0, |a, b| a | b)
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
    vecs: [LaneVec; N],
) {
    let at = op.d as usize;
    debug_assert!(at + N <= OPERAND_VECS);
    if exec == u32::MAX && op.flags & Op::OUTPUT == 0 {
        for (k, new) in vecs.into_iter().enumerate() {
            // SAFETY: the result is inside the file (O3, W1), and nothing else refers to it.
            unsafe {
                file.set_no_denormals(at + k, false);
                *file.at(at + k) = new;
            }
        }
        return;
    }
    // A copy, so that `vecs` itself can stay in registers.
    let mut rest = vecs;
    // SAFETY: the caller upholds the same contract.
    unsafe { write_some(cx, file, op, exec, fmt, &mut rest) }
}

/// [`write()`] to a subset of lanes, or after output modifiers. Out of line, because hundreds of handlers use
/// it.
///
/// # Safety
/// As for [`stage`]; the result has as many vectors.
#[inline(never)]
pub(super) unsafe fn write_some(cx: &Cx<'_>, file: Half, op: &Op, exec: u32, fmt: Out, vecs: &mut [LaneVec]) {
    /// # Safety
    /// As for [`write_some`].
    #[inline(always)]
    unsafe fn merge(file: Half, op: &Op, exec: u32, vecs: &[LaneVec]) {
        // SAFETY: the caller guarantees that the file belongs to the wave.
        let mask = unsafe { lane_mask(file, exec) };
        for (k, new) in vecs.iter().enumerate() {
            // SAFETY: the result is inside the file (O3, W1), and nothing else refers to it.
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
    unsafe fn merge_avx2(file: Half, op: &Op, exec: u32, vecs: &[LaneVec]) {
        // SAFETY: the caller upholds the same contract.
        unsafe { merge(file, op, exec, vecs) }
    }
    if op.flags & Op::OUTPUT != 0 {
        if op.flags & Op::NO_RESULT != 0 {
            return;
        }
        output(cx, op, fmt, vecs);
        // SAFETY: the result is inside the file (O3, W1), and nothing else refers to it.
        place(cx, op, unsafe { &*file.at(op.d as usize) }, vecs);
    }
    // SAFETY: the caller upholds the same contract; `cx.fast` proves that the host has AVX2 (H1).
    unsafe {
        #[cfg(target_arch = "x86_64")]
        if cx.fast.is_some() {
            return merge_avx2(file, op, exec, vecs);
        }
        merge(file, op, exec, vecs);
    }
}

/// [`write()`] without output modifiers.
///
/// # Safety
/// As for [`fast_source`].
#[inline(always)]
pub unsafe fn fast_write<const N: usize>(file: Half, op: &Op, exec: u32, vecs: [LaneVec; N]) {
    let at = op.d as usize;
    debug_assert!(at + N <= OPERAND_VECS);
    // SAFETY: the result is inside the file (O3, W1), and nothing else refers to it.
    let old = unsafe { &mut *file.at(at).cast::<[LaneVec; N]>() };
    if exec == u32::MAX {
        // Not `copy_from_slice`: without LTO it is a call, and `vecs` would go through memory.
        *old = vecs;
        return;
    }
    cold_path();
    // Here EXEC is the wave's own, and so is its mask. The mask is copied, so that the compiler sees no
    // overlap with the result. Indexed, because `zip` would stay a call.
    // SAFETY: the caller guarantees that the file belongs to the wave.
    let mask = unsafe { file.mask() };
    for k in 0..N {
        let mut merged = old[k];
        for l in 0..32 {
            merged.0[l] = merged.0[l] & !mask.0[l] | vecs[k].0[l] & mask.0[l];
        }
        old[k] = merged;
    }
}

/// Marks the calling branch as cold, so that the other one is the fallthrough.
#[cold]
#[inline(always)]
fn cold_path() {}

/// Returns EXEC as a lane mask: the wave's own, unless an instruction has narrowed EXEC for itself.
///
/// # Safety
/// The file is the wave's.
#[inline(always)]
unsafe fn lane_mask(file: Half, exec: u32) -> LaneVec {
    // SAFETY: the caller guarantees that the file belongs to the wave.
    unsafe { if exec == file.exec() { file.mask() } else { lanes_of(exec) } }
}

/// Writes a 16-bit result to its half of the register.
///
/// # Safety
/// As for [`stage`].
#[inline(always)]
pub unsafe fn write_half(cx: &Cx<'_>, file: Half, op: &Op, exec: u32, fmt: Out, mut vecs: [LaneVec; 1]) {
    let mut placed = false;
    if op.flags & Op::OUTPUT != 0 {
        if op.flags & Op::NO_RESULT != 0 {
            return;
        }
        let mut scaled = vecs;
        output(cx, op, fmt, &mut scaled);
        // SAFETY: as below.
        placed = place(cx, op, unsafe { &*file.at(op.d as usize) }, &mut scaled);
        vecs = scaled;
    }
    // SAFETY: the caller guarantees that the file belongs to the wave.
    let mask = unsafe { lane_mask(file, exec) };
    let (shift, keep, bits) = match op.flags & (Op::HIGH | Op::CLEAR_UPPER) {
        // The result already includes the rest of the register.
        _ if placed => (0, 0, u32::MAX),
        0 => (0, 0xffff_0000, 0xffff),
        Op::CLEAR_UPPER => (0, 0, 0xffff),
        _ => (16, 0xffff, 0xffff),
    };
    debug_assert!((op.d as usize) < OPERAND_VECS);
    // SAFETY: the result is inside the file (O3, W1), and nothing else refers to it.
    let old = unsafe {
        file.set_no_denormals(op.d as usize, false);
        &mut *file.at(op.d as usize)
    };
    for l in 0..32 {
        let new = old.0[l] & keep | (vecs[0].0[l] & bits) << shift;
        old.0[l] = old.0[l] & !mask.0[l] | new & mask.0[l];
    }
}

#[inline(never)]
fn lanes_of(exec: u32) -> LaneVec {
    let mut vec = LaneVec::ZERO;
    for (lane, mask) in vec.0.iter_mut().enumerate() {
        *mask = 0u32.wrapping_sub(exec >> lane & 1);
    }
    vec
}

/// Inserts a result into the selected part of the register (SDWA, and 16-bit results of CDNA), and fills the
/// rest. Returns whether the operation selects a part.
#[inline(never)]
fn place(cx: &Cx<'_>, op: &Op, old: &LaneVec, vecs: &mut [LaneVec]) -> bool {
    if let Some(sdwa) = cx.raw(op).sdwa
        && sdwa.result != Part::WHOLE
        && let [vec] = vecs
    {
        for (new, old) in vec.0.iter_mut().zip(old.0) {
            *new = sdwa.result.write(*new, old, sdwa.rest);
        }
        return true;
    }
    false
}

/// Applies omod and float clamp.
#[inline(never)]
fn output(cx: &Cx<'_>, op: &Op, fmt: Out, vecs: &mut [LaneVec]) {
    let ext = cx.raw(op);
    let clamps = clamp(op) && !ext.own_clamp;
    if ext.omod == 0 && !clamps {
        return;
    }
    let ty = match fmt {
        Out::Bits => return,
        Out::F16 => Ty::F16,
        Out::BF16 => Ty::BF16,
        Out::F32 => Ty::F32,
        Out::F64 => Ty::F64,
        Out::PackedF16 => {
            for v in vecs[0].0.iter_mut() {
                let half =
                    |h: u32| modifier::clamp(h as u128 & 0xffff, Ty::F16, cx.wave.mode, cx.arch) as u32;
                if clamps {
                    *v = half(*v) | half(*v >> 16) << 16;
                }
            }
            return;
        }
    };
    for l in 0..32 {
        let mut v = vecs[0].0[l] as u128;
        if ty == Ty::F64 {
            v |= (vecs[1].0[l] as u128) << 32;
        }
        v = modifier::omod(v, ty, ext.omod as u32, cx.wave.mode, cx.arch);
        if clamps {
            v = modifier::clamp(v, ty, cx.wave.mode, cx.arch);
        }
        vecs[0].0[l] = v as u32;
        if ty == Ty::F64 {
            vecs[1].0[l] = (v >> 32) as u32;
        }
    }
}
