//! Float operations: one rounding each, by the environment; denormals flushed on the way in and out where it says so.

use super::env::{FloatEnv, Round};
use crate::pcode::ir::Ty;
use rustc_apfloat::ieee::{BFloat, Double, Float8E4M3FN, Float8E5M2, Half, Single};
use rustc_apfloat::{Float, FloatConvert, StatusAnd};

/// Exponent and fraction widths.
pub fn layout(ty: Ty) -> (u32, u32) {
    match ty {
        Ty::F16 => (5, 10),
        Ty::BF16 => (8, 7),
        Ty::F32 => (8, 23),
        Ty::F64 => (11, 52),
        Ty::FP8 => (4, 3),
        Ty::BF8 => (5, 2),
        _ => (0, 0),
    }
}

fn parts(x: u128, ty: Ty) -> (bool, u128, u128) {
    let (e, f) = layout(ty);
    (x >> (e + f) & 1 == 1, x >> f & ((1 << e) - 1), x & ((1 << f) - 1))
}

fn sign_bit(ty: Ty) -> u128 {
    1 << (ty.width() - 1)
}

pub fn is_nan(x: u128, ty: Ty) -> bool {
    let (e, f) = layout(ty);
    let (_, exp, frac) = parts(x, ty);
    match ty {
        // E4M3 has no infinities; its one NaN has all bits set.
        Ty::FP8 => exp == 15 && frac == 7,
        _ => exp == (1 << e) - 1 && frac != 0 && f > 0,
    }
}

pub fn is_signal_nan(x: u128, ty: Ty) -> bool {
    let (_, f) = layout(ty);
    is_nan(x, ty) && ty != Ty::FP8 && x >> (f - 1) & 1 == 0
}

pub fn is_inf(x: u128, ty: Ty) -> bool {
    let (e, _) = layout(ty);
    let (_, exp, frac) = parts(x, ty);
    ty != Ty::FP8 && exp == (1 << e) - 1 && frac == 0
}

pub fn is_denorm(x: u128, ty: Ty) -> bool {
    let (_, exp, frac) = parts(x, ty);
    exp == 0 && frac != 0
}

pub fn is_zero(x: u128, ty: Ty) -> bool {
    x & (sign_bit(ty) - 1) == 0
}

pub fn infinity(ty: Ty) -> u128 {
    let (e, f) = layout(ty);
    ((1 << e) - 1) << f
}

/// The NaN that operations make.
pub fn quiet_nan(ty: Ty) -> u128 {
    let (_, f) = layout(ty);
    match ty {
        Ty::FP8 => 0x7f,
        _ => infinity(ty) | 1 << (f - 1),
    }
}

pub fn quiet(x: u128, ty: Ty) -> u128 {
    let (_, f) = layout(ty);
    if is_nan(x, ty) && ty != Ty::FP8 { x | 1 << (f - 1) } else { x }
}

/// A zero of the same sign for a denormal.
pub fn flush(x: u128, ty: Ty) -> u128 {
    if is_denorm(x, ty) { x & sign_bit(ty) } else { x }
}

pub(super) fn input(x: u128, ty: Ty, env: &FloatEnv) -> u128 {
    if env.flush_in(ty) { flush(x, ty) } else { x }
}

pub(super) fn output(x: u128, ty: Ty, env: &FloatEnv) -> u128 {
    if env.flush_out(ty) { flush(x, ty) } else { x }
}

#[derive(Clone, Copy)]
enum Op2 {
    Add,
    Sub,
    Mul,
    Div,
}

fn apply2<F: Float>(op: Op2, a: u128, b: u128, round: Round) -> u128 {
    let (a, b) = (F::from_bits(a), F::from_bits(b));
    let r = round.ap();
    let StatusAnd { value, .. } = match op {
        Op2::Add => a.add_r(b, r),
        Op2::Sub => a.sub_r(b, r),
        Op2::Mul => a.mul_r(b, r),
        Op2::Div => a.div_r(b, r),
    };
    value.to_bits()
}

