//! `wavesim launch`: runs compiled kernels, by launch descriptions or with arguments on the command line.

use super::OK;
use super::coverage::Collected;
use super::execute::Execution;
use super::input::{ARG_HELP, KernelArgs, is_description};
use super::output::emit;
use anyhow::{Context as _, bail};
use std::io::Write;
use std::path::{Path, PathBuf};
use wavesim_services::launch::Services;

/// Run compiled kernels: launch descriptions (launch.json), or a code object with arguments
#[derive(Debug, clap::Args)]
#[command(after_long_help = format!("\
Examples:
  wavesim launch vadd/launch.json --target gfx1201 --check
  wavesim launch vadd.co --grid 4 --block 64 --arg 'a:f32[256]=arange(256)' \\
      --arg 'b:f32[256]=repeat(1)' --arg 'c:f32[256]' --arg 256

{ARG_HELP}"))]
pub struct LaunchArgs {
    /// Launch descriptions (`.json`), code objects or assembly files
    #[arg(required = true)]
    pub files: Vec<PathBuf>,
    #[command(flatten)]
    pub kernel: KernelArgs,
    /// Compare the outputs with those expected by the description; exit with 1 if they differ
    #[arg(long)]
    pub check: bool,
    #[command(flatten)]
    pub execution: Execution,
}

pub fn run(args: &LaunchArgs, out: &mut dyn Write) -> anyhow::Result<u8> {
    let mut code = OK;
    let coverage = Collected::default();
    for file in &args.files {
        let result = if is_description(file) {
            description(args, file, &coverage, out)
        } else {
            without_description(args, file, &coverage, out)
        };
        code = code.max(result.with_context(|| file.display().to_string())?);
    }
    args.execution.write_coverage(&coverage)?;
    Ok(code)
}

fn description(
    args: &LaunchArgs,
    file: &Path,
    coverage: &Collected,
    out: &mut dyn Write,
) -> anyhow::Result<u8> {
    let mut loaded = args.kernel.description(file, 0)?;
    let mut ended =
        args.execution.run(&mut loaded.prepared, &Services::default(), &args.kernel.files.access()?, out)?;
    args.execution.add_coverage(&super::input_name(file), &mut ended, coverage)?;
    let mismatches = if args.check && ended.result.is_ok() { Some(loaded.mismatches()?) } else { None };
    let code = args.execution.report(&loaded.prepared, &ended, mismatches.as_deref(), out)?;
    match (&ended.result, &mismatches) {
        _ if args.execution.json => {}
        (Ok(finished), Some(list)) if list.is_empty() => writeln!(
            out,
            "{}: ok, {1} of {1} outputs as expected; {2} wave-instructions, {3} waves, {4:.3} s",
            file.display(),
            loaded.launch.expected.len(),
            finished.stats.instructions,
            finished.stats.waves,
            finished.seconds
        )?,
        (Ok(_), Some(list)) => {
            writeln!(out, "{}: MISMATCH", file.display())?;
            for mismatch in list {
                writeln!(out, "{mismatch}")?;
            }
        }
        (Err(_), _) => emit(format!("in {}", file.display())),
        _ => {}
    }
    Ok(code)
}

fn without_description(
    args: &LaunchArgs,
    file: &Path,
    coverage: &Collected,
    out: &mut dyn Write,
) -> anyhow::Result<u8> {
    if args.check {
        bail!("--check needs a launch description, which has the expected outputs");
    }
    let (mut prepared, services) = args.kernel.prepare_with_services(file, None, 0)?;
    let mut ended = args.execution.run(&mut prepared, &services, &args.kernel.files.access()?, out)?;
    args.execution.add_coverage(&super::input_name(file), &mut ended, coverage)?;
    args.execution.report(&prepared, &ended, None, out)
}
