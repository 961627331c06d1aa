//! Formats of typed buffers and images: the `FORMAT` field of MTBUF and of descriptors, and the conversion
//! between memory components and register components (*Data Formats* in the RDNA3 and RDNA4 ISA manuals).
//!
//! Buffers have the formats 1 to 63. Images have sRGB, small and shared exponents, too, and compressed blocks
//! ([`super::block_format`]). Formats of video (GB_GR, BG_RG, YCBCR), of single bits and 6E4 are not supported.

use super::block_format;
use super::env::{FloatEnv, Round};
use super::format::{Format, ModeClass, Value, pack, unpack};
use super::integral;

/// The interpretation of a component's bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Number {
    /// Unsigned integer scaled to 0..=1.
    Unorm,
    /// Signed integer scaled to -1..=1.
    Snorm,
    /// Unsigned integer converted to a float.
    Uscaled,
    /// Signed integer converted to a float.
    Sscaled,
    /// Unsigned integer, zero-extended.
    Uint,
    /// Signed integer, sign-extended.
    Sint,
    /// Binary float of the component's width.
    Float,
    /// [`Number::Unorm`], with the sRGB curve in the first three components.
    Srgb,
    /// Three unsigned mantissas with the exponent in the highest bits.
    SharedExponent,
    /// A float of 32 bits, then unsigned integers.
    DepthStencil,
}

/// A format of an element.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BufferFormat {
    /// Name as in the manual: `10_10_10_2_UNORM`. Names list the component in the high bits first.
    pub name: &'static str,
    /// Component widths in bits, X (the low bits) first.
    pub widths: &'static [u8],
    /// The interpretation of every component.
    pub number: Number,
}

/// Returns the size in bytes of an element of format `number`, or of a compressed block; 0 for an invalid format.
pub fn format_bytes(number: u32) -> u32 {
    match PLACES.get(number as usize) {
        Some(places) if places.bytes != 0 => places.bytes as u32,
        _ => block_format::bytes(number),
    }
}

/// Where components are, for what runs for every texel.
#[derive(Clone, Copy)]
struct Places {
    /// Bytes of an element; 0 without such a format.
    bytes: u8,
    /// The offset and width of each component; a width of 0 without the component.
    parts: [(u8, u8); 4],
    /// The components are quotients with the largest unsigned number, of at most 24 bits.
    unorm: bool,
}

/// By the number of the format.
static PLACES: [Places; FORMATS.len() + 1] = places();

const fn places() -> [Places; FORMATS.len() + 1] {
    let mut all = [Places { bytes: 0, parts: [(0, 0); 4], unorm: false }; FORMATS.len() + 1];
    let mut number = 1;
    while number < all.len() {
        let format = &FORMATS[number - 1];
        let (mut part, mut offset, mut narrow) = (0, 0, true);
        while part < format.widths.len() {
            let width = format.widths[part];
            all[number].parts[part] = (offset, width);
            narrow = narrow && width <= 24;
            offset += width;
            part += 1;
        }
        all[number].bytes = offset / 8;
        all[number].unorm = narrow && matches!(format.number, Number::Unorm);
        number += 1;
    }
    all
}

/// How [`from_format`] reads a component, for code that reads the same one of many elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Component {
    /// The quotient of `width` bits, at most 24, from bit `offset` on, and the largest such number, as f32.
    Unorm { offset: u32, width: u32 },
    /// `width` bits from bit `offset` on.
    Bits { offset: u32, width: u32 },
    /// Not in the element: always this.
    Missing(u32),
    /// In another way.
    Other,
}

/// Returns how [`from_format`] reads a component. Components that are [`Component::Unorm`] and [`Component::Bits`] are
/// within 32 bits that begin at a multiple of 32.
pub fn component(number: u32, index: u32) -> Component {
    let Some(format) = by_number(number) else { return Component::Missing(0) };
    let Some(&width) = format.widths.get(index as usize) else {
        return Component::Missing(from_format(number, 0, index));
    };
    let (offset, width) = (format.offset(index), width as u32);
    let is_bits = match format.number {
        Number::Uint => true,
        Number::Float | Number::DepthStencil => width == 32 || format.number == Number::DepthStencil,
        _ => false,
    };
    match format.number {
        _ if offset % 32 + width > 32 => Component::Other,
        Number::Unorm if width <= 24 => Component::Unorm { offset, width },
        _ if is_bits => Component::Bits { offset, width },
        _ => Component::Other,
    }
}

