//! Waits that are stricter than the uses after them need, in straight-line code.

use super::{Code, Level, Remark};
use wavesim_inspect::check::wait_instruction;
use wavesim_isa::arch::facts::Counter;
use wavesim_machine::exec::effects::Class;

pub(super) fn check(code: &Code<'_>, (first, last): (usize, usize), out: &mut Vec<Remark>) {
    for index in first..=last {
        for (counter, limit) in &code.waits[index] {
            check_one(code, (first, last), index, (*counter, *limit as usize), out);
        }
    }
}

/// Checks one wait: the operations that it completes, of those that the block has issued, and what uses them before the
/// next wait for the same counter.
fn check_one(
    code: &Code<'_>,
    (first, last): (usize, usize),
    index: usize,
    (counter, limit): (Counter, usize),
    out: &mut Vec<Remark>,
) {
    // Scalar loads return in any order, so that only 0 waits for a particular one.
    let unordered =
        |at: usize| code.effects[at].class == Class::Smem || code.effects[at].class == Class::Flat;
    let counted: Vec<usize> = (first..index).filter(|at| code.issued[*at].contains(counter)).collect();
    if counted.len() <= limit || counted.iter().any(|at| unordered(*at)) {
        return;
    }
    // Operations that an earlier wait has completed are not outstanding.
    let earlier = (first..index).rev().find_map(|at| {
        let wait = code.waits[at].iter().find(|wait| wait.0 == counter)?;
        Some((at, wait.1 as usize))
    });
    let complete =
        earlier.map_or(0, |(at, left)| counted.iter().filter(|op| **op < at).count().saturating_sub(left));
    let outstanding = &counted[complete..];
    if outstanding.len() <= limit {
        return;
    }
    let until = (index + 1..=last).find(|at| code.waits[*at].iter().any(|wait| wait.0 == counter));
    // Without another wait in the block, code after it may rely on this one.
    let Some(until) = until else { return };
    let completed = &outstanding[..outstanding.len() - limit];
    let needed = completed.iter().rposition(|op| {
        let written = code.registers(*op, true);
        // The order of stores, of copies to LDS and of what others see may matter to other waves.
        if !code.effects[*op].returns || written.is_empty() || code.effects[*op].loads_to_lds() {
            return true;
        }
        (index + 1..=until).any(|at| {
            let uses = [false, true].into_iter().flat_map(|write| code.registers(at, write));
            uses.into_iter().any(|register| written.contains(&register))
        })
    });
    let enough = outstanding.len() - needed.map_or(0, |position| position + 1);
    if enough > limit {
        let message = format!(
            "`{}` waits for operations that nothing uses before the next wait",
            code.program.text(index)
        );
        let help = Some(format!("`{}` is enough", wait_instruction(counter, enough)));
        out.push(Remark { rule: "strict-wait", level: Level::Warning, index: Some(index), message, help });
    }
}
