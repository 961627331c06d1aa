//! The operations and operand sizes of instructions.

#![allow(dead_code, reason = "not every test uses everything")]

use wavesim_x64::inst::{Cc, Int1, Int2, Size, Width};

pub const INT2: [Int2; 9] =
    [Int2::Add, Int2::Sub, Int2::Mul, Int2::And, Int2::Or, Int2::Xor, Int2::Shl, Int2::Shr, Int2::Sar];
pub const INT1: [Int1; 8] = [
    Int1::Not,
    Int1::Neg,
    Int1::CountOnes,
    Int1::LeadingZeros,
    Int1::TrailingZeros,
    Int1::SwapBytes,
    Int1::SignExtend32,
    Int1::ZeroExtend32,
];
pub const CC: [Cc; 10] =
    [Cc::Eq, Cc::Ne, Cc::LtS, Cc::LeS, Cc::GtS, Cc::GeS, Cc::LtU, Cc::LeU, Cc::GtU, Cc::GeU];
pub const WIDTHS: [Width; 2] = [Width::W32, Width::W64];
pub const SIZES: [Size; 4] = [Size::B1, Size::B2, Size::B4, Size::B8];
