//! Lowers typed expressions to values; makes host widths, masks and sign extensions explicit.

use super::Lower;
use super::operands::{lane_slot, numbered, slot};
use crate::ir::*;
use isa_spec::pcode::ir::{BinOp, Builtin, Expr, ExprKind, Pure, Role, Space, State, Ty, UnOp};
use isa_spec::pcode::shape::is_lane_id;

impl Value {
    /// Creates a value of a host width.
    pub fn new(kind: ValueKind, host_width: HostWidth) -> Value {
        Value { kind, host_width }
    }

    /// Creates a constant of `width` bits, of the smallest host width.
    pub fn constant(bits: u128, width: u32) -> Value {
        Value::new(ValueKind::Const(bits), HostWidth::of(width))
    }

    /// Converts the value to another host width, if it does not have it already.
    pub fn resize(self, host_width: HostWidth) -> Value {
        if self.host_width == host_width {
            return self;
        }
        Value::new(ValueKind::Resize(Box::new(self)), host_width)
    }

    /// Returns whether the node itself shows that all bits from `width` up are zero.
    fn fits(&self, width: u32) -> bool {
        match &self.kind {
            ValueKind::Const(bits) => bits >> width == 0,
            ValueKind::Op2(Op2::And, _, mask) => mask.fits(width),
            ValueKind::Resize(inner) => inner.fits(width),
            ValueKind::LaneBit(_) => true,
            _ => false,
        }
    }

    /// Shifts the value right by a count below the host width.
    pub fn shr_const(self, count: u32) -> Value {
        let host_width = self.host_width;
        if count == 0 {
            return self;
        }
        Value::new(ValueKind::ShrConst(Box::new(self), count), host_width)
    }

    /// Clears the bits from `width` up, unless they are known to be zero.
    pub fn masked(self, width: u32) -> Value {
        let host_width = self.host_width;
        if width >= host_width.bits() || self.fits(width) {
            return self;
        }
        let mask = Value::new(ValueKind::Const((1 << width) - 1), host_width);
        Value::new(ValueKind::Op2(Op2::And, Box::new(self), Box::new(mask)), host_width)
    }
}

fn int(ty: Ty) -> Int {
    Int { width: ty.width(), signed: ty.is_signed() }
}

