//! A decoded program: instructions, their places, and the dense operations the interpreter runs.

use crate::arch::Arch;
use crate::inst::Inst;

/// Code, decoded once.
pub struct Program {
    pub arch: Arch,
    pub insts: Vec<Inst>,
    /// Byte offset of each instruction.
    pub pcs: Vec<u64>,
    /// Source line of each instruction (1-based; 0: none).
    pub lines: Vec<u32>,
}
