//! A whole assembly file: sections, labels, directives and instructions.
//!
//! One pass reads; instructions' sizes do not depend on symbols, so every label has its place in its section at once. What
//! mentions symbols is kept as a [`Pending`] value and filled in by [`Program::link`], when sections have addresses.

use super::descriptor::Descriptor;
use super::error::{AsmError, Span};
use super::expr::{Expr, Symbols};
use super::scan::{Scanner, without_comment};
use super::{Fixup, FixupKind, Options, operand, print, symbolic};
use crate::codec::encode;
use crate::inst::Inst;
use std::collections::HashMap;

/// A file's greatest size; directives can ask for more in a few characters.
const MAX_BYTES: usize = 64 << 20;

/// A fault with its line, from 1.
#[derive(Debug, Clone, PartialEq)]
pub struct LineError {
    pub line: usize,
    pub column: usize,
    pub error: AsmError,
}

/// An instruction of the file, for listings.
#[derive(Debug, Clone, PartialEq)]
pub struct Listed {
    pub line: usize,
    /// As the disassembler writes it.
    pub text: String,
    pub words: Vec<u32>,
}

#[derive(Debug, Clone)]
pub struct Section {
    pub name: String,
    pub bytes: Vec<u8>,
    pub align: u64,
    /// Set by [`Program::place`].
    pub address: u64,
}

#[derive(Debug, Clone)]
enum Definition {
    Label { section: usize, offset: u64 },
    Expr(Expr),
}

#[derive(Debug, Clone, Default)]
pub struct SymbolInfo {
    pub global: bool,
    pub protected: bool,
    /// `@function` or `@object`.
    pub function: bool,
    pub object: bool,
    pub size: Option<Expr>,
}

/// A place whose value waits for symbols.
#[derive(Debug, Clone)]
enum Pending {
    Inst { listed: usize, inst: Inst, fixups: Vec<Fixup> },
    Data { width: usize, expr: Expr, span: Span },
}

#[derive(Debug, Default)]
pub struct Program {
    pub sections: Vec<Section>,
    pub listing: Vec<Listed>,
    /// Processor of `.amdgcn_target`.
    pub processor: Option<String>,
    pub code_object_version: u32,
    /// Text of `.amdgpu_metadata`.
    pub metadata: Option<String>,
    pub info: HashMap<String, SymbolInfo>,
    symbols: HashMap<String, Definition>,
    /// In order of definition.
    order: Vec<String>,
    pending: Vec<(usize, u64, usize, String, Pending)>,
    descriptors: Vec<(usize, u64, usize, Descriptor)>,
}

/// Reads a file. Errors do not stop it; where there are any, the program is what could be read.
pub fn read(text: &str, options: &Options) -> (Program, Vec<LineError>) {
    if let Some(machine) = options.arch.machine() {
        let (unit, errors) = super::plain::read(text, options.arch, machine);
        return (unit.program(options.arch, machine), errors);
    }
    let mut reader = Reader {
        program: Program { code_object_version: 5, ..Program::default() },
        options: *options,
        current: 0,
        errors: Vec::new(),
        block: Block::None,
    };
    reader.section(".text");
    for (at, line) in text.lines().enumerate() {
        reader.line(at + 1, line);
    }
    if !matches!(reader.block, Block::None) {
        let error = AsmError::new(Span::default(), "the file ends within a block");
        reader.errors.push(LineError { line: text.lines().count().max(1), column: 1, error });
    }
    (reader.program, reader.errors)
}

enum Block {
    None,
    Kernel(Descriptor),
    Metadata(String),
}

struct Reader {
    program: Program,
    options: Options,
    current: usize,
    errors: Vec<LineError>,
    block: Block,
}

/// Symbols that have an absolute value while reading.
struct Absolute<'a>(&'a HashMap<String, Definition>);

impl Symbols for Absolute<'_> {
    fn value(&self, name: &str) -> Option<i64> {
        absolute(self.0, name, 0).or_else(|| symbolic::predefined(name))
    }
}

fn absolute(symbols: &HashMap<String, Definition>, name: &str, depth: u32) -> Option<i64> {
    match symbols.get(name)? {
        Definition::Expr(e) if depth < 32 => e.eval(&|n: &str| absolute(symbols, n, depth + 1)).ok(),
        _ => None,
    }
}

