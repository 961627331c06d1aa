//! Writes a linked code object for amdhsa, as LLVM's assembler and linker produce it (LLVM AMDGPUUsage, *ELF
//! Code Object*).
//!
//! Addresses equal file offsets, and sections with different permissions are on separate pages. Only global
//! symbols are dynamic.

use super::metadata;
use super::program::{LineError, Memory, Program, Section};
use super::relocation::{Relocation, Target};
use object::elf;
use object::write::StringId;
use object::write::elf::{FileHeader, ProgramHeader, Rel, SectionHeader, SectionIndex, Sym, Writer};
use std::collections::BTreeSet;
use wavesim_asm::Options;
use wavesim_isa::arch::Processor;

/// ELFOSABI_AMDGPU_HSA.
const OS_ABI: u8 = 64;
const PAGE: usize = 0x1000;
const NOTE_NAME: &[u8] = b"AMDGPU\0\0";
/// NT_AMDGPU_METADATA.
const NOTE_TYPE: u32 = 32;

/// Returns the ELF header of an object file of this type; the flags name the processor, or one of the architecture.
pub(super) fn file_header(program: &Program, options: &Options, e_type: u16) -> FileHeader {
    let named = program.processor.as_deref().and_then(Processor::from_name);
    let processor = named.or_else(|| Processor::of_arch(options.arch));
    FileHeader {
        os_abi: OS_ABI,
        abi_version: (program.code_object_version - 2) as u8,
        e_type,
        e_machine: elf::EM_AMDGPU,
        e_entry: 0,
        e_flags: processor.map_or(0, |p| p.mach | program.features),
    }
}

/// Index of the segment that contains a section; 3 if the section is not loaded.
fn segment_index(section: &Section) -> usize {
    match section.memory {
        Memory::ReadOnly => 0,
        Memory::Code => 1,
        Memory::Writable => 2,
        Memory::None => 3,
    }
}

const FLAGS: [u32; 3] = [elf::PF_R, elf::PF_R | elf::PF_X, elf::PF_R | elf::PF_W];

pub(super) fn note(metadata: Option<&str>) -> Result<Vec<u8>, Vec<LineError>> {
    let payload = match metadata {
        Some(text) => metadata::message_pack(text)
            .map_err(|message| vec![LineError::whole(format!(".amdgpu_metadata: {message}"))])?,
        None => return Ok(Vec::new()),
    };
    let mut out = Vec::new();
    for word in [7, payload.len() as u32, NOTE_TYPE] {
        out.extend_from_slice(&word.to_le_bytes());
    }
    out.extend_from_slice(NOTE_NAME);
    out.extend_from_slice(&payload);
    out.resize(out.len().next_multiple_of(4), 0);
    Ok(out)
}

/// Size of an entry of `.rela.dyn` in bytes.
const RELA: usize = 24;

fn base_section(r: &Relocation) -> Option<usize> {
    match r.target {
        Target::Section(section) => Some(section),
        Target::Image | Target::Symbol(_) => None,
    }
}

fn hash(name: &str) -> u32 {
    elf::hash(name.as_bytes())
}

/// The `st_info` and `st_other` of a symbol, which is global if `exported`.
pub(super) fn flags_of(program: &Program, name: &str, exported: bool) -> (u8, u8) {
    let info = program.info.get(name).cloned().unwrap_or_default();
    let bind = match (exported, info.weak) {
        (true, true) => elf::STB_WEAK,
        (true, false) => elf::STB_GLOBAL,
        _ => elf::STB_LOCAL,
    };
    let ty = match (info.function, info.object) {
        (true, _) => elf::STT_FUNC,
        (_, true) => elf::STT_OBJECT,
        _ => elf::STT_NOTYPE,
    };
    let visibility = match (info.hidden, info.protected) {
        (true, _) => elf::STV_HIDDEN,
        (_, true) => elf::STV_PROTECTED,
        _ => elf::STV_DEFAULT,
    };
    (bind << 4 | ty, visibility)
}

/// The names in a file, which its writer borrows, with the section of each symbol.
struct Names {
    sections: Vec<String>,
    /// Local symbols, then global ones: ELF requires this order.
    symbols: Vec<(String, usize)>,
    /// The number of local symbols.
    locals: usize,
}

