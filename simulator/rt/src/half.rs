//! 16-bit and 8-bit floats: arithmetic through f32, in operations that vectorise. f32 has more than twice the
//! precision of f16, so that sums, products, quotients and square roots rounded to f32 and then to f16 equal
//! those rounded once. A multiply-add needs rounding to odd.

use super::float::{Mode, f, fl, fract, quiet_f32};
use super::half_conversions::{half_to_single, single_to_half};
use super::nan;
use isa_spec::arith;
use isa_spec::pcode::ir::Ty;

#[inline(always)]
fn single(h: u32) -> f32 {
    f(half_to_single(h))
}

macro_rules! arith16 {
    ($($name:ident $lib:ident |$a:ident, $b:ident| $e:expr;)*) => { $(
        /// An operation of two f16, rounded once.
        #[inline(always)]
        pub fn $name<M: Mode>(m: &M, a: u32, b: u32) -> u32 {
            if M::GENERAL {
                return arith::$lib(a as u128, b as u128, Ty::F16, m.env()) as u32;
            }
            let ($a, $b) = (single(a), single(b));
            single_to_half(($e).to_bits())
        }
    )* };
}

arith16! {
    add_f16 add |a, b| nan::of_two(a, b, |a, b| a + b);
    sub_f16 sub |a, b| nan::result([a, b], a - b);
    mul_f16 mul |a, b| nan::of_two(a, b, |a, b| a * b);
    div_f16 div_float |a, b| nan::result([a, b], a / b);
}

/// Returns `a * b + c`, of which the product is exact, rounded to odd: rounding it again, to at least two bits less,
/// rounds the exact sum.
#[inline(always)]
fn fma_to_odd(a: f32, b: f32, c: f32) -> u32 {
    let product = a * b;
    let sum = nan::of_three(a, b, c, f32::mul_add);
    // The exact rounding error of the sum.
    let from_c = sum - product;
    let lost = (product - (sum - from_c)) + (c - from_c);
    let bits = sum.to_bits();
    // False for NaN, where no bits are lost.
    let inexact = (lost > 0.0) | (lost < 0.0);
    let outward = (lost < 0.0) == (sum < 0.0);
    let odd = if outward { bits.wrapping_add(1) } else { bits.wrapping_sub(1) };
    if inexact & (bits & 1 == 0) { odd } else { bits }
}

/// `a * b + c`, rounded once.
#[inline(always)]
pub fn fma_f16<M: Mode>(m: &M, a: u32, b: u32, c: u32) -> u32 {
    if M::GENERAL {
        return arith::fma(a as u128, b as u128, c as u128, Ty::F16, m.env()) as u32;
    }
    // The product has 22 bits, so it is exact.
    let [a, b, c] = [a, b, c].map(single);
    single_to_half(fma_to_odd(a, b, c))
}

/// Sums of bf16 in f32, which has twice their precision and the same exponent range, so that double rounding
/// is harmless.
macro_rules! sums {
    ($($name:ident $lib:ident |$a:ident, $b:ident| $e:expr;)*) => { $(
        /// A sum or difference of two bf16, rounded once.
        #[inline(always)]
        pub fn $name<M: Mode>(m: &M, a: u32, b: u32) -> u32 {
            if M::GENERAL {
                return arith::$lib(a as u128, b as u128, Ty::BF16, m.env()) as u32;
            }
            let [$a, $b] = [a, b].map(|x| f(fl::<M>(x << 16)));
            cvt_f32_bf16(m, ($e).to_bits())
        }
    )* };
}

sums! {
    add_bf16 add |a, b| nan::of_two(a, b, |a, b| a + b);
    sub_bf16 sub |a, b| nan::result([a, b], a - b);
}

macro_rules! library {
    ($($name:ident $lib:ident $ty:ident ($($arg:ident),*);)*) => { $(
        /// Computed by the exact library in every mode.
        #[inline(always)]
        pub fn $name<M: Mode>(m: &M, $($arg: u32),*) -> u32 {
            arith::$lib($($arg as u128,)* Ty::$ty, m.env()) as u32
        }
    )* };
}