/// Converts component `index` (0 = X) of an element to 32 bits: an integer for integer formats, otherwise an
/// f32. A missing Y or Z is 0, a missing W is one, and so is component 4. Invalid formats read 0.
pub fn from_format(number: u32, element: u128, index: u32) -> u32 {
    // The most common case, in a few instructions.
    if let Some(Places { parts, unorm: true, .. }) = PLACES.get(number as usize)
        && let Some((offset, width @ 1..)) = parts.get(index as usize)
    {
        let most = mask(*width);
        return (((element >> offset) as u32 & most) as f32 / most as f32).to_bits();
    }
    by_number(number).map_or(0, |f| f.read(element, index, Format::F32))
}

/// Like [`from_format`], for D16 forms: the low half of an integer, otherwise an f16. A 32-bit float is
/// truncated, every other format is rounded to nearest even (RDNA3 ISA manual, *D16 Instructions*).
pub fn from_format16(number: u32, element: u128, index: u32) -> u16 {
    by_number(number).map_or(0, |f| f.read(element, index, Format::F16) as u16)
}

/// Encodes an element from four 32-bit components, X lowest.
pub fn to_format(number: u32, components: u128) -> u128 {
    let Some(format) = by_number(number) else { return 0 };
    format.write(|index| format.encode((components >> (32 * index)) as u32, Format::F32, index))
}

/// Encodes an element from four 16-bit components, X lowest: integers (extended by the format's sign) or f16.
pub fn to_format16(number: u32, components: u64) -> u128 {
    let Some(format) = by_number(number) else { return 0 };
    format.write(|index| {
        let half = (components >> (16 * index)) as u16;
        let value = if format.number == Number::Sint { half as i16 as u32 } else { half as u32 };
        format.encode(value, Format::F16, index)
    })
}

impl BufferFormat {
    /// Returns the size of an element in bytes.
    pub fn size_bytes(&self) -> u32 {
        self.widths.iter().map(|&w| w as u32).sum::<u32>() / 8
    }

    /// Returns the number of components.
    pub fn components(&self) -> usize {
        if self.number == Number::SharedExponent { 3 } else { self.widths.len() }
    }

    /// Converts a component to its register form: floats to the format `register`; integers stay integers.
    fn read(&self, element: u128, index: u32, register: Format) -> u32 {
        let present =
            self.widths.get(index as usize).filter(|_| self.number != Number::SharedExponent || index < 3);
        let Some(&width) = present else {
            return match (index, self.number) {
                (3 | 4, Number::Uint | Number::Sint) => 1,
                (3 | 4, _) => register.one() as u32,
                _ => 0,
            };
        };
        let bits = (element >> self.offset(index)) as u32 & mask(width);
        let signed = sign_extend(bits, width);
        let env = &FloatEnv::KEEP;
        match self.number {
            Number::Uint => bits,
            Number::Sint => signed as u32,
            Number::Uscaled => integral::from_int(register, bits as i128, env) as u32,
            Number::Sscaled => integral::from_int(register, signed as i128, env) as u32,
            // Quotients of integers that f32 holds are rounded once, as from_norm does.
            Number::Unorm if width <= 24 && register == Format::F32 => {
                (bits as f32 / mask(width) as f32).to_bits()
            }
            Number::Snorm if width <= 24 && register == Format::F32 => {
                let most = mask(width - 1) as i32;
                (signed.max(-most) as f32 / most as f32).to_bits()
            }
            Number::Unorm => integral::from_norm(register, bits as i64, mask(width) as i64) as u32,
            Number::Snorm => integral::from_norm(register, signed as i64, mask(width - 1) as i64) as u32,
            Number::Srgb if index < 3 => from_f32(register, from_srgb(bits as u8)),
            Number::Srgb => integral::from_norm(register, bits as i64, mask(width) as i64) as u32,
            Number::SharedExponent => {
                let exponent = (element >> 27) as i32 & 31;
                from_f32(register, bits as f32 * f32::powi(2.0, exponent - SHARED_BIAS - 9))
            }
            Number::DepthStencil if index > 0 => bits,
            Number::DepthStencil | Number::Float => {
                let from = float_format(width);
                let env = if width == 32 { &env.with_round(Round::Zero) } else { env };
                // A load of the register's format copies the bits.
                if from == register { bits } else { convert(from, register, bits, env) }
            }
        }
    }

