//! Encoding of numeric operands as inline constants or literals.

use wavesim_asm::constant::{Encoded, encode, inline_text, literal_text};
use wavesim_asm::form::Constant;
use wavesim_asm::operand::Value;

fn encoded(value: i64, constant: Constant) -> Encoded {
    encode(&Value::Int(value), constant, false).expect("fits")
}

// Matches LLVM for `v_max_u16 v0, N, v1` and `v_add_f16 v0, N, v1`.
#[test]
fn i16_integers_are_numbers() {
    assert_eq!(encoded(-1, Constant::Int16), Encoded::Integer(-1));
    assert_eq!(encoded(0xffff, Constant::Int16), Encoded::Literal(0xffff));
    assert_eq!(encoded(0xfffe, Constant::Int16), Encoded::Literal(0xfffe));
    assert_eq!(literal_text(0xffff, Constant::Int16), "0xffff");
}

#[test]
fn f16_integers_are_bit_patterns() {
    assert_eq!(encoded(0xffff, Constant::F16), Encoded::Integer(-1));
    assert_eq!(encoded(0x3c01, Constant::F16), Encoded::Literal(0x3c01));
    assert_eq!(literal_text(0x3c01, Constant::F16), "0x3c01");
    assert_eq!(literal_text(0x1_0005, Constant::F16), "5");
}

// Matches LLVM for `s_cmp_lt_f16 N, s1`.
#[test]
fn float_bits_of_scalar_compares_are_literals() {
    let half = Constant::F16OrBits;
    assert_eq!(encoded(0x3800, half), Encoded::Literal(0x3800));
    assert_eq!(encoded(0xffff, half), Encoded::Literal(0xffff));
    assert_eq!(encoded(-1, half), Encoded::Integer(-1));
    assert_eq!(encode(&Value::Float(0.5.into()), half, false), Ok(Encoded::Float(0)));
    assert_eq!(literal_text(0x3800, half), "0x3800");
    assert_eq!(literal_text(0xffff, half), "0xffff");
    assert_eq!(literal_text(5, half), "5");
    assert_eq!(inline_text("0.5", half), "0.5");
}