impl Names {
    fn of(program: &Program) -> Names {
        let global = |name: &str| program.info.get(name).is_some_and(|i| i.global && !i.hidden);
        // Local labels are not exported.
        let labels = program.labels().filter(|l| !l.0.starts_with(".L") && !l.0.contains('#'));
        let mut symbols: Vec<(String, usize)> = labels.map(|l| (l.0.to_string(), l.1)).collect();
        symbols.sort_by_key(|s| global(&s.0));
        let locals = symbols.iter().filter(|s| !global(&s.0)).count();
        Names { sections: program.sections.iter().map(|s| s.name.clone()).collect(), symbols, locals }
    }

    /// The dynamic symbols, which are the global ones.
    fn dynamic(&self) -> &[(String, usize)] {
        &self.symbols[self.locals..]
    }
}

/// The relocations of a file, as far as they are known before sections have addresses.
struct Planned {
    count: usize,
    /// A read-only section contains addresses.
    in_text: bool,
    /// Sections that relocations are relative to: they refer to a local dynamic symbol of the section.
    bases: BTreeSet<usize>,
}

impl Planned {
    fn of(program: &Program) -> Planned {
        let relocations = program.planned_relocations();
        Planned {
            count: relocations.len(),
            in_text: relocations.iter().any(|r| program.sections[r.section].memory != Memory::Writable),
            bases: relocations.iter().filter_map(base_section).collect(),
        }
    }
}

/// The numbers of sections and of strings.
struct Indices {
    /// The sections of the program that are written, in the order of the file.
    order: Vec<usize>,
    sections: Vec<Option<SectionIndex>>,
    section_names: Vec<Option<StringId>>,
    note_name: StringId,
    dynsym: SectionIndex,
    rela_name: Option<StringId>,
    dynamic_names: Vec<StringId>,
    symbol_names: Vec<StringId>,
    /// The first global dynamic symbol.
    first_global: usize,
}

impl Indices {
    fn reserve<'a>(w: &mut Writer<'a>, program: &Program, names: &'a Names, planned: &Planned) -> Indices {
        w.reserve_null_section_index();
        let note_name = w.add_section_name(b".note");
        w.reserve_section_index();
        let dynsym = w.reserve_dynsym_section_index();
        w.reserve_hash_section_index();
        w.reserve_dynstr_section_index();
        let rela_name = (planned.count > 0).then(|| {
            w.reserve_section_index();
            w.add_section_name(b".rela.dyn")
        });
        let mut sections = vec![None; program.sections.len()];
        // Empty sections are omitted unless they are loaded.
        let mut order: Vec<usize> = (0..program.sections.len())
            .filter(|&at| {
                program.sections[at].memory != Memory::None || !program.sections[at].bytes.is_empty()
            })
            .collect();
        order.sort_by_key(|&at| segment_index(&program.sections[at]));
        let mut section_names: Vec<Option<StringId>> = vec![None; program.sections.len()];
        for &at in &order {
            section_names[at] = Some(w.add_section_name(names.sections[at].as_bytes()));
            sections[at] = Some(w.reserve_section_index());
        }
        w.reserve_dynamic_section_index();
        w.reserve_symtab_section_index();
        w.reserve_strtab_section_index();
        w.reserve_shstrtab_section_index();

        let dynamic_names = names.dynamic().iter().map(|s| w.add_dynamic_string(s.0.as_bytes())).collect();
        let symbol_names = names.symbols.iter().map(|s| w.add_string(s.0.as_bytes())).collect();
        // The string tables exist even if there are no symbols.
        w.require_dynstr();
        w.require_strtab();
        w.reserve_null_dynamic_symbol_index();
        for _ in 0..planned.bases.len() + names.dynamic().len() {
            w.reserve_dynamic_symbol_index();
        }
        w.reserve_null_symbol_index();
        for s in &names.symbols {
            w.reserve_symbol_index(sections[s.1]);
        }
        let first_global = planned.bases.len() + 1;
        Indices {
            order,
            sections,
            section_names,
            note_name,
            dynsym,
            rela_name,
            dynamic_names,
            symbol_names,
            first_global,
        }
    }
}

/// The number of program headers.
const SEGMENTS: u32 = 6;

