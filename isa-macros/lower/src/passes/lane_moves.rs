//! Finds bodies in which each lane computes the number of another lane and takes a register's value from that
//! lane, or sends one to it. They have two or three loops over the lanes, with an array in between, because
//! all reads precede all writes. For hosts that can permute vectors, the loops become a [`Stmt::MoveLanes`],
//! whose only loop computes the lane numbers.

use crate::ir::*;
use crate::visit::{any_in, each_stmt, each_value, rewrite, stmt_lists_mut};
use isa_spec::pcode::ir::{Local, LocalId, State};

/// Computes the statements that hosts with SIMD vectors run instead of the body, if it has such loops.
pub fn run(once: &mut Once, locals: &[Local]) {
    let mut body = once.body.clone();
    if list(&mut body, &once.body, locals) {
        once.with_vectors = Some(body);
    }
}

/// Rewrites such loops in a list of statements, which is part of `whole`. Returns whether there were any.
fn list(body: &mut Vec<Stmt>, whole: &[Stmt], locals: &[Local]) -> bool {
    let mut found = false;
    for stmt in body.iter_mut() {
        stmt_lists_mut(stmt, &mut |inner| found |= list(inner, whole, locals));
    }
    for at in 0..body.len() {
        let rest = &body[at..];
        let Some((count, array, moves)) = pull(rest).or_else(|| push(rest)) else { continue };
        let array = &locals[array as usize];
        if array.len == Some(64) && array.ty.width() == 32 && are_locals_private(&rest[..count], whole) {
            body[at] = Stmt::MoveLanes(Box::new(moves));
            body.drain(at + 1..at + count);
            return true;
        }
    }
    found
}

/// A write that an iteration performs.
struct Write {
    /// The conditions, all of which must hold; outermost first.
    when: Vec<Value>,
    to: Destination,
    value: Value,
}

/// The destination of a [`Write`].
enum Destination {
    /// An element of an array local, by index.
    Element(LocalId, Value),
    /// A VGPR, by lane and number.
    Vgpr(Value, Value),
}

/// Returns the writes of a loop over all lanes. In their values, locals that an iteration assigns are
/// replaced by the assigned values, and the loop variable by `counter`.
fn writes(stmt: &Stmt, counter: LocalId) -> Option<Vec<Write>> {
    let Stmt::For { var, from, to, body } = stmt else { return None };
    let all = from.kind == ValueKind::Const(0)
        && (super::vector::is_last_lane(to) || to.kind == ValueKind::Const(63));
    let (mut values, mut out) = (vec![(*var, local(counter))], Vec::new());
    (all && flatten(body, &mut values, &[], &mut out).is_some()).then_some(out)
}

/// Appends the writes of a list of statements to `out`; `values` are those of the assigned locals, `when` the
/// enclosing conditions. Returns `None` if there are other statements.
fn flatten(
    body: &[Stmt],
    values: &mut Vec<(LocalId, Value)>,
    when: &[Value],
    out: &mut Vec<Write>,
) -> Option<()> {
    for stmt in body {
        let substitute = |value: &Value| {
            let mut value = value.clone();
            rewrite(&mut value, &mut |v| {
                if let ValueKind::Var(Var::Local(id)) = v.kind
                    && let Some((_, assigned)) = values.iter().find(|(of, _)| *of == id)
                {
                    *v = assigned.clone();
                }
            });
            value
        };
        let mut write = |to, value| out.push(Write { when: when.to_vec(), to, value });
        match stmt {
            Stmt::Set(Var::Local(id), value) => {
                let value = substitute(value);
                values.retain(|(of, _)| of != id);
                values.push((*id, value));
            }
            Stmt::SetElement { id, index, value } => {
                write(Destination::Element(*id, substitute(index)), substitute(value))
            }
            Stmt::SetVgpr { lane, reg, value } => {
                write(Destination::Vgpr(substitute(lane), substitute(reg)), substitute(value))
            }
            Stmt::If { arms, otherwise } if otherwise.is_empty() && arms.len() == 1 => {
                let mut when = when.to_vec();
                when.push(substitute(&arms[0].0));
                flatten(&arms[0].1, &mut values.clone(), &when, out)?;
            }
            _ => return None,
        }
    }
    Some(())
}