library! {
    mul_bf16 mul BF16 (a, b);
    div_bf16 div_float BF16 (a, b);
    fma_bf16 fma BF16 (a, b, c);
}

macro_rules! one16 {
    ($($name:ident $lib:ident |$x:ident| $e:expr;)*) => { $(
        /// A function of one f16, rounded once.
        #[inline(always)]
        pub fn $name<M: Mode>(m: &M, x: u32) -> u32 {
            if M::GENERAL {
                return arith::$lib(x as u128, Ty::F16, m.env()) as u32;
            }
            let $x = single(x);
            let r: f32 = $e;
            single_to_half(r.to_bits())
        }
    )* };
}

one16! {
    floor_f16 floor |x| x.floor();
    ceil_f16 ceil |x| x.ceil();
    trunc_f16 trunc |x| x.trunc();
    rndne_f16 rndne |x| x.round_ties_even();
}

/// Functions that hardware approximates: rounded to nearest even in every mode.
macro_rules! approximated16 {
    ($($name:ident $lib:ident |$x:ident| $e:expr;)*) => { $(
        /// The function, rounded once; hardware's own result may differ in the last bits.
        #[inline(always)]
        pub fn $name<M: Mode>(m: &M, x: u32) -> u32 {
            if M::GENERAL {
                return arith::$lib(x as u128, Ty::F16, &m.env().approximated()) as u32;
            }
            let $x = single(x);
            let r: f32 = nan::result([$x], $e);
            single_to_half(r.to_bits())
        }
    )* };
}

approximated16! {
    sqrt_f16 sqrt |x| x.sqrt();
    rcp_f16 rcp |x| 1.0 / x;
    rsq_f16 rsq |x| 1.0 / x.sqrt();
}

/// Returns `x - floor(x)`, which is below 1.
#[inline(always)]
pub fn fract_f16<M: Mode>(m: &M, x: u32) -> u32 {
    if M::GENERAL {
        return arith::fract(x as u128, Ty::F16, m.env()) as u32;
    }
    let r = single_to_half(fract(single(x)).to_bits());
    // Rounding may have yielded one.
    if r == 0x3c00 { 0x3bff } else { r }
}

/// Returns `x · 2^n` for a signed `n`, rounded once.
#[inline(always)]
pub fn ldexp_f16<M: Mode>(m: &M, x: u32, n: u32) -> u32 {
    if M::GENERAL {
        return arith::ldexp(x as u128, n as i32, Ty::F16, m.env()) as u32;
    }
    // Exact in f32; scales beyond 64 yield infinity or zero.
    let scale = f(((n as i32).clamp(-64, 64) + 127) as u32 * (1 << 23));
    single_to_half((single(x) * scale).to_bits())
}

/// Returns the significand in [0.5, 1), with the sign of `x`; zero, infinity and NaN (made quiet) are
/// returned unchanged.
#[inline(always)]
pub fn frexp_mant_f16<M: Mode>(m: &M, x: u32) -> u32 {
    if M::GENERAL {
        return arith::frexp_mant(x as u128, Ty::F16, m.env()) as u32;
    }
    let (own, magnitude) = (half_to_single(x), x & 0x7fff);
    // Denormals of f16 are normal numbers in f32.
    let half = single_to_half(own & 0x807f_ffff | 0x3f00_0000);
    if magnitude > 0x7c00 {
        x | 0x200
    } else if magnitude == 0 || magnitude == 0x7c00 {
        x
    } else {
        half
    }
}

/// Returns the exponent that belongs to [`frexp_mant_f16`]; 0 for zero, infinity and NaN.
#[inline(always)]
pub fn frexp_exp_f16<M: Mode>(m: &M, x: u32) -> u32 {
    if M::GENERAL {
        return arith::frexp_exp(x as u128, Ty::F16, m.env()) as u32;
    }
    let magnitude = x & 0x7fff;
    let exponent = (half_to_single(magnitude) >> 23).wrapping_sub(126);
    if magnitude == 0 || magnitude >= 0x7c00 { 0 } else { exponent }
}

