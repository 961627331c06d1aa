//! Tests of the assembler and disassembler in one binary.

mod absent;
mod advice;
mod alias;
mod cdna5;
mod constant;
mod describe;
mod descriptor;
mod dialect;
mod expand;
mod legal;
mod macros;
mod matrix;
mod metadata;
mod operand;
mod print;
mod relocatable;
mod source;
mod swizzle;
mod target;