fn arith2(op: Op2, a: u128, b: u128, ty: Ty, env: &FloatEnv) -> u128 {
    let (a, b) = (input(a, ty, env), input(b, ty, env));
    if is_nan(a, ty) {
        return quiet(a, ty);
    }
    if is_nan(b, ty) {
        return quiet(b, ty);
    }
    let round = env.round(ty);
    let value = match (ty, round) {
        (Ty::F32, Round::NearestEven) => {
            let (x, y) = (f32::from_bits(a as u32), f32::from_bits(b as u32));
            let v = match op {
                Op2::Add => x + y,
                Op2::Sub => x - y,
                Op2::Mul => x * y,
                Op2::Div => x / y,
            };
            v.to_bits() as u128
        }
        (Ty::F64, Round::NearestEven) => {
            let (x, y) = (f64::from_bits(a as u64), f64::from_bits(b as u64));
            let v = match op {
                Op2::Add => x + y,
                Op2::Sub => x - y,
                Op2::Mul => x * y,
                Op2::Div => x / y,
            };
            v.to_bits() as u128
        }
        (Ty::F32, _) => apply2::<Single>(op, a, b, round),
        (Ty::F64, _) => apply2::<Double>(op, a, b, round),
        (Ty::F16, _) => apply2::<Half>(op, a, b, round),
        (Ty::BF16, _) => apply2::<BFloat>(op, a, b, round),
        _ => 0,
    };
    output(canonical(value, ty), ty, env)
}

/// One NaN for all that operations make, so that hosts agree.
fn canonical(x: u128, ty: Ty) -> u128 {
    if is_nan(x, ty) { quiet_nan(ty) } else { x }
}

pub fn add(a: u128, b: u128, ty: Ty, env: &FloatEnv) -> u128 {
    arith2(Op2::Add, a, b, ty, env)
}

pub fn sub(a: u128, b: u128, ty: Ty, env: &FloatEnv) -> u128 {
    arith2(Op2::Sub, a, b, ty, env)
}

pub fn mul(a: u128, b: u128, ty: Ty, env: &FloatEnv) -> u128 {
    arith2(Op2::Mul, a, b, ty, env)
}

pub fn div_float(a: u128, b: u128, ty: Ty, env: &FloatEnv) -> u128 {
    arith2(Op2::Div, a, b, ty, env)
}

fn fma_ap<F: Float>(a: u128, b: u128, c: u128, round: Round) -> u128 {
    F::from_bits(a).mul_add_r(F::from_bits(b), F::from_bits(c), round.ap()).value.to_bits()
}

pub fn fma(a: u128, b: u128, c: u128, ty: Ty, env: &FloatEnv) -> u128 {
    let (a, b, c) = (input(a, ty, env), input(b, ty, env), input(c, ty, env));
    for x in [a, b, c] {
        if is_nan(x, ty) {
            return quiet(x, ty);
        }
    }
    let round = env.round(ty);
    let value = match (ty, round) {
        (Ty::F32, Round::NearestEven) => {
            let [x, y, z] = [a, b, c].map(|v| f32::from_bits(v as u32));
            x.mul_add(y, z).to_bits() as u128
        }
        (Ty::F64, Round::NearestEven) => {
            let [x, y, z] = [a, b, c].map(|v| f64::from_bits(v as u64));
            x.mul_add(y, z).to_bits() as u128
        }
        (Ty::F32, _) => fma_ap::<Single>(a, b, c, round),
        (Ty::F64, _) => fma_ap::<Double>(a, b, c, round),
        (Ty::F16, _) => fma_ap::<Half>(a, b, c, round),
        (Ty::BF16, _) => fma_ap::<BFloat>(a, b, c, round),
        _ => 0,
    };
    output(canonical(value, ty), ty, env)
}

/// Ordering of two values, `None` if unordered. Denormals count as zeros where inputs flush.
pub fn compare(a: u128, b: u128, ty: Ty, env: &FloatEnv) -> Option<std::cmp::Ordering> {
    let (a, b) = (input(a, ty, env), input(b, ty, env));
    if is_nan(a, ty) || is_nan(b, ty) {
        return None;
    }
    let key = |x: u128| {
        let magnitude = (x & (sign_bit(ty) - 1)) as i128;
        if x & sign_bit(ty) != 0 { -magnitude } else { magnitude }
    };
    Some(key(a).cmp(&key(b)))
}

