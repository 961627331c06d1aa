//! Checks the locations of a function's values: on every path, each use finds the value that it names.
//!
//! The check executes the function with the names of values in place of the values. It knows the locations that
//! allocation has decided, and which registers the host's calls change, but no live ranges: it follows control flow,
//! and where paths meet, a location holds a value only if it does on all of them. (The register allocator of
//! Cranelift, regalloc2, is checked in this way.)
//!
//! - A use of a value requires that its location holds it. An assignment puts the value into its location, and
//!   displaces what was there.
//! - A rematerialised constant requires that all assignments are this constant, and a folded load that the base
//!   address still is what it was.
//! - A call clears caller-saved registers, a cold call those that are not saved around it. Callee-saved registers
//!   that hold values must be saved by the function.
//! - A value in the flags is there only for the next instruction; a vector in the scratch register, until an
//!   instruction uses that register for something else.
//! - An instruction that is left out has no effect that another one needs.

use crate::allocate::Location;
use crate::allocated::Allocated;
use crate::cfg::Cfg;
use crate::inst::{Cc, Class, Inst, Mem, Src, V};
use crate::operands::{is_pure, visit_reads, written};
use crate::share::Shared;
use crate::target::REGISTERS;
use crate::text::value_name;
use crate::violation::{self, Violation};
use std::collections::{HashMap, HashSet};

/// A use that does not find its value, or another error in an allocation.
pub type CheckError = Violation<String>;

/// Checks an allocation of a function that has been verified. Returns all errors, in the order of the code.
pub(crate) fn check(code: &Allocated<'_>) -> Result<(), Vec<CheckError>> {
    let mut checker = Checker::new(code);
    checker.decisions();
    checker.dead();
    if checker.errors.is_empty() {
        checker.paths();
    }
    violation::result(checker.errors).map_err(|mut errors| {
        errors.dedup();
        errors
    })
}

/// No value.
const NONE: u32 = u32::MAX;
/// The indices of the scratch locations in [`State`]; behind them are registers and slots.
const FLAGS: usize = 0;
const SCRATCH: usize = 1;
const INT_REGISTERS: usize = 2;
const VEC_REGISTERS: usize = INT_REGISTERS + REGISTERS;
const SLOTS: usize = VEC_REGISTERS + REGISTERS;

/// What is known where an instruction begins.
#[derive(Debug, Clone, PartialEq)]
struct State {
    /// The value in each location, or [`NONE`].
    holds: Vec<u32>,
    /// For each folded load, whether memory still has the value: by the numbers of [`Checker::folded`].
    intact: Vec<bool>,
}

impl State {
    /// Keeps what is known on both of two paths. Returns whether this changes the state.
    fn meet(&mut self, other: &State) -> bool {
        let mut changed = false;
        for (a, b) in self.holds.iter_mut().zip(&other.holds).filter(|(a, b)| *a != *b) {
            changed |= std::mem::replace(a, NONE) != NONE;
            debug_assert!(*a != *b || *b == NONE);
        }
        for (a, b) in self.intact.iter_mut().zip(&other.intact) {
            changed |= *a && !b;
            *a &= b;
        }
        changed
    }
}

struct Checker<'a> {
    code: &'a Allocated<'a>,
    /// The numbers of folded loads by their values.
    folded: HashMap<V, usize>,
    /// The folded loads by their base addresses.
    folded_by_base: HashMap<V, Vec<usize>>,
    /// The values that exist only in the flags.
    flag_values: HashSet<V>,
    errors: Vec<CheckError>,
}

