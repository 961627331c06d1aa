//! Signatures: the operands that a body may name, merged over the instruction's encodings.

use super::ir::Space;
use crate::mnemonic;
use crate::tables::{ArchTable, Instruction, Role};
use std::collections::BTreeMap;

/// The operands of an instruction by role, and its address space.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct InstrSig {
    /// Name in upper case, as in the tables.
    pub name: String,
    /// Every operand that the body may name, by role.
    pub operands: BTreeMap<Role, OperandInfo>,
    /// The instruction's family, from its functional group and name.
    pub family: Family,
    /// The bytes by which SCALE_OFFSET multiplies the offset in a register; 0 in encodings without this bit.
    pub offset_scale: u32,
    /// The instruction is in no XML: every operand name is accepted.
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
    /// The operand is a lane mask. A mask that is also an input keeps the bits of inactive lanes; other masks
    /// clear them.
    pub mask: bool,
    /// The operand is an SGPR.
    pub scalar: bool,
}

/// The family of an instruction, which determines shape, address space and the meaning of VCC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Family {
    /// Scalar ALU and control, and everything not in another family: `VCC` is the register.
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
            let encoding = &table.encodings[entry.enc as usize];
            let packed = encoding.name.contains("VOP3P");
            if encoding.fields.iter().any(|f| f.name == "SCALE_OFFSET") {
                sig.offset_scale = mnemonic::access_bytes(inst.name);
            }
            for operand in table.signatures[entry.sig as usize] {
                let info = sig.operands.entry(operand.role).or_insert(OperandInfo {
                    width: 0,
                    input: false,
                    output: false,
                    mask: false,
                    scalar: false,
                });
                // A 16-bit result of a packed encoding can be in either half of its register.
                let in_either_half = packed && operand.output && operand.size_bits == 16;
                info.width = info.width.max(if in_either_half { 32 } else { operand.size_bits });
                info.input |= operand.input;
                info.output |= operand.output;
                let ty = table.operand_types[operand.ty as usize].name;
                info.scalar |= ty.starts_with("OPR_SREG") || ty.starts_with("OPR_SDST");
                info.mask |= table.formats[operand.format as usize].is_lane_mask();
            }
        }
        sig
    }

    /// Creates the signature of an instruction that no XML describes.
    pub fn permissive(name: &str) -> InstrSig {
        InstrSig {
            name: name.to_string(),
            operands: BTreeMap::new(),
            family: family(name, ""),
            offset_scale: 0,
            permissive: true,
        }
    }
}

/// Derives the family from AMD's naming scheme; for other names, from the functional group. Bodies of the
/// latter name the address space themselves.
fn family(name: &str, group: &str) -> Family {
    match mnemonic::memory(name) {
        _ if group == "SMEM" => Family::Memory(Space::Scalar),
        Some(space) => Family::Memory(space),
        None if mnemonic::is_vector(name) || matches!(group, "VALU" | "VMEM") => Family::Vector,
        None => Family::Scalar,
    }
}
