//! Observers of a run: checks that hardware does not make, traces and profiles. Also the conformance records
//! of instructions.
#![warn(missing_docs)]
// No files, threads, processes or clocks; clippy.toml lists the disallowed methods.
#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

pub mod calls;
pub mod check;
pub mod conform;
pub mod trace;
