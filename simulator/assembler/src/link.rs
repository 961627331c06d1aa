//! Links a file: resolves values that depend on symbols, as LLVM's linker does for a shared object, and
//! creates relocations for values that depend on the load address (LLVM AMDGPUUsage, *Relocation Records*).
//!
//! The image is position-independent, so a value that depends on the load address is not a constant. Each
//! expression is evaluated for two load addresses. If the values are equal, the expression is a number; if
//! they differ by the difference of the load addresses, it is an address; anything else has no relocation.

use super::descriptor::Descriptor;
use super::program::{
    Definition, LineError, Memory, Pending, PendingKind, PlacedDescriptor, Program, Section,
    SectionAddresses, Values,
};
use super::relocation::{Relocation, Target, kind};
use wavesim_asm::error::{AsmError, Span, suggest};
use wavesim_asm::expr::{Expr, Symbols};
use wavesim_asm::{FixupKind, Options};
use wavesim_isa::arch::Arch;
use wavesim_isa::codec::{Words, encode};
use wavesim_isa::inst::Inst;

/// Maximum number of undefined labels that get a suggestion: a file may have very many labels.
const MAX_SUGGESTIONS: usize = 10;

/// A relocation specifier: selects which value of a symbol is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Specifier {
    /// The suffix of a symbol.
    pub name: &'static str,
    /// Uses the address of the symbol's entry in the global offset table.
    pub got: bool,
    /// The value is relative to the field.
    pub relative: bool,
    /// The part of the value.
    pub half: Half,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Half {
    Both,
    Low,
    High,
}

pub(super) const SPECIFIERS: [Specifier; 8] = [
    Specifier { name: "@gotpcrel32@lo", got: true, relative: true, half: Half::Low },
    Specifier { name: "@gotpcrel32@hi", got: true, relative: true, half: Half::High },
    Specifier { name: "@gotpcrel", got: true, relative: true, half: Half::Both },
    Specifier { name: "@rel32@lo", got: false, relative: true, half: Half::Low },
    Specifier { name: "@rel32@hi", got: false, relative: true, half: Half::High },
    Specifier { name: "@rel64", got: false, relative: true, half: Half::Both },
    Specifier { name: "@abs32@lo", got: false, relative: false, half: Half::Low },
    Specifier { name: "@abs32@hi", got: false, relative: false, half: Half::High },
];

/// The section of the global offset table, and the symbol prefix of its entries; `#` keeps them distinct from
/// the file's symbols.
const GOT_SECTION: &str = ".got";
const GOT_ENTRY_PREFIX: &str = "@got#";

/// The value of an expression as far as the file determines it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Resolved {
    Number(i64),
    /// An address relative to the image; the load address must be added.
    Address(i64, Half),
}

/// The second load address; odd, so that rounding an address changes the result.
const SECOND_LOAD_ADDRESS: u64 = 0x1_2345_6789;

/// Splits an expression into the expression without relocation specifiers and its first specifier.
fn split_specifier(e: &Expr) -> (Expr, Option<Specifier>) {
    match e {
        Expr::Symbol(name, span) => {
            let found = SPECIFIERS.iter().find_map(|s| Some((name.strip_suffix(s.name)?, *s)));
            match found {
                Some((plain, specifier)) => {
                    let name =
                        if specifier.got { format!("{GOT_ENTRY_PREFIX}{plain}") } else { plain.to_string() };
                    (Expr::Symbol(name, *span), Some(specifier))
                }
                None => (e.clone(), None),
            }
        }
        Expr::Int(_) => (e.clone(), None),
        Expr::Unary(op, a) => {
            let (a, specifier) = split_specifier(a);
            (Expr::Unary(*op, Box::new(a)), specifier)
        }
        Expr::Binary(op, a, b) => {
            let ((a, first), (b, second)) = (split_specifier(a), split_specifier(b));
            (Expr::Binary(op, Box::new(a), Box::new(b)), first.or(second))
        }
    }
}

impl Pending {
    /// The fields of the value: offset, size if the field can hold an address, expression and span.
    pub(super) fn fields(&self) -> Vec<(u64, Option<usize>, &Expr, Span)> {
        match &self.kind {
            PendingKind::Data { width, expr, span } => vec![(self.offset, Some(*width), expr, *span)],
            PendingKind::Inst { inst, fixups, .. } => {
                let field = |f: &wavesim_asm::Fixup| match f.kind {
                    // A literal is the last word of the instruction.
                    FixupKind::Literal => (self.offset + inst.size as u64 - 4, Some(4)),
                    FixupKind::Branch | FixupKind::Absolute => (self.offset, None),
                };
                fixups.iter().map(|f| (field(f).0, field(f).1, &f.expr, f.span)).collect()
            }
        }
    }
}

