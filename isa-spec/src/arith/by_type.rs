//! Arithmetic on `u128` bit patterns of a [`Ty`], for the evaluator and for compiled code of rare types.
//!
//! Floating-point arithmetic on another type panics: the checker rejects such bodies.

use std::cmp::Ordering;

use super::approx::{self, Function};
use super::env::{FloatEnv, Round};
use super::format::{Format, Value, unpack};
use super::{integral, soft, trig_preop as preop};
use crate::pcode::ir::Ty;

/// Returns the format of a floating-point type.
fn format(ty: Ty) -> Format {
    Format::of(ty).unwrap_or_else(|| panic!("{ty:?} has no floating-point arithmetic"))
}

/// Functions from floats of one type to the same type.
macro_rules! operations {
    ($($(#[$doc:meta])* $name:ident($($arg:ident),+) = $path:path;)+) => {
        $($(#[$doc])*
        pub fn $name($($arg: u128),+, ty: Ty, env: &FloatEnv) -> u128 {
            $path(format(ty), $($arg as u64),+, env) as u128
        })+
    };
}

operations! {
    /// `a + b`.
    add(a, b) = soft::add;
    /// `a - b`.
    sub(a, b) = soft::sub;
    /// `a * b`.
    mul(a, b) = soft::mul;
    /// IEEE division.
    div_float(a, b) = soft::div;
    /// `a * b + c`, rounded once.
    fma(a, b, c) = soft::fma;
    /// Square root, rounded once.
    sqrt(x) = soft::sqrt;
    /// `1 / x`, rounded once.
    rcp(x) = soft::rcp;
    /// `1 / sqrt(x)`, rounded once.
    rsq(x) = soft::rsq;
    /// `x - floor(x)`, below one.
    fract(x) = integral::fract;
    /// Significand of `frexp`; returns zeros, infinities and NaNs unchanged.
    frexp_mant(x) = integral::frexp_mant;
}

macro_rules! roundings {
    ($($name:ident = $round:ident;)+) => {
        $(#[doc = concat!("To an integral value, ", stringify!($round), ".")]
        pub fn $name(x: u128, ty: Ty, env: &FloatEnv) -> u128 {
            integral::round_to_integral(format(ty), x as u64, Round::$round, env) as u128
        })+
    };
}

roundings! { floor = Down; ceil = Up; trunc = Zero; rndne = NearestEven; }

macro_rules! approximated {
    ($($(#[$doc:meta])* $name:ident = $function:ident;)+) => {
        $($(#[$doc])*
        pub fn $name(x: u128, ty: Ty, env: &FloatEnv) -> u128 {
            approx::evaluate(Function::$function, format(ty), x as u64, env) as u128
        })+
    };
}

approximated! {
    /// 2 to the `x`.
    exp2 = Exp2;
    /// The logarithm to base 2.
    log2 = Log2;
    /// Sine of `x` turns.
    sin = Sin;
    /// Cosine of `x` turns.
    cos = Cos;
    /// Hyperbolic tangent.
    tanh = Tanh;
}

macro_rules! tests {
    ($($(#[$doc:meta])* $name:ident = $method:ident;)+) => {
        $($(#[$doc])*
        pub fn $name(x: u128, ty: Ty) -> bool {
            Format::of(ty).is_some_and(|f| f.$method(x as u64))
        })+
    };
}

tests! {
    /// Any NaN.
    is_nan = is_nan;
    /// A signalling NaN.
    is_signal_nan = is_signal_nan;
    /// A quiet NaN.
    is_quiet_nan = is_quiet_nan;
    /// An infinity.
    is_inf = is_infinite;
    /// A denormal number, not zero.
    is_denorm = is_denormal;
    /// A zero of either sign.
    is_zero = is_zero;
}

/// Makes a NaN quiet; returns any other value unchanged.
pub fn quiet(x: u128, ty: Ty) -> u128 {
    Format::of(ty).map_or(x, |f| f.quiet(x as u64) as u128)
}

/// Returns positive infinity (NaN in E4M3, which has no infinity).
pub fn infinity(ty: Ty) -> u128 {
    format(ty).infinity() as u128
}

/// Flushes a denormal to the zero of its sign; returns any other value unchanged.
pub fn flush(x: u128, ty: Ty) -> u128 {
    Format::of(ty).map_or(x, |f| f.flush(x as u64) as u128)
}

/// Compares two numbers; returns `None` for a NaN. Denormals count as zeros if MODE flushes inputs.
pub fn compare(a: u128, b: u128, ty: Ty, env: &FloatEnv) -> Option<Ordering> {
    soft::compare(format(ty), a as u64, b as u64, env)
}

/// Returns the minimum or maximum, with `-0 < +0`. If `propagate`, a NaN wins (IEEE minimum and maximum),
/// otherwise a number (minimumNumber and maximumNumber).
pub fn min_max(a: u128, b: u128, ty: Ty, env: &FloatEnv, max: bool, propagate: bool) -> u128 {
    let format = format(ty);
    let choose = match (max, propagate) {
        (false, false) => soft::min_num,
        (true, false) => soft::max_num,
        (false, true) => soft::minimum,
        (true, true) => soft::maximum,
    };
    choose(format, a as u64, b as u64, env) as u128
}

/// `x · 2^n`, rounded once.
pub fn ldexp(x: u128, n: i32, ty: Ty, env: &FloatEnv) -> u128 {
    integral::ldexp(format(ty), x as u64, n, env) as u128
}

/// `(a * b + c) · 2^n`, rounded once.
pub fn fma_ldexp(a: u128, b: u128, c: u128, n: i32, ty: Ty, env: &FloatEnv) -> u128 {
    soft::fma_ldexp(format(ty), a as u64, b as u64, c as u64, n, env) as u128
}

/// Returns the exponent `e` with `|x| = m · 2^e`, `m` in [0.5, 1); 0 for zeros, infinities and NaNs.
pub fn frexp_exp(x: u128, ty: Ty, env: &FloatEnv) -> i32 {
    integral::frexp_exp(format(ty), x as u64, env)
}

/// Returns the biased exponent field.
pub fn exponent(x: u128, ty: Ty) -> i32 {
    integral::exponent_field(format(ty), x as u64) as i32
}

/// `base ** power`. A power of two is exact or rounded once. Small integer powers are correctly rounded
/// products. All others are computed in f64 (no instruction needs more).
pub fn pow(base: u128, power: u128, ty: Ty, power_ty: Ty, env: &FloatEnv) -> u128 {
    let two = base == constant(2.0, ty);
    if !power_ty.is_float() {
        let n = power as u32 as i32;
        return match n {
            _ if two => ldexp(constant(1.0, ty), n, ty, env),
            0 => constant(1.0, ty),
            1 => base,
            2 => mul(base, base, ty, env),
            _ => constant(as_f64(base, ty).powi(n), ty),
        };
    }
    if two && power_ty == ty {
        return exp2(power, ty, env);
    }
    constant(as_f64(base, ty).powf(as_f64(power, power_ty)), ty)
}

/// Rounds `value` to nearest even.
pub fn constant(value: f64, ty: Ty) -> u128 {
    convert_float(value.to_bits() as u128, Ty::F64, ty, Round::NearestEven)
}

/// Converts to f64, exactly except for NaNs of f64.
fn as_f64(x: u128, ty: Ty) -> f64 {
    f64::from_bits(convert_float(x, ty, Ty::F64, Round::NearestEven) as u64)
}

/// Converts between formats with one rounding in a given mode and without flushing; NaNs become quiet.
pub fn convert_float(x: u128, from: Ty, into: Ty, round: Round) -> u128 {
    let (from, into) = (format(from), format(into));
    match unpack(from, x as u64) {
        Value::Finite(exact) => super::format::pack(into, exact, round, false) as u128,
        _ => integral::to_float(from, into, x as u64, true, &FloatEnv::KEEP) as u128,
    }
}

/// Converts between formats like an instruction: flushes by both formats' modes, rounds by the mode of
/// `into`, and makes NaNs quiet.
pub fn convert(x: u128, from: Ty, into: Ty, env: &FloatEnv) -> u128 {
    convert_nan(x, from, into, true, env)
}

/// Converts between formats like a cast in pseudocode: as [`convert`], but widening keeps a NaN signalling.
/// Therefore `isSignalNAN(64'F(S0.f32))` tests S0.
pub fn cast(x: u128, from: Ty, into: Ty, env: &FloatEnv) -> u128 {
    convert_nan(x, from, into, into.width() <= from.width(), env)
}

fn convert_nan(x: u128, from: Ty, into: Ty, quiet: bool, env: &FloatEnv) -> u128 {
    let (from, into) = (format(from), format(into));
    integral::to_float(from, into, x as u64, quiet, env) as u128
}

/// Converts a float to an integer of `width` bits, rounding by `round` and saturating (at 64 bits for greater
/// widths); NaN returns 0.
pub fn to_int(x: u128, ty: Ty, env: &FloatEnv, width: u32, signed: bool, round: Round) -> u128 {
    let format = format(ty);
    let value = integral::to_int(format, x as u64, width.clamp(1, 64), signed, round, env) as u128;
    super::sign_extend(value, if signed { 64 } else { 128 }) & super::mask(width)
}

/// Converts an integer to a float. If `signed`, `value` is sign-extended to 128 bits.
pub fn from_int(value: u128, signed: bool, ty: Ty, env: &FloatEnv) -> u128 {
    let format = format(ty);
    let negative = signed && value >> 127 == 1;
    let magnitude = if negative { value.wrapping_neg() } else { value };
    integral::from_magnitude(format, negative, magnitude, env) as u128
}

/// Converts to a normalised integer of `bits` bits: clamps to [-1, 1] or [0, 1], scales by the largest value,
/// and rounds to nearest even.
pub fn to_norm(x: u128, ty: Ty, signed: bool, bits: u32, env: &FloatEnv) -> u128 {
    let format = format(ty);
    let value = if signed {
        integral::to_snorm(format, x as u64, bits, env) as u128
    } else {
        integral::to_unorm(format, x as u64, bits, env) as u128
    };
    value & super::mask(bits)
}

/// Converts an f32 to an 8-bit float with stochastic rounding; see [`integral::to_float8_stochastic`].
pub fn stochastic_8(x: u128, seed: u32, ty: Ty, env: &FloatEnv) -> u128 {
    integral::to_float8_stochastic(format(ty), x as u32, seed, env) as u128
}

/// See [`preop::trig_preop`].
pub fn trig_preop(x: u128, segment: u32, env: &FloatEnv) -> u128 {
    preop::trig_preop(x as u64, segment, env) as u128
}
