//! Records reads and writes of operands, state, registers by number, and memory.

use super::super::merge::MAX_CONDITIONAL;
use super::super::value::{Guard, Value};
use super::super::{MemoryAccess, RegisterRange, Resource};
use super::{LaneOf, Walk};
use crate::arith;
use crate::pcode::ir::*;

/// Numbers from here on do not name registers.
const NO_REGISTER: u32 = 256;

impl Walk {
    pub(super) fn record(&mut self, write: bool, resource: Resource, bits: u128, lane: LaneOf) {
        let active = match lane {
            LaneOf::Number(lane) if self.path.active.is_empty() => Ok((lane, false)),
            LaneOf::Number(lane) if self.path.active.iter().all(|a| *a == lane) => Ok((lane, true)),
            // A numbered lane, accessed on the condition that another lane is active.
            LaneOf::Number(_) => Err(LaneOf::Any),
            lane => Err(lane),
        };
        let always = self.path.unknown == 0 && !matches!(active, Err(LaneOf::Any));
        let cause = match self.path.active.as_slice() {
            [] => None,
            [lane, rest @ ..] => Some(if rest.iter().all(|a| a == lane) { 1 << (lane & 63) } else { 0 }),
        };
        self.accesses.add(write, resource, bits, self.conditions(), always, active, cause);
    }

    pub(super) fn own(&self) -> LaneOf {
        if self.shape == Shape::Lane { LaneOf::Own } else { LaneOf::Once }
    }

    /// Records a write to a scalar register that may be M0 or EXEC. Per-lane bodies write their results at
    /// the end, so there the write changes nothing for later reads.
    pub(super) fn scalar_written(&mut self) {
        if self.shape != Shape::Lane {
            (self.m0_changes, self.exec_changes) = (true, true);
        }
    }

    /// Records a read of those bits of an operand or state that still have their initial value.
    pub(super) fn read(&mut self, resource: Resource, bits: u128) {
        let (whole, shift, taken) = whole(resource, bits);
        let written = self.flow.written.get(&whole).copied().unwrap_or(0) >> shift;
        let old = if taken & !written == 0 {
            0
        } else if taken == bits {
            bits & !written
        } else {
            bits
        };
        if old != 0 {
            let maybe = self.flow.maybe_written.get(&whole).copied().unwrap_or(0) >> shift;
            let uncertain = (taken & !written & maybe != 0) as u32;
            let lane = if matches!(resource, Resource::State(_)) { LaneOf::Once } else { self.own() };
            self.path.unknown += uncertain;
            self.record(false, resource, old, lane);
            self.path.unknown -= uncertain;
        }
    }

    pub(super) fn write(&mut self, resource: Resource, bits: u128, certain: bool) {
        let lane = if matches!(resource, Resource::State(_)) { LaneOf::Once } else { self.own() };
        self.path.unknown += !certain as u32;
        self.record(true, resource, bits, lane);
        self.path.unknown -= !certain as u32;
        let (whole, shift, bits) = whole(resource, bits);
        *self.flow.maybe_written.entry(whole).or_insert(0) |= bits << shift;
        if certain {
            *self.flow.written.entry(whole).or_insert(0) |= bits << shift;
        }
        if let Resource::Operand(_) = resource {
            self.scalar_written();
        }
    }

    pub(super) fn assign(&mut self, place: &Place, value: Value) {
        match &place.kind {
            PlaceKind::Local(id) => self.flow.locals[*id as usize] = value,
            PlaceKind::Element(id, index) => {
                self.expr(index);
                self.flow.locals[*id as usize] = Value::Unknown;
            }
            PlaceKind::Operand(role) => {
                self.write(Resource::Operand(*role), arith::mask(place.ty.width()), true);
            }
            PlaceKind::State(state) => {
                self.write(Resource::State(*state), arith::mask(place.ty.width()), true);
            }
            PlaceKind::Slice { base, lo } => {
                let lo = self.expr(lo);
                self.assign_part(base, lo, place.ty.width());
            }
            PlaceKind::Vgpr { lane, reg } => {
                self.register(true, Some(lane), reg, u32::MAX as u128);
            }
            PlaceKind::Sgpr { reg } => {
                self.register(true, None, reg, u32::MAX as u128);
            }
            PlaceKind::Mem { space, addr } => {
                self.access(*space, addr, place.ty.width(), true);
            }
            PlaceKind::Concat(parts) => {
                for part in parts.iter().rev() {
                    self.assign(part, Value::Unknown);
                }
            }
        }
    }

