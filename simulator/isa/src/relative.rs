//! VGPR indexing (CDNA 3 and 4 manuals, *VGPR Indexing*): while MODE enables it, M0 is added to VGPR numbers.
//! Computes the instruction that effectively executes.

use crate::arch::Arch;
use crate::inst::Inst;
use crate::operand::{self, ACC, Code, Fmt, Operand};
use isa_spec::tables::Role;

/// MODE.GPR_IDX_EN: adds M0 to the VGPR numbers of vector ALU instructions.
pub const GPR_IDX_EN: u32 = 1 << 27;
/// MODE.VSKIP: skips vector instructions.
pub const VSKIP: u32 = 1 << 28;
/// The bits of M0 that hold the index.
pub const INDEX_MASK: u32 = 0xff;
/// The bits of M0 that enable indexing per operand ([`enable_bit`]).
pub const ENABLE_MASK: u32 = 0xf << 12;

/// An indexed register beyond the wave's VGPRs; the manuals do not define the behaviour.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("v{register} at index {index} of M0 is beyond the {count} VGPRs of the wave")]
pub struct OutOfRange {
    /// The register named by the instruction.
    pub register: u32,
    /// The index in M0.
    pub index: u32,
    /// The number of VGPRs of the wave.
    pub count: u32,
}

/// The bit of M0 that enables indexing for an operand.
pub fn enable_bit(role: Role) -> Option<u32> {
    match role {
        Role::S0 => Some(12),
        Role::S1 => Some(13),
        Role::S2 => Some(14),
        Role::D0 => Some(15),
        _ => None,
    }
}

/// The index for operands with this enable bit; `None` if disabled.
pub fn index(mode: u32, m0: u32, bit: u32) -> Option<u32> {
    (mode & GPR_IDX_EN != 0 && m0 >> bit & 1 != 0).then_some(m0 & INDEX_MASK)
}

/// Returns whether MODE.VSKIP skips an instruction: all vector ALU and memory instructions.
pub fn is_skipped(arch: Arch, inst: &Inst) -> bool {
    arch.facts().instruction_modes
        && matches!(inst.instruction(arch.table()).group(), "VALU" | "VMEM" | "LDS")
}

/// The VGPR, the number of dwords and the enable bit of an operand that can be indexed.
pub fn relative_vgpr(arch: Arch, inst: &Inst, operand: &Operand) -> Option<(u16, u8, u32)> {
    if !arch.facts().instruction_modes
        || operand.fmt == Fmt::Mask
        || inst.instruction(arch.table()).group() != "VALU"
    {
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

/// The indexed register, if the wave has it.
pub fn offset(register: u32, dwords: u8, index: u32, count: u32) -> Result<u32, OutOfRange> {
    match register + index + dwords as u32 <= count {
        true => Ok(register + index),
        false => Err(OutOfRange { register, index, count }),
    }
}

/// Returns the instruction with indexed registers resolved for a wave of `count` VGPRs with this MODE and M0.
///
/// # Errors
/// An indexed register is out of range.
pub fn resolved(arch: Arch, inst: &Inst, mode: u32, m0: u32, count: u32) -> Result<Inst, OutOfRange> {
    let mut out = *inst;
    for operand in &operand::binding(arch, inst.entry).operands {
        if let (Some(field), Some((register, dwords, bit))) =
            (operand.field, relative_vgpr(arch, inst, operand))
            && let Some(index) = index(mode, m0, bit)
        {
            let to = offset(register as u32, dwords, index, count)?;
            // Computed from the original value: a register that is both source and result has a single field.
            out.fields[field as usize] = inst.fields[field as usize] + to - register as u32;
        }
    }
    Ok(out)
}
