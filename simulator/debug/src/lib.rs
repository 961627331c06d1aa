//! The debugger: runs a kernel forward and backward, stops it, and shows its state.
//!
//! - [`timeline`]: the run, one instruction of one wave at a time, with a journal and checkpoints
//! - [`search`]: searches backward through the run
//! - `checkpoints`, `pages`, [`stop_points`]: the state needed to go back, and the points at which a run of
//!   many steps returns to the debugger
//! - [`checks`]: the checks of `wavesim check` over this run
//! - [`stop`]: the reasons for a stop
//! - [`breakpoint`]: breakpoints and watchpoints
//! - [`expr`]: expressions over registers, arguments and memory
//! - [`frames`], [`variables`], [`history`]: functions and variables of the source, and what is assigned to them
//! - [`view`], [`explain`]: state, and the semantics of an instruction, as text
//! - [`command`]: the commands; [`command::COMMANDS`] is the table of them
//!
//! The debugger reads lines and returns text. It must not depend on terminals: the prompt, the screen and
//! scripts belong to the program that uses it.

#![warn(missing_docs)]
// No files, threads, processes or clocks; clippy.toml lists the disallowed methods.
#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

pub mod breakpoint;
mod checkpoints;
pub mod checks;
pub mod command;
pub mod explain;
pub mod expr;
mod format;
pub mod frames;
pub mod history;
mod pages;
pub mod search;
pub mod stop;
pub mod stop_points;
pub mod timeline;
mod tracked;
pub mod variables;
pub mod view;
