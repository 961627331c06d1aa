//! exp2, log2, sine and cosine in f64, within [`MARGIN`] of the exact value: enough to round most results to f32 or
//! f16. Plain additions and multiplications only, so every host computes the same bits.

/// Bound of the relative error of these functions. Worst seen against [`super::wide`] is below 2^-50; the rest is reserve.
pub const MARGIN: f64 = 1.0 / (1u64 << 47) as f64;

/// `2^x` for `|x| < 1000`.
#[inline]
pub fn exp2(x: f64) -> f64 {
    let n = x.round_ties_even();
    let t = (x - n) * std::f64::consts::LN_2;
    // |t| < 0.347: the term of degree 14 is below 2^-57.
    const TERMS: [f64; 14] = reciprocal_factorials();
    let mut sum = TERMS[13];
    for k in (0..13).rev() {
        sum = sum * t + TERMS[k];
    }
    sum * power_of_two(n as i32)
}

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

#[inline]
fn power_of_two(n: i32) -> f64 {
    f64::from_bits(((1023 + n) as u64) << 52)
}

/// `log2 x` for positive normal `x`.
#[inline]
pub fn log2(x: f64) -> f64 {
    let bits = x.to_bits();
    // Exponent and significand in [sqrt(1/2), sqrt(2)).
    let shifted = bits.wrapping_sub(0x3fe6_a09e_667f_3bcd);
    let e = (shifted as i64 >> 52) as f64;
    let m = f64::from_bits(bits.wrapping_sub(shifted & 0xfff0_0000_0000_0000));
    let s = (m - 1.0) / (m + 1.0);
    let q = s * s;
    // |s| < 0.172: the term of degree 23 is below 2^-62.
    let mut sum = 1.0 / 21.0;
    let mut k = 19;
    while k > 0 {
        sum = sum * q + 1.0 / k as f64;
        k -= 2;
    }
    e + s * sum * (2.0 * std::f64::consts::LOG2_E)
}

/// Sine and cosine of `x` turns, for `|x| < 2^50` and `x` with at most 26 significant bits (so that reduction is exact).
#[inline]
pub fn sin_cos(x: f64) -> (f64, f64) {
    let quarters = (x * 4.0).round_ties_even();
    let t = (x * 4.0 - quarters) * std::f64::consts::FRAC_PI_2;
    let q = t * t;
    // |t| < 0.786: the terms of degree 19 and 20 are below 2^-60.
    let (mut sin, mut cos) = (SIN[8], COS[9]);
    for k in (0..8).rev() {
        sin = sin * q + SIN[k];
    }
    for k in (0..9).rev() {
        cos = cos * q + COS[k];
    }
    let sin = sin * t;
    match quarters as i64 & 3 {
        0 => (sin, cos),
        1 => (cos, -sin),
        2 => (-sin, -cos),
        _ => (-cos, sin),
    }
}

/// `(-1)^k / (2k+1)!` and `(-1)^k / (2k)!`.
const SIN: [f64; 9] = alternating(1);
const COS: [f64; 10] = alternating(0);

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
