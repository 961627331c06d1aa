//! The float part of the MODE register.

use crate::pcode::ir::Ty;

/// Round modes by their encoding in MODE.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Round {
    #[default]
    NearestEven,
    Up,
    Down,
    Zero,
}

impl Round {
    fn from_bits(bits: u32) -> Round {
        [Round::NearestEven, Round::Up, Round::Down, Round::Zero][(bits & 3) as usize]
    }

    pub(super) fn ap(self) -> rustc_apfloat::Round {
        match self {
            Round::NearestEven => rustc_apfloat::Round::NearestTiesToEven,
            Round::Up => rustc_apfloat::Round::TowardPositive,
            Round::Down => rustc_apfloat::Round::TowardNegative,
            Round::Zero => rustc_apfloat::Round::TowardZero,
        }
    }
}

/// How float operations round and what they do with denormals (RDNA manuals, *Mode Register*).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FloatEnv {
    pub round32: Round,
    /// f16 and f64.
    pub round64: Round,
    pub flush_in32: bool,
    pub flush_out32: bool,
    pub flush_in64: bool,
    pub flush_out64: bool,
}

impl FloatEnv {
    /// MODE bits: 1:0 round f32, 3:2 round f16/f64, 5:4 denormals of f32, 7:6 of f16/f64 (bit 0 keeps sources, bit 1 results).
    pub fn from_mode(mode: u32) -> FloatEnv {
        FloatEnv {
            round32: Round::from_bits(mode),
            round64: Round::from_bits(mode >> 2),
            flush_in32: mode & 0x10 == 0,
            flush_out32: mode & 0x20 == 0,
            flush_in64: mode & 0x40 == 0,
            flush_out64: mode & 0x80 == 0,
        }
    }

    pub const KEEP: FloatEnv = FloatEnv {
        round32: Round::NearestEven,
        round64: Round::NearestEven,
        flush_in32: false,
        flush_out32: false,
        flush_in64: false,
        flush_out64: false,
    };

    pub fn round(&self, ty: Ty) -> Round {
        match ty {
            Ty::F32 | Ty::BF16 => self.round32,
            _ => self.round64,
        }
    }

    pub fn flush_in(&self, ty: Ty) -> bool {
        match ty {
            Ty::F32 => self.flush_in32,
            Ty::F16 | Ty::F64 => self.flush_in64,
            _ => false,
        }
    }

    pub fn flush_out(&self, ty: Ty) -> bool {
        match ty {
            Ty::F32 => self.flush_out32,
            Ty::F16 | Ty::F64 => self.flush_out64,
            _ => false,
        }
    }
}
