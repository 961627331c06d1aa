//! Encoding of numeric operands as inline constants or literals.
//!
//! The rules are those of LLVM's assembler. An integer is an inline constant if it is an inline integer or
//! the bit pattern of an inline float in the operand's type. A float is an inline constant if it equals one
//! after rounding to that type. Otherwise the number is a literal.

use super::form::{Constant, Literals};
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
    /// The 64-bit literal after the instruction.
    Literal64(u64),
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

/// As [`encode`], for a form with these literals. A 64-bit operand of an instruction with 64-bit literals takes
/// a 32-bit one only if it represents the value in every reading: a small positive integer, or the upper half
/// of an f64 whose lower half is zero.
pub fn encode_in(
    value: &Value,
    constant: Constant,
    force_literal: bool,
    literals: Literals,
) -> Result<Encoded, &'static str> {
    const WIDE: &str = "this number needs a 64-bit literal";
    if literals == Literals::Narrow || !matches!(constant, Constant::Int64 | Constant::F64) {
        return encode(value, constant, force_literal);
    }
    if !force_literal
        && let Ok(inline @ (Encoded::Integer(_) | Encoded::Float(_))) = encode(value, constant, false)
    {
        return Ok(inline);
    }
    let (pattern, represented) = match value {
        Value::Int(value) if constant == Constant::Int64 => {
            (*value as u64, i32::try_from(*value).is_ok_and(|v| v >= 0))
        }
        // The lower half of a double's 32-bit literal is zero.
        Value::Int(value)
            if *value as u32 == 0 && literals == Literals::NarrowBesideWide && !force_literal =>
        {
            return Ok(Encoded::Literal((*value as u64 >> 32) as u32));
        }
        Value::Int(value) => (*value as u64, fits(*value, 32)),
        Value::Float(_) if constant == Constant::Int64 => {
            return Err("a 64-bit integer operand takes no float literal");
        }
        Value::Float(value) => (value.to_f64().to_bits(), value.to_f64().to_bits() as u32 == 0),
        _ => return Err("expected a number"),
    };
    match literals {
        Literals::Wide => Ok(Encoded::Literal64(pattern)),
        _ if represented && !force_literal => match value {
            Value::Float(_) => Ok(Encoded::Literal((pattern >> 32) as u32)),
            _ => Ok(Encoded::Literal(pattern as u32)),
        },
        _ => Err(WIDE),
    }
}

/// The literal of 64 bits that is an operand of its own: a number of 32 bits is the upper half of a double.
pub fn wide_literal(value: &Value, force: bool) -> Result<u64, &'static str> {
    match value {
        Value::Int(value) if !force && fits(*value, 32) => Ok((*value as u64) << 32),
        Value::Int(value) => Ok(*value as u64),
        Value::Float(value) => Ok(value.to_f64().to_bits()),
        _ => Err("expected a number"),
    }
}

/// Prints a literal of 64 bits as an operand of this type: as `lit64(…)`, unless the number alone assembles to
/// such a literal.
pub fn wide_literal_text(literal: u64, constant: Constant) -> String {
    let value = Value::Int(literal as i64);
    let is_wide = literal >> 32 != 0
        && matches!(constant, Constant::Int64 | Constant::F64)
        && encode_in(&value, constant, false, Literals::NarrowBesideWide).is_err()
        && !(constant == Constant::F64 && literal as u32 == 0);
    if is_wide { format!("0x{literal:x}") } else { format!("lit64(0x{literal:x})") }
}

/// Prints the literal of 64 bits of an operand of its own, the inverse of [`wide_literal`].
pub fn wide_operand_text(literal: u64) -> String {
    match literal {
        _ if literal as u32 == 0 => format!("0x{:x}", literal >> 32),
        _ if literal >> 32 == 0 => format!("lit64(0x{literal:x})"),
        _ => format!("0x{literal:x}"),
    }
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

/// The bits of a literal that an operand of this type reads, and that are printed.
pub fn literal_bits(literal: u32, constant: Constant) -> u32 {
    match constant {
        Constant::Int16 | Constant::F16 | Constant::F16OrBits => literal & 0xffff,
        _ => literal,
    }
}

/// Prints a literal as an operand of this type.
pub fn literal_text(literal: u32, constant: Constant) -> String {
    let value = literal_bits(literal, constant);
    // LLVM prints a literal that equals an inline constant as that constant.
    let number = match constant {
        Constant::F16 => value as u16 as i16 as i64,
        Constant::F16OrBits => value as i64,
        _ => literal as i32 as i64,
    };
    match encode(&Value::Int(number), constant, false) {
        Ok(Encoded::Integer(value)) => value.to_string(),
        Ok(Encoded::Float(at)) => inline_text(FLOATS[at].0, constant),
        Ok(Encoded::Literal(_) | Encoded::Literal64(_)) | Err(_) => format!("0x{value:x}"),
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
