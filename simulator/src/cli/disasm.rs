//! `wavesim disasm`: machine words to text.

use super::target::{Target, WaveSize};
use crate::arch::Arch;
use crate::asm::{Options, print};
use crate::codec::decode;
use anyhow::Context as _;
use serde_json::json;
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

pub fn run(args: &DisasmArgs, out: &mut dyn Write) -> anyhow::Result<u8> {
    let bytes = super::read_input(&args.file)?;
    let options = Options::new(args.target.arch_or_default()).wave(args.wave.wave.unwrap_or(32));
    if args.hex {
        let text = String::from_utf8(bytes).context("the input is not text")?;
        return hex_lines(&text, &options, args.json, out);
    }
    anyhow::bail!("only --hex so far")
}

fn hex_lines(text: &str, options: &Options, json: bool, out: &mut dyn Write) -> anyhow::Result<u8> {
    let mut code = super::OK;
    for (at, line) in text.lines().enumerate() {
        if line.trim().is_empty() {
            continue;
        }
        let result = hex_line(line, options);
        match (result, json) {
            (Ok((text, size)), true) => {
                writeln!(out, "{}", json!({"line": at + 1, "text": text, "size": size}))?
            }
            (Ok((text, _)), false) => writeln!(out, "{text}")?,
            (Err(error), true) => {
                code = super::BAD_INPUT;
                writeln!(out, "{}", json!({"line": at + 1, "error": error}))?;
            }
            (Err(error), false) => {
                code = super::BAD_INPUT;
                eprintln!("error: line {}: {error}", at + 1);
            }
        }
    }
    Ok(code)
}

/// One instruction: its text and its size in bytes.
fn hex_line(line: &str, options: &Options) -> Result<(String, usize), String> {
    let bytes = hex_bytes(line)?;
    let words = words(&bytes, options.arch)?;
    let inst = decode(options.arch, &words).map_err(|e| e.to_string())?;
    if inst.size as usize != bytes.len() {
        return Err(format!("{} bytes follow the instruction", bytes.len() - inst.size as usize));
    }
    Ok((print::instruction(&inst, options), inst.size as usize))
}

fn hex_bytes(line: &str) -> Result<Vec<u8>, String> {
    let mut digits = Vec::new();
    for (at, c) in line.char_indices() {
        match c.to_digit(16) {
            Some(digit) => digits.push(digit as u8),
            None if c.is_whitespace() || c == ',' => {}
            None => return Err(format!("column {}: `{c}` is no hex digit", at + 1)),
        }
    }
    if digits.len() % 2 != 0 {
        return Err("half a byte: the number of hex digits is odd".to_string());
    }
    Ok(digits.chunks(2).map(|d| d[0] << 4 | d[1]).collect())
}

fn words(bytes: &[u8], _arch: Arch) -> Result<Vec<u32>, String> {
    if !bytes.len().is_multiple_of(4) || bytes.is_empty() {
        return Err(format!("{} bytes are no whole words", bytes.len()));
    }
    Ok(bytes.chunks(4).map(|c| u32::from_le_bytes([c[0], c[1], c[2], c[3]])).collect())
}
