//! Evaluates typed expressions, for one lane or, in scalar bodies, for the wave.

use super::{Eval, Stop, binary, convert, pure};
use crate::arith;
use crate::pcode::ir::*;

impl Eval<'_> {
    /// Evaluates an expression to `e.ty.width()` bits.
    pub(super) fn expr(&mut self, e: &Expr) -> Result<u128, Stop> {
        let width = e.ty.width();
        let value = match &e.kind {
            ExprKind::Const(bits) => *bits,
            ExprKind::Local(id) => self.locals[*id as usize][0],
            ExprKind::Element(id, index) => self.element(*id, index)?,
            ExprKind::Operand(role) => self.operand(*role, arith::mask(width)),
            ExprKind::OperandIndex(role) => self.machine.operand_index(*role) as u128,
            ExprKind::OperandLane { role, lane, index } => {
                let (lane, index) = (self.expr(lane)? as u32, self.expr(index)? as u32);
                self.machine.operand_lane(*role, lane, index) as u128
            }
            ExprKind::Field(name) => self.machine.field(name) as u128,
            ExprKind::State(state) => self.machine.state(*state, self.lane),
            ExprKind::Slice { base, lo } => {
                let lo = self.expr(lo)? as u32;
                let value = match base.kind {
                    ExprKind::Operand(role) => {
                        let bits = arith::mask(width).checked_shl(lo).unwrap_or(0);
                        let whole = arith::mask(base.ty.width());
                        self.operand(role, bits & whole) & whole
                    }
                    _ => self.expr(base)?,
                };
                value.checked_shr(lo).unwrap_or(0)
            }
            ExprKind::Unary(op, a) => {
                let v = self.expr(a)?;
                match op {
                    UnOp::Not => !v,
                    UnOp::LogicalNot => (v == 0) as u128,
                    UnOp::Neg if a.ty.is_float() => v ^ 1 << (width - 1),
                    UnOp::Neg => v.wrapping_neg(),
                }
            }
            ExprKind::Binary(op, a, b) => self.binary(*op, a, b)?,
            ExprKind::Select(c, a, b) => {
                let chosen = if self.expr(c)? != 0 { a } else { b };
                self.expr(chosen)?
            }
            ExprKind::Convert(a) => convert(self.expr(a)?, a.ty, e.ty, &self.env),
            // A narrower view of an operand reads its low bits.
            ExprKind::Bits(a) => match a.kind {
                ExprKind::Operand(role) => {
                    let bits = arith::mask(width.min(a.ty.width()));
                    self.operand(role, bits) & bits
                }
                _ => self.expr(a)?,
            },
            ExprKind::Call(builtin, args) => {
                let types: Vec<Ty> = args.iter().map(|a| a.ty).collect();
                let args = self.args(args)?;
                match *builtin {
                    Builtin::Pure(builtin) => pure(builtin, &args, &types, &self.env, self.machine.clamp()),
                    Builtin::Control(builtin) => self.machine.control(builtin, &args)?,
                }
            }
            ExprKind::Vgpr { lane, reg } => self.vgpr(lane, reg)?,
            ExprKind::Sgpr { reg } => self.sgpr(reg)?,
            ExprKind::Mem { space, addr } => self.load(*space, addr, width)?,
            ExprKind::Concat(parts) => {
                let mut out = 0u128;
                for part in parts {
                    out = out.checked_shl(part.ty.width()).unwrap_or(0) | self.expr(part)?;
                }
                out
            }
        };
        Ok(value & arith::mask(width))
    }

    /// Reads an operand, of which the expression uses `bits`.
    fn operand(&mut self, role: Role, bits: u128) -> u128 {
        self.machine.reading(role, self.lane, bits);
        self.machine.operand(role, self.lane)
    }

    fn binary(&mut self, op: BinOp, a: &Expr, b: &Expr) -> Result<u128, Stop> {
        let x = self.expr(a)?;
        match op {
            BinOp::LogicalAnd if x == 0 => Ok(0),
            BinOp::LogicalOr if x != 0 => Ok(1),
            BinOp::LogicalAnd | BinOp::LogicalOr => Ok((self.expr(b)? != 0) as u128),
            _ => Ok(binary(op, x, self.expr(b)?, a.ty, b.ty, &self.env)),
        }
    }

    /// Evaluates arguments from left to right.
    pub(super) fn args(&mut self, args: &[Expr]) -> Result<Vec<u128>, Stop> {
        args.iter().map(|a| self.expr(a)).collect()
    }

    /// Reads an element of an array local; an index out of range reads 0.
    pub(super) fn element(&mut self, id: LocalId, index: &Expr) -> Result<u128, Stop> {
        let index = self.expr(index)? as u32 as usize;
        Ok(self.locals[id as usize].get(index).copied().unwrap_or(0))
    }

    pub(super) fn vgpr(&mut self, lane: &Expr, reg: &Expr) -> Result<u128, Stop> {
        let (lane, reg) = (self.expr(lane)? as u32, self.expr(reg)? as u32);
        Ok(self.machine.vgpr(lane, reg) as u128)
    }

    pub(super) fn sgpr(&mut self, reg: &Expr) -> Result<u128, Stop> {
        let reg = self.expr(reg)? as u32;
        Ok(self.machine.sgpr(reg) as u128)
    }

    /// Loads `width` bits from memory.
    pub(super) fn load(&mut self, space: Space, addr: &Expr, width: u32) -> Result<u128, Stop> {
        let addr = self.expr(addr)? as u64;
        self.machine.load(space, addr, width.div_ceil(8), self.lane)
    }
}
