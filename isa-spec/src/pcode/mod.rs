//! The pseudocode language.
pub mod ast;
pub mod ir;
pub mod parse;
mod template;
pub mod token;
