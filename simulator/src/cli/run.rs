//! `wavesim run`: a text kernel, its outputs printed.

use super::target::{Target, WaveSize};
use std::io::Write;
use std::path::PathBuf;

/// Run a text kernel and print its outputs
#[derive(Debug, clap::Args)]
pub struct RunArgs {
    /// The kernel: a header between `---` lines, then instructions
    pub file: PathBuf,
    #[command(flatten)]
    pub target: Target,
    #[command(flatten)]
    pub wave: WaveSize,
    /// Give a value to a name that the header uses
    #[arg(short = 'D', value_name = "NAME=VALUE")]
    pub define: Vec<String>,
    /// Seed of `rand()`
    #[arg(long, default_value_t = 0)]
    pub seed: u64,
}

pub fn run(_args: &RunArgs, _out: &mut dyn Write) -> anyhow::Result<u8> {
    anyhow::bail!("this build has no assembler")
}
