//! Verifies functions: the rules that register allocation and the selection of host instructions rely on.
//!
//! 1. Operands have the register class and the number that the instruction requires; values, labels and constants
//!    exist; each label that is jumped to is bound once; parameters are integers, at most six.
//! 2. On every path, a value is assigned before it is read, and control does not reach the end of the function.
//! 3. A value that is live at the header of a loop (a label that a later instruction jumps to) is assigned in front of
//!    it in the order of the code, too. Live ranges are intervals of that order: inside the loop, the register of
//!    another value could be reused before the next iteration reads it.
//! 4. Between a foldable load and each use of its value, neither the base address is assigned nor a store to the same
//!    base overlaps the memory. (That other stores and calls do not write it is up to whoever builds the function.)
//! 5. What is hoisted in front of a loop is invariant in it.

use crate::cfg::{Cfg, Set};
use crate::function::Function;
use crate::inst::{Class, Inst, Label, Mem, V};
use crate::operands::{each_store, each_target, ends_block, result_class, visit_reads, written};
use crate::reg::ARGUMENTS;
use crate::violation::{self, Violation};
use std::collections::BTreeMap;
use std::ops::RangeInclusive;

/// The number of values that may be pinned: the others need registers, too.
const MAX_PINNED: usize = 6;

/// A violation of a rule.
pub type VerifyError = Violation<Problem>;

/// What is wrong.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    #[error("value {} is not one of this function", .0.index())]
    UnknownValue(V),
    #[error("value {} must be {}", .v.index(), class_name(.expected))]
    Class { v: V, expected: Class },
    #[error("label L{} is not one of this function", .0.index())]
    UnknownLabel(Label),
    #[error("label L{} is bound twice", .0.index())]
    BoundTwice(Label),
    #[error("label L{} is jumped to but never bound", .0.index())]
    Unbound(Label),
    #[error("constant c{0} is not one of this function")]
    UnknownConstant(u32),
    #[error("a jump table has no labels")]
    EmptyTable,
    #[error("the instruction has another number of operands")]
    OperandCount,
    #[error("the instruction requires an immediate, or has none")]
    Immediate,
    #[error("{0} parameters: at most six are supported")]
    Parameters(usize),
    #[error("{0} values are pinned: at most {MAX_PINNED} are supported")]
    Pinned(usize),
    #[error("value {} is not assigned on every path", .0.index())]
    Unassigned(V),
    #[error("control reaches the end of the function")]
    NoReturn,
    #[error("value {} is first assigned behind this loop header, and read in a later iteration", .0.index())]
    FirstAssignedInLoop(V),
    #[error("value {} is a foldable load whose memory or base address may have been written since", .0.index())]
    NotFoldable(V),
    #[error("value {} is assigned in a loop, but hoisted instructions read it", .0.index())]
    NotInvariant(V),
    #[error("a loop has begun, but not ended")]
    OpenLoop,
}

fn class_name(class: &Class) -> &'static str {
    match class {
        Class::Int => "an integer",
        Class::Vec => "a vector",
    }
}

/// Verifies a function. Returns all violations, in the order of the code.
pub fn verify(function: &Function) -> Result<(), Vec<VerifyError>> {
    let mut verifier = Verifier { function, errors: Vec::new() };
    verifier.operands();
    if verifier.errors.is_empty() {
        // The control flow is known only if all labels are bound.
        let cfg = Cfg::new(function);
        verifier.end(&cfg);
        verifier.assigned(&cfg);
        verifier.loops(&cfg);
        verifier.foldable(&cfg);
    }
    violation::result(verifier.errors)
}

struct Verifier<'a> {
    function: &'a Function,
    errors: Vec<VerifyError>,
}

