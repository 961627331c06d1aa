//! A whole assembly file as data: sections, symbols, and values that wait for addresses.
//!
//! [`read`] and [`read_file`] build it (the reading is in `reader`). Instructions' sizes do not depend on
//! symbols, so every label has its offset in its section at once. What mentions symbols is kept as a
//! [`Pending`] value and filled in by [`Program::link`] (in `link`), when sections have addresses.

use super::descriptor::Descriptor;
use super::error::{AsmError, Span};
use super::expr::{Expr, Symbols};
use super::link::Relocation;
use super::reader::Reader;
use super::source::{Place, Sources, Text};
use super::{Fixup, Options, print, symbolic};
use std::borrow::Cow;
use std::cell::Cell;
use std::collections::HashMap;
use wavesim_isa::arch::Arch;
use wavesim_isa::codec::Words;
use wavesim_isa::inst::Inst;

/// The largest size of a file's sections together, in bytes; directives can request more in a few characters.
pub const MAX_BYTES: usize = 64 << 20;

/// An error with its place.
#[derive(Debug, Clone, PartialEq)]
pub struct LineError {
    /// Line of the main file, from 1: the outermost call if the error is in a macro or an included file.
    pub line: usize,
    /// Column of `text` in characters, from 1.
    pub column: usize,
    /// What is wrong.
    pub error: AsmError,
    /// Name of the file that has the line.
    pub file: String,
    /// Line of that file, from 1.
    pub number: usize,
    /// The line as it was read, macro parameters substituted.
    pub text: String,
    /// Calls that led to the line, the innermost first.
    pub chain: Vec<String>,
}

impl LineError {
    /// An error on a line that was read from `place`.
    pub fn new(sources: &Sources, place: Place, text: &str, error: AsmError) -> LineError {
        LineError {
            line: sources.main_line(place) as usize,
            column: error.column(text),
            error,
            file: sources.file(place).to_string(),
            number: place.line as usize,
            text: text.to_string(),
            chain: sources.chain(place),
        }
    }

    /// An error on a line of the main file; [`LineError::of`] names the file.
    pub fn on_line(line: usize, text: &str, error: AsmError) -> LineError {
        let (file, text, column) = (String::new(), text.to_string(), error.column(text));
        LineError { line, column, error, file, number: line, text, chain: Vec::new() }
    }

    /// The same error, in the file with this name.
    pub fn of(self, file: &str) -> LineError {
        LineError { file: file.to_string(), ..self }
    }

    /// An error of the file as a whole.
    pub fn whole(message: impl Into<Cow<'static, str>>) -> LineError {
        let error = AsmError::new(Span::default(), message);
        let (file, text) = (String::new(), String::new());
        LineError { line: 1, column: 1, error, file, number: 1, text, chain: Vec::new() }
    }
}

/// `file:line:column: error: message` with the line, a caret, and where it was expanded.
impl std::fmt::Display for LineError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let width = self.error.span.end.saturating_sub(self.error.span.start).max(1);
        let width = width.min(self.text.chars().count().saturating_sub(self.column - 1).max(1));
        write!(f, "{}:{}:{}: error: {}", self.file, self.number, self.column, self.error)?;
        // Tabs stay, so that the caret is below its place.
        let gap: String =
            self.text.chars().take(self.column - 1).map(|c| if c == '\t' { c } else { ' ' }).collect();
        write!(f, "\n  {}\n  {gap}{}", self.text.trim_end(), "^".repeat(width))?;
        for call in &self.chain {
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
    /// Byte offset in its section.
    pub offset: u64,
    /// The instruction; fields that wait for symbols are filled in by linking.
    pub inst: Inst,
    /// Its encoding.
    pub words: Words,
    /// The options in force where it was read.
    pub options: Options,
    /// A branch's target, if it is a label.
    pub label: Option<String>,
}

impl Listed {
    /// The instruction as the disassembler prints it.
    pub fn text(&self) -> String {
        print::with_label(&self.inst, &self.options, self.label.as_deref())
    }
}

/// A section of the file.
#[derive(Debug, Clone)]
pub struct Section {
    /// As in `.section`.
    pub name: String,
    /// Its contents.
    pub bytes: Vec<u8>,
    /// Alignment in bytes: 4 or more for code.
    pub align: u64,
    /// What memory it is for.
    pub memory: Memory,
    /// Address in the image, once the file is laid out.
    pub address: u64,
}

