//! The text kernel format (`docs/text-format.md`): a header between two `---` lines, then instructions.
//!
//! [`parse`] reads a file and gives everything that is wrong with it; [`layout::load`] puts the arguments into memory and makes the
//! launch.
//!
//! - [`lex`], [`constant`]: header lines in tokens; numbers and named constants
//! - [`header`]: arguments, initialisers, launch configuration
//! - [`body`], [`print`]: statements of the instruction block; [`instruction`], [`rules`]: its instructions, on the assembler's operands
//! - [`layout`]: kernarg table and the registers a wave starts with

pub mod body;
pub mod constant;
pub mod header;
pub mod instruction;
pub mod layout;
pub mod lex;
pub mod print;
pub mod rules;

use crate::arch::Arch;
use crate::asm::Fixup;
use crate::inst::Inst;
use body::{Placed, Statement};
use constant::{Constants, Wrong};
use header::{Header, HeaderParser};
use instruction::Machine;
use isa_spec::diag::{self, Diagnostic};
use isa_spec::source::{FileId, SourceMap, Span};
use print::Print;
use std::path::PathBuf;

/// What the command line adds to a file.
#[derive(Debug, Clone)]
pub struct Options {
    /// `-D NAME=VALUE`.
    pub constants: Constants,
    /// Instead of the header's.
    pub arch: Option<Arch>,
    pub wave: Option<u32>,
    /// Of `rand()`.
    pub seed: u64,
    /// Where relative file names begin: the input file's folder.
    pub folder: PathBuf,
    /// Size of global memory.
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
            global_bytes: 32 << 20,
        }
    }
}

/// A kernel, checked.
#[derive(Debug, Clone)]
pub struct TextKernel {
    pub header: Header,
    pub arch: Arch,
    pub wave: u32,
    /// With their source lines.
    pub instructions: Vec<(Inst, u32)>,
    /// Name and byte offset, in the order of the file.
    pub labels: Vec<(String, u64)>,
    /// By offset.
    pub prints: Vec<Print>,
}

/// Reads a kernel; on errors, all of them.
pub fn parse(sources: &SourceMap, file: FileId, options: &Options) -> Result<TextKernel, Vec<Diagnostic>> {
    let mut diagnostics = Vec::new();
    let (header, statements) = split(sources, file, options, &mut diagnostics);
    let arch = options.arch.or(header.arch).unwrap_or(Arch::Rdna3);
    let wave = options.wave.unwrap_or(header.wave);
    let machine = Machine { arch, wave, constants: &header.constants };
    let mut block = Block::default();
    for placed in statements {
        let line = placed.line;
        if let Err(wrong) = block.push(&machine, placed) {
            diagnostics.push(diagnostic(file, line, wrong));
        }
    }
    for (line, wrong) in block.resolve(&header.constants) {
        diagnostics.push(diagnostic(file, line, wrong));
    }
    if !diagnostics.is_empty() {
        return Err(diagnostics);
    }
    let Block { instructions, labels, prints, .. } = block;
    Ok(TextKernel { header, arch, wave, instructions, labels, prints })
}

/// The instruction block as it is assembled.
#[derive(Default)]
struct Block {
    instructions: Vec<(Inst, u32)>,
    labels: Vec<(String, u64)>,
    prints: Vec<Print>,
    /// Of instructions by index: what waits for labels, and where the text begins.
    fixups: Vec<(usize, u64, usize, Fixup)>,
    /// Byte offset of what comes next.
    pc: u64,
}

