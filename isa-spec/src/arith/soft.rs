//! Addition, subtraction, multiplication, division, fma and square root in any format. Each operation unpacks
//! its operands exactly, computes an exact result (up to a sticky bit), and rounds once. Nothing uses host
//! floating point, so results do not depend on the host.
//!
//! The first NaN operand, made quiet, is the result; an invalid operation returns [`Format::default_nan`].

use super::env::{FloatEnv, FloatMode, Round};
use super::format::{Exact, Format, Value, pack, shift_right_sticky, unpack};

/// Flushes a denormal operand if the mode requires it.
#[inline]
pub fn flush_input(format: Format, bits: u64, env: &FloatEnv) -> u64 {
    if env.of(format).flush_in { format.flush(bits) } else { bits }
}

/// Flushes a denormal result if the mode requires it.
#[inline]
pub fn flush_output(format: Format, bits: u64, env: &FloatEnv) -> u64 {
    if env.of(format).flush_out { format.flush(bits) } else { bits }
}

#[inline]
fn operand(format: Format, bits: u64, mode: FloatMode) -> Value {
    unpack(format, if mode.flush_in { format.flush(bits) } else { bits })
}

/// Rounds and flushes a finite result by the mode.
#[inline]
pub fn round_and_flush(format: Format, value: Exact, env: &FloatEnv) -> u64 {
    let mode = env.of(format);
    let bits = pack(format, value, mode.round, mode.saturate);
    if mode.flush_out { format.flush(bits) } else { bits }
}

#[inline]
fn zero(format: Format, negative: bool) -> u64 {
    if negative { format.sign_bit() } else { 0 }
}

#[inline]
fn infinity(format: Format, negative: bool) -> u64 {
    zero(format, negative) | format.infinity()
}

/// Returns the first NaN of `operands`, made quiet.
#[inline]
fn first_nan(format: Format, operands: &[u64]) -> u64 {
    let nan = operands.iter().find(|&&x| format.is_nan(x));
    nan.map_or(format.default_nan(), |&x| format.quiet(x))
}

/// Adds two exact values; returns `None` if the sum is zero.
#[inline]
pub fn add_exact(a: Exact, b: Exact) -> Option<Exact> {
    // With leading bits at 125, a carry stays below 2^127. The sticky bit is exact: bits are lost only if the
    // exponents differ by so much that at most one leading bit can cancel, and at least 70 bits are rounded
    // off later.
    let (a, b) = (a.with_top(125), b.with_top(125));
    let (big, small) = if (a.exp, a.sig) >= (b.exp, b.sig) { (a, b) } else { (b, a) };
    let aligned = shift_right_sticky(small.sig, big.exp.abs_diff(small.exp));
    let sig = if big.negative == small.negative { big.sig + aligned } else { big.sig - aligned };
    (sig != 0).then_some(Exact { sig, ..big })
}

/// Adds and rounds; the sign of an exact zero is minus only when rounding down.
#[inline]
fn finish_sum(format: Format, a: Exact, b: Exact, env: &FloatEnv) -> u64 {
    match add_exact(a, b) {
        Some(sum) => round_and_flush(format, sum, env),
        None => zero(format, env.of(format).round == Round::Down),
    }
}

/// Returns the sign of the sum of two zeros.
#[inline]
fn zero_sum(a: bool, b: bool, round: Round) -> bool {
    if a == b { a } else { round == Round::Down }
}

/// `a + b`, rounded once. A NaN operand, the first one if both are NaNs, is returned quiet.
pub fn add(format: Format, a: u64, b: u64, env: &FloatEnv) -> u64 {
    let mode = env.of(format);
    match (operand(format, a, mode), operand(format, b, mode)) {
        (Value::Nan, _) | (_, Value::Nan) => first_nan(format, &[a, b]),
        (Value::Infinite { negative: x }, Value::Infinite { negative: y }) if x != y => format.default_nan(),
        (Value::Infinite { negative }, _) | (_, Value::Infinite { negative }) => infinity(format, negative),
        (Value::Zero { negative: x }, Value::Zero { negative: y }) => {
            zero(format, zero_sum(x, y, mode.round))
        }
        (Value::Zero { .. }, Value::Finite(x)) | (Value::Finite(x), Value::Zero { .. }) => {
            round_and_flush(format, x, env)
        }
        (Value::Finite(x), Value::Finite(y)) => finish_sum(format, x, y, env),
    }
}

/// `a - b`, rounded once. A NaN operand keeps its sign.
pub fn sub(format: Format, a: u64, b: u64, env: &FloatEnv) -> u64 {
    if format.is_nan(b) {
        return first_nan(format, &[a, b]);
    }
    add(format, a, b ^ format.sign_bit(), env)
}

