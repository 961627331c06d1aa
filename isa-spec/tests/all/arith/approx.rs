//! Compares the f64 path with the fixed-point path, and that with an independent computation.

use isa_spec::arith::approx::{Function, evaluate, evaluate_in_f64, evaluate_in_fixed_point, quick, special};
use isa_spec::arith::format::{Exact, Value, pack, unpack};
use isa_spec::arith::{FloatEnv, Format, Round};

const FUNCTIONS: [Function; 5] =
    [Function::Exp2, Function::Log2, Function::Sin, Function::Cos, Function::Tanh];

/// A cheap generator of evenly spread bit patterns.
fn patterns(count: u32) -> impl Iterator<Item = u32> {
    (0..count).map(|i| i.wrapping_mul(0x9e37_79b9) ^ i >> 7)
}

fn check(function: Function, format: Format, a: u64) {
    if special(function, format, a).is_some() {
        return;
    }
    if let Some(quick) = evaluate_in_f64(function, format, a) {
        assert_eq!(quick, evaluate_in_fixed_point(function, format, a), "{function:?} {format:?} of {a:x}");
    }
}

#[test]
fn quick_results_are_the_exact_ones() {
    for function in FUNCTIONS {
        for a in patterns(200_000) {
            check(function, Format::F32, a as u64);
            // Arguments of moderate size.
            check(function, Format::F32, (a & 0x87ff_ffff | 0x3c00_0000) as u64);
        }
    }
}

/// Every f32: compares all arguments that the f64 path leaves undecided with [`big`], and one in 1021 of the
/// others with the fixed-point path. `cargo test --release -p isa-spec --test all -- --ignored --nocapture
/// every_f32`
#[test]
#[ignore = "ten minutes in release"]
fn every_f32() {
    for function in FUNCTIONS {
        let (mut computed, mut undecided) = (0u64, 0u64);
        for a in 0..=u32::MAX {
            if special(function, Format::F32, a as u64).is_some() {
                continue;
            }
            computed += 1;
            match evaluate_in_f64(function, Format::F32, a as u64) {
                Some(quick) if a % 1021 == 0 => {
                    assert_eq!(
                        quick,
                        evaluate_in_fixed_point(function, Format::F32, a as u64),
                        "{function:?} of {a:x}"
                    )
                }
                Some(_) => {}
                // The fixed-point path also handles sines of large integers, which are exact.
                None => {
                    undecided += 1;
                    if undecided.is_multiple_of(256) || undecided < 20_000 {
                        check_big(function, Format::F32, a as u64, a);
                    }
                }
            }
        }
        println!("{function:?}: {computed} arguments computed, {undecided} left to the wide path");
    }
}

/// The error of the f64 functions, measured against the fixed-point ones at f64's precision.
fn quick_error<const FUSED: bool>() {
    let mut worst = 0f64;
    for a in patterns(100_000).flat_map(|a| [a, a & 0x87ff_ffff | 0x3c00_0000]) {
        let x = f32::from_bits(a) as f64;
        for function in FUNCTIONS {
            if special(function, Format::F32, a as u64).is_some() {
                continue;
            }
            let quick = match function {
                Function::Exp2 if x.abs() < 1000.0 => quick::exp2::<FUSED>(x),
                Function::Log2 => quick::log2::<FUSED>(x),
                Function::Sin if x.abs() < (1 << 24) as f64 => quick::sin_cos::<FUSED>(x).0,
                Function::Cos if x.abs() < (1 << 24) as f64 => quick::sin_cos::<FUSED>(x).1,
                _ => continue,
            };
            let exact = f64::from_bits(evaluate_in_fixed_point(function, Format::F64, x.to_bits()));
            if exact != 0.0 {
                worst = worst.max(((quick - exact) / exact).abs());
            }
        }
    }
    assert!(worst < quick::MARGIN / 4.0, "2^{}", worst.log2());
}

#[test]
fn quick_error_is_within_the_margin() {
    quick_error::<false>();
    quick_error::<true>();
}

