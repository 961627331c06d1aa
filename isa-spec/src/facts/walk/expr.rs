//! What is known of the value of an expression.

use super::super::value::{Guard, Kind, Value, both_bits, masked, sums, width_mask};
use super::super::{Flow, Index, Of, What};
use super::Walk;
use crate::arith::{self, FloatEnv};
use crate::eval::{binary, convert, pure};
use crate::pcode::builtins::{Builtin, Pure};
use crate::pcode::ir::*;

impl Walk {
    pub(super) fn args(&mut self, args: &[Expr]) -> Vec<Value> {
        let values: Vec<Value> = args.iter().map(|a| self.expr(a)).collect();
        values.iter().for_each(|v| self.consume(v));
        values
    }

    pub(super) fn expr(&mut self, e: &Expr) -> Value {
        self.steps += 1;
        let width = e.ty.width();
        match &e.kind {
            ExprKind::Const(bits) => Value::known(*bits & arith::mask(width)),
            ExprKind::Local(id) if self.arrays[*id as usize] => Value::unknown(),
            ExprKind::Local(id) => self.point.locals[*id as usize].clone(),
            ExprKind::Element(_, index) => {
                let index = self.expr(index);
                self.consume(&index);
                Value::unknown()
            }
            ExprKind::Operand(role) => self.operand(*role, arith::mask(width)),
            ExprKind::OperandIndex(role) => {
                Value::of(Kind::Fixed { of: Of::Index(*role), shift: 0, mask: u32::MAX })
            }
            ExprKind::OperandLane { role, lane, index } => {
                let (lane, index) = (self.lane(lane), self.expr(index));
                let bits = match index.kind {
                    Kind::Known(n) if n < 4 => u32::MAX as u128 >> (32 - width.min(32)) << (32 * n as u32),
                    _ => u128::MAX,
                };
                self.entangled.insert(*role);
                match index.kind {
                    Kind::Known(n) if n < 4 => self.touch(false, What::Operand(*role), bits, lane),
                    Kind::Known(n) => {
                        let what = What::Dwords { role: *role, first: n as u32, count: 1 };
                        self.touch(false, what, u32::MAX as u128, lane);
                    }
                    _ => {
                        self.path.unknown += 1;
                        self.touch(false, What::Operand(*role), bits, lane);
                        self.path.unknown -= 1;
                    }
                }
                Value::unknown()
            }
            ExprKind::Field(name) => Value::of(Kind::Fixed { of: Of::Field(name), shift: 0, mask: u32::MAX }),
            ExprKind::State(state) => self.state(*state, width),
            ExprKind::Slice { base, lo } => self.slice(base, lo, width),
            ExprKind::Unary(op, a) => match op {
                UnOp::LogicalNot => self.truth(e),
                UnOp::Not | UnOp::Neg => {
                    let a_ty = a.ty;
                    let a = self.expr(a);
                    match (a.kind.clone(), op) {
                        (Kind::Known(v), UnOp::Not) => Value::known(!v & arith::mask(width)),
                        (Kind::Known(v), _) if !a_ty.is_float() => {
                            Value::known(v.wrapping_neg() & arith::mask(width))
                        }
                        _ if a_ty.is_float() => {
                            self.consume(&a);
                            Value::unknown()
                        }
                        _ => a.upwards(Value::unknown(), Kind::Unknown),
                    }
                }
            },
            ExprKind::Binary(op, a, b) => self.binary(e, *op, a, b),
            ExprKind::Select(c, a, b) => {
                let test = self.test(c);
                match test.known {
                    Some(true) => return self.expr(a),
                    Some(false) => return self.expr(b),
                    None => {}
                }
                let mut side = |expr: &Expr, guards: &[Guard]| {
                    let before = self.depth();
                    self.enter(guards);
                    let value = self.expr(expr);
                    self.leave(before);
                    value
                };
                let (a, b) = (side(a, &test.yes), side(b, &test.no));
                a.join(b, &test.yes, &test.no)
            }
            ExprKind::Convert(a) => {
                let (from, a) = (a.ty, self.expr(a));
                self.converted(a, from, e.ty)
            }
            ExprKind::Bits(a) => {
                // A narrower view of an operand is of its low bits.
                if let ExprKind::Operand(role) = &a.kind {
                    return self.operand(*role, arith::mask(width.min(a.ty.width())));
                }
                let (from, a) = (a.ty, self.expr(a));
                self.resized(a, from.width(), width)
            }
            ExprKind::Call(builtin, args) => self.call(*builtin, args),
            ExprKind::Vgpr { lane, reg } => {
                self.register(false, Some(lane), reg, arith::mask(width));
                Value::unknown()
            }
            ExprKind::Sgpr { reg } => {
                self.register(false, None, reg, arith::mask(width));
                Value::unknown()
            }
            ExprKind::Mem { space, addr } => {
                self.access(*space, addr, width, false);
                Value::unknown()
            }
            ExprKind::Concat(parts) => {
                let mut out = Value::known(0);
                let mut known = Some(0u128);
                for part in parts {
                    let width = part.ty.width();
                    let value = self.expr(part);
                    known = match (known, &value.kind) {
                        (Some(high), Kind::Known(low)) => {
                            Some(high.checked_shl(width).unwrap_or(0) | low & arith::mask(width))
                        }
                        _ => None,
                    };
                    out = out.upwards(value, Kind::Unknown);
                }
                if let Some(bits) = known {
                    out.kind = Kind::Known(bits);
                }
                out
            }
        }
    }

