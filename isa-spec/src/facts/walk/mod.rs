//! Abstract interpretation of a body: statements, branches and loops. `place` records reads and writes,
//! `expr` evaluates, `test` reads conditions.

mod expr;
mod place;
mod test;

use super::merge::{Seen, merge};
use super::value::{Guard, Test, Value};
use super::{Condition, Facts, MemoryTouch, What};
use crate::pcode::builtins::{Builtin, Control};
use crate::pcode::ir::*;
use crate::pcode::visit::{self, Visitor};
use std::collections::{BTreeMap, BTreeSet};

/// Budget of expressions; once it is spent, loops are no longer unrolled. AMD's longest body, a matrix product, needs more than half.
const STEPS: u32 = 2_000_000;

/// Walks a body and merges what it touches; [`Facts::of`] describes the result.
pub fn facts(sem: &Semantics, wave_size: u32) -> Facts {
    let mut walk = Walk {
        shape: sem.shape,
        wave_size,
        point: Point { locals: vec![Value::Known(0); sem.locals.len()], ..Point::default() },
        arrays: sem.locals.iter().map(|l| l.len.is_some()).collect(),
        path: Path::default(),
        seen: Seen::default(),
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
        registers: merge(walk.seen, wave_size).into(),
        memory: walk.memory.into_iter().collect::<Vec<_>>().into(),
        calls: walk.calls.into_iter().collect::<Vec<_>>().into(),
        fields: sem.uses.fields.iter().copied().collect::<Vec<_>>().into(),
        copies: copies(&sem.body),
        compares: compares(&sem.body),
    }
}

/// State that changes along a path and is joined after a branch.
#[derive(Clone, Default)]
struct Point {
    locals: Vec<Value>,
    /// Bits that have been assigned, which reads do not find as they were.
    written: BTreeMap<What, u128>,
    /// Bits that may have been, on some path.
    maybe_written: BTreeMap<What, u128>,
}

/// The branches taken.
#[derive(Default)]
struct Path {
    conditions: Vec<Condition>,
    /// Lanes that are active.
    active: Vec<u32>,
    unknown: u32,
}

/// The lane of a register.
#[derive(Clone, Copy)]
pub enum LaneOf {
    /// No lane: a scalar body.
    Once,
    /// The lane that runs (`laneId`).
    Own,
    /// A fixed lane.
    Number(u32),
    /// The lowest active lane, or lane 0 if none is.
    Lowest,
    /// The lane that a scalar source selects.
    Selected(Role),
    /// A lane that depends on data.
    Any,
}

