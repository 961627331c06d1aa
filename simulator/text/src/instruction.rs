//! Instructions of the text format: the assembler's operands and tables, and on top of them the rules of this
//! format:
//!
//! - operand modifiers only where [`rules`] allows them;
//! - flags (`glc`, `slc`, `nt`, `clamp` …) anywhere, ignored by instructions that have no such bit;
//! - `vcc` and `exec` denote the wave's masks for either wave size, and SGPR pairs may start anywhere;
//! - `s_waitcnt` and `s_barrier` are also accepted for RDNA 4, which replaces each of them by several
//!   instructions. The assembler handles RDNA 3's names of instructions that RDNA 4 renames.

use super::constant::{Constants, TextError};
use super::rules;
use isa_spec::diag;
use isa_spec::tables::EntryId;
use wavesim_array::Num;
use wavesim_asm::dialect::{portable, symbols};
use wavesim_asm::error::{AsmError, Span};
use wavesim_asm::form::{self, Class, Imm, SlotKind, forms};
use wavesim_asm::legal;
use wavesim_asm::matching::lower;
use wavesim_asm::operand::{
    self, ArgValue, Line, Modifier, ModifierValue, Modifiers, Operand, Reg, RegBase, Special, Value, unsigned,
};
use wavesim_asm::scan::Scanner;
use wavesim_asm::{Expr, OddPairs, Options, Parsed, matching};
use wavesim_isa::arch::Arch;

/// The target and the constants for which instructions are assembled.
#[derive(Clone, Copy)]
pub struct Target<'a> {
    /// The instruction set.
    pub arch: Arch,
    /// The wave size: 32 or 64.
    pub wave: u32,
    /// The symbols of expressions.
    pub constants: &'a Constants,
    /// Suggest the nearest name for a misspelt one.
    pub suggest: bool,
}

