//! Execution of programs: the interpreter, the observed run, the reference engine, and the scheduler above
//! them.
//!
//! - [`interp`]: runs the handler of each operation; [`observe`]: does the same and calls an observer
//! - [`mod@reference`]: runs instructions through the evaluator; slow and obvious
//! - [`caches`]: what instructions mean for caches, and what these hold
//! - [`delayed`]: memory operations that take effect after their issue
//! - [`sched`]: schedules dispatches, workgroups and waves

// No files, threads, processes or clocks: clippy.toml lists the forbidden methods.
#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

pub mod caches;
mod compiled;
pub mod delayed;
mod execute;
mod faults;
mod float_control;
mod handlers;
pub mod interp;
pub mod observe;
pub mod reference;
pub mod sched;
mod step;

pub use step::step;

#[cfg(test)]
mod tests;
