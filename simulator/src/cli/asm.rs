//! `wavesim asm`: text to machine words.

use super::target::{Target, WaveSize};
use std::io::Write;
use std::path::PathBuf;

/// Assemble instructions (LLVM's AMDGPU syntax) to machine words or a code object
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  echo 'v_add_f32 v0, v1, v2' | wavesim asm --mcpu gfx1100 --show-encoding -
  wavesim asm --mcpu gfx1201 kernel.s -o kernel.co")]
pub struct AsmArgs {
    /// Assembly text, or `-`
    pub file: PathBuf,
    #[command(flatten)]
    pub target: Target,
    #[command(flatten)]
    pub wave: WaveSize,
    /// Write the words or the code object here
    #[arg(short, long)]
    pub output: Option<PathBuf>,
    /// Print each instruction with its bytes
    #[arg(long)]
    pub show_encoding: bool,
    /// JSON Lines, one an instruction
    #[arg(long)]
    pub json: bool,
}

pub fn run(_args: &AsmArgs, _out: &mut dyn Write) -> anyhow::Result<u8> {
    anyhow::bail!("this build has no assembler")
}
