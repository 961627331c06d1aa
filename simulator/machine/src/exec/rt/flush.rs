//! Flushing f32 denormals: the flag of lane vectors that have none, and the search for them where it is missing.

use super::context::{Cx, Flow};
use super::results::fast_write;
use crate::exec::op::{Op, Source};
use crate::state::wave::{ROWS, is_denormal};
use crate::state::{Half, LaneVec};

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
pub unsafe fn flushing_write(cx: &mut Cx<'_>, file: Half, op: &Op, exec: u32, vec: LaneVec) -> Flow {
    // SAFETY: by the contract, here and below.
    unsafe {
        fast_write(file, op, exec, [vec]);
        flushed(file, op, exec);
        // Rare, and perhaps only in a lane that is not active.
        if has_denormal(&vec) { flush_written(cx, op) } else { Flow::NEXT }
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
    let (active, vec) = unsafe { (cx.file.mask(), &mut *cx.file.at(op.d as usize)) };
    for (value, active) in vec.0.iter_mut().zip(active.0) {
        if active != 0 && is_denormal(*value) {
            *value &= 0x8000_0000;
        }
    }
    Flow::NEXT
}

#[inline(always)]
fn has_denormal(vec: &LaneVec) -> bool {
    // Twice the word is its magnitude, without the sign; less one, a zero is the greatest of all numbers, and denormals are the least.
    const LEAST_NORMAL: u32 = (0x0080_0000 << 1) - 1;
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::*;
        // SAFETY: H1: only fast handlers call this; a lane vector is four aligned SIMD vectors.
        unsafe {
            let vectors = vec.0.as_ptr().cast::<__m256i>();
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
    vec.0.iter().fold(false, |found, v| found | ((v << 1).wrapping_sub(1) < LEAST_NORMAL))
}
