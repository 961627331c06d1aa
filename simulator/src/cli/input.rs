//! Opens kernels, for every command that takes one.
//!
//! Content and name determine the kind of a file: a launch description (`.json`), a code object (ELF or a
//! bundle), an assembly file (`.s`), a source file (`.cl`, `.hip`), an assembly program of an architecture with
//! its own assembler (`.as`), or else a text kernel.

use super::Diagnostics;
use super::execute::replace_semantics;
use super::schedule::WaveOrder;
use super::target::{Target, WaveSize, parse_mcpu};
use anyhow::{Context as _, bail};
use std::path::{Path, PathBuf};
use wavesim_asm::error::suggest;
use wavesim_assembler::program::LineError;
use wavesim_clang::options::Language;
use wavesim_engine::sched::dispatch::{Dispatch, GroupOrder, Schedule};
use wavesim_engine::sched::order::Choice;
use wavesim_files::{self as files, FileError, Files};
use wavesim_isa::arch::Arch;
use wavesim_isa::arch::machine::Machine;
use wavesim_loader::abi;
use wavesim_loader::assembly::AssemblyOptions;
use wavesim_loader::code_object::{self, LoadError};
use wavesim_loader::launch::{self, LoadedLaunch, TargetSelection};
use wavesim_loader::prepared::{Prepared, Source};
use wavesim_loader::request::{self, ArgumentValue, Request};
use wavesim_loader::text_kernel;
use wavesim_loader::{generic, kernel_name};
use wavesim_machine::memory::Memory;
use wavesim_services::launch::{Services, Wanted};
use wavesim_text::Options;
use wavesim_text::constant::Constants;

/// The input of `check`, `debug` and `tui`
#[derive(Debug, Clone, clap::Args)]
pub struct InputArgs {
    /// A text kernel, an assembly file (`.s`), a source file (`.cl`, `.hip`), a code object, or a launch description
    /// (`.json`)
    pub file: PathBuf,
    /// Assembly programs: initial memory (`address: value` lines, or little-endian words in a `.bin` file)
    pub data: Option<PathBuf>,
    #[command(flatten)]
    pub kernel: KernelArgs,
    /// Order of the waves of a workgroup: round-robin, reverse, random:SEED, or fine:SEED (turns of a few instructions);
    /// or a file (`.sched`) in which `wavesim explore` has recorded the order of all waves
    #[arg(long, value_name = "ORDER", default_value = "round-robin", value_parser = WaveOrder::parse)]
    pub schedule: WaveOrder,
    /// Order of workgroups and waves: reverse, random:SEED or fine:SEED (workgroups are suspended at random), or of one of them: groups:ORDER, waves:ORDER, where ORDER
    /// is also a list of numbers (repeatable)
    #[arg(long, value_name = "ORDER")]
    pub order: Vec<Choice>,
    /// Stop with a fault after this many wave-instructions
    #[arg(long, value_name = "N", default_value_t = 10_000_000_000)]
    pub max_instructions: u64,
    /// Pseudocode whose instructions replace the built-in ones (slow: they are interpreted)
    #[arg(long, value_name = "FILE.pcode")]
    pub semantics: Option<PathBuf>,
}

impl InputArgs {
    /// Loads the kernel, with `guard` unused bytes between its arguments.
    pub fn prepare(&self, guard: u64) -> anyhow::Result<Prepared> {
        self.replaced(self.kernel.prepare(&self.file, self.data.as_deref(), guard)?)
    }

    /// As [`InputArgs::prepare`], with the services that the kernel uses.
    pub fn prepare_with_services(&self, guard: u64) -> anyhow::Result<(Prepared, Services)> {
        let (prepared, services) =
            self.kernel.prepare_with_services(&self.file, self.data.as_deref(), guard)?;
        Ok((self.replaced(prepared)?, services))
    }

    fn replaced(&self, mut prepared: Prepared) -> anyhow::Result<Prepared> {
        if let Some(path) = &self.semantics {
            replace_semantics(path, &mut prepared)?;
        }
        Ok(prepared)
    }

