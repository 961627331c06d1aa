//! Matches a line against the forms of its instruction and builds the instruction from the first form that
//! fits.
//!
//! [`assemble`] chooses the form; a `Matcher` tries one form. Submodules: `slot` matches one operand, `value`
//! registers and constants, `immediate` immediates, `address` addresses, `modifiers` modifiers, and `dual`
//! dual instructions.

mod address;
mod dual;
mod immediate;
mod modifiers;
mod slot;
mod value;

use dual::dual;

use super::dialect::Trait;
use super::error::{AsmError, Span, suggest};
use super::form::{Class, Form, Imm, Slot, SlotKind, forms, without_suffix};
use super::modifier;
use super::operand::{Line, Modifier, ModifierValue, Operand, RegBase, Value, unsigned};
use super::{Fixup, Options, Parsed, legal};
use isa_spec::tables::EntryId;
use smallvec::SmallVec;
use std::borrow::Cow;
use wavesim_isa::inst::Inst;

/// Assembles a line.
pub fn assemble(line: &Line, options: &Options) -> Result<Parsed, AsmError> {
    let name = &lower(line.mnemonic)[..];
    let found = forms(options.arch).resolve(name);
    let found = found.ok_or_else(|| unknown_mnemonic(name, line.mnemonic_span, options))?;
    assemble_as(line, found, options)
}

/// As [`assemble`], for a mnemonic that [`Forms::resolve`](super::form::Forms::resolve) has looked up.
pub fn assemble_as(
    line: &Line,
    (entries, class): (&[EntryId], Option<Class>),
    options: &Options,
) -> Result<Parsed, AsmError> {
    if let Some(second) = &line.second {
        return dual(line, second, options);
    }
    let symbols = flags_as_operands(line, entries, options);
    let line = symbols.as_ref().unwrap_or(line);
    let dpp = line.modifiers.iter().any(|m| modifier::is_dpp(m.name));
    let sdwa = line.modifiers.iter().any(|m| modifier::is_sdwa(m.name));
    let mut furthest: Option<(usize, &Form)> = None;
    let forms = forms(options.arch);
    for &entry in entries {
        let form = forms.get(entry);
        let wanted = match class {
            Some(class) => form.class == class,
            // DPP modifiers select the DPP forms, and SDWA modifiers the SDWA forms.
            None => match form.class {
                Class::Plain => true,
                Class::Sdwa => sdwa,
                Class::Dpp | Class::E64Dpp => dpp,
                _ => (!dpp || form.traits.has(Trait::SwapControls)) && !sdwa,
            },
        };
        if !wanted || form.class == Class::Dual {
            continue;
        }
        let mut m = Matcher::new(form, line, options);
        match m.run() {
            Ok(()) => return Ok(m.parsed()),
            // The form that matches furthest gives the best error message.
            Err(_) if furthest.is_none_or(|n| m.progress > n.0) => furthest = Some((m.progress, form)),
            Err(_) => {}
        }
    }
    match furthest {
        Some((_, form)) => {
            let mut m = Matcher { messages: true, ..Matcher::new(form, line, options) };
            m.run().map(|()| m.parsed())
        }
        None => Err(no_matching_form(line, class, dpp, sdwa, options)),
    }
}

/// Labels and symbols may share the name of another instruction's flag (`s_branch done`): while operands are
/// missing, flags that no form of the instruction accepts are treated as operands.
fn flags_as_operands<'t>(line: &Line<'t>, entries: &[EntryId], options: &Options) -> Option<Line<'t>> {
    let all = || entries.iter().map(|e| forms(options.arch).get(*e));
    let foreign = |m: &Modifier| {
        let own = || all().any(|f| f.mods.iter().any(|own| own.accepts(m.name)));
        m.value == ModifierValue::None && !modifier::is_dpp(m.name) && !own()
    };
    if !line.modifiers.iter().any(foreign) {
        return None;
    }
    let max_operands = all().map(|f| f.slots.len()).max().unwrap_or(0);
    let mut out = None;
    while let now = out.as_ref().unwrap_or(line)
        && now.operands.len() < max_operands
        && let Some(at) = now.modifiers.iter().position(foreign)
    {
        let mut next = now.clone();
        let Modifier { name, span, .. } = next.modifiers.remove(at);
        let place = next.operands.partition_point(|o| o.span.start < span.start);
        next.operands.insert(place, Operand { span, ..unsigned(Value::Word(name)) });
        out = Some(next);
    }
    out
}

