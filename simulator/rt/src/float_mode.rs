//! The bits of MODE that select how floats are computed (RDNA manuals, *Round and Denormal Modes*): the only place
//! that knows their values, besides [`FloatEnv::from_mode`](isa_spec::arith::FloatEnv::from_mode), which decodes
//! them.

/// Rounding and denormals of f32 and bf16.
const SINGLE: u32 = 0x33;
/// Nearest even, denormals kept; their flushing is 0.
const SINGLE_KEEP: u32 = 0x30;
/// Rounding and denormals of f16 and f64, and FP16_OVFL.
const OTHERS: u32 = 0x80_00cc;
/// Nearest even, denormals kept, overflow as in IEEE 754.
const OTHERS_USUAL: u32 = 0xc0;

/// The float modes that affect the selection of handlers and of compiled code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FloatMode {
    single: Single,
    /// For other floats: rounding to nearest even, with denormals and overflow as in IEEE 754.
    usual: bool,
}

/// The modes for f32, and for bf16 except overflow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Single {
    /// Nearest even, denormals kept.
    Keep,
    /// Nearest even, denormals flushed.
    Flush,
    /// Another rounding mode, or denormals flushed in sources only or in results only.
    Other,
}

impl FloatMode {
    /// Denormals kept, everything else as usual.
    pub const KEEP: FloatMode = FloatMode { single: Single::Keep, usual: true };
    /// Denormals of f32 flushed, everything else as usual.
    pub const FLUSH: FloatMode = FloatMode { single: Single::Flush, usual: true };

    /// Number of combinations of these modes with wave sizes.
    pub(super) const COUNT: usize = 12;

    /// Returns the modes in a value of MODE.
    #[inline]
    pub fn of(mode: u32) -> FloatMode {
        let single = match mode & SINGLE {
            SINGLE_KEEP => Single::Keep,
            0 => Single::Flush,
            _ => Single::Other,
        };
        FloatMode { single, usual: mode & OTHERS == OTHERS_USUAL }
    }

    /// Returns the modes in a value of MODE, if fast handlers and compiled code are specialised for them
    /// ([`FloatMode::KEEP`], [`FloatMode::FLUSH`]), and if MODE has none of the bits in `unless`.
    #[inline(always)]
    pub fn fast(mode: u32, unless: u32) -> Option<FloatMode> {
        const KEEP: u32 = SINGLE_KEEP | OTHERS_USUAL;
        const FLUSH: u32 = OTHERS_USUAL;
        match mode & (SINGLE | OTHERS | unless) {
            KEEP => Some(FloatMode::KEEP),
            FLUSH => Some(FloatMode::FLUSH),
            _ => None,
        }
    }

    /// Returns whether denormals of f32 are flushed, with rounding to nearest even.
    #[inline]
    pub fn flushes(self) -> bool {
        self.single == Single::Flush
    }

    pub(super) fn index(self, wave64: bool) -> usize {
        self.single as usize * 4 + self.usual as usize * 2 + wave64 as usize
    }

    /// Returns whether fast handlers are compiled for this mode.
    pub(super) fn is_fast(self) -> bool {
        self.usual && self.single != Single::Other
    }

    /// Returns whether an operation on f32 or other floats has no fast handler in this mode.
    pub(super) fn is_slow(self, single: bool, other_floats: bool) -> bool {
        single && self.single == Single::Other || other_floats && !self.usual
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fast_modes_are_those_of_fast_handlers() {
        for bits in 0..0x200u32 {
            let mode = bits & 0xff | (bits & 0x100) << 15;
            let of = FloatMode::of(mode);
            assert_eq!(FloatMode::fast(mode, 1 << 27), of.is_fast().then_some(of), "{mode:#x}");
            assert_eq!(FloatMode::fast(mode | 1 << 27, 1 << 27), None, "{mode:#x}");
        }
    }
}
