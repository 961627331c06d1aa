//! The formats in which values are shown.

use super::expr::{Value, read_as};
use wavesim_array::{DType, show};

/// A format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// In hexadecimal.
    Hex,
    /// In binary.
    Binary,
    /// As a number of a type.
    Type(DType),
    /// As two numbers of a 16-bit type, the lower one first.
    Pair(DType),
}

impl Format {
    /// Parses a name: `f32`, `f16x2`, `hex`, `bin`.
    ///
    /// # Errors
    /// There is no such format.
    pub fn parse(name: &str) -> Result<Format, String> {
        let found = match name {
            "hex" => Some(Format::Hex),
            "bin" => Some(Format::Binary),
            "f16x2" => Some(Format::Pair(DType::F16)),
            "bf16x2" => Some(Format::Pair(DType::BF16)),
            name => DType::from_name(name).map(Format::Type),
        };
        found.ok_or_else(|| {
            format!("`{name}` is not a type; types are {}, f16x2, bf16x2, hex, bin", DType::names())
        })
    }

    /// Returns the format of a letter after `/`, as in gdb.
    ///
    /// # Errors
    /// There is no such format.
    pub fn of_letter(letter: &str) -> Result<Format, String> {
        Ok(match letter {
            "x" => Format::Hex,
            "t" => Format::Binary,
            "d" => Format::Type(DType::I32),
            "u" => Format::Type(DType::U32),
            "f" => Format::Type(DType::F32),
            _ => return Err(format!("`/{letter}` is not a format; there are /x, /t, /d, /u and /f")),
        })
    }

    /// Returns the number of registers that a value takes.
    pub fn registers(self) -> u16 {
        match self {
            Format::Type(dtype) if dtype.size() == 8 => 2,
            _ => 1,
        }
    }

    /// Formats the bits of `dwords` registers.
    pub fn bits(format: Option<Format>, bits: u64, dwords: u16) -> String {
        match format {
            None | Some(Format::Hex) => show::bits(bits, None, dwords),
            Some(Format::Binary) => format!("0b{bits:0width$b}", width = 32 * dwords as usize),
            Some(Format::Type(dtype)) => show::bits(bits, Some(dtype), dwords),
            Some(Format::Pair(dtype)) => {
                format!("({}, {})", read_as(bits & 0xffff, dtype), read_as(bits >> 16 & 0xffff, dtype))
            }
        }
    }

    /// Formats the value of an expression.
    pub fn value(format: Option<Format>, value: Value) -> String {
        match (format, value) {
            (Some(Format::Hex), value) => format!("0x{:x}", value.bits()),
            (Some(Format::Binary), value) => format!("0b{:b}", value.bits()),
            (Some(Format::Pair(_)), value) => Format::bits(format, value.bits(), 1),
            (Some(Format::Type(dtype)), Value::Int(bits)) => read_as(bits as u64, dtype).to_string(),
            (_, value) => value.to_string(),
        }
    }
}