    pub(super) fn operand(&mut self, role: Role, bits: u128) -> Value {
        self.read(What::Operand(role), bits);
        let whole = bits >= u32::MAX as u128;
        let kind = if whole && self.shape != Shape::Lane { Kind::Operand(role) } else { Kind::Unknown };
        Value { kind, flow: vec![(role, if whole { Flow::Copy } else { Flow::Upwards })] }
    }

    pub(super) fn state(&mut self, state: State, width: u32) -> Value {
        let known = |n: u32| Value::known(n as u128);
        match state {
            State::LaneId if self.shape == Shape::Lane => return Value::of(Kind::Own),
            State::LaneId => return known(0),
            State::Wave32 => return known((self.wave_size == 32) as u32),
            State::Wave64 => return known((self.wave_size == 64) as u32),
            State::WaveSize => return known(self.wave_size),
            // Every vector instruction depends on EXEC: that is no read of it.
            State::Exec | State::Execz if self.shape != Shape::Scalar => {}
            _ => self.read(What::State(state), arith::mask(width)),
        }
        // Lanes see the EXEC that the instruction started with.
        let exec_changes = self.exec_changes && self.shape != Shape::Lane;
        Value::of(match state {
            State::M0 if !self.m0_changes => Kind::M0(Index { shift: 0, mask: u32::MAX }),
            State::Exec if !exec_changes => Kind::Exec,
            _ => Kind::Unknown,
        })
    }

    pub(super) fn slice(&mut self, base: &Expr, lo: &Expr, width: u32) -> Value {
        let at = self.expr(lo);
        if let (ExprKind::Operand(role), Kind::Known(at)) = (&base.kind, &at.kind)
            && *at < 128
        {
            let bits = arith::mask(width) << *at as u32 & arith::mask(base.ty.width());
            let value = self.operand(*role, bits);
            if *at != 0 {
                self.entangled.insert(*role);
            }
            return Value { kind: Kind::Unknown, ..value };
        }
        let base = self.expr(base);
        let kind = match (&base.kind, &at.kind) {
            (Kind::Exec, Kind::Known(lane)) if width == 1 => Kind::ExecBit(*lane as u32),
            (Kind::Known(v), Kind::Known(at)) => {
                Kind::Known(v.checked_shr(*at as u32).unwrap_or(0) & arith::mask(width))
            }
            (Kind::Fixed { .. } | Kind::M0(_), Kind::Known(at)) => {
                let low = masked(base.kind.clone(), width_mask(width), *at as u32);
                low.unwrap_or(Kind::Unknown)
            }
            _ => Kind::Unknown,
        };
        if at.kind != Kind::Known(0) {
            self.consume(&base);
        }
        self.consume(&at);
        Value { kind, flow: base.flow.into_iter().map(|(role, _)| (role, Flow::Upwards)).collect() }
    }