/// Converts f16 to f32; exact. A signalling NaN becomes quiet.
#[inline(always)]
pub fn cvt_f16_f32<M: Mode>(m: &M, x: u32) -> u32 {
    if M::GENERAL {
        return arith::convert(x as u128, Ty::F16, Ty::F32, m.env()) as u32;
    }
    fl::<M>(quiet_f32(half_to_single(x)))
}

/// Converts f32 to f16, rounded according to MODE for f16.
#[inline(always)]
pub fn cvt_f32_f16<M: Mode>(m: &M, x: u32) -> u32 {
    if M::GENERAL {
        return arith::convert(x as u128, Ty::F32, Ty::F16, m.env()) as u32;
    }
    single_to_half(fl::<M>(x))
}

/// Converts f32 to f16, rounding toward zero in every mode.
#[inline(always)]
pub fn cvt_rtz_f32_f16<M: Mode>(m: &M, x: u32) -> u32 {
    if M::GENERAL {
        let env = m.env().with_round(arith::Round::Zero);
        return arith::convert(x as u128, Ty::F32, Ty::F16, &env) as u32;
    }
    let a = x & 0x7fff_ffff;
    let magnitude = if a > 0x7f80_0000 {
        0x7e00 | (a >> 13 & 0x3ff)
    } else if a == 0x7f80_0000 {
        0x7c00
    } else if a >= 0x4780_0000 {
        0x7bff
    } else if a >= 0x3880_0000 {
        (a - (112 << 23)) >> 13
    } else {
        // In units of the least denormal, which is exact.
        (f(a) * 16_777_216.0) as u32
    };
    x >> 16 & 0x8000 | magnitude
}

/// Converts f32 to bf16, rounding to nearest even in the modes of fast handlers.
#[inline(always)]
pub fn cvt_f32_bf16<M: Mode>(m: &M, x: u32) -> u32 {
    if M::GENERAL {
        return arith::convert(x as u128, Ty::F32, Ty::BF16, m.env()) as u32;
    }
    let x = fl::<M>(x);
    let nearest = x.wrapping_add(0x7fff).wrapping_add(x >> 16 & 1) >> 16;
    let rounded = if M::FLUSH && nearest & 0x7f80 == 0 { nearest & 0x8000 } else { nearest };
    if x & 0x7fff_ffff > 0x7f80_0000 { x >> 16 | 0x40 } else { rounded }
}

/// Converts f16 to a signed 16-bit integer: truncates, saturates, maps NaN to 0.
#[inline(always)]
pub fn cvt_f16_i16<M: Mode>(_m: &M, x: u32) -> u32 {
    (single(x) as i32).clamp(-0x8000, 0x7fff) as u32 & 0xffff
}

/// Converts f16 to an unsigned 16-bit integer: truncates, saturates, maps NaN to 0.
#[inline(always)]
pub fn cvt_f16_u16<M: Mode>(_m: &M, x: u32) -> u32 {
    (single(x) as i32).clamp(0, 0xffff) as u32
}

/// Converts a signed 16-bit integer to f16.
#[inline(always)]
pub fn cvt_i16_f16<M: Mode>(m: &M, x: u32) -> u32 {
    let value = x as u16 as i16 as i32;
    if M::GENERAL {
        return arith::from_int(value as i128 as u128, true, Ty::F16, m.env()) as u32;
    }
    single_to_half((value as f32).to_bits())
}

/// Converts an unsigned 16-bit integer to f16.
#[inline(always)]
pub fn cvt_u16_f16<M: Mode>(m: &M, x: u32) -> u32 {
    if M::GENERAL {
        return arith::from_int(x as u128, false, Ty::F16, m.env()) as u32;
    }
    single_to_half((x as i32 as f32).to_bits())
}

