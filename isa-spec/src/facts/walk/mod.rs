//! Abstract interpretation of a body: statements, branches and loops. `place` records reads and writes,
//! `expr` evaluates expressions, `test` evaluates conditions.

mod expr;
mod place;
mod test;

use super::merge::{AccessSet, merge};
use super::value::{Guard, Test, Value};
use super::{Condition, Facts, MemoryAccess, Resource};
use crate::pcode::builtins::{Builtin, Control};
use crate::pcode::ir::*;
use crate::pcode::visit::{self, Visitor};
use std::collections::{BTreeMap, BTreeSet};

/// Budget of evaluated expressions. Once it is spent, loops are no longer unrolled. AMD's longest body, a
/// matrix product, uses more than half of it.
const STEPS: u32 = 2_000_000;

/// Interprets a body and merges the accesses that it records; [`Facts::of`] describes the result.
pub fn facts(sem: &Semantics, wave_size: u32) -> Facts {
    let mut walk = Walk {
        shape: sem.shape,
        wave_size,
        flow: FlowState { locals: vec![Value::Known(0); sem.locals.len()], ..FlowState::default() },
        arrays: sem.locals.iter().map(|l| l.len.is_some()).collect(),
        path: Path::default(),
        accesses: AccessSet::default(),
        memory: BTreeSet::new(),
        calls: BTreeSet::new(),
        steps: 0,
        m0_changes: sem.uses.state_writes.contains(&State::M0),
        exec_changes: [State::Exec, State::ExecLo, State::ExecHi]
            .iter()
            .any(|state| sem.uses.state_writes.contains(state)),
    };
    walk.stmts(&sem.body);
    Facts {
        registers: merge(walk.accesses, wave_size).into(),
        memory: walk.memory.into_iter().collect::<Vec<_>>().into(),
        calls: walk.calls.into_iter().collect::<Vec<_>>().into(),
        fields: sem.uses.fields.iter().copied().collect::<Vec<_>>().into(),
        is_copy: is_copy(&sem.body),
        is_compare_swap: is_compare_swap(&sem.body),
    }
}

/// The abstract state at one program point; the states of two branches are joined after them.
#[derive(Clone, Default)]
struct FlowState {
    locals: Vec<Value>,
    /// Bits that every path to this point has assigned: reading them does not observe the initial value.
    written: BTreeMap<Resource, u128>,
    /// Bits that some path to this point has assigned.
    maybe_written: BTreeMap<Resource, u128>,
}

/// The branch conditions under which the current statement runs.
#[derive(Default)]
struct Path {
    conditions: Vec<Condition>,
    /// Lanes that are known to be active.
    active: Vec<u32>,
    unknown: u32,
}

/// The lane of a register access.
#[derive(Clone, Copy)]
pub enum LaneOf {
    /// No lane: a scalar body.
    Once,
    /// The lane that runs (`laneId`).
    Own,
    /// A fixed lane.
    Number(u32),
    /// The lowest active lane, or lane 0 if none is.
    LowestActive,
    /// The lane that a scalar source selects.
    Selected(Role),
    /// A lane index computed from data.
    Any,
}

struct Walk {
    shape: Shape,
    wave_size: u32,
    flow: FlowState,
    arrays: Vec<bool>,
    path: Path,
    accesses: AccessSet,
    memory: BTreeSet<MemoryAccess>,
    calls: BTreeSet<Control>,
    steps: u32,
    /// M0 and EXEC may differ from their values at the instruction's start.
    m0_changes: bool,
    exec_changes: bool,
}

impl Walk {
    fn stmts(&mut self, list: &[Stmt]) {
        list.iter().for_each(|stmt| self.stmt(stmt));
    }

