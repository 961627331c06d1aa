//! Vectorises loops over consecutive elements or lanes in bodies that run once per wave: a row of a matrix,
//! the lanes of a register. Each becomes a [`Stmt::Vector`], which reads and writes whole vectors. The code
//! in between has no bounds checks and compiles to vector instructions.
//!
//! If a field of the instruction selects between conversions, there is a vector statement for each choice.
//!
//! A loop qualifies if it assigns only locals that it alone uses, elements of arrays and VGPRs, and if no
//! iteration reads what another iteration writes.

use super::variants;
use crate::ir::*;
use crate::visit::{any_in, each_stmt, each_value, parts_mut};
use isa_spec::pcode::ir::{LocalId, State};

/// Minimum number of elements of a vector; shorter loops gain nothing.
const MIN_ELEMENTS: u32 = 8;
/// Maximum number of elements of a vector: lane loops process 32 lanes at a time.
const MAX_ELEMENTS: u32 = 32;
/// Maximum number of variants of a loop.
const MAX_VARIANTS: u32 = 8;

/// Rewrites the loops of a body.
pub fn run(once: &mut Once) {
    // Locals that a loop assigns must not be used elsewhere: a vector statement does not set them.
    let uses = count(&once.body);
    list(&mut once.body, &uses);
}

fn list(body: &mut [Stmt], uses: &[u32]) {
    for stmt in body {
        crate::visit::stmt_lists_mut(stmt, &mut |inner| list(inner, uses));
        if let Some((found, shape)) = find(stmt, uses) {
            let mut most = MAX_VARIANTS;
            let variants = found.variants(shape, &mut most);
            if let Some(converted) = variants.or_else(|| found.vector(shape)) {
                *stmt = converted;
            }
        }
    }
}

/// Returns the vector statement of a loop that shares no local with other statements.
pub(super) fn of_loop(stmt: &Stmt) -> Option<Vector> {
    let (found, shape) = find(stmt, &count(std::slice::from_ref(stmt)))?;
    match found.vector(shape)? {
        Stmt::Vector(vector) => Some(*vector),
        _ => None,
    }
}

/// Counts the reads of each local.
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

/// The iterations of a loop.
#[derive(Clone, Copy)]
struct Iterations {
    from: u32,
    count: u32,
    /// As [`Vector::lanes`].
    lanes: bool,
}

