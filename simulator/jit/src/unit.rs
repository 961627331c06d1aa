//! The unit of compilation: the blocks that are reachable from one operation by statically known jumps.

use crate::branch_target::static_target;
use crate::emit::CompileContext;
use crate::plan::{Kind, Operations, scalar_code};
use isa_lower::ir::Stmt;
use isa_lower::visit::each_stmt;
use isa_spec::pcode::ir::State;
use std::collections::BTreeSet;

/// The maximum number of operations of a unit: compiling them takes a few milliseconds.
const MAX_OPERATIONS: usize = 1000;

/// The minimum number of compiled operations before the end of a turn: with fewer, entering and leaving code
/// costs more than it saves.
const MIN_ENTRY_OPERATIONS: usize = 12;

/// A basic block. Only the last operation may jump.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Block {
    /// The number of its first operation.
    pub first: u32,
    /// The number after that of its last operation.
    pub end: u32,
    /// The next operation in program order.
    pub next: u32,
    /// Code is worth entering here; it is not for a few instructions before a barrier.
    pub entry: bool,
}

/// Blocks in program order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unit {
    pub blocks: Vec<Block>,
}

/// Discovers the unit that begins at an operation. Operations that are `compiled` belong to other units.
pub fn discover(
    start: u32,
    context: &CompileContext<'_>,
    operations: &mut Operations,
    compiled: impl Fn(u32) -> bool,
) -> Unit {
    let ops = &context.program.ops[..];
    let (mut leaders, mut waiting) = (BTreeSet::from([start]), vec![start]);
    let (mut seen, mut ends) = (BTreeSet::new(), BTreeSet::new());
    while let Some(leader) = waiting.pop() {
        let mut at = leader;
        loop {
            if at as usize >= ops.len() || compiled(at) || seen.len() >= MAX_OPERATIONS || !seen.insert(at) {
                break;
            }
            let op = &ops[at as usize];
            let kind = operations.kind(op, &context.program.exts);
            let mut more = |to: u32| {
                if leaders.insert(to) {
                    waiting.push(to);
                }
            };
            let branch = kind == Kind::Branch;
            if branch {
                targets(at, context, operations).into_iter().for_each(&mut more);
            }
            let falls_through = operations.falls_through(op);
            if branch || !falls_through || kind == Kind::Call && operations.may_end_turn(op) {
                // Another turn may begin after this operation.
                ends.insert(at);
                if falls_through {
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
    let lengths = min_compiled_path(&blocks, context, operations);
    blocks.iter_mut().zip(lengths).for_each(|(block, length)| block.entry = length >= MIN_ENTRY_OPERATIONS);
    Unit { blocks }
}

/// Returns for each block the minimum number of compiled operations from its start to the end of the turn.
fn min_compiled_path(
    blocks: &[Block],
    context: &CompileContext<'_>,
    operations: &mut Operations,
) -> Vec<usize> {
    let ops = &context.program.ops[..];
    // The block's own operations, and its successors; `None` if the turn ends.
    let mut paths: Vec<(usize, Option<Vec<u32>>)> = Vec::new();
    for block in blocks {
        let (first, last) = (block.first, block.end - 1);
        let mut own = 0;
        for op in &ops[first as usize..block.end as usize] {
            let kind = operations.kind(op, &context.program.exts);
            own += !matches!(kind, Kind::Call | Kind::Nop) as usize;
        }
        let op = &ops[last as usize];
        let falls_through = operations.falls_through(op);
        let next = if operations.kind(op, &context.program.exts) == Kind::Branch {
            let mut next = targets(last, context, operations);
            // Assume that loops are rarely left.
            match next.iter().position(|to| *to <= first) {
                Some(back) => next = vec![next[back]],
                None => next.extend(falls_through.then_some(block.next)),
            }
            Some(next)
        } else {
            falls_through.then(|| vec![block.next])
        };
        paths.push((own, next));
    }
    let mut least = vec![usize::MAX; blocks.len()];
    let mut changed = true;
    while changed {
        changed = false;
        for at in (0..blocks.len()).rev() {
            let (own, next) = &paths[at];
            // Another unit may continue after a block outside of this unit.
            let of = |to: &u32| {
                blocks
                    .binary_search_by_key(to, |block| block.first)
                    .map_or(MIN_ENTRY_OPERATIONS, |at| least[at])
            };
            let rest =
                next.as_ref().map_or(0, |next| next.iter().map(of).min().unwrap_or(MIN_ENTRY_OPERATIONS));
            let all = own.saturating_add(rest);
            changed |= all < least[at];
            least[at] = least[at].min(all);
        }
    }
    least
}

/// Returns the operations that a branch may jump to.
pub fn targets(at: u32, context: &CompileContext<'_>, operations: &mut Operations) -> Vec<u32> {
    let op = &context.program.ops[at as usize];
    let handlers = operations.handlers(op);
    let mut found = Vec::new();
    if let Some(once) = scalar_code(&handlers, op) {
        each_stmt(&once.body, &mut |stmt| {
            if let Stmt::SetState(State::Pc, to) = stmt
                && let Some(pc) = static_target(to, op.pc as u64, op.imm)
                && let Some(target) = context.program.op_at(pc)
            {
                found.push(target);
            }
        });
    }
    found
}
