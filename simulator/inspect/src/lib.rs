//! What a run did, by observers: checks that hardware does not make, traces and profiles; and instruction conformance records.
#![warn(missing_docs)]
// No files, threads, processes or clocks: clippy.toml has the list.
#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

pub mod check;
pub mod conform;
pub mod trace;
