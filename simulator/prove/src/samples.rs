//! Numbers on which terms are tried before a solver is asked.

/// A number without a pattern for each pair of numbers.
fn noise(a: u64, b: u64) -> u64 {
    let mut value = a.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ b.wrapping_add(0x2545_f491_4f6c_dd1d);
    for _ in 0..2 {
        value = (value ^ value >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        value ^= value >> 27;
    }
    value
}

/// An operand in a test: any number in the first ones, then often a special one.
pub fn operand(test: usize, number: usize) -> u128 {
    const SPECIAL: [u64; 16] = [
        0,
        1,
        u64::MAX,
        0x8000_0000_8000_0000,
        0x7fff_ffff_7fff_ffff,
        31,
        32,
        16,
        0xffff,
        0x8000,
        0x3f80_0000,
        0x7f80_0000,
        0x7ff0_0000_0000_0000,
        0x7fc0_0000,
        0xff80_0001,
        0x0080_0000,
    ];
    let random = noise(test as u64, number as u64);
    let value = match random % 4 {
        _ if test < 12 => random,
        0 => random,
        1 => random >> 32 & 63,
        _ => SPECIAL[(random >> 32) as usize % SPECIAL.len()],
    };
    value as u128
}