fn less_signed_zero(a: u128, b: u128, ty: Ty, env: &FloatEnv) -> bool {
    match compare(a, b, ty, env) {
        Some(std::cmp::Ordering::Less) => true,
        Some(std::cmp::Ordering::Equal) => a & sign_bit(ty) != 0 && b & sign_bit(ty) == 0,
        _ => false,
    }
}

/// minimum/maximum (`propagate`: a NaN wins) and minimumNumber/maximumNumber.
pub fn min_max(a: u128, b: u128, ty: Ty, env: &FloatEnv, max: bool, propagate: bool) -> u128 {
    let (a, b) = (input(a, ty, env), input(b, ty, env));
    match (is_nan(a, ty), is_nan(b, ty)) {
        (true, true) => {
            if propagate && !is_signal_nan(a, ty) && is_signal_nan(b, ty) {
                return quiet(b, ty);
            }
            return quiet(a, ty);
        }
        (true, false) => return if propagate { quiet(a, ty) } else { b },
        (false, true) => return if propagate { quiet(b, ty) } else { a },
        _ => {}
    }
    let a_less = less_signed_zero(a, b, ty, env);
    let take_a = if max { less_signed_zero(b, a, ty, env) } else { a_less };
    if take_a { a } else { b }
}

/// To an integral value.
pub fn round_integral(x: u128, ty: Ty, env: &FloatEnv, round: rustc_apfloat::Round) -> u128 {
    let x = input(x, ty, env);
    if is_nan(x, ty) {
        return quiet(x, ty);
    }
    fn go<F: Float>(x: u128, round: rustc_apfloat::Round) -> u128 {
        F::from_bits(x).round_to_integral(round).value.to_bits()
    }
    match ty {
        Ty::F16 => go::<Half>(x, round),
        Ty::BF16 => go::<BFloat>(x, round),
        Ty::F32 => go::<Single>(x, round),
        Ty::F64 => go::<Double>(x, round),
        _ => x,
    }
}

pub fn floor(x: u128, ty: Ty, env: &FloatEnv) -> u128 {
    round_integral(x, ty, env, rustc_apfloat::Round::TowardNegative)
}

pub fn ceil(x: u128, ty: Ty, env: &FloatEnv) -> u128 {
    round_integral(x, ty, env, rustc_apfloat::Round::TowardPositive)
}

pub fn trunc(x: u128, ty: Ty, env: &FloatEnv) -> u128 {
    round_integral(x, ty, env, rustc_apfloat::Round::TowardZero)
}

pub fn rndne(x: u128, ty: Ty, env: &FloatEnv) -> u128 {
    round_integral(x, ty, env, rustc_apfloat::Round::NearestTiesToEven)
}

/// `x - floor(x)`, at most the largest value below 1.
pub fn fract(x: u128, ty: Ty, env: &FloatEnv) -> u128 {
    if is_inf(x, ty) {
        return quiet_nan(ty);
    }
    let rounded = sub(x, floor(x, ty, env), ty, env);
    let below_one = constant(1.0, ty) - 1;
    match compare(rounded, below_one, ty, env) {
        Some(std::cmp::Ordering::Greater) => below_one,
        // An exact zero is positive in every round mode.
        _ if is_zero(rounded, ty) => 0,
        _ => rounded,
    }
}

/// `value` rounded to nearest even.
pub fn constant(value: f64, ty: Ty) -> u128 {
    convert_float(value.to_bits() as u128, Ty::F64, ty, Round::NearestEven)
}

fn to<F: Float, G: Float>(x: u128, round: Round) -> u128
where
    F: FloatConvert<G>,
{
    let mut loses = false;
    F::from_bits(x).convert_r(round.ap(), &mut loses).value.to_bits()
}