impl Verifier<'_> {
    fn report(&mut self, position: Option<usize>, problem: Problem) {
        self.errors.push(Violation::new(self.function, position, problem));
    }

    fn class(&mut self, position: Option<usize>, v: V, expected: Class) {
        match self.function.classes.get(v.index()) {
            None => self.report(position, Problem::UnknownValue(v)),
            Some(class) if *class != expected => self.report(position, Problem::Class { v, expected }),
            _ => {}
        }
    }

    /// Rules 1 and 5.
    fn operands(&mut self) {
        let function = self.function;
        if function.is_in_loop() {
            self.report(None, Problem::OpenLoop);
        }
        for &v in &function.not_invariant {
            self.report(None, Problem::NotInvariant(v));
        }
        if function.params.len() > ARGUMENTS.len() {
            self.report(None, Problem::Parameters(function.params.len()));
        }
        if function.pinned.len() > MAX_PINNED {
            self.report(None, Problem::Pinned(function.pinned.len()));
        }
        function.params.iter().for_each(|&v| self.class(None, v, Class::Int));
        for &v in function.pinned.iter().filter(|v| v.index() >= function.classes.len()) {
            self.report(None, Problem::UnknownValue(v));
        }
        let mut bound = vec![false; function.labels as usize];
        for (i, inst) in function.insts.iter().enumerate() {
            let at = Some(i);
            let d = written(inst);
            let result = result_class(inst).unwrap_or_else(|| {
                d.and_then(|d| function.classes.get(d.index())).copied().unwrap_or(Class::Int)
            });
            d.into_iter().for_each(|d| self.class(at, d, result));
            visit_reads(inst, &mut |read| self.class(at, read.v, read.class.unwrap_or(result)));
            match inst {
                Inst::Label(label) => match bound.get_mut(label.index()) {
                    None => self.report(at, Problem::UnknownLabel(*label)),
                    Some(true) => self.report(at, Problem::BoundTwice(*label)),
                    Some(bound) => *bound = true,
                },
                Inst::Table { to, .. } if to.is_empty() => self.report(at, Problem::EmptyTable),
                Inst::VecConst { constant, .. } if *constant as usize >= function.constants.len() => {
                    self.report(at, Problem::UnknownConstant(*constant));
                }
                Inst::Rm { code, imm, .. } | Inst::Rvm { code, imm, .. } => {
                    let operands = if matches!(inst, Inst::Rm { .. }) { 2 } else { 3 };
                    if code.shape().kinds.len() != operands {
                        self.report(at, Problem::OperandCount);
                    } else if code.shape().has_imm() != imm.is_some() {
                        self.report(at, Problem::Immediate);
                    }
                }
                _ => {}
            }
        }
        for (i, inst) in function.insts.iter().enumerate() {
            each_target(inst, |to| match bound.get(to.index()) {
                None => self.report(Some(i), Problem::UnknownLabel(to)),
                Some(false) => self.report(Some(i), Problem::Unbound(to)),
                Some(true) => {}
            });
        }
    }

    /// Rule 2: the function does not end without a return or a jump.
    fn end(&mut self, cfg: &Cfg) {
        let insts = &self.function.insts;
        let falls_off = |last: &Inst| !ends_block(last);
        match insts.last() {
            None => self.report(None, Problem::NoReturn),
            Some(last) if falls_off(last) && cfg.is_reachable(cfg.blocks.len() - 1) => {
                self.report(Some(insts.len() - 1), Problem::NoReturn);
            }
            _ => {}
        }
    }

    /// Rule 2: values are assigned before they are read.
    fn assigned(&mut self, cfg: &Cfg) {
        let function = self.function;
        let values = function.classes.len();
        let mut at_entry = Set::empty(values);
        function.params.iter().for_each(|v| at_entry.insert(v.index()));
        forwards(
            cfg,
            at_entry,
            Set::full(values),
            |state, i| written(&function.insts[i]).into_iter().for_each(|d| state.insert(d.index())),
            |state, i| {
                visit_reads(&function.insts[i], &mut |read| {
                    if !state.contains(read.v.index()) {
                        self.report(Some(i), Problem::Unassigned(read.v));
                    }
                });
            },
        );
    }

    /// Rule 3.
    fn loops(&mut self, cfg: &Cfg) {
        let function = self.function;
        // The first assignment of each value in the order of the code.
        let mut first = vec![usize::MAX; function.classes.len()];
        function.params.iter().for_each(|v| first[v.index()] = 0);
        for (i, inst) in function.insts.iter().enumerate() {
            if let Some(d) = written(inst) {
                first[d.index()] = first[d.index()].min(i);
            }
        }
        let live = live_at_entry(function, cfg);
        for &n in &cfg.reachable {
            let block = &cfg.blocks[n];
            if block.predecessors.iter().any(|&from| from >= n && cfg.is_reachable(from)) {
                let header = block.insts.start;
                live[n].each(|v| {
                    if first[v] > header {
                        self.report(Some(header), Problem::FirstAssignedInLoop(V(v as u32)));
                    }
                });
            }
        }
    }

    /// Rule 4.
    fn foldable(&mut self, cfg: &Cfg) {
        let function = self.function;
        // The loaded values by base address and displacement.
        let mut loads: BTreeMap<(V, i32), Vec<V>> = BTreeMap::new();
        for (v, from) in function.insts.iter().filter_map(foldable_load) {
            loads.entry((from.base, from.disp)).or_default().push(v);
        }
        if loads.is_empty() {
            return;
        }
        // The loaded values whose promise may be broken.
        let broken = |state: &Set, v: V| state.contains(v.index());
        forwards_any(
            cfg,
            Set::empty(function.classes.len()),
            |state, i| {
                let inst = &function.insts[i];
                let written = written(inst);
                let mut breaks = |base: V, disps: RangeInclusive<i32>| {
                    let range = (base, *disps.start())..=(base, *disps.end());
                    loads.range(range).flat_map(|(_, loaded)| loaded).for_each(|v| state.insert(v.index()));
                };
                written.into_iter().for_each(|d| breaks(d, i32::MIN..=i32::MAX));
                each_store(inst, |to, size| breaks(to.base, overlapping(to, size)));
                written.into_iter().for_each(|d| state.remove(d.index()));
            },
            |state, i| {
                visit_reads(&function.insts[i], &mut |read| {
                    if broken(state, read.v) {
                        self.report(Some(i), Problem::NotFoldable(read.v));
                    }
                });
            },
        );
    }
}

