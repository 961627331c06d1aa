//! exp2, log2, sine and cosine in f64, within [`MARGIN`] of the exact value: precise enough to round most
//! results to f32 or f16. With `FUSED`, the functions use fused multiply-adds, for hosts that have them; the
//! last bits may then differ, within the same bound.

/// Bound on the relative error of these functions. The largest observed error against [`super::wide`] is
/// below 2^-50; the rest is a safety margin.
pub const MARGIN: f64 = 1.0 / (1u64 << 47) as f64;

/// `a * b + c`, rounded once or twice.
#[inline(always)]
fn multiply_add<const FUSED: bool>(a: f64, b: f64, c: f64) -> f64 {
    if FUSED { a.mul_add(b, c) } else { a * b + c }
}

/// Evaluates a polynomial as its even and odd terms, which hosts compute in parallel.
#[inline(always)]
fn polynomial<const FUSED: bool, const N: usize>(terms: &[f64; N], x: f64) -> f64 {
    let square = x * x;
    let (mut even, mut odd) = (terms[(N - 1) & !1], terms[(N - 2) | 1]);
    for k in (0..N - 2).rev() {
        let sum = if k & 1 == 0 { &mut even } else { &mut odd };
        *sum = multiply_add::<FUSED>(*sum, square, terms[k]);
    }
    multiply_add::<FUSED>(odd, x, even)
}

/// Adding this to a number below 2^51 leaves the nearest integer in the low bits.
pub const ROUNDER: f64 = (3u64 << 51) as f64;

/// `2^x` for `|x| < 1000`.
#[inline(always)]
pub fn exp2<const FUSED: bool>(x: f64) -> f64 {
    let shifted = x + ROUNDER;
    let n = shifted - ROUNDER;
    let t = (x - n) * std::f64::consts::LN_2;
    // |t| < 0.347: the term of degree 14 is below 2^-57.
    let sum = polynomial::<FUSED, 14>(&EXP, t);
    sum * f64::from_bits(shifted.to_bits().wrapping_add(1023) << 52)
}

/// Coefficients of `e^t`: `1 / k!`.
pub const EXP: [f64; 14] = reciprocal_factorials();

const fn reciprocal_factorials() -> [f64; 14] {
    let mut terms = [1.0; 14];
    let (mut k, mut factorial) = (1, 1.0);
    while k < 14 {
        factorial *= k as f64;
        terms[k] = 1.0 / factorial;
        k += 1;
    }
    terms
}

/// Coefficients of `atanh(s) / s` in `s^2`: `1 / (2k + 1)`.
pub const ATANH: [f64; 11] = reciprocal_odds();

const fn reciprocal_odds() -> [f64; 11] {
    let mut terms = [1.0; 11];
    let mut k = 1;
    while k < 11 {
        terms[k] = 1.0 / (2 * k + 1) as f64;
        k += 1;
    }
    terms
}

/// `log2 x` for positive normal `x`.
#[inline(always)]
pub fn log2<const FUSED: bool>(x: f64) -> f64 {
    let bits = x.to_bits();
    // Exponent and significand in [sqrt(1/2), sqrt(2)).
    let shifted = bits.wrapping_sub(0x3fe6_a09e_667f_3bcd);
    // Convert to a float by placing the bits below those of 2^52: hosts have no conversion of vectors of
    // 64-bit integers.
    let e = f64::from_bits(shifted.wrapping_add(1 << 63) >> 52 | 0x4330_0000_0000_0000)
        - ((1u64 << 52) + (1 << 11)) as f64;
    let m = f64::from_bits(bits.wrapping_sub(shifted & 0xfff0_0000_0000_0000));
    let s = (m - 1.0) / (m + 1.0);
    let q = s * s;
    // |s| < 0.172: the term of degree 23 is below 2^-62.
    let sum = polynomial::<FUSED, 11>(&ATANH, q);
    e + s * sum * (2.0 * std::f64::consts::LOG2_E)
}

/// Sine and cosine of `x` turns, for `|x| < 2^48` and `x` with at most 26 significant bits, which makes the
/// reduction exact.
#[inline]
pub fn sin_cos<const FUSED: bool>(x: f64) -> (f64, f64) {
    let (sin, cos, quadrant) = parts_of_sin_cos::<FUSED>(x);
    match quadrant {
        0 => (sin, cos),
        1 => (cos, -sin),
        2 => (-sin, -cos),
        _ => (-cos, sin),
    }
}

/// Returns sine and cosine of the angle relative to the nearest quarter turn, and the number of that quarter,
/// 0 to 3.
#[inline(always)]
pub fn parts_of_sin_cos<const FUSED: bool>(x: f64) -> (f64, f64, u64) {
    let shifted = x * 4.0 + ROUNDER;
    let t = (x * 4.0 - (shifted - ROUNDER)) * std::f64::consts::FRAC_PI_2;
    let q = t * t;
    // |t| < 0.786: the terms of degree 19 and 20 are below 2^-60.
    let (sin, cos) = (polynomial::<FUSED, 9>(&SIN, q), polynomial::<FUSED, 10>(&COS, q));
    (sin * t, cos, shifted.to_bits() & 3)
}

/// Coefficients of `sin(t) / t` in `t^2`: `(-1)^k / (2k+1)!`.
pub const SIN: [f64; 9] = alternating(1);
/// Coefficients of `cos(t)` in `t^2`: `(-1)^k / (2k)!`.
pub const COS: [f64; 10] = alternating(0);

const fn alternating<const N: usize>(start: u32) -> [f64; N] {
    let mut terms = [1.0; N];
    let (mut k, mut factorial, mut n) = (1, 1.0, start as f64);
    while k < N {
        factorial *= -(n + 1.0) * (n + 2.0);
        n += 2.0;
        terms[k] = 1.0 / factorial;
        k += 1;
    }
    terms
}
