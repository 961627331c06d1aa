//! Formats of images whose elements are compressed blocks of 4 by 4 texels (BC1 to BC7, *Data Formats* in the
//! RDNA3 and RDNA4 ISA manuals).

/// Numbers of the formats of decompressed texels in the `FORMAT` field.
mod texel {
    pub const R16_UNORM: u32 = 7;
    pub const R16_SNORM: u32 = 8;
    pub const RG16_UNORM: u32 = 23;
    pub const RG16_SNORM: u32 = 24;
    pub const RGBA8_UNORM: u32 = 42;
    pub const RGBA16_FLOAT: u32 = 57;
    pub const RGBA8_SRGB: u32 = 66;
}

/// The formats in the order of their numbers, from [`FIRST`]: name, bytes of a block, format of a texel.
const BLOCKS: [(&str, u32, u32); 14] = [
    ("BC1_UNORM", 8, texel::RGBA8_UNORM),
    ("BC1_SRGB", 8, texel::RGBA8_SRGB),
    ("BC2_UNORM", 16, texel::RGBA8_UNORM),
    ("BC2_SRGB", 16, texel::RGBA8_SRGB),
    ("BC3_UNORM", 16, texel::RGBA8_UNORM),
    ("BC3_SRGB", 16, texel::RGBA8_SRGB),
    ("BC4_UNORM", 8, texel::R16_UNORM),
    ("BC4_SNORM", 8, texel::R16_SNORM),
    ("BC5_UNORM", 16, texel::RG16_UNORM),
    ("BC5_SNORM", 16, texel::RG16_SNORM),
    ("BC6_UFLOAT", 16, texel::RGBA16_FLOAT),
    ("BC6_SFLOAT", 16, texel::RGBA16_FLOAT),
    ("BC7_UNORM", 16, texel::RGBA8_UNORM),
    ("BC7_SRGB", 16, texel::RGBA8_SRGB),
];

/// The number of BC1_UNORM.
const FIRST: u32 = 109;

fn row(format: u32) -> Option<&'static (&'static str, u32, u32)> {
    BLOCKS.get(format.checked_sub(FIRST)? as usize)
}

/// Returns the format with this number whose elements are blocks.
pub fn name(format: u32) -> Option<&'static str> {
    Some(row(format)?.0)
}

/// Bytes of a block; 0 for other formats.
pub fn bytes(format: u32) -> u32 {
    row(format).map_or(0, |row| row.1)
}

/// Width and height in texels of an element: 4 for blocks, otherwise 1.
pub fn format_block(format: u32) -> u32 {
    if row(format).is_some() { 4 } else { 1 }
}

/// The format of a decompressed texel; `format` itself if its elements are no blocks.
pub fn block_format(format: u32) -> u32 {
    row(format).map_or(format, |row| row.2)
}

/// Decompresses the texel in column `x` and row `y` (0 to 3) of a block, to an element of [`block_format`].
pub fn block_texel(format: u32, block: u128, x: u32, y: u32) -> u128 {
    let at = (x & 3) as usize + 4 * (y & 3) as usize;
    let bytes = block.to_le_bytes();
    let mut rgba = [0u8; 64];
    let texel = |rgba: &[u8; 64]| u32::from_le_bytes(std::array::from_fn(|k| rgba[4 * at + k])) as u128;
    match row(format).map(|row| row.0) {
        Some("BC1_UNORM" | "BC1_SRGB") => bcdec_rs::bc1(&bytes[..8], &mut rgba, 16),
        Some("BC2_UNORM" | "BC2_SRGB") => bcdec_rs::bc2(&bytes, &mut rgba, 16),
        Some("BC3_UNORM" | "BC3_SRGB") => bcdec_rs::bc3(&bytes, &mut rgba, 16),
        Some("BC7_UNORM" | "BC7_SRGB") => bcdec_rs::bc7(&bytes, &mut rgba, 16),
        Some("BC4_UNORM") => return gradient(block as u64, at, false) as u128,
        Some("BC4_SNORM") => return gradient(block as u64, at, true) as u128,
        Some(name @ ("BC5_UNORM" | "BC5_SNORM")) => {
            let signed = name.ends_with("SNORM");
            let x = gradient(block as u64, at, signed);
            return x as u128 | (gradient((block >> 64) as u64, at, signed) as u128) << 16;
        }
        Some(name @ ("BC6_UFLOAT" | "BC6_SFLOAT")) => {
            let mut halves = [0u16; 48];
            bcdec_rs::bc6h_half(&bytes, &mut halves, 12, name == "BC6_SFLOAT");
            const ONE: u128 = 0x3c00;
            let half = |k: usize| halves[3 * at + k] as u128;
            return half(0) | half(1) << 16 | half(2) << 32 | ONE << 48;
        }
        _ => return block,
    }
    texel(&rgba)
}

/// A texel of a block of BC4: two ends of 8 bits, and 3 bits for each texel that select an end, one of the values
/// between them, or, if the ends are in the other order, one of four values, 0 or 1. The result has 16 bits.
fn gradient(block: u64, index: usize, signed: bool) -> u16 {
    let (a, b) = (block as u8, (block >> 8) as u8);
    let select = (block >> (16 + 3 * index)) & 7;
    let ends = if signed { [a, b].map(|end| (end as i8).max(-127) as i64) } else { [a, b].map(i64::from) };
    let [first, last] = ends;
    let (largest, scale) = if signed { (127, 32767) } else { (255, 65535) };
    let (numerator, steps) = match select as i64 {
        0 => (first, 1),
        1 => (last, 1),
        n if first > last => ((8 - n) * first + (n - 1) * last, 7),
        n @ 2..=5 => ((6 - n) * first + (n - 1) * last, 5),
        6 => (if signed { -largest } else { 0 }, 1),
        _ => (largest, 1),
    };
    // To nearest.
    let (numerator, denominator) = (numerator * scale, steps * largest);
    ((2 * numerator + denominator).div_euclid(2 * denominator)) as u16
}
