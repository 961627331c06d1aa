//! Computes once, ahead of a loop, what every iteration computes alike: in lane loops, what depends on descriptors in
//! scalar registers, fields of the instruction and constants; in loops of bodies that run once per wave, what no
//! iteration changes. The host's compiler cannot do it, because the loops contain calls.
//!
//! Only values without side effects move, so that a move is never visible. What runs only under a condition that is
//! itself the same for all iterations keeps the condition; what runs under another one is computed always.

use super::varying::{Varying, assigned, read};
use crate::ir::*;
use crate::visit::{any_in, each_stmt, each_value, parts_mut, stmt_values_mut};
use isa_spec::pcode::ir::{Local, LocalId, Ty};
use std::collections::{BTreeMap, BTreeSet};

/// The operations that must move to make it worthwhile: smaller bodies are left to the host's compiler.
const WORTHWHILE: usize = 24;

/// Moves statements and values of the lane loops that skip inactive lanes to a [`Step::Once`] ahead of each.
pub fn lanes(lanes: &mut Lanes, locals: &mut Vec<Local>) {
    let mut at = 0;
    while at < lanes.steps.len() {
        if let Step::Loop(own) = &mut lanes.steps[at]
            && own.active_only
            && own.outer.is_empty()
        {
            let scalar = |read: &&Read| crate::lower::operands::is_scalar(read.role);
            let reads: Vec<Read> = own.reads.iter().filter(scalar).copied().collect();
            if let Some(Moved { ahead, rest, shared }) = hoist(&own.body, None, locals) {
                own.body = rest;
                own.outer.same = shared.clone();
                let declare = Step::Declare { same: shared, lanes: Vec::new(), rows: Vec::new() };
                lanes.steps.splice(at..at, [declare, Step::Once { reads, body: ahead }]);
                at += 2;
            }
        }
        at += 1;
    }
}

/// Moves statements and values of the outermost counted loops of a body that runs once per wave.
pub fn once(once: &mut Once, locals: &mut Vec<Local>) {
    if once.with_vectors.is_some() {
        return;
    }
    let mut at = 0;
    while at < once.body.len() {
        if matches!(once.body[at], Stmt::For { .. }) {
            let mut body = std::mem::take(&mut once.body);
            let mut this = body.remove(at);
            let Stmt::For { var, body: inner, .. } = &mut this else { unreachable!("matched above") };
            let moved = hoist(inner, Some((*var, &body)), locals);
            let count = moved.as_ref().map_or(0, |moved| moved.ahead.len());
            if let Some(Moved { ahead, rest, .. }) = moved {
                *inner = rest;
                body.splice(at..at, ahead);
            }
            body.insert(at + count, this);
            once.body = body;
            at += count;
        }
        at += 1;
    }
}

/// The two parts of a body.
struct Moved {
    /// What runs ahead of the loop.
    ahead: Vec<Stmt>,
    /// What stays.
    rest: Vec<Stmt>,
    /// The locals that `ahead` assigns.
    shared: Vec<LocalId>,
}

