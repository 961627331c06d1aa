//! Abstract evaluation of conditions: the guards that hold in each branch.

use super::super::value::{Guard, Test, Value};
use super::Walk;
use super::expr::env;
use crate::eval::binary;
use crate::pcode::ir::*;

impl Walk {
    /// Evaluates a condition as a value.
    pub(super) fn truth(&mut self, e: &Expr) -> Value {
        match self.test(e) {
            Test { known: Some(known), .. } => Value::Known(known as u128),
            Test { if_true, if_false, .. } => match (if_true.as_slice(), if_false.as_slice()) {
                ([Guard::Active(lane)], _) => Value::ExecBit(*lane),
                _ => Value::Unknown,
            },
        }
    }

    pub(super) fn test(&mut self, e: &Expr) -> Test {
        match &e.kind {
            ExprKind::Unary(UnOp::LogicalNot, a) => self.test(a).not(),
            ExprKind::Binary(BinOp::LogicalAnd, a, b) => self.and(a, b, false),
            // De Morgan: `a || b` is `!(!a && !b)`.
            ExprKind::Binary(BinOp::LogicalOr, a, b) => self.and(a, b, true).not(),
            ExprKind::Binary(op @ (BinOp::Eq | BinOp::Ne), a, b) => {
                let (x, y) = (self.expr(a), self.expr(b));
                let test = if a.ty.is_float() { Test::unknown() } else { equal(&x, &y) };
                if *op == BinOp::Ne { test.not() } else { test }
            }
            ExprKind::Binary(op @ (BinOp::Lt | BinOp::Le | BinOp::Gt | BinOp::Ge), a, b) => {
                let (x, y) = (self.expr(a), self.expr(b));
                match (&x, &y) {
                    _ if a.ty.is_float() || b.ty.is_float() => Test::unknown(),
                    (Value::Known(m), Value::Known(n)) => {
                        Test::known(binary(*op, *m, *n, a.ty, b.ty, &env()) != 0)
                    }
                    _ if a.ty.is_signed() => Test::unknown(),
                    _ => in_order(*op, &x, &y),
                }
            }
            _ => {
                let value = self.expr(e);
                match value {
                    Value::ExecBit(lane) => active(lane),
                    _ => equal(&value, &Value::Known(0)).not(),
                }
            }
        }
    }

    /// Evaluates `a && b`, or `!a && !b` if `not`.
    pub(super) fn and(&mut self, a: &Expr, b: &Expr, not: bool) -> Test {
        let apply_negation = |test: Test| if not { test.not() } else { test };
        let first = apply_negation(self.test(a));
        if first.known == Some(false) {
            return first;
        }
        let before = self.depth();
        self.enter(&first.if_true);
        let second = apply_negation(self.test(b));
        self.leave(before);
        match (first.known, second.known) {
            (Some(_), _) => second,
            (None, Some(true)) => first,
            (None, Some(false)) => second,
            (None, None) => {
                let chain = |a: Vec<Guard>, b: Vec<Guard>| a.into_iter().chain(b).collect::<Vec<_>>();
                let mut if_false = chain(first.if_false, second.if_false);
                if !if_false.iter().all(|guard| matches!(guard, Guard::IndexAbove255 | Guard::BeyondLimit)) {
                    if_false = vec![Guard::Unknown];
                }
                Test { known: None, if_true: chain(first.if_true, second.if_true), if_false }
            }
        }
    }
}

fn active(lane: u32) -> Test {
    Test::guarded(Guard::Active(lane))
}

/// Evaluates `a == b`.
fn equal(a: &Value, b: &Value) -> Test {
    match (a, b) {
        (Value::Known(m), Value::Known(n)) => Test::known(m == n),
        (Value::Fixed { of, shift, mask }, Value::Known(n))
        | (Value::Known(n), Value::Fixed { of, shift, mask }) => match u32::try_from(*n) {
            Ok(n) => Test::fixed(*of, *shift, *mask, n),
            Err(_) => Test::unknown(),
        },
        (Value::ExecBit(lane), Value::Known(0)) => active(*lane).not(),
        (Value::Exec, Value::Known(0)) | (Value::Known(0), Value::Exec) => Test::guarded(Guard::ExecZero),
        _ => Test::unknown(),
    }
}

/// Evaluates an unsigned comparison; recognises the range checks of M0-relative register numbers.
fn in_order(op: BinOp, a: &Value, b: &Value) -> Test {
    match op {
        BinOp::Lt => in_order(BinOp::Gt, b, a),
        BinOp::Le => in_order(BinOp::Gt, a, b).not(),
        BinOp::Ge => in_order(BinOp::Gt, b, a).not(),
        _ => match (a, b) {
            (Value::M0(_), Value::Known(255)) => Test::guarded(Guard::IndexAbove255),
            (Value::Register(number), Value::OneOf(limits))
                if number.index.is_some() && limits.iter().any(|(_, limit)| limit.base == number.base) =>
            {
                Test::guarded(Guard::BeyondLimit)
            }
            _ => Test::unknown(),
        },
    }
}
