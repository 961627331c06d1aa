//! Numbers as operands: which are inline constants, and what a literal's 32 bits are.
//!
//! What LLVM's assembler accepts: an integer that is an inline integer or the bits of an inline float in the
//! operand's type; a float that is one once rounded to that type; else a literal.

use super::form::Constant;
use super::operand::Value;
use half::{bf16, f16};

/// How a number is encoded.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Encoded {
    /// An inline integer.
    Integer(i32),
    /// Index in [`FLOATS`].
    Float(usize),
    /// The 32 bits after the instruction.
    Literal(u32),
}

/// Inline floats by the names that the ISA description gives them, with their value.
pub const FLOATS: [(&str, f64); 9] = [
    ("0.5", 0.5),
    ("-0.5", -0.5),
    ("1.0", 1.0),
    ("-1.0", -1.0),
    ("2.0", 2.0),
    ("-2.0", -2.0),
    ("4.0", 4.0),
    ("-4.0", -4.0),
    ("0.15915494", std::f64::consts::FRAC_1_PI / 2.0),
];

/// Bits of the inline floats in 64, 32 and 16 bits, and as bfloat16. 1/(2π) is rounded differently in each.
static BITS: [[u64; FLOATS.len()]; 4] = {
    let mut bits = [[0; FLOATS.len()]; 4];
    let mut at = 0;
    while at < FLOATS.len() {
        let value = FLOATS[at].1;
        bits[0][at] = value.to_bits();
        bits[1][at] = (value as f32).to_bits() as u64;
        bits[2][at] = f16::from_f64_const(value).to_bits() as u64;
        bits[3][at] = bf16::from_f64_const(value).to_bits() as u64;
        at += 1;
    }
    bits[0][8] = 0x3fc4_5f30_6dc9_c882;
    bits[3][8] = 0x3e22;
    bits
};

fn bits(constant: Constant) -> &'static [u64; FLOATS.len()] {
    match constant {
        Constant::F64 | Constant::Int64 => &BITS[0],
        Constant::Int32 | Constant::F32 | Constant::PackedInt => &BITS[1],
        Constant::F16 | Constant::F16OrBits | Constant::PackedF16 | Constant::Int16 | Constant::Mixed => {
            &BITS[2]
        }
        Constant::Bf16 | Constant::PackedBf16 => &BITS[3],
    }
}

fn inline_float(pattern: u64, constant: Constant) -> Option<Encoded> {
    bits(constant).iter().position(|bits| *bits == pattern).map(Encoded::Float)
}

fn inline_integer(value: i64) -> Option<Encoded> {
    (-16..=64).contains(&value).then_some(Encoded::Integer(value as i32))
}

/// The value fits `width` bits as a signed or an unsigned number.
fn fits(value: i64, width: u32) -> bool {
    width >= 64 || (-(1i64 << (width - 1))..1i64 << width).contains(&value)
}

/// Encodes a number; the error names what the operand takes.
pub fn encode(value: &Value, constant: Constant, forced: bool) -> Result<Encoded, &'static str> {
    match value {
        Value::Int(value) => integer(*value, constant, forced),
        Value::Float(value) => float(*value, constant, forced),
        _ => Err("expected a number"),
    }
}

fn integer(value: i64, constant: Constant, forced: bool) -> Result<Encoded, &'static str> {
    let narrow = match constant {
        Constant::Int16 | Constant::F16 | Constant::F16OrBits | Constant::Bf16 => 16,
        Constant::Int64 | Constant::F64 => 64,
        _ => 32,
    };
    // Literals have 32 bits at most, whatever the operand.
    let width = narrow.min(32);
    if !forced {
        let inline = match narrow {
            64 => inline_integer(value).or_else(|| inline_float(value as u64, constant)),
            _ if !fits(value, width) => None,
            // To these 0xffff is a number of its own, not another spelling of -1.
            16 if matches!(constant, Constant::Int16 | Constant::F16OrBits) => inline_integer(value),
            16 => {
                inline_integer(value as i16 as i64).or_else(|| inline_float(value as u64 & 0xffff, constant))
            }
            _ => inline_integer(value as i32 as i64)
                .or_else(|| inline_float(value as u64 & 0xffff_ffff, constant)),
        };
        if let Some(inline) = inline {
            return Ok(inline);
        }
    }
    if !fits(value, width) {
        return Err(if width == 16 {
            "this number does not fit 16 bits"
        } else {
            "this number does not fit 32 bits"
        });
    }
    Ok(Encoded::Literal(if width == 16 { value as u32 & 0xffff } else { value as u32 }))
}

