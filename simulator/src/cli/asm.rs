//! `wavesim asm`: assembles text to machine words or a code object.

use super::input::FileArgs;
use super::output::emit;
use super::target::{Target, WaveSize};
use anyhow::{Context as _, bail};
use serde_json::json;
use std::collections::HashSet;
use std::io::Write;
use std::path::PathBuf;
use wavesim_assembler::program::{LineError, Memory, Program};
use wavesim_assembler::{object, relocatable};
use wavesim_files as files;
use wavesim_isa::arch::Arch;
use wavesim_loader::assembly::AssemblyOptions;
use wavesim_loader::code_object::TEXT;

/// Undefined symbols that a note names.
const SHOWN_SYMBOLS: usize = 10;

/// Assemble instructions (LLVM's AMDGPU syntax) to machine words or a code object
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  echo 'v_add_f32 v0, v1, v2' | wavesim asm --mcpu gfx1100 --show-encoding -
  wavesim asm --mcpu gfx1201 kernel.s -o kernel.co

A file with an .amdhsa_kernel block is assembled to a code object, any other file
to the raw bytes of .text. Without --arch or --mcpu, .amdgcn_target in the file
selects the processor.")]
pub struct AsmArgs {
    /// Assembly file, or `-` for standard input
    pub file: PathBuf,
    #[command(flatten)]
    pub target: Target,
    #[command(flatten)]
    pub wave: WaveSize,
    /// Folder that `.include` searches after the folder of the file (repeatable)
    #[arg(short = 'I', value_name = "DIR")]
    pub include: Vec<PathBuf>,
    #[command(flatten)]
    pub files: FileArgs,
    /// Write the code object, or the raw bytes of .text, to this file
    #[arg(short, long)]
    pub output: Option<PathBuf>,
    /// Print each instruction with its bytes
    #[arg(long)]
    pub show_encoding: bool,
    /// Print JSON Lines, one object per instruction
    #[arg(long)]
    pub json: bool,
}

pub fn run(args: &AsmArgs, out: &mut dyn Write) -> anyhow::Result<u8> {
    let bytes = files::read(&args.file)?;
    let name = super::input_name(&args.file);
    let text = String::from_utf8(bytes).map_err(|_| anyhow::anyhow!("{name}: not text (UTF-8)"))?;
    let mut lines = text.lines().map(str::trim);
    if lines.find(|line| !line.is_empty() && !line.starts_with([';', '#', '/'])) == Some("---") {
        bail!(
            "{name}: this is a text kernel, which `wavesim run` executes; `asm` assembles files without a header"
        );
    }
    let extension = args.file.extension().and_then(|e| e.to_str());
    let by_name = || Arch::from_extension(extension?);
    let reading = AssemblyOptions {
        arch: args.target.arch().or_else(by_name),
        wave: args.wave.wave,
        defines: Vec::new(),
        folders: super::input::folders(&args.file, &args.include),
        files: args.files.access()?,
    };
    let (mut program, options, mut errors) = reading.read(&name, &text);
    let mut image = None;
    let undefined = program.undefined_symbols();
    if !undefined.is_empty() && errors.is_empty() && args.output.is_some() {
        match relocatable::write(&mut program, &options) {
            Ok(bytes) => {
                let mut names: Vec<&str> = undefined.iter().map(String::as_str).take(SHOWN_SYMBOLS).collect();
                let more = format!("{} more", undefined.len() - names.len());
                if undefined.len() > names.len() {
                    names.push(&more);
                }
                let names = super::target::list(&names, "and");
                emit(format!(
                    "note: {name} does not define {names}: the output is a relocatable object, to be linked with ld.lld"
                ));
                image = Some(bytes);
            }
            Err(more) => errors.extend(more),
        }
    } else if program.kernels().next().is_some() && errors.is_empty() {
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
        for e in &errors {
            emit(e);
        }
        if args.show_encoding || args.output.is_none() {
            listing(&program, out)?;
        }
    }
    if !errors.is_empty() {
        return Ok(super::BAD_INPUT);
    }
    if let Some(path) = &args.output {
        if image.is_none() {
            check_raw(&program)?;
        }
        let bytes = image.unwrap_or_else(|| {
            program.sections.iter().find(|s| s.name == TEXT).map(|s| s.bytes.clone()).unwrap_or_default()
        });
        files::write(path, |out| out.write_all(&bytes)).with_context(|| path.display().to_string())?;
    }
    Ok(super::OK)
}

/// Rejects programs that raw output cannot represent, which are those with relocations. Reports sections that
/// are omitted.
fn check_raw(program: &Program) -> anyhow::Result<()> {
    const CODE_OBJECT: &str = "with an .amdhsa_kernel block the output is a code object";
    if let Some(relocation) = program.relocations.first() {
        let section = &program.sections[relocation.section].name;
        bail!(
            "{section}+0x{:x} needs a relocation, which raw output cannot have; {CODE_OBJECT}",
            relocation.offset
        );
    }
    for section in program.sections.iter().filter(|s| s.name != TEXT && s.memory != Memory::None) {
        if !section.bytes.is_empty() {
            emit(format!(
                "note: {} is not written, as raw output has only {TEXT}; {CODE_OBJECT}",
                section.name
            ));
        }
    }
    Ok(())
}

/// Writes instructions and errors in line order.
fn json_lines(program: &Program, errors: &[LineError], out: &mut dyn Write) -> anyhow::Result<()> {
    let failed: HashSet<usize> = errors.iter().map(|e| e.line).collect();
    let mut lines: Vec<(usize, serde_json::Value)> = errors
        .iter()
        .map(|e| (e.line, json!({"line": e.line, "error": e.error.to_string(), "column": e.column})))
        .collect();
    for listed in program.listing.iter().filter(|l| !failed.contains(&l.line)) {
        let words: Vec<String> = listed.words.iter().map(|w| format!("{w:08x}")).collect();
        lines.push((listed.line, json!({"line": listed.line, "text": listed.text(), "words": words})));
    }
    lines.sort_by_key(|l| l.0);
    for (_, line) in lines {
        writeln!(out, "{line}")?;
    }
    Ok(())
}

/// Writes the format of `llvm-mc -show-encoding`.
fn listing(program: &Program, out: &mut dyn Write) -> anyhow::Result<()> {
    for listed in &program.listing {
        let bytes: Vec<String> =
            listed.words.iter().flat_map(|w| w.to_le_bytes()).map(|b| format!("0x{b:02x}")).collect();
        writeln!(out, "{:<55} ; encoding: [{}]", listed.text(), bytes.join(","))?;
    }
    Ok(())
}
