//! Values of lanes that are arithmetic sequences, computed once for all lanes: the value of lane 0, and a stride that is
//! known when code is emitted. Code tests what the stride relies on, that no lane wraps around where others do not, and
//! otherwise continues at the general code of the block.

use crate::arith::builder::R;
use crate::arith::ops::{condition, width};
use crate::arith::shift::ShiftCount;
use crate::arith::val::{Val, low_mask, narrow};
use crate::lowering::{Count, Lowering, Shift, recognise};
use crate::state::emitter::Emitter;
use isa_lower::ir::{Compare, HostWidth, Int, Op2, Value, ValueKind, Var};
use isa_lower::visit::any_in;
use isa_spec::pcode::ir::State;
use std::collections::BTreeMap;
use wavesim_x64::inst::{Cc, Int1, Int2, Label, Src, V, Width};

/// The largest stride.
const MAX_STRIDE: u64 = 1 << 16;

/// A value of lanes. Lane `n` has `first + n * stride`; a stride of 0 is a uniform value.
#[derive(Debug, Clone, Copy)]
pub struct LaneSequence {
    pub first: Val,
    pub stride: u64,
    /// The values of all lanes are below `1 << bits`.
    pub bits: u32,
}

/// The variables of an operation that are sequences; others are uniform.
pub type SequenceVars = BTreeMap<Var, LaneSequence>;

impl LaneSequence {
    /// A uniform value of so many bits.
    pub fn uniform(first: Val, bits: u32) -> LaneSequence {
        let bits = match first {
            Val::Const(value) => u128::BITS - value.leading_zeros(),
            Val::Bool(_) => 1,
            _ => bits,
        };
        LaneSequence { first, stride: 0, bits }
    }

    pub fn is_uniform(&self) -> bool {
        self.stride == 0
    }
}