fn float(value: f64, constant: Constant, forced: bool) -> Result<Encoded, &'static str> {
    // Rounded to a bfloat16 it is another number than the inline constant.
    let brief = matches!(constant, Constant::Bf16 | Constant::PackedBf16);
    if brief && !forced && value as f32 == FLOATS[8].1 as f32 {
        return Ok(Encoded::Float(8));
    }
    let pattern = match constant {
        Constant::F64 | Constant::Int64 => {
            let pattern = value.to_bits();

            if let Some(inline) = inline_float(pattern, constant).or_else(|| inline_integer(pattern as i64))
                && !forced
            {
                return Ok(inline);
            }
            if constant == Constant::Int64 {
                return Err("a 64-bit integer operand takes no float literal");
            }
            return Ok(Encoded::Literal((pattern >> 32) as u32));
        }
        Constant::F16 | Constant::F16OrBits | Constant::PackedF16 | Constant::Mixed => {
            let rounded = f16::from_f64(value);
            if rounded.is_infinite() != value.is_infinite() || (rounded == f16::ZERO && value != 0.0) {
                return Err("this number does not fit 16 bits");
            }
            rounded.to_bits() as u64
        }
        Constant::Bf16 | Constant::PackedBf16 => {
            let rounded = bf16::from_f64(value);
            if rounded.is_infinite() != value.is_infinite() {
                return Err("this number does not fit 16 bits");
            }
            rounded.to_bits() as u64
        }
        // To LLVM it has the range of a 16-bit float all the same.
        Constant::Int16 if !f16_holds(value) => return Err("this number does not fit 16 bits"),
        // A float for 16-bit integers is 32 bits wide to LLVM.
        Constant::Int16 | Constant::Int32 | Constant::F32 | Constant::PackedInt => {
            let rounded = value as f32;
            if rounded.is_infinite() != value.is_infinite() || (rounded == 0.0 && value != 0.0) {
                return Err("this number does not fit 32 bits");
            }
            rounded.to_bits() as u64
        }
    };
    if !forced {
        let signed = match constant {
            Constant::F16 | Constant::F16OrBits | Constant::PackedF16 | Constant::Bf16 | Constant::Mixed => {
                pattern as i16 as i64
            }
            _ => pattern as u32 as i32 as i64,
        };
        let float = inline_float(pattern, if constant == Constant::Int16 { Constant::F32 } else { constant });
        if let Some(inline) = inline_integer(signed).or(float) {
            return Ok(inline);
        }
    }
    Ok(Encoded::Literal(pattern as u32))
}

/// Whether the number is a 16-bit float but for its last bits, which denormals do not have.
fn f16_holds(value: f64) -> bool {
    let rounded = f16::from_f64(value);
    let exact = rounded.to_f64() == value;
    rounded.is_infinite() == value.is_infinite() && (rounded.is_normal() || exact)
}

/// The literal's 32 bits as an operand of this type shows them.
pub fn literal_text(literal: u32, constant: Constant) -> String {
    let value = match constant {
        Constant::Int16 | Constant::F16 | Constant::F16OrBits => literal & 0xffff,
        _ => literal,
    };
    // LLVM writes a literal that an inline constant could hold as that constant.
    let number = match constant {
        Constant::F16 => value as u16 as i16 as i64,
        Constant::F16OrBits => value as i64,
        _ => literal as i32 as i64,
    };
    match encode(&Value::Int(number), constant, false) {
        Ok(Encoded::Integer(value)) => value.to_string(),
        Ok(Encoded::Float(at)) => inline_text(FLOATS[at].0, constant),
        Ok(Encoded::Literal(_)) | Err(_) => format!("0x{value:x}"),
    }
}

/// An inline float as text: in f64 the constant 1/(2π) has more digits.
pub fn inline_text(name: &str, constant: Constant) -> String {
    match (name, constant) {
        ("0.15915494", Constant::F64 | Constant::Int64) => "0.15915494309189532".to_string(),
        // To a 16-bit integer a float is its bits.
        (_, Constant::Int16) => match FLOATS.iter().position(|f| f.0 == name) {
            Some(at) => format!("0x{:x}", bits(constant)[at]),
            None => name.to_string(),
        },
        _ => name.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encoded(value: i64, constant: Constant) -> Encoded {
        encode(&Value::Int(value), constant, false).expect("fits")
    }

    // What LLVM does with `v_max_u16 v0, N, v1` and `v_add_f16 v0, N, v1`.
    #[test]
    fn sixteen_bits_of_an_integer_are_a_number() {
        assert_eq!(encoded(-1, Constant::Int16), Encoded::Integer(-1));
        assert_eq!(encoded(0xffff, Constant::Int16), Encoded::Literal(0xffff));
        assert_eq!(encoded(0xfffe, Constant::Int16), Encoded::Literal(0xfffe));
        assert_eq!(literal_text(0xffff, Constant::Int16), "0xffff");
    }

    #[test]
    fn sixteen_bits_of_a_float_are_a_pattern() {
        assert_eq!(encoded(0xffff, Constant::F16), Encoded::Integer(-1));
        assert_eq!(encoded(0x3c01, Constant::F16), Encoded::Literal(0x3c01));
        assert_eq!(literal_text(0x3c01, Constant::F16), "0x3c01");
        assert_eq!(literal_text(0x1_0005, Constant::F16), "5");
    }

    // What LLVM does with `s_cmp_lt_f16 N, s1`.
    #[test]
    fn bits_of_a_compared_float_are_a_literal() {
        let half = Constant::F16OrBits;
        assert_eq!(encoded(0x3800, half), Encoded::Literal(0x3800));
        assert_eq!(encoded(0xffff, half), Encoded::Literal(0xffff));
        assert_eq!(encoded(-1, half), Encoded::Integer(-1));
        assert_eq!(encode(&Value::Float(0.5), half, false), Ok(Encoded::Float(0)));
        assert_eq!(literal_text(0x3800, half), "0x3800");
        assert_eq!(literal_text(0xffff, half), "0xffff");
        assert_eq!(literal_text(5, half), "5");
        assert_eq!(inline_text("0.5", half), "0.5");
    }
}
