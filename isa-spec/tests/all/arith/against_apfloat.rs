//! Compares every operation and conversion with `rustc_apfloat` in every rounding mode.

use super::{FORMATS, bits, same};
use isa_spec::arith::*;
use proptest::prelude::*;
use rustc_apfloat::ieee::{BFloat, Double, Float8E4M3FN, Float8E5M2, Half, Quad, Single};
use rustc_apfloat::{Float, FloatConvert, Round as ApRound, Status, StatusAnd};

fn ap(round: Round) -> ApRound {
    match round {
        Round::NearestEven => ApRound::NearestTiesToEven,
        Round::Up => ApRound::TowardPositive,
        Round::Down => ApRound::TowardNegative,
        Round::Zero => ApRound::TowardZero,
    }
}

/// Calls a generic function with apfloat's type for a format.
macro_rules! with_type {
    ($format:expr, $function:ident($($arg:expr),*)) => {
        match $format {
            Format::F16 => $function::<Half>($($arg),*),
            Format::BF16 => $function::<BFloat>($($arg),*),
            Format::F32 => $function::<Single>($($arg),*),
            _ => $function::<Double>($($arg),*),
        }
    };
}

#[derive(Debug, Clone, Copy)]
enum Op {
    Add,
    Sub,
    Mul,
    Div,
}

fn reference<F: Float>(op: Op, a: u64, b: u64, round: ApRound) -> u64 {
    let (a, b) = (F::from_bits(a as u128), F::from_bits(b as u128));
    (match op {
        Op::Add => a.add_r(b, round),
        Op::Sub => a.sub_r(b, round),
        Op::Mul => a.mul_r(b, round),
        Op::Div => a.div_r(b, round),
    })
    .value
    .to_bits() as u64
}

fn reference_fma<F: Float>(a: u64, b: u64, c: u64, round: ApRound) -> u64 {
    let [a, b, c] = [a, b, c].map(|x| F::from_bits(x as u128));
    a.mul_add_r(b, c, round).value.to_bits() as u64
}

/// Computes the reference in a format that represents most sums exactly; returns `None` for the others.
fn reference_fma_ldexp<F>(a: u64, b: u64, c: u64, by: i32, round: ApRound) -> Option<u64>
where
    F: Float + FloatConvert<Quad>,
    Quad: FloatConvert<F>,
{
    let mut loses = false;
    let [a, b, c] = [a, b, c].map(|x| F::from_bits(x as u128).convert(&mut loses).value);
    let sum: StatusAnd<Quad> = a.mul_add_r(b, c, round);
    let exact = !sum.status.contains(Status::INEXACT);
    exact.then(|| sum.value.scalbn(by).convert_r(round, &mut loses).value.to_bits() as u64)
}

fn reference_integral<F: Float>(a: u64, round: ApRound) -> u64 {
    F::from_bits(a as u128).round_to_integral(round).value.to_bits() as u64
}

fn reference_ldexp<F: Float>(a: u64, by: i32, round: ApRound) -> u64 {
    F::from_bits(a as u128).scalbn_r(by, round).to_bits() as u64
}

fn reference_to_int<F: Float>(a: u64, width: usize, signed: bool, round: ApRound) -> u64 {
    let a = F::from_bits(a as u128);
    let mut exact = false;
    if a.is_nan() {
        0
    } else if signed {
        a.to_i128_r(width, round, &mut exact).value as u64
    } else {
        a.to_u128_r(width, round, &mut exact).value as u64
    }
}

fn reference_from_int<F: Float>(value: i128, round: ApRound) -> u64 {
    F::from_i128_r(value, round).value.to_bits() as u64
}

fn convert_between<F: Float + FloatConvert<G>, G: Float>(a: u64, round: ApRound) -> u64 {
    let mut loses = false;
    F::from_bits(a as u128).convert_r(round, &mut loses).value.to_bits() as u64
}