impl Reader {
    fn line(&mut self, number: usize, line: &str) {
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
        let stripped = without_comment(line);
        // A line of the C preprocessor, or a shell's first line.
        if stripped.trim_start().starts_with('#') {
            return;
        }
        if let Err(error) = self.statement(number, &stripped) {
            let column = error.column(line);
            self.errors.push(LineError { line: number, column, error });
        }
    }

    fn statement(&mut self, number: usize, line: &str) -> Result<(), AsmError> {
        let mut s = Scanner::new(line);
        loop {
            if s.done() {
                return Ok(());
            }
            let mut ahead = s.clone();
            let Some((name, span)) = ahead.ident() else {
                return Err(AsmError::new(s.here(), "an instruction, a label or a directive belongs here"));
            };
            let label = ahead.peek() == Some(':') && !ahead.rest().starts_with("::");
            if label {
                ahead.skip(1);
                s = ahead;
                self.label(name, span)?;
                continue;
            }
            if ahead.eat('=') && !ahead.rest().starts_with('=') {
                return self.define(name, span, &mut ahead);
            }
            if name.starts_with('.') {
                s.ident();
                return self.directive(name, span, &mut s, number, line);
            }
            return self.instruction(number, line, s.at());
        }
    }

    fn label(&mut self, name: &str, span: Span) -> Result<(), AsmError> {
        let offset = self.here();
        if self.program.symbols.contains_key(name) {
            return Err(AsmError::new(span, format!("`{name}` is defined already")));
        }
        let at = Definition::Label { section: self.current, offset };
        self.program.symbols.insert(name.to_string(), at);
        self.program.order.push(name.to_string());
        Ok(())
    }

    fn define(&mut self, name: &str, span: Span, s: &mut Scanner) -> Result<(), AsmError> {
        let e = super::expr::parse(s, true)?;
        if !s.done() {
            return Err(AsmError::new(s.here(), "the expression ends before this"));
        }
        // What is known now stays so: `n = n + 1` counts.
        let e = e.eval(&Absolute(&self.program.symbols)).map_or(e, Expr::Int);
        if matches!(self.program.symbols.get(name), Some(Definition::Label { .. })) {
            return Err(AsmError::new(span, format!("`{name}` is a label already")));
        }
        self.program.symbols.insert(name.to_string(), Definition::Expr(e));
        Ok(())
    }

    fn here(&self) -> u64 {
        self.program.sections[self.current].bytes.len() as u64
    }

    fn section(&mut self, name: &str) {
        let found = self.program.sections.iter().position(|s| s.name == name);
        self.current = found.unwrap_or_else(|| {
            let align = if name == ".text" { 4 } else { 1 };
            self.program.sections.push(Section {
                name: name.to_string(),
                bytes: Vec::new(),
                align,
                address: 0,
            });
            self.program.sections.len() - 1
        });
    }

    fn push(&mut self, bytes: &[u8], span: Span) -> Result<(), AsmError> {
        let section = &mut self.program.sections[self.current];
        if section.bytes.len() + bytes.len() > MAX_BYTES {
            return Err(AsmError::new(span, "the section grows beyond 64 MiB"));
        }
        section.bytes.extend_from_slice(bytes);
        Ok(())
    }

    fn fill(&mut self, count: usize, value: u8, span: Span) -> Result<(), AsmError> {
        let section = &mut self.program.sections[self.current];
        if count > MAX_BYTES || section.bytes.len() + count > MAX_BYTES {
            return Err(AsmError::new(span, "the section grows beyond 64 MiB"));
        }
        section.bytes.resize(section.bytes.len() + count, value);
        Ok(())
    }

    fn instruction(&mut self, number: usize, line: &str, start: usize) -> Result<(), AsmError> {
        // Columns are those of the whole line.
        let blank = " ".repeat(start);
        let text = format!("{blank}{}", &line[start..]);
        let parsed = {
            let symbols = Absolute(&self.program.symbols);
            super::matching::assemble(&operand::parse_line(&text, &symbols)?, &self.options)?
        };
        let span = Span::new(start, line.trim_end().len());
        let words =
            encode(self.options.arch, &parsed.inst).map_err(|e| AsmError::new(span, e.to_string()))?;
        let offset = self.here();
        let bytes: Vec<u8> = words.iter().flat_map(|w| w.to_le_bytes()).collect();
        self.push(&bytes, span)?;
        let listed = self.program.listing.len();
        let text = print::instruction(&parsed.inst, &self.options);
        self.program.listing.push(Listed { line: number, text, words: words.to_vec() });
        if !parsed.fixups.is_empty() {
            let pending = Pending::Inst { listed, inst: parsed.inst, fixups: parsed.fixups };
            self.program.pending.push((self.current, offset, number, line.to_string(), pending));
        }
        Ok(())
    }

