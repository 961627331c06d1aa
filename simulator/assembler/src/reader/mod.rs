//! Reads a file statement by statement: labels, definitions, conditionals, macros, instructions. The module
//! `directive` handles directives that emit data or describe symbols and sections.

mod conditions;
mod expansions;
mod instruction;
mod sections;
mod symbols;

use super::conditional::Conditionals;
use super::descriptor::Descriptor;
use super::expand::{Input, Next, first_word};
use super::macros::Macro;
use super::program::{File, LineError, Memory, Program};
use super::source::{Location, Text};
use std::collections::HashMap;
use std::rc::Rc;
use symbols::numbered_label;
use wavesim_asm::Options;
use wavesim_asm::error::{AsmError, MAX_SUGGESTIONS, Span};
use wavesim_asm::expr::Expr;
use wavesim_asm::scan::Scanner;
use wavesim_isa::arch::Processor;

/// Number of errors within expansions after which reading ends: one mistake in a macro must not be reported a
/// million times.
const MAX_EXPANDED_ERRORS: usize = 100;

/// The block that encloses a line, if its lines are not ordinary statements.
pub(super) enum Block {
    /// No block.
    None,
    /// `.amdhsa_kernel`.
    Kernel(Descriptor),
    /// `.amdgpu_metadata`, with the text read so far.
    Metadata(String),
}

/// The state of the reader.
pub(super) struct Reader<'a> {
    /// The program read so far.
    pub program: Program,
    /// The target for which lines are assembled.
    pub options: Options,
    /// The main file.
    pub file: &'a File<'a>,
    /// The source of lines.
    pub input: Input,
    /// The line being read.
    pub line: Text,
    /// The location of that line.
    pub location: Location,
    /// Index of the current section.
    pub current: usize,
    /// Sections by name.
    sections: HashMap<String, usize>,
    /// The section that `.previous` returns to.
    pub previous: usize,
    /// Sections saved by `.pushsection`: the current and the previous one.
    pub pushed: Vec<(usize, usize)>,
    /// The block that encloses the line.
    pub block: Block,
    /// Total size of all sections in bytes.
    total: usize,
    errors: Vec<LineError>,
    conditionals: Conditionals,
    macros: HashMap<String, Rc<Macro>>,
    /// Number of macro calls so far: `\@`.
    macro_calls: u64,
    /// Whether `.altmacro` is in effect.
    altmacro: bool,
    /// The number of definitions of each numbered label so far.
    numbered: HashMap<String, u32>,
    /// The number of anonymous labels, which stand for `.`.
    anonymous: u32,
    /// Number of registers used so far: LLVM's `.amdgcn.next_free_vgpr` and `…_sgpr`.
    used: [i64; 2],
}

const REGISTER_COUNTS: [&str; 2] = [".amdgcn.next_free_vgpr", ".amdgcn.next_free_sgpr"];