fn reference_convert(from: Format, to: Format, a: u64, round: ApRound) -> u64 {
    macro_rules! to {
        ($from:ty) => {
            match to {
                Format::F16 => convert_between::<$from, Half>(a, round),
                Format::BF16 => convert_between::<$from, BFloat>(a, round),
                Format::F32 => convert_between::<$from, Single>(a, round),
                Format::F64 => convert_between::<$from, Double>(a, round),
                // apfloat's E4M3 overflows to NaN, like the ISA's; 8-bit floats always round to nearest even.
                Format::FP8 => convert_between::<$from, Float8E4M3FN>(a, ApRound::NearestTiesToEven),
                _ => convert_between::<$from, Float8E5M2>(a, ApRound::NearestTiesToEven),
            }
        };
    }
    match from {
        Format::F16 => to!(Half),
        Format::BF16 => to!(BFloat),
        Format::F32 => to!(Single),
        Format::F64 => to!(Double),
        Format::FP8 => to!(Float8E4M3FN),
        _ => to!(Float8E5M2),
    }
}

/// Three operands of a random format, and a rounding mode.
fn case() -> impl Strategy<Value = (Format, u64, u64, u64, Round)> {
    (prop::sample::select(FORMATS.to_vec()), prop::sample::select(Round::ALL.to_vec())).prop_flat_map(
        |(format, round)| (Just(format), bits(format), bits(format), bits(format), Just(round)),
    )
}

