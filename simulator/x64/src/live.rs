//! Which instructions are needed, and from where to where values live.

use crate::function::Function;
use crate::inst::{Inst, Mem};
use crate::operands::{each_read, each_target, is_pure, written};

/// What an access within an inner loop counts.
const LOOP: f32 = 8.0;

/// How a value is had without a slot.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Again {
    /// Not at all.
    No,
    Int(u64),
    Constant(u32),
    Loaded(Mem),
}

/// The life of a value. Instruction `i` reads at `2 * i` and writes at `2 * i + 1`.
#[derive(Debug, Clone)]
pub(crate) struct Life {
    /// Greater than `end` if the value is not used at all.
    pub start: u32,
    pub end: u32,
    /// Accesses, those in inner loops for more.
    pub weight: f32,
    pub reads: u32,
    pub writes: u32,
    pub again: Again,
    /// Whether it is written outside of an inner loop and read in one.
    pub hoisted: bool,
    /// Whether some read takes no immediate.
    pub needs_register: bool,
}

impl Life {
    /// Weight per length: those with little of it are in memory first.
    pub fn density(&self) -> f32 {
        let cheap = if self.again == Again::No { 1.0 } else { 0.4 };
        self.weight * cheap / (self.end - self.start + 2) as f32
    }

    pub fn is_used(&self) -> bool {
        self.start <= self.end
    }
}

/// Facts on a function.
#[derive(Debug)]
pub(crate) struct Live {
    /// Of each instruction, whether it is needed.
    pub keep: Vec<bool>,
    /// Of each value.
    pub of: Vec<Life>,
    /// Where calls read.
    pub calls: Vec<u32>,
}

/// Drops what nothing reads. Values may be assigned several times: what counts is whether anything reads them anywhere.
fn needed(function: &Function) -> Vec<bool> {
    let mut reads = vec![0u32; function.classes.len()];
    for inst in &function.insts {
        each_read(inst, |v, _| reads[v.0 as usize] += 1);
    }
    let mut keep = vec![true; function.insts.len()];
    for (inst, keep) in function.insts.iter().zip(&mut keep).rev() {
        let unread = written(inst).is_some_and(|d| reads[d.0 as usize] == 0);
        let nothing = matches!(inst, Inst::Move { d, a } if d == a);
        if is_pure(inst) && unread || nothing {
            *keep = false;
            each_read(inst, |v, _| reads[v.0 as usize] -= 1);
        }
    }
    keep
}

/// Labels that are jumped back to, in order: where they stand, and from where the last such jump is.
fn loops(function: &Function) -> Vec<(u32, u32)> {
    let mut label_at = vec![u32::MAX; function.labels as usize];
    let mut last = vec![0u32; function.labels as usize];
    for (i, inst) in function.insts.iter().enumerate() {
        if let Inst::Label(label) = inst {
            label_at[label.0 as usize] = i as u32;
        }
        // Only labels that stand already are jumped back to.
        each_target(inst, |to| {
            if label_at[to.0 as usize] != u32::MAX {
                last[to.0 as usize] = i as u32;
            }
        });
    }
    let mut loops: Vec<(u32, u32)> = label_at.into_iter().zip(last).filter(|&(at, last)| at < last).collect();
    loops.sort_unstable();
    loops
}

/// Of each instruction, whether it is in a loop that has no other loop in it.
fn in_loop(loops: &[(u32, u32)], count: usize) -> Vec<bool> {
    let mut inside = vec![false; count];
    for (n, &(from, to)) in loops.iter().enumerate() {
        if loops.get(n + 1).is_none_or(|next| next.0 > to) {
            inside[from as usize..=to as usize].fill(true);
        }
    }
    inside
}

pub(crate) fn analyse(function: &Function) -> Live {
    let keep = needed(function);
    let loops = loops(function);
    let inside = in_loop(&loops, function.insts.len());
    let unused = Life {
        start: u32::MAX,
        end: 0,
        weight: 0.0,
        reads: 0,
        writes: 0,
        again: Again::No,
        hoisted: false,
        needs_register: false,
    };
    let mut of = vec![unused; function.classes.len()];
    // Where a value was written last, for `hoisted`.
    let mut written_inside = vec![true; function.classes.len()];
    for param in &function.params {
        (of[param.0 as usize].start, of[param.0 as usize].writes) = (0, 1);
        written_inside[param.0 as usize] = false;
    }
    let mut calls = Vec::new();
    for (i, inst) in function.insts.iter().enumerate().filter(|&(i, _)| keep[i]) {
        let factor = if inside[i] { LOOP } else { 1.0 };
        let at = 2 * i as u32;
        each_read(inst, |v, immediate| {
            let life = &mut of[v.0 as usize];
            if life.start == u32::MAX {
                // Read before it is written in the order of instructions: from another round of a loop.
                life.start = 0;
            }
            life.end = life.end.max(at);
            life.reads += 1;
            life.weight += factor;
            life.hoisted |= inside[i] && !written_inside[v.0 as usize];
            life.needs_register |= match (life.again, immediate) {
                (Again::Int(_), Some(true)) => false,
                (Again::Int(bits), Some(false)) => i32::try_from(bits as i64).is_err(),
                _ => true,
            };
        });
        if let Some(d) = written(inst) {
            let life = &mut of[d.0 as usize];
            let first = life.writes == 0 && life.start == u32::MAX;
            life.start = life.start.min(at + 1);
            life.end = life.end.max(at + 1);
            life.writes += 1;
            life.weight += factor;
            life.again = match *inst {
                _ if !first => Again::No,
                Inst::Const { bits, .. } => Again::Int(bits),
                Inst::VecConst { constant, .. } => Again::Constant(constant),
                Inst::VecLoad { from, stays: true, .. } => Again::Loaded(from),
                _ => Again::No,
            };
            written_inside[d.0 as usize] = inside[i];
        }
        if let Inst::Call { .. } = inst {
            calls.push(at);
        }
    }
    for v in &function.pinned {
        of[v.0 as usize].weight = f32::INFINITY;
    }
    // What stays in memory is reached by its base for as long.
    for v in 0..of.len() {
        if let Again::Loaded(from) = of[v].again {
            let end = of[v].end;
            let base = &mut of[from.base.0 as usize];
            base.end = base.end.max(end);
        }
    }
    for life in of.iter_mut().filter(|life| life.is_used()) {
        extend(life, &loops);
    }
    Live { keep, of, calls }
}

/// A value that is alive at a label, and from before it, lives up to the jumps back to it.
fn extend(life: &mut Life, loops: &[(u32, u32)]) {
    let first = loops.partition_point(|&(at, _)| 2 * at < life.start);
    for &(at, last) in &loops[first..] {
        if 2 * at > life.end {
            break;
        }
        life.end = life.end.max(2 * last + 1);
    }
}
