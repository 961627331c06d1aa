//! Integer operators, slices and literals.

use super::*;

const M1: u128 = 0xffff_ffff;

#[test]
fn arithmetic_wraps() {
    check_cases(&[
        ("D0.u32 = S0.u32 + S1.u32;", &[M1, 2], 1),
        ("D0.u32 = S0.u32 - S1.u32;", &[1, 2], M1),
        ("D0.u32 = S0.u32 * S1.u32;", &[0x10001, 0x10001], 0x20001),
        ("D0.i32 = -S0.i32;", &[0x8000_0000], 0x8000_0000),
        ("D0.u64 = 64'U(S0.u32) * 64'U(S1.u32);", &[M1, M1], 0xffff_fffe_0000_0001),
        ("D0.u32 = ~S0.u32;", &[0x0f0f], 0xffff_f0f0),
        // A narrower operand is extended by its own sign before the operation.
        ("D0.i32 = S0.i16 + S1.i32;", &[0xffff, 1], 0),
        ("D0.u32 = S0.u16 + S1.u32;", &[0xffff, 1], 0x10000),
    ]);
}

#[test]
fn division() {
    check_cases(&[
        ("D0.i32 = S0.i32 / S1.i32;", &[0xffff_fff9, 2], 0xffff_fffd),
        ("D0.i32 = S0.i32 % S1.i32;", &[0xffff_fff9, 2], M1),
        ("D0.u32 = S0.u32 / S1.u32;", &[7, 0], M1),
        ("D0.i32 = S0.i32 / S1.i32;", &[7, 0], M1),
        ("D0.u32 = S0.u32 % S1.u32;", &[7, 0], 7),
        // The quotient that overflows.
        ("D0.i32 = S0.i32 / S1.i32;", &[0x8000_0000, M1], 0x8000_0000),
        ("D0.i32 = S0.i32 % S1.i32;", &[0x8000_0000, M1], 0),
    ]);
}

#[test]
fn shifts_at_and_beyond_the_width() {
    check_cases(&[
        ("D0.u32 = S0.u32 << S1.u32;", &[1, 31], 0x8000_0000),
        ("D0.u32 = S0.u32 << S1.u32;", &[1, 32], 0),
        ("D0.u32 = S0.u32 << S1.u32;", &[1, M1], 0),
        ("D0.u32 = S0.u32 >> S1.u32;", &[0x8000_0000, 32], 0),
        ("D0.i32 = S0.i32 >> S1.u32;", &[0x8000_0000, 4], 0xf800_0000),
        ("D0.i32 = S0.i32 >> S1.u32;", &[0x8000_0000, 200], M1),
        ("D0.u64 = S0.u64 << S1.u32;", &[1, 63], 1 << 63),
    ]);
}

#[test]
fn comparisons_by_sign() {
    check_cases(&[
        ("D0.u32 = S0.i32 < S1.i32 ? 1U : 2U;", &[M1, 0], 1),
        ("D0.u32 = S0.u32 < S1.u32 ? 1U : 2U;", &[M1, 0], 2),
        ("D0.u32 = S0.i32 >= S1.i32 ? 1U : 2U;", &[5, 5], 1),
        ("D0.u32 = S0.u32 <> S1.u32 ? 1U : 2U;", &[5, 5], 2),
        ("D0.u32 = (S0.u32 != 0U) && (S1.u32 != 0U) ? 1U : 2U;", &[1, 0], 2),
        ("D0.u32 = (S0.u32 != 0U) || (S1.u32 != 0U) ? 1U : 2U;", &[0, 1], 1),
        ("D0.u32 = !S0.u32 ? 1U : 2U;", &[0], 1),
    ]);
}

#[test]
fn slices_and_concatenation() {
    check_cases(&[
        ("D0.u32 = S0[15 : 8].u32;", &[0xabcd_ef01], 0xef),
        ("D0.i32 = 32'I(S0[15 : 8].i8);", &[0xabcd_ef01], 0xffff_ffef),
        ("D0.u32 = 32'U(S0.u32[S1[4 : 0].u32]);", &[0x8000_0000, 63], 1),
        ("D0.u64 = { S0.u32, S1.u32 };", &[0x1234, 0x5678], 0x1234_0000_5678),
        ("D0[7 : 0].u8 = S0[15 : 8].u8;", &[0xaabb], 0xaa),
        ("D0[31 : 16].u16 = S0.u16; D0[15 : 0].u16 = 16'1U;", &[0xbeef], 0xbeef_0001),
        // A wider view zero-extends, a narrower one truncates.
        ("D0.u64 = S0.u32.u64;", &[M1], M1),
        ("D0.u32 = S0.u64.u32;", &[0xffff_ffff_0000_0001], 1),
    ]);
}