    fn stmt(&mut self, stmt: &Stmt) {
        match stmt {
            Stmt::Assign { place, value, .. } => {
                let value = self.expr(value);
                self.assign(place, value);
            }
            Stmt::If { arms, otherwise, .. } => {
                let (conditions, active, unknown) =
                    (self.path.conditions.len(), self.path.active.len(), self.path.unknown);
                // The state at the end of each arm, with the arm's condition.
                let mut ends: Vec<(FlowState, Test)> = Vec::new();
                let mut last = None;
                // After a `return` in an arm, execution of the following statements is uncertain.
                let mut returns = 0;
                for (cond, body) in arms {
                    let test = self.test(cond);
                    if test.known == Some(false) {
                        continue;
                    }
                    // Each arm works on a copy of the state, which is joined with the others: account for the
                    // cost.
                    self.steps += 16 + 4 * self.flow.size();
                    let start = self.flow.clone();
                    let before = self.depth();
                    self.enter(&test.if_true);
                    let unknown_before = self.path.unknown;
                    self.stmts(body);
                    returns += self.path.unknown - unknown_before;
                    self.leave(before);
                    let end = std::mem::replace(&mut self.flow, start);
                    if test.known == Some(true) {
                        last = Some(end);
                        break;
                    }
                    self.enter(&test.if_false);
                    ends.push((end, test));
                }
                self.flow = match last {
                    Some(end) => end,
                    None => {
                        let unknown_before = self.path.unknown;
                        self.stmts(otherwise);
                        returns += self.path.unknown - unknown_before;
                        self.flow.clone()
                    }
                };
                self.leave((conditions, active, unknown));
                self.path.unknown += returns;
                while let Some((end, test)) = ends.pop() {
                    self.flow = end.join(self.flow.clone(), &test.if_true, &test.if_false);
                }
            }
            Stmt::For { var, from, to, body, .. } => {
                let (from, to) = (self.expr(from), self.expr(to));
                match (from, to) {
                    (Value::Known(from), Value::Known(to)) if accesses_machine(body) => {
                        for i in from as u32 as i32..=to as u32 as i32 {
                            self.steps += 1;
                            if self.steps > STEPS {
                                self.forget(body, Some(*var));
                                self.loop_body(body);
                                break;
                            }
                            self.flow.locals[*var as usize] = Value::Known(i as u32 as u128);
                            self.stmts(body);
                        }
                    }
                    (Value::Known(_), Value::Known(_)) if !accesses_machine(body) => {
                        self.forget(body, Some(*var))
                    }
                    _ => {
                        self.forget(body, Some(*var));
                        self.loop_body(body);
                    }
                }
            }
            Stmt::While { cond, body, .. } => {
                self.forget(body, None);
                let test = self.test(cond);
                if test.known != Some(false) {
                    self.loop_body(body);
                }
            }
            Stmt::Return { .. } => self.path.unknown += 1,
            Stmt::Call { builtin, args, .. } => {
                self.args(args);
                self.calls.insert(*builtin);
            }
        }
    }

    /// Interprets the body of a loop that may run any number of times; the caller has forgotten the values
    /// that the body assigns.
    fn loop_body(&mut self, body: &[Stmt]) {
        let (before, start) = (self.depth(), self.flow.clone());
        self.enter(&[Guard::Unknown]);
        let unknown_before = self.path.unknown;
        self.stmts(body);
        // After a `return` in the loop, execution of the following statements is uncertain.
        let returns = self.path.unknown - unknown_before;
        self.leave(before);
        self.path.unknown += returns;
        let guards = [Guard::Unknown];
        self.flow = start.join(self.flow.clone(), &guards, &guards);
        self.forget(body, None);
    }

    /// Sets everything that the statements assign to unknown.
    fn forget(&mut self, body: &[Stmt], var: Option<LocalId>) {
        let mut locals = BTreeSet::from_iter(var);
        if assigned(body, &mut locals) {
            self.scalar_written();
        }
        for id in locals {
            self.flow.locals[id as usize] = Value::Unknown;
        }
    }

    fn depth(&self) -> (usize, usize, u32) {
        (self.path.conditions.len(), self.path.active.len(), self.path.unknown)
    }

    fn enter(&mut self, guards: &[Guard]) {
        for guard in guards {
            match guard {
                Guard::Instruction(condition) => self.path.conditions.push(*condition),
                Guard::Active(lane) => self.path.active.push(*lane),
                Guard::ExecZero | Guard::IndexAbove255 | Guard::BeyondLimit | Guard::Unknown => {
                    self.path.unknown += 1
                }
            }
        }
    }

    fn leave(&mut self, (conditions, active, unknown): (usize, usize, u32)) {
        self.path.conditions.truncate(conditions);
        self.path.active.truncate(active);
        self.path.unknown = unknown;
    }

    fn conditions(&self) -> Vec<Condition> {
        BTreeSet::from_iter(self.path.conditions.iter().copied()).into_iter().collect()
    }
}