/// Divides the body of a loop. In a lane loop, all locals begin as zeros; of another one, `counted` is the counter and
/// the code around it.
fn hoist(body: &[Stmt], counted: Option<(LocalId, &[Stmt])>, locals: &mut Vec<Local>) -> Option<Moved> {
    let mut varying = Varying::of(body);
    let (mut fixed, mut sets, mut reads) = (BTreeSet::new(), BTreeMap::new(), BTreeMap::new());
    each_stmt(body, &mut |stmt| {
        if let Some(id) = assigned(stmt) {
            *sets.entry(id).or_insert(0usize) += 1;
        }
    });
    if let Some((counter, around)) = counted {
        varying.registers |= Varying::of(around).registers;
        // The counter differs, and what the rest of the code uses stays where it is.
        fixed.insert(counter);
        each_stmt(around, &mut |stmt| fixed.extend(assigned(stmt).filter(|id| sets.contains_key(id))));
        each_value(around, &mut |value| fixed.extend(read(value).filter(|id| sets.contains_key(id))));
        // An iteration may use what the one before has left.
        varying.locals.extend(sets.keys().filter(|id| !begins_with(body, **id)));
        varying.locals.extend(&fixed);
    }
    let moves = divide(body, &mut varying);
    let (mut ahead, mut rest) = (Vec::new(), Vec::new());
    for (stmt, moves) in body.iter().zip(moves) {
        if moves { ahead.push(stmt.clone()) } else { rest.push(stmt.clone()) }
    }
    each_value(&rest, &mut |value| {
        if let Some(id) = read(value) {
            *reads.entry(id).or_insert(0usize) += 1;
        }
    });
    let first = locals.len();
    let mut hoist = Hoist { locals, varying, fixed, sets, reads, known: Vec::new() };
    hoist.list(&mut rest, &mut ahead);
    let mut size = 0;
    each_value(&ahead, &mut |value| size += is_operation(value) as usize);
    if size < WORTHWHILE {
        hoist.locals.truncate(first);
        return None;
    }
    let mut shared = BTreeSet::new();
    each_stmt(&ahead, &mut |stmt| shared.extend(assigned(stmt)));
    Some(Moved { ahead, rest, shared: shared.into_iter().collect() })
}

/// Returns whether every iteration assigns a local before it uses it.
pub(super) fn begins_with(body: &[Stmt], id: LocalId) -> bool {
    let reads = |list: &[Stmt]| {
        let mut found = false;
        each_value(list, &mut |value| found |= read(value) == Some(id));
        found
    };
    for stmt in body {
        let list = std::slice::from_ref(stmt);
        match stmt {
            Stmt::Set(Var::Local(of), _) if *of == id => return !reads(list),
            Stmt::For { var, from, to, .. } if *var == id => {
                return !any_in(from, &|v| read(v) == Some(id)) && !any_in(to, &|v| read(v) == Some(id));
            }
            _ => {}
        }
        let mut mentioned = reads(list);
        each_stmt(list, &mut |stmt| mentioned |= assigned(stmt) == Some(id));
        if mentioned {
            return false;
        }
    }
    false
}

/// Returns for each statement whether it and all it depends on are the same for all iterations. Adds the locals that the
/// others assign to `varying`.
fn divide(body: &[Stmt], varying: &mut Varying) -> Vec<bool> {
    loop {
        let moves: Vec<bool> = body.iter().map(|stmt| varying.is_same_statement(stmt)).collect();
        let before = varying.locals.len();
        let mut read_early = BTreeSet::new();
        for (stmt, moves) in body.iter().zip(&moves) {
            let list = std::slice::from_ref(stmt);
            if *moves {
                // A statement that stays has read what this one assigns.
                each_stmt(list, &mut |stmt| {
                    varying.locals.extend(assigned(stmt).filter(|id| read_early.contains(id)))
                });
            } else {
                each_value(list, &mut |value| read_early.extend(read(value)));
                each_stmt(list, &mut |stmt| {
                    varying.locals.extend(assigned(stmt));
                    if let Stmt::SetLow { var: Var::Local(id), .. } = stmt {
                        read_early.insert(*id);
                    }
                });
            }
        }
        if varying.locals.len() == before {
            return moves;
        }
    }
}

/// Adds what has been moved from the parts of a statement with conditions, if there is anything.
fn push_if(arms: Vec<(Value, Vec<Stmt>)>, otherwise: Vec<Stmt>, ahead: &mut Vec<Stmt>) {
    if !otherwise.is_empty() || arms.iter().any(|(_, body)| !body.is_empty()) {
        ahead.push(Stmt::If { arms, otherwise });
    }
}

/// Returns whether a value computes anything.
fn is_operation(value: &Value) -> bool {
    !matches!(value.kind, ValueKind::Const(_) | ValueKind::Var(_) | ValueKind::Resize(_))
}

