//! A body run without values.

use super::merge::{MOST_CONDITIONAL, Seen, merge};
use super::value::{Guard, Kind, Test, Value};
use super::{Condition, Facts, Flow, Index, MemoryTouch, Number, Of, What};
use crate::arith::{self, FloatEnv};
use crate::eval::{binary, convert, pure};
use crate::pcode::builtins::{Builtin, Control, Pure};
use crate::pcode::ir::*;
use crate::pcode::visit::{self, Visitor};
use std::collections::{BTreeMap, BTreeSet};

/// Expressions looked at before loops are no longer unrolled.
const STEPS: u32 = 1_000_000;
/// Registers have lower numbers.
const NO_REGISTER: u32 = 256;

pub fn facts(sem: &Semantics, wave_size: u32) -> Facts {
    let mut walk = Walk {
        shape: sem.shape,
        wave_size,
        point: Point { locals: vec![Value::known(0); sem.locals.len()], ..Point::default() },
        arrays: sem.locals.iter().map(|l| l.len.is_some()).collect(),
        path: Path::default(),
        seen: Seen::default(),
        memory: BTreeSet::new(),
        calls: BTreeSet::new(),
        flows: Vec::new(),
        results: 0,
        entangled: BTreeSet::new(),
        steps: 0,
        m0_changes: sem.uses.state_writes.contains(&State::M0),
        exec_changes: [State::Exec, State::ExecLo, State::ExecHi]
            .iter()
            .any(|state| sem.uses.state_writes.contains(state)),
    };
    walk.stmts(&sem.body);
    let registers = merge(walk.seen, wave_size);
    let is_wide = |role| {
        registers.iter().any(|t| !t.write && t.what == What::Operand(role) && t.bits > u32::MAX as u128)
    };
    // One dword has no upper ones.
    let counts = |(role, flow): &(Role, Flow)| {
        !walk.entangled.contains(role) && (*flow == Flow::Copy || is_wide(*role))
    };
    let flows: Vec<_> = match walk.results {
        1 => walk.flows.iter().filter(|flow| counts(flow)).copied().collect(),
        _ => Vec::new(),
    };
    Facts {
        registers: registers.into(),
        memory: walk.memory.into_iter().collect::<Vec<_>>().into(),
        calls: walk.calls.into_iter().collect::<Vec<_>>().into(),
        fields: sem.uses.fields.iter().copied().collect::<Vec<_>>().into(),
        flows: flows.into(),
    }
}

