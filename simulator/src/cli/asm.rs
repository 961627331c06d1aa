//! `wavesim asm`: text to machine words.

use super::target::{Target, WaveSize};
use crate::arch::Arch;
use crate::asm::program::{self, LineError, Program};
use crate::asm::{Options, object};
use anyhow::Context as _;
use serde_json::json;
use std::io::Write;
use std::path::PathBuf;

/// Assemble instructions (LLVM's AMDGPU syntax) to machine words or a code object
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  echo 'v_add_f32 v0, v1, v2' | wavesim asm --mcpu gfx1100 --show-encoding -
  wavesim asm --mcpu gfx1201 kernel.s -o kernel.co

A file with an .amdhsa_kernel block becomes a code object; any other file's output is the raw bytes of .text.
Without --arch or --mcpu the file's .amdgcn_target says the processor.")]
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
    let bytes = super::read_input(&args.file)?;
    let text = String::from_utf8(bytes).context("the input is not text")?;
    let extension = args.file.extension().and_then(|e| e.to_str());
    let by_name = || Arch::from_extension(extension?);
    let arch = args.target.arch().or_else(by_name).or_else(|| named_target(&text)).unwrap_or(Arch::Rdna3);
    let wave = args.wave.wave.or_else(|| named_wave(&text)).unwrap_or(32);
    let options = Options::new(arch).wave(wave);
    let (mut program, mut errors) = program::read(&text, &options);
    let mut image = None;
    if program.kernels().next().is_some() && errors.is_empty() {
        match object::write(&mut program, &options) {
            Ok(bytes) => image = Some(bytes),
            Err(more) => errors.extend(more),
        }
    } else {
        errors.extend(program.link(&options));
    }
    errors.sort_by_key(|e| e.line);
    if args.json {
        json_lines(&program, &errors, out)?;
    } else {
        let name = super::input_name(&args.file);
        for e in &errors {
            eprintln!("{}", rendered(&name, &text, e));
        }
        if args.show_encoding || args.output.is_none() {
            listing(&program, out)?;
        }
    }
    if !errors.is_empty() {
        return Ok(super::BAD_INPUT);
    }
    if let Some(path) = &args.output {
        let bytes = image.unwrap_or_else(|| {
            program.sections.iter().find(|s| s.name == ".text").map(|s| s.bytes.clone()).unwrap_or_default()
        });
        std::fs::write(path, bytes).with_context(|| path.display().to_string())?;
    }
    Ok(super::OK)
}

/// The architecture that `.amdgcn_target` names.
fn named_target(text: &str) -> Option<Arch> {
    let line = text.lines().find_map(|l| l.trim_start().strip_prefix(".amdgcn_target"))?;
    let name = line.trim().trim_matches('"').rsplit_once("--")?.1.split(':').next()?;
    Arch::from_mcpu(name)
}

/// The wave size that kernel descriptors of the file name.
fn named_wave(text: &str) -> Option<u32> {
    let line = text.lines().find_map(|l| l.trim_start().strip_prefix(".amdhsa_wavefront_size32"))?;
    Some(if line.trim() == "0" { 64 } else { 32 })
}

/// Instructions and errors in the order of lines.
fn json_lines(program: &Program, errors: &[LineError], out: &mut dyn Write) -> anyhow::Result<()> {
    let failed = |line: usize| errors.iter().any(|e| e.line == line);
    let mut lines: Vec<(usize, serde_json::Value)> = errors
        .iter()
        .map(|e| (e.line, json!({"line": e.line, "error": e.error.to_string(), "column": e.column})))
        .collect();
    for listed in program.listing.iter().filter(|l| !failed(l.line)) {
        let words: Vec<String> = listed.words.iter().map(|w| format!("{w:08x}")).collect();
        lines.push((listed.line, json!({"line": listed.line, "text": listed.text, "words": words})));
    }
    lines.sort_by_key(|l| l.0);
    for (_, line) in lines {
        writeln!(out, "{line}")?;
    }
    Ok(())
}

/// As `llvm-mc -show-encoding` has it.
fn listing(program: &Program, out: &mut dyn Write) -> anyhow::Result<()> {
    for listed in &program.listing {
        let bytes: Vec<String> =
            listed.words.iter().flat_map(|w| w.to_le_bytes()).map(|b| format!("0x{b:02x}")).collect();
        writeln!(out, "{:<55} ; encoding: [{}]", listed.text, bytes.join(","))?;
    }
    Ok(())
}

/// `file:line:column: message` with the line and a caret.
pub(super) fn rendered(name: &str, text: &str, e: &LineError) -> String {
    let line = text.lines().nth(e.line.saturating_sub(1)).unwrap_or("");
    let width = e.error.span.end.saturating_sub(e.error.span.start).max(1);
    let width = width.min(line.chars().count().saturating_sub(e.column - 1).max(1));
    let gap = " ".repeat(e.column - 1);
    format!("{name}:{}:{}: error: {}\n  {line}\n  {gap}{}", e.line, e.column, e.error, "^".repeat(width))
}