/// Identities that relate the fixed-point functions to exact arithmetic, at f64's precision.
#[test]
fn wide_identities() {
    let f64_of =
        |function, x: f64| f64::from_bits(evaluate(function, Format::F64, x.to_bits(), &FloatEnv::KEEP));
    for a in patterns(20_000) {
        let x = (f32::from_bits(a & 0x83ff_ffff | 0x3e00_0000)) as f64;
        // 2^x · 2^-x = 1 and log2(2^x) = x.
        let product = f64_of(Function::Exp2, x) * f64_of(Function::Exp2, -x);
        assert!((product - 1.0).abs() < 4e-16, "{x}");
        let back = f64_of(Function::Log2, f64_of(Function::Exp2, x));
        assert!((back - x).abs() <= 1e-15 * x.abs().max(1.0), "{x}: {back}");
        // sin^2 + cos^2 = 1; sin(x + 1/4) = cos(x); odd and even.
        let (sin, cos) = (f64_of(Function::Sin, x), f64_of(Function::Cos, x));
        assert!((sin * sin + cos * cos - 1.0).abs() < 4e-16, "{x}");
        let y = (x * 1024.0).round() / 1024.0;
        assert_eq!(f64_of(Function::Sin, y + 0.25), f64_of(Function::Cos, y));
        assert_eq!(f64_of(Function::Sin, -x), -sin);
        assert_eq!(f64_of(Function::Cos, -x), cos);
    }
}

/// Series in 320-bit big-integer arithmetic, which share no code or constant with the fixed-point path.
mod big {
    use num_bigint::BigInt;
    use std::sync::LazyLock;

    pub const BITS: u32 = 320;

    fn one() -> BigInt {
        BigInt::from(1) << BITS
    }

    fn multiply(a: &BigInt, b: &BigInt) -> BigInt {
        (a * b) >> BITS
    }

    /// ln(n / d) for n/d near one: 2 atanh((n - d) / (n + d)).
    pub fn ln_ratio(n: &BigInt, d: &BigInt) -> BigInt {
        let s: BigInt = ((n - d) << BITS) / (n + d);
        let square = multiply(&s, &s);
        let (mut power, mut sum, mut k) = (s.clone(), s, 1);
        while power != BigInt::ZERO && power != BigInt::from(-1) {
            power = multiply(&power, &square);
            k += 2;
            sum += &power / k;
        }
        sum * 2
    }

    pub static LN_2: LazyLock<BigInt> = LazyLock::new(|| ln_ratio(&BigInt::from(2), &BigInt::from(1)));

    pub static PI: LazyLock<BigInt> = LazyLock::new(|| BigInt::from(crate::arith::trig_preop::pi(BITS)));

    fn series(t: &BigInt, step: u32, mut k: u32, start: BigInt, minus: bool) -> BigInt {
        let power = if step == 2 { multiply(t, t) } else { t.clone() };
        let (mut term, mut sum) = (start.clone(), start);
        loop {
            term = multiply(&term, &power);
            for _ in 0..step {
                k += 1;
                term /= k;
            }
            if minus {
                term = -term;
            }
            if term.magnitude().bits() < 2 {
                return sum;
            }
            sum += &term;
        }
    }

    pub fn exp(t: &BigInt) -> BigInt {
        series(t, 1, 0, one(), false)
    }

    pub fn sin(t: &BigInt) -> BigInt {
        series(t, 2, 1, t.clone(), true)
    }

    pub fn cos(t: &BigInt) -> BigInt {
        series(t, 2, 0, one(), true)
    }
}

