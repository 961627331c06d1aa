//! Encoding of numeric operands as inline constants or literals.
//!
//! The rules are those of LLVM's assembler. An integer is an inline constant if it is an inline integer or
//! the bit pattern of an inline float in the operand's type. A float is an inline constant if it equals one
//! after rounding to that type. Otherwise the number is a literal.

use super::form::Constant;
use super::operand::Value;
use half::{bf16, f16};
use isa_spec::arith::decimal::Decimal;

/// The encoding of a number.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Encoded {
    /// An inline integer.
    Integer(i32),
    /// Index into [`FLOATS`].
    Float(usize),
    /// The 32-bit literal after the instruction.
    Literal(u32),
}

/// Inline floats: name in the ISA description, and value.
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

/// Bit patterns of the inline floats as f64, f32, f16 and bf16. 1/(2π) is rounded differently in each format.
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

/// Returns whether the value fits `width` bits as a signed or an unsigned number.
fn fits(value: i64, width: u32) -> bool {
    width >= 64 || (-(1i64 << (width - 1))..1i64 << width).contains(&value)
}

/// Encodes a number; `force_literal` rules out inline constants. The error describes what the operand
/// accepts.
pub fn encode(value: &Value, constant: Constant, force_literal: bool) -> Result<Encoded, &'static str> {
    match value {
        Value::Int(value) => integer(*value, constant, force_literal),
        Value::Float(value) => float(*value, constant, force_literal),
        _ => Err("expected a number"),
    }
}

fn integer(value: i64, constant: Constant, force_literal: bool) -> Result<Encoded, &'static str> {
    let narrow = match constant {
        Constant::Int16 | Constant::F16 | Constant::F16OrBits | Constant::Bf16 => 16,
        Constant::Int64 | Constant::F64 => 64,
        _ => 32,
    };
    // Literals have at most 32 bits, regardless of the operand.
    let width = narrow.min(32);
    if !force_literal {
        let inline = match narrow {
            64 => inline_integer(value).or_else(|| inline_float(value as u64, constant)),
            _ if !fits(value, width) => None,
            // For these types 0xffff is a separate number, not another spelling of -1.
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

fn float(number: Decimal, constant: Constant, force_literal: bool) -> Result<Encoded, &'static str> {
    let value = number.to_f64();
    // Rounding 1/(2π) to bf16 gives a different value than the inline constant.
    let bfloat = matches!(constant, Constant::Bf16 | Constant::PackedBf16);
    if bfloat && !force_literal && value as f32 == FLOATS[8].1 as f32 {
        return Ok(Encoded::Float(8));
    }
    let pattern = match constant {
        Constant::F64 | Constant::Int64 => {
            let pattern = value.to_bits();

            if let Some(inline) = inline_float(pattern, constant).or_else(|| inline_integer(pattern as i64))
                && !force_literal
            {
                return Ok(inline);
            }
            if constant == Constant::Int64 {
                return Err("a 64-bit integer operand takes no float literal");
            }
            return Ok(Encoded::Literal((pattern >> 32) as u32));
        }
        Constant::F16 | Constant::F16OrBits | Constant::PackedF16 | Constant::Mixed => {
            let rounded = number.to_f16();
            if rounded.is_infinite() != value.is_infinite() || (rounded == f16::ZERO && value != 0.0) {
                return Err("this number does not fit 16 bits");
            }
            rounded.to_bits() as u64
        }
        Constant::Bf16 | Constant::PackedBf16 => {
            let rounded = number.to_bf16();
            if rounded.is_infinite() != value.is_infinite() {
                return Err("this number does not fit 16 bits");
            }
            rounded.to_bits() as u64
        }
        // LLVM limits the operand to the range of f16 regardless.
        Constant::Int16 if !f16_holds(number) => return Err("this number does not fit 16 bits"),
        // LLVM encodes a float for a 16-bit integer operand in 32 bits.
        Constant::Int16 | Constant::Int32 | Constant::F32 | Constant::PackedInt => {
            let rounded = number.to_f32();
            if rounded.is_infinite() != value.is_infinite() || (rounded == 0.0 && value != 0.0) {
                return Err("this number does not fit 32 bits");
            }
            rounded.to_bits() as u64
        }
    };
    if !force_literal {
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

/// Returns whether the number is representable as f16; precision may be lost only in normal numbers.
fn f16_holds(number: Decimal) -> bool {
    let (rounded, value) = (number.to_f16(), number.to_f64());
    let exact = rounded.to_f64() == value && number.is_f64();
    rounded.is_infinite() == value.is_infinite() && (rounded.is_normal() || exact)
}

/// Prints a literal as an operand of this type.
pub fn literal_text(literal: u32, constant: Constant) -> String {
    let value = match constant {
        Constant::Int16 | Constant::F16 | Constant::F16OrBits => literal & 0xffff,
        _ => literal,
    };
    // LLVM prints a literal that equals an inline constant as that constant.
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

/// Prints an inline float. For f64, the constant 1/(2π) has more digits.
pub fn inline_text(name: &str, constant: Constant) -> String {
    match (name, constant) {
        ("0.15915494", Constant::F64 | Constant::Int64) => "0.15915494309189532".to_string(),
        // For a 16-bit integer operand a float is printed as its bits.
        (_, Constant::Int16) => match FLOATS.iter().position(|f| f.0 == name) {
            Some(at) => format!("0x{:x}", bits(constant)[at]),
            None => name.to_string(),
        },
        _ => name.to_string(),
    }
}