fn check_binary(format: Format, a: u64, b: u64, round: Round) -> Result<(), TestCaseError> {
    let env = FloatEnv::KEEP.with_round(round);
    for op in [Op::Add, Op::Sub, Op::Mul, Op::Div] {
        let ours = match op {
            Op::Add => soft::add(format, a, b, &env),
            Op::Sub => soft::sub(format, a, b, &env),
            Op::Mul => soft::mul(format, a, b, &env),
            Op::Div => soft::div(format, a, b, &env),
        };
        let theirs = with_type!(format, reference(op, a, b, ap(round)));
        prop_assert!(
            same(format, ours, theirs),
            "{op:?} {a:x} {b:x} {round:?} {format:?}: {ours:x}, apfloat {theirs:x}"
        );
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(20_000))]

    #[test]
    fn add_sub_mul_div((format, a, b, _, round) in case()) {
        check_binary(format, a, b, round)?;
    }

    #[test]
    fn fma((format, a, b, c, round) in case()) {
        let env = FloatEnv::KEEP.with_round(round);
        let theirs = with_type!(format, reference_fma(a, b, c, ap(round)));
        let ours = soft::fma(format, a, b, c, &env);
        prop_assert!(same(format, ours, theirs), "{a:x} {b:x} {c:x} {round:?}: {ours:x}, apfloat {theirs:x}");
        // An addend that nearly cancels the product.
        let near = soft::mul(format, a, b, &FloatEnv::KEEP) ^ format.sign_bit();
        for c in [near, near.wrapping_add(1), near.wrapping_sub(1)] {
            let c = c & (format.sign_bit() | format.magnitude_mask());
            let theirs = with_type!(format, reference_fma(a, b, c, ap(round)));
            let ours = soft::fma(format, a, b, c, &env);
            prop_assert!(same(format, ours, theirs), "{a:x} {b:x} {c:x} {round:?}: {ours:x}, apfloat {theirs:x}");
        }
    }

    /// Double rounding would show in denormal results.
    #[test]
    fn fma_ldexp((format, a, b, c, round) in case(), by in prop_oneof![-40..40i32, -300..300i32, any::<i32>()]) {
        let env = FloatEnv::KEEP.with_round(round);
        let bounded = by.clamp(-4000, 4000);
        if let Some(theirs) = with_type!(format, reference_fma_ldexp(a, b, c, bounded, ap(round))) {
            let ours = soft::fma_ldexp(format, a, b, c, by, &env);
            prop_assert!(same(format, ours, theirs), "{a:x} {b:x} {c:x} {by} {round:?}: {ours:x}, apfloat {theirs:x}");
        }
        prop_assert_eq!(soft::fma_ldexp(format, a, b, c, 0, &env), soft::fma(format, a, b, c, &env));
    }

    #[test]
    fn to_integral_and_ldexp((format, a, _, _, round) in case(), by in prop_oneof![-40..40i32, -5000..5000i32, any::<i32>()]) {
        let env = FloatEnv::KEEP.with_round(round);
        let theirs = with_type!(format, reference_integral(a, ap(round)));
        prop_assert!(same(format, integral::round_to_integral(format, a, round, &env), theirs));
        let theirs = with_type!(format, reference_ldexp(a, by, ap(round)));
        let ours = integral::ldexp(format, a, by, &env);
        prop_assert!(same(format, ours, theirs), "ldexp {a:x} {by} {round:?}: {ours:x}, apfloat {theirs:x}");
    }

    #[test]
    fn integers((format, a, _, _, round) in case(), value in any::<i64>(), cut in 0..64u32,
                width in prop::sample::select(vec![8u32, 16, 24, 32, 53, 64])) {
        let env = FloatEnv::KEEP.with_round(round);
        for signed in [false, true] {
            let theirs = with_type!(format, reference_to_int(a, width as usize, signed, ap(round)));
            let ours = integral::to_int(format, a, width, signed, round, &env);
            prop_assert_eq!(ours, theirs, "{:x} to {} bits, signed {}, {:?}", a, width, signed, round);
        }
        for value in [value as i128 >> cut, value as u64 as i128 >> cut] {
            let theirs = with_type!(format, reference_from_int(value, ap(round)));
            prop_assert_eq!(integral::from_int(format, value, &env), theirs, "{} {:?}", value, round);
        }
    }

    #[test]
    fn conversions((from, a, _, _, round) in case()) {
        let env = FloatEnv::KEEP.with_round(round);
        for to in [Format::F16, Format::BF16, Format::F32, Format::F64, Format::FP8, Format::BF8] {
            let theirs = reference_convert(from, to, a, ap(round));
            let ours = integral::to_float(from, to, a, true, &env);
            prop_assert!(same(to, ours, theirs), "{a:x} {from:?} to {to:?} {round:?}: {ours:x}, apfloat {theirs:x}");
        }
    }

    /// Flushing equals flushing the operands, computing, and flushing the result.
    #[test]
    fn flushing((format, a, b, c, _) in case(), mode in 0..256u32) {
        let env = FloatEnv::from_mode(mode);
        let keep = FloatEnv { flush_in32: false, flush_out32: false, flush_in64: false, flush_out64: false, ..env };
        let flush = |x: u64, yes: bool| if yes { format.flush(x) } else { x };
        let single = matches!(format, Format::F32 | Format::BF16);
        let denorm = if single { mode >> 4 } else { mode >> 6 };
        let (input, output) = (denorm & 1 == 0, denorm & 2 == 0);
        let [p, q, r] = [a, b, c].map(|x| flush(x, input));
        for (ours, expected) in [
            (soft::add(format, a, b, &env), soft::add(format, p, q, &keep)),
            (soft::sub(format, a, b, &env), soft::sub(format, p, q, &keep)),
            (soft::mul(format, a, b, &env), soft::mul(format, p, q, &keep)),
            (soft::div(format, a, b, &env), soft::div(format, p, q, &keep)),
            (soft::fma(format, a, b, c, &env), soft::fma(format, p, q, r, &keep)),
            (soft::sqrt(format, a, &env), soft::sqrt(format, p, &keep)),
            (soft::rsq(format, a, &env), soft::rsq(format, p, &keep)),
            (integral::ldexp(format, a, 3, &env), integral::ldexp(format, p, 3, &keep)),
        ] {
            prop_assert_eq!(ours, flush(expected, output));
        }
        // These return one of their operands, so only inputs are flushed.
        prop_assert_eq!(soft::min_num(format, a, b, &env), soft::min_num(format, p, q, &keep));
        prop_assert_eq!(soft::compare(format, a, b, &env), soft::compare(format, p, q, &keep));
    }
}

/// There are 2^32 pairs of f16: tests all patterns against a set with every exponent.
#[test]
fn every_half_against_every_exponent() {
    for a in 0..=0xffffu64 {
        for b in (0..32).flat_map(|e| [e << 10, e << 10 | 0x155, 0x8000 | e << 10 | 0x3ff]) {
            check_binary(Format::F16, a, b, Round::ALL[(a & 3) as usize]).unwrap();
        }
    }
}

#[test]
fn small_formats_widen_exactly() {
    for a in 0..=0xffu64 {
        for from in [Format::FP8, Format::BF8] {
            for to in FORMATS {
                let theirs = reference_convert(from, to, a, ApRound::NearestTiesToEven);
                assert!(same(to, integral::to_float(from, to, a, true, &FloatEnv::KEEP), theirs), "{a:x}");
            }
        }
    }
}
