//! Conversions between f16 and f32, in operations that vectorise.

/// Converts f16 to f32; exact.
#[inline(always)]
pub fn half_to_single(h: u32) -> u32 {
    let sign = (h & 0x8000) << 16;
    let rest = h & 0x7fff;
    // Normal numbers are rebiased, infinities and NaN rebiased twice, and denormals go through a float
    // subtraction.
    let shifted = rest << 13;
    let exponent = shifted & 0x0f80_0000;
    let normal = shifted + (112 << 23);
    let special = normal + (112 << 23);
    let denormal = (f32::from_bits(shifted + (113 << 23)) - f32::from_bits(113 << 23)).to_bits();
    let magnitude = if exponent == 0x0f80_0000 {
        special
    } else if exponent == 0 {
        denormal
    } else {
        normal
    };
    sign | magnitude
}

/// Converts f32 to f16, rounding to nearest even.
#[inline(always)]
pub fn single_to_half(x: u32) -> u32 {
    let sign = x >> 16 & 0x8000;
    let a = x & 0x7fff_ffff;
    let nan = 0x7e00 | (a >> 13 & 0x3ff);
    // Rounds to 10 fraction bits by adding half a unit in the last place minus one, plus the lowest bit.
    let odd = a >> 13 & 1;
    let normal = (a.wrapping_add(0xc800_0fff).wrapping_add(odd)) >> 13;
    // For denormals, the float addition rounds at the right position.
    let denormal = (f32::from_bits(a) + f32::from_bits(126 << 23)).to_bits().wrapping_sub(126 << 23);
    let magnitude = if a > 0x7f80_0000 {
        nan
    } else if a >= 0x4780_0000 {
        0x7c00
    } else if a < 0x3880_0000 {
        denormal
    } else {
        normal
    };
    sign | magnitude
}
