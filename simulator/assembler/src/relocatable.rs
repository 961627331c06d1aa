//! Writes a relocatable object, as LLVM's assembler does, for a file that refers to symbols of other files
//! (LLVM AMDGPUUsage, *Relocation Records*). LLVM's linker makes a code object of it.

use super::descriptor::ENTRY_OFFSET;
use super::link::{Half, SPECIFIERS, Specifier};
use super::object::{file_header, flags_of, note};
use super::program::{
    Definition, LineError, Memory, Pending, PendingKind, Program, Section, SectionAddresses, Values,
};
use super::relocation::kind;
use object::elf;
use object::write::StringId;
use object::write::elf::{Rel, SectionHeader, SectionIndex, Sym, Writer};
use std::collections::{BTreeSet, HashMap};
use wavesim_asm::error::{AsmError, Span};
use wavesim_asm::expr::Expr;
use wavesim_asm::{FixupKind, Options};

/// Size of an entry of a relocation section in bytes.
const RELA: usize = 24;

/// What a relocation refers to.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Base {
    /// A section, by its index: local symbols are replaced by their section.
    Section(usize),
    /// A global or an undefined symbol.
    Symbol(String),
}

/// A relocation of a section.
struct Record {
    section: usize,
    offset: u64,
    kind: u32,
    base: Base,
    addend: i64,
}

/// An expression as a sum: symbols that are added and subtracted, a number, and the first specifier.
#[derive(Default)]
struct Sum {
    plus: Vec<(String, Span)>,
    minus: Vec<(String, Span)>,
    number: i64,
    specifier: Option<Specifier>,
    /// Number of expressions that have been added.
    steps: u32,
}

/// Maximum number of expressions in a sum: symbols that are sums of symbols can grow exponentially.
const MAX_STEPS: u32 = 10_000;

impl Sum {
    /// Adds an expression, or subtracts it; `None` if it is no sum of symbols and numbers.
    fn add(&mut self, program: &Program, e: &Expr, negative: bool, depth: u32) -> Option<()> {
        self.steps += 1;
        if self.steps > MAX_STEPS {
            return None;
        }
        match e {
            Expr::Int(value) => {
                self.number = self.number.wrapping_add(if negative { -value } else { *value })
            }
            Expr::Symbol(name, span) => {
                let found = SPECIFIERS.iter().find_map(|s| Some((name.strip_suffix(s.name)?, *s)));
                let (plain, specifier) = found.map_or((name.as_str(), None), |(n, s)| (n, Some(s)));
                self.specifier = self.specifier.or(specifier);
                match program.symbols.get(plain) {
                    Some(Definition::Expr(e)) if depth > 0 => {
                        return self.add(program, e, negative, depth - 1);
                    }
                    Some(Definition::Expr(_)) => return None,
                    _ if negative => self.minus.push((plain.to_string(), *span)),
                    _ => self.plus.push((plain.to_string(), *span)),
                }
            }
            Expr::Unary('+', a) => self.add(program, a, negative, depth)?,
            Expr::Unary('-', a) => self.add(program, a, !negative, depth)?,
            Expr::Binary(op @ ("+" | "-"), a, b) => {
                self.add(program, a, negative, depth)?;
                self.add(program, b, negative != (*op == "-"), depth)?;
            }
            _ => {
                let value = e.eval(&Values::new(&program.symbols, SectionAddresses::Unknown)).ok()?;
                self.number = self.number.wrapping_add(if negative { -value } else { value });
            }
        }
        Some(())
    }

    /// Replaces differences of labels of one section by their distances.
    fn cancel(&mut self, program: &Program) {
        self.minus.retain(|(subtracted, _)| {
            let Some((section, low)) = program.label(subtracted) else { return true };
            let same = |(name, _): &(String, Span)| program.label(name).is_some_and(|l| l.0 == section);
            let Some(at) = self.plus.iter().position(same) else { return true };
            let (name, _) = self.plus.remove(at);
            let high = program.label(&name).map_or(0, |l| l.1);
            self.number = self.number.wrapping_add(high.wrapping_sub(low) as i64);
            false
        });
    }
}

/// The value of a field: a number, or a relocation without its place.
enum Field {
    Number(i64),
    Reference(u32, Base, i64),
}

impl Program {
    /// A label's section and offset.
    fn label(&self, name: &str) -> Option<(usize, u64)> {
        match self.symbols.get(name) {
            Some(Definition::Label { section, offset }) => Some((*section, *offset)),
            _ => None,
        }
    }