    /// The same bits in another width, zero-extended.
    pub(super) fn resized(&mut self, a: Value, from: u32, to: u32) -> Value {
        let kind = match &a.kind {
            Kind::Known(v) => Kind::Known(v & arith::mask(to)),
            Kind::Exec if to < self.wave_size => Kind::Unknown,
            kind if to >= from || to >= 32 => kind.clone(),
            kind => masked(kind.clone(), width_mask(to), 0).unwrap_or(Kind::Unknown),
        };
        let flow = match to == from {
            true => a.flow,
            false => a.flow.into_iter().map(|(role, _)| (role, Flow::Upwards)).collect(),
        };
        Value { kind, flow }
    }

    pub(super) fn converted(&mut self, a: Value, from: Ty, to: Ty) -> Value {
        if from.is_float() || to.is_float() {
            self.consume(&a);
            return Value::unknown();
        }
        match a.kind {
            Kind::Known(v) => Value::known(convert(v, from, to, &env()) & arith::mask(to.width())),
            // Copies of the sign are above it.
            Kind::Fixed { mask, .. } | Kind::M0(Index { mask, .. })
                if from.is_signed()
                    && to.width() > from.width()
                    && mask >> (from.width() - 1).min(31) & 1 == 1 =>
            {
                Value { kind: Kind::Unknown, ..self.resized(a, from.width(), to.width()) }
            }
            _ => self.resized(a, from.width(), to.width()),
        }
    }

    pub(super) fn call(&mut self, builtin: Builtin, args: &[Expr]) -> Value {
        let types: Vec<Ty> = args.iter().map(|a| a.ty).collect();
        let values = self.args(args);
        let builtin = match builtin {
            Builtin::Pure(builtin) => builtin,
            Builtin::Control(builtin) => {
                self.calls.insert(builtin);
                return Value::unknown();
            }
        };
        if let (Pure::CountTrailingZeros, Some(Kind::Exec)) = (builtin, values.first().map(|v| &v.kind)) {
            return Value::of(Kind::Lowest);
        }
        let bits: Option<Vec<u128>> =
            values.iter().map(|v| if let Kind::Known(bits) = v.kind { Some(bits) } else { None }).collect();
        // A clamp depends on the instruction.
        let clamps = matches!(
            builtin,
            Pure::ClampU16
                | Pure::ClampI16
                | Pure::ClampU32
                | Pure::ClampI32
                | Pure::ClampU64
                | Pure::ClampI64
        );
        let known = bits
            .filter(|_| !clamps && !types.iter().any(|t| t.is_float()))
            .map(|bits| pure(builtin, &bits, &types, &env(), false));
        known.map_or(Value::unknown(), Value::known)
    }

    pub(super) fn binary(&mut self, e: &Expr, op: BinOp, a: &Expr, b: &Expr) -> Value {
        use BinOp::{Add, And, Eq, Ge, Gt, Le, Lg, LogicalAnd, LogicalOr, Lt, Mul, Ne, Or, Shl, Sub, Xor};
        if matches!(op, LogicalAnd | LogicalOr | Eq | Ne | Lt | Le | Gt | Ge) {
            return self.truth(e);
        }
        let (x, y) = (self.expr(a), self.expr(b));
        if let (Kind::Known(m), Kind::Known(n)) = (&x.kind, &y.kind)
            && !a.ty.is_float()
            && !b.ty.is_float()
        {
            let value = binary(op, *m, *n, a.ty, b.ty, &env());
            return Value::known(value & arith::mask(e.ty.width()));
        }
        let entangles = op == Lg || a.ty.is_float();
        if entangles || !matches!(op, Add | Sub | Mul | And | Or | Xor | Shl) {
            self.consume(&x);
            self.consume(&y);
            return Value::unknown();
        }
        if op == Shl {
            self.consume(&y);
            return x.upwards(Value::unknown(), Kind::Unknown);
        }
        let kind = match op {
            Add => sums(&x, &y).or_else(|| sums(&y, &x)),
            And => both_bits(&x, &y, self.wave_size).or_else(|| both_bits(&y, &x, self.wave_size)),
            _ => None,
        };
        x.upwards(y, kind.unwrap_or(Kind::Unknown))
    }
}

pub(super) fn env() -> FloatEnv {
    FloatEnv::from_mode(0)
}
