//! The pseudocode language.
pub mod ast;
pub mod ir;
