//! Matching of registers and constants against a slot with an ordinary source or destination field.

use super::Matcher;
use crate::constant::{self, Encoded};
use crate::dialect::symbols::OTHER_REGISTERS;
use crate::dialect::{SIGN_EXTENDED_LITERALS, Trait};
use crate::error::{AsmError, Span, suggest};
use crate::expr::Expr;
use crate::form::{Bit, Constant, Size, Slot, SlotKind};
use crate::legal::last_sgpr;
use crate::operand::{self, Half, Operand, Reg, RegBase, Special, Value};
use crate::{Fixup, FixupKind};

impl<'a, 't> Matcher<'a, 't> {
    /// Matches a register or a constant.
    #[inline]
    pub(super) fn value(&mut self, slot: &Slot, operand: &Operand, count: u16) -> Result<(), AsmError> {
        if operand.sext {
            let Some(field) = slot.sext.filter(|_| !slot.signed && !operand.neg && !operand.abs) else {
                return Err(AsmError::new(
                    operand.span,
                    "only integers of which SDWA selects a part can be extended",
                ));
            };
            self.inst.fields[field as usize] = 1;
        }
        if operand.neg || operand.abs {
            // A literal of 64 bits would hold any number; the encoding with signs is preferred.
            let wide = self.form.literal_hi.is_some() && matches!(operand.value, Value::Int(_));
            if let Some(value) = fold_signs(slot, operand).filter(|_| !wide) {
                return self.constant(slot, &Operand { value, neg: false, abs: false, ..operand.clone() });
            }
            self.signs(slot, operand)?;
        }
        let reg = match &operand.value {
            Value::Reg(reg) => *reg,
            // A bracketed list of vector registers that are not addresses is another spelling of a range.
            Value::List(list) => operand::consecutive(list).ok_or_else(|| self.mismatch(slot, operand))?,
            _ => return self.constant(slot, operand),
        };
        if reg.base == RegBase::Special(Special::LdsDirect)
            && !self.options.arch.facts().instructions.lds_direct
        {
            let title = self.options.arch.facts().title;
            return Err(AsmError::new(operand.span, format!("{title} has no direct reads of LDS")));
        }
        let code = self.register(slot, &reg, count, operand.span)?;
        self.set_slot(slot, code);
        Ok(())
    }

    /// Matches a number, or a symbol whose value is not yet known.
    pub(super) fn constant(&mut self, slot: &Slot, operand: &Operand) -> Result<(), AsmError> {
        let types = slot.names;
        if matches!(operand.value, Value::Expr(_) | Value::Word(_)) {
            let literal =
                types.literal.filter(|_| self.has_narrow_literal() && !self.form.has_literal_operand);
            let Some(code) = literal else { return Err(self.unknown_word(slot, operand)) };
            self.symbol_literal(slot, operand)?;
            self.set_slot(slot, code);
            return self.set_literal(0, operand.span);
        }
        if !matches!(operand.value, Value::Int(_) | Value::Float(_)) {
            return Err(self.mismatch(slot, operand));
        }
        if operand.doubled && slot.signed && slot.source.is_some() {
            return Err(AsmError::new(operand.span, "one sign is enough").help("neg(-1) negates a number"));
        }
        let types = slot.scalars.unwrap_or(types);
        if !types.has_constants() {
            return Err(self.mismatch(slot, operand));
        }
        if let Some(field) = slot.scalar {
            self.inst.fields[field as usize] = 1;
        }
        let literal =
            operand.literal || slot.source == Some(0) && self.form.traits.has(Trait::NoInlineFirstSource);
        let encoded = constant::encode_in(&operand.value, slot.constant, literal, self.form.literals)
            .map_err(|what| AsmError::new(operand.span, what))?;
        let encoded = match (encoded, &operand.value) {
            (Encoded::Literal(_), Value::Int(value))
                if slot.constant == Constant::Int16 && SIGN_EXTENDED_LITERALS.has(self.options.arch) =>
            {
                Encoded::Literal(*value as u32)
            }
            _ => encoded,
        };
        let code = match encoded {
            Encoded::Integer(value) => types.integer(value),
            Encoded::Float(at) => types.value(constant::FLOATS[at].0),
            Encoded::Literal(_) | Encoded::Literal64(_) => {
                let bits = match encoded {
                    Encoded::Literal64(bits) => bits,
                    Encoded::Literal(bits) => bits as u64,
                    _ => 0,
                };
                let code = match self.form.literal_hi {
                    Some(_) => types.literal64,
                    None => types.literal.filter(|_| self.has_narrow_literal()),
                };
                if code.is_some() {
                    self.set_literal(bits, operand.span)?;
                }
                code
            }
        };
        match code {
            Some(code) => self.set_slot(slot, code),
            None if matches!(encoded, Encoded::Literal(_) | Encoded::Literal64(_)) => {
                return Err(AsmError::new(
                    operand.span,
                    "this form takes no literal; inline constants are -16 to 64 and ±0.5, ±1.0, ±2.0, ±4.0",
                ));
            }
            None => return Err(self.mismatch(slot, operand)),
        }
        Ok(())
    }