impl Target<'_> {
    fn options(&self) -> Options {
        Options { odd_pairs: OddPairs::All, suggest: self.suggest, ..Options::new(self.arch).wave(self.wave) }
    }

    /// Assembles a statement at byte `base` of the file and passes the result to `out`: one instruction, or
    /// several if the architecture replaces it. `mnemonic` is the identifier at the start of `text`.
    pub fn assemble(
        &self,
        text: &str,
        mnemonic: &str,
        base: usize,
        out: &mut impl FnMut(Parsed),
    ) -> Result<(), TextError> {
        let forms = forms(self.arch);
        let found = forms.resolve(mnemonic).or_else(|| forms.resolve(&lower(mnemonic)));
        if found.is_none()
            && let Some(parts) = self.portable_replacement(text, mnemonic, base)?
        {
            return parts.iter().try_for_each(|part| {
                let mnemonic = part.split(' ').next().unwrap_or_default();
                self.assemble(part, mnemonic, base, out)
            });
        }
        out(self.assemble_one(text, mnemonic, found, base)?);
        Ok(())
    }

    fn assemble_one(
        &self,
        text: &str,
        mnemonic: &str,
        found: Option<(&'static [EntryId], Option<Class>)>,
        base: usize,
    ) -> Result<Parsed, TextError> {
        let symbols = |name: &str| self.constants.get(name).and_then(integer);
        let mut line = Line::new(mnemonic, Span::new(0, mnemonic.len()));
        let read = match mnemonic {
            "" => operand::parse_line(text, &symbols).map(|_| ()),
            _ => line.read_rest(&mut Scanner::from(text, mnemonic.len()), &symbols),
        };
        // Most operands are registers and numbers, to which no rules of this format apply.
        let (mut signed, mut suspicious) = (line.second.is_some(), read.is_err());
        let mut symbolic = !line.modifiers.is_empty();
        for o in &line.operands {
            signed |= o.neg || o.abs;
            suspicious |= rules::has_two_signs(text, o);
            symbolic |= !matches!(o.value, Value::Reg(_) | Value::Int(_) | Value::Float(_));
        }
        if suspicious {
            rules::check_spelling(text, base)?;
        }
        read.map_err(|e| text_error(e, base))?;
        if signed {
            rules::check_operands(&line, base)?;
        }
        let Some(found) = found else {
            return Err(self.unknown_instruction(&line, base));
        };
        let entries = found.0;
        if signed {
            rules::check_encodings(&line, base, self.arch, entries)?;
        }
        if signed || symbolic {
            self.adapt(&mut line, entries);
            self.float_constants(&mut line);
            self.flag_operands(&line, text, entries, base)?;
        }
        self.buffer_offset(&mut line);
        let error = match matching::assemble_as(&line, found, &self.options()) {
            Ok(parsed) => {
                // Ignored offset bits are an error: this format need not be compatible with another
                // assembler.
                return match legal::ignored_offset(&parsed.inst, &self.options()) {
                    None => Ok(parsed),
                    Some(ignored) => {
                        let operand = ignored.operand.and_then(|(_, at)| line.operands.get(at));
                        let span = operand.map_or(line.span, |o| o.span);
                        let message = format!("instruction '{}': {}", line.mnemonic, ignored.message);
                        Err(TextError::new(base + span.start..base + span.end, message))
                    }
                };
            }
            Err(error) => error,
        };
        if self.wave == 32
            && let Some(narrow) = narrow_masks(&line)
            && let Ok(parsed) = matching::assemble_as(&narrow, found, &self.options())
        {
            return Ok(parsed);
        }
        // The modifiers as written, before any were dropped.
        let written = operand::parse_line(text, &symbols).map_or(Modifiers::new(), |line| line.modifiers);
        Err(self.describe_error(&line, text, &written, entries, error, base))
    }

    /// The error for an unknown mnemonic.
    fn unknown_instruction(&self, line: &Line, base: usize) -> TextError {
        let span = base + line.mnemonic_span.start..base + line.mnemonic_span.end;
        let error = TextError::new(span, format!("unknown instruction '{}'", line.mnemonic));
        let name = line.mnemonic.to_lowercase();
        let elsewhere: Vec<&str> =
            Arch::ALL.into_iter().filter(|a| rules::entries(&name, *a).is_some()).map(Arch::name).collect();
        if !elsewhere.is_empty() {
            return error.help(format!("it is in {}, not in {}", elsewhere.join(" and "), self.arch.name()));
        }
        if !self.suggest {
            return error;
        }
        let (bare, _) = form::without_suffix(&name);
        match diag::nearest(bare, matching::family(bare, self.arch)) {
            Some(near) => error.help(format!("did you mean `{near}`?")),
            None => error,
        }
    }

    /// Drops flags that no form of the instruction accepts, and translates cache flags that RDNA 4 spells
    /// differently.
    fn adapt(&self, line: &mut Line, entries: &[EntryId]) {
        let accepts =
            |name: &str| forms_of(self.arch, entries).any(|f| f.mods.iter().any(|m| m.accepts(name)));
        // A label may have the name of a flag: `done`.
        if line.operands.is_empty()
            && line.modifiers.len() == 1
            && line.modifiers[0].value == ModifierValue::None
            && takes_label(self.arch, entries)
        {
            let Modifier { name, span, .. } = line.modifiers.remove(0);
            line.operands.push(Operand { span, ..unsigned(Value::Word(name)) });
        }
        let max_operands = || forms_of(self.arch, entries).map(|f| f.slots.len()).max().unwrap_or(0);
        let mut flags = Vec::new();
        while let Some(Value::Word(word)) = line.operands.last().map(|o| &o.value)
            && rules::is_flag(word)
            && line.operands.len() > max_operands()
        {
            flags.extend(line.operands.pop());
        }
        for flag in flags {
            if let Value::Word(name) = flag.value
                && accepts(name)
            {
                let (span, value_span) = (flag.span, flag.span);
                line.modifiers.push(Modifier { name, value: ModifierValue::None, span, value_span });
            }
        }
        let given = line.operands.len();
        let returns = || given == max_operands() && forms_of(self.arch, entries).any(|f| f.returns.is_some());
        for m in &mut line.modifiers {
            if m.name == "glc" && !accepts("glc") && accepts("th") && returns() {
                m.name = "th";
                m.value = ModifierValue::Word(symbols::TH_ATOMIC_RETURN);
            }
        }
        line.modifiers.retain(|m| !rules::is_flag(m.name) || accepts(m.name));
        // `s_load_b32 s0, s[2:3], offset:8`: the offset alone stands for the operand.
        let scalar_offset =
            || forms_of(self.arch, entries).any(|f| f.slots.iter().any(|s| s.kind == SlotKind::ScalarOffset));
        if let Some(at) = line.modifiers.iter().position(|m| m.name == "offset")
            && let ModifierValue::Int(value) = line.modifiers[at].value
            && line.operands.len() + 1 == max_operands()
            && scalar_offset()
        {
            let span = line.modifiers.remove(at).value_span;
            line.operands.push(Operand { span, ..unsigned(Value::Int(value)) });
        }
        self.packed_negation(line, entries);
        for operand in &mut line.operands {
            if let Some(value) = geometry_message(&operand.value) {
                operand.value = Value::Int(value);
            }
        }
    }

    /// Where a buffer's scalar offset cannot be a constant, `null` denotes 0.
    fn buffer_offset(&self, line: &mut Line) {
        if self.arch.facts().buffer_offset_is_register
            && (line.mnemonic.starts_with("buffer_") || line.mnemonic.starts_with("tbuffer_"))
            && let Some(last) = line.operands.last_mut().filter(|o| o.value == Value::Int(0))
        {
            last.value = Value::Reg(Reg { base: RegBase::Special(Special::Null), count: 1, half: None });
        }
    }

    /// Converts `-v1` of a packed instruction to `neg_lo` and `neg_hi`: both halves are negated.
    fn packed_negation(&self, line: &mut Line, entries: &[EntryId]) {
        let packed = || forms_of(self.arch, entries).any(|f| f.mods.iter().any(|m| m.accepts("neg_hi")));
        if !line.operands.iter().any(|o| o.neg) || !packed() {
            return;
        }
        let sources = line.operands.len().saturating_sub(1);
        let bits: Vec<i64> = line.operands.iter().skip(1).map(|o| o.neg as i64).collect();
        for name in ["neg_lo", "neg_hi"] {
            let given =
                line.modifiers.iter().position(|m| m.name == name).map(|at| line.modifiers.remove(at));
            let mut list = vec![0; sources];
            if let Some(Modifier { value: ModifierValue::List(values), .. }) = &given {
                for (slot, value) in list.iter_mut().zip(values) {
                    *slot = matches!(value, ArgValue::Int(1)) as i64;
                }
            }
            let list = list.iter().zip(&bits).map(|(a, b)| ArgValue::Int(a ^ b)).collect();
            let span = given.map_or(line.span, |m| m.span);
            let value = ModifierValue::List(list);
            line.modifiers.push(Modifier { name, value, span, value_span: span });
        }
        line.operands.iter_mut().skip(1).for_each(|o| o.neg = false);
    }

    /// Reports flags in the position of operands, which the assembler would treat as labels.
    fn flag_operands(
        &self,
        line: &Line,
        text: &str,
        entries: &[EntryId],
        base: usize,
    ) -> Result<(), TextError> {
        let flag = |o: &Operand| matches!(&o.value, Value::Word(word) if rules::is_flag(word));
        let Some(at) = line.operands.iter().position(flag) else { return Ok(()) };
        let operand = &line.operands[at];
        if takes_label(self.arch, entries) {
            return Ok(());
        }
        let kind = self.expected_operand(entries, line.operands.len(), at);
        let message = format!(
            "instruction '{}' operand {} expects {kind}, got {}",
            line.mnemonic,
            at + 1,
            rules::describe_operand(operand, text)
        );
        Err(TextError::new(base + operand.span.start..base + operand.span.end, message))
    }

    /// Substitutes named constants that are not integers.
    fn float_constants(&self, line: &mut Line) {
        for operand in &mut line.operands {
            if let Value::Word(word) = &operand.value
                && let Some(n @ (Num::Float(_) | Num::Decimal(_))) = self.constants.get(word)
            {
                operand.value = Value::Float(n.as_decimal());
            }
        }
    }

    /// Formulates an error in the wording of the format's specification, with the assembler's message as
    /// help. `written` are the modifiers before any were dropped.
    fn describe_error(
        &self,
        line: &Line,
        text: &str,
        written: &[Modifier],
        entries: &[EntryId],
        error: AsmError,
        base: usize,
    ) -> TextError {
        let name = &line.mnemonic;
        let counts = slot_counts(self.arch, entries);
        let has_calls = line.operands.iter().any(|o| matches!(o.value, Value::Call(_)));
        let given = line.operands.len();
        let detail = match &error.help {
            Some(help) => format!("{} ({help})", error.message),
            None => error.message.to_string(),
        };
        // A flag follows a comma, and an operand is missing.
        let misplaced = written
            .iter()
            .find(|m| m.value == ModifierValue::None && text[..m.span.start].trim_end().ends_with(','));
        if let Some(flag) = misplaced.filter(|_| counts.contains(&(given + 1))) {
            let index = line.operands.iter().filter(|o| o.span.start < flag.span.start).count();
            let kind = self.expected_operand(entries, given + 1, index);
            let message = format!(
                "instruction '{name}' operand {} expects {kind}, got the flag `{}`",
                index + 1,
                flag.name
            );
            return TextError::new(base + flag.span.start..base + flag.span.end, message);
        }
        if !counts.contains(&given) && !has_calls {
            let expected: Vec<String> = counts.iter().map(usize::to_string).collect();
            let s = if counts == [1] { "" } else { "s" };
            let message =
                format!("instruction '{name}' expects {} operand{s}, got {given}", expected.join(" or "));
            return TextError::new(base + line.span.start..base + line.span.end, message).help(detail);
        }
        let at = line
            .operands
            .iter()
            .position(|o| o.span.start <= error.span.start && error.span.end <= o.span.end);
        match at {
            Some(at) if !has_calls => {
                let kind = self.expected_operand(entries, given, at);
                let got = rules::describe_operand(&line.operands[at], text);
                let message = format!("instruction '{name}' operand {} expects {kind}, got {got}", at + 1);
                TextError::new(base + error.span.start..base + error.span.end, message).help(detail)
            }
            _ => TextError::new(
                base + error.span.start..base + error.span.end,
                format!("instruction '{name}': {}", error.message),
            )
            .with_help(error.help),
        }
    }

    /// Describes the operand expected at `index`.
    fn expected_operand(&self, entries: &[EntryId], count: usize, index: usize) -> &'static str {
        let Some(form) = forms_of(self.arch, entries).find(|f| f.slots.len() == count) else {
            return "another operand";
        };
        let Some(slot) = form.slots.get(index) else { return "another operand" };
        let ty = self.arch.table().operand_types[slot.ty as usize].name;
        match slot.kind {
            SlotKind::Imm(_) | SlotKind::Literal => "a number",
            SlotKind::Vcc => "vcc",
            _ if ty.contains("VGPR") => "a vector register",
            _ if ty.starts_with("OPR_SDST") || ty.starts_with("OPR_SREG") => "a scalar register",
            _ => "a register or a number",
        }
    }

    /// Returns the instructions of RDNA 4 and CDNA 5 that replace an RDNA 3 instruction, or `None` if it is not replaced.
    fn portable_replacement(
        &self,
        text: &str,
        mnemonic: &str,
        base: usize,
    ) -> Result<Option<Vec<String>>, TextError> {
        let name = &lower(mnemonic)[..];
        if !portable::is_replaced(name) {
            return Ok(None);
        }
        let old = Target { arch: portable::SOURCE_ARCH, ..*self };
        let read = old.assemble_one(text, mnemonic, forms(old.arch).resolve(name), base)?;
        let mut lines = portable::replacement(name, &read.inst);
        // CDNA 5 has no image instructions, and no counters for them.
        lines.retain(|line| {
            line.split_whitespace().next().is_some_and(|word| forms(self.arch).resolve(word).is_some())
        });
        Ok(Some(lines))
    }
}

