//! What kernels cost: time and resources, each number with its source.
//!
//! - [`data`]: the tables of costs, one file per architecture and per device
//! - [`class`]: the class of an instruction
//! - [`occupancy`]: resident waves, and what limits them
//! - [`lint`]: remarks about code without a run
//! - [`record`]: records what waves execute
//! - [`model`]: predicts the time of a launch from that
//! - [`profile`]: a run with its prediction; [`report`]: text, JSON, CSV, Perfetto, HTML
//! - [`what_if`]: changed figures
//!
//! `docs/cost.md` describes the files, the model, and its errors.
#![warn(missing_docs)]
// No files, threads, processes or clocks; clippy.toml lists the disallowed methods.
#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

pub mod class;
pub mod data;
pub mod lint;
pub mod model;
pub mod occupancy;
pub mod profile;
pub mod record;
pub mod report;
pub mod roofline;
mod waits;
pub mod what_if;
