//! The unit of compilation: the blocks that are reachable from one operation by statically known jumps.

use crate::branch_target::static_target;
use crate::context::CompileContext;
use crate::lowering::{StatementLowering, recognise_statement};
use crate::select::Selector;
use crate::selected::Selections;
use isa_lower::visit::each_stmt;
use std::collections::{BTreeMap, BTreeSet};

/// The maximum number of operations of a unit: compiling them takes a few milliseconds.
const MAX_OPERATIONS: usize = 1000;

/// A basic block. Only the last operation may jump.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Block {
    /// The number of its first operation.
    pub first: u32,
    /// The number after that of its last operation.
    pub end: u32,
    /// The next operation in program order.
    pub next: u32,
}

/// Blocks in program order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unit {
    pub blocks: Vec<Block>,
    /// MODE's bits that extend VGPR numbers, before each operation; empty if they are not tracked.
    pub msbs: BTreeMap<u32, u32>,
}

impl Unit {
    /// Returns the bits before an operation of the unit.
    pub fn msbs_before(&self, op_index: u32) -> u32 {
        self.msbs.get(&op_index).copied().unwrap_or(0)
    }
}

/// Discovers the unit that begins at an operation, where MODE has these bits that extend VGPR numbers. Operations that
/// are `compiled` belong to other units. An operation that is reached with several values of the bits is in the unit
/// for the first one only: emission compares the bits wherever it continues in the unit.
pub fn discover(
    start: u32,
    start_msbs: u32,
    context: &CompileContext<'_>,
    selector: &mut Selector,
    selections: &mut Selections,
    compiled: impl Fn(u32) -> bool,
) -> Unit {
    let ops = &context.program.ops[..];
    let program = context.program;
    let (mut leaders, mut waiting) = (BTreeSet::from([start]), vec![(start, start_msbs)]);
    let mut before = BTreeMap::new();
    let (mut seen, mut ends) = (BTreeSet::new(), BTreeSet::new());
    while let Some((leader, mut msbs)) = waiting.pop() {
        let mut at = leader;
        loop {
            if at as usize >= ops.len() || compiled(at) || seen.len() >= MAX_OPERATIONS {
                break;
            }
            // The interpreter raises the fault of a register that does not exist.
            if program.tracks_msbs() && program.extended(at, msbs).is_none() || !seen.insert(at) {
                break;
            }
            if program.tracks_msbs() {
                before.insert(at, msbs);
            }
            msbs = program.sets_msbs(at).unwrap_or(msbs);
            let selection = selector.of(at, context.program, selections);
            let (branch, falls_through) = (selection.how.is_branch(), selection.falls_through);
            let may_end_turn = selection.how.is_call() && selection.may_end_turn;
            let mut more = |to: u32| {
                if leaders.insert(to) {
                    waiting.push((to, msbs));
                }
            };
            if branch {
                targets(at, context, selections).into_iter().for_each(&mut more);
            }
            if branch || !falls_through || may_end_turn {
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
        blocks.push(Block { first, end, next: end.min(ops.len() as u32 - 1) });
    }
    Unit { blocks, msbs: before }
}

/// Returns the operations that a branch may jump to.
pub fn targets(op_index: u32, context: &CompileContext<'_>, selections: &Selections) -> Vec<u32> {
    let op = &context.program.ops[op_index as usize];
    let mut found = Vec::new();
    if let Some(once) = selections.of(op_index).branch() {
        each_stmt(&once.body, &mut |stmt| {
            if let Ok((StatementLowering::Jump(to), _)) = recognise_statement(stmt)
                && let Some(pc) = static_target(to, op.pc as u64, op.imm)
                && let Some(target) = context.program.op_at(pc)
            {
                found.push(target);
            }
        });
    }
    found
}
