//! Instruction sets as data: what there is, how it is encoded, where operands are. Nothing here executes or
//! has a syntax.
//!
//! - [`arch`]: architectures and processors; [`tables`]: their descriptions, from the XML
//! - [`descriptor`]: the kernel descriptor
//! - [`inst`]: the one instruction type; [`codec`]: words to instructions and back
//! - [`operand`]: how an instruction's operands are found in its fields; [`dpp`]: which lanes DPP moves where;
//!   [`relative`]: VGPRs that M0 offsets
#![warn(missing_docs)]
// No files, threads, processes or clocks: clippy.toml has the list.
#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

pub mod arch;
pub mod codec;
pub mod descriptor;
pub mod dpp;
pub mod inst;
pub mod operand;
pub mod relative;
#[expect(missing_docs, reason = "generated enums have the names of the descriptions")]
pub mod tables;
