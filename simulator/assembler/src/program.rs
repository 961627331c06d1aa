//! A complete assembly file as data: sections, symbols, and values that depend on addresses.
//!
//! [`crate::read`] and [`crate::read_file`] build a [`Program`]. Instruction sizes do
//! not depend on symbols, so each label's offset in its section is final when the label is read. A value that
//! depends on symbols is stored as [`Pending`] and filled in by [`Program::link`] (module `link`) once
//! sections have addresses.

use super::descriptor::Descriptor;
use super::relocation::Relocation;
use super::source::{Location, Sources, Text};
use std::borrow::Cow;
use std::cell::Cell;
use std::collections::HashMap;
use wavesim_asm::error::{AsmError, Span};
use wavesim_asm::expr::{Expr, Symbols};
use wavesim_asm::{Fixup, Options, print, symbolic};
use wavesim_isa::arch::Arch;
use wavesim_isa::codec::Words;
use wavesim_isa::inst::Inst;

/// Maximum total size of a file's sections in bytes. Directives can request far more in a few characters.
pub const MAX_BYTES: usize = 64 << 20;

/// An error and its location.
#[derive(Debug, Clone, PartialEq)]
pub struct LineError {
    /// Line of the main file, from 1: the outermost call if the error is in a macro or in an included file.
    pub line: usize,
    /// Column of `text` in characters, from 1.
    pub column: usize,
    /// What is wrong.
    pub error: AsmError,
    /// Name of the file that contains the line.
    pub file: String,
    /// Line of that file, from 1.
    pub number: usize,
    /// The line as it was read, with macro parameters substituted.
    pub text: String,
    /// The expansions that led to the line, innermost first.
    pub backtrace: Vec<String>,
}

impl LineError {
    /// Creates an error for a line read from `location`.
    pub fn new(sources: &Sources, location: Location, text: &str, error: AsmError) -> LineError {
        LineError {
            line: sources.main_line(location) as usize,
            column: error.column(text),
            error,
            file: sources.file(location).to_string(),
            number: location.line as usize,
            text: text.to_string(),
            backtrace: sources.backtrace(location),
        }
    }

    /// Creates an error for a line of the main file; [`LineError::in_file`] sets the file's name.
    pub fn on_line(line: usize, text: &str, error: AsmError) -> LineError {
        let (file, text, column) = (String::new(), text.to_string(), error.column(text));
        LineError { line, column, error, file, number: line, text, backtrace: Vec::new() }
    }

    /// Returns the error with the file's name set.
    pub fn in_file(self, file: &str) -> LineError {
        LineError { file: file.to_string(), ..self }
    }

    /// Creates an error that concerns the whole file.
    pub fn whole(message: impl Into<Cow<'static, str>>) -> LineError {
        let error = AsmError::new(Span::default(), message);
        let (file, text) = (String::new(), String::new());
        LineError { line: 1, column: 1, error, file, number: 1, text, backtrace: Vec::new() }
    }
}

/// Prints `file:line:column: error: message`, the line, a caret, and the expansions that led to the line.
impl std::fmt::Display for LineError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let width = self.error.span.end.saturating_sub(self.error.span.start).max(1);
        let width = width.min(self.text.chars().count().saturating_sub(self.column - 1).max(1));
        write!(f, "{}:{}:{}: error: {}", self.file, self.number, self.column, self.error)?;
        // Tabs are kept to align the caret.
        let gap: String =
            self.text.chars().take(self.column - 1).map(|c| if c == '\t' { c } else { ' ' }).collect();
        write!(f, "\n  {}\n  {gap}{}", self.text.trim_end(), "^".repeat(width))?;
        for call in &self.backtrace {
            write!(f, "\n  {call}")?;
        }
        Ok(())
    }
}

/// An instruction of the file, for listings.
#[derive(Debug, Clone, PartialEq)]
pub struct Listed {
    /// Line of the main file.
    pub line: usize,
    /// Index in [`Program::sections`].
    pub section: usize,
    /// Byte offset in the section.
    pub offset: u64,
    /// The instruction; linking fills in the fields that depend on symbols.
    pub inst: Inst,
    /// The encoded instruction.
    pub words: Words,
    /// The options in effect at the instruction.
    pub options: Options,
    /// The label that a branch targets, if any.
    pub label: Option<String>,
}

impl Listed {
    /// Returns the instruction as the disassembler prints it.
    pub fn text(&self) -> String {
        print::with_label(&self.inst, &self.options, self.label.as_deref())
    }
}

/// A section of the file.
#[derive(Debug, Clone)]
pub struct Section {
    /// The name given to `.section`.
    pub name: String,
    /// The contents.
    pub bytes: Vec<u8>,
    /// Alignment in bytes: 4 or more for code.
    pub align: u64,
    /// The kind of memory the section is loaded to.
    pub memory: Memory,
    /// Address in the image, once the file is laid out.
    pub address: u64,
}