/// Recognises two loops in which active lanes take values: in the first, each lane writes its own element of
/// one or two arrays; the second writes the elements to a register. Returns the number of loops, the array of
/// the values, and the move.
fn pull(list: &[Stmt]) -> Option<(usize, LocalId, MoveLanes)> {
    let [first @ Stmt::For { var, .. }, second, ..] = list else { return None };
    let (var, lane) = (*var, local(*var));
    let mut elements = Vec::new();
    for Write { when, to, value } in writes(first, var)? {
        match to {
            Destination::Element(id, index) if index == lane && is_only_active(&when, &lane) => {
                elements.push((id, value));
            }
            _ => return None,
        }
    }
    let (result, to, conditions) = register_write(second, var)?;
    let element = |id: LocalId| elements.iter().find(|(of, _)| *of == id).map(|(_, value)| value.clone());
    let (condition, taken) = match element(result)?.kind {
        ValueKind::Select(condition, taken, zero) if zero.kind == ValueKind::Const(0) => {
            (disjuncts(&condition), *taken)
        }
        taken => (vec![constant(1)], Value::new(taken, HostWidth::W32)),
    };
    let (source, from) = register_read(&taken, var)?;
    // The disjuncts other than the test of the source lane's EXEC bit; they must be the same for all lanes.
    let invariant = |terms: &[Value]| -> Option<Vec<Value>> {
        let active = terms.iter().position(|term| is_exec_bit(term, &from))?;
        let mut terms = terms.to_vec();
        terms.remove(active);
        terms.iter().all(|term| !varies(term, var)).then_some(terms)
    };
    let (fetch, bound) = match (&condition[..], &conditions[..]) {
        ([Value { kind: ValueKind::Const(1), .. }], []) => (vec![constant(1)], vec![constant(1)]),
        (condition, []) => (invariant(condition)?, vec![constant(1)]),
        (condition, [when]) => {
            let mut when = when.clone();
            rewrite(&mut when, &mut |v| {
                if let ValueKind::Element(id, index) = &v.kind
                    && **index == lane
                    && let Some(value) = element(*id)
                {
                    *v = value;
                }
            });
            let (fetch, mut bound) = (invariant(condition)?, invariant(&disjuncts(&when))?);
            for term in &fetch {
                bound.remove(bound.iter().position(|other| other == term)?);
            }
            (fetch, bound)
        }
        _ => return None,
    };
    let direction = MoveDirection::Pull { fetch: disjunction(fetch), bound: disjunction(bound) };
    Some((2, result, MoveLanes { direction, lanes: lane_numbers(var, result, from)?, source, to }))
}

/// Recognises three loops in which active lanes send values: the first clears an array, in the second each
/// lane writes its value to one element, and the third writes the elements to a register. Returns the same as
/// [`pull`].
fn push(list: &[Stmt]) -> Option<(usize, LocalId, MoveLanes)> {
    let [first, second @ Stmt::For { var, .. }, third, ..] = list else { return None };
    let (var, lane) = (*var, local(*var));
    let (result, to, conditions) = register_write(third, var)?;
    let zeros = writes(first, var)?;
    let [Write { when, to: Destination::Element(id, index), value: zero }] = &zeros[..] else { return None };
    let cleared = when.is_empty() && (*id, index, &zero.kind) == (result, &lane, &ValueKind::Const(0));
    let sent = writes(second, var)?;
    let [Write { when, to: Destination::Element(id, target), value }] = &sent[..] else { return None };
    let (source, from) = register_read(value, var)?;
    let matches =
        cleared && conditions.is_empty() && is_only_active(when, &lane) && (*id, &from) == (result, &lane);
    if !matches || any_in(target, &is_element) {
        return None;
    }
    let lanes = lane_numbers(var, result, target.clone())?;
    Some((3, result, MoveLanes { direction: MoveDirection::Push, lanes, source, to }))
}

/// Recognises a loop that writes the elements of an array to a register of each active lane. Returns the
/// array, the register's number, and further conditions.
fn register_write(stmt: &Stmt, var: LocalId) -> Option<(LocalId, Value, Vec<Value>)> {
    let mut writes = writes(stmt, var)?;
    let Write { mut when, to, value } = writes.pop()?;
    let lane = local(var);
    match (to, value.kind) {
        (Destination::Vgpr(of, register), ValueKind::Element(id, index))
            if writes.is_empty()
                && (&of, &*index) == (&lane, &lane)
                && !varies(&register, var)
                && when.first().is_some_and(|when| is_exec_bit(when, &lane)) =>
        {
            when.remove(0);
            Some((id, register, when))
        }
        _ => None,
    }
}

