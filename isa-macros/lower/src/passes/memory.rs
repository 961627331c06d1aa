//! Turns unconditional accesses of each lane into steps for 32 lanes. Vector loops can then compute addresses
//! and distribute values, and coalesced elements move as a block.

use super::uniform::Terms;
use crate::ir::*;
use crate::lower::operands::{Operands, slot};
use crate::visit::{any_stmt, any_value, each_in, each_value, each_value_mut, parts, stmt_values};
use isa_spec::pcode::ir::Space;
use isa_spec::tables::Role;

/// Returns the handler with its accesses as steps, if they are outside of branches and loops and the body has
/// no other side effects. At most one access may be a store: two would reach memory in a different order than
/// lane by lane.
pub fn run(lanes: &Lanes, operands: &Operands) -> Option<Lanes> {
    let main = lanes.main_loop()?;
    let accesses = accesses(main)?;
    let sum = sum(main, &accesses, operands);
    let is_base_role = |role: Role| sum.is_some() && role == Role::SAddr;
    let (base_reads, reads): (Vec<Read>, Vec<Read>) = main.reads.iter().partition(|r| is_base_role(r.role));
    let mut body = main.body.clone();
    let mut number = 0;
    each_value_mut(&mut body, &mut |v| {
        if let ValueKind::Load { bytes, .. } = v.kind {
            v.kind = ValueKind::Loaded { access: number, dwords: bytes.div_ceil(4) };
            number += 1;
        }
    });
    // A loop that computes only the addresses, up to the statement that accesses memory.
    let address_loop = |body: &[Stmt], access: &Access<'_>| {
        let mut body = body[..access.at].to_vec();
        body.push(Stmt::SetAddress { space: access.space, addr: access.addr.clone() });
        let reads = reads.iter().chain(&base_reads).copied().collect();
        LaneLoop {
            active_only: false,
            reads,
            result: None,
            bits: Vec::new(),
            body,
            leaves: false,
            retries: false,
            outer: Outer::default(),
        }
    };
    let is_base = |step: &&Step| matches!(step, Step::Stage { role, .. } if is_base_role(*role));
    let stage: Vec<Step> = lanes.steps.iter().filter(is_base).cloned().collect();

    let (mut before, mut after) = (Vec::new(), Vec::new());
    for (number, access) in accesses.iter().enumerate() {
        let &Access { store, space, bytes, .. } = access;
        let dwords = bytes.div_ceil(4);
        let addresses = match &sum {
            Some((saddr, terms)) => {
                let unless = terms
                    .unless
                    .map(|unless| (unless.clone(), specialise(address_loop(&body, access), unless)));
                let staged = unless
                    .as_ref()
                    .is_some_and(|(_, lanes)| lanes.reads.iter().any(|r| is_base_role(r.role)));
                Addresses::Sum(Box::new(Sum {
                    saddr: saddr.clone(),
                    base: terms.base.iter().map(|&v| v.clone()).collect(),
                    offsets: terms.offsets,
                    scale: terms.scale,
                    unless,
                    address64: terms.address64.as_ref().map(|base| base.iter().map(|&v| v.clone()).collect()),
                    stage: if staged { stage.clone() } else { Vec::new() },
                }))
            }
            None if store => Addresses::Set,
            None => Addresses::Computed(address_loop(&body, access)),
        };
        if store {
            before.push(Step::StoreRoom { space, dwords, addresses: sum.is_none() });
        }
        let step = Step::Memory(Memory { number, store, space, bytes, dwords, addresses });
        if store { after.push(step) } else { before.push(step) }
    }

    body.drain(..sum.is_some() as usize);
    for stmt in &mut body {
        if let Stmt::Store { space, addr, bytes, value } = stmt {
            // Stores hold 128 bits whatever their size: strip the conversion.
            let whole = match &value.kind {
                ValueKind::Resize(inner) => (**inner).clone(),
                _ => value.clone(),
            };
            let address = sum.is_none().then(|| (*space, addr.clone()));
            let value = whole.resize(HostWidth::of(8 * *bytes));
            *stmt = Stmt::SetStored { address, value, dwords: bytes.div_ceil(4) };
        }
    }
    // Stores that stay in the loop are those of active lanes.
    let active_only = stores(&body);
    let main = LaneLoop { active_only, reads, body, ..main.clone() };

    let mut steps = Vec::new();
    for step in lanes.steps.iter().filter(|step| !is_base(step)) {
        match step {
            Step::Loop(_) => {
                steps.append(&mut before);
                steps.push(Step::Loop(main.clone()));
                steps.append(&mut after);
            }
            step => steps.push(step.clone()),
        }
    }
    Some(Lanes { halves: Halves::Given, steps, ..lanes.clone() })
}

/// Specialises a loop for addresses to the case that a condition holds, in which it may no longer read the
/// scalar base.
fn specialise(mut lanes: LaneLoop, condition: &Value) -> LaneLoop {
    each_value_mut(&mut lanes.body, &mut |v| {
        if let ValueKind::Select(test, yes, _) = &v.kind
            && **test == *condition
        {
            *v = (**yes).clone();
        }
    });
    if !any_value(&lanes.body, &|v| v.kind == ValueKind::Var(Var::Operand(Role::SAddr))) {
        lanes.reads.retain(|read| read.role != Role::SAddr);
    }
    lanes
}

struct Access<'a> {
    /// Index of the statement that performs the access.
    at: usize,
    store: bool,
    space: Space,
    addr: &'a Value,
    bytes: u32,
}

