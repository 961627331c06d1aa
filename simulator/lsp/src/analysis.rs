//! The errors of a text, and its instructions with their effects if it has none.

use crate::document::DocumentKind;
use crate::ranges;
use crate::scan::Form;
use crate::settings::Settings;
use std::collections::HashMap;
use std::path::Path;
use wavesim_assembler::object;
use wavesim_files::Files;
use wavesim_inspect::check::{Successors, successors};
use wavesim_isa::arch::Arch;
use wavesim_loader::assembly::AssemblyOptions;
use wavesim_loader::code_object;
use wavesim_machine::exec::effects::{self, Effects, File};
use wavesim_machine::exec::program::Program;
use wavesim_playground::diagnose::{self, Message};
use wavesim_playground::semantics;
use wavesim_text::Options;

/// What is known of a text.
#[derive(Default)]
pub struct Analysis {
    /// Errors and warnings.
    pub messages: Vec<Message>,
    /// The architecture.
    pub arch: Option<Arch>,
    /// The kernels of an assembly file.
    pub kernels: Vec<String>,
    /// The values of the constants of a text kernel.
    pub constants: Vec<(String, String)>,
    /// The instructions, if the text has no errors.
    pub code: Option<Code>,
}

/// The instructions of a kernel.
pub struct Code {
    /// The instructions, with their lines.
    pub program: Program,
    /// The registers and the memory that each instruction accesses.
    pub effects: Vec<Effects>,
    /// The instructions that can follow each one.
    pub successors: Vec<Successors>,
    /// The instructions at which other code may continue: the first one, those that none precedes, and all labels if
    /// there are indirect jumps.
    pub entries: Vec<usize>,
    /// Whether the number of some register of a file depends on the wave's state: SGPRs, VGPRs.
    pub relative: [bool; 2],
}

impl Code {
    /// Analyses a program with its labels, which are byte offsets.
    pub fn new(program: Program, labels: impl Iterator<Item = u64>) -> Code {
        let effects = effects::table(&program, program.wave_size);
        let count = program.insts.len();
        let successors: Vec<Successors> = (0..count).map(|at| successors(&program, at)).collect();
        let mut preceded = vec![false; count];
        successors.iter().flatten().flatten().for_each(|next| preceded[*next] = true);
        let uses = || effects.iter().flat_map(|e| e.reads.iter().chain(&e.writes));
        let is_relative = |file| uses().any(|used| used.file == file && used.relative.is_some());
        let relative = [is_relative(File::Sgpr), is_relative(File::Vgpr)];
        let entries = (0..count).filter(|at| *at == 0 || !preceded[*at]).collect();
        let mut code = Code { program, effects, successors, entries, relative };
        if (0..count).any(|at| ranges::jumps_anywhere(&code, at)) {
            let labels: Vec<usize> = labels.filter_map(|pc| code.program.inst_at(pc)).collect();
            code.entries.extend(labels);
        }
        code
    }

    /// Returns the instructions of a line, which is counted from 1.
    pub fn of_line(&self, line: u32) -> impl Iterator<Item = usize> {
        self.program.lines.iter().enumerate().filter(move |(_, own)| **own == line).map(|(at, _)| at)
    }
}

/// Returns the architecture of the settings, or that of a processor.
pub fn arch(settings: &Settings) -> Option<Arch> {
    let name = settings.arch.as_deref()?;
    Arch::from_name(name).or_else(|| Arch::from_mcpu(name))
}

/// Returns the files that a kernel may name: those in its folder and below.
pub fn files(path: &Path) -> Files {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    folder.and_then(|folder| Files::below(folder).ok()).unwrap_or_else(Files::none)
}

/// Returns the options for reading a text kernel. What the file says takes precedence over the settings.
pub fn text_options(path: &Path, text: &str, settings: &Settings) -> Options {
    let names = |key: &str| {
        text.lines()
            .any(|l| l.trim_start().strip_prefix(key).is_some_and(|l| l.trim_start().starts_with('=')))
    };
    Options {
        arch: arch(settings).filter(|_| !names("arch")),
        wave: settings.wave.filter(|wave| [32, 64].contains(wave) && !names("wave")),
        folder: path.parent().map(Path::to_path_buf).unwrap_or_default(),
        files: files(path),
        global_bytes: GLOBAL_BYTES,
        ..Options::default()
    }
}