    fn value(&self, s: &mut Scanner) -> Result<(i64, Span), AsmError> {
        s.space();
        let start = s.at();
        let value = super::expr::parse(s, true)?.eval(&Absolute(&self.program.symbols))?;
        Ok((value, s.since(start)))
    }

    fn directive(
        &mut self,
        name: &str,
        span: Span,
        s: &mut Scanner,
        number: usize,
        line: &str,
    ) -> Result<(), AsmError> {
        if let Block::Kernel(descriptor) = &mut self.block {
            if name == ".end_amdhsa_kernel" {
                let descriptor = descriptor.clone();
                self.block = Block::None;
                return self.descriptor(descriptor, number, span);
            }
            let Some(own) = name.strip_prefix(".amdhsa_") else {
                return Err(AsmError::new(
                    span,
                    "only .amdhsa_ directives belong in an .amdhsa_kernel block",
                ));
            };
            let own = own.to_string();
            let (value, at) = self.value(s)?;
            if let Block::Kernel(descriptor) = &mut self.block {
                descriptor.set(&own, value, if own.is_empty() { at } else { span })?;
            }
            return Ok(());
        }
        match name {
            ".text" | ".data" | ".rodata" | ".bss" => self.section(name),
            ".section" => {
                let (name, _) =
                    s.ident().ok_or_else(|| AsmError::new(s.here(), "a section's name belongs here"))?;
                self.section(name);
            }
            ".amdgcn_target" => self.target(s)?,
            ".amdhsa_code_object_version" => {
                let (version, at) = self.value(s)?;
                if !(4..=6).contains(&version) {
                    return Err(AsmError::new(at, "code object versions are 4, 5 and 6"));
                }
                self.program.code_object_version = version as u32;
            }
            ".amdhsa_kernel" => {
                let (name, _) =
                    s.ident().ok_or_else(|| AsmError::new(s.here(), "the kernel's name belongs here"))?;
                self.block = Block::Kernel(Descriptor::new(name, self.options.arch));
            }
            ".amdgpu_metadata" => self.block = Block::Metadata(String::new()),
            ".globl" | ".global" | ".weak" | ".protected" | ".hidden" | ".type" | ".size" => {
                self.symbol_directive(name, s)?;
            }
            ".set" | ".equ" | ".equiv" => {
                let (symbol, at) =
                    s.ident().ok_or_else(|| AsmError::new(s.here(), "a symbol belongs here"))?;
                s.expect(',')?;
                self.define(symbol, at, s)?;
            }
            ".p2align" | ".align" | ".balign" => self.align(name, span, s)?,
            ".byte" => self.data(s, 1, number, line)?,
            ".short" | ".2byte" | ".hword" | ".value" => self.data(s, 2, number, line)?,
            ".long" | ".int" | ".4byte" | ".word" => self.data(s, 4, number, line)?,
            ".quad" | ".8byte" => self.data(s, 8, number, line)?,
            ".float" | ".single" | ".double" => self.floats(name, s)?,
            ".zero" | ".space" | ".skip" | ".fill" => self.repeat(name, s)?,
            ".ascii" | ".asciz" | ".string" => self.string(name, s)?,
            // Of no effect on what is assembled.
            ".file" | ".loc" | ".ident" | ".addrsig" | ".addrsig_sym" | ".cfi_sections"
            | ".cfi_startproc" | ".cfi_endproc" | ".amdgpu_info" | ".p2alignl" | ".amdgpu_hsa_kernel" => {}
            _ => {
                const KNOWN: [&str; 20] = [
                    ".text",
                    ".rodata",
                    ".data",
                    ".section",
                    ".globl",
                    ".type",
                    ".size",
                    ".set",
                    ".p2align",
                    ".byte",
                    ".short",
                    ".long",
                    ".quad",
                    ".float",
                    ".zero",
                    ".ascii",
                    ".amdgcn_target",
                    ".amdhsa_kernel",
                    ".amdgpu_metadata",
                    ".amdhsa_code_object_version",
                ];
                let error = AsmError::new(span, format!("there is no directive `{name}`"));
                return Err(match super::error::suggest(name, KNOWN) {
                    Some(help) => error.help(help),
                    None => error,
                });
            }
        }
        Ok(())
    }