/// Returns the accesses of a body in order: loads, or one store. Conditional stores to LDS may follow loads from
/// elsewhere, and stay in the loop.
fn accesses(main: &LaneLoop) -> Option<Vec<Access<'_>>> {
    let body = &main.body;
    let effect = any_stmt(body, &|s| match s {
        Stmt::Set(..)
        | Stmt::SetLow { .. }
        | Stmt::SetElement { .. }
        | Stmt::SetBit(..)
        | Stmt::Parts { .. }
        | Stmt::Store { .. }
        | Stmt::If { .. } => false,
        Stmt::SetState(..)
        | Stmt::SetVgpr { .. }
        | Stmt::SetSgpr { .. }
        | Stmt::SetScalar { .. }
        | Stmt::SetLaneElement { .. }
        | Stmt::SetMaskOperand(_)
        | Stmt::Exchange { .. }
        | Stmt::SetStored { .. }
        | Stmt::SetAddress { .. }
        | Stmt::For { .. }
        | Stmt::While { .. }
        | Stmt::Vector(_)
        | Stmt::Product(_)
        | Stmt::MoveLanes(_)
        | Stmt::Leave
        | Stmt::Control { .. } => true,
    });
    // Accesses to registers of other lanes.
    let others = any_value(body, &|v| {
        matches!(
            v.kind,
            ValueKind::Vgpr { .. }
                | ValueKind::OperandLane { .. }
                | ValueKind::StagedLane { .. }
                | ValueKind::Control { .. }
        )
    });
    if effect || others || main.bits.contains(&Mask::Exec) {
        return None;
    }
    let mut found: Vec<Access<'_>> = Vec::new();
    let mut in_loop = false;
    for (at, stmt) in body.iter().enumerate() {
        let list = std::slice::from_ref(stmt);
        let (mut all, mut certain) = (Vec::new(), 0);
        each_value(list, &mut |v| all.extend(load(at, v)));
        stmt_values(stmt, &mut |v| certain += loads_always(v));
        match stmt {
            Stmt::If { .. } if !all.is_empty() => return None,
            Stmt::If { .. } if stores(list) => {
                let elsewhere = |a: &Access<'_>| matches!(a.space, Space::Global | Space::Buffer);
                if stores_outside_lds(list) || found.is_empty() || !found.iter().all(elsewhere) {
                    return None;
                }
                in_loop = true;
            }
            _ if in_loop && (!all.is_empty() || stores(list)) => return None,
            Stmt::Store { space, addr, bytes, .. } => {
                if !all.is_empty() {
                    return None;
                }
                found.push(Access { at, store: true, space: *space, addr, bytes: *bytes });
            }
            _ if all.len() > 1 || all.len() != certain => return None,
            _ => found.extend(all),
        }
    }
    let ordered = found.len() == 1 || !found.is_empty() && found.iter().all(|a| !a.store);
    ordered.then_some(found)
}

fn stores(list: &[Stmt]) -> bool {
    any_stmt(list, &|s| matches!(s, Stmt::Store { .. }))
}

fn stores_outside_lds(list: &[Stmt]) -> bool {
    any_stmt(list, &|s| matches!(s, Stmt::Store { space, .. } if *space != Space::Lds))
}

fn load(at: usize, v: &Value) -> Option<Access<'_>> {
    match &v.kind {
        ValueKind::Load { space, addr, bytes, .. } => {
            Some(Access { at, store: false, space: *space, addr, bytes: *bytes })
        }
        _ => None,
    }
}

/// Returns the number of loads that any evaluation of a value performs. Loads among the arguments of a call
/// do not count, since a call makes a vector loop unprofitable.
fn loads_always(value: &Value) -> usize {
    let mut count = matches!(value.kind, ValueKind::Load { .. }) as usize;
    match &value.kind {
        ValueKind::Select(..)
        | ValueKind::LogicalAnd(..)
        | ValueKind::LogicalOr(..)
        | ValueKind::Pure { .. }
        | ValueKind::Concat(_) => {}
        _ => parts(value, &mut |v| count += loads_always(v)),
    }
    count
}

/// Returns the address of the only access as a sum, and the scalar part of the address. The first statement
/// must compute the address, and only the access, which is the rest of the body, may use the address or the
/// scalar part.
fn sum<'a>(main: &'a LaneLoop, accesses: &[Access<'a>], operands: &Operands) -> Option<(Value, Terms<'a>)> {
    let [Access { at: 1, space: Space::Global, addr, .. }] = accesses else { return None };
    let [Stmt::Set(Var::Local(id), value), rest] = &main.body[..] else { return None };
    let local = ValueKind::Var(Var::Local(*id));
    if addr.kind != local {
        return None;
    }
    let (mut uses, mut base) = (0, false);
    stmt_values(rest, &mut |v| {
        each_in(v, &mut |v| {
            uses += (v.kind == local) as u32;
            base |= v.kind == ValueKind::Var(Var::Operand(Role::SAddr));
        });
    });
    if uses != 1 || base {
        return None;
    }
    let width = operands.width(Role::SAddr);
    let dwords = if width <= 64 { width.div_ceil(32) } else { 4 };
    let scalar = ValueKind::Scalar { slot: slot(Role::SAddr), dwords, how: Scalar::Any };
    Some((Value::new(scalar, HostWidth::of(width)), Terms::of(value)?))
}
