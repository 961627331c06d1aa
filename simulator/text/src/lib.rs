//! The text kernel format (`docs/text-format.md`): a header between two `---` lines, then instructions.
//!
//! [`parse`] reads a file and reports all errors in it. This crate must not depend on memory or launches: the
//! loader places the arguments and launches the kernel.
//!
//! - [`lex`], [`constant`]: tokens of header lines; numbers and named constants
//! - [`mod@header`]: arguments, initialisers, launch configuration
//! - [`body`], [`mod@print`]: lines and statements of the instruction block
//! - [`instruction`], [`rules`]: instructions, based on the assembler's operands
#![warn(missing_docs)]
// No files, threads, processes or clocks; clippy.toml lists the disallowed methods.
#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

pub mod body;
pub mod constant;
pub mod header;
pub mod image;
pub mod instruction;
pub mod lex;
pub mod print;
pub mod rules;

use body::{CodeLine, Lines, Statement, Statements};
use constant::{Constants, TextError};
use foldhash::HashMap;
use header::{Header, HeaderParser};
use instruction::Target;
use isa_spec::diag::{self, Diagnostic};
use isa_spec::source::{FileId, SourceMap, Span};
use print::Print;
use std::path::PathBuf;
use wavesim_asm::Fixup;
use wavesim_files::Files;
use wavesim_isa::arch::Arch;
use wavesim_isa::inst::Inst;

/// Options given on the command line.
#[derive(Debug, Clone)]
pub struct Options {
    /// `-D NAME=VALUE`.
    pub constants: Constants,
    /// Architecture; takes precedence over the header's.
    pub arch: Option<Arch>,
    /// Wave size, 32 or 64; takes precedence over the header's.
    pub wave: Option<u32>,
    /// Seed of `rand()`.
    pub seed: u64,
    /// The input file's folder, to which file names are relative.
    pub folder: PathBuf,
    /// The files that the header may name.
    pub files: Files,
    /// Size of global memory in bytes.
    pub global_bytes: u64,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            constants: Constants::default(),
            arch: None,
            wave: None,
            seed: 0,
            folder: PathBuf::new(),
            files: Files::any(),
            global_bytes: 32 << 20,
        }
    }
}

/// A kernel that was parsed without errors.
#[derive(Debug, Clone)]
pub struct TextKernel {
    /// Arguments and launch configuration.
    pub header: Header,
    /// The target architecture.
    pub arch: Arch,
    /// The wave size: 32 or 64.
    pub wave: u32,
    /// The instructions in source order, with line numbers from 1.
    pub instructions: Vec<(Inst, u32)>,
    /// Names and byte offsets of the labels in source order.
    pub labels: Vec<(String, u64)>,
    /// `print` directives in order of offset.
    pub prints: Vec<Print>,
}

/// Parses a kernel. Returns all errors if there are any.
pub fn parse(sources: &SourceMap, file: FileId, options: &Options) -> Result<TextKernel, Vec<Diagnostic>> {
    let mut diagnostics = Vec::new();
    let mut lines = Lines::new(&sources.file(file).text);
    let header = header(file, &mut lines, options, &mut diagnostics);
    let arch = options.arch.or(header.arch).unwrap_or(Arch::DEFAULT);
    let wave = options.wave.or(header.wave).unwrap_or(arch.wave_sizes()[0]);
    let mut target = Target { arch, wave, constants: &header.constants, suggest: true };
    let mut block = Block::default();
    for line in lines {
        let result = match line.is_fence() {
            true => {
                Err(TextError::new(line.base..line.base + line.code.len(), "the header has already ended"))
            }
            false => block.line(&target, &line),
        };
        if let Err(error) = result {
            diagnostics.push(diagnostic(file, line.number, error));
            target.suggest = diagnostics.len() < MAX_SHOWN;
        }
        if diagnostics.len() >= MAX_ERRORS {
            break;
        }
    }
    if block.instructions.is_empty() && diagnostics.is_empty() {
        diagnostics.push(empty_kernel(file, &sources.file(file).text));
    }
    let room = MAX_ERRORS.saturating_sub(diagnostics.len());
    for (line, error) in block.resolve(&header.constants, room) {
        diagnostics.push(diagnostic(file, line, error));
    }
    if !diagnostics.is_empty() {
        return Err(diagnostics);
    }
    let Block { instructions, labels, prints, .. } = block;
    Ok(TextKernel { header, arch, wave, instructions, labels, prints })
}

/// The state of assembling the instruction block.
#[derive(Default)]
struct Block<'a> {
    instructions: Vec<(Inst, u32)>,
    labels: Vec<(String, u64)>,
    label_offsets: HashMap<&'a str, u64>,
    prints: Vec<Print>,
    /// Fields that depend on labels: index of the instruction, byte offset of the next instruction, byte
    /// position of the statement in the file, and the fixup.
    fixups: Vec<(usize, u64, usize, Fixup)>,
    /// Byte offset of the next instruction.
    pc: u64,
}

