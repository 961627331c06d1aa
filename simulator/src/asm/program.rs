//! A whole assembly file as data: sections, symbols, what waits for addresses; and linking it.
//!
//! [`read`] and [`read_file`] make it (the reading is in `reader`). Instructions' sizes do not depend on symbols, so every label has its
//! place in its section at once. What mentions symbols is kept as a [`Pending`] value and filled in by [`Program::link`], when sections
//! have addresses.

use super::descriptor::Descriptor;
use super::error::{AsmError, Span, suggest};
use super::expr::{Expr, Symbols};
use super::reader::Reader;
use super::source::{Place, Sources};
use super::{Fixup, FixupKind, Options, print, symbolic};
use crate::arch::Arch;
use crate::codec::encode;
use crate::inst::Inst;
use std::cell::Cell;
use std::collections::HashMap;
use std::rc::Rc;

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
    pub fn whole(message: impl Into<String>) -> LineError {
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
        // Tabs stay, so that the caret stands below its place.
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
    /// As the disassembler writes it.
    pub text: String,
    pub words: Vec<u32>,
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
    pub line: Rc<str>,
    pub what: Pending,
}

/// A descriptor with its section, offset, and line.
#[derive(Debug, Clone)]
pub struct PlacedDescriptor {
    pub section: usize,
    pub offset: u64,
    pub place: Place,
    pub line: Rc<str>,
    pub descriptor: Descriptor,
}

#[derive(Debug)]
pub struct Program {
    /// The architecture that was assembled for: what was asked for, or what the file says.
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
    pub(super) symbols: HashMap<String, Definition>,
    /// Labels in order of definition.
    pub(super) order: Vec<String>,
    pub(super) pending: Vec<Waiting>,
    pub(super) descriptors: Vec<PlacedDescriptor>,
}

/// A file to read, and what its surroundings say.
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

/// Reads a text that stands for itself: it can include nothing, and is for the options' architecture.
pub fn read(text: &str, options: &Options) -> (Program, Vec<LineError>) {
    let nothing = |_: &str| Err(std::io::ErrorKind::Unsupported.into());
    read_file(&File { name: "<text>", text, defines: &[], open: &nothing, any_target: false }, options)
}

/// Where sections are, for the values of labels.
#[derive(Clone, Copy)]
pub(super) enum Base<'a> {
    /// Unknown: labels have no value.
    Nowhere,
    /// So far apart from each other; a value that is the same for two such distances depends on no section's place.
    Apart(u64),
    At(&'a [Section]),
}

