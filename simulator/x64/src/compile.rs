//! From a function to bytes.

use crate::allocate::allocate;
use crate::assemble::Assembler;
use crate::function::Function;
use crate::host::Host;
use crate::live::analyse;
use iced_x86::IcedError;

/// Why a function has no code.
#[derive(Debug, Clone, thiserror::Error)]
pub enum CompileError {
    /// Too many values are alive at once.
    #[error("a stack frame of {0} bytes is too large: compile less at once")]
    Frame(u64),
    /// A vector instruction has operands that its code does not take.
    #[error("code {code} of iced_x86 cannot be encoded with these operands: {error}")]
    Encode { code: u32, error: IcedError },
    /// The encoder refuses an instruction.
    #[error("an instruction cannot be encoded: {0}")]
    Encoder(IcedError),
    /// A label was never placed.
    #[error("label {0} is jumped to, and stands nowhere")]
    Label(u32),
    /// More than are passed in registers.
    #[error("{0} parameters: at most six are supported")]
    Parameters(usize),
    /// There is nowhere to jump to.
    #[error("a jump table without labels")]
    EmptyTable,
    /// The operating system refuses it.
    #[error("no executable memory: {0}")]
    Memory(String),
}

/// Code of a function, which may be put anywhere.
#[derive(Debug, Clone)]
pub struct Compiled {
    pub(crate) bytes: Vec<u8>,
}

impl Compiled {
    /// The code, then jump tables and constants.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

/// Compiles a function for this host. It follows the C convention of System V, on every system.
///
/// A value that is assigned within a loop for the first time does not keep its value for the next round.
pub fn compile(function: &Function, _host: &Host) -> Result<Compiled, CompileError> {
    let live = analyse(function);
    let places = allocate(function, &live);
    let bytes = Assembler::new(function, &live, &places)?.run()?;
    Ok(Compiled { bytes })
}
