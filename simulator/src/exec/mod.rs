//! Execution.

pub mod machine_ops;
pub mod plan;
pub mod program;
pub mod reference;

use crate::arch::Arch;
use crate::inst::Inst;
use crate::machine::Wave;

/// Executes one instruction by compiled handlers; `None` if it has none.
pub fn step(
    _arch: Arch,
    _inst: &Inst,
    _wave: &mut Wave,
    _context: &mut reference::Context<'_>,
) -> Option<Result<(), machine_ops::Event>> {
    None
}
