//! Assembly of machines with a description of their own ([`Assembly`]): one instruction a line, mnemonic and
//! operands; labels; comments; directives for the size of the launch. Operands are described by the tables:
//! registers by the names of the operand type, numbers (`OPR_IMM…`) by the width of their field. A label in a
//! number's place is an instruction's number, or the distance to it where the type is a target
//! (`OPR_IMM_LABEL`).

use super::Options;
use super::error::{AsmError, Span, suggest};
use super::names::names;
use super::program::LineError;
use isa_spec::tables::{EntryId, Field, MAX_FIELDS, OperandSig, OperandType};
use std::collections::{BTreeMap, HashMap};
use wavesim_isa::arch::Arch;
use wavesim_isa::arch::machine::{Assembly, Machine};
use wavesim_isa::codec::encode;
use wavesim_isa::inst::Inst;
use wavesim_isa::operand;

/// A program as read.
#[derive(Debug, Default)]
pub struct Unit {
    /// Instructions with their lines, from 1.
    pub insts: Vec<(Inst, u32)>,
    /// Byte offsets of labels, in order.
    pub labels: Vec<(String, u64)>,
    /// Workgroups.
    pub groups: u32,
    /// Waves of each workgroup.
    pub waves: u32,
}

/// Reads a program. Errors do not stop it; where there are any, the unit is what could be read.
pub fn read(text: &str, arch: Arch, machine: &'static Machine) -> (Unit, Vec<LineError>) {
    let mut reader = Reader {
        syntax: Syntax::new(arch, machine),
        pending: Vec::new(),
        labels: BTreeMap::new(),
        order: Vec::new(),
        launch: [None; 2],
        end: 0,
        errors: Vec::new(),
    };
    for (number, line) in (1..).zip(text.lines()) {
        if let Err(error) = reader.line(number, line) {
            reader.errors.push(LineError::on_line(number, line, error));
        }
    }
    reader.finish()
}

/// The byte offset of a label; what may have been meant, if there is none of that name.
pub type Labels<'l> = &'l dyn Fn(&str) -> Result<u64, Option<String>>;

/// One instruction without label and comment. `here`: its byte offset.
pub fn instruction(
    text: &str,
    arch: Arch,
    machine: &'static Machine,
    here: u64,
    label: Labels<'_>,
) -> Result<Inst, AsmError> {
    let syntax = Syntax::new(arch, machine);
    let tokens = syntax.tokens(text)?;
    let entries = syntax.entries(&tokens)?;
    syntax.matched(&entries, &tokens, here, label)
}

/// The instruction as text; a branch's target as `label`, if that is given.
pub fn print(inst: &Inst, arch: Arch, machine: &'static Machine, label: Option<&str>) -> String {
    let syntax = Syntax::new(arch, machine);
    let mut out = syntax.mnemonic(inst.instruction(arch.table()).name);
    for (at, part) in syntax.patterns(inst.entry)[0].iter().enumerate() {
        match part {
            Part::Mark(mark) => out.push(*mark),
            Part::Operand(operand, field) => {
                if at == 0 || matches!(syntax.patterns(inst.entry)[0][at - 1], Part::Mark(',')) {
                    out.push(' ');
                }
                out.push_str(&syntax.operand_text(operand, field, inst, label));
            }
        }
    }
    out
}

/// The distance of a branch's target from the instruction's end, in words, if the target is an offset.
pub fn branch_words(inst: &Inst, arch: Arch, machine: &'static Machine) -> Option<i64> {
    let table = arch.table();
    let sig = table.signatures[inst.entry(table).sig as usize];
    let target = sig.iter().find(|o| table.operand_types[o.ty as usize].name == TARGET)?;
    let field = target.field? as usize;
    let bits = inst.encoding(table).fields[field].width();
    let bytes = operand::number(inst.fields[field], bits, true) as i64 * machine.pc_bytes as i64;
    Some((bytes - inst.size as i64) / 4)
}

/// The operand type of a distance between instructions.
const TARGET: &str = "OPR_IMM_LABEL";

#[derive(Debug, Clone, PartialEq)]
enum Token<'t> {
    Word(&'t str),
    Number(i64),
    Mark(char),
}

/// A token with its place.
type Placed<'t> = (Token<'t>, Span);

/// A piece of the syntax of an encoding's operands.
#[derive(Debug, Clone, Copy)]
enum Part {
    Operand(&'static OperandSig, &'static Field),
    Mark(char),
}