/// Where the parts of a file are. The sections of the program have their offset as address.
struct Offsets {
    note: usize,
    dynsym: usize,
    hash: usize,
    dynstr: usize,
    rela: usize,
    dynamic: usize,
    /// The sections that are not loaded.
    unloaded: Vec<usize>,
    /// Start and end of the segments that are loaded.
    segments: [(usize, usize); 3],
    /// The number of chains of the hash table.
    chains: u32,
}

impl Offsets {
    /// Reserves the parts in the order of the file, and assigns the addresses of sections.
    fn reserve(
        w: &mut Writer,
        program: &mut Program,
        names: &Names,
        planned: &Planned,
        indices: &Indices,
        note_len: usize,
    ) -> Offsets {
        w.reserve_file_header();
        w.reserve_program_headers(SEGMENTS);
        let note = w.reserve(note_len, 4);
        let dynsym = w.reserve_dynsym();
        let chains = (indices.first_global + names.dynamic().len()) as u32;
        let hash = w.reserve_hash(1, chains);
        let dynstr = w.reserve_dynstr();
        let rela = w.reserve_relocations(planned.count, true);
        let mut segments = [(0usize, 0usize); 3];
        for (wanted, range) in segments.iter_mut().enumerate() {
            if wanted > 0 {
                let page = w.reserved_len().next_multiple_of(PAGE);
                w.reserve_until(page);
                range.0 = page;
            }
            for &at in &indices.order {
                let section = &mut program.sections[at];
                if segment_index(section) != wanted {
                    continue;
                }
                let address = w.reserved_len().next_multiple_of(section.align.max(1) as usize);
                w.reserve_until(address);
                w.reserve(section.bytes.len(), 1);
                section.address = address as u64;
            }
            if wanted < 2 {
                range.1 = w.reserved_len();
            }
        }
        let entries = 6 + if planned.count == 0 { 0 } else { 4 } + if planned.in_text { 2 } else { 0 };
        let dynamic = w.reserve_dynamic(entries);
        segments[2].1 = w.reserved_len();
        let mut unloaded = vec![0; program.sections.len()];
        for &at in indices.order.iter().filter(|&&at| program.sections[at].memory == Memory::None) {
            unloaded[at] = w.reserve(program.sections[at].bytes.len(), program.sections[at].align as usize);
        }
        w.reserve_symtab();
        w.reserve_strtab();
        w.reserve_shstrtab();
        w.reserve_section_headers();
        Offsets { note, dynsym, hash, dynstr, rela, dynamic, unloaded, segments, chains }
    }
}

/// Returns the dynamic relocations of a linked program, relative ones first, as DT_RELACOUNT requires.
fn relocations(
    program: &Program,
    names: &Names,
    planned: &Planned,
    indices: &Indices,
) -> Result<Vec<Rel>, Vec<LineError>> {
    if program.relocations.len() != planned.count {
        let message = "the values of symbols depend on section addresses in an unsupported way";
        return Err(vec![LineError::whole(message)]);
    }
    let symbol_of = |target: &Target| match target {
        Target::Image => 0,
        Target::Section(section) => 1 + planned.bases.iter().take_while(|b| *b != section).count(),
        Target::Symbol(name) => {
            indices.first_global + names.dynamic().iter().take_while(|d| d.0 != *name).count()
        }
    };
    let relocation = |r: &Relocation| Rel {
        r_offset: program.sections[r.section].address + r.offset,
        r_sym: symbol_of(&r.target) as u32,
        r_type: r.kind,
        r_addend: r.addend,
    };
    let mut relocations: Vec<Rel> = program.relocations.iter().map(relocation).collect();
    relocations.sort_by_key(|r| (r.r_sym, r.r_offset));
    Ok(relocations)
}

