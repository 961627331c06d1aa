//! Conformance vectors: one instruction or a few, a start state, and an end state.
#![warn(missing_docs)]
// No files, threads, processes or clocks; clippy.toml lists the disallowed methods.
#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

pub mod compare;
pub mod disputed;
pub mod record;
pub mod run;

pub use disputed::disputed;
pub use record::{Record, read_file};
pub use run::{Engine, Outcome, run};
