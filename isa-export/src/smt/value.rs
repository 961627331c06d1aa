//! The value of a term for given inputs: what a solver's model means, and the referee of simplifications.

use super::term::{FloatOp, Node, Op, Rounding, Sort, Term, Terms};
use isa_spec::arith::{self, FloatEnv, Round, mask, sign_extend};
use std::collections::HashMap;

/// Returns the values of variables, and bytes of memories, by name. `None` if one is unknown.
pub struct Inputs<'a> {
    /// The value of a variable.
    pub variable: &'a dyn Fn(&str) -> Option<u128>,
    /// The byte of a memory.
    pub byte: &'a dyn Fn(&str, u128) -> Option<u8>,
}

impl Terms {
    /// Returns the value of a bit vector; `None` if it depends on an input or a function that is unknown.
    pub fn value_of(&self, root: Term, inputs: &Inputs<'_>) -> Option<u128> {
        let mut values: HashMap<Term, Option<u128>> = HashMap::new();
        for term in self.reachable(&[root]) {
            let node = self.node(term);
            let Sort::Bits(width) = node.sort else { continue };
            let value = self.one(node, width, &values, inputs);
            values.insert(term, value.map(|value| value & mask(width)));
        }
        values.get(&root).copied().flatten()
    }

    fn one(
        &self,
        node: &Node,
        width: u32,
        values: &HashMap<Term, Option<u128>>,
        inputs: &Inputs<'_>,
    ) -> Option<u128> {
        let arg = |at: usize| values.get(&node.args[at]).copied().flatten();
        Some(match &node.op {
            Op::Var(name) => (inputs.variable)(name)?,
            // One side may be unknown if the other decides.
            Op::And if arg(0) == Some(0) || arg(1) == Some(0) => 0,
            Op::Or if arg(0) == Some(mask(width)) || arg(1) == Some(mask(width)) => mask(width),
            Op::Ite => arg(if arg(0)? != 0 { 1 } else { 2 })?,
            Op::Select => self.byte(node.args[0], arg(1)?, values, inputs)? as u128,
            op => {
                let args: Option<Vec<u128>> = (0..node.args.len()).map(arg).collect();
                let widths: Vec<u32> = node.args.iter().map(|arg| self.width(*arg)).collect();
                operation(op, width, &args?, &widths)?
            }
        })
    }

    /// The byte of a memory at an address.
    fn byte(
        &self,
        mut memory: Term,
        address: u128,
        values: &HashMap<Term, Option<u128>>,
        inputs: &Inputs<'_>,
    ) -> Option<u8> {
        loop {
            let node = self.node(memory);
            let value = |at: usize| values.get(&node.args[at]).copied().flatten();
            memory = match &node.op {
                Op::Var(name) => return (inputs.byte)(name, address),
                Op::Ite => node.args[if value(0)? != 0 { 1 } else { 2 }],
                Op::Store if value(1)? == address => return value(2).map(|byte| byte as u8),
                Op::Store => node.args[0],
                _ => return None,
            };
        }
    }
}

/// The result of an operation on bit vectors, whose bits beyond the width do not matter. `None` if the arguments do not
/// determine it: variables, functions and memories.
pub(super) fn operation(op: &Op, width: u32, args: &[u128], widths: &[u32]) -> Option<u128> {
    let signed = |at: usize| sign_extend(args[at], widths[at]) as i128;
    Some(match op {
        Op::Const(value) => *value,
        Op::Not => !args[0],
        Op::And => args[0] & args[1],
        Op::Or => args[0] | args[1],
        Op::Xor => args[0] ^ args[1],
        Op::Add => args[0].wrapping_add(args[1]),
        Op::Mul => args[0].wrapping_mul(args[1]),
        Op::Udiv => args[0].checked_div(args[1]).unwrap_or(u128::MAX),
        Op::Urem => args[0].checked_rem(args[1]).unwrap_or(args[0]),
        Op::Shl => shift(args[1], width).map_or(0, |count| args[0] << count),
        Op::Lshr => shift(args[1], width).map_or(0, |count| args[0] >> count),
        Op::Ashr => (signed(0) >> args[1].min(127)) as u128,
        Op::Eq => (args[0] == args[1]) as u128,
        Op::Ult => (args[0] < args[1]) as u128,
        Op::Slt => (signed(0) < signed(1)) as u128,
        Op::Ite => args[if args[0] != 0 { 1 } else { 2 }],
        Op::Extract(lo) => args[0] >> lo,
        Op::Concat => args[0] << widths[1] | args[1],
        Op::Float(op) => float(*op, args, widths[0]),
        Op::Var(_) | Op::Apply(_) | Op::Select | Op::Store => return None,
    })
}

fn shift(count: u128, width: u32) -> Option<u32> {
    (count < width as u128).then_some(count as u32)
}

fn round(rounding: Rounding) -> Round {
    match rounding {
        Rounding::NearestEven => Round::NearestEven,
        Rounding::Positive => Round::Up,
        Rounding::Negative => Round::Down,
        Rounding::Zero => Round::Zero,
    }
}

fn float(op: FloatOp, args: &[u128], width: u32) -> u128 {
    let env = |rounding| FloatEnv::KEEP.with_round(round(rounding));
    let order = |ty| arith::compare(args[0], args[1], ty, &FloatEnv::KEEP);
    match op {
        FloatOp::Add(ty, by) => arith::add(args[0], args[1], ty, &env(by)),
        FloatOp::Mul(ty, by) => arith::mul(args[0], args[1], ty, &env(by)),
        FloatOp::Div(ty, by) => arith::div_float(args[0], args[1], ty, &env(by)),
        FloatOp::Fma(ty, by) => arith::fma(args[0], args[1], args[2], ty, &env(by)),
        FloatOp::Sqrt(ty, by) => arith::sqrt(args[0], ty, &env(by)),
        FloatOp::Integral(ty, by) => {
            let to = match by {
                Rounding::NearestEven => arith::rndne,
                Rounding::Positive => arith::ceil,
                Rounding::Negative => arith::floor,
                Rounding::Zero => arith::trunc,
            };
            to(args[0], ty, &FloatEnv::KEEP)
        }
        FloatOp::Convert { from, to, rounding } => arith::convert_float(args[0], from, to, round(rounding)),
        FloatOp::FromInt { signed, to, rounding } => {
            let value = if signed { sign_extend(args[0], width) } else { args[0] };
            arith::from_int(value, signed, to, &env(rounding))
        }
        FloatOp::ToInt { from, width, signed, rounding } => {
            arith::to_int(args[0], from, &FloatEnv::KEEP, width, signed, round(rounding))
        }
        FloatOp::Less(ty) => (order(ty) == Some(std::cmp::Ordering::Less)) as u128,
        FloatOp::Equal(ty) => (order(ty) == Some(std::cmp::Ordering::Equal)) as u128,
    }
}
