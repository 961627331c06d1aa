//! A line against the forms of its instruction: what each operand is, and the instruction that comes of it.

use super::constant::{self, Encoded};
use super::dialect::Trait;
use super::dialect::symbols::{OTHER_FILES, OTHER_REGISTERS};
use super::error::{AsmError, Span, suggest};
use super::expr::Expr;
use super::form::{Bit, Class, Form, Imm, Kind, Size, Slot, forms, without_suffix};
use super::modifier::{self, Mod};
use super::operand::{
    self, Half, Line, Modifier, ModifierValue, Operand, Reg, RegBase, Special, Value, plain,
};
use super::{Fixup, FixupKind, Options, Parsed, image, legal, symbolic};
use isa_spec::tables::EntryId;
use std::borrow::Cow;
use wavesim_isa::inst::Inst;

/// The instruction that `line` says.
pub fn assemble(line: &Line, options: &Options) -> Result<Parsed, AsmError> {
    let name = &lower(line.mnemonic)[..];
    let found = forms(options.arch).resolve(name);
    let found = found.ok_or_else(|| unknown_mnemonic(name, line.mnemonic_span, options))?;
    assemble_as(line, found, options)
}

/// As [`assemble`], for a mnemonic that [`Forms::resolve`](super::form::Forms::resolve) has found.
pub fn assemble_as(
    line: &Line,
    (entries, class): (&[EntryId], Option<Class>),
    options: &Options,
) -> Result<Parsed, AsmError> {
    if let Some(second) = &line.second {
        return dual(line, second, options);
    }
    let symbols = symbols_like_flags(line, entries, options);
    let line = symbols.as_ref().unwrap_or(line);
    let dpp = line.modifiers.iter().any(|m| modifier::is_dpp(m.name));
    let mut nearest: Option<(usize, &Form)> = None;
    let forms = forms(options.arch);
    for &entry in entries {
        let form = forms.of(entry);
        let wanted = match class {
            Some(class) => form.class == class,
            // A lane movement asks for the forms that have one.
            None => matches!(form.class, Class::Dpp | Class::E64Dpp) == dpp || form.class == Class::Plain,
        };
        if !wanted || form.class == Class::Dual {
            continue;
        }
        let mut m = Matcher::new(form, line, options);
        match m.run() {
            Ok(()) => return Ok(m.parsed()),
            // The form that got furthest knows best what is wrong.
            Err(_) if nearest.is_none_or(|n| m.progress > n.0) => nearest = Some((m.progress, form)),
            Err(_) => {}
        }
    }
    match nearest {
        Some((_, form)) => {
            let mut m = Matcher { told: true, ..Matcher::new(form, line, options) };
            m.run().map(|()| m.parsed())
        }
        None => Err(no_such_form(line, class, dpp, options)),
    }
}

/// Labels and symbols may be called like modifiers of other instructions (`s_branch done`): flags that no form of the instruction has
/// are operands, as long as operands are missing.
fn symbols_like_flags<'t>(line: &Line<'t>, entries: &[EntryId], options: &Options) -> Option<Line<'t>> {
    let all = || entries.iter().map(|e| forms(options.arch).of(*e));
    let foreign = |m: &Modifier| {
        let own = || all().any(|f| f.mods.iter().any(|own| own.accepts(m.name)));
        m.value == ModifierValue::None && !modifier::is_dpp(m.name) && !own()
    };
    if !line.modifiers.iter().any(foreign) {
        return None;
    }
    let most = all().map(|f| f.slots.len()).max().unwrap_or(0);
    let mut out = None;
    while let now = out.as_ref().unwrap_or(line)
        && now.operands.len() < most
        && let Some(at) = now.modifiers.iter().position(foreign)
    {
        let mut next = now.clone();
        let Modifier { name, span, .. } = next.modifiers.remove(at);
        let place = next.operands.partition_point(|o| o.span.start < span.start);
        next.operands.insert(place, Operand { span, ..plain(Value::Word(name)) });
        out = Some(next);
    }
    out
}

