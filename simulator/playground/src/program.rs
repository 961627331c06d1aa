//! The kernel of a request: its text or code object, its target and its launch.

use crate::lines;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde::Deserialize;
use std::sync::Arc;
use wavesim_assembler::program::LineError;
use wavesim_files::Files;
use wavesim_isa::arch::Arch;
use wavesim_loader::assembly::AssemblyOptions;
use wavesim_loader::code_object::{self, TargetRequest};
use wavesim_loader::prepared::Prepared;
use wavesim_loader::request::{self, ArgumentValue, Request};
use wavesim_loader::text_kernel;
use wavesim_machine::exec::overrides::{OverrideError, Overrides};
use wavesim_machine::memory::Memory;
use wavesim_text::Options;

/// The file name of user-defined semantics in messages.
pub(crate) const SEMANTICS: &str = "changes.pcode";

/// Maximum size of a kernel's text, or of user-defined semantics, in bytes.
pub const MAX_TEXT: usize = 1 << 20;
/// Maximum size of a code object in bytes.
pub const MAX_OBJECT: usize = 16 << 20;
/// Size of global memory in bytes.
pub(crate) const GLOBAL_BYTES: u64 = 64 << 20;
/// Maximum number of arguments of a kernel.
const MAX_ARGS: usize = 256;

/// A kernel and its launch.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Program {
    /// The name of the file, in messages.
    pub name: String,
    /// A text kernel or an assembly file.
    pub text: String,
    /// A code object in base64, instead of a text.
    pub object: Option<String>,
    /// The name of the source file that the code object was compiled from: lines refer to it.
    pub source: Option<String>,
    /// The architecture, instead of the one that the text names.
    pub arch: Option<String>,
    /// The wave size, likewise.
    pub wave: Option<u32>,
    /// Pseudocode that replaces the built-in semantics of the instructions that it names.
    pub semantics: String,
    /// The kernel of an assembly file or code object.
    pub kernel: Option<String>,
    /// The number of workgroups, for assembly files and code objects.
    pub grid: Option<[u32; 3]>,
    /// The number of work-items in a workgroup, likewise.
    pub block: Option<[u32; 3]>,
    /// Arguments, likewise, as `--arg` of the command line takes them.
    pub args: Vec<String>,
}

/// The form of a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProgramKind {
    /// A text kernel.
    Text,
    /// An assembly file.
    Assembly,
    /// A code object.
    Object,
}

impl ProgramKind {
    /// Returns the name used in answers.
    pub fn name(self) -> &'static str {
        match self {
            ProgramKind::Text => "text",
            ProgramKind::Assembly => "assembly",
            ProgramKind::Object => "object",
        }
    }
}

/// Returns the architecture with a name.
pub fn arch(name: &str) -> Result<Arch, String> {
    let known = || Arch::AMD.map(Arch::name).join(", ");
    let arch = Arch::AMD.into_iter().find(|a| a.name() == name);
    arch.ok_or_else(|| format!("there is no architecture `{name}`; there are {}", known()))
}

/// Decodes base64.
pub fn decode(text: &str, most: usize) -> Result<Vec<u8>, String> {
    if text.len() / 4 * 3 > most {
        return Err(format!("the file is larger than {} MB", most >> 20));
    }
    BASE64.decode(text).map_err(|e| format!("not base64: {e}"))
}

/// Encodes bytes as base64.
pub fn encode(bytes: &[u8]) -> String {
    BASE64.encode(bytes)
}

/// Rejects texts that would take too long to parse.
pub fn check_size(text: &str) -> Result<(), String> {
    match text.len() <= MAX_TEXT {
        true => Ok(()),
        false => Err(format!(
            "the text has {:.1} MB: the playground takes at most {} MB",
            text.len() as f64 / (1 << 20) as f64,
            MAX_TEXT >> 20
        )),
    }
}

/// Parses pseudocode to run with.
fn replacements(text: &str) -> Result<Overrides, String> {
    check_size(text)?;
    match Overrides::parse(SEMANTICS.to_string(), text.to_string()) {
        Ok((overrides, _)) => Ok(overrides),
        Err(OverrideError::Wrong(message)) => Err(message),
    }
}

impl Program {
    /// Returns the form of the program; an assembly file is recognised by its kernel descriptors.
    pub fn kind(&self) -> ProgramKind {
        match &self.object {
            Some(_) => ProgramKind::Object,
            None if self.text.contains(".amdhsa_kernel") => ProgramKind::Assembly,
            None => ProgramKind::Text,
        }
    }

    /// Returns the architecture that the request names.
    pub fn arch(&self) -> Result<Option<Arch>, String> {
        self.arch.as_deref().map(arch).transpose()
    }