/// What memory a section is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Memory {
    /// Constant data.
    ReadOnly,
    /// Instructions.
    Code,
    /// Data that may be written.
    Writable,
    /// Not loaded: debug information, notes for tools.
    None,
}

impl Section {
    /// An empty section.
    pub fn new(name: &str, memory: Memory) -> Section {
        let align = if memory == Memory::Code { 4 } else { 1 };
        Section { name: name.to_string(), bytes: Vec::new(), align, memory, address: 0 }
    }
}

/// What a symbol is defined as.
#[derive(Debug, Clone)]
#[expect(missing_docs, reason = "the variants say what their fields are")]
pub enum Definition {
    /// A place in a section, in bytes.
    Label { section: usize, offset: u64 },
    /// A value, possibly of other symbols.
    Expr(Expr),
}

/// What directives say of a symbol.
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
    /// Whether a loader may take another file's symbol of this name in its place.
    pub fn preemptible(&self) -> bool {
        self.global && !self.hidden && !self.protected
    }
}

/// A value that waits for symbols.
#[derive(Debug, Clone)]
#[expect(missing_docs, reason = "the variants say what their fields are")]
pub enum Pending {
    /// Fields of an instruction; `listed` is its index in the listing.
    Inst { listed: usize, inst: Inst, fixups: Vec<Fixup> },
    /// Data of `width` bytes.
    Data { width: usize, expr: Expr, span: Span },
}

/// A pending value with its place.
#[derive(Debug, Clone)]
pub struct Waiting {
    /// Index in [`Program::sections`].
    pub section: usize,
    /// Byte offset in the section.
    pub offset: u64,
    /// Where it is in the source.
    pub place: Place,
    /// The line, for messages.
    pub line: Text,
    /// What is filled in.
    pub what: Pending,
}

/// A kernel descriptor with its place.
#[derive(Debug, Clone)]
pub struct PlacedDescriptor {
    /// Index in [`Program::sections`].
    pub section: usize,
    /// Byte offset in the section.
    pub offset: u64,
    /// Where it is in the source.
    pub place: Place,
    /// The line, for messages.
    pub line: Text,
    /// Its directives.
    pub descriptor: Descriptor,
}

/// An assembly file that has been read.
#[derive(Debug)]
pub struct Program {
    /// The architecture that was assembled for: the option's, or the file's.
    pub arch: Arch,
    /// In the order of their first use.
    pub sections: Vec<Section>,
    /// Every instruction, in the order of the text.
    pub listing: Vec<Listed>,
    /// Processor of `.amdgcn_target`.
    pub processor: Option<String>,
    /// Bits of the ELF flags for XNACK and SRAMECC (LLVM AMDGPUUsage, *Header*).
    pub features: u32,
    /// `.amdhsa_code_object_version`; 5 if the file does not say.
    pub code_object_version: u32,
    /// Text of `.amdgpu_metadata`.
    pub metadata: Option<String>,
    /// Directives about symbols, by name.
    pub info: HashMap<String, SymbolInfo>,
    /// Files and calls, for the places of messages.
    pub sources: Sources,
    /// What linking leaves to the loader.
    pub relocations: Vec<Relocation>,
    pub(super) symbols: HashMap<String, Definition>,
    /// Labels in order of definition.
    pub(super) order: Vec<String>,
    /// Look for what misspelt labels may have meant.
    pub(super) suggest: bool,
    pub(super) pending: Vec<Waiting>,
    pub(super) descriptors: Vec<PlacedDescriptor>,
}

/// A file to read, with its surroundings.
pub struct File<'a> {
    /// As in messages.
    pub name: &'a str,
    /// Its contents.
    pub text: &'a str,
    /// Symbols that are defined from the start.
    pub defines: &'a [(String, i64)],
    /// Reads a file that the text includes.
    pub open: &'a dyn Fn(&str) -> std::io::Result<Vec<u8>>,
    /// `.amdgcn_target` may choose another architecture than that of the options.
    pub any_target: bool,
}

/// Reads a file. Errors do not stop it; where there are any, the program is what could be read.
pub fn read_file(file: &File, options: &Options) -> (Program, Vec<LineError>) {
    if let Some(machine) = options.arch.machine() {
        let (unit, errors) = super::plain::read(file.text, options.arch, machine);
        let errors = errors.into_iter().map(|e| e.of(file.name)).collect();
        return (unit.program(options.arch, machine), errors);
    }
    Reader::new(file, options).read()
}