fn unknown_mnemonic(name: &str, span: Span, options: &Options) -> AsmError {
    let arch = options.arch.name();
    let (bare, _) = without_suffix(name);
    if forms(options.arch).lookup(bare).is_some() {
        let error = AsmError::new(span, format!("`{bare}` has no such form in {arch}"));
        return match super::dialect::absent::help(name, options.arch) {
            Some(help) => error.help(help),
            None => error,
        };
    }
    let elsewhere: Vec<&str> = wavesim_isa::arch::Arch::ALL
        .into_iter()
        .filter(|a| forms(*a).lookup(bare).is_some())
        .map(|a| a.name())
        .collect();
    let error = AsmError::new(span, format!("{arch} has no instruction `{name}`"));
    let absent = |name: &str| super::dialect::absent::help(name, options.arch);
    if let Some(help) = absent(bare).or_else(|| absent(name)) {
        return error.help(help);
    }
    if !elsewhere.is_empty() {
        let has = if elsewhere.len() == 1 { "has" } else { "have" };
        return error.help(format!("{} {has} it", elsewhere.join(" and ")));
    }
    if !options.suggest {
        return error;
    }
    match suggest(bare, family(bare, options.arch)) {
        Some(help) => error.help(help),
        None => error,
    }
}

/// The names with the same prefix up to the first underscore (`v_`, `buffer_`); all names if there is none.
pub fn family(name: &str, arch: wavesim_isa::arch::Arch) -> Vec<&'static str> {
    let all = || forms(arch).names();
    let word = name.split_inclusive('_').next().unwrap_or_default();
    let own: Vec<&str> = all().filter(|n| word.ends_with('_') && n.starts_with(word)).collect();
    if own.is_empty() { all().collect() } else { own }
}

fn no_matching_form(line: &Line, class: Option<Class>, dpp: bool, sdwa: bool, options: &Options) -> AsmError {
    let (name, span) = (&lower(line.mnemonic)[..], line.mnemonic_span);
    if class.is_some() {
        return unknown_mnemonic(name, span, options);
    }
    let what = match (dpp, sdwa) {
        (true, _) => "takes no lane movement (DPP)",
        (_, true) => "does not select parts of registers (SDWA)",
        _ => "needs its lane movement (DPP)",
    };
    AsmError::new(span, format!("`{name}` {what}"))
}

/// The mnemonic in lower case; usually borrowed.
pub fn lower(name: &str) -> Cow<'_, str> {
    // Branch-free, so that the loop vectorises.
    let upper = name.bytes().fold(false, |upper, b| upper | b.is_ascii_uppercase());
    if upper { name.to_ascii_lowercase().into() } else { name.into() }
}

struct Matcher<'a, 't> {
    form: &'static Form,
    line: &'a Line<'t>,
    options: &'a Options,
    inst: Inst,
    literal: Option<u64>,
    fixups: Vec<Fixup>,
    /// Bits that select the register file of an operand (field, bit), with whether it is the accumulation
    /// file.
    acc_bits: SmallVec<[((u8, u8), bool); 4]>,
    /// Index of a modifier that was consumed together with an operand.
    consumed_modifier: Option<usize>,
    /// How much of the line has matched. The form that matches furthest provides the error.
    progress: usize,
    /// Whether to format error messages. Errors are not reported while forms are tried.
    messages: bool,
}

impl<'a, 't> Matcher<'a, 't> {
    fn new(form: &'static Form, line: &'a Line<'t>, options: &'a Options) -> Matcher<'a, 't> {
        let inst = Inst {
            entry: form.entry,
            entry_y: EntryId::MAX,
            size: form.size_bytes,
            fields: form.initial_fields,
        };
        Matcher {
            form,
            line,
            options,
            inst,
            literal: None,
            fixups: Vec::new(),
            acc_bits: SmallVec::new(),
            consumed_modifier: None,
            progress: 0,
            messages: false,
        }
    }

    /// Creates an error, formatting the message only if it will be reported.
    fn error(&self, span: Span, message: impl FnOnce() -> String) -> AsmError {
        AsmError::new(span, if self.messages { message() } else { String::new() })
    }

    fn set_line(&mut self, line: &'a Line<'t>) {
        self.line = line;
    }

