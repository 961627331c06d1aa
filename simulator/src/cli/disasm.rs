//! `wavesim disasm`: disassembles machine words and code objects.

use super::input::names_object;
use super::output::emit;
use super::target::{Target, WaveSize};
use anyhow::{Context as _, bail};
use object::{Object, ObjectSection, ObjectSymbol, SectionKind};
use serde_json::json;
use std::collections::BTreeMap;
use std::io::Write;
use std::path::PathBuf;
use wavesim_asm::listing::Listing;
use wavesim_asm::{Options, print};
use wavesim_files as files;
use wavesim_isa::codec::{decode, words};
use wavesim_loader::code_object::{self, LoadError};

/// Disassemble machine words or a code object (LLVM's AMDGPU syntax)
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  wavesim disasm kernel.co
  wavesim disasm --offsets --words kernel.co
  wavesim disasm --mcpu gfx1201 kernels.bundle
  echo 0301047e | wavesim disasm --mcpu gfx1100 --hex -")]
pub struct DisasmArgs {
    /// Raw words, a code object, a bundle of code objects, or `-` for standard input
    pub file: PathBuf,
    #[command(flatten)]
    pub target: Target,
    #[command(flatten)]
    pub wave: WaveSize,
    /// Read text: one instruction per line, its bytes in hexadecimal, in memory order
    #[arg(long)]
    pub hex: bool,
    /// Print JSON Lines, one object per instruction
    #[arg(long)]
    pub json: bool,
    /// Print the address of each instruction
    #[arg(long)]
    pub offsets: bool,
    /// Print the words of each instruction
    #[arg(long)]
    pub words: bool,
}

pub fn run(args: &DisasmArgs, out: &mut dyn Write) -> anyhow::Result<u8> {
    let bytes = files::read(&args.file)?;
    let wave = args.wave.wave.unwrap_or(args.target.arch_or_default().wave_sizes()[0]);
    if args.hex {
        let name = super::input_name(&args.file);
        let text = String::from_utf8(bytes).map_err(|_| anyhow::anyhow!("{name}: not text (UTF-8)"))?;
        let options = Options::new(args.target.arch_or_default()).wave(wave);
        return hex_lines(&name, &text, &options, args.json, out);
    }
    if code_object::is_object(&bytes) || names_object(&args.file) {
        return code_object(args, &bytes, out).with_context(|| super::input_name(&args.file));
    }
    if bytes.is_empty() {
        bail!("{}: the file is empty", super::input_name(&args.file));
    }
    if let Some(what) = not_words(&bytes) {
        bail!("{}: this is {what}; expected raw words or a code object", super::input_name(&args.file));
    }
    let options = Options::new(args.target.arch_or_default()).wave(wave);
    let all = words(&bytes);
    if !(0..all.len()).any(|at| decode(options.arch, &all[at..]).is_ok()) {
        let (name, arch) = (super::input_name(&args.file), options.arch.name());
        bail!("{name}: not a code object, and no word of it is an instruction of {arch}");
    }
    listing(args, &options, 0, &bytes, &BTreeMap::new(), out)
}

fn hex_lines(
    name: &str,
    text: &str,
    options: &Options,
    json: bool,
    out: &mut dyn Write,
) -> anyhow::Result<u8> {
    let mut code = super::OK;
    for (at, line) in text.lines().enumerate() {
        if line.trim().is_empty() {
            continue;
        }
        let result = hex_line(line, options);
        match (result, json) {
            (Ok((text, size)), true) => {
                writeln!(out, "{}", json!({"line": at + 1, "text": text, "size": size}))?;
            }
            (Ok((text, _)), false) => writeln!(out, "{text}")?,
            (Err(error), true) => {
                code = super::BAD_INPUT;
                writeln!(out, "{}", json!({"line": at + 1, "error": error}))?;
            }
            (Err(error), false) => {
                code = super::BAD_INPUT;
                emit(format!("{name}:{}: error: {error}", at + 1));
            }
        }
    }
    Ok(code)
}

/// Disassembles one instruction. Returns its text and its size in bytes.
fn hex_line(line: &str, options: &Options) -> Result<(String, usize), String> {
    let bytes = hex_bytes(line)?;
    if !bytes.len().is_multiple_of(4) || bytes.is_empty() {
        return Err(format!("{} bytes are not a multiple of 4", bytes.len()));
    }
    let inst = decode(options.arch, &words(&bytes)).map_err(|e| e.to_string())?;
    let size = inst.size as usize;
    if size != bytes.len() {
        return Err(format!("{} bytes follow the instruction", bytes.len() - size));
    }
    Ok((print::instruction(&inst, options), size))
}

