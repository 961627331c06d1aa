//! Loops over adjacent elements or lanes in bodies that run once a wave: a row of a matrix, the lanes of
//! a register. Each becomes a [`Stmt::Vector`], which reads and writes whole vectors, so that what is between
//! has no bounds to check and compiles to vectors.
//!
//! A loop qualifies if it only assigns locals of its own, elements of arrays and VGPRs, and if what it reads
//! cannot be what another of its iterations writes.

use crate::ir::*;
use crate::visit::{any_in, each_stmt, each_value, parts_mut};
use isa_spec::pcode::ir::{LocalId, State};

/// Fewest elements of a vector: shorter loops gain nothing.
const LEAST: u32 = 8;
/// Most elements of a vector: lane loops run 32 lanes at a time.
const MOST: u32 = 32;

/// Rewrites the loops of a body.
pub fn run(once: &mut Once) {
    // A local that a loop assigns must be its own: it is not there afterwards.
    let uses = count(&once.body);
    list(&mut once.body, &uses);
}

fn list(body: &mut [Stmt], uses: &[u32]) {
    for stmt in body {
        crate::visit::stmt_lists_mut(stmt, &mut |inner| list(inner, uses));
        if let Some(vector) = convert(stmt, uses) {
            *stmt = vector;
        }
    }
}

/// The vector statement of a loop that shares no local with others.
pub(super) fn of_loop(stmt: &Stmt) -> Option<Vector> {
    match convert(stmt, &count(std::slice::from_ref(stmt)))? {
        Stmt::Vector(vector) => Some(*vector),
        _ => None,
    }
}

/// How often each local is read.
fn count(body: &[Stmt]) -> Vec<u32> {
    let mut uses = Vec::new();
    each_value(body, &mut |v| {
        if let ValueKind::Var(Var::Local(id)) = v.kind {
            uses.resize(uses.len().max(id as usize + 1), 0);
            uses[id as usize] += 1;
        }
    });
    uses
}

/// The vector statement that does what a loop does.
fn convert(stmt: &Stmt, uses: &[u32]) -> Option<Stmt> {
    let Stmt::For { var, from, to, body } = stmt else { return None };
    let ValueKind::Const(from) = from.kind else { return None };
    let (count, lanes) = match &to.kind {
        ValueKind::Const(to) => ((*to as u32).wrapping_sub(from as u32).wrapping_add(1), false),
        // All lanes of the wave, 32 at a time.
        _ if from == 0 && is_last_lane(to) => (MOST, true),
        _ => return None,
    };
    if !(LEAST..=MOST).contains(&count) {
        return None;
    }
    let mut own = vec![*var];
    each_stmt(body, &mut |s| {
        if let Stmt::Set(Var::Local(id), _) = s {
            own.push(*id);
        }
    });
    let inside = self::count(body);
    let read = |uses: &[u32], id: LocalId| uses.get(id as usize).copied().unwrap_or(0);
    if own.iter().any(|id| read(&inside, *id) != read(uses, *id)) {
        return None;
    }
    let mut loop_ = Loop { var: *var, own, values: Vec::new(), writes: Vec::new() };
    loop_.stmts(body, None)?;
    loop_.vector(from as u32, count, lanes)
}

pub(super) fn is_last_lane(to: &Value) -> bool {
    match &to.kind {
        ValueKind::Op2(Op2::Sub, size, one) => {
            size.kind == ValueKind::State(State::WaveSize) && one.kind == ValueKind::Const(1)
        }
        _ => false,
    }
}

/// A loop that may become a vector statement.
struct Loop {
    var: LocalId,
    /// The variable, and locals that the loop assigns.
    own: Vec<LocalId>,
    /// What they are at this point, in terms of the variable and of what does not change.
    values: Vec<(LocalId, Value)>,
    writes: Vec<VectorWrite>,
}

impl Loop {
    fn stmts(&mut self, body: &[Stmt], when: Option<&Value>) -> Option<()> {
        body.iter().try_for_each(|stmt| self.stmt(stmt, when))
    }