impl Block {
    fn push(&mut self, machine: &Machine<'_>, placed: Placed<'_>) -> Result<(), Wrong> {
        match placed.statement {
            Statement::Label(name) => {
                if self.labels.iter().any(|(known, _)| known == name) {
                    return Err(Wrong::new(placed.at, format!("the label '{name}' is already there")));
                }
                // A jump to the label does not come by the lines before it.
                let before = self.prints.iter_mut().rev().take_while(|p| p.pc == self.pc);
                before.for_each(|p| p.above_label = true);
                self.labels.push((name.to_string(), self.pc));
            }
            Statement::Print(print) => self.prints.push(Print { pc: self.pc, ..print }),
            Statement::Instruction(text) => {
                machine.assemble(text, placed.at.start, &mut |parsed| {
                    self.pc += parsed.inst.size as u64;
                    let at = self.instructions.len();
                    let fixups = parsed.fixups.into_iter().map(|f| (at, self.pc, placed.at.start, f));
                    self.fixups.extend(fixups);
                    self.instructions.push((parsed.inst, placed.line));
                })?;
            }
        }
        Ok(())
    }

    /// Fills in what waited for labels; gives what is wrong, by line.
    fn resolve(&mut self, constants: &Constants) -> Vec<(u32, Wrong)> {
        let labels = &self.labels;
        let value = |name: &str| {
            let label = labels.iter().find(|(label, _)| label == name).map(|(_, pc)| *pc as i64);
            label.or_else(|| constants.get(name)?.as_int()?.try_into().ok())
        };
        let mut errors = Vec::new();
        for (at, next, base, fixup) in &self.fixups {
            let (inst, line) = &mut self.instructions[*at];
            if let Err(error) = fixup.apply(inst, *next as i64, &value) {
                errors.push((*line, instruction::unresolved(&fixup.expr, error, labels, *base)));
            }
        }
        errors
    }
}

/// Messages that a report shows: all of any file that was meant to be a kernel.
const SHOWN: usize = 200;

/// The messages as shown to a user, in the order of the file.
pub fn render(sources: &SourceMap, diagnostics: &[Diagnostic]) -> String {
    diag::render_first(sources, diagnostics, SHOWN)
}

/// Where in a file we are.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    /// Before anything but blank lines and comments.
    Start,
    /// With the place of the opening line.
    Header(Span),
    Body,
}

fn split<'a>(
    sources: &'a SourceMap,
    file: FileId,
    options: &Options,
    diagnostics: &mut Vec<Diagnostic>,
) -> (Header, Vec<Placed<'a>>) {
    let mut parser = HeaderParser::new(options);
    let mut statements = Vec::new();
    let mut part = Part::Start;
    let mut base = 0;
    for (number, line) in (1..).zip(sources.file(file).text.split_inclusive('\n')) {
        let code = lex::without_comment(line).trim_end();
        let span = Span::new(file, base, base + code.len());
        let fence = code.trim_start() == "---";
        let result = match part {
            _ if code.trim_start().is_empty() => Ok(()),
            Part::Start if fence => {
                part = Part::Header(span);
                Ok(())
            }
            Part::Header(_) if fence => {
                part = Part::Body;
                Ok(())
            }
            Part::Header(_) => parser.line(line, base, number),
            Part::Start | Part::Body if fence => {
                Err(Wrong::new(base..base + code.len(), "the header has already ended"))
            }
            Part::Start | Part::Body => {
                part = Part::Body;
                body::statements(line, base, number, &mut statements)
            }
        };
        if let Err(wrong) = result {
            diagnostics.push(diagnostic(file, number, wrong));
        }
        base += line.len();
    }
    if let Part::Header(span) = part {
        let (line, _) = sources.line_col(file, span.start);
        let message = format!("line {line}: the header that begins here has no closing `---`");
        diagnostics.push(Diagnostic::error(span, message));
    }
    (parser.finish(), statements)
}

/// In the words of the format's specification: `line 19: unknown instruction 's_mov_b33'`.
fn diagnostic(file: FileId, line: u32, wrong: Wrong) -> Diagnostic {
    let span = Span::new(file, wrong.at.start, wrong.at.end);
    let d = Diagnostic::error(span, format!("line {line}: {}", wrong.message));
    match wrong.help {
        Some(help) => d.help(help),
        None => d,
    }
}
