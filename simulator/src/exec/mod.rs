//! Execution.

pub mod program;
