//! `V_TRIG_PREOP_F64`: segments of 2/pi for argument reduction.

use super::env::FloatEnv;
use super::format::Format;
use super::integral::{exponent_field, ldexp};

/// 2/pi without its leading zero: bit 63 of the first word is worth 1/2. Only the first 1201 bits are used;
/// the rest of the last word is not zero but never reached.
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

/// Bits kept by hardware.
const BITS: u32 = 1201;

/// The 53 bits of 2/pi from bit `shift` on (0: the most significant fraction bit), as an integer; zeros past
/// the end.
#[inline]
pub fn two_over_pi_segment(shift: u32) -> u64 {
    let word = |at: usize| match at {
        0..=17 => TWO_OVER_PI[at],
        18 => TWO_OVER_PI[18] & !((1 << (64 * 19 - BITS)) - 1),
        _ => 0,
    };
    let at = shift as usize / 64;
    let window = (word(at) as u128) << 64 | word(at + 1) as u128;
    (window << (shift % 64) >> (128 - 53)) as u64
}

/// Segment `segment` (0..31) of 2/pi for an argument with a biased exponent: an integer, and the power of two
/// that it is in units of.
#[inline]
pub fn unscaled(exponent: u32, segment: u32) -> (u64, i32) {
    let shift = (segment & 31) * 53 + exponent.saturating_sub(1077);
    (two_over_pi_segment(shift), -53 - shift as i32 + if exponent >= 1968 { 128 } else { 0 })
}

/// The segment aligned for the argument `a`, truncated (RDNA4 ISA manual, V_TRIG_PREOP_F64). Infinities and
/// NaNs count as numbers with the largest exponent, as in the manual.
pub fn trig_preop(a: u64, segment: u32, env: &FloatEnv) -> u64 {
    let (result, scale) = unscaled(exponent_field(Format::F64, a), segment);
    // An integer below 2^53 is exact in f64.
    ldexp(Format::F64, (result as f64).to_bits(), scale, env)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use num_bigint::BigUint;

    /// pi in units of 2^-bits, by Machin's formula.
    pub(crate) fn pi(bits: u32) -> BigUint {
        let one = BigUint::from(1u32) << (bits + 64);
        let arctan_of_reciprocal = |n: u32| {
            let (mut power, mut sum, mut minus, mut k) = (&one / n, &one / n, true, 1u32);
            while power != BigUint::ZERO {
                power /= n * n;
                k += 2;
                if minus {
                    sum -= &power / k
                } else {
                    sum += &power / k
                }
                minus = !minus;
            }
            sum
        };
        (arctan_of_reciprocal(5) * 16u32 - arctan_of_reciprocal(239) * 4u32) >> 64
    }

    #[test]
    fn digits_of_two_over_pi() {
        let expected: BigUint = (BigUint::from(1u32) << (1 + 1300 + 1216)) / pi(1300);
        // 2/pi = 2 · 2^1300 / pi(1300); in units of 2^-1216.
        let table = TWO_OVER_PI.iter().fold(BigUint::ZERO, |sum, &word| (sum << 64) + word);
        assert_eq!(table, expected);
    }

    #[test]
    fn segments_are_bit_by_bit() {
        for shift in 0..3000 {
            let expected = (shift..shift + 53).fold(0, |segment, at| {
                let bit = if at < BITS { TWO_OVER_PI[at as usize / 64] >> (63 - at % 64) & 1 } else { 0 };
                segment << 1 | bit
            });
            assert_eq!(two_over_pi_segment(shift), expected, "{shift}");
        }
    }

    #[test]
    fn segments() {
        let env = FloatEnv::KEEP;
        // Segment 0 of a small argument: 2/pi truncated to 53 fraction bits (rounded it is one more).
        let first = f64::from_bits(trig_preop(1.0f64.to_bits(), 0, &env));
        assert_eq!(first, std::f64::consts::FRAC_2_PI - 2f64.powi(-53));
        // The second is below the last bit of the first.
        let second = f64::from_bits(trig_preop(1.0f64.to_bits(), 1, &env));
        assert!(second > 0.0 && second < 2f64.powi(-53));
        // Exponents beyond 1077 shift the window by the difference.
        let huge = f64::from_bits(trig_preop(2f64.powi(1078 - 1023).to_bits(), 0, &env));
        assert_eq!(huge, two_over_pi_segment(1) as f64 * 2f64.powi(-54));
        // At 1968 the result is scaled up by 2^128.
        let top = f64::from_bits(trig_preop(2f64.powi(1968 - 1023).to_bits(), 0, &env));
        assert_eq!(top, two_over_pi_segment(891) as f64 * 2f64.powi(-53 - 891 + 128));
        assert_eq!(two_over_pi_segment(1201), 0);
        assert_eq!(two_over_pi_segment(1200) >> 52, TWO_OVER_PI[18] >> (63 - 1200 % 64) & 1);
    }
}