impl<'a> Checker<'a> {
    fn new(code: &'a Allocated<'a>) -> Checker<'a> {
        let mut folded = HashMap::new();
        let mut folded_by_base: HashMap<V, Vec<usize>> = HashMap::new();
        for (v, location) in (0..).map(V).zip(&code.allocation.locations) {
            if let Location::Folded(from) = location {
                folded_by_base.entry(from.base).or_default().push(folded.len());
                folded.insert(v, folded.len());
            }
        }
        let flag_values = code.in_flags.iter().filter_map(|&i| written(&code.function.insts[i])).collect();
        Checker { code, folded, folded_by_base, flag_values, errors: Vec::new() }
    }

    fn report(&mut self, position: Option<usize>, message: String) {
        self.errors.push(Violation::new(self.code.function, position, message));
    }

    fn name(&self, v: V) -> String {
        value_name(self.code.function, v)
    }

    /// Returns the index in [`State::holds`] of a register or a slot.
    fn index(&self, v: V) -> Option<usize> {
        let class = self.code.function.class(v);
        match (self.code.location(v), class) {
            (Location::Register(register), Class::Int) => Some(INT_REGISTERS + register as usize),
            (Location::Register(register), Class::Vec) => Some(VEC_REGISTERS + register as usize),
            (Location::Slot(n), Class::Int) => Some(SLOTS + n as usize),
            (Location::Slot(n), Class::Vec) => Some(SLOTS + (self.code.allocation.int_slots + n) as usize),
            _ => None,
        }
    }

    /// Checks that locations exist, that all assignments of rematerialised values are the same, and that the uses of
    /// the flags and of the scratch register are possible.
    fn decisions(&mut self) {
        let code = self.code;
        for (v, location) in (0..).map(V).zip(&code.allocation.locations) {
            let class = code.function.class(v);
            let slots = match class {
                Class::Int => code.allocation.int_slots,
                Class::Vec => code.allocation.vec_slots,
            };
            let fits = match *location {
                Location::Unused => true,
                Location::Register(register) if class == Class::Int => {
                    let saved = !code.target.callee_saved.contains(&register)
                        || code.allocation.callee_saved >> register & 1 == 1;
                    code.target.ints.contains(&register) && saved
                }
                Location::Register(register) => code.target.vecs.contains(&register),
                Location::Slot(n) => n < slots,
                Location::Const(_) => class == Class::Int,
                Location::VecConst(n) => {
                    class == Class::Vec && code.function.constants.get(n as usize).is_some()
                }
                Location::Folded(_) => class == Class::Vec,
            };
            if !fits {
                self.report(None, format!("{} cannot be in {location:?}", self.name(v)));
            }
        }
        let mut end = 0;
        for shared in &code.shared {
            let ends = [shared.first, shared.last];
            if shared.first < end
                || shared.last < shared.first
                || ends.iter().any(|&i| code.live.keep.get(i) != Some(&true))
            {
                self.report(Some(shared.first), "the scratch register holds another vector here".into());
            }
            end = shared.last + 1;
        }
        for &i in &code.in_flags {
            let d = written(&code.function.insts[i]);
            if d.is_none() || code.next(i).and_then(tested) != d {
                self.report(
                    Some(i),
                    "the result is only in the flags, which the next instruction does not test".into(),
                );
            }
        }
        for (i, inst) in code.function.insts.iter().enumerate().filter(|&(i, _)| code.live.keep[i]) {
            let Some(d) = written(inst) else { continue };
            let agrees = match (code.location(d), inst) {
                (Location::Const(bits), Inst::Const { bits: assigned, .. }) => bits == *assigned,
                (Location::VecConst(n), Inst::VecConst { constant, .. }) => n == *constant,
                (Location::Folded(mem), Inst::VecLoad { from, foldable, .. }) => *foldable && mem == *from,
                (Location::Const(_) | Location::VecConst(_) | Location::Folded(_), _) => false,
                _ => true,
            };
            if !agrees {
                self.report(Some(i), format!("{} is not rematerialised as it is assigned", self.name(d)));
            }
        }
    }

    /// Checks that the instructions that are left out have no effect on the others.
    fn dead(&mut self) {
        let code = self.code;
        let mut read = vec![false; code.function.classes.len()];
        let kept = code.function.insts.iter().zip(&code.live.keep).filter(|(_, keep)| **keep);
        kept.for_each(|(inst, _)| visit_reads(inst, &mut |used| read[used.v.index()] = true));
        for (i, inst) in code.function.insts.iter().enumerate().filter(|&(i, _)| !code.live.keep[i]) {
            let unread = is_pure(inst) && written(inst).is_some_and(|d| !read[d.index()]);
            if !unread && !matches!(inst, Inst::Move { d, a } if d == a) {
                self.report(Some(i), "the instruction is left out, but has an effect".into());
            }
        }
    }

    /// Follows all paths.
    fn paths(&mut self) {
        let code = self.code;
        let cfg = Cfg::new(code.function);
        let slots = code.allocation.int_slots + code.allocation.vec_slots;
        let mut entry =
            State { holds: vec![NONE; SLOTS + slots as usize], intact: vec![false; self.folded.len()] };
        for &param in &code.function.params {
            if let Some(at) = self.index(param) {
                entry.holds[at] = param.0;
            }
        }
        let mut states: Vec<Option<State>> = vec![None; cfg.blocks.len()];
        if let Some(first) = states.first_mut() {
            *first = Some(entry);
        }
        let mut dirty = vec![true; cfg.blocks.len()];
        loop {
            let mut changed = false;
            for &n in &cfg.reachable {
                if !std::mem::replace(&mut dirty[n], false) {
                    continue;
                }
                changed = true;
                let Some(mut state) = states[n].clone() else { continue };
                for i in cfg.blocks[n].insts.clone() {
                    self.step(&mut state, i, &mut None);
                }
                for &to in &cfg.blocks[n].successors {
                    dirty[to] |= match &mut states[to] {
                        Some(other) => other.meet(&state),
                        none => {
                            *none = Some(state.clone());
                            true
                        }
                    };
                }
            }
            if !changed {
                break;
            }
        }
        for (block, state) in cfg.blocks.iter().zip(states) {
            let Some(mut state) = state else { continue };
            for i in block.insts.clone() {
                let mut found = Some(Vec::new());
                self.step(&mut state, i, &mut found);
                for message in found.unwrap_or_default() {
                    self.report(Some(i), message);
                }
            }
        }
    }

    /// Executes an instruction. Errors are added to `found`, if the caller wants them.
    fn step(&self, state: &mut State, i: usize, found: &mut Option<Vec<String>>) {
        let code = self.code;
        let inst = &code.function.insts[i];
        if !code.live.keep[i] {
            return;
        }
        // A vector that is loaded to the scratch register in front of this instruction.
        let shared = self.shared(i);
        if let Some(shared) = shared.filter(|shared| shared.first == i) {
            self.read(state, shared.vector.v, None, found);
            state.holds[SCRATCH] = shared.vector.v.0;
        }
        let (mut uses_scratch, mut reads_shared) = (false, false);
        visit_reads(inst, &mut |read| {
            uses_scratch |= self.read(state, read.v, shared, found);
            let location = self.code.location(read.v);
            reads_shared |= shared.is_some_and(|shared| shared.vector.is(read.v, location));
            if let (true, Some(found)) =
                (self.is_in_flags(read.v) && tested(inst) != Some(read.v), &mut *found)
            {
                found.push(format!("{} is only in the flags, which are not tested", self.name(read.v)));
            }
        });
        uses_scratch |= matches!(inst, Inst::Gather { .. });
        if uses_scratch {
            if let (true, Some(found)) = (reads_shared, &mut *found) {
                found.push("the scratch register holds a vector, but the instruction needs it".into());
            }
            state.holds[SCRATCH] = NONE;
        }
        state.holds[FLAGS] = NONE;
        self.clobber(state, i, inst);
        if let Some(d) = written(inst) {
            self.assign(state, i, inst, d);
        }
        if shared.is_some_and(|shared| shared.last == i) {
            state.holds[SCRATCH] = NONE;
        }
    }

    /// Returns the vector that is in the scratch register at an instruction, by the decisions.
    fn shared(&self, i: usize) -> Option<&Shared> {
        let next = self.code.shared.partition_point(|shared| shared.last < i);
        self.code.shared.get(next).filter(|shared| shared.first <= i)
    }

    /// Checks a use of a value. Returns whether it needs the scratch register for itself.
    fn read(&self, state: &State, v: V, shared: Option<&Shared>, found: &mut Option<Vec<String>>) -> bool {
        let location = self.code.location(v);
        let mut error = |message: &dyn Fn() -> String| {
            if let Some(found) = found {
                found.push(message());
            }
        };
        let held = |at: usize| match state.holds[at] {
            NONE => "nothing known".to_string(),
            other => self.name(V(other)),
        };
        if shared.is_some_and(|shared| shared.vector.is(v, location)) {
            // Two values that are the same constant may share the register.
            let same = |other: u32| {
                other == v.0
                    || other != NONE
                        && matches!(location, Location::VecConst(_))
                        && self.code.location(V(other)) == location
            };
            if !same(state.holds[SCRATCH]) {
                error(&|| {
                    let name = self.name(v);
                    format!("{name} is read from the scratch register, which holds {}", held(SCRATCH))
                });
            }
            return false;
        }
        if self.is_in_flags(v) {
            if state.holds[FLAGS] != v.0 {
                error(&|| format!("{} is read from the flags, which hold {}", self.name(v), held(FLAGS)));
            }
            return false;
        }
        match location {
            Location::Unused => error(&|| format!("{} is read, but has no location", self.name(v))),
            Location::Register(_) | Location::Slot(_) => {
                if let Some(at) = self.index(v)
                    && state.holds[at] != v.0
                {
                    error(&|| {
                        let name = self.name(v);
                        format!(
                            "{name} is read from {}, which holds {}",
                            self.code.location_text(v),
                            held(at)
                        )
                    });
                }
            }
            // These are the same everywhere: see `decisions`.
            Location::Const(_) | Location::VecConst(_) => {}
            Location::Folded(Mem { base, .. }) => {
                if !state.intact[self.folded[&v]] {
                    error(&|| {
                        format!("{}'s base address may have changed since it was loaded", self.name(v))
                    });
                }
                self.read(state, base, None, found);
            }
        }
        let in_memory = matches!(location, Location::Slot(_) | Location::VecConst(_) | Location::Folded(_));
        in_memory && self.code.function.class(v) == Class::Vec
    }

    fn is_in_flags(&self, v: V) -> bool {
        // Such a value is assigned once.
        self.flag_values.contains(&v)
    }

    /// Removes what an instruction changes besides its result.
    fn clobber(&self, state: &mut State, i: usize, inst: &Inst) {
        let saved = match inst {
            Inst::Call { .. } => [0; 2],
            Inst::ColdCall { .. } => {
                let calls = &self.code.cold_calls;
                let found = calls.binary_search_by_key(&i, |(i, _)| *i);
                found.map_or([u32::MAX; 2], |n| calls[n].1)
            }
            _ => return,
        };
        state.holds[SCRATCH] = NONE;
        let mut clear = |first: usize, registers: &[u8], saved: u32| {
            for &register in registers.iter().filter(|register| saved >> **register & 1 == 0) {
                state.holds[first + register as usize] = NONE;
            }
        };
        clear(INT_REGISTERS, self.code.target.caller_saved, saved[0]);
        clear(VEC_REGISTERS, self.code.target.vecs, saved[1]);
    }

    fn assign(&self, state: &mut State, i: usize, inst: &Inst, d: V) {
        // The old value, in whatever else holds it.
        for at in [FLAGS, SCRATCH] {
            if state.holds[at] == d.0 {
                state.holds[at] = NONE;
            }
        }
        for &n in self.folded_by_base.get(&d).into_iter().flatten() {
            state.intact[n] = false;
        }
        if matches!(inst, Inst::Compare { .. }) && self.code.in_flags.binary_search(&i).is_ok() {
            state.holds[FLAGS] = d.0;
        } else if let Some(at) = self.index(d) {
            state.holds[at] = d.0;
        } else if let Some(&n) = self.folded.get(&d) {
            state.intact[n] = true;
        }
    }
}

/// Returns the value that an instruction can find in the flags.
fn tested(inst: &Inst) -> Option<V> {
    match *inst {
        Inst::Select { cond, a, b, .. } if a != cond && b != cond => Some(cond),
        Inst::Branch { cc: Cc::Eq | Cc::Ne, a, b: Src::Imm(0), .. } => Some(a),
        _ => None,
    }
}