    /// Records an assignment to `width` bits of a place; the other bits keep their values.
    pub(super) fn assign_part(&mut self, place: &Place, lo: Value, width: u32) {
        let whole = arith::mask(place.ty.width());
        // An access to the lane's own bit of a mask counts as an access to the whole mask.
        let bits = match lo {
            Value::Known(lo) if lo < 128 => Some((arith::mask(width) << lo as u32) & whole),
            Value::LaneId => Some(whole),
            _ => None,
        };
        match &place.kind {
            PlaceKind::Local(id) => self.flow.locals[*id as usize] = Value::Unknown,
            PlaceKind::Element(id, index) => {
                self.expr(index);
                self.flow.locals[*id as usize] = Value::Unknown;
            }
            PlaceKind::Operand(role) => {
                self.write(Resource::Operand(*role), bits.unwrap_or(whole), bits.is_some());
            }
            PlaceKind::State(state) => {
                self.write(Resource::State(*state), bits.unwrap_or(whole), bits.is_some());
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
                match (inner, lo) {
                    (Value::Known(a), Value::Known(b)) => self.assign_part(base, Value::Known(a + b), width),
                    (Value::Known(a), _) => {
                        self.path.unknown += 1;
                        self.assign_part(base, Value::Known(a), place.ty.width());
                        self.path.unknown -= 1;
                    }
                    _ => self.assign_part(base, Value::Unknown, width),
                }
            }
            PlaceKind::Mem { space, addr } => {
                self.access(*space, addr, place.ty.width(), false);
                self.access(*space, addr, place.ty.width(), true);
            }
            PlaceKind::Concat(parts) => {
                self.path.unknown += 1;
                for part in parts.iter().rev() {
                    self.assign(part, Value::Unknown);
                }
                self.path.unknown -= 1;
            }
        }
    }

    pub(super) fn access(&mut self, space: Space, addr: &Expr, width: u32, write: bool) {
        self.expr(addr);
        let (mut conditions, mut always) = (self.conditions(), self.path.unknown == 0);
        if self.memory.len() >= MAX_CONDITIONAL && !conditions.is_empty() {
            (conditions, always) = (Vec::new(), false);
        }
        let (bytes, conditions) = (width.div_ceil(8), conditions.into());
        self.memory.insert(MemoryAccess { space, bytes, write, conditions, always });
    }

    /// Records an access to a register by number: a vector register in `lane`, or a scalar register if there
    /// is no lane.
    pub(super) fn register(&mut self, write: bool, lane: Option<&Expr>, reg: &Expr, bits: u128) {
        let at = lane.map(|lane| self.lane(lane));
        let reg = self.expr(reg);
        let at = at.unwrap_or(LaneOf::Once);
        // `exec::effects` assumes one replacement for every M0-relative number that is out of range: it can
        // represent no other.
        let expressible = |number: &RegisterRange| match (number.index, number.fallback) {
            (None, _) => true,
            (Some(_), None) => false,
            (Some(_), Some(fallback)) if lane.is_some() => fallback == u32::MAX,
            (Some(_), Some(fallback)) => fallback != u32::MAX && (!write || fallback >= NO_REGISTER),
        };
        let numbers = reg.numbers().filter(|list| list.iter().all(|(_, number)| expressible(number)));
        let before = self.depth();
        match numbers {
            Some(list) => {
                for (guards, mut number) in list {
                    if (number.base, number.index) == (None, None) && number.first >= NO_REGISTER {
                        // Reading a source that is not a register reads v0 instead.
                        if write || lane.is_none() {
                            continue;
                        }
                        number.first = 0;
                    }
                    self.enter(&guards);
                    let resource =
                        if lane.is_some() { Resource::Vgpr(number) } else { Resource::Sgpr(number) };
                    self.record(write, resource, bits, at);
                    self.leave(before);
                }
            }
            None => {
                self.enter(&[Guard::Unknown]);
                self.record(
                    write,
                    if lane.is_some() { Resource::AnyVgpr } else { Resource::AnySgpr },
                    bits,
                    at,
                );
                self.leave(before);
            }
        }
        if write && lane.is_none() {
            self.scalar_written();
        }
    }

    pub(super) fn lane(&mut self, lane: &Expr) -> LaneOf {
        match self.expr(lane) {
            Value::LaneId => LaneOf::Own,
            Value::Known(n) => LaneOf::Number(n as u32),
            Value::LowestActive => LaneOf::LowestActive,
            Value::Selected(role) => LaneOf::Selected(role),
            _ => LaneOf::Any,
        }
    }
}

/// Maps a state that aliases part of another one (EXEC_LO in EXEC) to that state, the offset in it, and the
/// bits accessed there.
fn whole(resource: Resource, bits: u128) -> (Resource, u32, u128) {
    let (state, shift, bits) = match resource {
        Resource::State(State::ExecLo) => (State::Exec, 0, bits),
        Resource::State(State::ExecHi) => (State::Exec, 32, bits),
        Resource::State(State::Execz) => (State::Exec, 0, u64::MAX as u128),
        Resource::State(State::VccLo) => (State::Vcc, 0, bits),
        Resource::State(State::VccHi) => (State::Vcc, 32, bits),
        Resource::State(State::Vccz) => (State::Vcc, 0, u64::MAX as u128),
        _ => return (resource, 0, bits),
    };
    (Resource::State(state), shift, bits)
}
