//! Instructions of machines with a description of their own
//! ([`Assembly`](wavesim_isa::arch::machine::Assembly)): mnemonic and operands. The tables describe the operands:
//! registers by the names of the operand type, numbers (`OPR_IMM…`) by the width of their field. A label used
//! as a number is the index of an instruction, or the distance to it if the type is a target
//! (`OPR_IMM_LABEL`).

mod matcher;
pub mod syntax;

pub use matcher::match_operands;
pub use syntax::number;

use super::error::AsmError;
use syntax::{Part, Syntax};
use wavesim_isa::arch::Arch;
use wavesim_isa::arch::machine::Machine;
use wavesim_isa::inst::Inst;
use wavesim_isa::operand;

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
    match_operands(&syntax, &entries, &tokens, here, label)
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