/// Parser and printer of one machine.
#[derive(Clone, Copy)]
struct Syntax {
    arch: Arch,
    machine: &'static Machine,
    assembly: &'static Assembly,
}

impl Syntax {
    fn new(arch: Arch, machine: &'static Machine) -> Syntax {
        Syntax { arch, machine, assembly: &machine.assembly }
    }

    fn mnemonic(&self, name: &str) -> String {
        name.to_lowercase().replace('_', &self.assembly.separator.to_string())
    }

    /// The syntaxes of an entry's operands.
    fn patterns(&self, entry: EntryId) -> Vec<Vec<Part>> {
        let table = self.arch.table();
        let entry = &table.entries[entry as usize];
        let encoding = &table.encodings[entry.enc as usize];
        let sig = table.signatures[entry.sig as usize];
        let operand = |o: &'static OperandSig| Some(Part::Operand(o, &encoding.fields[o.field? as usize]));
        let named = |name: &str| {
            let of =
                |o: &&'static OperandSig| matches!(operand(o), Some(Part::Operand(_, f)) if f.name == name);
            operand(sig.iter().find(of)?)
        };
        match self.assembly.operands.iter().find(|o| o.0 == encoding.name) {
            Some((_, patterns)) => patterns.iter().map(|text| parts(text, &named)).collect(),
            None => {
                let mut list = Vec::new();
                for part in sig.iter().filter_map(operand) {
                    if !list.is_empty() {
                        list.push(Part::Mark(','));
                    }
                    list.push(part);
                }
                vec![list]
            }
        }
    }

    fn operand_text(&self, o: &OperandSig, field: &Field, inst: &Inst, label: Option<&str>) -> String {
        let table = self.arch.table();
        let ty = &table.operand_types[o.ty as usize];
        let value = inst.fields[o.field.unwrap_or(0) as usize];
        if let (true, Some(label)) = (ty.name == TARGET, label) {
            return label.to_string();
        }
        match names(self.arch, o.ty).name(value) {
            Some(name) => name.to_string(),
            None => operand::number(value, field.width(), self.is_signed(o)).to_string(),
        }
    }

    /// What belongs in an operand's place, in words.
    fn wanted(&self, ty: &OperandType) -> String {
        let of = |kind: &str, prefix: char, count: u16| {
            format!("a {kind} register ({prefix}0 to {prefix}{})", count - 1)
        };
        let (vector, scalar) = (&self.machine.vector, &self.machine.scalar);
        match ty.name {
            name if vector.operand_types.contains(&name) => of("vector", vector.prefix, vector.count),
            name if scalar.operand_types.contains(&name) => of("scalar", scalar.prefix, scalar.count),
            _ => "a number or a label".to_string(),
        }
    }

    fn is_signed(&self, o: &OperandSig) -> bool {
        self.arch.table().formats[o.format as usize].name.starts_with("FMT_NUM_I")
    }

