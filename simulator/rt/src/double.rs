//! f64 operations with the host's own instructions, which round to nearest even and keep denormals, as the
//! modes of fast handlers require for f64.

use super::float::{Mode, f, fl};
use super::nan;
use isa_spec::arith::{self, FloatEnv};
use isa_spec::pcode::ir::Ty;

#[inline(always)]
fn d(x: u64) -> f64 {
    f64::from_bits(x)
}

/// Returns `2^n`, for exponents of normal numbers.
#[inline(always)]
fn power(n: i32) -> f64 {
    d(((n + 1023) as u64) << 52)
}

macro_rules! one64 {
    ($($name:ident $lib:ident |$x:ident| $e:expr;)*) => { $(
        /// A function of one f64, rounded once.
        #[inline(always)]
        pub fn $name<M: Mode>(m: &M, x: u64) -> u64 {
            if M::GENERAL {
                return arith::$lib(x as u128, Ty::F64, m.env()) as u64;
            }
            let $x = d(x);
            let r: f64 = $e;
            r.to_bits()
        }
    )* };
}

one64! {
    floor_f64 floor |x| x.floor();
    ceil_f64 ceil |x| x.ceil();
    trunc_f64 trunc |x| x.trunc();
    rndne_f64 rndne |x| x.round_ties_even();
    fract_f64 fract |x| fract(x);
}

#[inline(always)]
fn fract(x: f64) -> f64 {
    // Of an infinity: not a number.
    let r = nan::result([x], x - x.floor());
    let below_one = d(0x3fef_ffff_ffff_ffff);
    if r > below_one { below_one } else { r }
}

/// Functions that hardware approximates: rounded to nearest even in every mode.
macro_rules! approximated64 {
    ($($name:ident $lib:ident |$x:ident| $e:expr;)*) => { $(
        /// The function, rounded once; hardware's own result may differ in the last bits.
        #[inline(always)]
        pub fn $name<M: Mode>(m: &M, x: u64) -> u64 {
            if M::GENERAL {
                return arith::$lib(x as u128, Ty::F64, &m.env().approximated()) as u64;
            }
            let $x = d(x);
            let r: f64 = nan::result([$x], $e);
            r.to_bits()
        }
    )* };
}

approximated64! {
    sqrt_f64 sqrt |x| x.sqrt();
    rcp_f64 rcp |x| 1.0 / x;
    rsq_f64 rsq |x| reciprocal_root(x);
}

/// Returns 1 / sqrt(x), rounded once. Let `y` be the reciprocal of the rounded root. Its error is `y / 2 (1 -
/// x y²)`, up to terms of the square of this, 2^-104. Unless the corrected value is that near a tie, it is
/// correctly rounded.
#[inline(always)]
fn reciprocal_root(x: f64) -> f64 {
    let y = 1.0 / x.sqrt();
    // x y as an exact sum of two parts. x y² is then near one, and `rest` is its small difference from one.
    let high = x * y;
    let low = x.mul_add(y, -high);
    let rest = (-low).mul_add(y, (-high).mul_add(y, 1.0));
    let error = 0.5 * y * rest;
    let reserve = y * power(-95);
    let (least, most) = (y + (error - reserve), y + (error + reserve));
    if least == most {
        return least;
    }
    // Zero, infinity, NaN and negative numbers.
    if x == 0.0 || x.is_infinite() || y.is_nan() {
        return y;
    }
    exact_reciprocal_root(x)
}

#[cold]
#[inline(never)]
fn exact_reciprocal_root(x: f64) -> f64 {
    d(arith::rsq(x.to_bits() as u128, Ty::F64, &FloatEnv::KEEP) as u64)
}

/// Returns `x · 2^n`, rounded once. A power that f64 cannot represent is split into two or three factors: the
/// first ones scale up, which is exact, or down so far that anything they round becomes zero in the end.
#[inline(always)]
pub fn ldexp_f64<M: Mode>(m: &M, x: u64, n: u32) -> u64 {
    if M::GENERAL {
        return arith::ldexp(x as u128, n as i32, Ty::F64, m.env()) as u64;
    }
    let part = |n: i32| if n < -1022 { -969 } else { n.min(1023) };
    let n = (n as i32).clamp(-2200, 2200);
    let first = part(n);
    let second = part(n - first);
    let third = n - first - second;
    (d(x) * power(first) * power(second) * power(third)).to_bits()
}

/// Normalises a denormal; returns the number and the increase of its exponent.
#[inline(always)]
fn normal(x: u64) -> (u64, u32) {
    let denormal = x & 0x7ff0_0000_0000_0000 == 0;
    if denormal { ((d(x) * power(54)).to_bits(), 54) } else { (x, 0) }
}

