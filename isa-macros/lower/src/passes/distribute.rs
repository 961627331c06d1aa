//! Divides a loop over lanes into several where the control flow is the same for all lanes: `for lane { a; if c { b } }`
//! becomes `for lane { a }  if c { for lane { b } }`. The conditions are then decided once for 32 lanes, each loop is so
//! simple that the host's compiler uses vectors, and accesses to memory and registers are those of 32 lanes at once.
//! A condition that differs between lanes becomes a mask, unless nothing is gained.
//!
//! What a wave observes stays: in each lane, statements run in order; at most one of them can end the handler, so that a
//! fault is the one of the lowest lane; and registers are written after it. Calls that can end the handler besides
//! the access are those of rare cases with a condition that is the same for all lanes: the whole body is there twice,
//! undivided for these cases.
//!
//! Runs after [`super::hoist`].

use super::varying::{Varying, assigned, read};
use crate::ir::*;
use crate::visit::{
    any_in, any_stmt, any_value, each_stmt, each_value, each_value_mut, stmt_lists_mut, stmt_values,
};
use isa_spec::pcode::ir::{Local, LocalId, Pure, Space, State, Ty};
use std::collections::{BTreeMap, BTreeSet};

/// Divides the only lane loop, if it accesses VGPRs by number and memory in a way that allows it.
pub fn run(lanes: &mut Lanes, locals: &mut Vec<Local>) {
    let Some(at) = lanes.steps.iter().position(|step| matches!(step, Step::Loop(_))) else { return };
    let others = |step: &Step| !matches!(step, Step::Declare { .. } | Step::Once { .. });
    if lanes.steps[..at].iter().any(others) || at + 1 != lanes.steps.len() || !lanes.masks.is_empty() {
        return;
    }
    let Step::Loop(own) = &lanes.steps[at] else { return };
    if let Some(steps) = divide(own, locals) {
        lanes.steps.splice(at.., steps);
    }
}

fn divide(own: &LaneLoop, locals: &mut Vec<Local>) -> Option<Vec<Step>> {
    let plain =
        own.result.is_none() && own.bits.is_empty() && own.reads.is_empty() && !own.leaves && !own.retries;
    if !plain || !is_own_lane(&own.body) {
        return None;
    }
    let mut varying = Varying::of(&own.body);
    varying.follow(&own.body);
    // The rare cases.
    let mut guards = Vec::new();
    calls(&own.body, None, &varying, &mut guards);
    let guards: Vec<Value> = guards.into_iter().collect::<Option<_>>()?;
    let mut body = own.body.clone();
    prune(&mut body, &guards);
    if ends(&body, &varying) > 1 || writes_before_an_end(&body, &mut false) {
        return None;
    }
    let first = locals.len();
    let rows = rows(&body, &varying, locals);
    let mut split = Split { locals, varying, sets: BTreeMap::new(), reads: BTreeMap::new(), accesses: 0 };
    split.count(&body);
    let mut steps = split.list(&body, None);
    let loops = steps.iter().map(count_loops).sum::<usize>();
    if loops < 2 {
        locals.truncate(first);
        return None;
    }
    let declared: BTreeSet<LocalId> = own.outer.same.iter().copied().collect();
    let declare = share(&mut steps, &split.varying, &rows, &declared);
    let mut out = vec![declare];
    if guards.is_empty() {
        out.append(&mut steps);
    } else {
        let any =
            |a: Value, b: Value| Value::new(ValueKind::LogicalOr(Box::new(a), Box::new(b)), HostWidth::W32);
        let rare = guards.into_iter().reduce(any)?;
        out.push(Step::If { arms: vec![(rare, vec![Step::Loop(own.clone())])], otherwise: steps });
    }
    Some(out)
}

