//! Reads a file statement by statement: labels, definitions, conditionals, macros, instructions. Directives
//! that emit data or describe symbols and sections are in `directive`.

use super::conditional::Conditionals;
use super::descriptor::Descriptor;
use super::error::{AsmError, MAX_SUGGESTIONS, Span};
use super::expand::{Input, Next, first_word};
use super::expr::{self, Expr, Symbols};
use super::macros::{self, Macro};
use super::operand::{self, Line, RegBase, Value};
use super::program::{
    Base, Definition, File, LineError, Listed, MAX_BYTES, Memory, Pending, Program, Section, Values, Waiting,
};
use super::scan::Scanner;
use super::source::{Place, SourceLine, Text};
use super::{Fixup, Options, matching};
use std::collections::HashMap;
use std::rc::Rc;
use wavesim_isa::codec::encode;

/// Faults within expansions after which reading ends: one fault in a macro must not be reported a million
/// times.
const MAX_EXPANDED_ERRORS: usize = 100;

/// A block whose lines are not ordinary statements.
pub(super) enum Block {
    /// Outside of any.
    None,
    /// `.amdhsa_kernel`.
    Kernel(Descriptor),
    /// `.amdgpu_metadata`, with the text so far.
    Metadata(String),
}

/// The state of reading.
pub(super) struct Reader<'a> {
    /// What has been read.
    pub program: Program,
    /// The machine for which lines are read.
    pub options: Options,
    /// The main file.
    pub file: &'a File<'a>,
    /// Where lines come from.
    pub input: Input,
    /// The line being read.
    pub line: Text,
    /// Where that line is.
    pub place: Place,
    /// Index of the current section.
    pub current: usize,
    /// Sections by name.
    sections: HashMap<String, usize>,
    /// The section that `.previous` returns to.
    pub previous: usize,
    /// Sections that `.popsection` restores: the current and the previous one.
    pub pushed: Vec<(usize, usize)>,
    /// The block that the line is in.
    pub block: Block,
    /// Bytes of all sections.
    total: usize,
    errors: Vec<LineError>,
    conditionals: Conditionals,
    macros: HashMap<String, Rc<Macro>>,
    /// Macros called so far: `\@`.
    calls: u64,
    /// Macros are called as after `.altmacro`.
    other_macros: bool,
    /// Numbered labels: how often each is defined so far.
    numbered: HashMap<String, u32>,
    /// Anonymous labels, for `.`.
    anonymous: u32,
    /// Registers used so far, one beyond the last: LLVM's `.amdgcn.next_free_vgpr` and `…_sgpr`.
    used: [i64; 2],
}

const USED: [&str; 2] = [".amdgcn.next_free_vgpr", ".amdgcn.next_free_sgpr"];

