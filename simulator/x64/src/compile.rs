//! The compilation pipeline, from a function to machine code.

use crate::allocate::allocate;
use crate::assemble::Assembler;
use crate::function::Function;
use crate::host::Host;
use crate::live::analyse;
use iced_x86::IcedError;

/// The reason why a function cannot be compiled.
#[derive(Debug, Clone, thiserror::Error)]
pub enum CompileError {
    /// Too many values are live at once.
    #[error("a stack frame of {0} bytes is too large: compile fewer instructions at once")]
    Frame(u64),
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
    /// The operating system provides no executable memory.
    #[error("no executable memory: {0}")]
    Memory(String),
}

/// The position-independent machine code of a function.
#[derive(Debug, Clone)]
pub struct Compiled {
    pub(crate) bytes: Vec<u8>,
}

impl Compiled {
    /// Returns the code, followed by jump tables and constants.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

/// Compiles a function for this host. On every system, it follows the System V calling convention.
///
/// A value that is first assigned inside a loop does not keep its value from one iteration to the next.
pub fn compile(function: &Function, _host: &Host) -> Result<Compiled, CompileError> {
    let live = analyse(function);
    let allocation = allocate(function, &live);
    let bytes = Assembler::new(function, &live, &allocation)?.run()?;
    Ok(Compiled { bytes })
}