    pub(super) fn unknown_word(&self, slot: &Slot, operand: &Operand) -> AsmError {
        match &operand.value {
            Value::Word(word) if self.messages => {
                let error =
                    AsmError::new(operand.span, format!("expected {}, found `{word}`", self.expected(slot)));
                let names =
                    ["vcc", "vcc_lo", "vcc_hi", "exec", "exec_lo", "exec_hi", "m0", "null", "scc", "off"];
                match suggest(word, names.into_iter().filter(|name| name != word)) {
                    Some(help) => error.help(help),
                    None => error,
                }
            }
            _ => self.mismatch(slot, operand),
        }
    }

    pub(super) fn symbol_literal(&mut self, slot: &Slot, operand: &Operand) -> Result<(), AsmError> {
        let expr = expression(operand).ok_or_else(|| self.mismatch(slot, operand))?;
        let literal = self.form.literal.filter(|_| self.has_narrow_literal());
        let Some(field) = literal else { return Err(self.mismatch(slot, operand)) };
        self.fixups.push(Fixup { field, kind: FixupKind::Literal, expr, span: operand.span });
        Ok(())
    }

    fn has_narrow_literal(&self) -> bool {
        self.form.literal.is_some() && self.form.literal_hi.is_none()
    }

    pub(super) fn set_literal(&mut self, bits: u64, span: Span) -> Result<(), AsmError> {
        if self.literal.is_some_and(|l| l != bits) {
            return Err(AsmError::new(
                span,
                "an instruction holds one literal; this is a second, different one",
            ));
        }
        self.literal = Some(bits);
        Ok(())
    }

    /// Sets the NEG and ABS bits of the operand, if the encoding has them.
    pub(super) fn signs(&mut self, slot: &Slot, operand: &Operand) -> Result<(), AsmError> {
        if slot.source.is_none_or(|s| s > 2) {
            return Err(AsmError::new(operand.span, "this operand takes no sign and no absolute value"));
        }
        for (_, bit) in [(operand.neg, slot.neg), (operand.abs, slot.abs)].into_iter().filter(|w| w.0) {
            let Some(Bit { field, bit }) = bit else {
                return Err(AsmError::new(
                    operand.span,
                    "this form takes no sign and no absolute value of operands",
                ));
            };
            self.inst.fields[field as usize] |= 1 << bit;
        }
        if !slot.signed && !self.options.lenient {
            return Err(AsmError::new(
                operand.span,
                "this operand is not a float: it takes no sign and no absolute value",
            ));
        }
        Ok(())
    }

