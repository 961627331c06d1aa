//! The code of a function, for its host.

use crate::a64;
use crate::allocated::Allocated;
use crate::assemble;
use crate::encode::Assembled;
use crate::error::CompileError;
use crate::target::Architecture;

/// Returns the bytes of a function: code, tables, constants. Calls `begin` with the index and the offset of each
/// instruction.
pub(crate) fn assemble(
    code: &Allocated<'_>,
    begin: impl FnMut(usize, usize),
) -> Result<Assembled, CompileError> {
    match code.target.architecture {
        Architecture::X64 => assemble::assemble(code, begin),
        Architecture::A64 => a64::assemble(code, begin),
    }
}