/// Converts FP8 (E4M3: four exponent bits, no infinity, one NaN) to f32; exact.
#[inline(always)]
pub fn cvt_fp8_f32<M: Mode>(_m: &M, x: u32) -> u32 {
    let magnitude = x & 0x7f;
    // The exponent bias is 120 less than that of f32; the product normalises denormals.
    let value = (f(magnitude << 20) * f((120 + 127) << 23)).to_bits();
    (x & 0x80) << 24 | if magnitude == 0x7f { 0x7fc0_0000 } else { value }
}

/// Converts BF8 (E5M2: the upper half of an f16) to f32; exact.
#[inline(always)]
pub fn cvt_bf8_f32<M: Mode>(_m: &M, x: u32) -> u32 {
    let magnitude = x & 0x7f;
    // As for FP8, but the exponent bias of BF8 is 112 less than that of f32. Infinity and NaN get the
    // greatest exponent of f32; NaNs become quiet.
    let value = (f(magnitude << 21) * f((112 + 127) << 23)).to_bits();
    let special = 0x7f80_0000 | (magnitude & 3) << 21 | ((magnitude > 0x7c) as u32) << 22;
    (x & 0x80) << 24 | if magnitude >= 0x7c { special } else { value }
}

/// Converts f32 to FP8 (E4M3), rounding to nearest even. Values out of range become NaN, or the largest
/// number if FP16_OVFL of MODE is set.
#[inline(always)]
pub fn cvt_f32_fp8<M: Mode>(m: &M, x: u32) -> u32 {
    if M::GENERAL {
        return arith::convert(x as u128, Ty::F32, Ty::FP8, m.env()) as u32;
    }
    let a = x & 0x7fff_ffff;
    let normal = (a.wrapping_add(0x7_ffff).wrapping_add(a >> 20 & 1) >> 20).wrapping_sub(120 << 3);
    // As for f16: the addition rounds at the least denormal, 2^-9.
    let denormal = (f(a) + f((127 + 14) << 23)).to_bits().wrapping_sub((127 + 14) << 23);
    let magnitude = if a < 0x3c80_0000 { denormal } else { normal };
    // Values out of range, NaN and infinity become NaN.
    x >> 24 & 0x80 | if a >= 0x4f80_0000 || magnitude > 0x7e { 0x7f } else { magnitude }
}

/// Converts f32 to BF8 (E5M2), rounding to nearest even. Values out of range become infinity, or the largest
/// number if FP16_OVFL of MODE is set.
#[inline(always)]
pub fn cvt_f32_bf8<M: Mode>(m: &M, x: u32) -> u32 {
    if M::GENERAL {
        return arith::convert(x as u128, Ty::F32, Ty::BF8, m.env()) as u32;
    }
    let a = x & 0x7fff_ffff;
    let normal = (a.wrapping_add(0xf_ffff).wrapping_add(a >> 21 & 1) >> 21).wrapping_sub(112 << 2);
    let denormal = (f(a) + f((127 + 7) << 23)).to_bits().wrapping_sub((127 + 7) << 23);
    let magnitude = if a < 0x3880_0000 { denormal } else { normal };
    let number = if a >= 0x4f80_0000 || magnitude > 0x7b { 0x7c } else { magnitude };
    x >> 24 & 0x80 | if a > 0x7f80_0000 { 0x7e | (a >> 21 & 3) } else { number }
}

/// An 8-bit float with stochastic rounding: the high bits of the seed are added below the kept bits, and the
/// rest is truncated. Values out of range are treated as for nearest even.
macro_rules! stochastic {
    ($($name:ident $nearest:ident $ty:ident $dropped:literal $bias:literal $normal:literal $scale:literal $most:literal;)*) => { $(
        /// Converts f32, rounded stochastically with the bits of `seed`.
        #[inline(always)]
        pub fn $name<M: Mode>(m: &M, x: u32, seed: u32) -> u32 {
            if M::GENERAL {
                return arith::stochastic_8(x as u128, seed, Ty::$ty, m.env()) as u32;
            }
            let a = x & 0x7fff_ffff;
            let noisy = (a + (seed >> (32 - $dropped))) & !((1 << $dropped) - 1);
            let cut = if a >= 0x7f80_0000 { a } else { noisy };
            // Denormals in units of the least one.
            let denormal = (f(cut) * $scale) as u32;
            let magnitude = if cut < $normal { denormal } else { (cut >> $dropped) - ($bias << (23 - $dropped)) };
            let nearest = $nearest(m, cut);
            x >> 24 & 0x80 | if magnitude >= $most { nearest } else { magnitude }
        }
    )* };
}