    /// Names that the file uses without defining them.
    pub fn undefined_symbols(&self) -> BTreeSet<String> {
        let mut names = BTreeSet::new();
        for (_, _, expr, _) in self.pending.iter().flat_map(Pending::fields) {
            let mut sum = Sum::default();
            if sum.add(self, expr, false, 64).is_some() {
                names.extend(sum.plus.into_iter().chain(sum.minus).map(|s| s.0));
            }
        }
        names.retain(|name| {
            let weak = self.info.get(name).is_some_and(|i| i.weak);
            // Numbered labels are of this file.
            !weak && !name.contains(['#', '@']) && !self.symbols.contains_key(name)
        });
        names
    }

    fn is_local(&self, name: &str) -> bool {
        self.symbols.contains_key(name) && !self.info.get(name).is_some_and(|i| i.global || i.weak)
    }

    fn reference(&self, kind: u32, name: &str, addend: i64) -> Field {
        match self.label(name).filter(|_| self.is_local(name) && kind != kind::GOTPCREL) {
            Some((section, offset)) => {
                Field::Reference(kind, Base::Section(section), addend.wrapping_add(offset as i64))
            }
            None => Field::Reference(kind, Base::Symbol(name.to_string()), addend),
        }
    }

    /// The value of a field of `width` bytes, or of a branch (`None`); `literal` is an instruction's literal.
    fn field(
        &self,
        (section, offset): (usize, u64),
        width: Option<usize>,
        expr: &Expr,
        literal: bool,
    ) -> Result<Field, AsmError> {
        let mut sum = Sum::default();
        let span = expr.symbol().map_or(Span::default(), |s| s.1);
        let unsupported = || AsmError::new(span, "no relocation expresses this");
        sum.add(self, expr, false, 64).ok_or_else(unsupported)?;
        sum.cancel(self);
        let relative = match (&sum.plus[..], &sum.minus[..]) {
            ([], []) => return Ok(Field::Number(sum.number)),
            ([_], []) => None,
            // Relative to the field itself.
            ([_], [(from, _)]) => match self.label(from) {
                Some((of, from)) if of == section => Some(offset.wrapping_sub(from) as i64),
                _ => return Err(unsupported()),
            },
            _ => return Err(unsupported()),
        };
        let name = &sum.plus[0].0;
        let near =
            self.label(name).filter(|l| l.0 == section && !self.info.get(name).is_some_and(|i| i.weak));
        let Some(width) = width else {
            if near.is_some() && !self.is_local(name) && relative.is_none() {
                return Ok(self.reference(kind::REL16, name, sum.number));
            }
            let (_, target) = near.filter(|_| relative.is_none()).ok_or_else(|| {
                AsmError::new(span, format!("undefined label `{name}`: branches stay in their section"))
            })?;
            return Ok(Field::Number((target as i64).wrapping_add(sum.number)));
        };
        let addend = sum.number.wrapping_add(relative.unwrap_or(0));
        let kind = match (sum.specifier, width) {
            (Some(specifier), _) => specifier.kind(),
            // LLVM takes a literal without a specifier for relative, unless it is a difference.
            (None, 4) if relative.is_some() || literal => {
                // Another file may define a global symbol, too.
                if let (Some((_, target)), true) = (near, relative.is_none() && self.is_local(name)) {
                    let value = (target as i64).wrapping_add(addend).wrapping_sub(offset as i64);
                    return Ok(Field::Number(value));
                }
                kind::REL32
            }
            (None, 8) if relative.is_some() => kind::REL64,
            (None, 4) => kind::ABS32,
            (None, 8) => kind::ABS64,
            _ => return Err(AsmError::new(span, format!("an address does not fit {width} bytes"))),
        };
        Ok(self.reference(kind, name, addend))
    }

    /// Fills in the values that the file determines, and returns the relocations for all others.
    fn relocate(&mut self, options: &Options) -> Result<Vec<Record>, Vec<LineError>> {
        let options = Options { arch: self.arch, ..*options };
        let (mut records, mut errors) = (Vec::new(), Vec::new());
        for pending in std::mem::take(&mut self.pending) {
            if let Err(error) = self.relocate_one(&pending, &options, &mut records) {
                errors.push(LineError::new(&self.sources, pending.location, &pending.line, error));
            }
        }
        for placed in std::mem::take(&mut self.descriptors) {
            let values = Values::new(&self.symbols, SectionAddresses::Unknown);
            match placed.descriptor.finish(0, &|e| e.eval(&values)) {
                Ok(bytes) => {
                    let at = placed.offset as usize;
                    self.sections[placed.section].bytes[at..][..64].copy_from_slice(&bytes);
                    let (section, offset) = (placed.section, placed.offset + ENTRY_OFFSET);
                    // The distance from the descriptor, of which the field is a part.
                    if let Field::Reference(kind, base, addend) =
                        self.reference(kind::REL64, &placed.descriptor.kernel, ENTRY_OFFSET as i64)
                    {
                        records.push(Record { section, offset, kind, base, addend });
                    }
                }
                Err(error) => {
                    errors.push(LineError::new(&self.sources, placed.location, &placed.line, error));
                }
            }
            self.descriptors.push(placed);
        }
        if errors.is_empty() { Ok(records) } else { Err(errors) }
    }

