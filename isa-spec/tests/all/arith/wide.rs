//! The constants of 128-bit fixed point.

use isa_spec::arith::approx::{LN_2, TWO_OVER_LN_2, TWO_PI, mul_high};

/// The constants, recomputed with big integers.
#[test]
fn constants() {
    use num_bigint::BigUint;
    let one = BigUint::from(1u32) << 300;
    // ln 2 = sum 1 / (k 2^k).
    let ln2: BigUint = (1u32..320).map(|k| (&one >> k) / k).sum();
    assert_eq!(&ln2 >> 172, BigUint::from(LN_2));
    assert_eq!((BigUint::from(2u32) << (126 + 300)) / &ln2, BigUint::from(TWO_OVER_LN_2));
    assert_eq!(super::trig_preop::pi(300) >> 174, BigUint::from(TWO_PI));
}

#[test]
fn mul_high_is_exact() {
    use num_bigint::BigUint;
    for (a, b) in [(u128::MAX, u128::MAX), (LN_2, TWO_PI), (1 << 127, 3), (u64::MAX as u128, u128::MAX)] {
        assert_eq!(BigUint::from(mul_high(a, b)), (BigUint::from(a) * BigUint::from(b)) >> 128);
    }
}
