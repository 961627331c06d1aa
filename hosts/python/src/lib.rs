//! Native module of the Python package `wavesim`: thin classes over [`wavesim_runtime`]. The public API is
//! the package in `python/wavesim`, which converts arrays to addresses and results to arrays.

mod campaign;
mod command;
mod debug;
mod device;
mod error;
mod interrupt;
mod outcome;
mod text;

use pyo3::prelude::*;

/// Native module of `wavesim`.
#[pymodule]
mod _native {
    #[pymodule_export]
    use super::campaign::{Results, cases, run_case};
    #[pymodule_export]
    use super::command::command;
    #[pymodule_export]
    use super::debug::Session;
    #[pymodule_export]
    use super::device::{Device, Kernel, Module};
    #[pymodule_export]
    use super::error::{Error, Fault};
    #[pymodule_export]
    use super::outcome::{Exploration, Finding, Outcome};
    #[pymodule_export]
    use super::text::{assemble, disassemble, explore_text, observe_text, run_text};
    use super::*;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))?;
        module.add("VARIABLES", wavesim_runtime::VARIABLES.to_vec())
    }
}