    /// Returns the inputs of a command that takes several files, of which `more` are those after the second. An assembly
    /// program is the only input, as the second file is its data.
    pub fn inputs(&self, more: &[PathBuf]) -> anyhow::Result<Vec<InputArgs>> {
        let files = files_of(&self.kernel, &self.file, self.data.as_deref(), more)?;
        Ok(files.into_iter().map(|(file, data)| InputArgs { file, data, ..self.clone() }).collect())
    }

    /// Returns the orders of waves and of workgroups.
    pub fn orders(&self) -> (Schedule, GroupOrder) {
        let mut orders = (self.schedule.schedule(), GroupOrder::default());
        for choice in &self.order {
            orders.0 = choice.waves.unwrap_or(orders.0);
            orders.1 = choice.groups.clone().unwrap_or(orders.1);
        }
        orders
    }

    /// Returns the launch. A launch that no device accepts is an error.
    pub fn dispatch<'p>(&self, prepared: &'p Prepared) -> anyhow::Result<Dispatch<'p>> {
        let (schedule, order) = self.orders();
        let mut dispatch = Dispatch { schedule, order, ..prepared.dispatch(self.max_instructions) };
        if let Some(recorded) = self.schedule.recorded(prepared)? {
            dispatch.follow(recorded);
        }
        dispatch.check()?;
        Ok(dispatch)
    }
}

/// Returns the files of a command with several, each with its data. An assembly program is the only one.
pub fn files_of(
    kernel: &KernelArgs,
    first: &Path,
    second: Option<&Path>,
    more: &[PathBuf],
) -> anyhow::Result<Vec<(PathBuf, Option<PathBuf>)>> {
    let extension = first.extension().and_then(|e| e.to_str());
    let arch = kernel.machine.arch().or_else(|| Arch::from_extension(extension?));
    if arch.is_some_and(|arch| arch.machine().is_some()) {
        return match more {
            [] => Ok(vec![(first.to_path_buf(), second.map(Path::to_path_buf))]),
            _ => bail!("{}: an assembly program takes one data file", first.display()),
        };
    }
    let files =
        std::iter::once(first.to_path_buf()).chain(second.map(Path::to_path_buf)).chain(more.iter().cloned());
    Ok(files.map(|file| (file, None)).collect())
}

/// Options of a kernel, whatever the kind of its file
#[derive(Debug, Clone, clap::Args)]
pub struct KernelArgs {
    #[command(flatten)]
    pub machine: Target,
    #[command(flatten)]
    pub wave: WaveSize,
    /// Define a constant that the kernel uses
    #[arg(short = 'D', value_name = "NAME=VALUE")]
    pub define: Vec<String>,
    /// Seed of `rand()`
    #[arg(long, default_value_t = 0)]
    pub seed: u64,
    /// Megabytes of global memory [default: 32 for text kernels, 1024 for others]
    #[arg(long, value_name = "MB", value_parser = clap::value_parser!(u64).range(1..=1 << 20))]
    pub global_memsize: Option<u64>,
    /// Select the code of a launch description (gfx1201, gfx1100.w64) or the processor of a bundle [default: the first
    /// that fits --arch and --wave]
    #[arg(long, conflicts_with_all = ["arch", "mcpu", "wave"])]
    pub target: Option<String>,
    #[command(flatten)]
    pub files: FileArgs,
    #[command(flatten)]
    pub call: CallArgs,
    #[command(flatten)]
    pub source: super::source::SourceArgs,
    #[command(flatten, next_help_heading = None::<&'static str>)]
    pub end: EndOfHeading,
}

/// Ends the heading of the options before it in the help, which clap would also give those after them.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct EndOfHeading {}

/// Which files the input may name
#[derive(Debug, Clone, Default, clap::Args)]
pub struct FileArgs {
    /// Only open files below DIR, links resolved, where the input names files (`.include`, `.incbin`, `file()`, `npy()`,
    /// launch descriptions)
    #[arg(long, value_name = "DIR")]
    pub files_below: Option<PathBuf>,
}

