//! Element types: names and sizes, and the conversion of numbers to elements and back.

use super::ArrayError;
use half::{bf16, f16};
use isa_spec::arith::decimal::Decimal;
use std::fmt;

/// An element type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "the names say what the types are")]
pub enum DType {
    U8,
    U16,
    U32,
    U64,
    I8,
    I16,
    I32,
    I64,
    F16,
    BF16,
    F32,
    F64,
}

/// A number in a source text or in an array. Integers are exact.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Num {
    /// An integer.
    Int(i128),
    /// An integer in hexadecimal or binary, which can also be the bit pattern of a signed type.
    Bits(u64),
    /// A float.
    Float(f64),
    /// A number in decimal that f64 does not hold exactly, where this could matter to rounding to a narrower
    /// type.
    Decimal(Decimal),
}

impl From<Decimal> for Num {
    fn from(number: Decimal) -> Num {
        if number.is_f64() { Num::Float(number.to_f64()) } else { Num::Decimal(number) }
    }
}

impl Num {
    /// The value as f64, rounded if necessary.
    pub fn as_f64(self) -> f64 {
        match self {
            Num::Int(v) => v as f64,
            Num::Bits(v) => v as f64,
            Num::Float(v) => v,
            Num::Decimal(v) => v.to_f64(),
        }
    }

    /// The value, for rounding it once.
    pub fn as_decimal(self) -> Decimal {
        match self {
            Num::Int(v) => v.into(),
            Num::Bits(v) => (v as i128).into(),
            Num::Float(v) => v.into(),
            Num::Decimal(v) => v,
        }
    }

    /// The value, if it is an integer.
    pub fn as_int(self) -> Option<i128> {
        match self {
            Num::Int(v) => Some(v),
            Num::Bits(v) => Some(v as i128),
            Num::Float(v) => (v.fract() == 0.0 && v.abs() < 1e30).then_some(v as i128),
            Num::Decimal(_) => None,
        }
    }
}

impl fmt::Display for Num {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Num::Int(v) => write!(f, "{v}"),
            Num::Bits(v) => write!(f, "0x{v:x}"),
            Num::Float(v) => write!(f, "{v:?}"),
            Num::Decimal(v) => write!(f, "{:?}", v.to_f64()),
        }
    }
}

impl DType {
    /// All types.
    pub const ALL: [DType; 12] = [
        DType::U8,
        DType::U16,
        DType::U32,
        DType::U64,
        DType::I8,
        DType::I16,
        DType::I32,
        DType::I64,
        DType::F16,
        DType::BF16,
        DType::F32,
        DType::F64,
    ];