fn unknown_mnemonic(name: &str, span: Span, options: &Options) -> AsmError {
    let arch = options.arch.name();
    let (bare, _) = without_suffix(name);
    if forms(options.arch).called(bare).is_some() {
        let error = AsmError::new(span, format!("`{bare}` has no such form in {arch}"));
        return match super::dialect::absent::help(name, options.arch) {
            Some(help) => error.help(help),
            None => error,
        };
    }
    let elsewhere: Vec<&str> = wavesim_isa::arch::Arch::ALL
        .into_iter()
        .filter(|a| forms(*a).called(bare).is_some())
        .map(|a| a.name())
        .collect();
    let error = AsmError::new(span, format!("{arch} has no instruction `{name}`"));
    if let Some(help) = super::dialect::absent::help(bare, options.arch) {
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

/// Names of the same kind of instruction: those that begin with the same word, as `v_` or `buffer_`; all, if none does.
pub fn family(name: &str, arch: wavesim_isa::arch::Arch) -> Vec<&'static str> {
    let all = || forms(arch).names();
    let word = name.split_inclusive('_').next().unwrap_or_default();
    let own: Vec<&str> = all().filter(|n| word.ends_with('_') && n.starts_with(word)).collect();
    if own.is_empty() { all().collect() } else { own }
}

fn no_such_form(line: &Line, class: Option<Class>, dpp: bool, options: &Options) -> AsmError {
    let (name, span) = (&lower(line.mnemonic)[..], line.mnemonic_span);
    if class.is_some() {
        return unknown_mnemonic(name, span, options);
    }
    let what = if dpp { "takes no lane movement (DPP)" } else { "needs its lane movement (DPP)" };
    AsmError::new(span, format!("`{name}` {what}"))
}

/// `v_dual_… :: v_dual_…`
fn dual<'t>(line: &Line<'t>, second: &Line<'t>, options: &Options) -> Result<Parsed, AsmError> {
    let forms = forms(options.arch);
    let table = options.arch.table();
    let entries = |l: &Line| {
        let name = l.mnemonic.to_lowercase();
        forms.called(&name).ok_or_else(|| unknown_mnemonic(&name, l.mnemonic_span, options))
    };
    let (xs, ys) = (entries(line)?, entries(second)?);
    let mut worst: Option<(usize, AsmError)> = None;
    for &x in xs {
        let form = forms.of(x);
        let enc = table.entries[x as usize].enc;
        let Some(&y) = ys.iter().find(|y| table.entries[**y as usize].enc == enc) else { continue };
        let Some(x_slots) = half_slots(options, x, false) else {
            return Err(AsmError::new(
                line.mnemonic_span,
                format!("`{}` can only be the second half", line.mnemonic),
            ));
        };
        let Some(y_slots) = half_slots(options, y, true) else { continue };
        let mut m = Matcher { told: true, ..Matcher::new(form, line, options) };
        let literal_needed = m.form.literal.is_some();
        let result = m.operands(&x_slots, &line.operands, line).and_then(|()| {
            m.fixups_from(second);
            m.operands(&y_slots, &second.operands, second)
        });
        let own = x_slots.iter().chain(&y_slots).any(|s| s.kind == Kind::Literal);
        let result = result.and_then(|()| {
            if let Some(extra) = line.modifiers.first().or(second.modifiers.first()) {
                return Err(AsmError::new(extra.span, "dual instructions take no modifiers"));
            }
            if literal_needed && m.literal.is_none() && !own {
                return Err(AsmError::new(line.span, "no operand is a literal"));
            }
            m.inst.entry_y = y;
            m.legal(&[&x_slots, &y_slots], &[&line.operands, &second.operands], line.span.to(second.span))?;
            m.set("OPY", table.entries[y as usize].opcode as u32);
            Ok(())
        });
        match result {
            Ok(()) => return Ok(m.parsed()),
            Err(e) if worst.as_ref().is_none_or(|(progress, _)| m.progress > *progress) => {
                worst = Some((m.progress, e));
            }
            Err(_) => {}
        }
    }
    Err(worst
        .map_or_else(|| AsmError::new(line.span, "these two instructions cannot issue together"), |w| w.1))
}

/// Operands of one half of a dual instruction, with the fields of that half. `None` if it cannot be that half.
pub fn half_slots(options: &Options, entry: EntryId, second: bool) -> Option<Vec<Slot>> {
    const FIELDS: [(&str, &str); 3] = [("VDSTX", "VDSTY"), ("SRCX0", "SRCY0"), ("VSRCX1", "VSRCY1")];
    let table = options.arch.table();
    let form = forms(options.arch).of(entry);
    let encoding = &table.encodings[table.entries[entry as usize].enc as usize];
    let name = |s: &Slot| s.field.map(|f| encoding.fields[f as usize].name);
    let only_second = !form.slots.iter().any(|s| name(s) == Some("VDSTX"));
    if only_second {
        return second.then(|| form.slots.clone());
    }
    let position = |wanted: &str| encoding.fields.iter().position(|f| f.name == wanted).map(|at| at as u8);
    let first: Vec<Slot> =
        form.slots.iter().filter(|s| !FIELDS.iter().any(|f| name(s) == Some(f.1))).cloned().collect();
    if !second {
        return Some(first);
    }
    let moved = |s: &Slot| {
        let y = FIELDS.iter().find(|f| name(s) == Some(f.0)).map(|f| f.1);
        Slot { field: y.map_or(s.field, position), ..s.clone() }
    };
    Some(first.iter().map(moved).collect())
}

/// A mnemonic in lower case, as nearly all are written.
pub fn lower(name: &str) -> Cow<'_, str> {
    // Without a branch a byte.
    let upper = name.bytes().fold(false, |upper, b| upper | b.is_ascii_uppercase());
    if upper { name.to_ascii_lowercase().into() } else { name.into() }
}