impl FileArgs {
    /// Returns the files that may be opened.
    pub fn access(&self) -> Result<Files, FileError> {
        self.files_below.as_deref().map_or(Ok(Files::any()), Files::below)
    }
}

/// How a code object's kernel is launched
#[derive(Debug, Clone, Default, PartialEq, Eq, clap::Args)]
#[command(next_help_heading = "Code objects, assembly files and source files")]
pub struct CallArgs {
    /// Name of the kernel, if the file has several
    #[arg(long)]
    pub kernel: Option<String>,
    /// Workgroups in the grid
    #[arg(long, value_name = "X[,Y[,Z]]", value_parser = parse_dimensions)]
    pub grid: Option<Dimensions>,
    /// Work-items in a workgroup
    #[arg(long, value_name = "X[,Y[,Z]]", value_parser = parse_dimensions)]
    pub block: Option<Dimensions>,
    /// Workgroups in a cluster (CDNA 5)
    #[arg(long, value_name = "X[,Y[,Z]]", value_parser = parse_dimensions)]
    pub cluster: Option<Dimensions>,
    /// Next argument of the kernel (repeatable; `wavesim run --help` has the syntax)
    #[arg(long = "arg", value_name = "SPEC")]
    pub args: Vec<String>,
    /// Folder that `.include` searches after the folder of the file (repeatable)
    #[arg(short = 'I', value_name = "DIR")]
    pub include: Vec<PathBuf>,
}

/// The syntax of `--arg`; part of the help of commands that have it.
pub const ARG_HELP: &str = "\
--arg takes [NAME:]SPEC, where SPEC is one of
  f32[16,4]=arange(64)   a buffer, initialised as in the header of a text kernel
                         (zeros without =)
  file:x.npy             a buffer with the contents of a file
  i32=-1, 2.5, 1000      a scalar; without a type it has the size of the
                         parameter (4 bytes in files without metadata)
  local:4096             a number of bytes of LDS";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Dimensions(pub [u32; 3]);

fn parse_dimensions(text: &str) -> Result<Dimensions, String> {
    let mut out = [1; 3];
    let parts: Vec<&str> = text.split(',').collect();
    if parts.len() > 3 {
        return Err("there are only three dimensions: X,Y,Z".to_string());
    }
    for (slot, part) in out.iter_mut().zip(parts) {
        let value = part.trim().parse().ok().filter(|v| *v > 0);
        *slot = value.ok_or_else(|| format!("`{part}` is not a positive number"))?;
    }
    Ok(Dimensions(out))
}

/// The kind of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FileKind {
    Text,
    Assembly,
    Object,
    Description,
}

/// Returns whether a path names a launch description.
pub fn is_description(path: &Path) -> bool {
    path.extension().is_some_and(|e| e == "json")
}

/// Returns whether a path has an extension of code objects or bundles.
pub fn names_object(path: &Path) -> bool {
    let extension = path.extension().and_then(|e| e.to_str());
    matches!(extension, Some("co" | "o" | "so" | "hsaco" | "bundle" | "hipfb"))
}

/// Returns advice for a file whose extension shows that it is not a kernel.
fn advice_for_other_file(path: &Path) -> Option<&'static str> {
    match path.extension().and_then(|e| e.to_str())? {
        "c" | "cc" | "cpp" | "cu" => {
            Some("this is source code; rename it to .hip or .cl, or compile it with clang first")
        }
        "ll" => Some("this is LLVM IR; compile it with llc or clang first"),
        "pcode" => {
            Some("this is pseudocode; give it with --semantics, or check it with `wavesim pcode check`")
        }
        _ => None,
    }
}

fn file_kind(path: &Path, bytes: &[u8]) -> FileKind {
    if code_object::is_object(bytes) || code_object::describe_foreign(bytes).is_some() {
        return FileKind::Object;
    }
    match path.extension().and_then(|e| e.to_str()) {
        Some("json") => FileKind::Description,
        Some("s" | "S" | "asm") => FileKind::Assembly,
        _ if names_object(path) => FileKind::Object,
        // Standard input and files without an extension: only assembly has this directive.
        None if bytes.windows(14).any(|w| w == b".amdhsa_kernel") => FileKind::Assembly,
        _ => FileKind::Text,
    }
}