/// Evaluates `function` of an f32 by [`big`], as `(integer, unit exponent)`.
fn big_value(function: Function, a: u32) -> Option<(num_bigint::BigInt, i32)> {
    use num_bigint::BigInt;
    let Value::Finite(x) = unpack(Format::F32, a as u64) else { return None };
    let unit = -(big::BITS as i32);
    let fixed = |sig: u128, exp: i32| {
        let shift = exp + big::BITS as i32;
        let sig = BigInt::from(sig);
        if shift >= 0 { sig << shift } else { sig >> -shift }
    };
    let x_fixed: BigInt = fixed(x.sig, x.exp) * if x.negative { -1 } else { 1 };
    Some(match function {
        Function::Exp2 => {
            let whole: BigInt = &x_fixed >> big::BITS;
            let rest = &x_fixed - (&whole << big::BITS);
            let n: i32 = whole.try_into().ok()?;
            (big::exp(&((rest * &*big::LN_2) >> big::BITS)), unit + n)
        }
        Function::Log2 => {
            let top = 127 - x.sig.leading_zeros() as i32;
            let ln = big::ln_ratio(&BigInt::from(x.sig), &(BigInt::from(1) << top));
            let whole = BigInt::from(x.exp + top) << big::BITS;
            (whole + (ln << big::BITS) / &*big::LN_2, unit)
        }
        Function::Sin | Function::Cos => {
            // Modulo one turn, then radians.
            let turns = &x_fixed & ((BigInt::from(1) << big::BITS) - 1);
            let radians = (turns * &*big::PI * 2) >> big::BITS;
            (if function == Function::Sin { big::sin(&radians) } else { big::cos(&radians) }, unit)
        }
        // Larger arguments are one but for 2^-40.
        Function::Tanh if x_fixed.magnitude().bits() > big::BITS as u64 + 4 => return None,
        Function::Tanh => {
            // e^2x as a power of e^(2x / 64).
            let size = BigInt::from(x_fixed.magnitude().clone());
            let mut power = big::exp(&(size >> 5));
            for _ in 0..6 {
                power = (&power * &power) >> big::BITS;
            }
            let one = BigInt::from(1) << big::BITS;
            let value: BigInt = ((&power - &one) << big::BITS) / (&power + &one);
            (if x.negative { -value } else { value }, unit)
        }
    })
}

/// Checks that `function` of `a` (the same number as `x`, an f32) is the big-integer value rounded to
/// `format`.
fn check_big(function: Function, format: Format, a: u64, x: u32) {
    use num_bigint::{BigUint, Sign};
    if special(function, format, a).is_some() {
        return;
    }
    let Some((value, unit)) = big_value(function, x) else { return };
    let (negative, magnitude) = (value.sign() == Sign::Minus, value.magnitude());
    let ours = evaluate_in_fixed_point(function, format, a);
    // Results are far above 2^-260 or exactly zero; any remainder is the rounding error of the series.
    if magnitude.bits() < 60 {
        assert_eq!(ours & format.magnitude_mask(), 0, "{function:?} of {a:x}");
        return;
    }
    let drop = (magnitude.bits() as i32 - 120).max(0);
    let kept = magnitude >> drop;
    let sticky = (&kept << drop != *magnitude) as u32;
    let sig = u128::try_from(kept | BigUint::from(sticky)).unwrap();
    let expected = pack(format, Exact { negative, exp: unit + drop, sig }, Round::NearestEven, false);
    assert_eq!(ours, expected, "{function:?} of {a:x}");
}

#[test]
fn wide_against_big_integers() {
    for function in FUNCTIONS {
        for a in
            patterns(600).flat_map(|a| [a, a & 0x87ff_ffff | 0x3c00_0000, 0x3f80_0000 + (a >> 8) - (1 << 22)])
        {
            check_big(function, Format::F32, a as u64, a);
        }
        // Powers of two, integers, quarters, neighbours of one.
        for a in (0..256).map(|e| e << 23).chain((0..200).map(|n| (n as f32 / 8.0).to_bits())) {
            for a in [a, a + 1, a.saturating_sub(1), a | 0x8000_0000] {
                check_big(function, Format::F32, a as u64, a);
            }
        }
    }
}

/// Every f16, by the equal f32 argument; the f64 path too.
#[test]
fn every_f16_against_big_integers() {
    use isa_spec::arith::integral::to_float;
    for function in FUNCTIONS {
        for a in 0..=0xffffu64 {
            check_big(
                function,
                Format::F16,
                a,
                to_float(Format::F16, Format::F32, a, true, &FloatEnv::KEEP) as u32,
            );
            check(function, Format::F16, a);
        }
    }
}