    fn stmt(&mut self, stmt: &Stmt, when: Option<&Value>) -> Option<()> {
        let write = |to, value| VectorWrite { to, when: when.cloned(), value };
        match stmt {
            Stmt::Set(Var::Local(id), value) => {
                let value = self.known(value)?;
                self.values.retain(|(known, _)| known != id);
                self.values.push((*id, value));
            }
            Stmt::SetElement { id, index, value } => {
                let (start, value) = (self.known(index)?, self.known(value)?);
                self.writes.push(write(VectorPlace::Elements { id: *id, start }, value));
            }
            Stmt::SetVgpr { lane, reg, value } => {
                let (lane, reg, value) = (self.known(lane)?, self.known(reg)?, self.known(value)?);
                self.writes.push(write(VectorPlace::Vgpr { lane, reg }, value));
            }
            Stmt::If { arms, otherwise } if otherwise.is_empty() && arms.len() == 1 => {
                let condition = self.known(&arms[0].0)?;
                let both = match when {
                    Some(outer) => {
                        let both = ValueKind::LogicalAnd(Box::new(outer.clone()), Box::new(condition));
                        Value::new(both, Hold::W32)
                    }
                    None => condition,
                };
                // What is assigned under the condition is known there only.
                let mut values = self.values.clone();
                self.stmts(&arms[0].1, Some(&both))?;
                each_stmt(&arms[0].1, &mut |s| {
                    if let Stmt::Set(Var::Local(id), _) = s {
                        values.retain(|(known, _)| known != id);
                    }
                });
                self.values = values;
            }
            _ => return None,
        }
        Some(())
    }

    /// A value in terms of the variable and of what the loop does not assign; none if it has effects or is
    /// what an earlier iteration left.
    fn known(&self, value: &Value) -> Option<Value> {
        // Nor what this iteration has written; what locals have read is from before.
        let written = |v: &Value| match &v.kind {
            ValueKind::Element(id, _) => self.writes.iter().any(|write| write.to.array() == Some(*id)),
            ValueKind::OperandLane { .. } | ValueKind::Vgpr { .. } => {
                self.writes.iter().any(|write| write.to.array().is_none())
            }
            _ => false,
        };
        if any_in(value, &written) {
            return None;
        }
        let mut value = value.clone();
        let mut all = true;
        self.substitute(&mut value, &mut all);
        all.then_some(value)
    }

    fn substitute(&self, value: &mut Value, all: &mut bool) {
        match &value.kind {
            ValueKind::Var(Var::Local(id)) if *id == self.var => {}
            ValueKind::Var(Var::Local(id)) if self.own.contains(id) => {
                match self.values.iter().find(|(known, _)| known == id) {
                    Some((_, known)) => *value = known.clone(),
                    None => *all = false,
                }
            }
            ValueKind::Var(Var::Whole)
            | ValueKind::Load { .. }
            | ValueKind::Control { .. }
            | ValueKind::StagedLane { .. } => *all = false,
            _ => parts_mut(value, &mut |part| self.substitute(part, all)),
        }
    }

    fn varies(&self, value: &Value) -> bool {
        any_in(value, &|v| v.kind == ValueKind::Var(Var::Local(self.var)))
    }

    /// Whether a value counts up with the variable.
    fn counts(&self, value: &Value) -> bool {
        match &value.kind {
            ValueKind::Var(Var::Local(id)) => *id == self.var,
            ValueKind::Op2(Op2::Add, a, b) => {
                self.counts(a) && !self.varies(b) || self.counts(b) && !self.varies(a)
            }
            ValueKind::Op2(Op2::Sub, a, b) => self.counts(a) && !self.varies(b),
            _ => false,
        }
    }

