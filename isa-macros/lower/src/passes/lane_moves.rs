//! Bodies in which each lane takes a register from a lane whose number it computes, or sends one there: two
//! or three loops over the lanes, with an array between them, since every lane reads before one writes.
//! Hosts that can permute vectors do it by [`Stmt::MoveLanes`], which has a loop for the numbers alone.

use crate::ir::*;
use crate::visit::{any_in, each_stmt, each_value, rewrite, stmt_lists_mut};
use isa_spec::pcode::ir::{Local, LocalId, State};

/// Finds the statements that hosts with vectors run instead of the body, if it has such loops.
pub fn run(once: &mut Once, locals: &[Local]) {
    let mut body = once.body.clone();
    if list(&mut body, &once.body, locals) {
        once.with_vectors = Some(body);
    }
}

/// Rewrites the loops of a list of statements, which is part of `whole`. Whether there were any.
fn list(body: &mut Vec<Stmt>, whole: &[Stmt], locals: &[Local]) -> bool {
    let mut found = false;
    for stmt in body.iter_mut() {
        stmt_lists_mut(stmt, &mut |inner| found |= list(inner, whole, locals));
    }
    for at in 0..body.len() {
        let rest = &body[at..];
        let Some((count, array, moves)) = pull(rest).or_else(|| push(rest)) else { continue };
        let array = &locals[array as usize];
        if array.len == Some(64) && array.ty.width() == 32 && own_locals(&rest[..count], whole) {
            body[at] = Stmt::MoveLanes(Box::new(moves));
            body.drain(at + 1..at + count);
            return true;
        }
    }
    found
}

/// A write of an iteration.
struct Write {
    /// Conditions, all of which hold; outermost first.
    when: Vec<Value>,
    to: Place,
    value: Value,
}

enum Place {
    Element(LocalId, Value),
    Vgpr(Value, Value),
}

/// The writes of a loop over all lanes, with what the iteration assigns to locals in place of these, and
/// `counter` in that of its variable.
fn writes(stmt: &Stmt, counter: LocalId) -> Option<Vec<Write>> {
    let Stmt::For { var, from, to, body } = stmt else { return None };
    let all = from.kind == ValueKind::Const(0)
        && (super::vector::is_last_lane(to) || to.kind == ValueKind::Const(63));
    let (mut values, mut out) = (vec![(*var, local(counter))], Vec::new());
    (all && flatten(body, &mut values, &[], &mut out).is_some()).then_some(out)
}

fn flatten(
    body: &[Stmt],
    values: &mut Vec<(LocalId, Value)>,
    when: &[Value],
    out: &mut Vec<Write>,
) -> Option<()> {
    for stmt in body {
        let known = |value: &Value| {
            let mut value = value.clone();
            rewrite(&mut value, &mut |v| {
                if let ValueKind::Var(Var::Local(id)) = v.kind
                    && let Some((_, known)) = values.iter().find(|(of, _)| *of == id)
                {
                    *v = known.clone();
                }
            });
            value
        };
        let mut write = |to, value| out.push(Write { when: when.to_vec(), to, value });
        match stmt {
            Stmt::Set(Var::Local(id), value) => {
                let value = known(value);
                values.retain(|(of, _)| of != id);
                values.push((*id, value));
            }
            Stmt::SetElement { id, index, value } => write(Place::Element(*id, known(index)), known(value)),
            Stmt::SetVgpr { lane, reg, value } => write(Place::Vgpr(known(lane), known(reg)), known(value)),
            Stmt::If { arms, otherwise } if otherwise.is_empty() && arms.len() == 1 => {
                let mut when = when.to_vec();
                when.push(known(&arms[0].0));
                flatten(&arms[0].1, &mut values.clone(), &when, out)?;
            }
            _ => return None,
        }
    }
    Some(())
}

/// Loops in which active lanes take values: the first fills arrays, each lane its own element, and the second
/// writes registers. Gives the number of loops and the array of values.
fn pull(list: &[Stmt]) -> Option<(usize, LocalId, MoveLanes)> {
    let [first @ Stmt::For { var, .. }, second, ..] = list else { return None };
    let (var, lane) = (*var, local(*var));
    let mut elements = Vec::new();
    for Write { when, to, value } in writes(first, var)? {
        match to {
            Place::Element(id, index) if index == lane && is_only_active(&when, &lane) => {
                elements.push((id, value));
            }
            _ => return None,
        }
    }
    let (result, to, conditions) = written(second, var)?;
    let of = |id: LocalId| elements.iter().find(|(of, _)| *of == id).map(|(_, value)| value.clone());
    let (condition, taken) = match of(result)?.kind {
        ValueKind::Select(condition, taken, zero) if zero.kind == ValueKind::Const(0) => {
            (terms(&condition), *taken)
        }
        taken => (vec![constant(1)], Value::new(taken, Hold::W32)),
    };
    let (value, from) = moved(&taken, var)?;
    let others = |terms: &[Value]| -> Option<Vec<Value>> {
        let active = terms.iter().position(|term| is_active(term, &from))?;
        let mut terms = terms.to_vec();
        terms.remove(active);
        terms.iter().all(|term| !depends(term, var)).then_some(terms)
    };
    let (fetch, bound) = match (&condition[..], &conditions[..]) {
        ([Value { kind: ValueKind::Const(1), .. }], []) => (vec![constant(1)], vec![constant(1)]),
        (condition, []) => (others(condition)?, vec![constant(1)]),
        (condition, [written]) => {
            let mut written = written.clone();
            rewrite(&mut written, &mut |v| {
                if let ValueKind::Element(id, index) = &v.kind
                    && **index == lane
                    && let Some(value) = of(*id)
                {
                    *v = value;
                }
            });
            let (fetch, mut bound) = (others(condition)?, others(&terms(&written))?);
            for term in &fetch {
                bound.remove(bound.iter().position(|other| other == term)?);
            }
            (fetch, bound)
        }
        _ => return None,
    };
    let how = LaneMove::Pull { fetch: any(fetch), bound: any(bound) };
    Some((2, result, MoveLanes { how, lanes: numbers(var, result, from)?, value, to }))
}