impl Emitter<'_> {
    /// Returns the difference of the last lane's value and that of lane 0.
    pub fn span(&self, stride: u64) -> u64 {
        let lanes = if self.wave64 { 64 } else { 32 };
        (lanes - 1) * stride
    }

    /// Computes a value once for all lanes; `None` if it is not known to be a sequence.
    pub fn sequence_value(&mut self, value: &Value, vars: &SequenceVars) -> R<Option<LaneSequence>> {
        let host_width = value.host_width;
        let varies = |v: &Value| {
            matches!(v.kind, ValueKind::Var(var) if vars.contains_key(&var))
                || v.host_width == HostWidth::W128
        };
        if !any_in(value, &varies) {
            if any_in(value, &is_unusual) {
                return Ok(None);
            }
            let v = self.value(value)?;
            let bits = match &value.kind {
                ValueKind::Resize(inner) => inner.host_width.bits().min(host_width.bits()),
                _ => host_width.bits(),
            };
            return Ok((!v.is_varying()).then(|| LaneSequence::uniform(v, bits)));
        }
        let Ok((lowering, _)) = recognise(value) else { return Ok(None) };
        match lowering {
            Lowering::Var(var) => Ok(vars.get(&var).copied()),
            Lowering::Const(bits) => Ok(Some(LaneSequence::uniform(Val::Const(bits), 0))),
            Lowering::Resize(inner) => {
                let Some(v) = self.sequence_value(inner, vars)? else { return Ok(None) };
                self.resized_sequence(v, inner.host_width, host_width)
            }
            Lowering::Op2(op, a, b) => {
                let Some(a) = self.sequence_value(a, vars)? else { return Ok(None) };
                let Some(b) = self.sequence_value(b, vars)? else { return Ok(None) };
                self.sequence_op2(op, host_width, a, b)
            }
            Lowering::Shift(shift @ (Shift::Left | Shift::Right), inner, count) => {
                let Some(n) = self.constant_count(count, vars)? else { return Ok(None) };
                let Some(v) = self.sequence_value(inner, vars)? else { return Ok(None) };
                self.shifted_sequence(shift, host_width, v, n)
            }
            Lowering::ShiftSigned { value: inner, count, width } if width == host_width.bits() => {
                let Some(n) = self.constant_count(Count::Value(count), vars)? else { return Ok(None) };
                let Some(v) = self.sequence_value(inner, vars)? else { return Ok(None) };
                if n >= width || host_width == HostWidth::W128 {
                    return Ok(None);
                }
                if n == 0 {
                    return Ok(Some(v));
                }
                // All lanes have the same bits from `n` on.
                if !v.is_uniform() && self.low_bits_of(v, n)?.is_none() {
                    return Ok(None);
                }
                let signed = self.signed(v.first, host_width, width)?;
                let count = ShiftCount { v: Val::Const(n.into()), in_range: true };
                let v = self.shift(Shift::Arithmetic, host_width, signed, count)?;
                Ok(Some(LaneSequence::uniform(v, width)))
            }
            Lowering::SignExtend(inner, 32)
                if inner.host_width == HostWidth::W32 && host_width == HostWidth::W64 =>
            {
                let Some(v) = self.sequence_value(inner, vars)? else { return Ok(None) };
                // All lanes have the same sign.
                if v.bits > 31 && !v.is_uniform() && self.low_bits_of(v, 31)?.is_none() {
                    return Ok(None);
                }
                let first = self.b.uniform(v.first, HostWidth::W32)?;
                let first = Val::Uniform(self.b.f.int1(Int1::SignExtend32, Width::W64, first));
                let bits = if v.bits > 31 { 64 } else { v.bits };
                Ok(Some(LaneSequence { first, bits, ..v }))
            }
            Lowering::Compare(op, int, a, b) => {
                let host_width = a.host_width;
                let Some(a) = self.sequence_value(a, vars)? else { return Ok(None) };
                let Some(b) = self.sequence_value(b, vars)? else { return Ok(None) };
                self.compared_sequences(op, int, host_width, [a, b])
            }
            Lowering::Select([c, a, b]) => {
                let Some(c) = self.sequence_value(c, vars)? else { return Ok(None) };
                match c.first {
                    Val::Const(bits) if c.is_uniform() => {
                        self.sequence_value(if bits != 0 { a } else { b }, vars)
                    }
                    _ => Ok(None),
                }
            }
            Lowering::Concat(parts) if host_width == HostWidth::W64 => {
                let (mut all, mut stride) = (Val::Const(0), 0);
                for (part, lo) in parts {
                    let Some(v) = self.sequence_value(part, vars)? else { return Ok(None) };
                    if !v.is_uniform() && (stride != 0 || *lo != 0) {
                        return Ok(None);
                    }
                    stride += v.stride;
                    let first = self.shift(Shift::Left, host_width, v.first, Val::Const(u128::from(*lo)))?;
                    all = self.op2(Op2::Or, host_width, all, first)?;
                }
                Ok(Some(LaneSequence { first: all, stride, bits: 64 }))
            }
            // The instruction's clamp bit is not set.
            Lowering::Saturate { value: inner, to, .. } if inner.host_width != HostWidth::W128 => {
                let Some(v) = self.sequence_value(inner, vars)? else { return Ok(None) };
                let Some(v) = self.low_bits_of(v, to.width)? else { return Ok(None) };
                self.resized_sequence(v, inner.host_width, host_width)
            }
            _ => Ok(None),
        }
    }

    /// As [`Emitter::sequence_value`], for the low word of a value, where the low words of variables are sequences.
    pub fn sequence_low_word(&mut self, value: &Value, low: &SequenceVars) -> R<Option<LaneSequence>> {
        match &value.kind {
            ValueKind::Var(var) => match low.get(var) {
                Some(v) => Ok(Some(*v)),
                None => self.low_bits_of(LaneSequence::uniform(self.env.var(*var), 64), 32),
            },
            ValueKind::Const(bits) => Ok(Some(LaneSequence::uniform(Val::Const(bits & low_mask(32)), 32))),
            ValueKind::Resize(inner) => self.sequence_low_word(inner, low),
            ValueKind::Op2(op @ (Op2::Add | Op2::Sub | Op2::Mul), a, b) => {
                let Some(a) = self.sequence_low_word(a, low)? else { return Ok(None) };
                let Some(b) = self.sequence_low_word(b, low)? else { return Ok(None) };
                self.sequence_op2(*op, HostWidth::W32, a, b)
            }
            _ => Ok(None),
        }
    }

    /// Returns a shift count that is known when code is emitted.
    fn constant_count(&mut self, count: Count<'_>, vars: &SequenceVars) -> R<Option<u32>> {
        let count = match count {
            Count::Const(n) => return Ok(Some(n)),
            Count::Value(count) => self.sequence_value(count, vars)?,
        };
        Ok(match count {
            Some(LaneSequence { first: Val::Const(n), stride: 0, .. }) => u32::try_from(n).ok(),
            _ => None,
        })
    }

    fn resized_sequence(
        &mut self,
        v: LaneSequence,
        from: HostWidth,
        to: HostWidth,
    ) -> R<Option<LaneSequence>> {
        if to == HostWidth::W32 && from != HostWidth::W32 {
            return self.low_bits_of(v, 32);
        }
        let first = match v.first {
            Val::Uniform(_) if to == HostWidth::W64 && from == HostWidth::W32 => {
                self.resize(v.first, from, to)?
            }
            first => first,
        };
        Ok(Some(LaneSequence { first, ..v }))
    }

    fn sequence_op2(
        &mut self,
        op: Op2,
        host_width: HostWidth,
        a: LaneSequence,
        b: LaneSequence,
    ) -> R<Option<LaneSequence>> {
        let wide = host_width == HostWidth::W128;
        let w = width(narrow(host_width));
        let own = narrow(host_width).bits();
        if a.is_uniform() && b.is_uniform() && !wide {
            let v = self.op2(op, host_width, a.first, b.first)?;
            return Ok(Some(LaneSequence::uniform(v, own)));
        }
        match op {
            Op2::Add => {
                let (x, y) = (self.first_of(a)?, self.first_of(b)?);
                let (stride, bits) = (a.stride + b.stride, a.bits.max(b.bits) + 1);
                if stride > MAX_STRIDE {
                    return Ok(None);
                }
                let sum = if b.first == Val::Const(0) { x } else { self.b.f.int2(Int2::Add, w, x, y) };
                if wide && bits > 64 {
                    // Beyond 64 bits, the sum would have a carry.
                    let Some(abandon) = self.abandon() else { return Ok(None) };
                    self.b.f.branch(Cc::LtU, Width::W64, sum, x, abandon);
                }
                let sum = LaneSequence { first: Val::Uniform(sum), stride, bits: bits.min(own) };
                if bits > own && !self.prove_below(sum, own)? {
                    return Ok(None);
                }
                Ok(Some(sum))
            }
            Op2::Sub if !wide && a.stride >= b.stride => {
                let (x, y) = (self.first_of(a)?, self.first_of(b)?);
                let first = Val::Uniform(self.b.f.int2(Int2::Sub, w, x, y));
                let difference = LaneSequence { first, stride: a.stride - b.stride, bits: own };
                Ok(self.prove_below(difference, own)?.then_some(difference))
            }
            Op2::Mul if a.is_uniform() && b.is_uniform() => {
                if a.bits + b.bits > 64 {
                    return Ok(None);
                }
                let (x, y) = (self.first_of(a)?, self.first_of(b)?);
                let v = Val::Uniform(self.b.f.int2(Int2::Mul, Width::W64, x, y));
                Ok(Some(LaneSequence::uniform(v, a.bits + b.bits)))
            }
            Op2::Mul if !wide => {
                let (v, factor) = if a.is_uniform() { (b, a) } else { (a, b) };
                let Val::Const(n) = factor.first else { return Ok(None) };
                if !factor.is_uniform() || n > MAX_STRIDE.into() || v.stride * n as u64 > MAX_STRIDE {
                    return Ok(None);
                }
                let x = self.first_of(v)?;
                let first = Val::Uniform(self.b.f.int2(Int2::Mul, w, x, n as i32));
                let bits = v.bits + factor.bits;
                let product = LaneSequence { first, stride: v.stride * n as u64, bits: bits.min(own) };
                if bits > own && !self.prove_below(product, own)? {
                    return Ok(None);
                }
                Ok(Some(product))
            }
            Op2::And => {
                let (v, mask) = if a.is_uniform() { (b, a) } else { (a, b) };
                let Val::Const(mask) = mask.first else { return Ok(None) };
                let bits = mask.count_ones();
                if mask != low_mask(bits) || bits == 0 {
                    return Ok(None);
                }
                self.low_bits_of(v, bits)
            }
            _ => Ok(None),
        }
    }

    fn shifted_sequence(
        &mut self,
        shift: Shift,
        host_width: HostWidth,
        v: LaneSequence,
        n: u32,
    ) -> R<Option<LaneSequence>> {
        let own = narrow(host_width).bits();
        if n >= v.bits && shift == Shift::Right {
            return Ok(Some(LaneSequence::uniform(Val::Const(0), 0)));
        }
        if n >= own || host_width == HostWidth::W128 {
            return Ok(None);
        }
        let (w, first) = (width(host_width), self.first_of(v)?);
        if shift == Shift::Right {
            let exact = v.stride.is_multiple_of(1 << n.min(63));
            if !exact && self.low_bits_of(v, n)?.is_none() {
                return Ok(None);
            }
            let first = if n == 0 { first } else { self.b.f.int2(Int2::Shr, w, first, n as i32) };
            let stride = if exact { v.stride >> n } else { 0 };
            return Ok(Some(LaneSequence { first: Val::Uniform(first), stride, bits: v.bits - n }));
        }
        if n > 16 || v.stride << n > MAX_STRIDE {
            return Ok(None);
        }
        let first = if n == 0 { first } else { self.b.f.int2(Int2::Shl, w, first, n as i32) };
        let bits = v.bits + n;
        let v = LaneSequence { first: Val::Uniform(first), stride: v.stride << n, bits: bits.min(own) };
        if bits > own && !self.prove_below(v, own)? {
            return Ok(None);
        }
        Ok(Some(v))
    }

    /// Compares: the result is uniform, or code continues at the general code.
    fn compared_sequences(
        &mut self,
        op: Compare,
        int: Int,
        host_width: HostWidth,
        [a, b]: [LaneSequence; 2],
    ) -> R<Option<LaneSequence>> {
        let boolean = |v: Val| Ok(Some(LaneSequence::uniform(v, 1)));
        let own = narrow(host_width);
        if host_width == HostWidth::W128 && (a.bits > 64 || b.bits > 64) {
            return Ok(None);
        }
        if let (true, Val::Const(bound)) = (b.is_uniform(), b.first)
            && (!int.signed || a.bits < int.width && b.bits < int.width)
        {
            // A carry out of a sum.
            let beyond = a.bits < b.bits || bound == 0 && a.bits == 0;
            match op {
                Compare::Ge | Compare::Gt if beyond => {
                    return boolean(Val::Const((op == Compare::Ge && bound == 0) as u128));
                }
                Compare::Ne if a.bits == 0 => return boolean(Val::Const((bound != 0) as u128)),
                Compare::Eq if a.bits == 0 => return boolean(Val::Const((bound == 0) as u128)),
                Compare::Ge if bound.is_power_of_two() && a.bits == b.bits && b.bits <= 63 => {
                    let n = b.bits - 1;
                    let Some(above) = self.shifted_sequence(Shift::Right, HostWidth::W64, a, n)? else {
                        return Ok(None);
                    };
                    if !above.is_uniform() {
                        return Ok(None);
                    }
                    let v = self.b.uniform(above.first, HostWidth::W64)?;
                    return boolean(Val::Bool(v));
                }
                _ => {}
            }
        }
        let ordered = !matches!(op, Compare::Eq | Compare::Ne);
        let signed = ordered && int.signed && (a.bits >= int.width || b.bits >= int.width);
        if signed && int.width != own.bits() {
            return Ok(None);
        }
        let w = width(own);
        let (mut op, [mut a, mut b]) = (op, [a, b]);
        if a.is_uniform() && !b.is_uniform() {
            (a, b) = (b, a);
            op = match op {
                Compare::Lt => Compare::Gt,
                Compare::Le => Compare::Ge,
                Compare::Gt => Compare::Lt,
                Compare::Ge => Compare::Le,
                op => op,
            };
        }
        if !b.is_uniform() {
            return Ok(None);
        }
        let cc = condition(op, signed);
        let (first, bound) = (self.first_of(a)?, self.first_of(b)?);
        if a.is_uniform() {
            let v = self.b.f.compare(cc, w, first, bound);
            return boolean(Val::Bool(v));
        }
        let Some(abandon) = self.abandon() else { return Ok(None) };
        let span = self.span(a.stride);
        if !ordered {
            // No lane has this value.
            let distance = self.b.f.int2(Int2::Sub, w, bound, first);
            self.b.f.branch(Cc::LeU, w, distance, span as i32, abandon);
            return boolean(Val::Const((op == Compare::Ne) as u128));
        }
        if signed && self.low_bits_of(a, int.width - 1)?.is_none() {
            return Ok(None);
        }
        let last = self.b.f.int2(Int2::Add, w, first, span as i32);
        let [v, of_last] = [first, last].map(|v| self.b.f.compare(cc, w, v, bound));
        self.b.f.branch(Cc::Ne, Width::W32, v, of_last, abandon);
        boolean(Val::Bool(v))
    }

    /// Returns the low bits of a sequence, which are a sequence, too.
    pub fn low_bits_of(&mut self, v: LaneSequence, bits: u32) -> R<Option<LaneSequence>> {
        if v.bits <= bits {
            return Ok(Some(v));
        }
        if bits == 0 || bits >= 64 {
            return Ok(None);
        }
        if let (Val::Const(value), true) = (v.first, v.is_uniform()) {
            return Ok(Some(LaneSequence::uniform(Val::Const(value & low_mask(bits)), bits)));
        }
        let first = self.first_of(v)?;
        let found = self.sequences.active.as_ref().and_then(|active| active.low_bits.get(&(first, bits)));
        let low = match (found, bits) {
            (Some(low), _) => *low,
            (None, 32) => self.b.f.int1(Int1::ZeroExtend32, Width::W32, first),
            (None, 0..32) => self.b.f.int2(Int2::And, Width::W32, first, (u32::MAX >> (32 - bits)) as i32),
            (None, _) => {
                let mask = self.b.f.iconst(u64::MAX >> (64 - bits));
                self.b.f.int2(Int2::And, Width::W64, first, mask)
            }
        };
        if let Some(active) = &mut self.sequences.active {
            active.low_bits.insert((first, bits), low);
        }
        let v = LaneSequence { first: Val::Uniform(low), stride: v.stride, bits };
        Ok(self.prove_below(v, bits)?.then_some(v))
    }

    /// Emits the test that all lanes are below `1 << bits`, which lane 0 is. Returns false if they never are.
    fn prove_below(&mut self, v: LaneSequence, bits: u32) -> R<bool> {
        if v.is_uniform() {
            return Ok(true);
        }
        let (first, span) = (self.first_of(v)?, self.span(v.stride));
        let Some(active) = &mut self.sequences.active else { return Ok(false) };
        if !active.proven.insert((first, v.stride, bits)) {
            return Ok(true);
        }
        let abandon = active.abandon;
        let (w, most) = match bits {
            64 => (Width::W64, -(span as i64) - 1),
            32 => (Width::W32, -(span as i64) - 1),
            0..32 if span < 1 << bits => (Width::W32, (1i64 << bits) - 1 - span as i64),
            33..64 => {
                let most = self.b.f.iconst((1u64 << bits) - 1 - span);
                self.b.f.branch(Cc::GtU, Width::W64, first, most, abandon);
                return Ok(true);
            }
            _ => return Ok(false),
        };
        self.b.f.branch(Cc::GtU, w, first, Src::Imm(most as i32), abandon);
        Ok(true)
    }

    /// Returns where the general code of the block begins, if nothing has had an effect yet.
    fn abandon(&self) -> Option<Label> {
        self.sequences.active.as_ref().map(|active| active.abandon)
    }

    /// Returns lane 0's value as an integer.
    fn first_of(&mut self, v: LaneSequence) -> R<V> {
        self.b.uniform(v.first, HostWidth::W64)
    }
}

/// Returns whether a value is not an integer that is computed from uniform ones.
fn is_unusual(v: &Value) -> bool {
    matches!(
        v.kind,
        ValueKind::Float { .. }
            | ValueKind::FloatBits { .. }
            | ValueKind::Conversion(..)
            | ValueKind::Convert { .. }
            | ValueKind::Pow { .. }
            | ValueKind::Simd { .. }
            | ValueKind::SimdResult { .. }
            | ValueKind::Pure { .. }
            | ValueKind::Loaded { .. }
            | ValueKind::Load { .. }
            | ValueKind::State(State::LaneId | State::Mode)
    )
}
