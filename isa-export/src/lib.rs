//! Typed pseudocode in forms that other tools read: [`json`]; [`smt`] evaluates bodies symbolically, to terms of SMT
//! solvers.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod json;
pub mod smt;