impl KernelArgs {
    /// Opens a kernel and prepares it to run, with `guard` unused bytes between its arguments. `data` is the
    /// file of initial memory for assembly programs.
    pub fn prepare(&self, path: &Path, data: Option<&Path>, guard: u64) -> anyhow::Result<Prepared> {
        self.prepare_by(path, data, &mut Placement { guard, services: None, code_only: false })
    }

    /// Opens a kernel that is not going to run: arguments may be missing.
    pub fn prepare_code(&self, path: &Path, data: Option<&Path>) -> anyhow::Result<Prepared> {
        self.prepare_by(path, data, &mut Placement { guard: 0, services: None, code_only: true })
    }

    /// As [`KernelArgs::prepare`], with the services that the kernel uses: `printf` and `malloc` on the device.
    pub fn prepare_with_services(
        &self,
        path: &Path,
        data: Option<&Path>,
        guard: u64,
    ) -> anyhow::Result<(Prepared, Services)> {
        let mut placement = Placement { guard, services: Some(Services::default()), code_only: false };
        let prepared = self.prepare_by(path, data, &mut placement)?;
        Ok((prepared, placement.services.unwrap_or_default()))
    }

    fn prepare_by(
        &self,
        path: &Path,
        data: Option<&Path>,
        placement: &mut Placement,
    ) -> anyhow::Result<Prepared> {
        let guard = placement.guard;
        if is_description(path) {
            return Ok(self.description(path, guard)?.prepared);
        }
        let bytes = files::read(path).map_err(|e| with_similar_file(path, e))?;
        let name = super::input_name(path);
        if let Some(what) = advice_for_other_file(path) {
            bail!("{name}: {what}");
        }
        let kind = file_kind(path, &bytes);
        if self.target.is_some() && kind != FileKind::Object {
            bail!("--target is for launch descriptions and bundles; {name} is neither");
        }
        if let Some(language) = Language::of_file(path) {
            if self.files.files_below.is_some() {
                bail!(
                    "{name}: --files-below is not for source files: clang opens every file that they include"
                );
            }
            let object = super::source::compile(path, language, self)?;
            return self.object(&object, placement).with_context(|| name);
        }
        if kind == FileKind::Object {
            self.reject_definitions("a code object")?;
            return self.object(&bytes, placement).with_context(|| name);
        }
        let text = String::from_utf8(bytes).map_err(|_| anyhow::anyhow!("{name}: not text (UTF-8)"))?;
        let extension = path.extension().and_then(|e| e.to_str());
        let arch = self.machine.arch().or_else(|| Arch::from_extension(extension?));
        if let Some((arch, machine)) = arch.and_then(|arch| Some((arch, arch.machine()?))) {
            self.reject_launch_options("an assembly program defines its own launch")?;
            self.reject_definitions("an assembly program")?;
            return self.program(arch, machine, Source { name, text }, data);
        }
        if let Some(data) = data {
            bail!("{}: only assembly programs (--arch riscv_gpu) take a data file", data.display());
        }
        match kind {
            FileKind::Assembly => self.assembly(path, &name, &text, placement),
            _ => self.text(path, name, text, guard),
        }
    }

    /// Returns the options without those of the launch if a file defines its own: a text kernel, or a launch description.
    /// For commands that take several files, of which others may need them.
    pub fn for_file(&self, path: &Path) -> KernelArgs {
        let is_text = || match files::read(path) {
            Ok(bytes) => Language::of_file(path).is_none() && file_kind(path, &bytes) == FileKind::Text,
            Err(_) => false,
        };
        let mut own = self.clone();
        if is_description(path) || is_text() {
            own.call = CallArgs { include: self.call.include.clone(), ..CallArgs::default() };
        }
        if Language::of_file(path).is_none() {
            own.source = super::source::SourceArgs::default();
        }
        own
    }

