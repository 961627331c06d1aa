//! Assembly files as input: read for the machine that was asked for or that they name, and made into code objects whose instructions
//! know their lines.

use super::code_object;
use super::prepared::{Prepared, Source};
use crate::arch::Arch;
use crate::asm::program::{self, File, LineError, Program};
use crate::asm::{Options, object};
use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};

/// Files larger than this are not included.
const MAX_FILE: u64 = 64 << 20;

/// How to read a file.
#[derive(Debug, Clone, Default)]
pub struct Reading {
    /// Instead of the one that `.amdgcn_target` names; RDNA 3 if neither says.
    pub arch: Option<Arch>,
    /// Instead of the one that kernel descriptors say.
    pub wave: Option<u32>,
    pub defines: Vec<(String, i64)>,
    /// Where files to include are looked for: the first that has it.
    pub folders: Vec<PathBuf>,
}

impl Reading {
    /// Reads a file; the options are those that it was assembled for.
    pub fn read(&self, name: &str, text: &str) -> (Program, Options, Vec<LineError>) {
        let open = |name: &str| open(name, &self.folders);
        let any_target = self.arch.is_none();
        let file = File { name, text, defines: &self.defines, open: &open, any_target };
        let once = |wave: u32| {
            let options = Options::new(self.arch.unwrap_or(Arch::Rdna3)).wave(wave);
            let (program, errors) = program::read_file(&file, &options);
            let options = Options { arch: program.arch, ..options };
            (program, options, errors)
        };
        let first = once(self.wave.unwrap_or(32));
        // Descriptors stand behind the code whose wave size they say.
        match first.0.wave() {
            64 if self.wave.is_none() => once(64),
            _ => first,
        }
    }

    /// Assembles a file with kernels.
    pub fn assemble(&self, name: &str, text: &str) -> Result<Assembled, Vec<LineError>> {
        let (mut program, options, mut errors) = self.read(name, text);
        if program.kernels().next().is_none() && errors.is_empty() {
            let message = format!("{name} has no kernel: an .amdhsa_kernel block makes one");
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

fn open(name: &str, folders: &[PathBuf]) -> io::Result<Vec<u8>> {
    let candidates = folders.iter().map(|f| f.join(name)).chain([Path::new(name).to_path_buf()]);
    let path = candidates.into_iter().find(|p| p.is_file());
    let path = path.ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, "there is no such file"))?;
    if std::fs::metadata(&path)?.len() > MAX_FILE {
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, "the file is larger than 64 MiB"));
    }
    std::fs::read(path)
}

/// An assembly file's code object, and where its instructions come from.
pub struct Assembled {
    pub object: Vec<u8>,
    program: Program,
    source: Source,
}

impl Assembled {
    /// Gives the instructions of a program made of this object their lines, and its labels their names.
    pub fn annotate(self, prepared: &mut Prepared) {
        let code = self.program.sections.iter().position(|s| s.name == code_object::TEXT);
        let listed = self.program.listing.iter().filter(|l| Some(l.section) == code);
        let lines: HashMap<u64, u32> = listed.map(|l| (l.offset, l.line as u32)).collect();
        for (pc, line) in prepared.program.pcs.iter().zip(&mut prepared.program.lines) {
            *line = lines.get(pc).copied().unwrap_or(0);
        }
        let labels = self.program.labels().filter(|l| Some(l.1) == code && !l.0.contains('#'));
        prepared.labels = labels.map(|(name, _, offset)| (name.to_string(), offset)).collect();
        prepared.source = Some(self.source);
    }
}