    fn vector(mut self, from: u32, count: u32, lanes: bool) -> Option<Stmt> {
        let mut writes = std::mem::take(&mut self.writes);
        let mut reads = Vec::new();
        for write in &mut writes {
            match &write.to {
                VectorPlace::Elements { start, .. } if self.counts(start) => {}
                VectorPlace::Vgpr { lane, reg } if self.counts(lane) && !self.varies(reg) => {}
                _ => return None,
            }
            write.when.iter_mut().for_each(|when| self.lift(when, &mut reads));
            self.lift(&mut write.value, &mut reads);
        }
        let places: Vec<&VectorPlace> = writes.iter().map(|write| &write.to).collect();
        // One write to each array. An iteration may write several registers of its own lane, and read others
        // of it.
        let arrays: Vec<LocalId> = places.iter().filter_map(|to| to.array()).collect();
        let lanes_of = |to: &&VectorPlace| match to {
            VectorPlace::Vgpr { lane, .. } => Some(lane.clone()),
            VectorPlace::Elements { .. } => None,
        };
        let written: Vec<Value> = places.iter().filter_map(lanes_of).collect();
        let twice = (1..arrays.len()).any(|at| arrays[..at].contains(&arrays[at]));
        if twice || written.iter().any(|lane| *lane != written[0]) {
            return None;
        }
        let own = |lane: &Value| written.first().is_none_or(|written| written == lane);
        for read in &reads {
            let fine = match read {
                VectorRead::Place(VectorPlace::Vgpr { lane, .. }) | VectorRead::Lanes { lane, .. } => {
                    own(lane)
                }
                VectorRead::Place(place) => {
                    places.contains(&place) || place.array().is_none_or(|id| !arrays.contains(&id))
                }
                VectorRead::Wave { .. } | VectorRead::WaveVgpr { .. } => written.is_empty(),
                // Made of what the iterations compute, afterwards.
                VectorRead::Converted(..) | VectorRead::Active => true,
                // What does not change is read first.
                VectorRead::Same(value) => !any_in(value, &|v| match &v.kind {
                    ValueKind::Element(id, _) => arrays.contains(id),
                    ValueKind::OperandLane { .. } | ValueKind::Vgpr { .. } => !written.is_empty(),
                    _ => false,
                }),
            };
            if !fine {
                return None;
            }
        }
        // Elements that no vector covers may be any.
        let loose = |v: &Value| {
            matches!(v.kind, ValueKind::Element(..) | ValueKind::OperandLane { .. } | ValueKind::Vgpr { .. })
        };
        let values = writes.iter().flat_map(|write| write.when.iter().chain([&write.value]));
        if values.into_iter().any(|v| any_in(v, &loose)) {
            return None;
        }
        Some(Stmt::Vector(Box::new(Vector { var: self.var, from, count, lanes, reads, writes })))
    }

    /// Replaces what a value reads by vectors, and what does not change by a value that is computed once.
    fn lift(&self, value: &mut Value, reads: &mut Vec<VectorRead>) {
        if !self.varies(value) {
            if !matches!(value.kind, ValueKind::Const(_) | ValueKind::Var(_)) {
                let hold = value.hold;
                let same = std::mem::replace(value, Value::new(ValueKind::Const(0), hold));
                value.kind =
                    ValueKind::VectorRead { read: add(reads, VectorRead::Same(same)), at: VectorAt::Same };
            }
            return;
        }
        let read = match &mut value.kind {
            ValueKind::Element(id, index) if self.counts(index) => {
                VectorRead::Place(VectorPlace::Elements { id: *id, start: (**index).clone() })
            }
            ValueKind::Vgpr { lane, reg } if self.counts(lane) && !self.varies(reg) => {
                VectorRead::Place(VectorPlace::Vgpr { lane: (**lane).clone(), reg: (**reg).clone() })
            }
            ValueKind::OperandLane { slot, lane, index } if self.counts(lane) && !self.varies(index) => {
                VectorRead::Lanes { slot: *slot, lane: (**lane).clone(), index: (**index).clone() }
            }
            // Any lane: of all that there are.
            ValueKind::OperandLane { slot, lane, index } if !self.varies(index) => {
                let wave = VectorRead::Wave { slot: *slot, index: (**index).clone() };
                self.lift(lane, reads);
                let at = VectorAt::Lane(lane.clone());
                value.kind = ValueKind::VectorRead { read: add(reads, wave), at };
                return;
            }
            ValueKind::Vgpr { lane, reg } if !self.varies(reg) => {
                let wave = VectorRead::WaveVgpr { reg: (**reg).clone() };
                self.lift(lane, reads);
                let at = VectorAt::Lane(lane.clone());
                value.kind = ValueKind::VectorRead { read: add(reads, wave), at };
                return;
            }
            _ => {
                parts_mut(value, &mut |part| self.lift(part, reads));
                return;
            }
        };
        value.kind = ValueKind::VectorRead { read: add(reads, read), at: VectorAt::Own };
    }
}

/// The number of a read, which is made once.
pub(super) fn add(reads: &mut Vec<VectorRead>, read: VectorRead) -> usize {
    if let Some(at) = reads.iter().position(|other| *other == read) {
        return at;
    }
    reads.push(read);
    reads.len() - 1
}