impl Lower<'_> {
    pub(super) fn values(&self, list: &[Expr]) -> Vec<Value> {
        list.iter().map(|e| self.value(e)).collect()
    }

    fn boxed(&self, e: &Expr) -> Box<Value> {
        Box::new(self.value(e))
    }

    /// Lowers an expression to a value of the smallest host width of its type.
    pub(super) fn value(&self, e: &Expr) -> Value {
        let width = e.ty.width();
        let host_width = HostWidth::of(width);
        let of = |kind| Value::new(kind, host_width);
        match &e.kind {
            ExprKind::Const(bits) => of(ValueKind::Const(*bits)),
            ExprKind::Local(id) => of(ValueKind::Var(Var::Local(*id))),
            ExprKind::Element(id, index) => of(ValueKind::Element(*id, self.boxed(index))),
            ExprKind::Operand(role) => self.operand(*role, width),
            ExprKind::OperandIndex(role) => of(ValueKind::OperandNumber(slot(*role))),
            ExprKind::OperandLane { role, lane, index } => {
                let lane = self.boxed(lane);
                if self.lane {
                    return of(ValueKind::StagedLane { role: *role, lane });
                }
                of(ValueKind::OperandLane { slot: lane_slot(*role), lane, index: self.boxed(index) })
            }
            ExprKind::Field(name) => {
                Value::new(ValueKind::Field(name), HostWidth::W32).resize(host_width).masked(width)
            }
            ExprKind::State(state) => of(ValueKind::State(*state)),
            ExprKind::Slice { base, lo } => self.slice(base, lo, width),
            ExprKind::Unary(op, a) => {
                let value = self.boxed(a);
                match op {
                    UnOp::Not => of(ValueKind::Op1(Op1::Not, value)).masked(width),
                    UnOp::LogicalNot => of(ValueKind::Op1(Op1::IsZero, value)),
                    UnOp::Neg if a.ty.is_float() => {
                        let sign = Value::constant(1 << (width - 1), width);
                        of(ValueKind::Op2(Op2::Xor, value, Box::new(sign)))
                    }
                    UnOp::Neg => of(ValueKind::Op1(Op1::Neg, value)).masked(width),
                }
            }
            ExprKind::Binary(op, a, b) => self.binary(*op, a, b, width),
            ExprKind::Select(c, a, b) => of(ValueKind::Select(self.boxed(c), self.boxed(a), self.boxed(b))),
            ExprKind::Convert(a) => self.convert(a, e.ty),
            ExprKind::Bits(a) => {
                let value = self.value(a).resize(host_width);
                if width < a.ty.width() { value.masked(width) } else { value }
            }
            ExprKind::Call(builtin, args) => self.call(*builtin, args, e.ty),
            ExprKind::Vgpr { lane, reg } => {
                of(ValueKind::Vgpr { lane: self.boxed(lane), reg: self.boxed(reg) })
            }
            ExprKind::Sgpr { reg } => of(ValueKind::Sgpr { reg: self.boxed(reg) }),
            ExprKind::Mem { space, addr } => {
                let (space, bytes, retry) = (*space, width.div_ceil(8), self.atomic);
                let addr = Box::new(self.address(space, addr));
                of(ValueKind::Load { space, addr, bytes, retry }).masked(width)
            }
            ExprKind::Concat(parts) => {
                let mut lo = width;
                let part = |e: &Expr| {
                    lo -= e.ty.width();
                    (self.value(e).resize(host_width), lo)
                };
                of(ValueKind::Concat(parts.iter().map(part).collect()))
            }
        }
    }

    /// Lowers the address of an access to a byte address.
    pub(super) fn address(&self, space: Space, addr: &Expr) -> Value {
        let addr = self.value(addr);
        match space {
            Space::Word => Value::new(ValueKind::WordAddress(Box::new(addr)), HostWidth::W64),
            _ => addr,
        }
    }

    fn operand(&self, role: Role, width: u32) -> Value {
        let host_width = HostWidth::of(width);
        if self.lane {
            let mask = match role {
                Role::D0 if self.mask_d0 => Some(Mask::D0),
                Role::Vcc => Some(Mask::Vcc),
                _ => None,
            };
            if let Some(mask) = mask {
                return Value::new(ValueKind::MaskOperand(mask), host_width);
            }
        } else if !self.staged.contains(&role) {
            return self.scalar(role, width).masked(width);
        }
        let own = HostWidth::of(self.operands.width(role));
        Value::new(ValueKind::Var(Var::Operand(role)), own).resize(host_width).masked(width)
    }

    /// Lowers an operand of a body that runs once per wave.
    pub fn scalar(&self, role: Role, width: u32) -> Value {
        let dwords = match width.div_ceil(32) {
            dwords @ 1..=2 => dwords,
            _ => 4,
        };
        let how = match numbered(role) {
            Some(number) if self.once_modified => Scalar::Modified(number),
            _ if self.direct => Scalar::Direct,
            _ => Scalar::Any,
        };
        Value::new(ValueKind::Scalar { slot: slot(role), dwords, how }, HostWidth::of(width))
    }

    fn slice(&self, base: &Expr, lo: &Expr, width: u32) -> Value {
        let host_width = HostWidth::of(width);
        // Own bit of a mask operand.
        if self.lane && width == 1 && is_lane_id(lo) {
            match base.kind {
                ExprKind::Operand(Role::Vcc) => return Value::new(ValueKind::LaneBit(Mask::Vcc), host_width),
                ExprKind::State(State::Exec) => {
                    return Value::new(ValueKind::LaneBit(Mask::Exec), host_width);
                }
                _ => {}
            }
        }
        let value = self.value(base);
        if let ExprKind::Const(lo) = lo.kind {
            if lo >= base.ty.width() as u128 {
                return Value::constant(0, width);
            }
            let all = value.host_width;
            return Value::new(ValueKind::ShrConst(Box::new(value), lo as u32), all)
                .resize(host_width)
                .masked(width);
        }
        Value::new(ValueKind::Extract { value: Box::new(value), lo: self.boxed(lo) }, host_width)
            .masked(width)
    }

    fn binary(&self, op: BinOp, left: &Expr, right: &Expr, width: u32) -> Value {
        let (a, b) = (self.boxed(left), self.boxed(right));
        let ty = left.ty;
        let w = ty.width();
        let (own, bit) = (HostWidth::of(w), |kind| Value::new(kind, HostWidth::W32));
        let op2 = |op, a, b| Value::new(ValueKind::Op2(op, a, b), own);
        if op == BinOp::Pow {
            let kind = ValueKind::Pow { base: a, power: b, ty, power_ty: right.ty };
            return Value::new(kind, HostWidth::of(width));
        }
        if op == BinOp::LogicalAnd {
            return bit(ValueKind::LogicalAnd(a, b));
        }
        if op == BinOp::LogicalOr {
            return bit(ValueKind::LogicalOr(a, b));
        }
        if ty.is_float() {
            let (op, host_width) = match op {
                BinOp::Add => (FloatOp::Add, own),
                BinOp::Sub => (FloatOp::Sub, own),
                BinOp::Mul => (FloatOp::Mul, own),
                BinOp::Div => (FloatOp::Div, own),
                BinOp::Eq => (FloatOp::Eq, HostWidth::W32),
                BinOp::Ne => (FloatOp::Ne, HostWidth::W32),
                BinOp::Lt => (FloatOp::Lt, HostWidth::W32),
                BinOp::Le => (FloatOp::Le, HostWidth::W32),
                BinOp::Gt => (FloatOp::Gt, HostWidth::W32),
                BinOp::Ge => (FloatOp::Ge, HostWidth::W32),
                BinOp::Lg => (FloatOp::Lg, HostWidth::W32),
                BinOp::Rem | BinOp::And | BinOp::Or | BinOp::Xor | BinOp::Shl | BinOp::Shr => {
                    unreachable!("the checker allows no {op:?} on floats")
                }
                BinOp::Pow | BinOp::LogicalAnd | BinOp::LogicalOr => unreachable!("lowered above"),
            };
            return Value::new(ValueKind::Float { op, ty, args: vec![*a, *b] }, host_width);
        }
        let compare = |op| {
            Value::new(ValueKind::Compare { op, int: int(ty), a: a.clone(), b: b.clone() }, HostWidth::W32)
        };
        match op {
            BinOp::Add => op2(Op2::Add, a, b).masked(w),
            BinOp::Sub => op2(Op2::Sub, a, b).masked(w),
            BinOp::Mul => op2(Op2::Mul, a, b).masked(w),
            BinOp::Div | BinOp::Rem => {
                Value::new(ValueKind::Div { int: int(ty), remainder: op == BinOp::Rem, a, b }, own)
            }
            BinOp::And => op2(Op2::And, a, b),
            BinOp::Or => op2(Op2::Or, a, b),
            BinOp::Xor => op2(Op2::Xor, a, b),
            BinOp::Shr if ty.is_signed() => {
                Value::new(ValueKind::Sar { value: a, count: b, width: w }, own).masked(w)
            }
            BinOp::Shl | BinOp::Shr => {
                let left = op == BinOp::Shl;
                if let ValueKind::Const(n) = b.kind {
                    return match n as u32 {
                        n if n >= w => Value::constant(0, w),
                        n if left => Value::new(ValueKind::ShlConst(a, n), own).masked(w),
                        n => a.shr_const(n),
                    };
                }
                if left {
                    Value::new(ValueKind::Shl(a, b), own).masked(w)
                } else {
                    Value::new(ValueKind::Shr(a, b), own)
                }
            }
            BinOp::Eq => compare(Compare::Eq),
            BinOp::Ne | BinOp::Lg => compare(Compare::Ne),
            BinOp::Lt => compare(Compare::Lt),
            BinOp::Le => compare(Compare::Le),
            BinOp::Gt => compare(Compare::Gt),
            BinOp::Ge => compare(Compare::Ge),
            BinOp::Pow | BinOp::LogicalAnd | BinOp::LogicalOr => unreachable!("lowered above"),
        }
    }

    fn convert(&self, a: &Expr, to: Ty) -> Value {
        let value = self.value(a);
        let (from, width) = (a.ty, to.width());
        let host_width = HostWidth::of(width);
        if !from.is_float() && !to.is_float() {
            if from.is_signed() && width > from.width() {
                let kind = ValueKind::SignExtend { value: Box::new(value), width: from.width() };
                return Value::new(kind, host_width).masked(width);
            }
            return value.resize(host_width).masked(width);
        }
        let own = match (from, to) {
            (Ty::I(32), Ty::F32) => Some(Conversion::I32ToF32),
            (Ty::U(32) | Ty::B(32), Ty::F32) => Some(Conversion::U32ToF32),
            (Ty::F32, Ty::I(32)) => Some(Conversion::F32ToI32),
            (Ty::F32, Ty::U(32)) => Some(Conversion::F32ToU32),
            (Ty::F32, Ty::I(16)) => Some(Conversion::F32ToI16),
            (Ty::F32, Ty::U(16)) => Some(Conversion::F32ToU16),
            (Ty::I(32), Ty::F64) => Some(Conversion::I32ToF64),
            (Ty::U(32) | Ty::B(32), Ty::F64) => Some(Conversion::U32ToF64),
            (Ty::F64, Ty::I(32)) => Some(Conversion::F64ToI32),
            (Ty::F64, Ty::U(32)) => Some(Conversion::F64ToU32),
            (Ty::F64, Ty::F32) => Some(Conversion::F64ToF32),
            (Ty::F32, Ty::F64) => Some(Conversion::F32ToF64),
            _ => None,
        };
        let value = Box::new(value);
        let kind = match own {
            Some(conversion) => ValueKind::Conversion(conversion, value),
            None => ValueKind::Convert { value, from, to },
        };
        Value::new(kind, host_width)
    }

    fn call(&self, builtin: Builtin, list: &[Expr], ty: Ty) -> Value {
        let host_width = HostWidth::of(ty.width());
        let args = self.values(list);
        let builtin = match builtin {
            Builtin::Pure(builtin) => builtin,
            Builtin::Control(builtin) => return Value::new(ValueKind::Control { builtin, args }, host_width),
        };
        let types: Vec<Ty> = list.iter().map(|a| a.ty).collect();
        if let ([x], [from]) = (&args[..], &types[..])
            && let Some(value) = unary(builtin, x, *from, ty)
        {
            return value;
        }
        let of = |kind| Value::new(kind, host_width);
        match builtin {
            Pure::SignExtFromBit if matches!(types[0].width(), 32 | 64) => {
                sign_extended(&args, types[0].width())
            }
            Pure::SelectBytes => of(ValueKind::Simd { builtin, ty, args }),
            _ => match float_op(builtin, types[0]) {
                Some(op) => of(ValueKind::Float { op, ty: types[0], args }),
                None => of(ValueKind::Pure { builtin, args, types }),
            },
        }
    }
}

