//! Float operations whose results may have to be repaired out of line.

use crate::a64::encode::Forward;
use crate::inst::V;

/// A float operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Float {
    Add,
    Sub,
    Mul,
    Div,
    Sqrt,
    /// `a * b + c`.
    Fma,
    /// From f64 to f32.
    Narrow,
}

impl Float {
    pub const ALL: [Float; 7] =
        [Float::Add, Float::Sub, Float::Mul, Float::Div, Float::Sqrt, Float::Fma, Float::Narrow];

    /// Returns whether a result can be inexact and denormal before it is rounded. A denormal sum is exact.
    pub fn underflows(self) -> bool {
        matches!(self, Float::Mul | Float::Div | Float::Fma | Float::Narrow)
    }

    /// Returns whether a NaN may be another one, though no operation was invalid.
    pub fn reorders_nans(self) -> bool {
        self == Float::Fma
    }
}

/// Where an operand is, until the result is moved to its location.
#[derive(Debug, Clone, Copy)]
pub enum Operand {
    Pair(u8),
    /// In the memory that it was loaded from.
    Reloaded(V),
}

/// Code out of line that repairs a result.
pub struct Repair {
    pub entry: Forward,
    /// The instruction to continue with.
    pub back: u32,
    pub float: Float,
    pub wide: bool,
    pub operands: [Operand; 3],
    /// The pair of the result.
    pub result: u8,
}