/// The kind of memory a section is loaded to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Memory {
    /// Constant data.
    ReadOnly,
    /// Instructions.
    Code,
    /// Writable data.
    Writable,
    /// Not loaded: debug information, notes for tools.
    None,
}

impl Section {
    /// Creates an empty section.
    pub fn new(name: &str, memory: Memory) -> Section {
        let align = if memory == Memory::Code { 4 } else { 1 };
        Section { name: name.to_string(), bytes: Vec::new(), align, memory, address: 0 }
    }
}

/// The definition of a symbol.
#[derive(Debug, Clone)]
#[expect(missing_docs, reason = "the variants say what their fields are")]
pub enum Definition {
    /// An offset in a section, in bytes.
    Label { section: usize, offset: u64 },
    /// An expression, possibly over other symbols.
    Expr(Expr),
}

/// Symbol attributes set by directives.
#[derive(Debug, Clone, Default)]
pub struct SymbolInfo {
    /// `.globl`.
    pub global: bool,
    /// `.weak`.
    pub weak: bool,
    /// `.protected`.
    pub protected: bool,
    /// `.hidden`.
    pub hidden: bool,
    /// `.type` with `@function`.
    pub function: bool,
    /// `.type` with `@object`.
    pub object: bool,
    /// `.size`, in bytes.
    pub size: Option<Expr>,
}

impl SymbolInfo {
    /// Whether the loader may resolve the symbol to a definition in another file.
    pub fn preemptible(&self) -> bool {
        self.global && !self.hidden && !self.protected
    }
}

/// How a pending value is filled in.
#[derive(Debug, Clone)]
#[expect(missing_docs, reason = "the variants say what their fields are")]
pub enum PendingKind {
    /// Fields of an instruction; `listed` is the instruction's index in the listing.
    Inst { listed: usize, inst: Inst, fixups: Vec<Fixup> },
    /// Data of `width` bytes.
    Data { width: usize, expr: Expr, span: Span },
}

/// A value that depends on symbols, and its location.
#[derive(Debug, Clone)]
pub struct Pending {
    /// Index in [`Program::sections`].
    pub section: usize,
    /// Byte offset in the section.
    pub offset: u64,
    /// The location in the source.
    pub location: Location,
    /// The line, for error messages.
    pub line: Text,
    /// What to fill in.
    pub kind: PendingKind,
}

/// A kernel descriptor and its location.
#[derive(Debug, Clone)]
pub struct PlacedDescriptor {
    /// Index in [`Program::sections`].
    pub section: usize,
    /// Byte offset in the section.
    pub offset: u64,
    /// The location in the source.
    pub location: Location,
    /// The line, for error messages.
    pub line: Text,
    /// The descriptor's directives.
    pub descriptor: Descriptor,
}

/// An assembly file that has been read.
#[derive(Debug)]
pub struct Program {
    /// The target architecture: the option's, or the one that the file selects.
    pub arch: Arch,
    /// The sections in order of first use.
    pub sections: Vec<Section>,
    /// The instructions in source order.
    pub listing: Vec<Listed>,
    /// The processor named by `.amdgcn_target`.
    pub processor: Option<String>,
    /// Bits of the ELF flags for XNACK and SRAMECC (LLVM AMDGPUUsage, *Header*).
    pub features: u32,
    /// The value of `.amdhsa_code_object_version`; 5 by default.
    pub code_object_version: u32,
    /// The text of `.amdgpu_metadata`.
    pub metadata: Option<String>,
    /// Symbol attributes by name.
    pub info: HashMap<String, SymbolInfo>,
    /// Files and expansions, for the locations of messages.
    pub sources: Sources,
    /// Relocations that linking leaves to the loader.
    pub relocations: Vec<Relocation>,
    pub(super) symbols: HashMap<String, Definition>,
    /// The labels in order of definition.
    pub(super) order: Vec<String>,
    /// Suggest names for misspelt labels.
    pub(super) suggest: bool,
    pub(super) pending: Vec<Pending>,
    pub(super) descriptors: Vec<PlacedDescriptor>,
}

/// A file to read, and its environment.
pub struct File<'a> {
    /// The name shown in messages.
    pub name: &'a str,
    /// The contents of the file.
    pub text: &'a str,
    /// Symbols that are predefined.
    pub defines: &'a [(String, i64)],
    /// Opens an included file.
    pub open: &'a dyn Fn(&str) -> std::io::Result<Vec<u8>>,
    /// Whether `.amdgcn_target` may select another architecture than the options'.
    pub any_target: bool,
}

/// Section addresses, which determine the values of labels.
#[derive(Clone, Copy)]
pub(super) enum SectionAddresses<'a> {
    /// Addresses are unknown: labels have no value.
    Unknown,
    /// Sections are placed at multiples of this distance. An expression with the same value for two distances
    /// does not depend on section addresses.
    Spaced(u64),
    /// Sections are at their addresses in the file plus a load address.
    Assigned(&'a [Section], u64),
}

/// Values of symbols. Definitions are followed up to a limit, which also ends circular definitions.
pub(super) struct Values<'a> {
    symbols: &'a HashMap<String, Definition>,
    base: SectionAddresses<'a>,
    fuel: Cell<u32>,
    depth: Cell<u32>,
}