    /// Splits a line into tokens, without its comment.
    fn tokens<'t>(&self, line: &'t str) -> Result<Vec<Placed<'t>>, AsmError> {
        let text = line.split(self.assembly.comment).next().unwrap_or("");
        let mut out = Vec::new();
        let mut at = 0;
        while let Some(c) = text[at..].chars().next() {
            let rest = &text[at..];
            let word = |c: char| c.is_alphanumeric() || matches!(c, '_' | '.' | '$');
            let signed = matches!(c, '-' | '+');
            let len = match c {
                _ if c.is_whitespace() => {
                    at += c.len_utf8();
                    continue;
                }
                ',' | '(' | ')' | ':' => 1,
                _ if signed || word(c) => {
                    signed as usize
                        + rest[signed as usize..].find(|c| !word(c)).unwrap_or(rest.len() - signed as usize)
                }
                _ => {
                    let span = Span::new(at, at + c.len_utf8());
                    return Err(AsmError::new(span, format!("`{c}` cannot be part of a program")));
                }
            };
            let (text, span) = (&rest[..len], Span::new(at, at + len));
            let token = match c {
                ',' | '(' | ')' | ':' => Token::Mark(c),
                _ if signed || c.is_ascii_digit() => Token::Number(number(text).ok_or_else(|| {
                    AsmError::new(span, format!("`{text}` is not a number, as 12, -3, 0x1f or 0b101 are"))
                })?),
                _ => Token::Word(text),
            };
            out.push((token, span));
            at += len;
        }
        Ok(out)
    }

    /// The entries of the instruction that the first token names.
    fn entries(&self, tokens: &[Placed<'_>]) -> Result<Vec<EntryId>, AsmError> {
        let Some((token, span)) = tokens.first() else {
            return Err(AsmError::new(Span::default(), "expected an instruction"));
        };
        let Token::Word(word) = token else {
            return Err(AsmError::new(*span, "expected an instruction, a label or a directive"));
        };
        let wanted = word.to_lowercase();
        let table = self.arch.table();
        let all_names = |i: &'static isa_spec::tables::Instruction| {
            std::iter::once(i.name).chain(i.aliases.iter().copied()).map(|n| self.mnemonic(n))
        };
        let found = table.instructions.iter().find(|i| all_names(i).any(|n| n == wanted));
        match found {
            Some(i) => Ok((i.entries.0..i.entries.0 + i.entries.1).collect()),
            None => {
                let error = AsmError::new(*span, format!("{} has no instruction `{word}`", self.arch.name()));
                let known: Vec<String> = table.instructions.iter().map(|i| self.mnemonic(i.name)).collect();
                Err(match suggest(&wanted, known.iter().map(String::as_str)) {
                    Some(help) => error.help(help),
                    None => error,
                })
            }
        }
    }

    /// The instruction of the first entry that the tokens after the mnemonic match.
    fn matched(
        &self,
        entries: &[EntryId],
        tokens: &[Placed<'_>],
        here: u64,
        label: Labels<'_>,
    ) -> Result<Inst, AsmError> {
        // The syntax that matches furthest gives the best error.
        let mut worst: Option<(usize, AsmError)> = None;
        for &entry in entries {
            for pattern in self.patterns(entry) {
                let mut m = Matcher { syntax: self, tokens, at: 1, here, label };
                match m.run(entry, &pattern) {
                    Ok(inst) => return Ok(inst),
                    Err(e) if worst.as_ref().is_none_or(|w| m.at > w.0) => worst = Some((m.at, e)),
                    Err(_) => {}
                }
            }
        }
        Err(worst.map_or_else(|| AsmError::new(Span::default(), "this instruction has no syntax"), |w| w.1))
    }
}

/// `RD, IMM(RS1)`.
fn parts(text: &str, named: &dyn Fn(&str) -> Option<Part>) -> Vec<Part> {
    let mut out = Vec::new();
    let mut rest = text.trim();
    while let Some(c) = rest.chars().next() {
        let len =
            rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len()).max(c.len_utf8());
        match named(&rest[..len]) {
            Some(part) => out.push(part),
            None => out.push(Part::Mark(c)),
        }
        rest = rest[len..].trim_start();
    }
    out
}

/// Decimal, or hexadecimal and binary with their prefix; a sign before.
pub fn number(text: &str) -> Option<i64> {
    let (negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let lower = digits.to_ascii_lowercase();
    let (radix, digits) = match (lower.strip_prefix("0x"), lower.strip_prefix("0b")) {
        (Some(hex), _) => (16, hex),
        (None, Some(binary)) => (2, binary),
        _ => (10, lower.as_str()),
    };
    // A second sign is not accepted.
    let value =
        digits.chars().all(|c| c.is_digit(radix)).then(|| i64::from_str_radix(digits, radix).ok())??;
    Some(if negative { -value } else { value })
}

struct Matcher<'a> {
    syntax: &'a Syntax,
    tokens: &'a [Placed<'a>],
    at: usize,
    here: u64,
    label: Labels<'a>,
}

