//! The reference evaluator: typed semantics walked as a tree, slow and obvious.
//!
//! It decides what a body means; what registers, memory and barriers are is the [`Machine`]'s business. The driver runs a
//! lane-shaped body once per active lane.

use crate::arith::{self, FloatEnv, Round};
use crate::pcode::builtins::Bi;
use crate::pcode::ir::*;

/// What a body can touch. Values are bit patterns, `lane` the running lane (`None` outside lane shape).
pub trait Machine {
    /// An operand's value, modifiers applied.
    fn operand(&mut self, role: Role, lane: Option<u32>) -> u128;
    /// The present contents of a destination, for partial writes: its register, or the mask being built.
    fn destination(&mut self, role: Role, lane: Option<u32>) -> u128;
    /// `width`: bits of the value; a narrower write keeps the destination's upper bits.
    fn set_operand(&mut self, role: Role, lane: Option<u32>, value: u128, width: u32);
    fn operand_index(&mut self, role: Role) -> u32;
    fn operand_lane(&mut self, role: Role, lane: u32, index: u32) -> u32;
    fn field(&mut self, name: &str) -> u32;
    fn state(&mut self, state: State, lane: Option<u32>) -> u128;
    /// As `destination`, for state.
    fn state_destination(&mut self, state: State) -> u128;
    fn set_state(&mut self, state: State, value: u128) -> Result<(), Stop>;
    fn vgpr(&mut self, lane: u32, reg: u32) -> u32;
    fn set_vgpr(&mut self, lane: u32, reg: u32, value: u32);
    fn sgpr(&mut self, reg: u32) -> u32;
    fn set_sgpr(&mut self, reg: u32, value: u32);
    fn load(&mut self, space: Space, addr: u64, bytes: u32, lane: Option<u32>) -> Result<u128, Stop>;
    fn store(
        &mut self,
        space: Space,
        addr: u64,
        bytes: u32,
        value: u128,
        lane: Option<u32>,
    ) -> Result<(), Stop>;
    /// Control builtins; the value of those that give one.
    fn control(&mut self, builtin: Bi, args: &[u128]) -> Result<u128, Stop>;
    fn env(&self) -> FloatEnv;
    /// The instruction's clamp bit.
    fn clamp(&self) -> bool;
    /// Called after every assignment with the value stored; the debugger shows it.
    fn assigned(&mut self, _stmt: &Stmt, _value: u128, _lane: Option<u32>) {}
}

/// Why a body stopped early.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stop {
    /// `return`.
    Return,
    /// The machine's own: a fault, the wave's end, a barrier.
    Machine(u32),
    /// A loop that does not end.
    TooLong,
}

/// Statements a body may execute: far beyond any instruction's need.
const STEP_LIMIT: u64 = 50_000_000;

/// Runs the body once.
pub fn eval(sem: &Semantics, machine: &mut dyn Machine, lane: Option<u32>) -> Result<(), Stop> {
    let mut e = Eval {
        locals: sem.locals.iter().map(|l| vec![0; l.len.unwrap_or(1) as usize]).collect(),
        env: machine.env(),
        machine,
        lane,
        steps: 0,
    };
    match e.stmts(&sem.body) {
        Err(Stop::Return) => Ok(()),
        other => other,
    }
}

struct Eval<'a> {
    locals: Vec<Vec<u128>>,
    machine: &'a mut dyn Machine,
    lane: Option<u32>,
    env: FloatEnv,
    steps: u64,
}