    /// Packs the components that `component` returns.
    fn write(&self, component: impl Fn(u32) -> u32) -> u128 {
        if self.number == Number::SharedExponent {
            return shared_exponent([0, 1, 2].map(|index| f32::from_bits(component(index)))) as u128;
        }
        (0..self.widths.len() as u32)
            .map(|index| (component(index) as u128) << self.offset(index))
            .fold(0, |element, bits| element | bits)
    }

    /// Converts a register to a component in memory: integers saturate, floats round to nearest even (those
    /// of 10 and 11 bits: toward zero).
    fn encode(&self, value: u32, register: Format, index: u32) -> u32 {
        let Some(&width) = self.widths.get(index as usize) else { return 0 };
        let (env, w) = (&FloatEnv::KEEP, width as u32);
        let (x, near) = (value as u64, Round::NearestEven);
        let bits = match self.number {
            Number::Uint => value.min(mask(width)),
            Number::Sint => {
                let max = mask(width - 1) as i64;
                (value as i32 as i64).clamp(-max - 1, max) as u32
            }
            Number::Uscaled => integral::to_int(register, x, w, false, near, env) as u32,
            Number::Sscaled => integral::to_int(register, x, w, true, near, env) as u32,
            Number::Unorm => integral::to_unorm(register, x, w, env) as u32,
            Number::Snorm => integral::to_snorm(register, x, w, env) as u32,
            Number::Srgb if index < 3 => to_srgb(to_f32(register, value)),
            Number::Srgb => integral::to_unorm(register, x, w, env) as u32,
            Number::SharedExponent => return to_f32(register, value).to_bits(),
            Number::DepthStencil if index > 0 => value.min(mask(width)),
            Number::Float if width < 16 => unsigned_small_float(register, value, width),
            Number::DepthStencil | Number::Float => {
                let to = float_format(width);
                if to == register { value } else { convert(register, to, value, env) }
            }
        };
        bits & mask(width)
    }

    /// Returns the bit offset of a component.
    fn offset(&self, index: u32) -> u32 {
        self.widths[..index as usize].iter().map(|&w| w as u32).sum()
    }
}

fn convert(from: Format, to: Format, bits: u32, env: &FloatEnv) -> u32 {
    integral::to_float(from, to, bits as u64, true, env) as u32
}

fn mask(width: u8) -> u32 {
    if width >= 32 { u32::MAX } else { (1 << width) - 1 }
}

fn sign_extend(bits: u32, width: u8) -> i32 {
    let unused = 32 - width as u32;
    ((bits << unused) as i32) >> unused
}

/// Returns the float format of a component: f16 for 16 bits; for 10 and 11 bits, a format with a 5-bit
/// exponent and no sign. The sign bit of that `Format` is above the component and never set by a read.
fn float_format(width: u8) -> Format {
    match width {
        32 => Format::F32,
        16 => Format::F16,
        _ => Format {
            frac_bits: width as u32 - 5,
            class: ModeClass::Fixed,
            overflow_clamps: false,
            ..Format::F16
        },
    }
}

/// Converts a float to an unsigned 10- or 11-bit float, rounding toward zero: negative numbers become zero,
/// numbers beyond the range the largest finite number.
fn unsigned_small_float(register: Format, value: u32, width: u8) -> u32 {
    let format = float_format(width);
    (match unpack(register, value as u64) {
        Value::Nan => format.infinity() | format.quiet_bit(),
        Value::Infinite { negative: false } => format.infinity(),
        Value::Finite(x) if !x.negative => pack(format, x, Round::Zero, false),
        Value::Infinite { .. } | Value::Zero { .. } | Value::Finite(_) => 0,
    }) as u32
}

fn from_f32(register: Format, value: f32) -> u32 {
    convert(Format::F32, register, value.to_bits(), &FloatEnv::KEEP)
}

fn to_f32(register: Format, value: u32) -> f32 {
    f32::from_bits(convert(register, Format::F32, value, &FloatEnv::KEEP))
}

/// The linear value of a component with the sRGB curve (IEC 61966-2-1).
fn from_srgb(bits: u8) -> f32 {
    static VALUES: std::sync::LazyLock<[f32; 256]> = std::sync::LazyLock::new(|| {
        std::array::from_fn(|bits| {
            let encoded = bits as f64 / 255.0;
            let linear =
                if encoded <= 0.04045 { encoded / 12.92 } else { ((encoded + 0.055) / 1.055).powf(2.4) };
            linear as f32
        })
    });
    VALUES[bits as usize]
}

