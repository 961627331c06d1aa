//! Values of the lane-loop representation: one node, a few instructions.

use super::val::{Val, low};
use super::{Emitter, R, Unsupported, ins};
use cranelift_codegen::cursor::{Cursor, FuncCursor};
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::{I8, I8X16, I32, I32X4};
use cranelift_codegen::ir::{InstBuilder, Value as V};
use isa_lower::ir::*;
use isa_spec::pcode::ir::{Pure, State};
use wavesim_machine::exec::op::Op;

impl Emitter<'_> {
    /// Emits a value.
    pub fn value(&mut self, value: &Value) -> R<Val> {
        let hold = value.hold;
        match &value.kind {
            ValueKind::Const(bits) => Ok(Val::Known(*bits & low(hold.bits()))),
            ValueKind::Var(var) => Ok(self.env.var(*var)),
            ValueKind::Field(name) => self.field(name).map(Val::Known),
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
                let (a, b) = (self.value(a)?, self.value(b)?);
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
                let mut all = Val::Known(0);
                for (part, lo) in parts {
                    let v = self.value(part)?;
                    let v = self.shifted(Shift::Left, hold, v, Val::Known(*lo as u128))?;
                    all = self.op2(Op2::Or, hold, all, v)?;
                }
                Ok(all)
            }
            ValueKind::Saturate { value: inner, to, .. } => {
                if self.env.op(self.ops).flags & Op::CLAMP != 0 {
                    return Err(Unsupported("clamp"));
                }
                if to.width <= 32 && hold == Hold::W32 {
                    let v = self.low_word(inner)?;
                    return self.op2(Op2::And, hold, v, Val::Known(low(to.width)));
                }
                let v = self.value(inner)?;
                let v = self.op2(Op2::And, inner.hold, v, Val::Known(low(to.width)))?;
                self.resized(v, inner.hold, hold)
            }
            ValueKind::Float { op, ty, args } => self.float(*op, *ty, args),
            ValueKind::FloatBits { op, ty, value: inner } => {
                let v = self.value(inner)?;
                self.float_bits(*op, *ty, inner.hold, v)
            }
            ValueKind::Conversion(conversion, inner) => {
                let v = self.value(inner)?;
                self.conversion(*conversion, v)
            }
            ValueKind::Simd { builtin: Pure::SelectBytes, args, .. } => {
                let args = [self.value(&args[0])?, self.value(&args[1])?, self.value(&args[2])?];
                self.select_bytes(args)
            }
            ValueKind::SimdResult { call } => {
                self.env.calls.get(*call).copied().ok_or(Unsupported("a call that was not made"))
            }
            _ => Err(Unsupported("a value that only the interpreter has")),
        }
    }

    /// The low 32 bits of a value. What they do not depend on is not computed: sums of 64 bits are mostly there for a
    /// carry, or to saturate.
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

    /// A raw encoding field.
    fn field(&self, name: &str) -> R<u128> {
        let op = self.env.op(self.ops);
        let ext = &self.exts[op.ext as usize];
        Ok(match name {
            "OFFSET" | "SIMM16" | "SIMM4" => op.imm,
            "OFFSET0" => op.imm & 0xff,
            "OFFSET1" => op.imm >> 8 & 0xff,
            "SIMM32" => ext.simm32,
            "NEG" => ext.neg,
            "NEG_HI" => ext.neg_hi,
            "ABS" => ext.abs,
            "OPSEL" => ext.op_sel,
            "OPSEL_HI" => ext.op_sel_hi,
            "GFX9" => ext.gfx9,
            _ => return Err(Unsupported("an encoding field")),
        } as u128)
    }

    fn state(&mut self, state: State, hold: Hold) -> R<Val> {
        let lanes = 32u128 << self.wide_wave as u32;
        Ok(match state {
            State::LaneId => return self.lane_id(),
            State::Wave32 => Val::Known(!self.wide_wave as u128),
            State::Wave64 => Val::Known(self.wide_wave as u128),
            State::WaveSize => Val::Known(lanes),
            State::InstSize => Val::Known(4),
            // A lane sees what the instruction began with, which the loop over lanes does not keep.
            _ if self.looping.is_some() => return Err(Unsupported("state in a lane")),
            _ => {
                let v = self.wave_state(state)?;
                let own = self.state_hold(state);
                self.resized(v, own, hold)?
            }
        })
    }

    /// A shift count that is sure to be below the holder's width stays itself; others are marked as they are.
    fn bounded(&mut self, count: &Value, hold: Hold) -> R<Count> {
        let below = |v: &Value| match v.kind {
            ValueKind::Const(bits) => bits < hold.bits() as u128,
            _ => false,
        };
        let sure = match &count.kind {
            ValueKind::Op2(Op2::And, a, b) => below(a) || below(b),
            _ => below(count),
        };
        let v = self.value(count)?;
        let v = self.resized(v, count.hold, Hold::W32)?;
        Ok(Count { v, sure })
    }

    fn sign_extended(&mut self, inner: &Value, width: u32, hold: Hold) -> R<Val> {
        let v = self.value(inner)?;
        let from = inner.hold;
        let v = self.signed(v, from, width)?;
        if from == hold {
            return Ok(v);
        }
        Ok(match (v, hold) {
            (Val::Known(bits), _) => {
                let above = 128 - from.bits();
                Val::Known(((bits << above) as i128 >> above) as u128 & low(hold.bits()))
            }
            (Val::One(v), Hold::W64) if from == Hold::W32 => {
                Val::One(ins!(self).sextend(cranelift_codegen::ir::types::I64, v))
            }
            (Val::Lanes(v), Hold::W64) => Val::Wide(self.wide_mask(v)),
            (v, Hold::W32 | Hold::W64) => self.resized(v, from, hold)?,
            (_, Hold::W128) => return Err(Unsupported("128 bits")),
        })
    }

    /// The low `width` bits of a holder as a signed number of the holder.
    fn signed(&mut self, v: Val, hold: Hold, width: u32) -> R<Val> {
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
                v => return self.each(hold, v, |e, v| ins!(e).bnot(v)),
            },
            Op1::Neg => match v {
                Val::Known(v) => return Ok(Val::Known(v.wrapping_neg() & low(bits))),
                v => return self.each(hold, v, |e, v| ins!(e).ineg(v)),
            },
            Op1::IsZero => {
                return match self.truth(v, hold)? {
                    Val::Known(bits) => Ok(Val::Known((bits == 0) as u128)),
                    Val::Truth(v) => Ok(Val::Truth(ins!(self).icmp_imm_u(IntCC::Equal, v, 0))),
                    Val::Mask(v) => Ok(Val::Mask(ins!(self).bnot(v))),
                    _ => Err(Unsupported("no truth")),
                };
            }
            Op1::CountOnes => self.lane_by_lane(hold, v, v, |e, v, _| ins!(e).popcnt(v))?,
            Op1::LeadingZeros { width } => {
                let extra = -((bits - width) as i64);
                self.lane_by_lane(hold, v, v, |e, v, _| {
                    let n = ins!(e).clz(v);
                    ins!(e).iadd_imm_s(n, extra)
                })?
            }
            Op1::TrailingZeros { width } => self.lane_by_lane(hold, v, v, |e, v, _| {
                let n = ins!(e).ctz(v);
                let ty = e.ty(n);
                let most = ins!(e).iconst(ty, width as i64);
                ins!(e).umin(n, most)
            })?,
            Op1::ReverseBits { width } => {
                let reversed = self.lane_by_lane(hold, v, v, |e, v, _| ins!(e).bitrev(v))?;
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
            // Bits stay truths.
            (Op2::And, a @ (Val::Truth(_) | Val::Mask(_)), Val::Known(m)) if m & 1 == 1 => return Ok(a),
            (_, Val::Mask(a), Val::Mask(b)) if bitwise => {
                return Ok(Val::Mask(match op {
                    Op2::And => ins!(self).band(a, b),
                    Op2::Or => ins!(self).bor(a, b),
                    _ => ins!(self).bxor(a, b),
                }));
            }
            _ => {}
        }
        // Only 64 bits of such values are kept: operations that carry beyond them are left out.
        if hold == Hold::W128 && !bitwise {
            return Err(Unsupported("128 bits"));
        }
        self.both(hold, a, b, |e, a, b| match op {
            Op2::Add => ins!(e).iadd(a, b),
            Op2::Sub => ins!(e).isub(a, b),
            Op2::Mul => ins!(e).imul(a, b),
            Op2::And => ins!(e).band(a, b),
            Op2::Or => ins!(e).bor(a, b),
            Op2::Xor => ins!(e).bxor(a, b),
        })
    }

    fn logical(&mut self, and: bool, a: &Value, b: &Value) -> R<Val> {
        let (x, y) = (self.value(a)?, self.value(b)?);
        let (x, y) = (self.truth(x, a.hold)?, self.truth(y, b.hold)?);
        self.either(and, x, y)
    }

    /// Two truths as one.
    pub fn either(&mut self, and: bool, a: Val, b: Val) -> R<Val> {
        match (a, b) {
            (Val::Known(bits), other) | (other, Val::Known(bits)) => {
                return Ok(if (bits != 0) == and { other } else { Val::Known(!and as u128) });
            }
            (Val::Truth(a), Val::Truth(b)) => {
                return Ok(Val::Truth(if and { ins!(self).band(a, b) } else { ins!(self).bor(a, b) }));
            }
            _ => {}
        }
        let (a, b) = (self.mask(a)?, self.mask(b)?);
        Ok(Val::Mask(if and { ins!(self).band(a, b) } else { ins!(self).bor(a, b) }))
    }

    fn compare(&mut self, op: Compare, int: Int, a: &Value, b: &Value) -> R<Val> {
        let hold = a.hold;
        let (mut x, mut y) = (self.value(a)?, self.value(b)?);
        let ordered = !matches!(op, Compare::Eq | Compare::Ne);
        if int.signed && ordered {
            (x, y) = (self.signed(x, hold, int.width)?, self.signed(y, hold, int.width)?);
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
            (Compare::Eq, _) => IntCC::Equal,
            (Compare::Ne, _) => IntCC::NotEqual,
            (Compare::Lt, true) => IntCC::SignedLessThan,
            (Compare::Le, true) => IntCC::SignedLessThanOrEqual,
            (Compare::Gt, true) => IntCC::SignedGreaterThan,
            (Compare::Ge, true) => IntCC::SignedGreaterThanOrEqual,
            (Compare::Lt, false) => IntCC::UnsignedLessThan,
            (Compare::Le, false) => IntCC::UnsignedLessThanOrEqual,
            (Compare::Gt, false) => IntCC::UnsignedGreaterThan,
            (Compare::Ge, false) => IntCC::UnsignedGreaterThanOrEqual,
        };
        self.compared(hold, x, y, |e, a, b| ins!(e).icmp(cc, a, b))
    }

    /// A shift by any count: from the holder's width on, everything is shifted out.
    pub fn shifted(&mut self, shift: Shift, hold: Hold, v: Val, count: impl Into<Count>) -> R<Val> {
        let (bits, Count { v: n, sure }) = (hold.bits(), count.into());
        let one = |e: &mut Self, v: V, n: V| match shift {
            Shift::Left => ins!(e).ishl(v, n),
            Shift::Right => ins!(e).ushr(v, n),
            Shift::Arithmetic => ins!(e).sshr(v, n),
        };
        if let Val::Known(n) = n {
            return self.shifted_by(shift, hold, v, n as u32);
        }
        if hold == Hold::W128 {
            return Err(Unsupported("128 bits"));
        }
        // A count that is too large, as all of what is shifted out; an arithmetic shift has a largest one.
        let n = match (sure, shift) {
            (false, Shift::Arithmetic) => {
                self.both(Hold::W32, n, Val::Known(bits as u128 - 1), |e, n, most| ins!(e).umin(n, most))?
            }
            _ => n,
        };
        let shifted = if n.varies() {
            let wide = self.resized(n, Hold::W32, hold)?;
            self.lane_by_lane(hold, v, wide, one)?
        } else {
            let n = self.one(n, Hold::W32)?;
            self.each(hold, v, |e, v| one(e, v, n))?
        };
        if sure || shift == Shift::Arithmetic {
            return Ok(shifted);
        }
        let inside = self.compared(Hold::W32, n, Val::Known(bits as u128), |e, n, all| {
            ins!(e).icmp(IntCC::UnsignedLessThan, n, all)
        })?;
        self.chosen(inside, hold, shifted, Val::Known(0))
    }

    fn shifted_by(&mut self, shift: Shift, hold: Hold, v: Val, n: u32) -> R<Val> {
        let bits = hold.bits();
        if n == 0 {
            return Ok(v);
        }
        if let Val::Known(v) = v {
            let above = 128 - bits;
            return Ok(Val::Known(
                low(bits)
                    & match shift {
                        Shift::Arithmetic => ((v << above) as i128 >> above >> n.min(bits - 1)) as u128,
                        _ if n >= bits => 0,
                        Shift::Left => v << n,
                        Shift::Right => v >> n,
                    },
            ));
        }
        if hold == Hold::W128 {
            return match shift {
                Shift::Right if n >= 64 => Ok(Val::Known(0)),
                Shift::Right => self.shifted_by(shift, Hold::W64, v, n),
                // What is shifted beyond 64 bits would be lost.
                _ => Err(Unsupported("128 bits")),
            };
        }
        if n >= bits && shift != Shift::Arithmetic {
            return Ok(Val::Known(0));
        }
        let n = ins!(self).iconst(I32, n.min(bits - 1) as i64);
        self.each(hold, v, |e, v| match shift {
            Shift::Left => ins!(e).ishl(v, n),
            Shift::Right => ins!(e).ushr(v, n),
            Shift::Arithmetic => ins!(e).sshr(v, n),
        })
    }

    /// Bytes of two words by the bytes of a third: 0 to 7 choose one, others give zero.
    pub fn select_bytes(&mut self, [high, words_low, at]: [Val; 3]) -> R<Val> {
        let [high, words_low, at] = [self.lanes(high)?, self.lanes(words_low)?, self.lanes(at)?];
        let [three, own, four, seven] = [
            [0x0303_0303; 4],
            [0, 0x0404_0404, 0x0808_0808, 0x0c0c_0c0c],
            [0x0404_0404; 4],
            [0x0707_0707; 4],
        ]
        .map(|words| self.words(words));
        let within = ins!(self).band(at, three);
        let within = ins!(self).bor(within, own);
        let [high, words_low, at, within, four, seven] =
            [high, words_low, at, within, four, seven].map(|v| self.cast(I8X16, v));
        let (high, words_low) = (ins!(self).swizzle(high, within), ins!(self).swizzle(words_low, within));
        let upper = ins!(self).band(at, four);
        let upper = ins!(self).icmp(IntCC::Equal, upper, four);
        let either = ins!(self).bitselect(upper, high, words_low);
        let inside = ins!(self).icmp(IntCC::UnsignedLessThanOrEqual, at, seven);
        let v = ins!(self).band(either, inside);
        Ok(Val::Lanes(self.cast(I32X4, v)))
    }

    /// A truth as an I8, for branches.
    pub fn branch_on(&mut self, truth: Val) -> R<V> {
        match truth {
            Val::Truth(v) => Ok(v),
            Val::Known(bits) => Ok(ins!(self).iconst(I8, (bits != 0) as i64)),
            _ => Err(Unsupported("a branch by a lane")),
        }
    }
}

/// Shifts of an integer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shift {
    Left,
    Right,
    Arithmetic,
}

/// A shift count in 32 bits.
#[derive(Debug, Clone, Copy)]
pub struct Count {
    v: Val,
    /// It is below the width of what is shifted.
    sure: bool,
}

impl From<Val> for Count {
    fn from(v: Val) -> Count {
        Count { v, sure: false }
    }
}
