//! The wave's scalar state that is cached in values while a block is emitted.

use crate::arith::val::Val;
use wavesim_machine::state::wave::SGPRS;

/// The number that stands for SCC among the operand codes of SGPRs.
pub const SCC: usize = SGPRS;

/// A register that a block has read or written.
#[derive(Debug, Clone, Copy)]
pub struct CachedScalar {
    pub val: Val,
    /// The value has not been stored to the wave yet.
    pub written: bool,
}

/// The scalar state that is cached in values.
#[derive(Clone)]
pub struct Scalars {
    /// Registers by operand code.
    pub words: Vec<Option<CachedScalar>>,
    pub scc: Option<CachedScalar>,
    /// Pairs of registers, to the 64-bit values made of them.
    pub pairs: Vec<([Val; 2], Val)>,
}

impl Default for Scalars {
    fn default() -> Scalars {
        Scalars { words: vec![None; SGPRS], scc: None, pairs: Vec::new() }
    }
}
