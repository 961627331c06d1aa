//! What a body touches, and so how it runs: once a wave on scalars, per lane, or once a wave reaching into lanes.

use super::builtins::Kind;
use super::ir::*;
use super::sig::{Family, InstrSig};

/// Fills `uses` and `shape`.
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
    // `D0.u64[laneId]` style results make a vector body lane-shaped; without any lane it may still be a no-op.
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
}

/// Vector instructions that write an SGPR once a wave (V_READFIRSTLANE, V_READLANE, V_S_RCP …).
fn scalar_destination(sig: &InstrSig) -> bool {
    sig.name.starts_with("V_READ") || sig.name.starts_with("V_S_")
}

struct Walk {
    uses: Uses,
    wave: bool,
    lane: bool,
}

impl Walk {
    fn stmts(&mut self, list: &[Stmt]) {
        for stmt in list {
            match stmt {
                Stmt::Assign { place, value, .. } => {
                    self.expr(value);
                    self.place(place, false);
                }
                Stmt::If { arms, otherwise, .. } => {
                    for (cond, body) in arms {
                        self.expr(cond);
                        self.stmts(body);
                    }
                    self.stmts(otherwise);
                }
                Stmt::For { from, to, body, .. } => {
                    self.expr(from);
                    self.expr(to);
                    self.stmts(body);
                }
                Stmt::While { cond, body, .. } => {
                    self.expr(cond);
                    self.stmts(body);
                }
                Stmt::Return { .. } => {}
                Stmt::Call { builtin, args, .. } => {
                    self.builtin(*builtin);
                    args.iter().for_each(|a| self.expr(a));
                }
            }
        }
    }

    fn builtin(&mut self, builtin: Builtin) {
        if builtin.def().kind == Kind::Control {
            self.uses.control = true;
        }
    }

    fn place(&mut self, place: &Place, partial: bool) {
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
                    // EXEC as a whole is the wave's, not the lane's.
                    self.wave = true;
                }
            }
            PlaceKind::Slice { base, lo } => {
                self.expr(lo);
                // One's own bit of a mask is lane data, not a partial write.
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
                self.place(base, true);
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
            PlaceKind::Concat(parts) => parts.iter().for_each(|p| self.place(p, partial)),
        }
    }

    fn expr(&mut self, e: &Expr) {
        match &e.kind {
            ExprKind::Const(_) | ExprKind::Local(_) => {}
            ExprKind::Element(_, index) => self.expr(index),
            ExprKind::Operand(role) => {
                self.uses.reads.insert(*role);
            }
            ExprKind::OperandIndex(role) => {
                self.uses.indexed.insert(*role);
            }
            ExprKind::OperandLane { role, lane, index } => {
                self.uses.reads.insert(*role);
                // In lane shape another lane of the staged sources can be read (interpolation).
                if !mentions_lane_id(lane) {
                    self.wave = true;
                } else {
                    self.lane = true;
                }
                self.expr(lane);
                self.expr(index);
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
            ExprKind::Slice { base, lo } => {
                self.expr(base);
                self.expr(lo);
            }
            ExprKind::Unary(_, a) | ExprKind::Bits(a) => self.expr(a),
            ExprKind::Convert(a) => {
                if a.ty.is_float() || e.ty.is_float() {
                    self.float(a.ty);
                    self.float(e.ty);
                }
                self.expr(a);
            }
            ExprKind::Binary(_, a, b) => {
                self.float(a.ty);
                self.expr(a);
                self.expr(b);
            }
            ExprKind::Select(c, a, b) => {
                self.expr(c);
                self.expr(a);
                self.expr(b);
            }
            ExprKind::Call(builtin, args) => {
                self.builtin(*builtin);
                for arg in args {
                    self.float(arg.ty);
                    self.expr(arg);
                }
                self.float(e.ty);
            }
            ExprKind::Vgpr { lane, reg } => {
                self.register_of(lane);
                self.expr(lane);
                self.expr(reg);
            }
            ExprKind::Sgpr { reg } => self.expr(reg),
            ExprKind::Mem { addr, .. } => {
                self.uses.memory_read = true;
                self.expr(addr);
            }
            ExprKind::Concat(parts) => parts.iter().for_each(|p| self.expr(p)),
        }
    }

    /// A register of the own lane leaves the body lane-shaped.
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

/// `laneId`, possibly converted.
pub fn is_lane_id(e: &Expr) -> bool {
    match &e.kind {
        ExprKind::State(State::LaneId) => true,
        ExprKind::Convert(a) | ExprKind::Bits(a) => is_lane_id(a),
        _ => false,
    }
}

fn mentions_lane_id(e: &Expr) -> bool {
    match &e.kind {
        ExprKind::State(State::LaneId) => true,
        ExprKind::Convert(a) | ExprKind::Bits(a) | ExprKind::Unary(_, a) => mentions_lane_id(a),
        ExprKind::Binary(_, a, b) => mentions_lane_id(a) || mentions_lane_id(b),
        _ => false,
    }
}
