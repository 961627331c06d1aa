//! `wavesim asm`: text to machine words.

use super::target::{Target, WaveSize};
use crate::asm::{self, NoSymbols, Options, scan::without_comment};
use crate::codec::encode;
use anyhow::Context as _;
use serde_json::json;
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

pub fn run(args: &AsmArgs, out: &mut dyn Write) -> anyhow::Result<u8> {
    let text = String::from_utf8(super::read_input(&args.file)?).context("the input is not text")?;
    let options = Options::new(args.target.arch_or_default()).wave(args.wave.wave.unwrap_or(32));
    let mut code = super::OK;
    for (at, line) in text.lines().enumerate() {
        let stripped = without_comment(line);
        if stripped.trim().is_empty() {
            continue;
        }
        let result = asm::parse(&stripped, &options, &NoSymbols)
            .map_err(|e| (e.column(line), e.to_string()))
            .and_then(|p| encode(options.arch, &p.inst).map_err(|e| (1, e.to_string())));
        match result {
            Ok(words) => {
                let words: Vec<String> = words.iter().map(|w| format!("{w:08x}")).collect();
                writeln!(out, "{}", json!({"line": at + 1, "text": stripped.trim(), "words": words}))?;
            }
            Err((column, error)) => {
                code = super::BAD_INPUT;
                writeln!(out, "{}", json!({"line": at + 1, "error": error, "column": column}))?;
            }
        }
    }
    Ok(code)
}
