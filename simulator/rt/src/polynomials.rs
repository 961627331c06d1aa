//! Functions for which hosts have no instruction, for 32 or eight lanes at once: polynomials in f64 that the
//! compiler vectorises.
//!
//! A result whose error could affect rounding is computed again by the exact library, and so are all results
//! in modes other than those of fast handlers. Results are the same bits on every host.

use super::float::{Mode, f, quiet_f32};
use super::half_conversions::{half_to_single, single_to_half};
use isa_spec::arith::approx::{Function, MARGIN, evaluate, quick};
use isa_spec::arith::{FloatEnv, Format};
use wavesim_state::LaneVec;

/// Computes `function` in each lane that is set in `which`, by its definition.
#[inline(never)]
fn each_exactly(function: Function, format: Format, env: &FloatEnv, which: u32, x: &[u32], vec: &mut [u32]) {
    for (lane, (x, out)) in x.iter().zip(vec).enumerate() {
        if which >> lane & 1 == 1 {
            *out = evaluate(function, format, *x as u64, env) as u32;
        }
    }
}

/// Computes a function of f32 through f64. `flush` tells whether arguments and results are flushed.
#[inline(always)]
fn of_singles<const N: usize>(
    function: Function,
    flush: [bool; 2],
    vec: &mut [u32; N],
    quickly: impl Fn(f64) -> f64,
) {
    let x = *vec;
    let zero =
        |bits: u32, flush: bool| if flush & (bits & 0x7f80_0000 == 0) { bits & 0x8000_0000 } else { bits };
    let mut unsure = [0u32; N];
    for l in 0..N {
        let argument = zero(x[l], flush[0]);
        let y = quickly(f(argument) as f64);
        let error = y * MARGIN;
        let (low, high) = ((y - error) as f32, (y + error) as f32);
        // A zero result is +0.
        let near = if y == 0.0 { 0 } else { low.to_bits() };
        let (special, result) = special(function, argument);
        vec[l] = zero(if special { result } else { near }, flush[1]);
        unsure[l] = (!special & (y != 0.0) & (low != high)) as u32;
    }
    let mut any = 0;
    for one in unsure {
        any |= one;
    }
    if any != 0 {
        let which = (0..N).fold(0, |which, l| which | unsure[l] << l);
        let env = FloatEnv { flush_in32: flush[0], flush_out32: flush[1], ..FloatEnv::KEEP };
        each_exactly(function, Format::F32, &env, which, &x, vec);
    }
}

/// The same for f16. No result is so near a tie that f64 does not decide it, as a test of all arguments
/// shows.
#[inline(always)]
fn of_halves<const N: usize>(function: Function, vec: &mut [u32; N], quickly: impl Fn(f64) -> f64) {
    for lane in vec {
        let argument = half_to_single(*lane & 0xffff);
        let y = quickly(f(argument) as f64);
        // Round to odd in f32: the last bit stands for all bits lost.
        let bits = y.to_bits();
        let odd = f64::from_bits(bits & !0x1fff_ffff | ((bits & 0x1fff_ffff != 0) as u64) << 29);
        let near = if y == 0.0 { 0 } else { (odd as f32).to_bits() };
        let (special, result) = special(function, argument);
        *lane = single_to_half(if special { result } else { near });
    }
}

/// Returns whether the result is not given by the polynomial, and that result.
#[inline(always)]
fn special(function: Function, x: u32) -> (bool, u32) {
    let magnitude = x & 0x7fff_ffff;
    let (nan, infinite, zero) = (magnitude > 0x7f80_0000, magnitude == 0x7f80_0000, magnitude == 0);
    let negative = x >> 31 == 1;
    const NAN: u32 = 0xffc0_0000;
    match function {
        Function::Exp2 => (nan, quiet_f32(x)),
        Function::Log2 => {
            let result = if nan {
                quiet_f32(x)
            } else if zero {
                0xff80_0000
            } else if negative {
                NAN
            } else {
                x
            };
            (nan | zero | negative | infinite, result)
        }
        // Every f32 above 2^24 is an integer.
        Function::Sin | Function::Cos => {
            let whole = if matches!(function, Function::Cos) { 0x3f80_0000 } else { 0 };
            let of_zero = if matches!(function, Function::Cos) { whole } else { x };
            let result = if nan {
                quiet_f32(x)
            } else if infinite {
                NAN
            } else if zero {
                of_zero
            } else {
                whole
            };
            (nan | zero | (magnitude >= 0x4b80_0000), result)
        }
        // Not a polynomial: handlers call its definition.
        Function::Tanh => unreachable!("tanh has no polynomial"),
    }
}