/// Values of symbols. Chains of definitions are followed so far and no further, however they are knotted.
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
        let near = e.eval(&Values::new(symbols, Base::Apart(1 << 40)))?;
        let far = e.eval(&Values::new(symbols, Base::Apart(1 << 41)))?;
        match near == far {
            true => Ok(near),
            false => {
                let span = e.symbol().map_or(Span::default(), |s| s.1);
                Err(AsmError::new(span, "this depends on where sections will be; a number belongs here"))
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
                Base::At(sections) => Some((sections[*section].address + offset) as i64),
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

/// LLVM's relocation specifiers: ends of symbols' names, whether the value counts from the field, and which half it is.
const SPECIFIERS: [(&str, bool, u32); 5] = [
    ("@rel32@lo", true, 0),
    ("@rel32@hi", true, 32),
    ("@abs32@lo", false, 0),
    ("@abs32@hi", false, 32),
    ("@rel64", true, 64),
];

/// The expression without relocation specifiers, and the one that there was.
fn specified(e: &Expr) -> (Expr, Option<(bool, u32)>) {
    match e {
        Expr::Symbol(name, span) => {
            let found = SPECIFIERS.iter().find_map(|s| Some((name.strip_suffix(s.0)?, (s.1, s.2))));
            match found {
                Some((plain, specifier)) => (Expr::Symbol(plain.to_string(), *span), Some(specifier)),
                None => (e.clone(), None),
            }
        }
        Expr::Int(_) => (e.clone(), None),
        Expr::Unary(op, a) => {
            let (a, specifier) = specified(a);
            (Expr::Unary(*op, Box::new(a)), specifier)
        }
        Expr::Binary(op, a, b) => {
            let ((a, first), (b, second)) = (specified(a), specified(b));
            (Expr::Binary(op, Box::new(a), Box::new(b)), first.or(second))
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
            symbols: HashMap::new(),
            order: Vec::new(),
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
        Values::new(&self.symbols, Base::At(&self.sections)).value(name).map(|v| v as u64)
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
        size.and_then(|e| e.eval(&Values::new(&self.symbols, Base::At(&self.sections))).ok())
            .map_or(0, |v| v.max(0) as u64)
    }

    pub fn kernels(&self) -> impl Iterator<Item = &str> {
        self.descriptors.iter().map(|d| d.descriptor.kernel.as_str())
    }

    /// Lanes of the waves that the kernels are for, as the first descriptor has it; 32 where there is none.
    pub fn wave(&self) -> u32 {
        self.descriptors.first().map_or(32, |d| d.descriptor.wave())
    }

    /// An expression's value, as seen from the field at address `place`.
    fn value(&self, expr: &Expr, place: u64) -> Result<i64, AsmError> {
        let (plain, specifier) = specified(expr);
        let values = Values::new(&self.symbols, Base::At(&self.sections));
        let value = plain.eval(&values).map_err(|e| match plain.symbol() {
            Some((name, _)) if e.help.is_none() && !self.symbols.contains_key(name) => {
                self.undefined(name, e)
            }
            _ => e,
        })?;
        let Some((relative, half)) = specifier else { return Ok(value) };
        let value = if relative { value.wrapping_sub(place as i64) } else { value };
        Ok(match half {
            0 => value & 0xffff_ffff,
            32 => value >> 32,
            _ => value,
        })
    }

    fn undefined(&self, name: &str, e: AsmError) -> AsmError {
        if let Some((digits, _)) = name.split_once('#') {
            return AsmError::new(e.span, format!("there is no label `{digits}:` in this direction"));
        }
        match suggest(name, self.order.iter().map(String::as_str).filter(|n| !n.contains('#'))) {
            Some(help) => e.help(help),
            None => e,
        }
    }

    /// Fills in what waited for symbols. Sections have their addresses.
    pub fn link(&mut self, options: &Options) -> Vec<LineError> {
        let options = Options { arch: self.arch, ..*options };
        let mut errors = Vec::new();
        for waiting in std::mem::take(&mut self.pending) {
            if let Err(error) = self.fill(&waiting, &options) {
                errors.push(LineError::new(&self.sources, waiting.place, &waiting.line, error));
            }
        }
        for placed in std::mem::take(&mut self.descriptors) {
            match self.descriptor_bytes(&placed) {
                Ok(bytes) => {
                    self.sections[placed.section].bytes[placed.offset as usize..][..64]
                        .copy_from_slice(&bytes);
                }
                Err(error) => errors.push(LineError::new(&self.sources, placed.place, &placed.line, error)),
            }
            self.descriptors.push(placed);
        }
        errors
    }

    fn descriptor_bytes(&self, placed: &PlacedDescriptor) -> Result<[u8; 64], AsmError> {
        let own = self.sections[placed.section].address + placed.offset;
        let kernel = &placed.descriptor.kernel;
        let Some(entry) = self.address(kernel) else {
            let error =
                AsmError::new(Span::default(), format!("there is no label `{kernel}` for this kernel"));
            return Err(match suggest(kernel, self.order.iter().map(String::as_str)) {
                Some(help) => error.help(help),
                None => error,
            });
        };
        placed.descriptor.finish(entry.wrapping_sub(own) as i64, &|e| self.value(e, own))
    }

    fn fill(&mut self, waiting: &Waiting, options: &Options) -> Result<(), AsmError> {
        let place = self.sections[waiting.section].address + waiting.offset;
        let at = waiting.offset as usize;
        match &waiting.what {
            Pending::Inst { listed, inst, fixups } => {
                let mut inst = *inst;
                let next = place + inst.size as u64;
                for fixup in fixups {
                    // A literal is the instruction's last word.
                    let place = if fixup.kind == FixupKind::Literal { next - 4 } else { place };
                    fixup.set(&mut inst, next as i64, self.value(&fixup.expr, place)?)?;
                }
                let words =
                    encode(options.arch, &inst).map_err(|e| AsmError::new(Span::default(), e.to_string()))?;
                for (word, bytes) in
                    words.iter().zip(self.sections[waiting.section].bytes[at..].chunks_mut(4))
                {
                    bytes.copy_from_slice(&word.to_le_bytes());
                }
                let label = fixups.iter().find(|f| f.kind == FixupKind::Branch).and_then(|f| f.expr.symbol());
                let label = label.map(|l| l.0).filter(|l| !l.contains('#'));
                let listed = &mut self.listing[*listed];
                listed.text = print::with_label(&inst, options, label);
                listed.words = words.to_vec();
            }
            Pending::Data { width, expr, span } => {
                // Debug information may name what only a loader places.
                let unloaded = self.sections[waiting.section].memory == Memory::None;
                if unloaded && expr.symbol().is_some_and(|(name, _)| !self.symbols.contains_key(name)) {
                    return Ok(());
                }
                let value = self.value(expr, place).map_err(|e| match e.span == Span::default() {
                    true => AsmError { span: *span, ..e },
                    false => e,
                })?;
                self.sections[waiting.section].bytes[at..at + width]
                    .copy_from_slice(&value.to_le_bytes()[..*width]);
            }
        }
        Ok(())
    }
}
