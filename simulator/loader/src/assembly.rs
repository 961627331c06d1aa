//! Assembly files as input: assembles a file for the requested target or the one that it names, and attaches
//! source lines to the instructions.

use super::code_object;
use super::prepared::{Prepared, Source};
use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::io;
use std::path::{Path, PathBuf};
use wavesim_asm::Options;
use wavesim_asm::error::{AsmError, Span};
use wavesim_assembler::object;
use wavesim_assembler::program::{File, LineError, Program};
use wavesim_engine::sched::dispatch::Registers;
use wavesim_files::{FileError, Files};
use wavesim_isa::arch::Arch;

/// Maximum size of an included file.
const MAX_FILE: u64 = 64 << 20;

/// Options for reading a file.
#[derive(Debug, Clone, Default)]
pub struct AssemblyOptions {
    /// Overrides the architecture of `.amdgcn_target`; RDNA 3 if neither is given.
    pub arch: Option<Arch>,
    /// Overrides the wave size of the kernel descriptors.
    pub wave: Option<u32>,
    /// Predefined symbols, as with `--defsym`.
    pub defines: Vec<(String, i64)>,
    /// Folders that are searched for included files, in this order.
    pub folders: Vec<PathBuf>,
    /// The files that may be included.
    pub files: Files,
}

impl AssemblyOptions {
    /// Reads a file. The returned options are those that it was assembled with.
    pub fn read(&self, name: &str, text: &str) -> (Program, Options, Vec<LineError>) {
        // Definitions whose names occur in no text.
        let unused: RefCell<Vec<&str>> = RefCell::new(self.defines.iter().map(|d| d.0.as_str()).collect());
        let note_names = |text: &[u8]| {
            if !unused.borrow().is_empty() {
                let words = text.split(|b| !b.is_ascii_alphanumeric() && !b"_.$@".contains(b));
                let words: HashSet<&[u8]> = words.collect();
                unused.borrow_mut().retain(|name| !words.contains(name.as_bytes()));
            }
        };
        note_names(text.as_bytes());
        // Files outside of the input's folders that were opened. They may be any file, so they must not be
        // quoted.
        let foreign: RefCell<HashSet<String>> = RefCell::default();
        let open = |name: &str| {
            let (bytes, path) = self.open(name).map_err(|e| io::Error::other(e.reason()))?;
            note_names(&bytes);
            if !self.is_own(&path) {
                foreign.borrow_mut().insert(name.to_string());
            }
            Ok(bytes)
        };
        let any_target = self.arch.is_none();
        let file = File { name, text, defines: &self.defines, open: &open, any_target };
        let once = |wave: u32| {
            let options = Options::new(self.arch.unwrap_or(Arch::DEFAULT)).wave(wave);
            let (program, errors) = wavesim_assembler::read_file(&file, &options);
            let options = Options { arch: program.arch, ..options };
            (program, options, errors)
        };
        let first = once(self.wave.unwrap_or(self.arch.unwrap_or(Arch::DEFAULT).wave_sizes()[0]));
        // The descriptors specify the wave size but follow the code, so wave64 files are read twice.
        let mut read = match first.0.wave() {
            64 if self.wave.is_none() => once(64),
            _ => first,
        };
        let mut unquoted = HashSet::new();
        read.2.retain_mut(|e| {
            if !foreign.borrow().contains(&e.file) {
                return true;
            }
            let message = "this is not assembly (files outside of the input's folders are not quoted)";
            e.error = AsmError::new(Span::default(), message);
            (e.column, e.text) = (1, String::new());
            unquoted.insert(e.file.clone())
        });
        for define in unused.borrow().iter() {
            let message = format!("-D {define}: no symbol is called `{define}`");
            read.2.push(LineError { file: name.to_string(), ..LineError::whole(message) });
        }
        read
    }

