//! Lowering of operands: the register or constant of each source of an operation, and the destination of its
//! result.

use super::modifiers::modifiers;
use super::{LimitExceeded, Lowered, slot};
use crate::isa::OpInfo;
use isa_spec::pcode::ir::Shape;
use isa_spec::tables::Role;
use wavesim_isa::arch::Arch;
use wavesim_isa::inst::Inst;
use wavesim_isa::operand::{self, Binding, Code, Fmt, Half, Operand};
use wavesim_rt::op::{Ext, Op, SLOTS, Source};
use wavesim_state::wave::{ALL_VGPRS, CONSTS, DISCARD, MAX_CONSTS, NULL, VCC_LO};

impl Lowered {
    /// Returns a constant as a source: in the register file that the operation's handler reads, if it is
    /// among the first constants, else in the pool.
    pub(super) fn constant(
        &mut self,
        shape: Shape,
        slot: usize,
        dwords: Vec<u32>,
        pool: &mut [u32; SLOTS],
    ) -> Result<Source, LimitExceeded> {
        let count = dwords.len();
        let place = self.pool_index(dwords)?;
        let at = place as usize;
        let in_file = match shape {
            Shape::Lane if at + count <= MAX_CONSTS => Source::vector(CONSTS + at),
            Shape::Lane => None,
            _ => Source::scalar_constant(at, count),
        };
        Ok(in_file.unwrap_or_else(|| {
            pool[slot] = place;
            Source::pool(slot)
        }))
    }

    #[allow(clippy::too_many_arguments)]
    pub(super) fn destination(
        &mut self,
        arch: Arch,
        inst: &Inst,
        binding: &'static Binding,
        operand: &Operand,
        info: &OpInfo,
        op: &mut Op,
        ext: &mut Ext,
    ) {
        let Some(field) = operand.field else {
            if operand.fmt == Fmt::Mask {
                op.d = VCC_LO as u16;
            }
            return;
        };
        let value = binding.value(inst, operand).unwrap_or(inst.fields[field as usize]);
        if operand.fmt == Fmt::Mask {
            op.d = Source::sgpr(operand::mask_register(operand, value)).number();
            if info.shape == Shape::Scalar {
                op.flags |= Op::SCALAR_DEST;
            }
            return;
        }
        match operand::code(arch, operand, value) {
            // Semantics that read the register number itself get all of it.
            Code::Vgpr(reg) if reg as usize >= ALL_VGPRS => op.d = DISCARD as u16,
            Code::Vgpr(reg) if info.indexed.contains(&operand.role) => op.d = reg,
            Code::Vgpr(reg) => {
                op.d = binding.register(operand, reg);
                if binding.half_shift(inst, operand, reg, true) != 0 {
                    op.flags |= Op::HIGH;
                }
                if !binding.returns(inst) {
                    if operand.input {
                        op.flags |= Op::OUTPUT | Op::NO_RESULT;
                    } else {
                        op.d = DISCARD as u16;
                    }
                }
            }
            Code::Sgpr(sgpr) => {
                op.d = Source::sgpr(sgpr).number();
                op.flags |= Op::SCALAR_DEST;
                ext.half_result = operand.fmt == Fmt::F16
                    && binding.get(inst, binding.mods.omod) + binding.get(inst, binding.mods.clamp) != 0;
            }
            Code::Fixed(_) => op.d = DISCARD as u16,
            _ => op.d = NULL as u16,
        }
        let float = matches!(operand.fmt, Fmt::F16 | Fmt::BF16 | Fmt::F32 | Fmt::F64)
            || operand.fmt == Fmt::Packed(Half::F16) && operand.size_bits == 32;
        let clamp = binding.get(inst, binding.mods.clamp) != 0 && !info.fields.contains(&"CLAMP");
        if float && (clamp || binding.get(inst, binding.mods.omod) != 0) {
            op.flags |= Op::OUTPUT;
        }
    }

