//! VGPR indexing (CDNA 3 and 4 manuals, *VGPR Indexing*): while MODE enables it, M0 is added to VGPR numbers.
//! On CDNA 5, MODE extends VGPR numbers. Computes the instruction that effectively executes.

use crate::arch::Arch;
use crate::inst::Inst;
use crate::operand::{self, ACC, Binding, Code, Fmt, Operand};
use isa_spec::tables::Role;

/// MODE.GPR_IDX_EN: adds M0 to the VGPR numbers of vector ALU instructions.
pub const GPR_IDX_EN: u32 = 1 << 27;
/// MODE.VSKIP: skips vector instructions.
pub const VSKIP: u32 = 1 << 28;
/// The bits of M0 that hold the index.
pub const INDEX_MASK: u32 = 0xff;
/// The bits of M0 that enable indexing per operand ([`enable_bit`]).
pub const ENABLE_MASK: u32 = 0xf << 12;

/// The bits of MODE that extend VGPR numbers, two for each position of an operand
/// ([`Operand::msb`]; CDNA5 manual, *Waves with up to 1024 VGPRs*).
pub const VGPR_MSBS: u32 = 0xff << 12;

/// The bits of MODE ([`VGPR_MSBS`]) after S_SET_VGPR_MSB with this immediate, which has the result's bits above those
/// of the sources; MODE has them below. The semantics are in pseudocode: this is for those who follow code without
/// executing it.
pub fn vgpr_msbs_of(immediate: u32) -> u32 {
    (immediate << 2 & 0xff | immediate >> 6 & 3) << VGPR_MSBS.trailing_zeros()
}

/// A register that the wave does not have; the manuals do not define the behaviour.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the variants say what their fields are")]
pub enum OutOfRange {
    /// An indexed register, the index in M0, and the number of VGPRs of the wave.
    #[error("v{register} at index {index} of M0 is beyond the {count} VGPRs of the wave")]
    Index { register: u32, index: u32, count: u32 },
    /// The number of a register with the bits in MODE, and the number of consecutive registers.
    #[error("{dwords} registers from v{register} on, by the bits in MODE, extend beyond the last VGPR")]
    Msb { register: u32, dwords: u8 },
}

/// The VGPR that MODE's bits at `position` select, if `dwords` registers from it on are within the file.
pub fn extended(register: u32, dwords: u8, mode: u32, position: u8, most: u32) -> Result<u32, OutOfRange> {
    let register = register + 256 * (mode >> position & 3);
    match register + dwords as u32 <= most {
        true => Ok(register),
        false => Err(OutOfRange::Msb { register, dwords }),
    }
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
        false => Err(OutOfRange::Index { register, index, count }),
    }
}

/// The VGPR, the number of dwords and the position in MODE of an operand that MODE can extend.
pub fn extensible_vgpr(
    arch: Arch,
    inst: &Inst,
    binding: &Binding,
    operand: &Operand,
) -> Option<(u32, u8, u8)> {
    let position = operand.msb.filter(|_| operand.fmt != Fmt::Mask)?;
    let Code::Vgpr(register) = operand::code(arch, operand, binding.value(inst, operand)?) else {
        return None;
    };
    let listed = operand.size_bits.div_ceil(32).max(1) as u8;
    let address = operand.role == Role::VAddr;
    let dwords =
        operand::address_registers(arch, inst).filter(|_| address).map_or(listed, |count| count as u8);
    Some((register as u32, dwords, position))
}

/// Returns the instruction with indexed and extended registers resolved for a wave of `count` VGPRs with this
/// MODE and M0.
///
/// # Errors
/// A register is out of range.
pub fn resolved(arch: Arch, inst: &Inst, mode: u32, m0: u32, count: u32) -> Result<Inst, OutOfRange> {
    let mut out = *inst;
    let binding = operand::binding(arch, inst.entry);
    for operand in &binding.operands {
        if let (Some(field), Some((register, dwords, bit))) =
            (operand.field, relative_vgpr(arch, inst, operand))
            && let Some(index) = index(mode, m0, bit)
        {
            let to = offset(register as u32, dwords, index, count)?;
            // Computed from the original value: a register that is both source and result has a single field.
            out.fields[field as usize] = inst.fields[field as usize] + to - register as u32;
        }
    }
    let vgprs = arch.facts().vgprs;
    if vgprs.msbs && mode & VGPR_MSBS != 0 {
        let second = binding.dual.then(|| operand::binding(arch, inst.entry_y));
        let second = second.into_iter().flat_map(|binding| binding.y.iter().map(move |o| (binding, o)));
        for (binding, operand) in binding.operands.iter().map(|o| (binding, o)).chain(second) {
            if let (Some(field), Some((register, dwords, position))) =
                (operand.field, extensible_vgpr(arch, inst, binding, operand))
            {
                // Bit 7 of a number in an encoding of 32 bits may select a half.
                let own = binding.register(operand, register as u16) as u32;
                let to = extended(own, dwords, mode, position, vgprs.most())?;
                out.fields[field as usize] = inst.fields[field as usize] + to - own;
            }
        }
    }
    Ok(out)
}
