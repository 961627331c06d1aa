//! Typed buffer formats: components between memory and registers (RDNA manuals, *Buffer Image Format* table, the FORMAT field).

use super::env::{FloatEnv, Round};
use super::float::{self, as_f64, constant, convert_float};
use super::int::{mask, sign_extend};
use crate::pcode::ir::Ty;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Number {
    Unorm,
    Snorm,
    Uscaled,
    Sscaled,
    Uint,
    Sint,
    Float,
}

use Number::*;

/// Component widths (first component first) and number kinds, in the order of the unified format numbers from 1.
const LAYOUTS: &[(&[u32], &[Number])] = &[
    (&[8], &[Unorm, Snorm, Uscaled, Sscaled, Uint, Sint]),
    (&[16], &[Unorm, Snorm, Uscaled, Sscaled, Uint, Sint, Float]),
    (&[8, 8], &[Unorm, Snorm, Uscaled, Sscaled, Uint, Sint]),
    (&[32], &[Uint, Sint, Float]),
    (&[16, 16], &[Unorm, Snorm, Uscaled, Sscaled, Uint, Sint, Float]),
    (&[11, 11, 10], &[Float]),
    (&[10, 11, 11], &[Float]),
    (&[2, 10, 10, 10], &[Unorm, Snorm, Uint, Sint]),
    (&[10, 10, 10, 2], &[Unorm, Snorm, Uscaled, Sscaled, Uint, Sint]),
    (&[8, 8, 8, 8], &[Unorm, Snorm, Uscaled, Sscaled, Uint, Sint]),
    (&[32, 32], &[Uint, Sint, Float]),
    (&[16, 16, 16, 16], &[Unorm, Snorm, Uscaled, Sscaled, Uint, Sint, Float]),
    (&[32, 32, 32], &[Uint, Sint, Float]),
    (&[32, 32, 32, 32], &[Uint, Sint, Float]),
];

fn find(format: u32) -> Option<(&'static [u32], Number)> {
    let mut left = format.checked_sub(1)? as usize;
    for (widths, kinds) in LAYOUTS {
        if left < kinds.len() {
            return Some((widths, kinds[left]));
        }
        left -= kinds.len();
    }
    None
}

/// Bytes of an element; 0 for an invalid format.
pub fn format_bytes(format: u32) -> u32 {
    find(format).map_or(0, |(widths, _)| widths.iter().sum::<u32>() / 8)
}

/// Small unsigned floats of packed formats: 5 exponent bits, no sign.
fn small_float(bits: u128, width: u32) -> f64 {
    let f = width - 5;
    let (exp, frac) = ((bits >> f) as i32, (bits & mask(f)) as f64);
    let scale = (1u64 << f) as f64;
    match exp {
        31 if frac == 0.0 => f64::INFINITY,
        31 => f64::NAN,
        0 => frac / scale * 2f64.powi(-14),
        _ => (1.0 + frac / scale) * 2f64.powi(exp - 15),
    }
}

fn to_small_float(value: f64, width: u32) -> u128 {
    let f = width - 5;
    if value.is_nan() {
        return 31 << f | 1;
    }
    if value <= 0.0 {
        return 0;
    }
    let half = constant(value, Ty::F16);
    // Toward zero, keeping the exponent field.
    (half & 0x7fff) >> (10 - f)
}

fn component(format: u32, raw: u128, index: u32) -> Option<(u128, u32, Number)> {
    let (widths, kind) = find(format)?;
    let lo: u32 = widths.iter().take(index as usize).sum();
    let width = *widths.get(index as usize)?;
    Some((raw >> lo & mask(width), width, kind))
}

/// Component `index` as a number (`Ok`) or as raw integer bits (`Err`).
fn value(format: u32, raw: u128, index: u32) -> Result<f64, u32> {
    let Some((bits, width, kind)) = component(format, raw, index) else {
        // Missing components read as 0, the fourth as 1.
        let integer = matches!(find(format), Some((_, Uint | Sint)));
        let one = index == 3;
        return if integer { Err(one as u32) } else { Ok(one as u32 as f64) };
    };
    let signed = sign_extend(bits, width) as i128 as f64;
    match kind {
        Unorm => Ok(bits as f64 / mask(width) as f64),
        Snorm => Ok((signed / mask(width - 1) as f64).max(-1.0)),
        Uscaled => Ok(bits as f64),
        Sscaled => Ok(signed),
        Uint => Err(bits as u32),
        Sint => Err(sign_extend(bits, width) as u32),
        Float if width == 32 => Err(bits as u32),
        Float if width == 16 => Ok(as_f64(bits, Ty::F16)),
        Float => Ok(small_float(bits, width)),
    }
}

/// Component `index` of the element `raw`, converted to 32 bits.
pub fn from_format(format: u32, raw: u128, index: u32) -> u32 {
    match value(format, raw, index) {
        Ok(v) => (v as f32).to_bits(),
        Err(bits) => bits,
    }
}

/// The same for 16-bit results: f16, or the low half of an integer.
pub fn from_format16(format: u32, raw: u128, index: u32) -> u16 {
    let float = matches!(find(format), Some((_, Float)));
    match value(format, raw, index) {
        Ok(v) => constant(v, Ty::F16) as u16,
        Err(bits) if float => convert_float(bits as u128, Ty::F32, Ty::F16, Round::NearestEven) as u16,
        Err(bits) => bits as u16,
    }
}

fn encode(width: u32, kind: Number, number: f64, bits: u32) -> u128 {
    let norm = |signed| {
        let v = (number as f32).to_bits() as u128;
        float::to_norm(v, Ty::F32, signed, width, &FloatEnv::KEEP)
    };
    match kind {
        Unorm => norm(false),
        Snorm => norm(true),
        Uscaled => (number.clamp(0.0, mask(width) as f64) as u128) & mask(width),
        Sscaled => {
            let limit = mask(width - 1) as f64;
            (number.clamp(-limit - 1.0, limit) as i128 as u128) & mask(width)
        }
        // Integers saturate.
        Uint => (bits as u128).min(mask(width)),
        Sint => {
            let limit = mask(width - 1) as i128;
            (bits as i32 as i128).clamp(-limit - 1, limit) as u128 & mask(width)
        }
        Float if width == 32 => bits as u128,
        Float if width == 16 => constant(number, Ty::F16),
        Float => to_small_float(number, width),
    }
}

/// An element from four 32-bit components (packed, first lowest).
pub fn to_format(format: u32, components: u128) -> u128 {
    let Some((widths, kind)) = find(format) else { return 0 };
    let (mut out, mut lo) = (0, 0);
    for (at, &width) in widths.iter().enumerate() {
        let bits = (components >> (32 * at)) as u32;
        out |= encode(width, kind, f32::from_bits(bits) as f64, bits) << lo;
        lo += width;
    }
    out
}

/// An element from four 16-bit components.
pub fn to_format16(format: u32, components: u64) -> u128 {
    let Some((widths, kind)) = find(format) else { return 0 };
    let (mut out, mut lo) = (0, 0);
    for (at, &width) in widths.iter().enumerate() {
        let half = (components >> (16 * at)) as u16;
        let number = as_f64(half as u128, Ty::F16);
        let bits = match kind {
            Sint => half as i16 as i32 as u32,
            Float => (number as f32).to_bits(),
            _ => half as u32,
        };
        out |= encode(width, kind, number, bits) << lo;
        lo += width;
    }
    out
}
