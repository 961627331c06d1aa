//! Lowers typed statements; makes the effect of an assignment on the rest of a place explicit.

use super::Lower;
use crate::ir::*;
use isa_spec::pcode::ir::{self as typed, Expr, ExprKind, Place, PlaceKind, Role, State};

impl Lower<'_> {
    pub(super) fn stmts(&self, list: &[typed::Stmt]) -> Vec<Stmt> {
        list.iter().map(|s| self.stmt(s)).collect()
    }

    fn stmt(&self, stmt: &typed::Stmt) -> Stmt {
        match stmt {
            typed::Stmt::Assign { place, value, .. } => self.assign(place, self.value(value)),
            typed::Stmt::If { arms, otherwise, .. } => Stmt::If {
                arms: arms.iter().map(|(cond, body)| (self.value(cond), self.stmts(body))).collect(),
                otherwise: self.stmts(otherwise),
            },
            typed::Stmt::For { var, from, to, body, .. } => {
                Stmt::For { var: *var, from: self.value(from), to: self.value(to), body: self.stmts(body) }
            }
            typed::Stmt::While { cond, body, .. } => {
                Stmt::While { cond: self.value(cond), body: self.stmts(body) }
            }
            typed::Stmt::Return { .. } => Stmt::Leave,
            typed::Stmt::Call { builtin, args, .. } => {
                Stmt::Control { builtin: *builtin, args: self.values(args) }
            }
        }
    }

    fn assign(&self, place: &Place, value: Value) -> Stmt {
        let width = place.ty.width();
        match &place.kind {
            PlaceKind::Local(id) => Stmt::Set(Var::Local(*id), value),
            PlaceKind::Element(id, index) => Stmt::SetElement { id: *id, index: self.value(index), value },
            PlaceKind::Operand(role) => self.assign_operand(*role, value, width),
            PlaceKind::State(state) => Stmt::SetState(*state, value),
            PlaceKind::Slice { base, lo } => {
                // A lane's own bit of a mask: the checker rejects other bits.
                if self.lane {
                    match &base.kind {
                        PlaceKind::Operand(Role::D0) if self.mask_d0 => return Stmt::SetBit(Mask::D0, value),
                        PlaceKind::Operand(Role::Vcc) => return Stmt::SetBit(Mask::Vcc, value),
                        PlaceKind::State(State::Exec) => return Stmt::SetBit(Mask::Exec, value),
                        _ => {}
                    }
                }
                let old = self.place_value(base);
                let host_width = old.host_width;
                let (value, lo) = (value.resize(host_width), self.value(lo));
                let (old, value, lo) = (Box::new(old), Box::new(value), Box::new(lo));
                let new = Value::new(ValueKind::Insert { old, value, lo, width }, host_width);
                self.assign(base, new.masked(base.ty.width()))
            }
            PlaceKind::Vgpr { lane, reg } => {
                let (lane, reg) = (self.value(lane), self.value(reg));
                Stmt::SetVgpr { lane, reg, value: value.resize(HostWidth::W32) }
            }
            PlaceKind::Sgpr { reg } => {
                Stmt::SetSgpr { reg: self.value(reg), value: value.resize(HostWidth::W32) }
            }
            PlaceKind::Mem { space, addr } => {
                let (space, addr, bytes) = (*space, self.address(*space, addr), width.div_ceil(8));
                let value = value.resize(HostWidth::W128);
                if self.atomic {
                    Stmt::Exchange { space, addr, bytes, value }
                } else {
                    Stmt::Store { space, addr, bytes, value }
                }
            }
            PlaceKind::Concat(parts) => {
                let mut lo = 0;
                // The last part holds the lowest bits.
                let parts = parts.iter().rev().map(|part| {
                    let width = part.ty.width();
                    let whole = Value::new(ValueKind::Var(Var::Whole), HostWidth::W128);
                    let piece = whole.shr_const(lo);
                    lo += width;
                    self.assign(part, piece.resize(HostWidth::of(width)).masked(width))
                });
                Stmt::Parts { parts: parts.collect(), value: value.resize(HostWidth::W128) }
            }
        }
    }

    fn assign_operand(&self, role: Role, value: Value, width: u32) -> Stmt {
        if self.lane {
            let full = self.operands.width(role);
            let host_width = HostWidth::of(full);
            let (var, value) = (Var::Operand(role), value.resize(host_width));
            if width >= full {
                return Stmt::Set(var, value);
            }
            return Stmt::SetLow { var, host_width, width, value };
        }
        if role == Role::Vcc {
            return Stmt::SetMaskOperand(value.resize(HostWidth::W64));
        }
        let host_width = if self.direct { HostWidth::W64 } else { HostWidth::W128 };
        Stmt::SetScalar { dwords: width.div_ceil(32), direct: self.direct, value: value.resize(host_width) }
    }

    /// Returns the current value of a place.
    fn place_value(&self, place: &Place) -> Value {
        let read = |kind| self.value(&Expr { kind, ty: place.ty, span: Default::default() });
        let width = place.ty.width();
        match &place.kind {
            PlaceKind::Local(id) => read(ExprKind::Local(*id)),
            PlaceKind::Element(id, index) => read(ExprKind::Element(*id, index.clone())),
            PlaceKind::Operand(role) => read(ExprKind::Operand(*role)),
            PlaceKind::State(state) => read(ExprKind::State(*state)),
            PlaceKind::Slice { base, lo } => {
                let value = Box::new(self.place_value(base));
                let kind = ValueKind::Extract { value, lo: Box::new(self.value(lo)) };
                Value::new(kind, HostWidth::of(width)).masked(width)
            }
            PlaceKind::Vgpr { lane, reg } => read(ExprKind::Vgpr { lane: lane.clone(), reg: reg.clone() }),
            PlaceKind::Sgpr { reg } => read(ExprKind::Sgpr { reg: reg.clone() }),
            PlaceKind::Mem { space, addr } => read(ExprKind::Mem { space: *space, addr: addr.clone() }),
            PlaceKind::Concat(parts) => {
                let (mut lo, host_width) = (width, HostWidth::of(width));
                let parts = parts.iter().map(|part| {
                    lo -= part.ty.width();
                    (self.place_value(part).resize(host_width), lo)
                });
                Value::new(ValueKind::Concat(parts.collect()), host_width)
            }
        }
    }
}