/// The sRGB encoding of a linear value, to nearest; NaN is 0.
fn to_srgb(linear: f32) -> u32 {
    let linear = (linear as f64).clamp(0.0, 1.0);
    let encoded = if linear <= 0.003_130_8 { linear * 12.92 } else { 1.055 * linear.powf(1.0 / 2.4) - 0.055 };
    (encoded * 255.0 + 0.5) as u32
}

/// The bias of the shared exponent.
const SHARED_BIAS: i32 = 15;

/// Encodes three floats with a shared exponent: negative numbers and NaN become 0, large ones the largest
/// (EXT_texture_shared_exponent).
fn shared_exponent(values: [f32; 3]) -> u32 {
    const LARGEST: f32 = 511.0 / 512.0 * 65536.0;
    let values = values.map(|value| if value > 0.0 { value.min(LARGEST) } else { 0.0 });
    let most = values.iter().fold(0.0, |a: f32, b| a.max(*b));
    let floor_log2 = (most.to_bits() >> 23) as i32 - 127;
    let exponent = floor_log2.max(-SHARED_BIAS - 1) + 1 + SHARED_BIAS;
    let mantissa = |value: f32, exponent: i32| {
        (value as f64 / f64::powi(2.0, exponent - SHARED_BIAS - 9) + 0.5).floor() as u32
    };
    let exponent = if mantissa(most, exponent) == 512 { exponent + 1 } else { exponent };
    let [x, y, z] = values.map(|value| mantissa(value, exponent));
    x | y << 9 | z << 18 | (exponent as u32) << 27
}

/// Returns the format with this number in the `FORMAT` field, which is the same on RDNA 3, 3.5 and 4. Returns
/// `None` if the number is invalid, or the format's elements are blocks of texels.
pub fn by_number(format: u32) -> Option<&'static BufferFormat> {
    FORMATS.get((format as usize).checked_sub(1)?).filter(|format| !format.widths.is_empty())
}

/// The name of a format of equal components in the style of WebGPU: `rgba8unorm`.
pub fn common_name(format: &BufferFormat) -> Option<String> {
    let width = format.widths.first().filter(|first| format.widths.iter().all(|width| width == *first))?;
    let channels = &"rgba"[..format.widths.len()];
    let number = match format.number {
        Number::Unorm => "unorm",
        Number::Snorm => "snorm",
        Number::Uint => "uint",
        Number::Sint => "sint",
        Number::Float => "float",
        Number::Srgb => "unorm_srgb",
        _ => return None,
    };
    let clamped = format.name.ends_with("CLAMP") || *width < 8;
    (!clamped).then(|| format!("{channels}{width}{number}"))
}

use Number::*;

const fn row(name: &'static str, widths: &'static [u8], number: Number) -> BufferFormat {
    BufferFormat { name, widths, number }
}

