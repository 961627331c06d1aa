//! Operands that take several fields: scalar memory offsets, image addresses, interpolation attributes.

use super::Matcher;
use crate::dialect::POSITIVE_BUFFER_OFFSETS;
use crate::error::{AsmError, Span};
use crate::form::{Size, Slot};
use crate::image;
use crate::operand::{ModifierValue, Operand, Reg, Value};

impl<'a, 't> Matcher<'a, 't> {
    pub(super) fn scalar_offset(&mut self, slot: &Slot, operand: &Operand) -> Result<(), AsmError> {
        let (name, field) = if self.has("IOFFSET") { ("IOFFSET", "IOFFSET") } else { ("OFFSET", "OFFSET") };
        let fields = self.inst.encoding(self.options.arch.table()).fields;
        let width = fields.iter().find(|f| f.name == name).map_or(21, |f| f.width());
        let line = self.line;
        // Buffer offsets are unsigned. RDNA 4 has 24-bit offsets, which LLVM treats as signed even for
        // buffers.
        let buffer = |s: &Slot| {
            s.field.is_some_and(|f| fields[f as usize].name == "SBASE") && s.size == Size::Bits(128)
        };
        let positive = field == "OFFSET" || POSITIVE_BUFFER_OFFSETS.has(self.options.arch);
        let unsigned = positive && self.form.slots.iter().any(buffer);
        let check = |value: i64, span: Span| {
            let (min, max) = (-(1i64 << (width - 1)), (1i64 << (width - 1)) - 1);
            let min = if unsigned { 0 } else { min };
            if (min..=max).contains(&value) {
                Ok(value as u32 & ((1 << width) - 1))
            } else {
                Err(AsmError::new(span, format!("{value} does not fit an offset of {width} bits"))
                    .help(format!("from {min} to {max}")))
            }
        };
        // CDNA: bits select register and immediate; a register without an immediate is encoded in the
        // immediate field.
        let bits = self.has("SOFFSET_EN");
        let both = line.modifiers.iter().any(|m| m.name == "offset");
        if let Value::Int(value) = operand.value {
            let value = check(value, operand.span)?;
            self.set(field, value);
        } else {
            self.value(slot, operand, 1)?;
            if bits && both {
                self.set("SOFFSET_EN", 1);
            } else if bits {
                let register = self.get("SOFFSET");
                self.set(field, register);
                self.set("SOFFSET", 0);
                self.set("IMM", 0);
            }
        }
        if let Some(at) = line.modifiers.iter().position(|m| m.name == "offset") {
            let m = &line.modifiers[at];
            if matches!(operand.value, Value::Int(_)) {
                return Err(AsmError::new(m.span, "the offset is already given by the operand"));
            }
            let ModifierValue::Int(value) = m.value else {
                return Err(AsmError::new(m.value_span, "`offset:` takes a number"));
            };
            let value = check(value, m.value_span)?;
            self.set(field, value);
            self.consumed_modifier = Some(at);
        }
        Ok(())
    }

    pub(super) fn image_address(&mut self, slot: &Slot, operand: &Operand) -> Result<(), AsmError> {
        if operand.neg || operand.abs {
            return Err(AsmError::new(operand.span, "addresses take no sign and no absolute value"));
        }
        let table = self.options.arch.table();
        let arch = self.options.arch;
        let total = image::address_registers(&self.inst, arch);
        // If each address has a field of its own, the last field may be a range that holds the remaining
        // addresses.
        let fields = self.inst.encoding(table).fields;
        let mut places: Vec<u8> = Vec::new();
        for n in 0..5 {
            let wanted = if n == 0 {
                vec!["VADDR0".to_string(), "VADDR".to_string()]
            } else {
                vec![format!("VADDR{n}")]
            };
            places.extend(fields.iter().position(|f| wanted.iter().any(|w| f.name == w)).map(|at| at as u8));
        }
        let regs: Vec<Reg> = match &operand.value {
            Value::Reg(reg) => vec![*reg],
            Value::List(regs) => regs.clone(),
            _ => return Err(self.mismatch(slot, operand)),
        };
        let ray = image::ray_addresses(&self.inst, arch);
        let sizes = ray.map_or_else(|| vec![1; total as usize], <[u16]>::to_vec);
        let wrong = |want: String| AsmError::new(operand.span, format!("the addresses are {want}"));
        if places.len() == 1 {
            let [reg] = regs.as_slice() else {
                return Err(wrong(format!("{total} consecutive vector registers")));
            };
            // LLVM versions without ranges of 5 to 7 registers wrote 8 registers instead.
            let count = if reg.count == 8 && (5..8).contains(&total) { 8 } else { total };
            return self.address(slot, slot.field, reg, count, operand.span);
        }
        let own = sizes.len().min(places.len());
        let mut left = total;
        if regs.len() != own {
            return Err(wrong(format!("{own} registers or ranges in brackets, {total} registers in all")));
        }
        for (at, reg) in regs.iter().enumerate() {
            let count = if at + 1 == own { left } else { sizes[at] };
            self.address(slot, Some(places[at]), reg, count, operand.span)?;
            left -= count.min(left);
        }
        Ok(())
    }

    pub(super) fn address(
        &mut self,
        slot: &Slot,
        field: Option<u8>,
        reg: &Reg,
        count: u16,
        span: Span,
    ) -> Result<(), AsmError> {
        let slot = Slot { field, size: Size::Bits(32 * count), ..slot.clone() };
        let code = self.register(&slot, reg, count, span)?;
        self.set_slot(&slot, code);
        Ok(())
    }

    pub(super) fn attribute(&mut self, slot: &Slot, operand: &Operand) -> Result<(), AsmError> {
        let word = match &operand.value {
            Value::Word(word) => *word,
            _ => "",
        };
        let parsed = word.rsplit_once('.').and_then(|(name, channel)| {
            let number = name.strip_prefix("attr")?.parse::<u32>().ok()?;
            Some((number, "xyzw".find(channel).filter(|_| channel.len() == 1)? as u32))
        });
        let Some((number, channel)) = parsed.filter(|p| p.0 <= LAST_ATTRIBUTE) else {
            return Err(self.mismatch(slot, operand));
        };
        self.set_slot(slot, number);
        self.set("ATTR_CHAN", channel);
        Ok(())
    }
}

/// The highest attribute number (RDNA ISA manuals, *Parameter Interpolation*).
const LAST_ATTRIBUTE: u32 = 32;
