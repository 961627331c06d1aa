//! The functions that hardware approximates, rounded correctly here: computed in f64 (exact argument, error far below an f32
//! rounding step), then rounded once.

use super::env::{FloatEnv, Round};
use super::float::{self, as_f64, convert_float, input, is_nan, output, quiet, quiet_nan};
use crate::pcode::ir::Ty;

/// `f` of the exact value, rounded to `ty`.
fn through_f64(x: u128, ty: Ty, env: &FloatEnv, f: impl Fn(f64) -> f64) -> u128 {
    let x = input(x, ty, env);
    if is_nan(x, ty) {
        return quiet(x, ty);
    }
    let value = f(as_f64(x, ty));
    if value.is_nan() {
        return quiet_nan(ty);
    }
    output(convert_float(value.to_bits() as u128, Ty::F64, ty, Round::NearestEven), ty, env)
}

pub fn rcp(x: u128, ty: Ty, env: &FloatEnv) -> u128 {
    through_f64(x, ty, env, |v| 1.0 / v)
}

pub fn sqrt(x: u128, ty: Ty, env: &FloatEnv) -> u128 {
    through_f64(x, ty, env, f64::sqrt)
}

pub fn rsq(x: u128, ty: Ty, env: &FloatEnv) -> u128 {
    through_f64(x, ty, env, |v| {
        if v == 0.0 {
            return f64::INFINITY.copysign(v);
        }
        if v < 0.0 {
            return f64::NAN;
        }
        let first = 1.0 / v.sqrt();
        if !first.is_finite() || first == 0.0 {
            return first;
        }
        // One Newton step with an exact residual.
        let square = first * first;
        let low = first.mul_add(first, -square);
        let residual = (-v).mul_add(square, 1.0) - v * low;
        residual.mul_add(0.5 * first, first)
    })
}

pub fn exp2(x: u128, ty: Ty, env: &FloatEnv) -> u128 {
    through_f64(x, ty, env, f64::exp2)
}

pub fn log2(x: u128, ty: Ty, env: &FloatEnv) -> u128 {
    through_f64(x, ty, env, |v| if v == 0.0 { f64::NEG_INFINITY } else { v.log2() })
}

/// Fraction of a turn in [-0.5, 0.5], exact.
fn turn(v: f64) -> f64 {
    v - v.round_ties_even()
}

/// Sine of `v` turns: reduced to the octant, so that zeros and extremes are exact.
fn sin_turns(v: f64) -> f64 {
    if !v.is_finite() {
        return f64::NAN;
    }
    let t = turn(v);
    let a = t.abs();
    let s = if a <= 0.125 {
        (a * std::f64::consts::TAU).sin()
    } else if a <= 0.375 {
        ((0.25 - a) * std::f64::consts::TAU).cos()
    } else {
        ((0.5 - a) * std::f64::consts::TAU).sin()
    };
    if t == 0.0 { 0.0f64.copysign(v) } else { s.copysign(t) }
}

fn cos_turns(v: f64) -> f64 {
    if !v.is_finite() {
        return f64::NAN;
    }
    let a = turn(v).abs();
    if a <= 0.125 {
        (a * std::f64::consts::TAU).cos()
    } else if a <= 0.375 {
        ((0.25 - a) * std::f64::consts::TAU).sin()
    } else {
        -((0.5 - a) * std::f64::consts::TAU).cos()
    }
}

pub fn sin(x: u128, ty: Ty, env: &FloatEnv) -> u128 {
    through_f64(x, ty, env, sin_turns)
}

pub fn cos(x: u128, ty: Ty, env: &FloatEnv) -> u128 {
    through_f64(x, ty, env, cos_turns)
}

/// Bits of 2/pi after the binary point, most significant first: 1201 of them, as V_TRIG_PREOP_F64 uses.
const TWO_OVER_PI: [u64; 19] = [
    0xa2f9836e4e441529,
    0xfc2757d1f534ddc0,
    0xdb6295993c439041,
    0xfe5163abdebbc561,
    0xb7246e3a424dd2e0,
    0x06492eea09d1921c,
    0xfe1deb1cb129a73e,
    0xe88235f52ebb4484,
    0xe99c7026b45f7e41,
    0x3991d639835339f4,
    0x9c845f8bbdf9283b,
    0x1ff897ffde05980f,
    0xef2f118b5a0a6d1f,
    0x6d367ecf27cb09b7,
    0x4f463f669e5fea2d,
    0x7527bac7ebe5f17b,
    0x3d0739f78a5292ea,
    0x6bfb5fb11f8d5d08,
    0x56033046fc7b6bab,
];

/// A 53-bit segment of 2/pi, chosen by the segment number and scaled for the exponent of `x` (RDNA manuals, V_TRIG_PREOP_F64).
pub fn trig_preop(x: u128, segment: u32) -> u128 {
    let exponent = float::exponent(x, Ty::F64);
    let mut shift = segment as i32 * 53;
    if exponent > 1077 {
        shift += exponent - 1077;
    }
    // Bits shift .. shift+52 counted from the most significant.
    let mut value = 0u64;
    for at in 0..53 {
        let bit = (shift + at) as usize;
        let set = bit < 1201 && TWO_OVER_PI[bit / 64] >> (63 - bit % 64) & 1 == 1;
        value = value << 1 | set as u64;
    }
    let mut scale = -53 - shift;
    if exponent >= 1968 {
        scale += 128;
    }
    float::ldexp((value as f64).to_bits() as u128, scale, Ty::F64, &FloatEnv::KEEP)
}
