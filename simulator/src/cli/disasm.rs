//! `wavesim disasm`: machine words to text.

use super::target::{Target, WaveSize};
use std::io::Write;
use std::path::PathBuf;

/// Disassemble machine words or a code object to LLVM's AMDGPU syntax
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  wavesim disasm kernel.co
  echo 0301047e | wavesim disasm --mcpu gfx1100 --hex -")]
pub struct DisasmArgs {
    /// Words, a code object, or `-`
    pub file: PathBuf,
    #[command(flatten)]
    pub target: Target,
    #[command(flatten)]
    pub wave: WaveSize,
    /// The input is text: one instruction a line, its bytes in hex in memory order
    #[arg(long)]
    pub hex: bool,
    /// JSON Lines, one an instruction
    #[arg(long)]
    pub json: bool,
}

pub fn run(_args: &DisasmArgs, _out: &mut dyn Write) -> anyhow::Result<u8> {
    anyhow::bail!("this build has no disassembler")
}