fn hex_bytes(line: &str) -> Result<Vec<u8>, String> {
    let mut digits = Vec::new();
    for (at, c) in line.char_indices() {
        match c.to_digit(16) {
            Some(digit) => digits.push(digit as u8),
            None if c.is_whitespace() || c == ',' => {}
            None => return Err(format!("column {}: `{c}` is not a hex digit", at + 1)),
        }
    }
    if !digits.len().is_multiple_of(2) {
        return Err("the number of hex digits is odd".to_string());
    }
    Ok(digits.chunks(2).map(|d| d[0] << 4 | d[1]).collect())
}

/// Disassembles a code object, or the selected one of a bundle, with its symbols as labels. The object may be
/// unlinked.
fn code_object(args: &DisasmArgs, bytes: &[u8], out: &mut dyn Write) -> anyhow::Result<u8> {
    let target_request = args.target.target_request();
    let bytes = &code_object::open(bytes, &target_request)?;
    let file = object::File::parse(&bytes[..]).map_err(LoadError::from)?;
    let arch = code_object::arch_of(&file)?;
    if target_request.arch.is_some_and(|a| a != arch) {
        bail!(LoadError::Target { object: arch.name(), requested: target_request.to_string() });
    }
    let wave = args.wave.wave.unwrap_or_else(|| wave_of(&file));
    let options = Options::new(arch).wave(wave);
    let mut code = super::OK;
    for section in file.sections().filter(|s| s.kind() == SectionKind::Text) {
        let mut labels = BTreeMap::new();
        for symbol in file.dynamic_symbols().chain(file.symbols()) {
            if let Ok(name) = symbol.name()
                && !name.is_empty()
                && symbol.section_index() == Some(section.index())
            {
                labels.insert(symbol.address(), name.to_string());
            }
        }
        let data = section.data().with_context(|| section.name().unwrap_or("?").to_string())?;
        code = code.max(listing(args, &options, section.address(), data, &labels, out)?);
    }
    Ok(code)
}

/// Returns the wave size: 64 if every kernel descriptor specifies it, else 32.
fn wave_of(file: &object::File) -> u32 {
    let descriptors = file.dynamic_symbols().chain(file.symbols());
    let descriptors = descriptors.filter(|s| s.name().is_ok_and(|n| n.ends_with(".kd")));
    let wave = |symbol: object::Symbol| {
        let section = file.section_by_index(symbol.section_index()?).ok()?;
        let at = usize::try_from(symbol.address().checked_sub(section.address())?).ok()?;
        let kd = section.data().ok()?.get(at..at.checked_add(64)?)?;
        Some(if kd[57] & 4 != 0 { 32 } else { 64 })
    };
    let waves: Vec<u32> = descriptors.filter_map(wave).collect();
    if !waves.is_empty() && waves.iter().all(|w| *w == 64) { 64 } else { 32 }
}

/// Recognises files that are not raw words, which are text or have a known format. Returns a description of
/// the file.
fn not_words(bytes: &[u8]) -> Option<String> {
    let printable = |b: &u8| b.is_ascii_graphic() || b.is_ascii_whitespace();
    if !bytes.is_empty() && bytes.iter().all(printable) {
        return Some("text (`wavesim asm` assembles, --hex reads hex digits)".to_string());
    }
    code_object::describe_foreign(bytes)
}

/// Prints every instruction of `bytes`, which start at address `base`. Words that do not decode are printed
/// as data.
fn listing(
    args: &DisasmArgs,
    options: &Options,
    base: u64,
    bytes: &[u8],
    symbols: &BTreeMap<u64, String>,
    out: &mut dyn Write,
) -> anyhow::Result<u8> {
    let words = words(bytes);
    let symbols = symbols.iter().map(|(at, name)| (*at, name.clone()));
    let mut code = super::OK;
    for line in Listing::new(*options, base, &words, symbols).lines() {
        let own: Vec<String> = line.words.iter().map(|w| format!("{w:08x}")).collect();
        if args.json {
            let mut object = json!({"address": format!("{:x}", line.address), "text": line.text, "size": 4 * own.len(), "words": own});
            if let Some(error) = line.error {
                code = super::BAD_INPUT;
                object["error"] = json!(error.to_string());
            }
            writeln!(out, "{object}")?;
            continue;
        }
        if let Some(label) = line.label {
            writeln!(out, "{label}:")?;
        }
        let mut comment = String::new();
        if args.offsets {
            comment += &format!(" {:012x}:", line.address);
        }
        if args.words {
            comment += &format!(" {}", own.join(" "));
        }
        match comment.is_empty() {
            true => writeln!(out, "\t{}", line.text)?,
            false => writeln!(out, "\t{:<55} //{comment}", line.text)?,
        }
    }
    if !bytes.len().is_multiple_of(4) {
        emit(format!("error: {} bytes after the last whole word", bytes.len() % 4));
        code = super::BAD_INPUT;
    }
    Ok(code)
}