/// What changes along a path and differs behind a branch.
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
    Once,
    Own,
    Number(u32),
    Lowest,
    Selected(Role),
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
    /// Of the assignment of D0.
    flows: Vec<(Role, Flow)>,
    /// Assignments of D0.
    results: u32,
    /// Sources that something else than D0 depends on.
    entangled: BTreeSet<Role>,
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
                // What a carry depends on is not counted.
                let before = is_carry(place).then(|| self.entangled.clone());
                let value = self.expr(value);
                self.assign(place, value);
                if let Some(before) = before {
                    self.entangled = before;
                }
            }
            Stmt::If { arms, otherwise, .. } => {
                let (conditions, active, unknown) =
                    (self.path.conditions.len(), self.path.active.len(), self.path.unknown);
                // Where each arm ends, and what holds there and behind it.
                let mut ends: Vec<(Point, Test)> = Vec::new();
                let mut last = None;
                // A `return` in an arm leaves the rest open.
                let mut returns = 0;
                for (cond, body) in arms {
                    let test = self.test(cond);
                    if test.known == Some(false) {
                        continue;
                    }
                    self.steps += self.point.size();
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
                match (from.kind, to.kind) {
                    (Kind::Known(from), Kind::Known(to)) if touches(body) => {
                        for i in from as u32 as i32..=to as u32 as i32 {
                            self.steps += 1;
                            if self.steps > STEPS {
                                self.forget(body, Some(*var));
                                self.open(body);
                                break;
                            }
                            self.point.locals[*var as usize] = Value::known(i as u32 as u128);
                            self.stmts(body);
                        }
                    }
                    (Kind::Known(_), Kind::Known(_)) if !touches(body) => self.forget(body, Some(*var)),
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

    /// Nothing is known any more of what statements assign that may run before.
    fn forget(&mut self, body: &[Stmt], var: Option<LocalId>) {
        let mut locals = BTreeSet::from_iter(var);
        if assigned(body, &mut locals) {
            self.scalar_written();
        }
        for id in locals {
            self.point.locals[id as usize] = Value::unknown();
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

    fn touch(&mut self, write: bool, what: What, bits: u128, lane: LaneOf) {
        let active = match lane {
            LaneOf::Number(lane) if self.path.active.is_empty() => Ok((lane, false)),
            LaneOf::Number(lane) if self.path.active.iter().all(|a| *a == lane) => Ok((lane, true)),
            // A lane, if another one is active.
            LaneOf::Number(_) => Err(LaneOf::Any),
            lane => Err(lane),
        };
        let always = self.path.unknown == 0 && !matches!(active, Err(LaneOf::Any));
        let under = match self.path.active.as_slice() {
            [] => None,
            [lane, rest @ ..] => Some(if rest.iter().all(|a| a == lane) { 1 << (lane & 63) } else { 0 }),
        };
        self.seen.add(write, what, bits, self.conditions(), always, active, under);
    }

    fn own(&self) -> LaneOf {
        if self.shape == Shape::Lane { LaneOf::Own } else { LaneOf::Once }
    }

    /// A scalar register is written that may be M0 or EXEC. What runs per lane writes at the end.
    fn scalar_written(&mut self) {
        if self.shape != Shape::Lane {
            (self.m0_changes, self.exec_changes) = (true, true);
        }
    }

    /// Reads bits of an operand or a state as it was.
    fn read(&mut self, what: What, bits: u128) {
        let (whole, shift, taken) = whole(what, bits);
        let written = self.point.written.get(&whole).copied().unwrap_or(0) >> shift;
        let old = if taken & !written == 0 {
            0
        } else if taken == bits {
            bits & !written
        } else {
            bits
        };
        if old != 0 {
            let maybe = self.point.maybe_written.get(&whole).copied().unwrap_or(0) >> shift;
            let open = (taken & !written & maybe != 0) as u32;
            let lane = if matches!(what, What::State(_)) { LaneOf::Once } else { self.own() };
            self.path.unknown += open;
            self.touch(false, what, old, lane);
            self.path.unknown -= open;
        }
    }

    fn write(&mut self, what: What, bits: u128, certain: bool) {
        let lane = if matches!(what, What::State(_)) { LaneOf::Once } else { self.own() };
        self.path.unknown += !certain as u32;
        self.touch(true, what, bits, lane);
        self.path.unknown -= !certain as u32;
        let (whole, shift, bits) = whole(what, bits);
        *self.point.maybe_written.entry(whole).or_insert(0) |= bits << shift;
        if certain {
            *self.point.written.entry(whole).or_insert(0) |= bits << shift;
        }
        if let What::Operand(_) = what {
            self.scalar_written();
        }
    }

    fn assign(&mut self, place: &Place, value: Value) {
        match &place.kind {
            PlaceKind::Local(id) => self.point.locals[*id as usize] = value,
            PlaceKind::Element(id, index) => {
                self.consume(&value);
                let index = self.expr(index);
                self.consume(&index);
                self.point.locals[*id as usize] = Value::unknown();
            }
            PlaceKind::Operand(Role::D0) => {
                self.result(&value);
                self.write(What::Operand(Role::D0), arith::mask(place.ty.width()), true);
            }
            PlaceKind::Operand(role) => {
                self.consume(&value);
                self.write(What::Operand(*role), arith::mask(place.ty.width()), true);
            }
            PlaceKind::State(state) => {
                self.consume(&value);
                self.write(What::State(*state), arith::mask(place.ty.width()), true);
            }
            PlaceKind::Slice { base, lo } => {
                let lo = self.expr(lo);
                self.consume(&lo);
                self.consume(&value);
                self.part(base, lo, place.ty.width());
            }
            PlaceKind::Vgpr { lane, reg } => {
                self.consume(&value);
                self.register(true, Some(lane), reg, u32::MAX as u128);
            }
            PlaceKind::Sgpr { reg } => {
                self.consume(&value);
                self.register(true, None, reg, u32::MAX as u128);
            }
            PlaceKind::Mem { space, addr } => {
                self.consume(&value);
                self.access(*space, addr, place.ty.width(), true);
            }
            PlaceKind::Concat(parts) => {
                self.consume(&value);
                for part in parts.iter().rev() {
                    self.assign(part, Value::unknown());
                }
            }
        }
    }

    /// Assigns `width` bits of a place; the others stay.
    fn part(&mut self, place: &Place, lo: Value, width: u32) {
        let whole = arith::mask(place.ty.width());
        // A lane's own bit of a mask stands for the mask.
        let bits = match lo.kind {
            Kind::Known(lo) if lo < 128 => Some((arith::mask(width) << lo as u32) & whole),
            Kind::Own => Some(whole),
            _ => None,
        };
        match &place.kind {
            PlaceKind::Local(id) => self.point.locals[*id as usize] = Value::unknown(),
            PlaceKind::Element(id, index) => {
                self.expr(index);
                self.point.locals[*id as usize] = Value::unknown();
            }
            PlaceKind::Operand(role) => {
                self.results += (*role == Role::D0) as u32;
                self.write(What::Operand(*role), bits.unwrap_or(whole), bits.is_some());
            }
            PlaceKind::State(state) => {
                self.write(What::State(*state), bits.unwrap_or(whole), bits.is_some());
            }
            PlaceKind::Vgpr { lane, reg } => {
                self.path.unknown += bits.is_none() as u32;
                self.register(true, Some(lane), reg, bits.unwrap_or(whole));
                self.path.unknown -= bits.is_none() as u32;
            }
            PlaceKind::Sgpr { reg } => {
                self.path.unknown += bits.is_none() as u32;
                self.register(true, None, reg, bits.unwrap_or(whole));
                self.path.unknown -= bits.is_none() as u32;
            }
            PlaceKind::Slice { base, lo: inner } => {
                let inner = self.expr(inner);
                match (inner.kind, lo.kind) {
                    (Kind::Known(a), Kind::Known(b)) => self.part(base, Value::known(a + b), width),
                    (Kind::Known(a), _) => {
                        self.path.unknown += 1;
                        self.part(base, Value::known(a), place.ty.width());
                        self.path.unknown -= 1;
                    }
                    _ => self.part(base, Value::unknown(), width),
                }
            }
            PlaceKind::Mem { space, addr } => {
                self.access(*space, addr, place.ty.width(), false);
                self.access(*space, addr, place.ty.width(), true);
            }
            PlaceKind::Concat(parts) => {
                self.path.unknown += 1;
                for part in parts.iter().rev() {
                    self.assign(part, Value::unknown());
                }
                self.path.unknown -= 1;
            }
        }
    }

    /// D0 is assigned, all of it.
    fn result(&mut self, value: &Value) {
        self.results += 1;
        if self.path.unknown == 0 && self.path.conditions.is_empty() {
            self.flows.clone_from(&value.flow);
        } else {
            self.consume(value);
        }
    }

    /// Something depends on a value.
    fn consume(&mut self, value: &Value) {
        self.entangled.extend(value.flow.iter().map(|(role, _)| *role));
    }

    fn access(&mut self, space: Space, addr: &Expr, width: u32, write: bool) {
        let addr = self.expr(addr);
        self.consume(&addr);
        let (mut when, mut always) = (self.conditions(), self.path.unknown == 0);
        if self.memory.len() >= MOST_CONDITIONAL && !when.is_empty() {
            (when, always) = (Vec::new(), false);
        }
        let (bytes, when) = (width.div_ceil(8), when.into());
        self.memory.insert(MemoryTouch { space, bytes, write, when, always });
    }

    /// A register by number, of `lane` if it is a vector register.
    fn register(&mut self, write: bool, lane: Option<&Expr>, reg: &Expr, bits: u128) {
        let at = lane.map(|lane| self.lane(lane));
        let reg = self.expr(reg);
        self.consume(&reg);
        let at = at.unwrap_or(LaneOf::Once);
        // The same for all that M0 adds to, see `exec::effects`: no other stand-in for what is out of range is known there.
        let told = |number: &Number| match (number.index, number.otherwise) {
            (None, _) => true,
            (Some(_), None) => false,
            (Some(_), Some(otherwise)) if lane.is_some() => otherwise == u32::MAX,
            (Some(_), Some(otherwise)) => otherwise != u32::MAX && (!write || otherwise >= NO_REGISTER),
        };
        let numbers = reg.numbers().filter(|list| list.iter().all(|(_, number)| told(number)));
        let before = self.depth();
        match numbers {
            Some(list) => {
                for (guards, mut number) in list {
                    if (number.base, number.index) == (None, None) && number.first >= NO_REGISTER {
                        // v0 stands in for a source that is no register.
                        if write || lane.is_none() {
                            continue;
                        }
                        number.first = 0;
                    }
                    self.enter(&guards);
                    let what = if lane.is_some() { What::Vgpr(number) } else { What::Sgpr(number) };
                    self.touch(write, what, bits, at);
                    self.leave(before);
                }
            }
            None => {
                self.enter(&[Guard::Unknown]);
                self.touch(write, if lane.is_some() { What::AnyVgpr } else { What::AnySgpr }, bits, at);
                self.leave(before);
            }
        }
        if write && lane.is_none() {
            self.scalar_written();
        }
    }

    fn lane(&mut self, lane: &Expr) -> LaneOf {
        let lane = self.expr(lane);
        self.consume(&lane);
        match lane.kind {
            Kind::Own => LaneOf::Own,
            Kind::Known(n) => LaneOf::Number(n as u32),
            Kind::Lowest => LaneOf::Lowest,
            Kind::Selected(role) => LaneOf::Selected(role),
            _ => LaneOf::Any,
        }
    }

    fn args(&mut self, args: &[Expr]) -> Vec<Value> {
        let values: Vec<Value> = args.iter().map(|a| self.expr(a)).collect();
        values.iter().for_each(|v| self.consume(v));
        values
    }

    fn expr(&mut self, e: &Expr) -> Value {
        self.steps += 1;
        let width = e.ty.width();
        match &e.kind {
            ExprKind::Const(bits) => Value::known(*bits & arith::mask(width)),
            ExprKind::Local(id) if self.arrays[*id as usize] => Value::unknown(),
            ExprKind::Local(id) => self.point.locals[*id as usize].clone(),
            ExprKind::Element(_, index) => {
                let index = self.expr(index);
                self.consume(&index);
                Value::unknown()
            }
            ExprKind::Operand(role) => self.operand(*role, arith::mask(width)),
            ExprKind::OperandIndex(role) => {
                Value::of(Kind::Fixed { of: Of::Index(*role), shift: 0, mask: u32::MAX })
            }
            ExprKind::OperandLane { role, lane, index } => {
                let (lane, index) = (self.lane(lane), self.expr(index));
                let bits = match index.kind {
                    Kind::Known(n) if n < 4 => u32::MAX as u128 >> (32 - width.min(32)) << (32 * n as u32),
                    _ => u128::MAX,
                };
                self.entangled.insert(*role);
                match index.kind {
                    Kind::Known(n) if n < 4 => self.touch(false, What::Operand(*role), bits, lane),
                    Kind::Known(n) => {
                        let what = What::Dwords { role: *role, first: n as u32, count: 1 };
                        self.touch(false, what, u32::MAX as u128, lane);
                    }
                    _ => {
                        self.path.unknown += 1;
                        self.touch(false, What::Operand(*role), bits, lane);
                        self.path.unknown -= 1;
                    }
                }
                Value::unknown()
            }
            ExprKind::Field(name) => Value::of(Kind::Fixed { of: Of::Field(name), shift: 0, mask: u32::MAX }),
            ExprKind::State(state) => self.state(*state, width),
            ExprKind::Slice { base, lo } => self.slice(base, lo, width),
            ExprKind::Unary(op, a) => match op {
                UnOp::LogicalNot => self.truth(e),
                UnOp::Not | UnOp::Neg => {
                    let a_ty = a.ty;
                    let a = self.expr(a);
                    match (a.kind.clone(), op) {
                        (Kind::Known(v), UnOp::Not) => Value::known(!v & arith::mask(width)),
                        (Kind::Known(v), _) if !a_ty.is_float() => {
                            Value::known(v.wrapping_neg() & arith::mask(width))
                        }
                        _ if a_ty.is_float() => {
                            self.consume(&a);
                            Value::unknown()
                        }
                        _ => a.upwards(Value::unknown(), Kind::Unknown),
                    }
                }
            },
            ExprKind::Binary(op, a, b) => self.binary(e, *op, a, b),
            ExprKind::Select(c, a, b) => {
                let test = self.test(c);
                match test.known {
                    Some(true) => return self.expr(a),
                    Some(false) => return self.expr(b),
                    None => {}
                }
                let mut side = |expr: &Expr, guards: &[Guard]| {
                    let before = self.depth();
                    self.enter(guards);
                    let value = self.expr(expr);
                    self.leave(before);
                    value
                };
                let (a, b) = (side(a, &test.yes), side(b, &test.no));
                a.join(b, &test.yes, &test.no)
            }
            ExprKind::Convert(a) => {
                let (from, a) = (a.ty, self.expr(a));
                self.converted(a, from, e.ty)
            }
            ExprKind::Bits(a) => {
                // A narrower view of an operand is of its low bits.
                if let ExprKind::Operand(role) = &a.kind {
                    return self.operand(*role, arith::mask(width.min(a.ty.width())));
                }
                let (from, a) = (a.ty, self.expr(a));
                self.resized(a, from.width(), width)
            }
            ExprKind::Call(builtin, args) => self.call(*builtin, args),
            ExprKind::Vgpr { lane, reg } => {
                self.register(false, Some(lane), reg, arith::mask(width));
                Value::unknown()
            }
            ExprKind::Sgpr { reg } => {
                self.register(false, None, reg, arith::mask(width));
                Value::unknown()
            }
            ExprKind::Mem { space, addr } => {
                self.access(*space, addr, width, false);
                Value::unknown()
            }
            ExprKind::Concat(parts) => {
                let mut out = Value::known(0);
                let mut known = Some(0u128);
                for part in parts {
                    let width = part.ty.width();
                    let value = self.expr(part);
                    known = match (known, &value.kind) {
                        (Some(high), Kind::Known(low)) => {
                            Some(high.checked_shl(width).unwrap_or(0) | low & arith::mask(width))
                        }
                        _ => None,
                    };
                    out = out.upwards(value, Kind::Unknown);
                }
                if let Some(bits) = known {
                    out.kind = Kind::Known(bits);
                }
                out
            }
        }
    }

    fn operand(&mut self, role: Role, bits: u128) -> Value {
        self.read(What::Operand(role), bits);
        let whole = bits >= u32::MAX as u128;
        let kind = if whole && self.shape != Shape::Lane { Kind::Operand(role) } else { Kind::Unknown };
        Value { kind, flow: vec![(role, if whole { Flow::Copy } else { Flow::Upwards })] }
    }

    fn state(&mut self, state: State, width: u32) -> Value {
        let known = |n: u32| Value::known(n as u128);
        match state {
            State::LaneId if self.shape == Shape::Lane => return Value::of(Kind::Own),
            State::LaneId => return known(0),
            State::Wave32 => return known((self.wave_size == 32) as u32),
            State::Wave64 => return known((self.wave_size == 64) as u32),
            State::WaveSize => return known(self.wave_size),
            // Every vector instruction depends on EXEC: that is no read of it.
            State::Exec | State::Execz if self.shape != Shape::Scalar => {}
            _ => self.read(What::State(state), arith::mask(width)),
        }
        // Lanes see the EXEC that the instruction started with.
        let exec_changes = self.exec_changes && self.shape != Shape::Lane;
        Value::of(match state {
            State::M0 if !self.m0_changes => Kind::M0(Index { shift: 0, mask: u32::MAX }),
            State::Exec if !exec_changes => Kind::Exec,
            _ => Kind::Unknown,
        })
    }

    fn slice(&mut self, base: &Expr, lo: &Expr, width: u32) -> Value {
        let at = self.expr(lo);
        if let (ExprKind::Operand(role), Kind::Known(at)) = (&base.kind, &at.kind)
            && *at < 128
        {
            let bits = arith::mask(width) << *at as u32 & arith::mask(base.ty.width());
            let value = self.operand(*role, bits);
            if *at != 0 {
                self.entangled.insert(*role);
            }
            return Value { kind: Kind::Unknown, ..value };
        }
        let base = self.expr(base);
        let kind = match (&base.kind, &at.kind) {
            (Kind::Exec, Kind::Known(lane)) if width == 1 => Kind::ExecBit(*lane as u32),
            (Kind::Known(v), Kind::Known(at)) => {
                Kind::Known(v.checked_shr(*at as u32).unwrap_or(0) & arith::mask(width))
            }
            (Kind::Fixed { .. } | Kind::M0(_), Kind::Known(at)) => {
                let low = masked(base.kind.clone(), width_mask(width), *at as u32);
                low.unwrap_or(Kind::Unknown)
            }
            _ => Kind::Unknown,
        };
        if at.kind != Kind::Known(0) {
            self.consume(&base);
        }
        self.consume(&at);
        Value { kind, flow: base.flow.into_iter().map(|(role, _)| (role, Flow::Upwards)).collect() }
    }

    /// The same bits in another width, zero-extended.
    fn resized(&mut self, a: Value, from: u32, to: u32) -> Value {
        let kind = match &a.kind {
            Kind::Known(v) => Kind::Known(v & arith::mask(to)),
            Kind::Exec if to < self.wave_size => Kind::Unknown,
            kind if to >= from || to >= 32 => kind.clone(),
            kind => masked(kind.clone(), width_mask(to), 0).unwrap_or(Kind::Unknown),
        };
        let flow = match to == from {
            true => a.flow,
            false => a.flow.into_iter().map(|(role, _)| (role, Flow::Upwards)).collect(),
        };
        Value { kind, flow }
    }

    fn converted(&mut self, a: Value, from: Ty, to: Ty) -> Value {
        if from.is_float() || to.is_float() {
            self.consume(&a);
            return Value::unknown();
        }
        match a.kind {
            Kind::Known(v) => Value::known(convert(v, from, to, &env()) & arith::mask(to.width())),
            // Copies of the sign are above it.
            Kind::Fixed { mask, .. } | Kind::M0(Index { mask, .. })
                if from.is_signed()
                    && to.width() > from.width()
                    && mask >> (from.width() - 1).min(31) & 1 == 1 =>
            {
                Value { kind: Kind::Unknown, ..self.resized(a, from.width(), to.width()) }
            }
            _ => self.resized(a, from.width(), to.width()),
        }
    }

    fn call(&mut self, builtin: Builtin, args: &[Expr]) -> Value {
        let types: Vec<Ty> = args.iter().map(|a| a.ty).collect();
        let values = self.args(args);
        let builtin = match builtin {
            Builtin::Pure(builtin) => builtin,
            Builtin::Control(builtin) => {
                self.calls.insert(builtin);
                return Value::unknown();
            }
        };
        if let (Pure::CountTrailingZeros, Some(Kind::Exec)) = (builtin, values.first().map(|v| &v.kind)) {
            return Value::of(Kind::Lowest);
        }
        let bits: Option<Vec<u128>> =
            values.iter().map(|v| if let Kind::Known(bits) = v.kind { Some(bits) } else { None }).collect();
        // A clamp depends on the instruction.
        let clamps = matches!(
            builtin,
            Pure::ClampU16
                | Pure::ClampI16
                | Pure::ClampU32
                | Pure::ClampI32
                | Pure::ClampU64
                | Pure::ClampI64
        );
        let known = bits
            .filter(|_| !clamps && !types.iter().any(|t| t.is_float()))
            .map(|bits| pure(builtin, &bits, &types, &env(), false));
        known.map_or(Value::unknown(), Value::known)
    }

    fn binary(&mut self, e: &Expr, op: BinOp, a: &Expr, b: &Expr) -> Value {
        use BinOp::{Add, And, Eq, Ge, Gt, Le, Lg, LogicalAnd, LogicalOr, Lt, Mul, Ne, Or, Shl, Sub, Xor};
        if matches!(op, LogicalAnd | LogicalOr | Eq | Ne | Lt | Le | Gt | Ge) {
            return self.truth(e);
        }
        let (x, y) = (self.expr(a), self.expr(b));
        if let (Kind::Known(m), Kind::Known(n)) = (&x.kind, &y.kind)
            && !a.ty.is_float()
            && !b.ty.is_float()
        {
            let value = binary(op, *m, *n, a.ty, b.ty, &env());
            return Value::known(value & arith::mask(e.ty.width()));
        }
        let entangles = op == Lg || a.ty.is_float();
        if entangles || !matches!(op, Add | Sub | Mul | And | Or | Xor | Shl) {
            self.consume(&x);
            self.consume(&y);
            return Value::unknown();
        }
        if op == Shl {
            self.consume(&y);
            return x.upwards(Value::unknown(), Kind::Unknown);
        }
        let kind = match op {
            Add => sums(&x, &y).or_else(|| sums(&y, &x)),
            And => both_bits(&x, &y, self.wave_size).or_else(|| both_bits(&y, &x, self.wave_size)),
            _ => None,
        };
        x.upwards(y, kind.unwrap_or(Kind::Unknown))
    }

    /// A condition as a value.
    fn truth(&mut self, e: &Expr) -> Value {
        match self.test(e) {
            Test { known: Some(known), .. } => Value::known(known as u128),
            Test { yes, no, .. } => match (yes.as_slice(), no.as_slice()) {
                ([Guard::Active(lane)], _) => Value::of(Kind::ExecBit(*lane)),
                _ => Value::unknown(),
            },
        }
    }

    fn test(&mut self, e: &Expr) -> Test {
        match &e.kind {
            ExprKind::Unary(UnOp::LogicalNot, a) => self.test(a).not(),
            ExprKind::Binary(BinOp::LogicalAnd, a, b) => self.and(a, b, false),
            // Not (not a and not b).
            ExprKind::Binary(BinOp::LogicalOr, a, b) => self.and(a, b, true).not(),
            ExprKind::Binary(op @ (BinOp::Eq | BinOp::Ne), a, b) => {
                let (x, y) = (self.expr(a), self.expr(b));
                self.consume(&x);
                self.consume(&y);
                let test = if a.ty.is_float() { Test::unknown() } else { equal(&x, &y) };
                if *op == BinOp::Ne { test.not() } else { test }
            }
            ExprKind::Binary(op @ (BinOp::Lt | BinOp::Le | BinOp::Gt | BinOp::Ge), a, b) => {
                let (x, y) = (self.expr(a), self.expr(b));
                self.consume(&x);
                self.consume(&y);
                match (&x.kind, &y.kind) {
                    _ if a.ty.is_float() || b.ty.is_float() => Test::unknown(),
                    (Kind::Known(m), Kind::Known(n)) => {
                        Test::known(binary(*op, *m, *n, a.ty, b.ty, &env()) != 0)
                    }
                    _ if a.ty.is_signed() => Test::unknown(),
                    _ => in_order(*op, &x, &y),
                }
            }
            _ => {
                let value = self.expr(e);
                self.consume(&value);
                match value.kind {
                    Kind::ExecBit(lane) => active(lane),
                    _ => equal(&value, &Value::known(0)).not(),
                }
            }
        }
    }

    /// `a && b`, of the opposites if `not`.
    fn and(&mut self, a: &Expr, b: &Expr, not: bool) -> Test {
        let sided = |test: Test| if not { test.not() } else { test };
        let first = sided(self.test(a));
        if first.known == Some(false) {
            return first;
        }
        let before = self.depth();
        self.enter(&first.yes);
        let second = sided(self.test(b));
        self.leave(before);
        match (first.known, second.known) {
            (Some(_), _) => second,
            (None, Some(true)) => first,
            (None, Some(false)) => second,
            (None, None) => {
                let chain = |a: Vec<Guard>, b: Vec<Guard>| a.into_iter().chain(b).collect::<Vec<_>>();
                let mut no = chain(first.no, second.no);
                if !no.iter().all(|guard| matches!(guard, Guard::FarIndex | Guard::BeyondLimit)) {
                    no = vec![Guard::Unknown];
                }
                Test { known: None, yes: chain(first.yes, second.yes), no }
            }
        }
    }
}

/// A lane's bit of the mask beside a result.
fn is_carry(place: &Place) -> bool {
    matches!(&place.kind, PlaceKind::Slice { base, .. } if base.kind == PlaceKind::Operand(Role::Vcc))
}

fn env() -> FloatEnv {
    FloatEnv::from_mode(0)
}

fn active(lane: u32) -> Test {
    Test::guarded(Guard::Active(lane))
}

/// Whether two values are equal.
fn equal(a: &Value, b: &Value) -> Test {
    match (&a.kind, &b.kind) {
        (Kind::Known(m), Kind::Known(n)) => Test::known(m == n),
        (Kind::Fixed { of, shift, mask }, Kind::Known(n))
        | (Kind::Known(n), Kind::Fixed { of, shift, mask }) => match u32::try_from(*n) {
            Ok(n) => Test::fixed(*of, *shift, *mask, n),
            Err(_) => Test::unknown(),
        },
        (Kind::ExecBit(lane), Kind::Known(0)) => active(*lane).not(),
        (Kind::Exec, Kind::Known(0)) | (Kind::Known(0), Kind::Exec) => Test::guarded(Guard::NoLane),
        _ => Test::unknown(),
    }
}

/// Whether unsigned numbers are in order, where that is a test of M0's range.
fn in_order(op: BinOp, a: &Value, b: &Value) -> Test {
    match op {
        BinOp::Lt => in_order(BinOp::Gt, b, a),
        BinOp::Le => in_order(BinOp::Gt, a, b).not(),
        BinOp::Ge => in_order(BinOp::Gt, b, a).not(),
        _ => match (&a.kind, &b.kind) {
            (Kind::M0(_), Kind::Known(255)) => Test::guarded(Guard::FarIndex),
            (Kind::Register(number), Kind::OneOf(limits))
                if number.index.is_some() && limits.iter().any(|(_, limit)| limit.base == number.base) =>
            {
                Test::guarded(Guard::BeyondLimit)
            }
            _ => Test::unknown(),
        },
    }
}

fn sums(a: &Value, b: &Value) -> Option<Kind> {
    let Kind::OneOf(list) = &a.kind else { return sum(a, b) };
    let each = list.iter().map(|(guards, number)| match sum(&Value::of(Kind::Register(*number)), b)? {
        Kind::Register(number) => Some((guards.clone(), number)),
        _ => None,
    });
    Some(Kind::OneOf(each.collect::<Option<_>>()?))
}

/// The number of a register after another one, or after M0.
fn sum(a: &Value, b: &Value) -> Option<Kind> {
    let number = a.number()?;
    match b.kind {
        Kind::Known(n) if a.kind != Kind::Known(0) || number.base.is_some() => {
            // What stands in for a number out of range is a number of its own.
            let otherwise = number.otherwise.map(|o| o.wrapping_add(n as u32));
            Some(Kind::Register(Number { first: number.first.wrapping_add(n as u32), otherwise, ..number }))
        }
        Kind::M0(index) if number.index.is_none() && number.base.is_some() => {
            Some(Kind::Register(Number { index: Some(index), ..number }))
        }
        _ => None,
    }
}

fn both_bits(a: &Value, b: &Value, wave_size: u32) -> Option<Kind> {
    let Kind::Known(mask) = b.kind else { return None };
    match &a.kind {
        Kind::Operand(role) if mask as u32 == wave_size - 1 => Some(Kind::Selected(*role)),
        kind => masked(kind.clone(), mask as u32, 0),
    }
}

/// `(kind >> at) & mask`, where that is still something known.
fn masked(kind: Kind, mask: u32, at: u32) -> Option<Kind> {
    match kind {
        _ if at >= 32 => None,
        Kind::Fixed { of, shift, mask: old } => {
            Some(Kind::Fixed { of, shift: shift + at, mask: old >> at & mask })
        }
        Kind::M0(index) => Some(Kind::M0(Index { shift: index.shift + at, mask: index.mask >> at & mask })),
        _ => None,
    }
}

fn width_mask(width: u32) -> u32 {
    arith::mask(width.min(32)) as u32
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

/// The state that has bits of this one, how far up they are in it, and which they are.
fn whole(what: What, bits: u128) -> (What, u32, u128) {
    let (state, shift, bits) = match what {
        What::State(State::ExecLo) => (State::Exec, 0, bits),
        What::State(State::ExecHi) => (State::Exec, 32, bits),
        What::State(State::Execz) => (State::Exec, 0, u64::MAX as u128),
        What::State(State::VccLo) => (State::Vcc, 0, bits),
        What::State(State::VccHi) => (State::Vcc, 32, bits),
        What::State(State::Vccz) => (State::Vcc, 0, u64::MAX as u128),
        _ => return (what, 0, bits),
    };
    (What::State(state), shift, bits)
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
