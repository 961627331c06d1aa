//! `wavesim run`: one kernel, its outputs printed.

use super::execute::Execution;
use super::input::{ARG_HELP, KernelArgs};
use super::{OK, words};
use anyhow::Context as _;
use std::io::Write;
use std::path::PathBuf;

/// Run a kernel and print its outputs
#[derive(Debug, clap::Args)]
#[command(after_long_help = format!("\
Examples:
  wavesim run examples/saxpy.rdna
  wavesim run examples/vector_add.rdna -D N=64 --arch rdna4 --full
  wavesim run kernel.rdna --json --seed 7 --out-dir results
  wavesim run examples/riscv_gpu/vector_add.as \\
      examples/riscv_gpu/vector_add.data --dump memory.data
  wavesim run kernel.s --grid 4 --block 64 --arg 'f32[256]=arange(256)' \\
      --arg 'out_y:f32[256]'

{ARG_HELP}"))]
pub struct RunArgs {
    /// The kernel: text (a header between `---` lines, then instructions), an assembly file (`.s`), a code object, or a launch
    /// description (`.json`); an assembly program (`.as`); `-` for standard input
    pub file: PathBuf,
    /// Assembly programs: the first contents of memory (`address: value` lines, or a `.bin` of little-endian words)
    pub data: Option<PathBuf>,
    #[command(flatten)]
    pub kernel: KernelArgs,
    /// Assembly programs: write every word of memory that was stored to (`address: value` lines; the words themselves if it ends in `.bin`)
    #[arg(long, value_name = "FILE")]
    pub dump: Option<PathBuf>,
    #[command(flatten)]
    pub execution: Execution,
}

pub fn run(args: &RunArgs, out: &mut dyn Write) -> anyhow::Result<u8> {
    let mut prepared = args.kernel.prepare(&args.file, args.data.as_deref(), 0)?;
    if args.dump.is_some() && !prepared.memory.counts_words() {
        anyhow::bail!("--dump is for assembly programs; --out-dir writes a kernel's outputs");
    }
    let ended = args.execution.run(&mut prepared, out)?;
    let code = args.execution.report(&prepared, &ended, None, out)?;
    if let (Some(path), OK) = (&args.dump, code) {
        words::dump(&prepared.memory, path).with_context(|| path.display().to_string())?;
    }
    Ok(code)
}
