//! Assembler for machines with a description of their own
//! ([`Assembly`](wavesim_isa::arch::machine::Assembly)). A line holds one instruction (mnemonic and
//! operands), labels, a comment, or a directive for the launch size. The tables describe the operands:
//! registers by the names of the operand type, numbers (`OPR_IMM…`) by the width of their field. A label used
//! as a number is the index of an instruction, or the distance to it if the type is a target
//! (`OPR_IMM_LABEL`).

mod matcher;
mod reader;
mod syntax;

pub use syntax::number;

use super::Options;
use super::error::AsmError;
use super::program::LineError;
use reader::Reader;
use std::collections::HashMap;
use syntax::{Part, Syntax};
use wavesim_isa::arch::Arch;
use wavesim_isa::arch::machine::Machine;
use wavesim_isa::codec::encode;
use wavesim_isa::inst::Inst;
use wavesim_isa::operand;

/// A program that has been read.
#[derive(Debug, Default)]
pub struct Unit {
    /// The instructions with their line numbers, from 1.
    pub insts: Vec<(Inst, u32)>,
    /// Names and byte offsets of the labels, in source order.
    pub labels: Vec<(String, u64)>,
    /// Number of workgroups.
    pub groups: u32,
    /// Number of waves per workgroup.
    pub waves: u32,
}

/// Reads a program. Reading continues after errors; the returned unit then holds everything that could be
/// read.
pub fn read(text: &str, arch: Arch, machine: &'static Machine) -> (Unit, Vec<LineError>) {
    let mut reader = Reader::new(arch, machine);
    for (number, line) in (1..).zip(text.lines()) {
        if let Err(error) = reader.line(number, line) {
            reader.errors.push(LineError::on_line(number, line, error));
        }
    }
    reader.finish()
}

/// Looks up the byte offset of a label; the error is a suggestion for a misspelt name.
pub type Labels<'l> = &'l dyn Fn(&str) -> Result<u64, Option<String>>;

/// Assembles one instruction without label and comment. `here` is its byte offset.
pub fn instruction(
    text: &str,
    arch: Arch,
    machine: &'static Machine,
    here: u64,
    label: Labels<'_>,
) -> Result<Inst, AsmError> {
    let syntax = Syntax::new(arch, machine);
    let tokens = syntax.tokens(text)?;
    let entries = syntax.entries(&tokens)?;
    syntax.match_operands(&entries, &tokens, here, label)
}

/// Prints an instruction; `label` replaces a branch's target.
pub fn print(inst: &Inst, arch: Arch, machine: &'static Machine, label: Option<&str>) -> String {
    let syntax = Syntax::new(arch, machine);
    let mut out = syntax.mnemonic(inst.instruction(arch.table()).name);
    for (at, part) in syntax.patterns(inst.entry)[0].iter().enumerate() {
        match part {
            Part::Punctuation(mark) => out.push(*mark),
            Part::Operand(operand, field) => {
                if at == 0 || matches!(syntax.patterns(inst.entry)[0][at - 1], Part::Punctuation(',')) {
                    out.push(' ');
                }
                out.push_str(&syntax.operand_text(operand, field, inst, label));
            }
        }
    }
    out
}

/// The distance of a branch's target from the end of the instruction in words; `None` if the target is not an
/// offset.
pub fn branch_words(inst: &Inst, arch: Arch, machine: &'static Machine) -> Option<i64> {
    let table = arch.table();
    let sig = table.signatures[inst.entry(table).sig as usize];
    let target = sig.iter().find(|o| table.operand_types[o.ty as usize].name == TARGET)?;
    let field = target.field? as usize;
    let bits = inst.encoding(table).fields[field].width();
    let bytes = operand::number(inst.fields[field], bits, true) as i64 * machine.pc_bytes as i64;
    Some((bytes - inst.size as i64) / 4)
}

/// The operand type of a distance to an instruction.
const TARGET: &str = "OPR_IMM_LABEL";

impl Unit {
    /// Converts to the representation of the LLVM front end: one section and its listing.
    pub fn program(&self, arch: Arch, machine: &'static Machine) -> super::program::Program {
        let table = arch.table();
        let label_at: HashMap<u64, &str> = self.labels.iter().map(|l| (l.1, l.0.as_str())).collect();
        let mut bytes = Vec::new();
        let mut listing = Vec::new();
        for (inst, line) in &self.insts {
            let here = bytes.len() as u64;
            let Ok(words) = encode(arch, inst) else { continue };
            bytes.extend(words.iter().flat_map(|w| w.to_le_bytes()));
            let target = branch_words(inst, arch, machine)
                .and_then(|words| label_at.get(&(here + inst.size as u64).wrapping_add_signed(4 * words)));
            let flags = &inst.instruction(table).flags();
            let label = target.filter(|_| flags.branch).copied();
            listing.push(super::program::Listed {
                line: *line as usize,
                section: 0,
                offset: here,
                inst: *inst,
                words,
                options: Options::new(arch),
                label: label.map(str::to_string),
            });
        }
        super::program::Program::of_text(arch, bytes, listing)
    }
}