/// Returns the value and the memory of a foldable load.
fn foldable_load(inst: &Inst) -> Option<(V, Mem)> {
    match *inst {
        Inst::VecLoad { d, from, foldable: true } => Some((d, from)),
        _ => None,
    }
}

/// Returns the displacements of vectors that a store of `size` bytes overlaps.
fn overlapping(to: Mem, size: i32) -> RangeInclusive<i32> {
    to.disp.saturating_sub(31)..=to.disp.saturating_add(size - 1)
}

/// Computes the states in front of all instructions as the intersection over all paths, then visits each reachable
/// instruction with its state.
fn forwards(
    cfg: &Cfg,
    at_entry: Set,
    other: Set,
    mut apply: impl FnMut(&mut Set, usize),
    mut visit: impl FnMut(&Set, usize),
) {
    let mut states = vec![other; cfg.blocks.len()];
    if let Some(first) = states.first_mut() {
        *first = at_entry;
    }
    run(cfg, &mut states, &mut apply, |state, other| state.intersect(other));
    visit_all(cfg, states, &mut apply, &mut visit);
}

/// The same with the union over all paths.
fn forwards_any(
    cfg: &Cfg,
    empty: Set,
    mut apply: impl FnMut(&mut Set, usize),
    mut visit: impl FnMut(&Set, usize),
) {
    let mut states = vec![empty; cfg.blocks.len()];
    run(cfg, &mut states, &mut apply, |state, other| state.unite(other));
    visit_all(cfg, states, &mut apply, &mut visit);
}

fn run(
    cfg: &Cfg,
    states: &mut [Set],
    apply: &mut impl FnMut(&mut Set, usize),
    meet: impl Fn(&mut Set, &Set) -> bool,
) {
    let mut dirty = vec![true; cfg.blocks.len()];
    loop {
        let mut changed = false;
        for &n in &cfg.reachable {
            if !std::mem::replace(&mut dirty[n], false) {
                continue;
            }
            changed = true;
            let mut state = states[n].clone();
            cfg.blocks[n].insts.clone().for_each(|i| apply(&mut state, i));
            for &to in &cfg.blocks[n].successors {
                dirty[to] |= meet(&mut states[to], &state);
            }
        }
        if !changed {
            return;
        }
    }
}

fn visit_all(
    cfg: &Cfg,
    states: Vec<Set>,
    apply: &mut impl FnMut(&mut Set, usize),
    visit: &mut impl FnMut(&Set, usize),
) {
    for (n, mut state) in states.into_iter().enumerate() {
        if cfg.is_reachable(n) {
            for i in cfg.blocks[n].insts.clone() {
                visit(&state, i);
                apply(&mut state, i);
            }
        }
    }
}

/// Returns for each block the values that are live at its beginning.
fn live_at_entry(function: &Function, cfg: &Cfg) -> Vec<Set> {
    let values = function.classes.len();
    let mut live = vec![Set::empty(values); cfg.blocks.len()];
    let mut dirty = vec![true; cfg.blocks.len()];
    loop {
        let mut changed = false;
        for &n in cfg.reachable.iter().rev() {
            if !std::mem::replace(&mut dirty[n], false) {
                continue;
            }
            changed = true;
            let block = &cfg.blocks[n];
            let mut state = Set::empty(values);
            for &to in &block.successors {
                state.unite(&live[to]);
            }
            for inst in function.insts[block.insts.clone()].iter().rev() {
                written(inst).into_iter().for_each(|d| state.remove(d.index()));
                visit_reads(inst, &mut |read| state.insert(read.v.index()));
            }
            if live[n].unite(&state) {
                block.predecessors.iter().for_each(|&from| dirty[from] = true);
            }
        }
        if !changed {
            return live;
        }
    }
}