/// Returns whether all accesses to registers are to the lane's own, by number.
fn is_own_lane(body: &[Stmt]) -> bool {
    let own = |lane: &Value| lane.kind == ValueKind::State(State::LaneId);
    let other_value = |value: &Value| match &value.kind {
        ValueKind::Vgpr { lane, .. } => !own(lane),
        ValueKind::Var(Var::Operand(_))
        | ValueKind::OperandLane { .. }
        | ValueKind::StagedLane { .. }
        | ValueKind::StagedDword { .. }
        | ValueKind::LaneBit(_)
        | ValueKind::MaskOperand(_)
        | ValueKind::Control { .. }
        | ValueKind::Simd { .. } => true,
        _ => false,
    };
    let mut writes = false;
    let other = any_stmt(body, &|stmt| match stmt {
        Stmt::SetVgpr { lane, .. } => !own(lane),
        Stmt::Set(Var::Local(_), _) | Stmt::SetElement { .. } | Stmt::If { .. } | Stmt::For { .. } => false,
        Stmt::Store { .. } | Stmt::Control { .. } | Stmt::While { .. } => false,
        Stmt::SetLow { var, .. } => !matches!(var, Var::Local(_)),
        _ => true,
    });
    each_stmt(body, &mut |stmt| writes |= matches!(stmt, Stmt::SetVgpr { .. } | Stmt::Store { .. }));
    writes && !other && !any_value(body, &other_value)
}

/// Collects the outermost condition that is the same for all lanes of each call that can end the handler.
fn calls(list: &[Stmt], guard: Option<&Value>, varying: &Varying, out: &mut Vec<Option<Value>>) {
    for stmt in list {
        match stmt {
            Stmt::Control { .. } => {
                let guard = guard.cloned();
                if guard.is_none() || !out.contains(&guard) {
                    out.push(guard);
                }
            }
            Stmt::If { arms, otherwise } => {
                for (cond, body) in arms {
                    let own = guard.or(Some(cond).filter(|cond| varying.is_same(cond)));
                    calls(body, own, varying, out);
                }
                calls(otherwise, guard, varying, out);
            }
            Stmt::For { body, .. } | Stmt::While { body, .. } => calls(body, guard, varying, out),
            _ => {}
        }
    }
}

/// Removes what runs only if one of the conditions holds.
fn prune(list: &mut Vec<Stmt>, guards: &[Value]) {
    let mut at = 0;
    while at < list.len() {
        if let Stmt::If { arms, otherwise } = &mut list[at] {
            arms.retain(|(cond, _)| !guards.contains(cond));
            if arms.is_empty() {
                let otherwise = std::mem::take(otherwise);
                list.splice(at..=at, otherwise);
                continue;
            }
        }
        stmt_lists_mut(&mut list[at], &mut |inner| prune(inner, guards));
        at += 1;
    }
}

fn has_load(value: &Value) -> bool {
    any_in(value, &|v| matches!(v.kind, ValueKind::Load { .. }))
}

/// Returns how many statements that can end the handler are on one path. A loop whose control flow differs between lanes
/// counts as one statement.
fn ends(list: &[Stmt], varying: &Varying) -> usize {
    let own = |stmt: &Stmt| {
        let mut found = matches!(stmt, Stmt::Store { .. } | Stmt::Control { .. }) as usize;
        stmt_values(stmt, &mut |value| found += has_load(value) as usize);
        found
    };
    let each = list.iter().map(|stmt| match stmt {
        Stmt::If { arms, otherwise } => {
            let inside = arms.iter().map(|(_, body)| ends(body, varying)).chain([ends(otherwise, varying)]);
            let same = arms.iter().all(|(cond, _)| varying.is_same(cond));
            own(stmt) + if same { inside.max().unwrap_or(0) } else { inside.sum() }
        }
        Stmt::For { from, to, body, .. } => {
            let same = varying.is_same(from) && varying.is_same(to);
            let inside = ends(body, varying);
            if same { 2 * inside } else { inside.min(1) }
        }
        Stmt::While { body, .. } => ends(body, varying).min(1),
        stmt => own(stmt),
    });
    each.sum()
}

