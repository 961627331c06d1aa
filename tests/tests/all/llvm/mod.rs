//! LLVM's assembler and disassembler as referees of ours, instruction by instruction.
//!
//! Random legal instructions of every entry of the tables go both ways where the tool is installed: our words to LLVM's text, our text to
//! LLVM's words. Every difference must belong to a class (`classes`), which says why it is there; `docs/llvm-differences.md` lists the same
//! classes. `filetests/llvm/assembly.*.expected` keeps one instruction of each entry for where LLVM is not installed (`BLESS=1` writes it).
//!
//! - `referee`: LLVM's tools, and what they answer.
//! - `classes`: reasons for differences.
//! - `instructions`: random instructions of every entry, both ways.
//! - `opcodes`: instructions that LLVM alone has.
//! - `lines`: lines as people write them, and legal lines with one change (`changed`).
//! - `line_classes`: reasons for which lines are judged otherwise.
//! - `code_objects`: compiled code, disassembled and assembled again.

mod changed;
mod classes;
mod code_objects;
mod instructions;
mod line_classes;
mod lines;
mod opcodes;
mod referee;