impl<'a> Block<'a> {
    /// Handles the statements of a line; the first error ends the line.
    fn line(&mut self, target: &Target<'_>, line: &CodeLine<'a>) -> Result<(), TextError> {
        for (statement, at) in Statements::new(line) {
            match statement {
                Statement::Label(name) => self.label(name, at)?,
                Statement::Print(text) => {
                    let print = print::parse(text, at, line.number)?;
                    self.prints.push(Print { pc: self.pc, ..print });
                }
                Statement::Instruction { text, mnemonic } => {
                    target.assemble(text, mnemonic, at, &mut |parsed| {
                        self.pc += parsed.inst.size as u64;
                        let index = self.instructions.len();
                        if !parsed.fixups.is_empty() {
                            let fixups = parsed.fixups.into_iter().map(|f| (index, self.pc, at, f));
                            self.fixups.extend(fixups);
                        }
                        self.instructions.push((parsed.inst, line.number));
                    })?;
                }
            }
        }
        Ok(())
    }

    fn label(&mut self, name: &'a str, position: usize) -> Result<(), TextError> {
        if self.label_offsets.insert(name, self.pc).is_some() {
            return Err(TextError::new(
                position..position + name.len(),
                format!("the label '{name}' is already defined"),
            ));
        }
        // A branch to the label skips the directives above it.
        let before = self.prints.iter_mut().rev().take_while(|p| p.pc == self.pc);
        before.for_each(|p| p.above_label = true);
        self.labels.push((name.to_string(), self.pc));
        Ok(())
    }

    /// Applies the fixups. Returns the errors by line, at most `max_errors`.
    fn resolve(&mut self, constants: &Constants, max_errors: usize) -> Vec<(u32, TextError)> {
        let label_offsets = &self.label_offsets;
        let value = |name: &str| {
            let label = label_offsets.get(name).map(|pc| *pc as i64);
            label.or_else(|| constants.get(name)?.as_int()?.try_into().ok())
        };
        let mut errors = Vec::new();
        for (at, next, base, fixup) in &self.fixups {
            if errors.len() >= max_errors {
                break;
            }
            let (inst, line) = &mut self.instructions[*at];
            if let Err(cause) = fixup.apply(inst, *next as i64, &value) {
                let suggest = errors.len() < MAX_SUGGESTIONS;
                let error = instruction::unresolved(&fixup.expr, cause, &self.labels, *base, suggest);
                errors.push((*line, error));
            }
        }
        errors
    }
}

/// Maximum number of errors that a report shows; enough for any file that was meant to be a kernel.
const MAX_SHOWN: usize = 200;

/// Maximum number of undefined labels that get a suggestion.
const MAX_SUGGESTIONS: usize = 10;

/// Number of errors after which reading stops.
const MAX_ERRORS: usize = 1000;

/// Formats diagnostics for the user, in source order.
pub fn render(sources: &SourceMap, diagnostics: &[Diagnostic]) -> String {
    diag::render_first(sources, diagnostics, MAX_SHOWN)
}

/// Parses the header and advances `lines` to the instruction block.
fn header(
    file: FileId,
    lines: &mut Lines<'_>,
    options: &Options,
    diagnostics: &mut Vec<Diagnostic>,
) -> Header {
    let mut parser = HeaderParser::new(options);
    let mut start = lines.clone();
    let Some(fence) = start.find(|line| !line.code.trim_start().is_empty()).filter(CodeLine::is_fence) else {
        // No header: the first line belongs to the instruction block.
        return parser.finish();
    };
    *lines = start;
    for line in lines {
        if line.is_fence() {
            return parser.finish();
        }
        if diagnostics.len() >= MAX_ERRORS {
            continue;
        }
        if let Err(error) = parser.line(line.code, line.base, line.number) {
            diagnostics.push(diagnostic(file, line.number, error));
        }
    }
    let message = format!("line {}: the header that begins here has no closing `---`", fence.number);
    let span = Span::new(file, fence.base, fence.base + fence.code.len());
    diagnostics.push(Diagnostic::error(span, message));
    parser.finish()
}

/// The error for a file without instructions, located at its end.
fn empty_kernel(file: FileId, text: &str) -> Diagnostic {
    let end = text.trim_end().len();
    let line = text[..end].lines().count().max(1);
    Diagnostic::error(Span::new(file, end, end), format!("line {line}: the kernel has no instruction"))
        .help("the smallest kernel is `s_endpgm`")
}

/// Formats an error in the specification's wording: `line 19: unknown instruction 's_mov_b33'`.
fn diagnostic(file: FileId, line: u32, error: TextError) -> Diagnostic {
    let span = Span::new(file, error.at.start, error.at.end);
    let d = Diagnostic::error(span, format!("line {line}: {}", error.message));
    match error.help {
        Some(help) => d.help(help),
        None => d,
    }
}
