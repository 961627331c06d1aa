//! Numbers in decimal, as users write them, rounded once to the type that they are for.

use half::{bf16, f16};
use std::cmp::Ordering;

/// A decimal number. It is kept as two f64: the nearest one, and the one that results from rounding to odd
/// (truncation that sets the last bit if it discards anything). Rounding the latter to a type with at least
/// two bits less gives the value nearest to the number itself.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Decimal {
    nearest: f64,
    odd: f64,
}

impl Decimal {
    /// Returns the bits of the two numbers, which are the same for equal decimals only.
    pub fn bits(&self) -> [u64; 2] {
        [self.nearest.to_bits(), self.odd.to_bits()]
    }
}

impl From<f64> for Decimal {
    fn from(value: f64) -> Decimal {
        Decimal { nearest: value, odd: value }
    }
}

impl From<u128> for Decimal {
    fn from(value: u128) -> Decimal {
        let nearest = value as f64;
        // 2^128 itself is not a u128, but every u128 is less.
        let order = if nearest >= u128::MAX as f64 { Ordering::Less } else { value.cmp(&(nearest as u128)) };
        Decimal { nearest, odd: odd(nearest, order) }
    }
}

impl From<i128> for Decimal {
    fn from(value: i128) -> Decimal {
        let magnitude = Decimal::from(value.unsigned_abs());
        if value < 0 { -magnitude } else { magnitude }
    }
}

impl std::ops::Neg for Decimal {
    type Output = Decimal;

    fn neg(self) -> Decimal {
        Decimal { nearest: -self.nearest, odd: -self.odd }
    }
}

impl Decimal {
    /// Reads digits with a fraction and an exponent, both optional (`1.5e-3`), and a sign; `None` if the text
    /// is anything else.
    pub fn parse(text: &str) -> Option<Decimal> {
        let plain = |b: u8| b.is_ascii_digit() || matches!(b, b'.' | b'e' | b'E' | b'+' | b'-');
        let nearest: f64 = text.parse().ok().filter(|_| text.bytes().all(plain))?;
        let odd = odd(nearest, if may_be_tie(nearest) { compare(text, nearest) } else { Ordering::Equal });
        Some(Decimal { nearest, odd })
    }

    /// The absolute value.
    pub fn abs(self) -> Decimal {
        Decimal { nearest: self.nearest.abs(), odd: self.odd.abs() }
    }

    /// Returns whether f64 holds the number as far as rounding to narrower types is concerned.
    pub fn is_f64(self) -> bool {
        self.nearest == self.odd || self.nearest.is_nan()
    }

    /// The nearest f64.
    pub fn to_f64(self) -> f64 {
        self.nearest
    }

    /// An f64 for a function that rounds it to a narrower type, to nearest.
    pub fn to_narrow(self) -> f64 {
        self.odd
    }

    /// The nearest f32.
    pub fn to_f32(self) -> f32 {
        self.odd as f32
    }

    /// The nearest f16.
    pub fn to_f16(self) -> f16 {
        f16::from_f32(odd_f32(self.odd))
    }

    /// The nearest bf16.
    pub fn to_bf16(self) -> bf16 {
        bf16::from_f32(odd_f32(self.odd))
    }
}

/// Returns whether a value lies half-way between two neighbours in f32, f16 or bf16, or is one of them: its
/// significand has at most 25 bits. Only then does it matter whether the value is exact.
fn may_be_tie(value: f64) -> bool {
    value.to_bits() & ((1 << 28) - 1) == 0 || !value.is_finite()
}

/// Rounds to odd: `order` compares the exact number with `nearest`.
fn odd(nearest: f64, order: Ordering) -> f64 {
    if order == Ordering::Equal || nearest.is_nan() {
        return nearest;
    }
    let negative = nearest.is_sign_negative();
    let beyond = (order == Ordering::Greater) != negative;
    let bits = nearest.to_bits();
    f64::from_bits(if beyond && nearest.is_finite() { bits | 1 } else { (bits - 1) | 1 })
}

/// Rounds an f64 to f32, to odd.
fn odd_f32(value: f64) -> f32 {
    let nearest = value as f32;
    let order = value.partial_cmp(&(nearest as f64)).unwrap_or(Ordering::Equal);
    if order == Ordering::Equal {
        return nearest;
    }
    let beyond = (order == Ordering::Greater) != value.is_sign_negative();
    let bits = nearest.to_bits();
    f32::from_bits(if beyond { bits | 1 } else { (bits - 1) | 1 })
}

/// Compares the number in `text` with `nearest`, the f64 that it rounds to.
fn compare(text: &str, nearest: f64) -> Ordering {
    let magnitude = match nearest.is_finite() {
        // The exact value: f64 have at most 767 significant digits.
        true => digits(text).cmp(&digits(&format!("{:.766e}", nearest.abs()))),
        // The number is finite.
        false => Ordering::Less,
    };
    if nearest.is_sign_negative() { magnitude.reverse() } else { magnitude }
}

/// The magnitude of a decimal number in a form whose order is that of the numbers: the power of ten of the
/// first digit, and the digits without trailing zeros. 0 is less than all others.
fn digits(text: &str) -> Option<(i64, Vec<u8>)> {
    let text = text.trim_start_matches(['+', '-']);
    let (number, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let mut all: Vec<u8> = whole.bytes().chain(fraction.bytes()).collect();
    let zeros = all.iter().take_while(|d| **d == b'0').count();
    all.drain(..zeros);
    all.truncate(all.iter().rposition(|d| *d != b'0')? + 1);
    // An exponent that does not fit belongs to 0 or to a number that compares like the limit.
    let limit = if exponent.starts_with('-') { i64::MIN / 2 } else { i64::MAX / 2 };
    let exponent = exponent.parse::<i64>().unwrap_or(limit).clamp(i64::MIN / 2, i64::MAX / 2);
    Some((exponent + whole.len() as i64 - zeros as i64, all))
}