/// Sign-extends the low bits of a value, whose count is a value itself: a left shift, then an arithmetic
/// right shift. Any count is valid.
fn sign_extended(args: &[Value], width: u32) -> Value {
    let host_width = HostWidth::of(width);
    let boxed = |value: &Value| Box::new(value.clone());
    let (value, bits) = (boxed(&args[0]), boxed(&args[1]));
    let all = Box::new(Value::constant(width as u128, 32));
    let dropped = Value::new(ValueKind::Op2(Op2::Sub, all.clone(), bits.clone()), HostWidth::W32);
    let up = Value::new(ValueKind::Shl(value.clone(), boxed(&dropped)), host_width);
    let down =
        Value::new(ValueKind::Sar { value: Box::new(up), count: Box::new(dropped), width }, host_width);
    let int = Int { width: 32, signed: false };
    let narrower = Value::new(ValueKind::Compare { op: Compare::Lt, int, a: bits, b: all }, HostWidth::W32);
    Value::new(ValueKind::Select(Box::new(narrower), Box::new(down), value), host_width)
}

/// Returns the float operation of a builtin if one exists for the type; other builtins are evaluated by their
/// definition.
fn float_op(builtin: Pure, ty: Ty) -> Option<FloatOp> {
    if builtin == Pure::Fma {
        return Some(FloatOp::Fma);
    }
    let op = match builtin {
        Pure::MinimumNumber => FloatOp::MinimumNumber,
        Pure::MaximumNumber => FloatOp::MaximumNumber,
        Pure::Minimum => FloatOp::Minimum,
        Pure::Maximum => FloatOp::Maximum,
        Pure::Floor => FloatOp::Floor,
        Pure::Ceil => FloatOp::Ceil,
        Pure::Trunc => FloatOp::Trunc,
        Pure::Rndne => FloatOp::Rndne,
        Pure::Sqrt => FloatOp::Sqrt,
        Pure::Rcp => FloatOp::Rcp,
        Pure::Rsq => FloatOp::Rsq,
        Pure::Fract => FloatOp::Fract,
        Pure::Ldexp => FloatOp::Ldexp,
        Pure::FrexpMant | Pure::Mantissa => FloatOp::FrexpMant,
        Pure::FrexpExp => FloatOp::FrexpExp,
        Pure::FmaLdexp if ty != Ty::F16 => FloatOp::FmaLdexp,
        Pure::TrigPreop => FloatOp::TrigPreop,
        Pure::FmaRtz if ty == Ty::F32 => FloatOp::FmaRtz,
        Pure::FmaNearest if ty != Ty::F16 => FloatOp::FmaNearest,
        Pure::F32ToFp8Sr => FloatOp::ToFp8Sr,
        Pure::F32ToBf8Sr => FloatOp::ToBf8Sr,
        _ => return None,
    };
    matches!(ty, Ty::F16 | Ty::F32 | Ty::F64).then_some(op)
}