struct Matcher<'a, 't> {
    form: &'static Form,
    line: &'a Line<'t>,
    options: &'a Options,
    inst: Inst,
    literal: Option<u32>,
    fixups: Vec<Fixup>,
    /// A modifier that an operand took.
    taken: Option<usize>,
    /// How far the line matched, to tell which form's error to show.
    progress: usize,
    /// Someone will read the error. While forms are tried, nobody does.
    told: bool,
}

impl<'a, 't> Matcher<'a, 't> {
    fn new(form: &'static Form, line: &'a Line<'t>, options: &'a Options) -> Matcher<'a, 't> {
        let inst =
            Inst { entry: form.entry, entry_y: EntryId::MAX, size: form.size_bytes, fields: form.start };
        Matcher {
            form,
            line,
            options,
            inst,
            literal: None,
            fixups: Vec::new(),
            taken: None,
            progress: 0,
            told: false,
        }
    }

    /// An error whose words are made only if someone reads them.
    fn error(&self, span: Span, message: impl FnOnce() -> String) -> AsmError {
        AsmError::new(span, if self.told { message() } else { String::new() })
    }

    fn fixups_from(&mut self, line: &'a Line<'t>) {
        self.line = line;
    }

    fn run(&mut self) -> Result<(), AsmError> {
        let form = self.form;
        self.preset()?;
        let mut slots = form.slots.as_slice();
        let given = self.line.operands.len();
        if form.returns.is_some() && given + 1 == slots.len() {
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
                return Err(self.wrong_return(returns));
            }
        }
        if form.literal.is_some() && self.literal.is_none() && !form.own_literal {
            return Err(AsmError::new(line.span, "no operand is a literal"));
        }
        self.legal(&[&form.slots], &[&line.operands], line.span)
    }

    /// What hardware can do. `operands`: those of each half, beside its slots, of which the first may have none.
    fn legal(&self, halves: &[&[Slot]], operands: &[&[Operand]], span: Span) -> Result<(), AsmError> {
        if self.options.lenient {
            return Ok(());
        }
        legal::check(&self.inst, self.options, halves).map_err(|e| {
            let own = e.operand.and_then(|(half, at)| {
                let skipped = halves[half].len().saturating_sub(operands[half].len());
                operands[half].get(at.checked_sub(skipped)?)
            });
            e.at(own.map_or(span, |o| o.span))
        })
    }

    /// Modifiers without which the instruction would be another one than its line says.
    fn required(&self) -> Result<(), AsmError> {
        let (form, line) = (self.form, self.line);
        let given = |own: &Mod| line.modifiers.iter().any(|m| own.accepts(m.name));
        for own in &form.mods {
            let missing = match own {
                Mod::DppCtrl { .. } => "its lane movement (DPP), as in quad_perm:[0,1,2,3] or row_shl:1",
                Mod::Dpp8 { .. } => "its lane movement (DPP), as in dpp8:[7,6,5,4,3,2,1,0]",
                Mod::Dim { .. } => "its dimension, as in dim:SQ_RSRC_IMG_2D",
                Mod::Flag { name: "gds", .. } if form.traits.has(Trait::GlobalDataShare) => "`gds`",
                _ => continue,
            };
            if !given(own) {
                return Err(self.error(line.span, || format!("`{}` needs {missing}", line.mnemonic)));
            }
        }
        for m in &line.modifiers {
            if let (Some(Mod::Th { scope, kind, .. }), ModifierValue::Word(word)) =
                (form.mods.iter().find(|own| own.accepts(m.name)), &m.value)
                && !modifier::hint_fits(word, self.inst.fields[*scope as usize], *kind)
            {
                let message = format!("`th:{word}` does not go with this `scope:`");
                let rule = "bypassing hints need scope:SCOPE_SYS, last use and write-back another scope";
                return Err(AsmError::new(m.span, message).help(rule));
            }
        }
        if form.traits.has(Trait::OneChannel) && self.get("DMASK").count_ones() != 1 {
            return Err(AsmError::new(line.span, "`dmask:` chooses one channel here: one bit of four"));
        }
        Ok(())
    }

    fn wrong_return(&self, returns: bool) -> AsmError {
        let hint =
            if self.options.arch == wavesim_isa::arch::Arch::Rdna4 { "th:TH_ATOMIC_RETURN" } else { "glc" };
        let what = if returns {
            format!("with `{hint}` the atomic returns the old value: a register for it belongs first")
        } else {
            format!("an atomic that returns the old value needs `{hint}`")
        };
        AsmError::new(self.line.span, what)
    }

    /// Modifiers that say how large operands are, before the operands.
    fn preset(&mut self) -> Result<(), AsmError> {
        let sizes =
            |m: &&Modifier| matches!(m.name, "dmask" | "dim" | "a16" | "d16" | "tfe" | "idxen" | "offen");
        for m in self.line.modifiers.iter().filter(sizes) {
            if let Some(own) = self.form.mods.iter().find(|own| own.accepts(m.name)) {
                own.apply(m, &mut self.inst, self.options, 0)?;
            }
        }
        Ok(())
    }

    /// What a line that matches has come to.
    fn parsed(mut self) -> Parsed {
        if let (Some(field), Some(value)) = (self.form.literal, self.literal) {
            self.inst.fields[field as usize] = value;
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
        // In the short encodings VCC may be left out wherever it stands.
        let implied = self.short()
            && operands.len() + slots.iter().filter(|s| s.kind == Kind::Vcc).count() == slots.len();
        for slot in slots {
            let rest = operands.get(at..).unwrap_or(&[]);
            if rest.is_empty() && slot.kind == Kind::Imm(Imm::Optional) {
                continue;
            }
            if slot.kind == Kind::Vcc && implied {
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

    /// Matches a slot; how many operands it took.
    fn slot(&mut self, slot: &Slot, operands: &'a [Operand<'t>], line: &Line<'t>) -> Result<usize, AsmError> {
        let Some(operand) = operands.first() else {
            let end = Span::new(line.span.end, line.span.end);
            return Err(self
                .error(end, || format!("`{}` needs another operand: {}", line.mnemonic, self.wanted(slot))));
        };
        let wave = self.options.wave;
        match slot.kind {
            Kind::Imm(imm) => return self.immediate(slot, imm, operands),
            Kind::Value => self.value(slot, operand, slot.size.registers(wave))?,
            Kind::Vcc => {
                let vcc = matches!(&operand.value, Value::Reg(r)
                    if r.base == RegBase::Special(Special::VccLo) && r.count as u32 == wave / 32);
                if !vcc || operand.neg || operand.abs {
                    let name = if wave == 64 { "vcc" } else { "vcc_lo" };
                    return Err(
                        self.error(operand.span, || format!("this operand is {name}, the wave's mask"))
                    );
                }
            }
            Kind::Literal => {
                if operand.neg || operand.abs {
                    return Err(AsmError::new(operand.span, "a literal takes no sign and no absolute value"));
                }
                let bits = match &operand.value {
                    Value::Expr(_) | Value::Word(_) => {
                        self.symbol_literal(slot, operand)?;
                        0
                    }
                    value => match constant::encode(value, slot.constant, true) {
                        Ok(Encoded::Literal(bits)) => bits,
                        Ok(_) => 0,
                        Err(what) => return Err(AsmError::new(operand.span, what)),
                    },
                };
                self.set_literal(bits, operand.span)?;
            }
            Kind::ScalarOffset => self.scalar_offset(slot, operand)?,
            Kind::FlatAddr => {
                // Beside a scalar base the address is an offset of 32 bits.
                let base = operands[1..].iter().any(|o| match &o.value {
                    Value::Reg(r) => {
                        matches!(r.base, RegBase::Sgpr(_) | RegBase::Ttmp(_) | RegBase::Special(_))
                    }
                    _ => false,
                });
                let narrow = base && self.form.slots.iter().any(|s| s.kind == Kind::FlatBase);
                self.value(slot, operand, if narrow { 1 } else { 2 })?;
            }
            Kind::FlatBase | Kind::ScratchBase => {
                if !is_off(operand) {
                    self.value(slot, operand, slot.size.registers(wave))?;
                }
            }
            Kind::ScratchAddr => {
                if !is_off(operand) {
                    self.value(slot, operand, 1)?;
                    self.set("SVE", 1);
                }
            }
            Kind::BufferAddr => {
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
            Kind::BufferData => {
                let count = slot.size.registers(wave) + self.get("TFE") as u16;
                self.value(slot, operand, count)?;
            }
            Kind::ImageData => {
                let listed = slot.size.registers(wave);
                let dmask = self.get("DMASK");
                let count = image::data_registers(&self.inst, self.options.arch, listed, dmask);
                self.value(slot, operand, count)?;
            }
            Kind::ImageAddr => self.image_address(slot, operand)?,
            Kind::Target => {
                let Value::Word(word) = &operand.value else {
                    return Err(self.wrong(slot, operand));
                };
                let types = slot.names;
                let Some(value) = types.value(word) else {
                    let error = AsmError::new(operand.span, format!("`{word}` is no export target"));
                    return Err(match suggest(word, types.all()) {
                        Some(help) => error.help(help),
                        None => error,
                    });
                };
                self.put(slot, value);
            }
            Kind::Export(n) => {
                if !is_off(operand) {
                    self.value(slot, operand, 1)?;
                    let en = self.get("EN");
                    self.set("EN", en | 1 << n);
                }
            }
            Kind::Attribute => self.attribute(slot, operand)?,
        }
        Ok(1)
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

    fn put(&mut self, slot: &Slot, value: u32) {
        if let Some(field) = slot.field {
            self.inst.fields[field as usize] = value;
        }
    }

    fn has(&self, field: &str) -> bool {
        self.inst.encoding(self.options.arch.table()).fields.iter().any(|f| f.name == field)
    }

    /// What belongs in a slot, in words.
    fn wanted(&self, slot: &Slot) -> String {
        let ty = self.options.arch.table().operand_types[slot.ty as usize].name;
        let count = slot.size.registers(self.options.wave);
        let registers = |what: &str| match count {
            1 => format!("a {what} register"),
            n => format!("{n} {what} registers"),
        };
        match slot.kind {
            Kind::Imm(Imm::Label) => "a label".to_string(),
            Kind::Imm(_) => "a whole number of 16 bits".to_string(),
            Kind::Vcc => if self.options.wave == 64 { "vcc" } else { "vcc_lo" }.to_string(),
            Kind::Literal => "a 32-bit number".to_string(),
            Kind::Target => "an export target, as in mrt0 or pos0".to_string(),
            Kind::Attribute => "an attribute, as in attr0.x".to_string(),
            Kind::FlatBase | Kind::ScratchBase => format!("{} or `off`", registers("scalar")),
            Kind::ScratchAddr | Kind::BufferAddr | Kind::Export(_) => {
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

    fn wrong(&self, slot: &Slot, operand: &Operand) -> AsmError {
        self.error(operand.span, || format!("{} belongs here", self.wanted(slot)))
    }

    /// A register or a constant in an ordinary field.
    #[inline]
    fn value(&mut self, slot: &Slot, operand: &Operand, count: u16) -> Result<(), AsmError> {
        if operand.neg || operand.abs {
            if let Some(value) = folded(slot, operand) {
                return self.constant(slot, &Operand { value, neg: false, abs: false, ..operand.clone() });
            }
            self.signs(slot, operand)?;
        }
        let reg = match &operand.value {
            Value::Reg(reg) => *reg,
            // Vector registers in brackets that are no addresses: a range in other words.
            Value::List(list) => operand::consecutive(list).ok_or_else(|| self.wrong(slot, operand))?,
            _ => return self.constant(slot, operand),
        };
        let code = self.register(slot, &reg, count, operand.span)?;
        self.put(slot, code);
        Ok(())
    }

    /// A number, or a symbol that will be one, in an ordinary field.
    fn constant(&mut self, slot: &Slot, operand: &Operand) -> Result<(), AsmError> {
        let types = slot.names;
        if matches!(operand.value, Value::Expr(_) | Value::Word(_)) {
            let literal = types.literal.filter(|_| self.form.literal.is_some() && !self.form.own_literal);
            let Some(code) = literal else { return Err(self.unknown_word(slot, operand)) };
            self.symbol_literal(slot, operand)?;
            self.put(slot, code);
            return self.set_literal(0, operand.span);
        }
        if !matches!(operand.value, Value::Int(_) | Value::Float(_)) {
            return Err(self.wrong(slot, operand));
        }
        if operand.doubled && slot.signed && slot.source.is_some() {
            return Err(AsmError::new(operand.span, "one sign is enough").help("neg(-1) negates a number"));
        }
        if !types.has_constants() {
            return Err(self.wrong(slot, operand));
        }
        let encoded = constant::encode(&operand.value, slot.constant, operand.literal)
            .map_err(|what| AsmError::new(operand.span, what))?;
        let code = match encoded {
            Encoded::Integer(value) => types.integer(value),
            Encoded::Float(at) => types.value(constant::FLOATS[at].0),
            Encoded::Literal(bits) => {
                let code = types.literal.filter(|_| self.form.literal.is_some());
                if code.is_some() {
                    self.set_literal(bits, operand.span)?;
                }
                code
            }
        };
        match code {
            Some(code) => self.put(slot, code),
            None if matches!(encoded, Encoded::Literal(_)) => {
                return Err(AsmError::new(
                    operand.span,
                    "this form takes no literal; inline constants are -16 to 64 and ±0.5, ±1.0, ±2.0, ±4.0",
                ));
            }
            None => return Err(self.wrong(slot, operand)),
        }
        Ok(())
    }

    fn unknown_word(&self, slot: &Slot, operand: &Operand) -> AsmError {
        match &operand.value {
            Value::Word(word) if self.told => {
                let error = AsmError::new(
                    operand.span,
                    format!("`{word}` is no register; {} belongs here", self.wanted(slot)),
                );
                match suggest(
                    word,
                    ["vcc", "vcc_lo", "vcc_hi", "exec", "exec_lo", "exec_hi", "m0", "null", "scc", "off"],
                ) {
                    Some(help) => error.help(help),
                    None => error,
                }
            }
            _ => self.wrong(slot, operand),
        }
    }

    fn symbol_literal(&mut self, slot: &Slot, operand: &Operand) -> Result<(), AsmError> {
        let expr = expression(operand).ok_or_else(|| self.wrong(slot, operand))?;
        let Some(field) = self.form.literal else { return Err(self.wrong(slot, operand)) };
        self.fixups.push(Fixup { field, kind: FixupKind::Literal, expr, span: operand.span });
        Ok(())
    }

    fn set_literal(&mut self, bits: u32, span: Span) -> Result<(), AsmError> {
        if self.literal.is_some_and(|l| l != bits) {
            return Err(AsmError::new(
                span,
                "an instruction holds one literal; this is a second, different one",
            ));
        }
        self.literal = Some(bits);
        Ok(())
    }

    /// NEG and ABS of the operand, where the encoding has them.
    fn signs(&mut self, slot: &Slot, operand: &Operand) -> Result<(), AsmError> {
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
                "this operand is no float: it takes no sign and no absolute value",
            ));
        }
        Ok(())
    }

    fn register(&mut self, slot: &Slot, reg: &Reg, count: u16, span: Span) -> Result<u32, AsmError> {
        let Some(code) = slot.names.register(reg.base) else {
            return Err(self.no_register(slot, reg, count, span));
        };
        let any_width = |reg: &Reg| matches!(reg.base, RegBase::Special(special) if special.any_width());
        if reg.count != count && !any_width(reg) {
            return Err(self.no_registers(slot, count, span));
        }
        if count > 1 {
            self.range(reg, count, span)?;
        }
        match reg.half {
            None => {
                if let RegBase::Vgpr(128..) = reg.base
                    && slot.size == Size::Bits(16)
                    && self.short()
                {
                    return Err(self.error(span, || {
                        format!(
                            "short encodings reach v0 to v127 with 16-bit operands, not {}",
                            reg.first_name()
                        )
                    }));
                }
                Ok(code)
            }
            Some(half) => self.half(slot, reg, half, code, span),
        }
    }

    /// An encoding that keeps a 16-bit operand's half in bit 7 of its register's number.
    fn short(&self) -> bool {
        matches!(self.form.class, Class::E32 | Class::Dpp)
    }

    /// Of a name that the operand's type lacks: a register of another kind, or none at all.
    fn no_register(&self, slot: &Slot, reg: &Reg, count: u16, span: Span) -> AsmError {
        let limit = match reg.base {
            RegBase::Sgpr(n) if n > 105 => "scalar registers are s0 to s105",
            RegBase::Ttmp(n) if n > 15 => "trap registers are ttmp0 to ttmp15",
            RegBase::Vgpr(n) if n > 255 => "vector registers are v0 to v255",
            _ => return self.no_registers(slot, count, span),
        };
        self.error(span, || format!("there is no {}", reg.first_name())).help(limit)
    }

    fn no_registers(&self, slot: &Slot, count: u16, span: Span) -> AsmError {
        let asked = || Slot { size: Size::Bits(32 * count), ..slot.clone() };
        self.error(span, || format!("{} belongs here", self.wanted(&asked())))
    }

    /// Registers that follow each other end within their file. Where they may begin, [`legal`] says.
    fn range(&self, reg: &Reg, count: u16, span: Span) -> Result<(), AsmError> {
        let (first, most) = match reg.base {
            RegBase::Sgpr(n) => (n, 105),
            RegBase::Vgpr(n) => (n, 255),
            RegBase::Ttmp(n) => (n, 15),
            RegBase::Special(_) => return Ok(()),
        };
        if first as u32 + count as u32 - 1 > most {
            return Err(self.error(span, || {
                format!("this range goes beyond the last register; it starts at {}", reg.first_name())
            }));
        }
        Ok(())
    }

    /// Which half of the register: a bit of OP_SEL, or in the short encodings of the register's number.
    fn half(&mut self, slot: &Slot, reg: &Reg, half: Half, code: u32, span: Span) -> Result<u32, AsmError> {
        if slot.size != Size::Bits(16) {
            return Err(AsmError::new(
                span,
                "this operand is no 16-bit value: it takes no half of a register",
            ));
        }
        let RegBase::Vgpr(n) = reg.base else {
            return Err(AsmError::new(span, "only vector registers have halves"));
        };
        let high = half == Half::High;
        let source = slot.source.unwrap_or(0);
        if self.short() {
            if n > 127 {
                return Err(AsmError::new(span, "short encodings reach halves of v0 to v127"));
            }
            return Ok(if high { code | 128 } else { code });
        }
        if high {
            if !self.has("OP_SEL") {
                return Err(AsmError::new(span, "this encoding does not choose halves of registers"));
            }
            let value = self.get("OP_SEL");
            self.set("OP_SEL", value | 1 << source);
        }
        Ok(code)
    }

    fn immediate(&mut self, slot: &Slot, imm: Imm, operands: &'a [Operand<'t>]) -> Result<usize, AsmError> {
        let arch = self.options.arch;
        let operand = &operands[0];
        // Symbolic immediates go on to the end of the operands, but for the one that a register follows.
        let calls = operands.iter().take_while(|o| matches!(o.value, Value::Call(_))).count().max(1);
        let list = &operands[..calls];
        let value = match imm {
            Imm::Waitcnt => symbolic::parse_waitcnt(arch, slot.ty, list)?,
            Imm::Depctr => symbolic::parse_depctr(arch, slot.ty, list)?,
            Imm::Delay => symbolic::parse_delay(arch, slot.ty, list)?,
            Imm::Hwreg => symbolic::parse_hwreg(arch, slot.ty, &operands[..1])?,
            Imm::Sendmsg => symbolic::parse_sendmsg(arch, &operands[..1])?,
            Imm::Label | Imm::Hex | Imm::Small | Imm::Optional | Imm::Version | Imm::Offset => {
                self.number(slot, imm, operand)?;
                return Ok(1);
            }
        };
        self.put(slot, value);
        Ok(match imm {
            Imm::Hwreg | Imm::Sendmsg => 1,
            _ => calls,
        })
    }

    fn number(&mut self, slot: &Slot, imm: Imm, operand: &Operand) -> Result<(), AsmError> {
        let Some(field) = slot.field else { return Ok(()) };
        let width = self.inst.encoding(self.options.arch.table()).fields[field as usize].width();
        match &operand.value {
            _ if operand.literal => Err(self.wrong(slot, operand)),
            Value::Int(value) => {
                let min = if slot.unsigned { 0 } else { -(1i64 << (width - 1)) };
                let max = (1i64 << width) - 1;
                let max = if imm == Imm::Offset { -min - 1 } else { max };
                if !(min..=max).contains(value) || operand.neg || operand.abs {
                    return Err(AsmError::new(operand.span, format!("{value} does not fit {width} bits")));
                }
                self.put(slot, *value as u32 & ((1u64 << width) - 1) as u32);
                Ok(())
            }
            Value::Expr(_) | Value::Word(_) => {
                let expr = expression(operand).ok_or_else(|| self.wrong(slot, operand))?;
                let predefined = |name: &str| symbolic::predefined(name);
                if let Ok(value) = expr.eval(&predefined) {
                    self.put(slot, value as u32 & 0xffff);
                    return Ok(());
                }
                let kind = if imm == Imm::Label { FixupKind::Branch } else { FixupKind::Absolute };
                self.fixups.push(Fixup { field, kind, expr, span: operand.span });
                Ok(())
            }
            _ => Err(self.wrong(slot, operand)),
        }
    }

    fn scalar_offset(&mut self, slot: &Slot, operand: &Operand) -> Result<(), AsmError> {
        let (name, field) = if self.has("IOFFSET") { ("IOFFSET", "IOFFSET") } else { ("OFFSET", "OFFSET") };
        let fields = self.inst.encoding(self.options.arch.table()).fields;
        let width = fields.iter().find(|f| f.name == name).map_or(21, |f| f.width());
        let line = self.line;
        // Offsets into a buffer count up; RDNA 4 has 24 bits that LLVM reads as signed all the same.
        let buffer = |s: &Slot| {
            s.field.is_some_and(|f| fields[f as usize].name == "SBASE") && s.size == Size::Bits(128)
        };
        let unsigned = field == "OFFSET" && self.form.slots.iter().any(buffer);
        let check = |value: i64, span: Span| {
            let (min, max) = (-(1i64 << (width - 1)), (1i64 << (width - 1)) - 1);
            let min = if unsigned { 0 } else { min };
            if (min..=max).contains(&value) {
                Ok(value as u32 & ((1 << width) - 1))
            } else {
                Err(AsmError::new(span, format!("{value} is no offset of {width} bits"))
                    .help(format!("from {min} to {max}")))
            }
        };
        if let Value::Int(value) = operand.value {
            let value = check(value, operand.span)?;
            self.set(field, value);
        } else {
            self.value(slot, operand, 1)?;
        }
        if let Some(at) = line.modifiers.iter().position(|m| m.name == "offset") {
            let m = &line.modifiers[at];
            if matches!(operand.value, Value::Int(_)) {
                return Err(AsmError::new(m.span, "the offset is given already, as the operand"));
            }
            let ModifierValue::Int(value) = m.value else {
                return Err(AsmError::new(m.value_span, "`offset:` takes a number"));
            };
            let value = check(value, m.value_span)?;
            self.set(field, value);
            self.taken = Some(at);
        }
        Ok(())
    }

    fn image_address(&mut self, slot: &Slot, operand: &Operand) -> Result<(), AsmError> {
        let table = self.options.arch.table();
        let name = self.inst.instruction(table).name;
        let a16 = self.get("A16") != 0;
        let total = image::address_registers(name, self.get("DIM"), a16);
        // Where each address has a field of its own, the last may be a range that holds the rest.
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
            _ => return Err(self.wrong(slot, operand)),
        };
        let sizes = image::ray_addresses(name, a16).map_or_else(|| vec![1; total as usize], <[u16]>::to_vec);
        let wrong = |want: String| AsmError::new(operand.span, format!("the addresses are {want}"));
        if places.len() == 1 {
            let [reg] = regs.as_slice() else {
                return Err(wrong(format!("{total} vector registers that follow each other")));
            };
            // As LLVM, which wrote 8 registers where it had no ranges of 5 to 7.
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

    fn address(
        &mut self,
        slot: &Slot,
        field: Option<u8>,
        reg: &Reg,
        count: u16,
        span: Span,
    ) -> Result<(), AsmError> {
        let slot = Slot { field, size: Size::Bits(32 * count), ..slot.clone() };
        let code = self.register(&slot, reg, count, span)?;
        self.put(&slot, code);
        Ok(())
    }

    fn attribute(&mut self, slot: &Slot, operand: &Operand) -> Result<(), AsmError> {
        let word = match &operand.value {
            Value::Word(word) => *word,
            _ => "",
        };
        let parsed = word.rsplit_once('.').and_then(|(name, channel)| {
            let number = name.strip_prefix("attr")?.parse::<u32>().ok()?;
            Some((number, "xyzw".find(channel).filter(|_| channel.len() == 1)? as u32))
        });
        let Some((number, channel)) = parsed.filter(|p| p.0 <= LAST_ATTRIBUTE) else {
            return Err(self.wrong(slot, operand));
        };
        self.put(slot, number);
        self.set("ATTR_CHAN", channel);
        Ok(())
    }

    fn modifiers(&mut self) -> Result<(), AsmError> {
        let line = self.line;
        let sources = self.form.sources;
        for (at, m) in line.modifiers.iter().enumerate() {
            if self.taken == Some(at) {
                continue;
            }
            let Some(own) = self.form.mods.iter().find(|own| own.accepts(m.name)) else {
                return Err(self.unknown_modifier(m));
            };
            if let Some(before) = line.modifiers[..at].iter().find(|before| own.accepts(before.name)) {
                let message = match before.name == m.name {
                    true => format!("`{}` is given twice", m.name),
                    false => format!("`{}` is given beside `{}`", m.name, before.name),
                };
                return Err(AsmError::new(m.span, message));
            }
            own.apply(m, &mut self.inst, self.options, sources)?;
            self.progress += 1;
        }
        if let Some(Mod::Format { field }) = self.form.mods.iter().find(|m| matches!(m, Mod::Format { .. }))
            && !line.modifiers.iter().any(|m| m.name == "format")
        {
            self.inst.fields[*field as usize] = modifier::DEFAULT_FORMAT;
        }
        Ok(())
    }

    fn unknown_modifier(&self, m: &Modifier) -> AsmError {
        if !self.told {
            return AsmError::new(m.span, "");
        }
        let error = AsmError::new(m.span, format!("`{}` takes no `{}`", self.line.mnemonic, m.name));
        let known: Vec<&str> = self.form.mods.iter().map(Mod::name).collect();
        match suggest(m.name, known.iter().copied()) {
            Some(help) => error.help(help),
            None if known.is_empty() => error.help("it has no modifiers"),
            None => error.help(format!("it has {}", known.join(", "))),
        }
    }
}

/// Attributes are from 0 to this (RDNA ISA manuals, *Parameter Interpolation*).
const LAST_ATTRIBUTE: u32 = 32;

/// A constant with the signs of an encoding that has no bits for them applied, as LLVM does for floats.
fn folded<'t>(slot: &Slot, operand: &Operand<'t>) -> Option<Value<'t>> {
    use super::form::Constant;
    let absent = |wanted: bool, bit: Option<Bit>| !wanted || bit.is_none();
    slot.source.filter(|_| slot.kind == Kind::Value)?;
    if !absent(operand.neg, slot.neg) || !absent(operand.abs, slot.abs) || operand.literal {
        return None;
    }
    let width = match slot.constant {
        Constant::F16 | Constant::Bf16 => 16,
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
            // What does not fit is said when it is encoded.
            let fits = width == 64 || (-(sign as i64)..=mask as i64).contains(&value);
            let bits = value as u64 & mask & if operand.abs { !sign } else { !0 };
            fits.then_some(Value::Int((bits ^ if operand.neg { sign } else { 0 }) as i64))
        }
        _ => None,
    }
}

fn is_off(operand: &Operand) -> bool {
    matches!(operand.value, Value::Word("off"))
}

fn expression(operand: &Operand) -> Option<Expr> {
    if operand.neg || operand.abs {
        return None;
    }
    match &operand.value {
        Value::Expr(e) => Some(Expr::clone(e)),
        Value::Word(word) if !reserved(word) => Some(Expr::Symbol(word.to_string(), operand.span)),
        _ => None,
    }
}

/// Names of registers that other processors have, and LLVM takes for no symbol.
fn reserved(word: &str) -> bool {
    let bare = word.strip_suffix(".l").or(word.strip_suffix(".h")).unwrap_or(word);
    let number = OTHER_FILES.iter().find_map(|file| bare.strip_prefix(file)).unwrap_or_default();
    let numbered = !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit());
    let half =
        |name: &str| name == bare || bare.strip_suffix("_lo").or(bare.strip_suffix("_hi")) == Some(name);
    numbered || OTHER_REGISTERS.into_iter().any(half)
}
