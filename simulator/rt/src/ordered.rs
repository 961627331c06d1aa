//! Sums, products and multiply-adds of f32 lane vectors for hosts with AVX2. They are written in assembly because the
//! order of the operands determines which NaN is the result ([`nan`](super::nan)), and compilers exchange the
//! operands of these instructions.

use crate::op::Source;
use std::arch::asm;
use std::arch::x86_64::{__m256, _mm256_load_ps, _mm256_store_ps};
use wavesim_state::{Half, LaneVec};

/// Distance between host vectors.
const BYTES: i32 = 32;

/// Loads a vector of a source.
///
/// # Safety
/// The source is a lane vector of the file (O4).
#[target_feature(enable = "avx2")]
#[inline]
unsafe fn vector(file: Half, source: Source, index: usize) -> __m256 {
    // SAFETY: the caller guarantees that the lane vector is in the file. Lane vectors are aligned.
    unsafe { _mm256_load_ps(file.at(source.vector_offset()).cast::<f32>().add(8 * index)) }
}

/// Collects the vectors of a result.
#[target_feature(enable = "avx2")]
#[inline]
fn collect(vectors: [__m256; 4]) -> LaneVec {
    let mut out = LaneVec::ZERO;
    for (index, vector) in vectors.into_iter().enumerate() {
        // SAFETY: a lane vector is four aligned vectors.
        unsafe { _mm256_store_ps(out.0.as_mut_ptr().cast::<f32>().add(8 * index), vector) };
    }
    out
}

/// Expands to the four vectors of a result: `$one!(index)` for each.
macro_rules! four {
    ($one:ident) => {
        [$one!(0), $one!(1), $one!(2), $one!(3)]
    };
}

macro_rules! of_two {
    ($($name:ident $instruction:literal $doc:literal;)*) => { $(
        #[doc = $doc]
        ///
        /// # Safety
        /// The sources are lane vectors of the file (O4).
        #[target_feature(enable = "avx2")]
        #[inline]
        pub unsafe fn $name(file: Half, a: Source, b: Source) -> LaneVec {
            macro_rules! one {
                ($index:literal) => {{
                    let out: __m256;
                    // SAFETY: the caller guarantees that the sources are in the file; the address of the second one
                    // is that of `vector`.
                    unsafe {
                        asm!(
                            concat!($instruction, " {out}, {a}, ymmword ptr [{base} + {offset} + {at}]"),
                            out = lateout(ymm_reg) out,
                            a = in(ymm_reg) vector(file, a, $index),
                            base = in(reg) file.at(0),
                            offset = in(reg) b.scaled(),
                            at = const Source::BIAS + BYTES * $index,
                            options(pure, readonly, nostack, preserves_flags)
                        );
                    }
                    out
                }};
            }
            collect(four!(one))
        }
    )* };
}

of_two! {
    add_f32 "vaddps" "`a + b` in each lane; the first NaN operand is the result.";
    mul_f32 "vmulps" "`a * b` in each lane; the first NaN operand is the result.";
}

/// `a * b + c` in each lane, rounded once; the first NaN operand is the result.
///
/// # Safety
/// The sources are lane vectors of the file (O4).
#[target_feature(enable = "avx2,fma")]
#[inline]
pub unsafe fn fma_f32(file: Half, a: Source, b: Source, c: Source) -> LaneVec {
    macro_rules! one {
        ($index:literal) => {{
            // SAFETY: as for `of_two`. The instruction multiplies its second operand by its first.
            let mut out = unsafe { vector(file, b, $index) };
            // SAFETY: as above.
            unsafe {
                asm!(
                    "vfmadd213ps {out}, {a}, ymmword ptr [{base} + {offset} + {at}]",
                    out = inout(ymm_reg) out,
                    a = in(ymm_reg) vector(file, a, $index),
                    base = in(reg) file.at(0),
                    offset = in(reg) c.scaled(),
                    at = const Source::BIAS + BYTES * $index,
                    options(pure, readonly, nostack, preserves_flags)
                );
            }
            out
        }};
    }
    collect(four!(one))
}

/// As [`fma_f32`], with an addend that need not be in the file.
///
/// # Safety
/// The sources are lane vectors of the file (O4), and `c` is valid.
#[target_feature(enable = "avx2,fma")]
#[inline]
pub unsafe fn fmac_f32(file: Half, a: Source, b: Source, c: *const LaneVec) -> LaneVec {
    macro_rules! one {
        ($index:literal) => {{
            // SAFETY: as for `fma_f32`; the caller guarantees that `c` is valid.
            let mut out = unsafe { vector(file, b, $index) };
            // SAFETY: as above.
            unsafe {
                asm!(
                    "vfmadd213ps {out}, {a}, ymmword ptr [{c} + {at}]",
                    out = inout(ymm_reg) out,
                    a = in(ymm_reg) vector(file, a, $index),
                    c = in(reg) c,
                    at = const BYTES * $index,
                    options(pure, readonly, nostack, preserves_flags)
                );
            }
            out
        }};
    }
    collect(four!(one))
}

/// `a * b + c` of host vectors, rounded once; the first NaN operand is the result.
#[target_feature(enable = "avx2,fma")]
#[inline]
pub(super) fn fma_vector(a: __m256, b: __m256, c: __m256) -> __m256 {
    let mut out = c;
    // SAFETY: the caller's features include the instruction, which multiplies its second operand by its third.
    unsafe {
        asm!("vfmadd231ps {out}, {a}, {b}", out = inout(ymm_reg) out, a = in(ymm_reg) a, b = in(ymm_reg) b,
            options(pure, nomem, nostack, preserves_flags));
    }
    out
}
