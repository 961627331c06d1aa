//! The compilation pipeline, from a function to machine code.

use crate::allocated::Allocated;
use crate::assemble::assemble;
use crate::error::CompileError;
use crate::function::Function;
use crate::host::Host;

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
    let bytes = assemble(&Allocated::new(function))?;
    Ok(Compiled { bytes })
}