    /// Loads a launch description with its expected outputs.
    pub fn description(&self, path: &Path, guard: u64) -> anyhow::Result<LoadedLaunch> {
        self.reject_launch_options("a launch description defines its own launch")?;
        self.reject_definitions("a launch description")?;
        let processor = self.machine.mcpu_name();
        let wanted = TargetSelection {
            target: self.target.clone().or(processor),
            arch: self.machine.arch(),
            wave: self.wave.wave,
        };
        if let (false, Some(near)) = (path.exists(), similar_file(path)) {
            bail!("{}: there is no such file; did you mean `{}`?", path.display(), near.display());
        }
        launch::load(path, &wanted, &self.files.access()?, self.global_bytes(1024), guard)
    }

    fn global_bytes(&self, default: u64) -> u64 {
        self.global_memsize.unwrap_or(default) << 20
    }

    fn reject_launch_options(&self, why: &str) -> anyhow::Result<()> {
        let call = &self.call;
        let sizes = [call.grid, call.block, call.cluster];
        if call.kernel.is_some() || sizes.iter().any(Option::is_some) || !call.args.is_empty() {
            bail!(
                "--kernel, --grid, --block, --cluster and --arg are for code objects and assembly files; {why}"
            );
        }
        Ok(())
    }

    fn reject_definitions(&self, what: &str) -> anyhow::Result<()> {
        match self.define.is_empty() {
            true => Ok(()),
            false => bail!("-D is for text kernels, assembly files and source files, not for {what}"),
        }
    }

    fn constants(&self) -> anyhow::Result<Constants> {
        let mut constants = Constants::default();
        for definition in &self.define {
            constants.define(definition).map_err(anyhow::Error::msg)?;
        }
        Ok(constants)
    }

    fn text(&self, path: &Path, name: String, text: String, guard: u64) -> anyhow::Result<Prepared> {
        self.reject_launch_options("a text kernel defines its launch in its header")?;
        let options = Options {
            constants: self.constants()?,
            arch: self.machine.arch(),
            wave: self.wave.wave,
            seed: self.seed,
            folder: path.parent().map(Path::to_path_buf).unwrap_or_default(),
            files: self.files.access()?,
            global_bytes: self.global_bytes(32),
        };
        let prepared = match text_kernel::prepare(&name, &text, &options, guard) {
            Ok(prepared) => prepared,
            Err(text_kernel::LoadError::Text(diagnostics)) => bail!(Diagnostics(diagnostics)),
            Err(e) => return Err(anyhow::Error::new(e).context(name)),
        };
        for definition in &self.define {
            let constant = definition.split('=').next().unwrap_or_default().trim();
            if !mentions(&text, constant) {
                bail!("-D {definition}: `{constant}` does not occur in {name}{}", similar(&text, constant));
            }
        }
        Ok(prepared)
    }

    /// Prepares an assembly program of an architecture with its own assembler, with its data.
    fn program(
        &self,
        arch: Arch,
        machine: &'static Machine,
        source: Source,
        data: Option<&Path>,
    ) -> anyhow::Result<Prepared> {
        let rendered = |name: &str, errors: Vec<LineError>| {
            Diagnostics(errors.into_iter().map(|e| format!("{}\n", e.in_file(name))).collect())
        };
        let (unit, errors) = wavesim_assembler::generic::read(&source.text, arch, machine);
        if !errors.is_empty() {
            bail!(rendered(&source.name, errors));
        }
        let mut words = Vec::new();
        if let Some(path) = data {
            let bytes = files::read(path)?;
            let name = super::input_name(path);
            if path.extension().is_some_and(|e| e == "bin") {
                words = generic::raw_data(&bytes);
            } else {
                let text = String::from_utf8(bytes).map_err(|_| {
                    anyhow::anyhow!(
                        "{name}: not text (UTF-8); the name of a file of raw words must end in .bin"
                    )
                })?;
                words = match generic::data(&text) {
                    Ok(words) => words,
                    Err(errors) => bail!(rendered(&name, errors)),
                };
            }
        }
        let name = source.name.clone();
        generic::prepare(unit, arch, machine, source, &words, self.global_bytes(32)).with_context(|| name)
    }