impl<'a> Reader<'a> {
    /// A reader of `file` in `.text`, with the symbols that LLVM predefines.
    pub fn new(file: &'a File<'a>, options: &Options) -> Reader<'a> {
        let mut reader = Reader {
            program: Program::new(options.arch),
            options: *options,
            file,
            input: Input::new(file.name, file.text),
            line: String::new().into(),
            place: Place::default(),
            current: 0,
            sections: HashMap::new(),
            previous: 0,
            pushed: Vec::new(),
            block: Block::None,
            total: 0,
            errors: Vec::new(),
            conditionals: Conditionals::default(),
            macros: HashMap::new(),
            calls: 0,
            other_macros: false,
            numbered: HashMap::new(),
            anonymous: 0,
            used: [0; 2],
        };
        reader.section(".text", Memory::Code);
        reader.machine_symbols(None);
        for (name, value) in file.defines {
            reader.set(name, Expr::Int(*value));
        }
        reader
    }

    /// Defines LLVM's symbols about the processor (LLVM AMDGPUUsage, *Code Object V3 and Above Predefined
    /// Symbols*).
    pub fn machine_symbols(&mut self, processor: Option<&str>) {
        let digits = processor.and_then(|p| p.strip_prefix("gfx")).unwrap_or(match self.options.arch {
            wavesim_isa::arch::Arch::Rdna35 => "1150",
            wavesim_isa::arch::Arch::Rdna4 => "1201",
            wavesim_isa::arch::Arch::Cdna3 => "942",
            wavesim_isa::arch::Arch::Cdna4 => "950",
            _ => "1100",
        });
        let number = digits.parse::<i64>().unwrap_or(0);
        for (name, value) in [
            (".amdgcn.gfx_generation_number", number / 100),
            (".amdgcn.gfx_generation_minor", number / 10 % 10),
            (".amdgcn.gfx_generation_stepping", number % 10),
        ] {
            self.set(name, Expr::Int(value));
        }
        for name in USED {
            self.set(name, Expr::Int(0));
        }
    }

    /// Reads to the end; returns the program and every error.
    pub fn read(mut self) -> (Program, Vec<LineError>) {
        loop {
            match self.input.read() {
                Ok(Next::Line(line, place)) => {
                    (self.line, self.place) = (line.text, place);
                    self.one_line();
                }
                Ok(Next::End { conditionals }) => self.unclosed(conditionals),
                Ok(Next::Nothing) => break,
                Err(error) => {
                    self.place = self.input.place;
                    self.fault(error);
                }
            }
        }
        self.unclosed(0);
        if !matches!(self.block, Block::None) {
            self.fault(AsmError::new(Span::default(), "the file ends within a block"));
        }
        self.program.sources = std::mem::take(&mut self.input.sources);
        (self.program, self.errors)
    }

    /// Conditionals beyond the first `floor` were not closed where they should have been.
    fn unclosed(&mut self, floor: usize) {
        while self.conditionals.open.len() > floor {
            let Some(c) = self.conditionals.open.pop() else { return };
            let error = AsmError::new(c.span, "this has no `.endif`");
            self.errors.push(LineError::new(&self.input.sources, c.place, &c.line, error));
        }
    }

    fn fault(&mut self, error: AsmError) {
        self.errors.push(LineError::new(&self.input.sources, self.place, &self.line, error));
        self.options.suggest &= self.errors.len() < MAX_SUGGESTIONS;
        let expanded = self.input.sources.depth(self.place) > 0;
        let expanded_errors = || self.errors.iter().filter(|e| !e.chain.is_empty()).count();
        if expanded && self.errors.len() >= MAX_EXPANDED_ERRORS && expanded_errors() >= MAX_EXPANDED_ERRORS {
            self.input.finish();
        }
    }

    fn one_line(&mut self) {
        let line = self.line.clone();
        let line = &line[..];
        if let Block::Metadata(text) = &mut self.block {
            if line.trim() == ".end_amdgpu_metadata" {
                let text = std::mem::take(text);
                self.program.metadata = Some(text);
                self.block = Block::None;
            } else {
                text.push_str(line);
                text.push('\n');
            }
            return;
        }
        // A line of the C preprocessor, or a shell's first line.
        let mut s = Scanner::new(line);
        s.space();
        if s.byte() == Some(b'#') {
            return;
        }
        if let Err(error) = self.statement(line) {
            self.fault(error);
        }
    }

    fn statement(&mut self, line: &str) -> Result<(), AsmError> {
        let mut s = Scanner::new(line);
        if !self.conditionals.reads() {
            return self.skipped(&mut s, first_word(line));
        }
        loop {
            if s.done() {
                return Ok(());
            }
            if let Some(digits) = numbered_label(&mut s) {
                self.numbered(digits, line)?;
                continue;
            }
            let mut ahead = s.clone();
            let Some((name, span)) = ahead.ident() else {
                return Err(AsmError::new(s.here(), "expected an instruction, a label or a directive"));
            };
            let mut after = ahead.clone();
            // A label may stand a space before its colon; a second colon is an instruction's.
            ahead.space();
            if ahead.byte() == Some(b':') && ahead.second() != Some(b':') {
                ahead.skip(1);
                s = ahead;
                self.label(name, span)?;
                continue;
            }
            if ahead.eat('=') {
                ahead.eat('=');
                return self.define(name, span, &mut ahead);
            }
            let dot = name.starts_with('.');
            if dot && self.conditional(name, span, &mut ahead)? {
                return Ok(());
            }
            if let Some(called) = self.macros.get(name).cloned() {
                let calls = self.calls;
                let arguments = match self.other_macros {
                    true => {
                        let mut evaluate = |s: &mut Scanner| self.value(s).map(|v| v.0);
                        called.arguments(&mut ahead, calls, Some(&mut evaluate))?
                    }
                    false => called.arguments(&mut ahead, calls, None)?,
                };
                self.calls += 1;
                let open = self.conditionals.open.len();
                return at(span, self.input.expand(called, arguments, open));
            }
            if dot {
                if self.expansion(name, span, &mut ahead)? {
                    return Ok(());
                }
                self.directive(name, span, &mut ahead)?;
                return match ahead.done() {
                    true => Ok(()),
                    false => Err(AsmError::new(ahead.here(), format!("`{name}` ends before this"))),
                };
            }
            return self.instruction(line, (name, span), &mut after);
        }
    }

    // Labels and symbols.

    /// Defines a label here; an error if the symbol has a definition.
    pub fn label(&mut self, name: &str, span: Span) -> Result<(), AsmError> {
        if self.program.symbols.contains_key(name) {
            return Err(AsmError::new(span, format!("`{name}` is defined already")));
        }
        let definition = Definition::Label { section: self.current, offset: self.here() };
        self.program.symbols.insert(name.to_string(), definition);
        self.program.order.push(name.to_string());
        Ok(())
    }

    /// `1:`, which may be defined again.
    fn numbered(&mut self, digits: &str, line: &str) -> Result<(), AsmError> {
        let count = self.numbered.entry(digits.to_string()).or_default();
        *count += 1;
        let name = format!("{digits}#{count}");
        self.label(&name, Span::new(0, line.len()))
    }

    /// Binds what depends on this place: numbered labels get their full names, `.` becomes an anonymous label
    /// here.
    pub fn fast(&mut self, e: Expr) -> Expr {
        let mut here = None;
        let e = e.renamed(&mut |name| {
            if name == "." {
                here = Some(format!(".#{}", self.anonymous));
                return here.clone();
            }
            let (digits, direction) = name.split_at(name.len().checked_sub(1)?);
            if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
                return None;
            }
            let defined = self.numbered.get(digits).copied().unwrap_or(0);
            Some(format!("{digits}#{}", if direction == "b" { defined } else { defined + 1 }))
        });
        if let Some(name) = here {
            self.anonymous += 1;
            let definition = Definition::Label { section: self.current, offset: self.here() };
            self.program.symbols.insert(name, definition);
        }
        e
    }

    /// Defines a symbol, or defines it again.
    pub fn set(&mut self, name: &str, e: Expr) {
        self.program.symbols.insert(name.to_string(), Definition::Expr(e));
    }

    /// `name = expression`. What is known now stays so: `n = n + 1` counts. Distances of labels stay
    /// expressions, which instructions take as literals, as in LLVM.
    pub fn define(&mut self, name: &str, span: Span, s: &mut Scanner) -> Result<(), AsmError> {
        let e = expr::parse(s, true)?;
        let e = self.fast(e);
        let known = match e.mentions(name) {
            true => Values::constant(&self.program.symbols, &e),
            false => e.eval(&Values::new(&self.program.symbols, Base::Nowhere)),
        };
        let e = known.map_or(e, Expr::Int);
        if !s.done() {
            return Err(AsmError::new(s.here(), "the expression ends before this"));
        }
        if matches!(self.program.symbols.get(name), Some(Definition::Label { .. })) {
            return Err(AsmError::new(span, format!("`{name}` is a label already")));
        }
        if name == "." {
            return Err(AsmError::new(span, "the place is moved by `.org`"));
        }
        if let Some(at) = USED.iter().position(|u| *u == name) {
            self.used[at] = if let Expr::Int(v) = e { v } else { self.used[at] };
        }
        self.set(name, e);
        Ok(())
    }

    /// An expression, as its value where that is known already.
    pub fn expression(&mut self, s: &mut Scanner) -> Result<Expr, AsmError> {
        let e = expr::parse(s, true)?;
        let e = self.fast(e);
        Ok(Values::constant(&self.program.symbols, &e).map_or(e, Expr::Int))
    }

    /// An expression whose value must be known here.
    pub fn value(&mut self, s: &mut Scanner) -> Result<(i64, Span), AsmError> {
        s.space();
        let start = s.at();
        let e = expr::parse(s, true)?;
        let e = self.fast(e);
        let span = s.since(start);
        let value = Values::constant(&self.program.symbols, &e);
        match value {
            Ok(value) => Ok((value, span)),
            Err(e) => Err(if e.span == Span::default() { AsmError { span, ..e } } else { e }),
        }
    }

    // Sections.

    /// Byte offset in the current section.
    pub fn here(&self) -> u64 {
        self.program.sections[self.current].bytes.len() as u64
    }

    /// Switches to a section, which is created if there is none of this name.
    pub fn section(&mut self, name: &str, memory: Memory) {
        self.previous = self.current;
        if let Some(found) = self.sections.get(name) {
            self.current = *found;
            return;
        }
        self.program.sections.push(Section::new(name, memory));
        let section = self.program.sections.len() - 1;
        // Its name is the address of its start.
        let start = Definition::Label { section, offset: 0 };
        self.program.symbols.entry(name.to_string()).or_insert(start);
        self.sections.insert(name.to_string(), section);
        self.current = section;
    }

    /// Accounts for so many bytes more; an error beyond [`MAX_BYTES`].
    pub fn grow(&mut self, bytes: usize, span: Span) -> Result<(), AsmError> {
        match self.total.checked_add(bytes).filter(|n| *n <= MAX_BYTES) {
            Some(total) => {
                self.total = total;
                Ok(())
            }
            None => Err(AsmError::new(span, format!("the file comes to more than {} MiB", MAX_BYTES >> 20))),
        }
    }

    /// Appends bytes to the current section; an error beyond [`MAX_BYTES`].
    pub fn push(&mut self, bytes: &[u8], span: Span) -> Result<(), AsmError> {
        self.grow(bytes.len(), span)?;
        self.program.sections[self.current].bytes.extend_from_slice(bytes);
        Ok(())
    }

    /// `count` times `pattern`.
    pub fn fill(&mut self, count: usize, pattern: &[u8], span: Span) -> Result<(), AsmError> {
        self.grow(count.saturating_mul(pattern.len()), span)?;
        let bytes = &mut self.program.sections[self.current].bytes;
        match pattern {
            [byte] => bytes.resize(bytes.len() + count, *byte),
            _ => bytes.extend(std::iter::repeat_n(pattern, count).flatten()),
        }
        Ok(())
    }

    /// Something that waits for symbols, at `offset` of the section.
    pub fn wait(&mut self, offset: u64, what: Pending) {
        let (section, place, line) = (self.current, self.place, self.line.clone());
        self.program.pending.push(Waiting { section, offset, place, line, what });
    }

    // Instructions.

    /// The instruction whose mnemonic is at `span`, before what `s` reads.
    fn instruction<'t>(
        &mut self,
        line: &'t str,
        (name, span): (&'t str, Span),
        s: &mut Scanner<'t>,
    ) -> Result<(), AsmError> {
        let start = span.start;
        if matches!(self.block, Block::Kernel(_)) {
            let message = "only .amdhsa_ directives belong in an .amdhsa_kernel block";
            return Err(AsmError::new(Span::new(start, line.trim_end().len()), message));
        }
        let before = self.used;
        let parsed = {
            let symbols = Values::new(&self.program.symbols, Base::Nowhere);
            let mut read = Line::new(name, span);
            read.read_rest(s, &symbols)?;
            let parsed = matching::assemble(&read, &self.options)?;
            count_registers(&read, &mut self.used);
            parsed
        };
        for (name, used) in USED.iter().zip(self.used).filter(|_| before != self.used) {
            if let Some(Definition::Expr(e)) = self.program.symbols.get_mut(*name) {
                *e = Expr::Int(used);
            }
        }
        let span = || Span::new(start, line.trim_end().len());
        let words =
            encode(self.options.arch, &parsed.inst).map_err(|e| AsmError::new(span(), e.to_string()))?;
        let offset = self.here();
        self.grow(4 * words.len(), Span::default()).map_err(|e| e.or_at(span()))?;
        let bytes = &mut self.program.sections[self.current].bytes;
        words.iter().for_each(|word| bytes.extend_from_slice(&word.to_le_bytes()));
        let listed = self.program.listing.len();
        self.program.listing.push(Listed {
            line: self.input.sources.main_line(self.place) as usize,
            section: self.current,
            offset,
            inst: parsed.inst,
            words,
            options: self.options,
            label: None,
        });
        if !parsed.fixups.is_empty() {
            let fast = |f: Fixup| Fixup { expr: self.fast(f.expr), ..f };
            let fixups = parsed.fixups.into_iter().map(fast).collect();
            self.wait(offset, Pending::Inst { listed, inst: parsed.inst, fixups });
        }
        Ok(())
    }

    // Conditionals.

    /// A line that is not read, of which only the conditionals count.
    fn skipped(&mut self, s: &mut Scanner, word: &str) -> Result<(), AsmError> {
        if word.starts_with(".if") {
            let span = Span::new(0, s.rest().len());
            return self.conditionals.begin(self.place, self.line.clone(), span, false);
        }
        if matches!(word, ".else" | ".elseif" | ".endif") {
            while let Some((name, span)) = s.ident() {
                if name == word {
                    return self.conditional(name, span, s).map(|_| ());
                }
                s.eat(':');
            }
        }
        Ok(())
    }

    /// Whether this is a conditional's directive; what it says is done.
    fn conditional(&mut self, name: &str, span: Span, s: &mut Scanner) -> Result<bool, AsmError> {
        let floor = self.input.floor();
        match name {
            ".else" => self.conditionals.otherwise(name, span, true, true, floor)?,
            ".elseif" => {
                let holds = self.conditionals.asks() && self.value(s)?.0 != 0;
                self.conditionals.otherwise(name, span, holds, false, floor)?;
            }
            ".endif" => self.conditionals.end(span, floor)?,
            _ if name.starts_with(".if") => {
                // A condition that cannot be read is one that does not hold, so that its `.endif` has a
                // partner.
                let holds = self.condition(name, span, s);
                let known = *holds.as_ref().unwrap_or(&false);
                self.conditionals.begin(self.place, self.line.clone(), span, known)?;
                holds?;
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn condition(&mut self, name: &str, span: Span, s: &mut Scanner) -> Result<bool, AsmError> {
        Ok(match name {
            ".if" | ".ifne" => self.value(s)?.0 != 0,
            ".ifeq" => self.value(s)?.0 == 0,
            ".ifge" => self.value(s)?.0 >= 0,
            ".ifgt" => self.value(s)?.0 > 0,
            ".ifle" => self.value(s)?.0 <= 0,
            ".iflt" => self.value(s)?.0 < 0,
            ".ifdef" | ".ifndef" | ".ifnotdef" => {
                let Some((symbol, _)) = s.ident() else {
                    return Err(AsmError::new(s.here(), "expected a symbol"));
                };
                let defined = Values::new(&self.program.symbols, Base::Apart(0)).value(symbol).is_some()
                    || self.program.symbols.contains_key(symbol);
                defined == (name == ".ifdef")
            }
            ".ifb" | ".ifnb" => s.rest().trim().is_empty() == (name == ".ifb"),
            ".ifc" | ".ifnc" => {
                let rest = s.rest();
                let Some((a, b)) = rest.split_once(',') else {
                    return Err(AsmError::new(s.here(), "expected two texts with a comma between"));
                };
                (a.trim() == b.trim()) == (name == ".ifc")
            }
            ".ifeqs" | ".ifnes" => {
                let a = s.string()?;
                s.expect(',')?;
                (a == s.string()?) == (name == ".ifeqs")
            }
            _ => return Err(AsmError::new(span, format!("there is no directive `{name}`"))),
        })
    }

    // Macros, repetitions, files.

    /// Whether this is a directive that changes what is read next; what it says is done.
    fn expansion(&mut self, name: &str, span: Span, s: &mut Scanner) -> Result<bool, AsmError> {
        let open = self.conditionals.open.len();
        match name {
            ".macro" => {
                let lines =
                    self.body(name, span, |w| w == ".macro", |w| matches!(w, ".endm" | ".endmacro"))?;
                let start = s.here();
                let own = Macro::define(s, lines)?;
                if self.macros.contains_key(&own.name) {
                    let error = AsmError::new(start, format!("there is a macro `{}` already", own.name));
                    return Err(error.help("`.purgem` takes it back"));
                }
                self.macros.insert(own.name.clone(), Rc::new(own));
            }
            ".purgem" => {
                let Some((name, at)) = s.ident() else {
                    return Err(AsmError::new(s.here(), "expected a macro's name"));
                };
                if self.macros.remove(name).is_none() {
                    return Err(AsmError::new(at, format!("there is no macro `{name}`")));
                }
            }
            ".exitm" => match self.input.leave_macro() {
                Some(conditionals) => self.conditionals.open.truncate(conditionals),
                None => return Err(AsmError::new(span, "this is in no macro")),
            },
            ".rept" | ".rep" => {
                let times = self.value(s);
                let lines = self.repetition(name, span)?;
                let (times, at_count) = times?;
                let times =
                    u64::try_from(times).map_err(|_| AsmError::new(at_count, "a count is not negative"))?;
                at(span, self.input.repeat(lines, times, open))?;
            }
            ".irp" | ".irpc" => {
                let symbol = s.ident().map(|i| i.0.to_string());
                let here = s.here();
                let lines = self.repetition(name, span)?;
                let Some(symbol) = symbol else {
                    return Err(AsmError::new(here, "expected a symbol"));
                };
                s.expect(',')?;
                let mut values = Vec::new();
                if name == ".irpc" {
                    values.extend(s.rest().trim().trim_matches('"').chars().map(String::from));
                } else {
                    loop {
                        values.push(macros::argument(s)?);
                        if !s.eat(',') && s.done() {
                            break;
                        }
                    }
                }
                at(span, self.input.each(lines, &symbol, values, self.calls, open))?;
            }
            ".include" => {
                let (name, span) = file_name(s)?;
                let bytes =
                    (self.file.open)(&name).map_err(|e| AsmError::new(span, format!("{name}: {e}")))?;
                let text = String::from_utf8(bytes)
                    .map_err(|_| AsmError::new(span, format!("{name} is not text (UTF-8)")))?;
                self.grow(text.len(), span)?;
                at(span, self.input.include(&name, &text, open))?;
            }
            ".end" => self.input.finish(),
            ".endm" | ".endmacro" | ".endr" => {
                let begin = if name == ".endr" { ".rept" } else { ".macro" };
                return Err(AsmError::new(span, format!("`{name}` without `{begin}`")));
            }
            ".altmacro" | ".noaltmacro" => self.other_macros = name == ".altmacro",
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn repetition(&mut self, name: &str, span: Span) -> Result<Vec<SourceLine>, AsmError> {
        self.body(name, span, |w| matches!(w, ".rept" | ".rep" | ".irp" | ".irpc"), |w| w == ".endr")
    }

    fn body(
        &mut self,
        name: &str,
        span: Span,
        begins: impl Fn(&str) -> bool,
        ends: impl Fn(&str) -> bool,
    ) -> Result<Vec<SourceLine>, AsmError> {
        let lines = self.input.block(begins, ends)?;
        // What comes of the block is called where it begins.
        self.input.place = self.place;
        lines.ok_or_else(|| {
            let end = if name == ".macro" { ".endm" } else { ".endr" };
            AsmError::new(span, format!("`{name}` has no `{end}`"))
        })
    }
}

/// A fault of a call is reported at the call.
fn at(span: Span, result: Result<(), AsmError>) -> Result<(), AsmError> {
    result.map_err(|e| AsmError { span, ..e })
}

/// `1:`
fn numbered_label<'t>(s: &mut Scanner<'t>) -> Option<&'t str> {
    s.byte().filter(u8::is_ascii_digit)?;
    let rest = s.rest();
    let len = rest.find(|c: char| !c.is_ascii_digit())?;
    let after = rest[len..].trim_start();
    if !after.starts_with(':') || after.starts_with("::") {
        return None;
    }
    s.skip(rest.len() - after.len() + 1);
    Some(&rest[..len])
}

/// The name of a file or a section in quotes.
pub(super) fn file_name(s: &mut Scanner) -> Result<(String, Span), AsmError> {
    s.space();
    let start = s.at();
    let bytes = s.string()?;
    let span = s.since(start);
    String::from_utf8(bytes)
        .map(|name| (name, span))
        .map_err(|_| AsmError::new(span, "a name has to be UTF-8"))
}

/// Raises `used` to one beyond the registers of a line.
fn count_registers(line: &Line, used: &mut [i64; 2]) {
    let mut count = |reg: operand::Reg| {
        let (at, first) = match reg.base {
            RegBase::Vgpr(n) => (0, n),
            RegBase::Sgpr(n) => (1, n),
            _ => return,
        };
        used[at] = used[at].max(first as i64 + reg.count as i64);
    };
    for operand in line.operands.iter().chain(line.second.iter().flat_map(|l| &l.operands)) {
        match &operand.value {
            Value::Reg(reg) => count(*reg),
            Value::List(regs) => regs.iter().copied().for_each(&mut count),
            _ => {}
        }
    }
}
