//! Abstract evaluation of expressions: maps each expression to an abstract [`Value`].

use super::super::value::{Guard, Value, add_numbers, and_mask, masked, width_mask};
use super::super::{EncodedValue, M0Field, Resource};
use super::Walk;
use crate::arith::{self, FloatEnv};
use crate::eval::{binary, convert, pure};
use crate::pcode::builtins::{Builtin, Pure};
use crate::pcode::ir::*;

impl Walk {
    pub(super) fn args(&mut self, args: &[Expr]) -> Vec<Value> {
        args.iter().map(|a| self.expr(a)).collect()
    }

    pub(super) fn expr(&mut self, e: &Expr) -> Value {
        self.steps += 1;
        let width = e.ty.width();
        match &e.kind {
            ExprKind::Const(bits) => Value::Known(*bits & arith::mask(width)),
            ExprKind::Local(id) if self.arrays[*id as usize] => Value::Unknown,
            ExprKind::Local(id) => self.flow.locals[*id as usize].clone(),
            ExprKind::Element(_, index) => {
                self.expr(index);
                Value::Unknown
            }
            ExprKind::Operand(role) => self.operand(*role, arith::mask(width)),
            ExprKind::OperandIndex(role) => {
                Value::Fixed { of: EncodedValue::RegisterNumber(*role), shift: 0, mask: u32::MAX }
            }
            ExprKind::OperandLane { role, lane, index } => {
                let (lane, index) = (self.lane(lane), self.expr(index));
                let bits = match index {
                    Value::Known(n) if n < 4 => u32::MAX as u128 >> (32 - width.min(32)) << (32 * n as u32),
                    _ => u128::MAX,
                };
                match index {
                    Value::Known(n) if n < 4 => self.record(false, Resource::Operand(*role), bits, lane),
                    Value::Known(n) => {
                        let resource = Resource::Dwords { role: *role, first: n as u32, count: 1 };
                        self.record(false, resource, u32::MAX as u128, lane);
                    }
                    _ => {
                        self.path.unknown += 1;
                        self.record(false, Resource::Operand(*role), bits, lane);
                        self.path.unknown -= 1;
                    }
                }
                Value::Unknown
            }
            ExprKind::Field(name) => Value::Fixed { of: EncodedValue::Field(name), shift: 0, mask: u32::MAX },
            ExprKind::State(state) => self.state(*state, width),
            ExprKind::Slice { base, lo } => self.slice(base, lo, width),
            ExprKind::Unary(op, a) => match op {
                UnOp::LogicalNot => self.truth(e),
                UnOp::Not | UnOp::Neg => match (self.expr(a), op) {
                    (Value::Known(v), UnOp::Not) => Value::Known(!v & arith::mask(width)),
                    (Value::Known(v), _) if !a.ty.is_float() => {
                        Value::Known(v.wrapping_neg() & arith::mask(width))
                    }
                    _ => Value::Unknown,
                },
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
                let (a, b) = (side(a, &test.if_true), side(b, &test.if_false));
                a.join(b, &test.if_true, &test.if_false)
            }
            ExprKind::Convert(a) => {
                let (from, a) = (a.ty, self.expr(a));
                self.converted(a, from, e.ty)
            }
            ExprKind::Bits(a) => {
                // A narrower view of an operand reads its low bits.
                if let ExprKind::Operand(role) = &a.kind {
                    return self.operand(*role, arith::mask(width.min(a.ty.width())));
                }
                let (from, a) = (a.ty, self.expr(a));
                self.resized(a, from.width(), width)
            }
            ExprKind::Call(builtin, args) => self.call(*builtin, args),
            ExprKind::Vgpr { lane, reg } => {
                self.register(false, Some(lane), reg, arith::mask(width));
                Value::Unknown
            }
            ExprKind::Sgpr { reg } => {
                self.register(false, None, reg, arith::mask(width));
                Value::Unknown
            }
            ExprKind::Mem { space, addr } => {
                self.access(*space, addr, width, false);
                Value::Unknown
            }
            ExprKind::Concat(parts) => {
                let mut out = Value::Known(0);
                for part in parts {
                    let width = part.ty.width();
                    out = match (out, self.expr(part)) {
                        (Value::Known(high), Value::Known(low)) => {
                            Value::Known(high.checked_shl(width).unwrap_or(0) | low & arith::mask(width))
                        }
                        _ => Value::Unknown,
                    };
                }
                out
            }
        }
    }

    pub(super) fn operand(&mut self, role: Role, bits: u128) -> Value {
        self.read(Resource::Operand(role), bits);
        let whole = bits >= u32::MAX as u128;
        if whole && self.shape != Shape::Lane { Value::Operand(role) } else { Value::Unknown }
    }