/// Size of global memory in bytes: text kernels have as much in `wavesim run`.
const GLOBAL_BYTES: u64 = 32 << 20;

/// Analyses a text.
pub fn analyse(kind: DocumentKind, path: &Path, text: &str, settings: &Settings) -> Analysis {
    match kind {
        DocumentKind::Pseudocode => {
            Analysis { messages: semantics::definitions(text).messages, ..Analysis::default() }
        }
        DocumentKind::Described(arch) => described(arch, text),
        DocumentKind::Kernel(Form::Text) => text_kernel(path, text, settings),
        DocumentKind::Kernel(Form::Assembly) => assembly(path, text, settings),
    }
}

fn described(arch: Arch, text: &str) -> Analysis {
    let errors = arch.machine().map(|machine| wavesim_assembler::generic::read(text, arch, machine).1);
    let messages = diagnose::assembly_errors(text, &errors.unwrap_or_default());
    Analysis { messages, arch: Some(arch), ..Analysis::default() }
}

fn text_kernel(path: &Path, text: &str, settings: &Settings) -> Analysis {
    let options = text_options(path, text, settings);
    match diagnose::text_kernel(&path.display().to_string(), text, &options) {
        Ok(kernel) => {
            let constants = kernel.header.constants.iter();
            let constants = constants.map(|(name, value)| (name.to_string(), value.to_string())).collect();
            let (arch, wave) = (kernel.arch, kernel.wave);
            let program = Program::new(arch, kernel.instructions).ok();
            let program = program.map(|p| p.for_wave_size(wave).with_syntax(wavesim_asm::print::syntax));
            let code = program.map(|p| Code::new(p, kernel.labels.iter().map(|label| label.1)));
            Analysis { arch: Some(arch), constants, code, ..Analysis::default() }
        }
        Err(messages) => {
            // Names of instructions are looked up in the architecture of the header.
            let named = text
                .lines()
                .find_map(|l| l.trim_start().strip_prefix("arch")?.trim_start().strip_prefix('='));
            let named = named.and_then(|value| Arch::from_name(value.split([';', '#']).next()?.trim()));
            Analysis { messages, arch: options.arch.or(named), ..Analysis::default() }
        }
    }
}

/// Returns whether a file is for AMD GPUs: other assembly has the same extension.
fn is_for_gpu(text: &str) -> bool {
    text.contains(".amdgcn_target") || text.contains(".amdhsa_")
}

fn assembly(path: &Path, text: &str, settings: &Settings) -> Analysis {
    let own = is_for_gpu(text);
    if !own && settings.arch.is_none() {
        return Analysis::default();
    }
    let folder = path.parent().map(Path::to_path_buf);
    let reading = AssemblyOptions {
        arch: arch(settings).filter(|_| !text.contains(".amdgcn_target")),
        wave: None,
        defines: Vec::new(),
        folders: folder.into_iter().collect(),
        files: files(path),
    };
    let (mut program, options, mut errors) = reading.read(&path.display().to_string(), text);
    let kernels = program.kernels().map(str::to_string).collect();
    if errors.is_empty()
        && let Err(more) = object::write(&mut program, &options)
    {
        errors = more;
    }
    let messages = diagnose::assembly_errors(text, &errors);
    let code = messages.is_empty().then(|| code(&program)).flatten();
    Analysis { messages, arch: Some(options.arch), kernels, code, ..Analysis::default() }
}

/// Returns the instructions of a linked file's code.
fn code(file: &wavesim_assembler::program::Program) -> Option<Code> {
    let section = file.sections.iter().position(|s| s.name == code_object::TEXT)?;
    let mut program = Program::from_bytes(file.arch, &file.sections[section].bytes).ok()?;
    program = program.for_wave_size(file.wave()).with_syntax(wavesim_asm::print::syntax);
    let listed = file.listing.iter().filter(|l| l.section == section);
    let lines: HashMap<u64, u32> = listed.map(|l| (l.offset, l.line as u32)).collect();
    for (pc, line) in program.pcs.iter().zip(&mut program.lines) {
        *line = lines.get(pc).copied().unwrap_or(0);
    }
    let labels = file.labels().filter(|label| label.1 == section).map(|label| label.2);
    Some(Code::new(program, labels))
}
