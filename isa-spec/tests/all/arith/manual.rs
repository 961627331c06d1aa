//! Values printed in the ISA manuals (RDNA4 ISA manual, *Functional examples* of each instruction), and rules
//! that they state.

use super::named::*;
use isa_spec::arith::*;

const KEEP: FloatEnv = FloatEnv::KEEP;

#[track_caller]
fn check32(function: fn(u32, &FloatEnv) -> u32, cases: &[(u32, u32)]) {
    for &(x, expected) in cases {
        assert_eq!(function(x, &KEEP), expected, "argument {x:#x}");
    }
}

#[track_caller]
fn check16(function: fn(u16, &FloatEnv) -> u16, cases: &[(u16, u16)]) {
    for &(x, expected) in cases {
        assert_eq!(function(x, &KEEP), expected, "argument {x:#x}");
    }
}

#[test]
fn functional_examples_f32() {
    check32(f32_exp2, &[(0xff800000, 0), (0x80000000, 0x3f800000), (0x7f800000, 0x7f800000)]);
    check32(
        f32_log2,
        &[
            (0xff800000, 0xffc00000),
            (0xbf800000, 0xffc00000),
            (0x80000000, 0xff800000),
            (0, 0xff800000),
            (0x3f800000, 0),
            (0x7f800000, 0x7f800000),
        ],
    );
    check32(
        f32_rcp,
        &[
            (0xff800000, 0x80000000),
            (0xc0000000, 0xbf000000),
            (0x80000000, 0xff800000),
            (0, 0x7f800000),
            (0x7f800000, 0),
        ],
    );
    check32(
        f32_rsq,
        &[
            (0xff800000, 0xffc00000),
            (0x80000000, 0xff800000),
            (0, 0x7f800000),
            (0x40800000, 0x3f000000),
            (0x7f800000, 0),
        ],
    );
    check32(
        f32_sqrt,
        &[(0x80000000, 0x80000000), (0, 0), (0x40800000, 0x40000000), (0x7f800000, 0x7f800000)],
    );
    assert!(f32_is_nan(f32_sqrt(0xff800000, &KEEP)));
    check32(
        f32_sin,
        &[
            (0xff800000, 0xffc00000),
            (0xff7fffff, 0),
            (0x80000000, 0x80000000),
            (0x3e800000, 0x3f800000),
            (0x7f800000, 0xffc00000),
        ],
    );
    check32(
        f32_cos,
        &[
            (0xff800000, 0xffc00000),
            (0xff7fffff, 0x3f800000),
            (0x80000000, 0x3f800000),
            (0x3e800000, 0),
            (0x7f800000, 0xffc00000),
        ],
    );
}

#[test]
fn functional_examples_f16() {
    check16(
        f16_rcp,
        &[(0xfc00, 0x8000), (0xc000, 0xb800), (0x8000, 0xfc00), (0x0000, 0x7c00), (0x7c00, 0x0000)],
    );
    check16(
        f16_sqrt,
        &[(0xfc00, 0xfe00), (0x8000, 0x8000), (0x0000, 0x0000), (0x4400, 0x4000), (0x7c00, 0x7c00)],
    );
    check16(
        f16_rsq,
        &[(0xfc00, 0xfe00), (0x8000, 0xfc00), (0x0000, 0x7c00), (0x4400, 0x3800), (0x7c00, 0x0000)],
    );
    check16(
        f16_log2,
        &[
            (0xfc00, 0xfe00),
            (0xbc00, 0xfe00),
            (0x8000, 0xfc00),
            (0x0000, 0xfc00),
            (0x3c00, 0x0000),
            (0x7c00, 0x7c00),
        ],
    );
    check16(f16_exp2, &[(0xfc00, 0x0000), (0x8000, 0x3c00), (0x7c00, 0x7c00)]);
    check16(
        f16_sin,
        &[
            (0xfc00, 0xfe00),
            (0xfbff, 0x0000),
            (0x8000, 0x8000),
            (0x3400, 0x3c00),
            (0x7bff, 0x0000),
            (0x7c00, 0xfe00),
        ],
    );
    check16(
        f16_cos,
        &[
            (0xfc00, 0xfe00),
            (0xfbff, 0x3c00),
            (0x8000, 0x3c00),
            (0x3400, 0x0000),
            (0x7bff, 0x3c00),
            (0x7c00, 0xfe00),
        ],
    );
}

