//! Reads a file statement by statement: labels, definitions, conditionals, macros, instructions. Directives
//! that emit data or describe symbols and sections are in `directive`.

mod conditions;
mod expansions;
mod instruction;
mod sections;
mod symbols;

use super::Options;
use super::conditional::Conditionals;
use super::descriptor::Descriptor;
use super::error::{AsmError, MAX_SUGGESTIONS, Span};
use super::expand::{Input, Next, first_word};
use super::expr::Expr;
use super::macros::Macro;
use super::program::{File, LineError, Memory, Program};
use super::scan::Scanner;
use super::source::{Place, Text};
use std::collections::HashMap;
use std::rc::Rc;
use symbols::numbered_label;

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
}

/// A fault of a call is reported at the call.
fn at(span: Span, result: Result<(), AsmError>) -> Result<(), AsmError> {
    result.map_err(|e| AsmError { span, ..e })
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
