//! Lowers values of the lane-loop representation: one node, a few instructions.

use crate::arith::builder::{Bug, R};
use crate::arith::ops::{condition, width};
use crate::arith::shift::ShiftCount;
use crate::arith::val::{Val, low_mask};
use crate::lowering::{Count, Lowering, Shift, SourceBit, recognise};
use crate::state::emitter::Emitter;
use isa_lower::ir::*;
use isa_spec::pcode::ir::State;
use wavesim_machine::exec::op::Op;
use wavesim_x64::inst::{Int1, V};

impl Emitter<'_> {
    /// Lowers a value.
    pub fn value(&mut self, value: &Value) -> R<Val> {
        let host_width = value.host_width;
        let (lowering, _) = recognise(value)?;
        match lowering {
            Lowering::Ieee => Ok(Val::Const(self.context.ieee as u128)),
            Lowering::Mode => Err(Bug("MODE")),
            Lowering::Const(bits) => Ok(Val::Const(bits & low_mask(host_width.bits()))),
            Lowering::Var(var) => Ok(self.env.var(var)),
            Lowering::Element(id, index) => {
                let Val::Const(index) = self.value(index)? else { return Err(Bug("an index")) };
                Ok(self.env.elements.get(&(id, index as u32)).copied().unwrap_or(Val::Const(0)))
            }
            Lowering::Loaded => self.env.memory_value.ok_or(Bug("a loaded value")),
            Lowering::Load { addr, bytes } => self.scalar_load(addr, bytes),
            Lowering::Field(field) => {
                let op = self.env.op(self.ops);
                Ok(Val::Const(field.of(&op, &self.exts[op.ext as usize]) as u128))
            }
            Lowering::SourceBit(field, source) => Ok(Val::Const(self.source_bit(field, source) as u128)),
            Lowering::SourceNumber(at) => Ok(Val::Const(self.env.op(self.ops).src[at].number() as u128)),
            Lowering::DestinationNumber => Ok(Val::Const(self.env.op(self.ops).d as u128)),
            Lowering::State(state) => self.state(state, host_width),
            Lowering::Carry => self.env.carry.ok_or(Bug("a mask")),
            Lowering::Operand { slot, dwords, how } => self.operand(slot, dwords, how),
            Lowering::OperandLane { source, lane, index } => {
                let lane = self.value(lane)?;
                self.read_lane_operand(source, lane, index)
            }
            Lowering::Resize(inner) if host_width == HostWidth::W32 => self.low_word(inner),
            Lowering::Resize(inner) => {
                let v = self.value(inner)?;
                self.resize(v, inner.host_width, host_width)
            }
            Lowering::SignExtend(inner, width) => self.sign_extended(inner, width, host_width),
            Lowering::Op1(op, inner) => {
                let v = self.value(inner)?;
                self.op1(op, inner.host_width, v)
            }
            Lowering::SignedSum([a, b, c]) => {
                let terms = [self.value(a)?, self.value(b)?, self.value(c)?];
                self.signed_sum(terms)
            }
            Lowering::Op2(op, a, b) => {
                let (x, y) = (self.value(a)?, self.value(b)?);
                self.op2(op, host_width, x, y)
            }
            Lowering::Shift(shift, inner, Count::Const(n)) => {
                let v = self.value(inner)?;
                self.shift(shift, host_width, v, Val::Const(n as u128))
            }
            Lowering::Shift(shift, inner, Count::Value(n)) => {
                let (v, n) = (self.value(inner)?, self.shift_count(n, host_width)?);
                self.shift(shift, host_width, v, n)
            }
            Lowering::ShiftSigned { value: inner, count, width } => {
                let (a, n) =
                    (self.sign_extended(inner, width, host_width)?, self.shift_count(count, host_width)?);
                self.shift(Shift::Arithmetic, host_width, a, n)
            }
            Lowering::Compare(op, int, a, b) => self.compare(op, int, a, b),
            Lowering::LogicalAnd(a, b) => self.logical(true, a, b),
            Lowering::LogicalOr(a, b) => self.logical(false, a, b),
            Lowering::Select([c, a, b]) => {
                let cond = self.value(c)?;
                let cond = self.boolean(cond, c.host_width)?;
                if let Val::Const(bits) = cond {
                    return self.value(if bits != 0 { a } else { b });
                }
                let only = match cond {
                    Val::Mask(mask) => Some(mask),
                    _ => None,
                };
                let before = std::mem::replace(&mut self.demanded, only);
                let a = self.value(a);
                self.demanded = before;
                let (a, b) = (a?, self.value(b)?);
                self.select(cond, host_width, a, b)
            }
            Lowering::Extract { value: inner, lo } => {
                let (v, lo) = (self.value(inner)?, self.shift_count(lo, inner.host_width)?);
                let v = self.shift(Shift::Right, inner.host_width, v, lo)?;
                self.resize(v, inner.host_width, host_width)
            }
            Lowering::Insert { old, value: new, lo, width } => {
                let (old, new) = (self.value(old)?, self.value(new)?);
                let (lo, mask) = (
                    self.shift_count(lo, host_width)?,
                    Val::Const(low_mask(width) & low_mask(host_width.bits())),
                );
                let new = self.op2(Op2::And, host_width, new, mask)?;
                let (new, mask) = (
                    self.shift(Shift::Left, host_width, new, lo)?,
                    self.shift(Shift::Left, host_width, mask, lo)?,
                );
                let rest = self.op1(Op1::Not, host_width, mask)?;
                let kept = self.op2(Op2::And, host_width, old, rest)?;
                self.op2(Op2::Or, host_width, kept, new)
            }
            Lowering::Concat(parts) => {
                if let (HostWidth::W64, Some([low, high])) = (host_width, concatenated_words(parts)) {
                    let (low, high) = (self.value(low)?, self.value(high)?);
                    if low.is_varying() || high.is_varying() {
                        let (low, high) = (self.lanes(low)?, self.lanes(high)?);
                        return Ok(Val::Lanes64(self.join_words(low, high)));
                    }
                }
                let mut all = Val::Const(0);
                for (part, lo) in parts {
                    let v = self.value(part)?;
                    let v = self.shift(Shift::Left, host_width, v, Val::Const(*lo as u128))?;
                    all = self.op2(Op2::Or, host_width, all, v)?;
                }
                Ok(all)
            }
            Lowering::Saturate { value: inner, from, to } => {
                if self.env.op(self.ops).flags & Op::CLAMP != 0 {
                    return self.saturate(inner, from, to, host_width);
                }
                if to.width <= 32 && host_width == HostWidth::W32 {
                    let v = self.low_word(inner)?;
                    return self.op2(Op2::And, host_width, v, Val::Const(low_mask(to.width)));
                }
                let v = self.value(inner)?;
                let v = self.op2(Op2::And, inner.host_width, v, Val::Const(low_mask(to.width)))?;
                self.resize(v, inner.host_width, host_width)
            }
            Lowering::Arithmetic(op, format, args) => {
                let args = self.values(args)?;
                self.float(op, format, &args)
            }
            Lowering::HalfArithmetic(op, args) => {
                let args = self.values(args)?;
                self.float_f16(op, &args)
            }
            Lowering::FloatBits(op, ty, inner) => {
                let v = self.value(inner)?;
                self.float_bits(op, ty, inner.host_width, v)
            }
            Lowering::Conversion(conversion, inner) => {
                let v = self.value(inner)?;
                self.conversion(conversion, v)
            }
            Lowering::Function(function, args) => {
                let args = self.values(args)?;
                self.call_per_lane(function, &args)
            }
            Lowering::TrigPreop(a, n) => {
                let (a, n) = (self.value(a)?, self.value(n)?);
                self.trig_preop(a, n)
            }
            Lowering::SelectBytes(args) => {
                let [a, b, c] = args;
                let args = [self.value(a)?, self.value(b)?, self.value(c)?];
                self.byte_permute(args)
            }
            Lowering::VectorRead(read, at) => self.vector_read(read, at),
            Lowering::CallResult(call) => {
                self.env.calls.get(call).copied().ok_or(Bug("the result of a call"))
            }
        }
    }

    fn values(&mut self, values: &[Value]) -> R<Vec<Val>> {
        values.iter().map(|value| self.value(value)).collect()
    }

    /// Returns a source's bit of a field.
    fn source_bit(&self, field: SourceBit, source: usize) -> u32 {
        let op = self.env.op(self.ops);
        let bits = &self.exts[op.ext as usize].by_source;
        match field {
            SourceBit::Neg => bits.neg()[source],
            SourceBit::NegHi => bits.neg_hi()[source],
            SourceBit::OpSel => bits.op_sel()[source],
            SourceBit::OpSelHi => bits.op_sel_hi()[source],
        }
    }

    /// Lowers the low 32 bits of a value, computing only what they depend on: most 64-bit sums are there for
    /// a carry or for saturation.
    fn low_word(&mut self, value: &Value) -> R<Val> {
        let host_width = HostWidth::W32;
        if value.host_width == host_width {
            return self.value(value);
        }
        match &value.kind {
            ValueKind::Const(bits) => Ok(Val::Const(bits & low_mask(32))),
            ValueKind::Resize(inner) => self.low_word(inner),
            ValueKind::SignExtend { value: inner, width } if inner.host_width == host_width => {
                self.sign_extended(inner, *width, host_width)
            }
            ValueKind::Op2(op, a, b) => {
                let (a, b) = (self.low_word(a)?, self.low_word(b)?);
                self.op2(*op, host_width, a, b)
            }
            ValueKind::ShlConst(inner, n) => {
                let v = self.low_word(inner)?;
                self.shift(Shift::Left, host_width, v, Val::Const(*n as u128))
            }
            ValueKind::ShrConst(inner, 32) if value.host_width == HostWidth::W64 => {
                match self.value(inner)? {
                    Val::Lanes64(v) => Ok(Val::Lanes(self.high_words(v))),
                    v => {
                        let v = self.shift(Shift::Right, HostWidth::W64, v, Val::Const(32))?;
                        self.resize(v, HostWidth::W64, host_width)
                    }
                }
            }
            ValueKind::Shr(inner, n) if value.host_width == HostWidth::W64 => self.shifted_low_word(inner, n),
            ValueKind::Select(cond, a, b) => {
                let v = self.value(cond)?;
                let cond = self.boolean(v, cond.host_width)?;
                let (a, b) = (self.low_word(a)?, self.low_word(b)?);
                self.select(cond, host_width, a, b)
            }
            _ => {
                let v = self.value(value)?;
                self.resize(v, value.host_width, host_width)
            }
        }
    }

    /// Lowers a shift count, and records whether it is known to be below the host width.
    pub fn shift_count(&mut self, count: &Value, host_width: HostWidth) -> R<ShiftCount> {
        let below = |v: &Value| match v.kind {
            ValueKind::Const(bits) => bits < host_width.bits() as u128,
            _ => false,
        };
        let in_range = match &count.kind {
            ValueKind::Op2(Op2::And, a, b) => below(a) || below(b),
            _ => below(count),
        };
        let v = self.value(count)?;
        let v = self.resize(v, count.host_width, HostWidth::W32)?;
        Ok(ShiftCount { v, in_range })
    }

    /// Lowers the low word of a 64-bit right shift.
    pub fn shifted_low_word(&mut self, inner: &Value, n: &Value) -> R<Val> {
        let host_width = HostWidth::W32;
        let (v, n) = (self.value(inner)?, self.shift_count(n, host_width)?);
        match v {
            Val::Lanes64(v) if n.in_range => {
                // For a count of 0, the high word contributes nothing: a left shift by 32 shifts everything
                // out.
                let (low, high) = (self.low_words(v), self.high_words(v));
                let more = self.op2(Op2::Sub, host_width, Val::Const(32), n.v)?;
                let low = self.shift(Shift::Right, host_width, Val::Lanes(low), n)?;
                let high = self.shift(Shift::Left, host_width, Val::Lanes(high), more)?;
                self.op2(Op2::Or, host_width, low, high)
            }
            v => {
                let v = self.shift(Shift::Right, HostWidth::W64, v, n)?;
                self.resize(v, HostWidth::W64, host_width)
            }
        }
    }

    fn state(&mut self, state: State, host_width: HostWidth) -> R<Val> {
        let lanes = 32u128 << self.wave64 as u32;
        Ok(match state {
            State::LaneId => return self.lane_id(),
            State::Wave32 => Val::Const(!self.wave64 as u128),
            State::Wave64 => Val::Const(self.wave64 as u128),
            State::WaveSize => Val::Const(lanes),
            // A lane must see the state before the instruction, which the loop over lanes does not keep.
            _ if self.packet.is_some() => return Err(Bug("state in a lane")),
            _ => {
                let v = self.wave_state(state)?;
                let own = self.state_width(state);
                self.resize(v, own, host_width)?
            }
        })
    }

    fn sign_extended(&mut self, inner: &Value, bits: u32, host_width: HostWidth) -> R<Val> {
        let v = self.value(inner)?;
        let from = inner.host_width;
        let v = self.signed(v, from, bits)?;
        if from == host_width {
            return Ok(v);
        }
        Ok(match (v, host_width) {
            (Val::Const(bits), _) => {
                let above = 128 - from.bits();
                Val::Const(((bits << above) as i128 >> above) as u128 & low_mask(host_width.bits()))
            }
            (Val::Uniform(v), HostWidth::W64) if from == HostWidth::W32 => {
                Val::Uniform(self.b.f.int1(Int1::SignExtend32, width(host_width), v))
            }
            (Val::Lanes(v), HostWidth::W64) => {
                let v = self.flush_pending(v);
                Val::Lanes64(self.extend(v, true))
            }
            (v, HostWidth::W32 | HostWidth::W64) => self.resize(v, from, host_width)?,
            (_, HostWidth::W128) => return Err(Bug("128 bits")),
        })
    }

    fn logical(&mut self, and: bool, a: &Value, b: &Value) -> R<Val> {
        let (x, y) = (self.value(a)?, self.value(b)?);
        let (x, y) = (self.boolean(x, a.host_width)?, self.boolean(y, b.host_width)?);
        self.logical_op(and, x, y)
    }

    fn compare(&mut self, op: Compare, int: Int, a: &Value, b: &Value) -> R<Val> {
        let host_width = a.host_width;
        let (mut x, mut y) = (self.value(a)?, self.value(b)?);
        let ordered = !matches!(op, Compare::Eq | Compare::Ne);
        if int.signed && ordered {
            (x, y) = (self.signed(x, host_width, int.width)?, self.signed(y, host_width, int.width)?);
        }
        if let (HostWidth::W64, Compare::Ge, Val::Lanes64(sum), Val::Const(0x1_0000_0000)) =
            (host_width, op, x, y)
            && let Some(carry) = self.b.facts.carries.get(&sum)
        {
            return Ok(Val::Mask(*carry));
        }
        if let (Compare::Ne | Compare::Eq, Val::Const(0)) = (op, y) {
            let cond = self.boolean(x, host_width)?;
            return if op == Compare::Ne { Ok(cond) } else { self.op1(Op1::IsZero, HostWidth::W32, cond) };
        }
        if let (Val::Const(a), Val::Const(b)) = (x, y) {
            let above = 128 - host_width.bits();
            let key = |v: u128| if int.signed { (v << above) as i128 >> above } else { v as i128 };
            let holds = match op {
                Compare::Eq => a == b,
                Compare::Ne => a != b,
                Compare::Lt => key(a) < key(b),
                Compare::Le => key(a) <= key(b),
                Compare::Gt => key(a) > key(b),
                Compare::Ge => key(a) >= key(b),
            };
            return if host_width == HostWidth::W128 {
                Err(Bug("128 bits"))
            } else {
                Ok(Val::Const(holds as u128))
            };
        }
        if host_width == HostWidth::W128 {
            return Err(Bug("128 bits"));
        }
        let cc = condition(op, int.signed);
        self.compare_op(host_width, x, y, |e, host_width, a, b| e.icmp(cc, host_width, a, b))
    }

    /// Returns a uniform boolean as an integer, for branches.
    pub fn branch_on(&mut self, cond: Val) -> R<V> {
        match cond {
            Val::Bool(v) => Ok(v),
            Val::Const(bits) => Ok(self.b.f.iconst((bits != 0) as u64)),
            _ => Err(Bug("a branch on a varying condition")),
        }
    }
}

/// Returns the low and the high word of a 64-bit concatenation of two words.
fn concatenated_words(parts: &[(Value, u32)]) -> Option<[&Value; 2]> {
    let word = |at: u32| {
        let (part, _) = parts.iter().find(|(_, lo)| *lo == at)?;
        match &part.kind {
            ValueKind::Resize(inner) if inner.host_width == HostWidth::W32 => Some(&**inner),
            _ => None,
        }
    };
    if parts.len() == 2 { Some([word(0)?, word(32)?]) } else { None }
}
