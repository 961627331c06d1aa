//! Basic blocks, and data flow over them, for the checks of functions.

use crate::function::Function;
use crate::inst::Inst;
use crate::operands::{each_target, ends_block};
use std::ops::Range;

/// A sequence of instructions that is entered at its beginning and left at its end.
#[derive(Debug)]
pub(crate) struct Block {
    pub insts: Range<usize>,
    pub successors: Vec<usize>,
    pub predecessors: Vec<usize>,
}

/// The control flow of a function whose labels are all bound once.
#[derive(Debug)]
pub(crate) struct Cfg {
    /// In the order of the code; the first one is the entry.
    pub blocks: Vec<Block>,
    /// The blocks that can be reached, predecessors first where there is no loop.
    pub reachable: Vec<usize>,
    is_reachable: Set,
}

impl Cfg {
    pub fn new(function: &Function) -> Cfg {
        let insts = &function.insts;
        let mut starts = vec![0];
        for (i, inst) in insts.iter().enumerate() {
            let mut jumps = ends_block(inst);
            each_target(inst, |_| jumps = true);
            if matches!(inst, Inst::Label(_)) {
                starts.push(i);
            } else if jumps {
                starts.push(i + 1);
            }
        }
        starts.push(insts.len());
        starts.sort_unstable();
        starts.dedup();
        let mut labels = vec![usize::MAX; function.labels as usize];
        let mut blocks: Vec<Block> = Vec::new();
        for range in starts.windows(2) {
            if let Inst::Label(label) = insts[range[0]] {
                labels[label.index()] = blocks.len();
            }
            let insts = range[0]..range[1];
            blocks.push(Block { insts, successors: Vec::new(), predecessors: Vec::new() });
        }
        for n in 0..blocks.len() {
            let last = &insts[blocks[n].insts.end - 1];
            let mut successors = Vec::new();
            each_target(last, |to| successors.push(labels[to.index()]));
            if !ends_block(last) && n + 1 < blocks.len() {
                successors.push(n + 1);
            }
            successors.sort_unstable();
            successors.dedup();
            for &to in &successors {
                blocks[to].predecessors.push(n);
            }
            blocks[n].successors = successors;
        }
        let reachable = reverse_postorder(&blocks);
        let mut is_reachable = Set::empty(blocks.len());
        reachable.iter().for_each(|&n| is_reachable.insert(n));
        Cfg { blocks, reachable, is_reachable }
    }

    pub fn is_reachable(&self, block: usize) -> bool {
        self.is_reachable.contains(block)
    }
}

fn reverse_postorder(blocks: &[Block]) -> Vec<usize> {
    let mut order = Vec::new();
    let mut seen = vec![false; blocks.len()];
    let mut stack = Vec::new();
    if !blocks.is_empty() {
        seen[0] = true;
        stack.push((0, 0));
    }
    while let Some((block, next)) = stack.pop() {
        match blocks[block].successors.get(next) {
            Some(&to) => {
                stack.push((block, next + 1));
                if !std::mem::replace(&mut seen[to], true) {
                    stack.push((to, 0));
                }
            }
            None => order.push(block),
        }
    }
    order.reverse();
    order
}

/// A set of small numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Set(Vec<u64>);

impl Set {
    pub fn empty(size: usize) -> Set {
        Set(vec![0; size.div_ceil(64)])
    }

    pub fn full(size: usize) -> Set {
        Set(vec![u64::MAX; size.div_ceil(64)])
    }

    pub fn contains(&self, n: usize) -> bool {
        self.0[n / 64] >> (n % 64) & 1 == 1
    }

    pub fn insert(&mut self, n: usize) {
        self.0[n / 64] |= 1 << (n % 64);
    }

    pub fn remove(&mut self, n: usize) {
        self.0[n / 64] &= !(1 << (n % 64));
    }

    /// Intersects with another set. Returns whether this changes the set.
    pub fn intersect(&mut self, other: &Set) -> bool {
        self.merge(other, |a, b| a & b)
    }

    /// Unites with another set. Returns whether this changes the set.
    pub fn unite(&mut self, other: &Set) -> bool {
        self.merge(other, |a, b| a | b)
    }

    fn merge(&mut self, other: &Set, f: impl Fn(u64, u64) -> u64) -> bool {
        let mut changed = false;
        for (a, b) in self.0.iter_mut().zip(&other.0) {
            let merged = f(*a, *b);
            changed |= merged != *a;
            *a = merged;
        }
        changed
    }

    /// Calls `visit` with each element in order.
    pub fn each(&self, mut visit: impl FnMut(usize)) {
        for (n, &word) in self.0.iter().enumerate() {
            let mut word = word;
            while word != 0 {
                visit(64 * n + word.trailing_zeros() as usize);
                word &= word - 1;
            }
        }
    }
}