/// Format conversion with one rounding and no flushing.
pub fn convert_float(x: u128, from: Ty, into: Ty, round: Round) -> u128 {
    if from == into {
        return x;
    }
    if is_nan(x, from) {
        return match into {
            Ty::FP8 => 0x7f | (x & sign_bit(from) != 0) as u128 * 0x80,
            _ => {
                // The payload's high bits move along.
                let (_, ff) = layout(from);
                let (_, tf) = layout(into);
                let frac = x & ((1 << ff) - 1);
                let moved = if tf >= ff { frac << (tf - ff) } else { frac >> (ff - tf) };
                let sign = if x & sign_bit(from) != 0 { sign_bit(into) } else { 0 };
                sign | quiet_nan(into) | moved
            }
        };
    }
    match (from, into) {
        (Ty::F32, Ty::F64) => (f32::from_bits(x as u32) as f64).to_bits() as u128,
        (Ty::F32, Ty::F16) => to::<Single, Half>(x, round),
        (Ty::F32, Ty::BF16) => to::<Single, BFloat>(x, round),
        (Ty::F32, Ty::FP8) => to::<Single, Float8E4M3FN>(x, round),
        (Ty::F32, Ty::BF8) => to::<Single, Float8E5M2>(x, round),
        (Ty::F64, Ty::F32) => to::<Double, Single>(x, round),
        (Ty::F64, Ty::F16) => to::<Double, Half>(x, round),
        (Ty::F64, Ty::BF16) => to::<Double, BFloat>(x, round),
        (Ty::F64, Ty::FP8) => to::<Double, Float8E4M3FN>(x, round),
        (Ty::F64, Ty::BF8) => to::<Double, Float8E5M2>(x, round),
        (Ty::F16, Ty::F32) => to::<Half, Single>(x, round),
        (Ty::F16, Ty::F64) => to::<Half, Double>(x, round),
        (Ty::BF16, Ty::F32) => x << 16,
        (Ty::BF16, Ty::F64) => convert_float(x << 16, Ty::F32, Ty::F64, round),
        (Ty::FP8, Ty::F32) => to::<Float8E4M3FN, Single>(x, round),
        (Ty::BF8, Ty::F32) => to::<Float8E5M2, Single>(x, round),
        _ => {
            let wide = convert_float(x, from, Ty::F64, round);
            if into == Ty::F64 { wide } else { convert_float(wide, Ty::F64, into, round) }
        }
    }
}

/// Conversion as an instruction does it: flushing by both formats' modes, rounding by the target's (the wider format's for f16).
pub fn convert(x: u128, from: Ty, into: Ty, env: &FloatEnv) -> u128 {
    let x = input(x, from, env);
    // Conversions round by the mode of the result's class.
    output(convert_float(x, from, into, env.round(into)), into, env)
}

/// The exact value as an f64 for formats up to 32 bits.
pub(super) fn as_f64(x: u128, ty: Ty) -> f64 {
    f64::from_bits(convert_float(x, ty, Ty::F64, Round::NearestEven) as u64)
}

/// Float to integer of `width` bits: rounded by `round`, saturating, NaN gives 0.
pub fn to_int(
    x: u128,
    ty: Ty,
    env: &FloatEnv,
    width: u32,
    signed: bool,
    round: rustc_apfloat::Round,
) -> u128 {
    let x = input(x, ty, env);
    if is_nan(x, ty) {
        return 0;
    }
    fn go<F: Float>(x: u128, width: usize, signed: bool, round: rustc_apfloat::Round) -> u128 {
        let mut exact = false;
        let x = F::from_bits(x);
        // Out of range saturates.
        if signed {
            x.to_i128_r(width, round, &mut exact).value as u128
        } else {
            x.to_u128_r(width, round, &mut exact).value
        }
    }
    let value = match ty {
        Ty::F16 => go::<Half>(x, width as usize, signed, round),
        Ty::BF16 => go::<BFloat>(x, width as usize, signed, round),
        Ty::F32 => go::<Single>(x, width as usize, signed, round),
        Ty::F64 => go::<Double>(x, width as usize, signed, round),
        _ => 0,
    };
    if width >= 128 { value } else { value & ((1 << width) - 1) }
}