/// Assigns section addresses, links the program and writes the file.
pub fn write(program: &mut Program, options: &Options) -> Result<Vec<u8>, Vec<LineError>> {
    let note = note(program.metadata.as_deref())?;
    program.prepare_link();
    let planned = Planned::of(program);
    let names = Names::of(program);
    let mut bytes = Vec::new();
    let mut w = Writer::new(object::Endianness::Little, true, &mut bytes);
    let indices = Indices::reserve(&mut w, program, &names, &planned);
    let offsets = Offsets::reserve(&mut w, program, &names, &planned, &indices, note.len());
    let errors = program.link(options);
    if !errors.is_empty() {
        return Err(errors);
    }
    let relocations = relocations(program, &names, &planned, &indices)?;
    w.write_file_header(&file_header(program, options, elf::ET_DYN))
        .map_err(|e| vec![LineError::whole(e.to_string())])?;
    let file = Parts { program, names: &names, planned, indices, offsets, relocations, note };
    // In the order in which space was reserved.
    file.segments(&mut w);
    file.dynamic_symbols(&mut w);
    file.loaded(&mut w);
    file.dynamic(&mut w);
    file.unloaded(&mut w);
    file.section_headers(&mut w);
    Ok(bytes)
}

/// The parts of a linked file. Each method writes some of them.
struct Parts<'p> {
    program: &'p Program,
    names: &'p Names,
    planned: Planned,
    indices: Indices,
    offsets: Offsets,
    relocations: Vec<Rel>,
    note: Vec<u8>,
}

