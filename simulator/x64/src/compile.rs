//! The compilation pipeline, from a function to machine code.

use crate::allocated::Allocated;
use crate::backend::assemble;
use crate::check::check;
use crate::error::CompileError;
use crate::function::Function;
use crate::host::Host;
use crate::target::Target;
use crate::verify::verify;
use std::sync::LazyLock;

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

/// Returns whether functions are verified and their allocations are checked: in builds with debug assertions, and if
/// the environment variable `WAVESIM_VERIFY` is 1. The checks take about as long as compilation.
pub fn checks() -> bool {
    static SET: LazyLock<bool> =
        LazyLock::new(|| std::env::var_os("WAVESIM_VERIFY").is_some_and(|value| value == "1"));
    cfg!(debug_assertions) || *SET
}

/// Compiles a function for this host. On x86-64, it follows the System V calling convention on every system; on aarch64,
/// the C calling convention (AAPCS64).
///
/// The function must keep the rules of [`verify()`]; [`checks`] says when they are verified.
pub fn compile(function: &Function, host: &Host) -> Result<Compiled, CompileError> {
    let assembled = assemble(&allocated(function, host.target)?, |_, _| ())?;
    Ok(Compiled { bytes: assembled.bytes })
}

/// Decides where the values of a function are.
pub(crate) fn allocated<'a>(
    function: &'a Function,
    target: &'static Target,
) -> Result<Allocated<'a>, CompileError> {
    if checks() {
        verify(function).map_err(CompileError::Invalid)?;
    }
    let allocated = Allocated::new(function, target);
    if checks() {
        check(&allocated).map_err(CompileError::Allocation)?;
    }
    Ok(allocated)
}
