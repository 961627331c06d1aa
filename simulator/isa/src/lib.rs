//! Instruction sets as data: instructions, encodings and operands. Nothing here executes or defines a syntax.
//!
//! - [`arch`]: architectures and processors; [`tables`]: their tables, generated from the XML
//! - [`descriptor`]: the kernel descriptor
//! - [`inst`]: the common instruction type; [`codec`]: conversion between words and instructions
//! - [`image`]: the sizes of addresses and data of image instructions
//! - [`operand`]: binding of operands to encoding fields; [`dpp`]: DPP lane mappings; [`relative`]: VGPR
//!   indexing by M0
#![warn(missing_docs)]
// No files, threads, processes or clocks; clippy.toml lists the disallowed methods.
#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

pub mod arch;
pub mod codec;
pub mod descriptor;
pub mod dpp;
pub mod image;
pub mod inst;
pub mod operand;
mod registers;
pub mod relative;
#[expect(missing_docs, reason = "generated enums have the names of the descriptions")]
pub mod tables;
