//! exp2, log2, sine, cosine and tanh to better than 2^-100, in 128-bit fixed point. Slow, but each function is one
//! series without tables or host floating point. Results are sticky [`Exact`] values, which can be rounded to
//! any format.
//!
//! This precision suffices for correct rounding: no result is exactly on a rounding boundary except in the
//! cases handled as exact (Lindemann; Niven for the sine of a dyadic turn), and over all f32 arguments the
//! closest approach to a boundary is about 2^-(24+32).

use crate::arith::format::Exact;

/// ln 2, in units of 2^-128.
pub const LN_2: u128 = 0xb17217f7_d1cf79ab_c9e3b398_03f2f6af;
/// 2 / ln 2, in units of 2^-126.
pub const TWO_OVER_LN_2: u128 = 0xb8aa3b29_5c17f0bb_be87fed0_691d3e88;
/// 2 pi, in units of 2^-125.
pub const TWO_PI: u128 = 0xc90fdaa2_2168c234_c4c6628b_80dc1cd1;

/// Returns the upper half of the 256-bit product.
pub fn mul_high(a: u128, b: u128) -> u128 {
    let (a1, a0) = (a >> 64, a & u64::MAX as u128);
    let (b1, b0) = (b >> 64, b & u64::MAX as u128);
    let low = a0 * b0;
    let (mid1, mid2) = (a1 * b0, a0 * b1);
    let carry = (low >> 64) + (mid1 & u64::MAX as u128) + (mid2 & u64::MAX as u128);
    a1 * b1 + (mid1 >> 64) + (mid2 >> 64) + (carry >> 64)
}

/// Converts an exact value below 1 in magnitude to units of 2^-128, truncating.
fn fraction(sig: u128, exp: i32) -> u128 {
    let shift = exp + 128;
    match shift {
        ..=-128 => 0,
        -127..=-1 => sig >> -shift,
        _ => sig << shift,
    }
}

/// Converts a 128-bit fixed-point number `sig · 2^exp`, which is never exact, to a sticky value.
fn inexact(negative: bool, sig: u128, exp: i32) -> Exact {
    Exact { negative, exp: exp + 1, sig: sig >> 1 | 1 }
}

/// `2^x` for finite `x`, `|x| < 2^15`; `x` has at most 64 significant bits.
pub fn exp2(x: Exact) -> Exact {
    // Split into floor and fraction; the fraction in units of 2^-128.
    let magnitude = fraction_part(x);
    let whole = whole_part(x);
    let (n, f) = match (x.negative, magnitude) {
        (false, f) => (whole, f),
        (true, 0) => (-whole, 0),
        (true, f) => (-whole - 1, f.wrapping_neg()),
    };
    let below_resolution = x.exp < -128 && x.sig.trailing_zeros() < (-128 - x.exp) as u32;
    if f == 0 && !below_resolution {
        return Exact { negative: false, exp: n, sig: 1 };
    }
    if below_resolution && x.negative && magnitude == 0 {
        // Just below one: a significand of all ones.
        return Exact { negative: false, exp: n - 126, sig: (1 << 126) - 1 };
    }
    // e^t = 1 + t + t^2/2! + …, t = f ln 2.
    let t = mul_high(f, LN_2);
    let (mut term, mut sum, mut k) = (t, t, 1);
    while term != 0 {
        k += 1;
        term = mul_high(term, t) / k;
        sum = sum.saturating_add(term);
    }
    inexact(false, 1 << 127 | sum >> 1, n - 127)
}

/// `tanh x` for finite `x`, not zero.
pub fn tanh(x: Exact) -> Exact {
    let top = x.exp + (127 - x.sig.leading_zeros() as i32);
    if top >= 6 {
        // Beyond 64: within 2^-128 of one.
        return inexact(x.negative, (1 << 126) - 1, -126);
    }
    if top < -40 {
        // x - x^3 / 3: just below x.
        let x = x.with_top(120);
        return inexact(x.negative, x.sig - 1, x.exp);
    }
    // e^-y = 1 - (y - y^2/2! + y^3/3! - …) for y = |x| / 64, in units of 2^-128.
    let y = fraction(x.sig, x.exp - 6);
    let (mut term, mut sum, mut k) = (y, y, 1);
    while term != 0 {
        k += 1;
        term = mul_high(term, y) / k;
        sum = if k % 2 == 0 { sum - term } else { sum + term };
    }
    // e^-2|x|: to the power of 128.
    let mut power = sum.wrapping_neg();
    for _ in 0..7 {
        power = mul_high(power, power);
    }
    // (1 - e^-2|x|) / (1 + e^-2|x|), bit by bit, in units of 2^-126.
    let (mut rest, divisor) = ((1u128 << 126) - power.div_ceil(4), (1u128 << 126) + (power >> 2));
    let mut quotient = 0u128;
    for _ in 0..126 {
        rest <<= 1;
        quotient <<= 1;
        if rest >= divisor {
            rest -= divisor;
            quotient |= 1;
        }
    }
    inexact(x.negative, quotient, -126)
}

fn whole_part(x: Exact) -> i32 {
    match x.exp {
        0.. => (x.sig << x.exp) as i32,
        -126..=-1 => (x.sig >> -x.exp) as i32,
        _ => 0,
    }
}