    /// `"amdgcn-amd-amdhsa--gfx1100"`, perhaps with features after a colon.
    fn target(&mut self, s: &mut Scanner) -> Result<(), AsmError> {
        s.space();
        let start = s.at();
        let text = s.rest().trim().trim_matches('"').to_string();
        s.skip(s.rest().len());
        let span = s.since(start);
        let processor =
            text.rsplit_once("--").map_or("", |t| t.1).split(':').next().unwrap_or("").to_string();
        let Some(arch) = crate::arch::Arch::from_mcpu(&processor) else {
            return Err(AsmError::new(
                span,
                format!("`{text}` names none of the processors that are known here"),
            ));
        };
        if arch != self.options.arch {
            let error = AsmError::new(
                span,
                format!("this file is for {}, and {} was asked for", arch.name(), self.options.arch.name()),
            );
            return Err(error.help(format!("--mcpu {processor}")));
        }
        self.program.processor = Some(processor);
        Ok(())
    }

    fn symbol_directive(&mut self, name: &str, s: &mut Scanner) -> Result<(), AsmError> {
        loop {
            let (symbol, _) = s.ident().ok_or_else(|| AsmError::new(s.here(), "a symbol belongs here"))?;
            let info = self.program.info.entry(symbol.to_string()).or_default();
            match name {
                ".globl" | ".global" | ".weak" => info.global = true,
                ".protected" => info.protected = true,
                ".type" => {
                    s.expect(',')?;
                    let kind = s.ident().map_or("", |i| i.0);
                    info.function = kind == "@function";
                    info.object = kind == "@object";
                }
                ".size" => {
                    s.expect(',')?;
                    info.size = Some(super::expr::parse(s, true)?);
                }
                _ => {}
            }
            if !s.eat(',') {
                return Ok(());
            }
        }
    }

    fn align(&mut self, name: &str, span: Span, s: &mut Scanner) -> Result<(), AsmError> {
        let (value, at) = self.value(s)?;
        let bytes =
            if name == ".p2align" { 1u64.checked_shl(value as u32).unwrap_or(0) } else { value as u64 };
        if value < 0 || !bytes.is_power_of_two() || bytes > 1 << 16 {
            return Err(AsmError::new(at, "alignments are powers of two up to 64 KiB"));
        }
        let fill = if s.eat(',') { self.value(s)?.0 as u8 } else { 0 };
        let section = &mut self.program.sections[self.current];
        section.align = section.align.max(bytes);
        let pad = section.bytes.len().next_multiple_of(bytes as usize) - section.bytes.len();
        // Between instructions stand instructions that do nothing.
        if section.name == ".text" && pad.is_multiple_of(4) && fill == 0 {
            let nop = encode_nop(&self.options);
            for _ in 0..pad / 4 {
                self.push(&nop, span)?;
            }
            return Ok(());
        }
        self.fill(pad, fill, span)
    }

    fn data(&mut self, s: &mut Scanner, width: usize, number: usize, line: &str) -> Result<(), AsmError> {
        loop {
            s.space();
            let start = s.at();
            let e = super::expr::parse(s, true)?;
            let span = s.since(start);
            let offset = self.here();
            let value = e.eval(&Absolute(&self.program.symbols));
            let known = *value.as_ref().unwrap_or(&0);
            if width < 8 && !(-(1i64 << (8 * width - 1))..1i64 << (8 * width)).contains(&known) {
                return Err(AsmError::new(span, format!("{known} does not fit {width} bytes")));
            }
            self.push(&known.to_le_bytes()[..width], span)?;
            if value.is_err() {
                let pending = Pending::Data { width, expr: e, span };
                self.program.pending.push((self.current, offset, number, line.to_string(), pending));
            }
            if !s.eat(',') {
                break;
            }
        }
        if s.done() {
            Ok(())
        } else {
            Err(AsmError::new(s.here(), "`,` and another value, or nothing, belong here"))
        }
    }

    fn floats(&mut self, name: &str, s: &mut Scanner) -> Result<(), AsmError> {
        loop {
            s.space();
            let start = s.at();
            let negative = s.eat('-');
            let value = match s.number()? {
                super::scan::Number::Int(v) => v as f64,
                super::scan::Number::Float(v) => v,
            };
            let value = if negative { -value } else { value };
            let span = s.since(start);
            match name {
                ".double" => self.push(&value.to_le_bytes(), span)?,
                _ => self.push(&(value as f32).to_le_bytes(), span)?,
            }
            if !s.eat(',') {
                return Ok(());
            }
        }
    }