    /// Returns the options for parsing a text kernel. They permit no files.
    pub fn options(&self) -> Result<Options, String> {
        Ok(Options {
            arch: self.arch()?,
            wave: self.wave()?,
            files: Files::none(),
            global_bytes: GLOBAL_BYTES,
            ..Options::default()
        })
    }

    /// Returns the options for reading an assembly file. They permit no includes.
    pub fn reading(&self) -> Result<AssemblyOptions, String> {
        Ok(AssemblyOptions {
            arch: self.arch()?,
            wave: self.wave()?,
            defines: Vec::new(),
            folders: Vec::new(),
            files: Files::none(),
        })
    }

    fn wave(&self) -> Result<Option<u32>, String> {
        match self.wave {
            None | Some(32 | 64) => Ok(self.wave),
            Some(n) => Err(format!("waves have 32 or 64 lanes, not {n}")),
        }
    }

    /// Returns the size of the program in bytes.
    pub fn len_bytes(&self) -> usize {
        let args: usize = self.args.iter().map(String::len).sum();
        self.text.len() + self.object.as_ref().map_or(0, String::len) + self.semantics.len() + args
    }

    /// Prepares the program to run, with `guard` unused bytes between its arguments.
    pub fn prepare(&self, guard: u64) -> Result<Prepared, String> {
        check_size(&self.text)?;
        let mut prepared = match self.kind() {
            ProgramKind::Text => text_kernel::prepare(&self.name, &self.text, &self.options()?, guard)
                .map_err(|e| e.to_string())?,
            ProgramKind::Assembly => {
                let list =
                    |errors: Vec<LineError>| errors.iter().map(|e| format!("{e}\n")).collect::<String>();
                let assembled = self.reading()?.assemble(&self.name, &self.text).map_err(list)?;
                let mut prepared = self.object(&assembled.object, guard)?;
                assembled.annotate(&mut prepared);
                prepared
            }
            ProgramKind::Object => {
                let bytes = decode(self.object.as_deref().unwrap_or_default(), MAX_OBJECT)?;
                let mut prepared = self.object(&bytes, guard)?;
                if let Some(file) = &self.source {
                    lines::keep(&mut prepared, file);
                }
                prepared
            }
        };
        if !self.semantics.trim().is_empty() {
            prepared.program.replace_semantics(Arc::new(replacements(&self.semantics)?));
        }
        prepared.dispatch(0).check().map_err(|e| e.to_string())?;
        Ok(prepared)
    }

    fn object(&self, file: &[u8], guard: u64) -> Result<Prepared, String> {
        let text = |e: &dyn std::fmt::Display| e.to_string();
        let target_request = TargetRequest { processor: None, arch: self.arch()? };
        let bytes = &code_object::open(file, &target_request).map_err(|e| text(&e))?;
        let names = code_object::kernels(bytes).map_err(|e| text(&e))?;
        let name = match (&self.kernel, &names[..]) {
            (Some(name), _) => name,
            (None, [first, ..]) => first,
            (None, []) => return Err("this code object has no kernel".to_string()),
        };
        let kernel = code_object::load(bytes, name).map_err(|e| text(&e))?;
        if target_request.arch.is_some_and(|arch| arch != kernel.arch) {
            return Err(format!("the code is for {}, not for {target_request}", kernel.arch.name()));
        }
        if self.args.len() > MAX_ARGS {
            return Err(format!("{} arguments: the playground takes at most {MAX_ARGS}", self.args.len()));
        }
        let mut options = Options { global_bytes: GLOBAL_BYTES, files: Files::none(), ..Options::default() };
        let mut args = Vec::new();
        for (index, spec) in self.args.iter().enumerate() {
            let (name, given) = request::argument(spec, index, &options).map_err(|e| format!("{e:#}"))?;
            // Arguments are filled before they are allocated; all share the limit of global memory.
            let bytes = match &given {
                ArgumentValue::Buffer(array) | ArgumentValue::Image(_, array) => array.bytes.len() as u64,
                _ => 0,
            };
            options.global_bytes = options.global_bytes.saturating_sub(bytes);
            args.push((name, given));
        }
        for (index, (entry, parameter)) in args.iter_mut().zip(kernel.explicit_args()).enumerate() {
            // Arguments without a name take the name of the parameter.
            if let Some(name) = parameter.name.as_ref().filter(|_| entry.0 == format!("arg{index}")) {
                entry.0 = name.clone();
            }
        }
        let outputs = args.iter().map(|a| a.0.clone()).filter(|name| name.starts_with("out_")).collect();
        let block = self.block.or(kernel.block).unwrap_or([32, 1, 1]);
        let request = Request { grid: self.grid.unwrap_or([1; 3]), block, dynamic_lds: 0, args, outputs };
        let memory = Memory::with_guard(GLOBAL_BYTES, guard).map_err(|e| text(&e))?;
        request.prepare(&kernel, memory).map_err(|e| text(&e))
    }
}