impl Matcher<'_> {
    fn run(&mut self, entry: EntryId, pattern: &[Part]) -> Result<Inst, AsmError> {
        let arch = self.syntax.arch;
        let table = arch.table();
        let mut inst = Inst { entry, entry_y: EntryId::MAX, size: 0, fields: [0; MAX_FIELDS] };
        let encoding = inst.encoding(table);
        inst.size = (encoding.bits / 8) as u8;
        for part in pattern {
            match part {
                Part::Mark(mark) => self.mark(*mark)?,
                Part::Operand(o, field) => {
                    inst.fields[o.field.unwrap_or(0) as usize] = self.operand(o, field)?;
                }
            }
        }
        if let Some((_, span)) = self.tokens.get(self.at) {
            return Err(AsmError::new(*span, "the instruction ends before this"));
        }
        for (at, field) in encoding.fields.iter().enumerate() {
            if let Some(value) = field.fixed {
                inst.fields[at] = value;
            }
            if encoding.op_field == Some(at as u8) {
                inst.fields[at] = inst.entry(table).opcode as u32;
            }
        }
        Ok(inst)
    }

    /// Where the line's last token ends.
    fn end(&self) -> Span {
        let end = self.tokens.last().map_or(0, |t| t.1.end);
        Span::new(end, end)
    }

    fn mark(&mut self, mark: char) -> Result<(), AsmError> {
        match self.tokens.get(self.at) {
            Some((Token::Mark(found), _)) if *found == mark => {
                self.at += 1;
                Ok(())
            }
            Some((_, span)) => Err(AsmError::new(*span, format!("expected `{mark}`"))),
            None => {
                Err(AsmError::new(self.end(), format!("the instruction is incomplete: expected `{mark}`")))
            }
        }
    }

    /// The field's value.
    fn operand(&mut self, o: &OperandSig, field: &Field) -> Result<u32, AsmError> {
        let arch = self.syntax.arch;
        let ty = &arch.table().operand_types[o.ty as usize];
        let wanted = self.syntax.wanted(ty);
        let Some((token, span)) = self.tokens.get(self.at) else {
            return Err(AsmError::new(
                self.end(),
                format!("the instruction is incomplete: expected {wanted}"),
            ));
        };
        let value = match token {
            Token::Word(word) if !ty.values.is_empty() => names(arch, o.ty)
                .value(&word.to_lowercase())
                .ok_or_else(|| AsmError::new(*span, format!("expected {wanted}, found `{word}`")))?,
            Token::Word(word) if ty.name.starts_with("OPR_IMM") => {
                let target = (self.label)(word).map_err(|help| AsmError {
                    span: *span,
                    message: format!("there is no label `{word}`").into(),
                    help,
                })?;
                let from = if ty.name == TARGET { self.here } else { 0 };
                let distance = arch.own_pc(target) as i64 - arch.own_pc(from) as i64;
                self.fit(distance, o, field, *span)?
            }
            Token::Number(value) if ty.name.starts_with("OPR_IMM") => self.fit(*value, o, field, *span)?,
            _ => return Err(AsmError::new(*span, format!("expected {wanted}"))),
        };
        self.at += 1;
        Ok(value)
    }

    fn fit(&self, value: i64, o: &OperandSig, field: &Field, span: Span) -> Result<u32, AsmError> {
        let bits = field.width();
        let (low, high) = match self.syntax.is_signed(o) {
            true => (-(1i64 << (bits - 1)), (1i64 << (bits - 1)) - 1),
            false => (0, (1i64 << bits) - 1),
        };
        if !(low..=high).contains(&value) {
            let message = format!("{value} does not fit here: numbers from {low} to {high} do");
            return Err(AsmError::new(span, message));
        }
        Ok(value as u32 & ((1u64 << bits) - 1) as u32)
    }
}

/// An instruction whose labels are not resolved yet.
struct Pending {
    line: usize,
    text: String,
    /// Where the instruction starts in the line.
    from: usize,
    here: u64,
    entries: Vec<EntryId>,
}

struct Reader {
    syntax: Syntax,
    pending: Vec<Pending>,
    labels: BTreeMap<String, (u64, usize)>,
    order: Vec<String>,
    /// Workgroups and waves, with the line of their directive.
    launch: [Option<(u32, usize)>; 2],
    end: u64,
    errors: Vec<LineError>,
}

impl Reader {
    fn line(&mut self, number: usize, line: &str) -> Result<(), AsmError> {
        let tokens = self.syntax.tokens(line)?;
        let mut rest = &tokens[..];
        while let [(Token::Word(name), span), (Token::Mark(':'), _), ..] = rest {
            self.label(name, *span, number)?;
            rest = &rest[2..];
        }
        let Some((first, span)) = rest.first() else { return Ok(()) };
        if let Token::Word(name) = first
            && name.starts_with('.')
        {
            return self.directive(name, *span, &rest[1..], number);
        }
        let here = self.end;
        // A line that is wrong counts as an instruction all the same: the distances of the others stay what
        // they are.
        self.end += self.syntax.machine.pc_bytes;
        let entries = self.syntax.entries(rest)?;
        let table = self.syntax.arch.table();
        let bits = table.encodings[table.entries[entries[0] as usize].enc as usize].bits;
        self.end = here + bits as u64 / 8;
        self.pending.push(Pending { line: number, text: line.to_string(), from: span.start, here, entries });
        Ok(())
    }