    #[allow(clippy::too_many_arguments)]
    pub(super) fn source(
        &mut self,
        arch: Arch,
        inst: &Inst,
        binding: &'static Binding,
        operand: &Operand,
        info: &OpInfo,
        op: &mut Op,
        ext: &mut Ext,
        pool: &mut [u32; SLOTS],
    ) -> Result<(), LimitExceeded> {
        if operand.role == Role::S4 {
            return self.fifth(arch, inst, binding, operand, info, ext, pool);
        }
        let Some(slot) = slot(operand.role) else { return Ok(()) };
        let Some(value) = binding.value(inst, operand) else { return Ok(()) };
        if operand.fmt == Fmt::Mask {
            op.src[slot] = Source::sgpr(operand::mask_register(operand, value));
            return Ok(());
        }
        let code = operand::code(arch, operand, value);
        let mut reg = 0;
        op.src[slot] = match code {
            // Semantics that read the register number itself get all of it.
            Code::Vgpr(r) if info.indexed.contains(&operand.role) => Source::vgpr(r),
            Code::Vgpr(r) => {
                reg = r;
                Source::vgpr(binding.register(operand, r))
            }
            Code::Fixed(r) => Source::vgpr(r),
            Code::Sgpr(sgpr) => Source::sgpr(sgpr),
            // Operands other than registers have no number.
            _ if info.indexed.contains(&operand.role) => Source::NULL,
            Code::Int(_) | Code::Float(_) | Code::Literal | Code::Literal64 | Code::ScratchBase { .. } => {
                let dwords = constant_dwords(binding, inst, code, operand);
                self.constant(info.shape, slot, dwords, pool)?
            }
            _ => state_source(code),
        };
        if matches!(operand.role, Role::S0 | Role::S1 | Role::S2 | Role::S3) && info.shape != Shape::Scalar {
            modifiers(arch, inst, binding, operand, info, slot, reg, ext);
        }
        Ok(())
    }

    /// Lowers the fifth source: a register or a constant, without modifiers.
    #[allow(clippy::too_many_arguments)]
    pub(super) fn fifth(
        &mut self,
        arch: Arch,
        inst: &Inst,
        binding: &'static Binding,
        operand: &Operand,
        info: &OpInfo,
        ext: &mut Ext,
        pool: &mut [u32; SLOTS],
    ) -> Result<(), LimitExceeded> {
        let Some(value) = binding.value(inst, operand) else { return Ok(()) };
        let code = operand::code(arch, operand, value);
        ext.fifth = match code {
            Code::Vgpr(reg) => Source::vgpr(reg),
            Code::Sgpr(sgpr) => Source::sgpr(sgpr),
            Code::Int(_) | Code::Float(_) | Code::Literal | Code::Literal64 | Code::ScratchBase { .. } => {
                let dwords = constant_dwords(binding, inst, code, operand);
                self.constant(info.shape, SLOTS - 1, dwords, pool)?
            }
            _ => state_source(code),
        };
        Ok(())
    }
}

/// Returns the source of an operand that is neither a register nor a constant.
fn state_source(code: Code) -> Source {
    match code {
        Code::Scc => Source::SCC,
        Code::Vccz => Source::VCCZ,
        Code::Execz => Source::EXECZ,
        Code::SharedBase => Source::SHARED_BASE,
        Code::PrivateBase => Source::PRIVATE_BASE,
        Code::SharedLimit | Code::PrivateLimit => Source::LIMIT,
        _ => Source::NULL,
    }
}

/// Returns a constant as the dwords that the operand reads: as many as the widest semantics do.
fn constant_dwords(binding: &Binding, inst: &Inst, code: Code, operand: &Operand) -> Vec<u32> {
    let count = (operand.size_bits as u32).div_ceil(32).max(4);
    (0..count).map(|index| binding.constant(inst, code, operand, index)).collect()
}