/// Returns a loop that may be equivalent to vector statements.
fn find(stmt: &Stmt, uses: &[u32]) -> Option<(Loop, Iterations)> {
    let Stmt::For { var, from, to, body } = stmt else { return None };
    let ValueKind::Const(from) = from.kind else { return None };
    let (count, lanes) = match &to.kind {
        ValueKind::Const(to) => ((*to as u32).wrapping_sub(from as u32).wrapping_add(1), false),
        // All lanes of the wave, 32 at a time.
        _ if from == 0 && is_last_lane(to) => (MAX_ELEMENTS, true),
        _ => return None,
    };
    if !(MIN_ELEMENTS..=MAX_ELEMENTS).contains(&count) {
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
    Some((loop_, Iterations { from: from as u32, count, lanes }))
}

pub(super) fn is_last_lane(to: &Value) -> bool {
    match &to.kind {
        ValueKind::Op2(Op2::Sub, size, one) => {
            size.kind == ValueKind::State(State::WaveSize) && one.kind == ValueKind::Const(1)
        }
        _ => false,
    }
}

/// A loop that is a candidate for a vector statement.
#[derive(Clone)]
struct Loop {
    var: LocalId,
    /// The loop variable, and the locals that the loop assigns.
    own: Vec<LocalId>,
    /// The values of these locals at the current statement, in terms of the loop variable and of invariants.
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
                let value = self.in_loop_terms(value)?;
                self.values.retain(|(known, _)| known != id);
                self.values.push((*id, value));
            }
            Stmt::SetElement { id, index, value } => {
                let (start, value) = (self.in_loop_terms(index)?, self.in_loop_terms(value)?);
                self.writes.push(write(VectorPlace::Elements { id: *id, start }, value));
            }
            Stmt::SetVgpr { lane, reg, value } => {
                let (lane, reg, value) =
                    (self.in_loop_terms(lane)?, self.in_loop_terms(reg)?, self.in_loop_terms(value)?);
                self.writes.push(write(VectorPlace::Vgpr { lane, reg }, value));
            }
            Stmt::If { arms, otherwise } if otherwise.is_empty() && arms.len() == 1 => {
                let condition = self.in_loop_terms(&arms[0].0)?;
                let both = match when {
                    Some(outer) => {
                        let both = ValueKind::LogicalAnd(Box::new(outer.clone()), Box::new(condition));
                        Value::new(both, HostWidth::W32)
                    }
                    None => condition,
                };
                // Values assigned under the condition are known only there.
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

    /// Expresses a value in terms of the loop variable and of invariants. Returns `None` if the value has
    /// side effects or depends on an earlier iteration.
    fn in_loop_terms(&self, value: &Value) -> Option<Value> {
        // The value must not read what this iteration has written; values of locals were read before.
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

    /// Returns whether a value increases by 1 with the loop variable.
    fn is_unit_stride(&self, value: &Value) -> bool {
        match &value.kind {
            ValueKind::Var(Var::Local(id)) => *id == self.var,
            ValueKind::Op2(Op2::Add, a, b) => {
                self.is_unit_stride(a) && !self.varies(b) || self.is_unit_stride(b) && !self.varies(a)
            }
            ValueKind::Op2(Op2::Sub, a, b) => self.is_unit_stride(a) && !self.varies(b),
            _ => false,
        }
    }

    /// Returns vector statements for the choices between conversions, of which at most `most` remain.
    fn variants(&self, iterations: Iterations, most: &mut u32) -> Option<Stmt> {
        let Some(condition) = variants::condition(self.writes.iter().map(|write| &write.value)) else {
            *most = most.checked_sub(1)?;
            return self.vector(iterations);
        };
        let mut variant = |holds: bool| {
            let mut variant = self.clone();
            for write in &mut variant.writes {
                variants::assume(&mut write.value, &condition, holds);
            }
            variant.variants(iterations, most)
        };
        if let Some(condition) = variants::constant(&condition) {
            return variant(condition != 0);
        }
        let (yes, no) = (variant(true)?, variant(false)?);
        Some(Stmt::If { arms: vec![(condition, vec![yes])], otherwise: vec![no] })
    }

    fn vector(&self, Iterations { from, count, lanes }: Iterations) -> Option<Stmt> {
        let mut writes = self.writes.clone();
        let mut reads = Vec::new();
        for write in &mut writes {
            match &write.to {
                VectorPlace::Elements { start, .. } if self.is_unit_stride(start) => {}
                VectorPlace::Vgpr { lane, reg } if self.is_unit_stride(lane) && !self.varies(reg) => {}
                _ => return None,
            }
            write.when.iter_mut().for_each(|when| self.hoist(when, &mut reads));
            self.hoist(&mut write.value, &mut reads);
        }
        let places: Vec<&VectorPlace> = writes.iter().map(|write| &write.to).collect();
        // Each array is written once. An iteration may write several registers of its own lane, and read
        // other registers of that lane.
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
            let independent = match read {
                VectorRead::Place(VectorPlace::Vgpr { lane, .. }) | VectorRead::Lanes { lane, .. } => {
                    own(lane)
                }
                VectorRead::Place(place) => {
                    places.contains(&place) || place.array().is_none_or(|id| !arrays.contains(&id))
                }
                VectorRead::Wave { .. } | VectorRead::WaveVgpr { .. } => written.is_empty(),
                // A conversion reads values of the iterations, after their computation. The lane mask does
                // not change.
                VectorRead::Converted(..) | VectorRead::Active => true,
                // Invariant values are read first.
                VectorRead::Same(value) => !any_in(value, &|v| match &v.kind {
                    ValueKind::Element(id, _) => arrays.contains(id),
                    ValueKind::OperandLane { .. } | ValueKind::Vgpr { .. } => !written.is_empty(),
                    _ => false,
                }),
            };
            if !independent {
                return None;
            }
        }
        // Reads that no vector covers may overlap the writes.
        let uncovered = |v: &Value| {
            matches!(v.kind, ValueKind::Element(..) | ValueKind::OperandLane { .. } | ValueKind::Vgpr { .. })
        };
        let values = writes.iter().flat_map(|write| write.when.iter().chain([&write.value]));
        if values.into_iter().any(|v| any_in(v, &uncovered)) {
            return None;
        }
        Some(Stmt::Vector(Box::new(Vector { var: self.var, from, count, lanes, reads, writes })))
    }

    /// Replaces the reads in a value by vectors, and invariant values by values that are computed once.
    fn hoist(&self, value: &mut Value, reads: &mut Vec<VectorRead>) {
        if !self.varies(value) {
            if !matches!(value.kind, ValueKind::Const(_) | ValueKind::Var(_)) {
                let host_width = value.host_width;
                let same = std::mem::replace(value, Value::new(ValueKind::Const(0), host_width));
                value.kind = ValueKind::VectorRead {
                    read: add_read(reads, VectorRead::Same(same)),
                    at: VectorAt::Same,
                };
            }
            return;
        }
        let read = match &mut value.kind {
            ValueKind::Element(id, index) if self.is_unit_stride(index) => {
                VectorRead::Place(VectorPlace::Elements { id: *id, start: (**index).clone() })
            }
            ValueKind::Vgpr { lane, reg } if self.is_unit_stride(lane) && !self.varies(reg) => {
                VectorRead::Place(VectorPlace::Vgpr { lane: (**lane).clone(), reg: (**reg).clone() })
            }
            ValueKind::OperandLane { slot, lane, index }
                if self.is_unit_stride(lane) && !self.varies(index) =>
            {
                VectorRead::Lanes { slot: *slot, lane: (**lane).clone(), index: (**index).clone() }
            }
            // Any lane: read the register in all lanes.
            ValueKind::OperandLane { slot, lane, index } if !self.varies(index) => {
                let wave = VectorRead::Wave { slot: *slot, index: (**index).clone() };
                self.hoist(lane, reads);
                let at = VectorAt::Lane(lane.clone());
                value.kind = ValueKind::VectorRead { read: add_read(reads, wave), at };
                return;
            }
            ValueKind::Vgpr { lane, reg } if !self.varies(reg) => {
                let wave = VectorRead::WaveVgpr { reg: (**reg).clone() };
                self.hoist(lane, reads);
                let at = VectorAt::Lane(lane.clone());
                value.kind = ValueKind::VectorRead { read: add_read(reads, wave), at };
                return;
            }
            _ => {
                parts_mut(value, &mut |part| self.hoist(part, reads));
                return;
            }
        };
        value.kind = ValueKind::VectorRead { read: add_read(reads, read), at: VectorAt::Own };
    }
}

/// Returns the number of a read, adding it if it is new.
pub(super) fn add_read(reads: &mut Vec<VectorRead>, read: VectorRead) -> usize {
    if let Some(at) = reads.iter().position(|other| *other == read) {
        return at;
    }
    reads.push(read);
    reads.len() - 1
}