/// Reads a text without files: it can include nothing, and is for the options' architecture.
pub fn read(text: &str, options: &Options) -> (Program, Vec<LineError>) {
    let nothing = |_: &str| Err(std::io::ErrorKind::Unsupported.into());
    read_file(&File { name: "<text>", text, defines: &[], open: &nothing, any_target: false }, options)
}

/// Addresses of sections, for the values of labels.
#[derive(Clone, Copy)]
pub(super) enum Base<'a> {
    /// Unknown: labels have no value.
    Nowhere,
    /// At such a distance from each other; a value that is the same for two distances depends on no section's
    /// address.
    Apart(u64),
    /// At the addresses of the file, plus a load address.
    At(&'a [Section], u64),
}

/// Values of symbols. Chains of definitions are followed up to a limit, also where they are circular.
pub(super) struct Values<'a> {
    symbols: &'a HashMap<String, Definition>,
    base: Base<'a>,
    fuel: Cell<u32>,
    depth: Cell<u32>,
}

impl<'a> Values<'a> {
    /// Symbols whose labels have addresses by `base`.
    pub fn new(symbols: &'a HashMap<String, Definition>, base: Base<'a>) -> Values<'a> {
        Values { symbols, base, fuel: Cell::new(10_000), depth: Cell::new(0) }
    }

    /// A value that depends on no section's place: a number, or the distance of labels of one section.
    pub fn constant(symbols: &HashMap<String, Definition>, e: &Expr) -> Result<i64, AsmError> {
        // Odd distances: no rounding of addresses goes unseen.
        let near = e.eval(&Values::new(symbols, Base::Apart(0x100_1234_5671)))?;
        let distant = e.eval(&Values::new(symbols, Base::Apart(0x200_89ab_cdef)))?;
        match near == distant {
            true => Ok(near),
            false => {
                let span = e.symbol().map_or(Span::default(), |s| s.1);
                Err(AsmError::new(span, "this depends on where sections will be; expected a number"))
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
                Base::Nowhere => None,
                Base::Apart(distance) => Some((distance.wrapping_mul(1 + *section as u64) + offset) as i64),
                Base::At(sections, load) => {
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
            features: super::target::any_features(arch),
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

    /// A program of one code section.
    pub fn of_text(arch: Arch, bytes: Vec<u8>, listing: Vec<Listed>) -> Program {
        let text = Section { bytes, ..Section::new(".text", Memory::Code) };
        Program { sections: vec![text], listing, ..Program::new(arch) }
    }

    /// Address of a symbol, once sections have addresses.
    pub fn address(&self, name: &str) -> Option<u64> {
        Values::new(&self.symbols, Base::At(&self.sections, 0)).value(name).map(|v| v as u64)
    }

    /// Labels in order, with their section and offset.
    pub fn labels(&self) -> impl Iterator<Item = (&str, usize, u64)> {
        self.order.iter().filter_map(|name| match self.symbols.get(name) {
            Some(Definition::Label { section, offset }) => Some((name.as_str(), *section, *offset)),
            _ => None,
        })
    }

    /// Size of a symbol in bytes, from `.size`; 0 if there is none.
    pub fn size_of(&self, name: &str) -> u64 {
        let size = self.info.get(name).and_then(|i| i.size.as_ref());
        size.and_then(|e| e.eval(&Values::new(&self.symbols, Base::At(&self.sections, 0))).ok())
            .map_or(0, |v| v.max(0) as u64)
    }

    /// Names of the kernels that have descriptors, in the order of the text.
    pub fn kernels(&self) -> impl Iterator<Item = &str> {
        self.descriptors.iter().map(|d| d.descriptor.kernel.as_str())
    }

    /// Registers that a kernel's descriptor requests: `.amdhsa_next_free_vgpr` and `.amdhsa_next_free_sgpr`.
    pub fn registers(&self, kernel: &str) -> [Option<u32>; 2] {
        let found = self.descriptors.iter().find(|d| d.descriptor.kernel == kernel);
        let values = Values::new(&self.symbols, Base::At(&self.sections, 0));
        found.map_or([None; 2], |d| d.descriptor.registers(|expr| expr.eval(&values).ok()))
    }

    /// Lanes of the waves that the kernels are for, as the first descriptor has it; 32 where there is none.
    pub fn wave(&self) -> u32 {
        let sizes = self.arch.wave_sizes();
        let size = self.descriptors.first().map_or(sizes[0], |d| d.descriptor.wave());
        if sizes.contains(&size) { size } else { sizes[0] }
    }
}