    fn repeat(&mut self, name: &str, s: &mut Scanner) -> Result<(), AsmError> {
        let (count, at) = self.value(s)?;
        let mut next =
            |r: &Self, default: i64| if s.eat(',') { r.value(s).map(|v| v.0) } else { Ok(default) };
        let count = usize::try_from(count).map_err(|_| AsmError::new(at, "a count is not negative"))?;
        if name != ".fill" {
            let value = next(self, 0)?;
            return self.fill(count, value as u8, at);
        }
        let size = next(self, 1)?;
        let value = next(self, 0)?;
        if !(0..=8).contains(&size) || count > MAX_BYTES {
            return Err(AsmError::new(at, ".fill takes a count, a size up to 8 and a value"));
        }
        for _ in 0..count {
            self.push(&value.to_le_bytes()[..size as usize], at)?;
        }
        Ok(())
    }

    fn string(&mut self, name: &str, s: &mut Scanner) -> Result<(), AsmError> {
        s.space();
        let start = s.at();
        let text = s.rest().trim();
        let body = text.strip_prefix('"').and_then(|t| t.strip_suffix('"'));
        let span = Span::new(start, start + text.len());
        let body = body.ok_or_else(|| AsmError::new(span, "a string in quotes belongs here"))?;
        let mut bytes = Vec::new();
        let mut chars = body.chars();
        while let Some(c) = chars.next() {
            let c = if c != '\\' {
                c
            } else {
                match chars.next() {
                    Some('n') => '\n',
                    Some('t') => '\t',
                    Some('0') => '\0',
                    Some(c) => c,
                    None => return Err(AsmError::new(span, "the string ends with a backslash")),
                }
            };
            bytes.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
        }
        if name != ".ascii" {
            bytes.push(0);
        }
        self.push(&bytes, span)
    }

    fn descriptor(&mut self, descriptor: Descriptor, number: usize, span: Span) -> Result<(), AsmError> {
        let back = self.current;
        self.section(".rodata");
        let pad = self.here().next_multiple_of(64) - self.here();
        self.fill(pad as usize, 0, span)?;
        let section = &mut self.program.sections[self.current];
        section.align = section.align.max(64);
        let name = format!("{}.kd", descriptor.kernel);
        let offset = self.here();
        self.label(&name, span)?;
        let kernel = self.program.info.get(&descriptor.kernel).cloned().unwrap_or_default();
        let size = Some(Expr::Int(64));
        self.program
            .info
            .insert(name, SymbolInfo { object: true, function: false, size, global: true, ..kernel });
        self.fill(64, 0, span)?;
        self.program.descriptors.push((self.current, offset, number, descriptor));
        self.current = back;
        Ok(())
    }
}

fn encode_nop(options: &Options) -> [u8; 4] {
    let nop = super::parse("s_nop 0", options, &super::NoSymbols).ok();
    let words = nop.and_then(|p| encode(options.arch, &p.inst).ok());
    words.and_then(|w| w.first().copied()).unwrap_or(0).to_le_bytes()
}

/// Symbols at their addresses, as seen from one place.
struct Linked<'a> {
    program: &'a Program,
    /// Address of the field that is being filled in.
    place: u64,
    depth: u32,
}

impl Symbols for Linked<'_> {
    fn value(&self, name: &str) -> Option<i64> {
        // LLVM's relocation specifiers: the distance from the field, in halves.
        for (suffix, shift) in
            [("@rel32@lo", 0), ("@rel32@hi", 32), ("@gotpcrel32@lo", 0), ("@gotpcrel32@hi", 32)]
        {
            if let Some(plain) = name.strip_suffix(suffix) {
                let distance = self.value(plain)?.wrapping_sub(self.place as i64);
                return Some(if shift == 0 { distance & 0xffff_ffff } else { distance >> 32 });
            }
        }
        for (suffix, shift) in [("@abs32@lo", 0), ("@abs32@hi", 32)] {
            if let Some(plain) = name.strip_suffix(suffix) {
                return Some((self.value(plain)? >> shift) & 0xffff_ffff);
            }
        }
        match self.program.symbols.get(name) {
            Some(Definition::Label { section, offset }) => {
                Some((self.program.sections[*section].address + offset) as i64)
            }
            Some(Definition::Expr(e)) if self.depth < 32 => {
                e.eval(&Linked { program: self.program, place: self.place, depth: self.depth + 1 }).ok()
            }
            Some(Definition::Expr(_)) => None,
            None if name == "." => Some(self.place as i64),
            None => symbolic::predefined(name),
        }
    }
}

