//! Flushing of f32 denormals: the flag of lane vectors without denormals, and the search for denormals where
//! the flag is not set.

use super::context::{Cx, Flow};
use super::results::fast_write;
use crate::op::{Op, Source};
use wavesim_state::wave::{OPERAND_VECS, is_denormal};
use wavesim_state::{Half, LaneVec};

/// Returns whether all sources of a fast handler are flagged as free of f32 denormals.
///
/// # Safety
/// As for [`fast_source`].
#[inline(always)]
pub unsafe fn have_no_denormals<const N: usize>(file: Half, sources: [Source; N]) -> bool {
    // Integers rather than booleans, for a single branch.
    // SAFETY: the sources are lane vectors (O4).
    let clean = |source: Source| unsafe { file.flags(source.vector_offset()) };
    sources.into_iter().fold(1, |all, source| all & clean(source)) != 0
}

/// Searches the lane vectors that are not flagged for denormals, and flags those without: a register that a
/// loop only reads is searched once. Returns true if no source has denormals.
///
/// # Safety
/// As for [`fast_source`].
#[inline(always)]
pub unsafe fn search_denormals<const N: usize>(file: Half, sources: [Source; N]) -> bool {
    let mut all = true;
    for source in sources {
        let at = source.number() as usize;
        debug_assert!(at < OPERAND_VECS);
        // SAFETY: the source is a lane vector (O4).
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

/// Clears the flag of a destination that may now hold denormals.
///
/// # Safety
/// As for [`fast_write`].
#[inline(always)]
pub unsafe fn written<const N: usize>(file: Half, d: u16) {
    for k in 0..N {
        // SAFETY: the caller upholds the contract of `fast_write`.
        unsafe { file.set_no_denormals(d as usize + k, false) };
    }
}

/// Flags a destination whose f32 values have been flushed.
///
/// # Safety
/// As for [`fast_write`].
#[inline(always)]
pub unsafe fn flushed(file: Half, op: &Op, exec: u32) {
    // SAFETY: the caller upholds the contract of `fast_write`.
    unsafe {
        match exec {
            u32::MAX => file.set_no_denormals(op.d as usize, true),
            // The other lanes have not changed.
            _ => file.mark_written(op.d as usize),
        }
    }
}

/// [`fast_write`] of f32 values whose denormals become zeros. The search for denormals comes after the write:
/// the compiler does not vectorise a result that is examined before it is stored.
///
/// # Safety
/// As for [`fast_write`].
#[inline(always)]
pub unsafe fn flushing_write(cx: &mut Cx<'_>, file: Half, op: &Op, exec: u32, vec: LaneVec) -> Flow {
    // SAFETY: the caller upholds the contract of `fast_write`, here and below.
    unsafe {
        fast_write(file, op, exec, [vec]);
        flushed(file, op, exec);
        // Rare, and possibly in an inactive lane only.
        if has_denormal(&vec) { flush_written(cx, op) } else { Flow::NEXT }
    }
}

/// Returns the result of a tail call. If the compiler could see the value, it would emit a call and rebuild
/// the value after it, instead of a jump.
#[inline(always)]
pub fn tail_call(flow: Flow) -> Flow {
    Flow(std::hint::black_box(flow.0))
}

/// Flushes the f32 denormals in the active lanes of the result, as the last step of a handler.
///
/// # Safety
/// As for [`fast_write`].
#[cold]
#[inline(never)]
pub unsafe fn flush_written(cx: &mut Cx<'_>, op: &Op) -> Flow {
    // SAFETY: the caller guarantees that the destination is a vector of the file (O3, W1).
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
    // Doubling a word removes its sign. After subtracting one, zero is the largest of all values, and
    // denormals are the smallest.
    const LEAST_NORMAL: u32 = (0x0080_0000 << 1) - 1;
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::*;
        // SAFETY: only fast handlers call this, so the host has AVX2 (H1); a lane vector is four aligned SIMD
        // vectors.
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
