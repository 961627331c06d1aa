//! `V_TRIG_PREOP_F64`: segments of 2/pi for argument reduction.

use super::env::FloatEnv;
use super::format::Format;
use super::integral::{exponent_field, ldexp};

/// The fraction bits of 2/pi: bit 63 of the first word has the weight 1/2. Only the first 1201 bits are used;
/// the rest of the last word is not zero but is never read.
pub const TWO_OVER_PI: [u64; 19] = [
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

/// Number of bits of [`TWO_OVER_PI`] that hardware has.
pub const DIGITS: u32 = 1201;

/// Returns 53 bits of 2/pi as an integer, starting `shift` bits below the most significant fraction bit; bits
/// past the end are zero.
#[inline]
pub fn two_over_pi_segment(shift: u32) -> u64 {
    let word = |at: usize| match at {
        0..=17 => TWO_OVER_PI[at],
        18 => TWO_OVER_PI[18] & !((1 << (64 * 19 - DIGITS)) - 1),
        _ => 0,
    };
    let at = shift as usize / 64;
    let window = (word(at) as u128) << 64 | word(at + 1) as u128;
    (window << (shift % 64) >> (128 - 53)) as u64
}

/// Returns segment `segment` (0..31) of 2/pi for an argument with a biased exponent, as an integer and the
/// exponent of its scale, a power of two.
#[inline]
pub fn unscaled(exponent: u32, segment: u32) -> (u64, i32) {
    let shift = (segment & 31) * 53 + exponent.saturating_sub(1077);
    (two_over_pi_segment(shift), -53 - shift as i32 + if exponent >= 1968 { 128 } else { 0 })
}

/// Returns the segment for the argument `a`, scaled and truncated (RDNA4 ISA manual, V_TRIG_PREOP_F64).
/// Infinities and NaNs count as numbers with the largest exponent, as in the manual.
pub fn trig_preop(a: u64, segment: u32, env: &FloatEnv) -> u64 {
    let (result, scale) = unscaled(exponent_field(Format::F64, a), segment);
    // An integer below 2^53 is exact in f64.
    ldexp(Format::F64, (result as f64).to_bits(), scale, env)
}