    /// The name, such as `f32`.
    pub fn name(self) -> &'static str {
        match self {
            DType::U8 => "u8",
            DType::U16 => "u16",
            DType::U32 => "u32",
            DType::U64 => "u64",
            DType::I8 => "i8",
            DType::I16 => "i16",
            DType::I32 => "i32",
            DType::I64 => "i64",
            DType::F16 => "f16",
            DType::BF16 => "bf16",
            DType::F32 => "f32",
            DType::F64 => "f64",
        }
    }

    /// Looks up a type by name.
    pub fn from_name(name: &str) -> Option<DType> {
        DType::ALL.into_iter().find(|t| t.name() == name)
    }

    /// Looks up a type by its name in C, OpenCL C or HIP, such as `unsigned int`.
    pub fn of_c(name: &str) -> Option<DType> {
        Some(match name {
            "char" | "signed char" | "int8_t" => DType::I8,
            "uchar" | "unsigned char" | "bool" | "uint8_t" => DType::U8,
            "short" | "int16_t" => DType::I16,
            "ushort" | "unsigned short" | "uint16_t" => DType::U16,
            "int" | "int32_t" => DType::I32,
            "uint" | "unsigned int" | "unsigned" | "uint32_t" => DType::U32,
            "long" | "long long" | "int64_t" => DType::I64,
            "ulong" | "unsigned long" | "unsigned long long" | "uint64_t" | "size_t" => DType::U64,
            "half" | "_Float16" | "__half" => DType::F16,
            "__hip_bfloat16" | "__bf16" | "bfloat" => DType::BF16,
            "float" => DType::F32,
            "double" => DType::F64,
            _ => return None,
        })
    }

    /// Returns the type that somebody means who calls it as NumPy does (`float64`) or C (`double`).
    pub fn meant(name: &str) -> Option<DType> {
        let short = [("uint", "u"), ("int", "i"), ("bfloat", "bf"), ("float", "f")];
        let numpy = short.iter().find_map(|(long, short)| {
            DType::from_name(&format!("{short}{}", name.strip_prefix(long).filter(|bits| !bits.is_empty())?))
        });
        numpy.or_else(|| DType::of_c(name))
    }

    /// All names, for messages.
    pub fn names() -> String {
        DType::ALL.map(DType::name).join(", ")
    }

    /// The size in bytes.
    pub fn size(self) -> usize {
        match self {
            DType::U8 | DType::I8 => 1,
            DType::U16 | DType::I16 | DType::F16 | DType::BF16 => 2,
            DType::U32 | DType::I32 | DType::F32 => 4,
            DType::U64 | DType::I64 | DType::F64 => 8,
        }
    }

    /// Returns whether the type is a float.
    pub fn is_float(self) -> bool {
        matches!(self, DType::F16 | DType::BF16 | DType::F32 | DType::F64)
    }

    /// Returns whether the type is a signed integer.
    pub fn is_signed(self) -> bool {
        matches!(self, DType::I8 | DType::I16 | DType::I32 | DType::I64)
    }

    /// The smallest and the largest value of an integer type.
    fn range(self) -> (i128, i128) {
        let bits = self.size() as u32 * 8;
        if self.is_signed() { (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) } else { (0, (1 << bits) - 1) }
    }

    /// Appends the bytes of `n` in this type. Floats are rounded to nearest even; integers must fit.
    pub fn encode(self, n: Num, out: &mut Vec<u8>) -> Result<(), ArrayError> {
        match self {
            DType::F16 => out.extend(n.as_decimal().to_f16().to_le_bytes()),
            DType::BF16 => out.extend(n.as_decimal().to_bf16().to_le_bytes()),
            DType::F32 => out.extend(n.as_decimal().to_f32().to_le_bytes()),
            DType::F64 => out.extend(n.as_f64().to_le_bytes()),
            _ => {
                let (low, high) = self.range();
                let fits = |v: &i128| match n {
                    // A bit pattern only needs to fit the width.
                    Num::Bits(v) => (v as i128) < 1 << (self.size() * 8),
                    _ => (low..=high).contains(v),
                };
                let value = n.as_int().filter(fits).ok_or_else(|| ArrayError::Range {
                    value: n.to_string(),
                    dtype: self,
                    range: format!("{low} to {high}"),
                })?;
                out.extend(&value.to_le_bytes()[..self.size()]);
            }
        }
        Ok(())
    }

    /// Decodes the first [`DType::size`] bytes.
    pub fn decode(self, bytes: &[u8]) -> Num {
        let mut wide = [0; 8];
        let size = self.size().min(bytes.len());
        wide[..size].copy_from_slice(&bytes[..size]);
        let bits = u64::from_le_bytes(wide);
        match self {
            DType::F16 => Num::Float(f16::from_bits(bits as u16).to_f64()),
            DType::BF16 => Num::Float(bf16::from_bits(bits as u16).to_f64()),
            DType::F32 => Num::Float(f32::from_bits(bits as u32) as f64),
            DType::F64 => Num::Float(f64::from_bits(bits)),
            DType::I8 => Num::Int(bits as i8 as i128),
            DType::I16 => Num::Int(bits as i16 as i128),
            DType::I32 => Num::Int(bits as i32 as i128),
            DType::I64 => Num::Int(bits as i64 as i128),
            _ => Num::Int(bits as i128),
        }
    }

    /// The number of significand bits, including the hidden bit.
    pub fn precision(self) -> u32 {
        match self {
            DType::F16 => 11,
            DType::BF16 => 8,
            DType::F32 => 24,
            _ => 53,
        }
    }
}