    /// Returns the options for reading assembly files.
    pub fn reading(&self, path: &Path) -> anyhow::Result<AssemblyOptions> {
        let constants = self.constants()?;
        let mut defines = Vec::new();
        for definition in &self.define {
            let name = definition.split('=').next().unwrap_or_default().trim();
            let value = constants.get(name).and_then(|n| n.as_int()).and_then(|v| i64::try_from(v).ok());
            let value = value.with_context(|| {
                format!("-D {definition}: in assembly files the value must be an integer")
            })?;
            defines.push((name.to_string(), value));
        }
        Ok(AssemblyOptions {
            arch: self.machine.arch(),
            wave: self.wave.wave,
            defines,
            folders: folders(path, &self.call.include),
            files: self.files.access()?,
        })
    }

    fn assembly(
        &self,
        path: &Path,
        name: &str,
        text: &str,
        placement: &mut Placement,
    ) -> anyhow::Result<Prepared> {
        let assembled = match self.reading(path)?.assemble(name, text) {
            Ok(assembled) => assembled,
            Err(errors) => bail!(Diagnostics(errors.iter().map(|e| format!("{e}\n")).collect())),
        };
        let mut prepared = self.object(&assembled.object, placement).with_context(|| name.to_string())?;
        assembled.annotate(&mut prepared);
        Ok(prepared)
    }

    /// Prepares a kernel of a code object with the arguments of the command line.
    fn object(&self, file: &[u8], placement: &mut Placement) -> anyhow::Result<Prepared> {
        let target_request = match &self.target {
            Some(name) => {
                let processor = parse_mcpu(name).map_err(anyhow::Error::msg)?;
                Target { mcpu: Some(processor), arch: None }.target_request()
            }
            None => self.machine.target_request(),
        };
        let bytes = &code_object::open(file, &target_request)?;
        let names = code_object::kernels(bytes)?;
        let call = &self.call;
        let kernel = match (&call.kernel, &names[..]) {
            // An unknown name is an error of the loader, which suggests a similar one.
            (Some(name), names) => kernel_name::select(names, name).unwrap_or(name),
            (None, [only]) => only,
            (None, []) => bail!("this code object has no kernel"),
            (None, many) => {
                let names: Vec<String> = many.iter().map(|name| kernel_name::demangled(name)).collect();
                bail!("select a kernel with --kernel: {}", names.join(", "))
            }
        };
        let kernel = code_object::load(bytes, kernel)?;
        if target_request.arch.is_some_and(|a| a != kernel.arch) {
            bail!(LoadError::Target { object: kernel.arch.name(), requested: target_request.to_string() });
        }
        let global_bytes = self.global_bytes(1024);
        let block = call.block.map(|d| d.0).or(kernel.block);
        let options =
            Options { global_bytes, seed: self.seed, files: self.files.access()?, ..Options::default() };
        let mut list = Vec::new();
        for (index, text) in call.args.iter().enumerate() {
            list.push(request::argument(text, index, &options)?);
        }
        for (index, (entry, parameter)) in list.iter_mut().zip(kernel.parameters()).enumerate() {
            if let ArgumentValue::Buffer(array) = &entry.1
                && let Some(warning) = parameter.mismatch(array.dtype)
            {
                super::output::emit(format!("warning: {warning}"));
            }
            // Arguments without a name take the name of the parameter.
            if let Some(name) = parameter.name.as_ref().filter(|_| entry.0 == format!("arg{index}")) {
                entry.0 = name.clone();
            }
        }
        if placement.code_only && list.is_empty() {
            list = request::zeros(&kernel);
        }
        let named = list.iter().map(|(name, _)| name.clone()).filter(|n| n.starts_with("out_")).collect();
        let grid = call.grid.map_or([1; 3], |d| d.0);
        let shape = block.unwrap_or([1; 3]);
        let request = Request { grid, block: shape, dynamic_lds: 0, args: list, outputs: named };
        let mut memory = Memory::with_guard(global_bytes, placement.guard)?;
        let mut addresses = abi::Services::default();
        if let Some(services) = &mut placement.services {
            let uses = |kind: &str| kernel.args.iter().flatten().any(|arg| arg.kind == kind);
            let wanted = Wanted {
                hostcall: uses("hidden_hostcall_buffer"),
                heap: uses("hidden_heap_v1"),
                printf: uses("hidden_printf_buffer"),
            };
            if wanted != Wanted::default() {
                *services = Services::place(wanted, &code_object::module(bytes)?.printf, &mut memory)?;
            }
            let Services { hostcall, heap, printf, .. } = *services;
            addresses = abi::Services { hostcall, heap, printf, ..addresses };
        }
        let cluster = call.cluster.map(|d| d.0);
        let prepared = request.prepare_with(&kernel, memory, cluster, &addresses)?;
        // Errors in the arguments take precedence over these.
        if call.grid.is_none() && !placement.code_only {
            bail!("--grid X[,Y[,Z]] is missing: the number of workgroups");
        }
        if block.is_none() && !placement.code_only {
            bail!("--block X[,Y[,Z]] is missing: the work-items in a workgroup");
        }
        Ok(prepared)
    }
}