/// Returns whether a register is written before a statement that can end the handler. `written` says whether one has been
/// written so far.
fn writes_before_an_end(list: &[Stmt], written: &mut bool) -> bool {
    list.iter().any(|stmt| {
        let mut found = matches!(stmt, Stmt::Store { .. } | Stmt::Control { .. });
        stmt_values(stmt, &mut |value| found |= has_load(value));
        if found && *written {
            return true;
        }
        *written |= matches!(stmt, Stmt::SetVgpr { .. });
        let mut inside = false;
        crate::visit::stmt_lists(stmt, &mut |inner| inside |= writes_before_an_end(inner, written));
        inside
    })
}

/// Returns the arrays that differ between lanes, but are indexed alike by all.
fn rows(body: &[Stmt], varying: &Varying, locals: &[Local]) -> BTreeSet<LocalId> {
    let arrays = varying.locals.iter().copied().filter(|id| locals[*id as usize].len.is_some());
    let mut rows: BTreeSet<LocalId> = arrays.collect();
    each_stmt(body, &mut |stmt| {
        if let Stmt::SetElement { id, index, .. } = stmt
            && !varying.is_same(index)
        {
            rows.remove(id);
        }
    });
    each_value(body, &mut |value| {
        if let ValueKind::Element(id, index) = &value.kind
            && !varying.is_same(index)
        {
            rows.remove(id);
        }
    });
    rows
}

fn count_loops(step: &Step) -> usize {
    match step {
        Step::Loop(_) => 1,
        Step::If { arms, otherwise } => {
            arms.iter().flat_map(|(_, steps)| steps).chain(otherwise).map(count_loops).sum()
        }
        Step::For { body, .. } => body.iter().map(count_loops).sum(),
        Step::Masked { steps, .. } => steps.iter().map(count_loops).sum(),
        _ => 0,
    }
}

struct Split<'a> {
    locals: &'a mut Vec<Local>,
    varying: Varying,
    sets: BTreeMap<LocalId, usize>,
    reads: BTreeMap<LocalId, usize>,
    /// Number of memory steps so far.
    accesses: usize,
}

/// Steps, and the statements of a lane loop that follows them.
#[derive(Default)]
struct Output {
    steps: Vec<Step>,
    pending: Vec<Stmt>,
    active_only: bool,
}

impl Output {
    fn flush(&mut self) {
        if !self.pending.is_empty() {
            self.steps.push(lane_loop(std::mem::take(&mut self.pending), self.active_only));
        }
    }

    /// Adds a statement of the lanes; `active_only` for those that are too expensive for other lanes.
    fn push(&mut self, stmt: Stmt, active_only: bool) {
        if self.active_only != active_only {
            self.flush();
            self.active_only = active_only;
        }
        self.pending.push(stmt);
    }

    fn step(&mut self, step: Step) {
        self.flush();
        match (self.steps.last_mut(), step) {
            (Some(Step::Once { body, .. }), Step::Once { body: more, .. }) => body.extend(more),
            (_, step) => self.steps.push(step),
        }
    }
}

fn lane_loop(body: Vec<Stmt>, active_only: bool) -> Step {
    Step::Loop(bare_loop(body, active_only))
}

fn bare_loop(body: Vec<Stmt>, active_only: bool) -> LaneLoop {
    LaneLoop {
        active_only,
        reads: Vec::new(),
        result: None,
        bits: Vec::new(),
        body,
        leaves: false,
        retries: false,
        outer: Outer::default(),
    }
}

fn local(id: LocalId, host_width: HostWidth) -> Value {
    Value::new(ValueKind::Var(Var::Local(id)), host_width)
}

fn select(mask: Option<LocalId>, value: Value, old: Value) -> Value {
    let Some(mask) = mask else { return value };
    let host_width = value.host_width;
    let kind = ValueKind::Select(Box::new(local(mask, HostWidth::W32)), Box::new(value), Box::new(old));
    Value::new(kind, host_width)
}