/// The error of a fixup; most often a missing label.
pub fn unresolved(
    expr: &Expr,
    error: AsmError,
    labels: &[(String, u64)],
    base: usize,
    suggest: bool,
) -> TextError {
    match expr.symbol() {
        Some((name, span)) if !labels.iter().any(|(label, _)| label == name) => {
            let error = TextError::new(
                base + span.start..base + span.end,
                format!("there is no label or constant '{name}'"),
            );
            let near = suggest.then(|| diag::nearest(name, labels.iter().map(|(label, _)| label.as_str())));
            match near.flatten() {
                Some(near) => error.help(format!("did you mean `{near}`?")),
                None => error,
            }
        }
        _ => text_error(error, base),
    }
}

fn text_error(e: AsmError, base: usize) -> TextError {
    TextError::new(base + e.span.start..base + e.span.end, e.message).with_help(e.help)
}

fn integer(n: Num) -> Option<i64> {
    match n {
        Num::Float(_) | Num::Decimal(_) => None,
        n => n.as_int().and_then(|v| i64::try_from(v).ok()),
    }
}

fn forms_of(arch: Arch, entries: &[EntryId]) -> impl Iterator<Item = &'static form::Form> {
    entries.iter().map(move |e| forms(arch).get(*e))
}

fn takes_label(arch: Arch, entries: &[EntryId]) -> bool {
    forms_of(arch, entries).any(|f| f.slots.iter().any(|s| s.kind == SlotKind::Imm(Imm::Label)))
}