/// The values of one loop.
struct Hoist<'a> {
    locals: &'a mut Vec<Local>,
    varying: Varying,
    /// Locals that must stay.
    fixed: BTreeSet<LocalId>,
    /// How many statements assign each local.
    sets: BTreeMap<LocalId, usize>,
    /// How often each local is read.
    reads: BTreeMap<LocalId, usize>,
    /// Values that have been computed ahead, with their locals.
    known: Vec<(Value, LocalId)>,
}

impl Hoist<'_> {
    /// Moves what is the same for all iterations out of statements that stay.
    fn list(&mut self, list: &mut Vec<Stmt>, ahead: &mut Vec<Stmt>) {
        let mut at = 0;
        while at < list.len() {
            if let Stmt::Set(Var::Local(id), value) = &list[at]
                && self.sets.get(id) == Some(&1)
                && self.varying.is_same(value)
                && !self.fixed.contains(id)
                && self.is_read_after(*id, &list[at + 1..])
            {
                self.varying.locals.remove(id);
                ahead.push(list.remove(at));
                continue;
            }
            self.stmt(&mut list[at], ahead);
            at += 1;
        }
    }

    /// Returns whether a list has all reads of a local, whose only assignment precedes it.
    fn is_read_after(&self, id: LocalId, list: &[Stmt]) -> bool {
        let mut count = 0;
        each_value(list, &mut |value| count += (read(value) == Some(id)) as usize);
        count == self.reads.get(&id).copied().unwrap_or(0)
    }

    fn stmt(&mut self, stmt: &mut Stmt, ahead: &mut Vec<Stmt>) {
        stmt_values_mut(stmt, &mut |value| self.value(value, ahead));
        match stmt {
            Stmt::If { arms, otherwise } => {
                let mut guard: Option<Vec<(Value, Vec<Stmt>)>> = Some(Vec::new());
                for (cond, body) in arms {
                    if !self.varying.is_same(cond)
                        && let Some(arms) = guard.take()
                    {
                        push_if(arms, Vec::new(), ahead);
                    }
                    match &mut guard {
                        Some(guard) => {
                            let own = self.guarded(body);
                            guard.push((cond.clone(), own));
                        }
                        None => self.list(body, ahead),
                    }
                }
                match guard {
                    Some(arms) => {
                        let otherwise = self.guarded(otherwise);
                        push_if(arms, otherwise, ahead);
                    }
                    None => self.list(otherwise, ahead),
                }
            }
            Stmt::For { body, .. } | Stmt::While { body, .. } => self.list(body, ahead),
            Stmt::Parts { parts, .. } => parts.iter_mut().for_each(|stmt| self.stmt(stmt, ahead)),
            _ => {}
        }
    }

    /// Moves what runs only under a condition that is the same for all iterations; returns it.
    fn guarded(&mut self, body: &mut Vec<Stmt>) -> Vec<Stmt> {
        let (known, mut ahead) = (self.known.len(), Vec::new());
        self.list(body, &mut ahead);
        self.known.truncate(known);
        ahead
    }

    /// Replaces the largest parts of a value that are the same for all iterations.
    fn value(&mut self, value: &mut Value, ahead: &mut Vec<Stmt>) {
        if !self.varying.is_same(value) {
            parts_mut(value, &mut |part| self.value(part, ahead));
            return;
        }
        if !any_in(value, &is_operation) || matches!(value.kind, ValueKind::Field("CLAMP")) {
            return;
        }
        let id = match self.known.iter().find(|(known, _)| *known == *value) {
            Some((_, id)) => *id,
            None => {
                let id = self.locals.len() as LocalId;
                let ty = Ty::B(value.host_width.bits() as u16);
                self.locals.push(Local { name: "same".into(), ty, len: None });
                ahead.push(Stmt::Set(Var::Local(id), value.clone()));
                self.known.push((value.clone(), id));
                id
            }
        };
        value.kind = ValueKind::Var(Var::Local(id));
    }
}
