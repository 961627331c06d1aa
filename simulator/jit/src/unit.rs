//! What is compiled together: the blocks that can be reached from one place by jumps that are known.

use crate::emit::Machine;
use crate::plan::{self, Kind, Operations, once};
use isa_lower::ir::Stmt;
use isa_lower::visit::each_stmt;
use isa_spec::pcode::ir::State;
use std::collections::BTreeSet;
use wavesim_machine::exec::op::Op;

/// Operations of a unit at most: compiling it takes some milliseconds.
const LARGEST: usize = 1000;

/// Compiled operations in a block that ends the turn, below which entering and leaving code costs more than it saves.
const WORTH: usize = 8;

/// A block: operations that run one after the other. Only the last may jump.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Block {
    /// Number of its first operation.
    pub first: u32,
    /// After its last.
    pub end: u32,
    /// The operation that follows in the program.
    pub next: u32,
    /// It is worth to begin here: a few instructions before a barrier are not.
    pub entry: bool,
}

/// Blocks in the order of the program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unit {
    pub blocks: Vec<Block>,
}

/// The unit that begins at an operation. `taken` operations belong to others.
pub fn discover(
    start: u32,
    machine: &Machine<'_>,
    operations: &mut Operations,
    taken: impl Fn(u32) -> bool,
) -> Unit {
    let ops = machine.program.lowered().ops();
    let (mut leaders, mut waiting) = (BTreeSet::from([start]), vec![start]);
    let (mut seen, mut ends) = (BTreeSet::new(), BTreeSet::new());
    while let Some(leader) = waiting.pop() {
        let mut at = leader;
        loop {
            if at as usize >= ops.len() || taken(at) || seen.len() >= LARGEST || !seen.insert(at) {
                break;
            }
            let op = &ops[at as usize];
            let kind = operations.kind(op, machine.exts);
            let mut more = |to: u32| {
                if leaders.insert(to) {
                    waiting.push(to);
                }
            };
            let branch = kind == Kind::Branch;
            if branch {
                targets(at, machine, operations).into_iter().for_each(&mut more);
            }
            let goes_on = operations.goes_on(op);
            if branch || !goes_on || kind == Kind::Call && operations.stops(op) {
                // A turn may begin after it.
                ends.insert(at);
                if goes_on {
                    more(at + 1);
                }
                break;
            }
            at += 1;
        }
    }
    let mut blocks = Vec::new();
    for &first in leaders.iter().filter(|first| seen.contains(*first)) {
        let mut end = first;
        while seen.contains(&end) {
            end += 1;
            if ends.contains(&(end - 1)) || leaders.contains(&end) {
                break;
            }
        }
        let kinds = (first..end).map(|at| operations.kind(&ops[at as usize], machine.exts));
        let compiled = kinds.filter(|kind| !matches!(kind, Kind::Call | Kind::Nothing)).count();
        let stops = operations.stops(&ops[end as usize - 1]);
        let entry = !stops || compiled >= WORTH;
        blocks.push(Block { first, end, next: end.min(ops.len() as u32 - 1), entry });
    }
    Unit { blocks }
}

/// The operations that a branch may lead to.
fn targets(at: u32, machine: &Machine<'_>, operations: &mut Operations) -> Vec<u32> {
    let ops = machine.program.lowered().ops();
    let op = &ops[at as usize];
    let handlers = operations.handlers(op);
    let mut found = Vec::new();
    if let Some(once) = once(&handlers, op) {
        each_stmt(&once.body, &mut |stmt| {
            if let Stmt::SetState(State::Pc, to) = stmt
                && let Some(pc) = plan::relative(to, op.pc as u64, op.imm)
                && let Some(target) = machine.program.op_at(pc)
            {
                found.push(index_of(ops, target));
            }
        });
    }
    found
}

/// The number of an operation of a program.
pub fn index_of(ops: &[Op], op: &Op) -> u32 {
    ((std::ptr::from_ref(op).addr().wrapping_sub(ops.as_ptr().addr())) / size_of::<Op>()) as u32
}