    pub(super) fn state(&mut self, state: State, width: u32) -> Value {
        let known = |n: u32| Value::Known(n as u128);
        match state {
            State::LaneId if self.shape == Shape::Lane => return Value::LaneId,
            State::LaneId => return known(0),
            State::Wave32 => return known((self.wave_size == 32) as u32),
            State::Wave64 => return known((self.wave_size == 64) as u32),
            State::WaveSize => return known(self.wave_size),
            // Every vector instruction depends on EXEC, so the dependence is not listed as a read.
            State::Exec | State::Execz if self.shape != Shape::Scalar => {}
            _ => self.read(Resource::State(state), arith::mask(width)),
        }
        // A per-lane body reads the EXEC of the instruction's start, whatever other lanes write.
        let exec_changes = self.exec_changes && self.shape != Shape::Lane;
        match state {
            State::M0 if !self.m0_changes => Value::M0(M0Field { shift: 0, mask: u32::MAX }),
            State::Exec if !exec_changes => Value::Exec,
            _ => Value::Unknown,
        }
    }

    pub(super) fn slice(&mut self, base: &Expr, lo: &Expr, width: u32) -> Value {
        let at = self.expr(lo);
        if let (ExprKind::Operand(role), Value::Known(at)) = (&base.kind, &at)
            && *at < 128
        {
            let bits = arith::mask(width) << *at as u32 & arith::mask(base.ty.width());
            self.operand(*role, bits);
            return Value::Unknown;
        }
        match (self.expr(base), at) {
            (Value::Exec, Value::Known(lane)) if width == 1 => Value::ExecBit(lane as u32),
            (Value::Known(v), Value::Known(at)) => {
                Value::Known(v.checked_shr(at as u32).unwrap_or(0) & arith::mask(width))
            }
            (base @ (Value::Fixed { .. } | Value::M0(_)), Value::Known(at)) => {
                masked(base, width_mask(width), at as u32).unwrap_or(Value::Unknown)
            }
            _ => Value::Unknown,
        }
    }

    /// The bits of a value in another width, zero-extended.
    pub(super) fn resized(&mut self, a: Value, from: u32, to: u32) -> Value {
        match a {
            Value::Known(v) => Value::Known(v & arith::mask(to)),
            Value::Exec if to < self.wave_size => Value::Unknown,
            value if to >= from || to >= 32 => value,
            value => masked(value, width_mask(to), 0).unwrap_or(Value::Unknown),
        }
    }

    pub(super) fn converted(&mut self, a: Value, from: Ty, to: Ty) -> Value {
        if from.is_float() || to.is_float() {
            return Value::Unknown;
        }
        match a {
            Value::Known(v) => Value::Known(convert(v, from, to, &env()) & arith::mask(to.width())),
            // Sign extension sets bits above the field's mask.
            Value::Fixed { mask, .. } | Value::M0(M0Field { mask, .. })
                if from.is_signed()
                    && to.width() > from.width()
                    && mask >> (from.width() - 1).min(31) & 1 == 1 =>
            {
                Value::Unknown
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
                return Value::Unknown;
            }
        };
        if let (Pure::CountTrailingZeros, Some(Value::Exec)) = (builtin, values.first()) {
            return Value::LowestActive;
        }
        let bits: Option<Vec<u128>> =
            values.iter().map(|v| if let Value::Known(bits) = v { Some(*bits) } else { None }).collect();
        // The result of a clamp depends on the instruction's clamp bit.
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
        known.map_or(Value::Unknown, Value::Known)
    }

    pub(super) fn binary(&mut self, e: &Expr, op: BinOp, a: &Expr, b: &Expr) -> Value {
        use BinOp::{Add, And, Eq, Ge, Gt, Le, LogicalAnd, LogicalOr, Lt, Ne};
        if matches!(op, LogicalAnd | LogicalOr | Eq | Ne | Lt | Le | Gt | Ge) {
            return self.truth(e);
        }
        let (x, y) = (self.expr(a), self.expr(b));
        if let (Value::Known(m), Value::Known(n)) = (&x, &y)
            && !a.ty.is_float()
            && !b.ty.is_float()
        {
            let value = binary(op, *m, *n, a.ty, b.ty, &env());
            return Value::Known(value & arith::mask(e.ty.width()));
        }
        if a.ty.is_float() {
            return Value::Unknown;
        }
        let value = match op {
            Add => add_numbers(&x, &y).or_else(|| add_numbers(&y, &x)),
            And => and_mask(&x, &y, self.wave_size).or_else(|| and_mask(&y, &x, self.wave_size)),
            _ => None,
        };
        value.unwrap_or(Value::Unknown)
    }
}

pub(super) fn env() -> FloatEnv {
    FloatEnv::from_mode(0)
}
