//! The values of lane loops as terms. A host integer is a bit vector of the host width; what `isa-emit` prints for a node
//! is what it means here.

use super::Machine;
use crate::{VerifyError, unsupported};
use isa_export::smt::{Setting, Sort, Term, arithmetic};
use isa_lower::ir::{Compare, Int, Mask, Op1, Op2, Slot, Value, ValueKind, Var};
use isa_spec::arith::{FloatEnv, mask};
use isa_spec::pcode::builtins::Pure;
use isa_spec::pcode::ir::{BinOp, Role, Ty};

type Result<T> = std::result::Result<T, VerifyError>;

/// Builtins on integers and bits, whose definitions terms have.
fn is_of_bits(builtin: Pure, types: &[Ty]) -> bool {
    builtin == Pure::SelectBytes
        || types.iter().all(|ty| !ty.is_float())
            && matches!(
                builtin,
                Pure::Abs
                    | Pure::Sign
                    | Pure::SignExt
                    | Pure::SignExtFromBit
                    | Pure::CountOnes
                    | Pure::CountLeadingZeros
                    | Pure::CountTrailingZeros
                    | Pure::ReverseBits
                    | Pure::U8ToU32
                    | Pure::U4ToU32
                    | Pure::U16ToU32
                    | Pure::I16ToI32
                    | Pure::U32ToU16
                    | Pure::I32ToI16
            )
}

