//! The command `wavesim`, which the package installs.

use pyo3::prelude::*;
use std::ffi::OsString;

/// Runs `wavesim` with these arguments, of which the first is the name of the program, and returns the exit code.
#[pyfunction]
pub fn command(py: Python<'_>, arguments: Vec<OsString>) -> u8 {
    py.detach(|| wavesim::cli::command(arguments))
}