impl FlowState {
    /// Joins the states at the ends of two branches, given the guards that hold in each.
    fn join(self, other: FlowState, guards: &[Guard], others: &[Guard]) -> FlowState {
        let values = self.locals.into_iter().zip(other.locals);
        let locals = values.map(|(x, y)| x.join(y, guards, others)).collect();
        let both =
            |(resource, bits): (&Resource, &u128)| Some((*resource, bits & other.written.get(resource)?));
        let written = self.written.iter().filter_map(both).collect();
        let mut maybe_written = self.maybe_written;
        for (resource, bits) in other.maybe_written {
            *maybe_written.entry(resource).or_insert(0) |= bits;
        }
        FlowState { locals, written, maybe_written }
    }

    /// The cost of a copy, in steps of the budget.
    fn size(&self) -> u32 {
        (self.locals.len() + self.maybe_written.len()) as u32 / 8
    }
}

fn is_copy(body: &[Stmt]) -> bool {
    let [Stmt::Assign { place, value, .. }] = body else { return false };
    place.kind == PlaceKind::Operand(Role::D0) && matches!(value.kind, ExprKind::Operand(Role::S0))
}

/// Whether a comparison for equality selects the value that is stored in memory.
fn is_compare_swap(body: &[Stmt]) -> bool {
    struct Compares(bool);
    impl<'a> Visitor<'a> for Compares {
        fn stmt(&mut self, stmt: &'a Stmt) {
            if let Stmt::Assign { place, value, .. } = stmt
                && let (PlaceKind::Mem { .. }, ExprKind::Select(condition, ..)) =
                    (&place.kind, &reinterpreted(value).kind)
            {
                self.0 |= matches!(condition.kind, ExprKind::Binary(BinOp::Eq, ..));
            }
            visit::walk_stmt(self, stmt);
        }
    }
    let mut found = Compares(false);
    found.stmts(body);
    found.0
}

/// Strips reinterpretations of bits from an expression.
fn reinterpreted(expr: &Expr) -> &Expr {
    match &expr.kind {
        ExprKind::Bits(inner) => reinterpreted(inner),
        _ => expr,
    }
}

/// Whether statements access anything other than locals.
fn accesses_machine(list: &[Stmt]) -> bool {
    struct AccessesMachine(bool);
    impl<'a> Visitor<'a> for AccessesMachine {
        fn stmt(&mut self, stmt: &'a Stmt) {
            self.0 |= matches!(stmt, Stmt::Return { .. } | Stmt::Call { .. });
            visit::walk_stmt(self, stmt);
        }

        fn place(&mut self, place: &'a Place) {
            use PlaceKind::{Mem, Operand, Sgpr, State, Vgpr};
            self.0 |= matches!(place.kind, Operand(_) | State(_) | Vgpr { .. } | Sgpr { .. } | Mem { .. });
            visit::walk_place(self, place);
        }

        fn expr(&mut self, expr: &'a Expr) {
            use ExprKind::{Call, Mem, Operand, OperandLane, Sgpr, State, Vgpr};
            self.0 |= match &expr.kind {
                Operand(_) | OperandLane { .. } | State(_) | Vgpr { .. } | Sgpr { .. } | Mem { .. } => true,
                Call(builtin, _) => matches!(builtin, Builtin::Control(_)),
                _ => false,
            };
            visit::walk_expr(self, expr);
        }
    }
    let mut found = AccessesMachine(false);
    found.stmts(list);
    found.0
}

/// Collects the locals that statements assign. Returns whether the statements assign scalar registers.
fn assigned(list: &[Stmt], out: &mut BTreeSet<LocalId>) -> bool {
    struct Assigned<'o>(&'o mut BTreeSet<LocalId>, bool);
    impl<'a> Visitor<'a> for Assigned<'_> {
        fn stmt(&mut self, stmt: &'a Stmt) {
            if let Stmt::For { var, .. } = stmt {
                self.0.insert(*var);
            }
            visit::walk_stmt(self, stmt);
        }

        fn place(&mut self, place: &'a Place) {
            if let PlaceKind::Local(id) | PlaceKind::Element(id, _) = place.kind {
                self.0.insert(id);
            }
            self.1 |= matches!(place.kind, PlaceKind::Operand(_) | PlaceKind::Sgpr { .. });
            visit::walk_place(self, place);
        }

        fn expr(&mut self, _: &'a Expr) {}
    }
    let mut found = Assigned(out, false);
    found.stmts(list);
    found.1
}
