//! VGPRs that M0 offsets while MODE says so (CDNA 3 and 4 manuals, *VGPR Indexing*): the instruction that runs in place of the one that
//! stands in the code.

use crate::arch::Arch;
use crate::inst::Inst;
use crate::operand::{self, ACC, Code, Fmt, Operand};
use isa_spec::tables::Role;

/// MODE.GPR_IDX_EN: M0 offsets the VGPRs of vector arithmetic.
pub const GPR_IDX_EN: u32 = 1 << 27;
/// MODE.VSKIP: vector instructions do nothing.
pub const VSKIP: u32 = 1 << 28;
/// Bits of M0 that are the offset.
pub const INDEX: u32 = 0xff;
/// Bits of M0 that enable the index for an operand each ([`enable_bit`]).
pub const ENABLE: u32 = 0xf << 12;

/// A register that is offset beyond those that the wave has: the manuals leave open what happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("v{register} at index {index} of M0 is beyond the {count} VGPRs of the wave")]
pub struct OutOfRange {
    /// The register that the instruction names.
    pub register: u32,
    /// What M0 adds.
    pub index: u32,
    /// VGPRs that there are.
    pub count: u32,
}

/// The bit of M0 that has the VGPRs of an operand offset.
pub fn enable_bit(role: Role) -> Option<u32> {
    match role {
        Role::S0 => Some(12),
        Role::S1 => Some(13),
        Role::S2 => Some(14),
        Role::D0 => Some(15),
        _ => None,
    }
}

/// What is added to the VGPRs of operands with this bit; none if they stand as they are.
pub fn index(mode: u32, m0: u32, bit: u32) -> Option<u32> {
    (mode & GPR_IDX_EN != 0 && m0 >> bit & 1 != 0).then_some(m0 & INDEX)
}

/// Whether MODE.VSKIP passes over an instruction: all of vector arithmetic and memory.
pub fn is_skipped(arch: Arch, inst: &Inst) -> bool {
    arch.is_cdna() && matches!(inst.instruction(arch.table()).group(), "VALU" | "VMEM" | "LDS")
}

/// The VGPR and the dwords of an operand that can be offset, with its bit of M0.
pub fn relative_vgpr(arch: Arch, inst: &Inst, operand: &Operand) -> Option<(u16, u8, u32)> {
    if !arch.is_cdna() || operand.fmt == Fmt::Mask || inst.instruction(arch.table()).group() != "VALU" {
        return None;
    }
    let bit = enable_bit(operand.role)?;
    match operand::code(arch, operand, operand::binding(arch, inst.entry).value(inst, operand)?) {
        Code::Vgpr(register) if (register as usize) < ACC => {
            Some((register, operand.size_bits.div_ceil(32).max(1) as u8, bit))
        }
        _ => None,
    }
}

/// The register in place of one, if the wave has as many.
pub fn offset(register: u32, dwords: u8, index: u32, count: u32) -> Result<u32, OutOfRange> {
    match register + index + dwords as u32 <= count {
        true => Ok(register + index),
        false => Err(OutOfRange { register, index, count }),
    }
}

/// The instruction with the registers that it accesses in a wave of `count` VGPRs with this MODE and M0.
///
/// # Errors
/// If one of them is not there.
pub fn resolved(arch: Arch, inst: &Inst, mode: u32, m0: u32, count: u32) -> Result<Inst, OutOfRange> {
    let mut out = *inst;
    for operand in &operand::binding(arch, inst.entry).operands {
        if let (Some(field), Some((register, dwords, bit))) =
            (operand.field, relative_vgpr(arch, inst, operand))
            && let Some(index) = index(mode, m0, bit)
        {
            let to = offset(register as u32, dwords, index, count)?;
            // From the original: a register that is source and result has one field.
            out.fields[field as usize] = inst.fields[field as usize] + to - register as u32;
        }
    }
    Ok(out)
}
