//! What is compiled together: the blocks that can be reached from one place by jumps that are known.

use crate::emit::Machine;
use crate::plan::{Kind, Operations, once};
use crate::relative::relative;
use isa_lower::ir::Stmt;
use isa_lower::visit::each_stmt;
use isa_spec::pcode::ir::State;
use std::collections::BTreeSet;

/// Operations of a unit at most: compiling it takes some milliseconds.
const LARGEST: usize = 1000;

/// Compiled operations on the way to the end of a turn, below which entering and leaving code costs more than it saves.
const WORTH: usize = 12;

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
    let ops = &machine.source.ops[..];
    let (mut leaders, mut waiting) = (BTreeSet::from([start]), vec![start]);
    let (mut seen, mut ends) = (BTreeSet::new(), BTreeSet::new());
    while let Some(leader) = waiting.pop() {
        let mut at = leader;
        loop {
            if at as usize >= ops.len() || taken(at) || seen.len() >= LARGEST || !seen.insert(at) {
                break;
            }
            let op = &ops[at as usize];
            let kind = operations.kind(op, &machine.source.exts);
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
        blocks.push(Block { first, end, next: end.min(ops.len() as u32 - 1), entry: true });
    }
    let worth = worth(&blocks, machine, operations);
    blocks.iter_mut().zip(worth).for_each(|(block, worth)| block.entry = worth >= WORTH);
    Unit { blocks }
}

/// For each block the compiled operations that run at least from its begin to the end of the turn.
fn worth(blocks: &[Block], machine: &Machine<'_>, operations: &mut Operations) -> Vec<usize> {
    let ops = &machine.source.ops[..];
    // Its own, and what follows; nothing, if the turn ends.
    let mut ways: Vec<(usize, Option<Vec<u32>>)> = Vec::new();
    for block in blocks {
        let (first, last) = (block.first, block.end - 1);
        let mut own = 0;
        for op in &ops[first as usize..block.end as usize] {
            let kind = operations.kind(op, &machine.source.exts);
            own += !matches!(kind, Kind::Call | Kind::Nothing) as usize;
        }
        let op = &ops[last as usize];
        let goes_on = operations.goes_on(op);
        let next = if operations.kind(op, &machine.source.exts) == Kind::Branch {
            let mut next = targets(last, machine, operations);
            // A loop is rarely left.
            match next.iter().position(|to| *to <= first) {
                Some(back) => next = vec![next[back]],
                None => next.extend(goes_on.then_some(block.next)),
            }
            Some(next)
        } else {
            goes_on.then(|| vec![block.next])
        };
        ways.push((own, next));
    }
    let mut least = vec![usize::MAX; blocks.len()];
    let mut again = true;
    while again {
        again = false;
        for at in (0..blocks.len()).rev() {
            let (own, next) = &ways[at];
            // What leaves the unit may go on in another.
            let of =
                |to: &u32| blocks.binary_search_by_key(to, |block| block.first).map_or(WORTH, |at| least[at]);
            let rest = next.as_ref().map_or(0, |next| next.iter().map(of).min().unwrap_or(WORTH));
            let all = own.saturating_add(rest);
            again |= all < least[at];
            least[at] = least[at].min(all);
        }
    }
    least
}

/// The operations that a branch may lead to.
pub fn targets(at: u32, machine: &Machine<'_>, operations: &mut Operations) -> Vec<u32> {
    let op = &machine.source.ops[at as usize];
    let handlers = operations.handlers(op);
    let mut found = Vec::new();
    if let Some(once) = once(&handlers, op) {
        each_stmt(&once.body, &mut |stmt| {
            if let Stmt::SetState(State::Pc, to) = stmt
                && let Some(pc) = relative(to, op.pc as u64, op.imm)
                && let Some(target) = machine.source.at(pc)
            {
                found.push(target);
            }
        });
    }
    found
}