/// Loops in which active lanes send values: zeros to all elements, each lane's value to one, and registers of
/// what has come.
fn push(list: &[Stmt]) -> Option<(usize, LocalId, MoveLanes)> {
    let [first, second @ Stmt::For { var, .. }, third, ..] = list else { return None };
    let (var, lane) = (*var, local(*var));
    let (result, to, conditions) = written(third, var)?;
    let zeros = writes(first, var)?;
    let [Write { when, to: Place::Element(id, index), value: zero }] = &zeros[..] else { return None };
    let cleared = when.is_empty() && (*id, index, &zero.kind) == (result, &lane, &ValueKind::Const(0));
    let sent = writes(second, var)?;
    let [Write { when, to: Place::Element(id, place), value }] = &sent[..] else { return None };
    let (value, from) = moved(value, var)?;
    let fits =
        cleared && conditions.is_empty() && is_only_active(when, &lane) && (*id, &from) == (result, &lane);
    if !fits || any_in(place, &is_element) {
        return None;
    }
    let lanes = numbers(var, result, place.clone())?;
    Some((3, result, MoveLanes { how: LaneMove::Push, lanes, value, to }))
}

/// The array whose elements a loop writes to a register of each active lane, that register, and further
/// conditions.
fn written(stmt: &Stmt, var: LocalId) -> Option<(LocalId, Value, Vec<Value>)> {
    let mut writes = writes(stmt, var)?;
    let Write { mut when, to, value } = writes.pop()?;
    let lane = local(var);
    match (to, value.kind) {
        (Place::Vgpr(of, register), ValueKind::Element(id, index))
            if writes.is_empty()
                && (&of, &*index) == (&lane, &lane)
                && !depends(&register, var)
                && when.first().is_some_and(|when| is_active(when, &lane)) =>
        {
            when.remove(0);
            Some((id, register, when))
        }
        _ => None,
    }
}

/// The register that a value is of, and the lane.
fn moved(value: &Value, var: LocalId) -> Option<(MovedValue, Value)> {
    let (value, lane) = match &value.kind {
        ValueKind::OperandLane { slot, lane, index } if index.kind == ValueKind::Const(0) => {
            (MovedValue::Operand(*slot), lane)
        }
        ValueKind::Vgpr { lane, reg } if !depends(reg, var) => (MovedValue::Vgpr((**reg).clone()), lane),
        _ => return None,
    };
    (!any_in(lane, &is_element)).then(|| (value, (**lane).clone()))
}

/// The loop that computes a number for each lane; `id` is an array that it may name.
fn numbers(var: LocalId, id: LocalId, value: Value) -> Option<Vector> {
    let size = Box::new(Value::new(ValueKind::State(State::WaveSize), Hold::W32));
    let last = ValueKind::Op2(Op2::Sub, size, Box::new(constant(1)));
    let body = vec![Stmt::SetElement { id, index: local(var), value }];
    super::vector::of_loop(&Stmt::For { var, from: constant(0), to: Value::new(last, Hold::W32), body })
}

fn constant(value: u128) -> Value {
    Value::new(ValueKind::Const(value), Hold::W32)
}

fn local(id: LocalId) -> Value {
    Value::new(ValueKind::Var(Var::Local(id)), Hold::W32)
}

fn is_element(value: &Value) -> bool {
    matches!(value.kind, ValueKind::Element(..))
}

/// Whether a value differs from lane to lane.
fn depends(value: &Value, var: LocalId) -> bool {
    any_in(value, &|v| is_element(v) || v.kind == ValueKind::Var(Var::Local(var)))
}

/// Whether a value is EXEC's bit of a lane.
fn is_active(value: &Value, lane: &Value) -> bool {
    let ValueKind::Op2(Op2::And, bits, one) = &value.kind else { return false };
    let ValueKind::Extract { value, lo } = &bits.kind else { return false };
    one.kind == ValueKind::Const(1) && value.kind == ValueKind::State(State::Exec) && **lo == *lane
}

fn is_only_active(when: &[Value], lane: &Value) -> bool {
    matches!(when, [when] if is_active(when, lane))
}

/// The conditions of which one must hold.
fn terms(value: &Value) -> Vec<Value> {
    match &value.kind {
        ValueKind::LogicalOr(a, b) => {
            let mut both = terms(a);
            both.append(&mut terms(b));
            both
        }
        ValueKind::Compare { op: Compare::Ne, a, b, .. } if b.kind == ValueKind::Const(0) => terms(a),
        ValueKind::Select(condition, yes, no)
            if (&yes.kind, &no.kind) == (&ValueKind::Const(1), &ValueKind::Const(0)) =>
        {
            terms(condition)
        }
        _ => vec![value.clone()],
    }
}

/// Whether one of these holds.
fn any(terms: Vec<Value>) -> Value {
    let or = |a, b| Value::new(ValueKind::LogicalOr(Box::new(a), Box::new(b)), Hold::W32);
    terms.into_iter().reduce(or).unwrap_or_else(|| constant(0))
}

/// Whether what the loops assign is not used elsewhere.
fn own_locals(loops: &[Stmt], whole: &[Stmt]) -> bool {
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
