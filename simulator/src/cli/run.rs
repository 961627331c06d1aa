//! `wavesim run`: runs a kernel and prints its outputs.

use super::coverage::Collected;
use super::execute::Execution;
use super::input::{ARG_HELP, KernelArgs, files_of};
use super::{INTERRUPTED, OK, words};
use anyhow::{Context as _, bail};
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
  wavesim run examples/scale.s --grid 2 --block 32 \\
      --arg 'f32[50]=arange(50)' --arg 'out_y:f32[50]' --arg 2.5 --arg 50
  wavesim run examples/axpy.cl --grid 4 --block 64 \\
      --arg 'f32[256]=arange(256)' --arg 'out_y:f32[256]' --arg 2 --arg 256

{ARG_HELP}"))]
pub struct RunArgs {
    /// A text kernel (a header between `---` lines, then instructions), an assembly file (`.s`), a source file (`.cl`,
    /// `.hip`), a code object, a launch description (`.json`), an assembly program (`.as`), or `-` for standard input
    pub file: PathBuf,
    /// Assembly programs: initial memory (`address: value` lines, or little-endian words in a `.bin` file)
    pub data: Option<PathBuf>,
    /// More files, each of which runs with the same options
    pub more: Vec<PathBuf>,
    #[command(flatten)]
    pub kernel: KernelArgs,
    /// Assembly programs: write the words of memory that were stored to (`address: value` lines, or little-endian words
    /// if FILE ends in `.bin`)
    #[arg(long, value_name = "FILE")]
    pub dump: Option<PathBuf>,
    #[command(flatten)]
    pub execution: Execution,
}

pub fn run(args: &RunArgs, out: &mut dyn Write) -> anyhow::Result<u8> {
    let files = files_of(&args.kernel, &args.file, args.data.as_deref(), &args.more)?;
    let several = files.len() > 1;
    if several && args.execution.out_dir.is_some() {
        bail!("--out-dir is for one kernel: the outputs of several may have the same names");
    }
    let mut code = OK;
    let coverage = Collected::default();
    for (file, data) in files {
        if several && !args.execution.json && !args.execution.quiet {
            writeln!(out, "{}:", super::input_name(&file))?;
        }
        let (mut prepared, services) = args.kernel.prepare_with_services(&file, data.as_deref(), 0)?;
        if args.dump.is_some() && !prepared.memory.is_word_addressed() {
            bail!("--dump is for assembly programs; use --out-dir for the outputs of a kernel");
        }
        let mut ended = args.execution.run(&mut prepared, &services, &args.kernel.files.access()?, out)?;
        args.execution.add_coverage(&super::input_name(&file), &mut ended, &coverage)?;
        let own = args.execution.report(&prepared, &ended, None, out)?;
        if let (Some(path), OK) = (&args.dump, own) {
            words::dump(&prepared.memory, path).with_context(|| path.display().to_string())?;
        }
        code = code.max(own);
        if own == INTERRUPTED {
            break;
        }
    }
    args.execution.write_coverage(&coverage)?;
    Ok(code)
}
