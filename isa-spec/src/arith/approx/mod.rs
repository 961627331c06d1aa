//! Functions that hardware approximates (exp2, log2, sin, cos, tanh), correctly rounded to nearest even in every
//! MODE: hardware's results do not follow MODE.round either. rcp, rsq and sqrt are exact arithmetic in
//! [`soft`](super::soft).
//!
//! Each function is first computed in f64. If all values within the error bound round to the same result,
//! that is the correctly rounded one. Otherwise (for about one argument in 2^20 for f32) 128-bit fixed-point
//! arithmetic decides.
//!
//! The f32 forms flush denormal arguments and results regardless of MODE (RDNA4 ISA manual, *Round and
//! Denormal Modes* and the notes of each instruction), except sine, which supports denormals; the f16 forms
//! follow MODE.

pub mod quick;
mod wide;

pub use quick::MARGIN;
pub use wide::{LN_2, TWO_OVER_LN_2, TWO_PI, mul_high};

use super::env::{FloatEnv, Round};
use super::format::{Exact, Format, Value, pack, unpack};
use super::soft::{flush_input, flush_output};

/// The functions, as data for tests and the accuracy table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Function {
    /// 2 to the power of the argument.
    Exp2,
    /// Logarithm to base 2.
    Log2,
    /// Sine of an argument in turns.
    Sin,
    /// Cosine of an argument in turns.
    Cos,
    /// Hyperbolic tangent.
    Tanh,
}

/// Evaluates `function` at `a`, correctly rounded.
pub fn evaluate(function: Function, format: Format, a: u64, env: &FloatEnv) -> u64 {
    let flush = format == Format::F32 && function != Function::Sin;
    let a = if flush { format.flush(a) } else { flush_input(format, a, env) };
    let result = match special(function, format, a) {
        Some(result) => result,
        None => finite(function, format, a),
    };
    if flush { format.flush(result) } else { flush_output(format, result, env) }
}

/// Returns results that need no computation: those of special arguments.
pub fn special(function: Function, format: Format, a: u64) -> Option<u64> {
    let value = unpack(format, a);
    Some(match (function, value) {
        (_, Value::Nan) => format.quiet(a),
        (Function::Exp2, Value::Infinite { negative: true }) => 0,
        (Function::Exp2 | Function::Log2, Value::Infinite { negative: false }) => format.infinity(),
        (Function::Exp2 | Function::Cos, Value::Zero { .. }) => format.one(),
        // Beyond any format's range in either direction.
        (Function::Exp2, Value::Finite(x)) if magnitude_exceeds_2_14(x) => {
            if x.negative {
                0
            } else {
                format.infinity()
            }
        }
        (Function::Log2, Value::Zero { .. }) => format.sign_bit() | format.infinity(),
        (Function::Log2, Value::Infinite { .. } | Value::Finite(Exact { negative: true, .. })) => {
            format.default_nan()
        }
        (Function::Sin | Function::Tanh, Value::Zero { .. }) => a,
        // The next term of the series, x^3 / 3, is below half a unit in the last place of these formats.
        (Function::Tanh, Value::Finite(x)) if format.frac_bits <= 23 && exponent_of(x) < -13 => a,
        (Function::Tanh, Value::Infinite { negative }) => {
            if negative {
                format.sign_bit() | format.one()
            } else {
                format.one()
            }
        }
        (Function::Sin | Function::Cos, Value::Infinite { .. }) => format.default_nan(),
        _ => return None,
    })
}

fn magnitude_exceeds_2_14(x: Exact) -> bool {
    exponent_of(x) >= 14
}

/// Returns the exponent of the highest bit.
fn exponent_of(x: Exact) -> i32 {
    x.exp + (127 - x.sig.leading_zeros() as i32)
}

fn finite(function: Function, format: Format, a: u64) -> u64 {
    if format.frac_bits <= 23
        && let Some(result) = evaluate_in_f64(function, format, a)
    {
        return result;
    }
    evaluate_in_fixed_point(function, format, a)
}

/// Evaluates `function` in fixed point, at an argument that is not [`special`].
pub fn evaluate_in_fixed_point(function: Function, format: Format, a: u64) -> u64 {
    let Value::Finite(x) = unpack(format, a) else {
        return format.default_nan();
    };
    let exact = match function {
        Function::Exp2 => Some(wide::exp2(x)),
        Function::Log2 => wide::log2(x),
        Function::Sin => wide::sin(x),
        Function::Cos => wide::cos(x),
        Function::Tanh => Some(wide::tanh(x)),
    };
    // An exact zero is +0 (`V_SIN_F32(-MaxFloat) => 0x00000000`, RDNA4 ISA manual).
    exact.map_or(0, |x| pack(format, x, Round::NearestEven, false))
}

/// Evaluates `function` in f64; returns `None` unless all values within the error bound round to one result.
pub fn evaluate_in_f64(function: Function, format: Format, a: u64) -> Option<u64> {
    let x = small_to_f64(format, a);
    let y = match function {
        Function::Exp2 if x.abs() < 1000.0 => quick::exp2::<false>(x),
        // Far beyond f32's range.
        Function::Exp2 if x < 0.0 => return Some(0),
        Function::Exp2 => return Some(format.infinity()),
        Function::Log2 => quick::log2::<false>(x),
        // Every f32 above 2^24 is an integer.
        Function::Sin | Function::Cos if x.abs() >= (1 << 24) as f64 => return None,
        Function::Sin => quick::sin_cos::<false>(x).0,
        Function::Cos => quick::sin_cos::<false>(x).1,
        // Any library's function: its error is far below the margin.
        Function::Tanh => x.tanh(),
    };
    if y == 0.0 {
        return Some(0);
    }
    let error = y * quick::MARGIN;
    let (low, high) = (round_f64(format, y - error), round_f64(format, y + error));
    (low == high).then_some(low)
}

/// Converts a number of f32 or a narrower format to f64.
fn small_to_f64(format: Format, a: u64) -> f64 {
    match format {
        Format::F32 => f32::from_bits(a as u32) as f64,
        _ => f64::from_bits(super::integral::to_float(format, Format::F64, a, true, &FloatEnv::KEEP)),
    }
}

/// Rounds a finite, non-zero f64 to nearest even.
fn round_f64(format: Format, y: f64) -> u64 {
    match format {
        Format::F32 => (y as f32).to_bits() as u64,
        _ => match unpack(Format::F64, y.to_bits()) {
            Value::Finite(y) => pack(format, y, Round::NearestEven, false),
            _ => format.default_nan(),
        },
    }
}
