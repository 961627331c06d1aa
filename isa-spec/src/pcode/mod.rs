//! The pseudocode language.
pub mod ast;
pub mod builtins;
pub mod check;
pub mod ir;
pub mod parse;
pub mod print;
pub mod shape;
pub mod sig;
pub mod token;
pub mod visit;