/// Integer (sign-extended to i128 by the caller if signed) to float.
pub fn from_int(value: u128, signed: bool, ty: Ty, env: &FloatEnv) -> u128 {
    fn go<F: Float>(v: u128, signed: bool, r: rustc_apfloat::Round) -> u128 {
        if signed {
            F::from_i128_r(v as i128, r).value.to_bits()
        } else {
            F::from_u128_r(v, r).value.to_bits()
        }
    }
    let r = env.round(ty).ap();
    match ty {
        Ty::F16 => go::<Half>(value, signed, r),
        Ty::BF16 => go::<BFloat>(value, signed, r),
        Ty::F32 => go::<Single>(value, signed, r),
        Ty::F64 => go::<Double>(value, signed, r),
        _ => 0,
    }
}

pub fn ldexp(x: u128, n: i32, ty: Ty, env: &FloatEnv) -> u128 {
    let x = input(x, ty, env);
    if is_nan(x, ty) {
        return quiet(x, ty);
    }
    let n = n.clamp(-20_000, 20_000);
    let round = env.round(ty).ap();
    fn go<F: Float>(x: u128, n: i32, round: rustc_apfloat::Round) -> u128 {
        F::from_bits(x).scalbn_r(n, round).to_bits()
    }
    let value = match ty {
        Ty::F16 => go::<Half>(x, n, round),
        Ty::BF16 => go::<BFloat>(x, n, round),
        Ty::F32 => go::<Single>(x, n, round),
        Ty::F64 => go::<Double>(x, n, round),
        _ => x,
    };
    output(value, ty, env)
}

/// Exponent `e` with |x| = m * 2^e, m in [0.5, 1); 0 for zero, infinity, NaN.
pub fn frexp_exp(x: u128, ty: Ty, env: &FloatEnv) -> i32 {
    let x = input(x, ty, env);
    if is_nan(x, ty) || is_inf(x, ty) || is_zero(x, ty) {
        return 0;
    }
    let (e, f) = layout(ty);
    let bias = (1i32 << (e - 1)) - 1;
    let (_, exp, frac) = parts(x, ty);
    if exp != 0 {
        exp as i32 - bias + 1
    } else {
        // A denormal: its highest set bit counts.
        let top = 127 - frac.leading_zeros() as i32;
        1 - bias - f as i32 + top + 1
    }
}

pub fn frexp_mant(x: u128, ty: Ty, env: &FloatEnv) -> u128 {
    let x = input(x, ty, env);
    if is_nan(x, ty) {
        return quiet(x, ty);
    }
    if is_inf(x, ty) || is_zero(x, ty) {
        return x;
    }
    let e = frexp_exp(x, ty, env);
    ldexp(x, -e, ty, &FloatEnv::KEEP)
}

/// The biased exponent field.
pub fn exponent(x: u128, ty: Ty) -> i32 {
    parts(x, ty).1 as i32
}

/// To a normalized integer: clamped to [-1, 1] or [0, 1], scaled by the largest value, nearest even.
pub fn to_norm(x: u128, ty: Ty, signed: bool, bits: u32, env: &FloatEnv) -> u128 {
    let x = input(x, ty, env);
    if is_nan(x, ty) {
        return 0;
    }
    let max = if signed { (1i64 << (bits - 1)) - 1 } else { (1i64 << bits) - 1 };
    let low = if signed { -1.0 } else { 0.0 };
    // Exact: 24 bits times 16 bits fits f64.
    let scaled = as_f64(x, ty).clamp(low, 1.0) * max as f64;
    let rounded = scaled.round_ties_even() as i64;
    (rounded as u128) & ((1 << bits) - 1)
}

/// `f32_to_fp8` and `_bf8` with a stochastic seed: its high bits are added below the kept fraction bits.
pub fn stochastic_8(x: u128, seed: u32, ty: Ty) -> u128 {
    if is_nan(x, Ty::F32) || is_inf(x, Ty::F32) {
        return convert_float(x, Ty::F32, ty, Round::NearestEven);
    }
    let (_, f) = layout(ty);
    let dropped = 23 - f;
    // RDNA4 manual, V_CVT_SR_*: the seed's high bits, as many as are dropped, then cut off.
    let noise = seed >> (32 - dropped);
    let sum = (x as u32 & 0x7fff_ffff).wrapping_add(noise);
    let cut = sum & !((1 << dropped) - 1);
    convert_float((x & 0x8000_0000) | cut as u128, Ty::F32, ty, Round::Zero)
}
