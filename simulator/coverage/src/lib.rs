//! Coverage of kernels (`--coverage`, `docs/coverage.md`): which instructions have run, with which encodings, operands
//! and modes, in how many lanes, and which branches have been taken.
//!
//! [`Recorder`] observes a run. Its [`Coverage`] is a file, which [`Coverage::merge`] adds others to. Reports are text,
//! JSON ([`report`]), lcov's format ([`lcov`]) and HTML ([`html`]).
#![warn(missing_docs)]
// No files, threads, processes or clocks; clippy.toml lists the disallowed methods.
#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

pub mod file;
pub mod html;
pub mod lcov;
pub mod lines;
mod record;
pub mod report;

pub use file::Coverage;
pub use record::Recorder;