/// Returns whether a value is too expensive for lanes that are not active, or not of use to the host's vectors.
fn is_expensive(value: &Value) -> bool {
    any_in(value, &|v| {
        matches!(
            v.kind,
            ValueKind::Pure { .. }
                | ValueKind::Float { .. }
                | ValueKind::Div { .. }
                | ValueKind::Convert { .. }
                | ValueKind::Pow { .. }
                | ValueKind::Conversion(..)
        )
    })
}

/// Returns whether a value is one that a loop of its own computes well.
fn is_special(value: &Value) -> bool {
    any_in(value, &|v| {
        matches!(
            v.kind,
            ValueKind::Vgpr { .. } | ValueKind::Pure { builtin: Pure::FromFormat | Pure::FromFormat16, .. }
        )
    })
}

impl Split<'_> {
    fn count(&mut self, body: &[Stmt]) {
        each_stmt(body, &mut |stmt| {
            if let Some(id) = assigned(stmt) {
                *self.sets.entry(id).or_default() += 1;
            }
        });
        each_value(body, &mut |value| {
            if let Some(id) = read(value) {
                *self.reads.entry(id).or_default() += 1;
            }
        });
    }

    /// Creates a local that differs between lanes.
    fn new_local(&mut self, name: &str, host_width: HostWidth) -> LocalId {
        let id = self.locals.len() as LocalId;
        self.locals.push(Local { name: name.into(), ty: Ty::B(host_width.bits() as u16), len: None });
        self.varying.locals.insert(id);
        id
    }

    /// Divides a list, which runs in lanes in which `mask` is not 0.
    fn list(&mut self, list: &[Stmt], mask: Option<LocalId>) -> Vec<Step> {
        let mut out = Output::default();
        for (at, stmt) in list.iter().enumerate() {
            self.stmt(stmt, &list[at + 1..], mask, &mut out);
        }
        out.flush();
        out.steps
    }

    fn stmt(&mut self, stmt: &Stmt, after: &[Stmt], mask: Option<LocalId>, out: &mut Output) {
        if mask.is_none() && self.varying.is_same_statement(stmt) {
            out.step(Step::Once { reads: Vec::new(), body: vec![stmt.clone()] });
            return;
        }
        match stmt {
            Stmt::If { arms, otherwise } if arms.iter().all(|(cond, _)| self.varying.is_same(cond)) => {
                let divided = arms.iter().map(|(cond, body)| (cond.clone(), self.list(body, mask)));
                let arms = divided.collect();
                let otherwise = self.list(otherwise, mask);
                out.step(Step::If { arms, otherwise });
            }
            Stmt::If { arms, otherwise } if self.varying.is_same(&arms[0].0) => {
                // The first condition is the same for all lanes, and another one is not.
                let (cond, body) = &arms[0];
                let rest = Stmt::If { arms: arms[1..].to_vec(), otherwise: otherwise.clone() };
                let first = self.list(body, mask);
                let otherwise = self.list(&[rest], mask);
                out.step(Step::If { arms: vec![(cond.clone(), first)], otherwise });
            }
            Stmt::If { arms, otherwise } if self.gains(stmt) => self.masked_if(arms, otherwise, mask, out),
            Stmt::For { var, from, to, body }
                if self.varying.is_same(from)
                    && self.varying.is_same(to)
                    && !self.varying.locals.contains(var) =>
            {
                let body = self.list(body, mask);
                out.step(Step::For { var: *var, from: from.clone(), to: to.clone(), body });
            }
            Stmt::SetVgpr { .. } => self.in_mask(vec![lane_loop(vec![stmt.clone()], true)], mask, out),
            Stmt::Set(var, Value { kind: ValueKind::Select(cond, yes, no), .. })
                if self.varying.is_same(cond) && (is_special(yes) || is_special(no)) =>
            {
                let mut side = |value: &Value| {
                    let mut inner = Output::default();
                    self.stmt(&Stmt::Set(*var, value.clone()), after, mask, &mut inner);
                    inner.flush();
                    inner.steps
                };
                let arms = vec![((**cond).clone(), side(yes))];
                let otherwise = side(no);
                out.step(Step::If { arms, otherwise });
            }
            Stmt::Set(Var::Local(id), value) if has_load(value) => match single_load(value) {
                Some((space, addr, bytes)) => self.load(*id, value, (space, addr, bytes), mask, out),
                None => self.in_mask(vec![lane_loop(vec![stmt.clone()], true)], mask, out),
            },
            Stmt::Set(Var::Local(id), value) => {
                let own = self.is_own(*id, after);
                let special =
                    matches!(value.kind, ValueKind::Vgpr { .. }) || is_from_format(value, &self.varying);
                if special && (own || mask.is_none()) {
                    // A loop of its own, in a form that is emitted as one call.
                    out.step(lane_loop(vec![stmt.clone()], false));
                    return;
                }
                let expensive = is_expensive(value);
                let value = if own {
                    value.clone()
                } else {
                    select(mask, value.clone(), local(*id, value.host_width))
                };
                out.push(Stmt::Set(Var::Local(*id), value), expensive);
            }
            Stmt::SetElement { id, index, value } if !has_load(value) => {
                let old = Value::new(ValueKind::Element(*id, Box::new(index.clone())), value.host_width);
                let expensive = is_expensive(value);
                let value = select(mask, value.clone(), old);
                out.push(Stmt::SetElement { id: *id, index: index.clone(), value }, expensive);
            }
            stmt => {
                // Control flow and accesses of single lanes.
                out.flush();
                self.in_mask(vec![lane_loop(vec![stmt.clone()], true)], mask, out);
            }
        }
    }

    /// Returns whether the rest of a list has all reads of a local, so that its value in other lanes does not matter.
    fn is_own(&self, id: LocalId, after: &[Stmt]) -> bool {
        let mut count = 0;
        each_value(after, &mut |value| count += (read(value) == Some(id)) as usize);
        self.sets.get(&id) == Some(&1) && self.reads.get(&id).copied().unwrap_or(0) == count
    }

    fn in_mask(&self, steps: Vec<Step>, mask: Option<LocalId>, out: &mut Output) {
        out.flush();
        match mask {
            Some(mask) => out.step(Step::Masked { mask, steps }),
            None => steps.into_iter().for_each(|step| out.step(step)),
        }
    }

    /// Returns whether masks in place of control flow pay: there is a loop, an access or a condition that is the same for
    /// all lanes, or only arithmetic, and nothing that masks cannot express.
    fn gains(&self, stmt: &Stmt) -> bool {
        let list = std::slice::from_ref(stmt);
        let plain = !any_stmt(list, &|stmt| match stmt {
            Stmt::While { .. } | Stmt::Parts { .. } => true,
            Stmt::For { from, to, .. } => !self.varying.is_same(from) || !self.varying.is_same(to),
            Stmt::If { arms, .. } => arms.iter().any(|(cond, _)| has_load(cond)),
            _ => false,
        });
        let gain = any_stmt(list, &|stmt| match stmt {
            Stmt::If { arms, .. } => arms.iter().any(|(cond, _)| self.varying.is_same(cond)),
            Stmt::SetVgpr { .. } | Stmt::For { .. } => true,
            Stmt::Set(_, value) => has_load(value) || is_special(value),
            _ => false,
        });
        let effects = any_stmt(list, &|stmt| matches!(stmt, Stmt::Store { .. } | Stmt::Control { .. }));
        plain && (gain || !effects && !any_value(list, &|value| has_load(value) || is_expensive(value)))
    }

    fn masked_if(
        &mut self,
        arms: &[(Value, Vec<Stmt>)],
        otherwise: &[Stmt],
        mask: Option<LocalId>,
        out: &mut Output,
    ) {
        let mut rest = mask;
        let and = |mask: Option<LocalId>, value: Value| match mask {
            None => value,
            Some(mask) => {
                let kind = ValueKind::LogicalAnd(Box::new(local(mask, HostWidth::W32)), Box::new(value));
                Value::new(kind, HostWidth::W32)
            }
        };
        for (at, (cond, body)) in arms.iter().enumerate() {
            let not = Value::new(ValueKind::Op1(Op1::IsZero, Box::new(cond.clone())), HostWidth::W32);
            let holds = Value::new(ValueKind::Op1(Op1::IsZero, Box::new(not.clone())), HostWidth::W32);
            let own = self.new_local("mask", HostWidth::W32);
            out.push(Stmt::Set(Var::Local(own), and(rest, holds)), false);
            if at + 1 < arms.len() || !otherwise.is_empty() {
                let others = self.new_local("mask", HostWidth::W32);
                out.push(Stmt::Set(Var::Local(others), and(rest, not)), false);
                rest = Some(others);
            }
            self.list(body, Some(own)).into_iter().for_each(|step| out.step(step));
        }
        self.list(otherwise, rest).into_iter().for_each(|step| out.step(step));
    }

    /// Loads for all lanes at once.
    fn load(
        &mut self,
        id: LocalId,
        value: &Value,
        (space, addr, bytes): (Space, &Value, u32),
        mask: Option<LocalId>,
        out: &mut Output,
    ) {
        let dwords = bytes.div_ceil(4);
        let number = self.accesses;
        self.accesses += 1;
        let address = bare_loop(vec![Stmt::SetAddress { space, addr: addr.clone() }], false);
        let addresses = Addresses::Computed(address);
        let memory = Step::Memory(Memory { number, store: false, space, bytes, dwords, addresses });
        let mut value = value.clone();
        crate::visit::rewrite(&mut value, &mut |v| {
            if let ValueKind::Load { .. } = v.kind {
                v.kind = ValueKind::Loaded { access: number, dwords };
            }
        });
        // Inside the mask, other lanes are skipped.
        let set = lane_loop(vec![Stmt::Set(Var::Local(id), value)], mask.is_some());
        self.in_mask(vec![memory, set], mask, out);
    }
}

