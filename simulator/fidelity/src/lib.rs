//! How far the results of a run can be trusted (`--fidelity`, `docs/fidelity.md`).
//!
//! [`Fidelity`] observes a run. It counts the executed instructions by the class of their results
//! ([`isa_exactness`]), and follows the values of inexact ones through registers and memory to outputs, addresses,
//! branches and EXEC. Which bits of a result depend on inexact ones is found as the check of undefined registers finds
//! it: by running the instruction with other values. [`perturb`] replaces approximate operations by ones at an end of
//! their documented error, and compares outputs.
#![warn(missing_docs)]
// No files, threads, processes or clocks; clippy.toml lists the disallowed methods.
#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

mod memory;
pub mod origin;
pub mod perturb;
pub mod report;
mod sites;
mod taint;
mod transfer;
pub mod ulp;

pub use report::Report;
pub use taint::Fidelity;
