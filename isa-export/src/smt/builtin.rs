//! Operators and pure builtins on terms; `isa_spec::eval` defines them.

use super::float::Floats;
use super::term::{Term, Terms};
use isa_spec::arith::{FloatEnv, Round};
use isa_spec::eval;
use isa_spec::pcode::builtins::Pure;
use isa_spec::pcode::ir::{BinOp, Ty};

/// What a body is evaluated with.
#[derive(Debug, Clone, Copy)]
pub struct Setting {
    /// The float environment of MODE.
    pub env: FloatEnv,
    /// Float arithmetic is unknown functions.
    pub uninterpreted_float: bool,
    /// The number of terms beyond which evaluation stops.
    pub max_terms: usize,
}

/// Builds operators.
pub(super) struct Operators<'t> {
    pub terms: &'t mut Terms,
    pub setting: Setting,
    /// The instruction's clamp bit, one bit.
    pub clamp: Term,
}

/// Arithmetic outside of bodies, such as that of output modifiers.
pub mod arithmetic {
    use super::*;

    /// A binary operator on values of one type.
    pub fn binary(terms: &mut Terms, setting: Setting, op: BinOp, x: Term, y: Term, ty: Ty) -> Term {
        let comparison =
            matches!(op, BinOp::Eq | BinOp::Ne | BinOp::Lt | BinOp::Le | BinOp::Gt | BinOp::Ge | BinOp::Lg);
        let (clamp, width) = (terms.bool(false), if comparison { 1 } else { ty.width() });
        Operators { terms, setting, clamp }.binary(op, x, y, ty, ty, width)
    }

    /// A builtin, whose result has this width.
    pub fn pure(
        terms: &mut Terms,
        setting: Setting,
        builtin: Pure,
        args: &[Term],
        types: &[Ty],
        width: u32,
    ) -> Term {
        let clamp = terms.bool(false);
        Operators { terms, setting, clamp }.pure(builtin, args, types, width)
    }
}