/// Returns the only load of a value, if the value always performs it.
fn single_load(value: &Value) -> Option<(Space, &Value, u32)> {
    match &value.kind {
        ValueKind::Load { space, addr, bytes, retry: false } if !has_load(addr) => {
            Some((*space, addr, *bytes))
        }
        ValueKind::Resize(inner) | ValueKind::SignExtend { value: inner, .. } => single_load(inner),
        ValueKind::Op2(Op2::And, inner, mask) if matches!(mask.kind, ValueKind::Const(_)) => {
            single_load(inner)
        }
        _ => None,
    }
}

/// Returns whether a value is a component of a local, in a format and at an index that are the same for all lanes.
fn is_from_format(value: &Value, varying: &Varying) -> bool {
    let ValueKind::Pure { builtin: Pure::FromFormat, args, .. } = &value.kind else { return false };
    let [format, element, index] = &args[..] else { return false };
    varying.is_same(format) && varying.is_same(index) && matches!(element.kind, ValueKind::Var(Var::Local(_)))
}

/// Declares the locals that several loops use, and tells each loop which these are.
fn share(
    steps: &mut [Step],
    varying: &Varying,
    rows: &BTreeSet<LocalId>,
    declared: &BTreeSet<LocalId>,
) -> Step {
    let (mut uses, mut own) = (BTreeMap::new(), Vec::new());
    visit(steps, false, &mut |used| match used {
        Used::Loop(lanes, repeated) => {
            for id in mentioned(&lanes.body) {
                let private = !repeated || super::hoist::begins_with(&lanes.body, id);
                let count = if private { 1 } else { 2 };
                *uses.entry(id).or_insert(0) += count;
            }
        }
        Used::Mask(id) => *uses.entry(id).or_insert(0) += 2,
        Used::Same(id) => own.push(id),
    });
    let is_lanes = |id: &LocalId| varying.locals.contains(id) && uses.get(id).is_some_and(|uses| *uses > 1);
    visit(steps, false, &mut |used| {
        let Used::Loop(lanes, _) = used else { return };
        each_value_mut(&mut lanes.body, &mut |value| {
            if let ValueKind::Element(id, index) = &value.kind
                && rows.contains(id)
                && is_lanes(id)
            {
                value.kind = ValueKind::LaneElement(*id, index.clone());
            }
        });
        lane_elements(&mut lanes.body, &|id| rows.contains(&id) && is_lanes(&id));
        let all = mentioned(&lanes.body);
        lanes.outer.same = all.iter().copied().filter(|id| !varying.locals.contains(id)).collect();
        lanes.outer.lanes = all.iter().copied().filter(|id| is_lanes(id) && !rows.contains(id)).collect();
        lanes.outer.rows = all.iter().copied().filter(|id| is_lanes(id) && rows.contains(id)).collect();
    });
    let (in_rows, in_lanes) =
        uses.keys().copied().filter(|id| is_lanes(id)).partition(|id| rows.contains(id));
    let read = uses.keys().copied().filter(|id| !varying.locals.contains(id));
    let same: BTreeSet<LocalId> = own.into_iter().chain(read).filter(|id| !declared.contains(id)).collect();
    Step::Declare { same: same.into_iter().collect(), lanes: in_lanes, rows: in_rows }
}

