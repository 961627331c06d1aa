//! Operations in LDS and scratch that may take effect at once although they are to be delayed: if no other wave runs before
//! the wait that demands them, only their own wave could see the difference, and it does not look.

use super::{Inst, Operation, Path};
use isa_spec::pcode::builtins::Control;
use wavesim_machine::exec::effects::{Effects, Use};
use wavesim_machine::exec::program::Program;

/// Instructions between an operation and its wait, at most.
const MOST: usize = 48;

/// Returns, by instruction, the distance to the wait for all operations of the counter of its operation; 0 if other
/// instructions may come before, or one of those in between uses the results.
pub(super) fn distances(program: &Program, effects: &[Effects], insts: &[Inst]) -> Vec<u8> {
    let of = |(index, inst): (usize, &Inst)| match inst {
        Inst::Operation(operation) => distance(program, effects, insts, index, operation).unwrap_or(0),
        _ => 0,
    };
    insts.iter().enumerate().map(of).collect()
}

fn distance(
    program: &Program,
    effects: &[Effects],
    insts: &[Inst],
    index: usize,
    operation: &Operation,
) -> Option<u8> {
    if !matches!(operation.path, Path::Lds | Path::Scratch) {
        return None;
    }
    for next in index + 1..insts.len().min(index + MOST) {
        // Code between two instructions that is none ends the run.
        if program.pcs[next] != program.pcs[next - 1] + program.insts[next - 1].size as u64 {
            return None;
        }
        match &insts[next] {
            Inst::Wait(waits) => {
                let own: Vec<u32> = waits
                    .iter()
                    .filter(|(counter, _)| operation.issue.counters.contains(*counter))
                    .map(|wait| wait.1)
                    .collect();
                match own[..] {
                    [] => continue,
                    [0] => return u8::try_from(next - index).ok(),
                    _ => return None,
                }
            }
            Inst::WaitAll | Inst::Serial => return u8::try_from(next - index).ok(),
            Inst::ComputedWait | Inst::Merge(_) | Inst::Invalidate(_) => return None,
            Inst::Plain | Inst::Operation(_) => {}
        }
        let flags = program.insts[next].instruction(program.arch.table()).flags();
        let effects = &effects[next];
        let harmless = |call: &Control| matches!(call, Control::Nop | Control::WaitAlu);
        if flags.branch || flags.terminator || !effects.calls.iter().all(harmless) {
            return None;
        }
        let used = || effects.reads.iter().chain(&effects.writes);
        if operation.writes.iter().any(|own| used().any(|other| overlap(own, other))) {
            return None;
        }
    }
    None
}

/// Returns whether two uses may be of the same register.
fn overlap(a: &Use, b: &Use) -> bool {
    let relative = a.relative.is_some() || b.relative.is_some();
    let common = a.first < b.first + b.count && b.first < a.first + a.count;
    a.file == b.file && (relative || common)
}