/// `a * b`, rounded once.
pub fn mul(format: Format, a: u64, b: u64, env: &FloatEnv) -> u64 {
    let mode = env.of(format);
    let (x, y) = (operand(format, a, mode), operand(format, b, mode));
    let negative = format.is_negative(a) != format.is_negative(b);
    match (x, y) {
        (Value::Nan, _) | (_, Value::Nan) => first_nan(format, &[a, b]),
        (Value::Infinite { .. }, Value::Zero { .. }) | (Value::Zero { .. }, Value::Infinite { .. }) => {
            format.default_nan()
        }
        (Value::Infinite { .. }, _) | (_, Value::Infinite { .. }) => infinity(format, negative),
        (Value::Zero { .. }, _) | (_, Value::Zero { .. }) => zero(format, negative),
        (Value::Finite(x), Value::Finite(y)) => round_and_flush(format, mul_exact(x, y), env),
    }
}

/// Multiplies two values with at most 63 significant bits each.
#[inline]
pub fn mul_exact(x: Exact, y: Exact) -> Exact {
    Exact { negative: x.negative != y.negative, exp: x.exp + y.exp, sig: x.sig * y.sig }
}

/// `a / b`, rounded once.
pub fn div(format: Format, a: u64, b: u64, env: &FloatEnv) -> u64 {
    let mode = env.of(format);
    let (x, y) = (operand(format, a, mode), operand(format, b, mode));
    let negative = format.is_negative(a) != format.is_negative(b);
    match (x, y) {
        (Value::Nan, _) | (_, Value::Nan) => first_nan(format, &[a, b]),
        (Value::Infinite { .. }, Value::Infinite { .. }) | (Value::Zero { .. }, Value::Zero { .. }) => {
            format.default_nan()
        }
        (Value::Infinite { .. }, _) | (_, Value::Zero { .. }) => infinity(format, negative),
        (Value::Zero { .. }, _) | (_, Value::Infinite { .. }) => zero(format, negative),
        (Value::Finite(x), Value::Finite(y)) => round_and_flush(format, div_exact(x, y), env),
    }
}

/// Divides two values with at most 60 significant bits each. The quotient has at least 64 bits, the lowest of
/// which is sticky.
#[inline]
pub fn div_exact(x: Exact, y: Exact) -> Exact {
    let (x, y) = (x.with_top(125), y.with_top(60));
    let (quotient, rest) = (x.sig / y.sig, x.sig % y.sig);
    Exact { negative: x.negative != y.negative, exp: x.exp - y.exp, sig: quotient | (rest != 0) as u128 }
}

/// `a * b + c`, rounded once.
pub fn fma(format: Format, a: u64, b: u64, c: u64, env: &FloatEnv) -> u64 {
    fma_ldexp(format, a, b, c, 0, env)
}

/// `(a * b + c) · 2^by`, rounded once.
pub fn fma_ldexp(format: Format, a: u64, b: u64, c: u64, by: i32, env: &FloatEnv) -> u64 {
    // Any count beyond ±2^14 overflows or underflows every format, so the sum cannot wrap.
    let by = by.clamp(-0x4000, 0x4000);
    let round_and_flush = |x: Exact| round_and_flush(format, Exact { exp: x.exp + by, ..x }, env);
    let mode = env.of(format);
    let (x, y, z) = (operand(format, a, mode), operand(format, b, mode), operand(format, c, mode));
    let negative = format.is_negative(a) != format.is_negative(b);
    match (x, y) {
        _ if [x, y, z].contains(&Value::Nan) => first_nan(format, &[a, b, c]),
        (Value::Infinite { .. }, Value::Zero { .. }) | (Value::Zero { .. }, Value::Infinite { .. }) => {
            format.default_nan()
        }
        (Value::Infinite { .. }, _) | (_, Value::Infinite { .. }) => match z {
            Value::Infinite { negative: other } if other != negative => format.default_nan(),
            _ => infinity(format, negative),
        },
        (Value::Zero { .. }, _) | (_, Value::Zero { .. }) => match z {
            Value::Infinite { negative } => infinity(format, negative),
            Value::Zero { negative: other } => zero(format, zero_sum(negative, other, mode.round)),
            Value::Finite(z) => round_and_flush(z),
            Value::Nan => format.default_nan(),
        },
        (Value::Finite(x), Value::Finite(y)) => match z {
            Value::Infinite { negative } => infinity(format, negative),
            Value::Zero { .. } => round_and_flush(mul_exact(x, y)),
            Value::Finite(z) => match add_exact(mul_exact(x, y), z) {
                Some(sum) => round_and_flush(sum),
                None => zero(format, mode.round == Round::Down),
            },
            Value::Nan => format.default_nan(),
        },
        (Value::Nan, _) | (_, Value::Nan) => format.default_nan(),
    }
}

/// `1 / a`, rounded once.
pub fn rcp(format: Format, a: u64, env: &FloatEnv) -> u64 {
    div(format, format.one(), a, env)
}