/// Marks assignments to elements that are the same for all lanes.
fn lane_elements(list: &mut [Stmt], rows: &dyn Fn(LocalId) -> bool) {
    for stmt in list {
        if let Stmt::SetElement { id, index, value } = stmt
            && rows(*id)
        {
            *stmt = Stmt::SetLaneElement { id: *id, index: index.clone(), value: value.clone() };
        }
        stmt_lists_mut(stmt, &mut |inner| lane_elements(inner, rows));
    }
}

fn mentioned(body: &[Stmt]) -> BTreeSet<LocalId> {
    let mut all = BTreeSet::new();
    each_stmt(body, &mut |stmt| all.extend(assigned(stmt)));
    each_value(body, &mut |value| all.extend(read(value)));
    all
}

/// What steps use.
enum Used<'a> {
    /// A lane loop; true if it runs repeatedly.
    Loop(&'a mut LaneLoop, bool),
    /// A local that is a mask.
    Mask(LocalId),
    /// A local that is the same for all lanes.
    Same(LocalId),
}

fn visit(steps: &mut [Step], repeated: bool, f: &mut dyn FnMut(Used<'_>)) {
    fn same(value: &Value, f: &mut dyn FnMut(Used<'_>)) {
        crate::visit::each_in(value, &mut |v| {
            if let Some(id) = read(v) {
                f(Used::Same(id));
            }
        });
    }
    for step in steps {
        match step {
            Step::Loop(lanes) => f(Used::Loop(lanes, repeated)),
            Step::Memory(Memory { addresses: Addresses::Computed(lanes), .. }) => {
                f(Used::Loop(lanes, repeated))
            }
            Step::Once { body, .. } => mentioned(body).into_iter().for_each(|id| f(Used::Same(id))),
            Step::Masked { mask, steps } => {
                f(Used::Mask(*mask));
                visit(steps, repeated, f);
            }
            Step::If { arms, otherwise } => {
                for (cond, steps) in arms {
                    same(cond, f);
                    visit(steps, repeated, f);
                }
                visit(otherwise, repeated, f);
            }
            Step::For { var, from, to, body } => {
                f(Used::Same(*var));
                same(from, f);
                same(to, f);
                visit(body, true, f);
            }
            _ => {}
        }
    }
}