    fn relocate_one(
        &mut self,
        pending: &Pending,
        options: &Options,
        records: &mut Vec<Record>,
    ) -> Result<(), AsmError> {
        let literal = matches!(pending.kind, PendingKind::Inst { .. });
        let mut values = Vec::new();
        for (offset, width, expr, span) in pending.fields() {
            let found = self.field((pending.section, offset), width, expr, literal);
            values.push(match found.map_err(|e| e.or_at(span))? {
                Field::Number(value) => value,
                Field::Reference(kind, base, addend) => {
                    records.push(Record { section: pending.section, offset, kind, base, addend });
                    // The field of a branch is -1, as in LLVM, which is a branch to itself.
                    if kind == kind::REL16 { pending.offset as i64 } else { 0 }
                }
            });
        }
        let at = pending.offset as usize;
        match &pending.kind {
            PendingKind::Inst { listed, inst, fixups } => {
                let mut inst = *inst;
                let next = pending.offset + inst.size as u64;
                for (fixup, value) in fixups.iter().zip(values) {
                    debug_assert!(fixup.kind != FixupKind::Literal || value as i32 as i64 == value);
                    fixup.set(&mut inst, next as i64, value)?;
                }
                let words = self.sections[pending.section].put_instruction(at, options.arch, &inst)?;
                let listed = &mut self.listing[*listed];
                (listed.inst, listed.words) = (inst, words);
            }
            PendingKind::Data { width, span, .. } => {
                let value = values.first().copied().unwrap_or(0);
                self.sections[pending.section].put_number(at, value, *width, *span)?;
            }
        }
        Ok(())
    }
}

impl Specifier {
    /// The relocation type that the specifier selects.
    fn kind(&self) -> u32 {
        match (self.got, self.relative, self.half) {
            (true, _, Half::Both) => kind::GOTPCREL,
            (true, _, Half::Low) => kind::GOTPCREL32_LO,
            (true, _, Half::High) => kind::GOTPCREL32_HI,
            (false, true, Half::Both) => kind::REL64,
            (false, true, Half::Low) => kind::REL32_LO,
            (false, true, Half::High) => kind::REL32_HI,
            (false, false, Half::High) => kind::ABS32_HI,
            (false, false, _) => kind::ABS32_LO,
        }
    }
}

/// What is in the object, in the order of the file. Its writer borrows the names.
struct Plan {
    /// Sorted by section and offset.
    records: Vec<Record>,
    /// Sections that relocations refer to: each has a symbol.
    bases: Vec<usize>,
    /// Local symbols, then global and undefined ones: ELF requires this order.
    symbols: Vec<String>,
    /// The number of local symbols.
    locals: usize,
    section_names: Vec<String>,
    /// Sections with relocations, and the names of the sections that hold them.
    relocated: Vec<(usize, String)>,
    note: Vec<u8>,
}

impl Plan {
    fn of(program: &mut Program, options: &Options) -> Result<Plan, Vec<LineError>> {
        let note = note(program.metadata.as_deref())?;
        let undefined = program.undefined_symbols();
        let mut records = program.relocate(options)?;
        records.sort_by_key(|r| (r.section, r.offset));
        let section_of = |r: &Record| match r.base {
            Base::Section(section) => Some(section),
            Base::Symbol(_) => None,
        };
        let bases: BTreeSet<usize> = records.iter().filter_map(section_of).collect();
        let named = |name: &&str| !name.starts_with(".L") && !name.contains('#');
        let mut symbols: Vec<String> =
            program.labels().map(|l| l.0).filter(named).map(str::to_string).collect();
        let used = records.iter().filter_map(|r| match &r.base {
            Base::Symbol(name) if program.label(name).is_none() || !named(&name.as_str()) => {
                Some(name.clone())
            }
            _ => None,
        });
        let foreign: BTreeSet<String> = undefined.into_iter().chain(used).collect();
        symbols.extend(foreign);
        symbols.sort_by_key(|name| !program.is_local(name));
        let locals = symbols.iter().filter(|name| program.is_local(name)).count();
        let section_names: Vec<String> = program.sections.iter().map(|s| s.name.clone()).collect();
        let sections: BTreeSet<usize> = records.iter().map(|r| r.section).collect();
        let with_name = |section: usize| (section, format!(".rela{}", section_names[section]));
        let relocated = sections.into_iter().map(with_name).collect();
        let bases = bases.into_iter().collect();
        Ok(Plan { records, bases, symbols, locals, section_names, relocated, note })
    }