    fn label(&mut self, name: &str, span: Span, number: usize) -> Result<(), AsmError> {
        if let Some((_, line)) = self.labels.get(name) {
            return Err(AsmError::new(span, format!("`{name}` is a label already, on line {line}")));
        }
        self.labels.insert(name.to_string(), (self.end, number));
        self.order.push(name.to_string());
        Ok(())
    }

    fn directive(
        &mut self,
        name: &str,
        span: Span,
        rest: &[Placed<'_>],
        number: usize,
    ) -> Result<(), AsmError> {
        let known = [self.syntax.assembly.groups, self.syntax.assembly.waves];
        let Some(which) = known.iter().position(|k| *k == name) else {
            let error = AsmError::new(span, format!("there is no directive `{name}`"));
            return Err(error.help(format!("{} and {} are", known[0], known[1])));
        };
        let most = [u32::MAX, self.syntax.machine.max_waves][which];
        let value = match rest {
            [(Token::Number(value), _)] if (1..=most as i64).contains(value) => *value as u32,
            [(Token::Number(_), span)] => {
                return Err(AsmError::new(*span, format!("{name} takes a number from 1 to {most}")));
            }
            [(Token::Number(_), _), (_, span), ..] => {
                return Err(AsmError::new(*span, "the line ends before this"));
            }
            [(_, span), ..] => return Err(AsmError::new(*span, "expected a number")),
            [] => return Err(AsmError::new(Span::new(span.end, span.end), "expected a number")),
        };
        if let Some((_, line)) = self.launch[which] {
            return Err(AsmError::new(span, format!("{name} has been given already, on line {line}")));
        }
        self.launch[which] = Some((value, number));
        Ok(())
    }

    fn finish(mut self) -> (Unit, Vec<LineError>) {
        let mut unit = Unit {
            insts: Vec::new(),
            labels: self.order.iter().map(|name| (name.clone(), self.labels[name].0)).collect(),
            groups: self.launch[0].map_or(1, |l| l.0),
            waves: self.launch[1].map_or(1, |l| l.0),
        };
        for pending in std::mem::take(&mut self.pending) {
            match self.instruction(&pending) {
                Ok(inst) => unit.insts.push((inst, pending.line as u32)),
                Err(error) => {
                    self.errors.push(LineError::on_line(pending.line, &pending.text, error));
                }
            }
        }
        if self.end == 0 && self.errors.is_empty() {
            let error = AsmError::new(Span::default(), "the program has no instructions");
            self.errors.push(LineError::on_line(1, "", error));
        }
        self.errors.sort_by_key(|e| (e.line, e.column));
        (unit, self.errors)
    }

    fn instruction(&self, pending: &Pending) -> Result<Inst, AsmError> {
        let tokens = self.syntax.tokens(&pending.text)?;
        let first = tokens.iter().position(|t| t.1.start == pending.from).unwrap_or(0);
        let near = |name: &str| suggest(name, self.order.iter().map(String::as_str));
        let label = |name: &str| self.labels.get(name).map(|l| l.0).ok_or_else(|| near(name));
        let inst = self.syntax.matched(&pending.entries, &tokens[first..], pending.here, &label)?;
        // The encoder reports what does not fit a field.
        let span = Span::new(pending.from, pending.text.trim_end().len());
        encode(self.syntax.arch, &inst).map_err(|e| AsmError::new(span, e.to_string()))?;
        Ok(inst)
    }
}

impl Unit {
    /// As the assembler's other front end has it: one section, and the listing.
    pub fn program(&self, arch: Arch, machine: &'static Machine) -> super::program::Program {
        let table = arch.table();
        let by_place: HashMap<u64, &str> = self.labels.iter().map(|l| (l.1, l.0.as_str())).collect();
        let mut bytes = Vec::new();
        let mut listing = Vec::new();
        for (inst, line) in &self.insts {
            let here = bytes.len() as u64;
            let Ok(words) = encode(arch, inst) else { continue };
            bytes.extend(words.iter().flat_map(|w| w.to_le_bytes()));
            let target = branch_words(inst, arch, machine)
                .and_then(|words| by_place.get(&(here + inst.size as u64).wrapping_add_signed(4 * words)));
            let flags = &inst.instruction(table).flags;
            let label = target.filter(|_| flags.branch).copied();
            listing.push(super::program::Listed {
                line: *line as usize,
                section: 0,
                offset: here,
                inst: *inst,
                words,
                options: Options::new(arch),
                label: label.map(str::to_string),
            });
        }
        super::program::Program::of_text(arch, bytes, listing)
    }
}