/// *Denormals*: the functions that flush f32 denormals in every mode.
#[test]
fn approximations_and_denormals() {
    let (tiny, one) = (1u32, 0x3f800000);
    assert_eq!(f32_log2(tiny, &KEEP), 0xff800000, "log2 of a flushed denormal");
    assert_eq!(f32_exp2((-130.0f32).to_bits(), &KEEP), 0, "a denormal result of exp2 is flushed");
    assert_eq!(f32_cos(tiny, &KEEP), one);
    // Sine supports denormals: 2 pi times the argument.
    assert_eq!(f32_sin(100, &KEEP), 628);
    let flush = FloatEnv::from_mode(0);
    assert_eq!(f32_sin(0x8000_0064, &flush), 0x8000_0000);
    // f16 keeps or flushes by MODE.
    assert_eq!(f16_log2(0x0001, &KEEP), 0xce00, "log2 of 2^-24 is -24");
    assert_eq!(f16_log2(0x0001, &flush), 0xfc00);
    assert_eq!(f16_exp2(0xce00, &KEEP), 0x0001);
    assert_eq!(f16_exp2(0xce00, &flush), 0);
}

/// *FP MAXNUM / MINNUM Selection Rules* and *FP MAX / MIN Selection Rules*.
#[test]
fn min_max_selection() {
    let (one, quiet, signal, minus_zero) = (0x3f800000, 0x7fc01234, 0x7f801234, 0x80000000);
    for nan in [quiet, signal] {
        assert_eq!(f32_min_num(nan, one, &KEEP), one);
        assert_eq!(f32_min_num(one, nan, &KEEP), one);
        assert_eq!(f32_max_num(nan, one, &KEEP), one);
        assert_eq!(f32_minimum(nan, one, &KEEP), 0x7fc01234);
        assert_eq!(f32_maximum(one, nan, &KEEP), 0x7fc01234);
    }
    assert_eq!(f32_max_num(signal, 0xffc00001, &KEEP), 0x7fc01234, "two NaNs: the first, quiet");
    for function in [f32_min_num, f32_minimum] {
        assert_eq!(function(0, minus_zero, &KEEP), minus_zero);
        assert_eq!(function(minus_zero, 0, &KEEP), minus_zero);
    }
    for function in [f32_max_num, f32_maximum] {
        assert_eq!(function(0, minus_zero, &KEEP), 0);
        assert_eq!(function(minus_zero, 0, &KEEP), 0);
    }
    // A flushed operand is returned as zero even if output denormals are allowed.
    let flush_inputs = FloatEnv { flush_in32: true, ..KEEP };
    assert_eq!(f32_min_num(5, one, &flush_inputs), 0);
    let flush_outputs = FloatEnv { flush_out32: true, ..KEEP };
    assert_eq!(f32_min_num(5, one, &flush_outputs), 5);
}

/// *Float Add rules*: NaN operands in order, made quiet; infinities of opposite signs return the negative
/// quiet NaN.
#[test]
fn nan_results() {
    let signal = 0x7f80_0001u64;
    assert_eq!(soft::add(Format::F32, signal, 0xffc0_0002, &KEEP), 0x7fc0_0001);
    assert_eq!(soft::add(Format::F32, 0x3f80_0000, 0xffc0_0002, &KEEP), 0xffc0_0002);
    assert_eq!(soft::sub(Format::F32, 0x3f80_0000, 0xffc0_0002, &KEEP), 0xffc0_0002);
    assert_eq!(soft::sub(Format::F32, 0x7f80_0000, 0x7f80_0000, &KEEP), 0xffc0_0000);
    assert_eq!(soft::mul(Format::F32, 0x7f80_0000, 0, &KEEP), 0xffc0_0000);
}