/// Where a kernel's parts are placed.
struct Placement {
    /// Unused bytes between arguments.
    guard: u64,
    /// The services that the kernel uses, once they are placed; `None` if the kernel gets none.
    services: Option<Services>,
    /// Whether the kernel is not going to run, so that its arguments are zeros if there are none.
    code_only: bool,
}

/// Returns the words of a text that can be names.
fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|w| !w.is_empty())
}

fn mentions(text: &str, name: &str) -> bool {
    words(text).any(|w| w == name)
}

/// Returns a suggestion for a name that does not occur in a text.
fn similar(text: &str, name: &str) -> String {
    let likely = words(text).filter(|w| w.len() > 1 && w.starts_with(|c: char| !c.is_ascii_digit()));
    suggest(name, likely).map_or(String::new(), |hint| format!("; {hint}"))
}

/// Adds the name of a similar file to the error of a file that does not exist.
fn with_similar_file(path: &Path, error: FileError) -> anyhow::Error {
    let missing =
        matches!(&error, FileError::Io { source, .. } if source.kind() == std::io::ErrorKind::NotFound);
    let hint = missing.then(|| similar_file(path)).flatten();
    match hint {
        Some(near) => anyhow::anyhow!("{error}; did you mean `{}`?", near.display()),
        None => error.into(),
    }
}

/// Returns the file whose name is nearest to that of a path, in the same folder or in one with a similar name.
fn similar_file(path: &Path) -> Option<PathBuf> {
    let name = path.file_name()?.to_str()?;
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if !folder.is_dir() {
        let near = similar_file(folder).filter(|near| near.is_dir())?.join(name);
        return if near.exists() { Some(near) } else { similar_file(&near) };
    }
    let entries =
        std::fs::read_dir(folder).ok()?.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let names: Vec<String> = entries.take(MAX_ENTRIES).collect();
    let near = isa_spec::diag::nearest(name, names.iter().map(String::as_str))?;
    Some(path.with_file_name(near))
}

/// Maximum number of files of a folder that are compared with a misspelt name.
const MAX_ENTRIES: usize = 10_000;

/// Returns the folders in which includes of a file are searched.
pub fn folders(path: &Path, more: &[PathBuf]) -> Vec<PathBuf> {
    path.parent().map(Path::to_path_buf).into_iter().chain(more.iter().cloned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_in_misspelt_folders_are_found() {
        let folder = std::env::temp_dir().join(format!("wavesim-similar-{}", std::process::id()));
        std::fs::create_dir_all(folder.join("examples")).unwrap();
        std::fs::write(folder.join("examples/collatz.rdna"), "").unwrap();
        let found = |path: &str| {
            similar_file(&folder.join(path)).map(|near| near.strip_prefix(&folder).unwrap().to_path_buf())
        };
        let expected = Some(PathBuf::from("examples/collatz.rdna"));
        for path in ["exmaples/collatz.rdna", "exmaples/colatz.rdna", "examples/colatz.rdna"] {
            assert_eq!(found(path), expected, "{path}");
        }
        assert_eq!(found("somewhere/else/collatz.rdna"), None);
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
