//! Code for aarch64 hosts. A vector of 256 bits is in a pair of registers, `v2n` and `v2n+1`.
//!
//! Vector instructions are named after those of x86-64, and have exactly their meaning: NaNs, conversions and shift
//! counts that are out of range, results of comparisons. What flushing of denormals means is said at
//! [`Inst::LoadMxcsr`](crate::inst::Inst::LoadMxcsr).
//!
//! - `reg`: what registers are used for
//! - `rows`: the host's instructions; `disassemble`: their text
//! - `encode`: a buffer of instructions, labels and constants
//! - `frame`: the stack frame
//! - `assembler`: access to operands
//! - `int`, `control`, `vector`, `permute`, `float`: selection of host instructions
//! - `pending`, `repair`: float results that the host computes in another way than x86-64

mod assembler;
mod control;
#[cfg(feature = "disassembly")]
pub(crate) mod disassemble;
mod encode;
mod float;
mod frame;
mod int;
mod pending;
mod permute;
pub(crate) mod reg;
pub(crate) mod repair;
mod rows;
mod vector;

pub(crate) use assembler::assemble;
