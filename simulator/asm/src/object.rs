//! Writes a linked code object for amdhsa, as LLVM's assembler and linker produce it (LLVM AMDGPUUsage, *ELF
//! Code Object*).
//!
//! Addresses equal file offsets, and sections with different permissions are on separate pages. Only global
//! symbols are dynamic.

use super::Options;
use super::link::{Relocation, Target};
use super::metadata;
use super::program::{LineError, Memory, Program, Section};
use object::elf;
use object::write::StringId;
use object::write::elf::{FileHeader, ProgramHeader, Rel, SectionHeader, Sym, Writer};
use std::collections::BTreeSet;
use wavesim_isa::arch::Processor;

/// ELFOSABI_AMDGPU_HSA.
pub(super) const OS_ABI: u8 = 64;
const PAGE: usize = 0x1000;
const NOTE_NAME: &[u8] = b"AMDGPU\0\0";
/// NT_AMDGPU_METADATA.
const NOTE_TYPE: u32 = 32;

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

/// Assigns section addresses, links the program and writes the file.
pub fn write(program: &mut Program, options: &Options) -> Result<Vec<u8>, Vec<LineError>> {
    let note = note(program.metadata.as_deref())?;
    program.prepare_link();
    let planned = program.planned_relocations();
    // Whether a read-only section contains addresses.
    let text_relocations = planned.iter().any(|r| program.sections[r.section].memory != Memory::Writable);
    // Relocations relative to a section refer to a local dynamic symbol of that section.
    let bases: BTreeSet<usize> = planned.iter().filter_map(base_section).collect();
    let named = program.processor.as_deref().and_then(Processor::from_name);
    let processor = named.or_else(|| Processor::of_arch(options.arch));
    // Local labels are not exported.
    let labels: Vec<(String, usize)> = program
        .labels()
        .filter(|l| !l.0.starts_with(".L") && !l.0.contains('#'))
        .map(|l| (l.0.to_string(), l.1))
        .collect();
    let global =
        |program: &Program, name: &str| program.info.get(name).is_some_and(|i| i.global && !i.hidden);
    let mut symbols: Vec<(String, usize)> = labels.clone();
    // ELF requires local symbols to precede global ones.
    symbols.sort_by_key(|s| global(program, &s.0));
    let locals = symbols.iter().filter(|s| !global(program, &s.0)).count();
    let dynamic: Vec<(String, usize)> = symbols[locals..].to_vec();

    let section_names: Vec<String> = program.sections.iter().map(|s| s.name.clone()).collect();
    let symbol_names: Vec<String> = symbols.iter().map(|s| s.0.clone()).collect();
    let mut bytes = Vec::new();
    let mut w = Writer::new(object::Endianness::Little, true, &mut bytes);

    // Reserve the file layout.
    w.reserve_null_section_index();
    let note_name = w.add_section_name(b".note");
    w.reserve_section_index();
    let dynsym_index = w.reserve_dynsym_section_index();
    w.reserve_hash_section_index();
    w.reserve_dynstr_section_index();
    let rela_name = (!planned.is_empty()).then(|| {
        w.reserve_section_index();
        w.add_section_name(b".rela.dyn")
    });
    let mut indices = vec![None; program.sections.len()];
    // Empty sections are omitted unless they are loaded.
    let mut order: Vec<usize> = (0..program.sections.len())
        .filter(|&at| program.sections[at].memory != Memory::None || !program.sections[at].bytes.is_empty())
        .collect();
    order.sort_by_key(|&at| segment_index(&program.sections[at]));
    let mut name_ids: Vec<Option<StringId>> = vec![None; program.sections.len()];
    for &at in &order {
        name_ids[at] = Some(w.add_section_name(section_names[at].as_bytes()));
        indices[at] = Some(w.reserve_section_index());
    }
    w.reserve_dynamic_section_index();
    w.reserve_symtab_section_index();
    w.reserve_strtab_section_index();
    w.reserve_shstrtab_section_index();

    let dynamic_ids: Vec<StringId> =
        symbol_names[locals..].iter().map(|n| w.add_dynamic_string(n.as_bytes())).collect();
    let symbol_ids: Vec<StringId> = symbol_names.iter().map(|n| w.add_string(n.as_bytes())).collect();
    // The string tables exist even if there are no symbols.
    w.require_dynstr();
    w.require_strtab();
    w.reserve_null_dynamic_symbol_index();
    for _ in 0..bases.len() + dynamic.len() {
        w.reserve_dynamic_symbol_index();
    }
    w.reserve_null_symbol_index();
    for s in &symbols {
        w.reserve_symbol_index(indices[s.1]);
    }

    let segments = 6;
    w.reserve_file_header();
    w.reserve_program_headers(segments);
    let note_at = w.reserve(note.len(), 4);
    let dynsym_at = w.reserve_dynsym();
    let first_global = bases.len() + 1;
    let chains = (first_global + dynamic.len()) as u32;
    let hash_at = w.reserve_hash(1, chains);
    let dynstr_at = w.reserve_dynstr();
    let rela_at = w.reserve_relocations(planned.len(), true);
    let mut ranges = [(0usize, 0usize); 3];
    for (wanted, range) in ranges.iter_mut().enumerate() {
        if wanted > 0 {
            let page = w.reserved_len().next_multiple_of(PAGE);
            w.reserve_until(page);
            range.0 = page;
        }
        for &at in &order {
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
    let dynamic_count = 6 + if planned.is_empty() { 0 } else { 4 } + if text_relocations { 2 } else { 0 };
    let dynamic_at = w.reserve_dynamic(dynamic_count);
    ranges[2].1 = w.reserved_len();
    let mut unloaded = vec![0; program.sections.len()];
    for &at in order.iter().filter(|&&at| program.sections[at].memory == Memory::None) {
        unloaded[at] = w.reserve(program.sections[at].bytes.len(), program.sections[at].align as usize);
    }
    w.reserve_symtab();
    w.reserve_strtab();
    w.reserve_shstrtab();
    w.reserve_section_headers();

    let errors = program.link(options);
    if !errors.is_empty() {
        return Err(errors);
    }
    let symbol_of = |target: &Target| match target {
        Target::Image => 0,
        Target::Section(section) => 1 + bases.iter().take_while(|b| *b != section).count(),
        Target::Symbol(name) => first_global + dynamic.iter().take_while(|d| d.0 != *name).count(),
    };
    let mut relocations: Vec<Rel> = program
        .relocations
        .iter()
        .map(|r| Rel {
            r_offset: program.sections[r.section].address + r.offset,
            r_sym: symbol_of(&r.target) as u32,
            r_type: r.kind,
            r_addend: r.addend,
        })
        .collect();
    if relocations.len() != planned.len() {
        return Err(vec![LineError::whole(
            "the values of symbols depend on section addresses in an unsupported way",
        )]);
    }
    // Relative relocations come first, as DT_RELACOUNT requires.
    relocations.sort_by_key(|r| (r.r_sym, r.r_offset));

    // Write the contents in the order of the layout.
    let header = FileHeader {
        os_abi: OS_ABI,
        abi_version: (program.code_object_version - 2) as u8,
        e_type: elf::ET_DYN,
        e_machine: elf::EM_AMDGPU,
        e_entry: 0,
        e_flags: processor.map_or(0, |p| p.mach | program.features),
    };
    let failed = |e: object::write::Error| vec![LineError::whole(e.to_string())];
    w.write_file_header(&header).map_err(failed)?;
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
    for (at, range) in ranges.iter().enumerate() {
        segment(elf::PT_LOAD, FLAGS[at], range.0, range.1, PAGE as u64);
    }
    segment(elf::PT_DYNAMIC, FLAGS[2], dynamic_at, ranges[2].1, 8);
    segment(elf::PT_NOTE, elf::PF_R, note_at, note_at + note.len(), 4);
    segment(elf::PT_GNU_STACK, FLAGS[2], 0, 0, 0);

    w.pad_until(note_at);
    w.write(&note);
    let sym = |program: &Program, name: &str, at: usize, id: StringId| {
        let exported = program.info.get(name).is_some_and(|i| i.global && !i.hidden);
        let (st_info, st_other) = flags_of(program, name, exported);
        Sym {
            name: Some(id),
            section: indices[at],
            st_info,
            st_other,
            st_shndx: 0,
            st_value: program.address(name).unwrap_or(0),
            st_size: program.size_of(name),
        }
    };
    w.write_null_dynamic_symbol();
    for &at in &bases {
        w.write_dynamic_symbol(&Sym {
            name: None,
            section: indices[at],
            st_info: elf::STB_LOCAL << 4 | elf::STT_SECTION,
            st_other: elf::STV_DEFAULT,
            st_shndx: 0,
            st_value: program.sections[at].address,
            st_size: 0,
        });
    }
    for (s, id) in dynamic.iter().zip(&dynamic_ids) {
        w.write_dynamic_symbol(&sym(program, &s.0, s.1, *id));
    }
    w.write_hash(1, chains, |n| {
        (n as usize).checked_sub(first_global).and_then(|n| dynamic.get(n)).map(|s| hash(&s.0))
    });
    w.write_dynstr();
    if !relocations.is_empty() {
        w.pad_until(rela_at);
        relocations.iter().for_each(|r| w.write_relocation(true, r));
    }
    let loaded = |at: &&usize| program.sections[**at].memory != Memory::None;
    for &at in order.iter().filter(loaded) {
        let section = &program.sections[at];
        w.pad_until(section.address as usize);
        w.write(&section.bytes);
    }
    w.pad_until(dynamic_at);
    w.write_align_dynamic();
    let dynstr_len = w.dynstr_len() as u64;
    w.write_dynamic(elf::DT_HASH, hash_at as u64);
    w.write_dynamic(elf::DT_SYMTAB, dynsym_at as u64);
    w.write_dynamic(elf::DT_SYMENT, 24);
    w.write_dynamic(elf::DT_STRTAB, dynstr_at as u64);
    w.write_dynamic(elf::DT_STRSZ, dynstr_len);
    if !relocations.is_empty() {
        w.write_dynamic(elf::DT_RELA, rela_at as u64);
        w.write_dynamic(elf::DT_RELASZ, (relocations.len() * RELA) as u64);
        w.write_dynamic(elf::DT_RELAENT, RELA as u64);
        let relative = relocations.iter().filter(|r| r.r_sym == 0).count();
        w.write_dynamic(elf::DT_RELACOUNT, relative as u64);
    }
    if text_relocations {
        w.write_dynamic(elf::DT_TEXTREL, 0);
        w.write_dynamic(elf::DT_FLAGS, elf::DF_TEXTREL as u64);
    }
    w.write_dynamic(elf::DT_NULL, 0);
    for &at in order.iter().filter(|at| !loaded(at)) {
        w.pad_until(unloaded[at]);
        w.write(&program.sections[at].bytes);
    }
    w.write_null_symbol();
    for (s, id) in symbols.iter().zip(&symbol_ids) {
        w.write_symbol(&sym(program, &s.0, s.1, *id));
    }
    w.write_strtab();
    w.write_shstrtab();

    w.write_null_section_header();
    let entry =
        |name: Option<StringId>, sh_type: u32, flags: u32, at: u64, size: usize, align: u64| SectionHeader {
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
    w.write_section_header(&entry(
        Some(note_name),
        elf::SHT_NOTE,
        elf::SHF_ALLOC,
        note_at as u64,
        note.len(),
        4,
    ));
    w.write_dynsym_section_header(dynsym_at as u64, first_global as u32);
    w.write_hash_section_header(hash_at as u64);
    w.write_dynstr_section_header(dynstr_at as u64);
    if rela_name.is_some() {
        let size = relocations.len() * RELA;
        w.write_section_header(&SectionHeader {
            sh_link: dynsym_index.0,
            sh_entsize: RELA as u64,
            ..entry(rela_name, elf::SHT_RELA, elf::SHF_ALLOC, rela_at as u64, size, 8)
        });
    }
    for &at in &order {
        let section = &program.sections[at];
        let alloc = elf::SHF_ALLOC;
        let flags = [alloc, alloc | elf::SHF_EXECINSTR, alloc | elf::SHF_WRITE, 0][segment_index(section)];
        let header = entry(
            name_ids[at],
            elf::SHT_PROGBITS,
            flags,
            section.address,
            section.bytes.len(),
            section.align.max(1),
        );
        let header = match section.memory {
            Memory::None => SectionHeader { sh_addr: 0, sh_offset: unloaded[at] as u64, ..header },
            _ => header,
        };
        w.write_section_header(&header);
    }
    w.write_dynamic_section_header(dynamic_at as u64);
    w.write_symtab_section_header(locals as u32 + 1);
    w.write_strtab_section_header();
    w.write_shstrtab_section_header();
    Ok(bytes)
}
