//! The reasons why a function cannot be compiled.

use crate::check::CheckError;
use crate::code::Code;
use crate::verify::VerifyError;
use iced_x86::IcedError;

/// The reason why a function cannot be compiled.
#[derive(Debug, Clone, thiserror::Error)]
pub enum CompileError {
    /// Too many values are live at once.
    #[error("a stack frame of {0} bytes is too large: compile fewer instructions at once")]
    Frame(u64),
    /// A vector instruction does not have this number of operands.
    #[error("{} does not have this number of operands", .0.shape().name)]
    Operands(Code),
    /// A vector instruction has operands that it does not support.
    #[error("code {code} of iced_x86 cannot be encoded with these operands: {error}")]
    Encode { code: u32, error: IcedError },
    /// The encoder rejects an instruction.
    #[error("an instruction cannot be encoded: {0}")]
    Encoder(IcedError),
    /// A label that is jumped to was never bound.
    #[error("label {0} is jumped to but never bound")]
    Label(u32),
    /// The function has more parameters than are passed in registers.
    #[error("{0} parameters: at most six are supported")]
    Parameters(usize),
    /// A jump table is empty.
    #[error("a jump table has no labels")]
    EmptyTable,
    /// The function breaks rules. It is verified if [`checks`](crate::checks) are on.
    #[error("the function is invalid:{}", lines(.0))]
    Invalid(Vec<VerifyError>),
    /// The allocation is wrong: a bug of this crate. It is checked if [`checks`](crate::checks) are on.
    #[error("values are not where they are read:{}", lines(.0))]
    Allocation(Vec<CheckError>),
    /// A jump or a constant is out of reach.
    #[error("code of {0} bytes is too large: compile fewer instructions at once")]
    TooFar(u64),
    /// The operating system provides no executable memory.
    #[error("no executable memory: {0}")]
    Memory(String),
}

/// Returns a line for each of the first errors.
fn lines(errors: &[impl std::fmt::Display]) -> String {
    const SHOWN: usize = 20;
    let mut text: String = errors.iter().take(SHOWN).map(|error| format!("\n  {error}")).collect();
    if errors.len() > SHOWN {
        text += &format!("\n  and {} more", errors.len() - SHOWN);
    }
    text
}