impl Eval<'_> {
    fn stmts(&mut self, list: &[Stmt]) -> Result<(), Stop> {
        for stmt in list {
            self.steps += 1;
            if self.steps > STEP_LIMIT {
                return Err(Stop::TooLong);
            }
            match stmt {
                Stmt::Assign { place, value, .. } => {
                    let value = self.expr(value)?;
                    self.assign(place, value)?;
                    self.machine.assigned(stmt, value, self.lane);
                }
                Stmt::If { arms, otherwise, .. } => {
                    let mut taken = None;
                    for (cond, body) in arms {
                        if self.expr(cond)? != 0 {
                            taken = Some(body);
                            break;
                        }
                    }
                    self.stmts(taken.unwrap_or(otherwise))?;
                }
                Stmt::For { var, from, to, body, .. } => {
                    let from = self.expr(from)? as u32 as i32;
                    let to = self.expr(to)? as u32 as i32;
                    for i in from..=to {
                        self.locals[*var as usize][0] = i as u32 as u128;
                        self.stmts(body)?;
                    }
                }
                Stmt::While { cond, body, .. } => {
                    while self.expr(cond)? != 0 {
                        self.steps += 1;
                        if self.steps > STEP_LIMIT {
                            return Err(Stop::TooLong);
                        }
                        self.stmts(body)?;
                    }
                }
                Stmt::Return { .. } => return Err(Stop::Return),
                Stmt::Call { builtin, args, .. } => {
                    let args: Result<Vec<u128>, Stop> = args.iter().map(|a| self.expr(a)).collect();
                    self.machine.control(builtin.id(), &args?)?;
                }
            }
        }
        Ok(())
    }

    fn assign(&mut self, place: &Place, value: u128) -> Result<(), Stop> {
        let width = place.ty.width();
        let value = value & arith::mask(width);
        match &place.kind {
            PlaceKind::Local(id) => self.locals[*id as usize][0] = value,
            PlaceKind::Element(id, index) => {
                let index = self.expr(index)? as u32 as usize;
                if let Some(slot) = self.locals[*id as usize].get_mut(index) {
                    *slot = value;
                }
            }
            PlaceKind::Operand(role) => self.machine.set_operand(*role, self.lane, value, width),
            PlaceKind::State(state) => self.machine.set_state(*state, value)?,
            PlaceKind::Slice { base, lo } => {
                let lo = self.expr(lo)? as u32;
                if lo >= 128 {
                    return Ok(());
                }
                let old = self.old(base)?;
                let mask = arith::mask(width) << lo;
                let new = old & !mask | value << lo & mask;
                self.assign(base, new)?;
            }
            PlaceKind::Vgpr { lane, reg } => {
                let (lane, reg) = (self.expr(lane)? as u32, self.expr(reg)? as u32);
                self.machine.set_vgpr(lane, reg, value as u32);
            }
            PlaceKind::Sgpr { reg } => {
                let reg = self.expr(reg)? as u32;
                self.machine.set_sgpr(reg, value as u32);
            }
            PlaceKind::Mem { space, addr } => {
                let addr = self.expr(addr)? as u64;
                self.machine.store(*space, addr, width.div_ceil(8), value, self.lane)?;
            }
            PlaceKind::Concat(parts) => {
                let mut rest = value;
                for part in parts.iter().rev() {
                    let width = part.ty.width();
                    self.assign(part, rest & arith::mask(width))?;
                    rest = if width >= 128 { 0 } else { rest >> width };
                }
            }
        }
        Ok(())
    }

    /// The present value of a place, all of it.
    fn old(&mut self, place: &Place) -> Result<u128, Stop> {
        Ok(match &place.kind {
            PlaceKind::Local(id) => self.locals[*id as usize][0],
            PlaceKind::Element(id, index) => {
                let index = self.expr(index)? as u32 as usize;
                self.locals[*id as usize].get(index).copied().unwrap_or(0)
            }
            PlaceKind::Operand(role) => self.machine.destination(*role, self.lane),
            PlaceKind::State(state) => self.machine.state_destination(*state),
            PlaceKind::Slice { base, lo } => {
                let lo = self.expr(lo)? as u32;
                let old = self.old(base)?;
                if lo >= 128 { 0 } else { old >> lo & arith::mask(place.ty.width()) }
            }
            PlaceKind::Vgpr { lane, reg } => {
                let (lane, reg) = (self.expr(lane)? as u32, self.expr(reg)? as u32);
                self.machine.vgpr(lane, reg) as u128
            }
            PlaceKind::Sgpr { reg } => {
                let reg = self.expr(reg)? as u32;
                self.machine.sgpr(reg) as u128
            }
            PlaceKind::Mem { space, addr } => {
                let addr = self.expr(addr)? as u64;
                self.machine.load(*space, addr, place.ty.width().div_ceil(8), self.lane)?
            }
            PlaceKind::Concat(parts) => {
                let mut out = 0;
                for part in parts {
                    out = out << part.ty.width() | self.old(part)?;
                }
                out
            }
        })
    }

    fn expr(&mut self, e: &Expr) -> Result<u128, Stop> {
        let width = e.ty.width();
        let value = match &e.kind {
            ExprKind::Const(bits) => *bits,
            ExprKind::Local(id) => self.locals[*id as usize][0],
            ExprKind::Element(id, index) => {
                let index = self.expr(index)? as u32 as usize;
                self.locals[*id as usize].get(index).copied().unwrap_or(0)
            }
            ExprKind::Operand(role) => self.machine.operand(*role, self.lane),
            ExprKind::OperandIndex(role) => self.machine.operand_index(*role) as u128,
            ExprKind::OperandLane { role, lane, index } => {
                let (lane, index) = (self.expr(lane)? as u32, self.expr(index)? as u32);
                self.machine.operand_lane(*role, lane, index) as u128
            }
            ExprKind::Field(name) => self.machine.field(name) as u128,
            ExprKind::State(state) => self.machine.state(*state, self.lane),
            ExprKind::Slice { base, lo } => {
                let lo = self.expr(lo)? as u32;
                let base = self.expr(base)?;
                if lo >= 128 { 0 } else { base >> lo }
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
            ExprKind::Binary(op, a, b) => return self.binary(*op, a, b),
            ExprKind::Select(c, a, b) => {
                if self.expr(c)? != 0 {
                    self.expr(a)?
                } else {
                    self.expr(b)?
                }
            }
            ExprKind::Convert(a) => {
                let v = self.expr(a)?;
                convert(v, a.ty, e.ty, &self.env)
            }
            ExprKind::Bits(a) => self.expr(a)?,
            ExprKind::Call(builtin, args) => {
                let types: Vec<Ty> = args.iter().map(|a| a.ty).collect();
                let args: Result<Vec<u128>, Stop> = args.iter().map(|a| self.expr(a)).collect();
                let args = args?;
                match pure(builtin.id(), &args, &types, &self.env, self.machine.clamp()) {
                    Some(v) => v,
                    None => self.machine.control(builtin.id(), &args)?,
                }
            }
            ExprKind::Vgpr { lane, reg } => {
                let (lane, reg) = (self.expr(lane)? as u32, self.expr(reg)? as u32);
                self.machine.vgpr(lane, reg) as u128
            }
            ExprKind::Sgpr { reg } => {
                let reg = self.expr(reg)? as u32;
                self.machine.sgpr(reg) as u128
            }
            ExprKind::Mem { space, addr } => {
                let addr = self.expr(addr)? as u64;
                self.machine.load(*space, addr, width.div_ceil(8), self.lane)?
            }
            ExprKind::Concat(parts) => {
                let mut out = 0;
                for part in parts {
                    let value = self.expr(part)?;
                    out = if part.ty.width() >= 128 { value } else { out << part.ty.width() | value };
                }
                out
            }
        };
        Ok(value & arith::mask(width))
    }

    fn binary(&mut self, op: BinOp, a: &Expr, b: &Expr) -> Result<u128, Stop> {
        let ty = a.ty;
        let width = ty.width();
        let x = self.expr(a)?;
        match op {
            BinOp::LogicalAnd => return Ok(if x == 0 { 0 } else { self.expr(b)? }),
            BinOp::LogicalOr => return Ok(if x != 0 { 1 } else { self.expr(b)? }),
            _ => {}
        }
        let y = self.expr(b)?;
        Ok(binary(op, x, y, ty, b.ty, &self.env) & arith::mask(width.max(1)))
    }
}

