//! Operations between floats and integers: rounding to integral values, conversions both ways, exponent and
//! significand.

use super::env::{FloatEnv, Round};
use super::format::{Exact, Format, Value, pack, round_off, unpack};
use super::soft::{flush_input, flush_output, mul_exact, round_and_flush};

/// Rounds `a` to an integral value of the same format. A zero result keeps the sign of `a`; NaNs become
/// quiet.
pub fn round_to_integral(format: Format, a: u64, round: Round, env: &FloatEnv) -> u64 {
    let a = flush_input(format, a, env);
    match unpack(format, a) {
        Value::Nan => format.quiet(a),
        Value::Infinite { .. } | Value::Zero { .. } => a,
        Value::Finite(x) if x.exp >= 0 => a,
        Value::Finite(x) => match round_off(x.negative, x.sig, -x.exp as u32, round) {
            0 => a & format.sign_bit(),
            // At most frac_bits + 1 bits: exact.
            sig => pack(format, Exact { sig, exp: 0, ..x }, Round::Zero, false),
        },
    }
}

/// `a - floor(a)`, always in `[0, 1)`: a difference that would round to one becomes the largest number below
/// one, as in the DX definition of `fract`. Infinities return NaN.
pub fn fract(format: Format, a: u64, env: &FloatEnv) -> u64 {
    if format.is_infinite(a) {
        return format.default_nan();
    }
    let floor = round_to_integral(format, a, Round::Down, env);
    let rest = super::soft::sub(format, a, floor, &env.with_round(Round::NearestEven));
    if format.is_nan(rest) || rest & format.magnitude_mask() < format.one() { rest } else { format.one() - 1 }
}

/// Rounds to an integer of `width` bits (1..=64) and saturates; NaN returns 0. The result is the integer's
/// bit pattern, sign-extended to 64 bits if `signed`.
pub fn to_int(format: Format, a: u64, width: u32, signed: bool, round: Round, env: &FloatEnv) -> u64 {
    let (max, min) = int_limits(width, signed);
    let value = match unpack(format, flush_input(format, a, env)) {
        Value::Nan | Value::Zero { .. } => 0,
        Value::Infinite { negative } => return if negative { min } else { max } as u64,
        Value::Finite(x) => round_to_i128(x, round),
    };
    value.clamp(min, max) as u64
}

/// Returns the largest and the smallest integer of `width` bits.
fn int_limits(width: u32, signed: bool) -> (i128, i128) {
    if signed { ((1i128 << (width - 1)) - 1, -(1i128 << (width - 1))) } else { ((1i128 << width) - 1, 0) }
}

/// Rounds to an integer, saturating at ±2^126.
fn round_to_i128(x: Exact, round: Round) -> i128 {
    let magnitude = if x.exp < 0 {
        round_off(x.negative, x.sig, -x.exp as u32, round)
    } else if x.exp as u32 >= x.sig.leading_zeros().saturating_sub(1) {
        1 << 126
    } else {
        x.sig << x.exp
    };
    let magnitude = magnitude.min(1 << 126) as i128;
    if x.negative { -magnitude } else { magnitude }
}

/// Converts an integer to a float, rounding by the format's mode.
pub fn from_int(format: Format, value: i128, env: &FloatEnv) -> u64 {
    from_magnitude(format, value < 0, value.unsigned_abs(), env)
}

/// Converts `±magnitude` to a float, rounding by the format's mode; zero is positive.
pub fn from_magnitude(format: Format, negative: bool, magnitude: u128, env: &FloatEnv) -> u64 {
    match magnitude {
        0 => 0,
        _ => round_and_flush(format, Exact { negative, exp: 0, sig: magnitude }.with_top(125), env),
    }
}

/// `a · 2^by`, rounded once.
pub fn ldexp(format: Format, a: u64, by: i32, env: &FloatEnv) -> u64 {
    let a = flush_input(format, a, env);
    match unpack(format, a) {
        Value::Nan => format.quiet(a),
        Value::Infinite { .. } | Value::Zero { .. } => a,
        // Any count beyond ±2^14 overflows or underflows every format, so the sum cannot wrap.
        Value::Finite(x) => {
            round_and_flush(format, Exact { exp: x.exp + by.clamp(-0x4000, 0x4000), ..x }, env)
        }
    }
}

/// Returns the significand of `frexp`, in (-1, -0.5] or [0.5, 1). Returns zeros, infinities and (quieted)
/// NaNs themselves.
pub fn frexp_mant(format: Format, a: u64, env: &FloatEnv) -> u64 {
    let a = flush_input(format, a, env);
    match unpack(format, a) {
        Value::Finite(x) => {
            let bits = 128 - x.sig.leading_zeros() as i32;
            pack(format, Exact { exp: -bits, ..x }, Round::Zero, false)
        }
        _ => format.quiet(a),
    }
}

/// Returns the exponent of `frexp`: `a = significand · 2^exponent`; zero for zeros, infinities and NaNs.
pub fn frexp_exp(format: Format, a: u64, env: &FloatEnv) -> i32 {
    match unpack(format, flush_input(format, a, env)) {
        Value::Finite(x) => x.exp + 128 - x.sig.leading_zeros() as i32,
        _ => 0,
    }
}

