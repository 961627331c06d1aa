//! Checks roots, reciprocal roots and normalised conversions by exact integer comparisons: a result is
//! correctly rounded if the true value is between the midpoints to its neighbours.

use super::named::*;
use super::{FORMATS, bits};
use isa_spec::arith::format::{Exact, Value, unpack};
use isa_spec::arith::*;
use num_bigint::BigUint;
use proptest::prelude::*;
use std::cmp::Ordering;

/// `sig · 2^exp` as an integer in units of `2^unit`.
fn scaled(sig: u128, exp: i32, unit: i32) -> BigUint {
    BigUint::from(sig) << (exp - unit) as u32
}

/// Compares `root^2 · x` with one (`reciprocal`) or `root^2` with `x`.
fn compare_square(root: (u128, i32), x: Exact, reciprocal: bool) -> Ordering {
    let (sig, exp) = root;
    let square = BigUint::from(sig) * BigUint::from(sig);
    if reciprocal {
        let product = square * BigUint::from(x.sig);
        let unit = (2 * exp + x.exp).min(0);
        (product << (2 * exp + x.exp - unit) as u32).cmp(&scaled(1, 0, unit))
    } else {
        let unit = (2 * exp).min(x.exp);
        (square << (2 * exp - unit) as u32).cmp(&scaled(x.sig, x.exp, unit))
    }
}

/// Checks a positive finite result of a root against the rule of its rounding mode.
fn check_root(
    format: Format,
    x: u64,
    result: u64,
    round: Round,
    reciprocal: bool,
) -> Result<(), TestCaseError> {
    let (Value::Finite(exact), Value::Finite(root)) = (unpack(format, x), unpack(format, result)) else {
        return Ok(());
    };
    // The result and its midpoints, in half units in the last place. No root is denormal, and none is
    // affected by the narrower gap below a power of two.
    let (sig, exp) = (root.sig * 4, root.exp - 2);
    let below = if root.sig.is_power_of_two() { sig - 1 } else { sig - 2 };
    let previous = if root.sig.is_power_of_two() { sig - 2 } else { sig - 4 };
    // `Less`: the candidate is below the true root; for a reciprocal root as well, since x is positive.
    let at = |sig| compare_square((sig, exp), exact, reciprocal);
    let good = match round {
        Round::NearestEven => at(below) != Ordering::Greater && at(sig + 2) != Ordering::Less,
        Round::Down | Round::Zero => at(sig) != Ordering::Greater && at(sig + 4) == Ordering::Greater,
        Round::Up => at(sig) != Ordering::Less && at(previous) == Ordering::Less,
    };
    prop_assert!(good, "{format:?} root of {x:x}: {result:x} {round:?} reciprocal {reciprocal}");
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(20_000))]

    #[test]
    fn roots((format, x) in prop::sample::select(FORMATS.to_vec()).prop_flat_map(|f| (Just(f), bits(f))),
             round in prop::sample::select(Round::ALL.to_vec())) {
        let env = FloatEnv::KEEP.with_round(round);
        let x = x & format.magnitude_mask();
        check_root(format, x, soft::sqrt(format, x, &env), round, false)?;
        check_root(format, x, soft::rsq(format, x, &env), round, true)?;
    }

    /// Squares have exact roots, and their neighbours round correctly.
    #[test]
    fn perfect_squares(root in 1u64..1 << 26, up in any::<bool>(), round in prop::sample::select(Round::ALL.to_vec())) {
        let env = FloatEnv::KEEP.with_round(round);
        let square = ((root * root) as f64).to_bits();
        prop_assert_eq!(f64::from_bits(soft::sqrt(Format::F64, square, &env)), root as f64);
        let near = if up { square + 1 } else { square - 1 };
        check_root(Format::F64, near, soft::sqrt(Format::F64, near, &env), round, false)?;
        check_root(Format::F64, near, soft::rsq(Format::F64, near, &env), round, true)?;
    }

    /// snorm and unorm: |value · scale - result| is at most one half.
    #[test]
    fn normalised(x in bits(Format::F32)) {
        let env = FloatEnv::KEEP;
        let value = f32::from_bits(x as u32) as f64;
        prop_assume!(!value.is_nan());
        // 24 bits times 16 bits is exact in f64.
        let snorm = f32_to_snorm(x as u32, &env) as f64;
        prop_assert!((value.clamp(-1.0, 1.0) * 32767.0 - snorm).abs() <= 0.5);
        let unorm = f32_to_unorm(x as u32, &env) as f64;
        prop_assert!((value.clamp(0.0, 1.0) * 65535.0 - unorm).abs() <= 0.5);
    }

    /// A quotient by the scale, checked as an integer inequality.
    #[test]
    fn from_normalised(value in any::<u16>(), width in 2u32..=16) {
        let scale = (1i64 << width) - 1;
        let value = value as i64 & scale;
        let result = integral::from_norm(Format::F32, value, scale);
        let Value::Finite(x) = unpack(Format::F32, result) else {
            prop_assert_eq!(value, 0);
            return Ok(());
        };
        // |sig · scale - value · 2^-exp| <= scale / 2.
        let (ours, true_value) = (x.sig as i128 * scale as i128, (value as i128) << -x.exp);
        prop_assert!((ours - true_value).abs() * 2 <= scale as i128);
        prop_assert!(value != scale || f32::from_bits(result as u32) == 1.0);
    }
}

/// Every f16: its root and reciprocal root.
#[test]
fn every_half() {
    for x in 1..Format::F16.infinity() {
        for round in Round::ALL {
            let env = FloatEnv::KEEP.with_round(round);
            check_root(Format::F16, x, soft::sqrt(Format::F16, x, &env), round, false).unwrap();
            check_root(Format::F16, x, soft::rsq(Format::F16, x, &env), round, true).unwrap();
        }
    }
}
