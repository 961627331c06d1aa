//! The memory that an access reaches.

/// The memory that an access reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Place {
    /// Global memory, by address.
    Global,
    /// LDS of the workgroup.
    Lds,
    /// Scratch of the lane.
    Scratch,
    /// A buffer access beyond the descriptor's range, which does nothing.
    Nowhere,
}

impl Place {
    /// Returns the name used in messages.
    pub fn name(self) -> &'static str {
        match self {
            Place::Global => "global memory",
            Place::Lds => "LDS",
            Place::Scratch => "scratch",
            Place::Nowhere => "out of the buffer's range",
        }
    }
}
