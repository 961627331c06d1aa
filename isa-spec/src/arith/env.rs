//! The floating-point environment: the rounding and denormal modes of the MODE register.

use super::format::{Format, ModeClass};
use crate::pcode::ir::Ty;

/// Rounding mode of results that are not representable. The discriminants are MODE's encoding (RDNA4 ISA
/// manual, *Round and Denormal Modes*).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Round {
    /// To nearest, ties to even.
    #[default]
    NearestEven = 0,
    /// Toward plus infinity.
    Up = 1,
    /// Toward minus infinity.
    Down = 2,
    /// Toward zero.
    Zero = 3,
}

impl Round {
    /// Every mode, in the order of MODE's encoding.
    pub const ALL: [Round; 4] = [Round::NearestEven, Round::Up, Round::Down, Round::Zero];

    /// Decodes the low two bits of `bits`.
    pub const fn from_bits(bits: u32) -> Round {
        Round::ALL[(bits & 3) as usize]
    }
}

/// The fields of the MODE register that affect arithmetic. Flushing a denormal operand or result yields the
/// zero of its sign; results are tested after rounding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct FloatEnv {
    /// f32 and bf16: `MODE[1:0]`.
    pub round32: Round,
    /// f16 and f64: `MODE[3:2]`.
    pub round64: Round,
    /// f32 and bf16, `MODE[4]` clear: denormal operands count as zeros.
    pub flush_in32: bool,
    /// f32 and bf16, `MODE[5]` clear: denormal results become zeros.
    pub flush_out32: bool,
    /// f16 and f64, `MODE[6]` clear.
    pub flush_in64: bool,
    /// f16 and f64, `MODE[7]` clear.
    pub flush_out64: bool,
    /// `MODE[23]`, `FP16_OVFL`: a 16- or 8-bit float result that overflows becomes the largest finite number.
    pub overflow_clamps: bool,
}

impl Default for FloatEnv {
    fn default() -> FloatEnv {
        FloatEnv::KEEP
    }
}

impl FloatEnv {
    /// Rounds to nearest even and keeps all denormals.
    pub const KEEP: FloatEnv = FloatEnv {
        round32: Round::NearestEven,
        round64: Round::NearestEven,
        flush_in32: false,
        flush_out32: false,
        flush_in64: false,
        flush_out64: false,
        overflow_clamps: false,
    };

    /// Decodes a MODE register value. In each denormal field, bit 0 keeps denormal operands and bit 1
    /// denormal results.
    pub const fn from_mode(mode: u32) -> FloatEnv {
        FloatEnv {
            round32: Round::from_bits(mode),
            round64: Round::from_bits(mode >> 2),
            flush_in32: mode & 1 << 4 == 0,
            flush_out32: mode & 1 << 5 == 0,
            flush_in64: mode & 1 << 6 == 0,
            flush_out64: mode & 1 << 7 == 0,
            overflow_clamps: mode & 1 << 23 != 0,
        }
    }

    /// Returns the environment with another rounding mode for all formats with a rounding mode.
    pub const fn with_round(self, round: Round) -> FloatEnv {
        FloatEnv { round32: round, round64: round, ..self }
    }

    /// Returns the environment for functions that hardware approximates: rounds to nearest even and flushes
    /// f32 denormals (RDNA manuals, notes of V_RCP_F32, V_SQRT_F32 …).
    pub const fn approximated(self) -> FloatEnv {
        FloatEnv { flush_in32: true, flush_out32: true, ..self.with_round(Round::NearestEven) }
    }

    /// Returns the rounding mode of a float type; nearest even for integers.
    pub fn round(&self, ty: Ty) -> Round {
        Format::of(ty).map_or(Round::NearestEven, |f| self.of(f).round)
    }

    /// Returns whether denormal operands of a float type count as zeros.
    pub fn flush_in(&self, ty: Ty) -> bool {
        Format::of(ty).is_some_and(|f| self.of(f).flush_in)
    }

    /// Returns whether denormal results of a float type become zeros.
    pub fn flush_out(&self, ty: Ty) -> bool {
        Format::of(ty).is_some_and(|f| self.of(f).flush_out)
    }

    /// Returns rounding and flushing for one format. 8-bit floats always round to nearest even and keep
    /// denormals (RDNA4 ISA manual, *Data Conversion Operations*).
    #[inline]
    pub(super) const fn of(&self, format: Format) -> FloatMode {
        match format.class {
            ModeClass::Single => FloatMode {
                round: self.round32,
                flush_in: self.flush_in32,
                flush_out: self.flush_out32,
                saturate: self.overflow_clamps && format.overflow_clamps,
            },
            ModeClass::HalfDouble => FloatMode {
                round: self.round64,
                flush_in: self.flush_in64,
                flush_out: self.flush_out64,
                saturate: self.overflow_clamps && format.overflow_clamps,
            },
            ModeClass::Fixed => FloatMode {
                round: Round::NearestEven,
                flush_in: false,
                flush_out: false,
                saturate: self.overflow_clamps && format.overflow_clamps,
            },
        }
    }
}

/// The part of the environment that governs one format.
#[derive(Clone, Copy)]
pub(super) struct FloatMode {
    /// Rounding mode of results.
    pub round: Round,
    /// Denormal operands count as zeros.
    pub flush_in: bool,
    /// Denormal results become zeros.
    pub flush_out: bool,
    /// Overflow saturates to the largest finite number.
    pub saturate: bool,
}