/// Lowers a builtin of one argument to a dedicated node; other builtins are evaluated by their definition.
fn unary(builtin: Pure, x: &Value, from: Ty, to: Ty) -> Option<Value> {
    let (host_width, width) = (HostWidth::of(to.width()), from.width());
    let x = || Box::new(x.clone());
    let bits = |op| Some(Value::new(ValueKind::Op1(op, x()), host_width));
    let conversion = |c| Some(Value::new(ValueKind::Conversion(c, x()), host_width));
    let float_bits = |op| {
        let kind = ValueKind::FloatBits { op, ty: from, value: x() };
        matches!(from, Ty::F16 | Ty::F32 | Ty::F64).then(|| Value::new(kind, host_width))
    };
    match builtin {
        Pure::Abs if from.is_float() => {
            let mask = Value::constant((1 << (width - 1)) - 1, width);
            Some(Value::new(ValueKind::Op2(Op2::And, x(), Box::new(mask)), host_width))
        }
        Pure::Sign => Some(x().shr_const(width - 1).resize(HostWidth::W32).masked(1)),
        Pure::IsNan => float_bits(FloatBits::IsNan),
        Pure::IsInf if matches!(from, Ty::F16 | Ty::F32 | Ty::F64) => {
            let constant = |bits| Box::new(Value::constant(bits, width));
            let magnitude = ValueKind::Op2(Op2::And, x(), constant((1 << (width - 1)) - 1));
            let a = Box::new(Value::new(magnitude, HostWidth::of(width)));
            let b = constant(isa_spec::arith::infinity(from));
            let int = Int { width, signed: false };
            Some(Value::new(ValueKind::Compare { op: Compare::Eq, int, a, b }, host_width))
        }
        Pure::IsSignalNan => float_bits(FloatBits::IsSignalNan),
        Pure::IsQuietNan => float_bits(FloatBits::IsQuietNan),
        Pure::CvtToQuietNan => float_bits(FloatBits::Quiet),
        Pure::Exponent => float_bits(FloatBits::Exponent),
        Pure::Exp2 | Pure::Log2 | Pure::Sin | Pure::Cos if matches!(from, Ty::F16 | Ty::F32) => {
            Some(Value::new(ValueKind::Simd { builtin, ty: from, args: vec![*x()] }, host_width))
        }
        Pure::F16ToF32 => conversion(Conversion::F16ToF32),
        Pure::F16ToI16 => conversion(Conversion::F16ToI16),
        Pure::F16ToU16 => conversion(Conversion::F16ToU16),
        Pure::F16ToSnorm => conversion(Conversion::F16ToSnorm),
        Pure::F16ToUnorm => conversion(Conversion::F16ToUnorm),
        Pure::I16ToF16 => conversion(Conversion::I16ToF16),
        Pure::U16ToF16 => conversion(Conversion::U16ToF16),
        Pure::F32ToF16 => conversion(Conversion::F32ToF16),
        Pure::F32ToF16Rtz => conversion(Conversion::F32ToF16Rtz),
        Pure::F32ToBf16 => conversion(Conversion::F32ToBf16),
        Pure::F32ToFp8 => conversion(Conversion::F32ToFp8),
        Pure::F32ToBf8 => conversion(Conversion::F32ToBf8),
        Pure::Fp8ToF32 => conversion(Conversion::Fp8ToF32),
        Pure::Bf8ToF32 => conversion(Conversion::Bf8ToF32),
        Pure::F32ToF64 => conversion(Conversion::F32ToF64),
        Pure::F32ToI32 => conversion(Conversion::F32ToI32),
        Pure::F32ToU32 => conversion(Conversion::F32ToU32),
        Pure::F32ToU8 => conversion(Conversion::F32ToU8),
        Pure::F32ToSnorm => conversion(Conversion::F32ToSnorm),
        Pure::F32ToUnorm => conversion(Conversion::F32ToUnorm),
        Pure::I32ToF32 => conversion(Conversion::I32ToF32),
        Pure::U32ToF32 => conversion(Conversion::U32ToF32),
        Pure::F64ToF32 => conversion(Conversion::F64ToF32),
        Pure::F64ToI32 => conversion(Conversion::F64ToI32),
        Pure::F64ToU32 => conversion(Conversion::F64ToU32),
        Pure::I32ToF64 => conversion(Conversion::I32ToF64),
        Pure::U32ToF64 => conversion(Conversion::U32ToF64),
        Pure::Bf16ToF32 => Some(Value::new(ValueKind::ShlConst(x(), 16), host_width)),
        Pure::CountOnes => bits(Op1::CountOnes),
        Pure::CountLeadingZeros => bits(Op1::LeadingZeros { width }),
        Pure::CountTrailingZeros => bits(Op1::TrailingZeros { width }),
        Pure::ReverseBits => bits(Op1::ReverseBits { width }),
        Pure::ClampU16
        | Pure::ClampI16
        | Pure::ClampU32
        | Pure::ClampI32
        | Pure::ClampU64
        | Pure::ClampI64 => {
            let kind = ValueKind::Saturate { value: x(), from: int(from), to: int(to) };
            Some(Value::new(kind, host_width))
        }
        _ => None,
    }
}