    pub(super) fn register(
        &mut self,
        slot: &Slot,
        reg: &Reg,
        count: u16,
        span: Span,
    ) -> Result<u32, AsmError> {
        let Some(code) = self.code(slot, reg, span)? else {
            return Err(self.invalid_register(slot, reg, count, span));
        };
        let any_width = |reg: &Reg| matches!(reg.base, RegBase::Special(special) if special.any_width());
        if reg.count != count && !any_width(reg) {
            return Err(self.register_count_error(slot, count, span));
        }
        if count > 1 {
            self.range(reg, count, span)?;
        }
        match reg.half {
            None => {
                if let RegBase::Vgpr(128..) = reg.base
                    && slot.size == Size::Bits(16)
                    && self.has_half_in_register_number()
                {
                    return Err(self.error(span, || {
                        format!(
                            "32-bit encodings only reach v0 to v127 with 16-bit operands, not {}",
                            reg.first_name()
                        )
                    }));
                }
                Ok(code)
            }
            Some(half) => self.half(slot, reg, half, code, span),
        }
    }

    /// The code of a register for the operand's field. Also sets the bit that selects the register file of
    /// matrix and memory data, and the bit that marks an SDWA operand as scalar.
    fn code(&mut self, slot: &Slot, reg: &Reg, span: Span) -> Result<Option<u32>, AsmError> {
        let (names, vector) = (slot.names, matches!(reg.base, RegBase::Vgpr(_)));
        if let Some(field) = slot.scalar {
            let scalar = slot.scalars.and_then(|names| names.register(reg.base)).filter(|_| !vector);
            self.inst.fields[field as usize] = u32::from(scalar.is_some());
            return Ok(scalar.or_else(|| names.register(reg.base)));
        }
        let (Some((field, bit)), Some(base)) = (slot.acc, counterpart(reg.base)) else {
            return Ok(names.register(reg.base));
        };
        let acc = !vector;
        // Operands that share a bit use the same register file.
        if self.acc_bits.iter().any(|f| f.0 == (field, bit) && f.1 != acc) {
            return Err(AsmError::new(
                span,
                "these registers must be either all VGPRs or all accumulation VGPRs",
            ));
        }
        self.acc_bits.push(((field, bit), acc));
        let value = &mut self.inst.fields[field as usize];
        *value = *value & !(1 << bit) | u32::from(acc) << bit;
        Ok(names.register(if acc { base } else { reg.base }))
    }

    /// Returns whether the encoding stores a 16-bit operand's half in bit 7 of the register number.
    pub(super) fn has_half_in_register_number(&self) -> bool {
        self.form.has_half_in_register_number()
    }

    /// The error for a register that the operand type does not have: a register of another file, or one that
    /// does not exist.
    pub(super) fn invalid_register(&self, slot: &Slot, reg: &Reg, count: u16, span: Span) -> AsmError {
        let limit = match reg.base {
            RegBase::Sgpr(n) if n > last_sgpr(self.options.arch) => match last_sgpr(self.options.arch) {
                101 => "scalar registers are s0 to s101",
                _ => "scalar registers are s0 to s105",
            },
            RegBase::Ttmp(n) if n > 15 => "trap registers are ttmp0 to ttmp15",
            RegBase::Vgpr(n) if n > 255 => "vector registers are v0 to v255",
            RegBase::Acc(n) if n > 255 => "accumulation registers are a0 to a255",
            _ => return self.register_count_error(slot, count, span),
        };
        self.error(span, || format!("there is no {}", reg.first_name())).help(limit)
    }

    pub(super) fn register_count_error(&self, slot: &Slot, count: u16, span: Span) -> AsmError {
        let wanted = || Slot { size: Size::Bits(32 * count), ..slot.clone() };
        self.error(span, || format!("expected {}", self.expected(&wanted())))
    }

    /// Checks that a register range ends within its file. [`legal`](crate::legal) checks the alignment of its
    /// start.
    pub(super) fn range(&self, reg: &Reg, count: u16, span: Span) -> Result<(), AsmError> {
        let (first, last) = match reg.base {
            RegBase::Sgpr(n) => (n, last_sgpr(self.options.arch) as u32),
            RegBase::Vgpr(n) | RegBase::Acc(n) => (n, 255),
            RegBase::Ttmp(n) => (n, 15),
            RegBase::Special(_) => return Ok(()),
        };
        if first as u32 + count as u32 - 1 > last {
            return Err(self.error(span, || {
                format!("this range goes beyond the last register; it starts at {}", reg.first_name())
            }));
        }
        Ok(())
    }

