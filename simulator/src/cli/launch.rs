//! `wavesim launch`: a compiled kernel, run as its launch description says.

use super::observe::{self, ObserveArgs, RunError};
use super::{FAILED, OK};
use crate::loader::launch;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Run a compiled kernel as its launch.json says and compare the expected outputs
#[derive(Debug, clap::Args)]
pub struct LaunchArgs {
    /// launch.json files
    #[arg(required = true)]
    pub files: Vec<PathBuf>,
    /// Key of the launch's `code`
    #[arg(long, default_value = "gfx1100")]
    pub target: String,
    /// Compare with the expected outputs
    #[arg(long)]
    pub check: bool,
    /// Stop with a fault after this many wave-instructions
    #[arg(long, default_value_t = 10_000_000_000)]
    pub max_instructions: u64,
    #[command(flatten)]
    pub observe: ObserveArgs,
}

pub fn run(args: &LaunchArgs, out: &mut dyn Write) -> anyhow::Result<u8> {
    let mut code = OK;
    for file in &args.files {
        let name = file.display();
        match one(args, file, out) {
            Ok(Outcome { mismatches, summary }) if mismatches.is_empty() => {
                writeln!(out, "{name}: ok, {summary}")?;
            }
            Ok(Outcome { mismatches, .. }) => {
                code = FAILED;
                writeln!(out, "{name}: MISMATCH\n  {}", mismatches.join("\n  "))?;
            }
            Err(e) => {
                code = FAILED;
                writeln!(out, "{name}: FAULT\n  {e:#}")?;
            }
        }
    }
    Ok(code)
}

struct Outcome {
    /// One line per expected buffer that differs.
    mismatches: Vec<String>,
    summary: String,
}

fn one(args: &LaunchArgs, file: &Path, out: &mut dyn Write) -> anyhow::Result<Outcome> {
    let loaded = launch::load(file, &args.target)?;
    let dispatch = loaded.prepared.dispatch(args.max_instructions);
    let started = Instant::now();
    let stats = match observe::run(&args.observe, &loaded.prepared, &dispatch, out) {
        Ok(stats) => stats,
        Err(RunError::Fault(fault)) => anyhow::bail!("{fault}"),
        Err(RunError::Other(e)) => return Err(e),
    };
    let seconds = started.elapsed().as_secs_f64();
    let compared = loaded.launch.expected.len();
    let summary = format!(
        "{compared} of {compared} outputs as expected; {} wave-instructions, {} waves, {seconds:.3} s",
        stats.instructions, stats.waves
    );
    Ok(Outcome { mismatches: loaded.mismatches()?, summary })
}