impl Parts<'_> {
    fn segments(&self, w: &mut Writer) {
        let offsets = &self.offsets;
        w.write_align_program_headers();
        let mut segment = |p_type: u32, flags: u32, start: usize, end: usize, align: u64| {
            w.write_program_header(&ProgramHeader {
                p_type,
                p_flags: flags,
                p_offset: start as u64,
                p_vaddr: start as u64,
                p_paddr: start as u64,
                p_filesz: (end - start) as u64,
                p_memsz: (end - start) as u64,
                p_align: align,
            });
        };
        for (at, range) in offsets.segments.iter().enumerate() {
            segment(elf::PT_LOAD, FLAGS[at], range.0, range.1, PAGE as u64);
        }
        segment(elf::PT_DYNAMIC, FLAGS[2], offsets.dynamic, offsets.segments[2].1, 8);
        segment(elf::PT_NOTE, elf::PF_R, offsets.note, offsets.note + self.note.len(), 4);
        segment(elf::PT_GNU_STACK, FLAGS[2], 0, 0, 0);
    }

    fn symbol(&self, (name, section): &(String, usize), id: StringId) -> Sym {
        let exported = self.program.info.get(name).is_some_and(|i| i.global && !i.hidden);
        let (st_info, st_other) = flags_of(self.program, name, exported);
        Sym {
            name: Some(id),
            section: self.indices.sections[*section],
            st_info,
            st_other,
            st_shndx: 0,
            st_value: self.program.address(name).unwrap_or(0),
            st_size: self.program.size_of(name),
        }
    }

    /// Writes the note, the dynamic symbols with their hash table, and the relocations.
    fn dynamic_symbols(&self, w: &mut Writer) {
        w.pad_until(self.offsets.note);
        w.write(&self.note);
        w.write_null_dynamic_symbol();
        for &at in &self.planned.bases {
            w.write_dynamic_symbol(&Sym {
                name: None,
                section: self.indices.sections[at],
                st_info: elf::STB_LOCAL << 4 | elf::STT_SECTION,
                st_other: elf::STV_DEFAULT,
                st_shndx: 0,
                st_value: self.program.sections[at].address,
                st_size: 0,
            });
        }
        let dynamic = self.names.dynamic();
        for (symbol, id) in dynamic.iter().zip(&self.indices.dynamic_names) {
            w.write_dynamic_symbol(&self.symbol(symbol, *id));
        }
        w.write_hash(1, self.offsets.chains, |n| {
            let number = (n as usize).checked_sub(self.indices.first_global);
            number.and_then(|n| dynamic.get(n)).map(|s| hash(&s.0))
        });
        w.write_dynstr();
        if !self.relocations.is_empty() {
            w.pad_until(self.offsets.rela);
            self.relocations.iter().for_each(|r| w.write_relocation(true, r));
        }
    }

    /// The sections of the program that are loaded, or those that are not, in the order of the file.
    fn sections(&self, loaded: bool) -> impl Iterator<Item = (usize, &Section)> {
        let sections = self.indices.order.iter().map(|&at| (at, &self.program.sections[at]));
        sections.filter(move |(_, section)| (section.memory != Memory::None) == loaded)
    }

    fn loaded(&self, w: &mut Writer) {
        for (_, section) in self.sections(true) {
            w.pad_until(section.address as usize);
            w.write(&section.bytes);
        }
    }

    fn dynamic(&self, w: &mut Writer) {
        let offsets = &self.offsets;
        w.pad_until(offsets.dynamic);
        w.write_align_dynamic();
        let dynstr_len = w.dynstr_len() as u64;
        w.write_dynamic(elf::DT_HASH, offsets.hash as u64);
        w.write_dynamic(elf::DT_SYMTAB, offsets.dynsym as u64);
        w.write_dynamic(elf::DT_SYMENT, 24);
        w.write_dynamic(elf::DT_STRTAB, offsets.dynstr as u64);
        w.write_dynamic(elf::DT_STRSZ, dynstr_len);
        if !self.relocations.is_empty() {
            w.write_dynamic(elf::DT_RELA, offsets.rela as u64);
            w.write_dynamic(elf::DT_RELASZ, (self.relocations.len() * RELA) as u64);
            w.write_dynamic(elf::DT_RELAENT, RELA as u64);
            let relative = self.relocations.iter().filter(|r| r.r_sym == 0).count();
            w.write_dynamic(elf::DT_RELACOUNT, relative as u64);
        }
        if self.planned.in_text {
            w.write_dynamic(elf::DT_TEXTREL, 0);
            w.write_dynamic(elf::DT_FLAGS, elf::DF_TEXTREL as u64);
        }
        w.write_dynamic(elf::DT_NULL, 0);
    }

    /// Writes what is not loaded: sections of the program, symbols, strings.
    fn unloaded(&self, w: &mut Writer) {
        for (at, section) in self.sections(false) {
            w.pad_until(self.offsets.unloaded[at]);
            w.write(&section.bytes);
        }
        w.write_null_symbol();
        for (symbol, id) in self.names.symbols.iter().zip(&self.indices.symbol_names) {
            w.write_symbol(&self.symbol(symbol, *id));
        }
        w.write_strtab();
        w.write_shstrtab();
    }

    fn section_headers(&self, w: &mut Writer) {
        let (indices, offsets) = (&self.indices, &self.offsets);
        let header =
            |name: Option<StringId>, sh_type, flags: u32, at: u64, size: usize, align| SectionHeader {
                name,
                sh_type,
                sh_flags: flags as u64,
                sh_addr: at,
                sh_offset: at,
                sh_size: size as u64,
                sh_link: 0,
                sh_info: 0,
                sh_addralign: align,
                sh_entsize: 0,
            };
        let alloc = elf::SHF_ALLOC;
        let (note, size) = (offsets.note as u64, self.note.len());
        w.write_null_section_header();
        w.write_section_header(&header(Some(indices.note_name), elf::SHT_NOTE, alloc, note, size, 4));
        w.write_dynsym_section_header(offsets.dynsym as u64, indices.first_global as u32);
        w.write_hash_section_header(offsets.hash as u64);
        w.write_dynstr_section_header(offsets.dynstr as u64);
        if indices.rela_name.is_some() {
            let size = self.relocations.len() * RELA;
            w.write_section_header(&SectionHeader {
                sh_link: indices.dynsym.0,
                sh_entsize: RELA as u64,
                ..header(indices.rela_name, elf::SHT_RELA, alloc, offsets.rela as u64, size, 8)
            });
        }
        for &at in &indices.order {
            let section = &self.program.sections[at];
            let flags =
                [alloc, alloc | elf::SHF_EXECINSTR, alloc | elf::SHF_WRITE, 0][segment_index(section)];
            let (name, size) = (indices.section_names[at], section.bytes.len());
            let align = section.align.max(1);
            let loaded = header(name, elf::SHT_PROGBITS, flags, section.address, size, align);
            w.write_section_header(&match section.memory {
                Memory::None => {
                    SectionHeader { sh_addr: 0, sh_offset: offsets.unloaded[at] as u64, ..loaded }
                }
                _ => loaded,
            });
        }
        w.write_dynamic_section_header(offsets.dynamic as u64);
        w.write_symtab_section_header(self.names.locals as u32 + 1);
        w.write_strtab_section_header();
        w.write_shstrtab_section_header();
    }
}
