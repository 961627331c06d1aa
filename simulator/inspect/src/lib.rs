//! Checks of a run that hardware does not make.
#![warn(missing_docs)]
// No files, threads, processes or clocks; clippy.toml lists the disallowed methods.
#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

pub mod calls;
pub mod check;
pub mod sharing;
