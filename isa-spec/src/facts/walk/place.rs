//! Records reads and writes: of operands, state, registers by number, and memory.

use super::super::merge::MOST_CONDITIONAL;
use super::super::value::{Guard, Value};
use super::super::{MemoryTouch, Number, What};
use super::{LaneOf, Walk};
use crate::arith;
use crate::pcode::ir::*;

/// Numbers from here on are not registers.
const NO_REGISTER: u32 = 256;

impl Walk {
    pub(super) fn touch(&mut self, write: bool, what: What, bits: u128, lane: LaneOf) {
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

    pub(super) fn own(&self) -> LaneOf {
        if self.shape == Shape::Lane { LaneOf::Own } else { LaneOf::Once }
    }

    /// A scalar register is written that may be M0 or EXEC. What runs per lane writes at the end.
    pub(super) fn scalar_written(&mut self) {
        if self.shape != Shape::Lane {
            (self.m0_changes, self.exec_changes) = (true, true);
        }
    }

    /// Reads bits of an operand or a state as it was.
    pub(super) fn read(&mut self, what: What, bits: u128) {
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

    pub(super) fn write(&mut self, what: What, bits: u128, certain: bool) {
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

    pub(super) fn assign(&mut self, place: &Place, value: Value) {
        match &place.kind {
            PlaceKind::Local(id) => self.point.locals[*id as usize] = value,
            PlaceKind::Element(id, index) => {
                self.expr(index);
                self.point.locals[*id as usize] = Value::Unknown;
            }
            PlaceKind::Operand(role) => {
                self.write(What::Operand(*role), arith::mask(place.ty.width()), true);
            }
            PlaceKind::State(state) => {
                self.write(What::State(*state), arith::mask(place.ty.width()), true);
            }
            PlaceKind::Slice { base, lo } => {
                let lo = self.expr(lo);
                self.part(base, lo, place.ty.width());
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

    /// Assigns `width` bits of a place; the others stay.
    pub(super) fn part(&mut self, place: &Place, lo: Value, width: u32) {
        let whole = arith::mask(place.ty.width());
        // A lane's own bit of a mask counts as an access to the mask.
        let bits = match lo {
            Value::Known(lo) if lo < 128 => Some((arith::mask(width) << lo as u32) & whole),
            Value::Own => Some(whole),
            _ => None,
        };
        match &place.kind {
            PlaceKind::Local(id) => self.point.locals[*id as usize] = Value::Unknown,
            PlaceKind::Element(id, index) => {
                self.expr(index);
                self.point.locals[*id as usize] = Value::Unknown;
            }
            PlaceKind::Operand(role) => {
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
                match (inner, lo) {
                    (Value::Known(a), Value::Known(b)) => self.part(base, Value::Known(a + b), width),
                    (Value::Known(a), _) => {
                        self.path.unknown += 1;
                        self.part(base, Value::Known(a), place.ty.width());
                        self.path.unknown -= 1;
                    }
                    _ => self.part(base, Value::Unknown, width),
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
        let (mut when, mut always) = (self.conditions(), self.path.unknown == 0);
        if self.memory.len() >= MOST_CONDITIONAL && !when.is_empty() {
            (when, always) = (Vec::new(), false);
        }
        let (bytes, when) = (width.div_ceil(8), when.into());
        self.memory.insert(MemoryTouch { space, bytes, write, when, always });
    }

    /// A register by number, of `lane` if it is a vector register.
    pub(super) fn register(&mut self, write: bool, lane: Option<&Expr>, reg: &Expr, bits: u128) {
        let at = lane.map(|lane| self.lane(lane));
        let reg = self.expr(reg);
        let at = at.unwrap_or(LaneOf::Once);
        // The same for all that M0 adds to, see `exec::effects`: no other stand-in for what is out of range
        // is known there.
        let expressible = |number: &Number| match (number.index, number.otherwise) {
            (None, _) => true,
            (Some(_), None) => false,
            (Some(_), Some(otherwise)) if lane.is_some() => otherwise == u32::MAX,
            (Some(_), Some(otherwise)) => otherwise != u32::MAX && (!write || otherwise >= NO_REGISTER),
        };
        let numbers = reg.numbers().filter(|list| list.iter().all(|(_, number)| expressible(number)));
        let before = self.depth();
        match numbers {
            Some(list) => {
                for (guards, mut number) in list {
                    if (number.base, number.index) == (None, None) && number.first >= NO_REGISTER {
                        // v0 stands in for a source that is not a register.
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

    pub(super) fn lane(&mut self, lane: &Expr) -> LaneOf {
        match self.expr(lane) {
            Value::Own => LaneOf::Own,
            Value::Known(n) => LaneOf::Number(n as u32),
            Value::Lowest => LaneOf::Lowest,
            Value::Selected(role) => LaneOf::Selected(role),
            _ => LaneOf::Any,
        }
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
