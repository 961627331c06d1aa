//! The digits of 2/pi.

use isa_spec::arith::FloatEnv;
use isa_spec::arith::trig_preop::{DIGITS, TWO_OVER_PI, trig_preop, two_over_pi_segment};
use num_bigint::BigUint;

/// pi in units of 2^-bits, by Machin's formula.
pub fn pi(bits: u32) -> BigUint {
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
            let bit = if at < DIGITS { TWO_OVER_PI[at as usize / 64] >> (63 - at % 64) & 1 } else { 0 };
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
