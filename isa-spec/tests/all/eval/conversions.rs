//! Casts, float arithmetic by MODE, NaN tests.

use super::*;

#[test]
fn casts() {
    let nan = 0x7fc0_0000;
    check_cases(&[
        ("D0.i32 = 32'I(S0.f32);", &[f32_bits(-1.9)], 0xffff_ffff),
        ("D0.i32 = 32'I(S0.f32);", &[f32_bits(3e9)], 0x7fff_ffff),
        ("D0.u32 = 32'U(S0.f32);", &[f32_bits(-5.0)], 0),
        ("D0.u32 = 32'U(S0.f32);", &[nan], 0),
        ("D0.i16 = 16'I(S0.f32);", &[f32_bits(-1e9)], 0x8000),
        ("D0.f32 = 32'F(S0.i32);", &[0xffff_ffff], f32_bits(-1.0)),
        ("D0.f32 = 32'F(S0.u32);", &[0xffff_ffff], f32_bits(4294967296.0)),
        ("D0.f64 = 64'F(S0.f32);", &[f32_bits(1.5)], f64_bits(1.5)),
        ("D0.f32 = 32'F(S0.f64);", &[f64_bits(1e300)], f32_bits(f32::INFINITY)),
        ("D0.f32 = 32'F(S0.f16);", &[0x3c00], f32_bits(1.0)),
        // Views reinterpret bits.
        ("D0.u32 = 32'B(S0.f32);", &[f32_bits(1.0)], 0x3f80_0000),
        ("D0.f32 = S0.u32.f32;", &[0x3f80_0000], 0x3f80_0000),
        ("D0.i64 = 64'I(S0.i32);", &[0x8000_0000], 0xffff_ffff_8000_0000),
        ("D0.u64 = 64'U(S0.u32);", &[0x8000_0000], 0x8000_0000),
    ]);
}

#[test]
fn float_operators() {
    check_cases(&[
        ("D0.f32 = S0.f32 + S1.f32;", &[f32_bits(1.0), f32_bits(2.5)], f32_bits(3.5)),
        ("D0.f32 = -S0.f32;", &[f32_bits(1.0)], f32_bits(-1.0)),
        ("D0.f32 = 1.0F / S0.f32;", &[f32_bits(-0.0)], f32_bits(f32::NEG_INFINITY)),
        ("D0.f32 = S0.f32 * 2.0F ** S1.i32;", &[f32_bits(3.0), 0xffff_fffe], f32_bits(0.75)),
        ("D0.f32 = abs(S0.f32);", &[f32_bits(-2.0)], f32_bits(2.0)),
        (
            "D0.f32 = fma(S0.f32, S1.f32, S2.f32);",
            &[f32_bits(3.0), f32_bits(4.0), f32_bits(5.0)],
            f32_bits(17.0),
        ),
        ("D0.f16 = S0.f16 * S1.f16;", &[0x3e00, 0x4000], 0x4200),
        ("D0.u32 = S0.f32 < S1.f32 ? 1U : 2U;", &[f32_bits(-1.0), f32_bits(1.0)], 1),
        ("D0.u32 = S0.f32 == S1.f32 ? 1U : 2U;", &[f32_bits(-0.0), f32_bits(0.0)], 1),
        // With a NaN, only `!=` holds.
        ("D0.u32 = S0.f32 != S1.f32 ? 1U : 2U;", &[0x7fc0_0000, 0], 1),
        ("D0.u32 = S0.f32 <> S1.f32 ? 1U : 2U;", &[0x7fc0_0000, 0], 2),
        ("D0.u32 = S0.f32 >= S1.f32 ? 1U : 2U;", &[0x7fc0_0000, 0], 2),
    ]);
}

/// The NaN tests of the manuals' minimum and maximum bodies.
#[test]
fn nan_tests_through_a_wider_cast() {
    let body = "D0.u32 = isSignalNAN(64'F(S0.f32)) ? 1U : isQuietNAN(64'F(S0.f32)) ? 2U : 3U;";
    check_cases(&[(body, &[0x7f80_0001], 1), (body, &[0x7fc0_0001], 2), (body, &[0x7f80_0000], 3)]);
    check_cases(&[("D0.f32 = 32'F(cvtToQuietNAN(64'F(S0.f32)));", &[0xff80_0001], 0xffc0_0001)]);
}

#[test]
fn mode_decides_rounding_and_denormals() {
    let sum = |mode, a: u128, b: u128| {
        let mut machine = Fake { mode, ..Fake::default() };
        machine.operands = [(Role::S0, a), (Role::S1, b)].into();
        run("D0.f32 = S0.f32 + S1.f32;", &mut machine).unwrap();
        machine.operands[&Role::D0]
    };
    let (one, tiny) = (f32_bits(1.0), f32_bits(1e-20));
    assert_eq!(sum(0xf0, one, tiny), one);
    assert_eq!(sum(0xf1, one, tiny), one + 1);
    assert_eq!(sum(0xf2, one, tiny), one);
    assert_eq!(sum(0xf2, one, tiny | 0x8000_0000), one - 1);
    assert_eq!(sum(0xf3, one, tiny | 0x8000_0000), one - 1);
    // Denormals: kept, operands flushed, results flushed.
    assert_eq!(sum(0xf0, 1, 2), 3);
    assert_eq!(sum(0xe0, 1, 2), 0);
    assert_eq!(sum(0xd0, 1, 2), 0);
    assert_eq!(sum(0xd0, 0x0080_0001, 0x8080_0000), 0, "a denormal difference of normal numbers");
}

#[test]
fn conversion_builtins() {
    check_cases(&[
        ("D0.f16 = f32_to_f16(S0.f32);", &[f32_bits(1.0)], 0x3c00),
        ("D0.f16 = f32_to_f16_rtz(S0.f32);", &[f32_bits(65535.0)], 0x7bff),
        ("D0.i32 = f32_to_i32(floor(S0.f32 + 0.5F));", &[f32_bits(-2.5)], 0xffff_fffe),
        ("D0.u8 = f32_to_u8(S0.f32);", &[f32_bits(2.5)], 2),
        ("D0.i16 = f32_to_snorm(S0.f32);", &[f32_bits(-1.0)], 0x8001),
        ("D0.u16 = f32_to_unorm(S0.f32);", &[f32_bits(2.0)], 0xffff),
        ("D0.f32 = fp8_to_f32(S0.fp8);", &[0x38], f32_bits(1.0)),
        ("D0.f32 = ldexp(S0.f32, S1.i32);", &[f32_bits(1.0), 0xffff_ffff], f32_bits(0.5)),
        ("D0.i32 = frexp_exp(S0.f64);", &[f64_bits(8.0)], 4),
        ("D0.i32 = exponent(S0.f32);", &[f32_bits(1.0)], 127),
    ]);
}
