//! Which object an access is meant for, as far as the code shows it: a static analysis, which follows addresses that
//! code computes from constants (LDS, frames) or from its own address (global memory), through registers and branches.
//!
//! VGPRs that are written while some lanes are inactive have another value in these. When EXEC may gain lanes, a VGPR is
//! thus the last value or one of those before; the latter are kept as `inactive`.

use super::body::{Body, Registers};
use super::mask;
use super::value::{self, Base, LARGE, OFFSET, Target, Value};
use crate::calls::{self, Jump};
use crate::check::wait_states::successors;
use isa_spec::pcode::ir::Space;
use isa_spec::tables::Role;
use std::collections::{BTreeMap, BTreeSet};
use wavesim_loader::objects::Objects;
use wavesim_loader::prepared::Prepared;
use wavesim_machine::exec::effects::{Effects, File, Lanes, Use};

/// VGPRs that are followed, accumulation VGPRs included.
const VGPRS: usize = 512;
const SGPRS: usize = 128;
/// Maximum number of places where branches meet; programs with more are not analysed.
const MAX_JOINS: usize = 2000;
/// The stack pointer and the frame pointer (LLVM AMDGPUUsage, *Non-Kernel Functions*).
const STACK_POINTER: u16 = 32;
const FRAME_POINTER: u16 = 33;

/// The object that an access is meant for.
#[derive(Debug, Clone, Copy)]
pub struct Meant {
    pub target: Target,
    /// The constant part of the address is the start of the object, and the rest an index.
    pub is_start: bool,
}

/// What is known at a point of the program.
#[derive(Clone, PartialEq)]
struct Known {
    sgprs: Vec<Value>,
    vgprs: Vec<Value>,
    /// What VGPRs may be in inactive lanes; `None` if there are none that count.
    inactive: Vec<Option<Value>>,
}

impl Registers for Known {
    fn vgpr(&self, number: u16) -> Value {
        self.vgprs.get(number as usize).copied().unwrap_or(Value::Any)
    }

    fn sgpr(&self, number: u16) -> Value {
        self.sgprs.get(number as usize).copied().unwrap_or(Value::Any)
    }
}

impl Known {
    /// At the start of the kernel: v0 to v2 are ids.
    fn kernel() -> Known {
        let mut known = Known {
            sgprs: vec![Value::Any; SGPRS],
            vgprs: vec![Value::Any; VGPRS],
            inactive: vec![None; VGPRS],
        };
        known.vgprs[..3].fill(OFFSET);
        known
    }

    /// At the start of a function.
    fn function() -> Known {
        let mut known = Known {
            sgprs: vec![Value::Any; SGPRS],
            vgprs: vec![Value::Any; VGPRS],
            inactive: vec![Some(Value::Any); VGPRS],
        };
        known.sgprs[STACK_POINTER as usize] = Value::exactly(Base::Frame, 0);
        known
    }

    /// After a call, which preserves the pointers to the stack.
    fn after_call(&self) -> Known {
        let mut known = Known::function();
        for pointer in [STACK_POINTER, FRAME_POINTER] {
            known.sgprs[pointer as usize] = self.sgprs[pointer as usize];
        }
        known
    }
}

/// The analysis.
struct Analysis<'a> {
    prepared: &'a Prepared,
    effects: &'a [Effects],
    objects: &'a Objects,
    jumps: Vec<Option<Jump>>,
    /// What is known where branches meet, by the index of the instruction.
    joins: BTreeMap<usize, Known>,
    pending: BTreeSet<usize>,
    meant: BTreeMap<usize, Vec<Meant>>,
}

/// Returns what the accesses of a program are meant for, by the index of the instruction: those of a lane in order.
pub fn meant(prepared: &Prepared, effects: &[Effects], objects: &Objects) -> BTreeMap<usize, Vec<Meant>> {
    let program = &prepared.program;
    let Some(entry) = program.inst_at(prepared.shape.entry_pc) else { return BTreeMap::new() };
    let mut analysis = Analysis {
        prepared,
        effects,
        objects,
        jumps: calls::jumps(effects),
        joins: BTreeMap::new(),
        pending: BTreeSet::new(),
        meant: BTreeMap::new(),
    };
    analysis.reach(entry, Known::kernel());
    while let Some(from) = analysis.pending.pop_first() {
        if analysis.joins.len() > MAX_JOINS {
            return BTreeMap::new();
        }
        analysis.follow(from);
    }
    analysis.meant
}

