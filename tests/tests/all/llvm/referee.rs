//! LLVM's tools: their names, running them, and parsing their output.

use std::fmt::Write as _;
use std::io::Write as _;
use std::process::{Command, Stdio};
use wavesim::arch::Arch;
use wavesim::asm::{self, NoSymbols, Options, print};
use wavesim::codec::{decode, encode, words};

/// Returns the architectures that LLVM supports, or the one that `WAVESIM_ARCH` names.
pub fn refereed() -> Vec<Arch> {
    let chosen = std::env::var("WAVESIM_ARCH").ok();
    let is_chosen = |arch: &Arch| match &chosen {
        Some(name) => arch.name() == name,
        None => true,
    };
    Arch::AMD.into_iter().filter(is_chosen).collect()
}

/// Returns the `llvm-mc` that supports an architecture. For CDNA 4 and 5 it is LLVM 22's: the one that
/// `WAVESIM_LLVM_MC_GFX950` names, the one that `scripts/install-llvm22.sh` has unpacked, or an installed one.
pub fn tool(arch: Arch) -> String {
    if !matches!(arch, Arch::Cdna4 | Arch::Cdna5) {
        return "llvm-mc-19".to_string();
    }
    let variable = |name| std::env::var(name).ok().filter(|value| !value.is_empty());
    let unpacked = || {
        let cache = variable("XDG_CACHE_HOME").or_else(|| Some(variable("HOME")? + "/.cache"))?;
        let file = cache + "/wavesim/llvm-22/bin/llvm-mc-22";
        std::path::Path::new(&file).exists().then_some(file)
    };
    variable("WAVESIM_LLVM_MC_GFX950").or_else(unpacked).unwrap_or_else(|| "llvm-mc-22".to_string())
}

/// Assembles an instruction.
pub fn words_of(text: &str, options: &Options) -> Result<Vec<u32>, String> {
    let parsed = asm::parse(text, options, &NoSymbols).map_err(|e| e.to_string())?;
    encode(options.arch, &parsed.inst).map(|w| w.to_vec()).map_err(|e| e.to_string())
}

/// Disassembles an instruction.
pub fn text_of(words: &[u32], options: &Options) -> Result<String, String> {
    decode(options.arch, words).map(|inst| print::instruction(&inst, options)).map_err(|e| e.to_string())
}

/// Returns the processor whose name LLVM gets.
pub fn processor(arch: Arch) -> &'static str {
    match arch {
        Arch::Rdna35 => "gfx1150",
        Arch::Rdna4 => "gfx1201",
        Arch::Cdna3 => "gfx942",
        Arch::Cdna4 => "gfx950",
        Arch::Cdna5 => "gfx1250",
        _ => "gfx1100",
    }
}

/// Runs the assembler or, with `-disassemble`, the disassembler of LLVM. Returns its output, or `None` if it is not
/// installed.
pub fn llvm(arch: Arch, args: &[&str], input: String) -> Option<String> {
    llvm_for(processor(arch), arch, args, input)
}

/// As [`llvm`], for a processor of the architecture.
pub fn llvm_for(processor: &str, arch: Arch, args: &[&str], input: String) -> Option<String> {
    let mut child = Command::new(tool(arch))
        .args(["-triple=amdgcn", "-show-encoding", &format!("-mcpu={processor}")])
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .ok()?;
    let mut stdin = child.stdin.take()?;
    let writer = std::thread::spawn(move || stdin.write_all(input.as_bytes()));
    let output = child.wait_with_output().ok()?;
    let _ = writer.join();
    Some(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Returns the `s_nop N` that separates inputs, so that replies can be matched to them.
pub fn mark(index: usize) -> u32 {
    0xbf80_0000 | index as u32 & 0xffff
}

/// LLVM's text and words of an instruction, unless LLVM rejects it.
pub type Reply = Option<(String, Vec<u32>)>;

/// Disassembles the words of each instruction by itself. Returns LLVM's text and words of each, or `None` if
/// LLVM is not installed.
pub fn disassemble<'a>(arch: Arch, list: impl ExactSizeIterator<Item = &'a [u32]>) -> Option<Vec<Reply>> {
    disassemble_for(processor(arch), arch, &[], list)
}

/// As [`disassemble`], for a processor of the architecture and with other options of `llvm-mc`.
pub fn disassemble_for<'a>(
    processor: &str,
    arch: Arch,
    args: &[&str],
    list: impl ExactSizeIterator<Item = &'a [u32]>,
) -> Option<Vec<Reply>> {
    let (mut input, count) = (String::new(), list.len());
    for (at, words) in list.enumerate() {
        for words in [words, &[mark(at)]] {
            let bytes: Vec<String> =
                words.iter().flat_map(|w| w.to_le_bytes()).map(|b| format!("0x{b:02x}")).collect();
            // LLVM continues after the bracket, whatever the bytes in it are.
            writeln!(input, "[{}]", bytes.join(" ")).ok()?;
        }
    }
    let args = [&["-disassemble"], args].concat();
    Some(replies(&llvm_for(processor, arch, &args, input)?, count))
}

/// Parses LLVM's text and words for each input.
pub fn replies(output: &str, count: usize) -> Vec<Reply> {
    let mut out = Vec::new();
    let mut last: Option<(String, Vec<u32>)> = None;
    for line in output.lines() {
        let Some((text, bytes)) = line.split_once("; encoding: [") else { continue };
        let bytes = bytes.trim_end_matches(']').split(',');
        let bytes: Option<Vec<u8>> =
            bytes.map(|b| u8::from_str_radix(b.trim().trim_start_matches("0x"), 16).ok()).collect();
        let Some(bytes) = bytes else { continue };
        let words = words(&bytes);
        if words == [mark(out.len())] {
            out.push(last.take());
        } else {
            let text = text.split("//").next().unwrap_or("").split_whitespace().collect::<Vec<_>>().join(" ");
            last = Some((text, words));
        }
    }
    out.resize(count, None);
    out
}