impl<'a> Reader<'a> {
    /// Creates a reader of `file` that starts in `.text` with the symbols that LLVM predefines.
    pub fn new(file: &'a File<'a>, options: &Options) -> Reader<'a> {
        let mut reader = Reader {
            program: Program::new(options.arch),
            options: *options,
            file,
            input: Input::new(file.name, file.text),
            line: String::new().into(),
            location: Location::default(),
            current: 0,
            sections: HashMap::new(),
            previous: 0,
            pushed: Vec::new(),
            block: Block::None,
            total: 0,
            errors: Vec::new(),
            conditionals: Conditionals::default(),
            macros: HashMap::new(),
            macro_calls: 0,
            altmacro: false,
            numbered: HashMap::new(),
            anonymous: 0,
            used: [0; 2],
        };
        reader.section(".text", Memory::Code);
        reader.define_processor_symbols(None);
        for (name, value) in file.defines {
            reader.set(name, Expr::Int(*value));
        }
        reader
    }

    /// Defines LLVM's processor symbols (LLVM AMDGPUUsage, *Code Object V3 and Above Predefined Symbols*).
    pub fn define_processor_symbols(&mut self, processor: Option<&str>) {
        let default = Processor::of_arch(self.options.arch).map(|p| p.name);
        let digits = processor.or(default).and_then(|p| p.strip_prefix("gfx")).unwrap_or_default();
        let number = digits.parse::<i64>().unwrap_or(0);
        for (name, value) in [
            (".amdgcn.gfx_generation_number", number / 100),
            (".amdgcn.gfx_generation_minor", number / 10 % 10),
            (".amdgcn.gfx_generation_stepping", number % 10),
        ] {
            self.set(name, Expr::Int(value));
        }
        for name in REGISTER_COUNTS {
            self.set(name, Expr::Int(0));
        }
    }

    /// Reads the whole input and returns the program and all errors.
    pub fn read(mut self) -> (Program, Vec<LineError>) {
        loop {
            match self.input.read() {
                Ok(Next::Line(line, location)) => {
                    (self.line, self.location) = (line.text, location);
                    self.read_line();
                }
                Ok(Next::End { conditionals }) => self.unclosed(conditionals),
                Ok(Next::EndOfInput) => break,
                Err(error) => {
                    self.location = self.input.location;
                    self.report(error);
                }
            }
        }
        self.unclosed(0);
        if !matches!(self.block, Block::None) {
            self.report(AsmError::new(Span::default(), "the file ends inside a block"));
        }
        self.program.sources = std::mem::take(&mut self.input.sources);
        (self.program, self.errors)
    }

    /// Reports conditionals that are still open beyond the first `floor`.
    fn unclosed(&mut self, floor: usize) {
        while self.conditionals.open.len() > floor {
            let Some(c) = self.conditionals.open.pop() else { return };
            let error = AsmError::new(c.span, "this has no `.endif`");
            self.errors.push(LineError::new(&self.input.sources, c.location, &c.line, error));
        }
    }

    fn report(&mut self, error: AsmError) {
        self.errors.push(LineError::new(&self.input.sources, self.location, &self.line, error));
        self.options.suggest &= self.errors.len() < MAX_SUGGESTIONS;
        let expanded = self.input.sources.depth(self.location) > 0;
        let expanded_errors = || self.errors.iter().filter(|e| !e.backtrace.is_empty()).count();
        if expanded && self.errors.len() >= MAX_EXPANDED_ERRORS && expanded_errors() >= MAX_EXPANDED_ERRORS {
            self.input.leave_all();
        }
    }

    fn read_line(&mut self) {
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
        // Skips preprocessor lines and a shebang line.
        let mut s = Scanner::new(line);
        s.skip_space();
        if s.peek_byte() == Some(b'#') {
            return;
        }
        if let Err(error) = self.statement(line) {
            self.report(error);
        }
    }

    fn statement(&mut self, line: &str) -> Result<(), AsmError> {
        let mut s = Scanner::new(line);
        if !self.conditionals.is_active() {
            return self.skip_line(&mut s, first_word(line));
        }
        loop {
            if s.at_end() {
                return Ok(());
            }
            if let Some(digits) = numbered_label(&mut s) {
                self.define_numbered_label(digits, line)?;
                continue;
            }
            let mut ahead = s.clone();
            let Some((name, span)) = ahead.ident() else {
                return Err(AsmError::new(s.next_span(), "expected an instruction, a label or a directive"));
            };
            let mut after = ahead.clone();
            // A space may precede a label's colon; two colons belong to an instruction.
            ahead.skip_space();
            if ahead.peek_byte() == Some(b':') && ahead.peek_second() != Some(b':') {
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
                let calls = self.macro_calls;
                let arguments = match self.altmacro {
                    true => {
                        let mut evaluate = |s: &mut Scanner| self.value(s).map(|v| v.0);
                        called.arguments(&mut ahead, calls, Some(&mut evaluate))?
                    }
                    false => called.arguments(&mut ahead, calls, None)?,
                };
                self.macro_calls += 1;
                let open = self.conditionals.open.len();
                return at_call(span, self.input.enter_macro(called, arguments, open));
            }
            if dot {
                if self.expansion(name, span, &mut ahead)? {
                    return Ok(());
                }
                self.directive(name, span, &mut ahead)?;
                return match ahead.at_end() {
                    true => Ok(()),
                    false => {
                        Err(AsmError::new(ahead.next_span(), format!("`{name}` takes no more operands")))
                    }
                };
            }
            return self.instruction(line, (name, span), &mut after);
        }
    }
}

/// Moves an error of an expansion to the call's span.
fn at_call(span: Span, result: Result<(), AsmError>) -> Result<(), AsmError> {
    result.map_err(|e| AsmError { span, ..e })
}

/// Reads the quoted name of a file or a section.
pub(super) fn file_name(s: &mut Scanner) -> Result<(String, Span), AsmError> {
    s.skip_space();
    let start = s.position();
    let bytes = s.string()?;
    let span = s.span_since(start);
    String::from_utf8(bytes)
        .map(|name| (name, span))
        .map_err(|_| AsmError::new(span, "a name has to be UTF-8"))
}