/// The possible numbers of operands, in ascending order.
fn slot_counts(arch: Arch, entries: &[EntryId]) -> Vec<usize> {
    let mut counts: Vec<usize> = forms_of(arch, entries)
        .flat_map(|f| [Some(f.slots.len()), f.returns.map(|_| f.slots.len().saturating_sub(1))])
        .flatten()
        .collect();
    counts.sort_unstable();
    counts.dedup();
    counts
}

/// Replaces `vcc` by `vcc_lo` and `exec` by `exec_lo`, the masks of a wave32. `None` if neither occurs.
fn narrow_masks<'t>(line: &Line<'t>) -> Option<Line<'t>> {
    let mut narrow = line.clone();
    let mut changed = false;
    for operand in &mut narrow.operands {
        if let Value::Reg(reg) = &mut operand.value
            && matches!(reg.base, RegBase::Special(Special::VccLo | Special::ExecLo))
            && reg.count == 2
        {
            reg.count = 1;
            changed = true;
        }
    }
    changed.then_some(narrow)
}

/// The value of a message of earlier processors, such as `sendmsg(MSG_GS_DONE, GS_OP_NOP)`, for which the
/// assembler has no names (RDNA 2 manual, *S_SENDMSG*: message in bits 3:0, geometry operation in bits 5:4).
fn geometry_message(value: &Value) -> Option<i64> {
    let Value::Call(call) = value else { return None };
    let [message, operation, stream @ ..] = &call.args[..] else { return None };
    let index = |value: &ArgValue, names: &[&str]| match value {
        ArgValue::Int(v) => Some(*v),
        ArgValue::Word(word) | ArgValue::Text(word) => {
            names.iter().position(|n| n == word).map(|at| at as i64)
        }
    };
    let ArgValue::Word(message) = message.value else { return None };
    let message = symbols::GEOMETRY_MESSAGES.iter().find(|(name, _)| *name == message)?.1;
    let operation = index(&operation.value, &symbols::GEOMETRY_OPERATIONS)?;
    let stream = match stream {
        [] => 0,
        [only] => index(&only.value, &[])?,
        _ => return None,
    };
    let fits = call.name == "sendmsg" && (0..4).contains(&operation) && (0..4).contains(&stream);
    fits.then_some(message | operation << 4 | stream << 8)
}
