//! Tests of text kernels in one binary.

mod body;
mod constant;
mod lex;
mod print;
mod rules;
