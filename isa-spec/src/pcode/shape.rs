//! Infers the operands and state that a body reads and writes, and from these how often the body runs: once
//! per wave on scalars, once per lane, or once per wave with explicit access to lanes.

use super::ir::*;
use super::sig::{Family, InstrSig};
use super::visit::{Visitor, any_in, walk_expr, walk_stmt};
use crate::mnemonic;

/// Sets [`Semantics::uses`] and [`Semantics::shape`].
pub fn infer(sem: &mut Semantics, sig: &InstrSig) {
    let mut walk = Walk { uses: Uses::default(), wave: false, lane: false };
    let body = std::mem::take(&mut sem.body);
    walk.stmts(&body);
    sem.body = body;
    let per_lane_family = match sig.family {
        Family::Scalar => false,
        Family::Vector => true,
        Family::Memory(space) => space != Space::Scalar,
    };
    // A result such as `D0.u64[laneId]` makes a vector body lane-shaped; a body that uses no lane may still
    // be a no-op.
    let touches = !walk.uses.reads.is_empty()
        || !walk.uses.writes.is_empty()
        || walk.lane
        || walk.uses.memory_read
        || walk.uses.memory_write;
    let scalar_results = walk.uses.control && !walk.uses.memory_read && !walk.uses.memory_write;
    sem.shape = if walk.wave && per_lane_family {
        Shape::Wave
    } else if per_lane_family && touches && !scalar_results {
        if scalar_destination(sig) { Shape::Wave } else { Shape::Lane }
    } else {
        Shape::Scalar
    };
    sem.uses = walk.uses;
    sem.ignores_mode = mnemonic::is_image(&sig.name);
}

/// Returns whether a vector instruction writes an SGPR once per wave (V_READFIRSTLANE, V_READLANE, V_S_RCP
/// …).
fn scalar_destination(sig: &InstrSig) -> bool {
    sig.operands.get(&Role::D0).is_some_and(|d| d.scalar && !d.mask)
}

struct Walk {
    uses: Uses,
    wave: bool,
    lane: bool,
}

impl Walk {
    /// Records an assignment to a place; `partial` means to some of its bits only.
    fn write(&mut self, place: &Place, partial: bool) {
        match &place.kind {
            PlaceKind::Local(_) => {}
            PlaceKind::Element(_, index) => self.expr(index),
            PlaceKind::Operand(role) => {
                self.uses.writes.insert(*role);
                if partial {
                    self.uses.reads.insert(*role);
                }
            }
            PlaceKind::State(state) => {
                self.uses.state_writes.insert(*state);
                if partial {
                    self.uses.state_reads.insert(*state);
                } else if matches!(state, State::Exec) {
                    // The whole EXEC belongs to the wave, not to a lane.
                    self.wave = true;
                }
            }
            PlaceKind::Slice { base, lo } => {
                self.expr(lo);
                // The lane's own bit of a mask is lane data, not a partial write.
                let own_bit = is_lane_id(lo);
                if own_bit {
                    self.lane = true;
                    match &base.kind {
                        PlaceKind::Operand(role) => {
                            self.uses.writes.insert(*role);
                            return;
                        }
                        PlaceKind::State(state) => {
                            self.uses.state_writes.insert(*state);
                            return;
                        }
                        _ => {}
                    }
                }
                self.write(base, true);
            }
            PlaceKind::Vgpr { lane, reg } => {
                self.uses.registers = true;
                self.register_of(lane);
                self.expr(lane);
                self.expr(reg);
            }
            PlaceKind::Sgpr { reg } => self.expr(reg),
            PlaceKind::Mem { addr, .. } => {
                self.uses.memory_write = true;
                self.expr(addr);
            }
            PlaceKind::Concat(parts) => parts.iter().for_each(|p| self.write(p, partial)),
        }
    }

    /// Records the uses of an expression itself; its subexpressions are visited later.
    fn read(&mut self, e: &Expr) {
        match &e.kind {
            ExprKind::Operand(role) => {
                self.uses.reads.insert(*role);
            }
            ExprKind::OperandIndex(role) => {
                self.uses.indexed.insert(*role);
            }
            ExprKind::OperandLane { role, lane, .. } => {
                self.uses.reads.insert(*role);
                // A lane-shaped body can read other lanes of the staged sources (interpolation).
                if mentions_lane_id(lane) {
                    self.lane = true;
                } else {
                    self.wave = true;
                }
            }
            ExprKind::Field(name) => {
                self.uses.fields.insert(name);
            }
            ExprKind::State(state) => {
                if *state == State::LaneId {
                    self.lane = true;
                }
                self.uses.state_reads.insert(*state);
            }
            ExprKind::Convert(a) => {
                if a.ty.is_float() || e.ty.is_float() {
                    self.float(a.ty);
                    self.float(e.ty);
                }
            }
            ExprKind::Binary(_, a, _) => self.float(a.ty),
            ExprKind::Call(builtin, args) => {
                self.uses.control |= matches!(builtin, Builtin::Control(_));
                for arg in args {
                    self.float(arg.ty);
                }
                self.float(e.ty);
            }
            ExprKind::Vgpr { lane, .. } => self.register_of(lane),
            ExprKind::Mem { .. } => self.uses.memory_read = true,
            ExprKind::Const(_)
            | ExprKind::Local(_)
            | ExprKind::Element(..)
            | ExprKind::Slice { .. }
            | ExprKind::Unary(..)
            | ExprKind::Bits(_)
            | ExprKind::Select(..)
            | ExprKind::Sgpr { .. }
            | ExprKind::Concat(_) => {}
        }
    }

    /// Records the lane of a register access: an access to the own lane keeps the body lane-shaped.
    fn register_of(&mut self, lane: &Expr) {
        if is_lane_id(lane) {
            self.lane = true;
        } else {
            self.wave = true;
        }
    }

    fn float(&mut self, ty: Ty) {
        if ty.is_float() {
            self.uses.float.insert(ty);
        }
    }
}

impl<'a> Visitor<'a> for Walk {
    fn stmt(&mut self, stmt: &'a Stmt) {
        self.uses.control |= matches!(stmt, Stmt::Call { .. });
        walk_stmt(self, stmt);
    }

    fn place(&mut self, place: &'a Place) {
        self.write(place, false);
    }

    fn expr(&mut self, e: &'a Expr) {
        self.read(e);
        walk_expr(self, e);
    }
}

/// Returns whether the expression is `laneId`, possibly converted.
pub fn is_lane_id(e: &Expr) -> bool {
    match &e.kind {
        ExprKind::State(State::LaneId) => true,
        ExprKind::Convert(a) | ExprKind::Bits(a) => is_lane_id(a),
        _ => false,
    }
}

/// Returns whether the expression mentions `laneId` directly; locals are not followed.
pub fn mentions_lane_id(e: &Expr) -> bool {
    any_in(e, |e| e.kind == ExprKind::State(State::LaneId))
}
