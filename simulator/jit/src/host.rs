//! Code memory of this host.

use crate::emit::{self, Machine, Unsupported};
use crate::frame::Code;
use crate::plan::Operations;
use crate::unit::Unit;
use wavesim_x64::Memory;

/// Bytes of code of one program at most, in all float modes: code that is not compiled then is interpreted.
const MOST_CODE: usize = 64 << 20;

pub use wavesim_x64::Refused;

/// Why a unit is left to the interpreter.
#[derive(Debug, thiserror::Error)]
pub enum CompileError {
    /// Something in it is not compiled.
    #[error(transparent)]
    Unsupported(#[from] Unsupported),
    /// There is as much code as there may be.
    #[error("the program has {MOST_CODE} bytes of code")]
    Full,
    /// The code generator failed.
    #[error(transparent)]
    Generator(#[from] wavesim_x64::CompileError),
}

/// Makes code, and owns it.
pub struct Host {
    host: wavesim_x64::Host,
    /// Memory that is written, or executed, but never both.
    memory: Memory,
}

impl Host {
    /// For this host, if code can be made for it.
    pub fn new() -> Result<Host, Refused> {
        Ok(Host { host: wavesim_x64::Host::detect()?, memory: Memory::new() })
    }

    /// Compiles a unit. The code stays until the host is dropped.
    pub fn compile(
        &mut self,
        unit: &Unit,
        machine: Machine<'_>,
        operations: &mut Operations,
    ) -> Result<Code, CompileError> {
        if self.memory.bytes() >= MOST_CODE {
            return Err(CompileError::Full);
        }
        let function = emit::unit(unit, machine, operations)?;
        let code = self.memory.add(wavesim_x64::compile(&function, &self.host)?)?;
        // SAFETY: `emit` makes functions of this signature, in this calling convention.
        Ok(unsafe { std::mem::transmute::<*const u8, Code>(code) })
    }

    /// Bytes of code.
    pub fn bytes(&self) -> usize {
        self.memory.bytes()
    }
}