    fn run(&mut self) -> Result<(), AsmError> {
        let form = self.form;
        self.preset()?;
        let mut slots = form.slots.as_slice();
        // A missing base of a flat access counts as given.
        let is_scalar =
            |o: &Operand| matches!(&o.value, Value::Reg(r) if !matches!(r.base, RegBase::Vgpr(_)));
        let optional = slots.last().is_some_and(|s| s.kind == SlotKind::OptionalBase);
        let missing = optional && !self.line.operands.last().is_some_and(is_scalar);
        let given = self.line.operands.len() + usize::from(missing);
        let to_lds = self.line.modifiers.iter().any(|m| m.name == "lds" && m.value == ModifierValue::None);
        let to_lds = form.to_lds.is_some() && to_lds;
        if form.returns.is_some() && given + 1 == slots.len() || to_lds {
            slots = &slots[1..];
        }
        let line = self.line;
        self.operands(slots, &line.operands, line)?;
        self.progress += 1;
        self.modifiers()?;
        self.required()?;
        if let Some(field) = form.returns {
            let returns = self.inst.fields[field as usize] & 1 != 0;
            if returns != (slots.len() == form.slots.len()) {
                return Err(self.return_mismatch(returns));
            }
        }
        if form.literal.is_some() && self.literal.is_none() && !form.has_literal_operand {
            return Err(AsmError::new(line.span, "no operand is a literal"));
        }
        self.check_legal(&[&form.slots], &[&line.operands], line.span)
    }

    /// Checks the hardware's restrictions. `operands` are the operands of each half, parallel to `halves`;
    /// the operand of the first slot may be missing.
    fn check_legal(&self, halves: &[&[Slot]], operands: &[&[Operand]], span: Span) -> Result<(), AsmError> {
        if self.options.lenient {
            return Ok(());
        }
        legal::check(&self.inst, self.options, halves).map_err(|e| {
            let own = e.operand.and_then(|(half, at)| {
                // An atomic without a result has no operand for the first slot; otherwise trailing operands
                // are missing.
                let missing = halves[half].len().saturating_sub(operands[half].len());
                let skips = self.form.returns.is_some() || self.form.to_lds.is_some();
                let skipped = if skips { missing } else { 0 };
                operands[half].get(at.checked_sub(skipped)?)
            });
            e.into_error(own.map_or(span, |o| o.span))
        })
    }

    /// Returns the instruction and its fixups after a successful match.
    fn parsed(mut self) -> Parsed {
        if let (Some(field), Some(value)) = (self.form.literal, self.literal) {
            self.inst.fields[field as usize] = value as u32;
            if let Some(field) = self.form.literal_hi {
                self.inst.fields[field as usize] = (value >> 32) as u32;
            }
        }
        Parsed { inst: self.inst, fixups: self.fixups }
    }

    fn operands(
        &mut self,
        slots: &[Slot],
        operands: &'a [Operand<'t>],
        line: &Line<'t>,
    ) -> Result<(), AsmError> {
        let mut at = 0;
        // Groups are given all or not at all.
        let first_group = slots.iter().take_while(|s| s.kind != SlotKind::OptionalGroup).count();
        // The 32-bit encodings allow VCC to be omitted at any position.
        let implied = matches!(self.form.class, Class::E32 | Class::Dpp)
            && operands.len() + slots.iter().filter(|s| s.kind == SlotKind::Vcc).count() == slots.len();
        for slot in slots {
            let rest = operands.get(at..).unwrap_or(&[]);
            if rest.is_empty()
                && match slot.kind {
                    SlotKind::Imm(Imm::Optional) | SlotKind::ScalarOffset | SlotKind::OptionalBase => true,
                    SlotKind::OptionalGroup => at == first_group,
                    _ => false,
                }
            {
                continue;
            }
            if slot.kind == SlotKind::Vcc && implied {
                continue;
            }
            let used = self.slot(slot, rest, line)?;
            at += used;
            self.progress += 2 * used;
        }
        match operands.get(at) {
            None => Ok(()),
            Some(extra) => {
                self.progress += 1;
                let count = slots.len();
                let s = if count == 1 { "" } else { "s" };
                Err(self.error(extra.span, || {
                    format!("`{}` takes {count} operand{s}; this is one too many", line.mnemonic)
                }))
            }
        }
    }

    fn get(&self, field: &str) -> u32 {
        self.inst.field(self.options.arch.table(), field).unwrap_or(0)
    }

    fn set(&mut self, field: &str, value: u32) {
        let fields = self.inst.encoding(self.options.arch.table()).fields;
        if let Some(at) = fields.iter().position(|f| f.name == field) {
            self.inst.fields[at] = value;
        }
    }

    fn set_slot(&mut self, slot: &Slot, value: u32) {
        if let Some(field) = slot.field {
            self.inst.fields[field as usize] = value;
        }
    }

    fn has(&self, field: &str) -> bool {
        self.inst.encoding(self.options.arch.table()).fields.iter().any(|f| f.name == field)
    }
}