struct Walk {
    shape: Shape,
    wave_size: u32,
    point: Point,
    arrays: Vec<bool>,
    path: Path,
    seen: Seen,
    memory: BTreeSet<MemoryTouch>,
    calls: BTreeSet<Control>,
    steps: u32,
    /// M0 and EXEC may differ from what they were when the instruction started.
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
                // The state at the end of each arm, with the condition that holds in it and after it.
                let mut ends: Vec<(Point, Test)> = Vec::new();
                let mut last = None;
                // A `return` in an arm leaves the rest open.
                let mut returns = 0;
                for (cond, body) in arms {
                    let test = self.test(cond);
                    if test.known == Some(false) {
                        continue;
                    }
                    // What is known is copied for either arm.
                    self.steps += 4 * self.point.size();
                    let start = self.point.clone();
                    let before = self.depth();
                    self.enter(&test.yes);
                    let inside = self.path.unknown;
                    self.stmts(body);
                    returns += self.path.unknown - inside;
                    self.leave(before);
                    let end = std::mem::replace(&mut self.point, start);
                    if test.known == Some(true) {
                        last = Some(end);
                        break;
                    }
                    self.enter(&test.no);
                    ends.push((end, test));
                }
                self.point = match last {
                    Some(end) => end,
                    None => {
                        let inside = self.path.unknown;
                        self.stmts(otherwise);
                        returns += self.path.unknown - inside;
                        self.point.clone()
                    }
                };
                self.leave((conditions, active, unknown));
                self.path.unknown += returns;
                while let Some((end, test)) = ends.pop() {
                    self.point = end.join(self.point.clone(), &test.yes, &test.no);
                }
            }
            Stmt::For { var, from, to, body, .. } => {
                let (from, to) = (self.expr(from), self.expr(to));
                match (from, to) {
                    (Value::Known(from), Value::Known(to)) if touches(body) => {
                        for i in from as u32 as i32..=to as u32 as i32 {
                            self.steps += 1;
                            if self.steps > STEPS {
                                self.forget(body, Some(*var));
                                self.open(body);
                                break;
                            }
                            self.point.locals[*var as usize] = Value::Known(i as u32 as u128);
                            self.stmts(body);
                        }
                    }
                    (Value::Known(_), Value::Known(_)) if !touches(body) => self.forget(body, Some(*var)),
                    _ => {
                        self.forget(body, Some(*var));
                        self.open(body);
                    }
                }
            }
            Stmt::While { cond, body, .. } => {
                self.forget(body, None);
                let test = self.test(cond);
                if test.known != Some(false) {
                    self.open(body);
                }
            }
            Stmt::Return { .. } => self.path.unknown += 1,
            Stmt::Call { builtin, args, .. } => {
                self.args(args);
                self.calls.insert(*builtin);
            }
        }
    }

    /// A body that may run any number of times; what it assigns has been forgotten.
    fn open(&mut self, body: &[Stmt]) {
        let (before, start) = (self.depth(), self.point.clone());
        self.enter(&[Guard::Unknown]);
        let inside = self.path.unknown;
        self.stmts(body);
        // A `return` in it leaves the rest open.
        let returns = self.path.unknown - inside;
        self.leave(before);
        self.path.unknown += returns;
        let open = [Guard::Unknown];
        self.point = start.join(self.point.clone(), &open, &open);
        self.forget(body, None);
    }

    /// Forgets the values of everything that the statements assign.
    fn forget(&mut self, body: &[Stmt], var: Option<LocalId>) {
        let mut locals = BTreeSet::from_iter(var);
        if assigned(body, &mut locals) {
            self.scalar_written();
        }
        for id in locals {
            self.point.locals[id as usize] = Value::Unknown;
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
                Guard::NoLane | Guard::FarIndex | Guard::BeyondLimit | Guard::Unknown => {
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

impl Point {
    /// Where two branches meet, by what holds in either.
    fn join(self, other: Point, guards: &[Guard], others: &[Guard]) -> Point {
        let values = self.locals.into_iter().zip(other.locals);
        let locals = values.map(|(x, y)| x.join(y, guards, others)).collect();
        let both = |(what, bits): (&What, &u128)| Some((*what, bits & other.written.get(what)?));
        let written = self.written.iter().filter_map(both).collect();
        let mut maybe_written = self.maybe_written;
        for (what, bits) in other.maybe_written {
            *maybe_written.entry(what).or_insert(0) |= bits;
        }
        Point { locals, written, maybe_written }
    }

    /// Steps that a copy costs.
    fn size(&self) -> u32 {
        (self.locals.len() + self.maybe_written.len()) as u32 / 8
    }
}

fn copies(body: &[Stmt]) -> bool {
    let [Stmt::Assign { place, value, .. }] = body else { return false };
    place.kind == PlaceKind::Operand(Role::D0) && matches!(value.kind, ExprKind::Operand(Role::S0))
}

/// Whether a comparison for equality chooses what is stored in memory.
fn compares(body: &[Stmt]) -> bool {
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

/// The expression whose bits another one takes under another type.
fn reinterpreted(expr: &Expr) -> &Expr {
    match &expr.kind {
        ExprKind::Bits(inner) => reinterpreted(inner),
        _ => expr,
    }
}

/// Whether statements touch more than locals.
fn touches(list: &[Stmt]) -> bool {
    struct Touches(bool);
    impl<'a> Visitor<'a> for Touches {
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
    let mut found = Touches(false);
    found.stmts(list);
    found.0
}

/// Locals that statements assign, and whether they assign scalar registers.
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