/// A binary operation on values of type `ty` (`right`: the right operand's, which differs for shifts and powers).
pub fn binary(op: BinOp, x: u128, y: u128, ty: Ty, right: Ty, env: &FloatEnv) -> u128 {
    use std::cmp::Ordering::*;
    let width = ty.width();
    if ty.is_float() {
        let order = || arith::compare(x, y, ty, env);
        return match op {
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
            _ => 0,
        };
    }
    let signed = ty.is_signed();
    let less = |a: u128, b: u128| {
        if signed {
            (arith::sign_extend(a, width) as i128) < arith::sign_extend(b, width) as i128
        } else {
            a < b
        }
    };
    match op {
        BinOp::Add => x.wrapping_add(y),
        BinOp::Sub => x.wrapping_sub(y),
        BinOp::Mul => x.wrapping_mul(y),
        BinOp::Div => arith::div(x, y, width, signed),
        BinOp::Rem => arith::rem(x, y, width, signed),
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
        BinOp::Pow | BinOp::LogicalAnd | BinOp::LogicalOr => 0,
    }
}

/// Value conversion between types.
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

/// Builtins that are functions of their arguments; `None` for the machine's.
pub fn pure(bi: Bi, args: &[u128], types: &[Ty], env: &FloatEnv, clamp: bool) -> Option<u128> {
    let a = args.first().copied().unwrap_or(0);
    let b = args.get(1).copied().unwrap_or(0);
    let c = args.get(2).copied().unwrap_or(0);
    let ty = types.first().copied().unwrap_or(Ty::U(32));
    let width = ty.width();
    let zero = Round::Zero;
    let to_int = |w, signed, round| arith::to_int(a, ty, env, w, signed, round);
    let narrow = |w, signed| arith::narrow(a, width, ty.is_signed(), w, signed, clamp);
    let cvt = |to| arith::convert(a, ty, to, env);
    let int_to = |to| convert(a, ty, to, env);
    Some(match bi {
        Bi::Fma => arith::fma(a, b, c, ty, env),
        Bi::Abs if ty.is_float() => a & !(1 << (width - 1)),
        Bi::Abs if ty.is_signed() && a >> (width - 1) & 1 == 1 => a.wrapping_neg() & arith::mask(width),
        Bi::Abs => a,
        Bi::Floor => arith::floor(a, ty, env),
        Bi::Ceil => arith::ceil(a, ty, env),
        Bi::Trunc => arith::trunc(a, ty, env),
        Bi::Rndne => arith::rndne(a, ty, env),
        Bi::Fract => arith::fract(a, ty, env),
        Bi::Sqrt => arith::sqrt(a, ty, env),
        Bi::Rcp => arith::rcp(a, ty, env),
        Bi::Rsq => arith::rsq(a, ty, env),
        Bi::Exp2 => arith::exp2(a, ty, env),
        Bi::Log2 => arith::log2(a, ty, env),
        Bi::Sin => arith::sin(a, ty, env),
        Bi::Cos => arith::cos(a, ty, env),
        Bi::Ldexp => arith::ldexp(a, b as u32 as i32, ty, env),
        Bi::FrexpExp => arith::frexp_exp(a, ty, env) as u32 as u128,
        Bi::FrexpMant | Bi::Mantissa => arith::frexp_mant(a, ty, env),
        Bi::Exponent => arith::exponent(a, ty) as u128,
        Bi::Sign => a >> (width - 1) & 1,
        Bi::IsNan => arith::is_nan(a, ty) as u128,
        Bi::IsSignalNan => arith::is_signal_nan(a, ty) as u128,
        Bi::IsQuietNan => arith::is_quiet_nan(a, ty) as u128,
        Bi::IsInf => arith::is_inf(a, ty) as u128,
        Bi::IsDenorm => arith::is_denorm(a, ty) as u128,
        Bi::CvtToQuietNan => arith::quiet(a, ty),
        Bi::Minimum => arith::min_max(a, b, ty, env, false, true),
        Bi::Maximum => arith::min_max(a, b, ty, env, true, true),
        Bi::MinimumNumber => arith::min_max(a, b, ty, env, false, false),
        Bi::MaximumNumber => arith::min_max(a, b, ty, env, true, false),
        Bi::SignExt => arith::sign_extend(a, width) & arith::mask(64),
        Bi::SignExtFromBit => arith::signext_from_bit(a, b as u32, width),
        Bi::CountOnes => a.count_ones() as u128,
        Bi::CountLeadingZeros => (a.leading_zeros() - (128 - width)) as u128,
        Bi::CountTrailingZeros => a.trailing_zeros().min(width) as u128,
        Bi::ReverseBits => a.reverse_bits() >> (128 - width),
        Bi::F32ToF16 => cvt(Ty::F16),
        Bi::F16ToF32 | Bi::F64ToF32 | Bi::Bf16ToF32 | Bi::Fp8ToF32 | Bi::Bf8ToF32 => cvt(Ty::F32),
        Bi::F32ToF64 => cvt(Ty::F64),
        Bi::F32ToBf16 => cvt(Ty::BF16),
        Bi::F32ToF16Rtz => arith::convert(a, ty, Ty::F16, &env.with_round(Round::Zero)),
        Bi::F32ToFp8 => cvt(Ty::FP8),
        Bi::F32ToBf8 => cvt(Ty::BF8),
        Bi::F32ToFp8Sr => arith::stochastic_8(a, b as u32, Ty::FP8, env),
        Bi::F32ToBf8Sr => arith::stochastic_8(a, b as u32, Ty::BF8, env),
        Bi::F32ToI32 | Bi::F64ToI32 => to_int(32, true, zero),
        Bi::F32ToU32 | Bi::F64ToU32 => to_int(32, false, zero),
        Bi::F16ToI16 => to_int(16, true, zero),
        Bi::F16ToU16 => to_int(16, false, zero),
        Bi::F32ToU8 => to_int(8, false, env.round(ty)),
        Bi::I32ToF32 | Bi::U32ToF32 => int_to(Ty::F32),
        Bi::I32ToF64 | Bi::U32ToF64 => int_to(Ty::F64),
        Bi::I16ToF16 | Bi::U16ToF16 => int_to(Ty::F16),
        Bi::F16ToSnorm | Bi::F32ToSnorm => arith::to_norm(a, ty, true, 16, env),
        Bi::F16ToUnorm | Bi::F32ToUnorm => arith::to_norm(a, ty, false, 16, env),
        Bi::U8ToU32 | Bi::U4ToU32 | Bi::U16ToU32 => a,
        Bi::I16ToI32 => arith::sign_extend(a, 16) & arith::mask(32),
        Bi::U32ToU16 | Bi::I32ToI16 => a & 0xffff,
        Bi::ClampU16 => narrow(16, false),
        Bi::ClampI16 => narrow(16, true),
        Bi::ClampU32 => narrow(32, false),
        Bi::ClampI32 => narrow(32, true),
        Bi::ClampU64 => narrow(64, false),
        Bi::ClampI64 => narrow(64, true),
        Bi::TrigPreop => arith::trig_preop(a, b as u32, env),
        Bi::FormatBytes => arith::format_bytes(a as u32) as u128,
        Bi::FromFormat => arith::from_format(a as u32, b, c as u32) as u128,
        Bi::ToFormat => arith::to_format(a as u32, b),
        Bi::FromFormat16 => arith::from_format16(a as u32, b, c as u32) as u128,
        Bi::ToFormat16 => arith::to_format16(a as u32, b as u64),
        _ => return None,
    })
}