    /// The number of the first symbol with a name.
    fn first_named(&self) -> usize {
        1 + self.bases.len()
    }

    /// The relocations of a section.
    fn of_section(&self, section: usize) -> &[Record] {
        let first = self.records.partition_point(|r| r.section < section);
        let end = self.records.partition_point(|r| r.section <= section);
        &self.records[first..end]
    }
}

/// The numbers of sections, symbols and strings.
struct Indices<'p> {
    sections: Vec<(StringId, SectionIndex)>,
    relocation_names: Vec<StringId>,
    note_name: Option<StringId>,
    symtab: SectionIndex,
    symbol_names: Vec<StringId>,
    /// The symbols of sections, and those with names.
    section_symbols: HashMap<usize, usize>,
    symbols: HashMap<&'p str, usize>,
}

impl<'p> Indices<'p> {
    fn reserve(w: &mut Writer<'p>, program: &Program, plan: &'p Plan) -> Indices<'p> {
        w.reserve_null_section_index();
        let sections: Vec<_> = plan
            .section_names
            .iter()
            .map(|name| (w.add_section_name(name.as_bytes()), w.reserve_section_index()))
            .collect();
        let relocation_names = plan
            .relocated
            .iter()
            .map(|(_, name)| {
                w.reserve_section_index();
                w.add_section_name(name.as_bytes())
            })
            .collect();
        let note_name = (!plan.note.is_empty()).then(|| {
            w.reserve_section_index();
            w.add_section_name(b".note")
        });
        let symtab = w.reserve_symtab_section_index();
        w.reserve_strtab_section_index();
        w.reserve_shstrtab_section_index();
        let symbol_names = plan.symbols.iter().map(|name| w.add_string(name.as_bytes())).collect();
        w.require_strtab();
        w.reserve_null_symbol_index();
        for section in &plan.bases {
            w.reserve_symbol_index(Some(sections[*section].1));
        }
        for name in &plan.symbols {
            w.reserve_symbol_index(program.label(name).map(|l| sections[l.0].1));
        }
        let section_symbols =
            plan.bases.iter().zip(1..).map(|(section, number)| (*section, number)).collect();
        let symbols = plan.symbols.iter().map(String::as_str).zip(plan.first_named()..).collect();
        Indices { sections, relocation_names, note_name, symtab, symbol_names, section_symbols, symbols }
    }

    fn symbol(&self, base: &Base) -> usize {
        match base {
            Base::Section(section) => self.section_symbols[section],
            Base::Symbol(name) => self.symbols[name.as_str()],
        }
    }
}

/// Where the parts of the file are.
struct Offsets {
    sections: Vec<usize>,
    relocations: Vec<usize>,
    note: usize,
}

impl Offsets {
    /// Reserves the parts in the order of the file.
    fn reserve(w: &mut Writer, program: &Program, plan: &Plan) -> Offsets {
        w.reserve_file_header();
        let of_section = |s: &Section| (s.bytes.len(), s.align.max(1) as usize);
        let sections =
            program.sections.iter().map(of_section).map(|(size, align)| w.reserve(size, align)).collect();
        let sizes = plan.relocated.iter().map(|(section, _)| plan.of_section(*section).len() * RELA);
        let relocations = sizes.map(|size| w.reserve(size, 8)).collect();
        let note = w.reserve(plan.note.len(), 4);
        w.reserve_symtab();
        w.reserve_strtab();
        w.reserve_shstrtab();
        w.reserve_section_headers();
        Offsets { sections, relocations, note }
    }
}

/// Writes the program as a relocatable object.
pub fn write(program: &mut Program, options: &Options) -> Result<Vec<u8>, Vec<LineError>> {
    let plan = Plan::of(program, options)?;
    let mut bytes = Vec::new();
    let mut w = Writer::new(object::Endianness::Little, true, &mut bytes);
    let indices = Indices::reserve(&mut w, program, &plan);
    let offsets = Offsets::reserve(&mut w, program, &plan);
    w.write_file_header(&file_header(program, options, elf::ET_REL))
        .map_err(|e| vec![LineError::whole(e.to_string())])?;
    let file = Parts { program, plan: &plan, indices, offsets };
    // In the order in which space was reserved.
    file.contents(&mut w);
    file.symbols(&mut w);
    file.section_headers(&mut w);
    Ok(bytes)
}

