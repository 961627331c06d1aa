//! Matching of immediates: numbers, symbols, and the named fields of partitioned operand types.

use super::Matcher;
use super::value::expression;
use crate::error::AsmError;
use crate::form::{Imm, Slot};
use crate::operand::{Operand, Value};
use crate::{Fixup, FixupKind, message, symbolic};

impl<'a, 't> Matcher<'a, 't> {
    pub(super) fn immediate(
        &mut self,
        slot: &Slot,
        imm: Imm,
        operands: &'a [Operand<'t>],
    ) -> Result<usize, AsmError> {
        let arch = self.options.arch;
        let operand = &operands[0];
        // Symbolic immediates extend to the last operand, except one that a register follows.
        let calls = operands.iter().take_while(|o| matches!(o.value, Value::Call(_))).count().max(1);
        let list = &operands[..calls];
        let value = match imm {
            Imm::Waitcnt => symbolic::parse_waitcnt(arch, slot.ty, list)?,
            Imm::Depctr => symbolic::parse_depctr(arch, slot.ty, list)?,
            Imm::Delay => symbolic::parse_delay(arch, slot.ty, list)?,
            Imm::Hwreg => symbolic::parse_hwreg(arch, slot.ty, &operands[..1])?,
            Imm::Sendmsg => message::parse(arch, &operands[..1])?,
            Imm::GprIndex => symbolic::parse_gpr_index(list)?,
            Imm::Label | Imm::Hex | Imm::Small | Imm::Optional | Imm::Version | Imm::Offset => {
                self.number(slot, imm, operand)?;
                return Ok(1);
            }
        };
        self.set_slot(slot, value);
        Ok(match imm {
            Imm::Hwreg | Imm::Sendmsg => 1,
            _ => calls,
        })
    }

    pub(super) fn number(&mut self, slot: &Slot, imm: Imm, operand: &Operand) -> Result<(), AsmError> {
        let Some(field) = slot.field else { return Ok(()) };
        let width = self.inst.encoding(self.options.arch.table()).fields[field as usize].width();
        match &operand.value {
            _ if operand.literal => Err(self.mismatch(slot, operand)),
            Value::Int(value) => {
                let min = if slot.unsigned { 0 } else { -(1i64 << (width - 1)) };
                let max = (1i64 << width) - 1;
                let max = if imm == Imm::Offset { -min - 1 } else { max };
                if !(min..=max).contains(value) || operand.neg || operand.abs {
                    return Err(AsmError::new(operand.span, format!("{value} does not fit {width} bits")));
                }
                self.set_slot(slot, *value as u32 & ((1u64 << width) - 1) as u32);
                Ok(())
            }
            Value::Expr(_) | Value::Word(_) => {
                let expr = expression(operand).ok_or_else(|| self.mismatch(slot, operand))?;
                let predefined = |name: &str| symbolic::predefined(name);
                if let Ok(value) = expr.eval(&predefined) {
                    self.set_slot(slot, value as u32 & 0xffff);
                    return Ok(());
                }
                let kind = if imm == Imm::Label { FixupKind::Branch } else { FixupKind::Absolute };
                self.fixups.push(Fixup { field, kind, expr, span: operand.span });
                Ok(())
            }
            _ => Err(self.mismatch(slot, operand)),
        }
    }
}
