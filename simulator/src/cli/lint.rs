//! `wavesim lint`: remarks about a kernel's code, without a run.

use super::OK;
use super::input::{ARG_HELP, KernelArgs, files_of};
use anyhow::Context as _;
use std::io::Write;
use std::path::PathBuf;
use wavesim_cost::lint::{self, Level};

/// Report what costs time in a kernel's code, without running it: occupancy, missed dual instructions, delays, scratch,
/// strict waits
#[derive(Debug, clap::Args)]
#[command(after_long_help = format!("\
Examples:
  wavesim lint examples/matmul.rdna
  wavesim lint examples/scale.s --block 256 --json
  wavesim lint examples/axpy.cl --mcpu gfx1201
  wavesim lint kernels/*.rdna --sarif lint.sarif

Exit codes: 0; 1 with --deny if there are warnings; 2 bad usage or bad input.

{ARG_HELP}"))]
pub struct LintArgs {
    /// A text kernel, an assembly file (`.s`), a source file (`.cl`, `.hip`), a code object, or a launch description
    /// (`.json`)
    pub file: PathBuf,
    /// More files
    pub more: Vec<PathBuf>,
    #[command(flatten)]
    pub kernel: KernelArgs,
    /// Print JSON Lines, one object per file
    #[arg(long)]
    pub json: bool,
    /// Also write the remarks to a file in SARIF 2.1.0
    #[arg(long, value_name = "FILE")]
    pub sarif: Option<PathBuf>,
    /// Exit with 1 if there are warnings
    #[arg(long)]
    pub deny: bool,
}

pub fn run(args: &LintArgs, out: &mut dyn Write) -> anyhow::Result<u8> {
    let files = files_of(&args.kernel, &args.file, None, &args.more)?;
    let mut kernels = Vec::new();
    for (file, data) in &files {
        kernels.push((super::input_name(file), args.kernel.prepare_code(file, data.as_deref())?));
    }
    let mut lints = Vec::new();
    for (name, prepared) in &kernels {
        let lint = lint::lint(prepared, name).with_context(|| name.clone())?;
        match args.json {
            true => writeln!(out, "{}", lint.json())?,
            false => write!(out, "{lint}")?,
        }
        lints.push(lint);
    }
    if let Some(path) = &args.sarif {
        let log = lint::sarif_of_files(&lints, env!("CARGO_PKG_VERSION"));
        wavesim_files::write(path, |out| writeln!(out, "{log:#}"))
            .with_context(|| path.display().to_string())?;
    }
    let warns = lints.iter().flat_map(|l| &l.remarks).any(|r| r.level == Level::Warning);
    Ok(if args.deny && warns { super::FAILED } else { OK })
}
