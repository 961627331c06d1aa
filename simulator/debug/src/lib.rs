//! The debugger: runs a kernel forward and backward, stops it, and shows its state.
//!
//! - [`timeline`]: the run, one instruction of one wave at a time, with a journal and checkpoints
//! - [`search`]: searches backward through the run
//! - `checkpoints`, `pages`, [`gate`]: how the run goes back, and where a run of many steps looks
//! - [`checks`]: the checks of `wavesim check` over this run
//! - [`stop`]: why the run stopped
//! - [`breakpoint`]: breakpoints and watchpoints
//! - [`expr`]: expressions over registers, arguments and memory
//! - [`view`], [`explain`]: state, and the meaning of an instruction, as text
//! - [`command`]: the commands; [`command::COMMANDS`] is the table of them
//!
//! The debugger reads lines and returns text. It must not know about terminals: the prompt, the screen and
//! scripts belong to the program that uses it.

#![warn(missing_docs)]
// No files, threads, processes or clocks: clippy.toml has the list.
#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

pub mod breakpoint;
mod checkpoints;
pub mod checks;
pub mod command;
pub mod explain;
pub mod expr;
pub mod gate;
mod pages;
pub mod search;
pub mod stop;
pub mod timeline;
pub mod view;
mod written;