impl Operators<'_> {
    fn floats(&mut self) -> Floats<'_> {
        Floats { terms: self.terms, env: self.setting.env }
    }

    /// An unknown function of the arguments.
    fn unknown(&mut self, name: &str, ty: Ty, args: &[Term], width: u32) -> Term {
        self.terms.apply(&format!("{name}.{ty}"), args.to_vec(), width)
    }

    /// Returns whether arithmetic of this type is left open.
    fn is_unknown(&self, ty: Ty) -> bool {
        let half = matches!(ty, Ty::F16 | Ty::BF16) && self.setting.env.overflow_clamps;
        self.setting.uninterpreted_float || half || matches!(ty, Ty::FP8 | Ty::BF8)
    }

    fn bool_of(&mut self, x: Term) -> Term {
        let zero = self.terms.constant(0, self.terms.width(x));
        let is_zero = self.terms.eq(x, zero);
        self.terms.not(is_zero)
    }

    /// A binary operator; the right operand has another type only in shifts and powers.
    pub fn binary(&mut self, op: BinOp, x: Term, y: Term, ty: Ty, right: Ty, width: u32) -> Term {
        if let (Some(a), Some(b)) = (self.terms.value(x), self.terms.value(y)) {
            let value = match op {
                BinOp::LogicalAnd => (a != 0 && b != 0) as u128,
                BinOp::LogicalOr => (a != 0 || b != 0) as u128,
                _ => eval::binary(op, a, b, ty, right, &self.setting.env),
            };
            return self.terms.constant(value, width);
        }
        if ty.is_float() {
            return self.float_binary(op, x, y, ty, width);
        }
        let signed = ty.is_signed();
        let t = &mut *self.terms;
        let less = |t: &mut Terms, x, y| if signed { t.slt(x, y) } else { t.ult(x, y) };
        match op {
            BinOp::Add => t.add_bits(x, y),
            BinOp::Sub => t.sub(x, y),
            BinOp::Mul => t.mul(x, y),
            BinOp::Div if signed => self.signed_division(x, y, true),
            BinOp::Div => t.udiv(x, y),
            BinOp::Rem if signed => self.signed_division(x, y, false),
            BinOp::Rem => t.urem(x, y),
            BinOp::Pow => {
                let args = [x, y];
                self.unknown("pow", ty, &args, width)
            }
            BinOp::And => t.and(x, y),
            BinOp::Or => t.or(x, y),
            BinOp::Xor => t.xor(x, y),
            BinOp::Shl | BinOp::Shr => {
                let count = shift_count(t, y, width);
                match op {
                    BinOp::Shl => t.shl(x, count),
                    _ if signed => t.ashr(x, count),
                    _ => t.lshr(x, count),
                }
            }
            BinOp::Eq => t.eq(x, y),
            BinOp::Ne | BinOp::Lg => {
                let eq = t.eq(x, y);
                t.not(eq)
            }
            BinOp::Lt => less(t, x, y),
            BinOp::Gt => less(t, y, x),
            BinOp::Le => {
                let more = less(t, y, x);
                t.not(more)
            }
            BinOp::Ge => {
                let less = less(t, x, y);
                t.not(less)
            }
            BinOp::LogicalAnd | BinOp::LogicalOr => {
                let (x, y) = (self.bool_of(x), self.bool_of(y));
                if op == BinOp::LogicalAnd { self.terms.and(x, y) } else { self.terms.or(x, y) }
            }
        }
    }

    /// Quotient or remainder of signed numbers, from those of the magnitudes: the remainder has the sign of the
    /// dividend. By zero, the quotient is -1 and the remainder the dividend.
    fn signed_division(&mut self, x: Term, y: Term, quotient: bool) -> Term {
        let t = &mut *self.terms;
        let width = t.width(x);
        let magnitude = |t: &mut Terms, v: Term| {
            let (sign, negative) = (t.extract(v, width - 1, 1), t.neg(v));
            (sign, t.ite(sign, negative, v))
        };
        let ((sign_x, a), (sign_y, b)) = (magnitude(t, x), magnitude(t, y));
        let (value, negative) =
            if quotient { (t.udiv(a, b), t.xor(sign_x, sign_y)) } else { (t.urem(a, b), sign_x) };
        let other = t.neg(value);
        let value = t.ite(negative, other, value);
        let zero = t.constant(0, width);
        let by_zero = t.eq(y, zero);
        let otherwise = if quotient { t.constant(u128::MAX, width) } else { x };
        t.ite(by_zero, otherwise, value)
    }

    fn float_binary(&mut self, op: BinOp, x: Term, y: Term, ty: Ty, width: u32) -> Term {
        if self.is_unknown(ty) {
            return self.unknown(&format!("{op:?}").to_lowercase(), ty, &[x, y], width);
        }
        let mut f = self.floats();
        match op {
            BinOp::Add => f.add(x, y, ty),
            BinOp::Sub => f.sub(x, y, ty),
            BinOp::Mul => f.mul(x, y, ty),
            BinOp::Div => f.div(x, y, ty),
            BinOp::Eq => f.equal(x, y, ty),
            BinOp::Ne => {
                let equal = f.equal(x, y, ty);
                f.terms.not(equal)
            }
            BinOp::Lt => f.less(x, y, ty),
            BinOp::Gt => f.less(y, x, ty),
            BinOp::Le | BinOp::Ge => {
                let less = if op == BinOp::Le { f.less(x, y, ty) } else { f.less(y, x, ty) };
                let equal = f.equal(x, y, ty);
                f.terms.or(less, equal)
            }
            BinOp::Lg => {
                let (less, more) = (f.less(x, y, ty), f.less(y, x, ty));
                f.terms.or(less, more)
            }
            _ => self.unknown(&format!("{op:?}").to_lowercase(), ty, &[x, y], width),
        }
    }

    /// A conversion of the value between types.
    pub fn convert(&mut self, v: Term, from: Ty, to: Ty) -> Term {
        if let Some(value) = self.terms.value(v) {
            let value = eval::convert(value, from, to, &self.setting.env);
            return self.terms.constant(value, to.width());
        }
        match (from.is_float(), to.is_float()) {
            (false, false) if from.is_signed() && to.width() > from.width() => {
                self.terms.sign_extend(v, to.width())
            }
            (false, false) => self.terms.resize(v, to.width()),
            (true, true) => {
                let quiet = to.width() <= from.width();
                self.convert_float(v, from, to, quiet, self.setting.env.round(to))
            }
            (true, false) => self.integer(v, from, to.width(), to.is_signed(), Round::Zero),
            (false, true) => {
                if self.is_unknown(to) {
                    return self.unknown(&format!("from.{from}"), to, &[v], to.width());
                }
                self.floats().number_of(v, from.is_signed(), to)
            }
        }
    }

    fn convert_float(&mut self, v: Term, from: Ty, to: Ty, quiet: bool, round: Round) -> Term {
        if (from, to) == (Ty::BF16, Ty::F32) && quiet {
            let zeros = self.terms.constant(0, 16);
            return self.terms.concat(v, zeros);
        }
        if self.is_unknown(from) || self.is_unknown(to) {
            let name = format!("convert.{from}.{quiet}.{round:?}");
            return self.unknown(&name, to, &[v], to.width());
        }
        self.floats().convert(v, from, to, quiet, round)
    }

    fn integer(&mut self, v: Term, from: Ty, width: u32, signed: bool, round: Round) -> Term {
        if self.is_unknown(from) || width > 64 {
            return self.unknown(&format!("to_int.{width}.{signed}.{round:?}"), from, &[v], width);
        }
        self.floats().integer(v, from, width, signed, round)
    }

    /// A pure builtin, whose result has this width.
    pub fn pure(&mut self, builtin: Pure, args: &[Term], types: &[Ty], width: u32) -> Term {
        let setting = self.setting;
        let constants: Option<Vec<u128>> = args.iter().map(|a| self.terms.value(*a)).collect();
        if let (Some(constants), Some(clamp)) = (constants, self.terms.truth(self.clamp)) {
            let value = eval::pure(builtin, &constants, types, &setting.env, clamp);
            return self.terms.constant(value, width);
        }
        let ty = types.first().copied().unwrap_or(Ty::U(32));
        let own = ty.width();
        let a = args[0];
        let b = args.get(1).copied().unwrap_or(a);
        let t = &mut *self.terms;
        match builtin {
            Pure::Abs if ty.is_float() => {
                let magnitude = t.extract(a, 0, own - 1);
                t.zero_extend(magnitude, own)
            }
            Pure::Abs if ty.is_signed() => {
                let (sign, negative) = (t.extract(a, own - 1, 1), t.neg(a));
                t.ite(sign, negative, a)
            }
            Pure::Abs => a,
            Pure::Sign => t.extract(a, own - 1, 1),
            Pure::IsNan => self.floats().is_nan(a, ty),
            Pure::IsSignalNan => self.floats().is_signal_nan(a, ty),
            Pure::IsQuietNan => self.floats().is_quiet_nan(a, ty),
            Pure::IsInf => self.floats().is_infinite(a, ty),
            Pure::IsDenorm => self.floats().is_denormal(a, ty),
            Pure::CvtToQuietNan => self.floats().quiet(a, ty),
            Pure::Exponent if ty != Ty::FP8 => {
                let fraction = super::float::fraction_bits(ty);
                let exponent = t.extract(a, fraction, own - 1 - fraction);
                t.zero_extend(exponent, width)
            }
            Pure::SignExt => t.sign_extend(a, 64),
            Pure::SignExtFromBit => self.sign_extend_from(a, b, own),
            Pure::CountOnes => self.count_ones(a, width),
            Pure::CountLeadingZeros => self.leading_zeros(a, width),
            Pure::CountTrailingZeros => {
                let reversed = self.reverse(a);
                self.leading_zeros(reversed, width)
            }
            Pure::ReverseBits => self.reverse(a),
            Pure::SelectBytes => self.select_bytes(a, b, args[2]),
            Pure::Bf16ToF32 => {
                let zeros = t.constant(0, 16);
                t.concat(a, zeros)
            }
            Pure::U8ToU32 | Pure::U4ToU32 | Pure::U16ToU32 => t.resize(a, width),
            Pure::I16ToI32 => {
                let low = t.extract(a, 0, 16);
                t.sign_extend(low, 32)
            }
            Pure::U32ToU16 => self.narrow(a, Ty::U(32), 16, false, true),
            Pure::I32ToI16 => self.narrow(a, Ty::I(32), 16, true, true),
            Pure::ClampU16 => self.clamped(a, ty, 16, false),
            Pure::ClampI16 => self.clamped(a, ty, 16, true),
            Pure::ClampU32 => self.clamped(a, ty, 32, false),
            Pure::ClampI32 => self.clamped(a, ty, 32, true),
            Pure::ClampU64 => self.clamped(a, ty, 64, false),
            Pure::ClampI64 => self.clamped(a, ty, 64, true),
            _ => self.float_builtin(builtin, args, ty, width),
        }
    }

    fn float_builtin(&mut self, builtin: Pure, args: &[Term], ty: Ty, width: u32) -> Term {
        let env = self.setting.env;
        let (a, b) = (args[0], args.get(1).copied().unwrap_or(args[0]));
        let cvt = |this: &mut Self, to: Ty| this.convert_float(a, ty, to, true, env.round(to));
        let zero = Round::Zero;
        match builtin {
            Pure::F32ToF16 => cvt(self, Ty::F16),
            Pure::F16ToF32 | Pure::F64ToF32 => cvt(self, Ty::F32),
            Pure::F32ToF64 => cvt(self, Ty::F64),
            Pure::F32ToBf16 => cvt(self, Ty::BF16),
            Pure::F32ToF16Rtz => self.convert_float(a, ty, Ty::F16, true, zero),
            Pure::F32ToI32 | Pure::F64ToI32 => self.integer(a, ty, 32, true, zero),
            Pure::F32ToU32 | Pure::F64ToU32 => self.integer(a, ty, 32, false, zero),
            Pure::F16ToI16 => self.integer(a, ty, 16, true, zero),
            Pure::F16ToU16 => self.integer(a, ty, 16, false, zero),
            Pure::F32ToU8 => self.integer(a, ty, 8, false, env.round(ty)),
            Pure::I32ToF32 | Pure::U32ToF32 => self.convert(a, ty, Ty::F32),
            Pure::I32ToF64 | Pure::U32ToF64 => self.convert(a, ty, Ty::F64),
            Pure::I16ToF16 | Pure::U16ToF16 => self.convert(a, ty, Ty::F16),
            _ if self.is_unknown(ty) => self.unknown(builtin.def().name, ty, args, width),
            Pure::Fma => self.floats().fma(a, b, args[2], ty),
            Pure::FmaRtz => Floats { terms: self.terms, env: env.with_round(zero) }.fma(a, b, args[2], ty),
            Pure::FmaNearest => Floats { terms: self.terms, env: FloatEnv::KEEP }.fma(a, b, args[2], ty),
            Pure::Floor => self.floats().integral(a, ty, Round::Down),
            Pure::Ceil => self.floats().integral(a, ty, Round::Up),
            Pure::Trunc => self.floats().integral(a, ty, zero),
            Pure::Rndne => self.floats().integral(a, ty, Round::NearestEven),
            Pure::Minimum => self.floats().min_max(a, b, ty, false, true),
            Pure::Maximum => self.floats().min_max(a, b, ty, true, true),
            Pure::MinimumNumber => self.floats().min_max(a, b, ty, false, false),
            Pure::MaximumNumber => self.floats().min_max(a, b, ty, true, false),
            Pure::Rcp | Pure::Rsq | Pure::Sqrt | Pure::Exp2 | Pure::Log2 => self.approximate(builtin, a, ty),
            // What no theory has.
            _ => self.unknown(builtin.def().name, ty, args, width),
        }
    }

    /// Sign-extends the low bits, as many as another term says.
    fn sign_extend_from(&mut self, a: Term, count: Term, width: u32) -> Term {
        let t = &mut *self.terms;
        let mut value = a;
        for bits in (0..width).rev() {
            let this = match bits {
                0 => t.constant(0, width),
                _ => {
                    let low = t.extract(a, 0, bits);
                    t.sign_extend(low, width)
                }
            };
            let number = t.constant(bits as u128, t.width(count));
            let cond = t.eq(count, number);
            value = t.ite(cond, this, value);
        }
        value
    }

    /// Sums of neighbours, of which each level has half as many with one bit more: as circuits and host code count.
    fn count_ones(&mut self, a: Term, width: u32) -> Term {
        let t = &mut *self.terms;
        let mut sums: Vec<Term> = (0..t.width(a)).map(|at| t.extract(a, at, 1)).collect();
        while sums.len() > 1 {
            let pairs = sums.chunks(2);
            let next = pairs.map(|pair| {
                let bits = t.width(pair[0]) + 1;
                let parts: Vec<Term> = pair.iter().map(|part| t.zero_extend(*part, bits)).collect();
                parts.get(1).map_or(parts[0], |other| t.add_bits(parts[0], *other))
            });
            sums = next.collect();
        }
        t.resize(sums[0], width)
    }

    fn leading_zeros(&mut self, a: Term, width: u32) -> Term {
        let t = &mut *self.terms;
        let own = t.width(a);
        let mut value = t.constant(own as u128, width);
        for at in 0..own {
            let bit = t.extract(a, at, 1);
            let count = t.constant((own - 1 - at) as u128, width);
            value = t.ite(bit, count, value);
        }
        value
    }

    fn reverse(&mut self, a: Term) -> Term {
        let t = &mut *self.terms;
        let mut value = t.extract(a, 0, 1);
        for at in 1..t.width(a) {
            let bit = t.extract(a, at, 1);
            value = t.concat(value, bit);
        }
        value
    }

    fn select_bytes(&mut self, high: Term, low: Term, selectors: Term) -> Term {
        let t = &mut *self.terms;
        let table = t.concat(high, low);
        let mut value = None;
        for k in 0..4 {
            let selector = t.extract(selectors, 8 * k, 8);
            let mut byte = t.constant(0, 8);
            for n in 0..8 {
                let (number, one) = (t.constant(n as u128, 8), t.extract(table, 8 * n, 8));
                let cond = t.eq(selector, number);
                byte = t.ite(cond, one, byte);
            }
            value = Some(value.map_or(byte, |below| t.concat(byte, below)));
        }
        value.unwrap_or(selectors)
    }

    /// Narrows an integer, saturating if the instruction's clamp bit is set.
    fn clamped(&mut self, a: Term, from: Ty, width: u32, signed: bool) -> Term {
        let saturated = self.narrow(a, from, width, signed, true);
        let wrapped = self.narrow(a, from, width, signed, false);
        self.terms.ite(self.clamp, saturated, wrapped)
    }

    /// Narrows an integer, saturating if `clamp`.
    fn narrow(&mut self, a: Term, from: Ty, width: u32, signed: bool, clamp: bool) -> Term {
        let t = &mut *self.terms;
        if !clamp {
            return t.resize(a, width);
        }
        // One bit more than either needs, signed.
        let wide = from.width().max(width) + 2;
        let value = if from.is_signed() { t.sign_extend(a, wide) } else { t.zero_extend(a, wide) };
        let (low, high) = if signed {
            (1u128.wrapping_shl(width - 1).wrapping_neg(), (1u128 << (width - 1)) - 1)
        } else {
            (0, (1u128 << width) - 1)
        };
        let (low, high) = (t.constant(low, wide), t.constant(high, wide));
        let (below, above) = (t.slt(value, low), t.slt(high, value));
        let value = t.ite(above, high, value);
        let value = t.ite(below, low, value);
        t.extract(value, 0, width)
    }
}

/// A count of shifts as a term of the shifted value's width; larger counts stay beyond the width.
fn shift_count(t: &mut Terms, count: Term, width: u32) -> Term {
    let own = t.width(count);
    if own <= width {
        return t.zero_extend(count, width);
    }
    let above = t.extract(count, width, own - width);
    let none = t.constant(0, own - width);
    let small = t.eq(above, none);
    let (low, all) = (t.extract(count, 0, width), t.constant(u128::MAX, width));
    t.ite(small, low, all)
}
