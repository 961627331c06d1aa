//! The Language Server Protocol, with which editors understand kernels and pseudocode.
//!
//! - [`server`]: a session, from `initialize` to `exit`; [`settings`]: what a client can choose
//! - [`document`]: an open file; `positions`: lines and columns
//! - [`scan`]: the tokens of a kernel; [`analysis`]: its errors, and its instructions with their effects
//! - [`ranges`]: live registers, and the accesses that share a value
//! - `hover`, `complete`, `symbols`, `rename`, `highlight`, `lenses`, `hints`: the answers to requests about kernels
//! - `pseudocode`: the same about pseudocode
//! - [`run`]: runs and checks, whose results the editor shows in the text
//!
//! The diagnostics and the descriptions of instructions are those of the playground (`wavesim_playground`). The crate
//! must not use threads or standard streams: the caller of [`server::serve`] connects the client.

#![warn(missing_docs)]
// No files, threads, processes or clocks; clippy.toml lists the disallowed methods. Kernels name files through
// `wavesim_files`.
#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

pub mod analysis;
mod complete;
pub mod document;
mod highlight;
mod hints;
mod hover;
mod lenses;
mod positions;
mod pseudocode;
pub mod ranges;
mod rename;
pub mod run;
pub mod scan;
pub mod server;
pub mod settings;
mod symbols;

pub use lsp_server::{Connection, Message};
pub use server::{Error, serve};