#[test]
fn signs_of_zero() {
    for round in Round::ALL {
        let env = KEEP.with_round(round);
        let zero = if round == Round::Down { 0x8000_0000 } else { 0 };
        assert_eq!(soft::sub(Format::F32, 0x3f80_0000, 0x3f80_0000, &env), zero);
        assert_eq!(soft::add(Format::F32, 0, 0x8000_0000, &env), zero);
        assert_eq!(soft::fma(Format::F32, 0x3f80_0000, 0x3f80_0000, 0xbf80_0000, &env), zero);
        assert_eq!(soft::add(Format::F32, 0x8000_0000, 0x8000_0000, &env), 0x8000_0000);
        // -0.5 to nearest even and toward +infinity is -0.
        assert_eq!(f32_rndne(0xbf00_0000, &env), 0x8000_0000);
        assert_eq!(f32_ceil(0xbf00_0000, &env), 0x8000_0000);
    }
}

/// MODE.FP16_OVFL: overflow saturates, true infinities stay.
#[test]
fn fp16_overflow() {
    let env = FloatEnv::from_mode(1 << 23 | 0xf0);
    assert_eq!(f16_mul(0x7bff, 0x4000, &env), 0x7bff);
    assert_eq!(f16_mul(0xfbff, 0x4000, &env), 0xfbff);
    assert_eq!(f16_add(0x7c00, 0x3c00, &env), 0x7c00);
    assert_eq!(f16_rcp(0, &env), 0x7c00);
    assert_eq!(f32_to_f16(70000f32.to_bits(), &env), 0x7bff);
    assert_eq!(f32_to_f16(0x7f80_0000, &env), 0x7c00);
    assert_eq!(f32_mul(0x7f7f_ffff, 0x4000_0000, &env), 0x7f80_0000, "f32 is not concerned");
    assert_eq!(f16_mul(0x7bff, 0x4000, &KEEP), 0x7c00);
}

#[test]
fn mode_register() {
    let env = FloatEnv::from_mode(0b1001_0110_1101);
    assert_eq!((env.round32, env.round64), (Round::Up, Round::Zero));
    assert_eq!((env.flush_in32, env.flush_out32), (true, false));
    assert_eq!((env.flush_in64, env.flush_out64), (false, true));
}

#[test]
fn fract_stays_below_one() {
    assert_eq!(f32_fract((-1e-10f32).to_bits(), &KEEP), 0x3f7f_ffff);
    assert_eq!(f32::from_bits(f32_fract((-1.25f32).to_bits(), &KEEP)), 0.75);
    assert_eq!(f32_fract(0x8000_0000, &KEEP), 0);
    assert_eq!(f64_fract((-1e-300f64).to_bits(), &KEEP), 1.0f64.to_bits() - 1);
    assert!(f32_is_nan(f32_fract(0x7f80_0000, &KEEP)));
    // Exact zero is +0 in every mode.
    assert_eq!(f32_fract(3f32.to_bits(), &KEEP.with_round(Round::Down)), 0);
}

#[test]
fn frexp() {
    for (x, mant, exp) in [(8.0f32, 0.5, 4), (-3.0, -0.75, 2), (f32::from_bits(1), 0.5, -148), (0.0, 0.0, 0)]
    {
        assert_eq!(f32::from_bits(f32_frexp_mant(x.to_bits(), &KEEP)), mant);
        assert_eq!(f32_frexp_exp(x.to_bits(), &KEEP), exp);
    }
    assert_eq!(f32_frexp_mant(0x8000_0000, &KEEP), 0x8000_0000);
    assert_eq!(f32_frexp_exp(0x7f80_0000, &KEEP), 0);
    assert_eq!(f32_frexp_mant(0xff80_0000, &KEEP), 0xff80_0000);
}

/// A widening cast keeps a signalling NaN, for which pasted manual text can then test; conversions make it
/// quiet.
#[test]
fn signalling_nans_in_casts() {
    use isa_spec::pcode::ir::Ty;
    let wide = cast(0x7f80_0001, Ty::F32, Ty::F64, &KEEP);
    assert!(is_signal_nan(wide, Ty::F64));
    assert!(is_quiet_nan(convert(0x7f80_0001, Ty::F32, Ty::F64, &KEEP), Ty::F64));
    // Narrowing again: a payload too small for the narrow format still is a NaN.
    assert!(is_nan(cast(0x7ff0_0000_0000_0001, Ty::F64, Ty::F32, &KEEP), Ty::F32));
    assert_eq!(f64_to_f32(wide as u64, &KEEP), 0x7fc0_0001);
}