impl<'a> Values<'a> {
    /// Values for labels located by `base`.
    pub fn new(symbols: &'a HashMap<String, Definition>, base: SectionAddresses<'a>) -> Values<'a> {
        Values { symbols, base, fuel: Cell::new(10_000), depth: Cell::new(0) }
    }

    /// Evaluates an expression that does not depend on section addresses: a number, or the difference of two
    /// labels in one section.
    pub fn constant(symbols: &HashMap<String, Definition>, e: &Expr) -> Result<i64, AsmError> {
        // Odd distances, so that rounding an address changes the result.
        let near = e.eval(&Values::new(symbols, SectionAddresses::Spaced(0x100_1234_5671)))?;
        let distant = e.eval(&Values::new(symbols, SectionAddresses::Spaced(0x200_89ab_cdef)))?;
        match near == distant {
            true => Ok(near),
            false => {
                let span = e.symbol().map_or(Span::default(), |s| s.1);
                Err(AsmError::new(span, "this depends on section addresses; expected a number"))
            }
        }
    }
}

impl Symbols for Values<'_> {
    fn value(&self, name: &str) -> Option<i64> {
        let fuel = self.fuel.get().checked_sub(1).filter(|_| self.depth.get() < 64)?;
        self.fuel.set(fuel);
        match self.symbols.get(name) {
            Some(Definition::Label { section, offset }) => match self.base {
                SectionAddresses::Unknown => None,
                SectionAddresses::Spaced(distance) => {
                    Some((distance.wrapping_mul(1 + *section as u64) + offset) as i64)
                }
                SectionAddresses::Assigned(sections, load) => {
                    Some(sections[*section].address.wrapping_add(*offset).wrapping_add(load) as i64)
                }
            },
            Some(Definition::Expr(e)) => {
                self.depth.set(self.depth.get() + 1);
                let value = e.eval(self).ok();
                self.depth.set(self.depth.get() - 1);
                value
            }
            None => symbolic::predefined(name),
        }
    }
}

impl Program {
    pub(super) fn new(arch: Arch) -> Program {
        Program {
            arch,
            sections: Vec::new(),
            listing: Vec::new(),
            processor: None,
            features: super::features::any_features(arch),
            code_object_version: 5,
            metadata: None,
            info: HashMap::new(),
            sources: Sources::default(),
            relocations: Vec::new(),
            symbols: HashMap::new(),
            order: Vec::new(),
            suggest: true,
            pending: Vec::new(),
            descriptors: Vec::new(),
        }
    }

    /// Creates a program with a single code section.
    pub fn of_text(arch: Arch, bytes: Vec<u8>, listing: Vec<Listed>) -> Program {
        let text = Section { bytes, ..Section::new(".text", Memory::Code) };
        Program { sections: vec![text], listing, ..Program::new(arch) }
    }

    /// The address of a symbol, available once sections have addresses.
    pub fn address(&self, name: &str) -> Option<u64> {
        Values::new(&self.symbols, SectionAddresses::Assigned(&self.sections, 0))
            .value(name)
            .map(|v| v as u64)
    }

    /// The labels in order of definition, with section and offset.
    pub fn labels(&self) -> impl Iterator<Item = (&str, usize, u64)> {
        self.order.iter().filter_map(|name| match self.symbols.get(name) {
            Some(Definition::Label { section, offset }) => Some((name.as_str(), *section, *offset)),
            _ => None,
        })
    }

    /// Size of a symbol in bytes from `.size`; 0 if unspecified.
    pub fn size_of(&self, name: &str) -> u64 {
        let size = self.info.get(name).and_then(|i| i.size.as_ref());
        size.and_then(|e| {
            e.eval(&Values::new(&self.symbols, SectionAddresses::Assigned(&self.sections, 0))).ok()
        })
        .map_or(0, |v| v.max(0) as u64)
    }

    /// Names of the kernels that have descriptors, in source order.
    pub fn kernels(&self) -> impl Iterator<Item = &str> {
        self.descriptors.iter().map(|d| d.descriptor.kernel.as_str())
    }

    /// The register counts that a kernel's descriptor requests: `.amdhsa_next_free_vgpr` and
    /// `.amdhsa_next_free_sgpr`.
    pub fn registers(&self, kernel: &str) -> [Option<u32>; 2] {
        let found = self.descriptors.iter().find(|d| d.descriptor.kernel == kernel);
        let values = Values::new(&self.symbols, SectionAddresses::Assigned(&self.sections, 0));
        found.map_or([None; 2], |d| d.descriptor.registers(|expr| expr.eval(&values).ok()))
    }

    /// The wave size of the first descriptor; 32 if there is none.
    pub fn wave(&self) -> u32 {
        let sizes = self.arch.wave_sizes();
        let size = self.descriptors.first().map_or(sizes[0], |d| d.descriptor.wave());
        if sizes.contains(&size) { size } else { sizes[0] }
    }
}