/// Square root, rounded once; negative numbers return the default NaN.
pub fn sqrt(format: Format, a: u64, env: &FloatEnv) -> u64 {
    match operand(format, a, env.of(format)) {
        Value::Nan => format.quiet(a),
        Value::Zero { negative } => zero(format, negative),
        Value::Infinite { negative: false } => format.infinity(),
        Value::Infinite { negative: true } | Value::Finite(Exact { negative: true, .. }) => {
            format.default_nan()
        }
        Value::Finite(x) => {
            // With 125 or 126 bits and an even exponent, the root has 63 bits, far more than any format.
            let mut x = x.with_top(124);
            if x.exp & 1 != 0 {
                x = Exact { sig: x.sig << 1, exp: x.exp - 1, ..x };
            }
            let root = x.sig.isqrt();
            let sticky = (root * root != x.sig) as u128;
            round_and_flush(
                format,
                Exact { sig: root << 1 | sticky, exp: x.exp / 2 - 1, negative: false },
                env,
            )
        }
    }
}

/// `1 / sqrt(a)`, rounded once.
pub fn rsq(format: Format, a: u64, env: &FloatEnv) -> u64 {
    match operand(format, a, env.of(format)) {
        Value::Nan => format.quiet(a),
        Value::Zero { negative } => infinity(format, negative),
        Value::Infinite { negative: false } => 0,
        Value::Infinite { negative: true } | Value::Finite(Exact { negative: true, .. }) => {
            format.default_nan()
        }
        Value::Finite(x) => {
            // x = m·2^e with e even and m of 60 or 61 bits: 1/sqrt(x) = sqrt(2^186/m) · 2^(-93-e/2), and
            // floor(sqrt(2^186/m)) = isqrt(floor(2^186/m)), 63 bits.
            let mut x = x.with_top(59);
            if x.exp & 1 != 0 {
                x = Exact { sig: x.sig << 1, exp: x.exp - 1, ..x };
            }
            let high = (1u128 << 122) / x.sig;
            let rest = (1u128 << 122) % x.sig;
            let low = (rest << 64) / x.sig;
            let quotient = (high << 64) + low;
            let root = quotient.isqrt();
            let exact = root * root == quotient && (rest << 64).is_multiple_of(x.sig);
            round_and_flush(
                format,
                Exact { sig: root << 1 | !exact as u128, exp: -93 - x.exp / 2 - 1, negative: false },
                env,
            )
        }
    }
}

/// Compares two numbers; returns `None` for a NaN. Denormals count as zeros if inputs are flushed; `-0 ==
/// +0`.
#[inline]
pub fn compare(format: Format, a: u64, b: u64, env: &FloatEnv) -> Option<std::cmp::Ordering> {
    if format.is_nan(a) || format.is_nan(b) {
        return None;
    }
    let key = |bits: u64| {
        let bits = flush_input(format, bits, env);
        let magnitude = (bits & format.magnitude_mask()) as i64;
        // The sign of f64 is bit 63, so magnitudes fit in i64.
        if format.is_negative(bits) { -magnitude } else { magnitude }
    };
    Some(key(a).cmp(&key(b)))
}

/// IEEE `minimumNumber`: a number wins over a NaN; `-0 < +0`. Two NaNs return the first one, made quiet.
pub fn min_num(format: Format, a: u64, b: u64, env: &FloatEnv) -> u64 {
    select_min_max(format, a, b, env, std::cmp::Ordering::Less, false)
}

/// IEEE `maximumNumber`.
pub fn max_num(format: Format, a: u64, b: u64, env: &FloatEnv) -> u64 {
    select_min_max(format, a, b, env, std::cmp::Ordering::Greater, false)
}

/// IEEE `minimum`: a NaN wins.
pub fn minimum(format: Format, a: u64, b: u64, env: &FloatEnv) -> u64 {
    select_min_max(format, a, b, env, std::cmp::Ordering::Less, true)
}

/// IEEE `maximum`: a NaN wins.
pub fn maximum(format: Format, a: u64, b: u64, env: &FloatEnv) -> u64 {
    select_min_max(format, a, b, env, std::cmp::Ordering::Greater, true)
}

/// Selects one of the operands, so only input flushing applies (RDNA4 ISA manual, V_MIN_NUM_F32).
fn select_min_max(
    format: Format,
    a: u64,
    b: u64,
    env: &FloatEnv,
    want: std::cmp::Ordering,
    nan_wins: bool,
) -> u64 {
    let (a, b) = (flush_input(format, a, env), flush_input(format, b, env));
    match (format.is_nan(a), format.is_nan(b)) {
        (true, true) => return format.quiet(a),
        (true, false) => return if nan_wins { format.quiet(a) } else { b },
        (false, true) => return if nan_wins { format.quiet(b) } else { a },
        (false, false) => {}
    }
    let order = compare(format, a, b, env).unwrap_or(std::cmp::Ordering::Equal);
    let first = if order.is_eq() {
        // Equal values differ at most in the sign of a zero.
        format.is_negative(a) == want.is_lt()
    } else {
        order == want
    };
    if first { a } else { b }
}