impl Program {
    /// Prepares linking as far as it does not depend on section addresses: creates the entries of the global
    /// offset table, and defines undefined weak symbols.
    pub fn prepare_link(&mut self) {
        let undefined = self.info.iter().filter(|(name, i)| i.weak && !self.symbols.contains_key(*name));
        let undefined: Vec<String> = undefined.map(|(name, _)| name.clone()).collect();
        for name in undefined {
            self.symbols.insert(name, Definition::Expr(Expr::Int(0)));
        }
        let mut entries = Vec::new();
        for pending in &self.pending {
            for (_, _, expr, span) in pending.fields() {
                let (plain, _) = split_specifier(expr);
                for (name, _) in plain.symbols() {
                    if let Some(symbol) = name.strip_prefix(GOT_ENTRY_PREFIX)
                        && !self.symbols.contains_key(name)
                    {
                        entries.push((name.to_string(), symbol.to_string(), span, pending.clone()));
                    }
                }
            }
        }
        for (entry, symbol, span, user) in entries {
            if self.symbols.contains_key(&entry) {
                continue;
            }
            let section = self.sections.iter().position(|s| s.name == GOT_SECTION).unwrap_or_else(|| {
                self.sections.push(Section { align: 8, ..Section::new(GOT_SECTION, Memory::Writable) });
                self.sections.len() - 1
            });
            let bytes = &mut self.sections[section].bytes;
            let offset = bytes.len().next_multiple_of(8);
            bytes.resize(offset + 8, 0);
            let offset = offset as u64;
            self.symbols.insert(entry, Definition::Label { section, offset });
            let kind = PendingKind::Data { width: 8, expr: Expr::Symbol(symbol, span), span };
            self.pending.push(Pending { section, offset, kind, ..user });
        }
    }

    /// The relocations that linking will create. Available before sections have addresses; number and targets
    /// are final.
    pub fn planned_relocations(&self) -> Vec<Relocation> {
        let loaded = self.pending.iter().filter(|w| self.sections[w.section].memory != Memory::None);
        let fields = loaded.flat_map(|w| w.fields().into_iter().map(|field| (w.section, field)));
        let planned =
            |(section, (offset, width, expr, span)): (usize, (u64, Option<usize>, &Expr, Span))| match self
                .resolve(expr, section, offset)
                .ok()?
            {
                Resolved::Address(value, half) => {
                    self.relocation((section, offset), width?, (value, half), expr, span).ok()
                }
                Resolved::Number(_) => None,
            };
        fields.filter_map(planned).collect()
    }

    /// Fills in all pending values. Sections must have addresses.
    pub fn link(&mut self, options: &Options) -> Vec<LineError> {
        self.prepare_link();
        let options = Options { arch: self.arch, ..*options };
        let mut errors = Vec::new();
        for pending in std::mem::take(&mut self.pending) {
            self.suggest = errors.len() < MAX_SUGGESTIONS;
            if let Err(error) = self.fill(&pending, &options) {
                errors.push(LineError::new(&self.sources, pending.location, &pending.line, error));
            }
        }
        for placed in std::mem::take(&mut self.descriptors) {
            match self.descriptor_bytes(&placed) {
                Ok(bytes) => {
                    self.sections[placed.section].bytes[placed.offset as usize..][..64]
                        .copy_from_slice(&bytes);
                }
                Err(error) => {
                    errors.push(LineError::new(&self.sources, placed.location, &placed.line, error))
                }
            }
            self.descriptors.push(placed);
        }
        errors
    }

    fn descriptor_bytes(&self, placed: &PlacedDescriptor) -> Result<[u8; 64], AsmError> {
        let own = self.sections[placed.section].address + placed.offset;
        let Descriptor { kernel, .. } = &placed.descriptor;
        let Some(entry) = self.address(kernel) else {
            let error =
                AsmError::new(Span::default(), format!("there is no label `{kernel}` for this kernel"));
            return Err(match suggest(kernel, self.order.iter().map(String::as_str)) {
                Some(help) => error.help(help),
                None => error,
            });
        };
        placed.descriptor.finish(entry.wrapping_sub(own) as i64, &|e| match self.resolve(
            e,
            placed.section,
            placed.offset,
        )? {
            Resolved::Number(value) => Ok(value),
            Resolved::Address(..) => Err(load_dependent(e, Span::default())),
        })
    }

