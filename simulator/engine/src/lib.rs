//! Running programs: the interpreter, the observed run, the reference engine, and the scheduler above them.
//!
//! - [`interp`]: the handler of each operation in turn; [`observe`]: the same with an observer
//! - [`reference`]: instructions by the evaluator, slow and obvious
//! - [`sched`]: dispatches, workgroups, turns of waves

// No files, threads, processes or clocks: clippy.toml has the list.
#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

mod float_control;
pub mod interp;
pub mod observe;
pub mod reference;
pub mod sched;

pub use interp::step;

#[cfg(test)]
mod tests;
