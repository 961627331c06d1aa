//! The parts of an ISA description that need neither code generation nor a running machine: the XML model and
//! its loader, the pseudocode language from text to typed semantics, and the reference evaluator.
#![forbid(unsafe_code)]
#![warn(missing_docs)]
// Clippy rejects access to files (except in `data`), threads, processes and clocks: clippy.toml has the list.
#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

pub mod arith;
pub mod canonical;
#[allow(clippy::disallowed_methods, reason = "the compiler and tests read the source tree")]
pub mod data;
pub mod diag;
pub mod eval;
pub mod facts;
pub mod mnemonic;
pub mod on_demand;
pub mod pattern;
pub mod pcode;
pub mod report;
pub mod roles;
pub mod source;
pub mod tables;
pub mod xml;