    fn fill(&mut self, pending: &Pending, options: &Options) -> Result<(), AsmError> {
        // Debug information may name symbols that only the loader resolves. It is not loaded, so its
        // addresses are those of the file.
        let unloaded = self.sections[pending.section].memory == Memory::None;
        let at = pending.offset as usize;
        let mut values = Vec::new();
        for (offset, width, expr, span) in pending.fields() {
            if unloaded && expr.symbol().is_some_and(|(name, _)| !self.symbols.contains_key(name)) {
                return Ok(());
            }
            let resolved = self.resolve(expr, pending.section, offset).map_err(|e| e.or_at(span))?;
            values.push(match (resolved, width) {
                (Resolved::Number(value), _) => value,
                (Resolved::Address(value, _), None) => value,
                (Resolved::Address(value, _), Some(_)) if unloaded => value,
                (Resolved::Address(value, half), Some(width)) => {
                    let field = (pending.section, offset);
                    let relocation = self.relocation(field, width, (value, half), expr, span)?;
                    self.relocations.push(relocation);
                    0
                }
            });
        }
        match &pending.kind {
            PendingKind::Inst { listed, inst, fixups } => {
                let mut inst = *inst;
                let next = self.sections[pending.section].address + pending.offset + inst.size as u64;
                for (fixup, value) in fixups.iter().zip(values) {
                    if fixup.kind == FixupKind::Absolute
                        && let Resolved::Address(..) =
                            self.resolve(&fixup.expr, pending.section, pending.offset)?
                    {
                        return Err(load_dependent(&fixup.expr, fixup.span));
                    }
                    fixup.set(&mut inst, next as i64, value)?;
                }
                let words = self.sections[pending.section].put_instruction(at, options.arch, &inst)?;
                let label = fixups.iter().find(|f| f.kind == FixupKind::Branch).and_then(|f| f.expr.symbol());
                let label = label.map(|l| l.0).filter(|l| !l.contains('#'));
                let listed = &mut self.listing[*listed];
                (listed.inst, listed.label) = (inst, label.map(str::to_string));
                listed.words = words;
            }
            PendingKind::Data { width, span, .. } => {
                let value = values.first().copied().unwrap_or(0);
                self.sections[pending.section].put_number(at, value, *width, *span)?;
            }
        }
        Ok(())
    }

    /// Resolves an expression for a field.
    fn resolve(&self, expr: &Expr, section: usize, offset: u64) -> Result<Resolved, AsmError> {
        let (plain, specifier) = split_specifier(expr);
        let loaded = |load: u64| {
            let values = Values::new(&self.symbols, SectionAddresses::Assigned(&self.sections, load));
            let value = plain.eval(&values).map_err(|e| match (self.undefined(&plain, e), specifier) {
                (e, Some(_)) if e.help.is_none() => {
                    e.help("to use symbols of other files, write an object with `wavesim asm -o` and link it with ld.lld")
                }
                (e, _) => e,
            })?;
            let field_address = self.sections[section].address.wrapping_add(offset).wrapping_add(load);
            Ok(match specifier {
                Some(Specifier { relative: true, .. }) => value.wrapping_sub(field_address as i64),
                _ => value,
            })
        };
        let value = loaded(0)?;
        let difference = loaded(SECOND_LOAD_ADDRESS)?.wrapping_sub(value) as u64;
        let half = specifier.map_or(Half::Both, |s| s.half);
        match (difference, half) {
            (0, Half::Both) => Ok(Resolved::Number(value)),
            (0, Half::Low) => Ok(Resolved::Number(value & 0xffff_ffff)),
            (0, Half::High) => Ok(Resolved::Number(value >> 32)),
            (SECOND_LOAD_ADDRESS, half) => Ok(Resolved::Address(value, half)),
            _ => {
                let span = plain.symbol().map_or(Span::default(), |s| s.1);
                let message = "this depends on the load address, but is not an address in the code object";
                Err(AsmError::new(span, message)
                    .help("only addresses and differences of labels are supported"))
            }
        }
    }

