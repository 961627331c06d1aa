//! `wavesim run`: a text kernel, or an assembly program of a machine of its own; its outputs printed.

use super::execute::Execution;
use super::target::{Target, WaveSize};
use super::{BAD_INPUT, OK, words};
use crate::arch::Arch;
use crate::arch::machine::Machine;
use crate::asm;
use crate::loader::plain;
use crate::loader::prepared::{Prepared, Source};
use crate::memory::Memory;
use crate::text::constant::Constants;
use crate::text::{self, Options};
use anyhow::Context as _;
use isa_spec::source::SourceMap;
use std::io::Write;
use std::path::{Path, PathBuf};

/// Run a text kernel and print its outputs
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  wavesim run examples/saxpy.rdna
  wavesim run examples/vector_add.rdna -D N=64 --arch rdna4 --full
  wavesim run kernel.rdna --json --seed 7 --out-dir results
  wavesim run examples/riscv_gpu/vector_add.as examples/riscv_gpu/vector_add.data --dump memory.data")]
pub struct RunArgs {
    /// The kernel: a header between `---` lines, then instructions; or an assembly program (`.as`); `-` for standard input
    pub file: PathBuf,
    #[command(flatten)]
    pub kernel: KernelArgs,
    /// Assembly programs: write every word of memory that was stored to (`address: value` lines; the words themselves if it ends in `.bin`)
    #[arg(long, value_name = "FILE")]
    pub dump: Option<PathBuf>,
    #[command(flatten)]
    pub execution: Execution,
}

/// What the command line adds to a text kernel
#[derive(Debug, Clone, clap::Args)]
pub struct KernelArgs {
    /// Assembly programs: the first contents of memory (`address: value` lines, or a `.bin` of little-endian words)
    pub data: Option<PathBuf>,
    #[command(flatten)]
    pub target: Target,
    #[command(flatten)]
    pub wave: WaveSize,
    /// Give a value to a name that the kernel uses
    #[arg(short = 'D', value_name = "NAME=VALUE")]
    pub define: Vec<String>,
    /// Seed of `rand()`
    #[arg(long, default_value_t = 0)]
    pub seed: u64,
    /// Megabytes of global memory
    #[arg(long, value_name = "MB", default_value_t = 32, value_parser = clap::value_parser!(u64).range(1..=1 << 20))]
    pub global_memsize: u64,
}

impl KernelArgs {
    /// Reads a text kernel and makes it ready; what is wrong with it is the error's text, as shown to a user.
    pub fn prepare(&self, path: &Path) -> anyhow::Result<Result<Prepared, String>> {
        self.prepare_guarded(path, 0)
    }

    /// As [`KernelArgs::prepare`], with `guard` bytes between arguments.
    pub fn prepare_guarded(&self, path: &Path, guard: u64) -> anyhow::Result<Result<Prepared, String>> {
        let bytes = super::read_input(path)?;
        let name = super::input_name(path);
        if bytes.starts_with(b"\x7fELF") || path.extension().is_some_and(|e| e == "json") {
            anyhow::bail!("{name}: code objects and launch descriptions are for `wavesim launch`");
        }
        let text = String::from_utf8(bytes).map_err(|_| anyhow::anyhow!("{name}: not text (UTF-8)"))?;
        let extension = path.extension().and_then(|e| e.to_str());
        let arch = self.target.arch().or_else(|| Arch::from_extension(extension?));
        if let Some((arch, machine)) = arch.and_then(|arch| Some((arch, arch.machine()?))) {
            return self.prepare_program(arch, machine, Source { name, text });
        }
        if let Some(data) = &self.data {
            anyhow::bail!("{}: only assembly programs (--arch riscv_gpu) take a data file", data.display());
        }
        let mut constants = Constants::default();
        for definition in &self.define {
            constants.define(definition).map_err(anyhow::Error::msg)?;
        }
        let options = Options {
            constants,
            arch: self.target.arch(),
            wave: self.wave.wave,
            seed: self.seed,
            folder: path.parent().map(Path::to_path_buf).unwrap_or_default(),
            global_bytes: self.global_memsize << 20,
        };
        let mut sources = SourceMap::default();
        let file = sources.add(name.as_str(), text.as_str());
        let kernel = match text::parse(&sources, file, &options) {
            Ok(kernel) => kernel,
            Err(diagnostics) => return Ok(Err(text::render(&sources, &diagnostics))),
        };
        let memory = Memory::with_guard(options.global_bytes, guard)?;
        let prepared = text::layout::load(kernel, Source { name: name.clone(), text }, memory);
        prepared.map(Ok).with_context(|| name)
    }

    /// A program of a machine of its own, with its data.
    fn prepare_program(
        &self,
        arch: Arch,
        machine: &'static Machine,
        source: Source,
    ) -> anyhow::Result<Result<Prepared, String>> {
        let rendered = |name: &str, text: &str, errors: &[asm::program::LineError]| {
            errors.iter().map(|e| super::asm::rendered(name, text, e) + "\n").collect::<String>()
        };
        let (unit, errors) = asm::plain::read(&source.text, arch, machine);
        if !errors.is_empty() {
            return Ok(Err(rendered(&source.name, &source.text, &errors)));
        }
        let mut data = Vec::new();
        if let Some(path) = &self.data {
            let bytes = super::read_input(path)?;
            let name = super::input_name(path);
            if path.extension().is_some_and(|e| e == "bin") {
                data = plain::raw_data(&bytes);
            } else {
                let text = String::from_utf8(bytes).map_err(|_| {
                    anyhow::anyhow!("{name}: not text (UTF-8); raw words have names that end in .bin")
                })?;
                data = match plain::data(&text) {
                    Ok(data) => data,
                    Err(errors) => return Ok(Err(rendered(&name, &text, &errors))),
                };
            }
        }
        let name = source.name.clone();
        let prepared = plain::prepare(unit, arch, machine, source, &data, self.global_memsize << 20);
        prepared.map(Ok).with_context(|| name)
    }
}

pub fn run(args: &RunArgs, out: &mut dyn Write) -> anyhow::Result<u8> {
    let mut prepared = match args.kernel.prepare(&args.file)? {
        Ok(prepared) => prepared,
        Err(messages) => {
            eprint!("{messages}");
            return Ok(BAD_INPUT);
        }
    };
    if args.dump.is_some() && !prepared.memory.counts_words() {
        anyhow::bail!("--dump is for assembly programs; --out-dir writes a kernel's outputs");
    }
    let result = args.execution.run(&mut prepared, out)?;
    let code = args.execution.report(&prepared, &result, None, out)?;
    if let (Some(path), OK) = (&args.dump, code) {
        words::dump(&prepared.memory, path).with_context(|| path.display().to_string())?;
    }
    Ok(code)
}
