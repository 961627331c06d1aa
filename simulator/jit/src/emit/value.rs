//! Lowers values of the lane-loop representation: one node, a few instructions.

use super::known::Bits;
use super::ops::{Shift, width};
use super::val::{Val, low};
use super::{Emitter, R, Unsupported};
use crate::lanes as functions;
use crate::mode::is_ieee_bit;
use crate::sums;
use isa_lower::ir::*;
use isa_spec::pcode::ir::{Pure, State};
use wavesim_machine::exec::op::Op;
use wavesim_x64::inst::{Cc, Int1, Int2, V};

impl Emitter<'_> {
    /// Lowers a value.
    pub fn value(&mut self, value: &Value) -> R<Val> {
        let hold = value.hold;
        if is_ieee_bit(value) {
            return Ok(Val::Known(self.machine.ieee as u128));
        }
        match &value.kind {
            ValueKind::Const(bits) => Ok(Val::Known(*bits & low(hold.bits()))),
            ValueKind::Var(var) => Ok(self.env.var(*var)),
            ValueKind::Element(id, index) => {
                let Val::Known(index) = self.value(index)? else { return Err(Unsupported("an index")) };
                Ok(self.env.elements.get(&(*id, index as u32)).copied().unwrap_or(Val::Known(0)))
            }
            ValueKind::Loaded { .. } => self.env.moved.ok_or(Unsupported("what is not loaded")),
            ValueKind::Load { addr, bytes, .. } => self.wave_load(addr, *bytes),
            ValueKind::Field(name) => self.field(name).map(Val::Known),
            ValueKind::SourceBit { field, source } => self.source_bit(field, *source),
            ValueKind::OperandNumber(Slot::Source(at)) => {
                Ok(Val::Known(self.env.op(self.ops).src[*at].number() as u128))
            }
            ValueKind::OperandNumber(_) => Ok(Val::Known(self.env.op(self.ops).d as u128)),
            ValueKind::State(state) => self.state(*state, hold),
            ValueKind::LaneBit(mask) => self.lane_bit(*mask),
            ValueKind::Scalar { slot, dwords, how } => self.operand(*slot, *dwords, *how),
            ValueKind::OperandLane { slot: Slot::Source(at), lane, index } => {
                let (lane, index) = (self.value(lane)?, self.value(index)?);
                let Val::Known(index) = index else {
                    return Err(Unsupported("a register by a computed number"));
                };
                self.operand_lane(*at, lane, index as u32)
            }
            ValueKind::Resize(inner) if hold == Hold::W32 => self.low_word(inner),
            ValueKind::Resize(inner) => {
                let v = self.value(inner)?;
                self.resized(v, inner.hold, hold)
            }
            ValueKind::SignExtend { value: inner, width } => self.sign_extended(inner, *width, hold),
            ValueKind::Op1(op, inner) => {
                let v = self.value(inner)?;
                self.op1(*op, inner.hold, v)
            }
            ValueKind::Op2(..) if hold == Hold::W128 && sums::signed(value).is_some() => {
                let Some([a, b, c]) = sums::signed(value) else { return Err(Unsupported("128 bits")) };
                let terms = [self.value(a)?, self.value(b)?, self.value(c)?];
                self.signed_sum(terms)
            }
            ValueKind::Op2(op, a, b) => {
                let (x, y) = (self.value(a)?, self.value(b)?);
                self.op2(*op, hold, x, y)
            }
            ValueKind::ShlConst(inner, n) => {
                let v = self.value(inner)?;
                self.shifted(Shift::Left, hold, v, Val::Known(*n as u128))
            }
            ValueKind::ShrConst(inner, n) => {
                let v = self.value(inner)?;
                self.shifted(Shift::Right, hold, v, Val::Known(*n as u128))
            }
            ValueKind::Shl(a, n) => {
                let (a, n) = (self.value(a)?, self.bounded(n, hold)?);
                self.shifted(Shift::Left, hold, a, n)
            }
            ValueKind::Shr(a, n) => {
                let (a, n) = (self.value(a)?, self.bounded(n, hold)?);
                self.shifted(Shift::Right, hold, a, n)
            }
            ValueKind::Sar { value: inner, count, width } => {
                let (a, n) = (self.sign_extended(inner, *width, hold)?, self.bounded(count, hold)?);
                self.shifted(Shift::Arithmetic, hold, a, n)
            }
            ValueKind::Compare { op, int, a, b } => self.compare(*op, *int, a, b),
            ValueKind::LogicalAnd(a, b) => self.logical(true, a, b),
            ValueKind::LogicalOr(a, b) => self.logical(false, a, b),
            ValueKind::Select(c, a, b) => {
                let cond = self.value(c)?;
                let truth = self.truth(cond, c.hold)?;
                if let Val::Known(bits) = truth {
                    return self.value(if bits != 0 { a } else { b });
                }
                let only = match truth {
                    Val::Mask(mask) => Some(mask),
                    _ => None,
                };
                let before = std::mem::replace(&mut self.only, only);
                let a = self.value(a);
                self.only = before;
                let (a, b) = (a?, self.value(b)?);
                self.chosen(truth, hold, a, b)
            }
            ValueKind::Extract { value: inner, lo } => {
                let (v, lo) = (self.value(inner)?, self.bounded(lo, inner.hold)?);
                let v = self.shifted(Shift::Right, inner.hold, v, lo)?;
                self.resized(v, inner.hold, hold)
            }
            ValueKind::Insert { old, value: new, lo, width } => {
                let (old, new) = (self.value(old)?, self.value(new)?);
                let (lo, mask) = (self.bounded(lo, hold)?, Val::Known(low(*width) & low(hold.bits())));
                let new = self.op2(Op2::And, hold, new, mask)?;
                let (new, mask) =
                    (self.shifted(Shift::Left, hold, new, lo)?, self.shifted(Shift::Left, hold, mask, lo)?);
                let rest = self.op1(Op1::Not, hold, mask)?;
                let kept = self.op2(Op2::And, hold, old, rest)?;
                self.op2(Op2::Or, hold, kept, new)
            }
            ValueKind::Concat(parts) => {
                if let (Hold::W64, Some([low, high])) = (hold, words_of(parts)) {
                    let (low, high) = (self.value(low)?, self.value(high)?);
                    if low.varies() || high.varies() {
                        let (low, high) = (self.lanes(low)?, self.lanes(high)?);
                        return Ok(Val::Wide(self.joined(low, high)));
                    }
                }
                let mut all = Val::Known(0);
                for (part, lo) in parts {
                    let v = self.value(part)?;
                    let v = self.shifted(Shift::Left, hold, v, Val::Known(*lo as u128))?;
                    all = self.op2(Op2::Or, hold, all, v)?;
                }
                Ok(all)
            }
            ValueKind::Saturate { value: inner, from, to } => {
                if self.env.op(self.ops).flags & Op::CLAMP != 0 {
                    return self.saturated(inner, *from, *to, hold);
                }
                if to.width <= 32 && hold == Hold::W32 {
                    let v = self.low_word(inner)?;
                    return self.op2(Op2::And, hold, v, Val::Known(low(to.width)));
                }
                let v = self.value(inner)?;
                let v = self.op2(Op2::And, inner.hold, v, Val::Known(low(to.width)))?;
                self.resized(v, inner.hold, hold)
            }
            ValueKind::Float { op, ty, args } if functions::float(*op, *ty, self.flush).is_some() => {
                let args = args.iter().map(|arg| self.value(arg)).collect::<R<Vec<Val>>>()?;
                let function = functions::float(*op, *ty, self.flush).ok_or(Unsupported("a function"))?;
                self.by_lane(function, &args)
            }
            ValueKind::Float { op: FloatOp::TrigPreop, args, .. } => {
                let (a, n) = (self.value(&args[0])?, self.value(&args[1])?);
                self.segment(a, n)
            }
            ValueKind::Float { op, ty, args } => self.float(*op, *ty, args),
            ValueKind::FloatBits { op, ty, value: inner } => {
                let v = self.value(inner)?;
                self.float_bits(*op, *ty, inner.hold, v)
            }
            ValueKind::Conversion(conversion, inner) => {
                let v = self.value(inner)?;
                match functions::conversion(*conversion, self.flush) {
                    Some(function) => self.by_lane(function, &[v]),
                    None => self.conversion(*conversion, v),
                }
            }
            ValueKind::Simd { builtin: Pure::SelectBytes, args, .. } => {
                let args = [self.value(&args[0])?, self.value(&args[1])?, self.value(&args[2])?];
                self.select_bytes(args)
            }
            ValueKind::VectorRead { read, at } => self.vector_read(*read, at),
            ValueKind::SimdResult { call } => {
                self.env.calls.get(*call).copied().ok_or(Unsupported("a call that was not made"))
            }
            _ => Err(Unsupported("a value that only the interpreter has")),
        }
    }

    /// Lowers the low 32 bits of a value, computing only what they depend on: most 64-bit sums are there for
    /// a carry or for saturation.
    fn low_word(&mut self, value: &Value) -> R<Val> {
        let hold = Hold::W32;
        if value.hold == hold {
            return self.value(value);
        }
        match &value.kind {
            ValueKind::Const(bits) => Ok(Val::Known(bits & low(32))),
            ValueKind::Resize(inner) => self.low_word(inner),
            ValueKind::SignExtend { value: inner, width } if inner.hold == hold => {
                self.sign_extended(inner, *width, hold)
            }
            ValueKind::Op2(op, a, b) => {
                let (a, b) = (self.low_word(a)?, self.low_word(b)?);
                self.op2(*op, hold, a, b)
            }
            ValueKind::ShlConst(inner, n) => {
                let v = self.low_word(inner)?;
                self.shifted(Shift::Left, hold, v, Val::Known(*n as u128))
            }
            ValueKind::ShrConst(inner, 32) if value.hold == Hold::W64 => match self.value(inner)? {
                Val::Wide(v) => Ok(Val::Lanes(self.high_words(v))),
                v => {
                    let v = self.shifted(Shift::Right, Hold::W64, v, Val::Known(32))?;
                    self.resized(v, Hold::W64, hold)
                }
            },
            ValueKind::Shr(inner, n) if value.hold == Hold::W64 => self.low_of_shifted(inner, n),
            ValueKind::Select(cond, a, b) => {
                let v = self.value(cond)?;
                let truth = self.truth(v, cond.hold)?;
                let (a, b) = (self.low_word(a)?, self.low_word(b)?);
                self.chosen(truth, hold, a, b)
            }
            _ => {
                let v = self.value(value)?;
                self.resized(v, value.hold, hold)
            }
        }
    }

    fn state(&mut self, state: State, hold: Hold) -> R<Val> {
        let lanes = 32u128 << self.wide_wave as u32;
        Ok(match state {
            State::LaneId => return self.lane_id(),
            State::Wave32 => Val::Known(!self.wide_wave as u128),
            State::Wave64 => Val::Known(self.wide_wave as u128),
            State::WaveSize => Val::Known(lanes),
            State::InstSize => Val::Known(4),
            // A lane must see the state before the instruction, which the loop over lanes does not keep.
            _ if self.packet.is_some() => return Err(Unsupported("state in a lane")),
            _ => {
                let v = self.wave_state(state)?;
                let own = self.state_hold(state);
                self.resized(v, own, hold)?
            }
        })
    }

    fn sign_extended(&mut self, inner: &Value, bits: u32, hold: Hold) -> R<Val> {
        let v = self.value(inner)?;
        let from = inner.hold;
        let v = self.signed(v, from, bits)?;
        if from == hold {
            return Ok(v);
        }
        Ok(match (v, hold) {
            (Val::Known(bits), _) => {
                let above = 128 - from.bits();
                Val::Known(((bits << above) as i128 >> above) as u128 & low(hold.bits()))
            }
            (Val::One(v), Hold::W64) if from == Hold::W32 => {
                Val::One(self.f.int1(Int1::SignExtend32, width(hold), v))
            }
            (Val::Lanes(v), Hold::W64) => {
                let v = self.exact(v);
                Val::Wide(self.extended(v, true))
            }
            (v, Hold::W32 | Hold::W64) => self.resized(v, from, hold)?,
            (_, Hold::W128) => return Err(Unsupported("128 bits")),
        })
    }

    /// Sign-extends the low `width` bits within a holder.
    pub fn signed(&mut self, v: Val, hold: Hold, width: u32) -> R<Val> {
        let above = hold.bits() - width;
        if above == 0 {
            return Ok(match v {
                Val::Truth(_) => Val::One(self.one(v, hold)?),
                Val::Mask(_) => Val::Lanes(self.lanes(v)?),
                v => v,
            });
        }
        let up = self.shifted(Shift::Left, hold, v, Val::Known(above as u128))?;
        self.shifted(Shift::Arithmetic, hold, up, Val::Known(above as u128))
    }

    pub fn op1(&mut self, op: Op1, hold: Hold, v: Val) -> R<Val> {
        if hold == Hold::W128 {
            return Err(Unsupported("128 bits"));
        }
        let bits = hold.bits();
        let result = match op {
            Op1::Not => match v {
                Val::Known(v) => return Ok(Val::Known(!v & low(bits))),
                v => return self.each(hold, v, |e, hold, v| e.bnot(hold, v)),
            },
            Op1::Neg => match v {
                Val::Known(v) => return Ok(Val::Known(v.wrapping_neg() & low(bits))),
                v => return self.each(hold, v, |e, hold, v| e.ineg(hold, v)),
            },
            Op1::IsZero => {
                return match self.truth(v, hold)? {
                    Val::Known(bits) => Ok(Val::Known((bits == 0) as u128)),
                    Val::Truth(v) => Ok(Val::Truth(self.f.int2(Int2::Xor, width(Hold::W32), v, 1))),
                    Val::Mask(v) => Ok(Val::Mask(self.bnot(Hold::W32, v))),
                    _ => Err(Unsupported("no truth")),
                };
            }
            Op1::CountOnes => self.each(hold, v, |e, hold, v| e.ones(hold, v))?,
            Op1::LeadingZeros { width } => {
                let more = (bits - width) as u64;
                self.each(hold, v, |e, hold, v| {
                    let n = e.leading_zeros(hold, v);
                    let more = e.constant(hold, more, n);
                    e.isub(hold, n, more)
                })?
            }
            Op1::TrailingZeros { width } => self.each(hold, v, |e, hold, v| {
                let n = e.trailing_zeros(hold, v);
                let most = e.constant(hold, width as u64, n);
                e.umin(n, most)
            })?,
            Op1::ReverseBits { width } => {
                let reversed = self.each(hold, v, |e, hold, v| e.reversed_bits(hold, v))?;
                return self.shifted(Shift::Right, hold, reversed, Val::Known((bits - width) as u128));
            }
        };
        // Counts have 32 bits.
        self.resized(result, hold, Hold::W32)
    }

    pub fn op2(&mut self, op: Op2, hold: Hold, a: Val, b: Val) -> R<Val> {
        let all = low(hold.bits());
        let bitwise = matches!(op, Op2::And | Op2::Or | Op2::Xor);
        match (op, a, b) {
            (_, Val::Known(a), Val::Known(b)) => {
                return Ok(Val::Known(
                    all & match op {
                        Op2::Add => a.wrapping_add(b),
                        Op2::Sub => a.wrapping_sub(b),
                        Op2::Mul => a.wrapping_mul(b),
                        Op2::And => a & b,
                        Op2::Or => a | b,
                        Op2::Xor => a ^ b,
                    },
                ));
            }
            (Op2::Add | Op2::Sub | Op2::Or | Op2::Xor, a, Val::Known(0)) => return Ok(a),
            (Op2::Add | Op2::Or | Op2::Xor, Val::Known(0), b) => return Ok(b),
            (Op2::And, a, Val::Known(m)) | (Op2::And, Val::Known(m), a) if m & all == all => return Ok(a),
            (Op2::And, Val::Known(0), _) | (Op2::And, _, Val::Known(0)) => return Ok(Val::Known(0)),
            // Booleans stay booleans.
            (Op2::And, a @ (Val::Truth(_) | Val::Mask(_)), Val::Known(m)) if m & 1 == 1 => return Ok(a),
            (_, Val::Mask(a), Val::Mask(b)) if bitwise => {
                return Ok(Val::Mask(match op {
                    Op2::And => self.band(Hold::W32, a, b),
                    Op2::Or => self.bor(Hold::W32, a, b),
                    _ => self.bxor(Hold::W32, a, b),
                }));
            }
            _ => {}
        }
        // Of 128-bit values, only 64 bits are represented; operations that carry into higher bits are not
        // compiled, except for one carry of a sum.
        if hold == Hold::W128 && !bitwise {
            return self.wide_sum(op, a, b);
        }
        let mut result = Bits::default();
        if let (Hold::W32, true, (Val::Lanes(v), Val::Known(bits)) | (Val::Known(bits), Val::Lanes(v))) =
            (hold, bitwise, (a, b))
        {
            let v = self.exact(v);
            if let (Op2::And, 0xffff, Some(half)) = (op, bits, self.known.low_halves.get(&v)) {
                return Ok(Val::Lanes(*half));
            }
            match self.by_bits(op, v, bits as u32) {
                Ok(val) => return Ok(val),
                Err(bits) => result = bits,
            }
        }
        let repeated = self.env.rounds > 1 && !a.varies() && !b.varies();
        let same = |done: &&(Op2, Hold, [Val; 2], Val)| (done.0, done.1, done.2) == (op, hold, [a, b]);
        if let Some((.., done)) = self.env.done.iter().find(same) {
            return Ok(*done);
        }
        let val = self.both(hold, a, b, |e, hold, a, b| match op {
            Op2::Add => e.iadd(hold, a, b),
            Op2::Sub => e.isub(hold, a, b),
            Op2::Mul => e.imul(hold, a, b),
            Op2::And => e.band(hold, a, b),
            Op2::Or => e.bor(hold, a, b),
            Op2::Xor => e.bxor(hold, a, b),
        })?;
        if repeated {
            self.env.done.push((op, hold, [a, b], val));
        }
        match (op, val) {
            (_, Val::Lanes(v)) => self.known.note_bits(v, result),
            (Op2::Add, Val::Wide(v)) => self.note_sum(v, a, b)?,
            _ => {}
        }
        Ok(val)
    }

    fn logical(&mut self, and: bool, a: &Value, b: &Value) -> R<Val> {
        let (x, y) = (self.value(a)?, self.value(b)?);
        let (x, y) = (self.truth(x, a.hold)?, self.truth(y, b.hold)?);
        self.either(and, x, y)
    }

    /// Combines two booleans by AND or OR.
    pub fn either(&mut self, and: bool, a: Val, b: Val) -> R<Val> {
        match (a, b) {
            (Val::Known(bits), other) | (other, Val::Known(bits)) => {
                return Ok(if (bits != 0) == and { other } else { Val::Known(!and as u128) });
            }
            (Val::Truth(a), Val::Truth(b)) => {
                let op = if and { Int2::And } else { Int2::Or };
                return Ok(Val::Truth(self.f.int2(op, width(Hold::W32), a, b)));
            }
            _ => {}
        }
        let (a, b) = (self.mask(a)?, self.mask(b)?);
        Ok(Val::Mask(if and { self.band(Hold::W32, a, b) } else { self.bor(Hold::W32, a, b) }))
    }

    fn compare(&mut self, op: Compare, int: Int, a: &Value, b: &Value) -> R<Val> {
        let hold = a.hold;
        let (mut x, mut y) = (self.value(a)?, self.value(b)?);
        let ordered = !matches!(op, Compare::Eq | Compare::Ne);
        if int.signed && ordered {
            (x, y) = (self.signed(x, hold, int.width)?, self.signed(y, hold, int.width)?);
        }
        if let (Hold::W64, Compare::Ge, Val::Wide(sum), Val::Known(0x1_0000_0000)) = (hold, op, x, y)
            && let Some(carry) = self.known.carries.get(&sum)
        {
            return Ok(Val::Mask(*carry));
        }
        if let (Compare::Ne | Compare::Eq, Val::Known(0)) = (op, y) {
            let truth = self.truth(x, hold)?;
            return if op == Compare::Ne { Ok(truth) } else { self.op1(Op1::IsZero, Hold::W32, truth) };
        }
        if let (Val::Known(a), Val::Known(b)) = (x, y) {
            let above = 128 - hold.bits();
            let key = |v: u128| if int.signed { (v << above) as i128 >> above } else { v as i128 };
            let holds = match op {
                Compare::Eq => a == b,
                Compare::Ne => a != b,
                Compare::Lt => key(a) < key(b),
                Compare::Le => key(a) <= key(b),
                Compare::Gt => key(a) > key(b),
                Compare::Ge => key(a) >= key(b),
            };
            return if hold == Hold::W128 {
                Err(Unsupported("128 bits"))
            } else {
                Ok(Val::Known(holds as u128))
            };
        }
        if hold == Hold::W128 {
            return Err(Unsupported("128 bits"));
        }
        let cc = match (op, int.signed) {
            (Compare::Eq, _) => Cc::Eq,
            (Compare::Ne, _) => Cc::Ne,
            (Compare::Lt, true) => Cc::LtS,
            (Compare::Le, true) => Cc::LeS,
            (Compare::Gt, true) => Cc::GtS,
            (Compare::Ge, true) => Cc::GeS,
            (Compare::Lt, false) => Cc::LtU,
            (Compare::Le, false) => Cc::LeU,
            (Compare::Gt, false) => Cc::GtU,
            (Compare::Ge, false) => Cc::GeU,
        };
        self.compared(hold, x, y, |e, hold, a, b| e.icmp(cc, hold, a, b))
    }

    /// Returns a uniform boolean as an integer, for branches.
    pub fn branch_on(&mut self, truth: Val) -> R<V> {
        match truth {
            Val::Truth(v) => Ok(v),
            Val::Known(bits) => Ok(self.f.iconst((bits != 0) as u64)),
            _ => Err(Unsupported("a branch by a lane")),
        }
    }
}

/// Returns the low and the high word of a 64-bit concatenation of two words.
fn words_of(parts: &[(Value, u32)]) -> Option<[&Value; 2]> {
    let word = |at: u32| {
        let (part, _) = parts.iter().find(|(_, lo)| *lo == at)?;
        match &part.kind {
            ValueKind::Resize(inner) if inner.hold == Hold::W32 => Some(&**inner),
            _ => None,
        }
    };
    if parts.len() == 2 { Some([word(0)?, word(32)?]) } else { None }
}
