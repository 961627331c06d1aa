//! `wavesim run`: a text kernel, its outputs printed.

use super::BAD_INPUT;
use super::execute::Execution;
use super::target::{Target, WaveSize};
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
  wavesim run kernel.rdna --json --seed 7 --out-dir results")]
pub struct RunArgs {
    /// The kernel: a header between `---` lines, then instructions; `-` for standard input
    pub file: PathBuf,
    #[command(flatten)]
    pub kernel: KernelArgs,
    #[command(flatten)]
    pub execution: Execution,
}

/// What the command line adds to a text kernel
#[derive(Debug, Clone, clap::Args)]
pub struct KernelArgs {
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
}

pub fn run(args: &RunArgs, out: &mut dyn Write) -> anyhow::Result<u8> {
    let mut prepared = match args.kernel.prepare(&args.file)? {
        Ok(prepared) => prepared,
        Err(messages) => {
            eprint!("{messages}");
            return Ok(BAD_INPUT);
        }
    };
    let result = args.execution.run(&mut prepared, out)?;
    args.execution.report(&prepared, &result, None, out)
}