fn fraction_part(x: Exact) -> u128 {
    match x.exp {
        0.. => 0,
        -127..=-1 => fraction(x.sig & ((1 << -x.exp) - 1), x.exp),
        _ => fraction(x.sig, x.exp),
    }
}

/// `log2 x` for positive finite `x` with at most 60 significant bits; returns `None` if the result is zero.
pub fn log2(x: Exact) -> Option<Exact> {
    // x = m · 2^e, m in [0.707, 1.414] as sig / 2^60.
    let x = x.with_top(60);
    let mut e = x.exp + 60;
    let mut one = 1u128 << 60;
    if x.sig > 0x16a0_9e66_7f3b_cd00 {
        one <<= 1;
        e += 1;
    }
    if x.sig == one {
        let exact = Exact { negative: e < 0, exp: 0, sig: e.unsigned_abs() as u128 };
        return (e != 0).then_some(exact);
    }
    // ln m = 2 atanh s, s = (m - 1) / (m + 1), |s| < 0.172, in units of 2^-128.
    let (negative, difference, sum) = (x.sig < one, x.sig.abs_diff(one), x.sig + one);
    let high = (difference << 64) / sum;
    let low = (((difference << 64) % sum) << 64) / sum;
    let s = high << 64 | low;
    let square = mul_high(s, s);
    let (mut power, mut total, mut k) = (s, s, 1);
    while power != 0 {
        power = mul_high(power, square);
        k += 2;
        total += power / k;
    }
    // log2 m, in units of 2^-126; below 0.5 in magnitude.
    let log = mul_high(total, TWO_OVER_LN_2);
    if e == 0 {
        return Some(inexact(negative, log, -126).with_top(126));
    }
    // Units of 2^-114 leave room for the exponents of f64.
    let (whole, log) = ((e.unsigned_abs() as u128) << 114, log >> 12);
    let sig = if (e < 0) == negative { whole + log } else { whole - log };
    Some(inexact(e < 0, sig, -114))
}

/// `sin(2 pi x)` for an argument in turns; returns `None` if the result is zero.
pub fn sin(x: Exact) -> Option<Exact> {
    let turn = reduce(x);
    trig(turn, turn.quarter)
}

/// `cos(2 pi x)`.
pub fn cos(x: Exact) -> Option<Exact> {
    let turn = reduce(x);
    // cos(|x|) = sin(|x| + a quarter turn).
    trig(Turn { negative: false, ..turn }, turn.quarter + 1)
}

/// `|x| = (quarter + rest) / 4` modulo 1, `rest` in [-1/2, 1/2] exactly.
#[derive(Clone, Copy)]
struct Turn {
    negative: bool,
    quarter: u32,
    rest: Option<Exact>,
}

fn reduce(x: Exact) -> Turn {
    // Quarter turns: 4 |x|.
    let exp = x.exp + 2;
    if exp >= 0 {
        // An integer number of quarters; only the two low bits matter.
        let quarter = if exp >= 2 { 0 } else { ((x.sig << exp) & 3) as u32 };
        return Turn { negative: x.negative, quarter, rest: None };
    }
    let drop = -exp as u32;
    if drop > 120 {
        return Turn { negative: x.negative, quarter: 0, rest: Some(Exact { negative: false, exp, ..x }) };
    }
    let half = 1u128 << (drop - 1);
    let quarter = (x.sig + half) >> drop;
    let (nearest, below) = (quarter << drop, x.sig < quarter << drop);
    let sig = x.sig.abs_diff(nearest);
    let rest = (sig != 0).then_some(Exact { negative: below, exp, sig });
    Turn { negative: x.negative, quarter: (quarter & 3) as u32, rest }
}

/// `±sin((quarter + rest) · pi/2)`.
fn trig(turn: Turn, quarter: u32) -> Option<Exact> {
    let flip = quarter & 2 != 0;
    let Some(rest) = turn.rest else {
        let one = Exact { negative: turn.negative != flip, exp: 0, sig: 1 };
        return (quarter & 1 == 1).then_some(one);
    };
    // Angle in radians, theta · 2^rest.exp: (2·sig) · (2 pi · 2^125) / 2^128 = sig · pi/2.
    let rest = rest.with_top(126);
    let theta = mul_high(rest.sig << 1, TWO_PI);
    let theta_exp = rest.exp;
    let theta_fixed = fraction(theta, theta_exp);
    let square = mul_high(theta_fixed, theta_fixed);
    if quarter & 1 == 0 {
        // sin(theta) = theta · (1 - theta^2/3! + …); the factor in units of 2^-127.
        let factor = series(square, 1);
        let sig = mul_high(theta, factor);
        Some(inexact(turn.negative ^ flip ^ rest.negative, sig, theta_exp + 1).with_top(126))
    } else {
        Some(inexact(turn.negative != flip, series(square, 0), -127))
    }
}

/// `1 - q/((k+1)(k+2)) + q^2/((k+1)…(k+4)) - …` in units of 2^-127: cosine for `k = 0`, sine over its
/// argument for `k = 1`.
fn series(square: u128, k: u128) -> u128 {
    let (mut term, mut sum, mut k, mut minus) = (1u128 << 127, 1u128 << 127, k, true);
    loop {
        // `square` is in units of 2^-128.
        term = mul_high(term, square) / ((k + 1) * (k + 2));
        if term == 0 {
            return sum;
        }
        sum = if minus { sum - term } else { sum + term };
        minus = !minus;
        k += 2;
    }
}
