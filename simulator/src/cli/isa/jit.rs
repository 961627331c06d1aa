//! How the compiled engine executes instructions: `wavesim isa jit`.

use super::coverage;
use crate::cli::dump_jit::write_part;
use crate::example;
use isa_spec::tables::EntryId;
use std::collections::BTreeSet;
use std::fmt::Write as _;
use wavesim_asm::{NoSymbols, Options, describe};
use wavesim_isa::arch::Arch;
use wavesim_isa::inst::Inst;
use wavesim_jit::{list, selections};
use wavesim_machine::exec::program::Program;
use wavesim_machine::isa;

/// Returns how an instruction is executed, and its code: either one by its name, with example operands, or
/// one with its own operands. Architectures with the same answer are listed together.
pub(super) fn one(archs: &[Arch], text: &str) -> Result<String, String> {
    let written = text.trim().contains(char::is_whitespace);
    let examples = if written { assembled(archs, text)? } else { named(archs, text)? };
    let mut answers: Vec<(Vec<&str>, String)> = Vec::new();
    for (arch, example) in examples {
        let answer = match example {
            Ok(inst) => listing(arch, inst)?,
            Err(why) => format!("call: {why}\n"),
        };
        match answers.iter_mut().find(|(_, other)| *other == answer) {
            Some((archs, _)) => archs.push(arch.name()),
            None => answers.push((vec![arch.name()], answer)),
        }
    }
    let mut out = String::new();
    for (n, (archs, answer)) in answers.iter().enumerate() {
        let _ = write!(out, "{}// {}\n{answer}", if n > 0 { "\n" } else { "" }, archs.join(", "));
    }
    Ok(out)
}

/// An example of an instruction, or why there is none.
type Example = Result<Inst, String>;

fn assembled(archs: &[Arch], text: &str) -> Result<Vec<(Arch, Example)>, String> {
    let mut failed = None;
    let mut all = Vec::new();
    for &arch in archs {
        match wavesim_asm::parse(text, &Options::new(arch), &NoSymbols) {
            Ok(parsed) => all.push((arch, Ok(parsed.inst))),
            Err(e) => failed = failed.or(Some(format!("{}: {e}", arch.name()))),
        }
    }
    match failed {
        Some(message) if all.is_empty() => Err(message),
        _ => Ok(all),
    }
}

fn named(archs: &[Arch], name: &str) -> Result<Vec<(Arch, Example)>, String> {
    let found = describe::find(archs, name)?;
    Ok(found.into_iter().map(|(arch, at)| (arch, of_instruction(arch, at))).collect())
}

/// Returns an example of an instruction of an architecture's table.
fn of_instruction(arch: Arch, index: usize) -> Example {
    let table = arch.table();
    let name = table.instructions[index].name;
    if isa::number(arch, index).is_none() {
        return Err(format!("it has no semantics: {}", coverage::reason(name)));
    }
    let entries =
        (0..table.entries.len() as EntryId).filter(|id| table.entries[*id as usize].inst as usize == index);
    let example = entries.filter_map(|id| example::instruction(arch, id)).next();
    example.ok_or_else(|| "no legal operands are known".to_string())
}

/// Returns a program of one instruction.
fn program(arch: Arch, inst: Inst) -> Result<Program, String> {
    let mut program = Program::new(arch, vec![(inst, 0)]).map_err(|e| e.to_string())?;
    program.wave_size = arch.facts().wave_sizes[0];
    Ok(program.with_syntax(wavesim_asm::print::syntax))
}

/// Returns the ways in which the operations of an instruction are executed.
fn ways(program: &Program) -> String {
    let own = selections(program).into_iter().filter(|selection| selection.instruction == 0);
    let mut all: Vec<String> = own.map(|selection| selection.to_string()).collect();
    all.dedup();
    all.join(", ")
}

fn listing(arch: Arch, inst: Inst) -> Result<String, String> {
    let program = program(arch, inst)?;
    let unit = list(&program, program.wave_size).map_err(|e| format!("--engine jit: {e}"))?;
    let mut out = Vec::new();
    let write = |out: &mut Vec<u8>| -> std::io::Result<()> {
        use std::io::Write as _;
        writeln!(out, "{}", program.text(0))?;
        writeln!(out, "{}", ways(&program))?;
        if selections(&program).iter().any(|selection| selection.instruction == 0 && selection.call.is_some())
        {
            return Ok(());
        }
        if let Some(unit) = &unit {
            write_part("function", &unit.listing.ir, out)?;
            write_part("host code", &unit.listing.host, out)?;
        }
        Ok(())
    };
    write(&mut out).map_err(|e| e.to_string())?;
    Ok(String::from_utf8_lossy(&out).into_owned())
}

/// Returns a line for each instruction: how the compiled engine executes it, and why its handler is called.
pub(super) fn all(archs: &[Arch]) -> Result<String, String> {
    let mut out = String::new();
    for &arch in archs {
        let table = arch.table();
        let width = table.instructions.iter().map(|inst| inst.name.len()).max().unwrap_or(0);
        let (mut called, mut reasons) = (0, BTreeSet::new());
        for (at, inst) in table.instructions.iter().enumerate() {
            if archs.len() > 1 {
                let _ = write!(out, "{:8}", arch.name());
            }
            let way = match of_instruction(arch, at) {
                Ok(inst) => ways(&program(arch, inst)?),
                Err(why) => format!("call: {why}"),
            };
            if let Some((_, why)) = way.split_once("call: ") {
                called += 1;
                reasons.insert(why.to_string());
            }
            let _ = writeln!(out, "{:width$}  {way}", inst.name.to_lowercase());
        }
        let _ = writeln!(
            out,
            "{}: {} of {} instructions are compiled; the handlers of {called} are called, for {} reasons",
            arch.name(),
            table.instructions.len() - called,
            table.instructions.len(),
            reasons.len()
        );
    }
    Ok(out)
}
