//! What a body may name: an instruction's operands, merged over its encodings.

use super::ir::Space;
use crate::mnemonic;
use crate::tables::{ArchTable, Instruction, Role};
use std::collections::BTreeMap;

/// Operands of an instruction by role, and where its memory is.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct InstrSig {
    /// Upper case, as in the tables.
    pub name: String,
    /// Every operand that the body may name, by role.
    pub operands: BTreeMap<Role, OperandInfo>,
    /// Kind of instruction, from its functional group and name.
    pub family: Family,
    /// In no XML: every operand name is accepted.
    pub permissive: bool,
}

/// An operand, merged over the instruction's encodings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OperandInfo {
    /// Largest width over the encodings, in bits.
    pub width: u16,
    /// Some encoding reads it.
    pub input: bool,
    /// Some encoding writes it.
    pub output: bool,
    /// A lane mask. One that is also an input keeps the bits of inactive lanes; others clear them.
    pub mask: bool,
    /// SGPRs only.
    pub scalar: bool,
}

/// The kind of instruction, which decides shape, address space and meaning of VCC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Family {
    /// Scalar ALU and control, and whatever is neither of the others: `VCC` is the register.
    #[default]
    Scalar,
    /// Vector ALU: `VCC` is a lane mask operand.
    Vector,
    /// Accesses memory: `MEM[…]` is in this address space.
    Memory(Space),
}

impl InstrSig {
    /// Merges the operands of an instruction's entries.
    pub fn from_table(table: &ArchTable, inst: &Instruction) -> InstrSig {
        let mut sig = InstrSig { name: inst.name.to_string(), ..InstrSig::default() };
        sig.family = family(inst.name, inst.group());
        for entry in &table.entries[inst.entries.0 as usize..][..inst.entries.1 as usize] {
            let packed = table.encodings[entry.enc as usize].name.contains("VOP3P");
            for operand in table.signatures[entry.sig as usize] {
                let info = sig.operands.entry(operand.role).or_insert(OperandInfo {
                    width: 0,
                    input: false,
                    output: false,
                    mask: false,
                    scalar: false,
                });
                // A 16-bit result of a packed encoding can be either half of its register.
                let either = packed && operand.output && operand.size_bits == 16;
                info.width = info.width.max(if either { 32 } else { operand.size_bits });
                info.input |= operand.input;
                info.output |= operand.output;
                let ty = table.operand_types[operand.ty as usize].name;
                info.scalar |= ty.starts_with("OPR_SREG") || ty.starts_with("OPR_SDST");
                info.mask |= table.formats[operand.format as usize].is_lane_mask();
            }
        }
        sig
    }

    /// For an instruction that no XML describes.
    pub fn permissive(name: &str) -> InstrSig {
        InstrSig {
            name: name.to_string(),
            operands: BTreeMap::new(),
            family: family(name, ""),
            permissive: true,
        }
    }
}

/// AMD's names say it; for others the functional group does, and bodies name the memory themselves.
fn family(name: &str, group: &str) -> Family {
    match mnemonic::memory(name) {
        _ if group == "SMEM" => Family::Memory(Space::Scalar),
        Some(space) => Family::Memory(space),
        None if mnemonic::is_vector(name) || matches!(group, "VALU" | "VMEM") => Family::Vector,
        None => Family::Scalar,
    }
}
