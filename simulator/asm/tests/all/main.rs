//! Tests of the syntax of instructions in one binary.

mod absent;
mod advice;
mod alias;
mod cdna5;
mod constant;
mod describe;
mod dialect;
mod legal;
mod matrix;
mod operand;
mod print;
mod swizzle;
