//! Operators and conversions on bit patterns: the reference definition of every operator of the typed tree.

use crate::arith::{self, FloatEnv, Round};
use crate::pcode::ir::{BinOp, Ty};

/// Evaluates a binary operation on values of type `ty`; `right` is the type of the right operand, which
/// differs for shifts and powers. The evaluator itself handles `&&` and `||`, which may skip their right
/// operand.
pub fn binary(op: BinOp, x: u128, y: u128, ty: Ty, right: Ty, env: &FloatEnv) -> u128 {
    if ty.is_float() {
        return float(op, x, y, ty, right, env);
    }
    let (width, signed) = (ty.width(), ty.is_signed());
    let less = |a: u128, b: u128| {
        if signed {
            (arith::sign_extend(a, width) as i128) < arith::sign_extend(b, width) as i128
        } else {
            a < b
        }
    };
    let value = match op {
        BinOp::Add => x.wrapping_add(y),
        BinOp::Sub => x.wrapping_sub(y),
        BinOp::Mul => x.wrapping_mul(y),
        BinOp::Div => arith::div(x, y, width, signed),
        BinOp::Rem => arith::rem(x, y, width, signed),
        BinOp::Pow => integer_power(x, y, right),
        BinOp::And => x & y,
        BinOp::Or => x | y,
        BinOp::Xor => x ^ y,
        BinOp::Shl => arith::shl(x, y as u32, width),
        BinOp::Shr => arith::shr(x, y as u32, width, signed),
        BinOp::Eq => (x == y) as u128,
        BinOp::Ne | BinOp::Lg => (x != y) as u128,
        BinOp::Lt => less(x, y) as u128,
        BinOp::Le => !less(y, x) as u128,
        BinOp::Gt => less(y, x) as u128,
        BinOp::Ge => !less(x, y) as u128,
        BinOp::LogicalAnd => (x != 0 && y != 0) as u128,
        BinOp::LogicalOr => (x != 0 || y != 0) as u128,
    };
    value & arith::mask(width)
}

fn float(op: BinOp, x: u128, y: u128, ty: Ty, right: Ty, env: &FloatEnv) -> u128 {
    use std::cmp::Ordering::*;
    let order = || arith::compare(x, y, ty, env);
    match op {
        BinOp::Add => arith::add(x, y, ty, env),
        BinOp::Sub => arith::sub(x, y, ty, env),
        BinOp::Mul => arith::mul(x, y, ty, env),
        BinOp::Div => arith::div_float(x, y, ty, env),
        BinOp::Pow => arith::pow(x, y, ty, right, env),
        BinOp::Eq => (order() == Some(Equal)) as u128,
        BinOp::Ne => (order() != Some(Equal)) as u128,
        BinOp::Lt => (order() == Some(Less)) as u128,
        BinOp::Le => matches!(order(), Some(Less | Equal)) as u128,
        BinOp::Gt => (order() == Some(Greater)) as u128,
        BinOp::Ge => matches!(order(), Some(Greater | Equal)) as u128,
        BinOp::Lg => matches!(order(), Some(Less | Greater)) as u128,
        BinOp::Rem
        | BinOp::And
        | BinOp::Or
        | BinOp::Xor
        | BinOp::Shl
        | BinOp::Shr
        | BinOp::LogicalAnd
        | BinOp::LogicalOr => {
            unreachable!("{op:?} of floating-point values: the checker does not accept it")
        }
    }
}

/// Raises to a power, wrapping; a negative power returns 0.
fn integer_power(base: u128, power: u128, ty: Ty) -> u128 {
    match ty {
        Ty::I(width) if arith::sign_extend(power, width as u32) >> 127 == 1 => 0,
        _ => base.wrapping_pow(power.min(u32::MAX as u128) as u32),
    }
}

/// Converts a value between types.
pub fn convert(v: u128, from: Ty, to: Ty, env: &FloatEnv) -> u128 {
    let width = from.width();
    match (from.is_float(), to.is_float()) {
        (false, false) => {
            let v = if from.is_signed() { arith::sign_extend(v, width) } else { v };
            v & arith::mask(to.width())
        }
        (true, true) => arith::cast(v, from, to, env),
        (true, false) => arith::to_int(v, from, env, to.width(), to.is_signed(), Round::Zero),
        (false, true) => {
            let signed = from.is_signed();
            let v = if signed { arith::sign_extend(v, width) } else { v };
            arith::from_int(v, signed, to, env)
        }
    }
}
