//! A whole assembly file as data: sections, symbols, what waits for addresses.
//!
//! [`read`] and [`read_file`] make it (the reading is in `reader`). Instructions' sizes do not depend on
//! symbols, so every label has its place in its section at once. What mentions symbols is kept as a
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

/// A file's greatest size, all sections together; directives can ask for more in a few characters.
pub const MAX_BYTES: usize = 64 << 20;

/// A fault with its place.
#[derive(Debug, Clone, PartialEq)]
pub struct LineError {
    /// Line of the main file: where the macro or file is called that the fault is in. From 1.
    pub line: usize,
    /// Of `text`, from 1.
    pub column: usize,
    pub error: AsmError,
    /// The file and the line in it.
    pub file: String,
    pub number: usize,
    /// The line as it was read, with what was put in the places of macro parameters.
    pub text: String,
    /// The calls by which it came to be read, the innermost first.
    pub chain: Vec<String>,
}

impl LineError {
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

    /// A fault on a line of a file that is read as it stands; [`LineError::of`] names the file.
    pub fn on_line(line: usize, text: &str, error: AsmError) -> LineError {
        let (file, text, column) = (String::new(), text.to_string(), error.column(text));
        LineError { line, column, error, file, number: line, text, chain: Vec::new() }
    }

    pub fn of(self, file: &str) -> LineError {
        LineError { file: file.to_string(), ..self }
    }

    /// A fault of the file as a whole.
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
    pub section: usize,
    pub offset: u64,
    pub inst: Inst,
    pub words: Words,
    /// For which machine it was read.
    pub options: Options,
    /// A branch's target, if it is a label.
    pub label: Option<String>,
}

impl Listed {
    /// As the disassembler writes it.
    pub fn text(&self) -> String {
        print::with_label(&self.inst, &self.options, self.label.as_deref())
    }
}

#[derive(Debug, Clone)]
pub struct Section {
    pub name: String,
    pub bytes: Vec<u8>,
    pub align: u64,
    pub memory: Memory,
    /// Set when the file is laid out.
    pub address: u64,
}

/// What memory a section is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Memory {
    ReadOnly,
    Code,
    Writable,
    /// Not loaded: debug information, notes for tools.
    None,
}

impl Section {
    pub fn new(name: &str, memory: Memory) -> Section {
        let align = if memory == Memory::Code { 4 } else { 1 };
        Section { name: name.to_string(), bytes: Vec::new(), align, memory, address: 0 }
    }
}

#[derive(Debug, Clone)]
pub enum Definition {
    Label { section: usize, offset: u64 },
    Expr(Expr),
}

#[derive(Debug, Clone, Default)]
pub struct SymbolInfo {
    pub global: bool,
    pub weak: bool,
    pub protected: bool,
    pub hidden: bool,
    /// `@function` or `@object`.
    pub function: bool,
    pub object: bool,
    pub size: Option<Expr>,
}

impl SymbolInfo {
    /// Whether a loader may take another file's symbol of this name in its place.
    pub fn preemptible(&self) -> bool {
        self.global && !self.hidden && !self.protected
    }
}

/// A place whose value waits for symbols.
#[derive(Debug, Clone)]
pub enum Pending {
    Inst { listed: usize, inst: Inst, fixups: Vec<Fixup> },
    Data { width: usize, expr: Expr, span: Span },
}

/// With its section, offset, and line.
#[derive(Debug, Clone)]
pub struct Waiting {
    pub section: usize,
    pub offset: u64,
    pub place: Place,
    pub line: Text,
    pub what: Pending,
}

/// A descriptor with its section, offset, and line.
#[derive(Debug, Clone)]
pub struct PlacedDescriptor {
    pub section: usize,
    pub offset: u64,
    pub place: Place,
    pub line: Text,
    pub descriptor: Descriptor,
}

#[derive(Debug)]
pub struct Program {
    /// The architecture that was assembled for: the option's, or the file's.
    pub arch: Arch,
    pub sections: Vec<Section>,
    pub listing: Vec<Listed>,
    /// Processor of `.amdgcn_target`.
    pub processor: Option<String>,
    pub code_object_version: u32,
    /// Text of `.amdgpu_metadata`.
    pub metadata: Option<String>,
    pub info: HashMap<String, SymbolInfo>,
    pub sources: Sources,
    /// What linking leaves to a loader.
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
    pub name: &'a str,
    pub text: &'a str,
    /// Symbols that are defined from the start.
    pub defines: &'a [(String, i64)],
    /// Bytes of a file that is included.
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

/// Reads a text on its own: it can include nothing, and is for the options' architecture.
pub fn read(text: &str, options: &Options) -> (Program, Vec<LineError>) {
    let nothing = |_: &str| Err(std::io::ErrorKind::Unsupported.into());
    read_file(&File { name: "<text>", text, defines: &[], open: &nothing, any_target: false }, options)
}

/// Where sections are, for the values of labels.
#[derive(Clone, Copy)]
pub(super) enum Base<'a> {
    /// Unknown: labels have no value.
    Nowhere,
    /// So far apart from each other; a value that is the same for two such distances depends on no section's
    /// place.
    Apart(u64),
    /// Where the file has them, loaded so far above its addresses.
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

    /// Code and nothing else.
    pub fn of_text(arch: Arch, bytes: Vec<u8>, listing: Vec<Listed>) -> Program {
        let text = Section { bytes, ..Section::new(".text", Memory::Code) };
        Program { sections: vec![text], listing, ..Program::new(arch) }
    }

    /// Address of a symbol, once sections have theirs.
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

    pub fn size_of(&self, name: &str) -> u64 {
        let size = self.info.get(name).and_then(|i| i.size.as_ref());
        size.and_then(|e| e.eval(&Values::new(&self.symbols, Base::At(&self.sections, 0))).ok())
            .map_or(0, |v| v.max(0) as u64)
    }

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
