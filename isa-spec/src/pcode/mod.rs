//! The pseudocode language: lexer, parser, syntax tree and printer; the checker, which makes a typed tree of
//! it; and the walks over that tree. It must not know how anything is executed.
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