    /// Creates the relocation by which the loader writes the address `value` of `expr` to a field.
    fn relocation(
        &self,
        (section, offset): (usize, u64),
        width: usize,
        (value, half): (i64, Half),
        expr: &Expr,
        span: Span,
    ) -> Result<Relocation, AsmError> {
        let kind = match (width, half) {
            (8, Half::Both) => kind::ABS64,
            (4, Half::Both) => kind::ABS32,
            (4, Half::Low) => kind::ABS32_LO,
            (4, Half::High) => kind::ABS32_HI,
            (_, Half::Both) => {
                let error = AsmError::new(span, format!("an address does not fit {width} bytes"));
                return Err(error.help("`.quad` has room for one"));
            }
            _ => return Err(AsmError::new(span, "half of an address takes 4 bytes")),
        };
        let (plain, _) = split_specifier(expr);
        let symbols = plain.symbols();
        let own = match symbols.as_slice() {
            [(name, _)] if self.info.get(*name).is_some_and(|i| i.preemptible()) => Some(*name),
            _ => None,
        };
        let (target, base) = match own {
            Some(name) => (Target::Symbol(name.to_string()), self.address(name).unwrap_or(0)),
            None if kind == kind::ABS64 => {
                let kind = kind::RELATIVE64;
                return Ok(Relocation { section, offset, kind, target: Target::Image, addend: value });
            }
            None => {
                let of = self.section_of(&plain, 0).ok_or_else(|| load_dependent(expr, span))?;
                (Target::Section(of), self.sections[of].address)
            }
        };
        let addend = value.wrapping_sub(base as i64);
        Ok(Relocation { section, offset, kind, target, addend })
    }

    /// The section of the first label in an expression.
    fn section_of(&self, e: &Expr, depth: u32) -> Option<usize> {
        e.symbols().iter().find_map(|(name, _)| match self.symbols.get(*name)? {
            Definition::Label { section, .. } => Some(*section),
            Definition::Expr(e) if depth < 8 => self.section_of(e, depth + 1),
            Definition::Expr(_) => None,
        })
    }

    /// The error for an undefined symbol in an expression.
    fn undefined(&self, e: &Expr, error: AsmError) -> AsmError {
        let values = Values::new(&self.symbols, SectionAddresses::Assigned(&self.sections, 0));
        let missing = e.symbols().into_iter().find(|(name, _)| values.value(name).is_none());
        let Some((name, span)) = missing.filter(|_| error.help.is_none()) else { return error };
        if let Some(symbol) = name.strip_prefix(GOT_ENTRY_PREFIX) {
            return self.undefined(&Expr::Symbol(symbol.to_string(), span), error);
        }
        if self.symbols.contains_key(name) {
            return error;
        }
        if let Some((digits, _)) = name.split_once('#') {
            return AsmError::new(span, format!("there is no label `{digits}:` in this direction"));
        }
        if let Some(at) = name.find('@').filter(|at| *at > 0) {
            let error = AsmError::new(span, format!("there is no relocation specifier `{}`", &name[at..]));
            let known: Vec<&str> = SPECIFIERS.iter().map(|s| s.name).collect();
            return error.help(format!("there are {}", known.join(", ")));
        }
        if !self.suggest {
            return error;
        }
        match suggest(name, self.order.iter().map(String::as_str).filter(|n| !n.contains('#'))) {
            Some(help) => error.help(help),
            None => error,
        }
    }
}

impl Section {
    /// Encodes an instruction at an offset. Returns its words.
    pub(super) fn put_instruction(
        &mut self,
        position: usize,
        arch: Arch,
        inst: &Inst,
    ) -> Result<Words, AsmError> {
        let words = encode(arch, inst).map_err(|e| AsmError::new(Span::default(), e.to_string()))?;
        for (word, bytes) in words.iter().zip(self.bytes[position..].chunks_mut(4)) {
            bytes.copy_from_slice(&word.to_le_bytes());
        }
        Ok(words)
    }

    /// Stores a number of `width` bytes at an offset.
    pub(super) fn put_number(
        &mut self,
        position: usize,
        value: i64,
        width: usize,
        span: Span,
    ) -> Result<(), AsmError> {
        if !fits(value, width) {
            return Err(AsmError::new(span, format!("{value} does not fit {width} bytes")));
        }
        self.bytes[position..position + width].copy_from_slice(&value.to_le_bytes()[..width]);
        Ok(())
    }
}

/// Returns whether a value fits this many bytes, as a signed or an unsigned number.
pub(super) fn fits(value: i64, width: usize) -> bool {
    width >= 8 || (-(1i64 << (8 * width - 1))..1i64 << (8 * width)).contains(&value)
}

fn load_dependent(e: &Expr, span: Span) -> AsmError {
    let span = e.symbol().map_or(span, |s| s.1);
    AsmError::new(span, "this depends on the load address; expected a number")
}
