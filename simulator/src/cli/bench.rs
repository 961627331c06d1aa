//! `wavesim bench`: how fast the interpreter is on this host.

use std::io::Write;

/// Measure the interpreter on built-in workloads
#[derive(Debug, clap::Args)]
pub struct BenchArgs {
    /// One JSON object
    #[arg(long)]
    pub json: bool,
}

pub fn run(_args: &BenchArgs, _out: &mut dyn Write) -> anyhow::Result<u8> {
    anyhow::bail!("this build has no workloads")
}
