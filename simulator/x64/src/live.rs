//! Dead code elimination and live ranges.

use crate::function::Function;
use crate::inst::{Inst, Mem};
use crate::operands::{Immediate, Read, each_read, each_target, is_pure, written};

/// The weight of an access in an innermost loop.
const LOOP_WEIGHT: f32 = 8.0;

/// How a value without a register is rematerialised, instead of using a stack slot.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Remat {
    /// It cannot be.
    Never,
    Int(u64),
    Constant(u32),
    Loaded(Mem),
}

/// The live range of a value. Instruction `i` reads at `2 * i` and writes at `2 * i + 1`.
#[derive(Debug, Clone)]
pub(crate) struct LiveRange {
    /// Greater than `end` if the value is not used.
    pub start: u32,
    pub end: u32,
    /// The weighted number of accesses.
    pub weight: f32,
    pub reads: u32,
    pub writes: u32,
    pub remat: Remat,
    /// The value is defined outside of an innermost loop and read inside one.
    pub hoisted: bool,
    /// Some use cannot take an immediate.
    pub needs_register: bool,
}

impl LiveRange {
    /// Returns the weight per length of the live range. Values with low density are spilled first.
    pub fn density(&self) -> f32 {
        let cheap = if self.remat == Remat::Never { 1.0 } else { 0.4 };
        self.weight * cheap / (self.end - self.start + 2) as f32
    }

    pub fn is_used(&self) -> bool {
        self.start <= self.end
    }
}

/// The results of the analysis.
#[derive(Debug)]
pub(crate) struct Liveness {
    /// For each instruction, whether it is live.
    pub keep: Vec<bool>,
    /// For each value, its live range.
    pub ranges: Vec<LiveRange>,
    /// The program points of calls.
    pub calls: Vec<u32>,
}

/// Finds dead instructions. Since values may be assigned several times, an assignment is live if its value is
/// read anywhere.
fn find_live(function: &Function) -> Vec<bool> {
    let mut reads = vec![0u32; function.classes.len()];
    for inst in &function.insts {
        each_read(inst, |read| reads[read.v.index()] += 1);
    }
    let mut keep = vec![true; function.insts.len()];
    for (inst, keep) in function.insts.iter().zip(&mut keep).rev() {
        let unread = written(inst).is_some_and(|d| reads[d.0 as usize] == 0);
        let nothing = matches!(inst, Inst::Move { d, a } if d == a);
        if is_pure(inst) && unread || nothing {
            *keep = false;
            each_read(inst, |read| reads[read.v.index()] -= 1);
        }
    }
    keep
}

/// Returns the loops in order: the position of each label that is the target of a backward jump, and that of
/// the last such jump.
fn loops(function: &Function) -> Vec<(u32, u32)> {
    let mut label_at = vec![u32::MAX; function.labels as usize];
    let mut last = vec![0u32; function.labels as usize];
    for (i, inst) in function.insts.iter().enumerate() {
        if let Inst::Label(label) = inst {
            label_at[label.0 as usize] = i as u32;
        }
        // Only labels that precede the jump are targets of backward jumps.
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

/// Returns for each instruction whether it is in an innermost loop.
fn in_loop(loops: &[(u32, u32)], count: usize) -> Vec<bool> {
    let mut inside = vec![false; count];
    for (n, &(from, to)) in loops.iter().enumerate() {
        if loops.get(n + 1).is_none_or(|next| next.0 > to) {
            inside[from as usize..=to as usize].fill(true);
        }
    }
    inside
}

pub(crate) fn analyse(function: &Function) -> Liveness {
    let keep = find_live(function);
    let loops = loops(function);
    let inside = in_loop(&loops, function.insts.len());
    let unused = LiveRange {
        start: u32::MAX,
        end: 0,
        weight: 0.0,
        reads: 0,
        writes: 0,
        remat: Remat::Never,
        hoisted: false,
        needs_register: false,
    };
    let mut ranges = vec![unused; function.classes.len()];
    // Whether the last write of a value was in an innermost loop, for `hoisted`.
    let mut written_inside = vec![true; function.classes.len()];
    for param in &function.params {
        (ranges[param.0 as usize].start, ranges[param.0 as usize].writes) = (0, 1);
        written_inside[param.0 as usize] = false;
    }
    let mut calls = Vec::new();
    for (i, inst) in function.insts.iter().enumerate().filter(|&(i, _)| keep[i]) {
        let factor = if inside[i] { LOOP_WEIGHT } else { 1.0 };
        let at = 2 * i as u32;
        each_read(inst, |Read { v, immediate, .. }| {
            let range = &mut ranges[v.0 as usize];
            if range.start == u32::MAX {
                // Read before it is written in program order: the value comes from an earlier iteration.
                range.start = 0;
            }
            range.end = range.end.max(at);
            range.reads += 1;
            range.weight += factor;
            range.hoisted |= inside[i] && !written_inside[v.0 as usize];
            range.needs_register |= match (range.remat, immediate) {
                (Remat::Int(_), Immediate::Truncated) => false,
                (Remat::Int(bits), Immediate::SignExtended) => i32::try_from(bits as i64).is_err(),
                _ => true,
            };
        });
        if let Some(d) = written(inst) {
            let range = &mut ranges[d.0 as usize];
            let first = range.writes == 0 && range.start == u32::MAX;
            range.start = range.start.min(at + 1);
            range.end = range.end.max(at + 1);
            range.writes += 1;
            range.weight += factor;
            range.remat = match *inst {
                _ if !first => Remat::Never,
                Inst::Const { bits, .. } => Remat::Int(bits),
                Inst::VecConst { constant, .. } => Remat::Constant(constant),
                Inst::VecLoad { from, foldable: true, .. } => Remat::Loaded(from),
                _ => Remat::Never,
            };
            written_inside[d.0 as usize] = inside[i];
        }
        if let Inst::Call { .. } = inst {
            calls.push(at);
        }
    }
    for v in &function.pinned {
        ranges[v.0 as usize].weight = f32::INFINITY;
    }
    // A folded load extends the live range of its base address.
    for v in 0..ranges.len() {
        if let Remat::Loaded(from) = ranges[v].remat {
            let end = ranges[v].end;
            let base = &mut ranges[from.base.0 as usize];
            base.end = base.end.max(end);
        }
    }
    for range in ranges.iter_mut().filter(|range| range.is_used()) {
        extend(range, &loops);
    }
    Liveness { keep, ranges, calls }
}

/// Extends a live range to the end of each loop in which the value is live at the loop header.
fn extend(range: &mut LiveRange, loops: &[(u32, u32)]) {
    let first = loops.partition_point(|&(at, _)| 2 * at < range.start);
    for &(at, last) in &loops[first..] {
        if 2 * at > range.end {
            break;
        }
        range.end = range.end.max(2 * last + 1);
    }
}