impl Analysis<'_> {
    /// Records what is known where a jump leads.
    fn reach(&mut self, index: usize, known: Known) {
        let frame = self.frame_of(index);
        let Some(before) = self.joins.get_mut(&index) else {
            self.joins.insert(index, known);
            self.pending.insert(index);
            return;
        };
        let target = |base, constant| value::object_at(self.objects, base, frame, constant);
        let join = |a: &mut Value, b: Value| {
            let joined = value::join(*a, b, target);
            std::mem::replace(a, joined) != joined
        };
        let mut changed = false;
        for (a, b) in before.sgprs.iter_mut().zip(&known.sgprs) {
            changed |= join(a, *b);
        }
        for (a, b) in before.vgprs.iter_mut().zip(&known.vgprs) {
            changed |= join(a, *b);
        }
        for (a, b) in before.inactive.iter_mut().zip(&known.inactive) {
            match (a.as_mut(), b) {
                (Some(a), Some(b)) => changed |= join(a, *b),
                (None, Some(b)) => (*a, changed) = (Some(*b), true),
                (_, None) => {}
            }
        }
        if changed {
            self.pending.insert(index);
        }
    }

    /// Follows the code from a place to the next ones where branches meet.
    fn follow(&mut self, from: usize) {
        let Some(mut known) = self.joins.get(&from).cloned() else { return };
        let mut at = from;
        loop {
            let next = self.step(at, &mut known);
            let [Some(only), None] = next else {
                next.into_iter().flatten().for_each(|to| self.reach(to, known.clone()));
                return;
            };
            // A loop may lead back here.
            if only != at + 1 || self.joins.contains_key(&only) {
                return self.reach(only, known);
            }
            at = only;
        }
    }

    /// Executes an instruction; returns those that may follow.
    fn step(&mut self, index: usize, known: &mut Known) -> [Option<usize>; 2] {
        let program = &self.prepared.program;
        let (arch, pc) = (program.arch, program.pcs[index]);
        let mut results = Vec::new();
        let mut accesses = Vec::new();
        if let Some((inst, first, second)) = program.semantics(pc) {
            let address = Value::exactly(Base::Code, program.address(pc) as u32);
            for (half, sem) in [Some(first), second].into_iter().enumerate() {
                let Some(sem) = sem else { continue };
                let mut body = Body::new(arch, inst, sem, half == 1, address, &*known);
                body.run();
                results.push((half == 1, body.result.unwrap_or(Value::Any)));
                accesses.append(&mut body.accesses);
            }
        }
        let loaded = self.constant_load(&accesses);
        self.record(index, &accesses);
        if self.jumps[index] == Some(Jump::Call) {
            let target =
                self.effects[index].reads.iter().find(|r| r.role == Role::S0).map(|r| known.sgpr(r.first));
            if let Some(constant) = target.and_then(|target| target.constant_of(Base::Code))
                && let Some(to) = program.inst_at(program.pc_at(u64::from(constant)))
            {
                self.reach(to, Known::function());
            }
            *known = known.after_call();
            return [Some(index + 1).filter(|next| *next < program.insts.len()), None];
        }
        self.write(index, &results, loaded, known);
        successors(program, index)
    }

    /// Returns what a scalar load yields whose address is a constant: the address of a variable, if the linker has
    /// put it there.
    fn constant_load(&self, accesses: &[(Space, Value)]) -> Option<Value> {
        let [(Space::Scalar, address)] = accesses else { return None };
        let constant = address.constant_of(Base::Code)?;
        if value::find(&self.objects.global, constant).is_some() {
            return None;
        }
        let program = &self.prepared.program;
        let moved = self.prepared.shape.code_base.wrapping_sub(program.address(0));
        let mut bytes = [0; 8];
        self.prepared.memory.read(u64::from(constant).wrapping_add(moved), &mut bytes).ok()?;
        let address = u32::try_from(u64::from_le_bytes(bytes).wrapping_sub(moved)).ok()?;
        value::find(&self.objects.global, address)?;
        Some(Value::exactly(Base::Code, address))
    }

    /// Records what the accesses of an instruction are meant for, if all of them are known.
    fn record(&mut self, index: usize, accesses: &[(Space, Value)]) {
        if accesses.is_empty() {
            return;
        }
        let frame = self.frame_of(index);
        let meant: Option<Vec<Meant>> =
            accesses.iter().map(|(space, address)| self.target(*space, *address, frame)).collect();
        match meant {
            Some(meant) => drop(self.meant.insert(index, meant)),
            // Another path may have shown it.
            None => drop(self.meant.remove(&index)),
        }
    }

    /// Returns the object that an address is meant for.
    fn target(&self, space: Space, address: Value, frame: Option<usize>) -> Option<Meant> {
        let Value::At { base, constant, strides } = address else { return None };
        // The frame of a kernel is at the start of scratch.
        let base = if space == Space::Scratch && base == Base::Zero { Base::Frame } else { base };
        let target = value::meant(self.objects, frame, Value::At { base, constant, strides })?;
        let fits = match (space, target) {
            (Space::Lds, Target::Lds(_)) => base == Base::Zero,
            (Space::Scratch, Target::Frame(..)) => true,
            (Space::Global | Space::Scalar | Space::Flat, Target::Global(_)) => base == Base::Code,
            (Space::Flat, Target::Frame(..)) => base == Base::Frame,
            _ => false,
        };
        let bytes = &super::object(self.objects, target).bytes;
        let is_start = u64::from(constant) == bytes.start && bytes.end - bytes.start >= u64::from(LARGE);
        fits.then_some(Meant { target, is_start })
    }

    /// Returns the index of the function in which an instruction is, among those with known frames.
    fn frame_of(&self, index: usize) -> Option<usize> {
        let address = self.prepared.program.address(self.prepared.program.pcs[index]);
        self.objects.frames.iter().position(|frame| frame.code.contains(&address))
    }

    /// Changes what is known of the registers that an instruction writes.
    fn write(&self, index: usize, results: &[(bool, Value)], loaded: Option<Value>, known: &mut Known) {
        let effects = &self.effects[index];
        if let Some(narrows) = self.changes_exec(index) {
            self.change_exec(index, narrows, known);
        }
        for used in &effects.writes {
            if used.relative.is_some() {
                known.vgprs.fill(Value::Any);
                continue;
            }
            let result = results.iter().find(|(second, _)| *second == used.second).map(|r| r.1);
            for number in used.first..used.first.saturating_add(used.count) {
                let is_low = number == used.first && used.role == Role::D0 && used.bits == u32::MAX;
                let new = match (result, loaded) {
                    (_, Some(loaded)) if is_low => loaded,
                    (Some(result), None) if is_low => result,
                    // Carries and masks.
                    _ if matches!(used.role, Role::Vcc | Role::D1) => OFFSET,
                    _ => Value::Any,
                };
                set(known, used, number, new);
            }
        }
    }

    /// Returns whether an instruction changes EXEC, and if so, whether it only removes lanes.
    fn changes_exec(&self, index: usize) -> Option<bool> {
        let effects = &self.effects[index];
        effects.writes.iter().any(mask::is_exec).then(|| {
            let program = &self.prepared.program;
            let body = program.semantics(program.pcs[index]);
            body.is_some_and(|(_, body, second)| second.is_none() && mask::only_removes_lanes(body, effects))
        })
    }

    fn change_exec(&self, index: usize, narrows: bool, known: &mut Known) {
        let frame = self.frame_of(index);
        let target = |base, constant| value::object_at(self.objects, base, frame, constant);
        for (active, inactive) in known.vgprs.iter_mut().zip(&mut known.inactive) {
            let all = inactive.map_or(*active, |other| value::join(*active, other, target));
            *inactive = Some(all);
            if !narrows {
                *active = all;
            }
        }
    }
}

fn set(known: &mut Known, used: &Use, number: u16, new: Value) {
    let slot = match used.file {
        File::Sgpr => known.sgprs.get_mut(number as usize),
        File::Vgpr => known.vgprs.get_mut(number as usize),
        File::Scc => None,
    };
    if let Some(slot) = slot {
        *slot = if used.file == File::Vgpr && used.lanes != Lanes::Active { Value::Any } else { new };
    }
}
