//! Values of the lane-loop representation at compile time: constant, uniform, or with one element for each of
//! eight lanes.

use isa_lower::ir::HostWidth;
use wavesim_x64::inst::V;

/// A value. Its host width is known from the context.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Val {
    /// A constant.
    Const(u128),
    /// A uniform integer, whose bits beyond its host width are zero.
    Uniform(V),
    /// A uniform boolean: an integer, 0 or 1.
    Bool(V),
    /// 32 bits of each of eight lanes.
    Lanes(V),
    /// A boolean of each of eight lanes: all ones or zero, in 32 bits.
    Mask(V),
    /// 64 bits of each of eight lanes: those of lanes 0, 1, 4 and 5, and those of the other four.
    Lanes64([V; 2]),
}

/// Returns a mask of the low `width` bits.
pub fn low_mask(width: u32) -> u128 {
    if width >= 128 { u128::MAX } else { (1 << width) - 1 }
}

impl Val {
    /// Returns whether lanes may differ.
    pub fn is_varying(self) -> bool {
        matches!(self, Val::Lanes(_) | Val::Mask(_) | Val::Lanes64(_))
    }
}

/// Returns the host width of the representation: 128-bit values are represented by 64 bits.
pub fn narrow(host_width: HostWidth) -> HostWidth {
    if host_width == HostWidth::W32 { HostWidth::W32 } else { HostWidth::W64 }
}