impl Machine<'_> {
    fn setting() -> Setting {
        Setting { env: FloatEnv::KEEP, uninterpreted_float: true, max_terms: usize::MAX }
    }

    /// One bit: whether a value is not 0.
    pub(super) fn is_set(&mut self, value: Term) -> Term {
        let zero = self.terms.constant(0, self.terms.width(value));
        let is_zero = self.terms.eq(value, zero);
        self.terms.not(is_zero)
    }

    pub(super) fn condition(&mut self, value: &Value) -> Result<Term> {
        let value = self.value(value)?;
        Ok(self.is_set(value))
    }

    fn values(&mut self, list: &[Value]) -> Result<Vec<Term>> {
        list.iter().map(|value| self.value(value)).collect()
    }

    /// A value, of its host width.
    pub(super) fn value(&mut self, value: &Value) -> Result<Term> {
        let bits = value.host_width.bits();
        let term = self.kind(&value.kind, bits)?;
        Ok(self.terms.resize(term, bits))
    }

    fn kind(&mut self, kind: &ValueKind, bits: u32) -> Result<Term> {
        Ok(match kind {
            ValueKind::Const(value) => self.terms.constant(*value, bits),
            ValueKind::Var(Var::Local(id)) => self.state.locals[*id as usize][0],
            ValueKind::Var(Var::Operand(role)) => self.operand(*role),
            ValueKind::Var(Var::Whole) => match self.whole {
                Some(whole) => whole,
                None => return unsupported("a part of nothing"),
            },
            ValueKind::Element(id, index) | ValueKind::LaneElement(id, index) => {
                let index = self.value(index)?;
                let elements = self.state.locals[*id as usize].clone();
                let mut found = self.terms.constant(0, bits);
                for (k, element) in elements.into_iter().enumerate() {
                    let number = self.terms.constant(k as u128, self.terms.width(index));
                    let here = self.terms.eq(index, number);
                    let element = self.terms.resize(element, bits);
                    found = self.terms.ite(here, element, found);
                }
                found
            }
            ValueKind::Field(name) => self.field(name),
            ValueKind::SourceBit { field, source } => {
                let whole = self.field(field);
                let bit = self.terms.extract(whole, *source as u32, 1);
                let bit = self.terms.zero_extend(bit, 32);
                if field.starts_with("NEG") {
                    let sign = self.terms.constant(31, 32);
                    self.terms.shl(bit, sign)
                } else {
                    bit
                }
            }
            ValueKind::OperandNumber(slot) => {
                let role = self.role_of(*slot)?;
                self.terms.var(&format!("{}.index", super::name_of(role)), Sort::Bits(32))
            }
            ValueKind::State(state) => self.read_state(*state)?,
            ValueKind::LaneBit(mask) | ValueKind::MaskOperand(mask) => {
                let name = match mask {
                    Mask::D0 => return unsupported("the mask that is written"),
                    Mask::Vcc => "VCC",
                    Mask::Exec => "exec",
                };
                let whole = self.terms.var(name, Sort::Bits(64));
                if matches!(kind, ValueKind::LaneBit(_)) { self.bit_of_lane(whole) } else { whole }
            }
            ValueKind::Scalar { slot, dwords, .. } => {
                let role = self.role_of(*slot)?;
                self.raw(role, *dwords)
            }
            ValueKind::StagedDword { role, index } => {
                let index = self.value(index)?;
                let whole = self.raw(*role, self.dwords(*role));
                let mut found = self.terms.extract(whole, 0, 32);
                for k in 1..self.dwords(*role) {
                    let number = self.terms.constant(k as u128, self.terms.width(index));
                    let here = self.terms.eq(index, number);
                    let dword = self.terms.extract(whole, 32 * k, 32);
                    found = self.terms.ite(here, dword, found);
                }
                found
            }
            ValueKind::Load { space, addr, bytes, .. } => {
                let addr = self.value(addr)?;
                self.load(*space, addr, *bytes)?
            }
            ValueKind::Loaded { access, dwords } => match self.loaded.get(access) {
                Some(value) => self.terms.resize(*value, 32 * dwords),
                None => return unsupported("a load that has not happened"),
            },
            ValueKind::SimdResult { call } => match self.simd.get(*call) {
                Some(value) => *value,
                None => return unsupported("a call that has not happened"),
            },
            ValueKind::Resize(inner) => self.value(inner)?,
            ValueKind::SignExtend { value, width } => {
                let value = self.value(value)?;
                let low = self.terms.extract(value, 0, *width);
                if *width < bits { self.terms.sign_extend(low, bits) } else { low }
            }
            ValueKind::Op1(op, x) => {
                let x = self.value(x)?;
                self.op1(*op, x)
            }
            ValueKind::Op2(op, a, b) => {
                let (a, b) = (self.value(a)?, self.value(b)?);
                match op {
                    Op2::Add => self.terms.add_bits(a, b),
                    Op2::Sub => self.terms.sub(a, b),
                    Op2::Mul => self.terms.mul(a, b),
                    Op2::And => self.terms.and(a, b),
                    Op2::Or => self.terms.or(a, b),
                    Op2::Xor => self.terms.xor(a, b),
                }
            }
            ValueKind::Div { int: Int { width, signed }, remainder, a, b } => {
                let (a, b) = (self.value(a)?, self.value(b)?);
                let [a, b] = [a, b].map(|v| self.terms.extract(v, 0, *width));
                let ty = if *signed { Ty::I(*width as u16) } else { Ty::U(*width as u16) };
                let op = if *remainder { BinOp::Rem } else { BinOp::Div };
                arithmetic::binary(self.terms, Self::setting(), op, a, b, ty)
            }
            ValueKind::ShlConst(x, n) => {
                let (x, n) = (self.value(x)?, self.terms.constant(*n as u128, bits));
                self.terms.shl(x, n)
            }
            ValueKind::ShrConst(x, n) => {
                let x = self.value(x)?;
                let n = self.terms.constant(*n as u128, self.terms.width(x));
                self.terms.lshr(x, n)
            }
            ValueKind::Shl(x, n) | ValueKind::Shr(x, n) => {
                let (x, n) = (self.value(x)?, self.value(n)?);
                let n = self.terms.resize(n, bits);
                if matches!(kind, ValueKind::Shl(..)) { self.terms.shl(x, n) } else { self.terms.lshr(x, n) }
            }
            ValueKind::Sar { value, count, width } => {
                let (value, count) = (self.value(value)?, self.value(count)?);
                let low = self.terms.extract(value, 0, *width);
                let (value, count) = (self.terms.sign_extend(low, bits), self.terms.resize(count, bits));
                self.terms.ashr(value, count)
            }
            ValueKind::Compare { op, int, a, b } => {
                let (a, b) = (self.value(a)?, self.value(b)?);
                self.compare(*op, *int, a, b)
            }
            ValueKind::LogicalAnd(a, b) | ValueKind::LogicalOr(a, b) => {
                let (a, b) = (self.condition(a)?, self.condition(b)?);
                if matches!(kind, ValueKind::LogicalAnd(..)) {
                    self.terms.and(a, b)
                } else {
                    self.terms.or(a, b)
                }
            }
            ValueKind::Select(condition, yes, no) => {
                let condition = self.condition(condition)?;
                let (yes, no) = (self.value(yes)?, self.value(no)?);
                self.terms.ite(condition, yes, no)
            }
            ValueKind::Extract { value, lo } => {
                let (value, lo) = (self.value(value)?, self.value(lo)?);
                let (inside, lo) = self.position(lo, self.terms.width(value));
                let shifted = self.terms.lshr(value, lo);
                let shifted = self.terms.resize(shifted, bits);
                let zero = self.terms.constant(0, bits);
                self.terms.ite(inside, shifted, zero)
            }
            ValueKind::Insert { old, value, lo, width } => {
                let (old, value, lo) = (self.value(old)?, self.value(value)?, self.value(lo)?);
                let (inside, lo) = self.position(lo, bits);
                let low = self.terms.constant(mask(*width), bits);
                let (part, ones) = (self.terms.and(value, low), self.terms.shl(low, lo));
                let (others, part) = (self.terms.not(ones), self.terms.shl(part, lo));
                let kept = self.terms.and(old, others);
                let new = self.terms.or(kept, part);
                self.terms.ite(inside, new, old)
            }
            ValueKind::Concat(parts) => {
                let mut whole = self.terms.constant(0, bits);
                for (part, lo) in parts {
                    let (part, lo) = (self.value(part)?, self.terms.constant(*lo as u128, bits));
                    let part = self.terms.shl(part, lo);
                    whole = self.terms.or(whole, part);
                }
                whole
            }
            ValueKind::Saturate { value, from, to } => {
                let value = self.value(value)?;
                let value = self.terms.extract(value, 0, from.width);
                self.saturated(value, *from, *to)
            }
            ValueKind::Pure { builtin, args, types } if is_of_bits(*builtin, types) => {
                let args = self.values(args)?;
                let args: Vec<Term> =
                    args.iter().zip(types).map(|(arg, ty)| self.terms.resize(*arg, ty.width())).collect();
                arithmetic::pure(self.terms, Self::setting(), *builtin, &args, types, bits)
            }
            ValueKind::Simd { builtin, ty, args } => {
                let args = self.values(args)?;
                self.call(*builtin, *ty, &args, bits)
            }
            // Nothing is known of floats but that equal operands have equal results.
            ValueKind::Float { op, ty, args } => {
                let args = self.values(args)?;
                self.terms.apply(&format!("{op:?}.{ty}"), args, bits)
            }
            ValueKind::FloatBits { op, ty, value } => {
                let value = self.value(value)?;
                self.terms.apply(&format!("{op:?}.{ty}"), vec![value], bits)
            }
            ValueKind::Conversion(conversion, value) => {
                let value = self.value(value)?;
                self.terms.apply(&format!("{conversion:?}"), vec![value], bits)
            }
            ValueKind::Convert { value, from, to } => {
                let value = self.value(value)?;
                self.terms.apply(&format!("convert.{from}.{to}"), vec![value], bits)
            }
            ValueKind::Pow { base, power, ty, power_ty } => {
                let args = vec![self.value(base)?, self.value(power)?];
                self.terms.apply(&format!("pow.{ty}.{power_ty}"), args, bits)
            }
            ValueKind::Pure { builtin, args, types } => {
                let args = self.values(args)?;
                let types: Vec<String> = types.iter().map(Ty::to_string).collect();
                self.terms.apply(&format!("{builtin:?}.{}", types.join(".")), args, bits)
            }
            ValueKind::StagedLane { .. }
            | ValueKind::OperandLane { .. }
            | ValueKind::Vgpr { .. }
            | ValueKind::Sgpr { .. }
            | ValueKind::VectorRead { .. } => return unsupported("registers of other lanes"),
            ValueKind::WordAddress(_) => return unsupported("memory of words"),
            ValueKind::Control { builtin, .. } => return unsupported(format!("`{}`", builtin.def().name)),
        })
    }

    /// A builtin that is computed for many lanes at once.
    pub(super) fn call(&mut self, builtin: Pure, ty: Ty, args: &[Term], bits: u32) -> Term {
        if builtin != Pure::SelectBytes {
            return self.terms.apply(&format!("{builtin:?}.{ty}"), args.to_vec(), bits);
        }
        let types = [Ty::U(32); 3];
        let args: Vec<Term> = args.iter().map(|arg| self.terms.resize(*arg, 32)).collect();
        arithmetic::pure(self.terms, Self::setting(), builtin, &args, &types, bits)
    }

    fn field(&mut self, name: &str) -> Term {
        self.terms.var(&format!("field.{}", name.to_lowercase()), Sort::Bits(32))
    }

    fn op1(&mut self, op: Op1, x: Term) -> Term {
        let own = self.terms.width(x);
        let ty = [Ty::U(own as u16)];
        let mut pure = |builtin: Pure| arithmetic::pure(self.terms, Self::setting(), builtin, &[x], &ty, own);
        match op {
            Op1::Not => self.terms.not(x),
            Op1::Neg => self.terms.neg(x),
            Op1::IsZero => {
                let set = self.is_set(x);
                self.terms.not(set)
            }
            Op1::CountOnes => pure(Pure::CountOnes),
            Op1::LeadingZeros { width } => {
                let count = pure(Pure::CountLeadingZeros);
                let above = self.terms.constant((own - width) as u128, own);
                self.terms.sub(count, above)
            }
            Op1::TrailingZeros { width } => {
                let count = pure(Pure::CountTrailingZeros);
                let most = self.terms.constant(width as u128, own);
                let less = self.terms.ult(count, most);
                self.terms.ite(less, count, most)
            }
            Op1::ReverseBits { width } => {
                let reversed = pure(Pure::ReverseBits);
                let above = self.terms.constant((own - width) as u128, own);
                self.terms.lshr(reversed, above)
            }
        }
    }

    fn compare(&mut self, op: Compare, int: Int, a: Term, b: Term) -> Term {
        let t = &mut *self.terms;
        if matches!(op, Compare::Eq | Compare::Ne) {
            let equal = t.eq(a, b);
            return if op == Compare::Eq { equal } else { t.not(equal) };
        }
        let (x, y) = if matches!(op, Compare::Lt | Compare::Ge) { (a, b) } else { (b, a) };
        let less = if int.signed {
            let (x, y) = (t.extract(x, 0, int.width), t.extract(y, 0, int.width));
            t.slt(x, y)
        } else {
            t.ult(x, y)
        };
        if matches!(op, Compare::Lt | Compare::Gt) { less } else { t.not(less) }
    }

    /// A position of a bit: whether it is inside a width, and the position in this width.
    fn position(&mut self, lo: Term, width: u32) -> (Term, Term) {
        let limit = self.terms.constant(width as u128, self.terms.width(lo));
        (self.terms.ult(lo, limit), self.terms.resize(lo, width))
    }

    /// Saturates if the clamp bit is set, else wraps.
    fn saturated(&mut self, value: Term, from: Int, to: Int) -> Term {
        let t = &mut *self.terms;
        // One bit more than either needs, signed.
        let wide = from.width.max(to.width) + 2;
        let extended = if from.signed { t.sign_extend(value, wide) } else { t.zero_extend(value, wide) };
        let least = if to.signed { (1_u128 << (to.width - 1)).wrapping_neg() } else { 0 };
        let most = mask(to.width) >> u32::from(to.signed);
        let (least, most) = (t.constant(least, wide), t.constant(most, wide));
        let (below, above) = (t.slt(extended, least), t.slt(most, extended));
        let limited = t.ite(above, most, extended);
        let limited = t.ite(below, least, limited);
        let clamp = t.var("clamp", Sort::Bits(1));
        let wrapped = t.extract(extended, 0, to.width);
        let limited = t.extract(limited, 0, to.width);
        t.ite(clamp, limited, wrapped)
    }

    /// The operand that a slot holds.
    fn role_of(&self, slot: Slot) -> Result<Role> {
        let operands = &self.handlers.operands;
        let mut roles = operands.widths.keys().chain(&operands.indexed);
        let of = |role: &&Role| isa_lower::lower::operands::slot(**role) == slot;
        roles.find(of).copied().ok_or_else(|| VerifyError::Unsupported(format!("the slot {slot:?}")))
    }
}