stochastic! {
    fp8_sr_f32 cvt_f32_fp8 FP8 20 120 0x3c80_0000 512.0 0x7e;
    bf8_sr_f32 cvt_f32_bf8 BF8 21 112 0x3880_0000 65536.0 0x7b;
}

/// Scales a number to an integer, rounding to nearest even and saturating. The product is exact in f64.
#[inline(always)]
fn normalised(x: f32, least: f64, most: f64) -> u32 {
    let scaled = (x as f64 * most).round_ties_even();
    let number = if scaled > most {
        most
    } else if scaled < least {
        least
    } else {
        scaled
    };
    // NaN yields 0.
    number as i32 as u32 & 0xffff
}

/// Converts f16 in [-1, 1] to a signed 16-bit integer: scales by 32767, rounds to nearest even, saturates,
/// maps NaN to 0.
#[inline(always)]
pub fn snorm_f16<M: Mode>(m: &M, x: u32) -> u32 {
    if M::GENERAL {
        return arith::to_norm(x as u128, Ty::F16, true, 16, m.env()) as u32;
    }
    normalised(single(x), -32767.0, 32767.0)
}

/// Converts f16 in [0, 1] to an unsigned 16-bit integer: scales by 65535, rounds to nearest even, saturates,
/// maps NaN to 0.
#[inline(always)]
pub fn unorm_f16<M: Mode>(m: &M, x: u32) -> u32 {
    if M::GENERAL {
        return arith::to_norm(x as u128, Ty::F16, false, 16, m.env()) as u32;
    }
    normalised(single(x), 0.0, 65535.0)
}

/// As [`snorm_f16`], for f32.
#[inline(always)]
pub fn snorm_f32<M: Mode>(_m: &M, x: u32) -> u32 {
    normalised(f(x), -32767.0, 32767.0)
}

/// As [`unorm_f16`], for f32.
#[inline(always)]
pub fn unorm_f32<M: Mode>(_m: &M, x: u32) -> u32 {
    normalised(f(x), 0.0, 65535.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_half_converts_exactly_and_back() {
        for h in 0..=0xffffu32 {
            let single = half_to_single(h);
            let value = half::f16::from_bits(h as u16);
            if value.is_nan() {
                // The library makes signalling NaNs quiet; here, that is left to the operation.
                assert_eq!(single, (h & 0x8000) << 16 | 0x7f80_0000 | (h & 0x3ff) << 13, "{h:04x}");
            } else {
                assert_eq!(single, value.to_f32_const().to_bits(), "{h:04x}");
            }
            if h & 0x7fff <= 0x7c00 {
                assert_eq!(single_to_half(single), h);
            }
        }
    }

    #[test]
    fn singles_round_to_halves_like_the_library() {
        let mut x = 12345u32;
        for _ in 0..200_000 {
            x = x.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            for y in [x, x & 0x8fff_ffff | 0x3000_0000, (x & 0xffff_e000) | 0x1000] {
                let ours = single_to_half(y);
                let theirs =
                    arith::convert_float(y as u128, Ty::F32, Ty::F16, arith::Round::NearestEven) as u32;
                if arith::is_nan(y as u128, Ty::F32) {
                    assert!(arith::is_nan(ours as u128, Ty::F16));
                } else {
                    assert_eq!(ours, theirs, "{y:08x}");
                }
            }
        }
    }
}
