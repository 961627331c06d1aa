//! Tests of the assembler of files in one binary.

mod descriptor;
mod expand;
mod macros;
mod metadata;
mod relocatable;
mod source;
mod target;