#[test]
fn bit_builtins() {
    check_cases(&[
        ("D0.u32 = count_ones(S0.u32);", &[0xf0f0], 8),
        ("D0.u32 = count_leading_zeros(S0.u32);", &[0], 32),
        ("D0.u32 = count_leading_zeros(S0.u16);", &[1], 15),
        ("D0.u32 = count_trailing_zeros(S0.u64);", &[0], 64),
        ("D0.u32 = reverse_bits(S0.u32);", &[1], 0x8000_0000),
        (
            "D0.u32 = select_bytes(S0.u32, S1.u32, S2.u32);",
            &[0x7766_5544, 0x3322_1100, 0x0003_0407],
            0x0033_4477,
        ),
        (
            "D0.u32 = select_bytes(S0.u32, S1.u32, S2.u32);",
            &[0x7766_5544, 0x3322_1100, 0x0801_80ff],
            0x0011_0000,
        ),
        ("D0.i32 = signext_from_bit(S0.i32, S1.u32);", &[0x0f, 4], M1),
        ("D0.i32 = signext_from_bit(S0.i32, S1.u32);", &[0x0f, 0], 0),
        ("D0.i32 = signext_from_bit(S0.i32, S1.u32);", &[0x8000_0001, 40], 0x8000_0001),
        ("D0.i64 = signext(S0.i16);", &[0x8000], 0xffff_ffff_ffff_8000),
        ("D0.u32 = abs(S0.i32);", &[0xffff_ff00], 0x100),
    ]);
}

/// The clamp builtins saturate with the instruction's clamp bit and wrap without.
#[test]
fn integer_clamp() {
    for (body, a, b, wrapped, saturated) in [
        ("D0.u16 = clamp_u16(32'U(S0.u16) + 32'U(S1.u16));", 0x8001, 0x8000, 1, 0xffff),
        ("D0.u16 = clamp_u16(32'I(S0.u16) - 32'I(S1.u16));", 1, 2, 0xffff, 0),
        ("D0.i16 = clamp_i16(32'I(S0.i16) - 32'I(S1.i16));", 0x8001, 2, 0x7fff, 0x8000),
        ("D0.i32 = clamp_i32(64'I(S0.i32) + 64'I(S1.i32));", 0x7fff_ffff, 1, 0x8000_0000, 0x7fff_ffff),
        ("D0.u32 = clamp_u32(64'U(S0.u32) * 64'U(S1.u32));", 0x10000, 0x10000, 0, 0xffff_ffff),
    ] {
        for (clamp, expected) in [(false, wrapped), (true, saturated)] {
            let mut machine = Fake { clamp, ..Fake::default() };
            machine.operands = [(Role::S0, a), (Role::S1, b)].into();
            run(body, &mut machine).unwrap();
            assert_eq!(machine.operands[&Role::D0], expected, "{body} clamp {clamp}");
        }
    }
}

/// Operators on the IR that no source produces.
#[test]
fn operators() {
    let env = FloatEnv::KEEP;
    let (u8_, i8_) = (Ty::U(8), Ty::I(8));
    assert_eq!(binary(BinOp::Pow, 3, 5, u8_, u8_, &env), 243);
    assert_eq!(binary(BinOp::Pow, 2, 8, u8_, u8_, &env), 0);
    assert_eq!(binary(BinOp::Pow, 2, 0xff, u8_, i8_, &env), 0);
    assert_eq!(binary(BinOp::Sub, 0, 1, u8_, u8_, &env), 0xff);
    assert_eq!(binary(BinOp::Mul, u128::MAX, u128::MAX, Ty::U(128), Ty::U(128), &env), 1);
    assert_eq!(binary(BinOp::Shl, 1, 127, Ty::U(128), Ty::U(32), &env), 1 << 127);
    assert_eq!(binary(BinOp::Shr, 1 << 127, 127, Ty::I(128), Ty::U(32), &env), u128::MAX);
}
