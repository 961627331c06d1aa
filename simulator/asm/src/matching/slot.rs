//! Matching of one operand against one slot, by the slot's kind.

use super::value::is_off;
use super::{Matcher, Trait};
use crate::constant::{self, Encoded};
use crate::error::{AsmError, Span, suggest};
use crate::form::{Imm, Slot, SlotKind};
use crate::image;
use crate::operand::{Line, Operand, RegBase, Special, Value};

impl<'a, 't> Matcher<'a, 't> {
    /// Matches a slot and returns the number of operands consumed.
    pub(super) fn slot(
        &mut self,
        slot: &Slot,
        operands: &'a [Operand<'t>],
        line: &Line<'t>,
    ) -> Result<usize, AsmError> {
        let Some(operand) = operands.first() else {
            let end = Span::new(line.span.end, line.span.end);
            return Err(self.error(end, || {
                format!("`{}` needs another operand: {}", line.mnemonic, self.expected(slot))
            }));
        };
        let wave = self.options.wave;
        let null = matches!(&operand.value, Value::Reg(r) if r.base == RegBase::Special(Special::Null));
        if null && self.form.traits.has(Trait::TensorGroups) {
            return Err(self.mismatch(slot, operand));
        }
        match slot.kind {
            SlotKind::Imm(imm) => return self.immediate(slot, imm, operands),
            SlotKind::Value => {
                let count = slot.registers(&self.inst, self.options);
                self.value(slot, operand, count)?;
            }
            SlotKind::MaskOrVcc => {
                let vcc = matches!(&operand.value, Value::Reg(r) if r.base == RegBase::Special(Special::VccLo) && r.count == 2);
                self.set("SD", u32::from(!vcc));
                if !vcc {
                    self.value(slot, operand, slot.size.registers(wave))?;
                }
            }
            SlotKind::Vcc => {
                let vcc = matches!(&operand.value, Value::Reg(r)
                    if r.base == RegBase::Special(Special::VccLo) && r.count as u32 == wave / 32);
                if !vcc || operand.neg || operand.abs {
                    let name = if wave == 64 { "vcc" } else { "vcc_lo" };
                    return Err(
                        self.error(operand.span, || format!("this operand must be {name}, the wave's mask"))
                    );
                }
            }
            SlotKind::Literal => {
                if operand.neg || operand.abs {
                    return Err(AsmError::new(operand.span, "a literal takes no sign and no absolute value"));
                }
                let bits = match &operand.value {
                    Value::Expr(_) | Value::Word(_) => {
                        self.symbol_literal(slot, operand)?;
                        0
                    }
                    value if self.form.literal_hi.is_some() => constant::wide_literal(value, operand.literal)
                        .map_err(|what| AsmError::new(operand.span, what))?,
                    value => match constant::encode(value, slot.constant, true) {
                        Ok(Encoded::Literal(bits)) => bits as u64,
                        Ok(_) => 0,
                        Err(what) => return Err(AsmError::new(operand.span, what)),
                    },
                };
                self.set_literal(bits, operand.span)?;
            }
            SlotKind::ScalarOffset => self.scalar_offset(slot, operand)?,
            SlotKind::FlatAddr => {
                // With a scalar base the address is a 32-bit offset.
                let base = operands[1..].iter().any(|o| match &o.value {
                    Value::Reg(r) => {
                        matches!(r.base, RegBase::Sgpr(_) | RegBase::Ttmp(_) | RegBase::Special(_))
                    }
                    _ => false,
                });
                let has_base = |s: &Slot| matches!(s.kind, SlotKind::FlatBase | SlotKind::OptionalBase);
                let narrow = base && self.form.slots.iter().any(has_base);
                self.value(slot, operand, if narrow { 1 } else { 2 })?;
            }
            SlotKind::FlatBase | SlotKind::ScratchBase => {
                if !is_off(operand) {
                    self.value(slot, operand, slot.size.registers(wave))?;
                }
            }
            SlotKind::OptionalBase | SlotKind::OptionalGroup => {
                self.value(slot, operand, slot.size.registers(wave))?;
            }
            SlotKind::ScratchAddr => {
                if !is_off(operand) {
                    self.value(slot, operand, 1)?;
                    self.set("SVE", 1);
                }
            }
            SlotKind::BufferAddr => {
                let wide = self.get("IDXEN") + self.get("OFFEN");
                if wide == 0 {
                    if !is_off(operand) {
                        return Err(AsmError::new(
                            operand.span,
                            "without `idxen` or `offen` the address is `off`",
                        ));
                    }
                } else {
                    self.value(slot, operand, wide as u16)?;
                }
            }
            SlotKind::BufferData => {
                let count = slot.size.registers(wave) + self.get("TFE") as u16;
                self.value(slot, operand, count)?;
            }
            SlotKind::ImageData => {
                let listed = slot.size.registers(wave);
                let count = image::data_registers(&self.inst, self.options.arch, listed);
                self.value(slot, operand, count)?;
            }
            SlotKind::ImageAddr => self.image_address(slot, operand)?,
            SlotKind::Target => {
                let Value::Word(word) = &operand.value else {
                    return Err(self.mismatch(slot, operand));
                };
                let types = slot.names;
                let Some(value) = types.value(word) else {
                    let error = AsmError::new(operand.span, format!("`{word}` is not an export target"));
                    return Err(match suggest(word, types.all()) {
                        Some(help) => error.help(help),
                        None => error,
                    });
                };
                self.set_slot(slot, value);
            }
            SlotKind::Export(n) => {
                if !is_off(operand) {
                    self.value(slot, operand, 1)?;
                    let en = self.get("EN");
                    self.set("EN", en | 1 << n);
                }
            }
            SlotKind::Attribute => self.attribute(slot, operand)?,
        }
        Ok(1)
    }

    /// Describes the operand that a slot expects.
    pub(super) fn expected(&self, slot: &Slot) -> String {
        let ty = self.options.arch.table().operand_types[slot.ty as usize].name;
        let count = slot.size.registers(self.options.wave);
        let registers = |what: &str| match count {
            1 => format!("a {what} register"),
            n => format!("{n} {what} registers"),
        };
        match slot.kind {
            SlotKind::Imm(Imm::Label) => "a label".to_string(),
            SlotKind::Imm(_) => "a 16-bit integer".to_string(),
            SlotKind::Vcc => if self.options.wave == 64 { "vcc" } else { "vcc_lo" }.to_string(),
            SlotKind::Literal => "a 32-bit number".to_string(),
            SlotKind::Target => "an export target, as in mrt0 or pos0".to_string(),
            SlotKind::Attribute => "an attribute, as in attr0.x".to_string(),
            SlotKind::FlatBase | SlotKind::ScratchBase => format!("{} or `off`", registers("scalar")),
            SlotKind::ScratchAddr | SlotKind::BufferAddr | SlotKind::Export(_) => {
                "a vector register or `off`".to_string()
            }
            _ if ty.contains("VGPR") => registers("vector"),
            _ if ty.starts_with("OPR_SSRC") => format!("{} or a constant", registers("scalar")),
            _ if ty == "OPR_SRC" => {
                if count == 1 {
                    "a register or a constant".to_string()
                } else {
                    format!("{count} registers or a constant")
                }
            }
            _ => registers("scalar"),
        }
    }

    pub(super) fn mismatch(&self, slot: &Slot, operand: &Operand) -> AsmError {
        self.error(operand.span, || format!("expected {}", self.expected(slot)))
    }
}