/// Returns the significand in [0.5, 1), with the sign of `x`; zero, infinity and NaN (made quiet) are
/// returned unchanged.
#[inline(always)]
pub fn frexp_mant_f64<M: Mode>(m: &M, x: u64) -> u64 {
    if M::GENERAL {
        return arith::frexp_mant(x as u128, Ty::F64, m.env()) as u64;
    }
    let special = x << 1 == 0 || x & 0x7ff0_0000_0000_0000 == 0x7ff0_0000_0000_0000;
    let mantissa = normal(x).0 & 0x800f_ffff_ffff_ffff | 0x3fe0_0000_0000_0000;
    if special { super::float::quiet_f64(x) } else { mantissa }
}

/// Returns the exponent that belongs to [`frexp_mant_f64`]; 0 for zero, infinity and NaN.
#[inline(always)]
pub fn frexp_exp_f64<M: Mode>(m: &M, x: u64) -> u32 {
    if M::GENERAL {
        return arith::frexp_exp(x as u128, Ty::F64, m.env()) as u32;
    }
    let x = x & 0x7fff_ffff_ffff_ffff;
    let (normal, added) = normal(x);
    let exponent = ((normal >> 52) as u32).wrapping_sub(1022 + added);
    if x == 0 || x >= 0x7ff0_0000_0000_0000 { 0 } else { exponent }
}

/// Returns `(a * b + c) · 2^n`, rounded once: scaling is exact if both the sum and the result are normal
/// numbers.
#[inline(always)]
pub fn fma_ldexp_f64<M: Mode>(m: &M, a: u64, b: u64, c: u64, n: u32) -> u64 {
    if !M::GENERAL {
        let sum = d(a).mul_add(d(b), d(c));
        let exponent = (sum.to_bits() >> 52 & 0x7ff) as i32;
        let scaled = exponent.wrapping_add(n as i32);
        // Exponents from 2 on only: a sum with exponent 1 may have been rounded up from a denormal.
        if (2..0x7ff).contains(&exponent) && (2..0x7ff).contains(&scaled) {
            return (sum * power(n as i32 >> 1) * power(n as i32 - (n as i32 >> 1))).to_bits();
        }
    }
    exact_fma_ldexp(a, b, c, n as i32, m.env())
}

#[cold]
#[inline(never)]
fn exact_fma_ldexp(a: u64, b: u64, c: u64, n: i32, env: &FloatEnv) -> u64 {
    arith::fma_ldexp(a as u128, b as u128, c as u128, n, Ty::F64, env) as u64
}

/// Returns a segment of 2/pi: an integer of 53 bits, scaled.
#[inline(always)]
pub fn trig_preop_f64<M: Mode>(m: &M, x: u64, segment: u32) -> u64 {
    if M::GENERAL {
        return arith::trig_preop(x as u128, segment, m.env()) as u64;
    }
    let exponent = (x >> 52 & 0x7ff) as u32;
    let (integer, scale) = arith::trig_preop::unscaled(exponent, segment);
    ldexp_f64(m, (integer as f64).to_bits(), scale as u32)
}

/// Converts f32 to f64; exact except for denormals that the mode flushes.
#[inline(always)]
pub fn cvt_f32_f64<M: Mode>(m: &M, x: u32) -> u64 {
    if M::GENERAL {
        return arith::convert(x as u128, Ty::F32, Ty::F64, m.env()) as u64;
    }
    (f(fl::<M>(x)) as f64).to_bits()
}

/// Converts f64 to f32, rounded according to MODE for f32.
#[inline(always)]
pub fn cvt_f64_f32<M: Mode>(m: &M, x: u64) -> u32 {
    if M::GENERAL {
        return arith::convert(x as u128, Ty::F64, Ty::F32, m.env()) as u32;
    }
    fl::<M>((d(x) as f32).to_bits())
}

/// Rust's `as` truncates, saturates and maps NaN to 0, as the ISA does.
#[inline(always)]
pub fn cvt_f64_i32<M: Mode>(_m: &M, x: u64) -> u32 {
    d(x) as i32 as u32
}

/// As [`cvt_f64_i32`], to an unsigned integer.
#[inline(always)]
pub fn cvt_f64_u32<M: Mode>(_m: &M, x: u64) -> u32 {
    d(x) as u32
}

/// Converts a signed 32-bit integer to f64; exact.
#[inline(always)]
pub fn cvt_i32_f64<M: Mode>(_m: &M, x: u32) -> u64 {
    (x as i32 as f64).to_bits()
}

/// Converts an unsigned 32-bit integer to f64; exact.
#[inline(always)]
pub fn cvt_u32_f64<M: Mode>(_m: &M, x: u32) -> u64 {
    (x as f64).to_bits()
}
