//! `wavesim launch`: a compiled kernel, run as its launch description says.

use super::{FAILED, OK};
use std::io::Write;
use std::path::PathBuf;

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
}

pub fn run(args: &LaunchArgs, out: &mut dyn Write) -> anyhow::Result<u8> {
    let mut code = OK;
    for file in &args.files {
        match crate::loader::launch::run(file, &args.target, args.max_instructions) {
            Ok(r) if r.mismatches.is_empty() => writeln!(
                out,
                "{}: ok, {} of {} outputs as expected; {} wave-instructions, {} waves, {:.3} s",
                file.display(),
                r.compared,
                r.compared,
                r.stats.instructions,
                r.stats.waves,
                r.seconds
            )?,
            Ok(r) => {
                code = FAILED;
                writeln!(out, "{}: MISMATCH\n  {}", file.display(), r.mismatches.join("\n  "))?;
            }
            Err(e) => {
                code = FAILED;
                writeln!(out, "{}: FAULT\n  {e:#}", file.display())?;
            }
        }
    }
    Ok(code)
}