/// Converts a number in [-1, 1] to a signed normalised integer of `width` bits: scales by `2^(width-1) - 1`,
/// rounds to nearest even, and saturates; NaN returns 0.
pub fn to_snorm(format: Format, a: u64, width: u32, env: &FloatEnv) -> i64 {
    let scale = (1i64 << (width - 1)) - 1;
    to_norm(format, a, scale, -scale, env)
}

/// Converts a number in [0, 1] to an unsigned normalised integer of `width` bits (below 33).
pub fn to_unorm(format: Format, a: u64, width: u32, env: &FloatEnv) -> u64 {
    to_norm(format, a, (1i64 << width) - 1, 0, env) as u64
}

fn to_norm(format: Format, a: u64, scale: i64, min: i64, env: &FloatEnv) -> i64 {
    match unpack(format, flush_input(format, a, env)) {
        Value::Nan | Value::Zero { .. } => 0,
        Value::Infinite { negative } => {
            if negative {
                min
            } else {
                scale
            }
        }
        Value::Finite(x) => {
            let scaled = mul_exact(x, Exact { negative: false, exp: 0, sig: scale as u128 });
            round_to_i128(scaled, Round::NearestEven).clamp(min as i128, scale as i128) as i64
        }
    }
}

/// Converts unorm and snorm integers to floats: `value / scale`, rounded to nearest even. Values below -1
/// return -1.
pub fn from_norm(format: Format, value: i64, scale: i64) -> u64 {
    let value = value.max(-scale);
    if value == 0 || scale == 0 {
        return 0;
    }
    let exact = |v: i64| Exact { negative: v < 0, exp: 0, sig: v.unsigned_abs() as u128 };
    pack(format, super::soft::div_exact(exact(value), exact(scale)), Round::NearestEven, false)
}

/// Converts a float to another format, rounding by the destination's mode and flushing denormal inputs and
/// outputs by each format's mode. A NaN keeps its sign and upper payload bits. If `quiet`, a signalling NaN
/// becomes quiet, as in conversion instructions; a widening cast in pseudocode keeps it signalling
/// (`isSignalNAN(64'F(S0.f32))` must detect it).
pub fn to_float(from: Format, to: Format, a: u64, quiet: bool, env: &FloatEnv) -> u64 {
    let a = flush_input(from, a, env);
    let sign = if from.is_negative(a) { to.sign_bit() } else { 0 };
    match unpack(from, a) {
        Value::Nan => sign | convert_nan(from, to, a, quiet),
        Value::Zero { .. } => sign,
        Value::Infinite { .. } if env.overflow_clamps && to.class == super::format::ModeClass::Fixed => {
            // RDNA4 ISA manual, *OPSEL with FP8 and BF8 Conversions*: infinity saturates as well.
            sign | to.max_finite()
        }
        Value::Infinite { .. } => sign | to.infinity(),
        Value::Finite(x) => {
            let mode = env.of(to);
            flush_output(to, pack(to, x, mode.round, mode.saturate), env)
        }
    }
}

/// Converts an f32 to an 8-bit float with stochastic rounding: adds the seed's high bits, as many as there
/// are fraction bits to drop, to the magnitude below the kept bits, and truncates (RDNA4 ISA manual,
/// V_CVT_SR_FP8_F32 and *Data Conversion Operations*). A carry propagates into the exponent; beyond the range
/// the result is that of rounding to nearest even.
pub fn to_float8_stochastic(to: Format, a: u32, seed: u32, env: &FloatEnv) -> u8 {
    let dropped = Format::F32.frac_bits - to.frac_bits;
    let magnitude = a & 0x7fff_ffff;
    if magnitude >= Format::F32.infinity() as u32 {
        return to_float(Format::F32, to, a as u64, true, env) as u8;
    }
    let noisy = magnitude + (seed >> (32 - dropped));
    let cut = noisy & !((1 << dropped) - 1) | a & 0x8000_0000;
    match unpack(Format::F32, cut as u64) {
        Value::Finite(x) => {
            let truncated = pack(to, x, Round::Zero, false);
            let largest = truncated & to.magnitude_mask() == to.max_finite();
            // Rounding to nearest even differs only beyond the largest finite number: the rest of the
            // fraction is exactly representable there.
            if largest { to_float(Format::F32, to, cut as u64, true, env) as u8 } else { truncated as u8 }
        }
        _ => to_float(Format::F32, to, cut as u64, true, env) as u8,
    }
}

/// Converts the payload and quiet bit of a NaN to another format, without the sign.
fn convert_nan(from: Format, to: Format, a: u64, quiet: bool) -> u64 {
    if to.finite_only || from.finite_only {
        return to.infinity() | to.quiet_bit();
    }
    let fraction = a & from.fraction_mask();
    let fraction = if to.frac_bits >= from.frac_bits {
        fraction << (to.frac_bits - from.frac_bits)
    } else {
        fraction >> (from.frac_bits - to.frac_bits)
    };
    // A payload that does not survive narrowing must not turn the NaN into an infinity.
    let fraction = if quiet || fraction == 0 { fraction | to.quiet_bit() } else { fraction };
    to.exponent_mask() | fraction
}

/// Returns the raw biased exponent field, like the manuals' `exponent()`.
pub fn exponent_field(format: Format, a: u64) -> u32 {
    ((a & format.exponent_mask()) >> format.frac_bits) as u32
}