    /// Opens the first file found with this name.
    fn open(&self, name: &str) -> Result<(Vec<u8>, PathBuf), FileError> {
        let candidates = self.folders.iter().map(|f| f.join(name)).chain([Path::new(name).to_path_buf()]);
        let mut refused = None;
        for path in candidates {
            match self.files.read(&path, MAX_FILE) {
                Err(FileError::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => {}
                // A later folder may contain a permitted file of this name.
                Err(e @ (FileError::Outside { .. } | FileError::Forbidden(_) | FileError::Irregular(_))) => {
                    refused = Some(e)
                }
                result => return result.map(|bytes| (bytes, path)),
            }
        }
        let missing = || io::Error::new(io::ErrorKind::NotFound, "there is no such file");
        Err(refused.unwrap_or_else(|| FileError::Io { path: name.to_string(), source: missing() }))
    }

    /// Returns whether a file is in one of the folders or their subfolders, with links resolved.
    fn is_own(&self, path: &Path) -> bool {
        self.folders.iter().any(|folder| wavesim_files::is_below(path, folder))
    }

    /// Assembles a file that contains kernels.
    pub fn assemble(&self, name: &str, text: &str) -> Result<Assembled, Vec<LineError>> {
        let (mut program, options, mut errors) = self.read(name, text);
        if program.kernels().next().is_none() && errors.is_empty() {
            let message = format!("{name} has no kernel: an .amdhsa_kernel block defines one");
            return Err(vec![LineError { file: name.to_string(), ..LineError::whole(message) }]);
        }
        let object = if errors.is_empty() { object::write(&mut program, &options) } else { Ok(Vec::new()) };
        match object {
            Ok(object) if errors.is_empty() => {
                let source = Source { name: name.to_string(), text: text.to_string() };
                return Ok(Assembled { object, program, source });
            }
            Ok(_) => {}
            Err(more) => errors.extend(more),
        }
        errors.sort_by_key(|e| e.line);
        Err(errors)
    }
}

/// The code object of an assembly file, with source information.
pub struct Assembled {
    /// A linked ELF code object, as read by [`super::code_object::load`].
    pub object: Vec<u8>,
    program: Program,
    source: Source,
}

impl Assembled {
    /// Sets the lines and labels of a program loaded from this code object.
    pub fn annotate(self, prepared: &mut Prepared) {
        let code = self.program.sections.iter().position(|s| s.name == code_object::TEXT);
        let listed = self.program.listing.iter().filter(|l| Some(l.section) == code);
        let lines: HashMap<u64, u32> = listed.map(|l| (l.offset, l.line as u32)).collect();
        for (pc, line) in prepared.program.pcs.iter().zip(&mut prepared.program.lines) {
            *line = lines.get(pc).copied().unwrap_or(0);
        }
        // The descriptor rounds register counts, or omits them.
        let entry = prepared.shape.entry_pc;
        let starts_here = |name: &&str| self.program.labels().any(|l| l == (*name, code.unwrap_or(0), entry));
        if let Some(kernel) = self.program.kernels().find(starts_here) {
            let limit = Registers::ALL;
            let registers = &mut prepared.shape.registers;
            let [vgprs, sgprs] = self.program.registers(kernel);
            if let Some(vgprs) = vgprs {
                let before = registers.vgprs as u32;
                registers.vgprs = vgprs.clamp(1, limit.vgprs as u32) as u16;
                // The count includes the accumulation VGPRs, which begin at a multiple of four in the descriptor.
                if prepared.program.arch.facts().descriptor.accum_offset {
                    let own = before.next_multiple_of(4).min(limit.vgprs as u32);
                    registers.vgprs = registers.vgprs.min(own as u16);
                    registers.accumulation = vgprs.saturating_sub(own).min(limit.accumulation as u32) as u16;
                }
            }
            if let Some(sgprs) = sgprs {
                registers.sgprs = sgprs.min(limit.sgprs as u32) as u16;
            }
        }
        let labels = self.program.labels().filter(|l| Some(l.1) == code && !l.0.contains('#'));
        prepared.labels = labels.map(|(name, _, offset)| (name.to_string(), offset)).collect();
        prepared.source = Some(self.source);
    }
}