    /// Selects the half of a register: by a bit of OP_SEL, or by the register number in 32-bit encodings.
    pub(super) fn half(
        &mut self,
        slot: &Slot,
        reg: &Reg,
        half: Half,
        code: u32,
        span: Span,
    ) -> Result<u32, AsmError> {
        let first = slot.source == Some(0) && self.form.traits.has(Trait::HalfOfFirstSource);
        if slot.size != Size::Bits(16) && !first {
            return Err(AsmError::new(
                span,
                "this operand is not a 16-bit value: it cannot be half of a register",
            ));
        }
        let RegBase::Vgpr(n) = reg.base else {
            return Err(AsmError::new(span, "only vector registers have halves"));
        };
        if !self.form.true16 {
            return Err(AsmError::new(span, "CDNA has no names for halves of registers"));
        }
        let high = half == Half::High;
        let source = slot.source.unwrap_or(0);
        if self.has_half_in_register_number() {
            if n > 127 {
                return Err(AsmError::new(span, "32-bit encodings only reach halves of v0 to v127"));
            }
            return Ok(if high { code | 128 } else { code });
        }
        if high {
            if !self.has("OP_SEL") {
                return Err(AsmError::new(span, "this encoding cannot select halves of registers"));
            }
            let value = self.get("OP_SEL");
            self.set("OP_SEL", value | 1 << source);
        }
        Ok(code)
    }
}

/// The register with the same number in the other vector register file.
fn counterpart(base: RegBase) -> Option<RegBase> {
    match base {
        RegBase::Vgpr(n) => Some(RegBase::Acc(n)),
        RegBase::Acc(n) => Some(RegBase::Vgpr(n)),
        _ => None,
    }
}

/// Applies signs to a constant if the encoding has no sign bits, as LLVM does for floats.
fn fold_signs<'t>(slot: &Slot, operand: &Operand<'t>) -> Option<Value<'t>> {
    let absent = |wanted: bool, bit: Option<Bit>| !wanted || bit.is_none();
    slot.source.filter(|_| slot.kind == SlotKind::Value)?;
    if !absent(operand.neg, slot.neg) || !absent(operand.abs, slot.abs) || operand.literal {
        return None;
    }
    let width = match slot.constant {
        Constant::F16 | Constant::F16OrBits | Constant::Bf16 => 16,
        Constant::F32 => 32,
        Constant::F64 => 64,
        _ => return None,
    };
    match operand.value {
        Value::Float(value) => {
            let value = if operand.abs { value.abs() } else { value };
            Some(Value::Float(if operand.neg { -value } else { value }))
        }
        Value::Int(value) => {
            let sign = 1u64 << (width - 1);
            let mask = sign | (sign - 1);
            // The encoder reports a value that does not fit.
            let fits = width == 64 || (-(sign as i64)..=mask as i64).contains(&value);
            let bits = value as u64 & mask & if operand.abs { !sign } else { !0 };
            fits.then_some(Value::Int((bits ^ if operand.neg { sign } else { 0 }) as i64))
        }
        _ => None,
    }
}

pub(super) fn is_off(operand: &Operand) -> bool {
    matches!(operand.value, Value::Word("off"))
}

pub(super) fn expression(operand: &Operand) -> Option<Expr> {
    if operand.neg || operand.abs {
        return None;
    }
    match &operand.value {
        Value::Expr(e) => Some(Expr::clone(e)),
        Value::Word(word) if !reserved(word) => Some(Expr::Symbol(word.to_string(), operand.span)),
        _ => None,
    }
}

/// Returns whether `word` names a register of another processor, which LLVM does not accept as a symbol.
fn reserved(word: &str) -> bool {
    let bare = word.strip_suffix(".l").or(word.strip_suffix(".h")).unwrap_or(word);
    let half =
        |name: &str| name == bare || bare.strip_suffix("_lo").or(bare.strip_suffix("_hi")) == Some(name);
    OTHER_REGISTERS.into_iter().any(half)
}
