//! Clauses: memory instructions that the hardware issues without others in between. A clause ends early, or is
//! undefined, if another kind of instruction is in it (RDNA3 manual, *S_CLAUSE*; LLVM, `SIInsertHardClauses`).

use isa_spec::pcode::builtins::Control;
use wavesim_isa::relative::VGPR_MSBS;
use wavesim_machine::exec::effects::{Class, Effects};
use wavesim_machine::exec::program::Program;

/// The operand type of the length of a clause, by which the description marks the instruction that begins one.
const LENGTH: &str = "OPR_CLAUSE";

/// The kinds of clauses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ClauseKind {
    Scalar,
    Vector,
    Lds,
}

fn kind(effects: &Effects) -> Option<ClauseKind> {
    Some(match effects.class {
        Class::Smem => ClauseKind::Scalar,
        Class::Vmem | Class::Flat | Class::Scratch => ClauseKind::Vector,
        Class::Lds => ClauseKind::Lds,
        _ => return None,
    })
}

/// A clause, as the instruction that begins it defines it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Clause {
    /// Instructions that follow.
    pub length: usize,
    /// Instructions after which other waves may issue in between; 0 if they may not (RDNA3 manual, *Instruction Clauses*).
    pub part: usize,
}

/// Returns the clause that an instruction begins.
pub fn clause(program: &Program, index: usize) -> Option<Clause> {
    let table = program.arch.table();
    let inst = &program.insts[index];
    let mut operands = table.signatures[table.entries[inst.entry as usize].sig as usize].iter();
    if !operands.any(|o| table.operand_types[o.ty as usize].name == LENGTH) {
        return None;
    }
    let immediate = inst.field(table, "SIMM16").unwrap_or(0) as usize;
    Some(Clause { length: immediate % 64 + 1, part: immediate >> 8 & 15 })
}

/// Returns the instructions that do not belong in the clause in which they are, each with a message.
pub(super) fn intruders(program: &Program, effects: &[Effects]) -> Vec<(usize, String)> {
    let mut out = Vec::new();
    for begin in 0..effects.len() {
        let Some(Clause { length, .. }) = clause(program, begin) else { continue };
        let members = (begin + 1..effects.len()).take(length);
        let mut first = None;
        for at in members {
            // Hints are allowed, waits are not. LLVM also places S_SET_VGPR_MSB in clauses.
            let extends = program.arch.facts().vgprs.msbs && effects[at].mode == VGPR_MSBS;
            if extends || effects[at].calls.contains(&Control::Nop) {
                continue;
            }
            let own = kind(&effects[at]);
            if own.is_none() || first.is_some_and(|first| own != first) {
                let what = if own.is_none() { "is not a memory instruction" } else { "is of another kind" };
                let place = program.place(program.pcs[begin]);
                out.push((
                    at,
                    format!(
                        "the instruction is in the clause of {length} that begins at {place}, but {what}"
                    ),
                ));
                break;
            }
            first.get_or_insert(own);
        }
    }
    out
}