/// The formats, from number 1.
const FORMATS: [BufferFormat; 81] = [
    row("8_UNORM", &[8], Unorm),
    row("8_SNORM", &[8], Snorm),
    row("8_USCALED", &[8], Uscaled),
    row("8_SSCALED", &[8], Sscaled),
    row("8_UINT", &[8], Uint),
    row("8_SINT", &[8], Sint),
    row("16_UNORM", &[16], Unorm),
    row("16_SNORM", &[16], Snorm),
    row("16_USCALED", &[16], Uscaled),
    row("16_SSCALED", &[16], Sscaled),
    row("16_UINT", &[16], Uint),
    row("16_SINT", &[16], Sint),
    row("16_FLOAT", &[16], Float),
    row("8_8_UNORM", &[8, 8], Unorm),
    row("8_8_SNORM", &[8, 8], Snorm),
    row("8_8_USCALED", &[8, 8], Uscaled),
    row("8_8_SSCALED", &[8, 8], Sscaled),
    row("8_8_UINT", &[8, 8], Uint),
    row("8_8_SINT", &[8, 8], Sint),
    row("32_UINT", &[32], Uint),
    row("32_SINT", &[32], Sint),
    row("32_FLOAT", &[32], Float),
    row("16_16_UNORM", &[16, 16], Unorm),
    row("16_16_SNORM", &[16, 16], Snorm),
    row("16_16_USCALED", &[16, 16], Uscaled),
    row("16_16_SSCALED", &[16, 16], Sscaled),
    row("16_16_UINT", &[16, 16], Uint),
    row("16_16_SINT", &[16, 16], Sint),
    row("16_16_FLOAT", &[16, 16], Float),
    row("10_11_11_FLOAT", &[11, 11, 10], Float),
    row("11_11_10_FLOAT", &[10, 11, 11], Float),
    row("10_10_10_2_UNORM", &[2, 10, 10, 10], Unorm),
    row("10_10_10_2_SNORM", &[2, 10, 10, 10], Snorm),
    row("10_10_10_2_UINT", &[2, 10, 10, 10], Uint),
    row("10_10_10_2_SINT", &[2, 10, 10, 10], Sint),
    row("2_10_10_10_UNORM", &[10, 10, 10, 2], Unorm),
    row("2_10_10_10_SNORM", &[10, 10, 10, 2], Snorm),
    row("2_10_10_10_USCALED", &[10, 10, 10, 2], Uscaled),
    row("2_10_10_10_SSCALED", &[10, 10, 10, 2], Sscaled),
    row("2_10_10_10_UINT", &[10, 10, 10, 2], Uint),
    row("2_10_10_10_SINT", &[10, 10, 10, 2], Sint),
    row("8_8_8_8_UNORM", &[8, 8, 8, 8], Unorm),
    row("8_8_8_8_SNORM", &[8, 8, 8, 8], Snorm),
    row("8_8_8_8_USCALED", &[8, 8, 8, 8], Uscaled),
    row("8_8_8_8_SSCALED", &[8, 8, 8, 8], Sscaled),
    row("8_8_8_8_UINT", &[8, 8, 8, 8], Uint),
    row("8_8_8_8_SINT", &[8, 8, 8, 8], Sint),
    row("32_32_UINT", &[32, 32], Uint),
    row("32_32_SINT", &[32, 32], Sint),
    row("32_32_FLOAT", &[32, 32], Float),
    row("16_16_16_16_UNORM", &[16, 16, 16, 16], Unorm),
    row("16_16_16_16_SNORM", &[16, 16, 16, 16], Snorm),
    row("16_16_16_16_USCALED", &[16, 16, 16, 16], Uscaled),
    row("16_16_16_16_SSCALED", &[16, 16, 16, 16], Sscaled),
    row("16_16_16_16_UINT", &[16, 16, 16, 16], Uint),
    row("16_16_16_16_SINT", &[16, 16, 16, 16], Sint),
    row("16_16_16_16_FLOAT", &[16, 16, 16, 16], Float),
    row("32_32_32_UINT", &[32, 32, 32], Uint),
    row("32_32_32_SINT", &[32, 32, 32], Sint),
    row("32_32_32_FLOAT", &[32, 32, 32], Float),
    row("32_32_32_32_UINT", &[32, 32, 32, 32], Uint),
    row("32_32_32_32_SINT", &[32, 32, 32, 32], Sint),
    row("32_32_32_32_FLOAT", &[32, 32, 32, 32], Float),
    // Only of images.
    row("8_SRGB", &[8], Srgb),
    row("8_8_SRGB", &[8, 8], Srgb),
    row("8_8_8_8_SRGB", &[8, 8, 8, 8], Srgb),
    row("5_9_9_9_FLOAT", &[9, 9, 9, 5], SharedExponent),
    row("5_6_5_UNORM", &[5, 6, 5], Unorm),
    row("1_5_5_5_UNORM", &[5, 5, 5, 1], Unorm),
    row("5_5_5_1_UNORM", &[1, 5, 5, 5], Unorm),
    row("4_4_4_4_UNORM", &[4, 4, 4, 4], Unorm),
    row("4_4_UNORM", &[4, 4], Unorm),
    row("1_UNORM", &[], Unorm),
    row("1_REVERSED_UNORM", &[], Unorm),
    row("32_FLOAT_CLAMP", &[32], Float),
    row("8_24_UNORM", &[24, 8], Unorm),
    row("8_24_UINT", &[24, 8], Uint),
    row("24_8_UNORM", &[8, 24], Unorm),
    row("24_8_UINT", &[8, 24], Uint),
    row("X24_8_32_UINT", &[32, 8, 24], Uint),
    row("X24_8_32_FLOAT", &[32, 8, 24], DepthStencil),
];