/// Recognises a value that is one register of one lane; returns the register and the lane.
fn register_read(value: &Value, var: LocalId) -> Option<(MoveSource, Value)> {
    let (source, lane) = match &value.kind {
        ValueKind::OperandLane { slot, lane, index } if index.kind == ValueKind::Const(0) => {
            (MoveSource::Operand(*slot), lane)
        }
        ValueKind::Vgpr { lane, reg } if !varies(reg, var) => (MoveSource::Vgpr((**reg).clone()), lane),
        _ => return None,
    };
    (!any_in(lane, &is_element)).then(|| (source, (**lane).clone()))
}

/// Returns the vector loop that computes a number for each lane. The loop formally writes to the array `id`.
fn lane_numbers(var: LocalId, id: LocalId, value: Value) -> Option<Vector> {
    let size = Box::new(Value::new(ValueKind::State(State::WaveSize), HostWidth::W32));
    let last = ValueKind::Op2(Op2::Sub, size, Box::new(constant(1)));
    let body = vec![Stmt::SetElement { id, index: local(var), value }];
    super::vector::of_loop(&Stmt::For { var, from: constant(0), to: Value::new(last, HostWidth::W32), body })
}

fn constant(value: u128) -> Value {
    Value::new(ValueKind::Const(value), HostWidth::W32)
}

fn local(id: LocalId) -> Value {
    Value::new(ValueKind::Var(Var::Local(id)), HostWidth::W32)
}

fn is_element(value: &Value) -> bool {
    matches!(value.kind, ValueKind::Element(..))
}

/// Returns true if a value may differ from lane to lane.
fn varies(value: &Value, var: LocalId) -> bool {
    any_in(value, &|v| is_element(v) || v.kind == ValueKind::Var(Var::Local(var)))
}

/// Returns true if a value is the EXEC bit of a lane.
fn is_exec_bit(value: &Value, lane: &Value) -> bool {
    let ValueKind::Op2(Op2::And, bits, one) = &value.kind else { return false };
    let ValueKind::Extract { value, lo } = &bits.kind else { return false };
    one.kind == ValueKind::Const(1) && value.kind == ValueKind::State(State::Exec) && **lo == *lane
}

/// Returns true if the only condition is that a lane is active.
fn is_only_active(when: &[Value], lane: &Value) -> bool {
    matches!(when, [when] if is_exec_bit(when, lane))
}

/// Splits a condition into its disjuncts.
fn disjuncts(value: &Value) -> Vec<Value> {
    match &value.kind {
        ValueKind::LogicalOr(a, b) => {
            let mut both = disjuncts(a);
            both.append(&mut disjuncts(b));
            both
        }
        ValueKind::Compare { op: Compare::Ne, a, b, .. } if b.kind == ValueKind::Const(0) => disjuncts(a),
        ValueKind::Select(condition, yes, no)
            if (&yes.kind, &no.kind) == (&ValueKind::Const(1), &ValueKind::Const(0)) =>
        {
            disjuncts(condition)
        }
        _ => vec![value.clone()],
    }
}

/// Returns the disjunction of these conditions; 0 for none.
fn disjunction(terms: Vec<Value>) -> Value {
    let or = |a, b| Value::new(ValueKind::LogicalOr(Box::new(a), Box::new(b)), HostWidth::W32);
    terms.into_iter().reduce(or).unwrap_or_else(|| constant(0))
}

/// Returns true if no other statement uses the locals that the loops assign.
fn are_locals_private(loops: &[Stmt], whole: &[Stmt]) -> bool {
    let mut own = Vec::new();
    each_stmt(loops, &mut |s| match s {
        Stmt::Set(Var::Local(id), _) | Stmt::SetElement { id, .. } | Stmt::For { var: id, .. } => {
            own.push(*id)
        }
        _ => {}
    });
    let uses = |list: &[Stmt], id: LocalId| {
        let mut count = 0;
        each_value(list, &mut |v| match v.kind {
            ValueKind::Var(Var::Local(of)) | ValueKind::Element(of, _) if of == id => count += 1,
            _ => {}
        });
        each_stmt(list, &mut |s| match s {
            Stmt::Set(Var::Local(of), _) | Stmt::SetElement { id: of, .. } if *of == id => count += 1,
            _ => {}
        });
        count
    };
    own.iter().all(|id| uses(loops, *id) == uses(whole, *id))
}