#[inline(always)]
fn exp2(x: f64) -> f64 {
    // Beyond these bounds every result is infinite or zero; `special` handles NaN.
    quick::exp2::<true>(x.clamp(-200.0, 200.0))
}

#[inline(always)]
fn sine(x: f64) -> f64 {
    let (sin, cos, quadrant) = quick::parts_of_sin_cos::<true>(bounded(x));
    let value = if quadrant & 1 == 0 { sin } else { cos };
    if quadrant & 2 == 0 { value } else { -value }
}

#[inline(always)]
fn cosine(x: f64) -> f64 {
    let (sin, cos, quadrant) = quick::parts_of_sin_cos::<true>(bounded(x));
    let value = if quadrant & 1 == 0 { cos } else { sin };
    if (quadrant + 1) & 2 == 0 { value } else { -value }
}

/// Replaces arguments that `special` handles with zero.
#[inline(always)]
fn bounded(x: f64) -> f64 {
    if x.abs() < 16_777_216.0 { x } else { 0.0 }
}

macro_rules! polynomials {
    ($($single:ident $half:ident $single_eight:ident $half_eight:ident $function:ident $quickly:path, $keeps:literal;)*) => { $(
        /// Computes the function in place. Functions that hardware approximates round to nearest even in
        /// every mode. With `$keeps`, f32 denormals are flushed only if MODE requires it.
        #[inline(always)]
        pub fn $single<M: Mode>(m: &M, vec: &mut LaneVec) {
            const FUNCTION: Function = Function::$function;
            #[cfg_attr(target_arch = "x86_64", target_feature(enable = "avx2,fma"))]
            #[inline(never)]
            unsafe fn fast(flush: bool, vec: &mut LaneVec) {
                of_singles(FUNCTION, [flush | !$keeps; 2], &mut vec.0, $quickly);
            }
            if M::GENERAL {
                let x = *vec;
                return each_exactly(FUNCTION, Format::F32, m.env(), u32::MAX, &x.0, &mut vec.0);
            }
            // SAFETY: modes other than `General` belong to fast handlers, so the host has AVX2 and FMA (H1).
            unsafe { fast(M::FLUSH, vec) }
        }

        /// The same for the f16 in each lane's low half.
        #[inline(always)]
        pub fn $half<M: Mode>(m: &M, vec: &mut LaneVec) {
            const FUNCTION: Function = Function::$function;
            #[cfg_attr(target_arch = "x86_64", target_feature(enable = "avx2,fma"))]
            #[inline(never)]
            unsafe fn fast(vec: &mut LaneVec) {
                of_halves(FUNCTION, &mut vec.0, $quickly);
            }
            if M::GENERAL {
                let x = *vec;
                return each_exactly(FUNCTION, Format::F16, m.env(), u32::MAX, &x.0, &mut vec.0);
            }
            // SAFETY: modes other than `General` belong to fast handlers, so the host has AVX2 and FMA (H1).
            unsafe { fast(vec) }
        }

        /// The same for eight f32, in the modes of fast handlers; `flush` selects flushing of denormals.
        ///
        /// # Safety
        /// The host has the vector instructions of fast handlers (H1).
        #[cfg_attr(target_arch = "x86_64", target_feature(enable = "avx2,fma"))]
        #[inline(never)]
        pub unsafe fn $single_eight(flush: bool, vec: &mut [u32; 8]) {
            of_singles(Function::$function, [flush | !$keeps; 2], vec, $quickly);
        }

        /// The same for eight f16.
        ///
        /// # Safety
        /// The host has the vector instructions of fast handlers (H1).
        #[cfg_attr(target_arch = "x86_64", target_feature(enable = "avx2,fma"))]
        #[inline(never)]
        pub unsafe fn $half_eight(vec: &mut [u32; 8]) {
            of_halves(Function::$function, vec, $quickly);
        }
    )* };
}

polynomials! {
    exp2_f32_vec exp2_f16_vec exp2_f32_eight exp2_f16_eight Exp2 exp2, false;
    log2_f32_vec log2_f16_vec log2_f32_eight log2_f16_eight Log2 quick::log2::<true>, false;
    sin_turns_f32_vec sin_turns_f16_vec sin_turns_f32_eight sin_turns_f16_eight Sin sine, true;
    cos_turns_f32_vec cos_turns_f16_vec cos_turns_f32_eight cos_turns_f16_eight Cos cosine, false;
}
