//! Compares our assembler and disassembler with LLVM's, instruction by instruction.
//!
//! If LLVM is installed, random legal instructions of every table entry are tested in both directions: our
//! words are disassembled by LLVM, and our text is assembled by LLVM. Every difference must belong to a class
//! (`classes`), which is documented with its reason in `docs/llvm-differences.md`.
//! `filetests/llvm/assembly.*.expected` has one instruction of each entry for machines without LLVM
//! (`BLESS=1` rewrites the file).
//!
//! - `referee`: running LLVM's tools and parsing their output.
//! - `classes`: classes of differences of instructions.
//! - `instructions`: random instructions of every entry.
//! - `opcodes`: instructions that only LLVM has.
//! - `lines`: handwritten lines, and legal lines with a single change (`changed`).
//! - `line_classes`: classes of differences of lines.
//! - `suite`: the lines of LLVM's own tests, if they are there.
//! - `code_objects`: compiled code, disassembled and reassembled.

mod changed;
mod classes;
mod code_objects;
mod instructions;
mod line_classes;
mod lines;
mod opcodes;
mod operand_codes;
mod referee;
mod suite;
