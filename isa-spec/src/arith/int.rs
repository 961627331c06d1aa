//! Integer operations on bit patterns of a given width, in the low bits of a `u128`.

/// Returns a mask of the low `width` bits; all 128 bits for greater widths.
pub fn mask(width: u32) -> u128 {
    if width >= 128 { u128::MAX } else { (1 << width) - 1 }
}

/// Copies bit `width - 1` to all higher bits; returns the value unchanged for a width of 0 or at least 128.
pub fn sign_extend(value: u128, width: u32) -> u128 {
    if width >= 128 || width == 0 {
        return value;
    }
    let shift = 128 - width;
    (((value << shift) as i128) >> shift) as u128
}

/// Shifts left in `width` bits; a count beyond the width returns 0.
pub fn shl(value: u128, count: u32, width: u32) -> u128 {
    if count >= width { 0 } else { value << count & mask(width) }
}

/// Shifts right, arithmetically if `signed`; a count beyond the width returns 0 or all sign bits.
pub fn shr(value: u128, count: u32, width: u32, signed: bool) -> u128 {
    if signed {
        let wide = sign_extend(value, width) as i128;
        (wide >> count.min(127)) as u128 & mask(width)
    } else if count >= width {
        0
    } else {
        value >> count
    }
}

/// Divides; division by zero returns all ones (-1 if signed).
pub fn div(a: u128, b: u128, width: u32, signed: bool) -> u128 {
    if b == 0 {
        return mask(width);
    }
    if signed {
        (sign_extend(a, width) as i128).wrapping_div(sign_extend(b, width) as i128) as u128 & mask(width)
    } else {
        a / b
    }
}

/// Returns the remainder; division by zero returns the dividend.
pub fn rem(a: u128, b: u128, width: u32, signed: bool) -> u128 {
    if b == 0 {
        return a;
    }
    if signed {
        (sign_extend(a, width) as i128).wrapping_rem(sign_extend(b, width) as i128) as u128 & mask(width)
    } else {
        a % b
    }
}

/// Sign-extends the low `bits` bits to `width` bits.
pub fn signext_from_bit(value: u128, bits: u32, width: u32) -> u128 {
    match bits {
        0 => 0,
        b if b >= width => value,
        b => sign_extend(value & mask(b), b) & mask(width),
    }
}

/// Permutes bytes: byte k of `selector` selects byte k of the result among the eight bytes of `low` (0..=3) and
/// `high` (4..=7); selectors of 8 and above yield zero.
pub fn select_bytes(high: u32, low: u32, selector: u32) -> u32 {
    let table = (high as u64) << 32 | low as u64;
    u32::from_le_bytes(
        selector.to_le_bytes().map(|n| table.to_le_bytes().get(n as usize).copied().unwrap_or(0)),
    )
}

/// Converts an integer of `from` bits to `width` bits: saturates if `clamp`, otherwise wraps.
pub fn narrow(value: u128, from: u32, from_signed: bool, width: u32, signed: bool, clamp: bool) -> u128 {
    if !clamp {
        return value & mask(width);
    }
    let wide =
        if from_signed { sign_extend(value, from) as i128 } else { value.min(i128::MAX as u128) as i128 };
    let (low, high) = if signed {
        (-(1i128 << (width - 1)), (1i128 << (width - 1)) - 1)
    } else {
        (0, (1i128 << width) - 1)
    };
    wide.clamp(low, high) as u128 & mask(width)
}