/// The parts of an object. Each method writes some of them.
struct Parts<'p> {
    program: &'p Program,
    plan: &'p Plan,
    indices: Indices<'p>,
    offsets: Offsets,
}

impl Parts<'_> {
    /// Writes the sections, their relocations, and the note.
    fn contents(&self, w: &mut Writer) {
        for (section, offset) in self.program.sections.iter().zip(&self.offsets.sections) {
            w.pad_until(*offset);
            w.write(&section.bytes);
        }
        for ((section, _), offset) in self.plan.relocated.iter().zip(&self.offsets.relocations) {
            w.pad_until(*offset);
            for r in self.plan.of_section(*section) {
                let r_sym = self.indices.symbol(&r.base) as u32;
                let relocation = Rel { r_offset: r.offset, r_sym, r_type: r.kind, r_addend: r.addend };
                w.write_relocation(true, &relocation);
            }
        }
        w.pad_until(self.offsets.note);
        w.write(&self.plan.note);
    }

    fn symbols(&self, w: &mut Writer) {
        w.write_null_symbol();
        let of_section = |section: usize| Sym {
            name: None,
            section: Some(self.indices.sections[section].1),
            st_info: elf::STB_LOCAL << 4 | elf::STT_SECTION,
            st_other: elf::STV_DEFAULT,
            st_shndx: 0,
            st_value: 0,
            st_size: 0,
        };
        for section in &self.plan.bases {
            w.write_symbol(&of_section(*section));
        }
        for (name, id) in self.plan.symbols.iter().zip(&self.indices.symbol_names) {
            w.write_symbol(&self.symbol(name, *id));
        }
        w.write_strtab();
        w.write_shstrtab();
    }

    fn symbol(&self, name: &str, id: StringId) -> Sym {
        let (st_info, visibility) = flags_of(self.program, name, !self.program.is_local(name));
        // As in LLVM, the code of a kernel is not preemptible.
        let kernel = visibility == elf::STV_DEFAULT && self.program.kernels().any(|k| k == name);
        let label = self.program.label(name);
        Sym {
            name: Some(id),
            section: label.map(|l| self.indices.sections[l.0].1),
            st_info,
            st_other: if kernel { elf::STV_PROTECTED } else { visibility },
            st_shndx: 0,
            st_value: label.map_or(0, |l| l.1),
            st_size: self.program.size_of(name),
        }
    }

    fn section_headers(&self, w: &mut Writer) {
        let (plan, indices, offsets) = (self.plan, &self.indices, &self.offsets);
        w.write_null_section_header();
        for ((section, (name, _)), offset) in
            self.program.sections.iter().zip(&indices.sections).zip(&offsets.sections)
        {
            let flags = match section.memory {
                Memory::ReadOnly => elf::SHF_ALLOC,
                Memory::Code => elf::SHF_ALLOC | elf::SHF_EXECINSTR,
                Memory::Writable => elf::SHF_ALLOC | elf::SHF_WRITE,
                Memory::None => 0,
            };
            let (size, align) = (section.bytes.len(), section.align.max(1));
            w.write_section_header(&header(*name, elf::SHT_PROGBITS, flags, *offset, size, align));
        }
        let names = indices.relocation_names.iter().zip(&offsets.relocations);
        for ((section, _), (name, offset)) in plan.relocated.iter().zip(names) {
            let size = plan.of_section(*section).len() * RELA;
            w.write_section_header(&SectionHeader {
                sh_link: indices.symtab.0,
                sh_info: indices.sections[*section].1.0,
                sh_entsize: RELA as u64,
                ..header(*name, elf::SHT_RELA, elf::SHF_INFO_LINK, *offset, size, 8)
            });
        }
        if let Some(name) = indices.note_name {
            w.write_section_header(&header(
                name,
                elf::SHT_NOTE,
                elf::SHF_ALLOC,
                offsets.note,
                plan.note.len(),
                4,
            ));
        }
        w.write_symtab_section_header((plan.first_named() + plan.locals) as u32);
        w.write_strtab_section_header();
        w.write_shstrtab_section_header();
    }
}

/// The header of a section that refers to no other one.
fn header(name: StringId, sh_type: u32, flags: u32, offset: usize, size: usize, align: u64) -> SectionHeader {
    SectionHeader {
        name: Some(name),
        sh_type,
        sh_flags: flags as u64,
        sh_addr: 0,
        sh_offset: offset as u64,
        sh_size: size as u64,
        sh_link: 0,
        sh_info: 0,
        sh_addralign: align,
        sh_entsize: 0,
    }
}
