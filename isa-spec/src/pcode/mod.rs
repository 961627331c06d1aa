//! The pseudocode language: lexer, parser, syntax tree and printer; the checker, which builds the typed tree;
//! and visitors of that tree. This module does not depend on how anything is executed.
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