impl Program {
    /// Code and nothing else.
    pub fn of_text(bytes: Vec<u8>, listing: Vec<Listed>) -> Program {
        let text = Section { name: ".text".to_string(), bytes, align: 4, address: 0 };
        Program { sections: vec![text], listing, ..Program::default() }
    }

    /// Address of a symbol, once sections have theirs.
    pub fn address(&self, name: &str) -> Option<u64> {
        Linked { program: self, place: 0, depth: 0 }.value(name).map(|v| v as u64)
    }

    /// Labels in order, with their section.
    pub fn labels(&self) -> impl Iterator<Item = (&str, usize, u64)> {
        self.order.iter().filter_map(|name| match self.symbols.get(name) {
            Some(Definition::Label { section, offset }) => Some((name.as_str(), *section, *offset)),
            _ => None,
        })
    }

    pub fn size_of(&self, name: &str) -> u64 {
        let size = self.info.get(name).and_then(|i| i.size.as_ref());
        size.and_then(|e| e.eval(&Linked { program: self, place: 0, depth: 0 }).ok())
            .map_or(0, |v| v.max(0) as u64)
    }

    pub fn kernels(&self) -> impl Iterator<Item = &str> {
        self.descriptors.iter().map(|d| d.3.kernel.as_str())
    }

    /// Fills in what waited for symbols. Sections have their addresses.
    pub fn link(&mut self, options: &Options) -> Vec<LineError> {
        let mut errors = Vec::new();
        let pending = std::mem::take(&mut self.pending);
        for (section, offset, line, text, what) in pending {
            let place = self.sections[section].address + offset;
            let result = match what {
                Pending::Inst { listed, inst, fixups } => {
                    self.fill_inst(section, offset, place, listed, inst, &fixups, options)
                }
                Pending::Data { width, expr, span } => {
                    let value = expr.eval(&Linked { program: self, place, depth: 0 });
                    value
                        .map(|v| {
                            let at = offset as usize;
                            self.sections[section].bytes[at..at + width]
                                .copy_from_slice(&v.to_le_bytes()[..width]);
                        })
                        .map_err(|e| if e.span == Span::default() { AsmError { span, ..e } } else { e })
                }
            };
            if let Err(error) = result {
                errors.push(LineError { line, column: error.column(&text), error });
            }
        }
        for (section, offset, line, descriptor) in std::mem::take(&mut self.descriptors) {
            let own = self.sections[section].address + offset;
            match self.address(&descriptor.kernel) {
                Some(entry) => {
                    let bytes = descriptor.clone().finish(entry.wrapping_sub(own) as i64);
                    self.sections[section].bytes[offset as usize..][..64].copy_from_slice(&bytes);
                }
                None => {
                    let message = format!("there is no label `{}` for this kernel", descriptor.kernel);
                    errors.push(LineError {
                        line,
                        column: 1,
                        error: AsmError::new(Span::default(), message),
                    });
                }
            }
            self.descriptors.push((section, offset, line, descriptor));
        }
        errors
    }

    #[allow(clippy::too_many_arguments)]
    fn fill_inst(
        &mut self,
        section: usize,
        offset: u64,
        place: u64,
        listed: usize,
        mut inst: Inst,
        fixups: &[Fixup],
        options: &Options,
    ) -> Result<(), AsmError> {
        let next = (place + inst.size as u64) as i64;
        for fixup in fixups {
            // A literal is the instruction's last word.
            let place = if fixup.kind == FixupKind::Literal { next as u64 - 4 } else { place };
            fixup.apply(&mut inst, next, &Linked { program: self, place, depth: 0 })?;
        }
        let words = encode(options.arch, &inst).map_err(|e| AsmError::new(Span::default(), e.to_string()))?;
        for (n, word) in words.iter().enumerate() {
            let at = offset as usize + 4 * n;
            self.sections[section].bytes[at..at + 4].copy_from_slice(&word.to_le_bytes());
        }
        let label = fixups.iter().find(|f| f.kind == FixupKind::Branch).and_then(|f| f.expr.symbol());
        let text = print::with_label(&inst, options, label.map(|l| l.0));
        self.listing[listed].words = words.to_vec();
        self.listing[listed].text = text;
        Ok(())
    }
}
