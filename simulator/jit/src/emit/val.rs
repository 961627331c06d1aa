//! Values of the lane-loop representation while they are compiled: known, the same in all lanes, or one for each of
//! four lanes.

use super::{Emitter, R, Unsupported, ins};
use cranelift_codegen::cursor::{Cursor, CursorPosition, FuncCursor};
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::{F32, F32X4, F64, F64X2, I8X16, I32, I32X4, I64, I64X2};
use cranelift_codegen::ir::{
    Block, ConstantData, Endianness, InstBuilder, MemFlagsData, Type, Value, ValueDef,
};
use isa_lower::ir::Hold;

/// A value. Its holder is known from where it stands.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Val {
    /// Known bits.
    Known(u128),
    /// The same in all lanes: I32 or I64, by its holder.
    One(Value),
    /// A truth that is the same in all lanes: I8, 0 or 1.
    Truth(Value),
    /// 32 bits of each of four lanes.
    Lanes(Value),
    /// A truth of each of four lanes: all ones or zero, in 32 bits.
    Mask(Value),
    /// 64 bits of each of four lanes: those of two lanes, and of the other two.
    Wide([Value; 2]),
}

/// The byte order of vectors as the register file has them.
pub const LITTLE: MemFlagsData = MemFlagsData::new().with_endianness(Endianness::Little);

/// The low `width` bits.
pub fn low(width: u32) -> u128 {
    if width >= 128 { u128::MAX } else { (1 << width) - 1 }
}

impl Val {
    /// Whether lanes may differ.
    pub fn varies(self) -> bool {
        matches!(self, Val::Lanes(_) | Val::Mask(_) | Val::Wide(_))
    }
}

impl Emitter<'_> {
    /// Where a value is computed.
    fn block_of(&self, v: Value) -> Option<Block> {
        match self.func.dfg.value_def(v) {
            ValueDef::Result(inst, _) => self.func.layout.inst_block(inst),
            ValueDef::Param(block, _) => Some(block),
            _ => None,
        }
    }

    pub fn ty(&self, v: Value) -> Type {
        self.func.dfg.value_type(v)
    }

    /// A vector of words.
    pub fn words(&mut self, words: [u32; 4]) -> Value {
        let bytes: Vec<u8> = words.iter().flat_map(|w| w.to_le_bytes()).collect();
        let constant = self.func.dfg.constants.insert(ConstantData::from(&bytes[..]));
        ins!(self).vconst(I32X4, constant)
    }

    /// A constant of an integer type, in each lane.
    pub fn constant(&mut self, ty: Type, bits: u64) -> Value {
        match ty {
            I32X4 => self.words([bits as u32; 4]),
            I64X2 => {
                let (a, b) = (bits as u32, (bits >> 32) as u32);
                let v = self.words([a, b, a, b]);
                ins!(self).bitcast(I64X2, LITTLE, v)
            }
            I32 => ins!(self).iconst(I32, bits as u32 as i32 as i64),
            _ => ins!(self).iconst(ty, bits as i64),
        }
    }

    /// A value that is the same in all lanes, in the integer of its holder.
    pub fn one(&mut self, val: Val, hold: Hold) -> R<Value> {
        let ty = match hold {
            Hold::W32 => I32,
            Hold::W64 => I64,
            Hold::W128 => return Err(Unsupported("128 bits")),
        };
        Ok(match val {
            Val::Known(bits) => self.constant(ty, bits as u64),
            Val::One(v) => {
                debug_assert_eq!(self.ty(v), ty);
                v
            }
            Val::Truth(v) => ins!(self).uextend(ty, v),
            Val::Lanes(_) | Val::Mask(_) | Val::Wide(_) => {
                return Err(Unsupported("a lane's value for the wave"));
            }
        })
    }

    /// 32 bits of four lanes.
    pub fn lanes(&mut self, val: Val) -> R<Value> {
        Ok(match val {
            Val::Known(bits) => self.constant(I32X4, bits as u64),
            Val::Lanes(v) => v,
            Val::Mask(v) => {
                let one = self.constant(I32X4, 1);
                ins!(self).band(v, one)
            }
            Val::One(_) | Val::Truth(_) => {
                let one = self.one(val, Hold::W32)?;
                self.spread(one)
            }
            Val::Wide(_) => return Err(Unsupported("64 bits for 32")),
        })
    }

    /// 64 bits of four lanes.
    pub fn wide(&mut self, val: Val) -> R<[Value; 2]> {
        Ok(match val {
            Val::Known(bits) => [self.constant(I64X2, bits as u64); 2],
            Val::Wide(v) => v,
            Val::One(v) => {
                debug_assert_eq!(self.ty(v), I64);
                [self.spread(v); 2]
            }
            Val::Truth(v) => {
                let v = ins!(self).uextend(I64, v);
                [self.spread(v); 2]
            }
            Val::Lanes(_) | Val::Mask(_) => return Err(Unsupported("32 bits for 64")),
        })
    }

    /// One value in all lanes. In front of the loop over lanes, if it is known there.
    pub fn spread(&mut self, one: Value) -> Value {
        if let Some(v) = self.spreads.get(&one) {
            return *v;
        }
        let ty = if self.ty(one) == I64 { I64X2 } else { I32X4 };
        let v = self.hoisted(one, |e| ins!(e).splat(ty, one));
        self.spreads.insert(one, v);
        v
    }

    /// What is made of one value alone: in front of the loop over lanes, if the value is from there.
    pub fn hoisted(&mut self, one: Value, make: impl FnOnce(&mut Self) -> Value) -> Value {
        let here = self.pos;
        if let Some((before, body)) = self.looping
            && self.block_of(one) != Some(body)
        {
            self.pos = CursorPosition::After(before);
        }
        let v = make(self);
        self.pos = here;
        v
    }

    /// As truth: of the wave ([`Val::Truth`], or known), or of each lane.
    pub fn truth(&mut self, val: Val, hold: Hold) -> R<Val> {
        Ok(match val {
            Val::Known(bits) => Val::Known((bits != 0) as u128),
            Val::Truth(_) | Val::Mask(_) => val,
            Val::One(v) => Val::Truth(ins!(self).icmp_imm_u(IntCC::NotEqual, v, 0)),
            Val::Lanes(v) => {
                let zero = self.constant(I32X4, 0);
                Val::Mask(ins!(self).icmp(IntCC::NotEqual, v, zero))
            }
            Val::Wide(v) => {
                debug_assert_eq!(hold, Hold::W64);
                let zero = self.constant(I64X2, 0);
                let v = v.map(|v| ins!(self).icmp(IntCC::NotEqual, v, zero));
                Val::Mask(self.low_words(v))
            }
        })
    }

    /// A mask of lanes, for a truth.
    pub fn mask(&mut self, truth: Val) -> R<Value> {
        Ok(match truth {
            Val::Mask(v) => v,
            Val::Known(bits) => self.constant(I32X4, if bits != 0 { u64::MAX } else { 0 }),
            Val::Truth(v) => {
                let v = ins!(self).uextend(I32, v);
                let v = ins!(self).ineg(v);
                ins!(self).splat(I32X4, v)
            }
            _ => return Err(Unsupported("no truth")),
        })
    }

    fn shuffled(&mut self, a: Value, b: Value, words: [u8; 4]) -> Value {
        let bytes: Vec<u8> = words.iter().flat_map(|w| (0..4).map(move |k| 4 * w + k)).collect();
        let order = self.func.dfg.immediates.push(ConstantData::from(&bytes[..]));
        let (a, b) = (self.cast(I8X16, a), self.cast(I8X16, b));
        ins!(self).shuffle(a, b, order)
    }

    /// Bits as another vector type.
    pub fn cast(&mut self, ty: Type, v: Value) -> Value {
        if self.ty(v) == ty { v } else { ins!(self).bitcast(ty, LITTLE, v) }
    }

    /// The low words of 64 bits in each lane.
    pub fn low_words(&mut self, v: [Value; 2]) -> Value {
        let v = self.shuffled(v[0], v[1], [0, 2, 4, 6]);
        self.cast(I32X4, v)
    }

    /// The high words of 64 bits in each lane.
    pub fn high_words(&mut self, v: [Value; 2]) -> Value {
        let v = self.shuffled(v[0], v[1], [1, 3, 5, 7]);
        self.cast(I32X4, v)
    }

    /// 64 bits in each lane, of low and high words.
    pub fn joined(&mut self, low: Value, high: Value) -> [Value; 2] {
        let (a, b) = (self.shuffled(low, high, [0, 4, 1, 5]), self.shuffled(low, high, [2, 6, 3, 7]));
        [self.cast(I64X2, a), self.cast(I64X2, b)]
    }

    /// A mask of 32-bit lanes as one of 64-bit lanes.
    pub fn wide_mask(&mut self, mask: Value) -> [Value; 2] {
        [ins!(self).swiden_low(mask), ins!(self).swiden_high(mask)]
    }

    /// Zero-extended, or truncated.
    pub fn resized(&mut self, val: Val, from: Hold, to: Hold) -> R<Val> {
        if from == to {
            return Ok(val);
        }
        Ok(match (val, from, to) {
            (Val::Known(bits), ..) => Val::Known(bits & low(to.bits())),
            (Val::Truth(_) | Val::Mask(_), _, Hold::W32) => val,
            (Val::Truth(_), ..) => val,
            // What is no longer than 64 bits stays so until it is taken apart.
            (_, _, Hold::W128) => self.resized(val, from, Hold::W64)?,
            (_, Hold::W128, Hold::W64) => val,
            (Val::One(v), _, Hold::W64) => Val::One(ins!(self).uextend(I64, v)),
            (Val::One(v), _, Hold::W32) => Val::One(ins!(self).ireduce(I32, v)),
            (Val::Wide(v), _, Hold::W32) => Val::Lanes(self.low_words(v)),
            (Val::Lanes(_) | Val::Mask(_), ..) => {
                let v = self.lanes(val)?;
                Val::Wide([ins!(self).uwiden_low(v), ins!(self).uwiden_high(v)])
            }
            (Val::Wide(_), ..) => return Err(Unsupported("128 bits")),
        })
    }

    /// An operation on integers of two values of a holder.
    pub fn both(
        &mut self,
        hold: Hold,
        a: Val,
        b: Val,
        mut f: impl FnMut(&mut Self, Value, Value) -> Value,
    ) -> R<Val> {
        let hold = narrow(hold);
        if !a.varies() && !b.varies() {
            let (a, b) = (self.one(a, hold)?, self.one(b, hold)?);
            return Ok(Val::One(f(self, a, b)));
        }
        Ok(match hold {
            Hold::W32 => {
                let (a, b) = (self.lanes(a)?, self.lanes(b)?);
                Val::Lanes(f(self, a, b))
            }
            _ => {
                let (a, b) = (self.wide(a)?, self.wide(b)?);
                Val::Wide([f(self, a[0], b[0]), f(self, a[1], b[1])])
            }
        })
    }

    /// An operation on the integer of one value.
    pub fn each(&mut self, hold: Hold, a: Val, mut f: impl FnMut(&mut Self, Value) -> Value) -> R<Val> {
        self.both(hold, a, a, |e, a, _| f(e, a))
    }

    /// A comparison of two values of a holder, as truth.
    pub fn compared(
        &mut self,
        hold: Hold,
        a: Val,
        b: Val,
        mut f: impl FnMut(&mut Self, Value, Value) -> Value,
    ) -> R<Val> {
        Ok(match self.both(hold, a, b, |e, a, b| f(e, a, b))? {
            Val::One(v) => Val::Truth(v),
            Val::Lanes(v) => Val::Mask(self.cast(I32X4, v)),
            Val::Wide(v) => {
                let v = v.map(|v| self.cast(I64X2, v));
                Val::Mask(self.low_words(v))
            }
            other => other,
        })
    }

    /// Lane by lane, by scalar code: for what vectors of the host cannot do.
    pub fn lane_by_lane(
        &mut self,
        hold: Hold,
        a: Val,
        b: Val,
        f: impl Fn(&mut Self, Value, Value) -> Value,
    ) -> R<Val> {
        let count = if narrow(hold) == Hold::W32 { 4u8 } else { 2 };
        self.both(hold, a, b, |e, a, b| {
            if !e.ty(a).is_vector() {
                return f(e, a, b);
            }
            let mut out = a;
            for lane in 0..count {
                let (x, y) = (ins!(e).extractlane(a, lane), ins!(e).extractlane(b, lane));
                let v = f(e, x, y);
                out = ins!(e).insertlane(out, v, lane);
            }
            out
        })
    }

    /// `a` where the truth holds, else `b`.
    pub fn chosen(&mut self, truth: Val, hold: Hold, a: Val, b: Val) -> R<Val> {
        if let Val::Known(bits) = truth {
            return Ok(if bits != 0 { a } else { b });
        }
        if a == b {
            return Ok(a);
        }
        // Truths stay truths.
        if let (
            Hold::W32,
            Val::Mask(mask),
            Val::Mask(_) | Val::Known(0 | 1),
            Val::Mask(_) | Val::Known(0 | 1),
        ) = (hold, truth, a, b)
        {
            let (a, b) = (self.mask(a)?, self.mask(b)?);
            return Ok(Val::Mask(ins!(self).bitselect(mask, a, b)));
        }
        match truth {
            Val::Truth(truth) => self.both(hold, a, b, |e, a, b| ins!(e).select(truth, a, b)),
            Val::Mask(mask) => Ok(match narrow(hold) {
                Hold::W32 => {
                    let (a, b) = (self.lanes(a)?, self.lanes(b)?);
                    Val::Lanes(ins!(self).bitselect(mask, a, b))
                }
                _ => {
                    let (a, b, mask) = (self.wide(a)?, self.wide(b)?, self.wide_mask(mask));
                    let [first, second] = [0, 1].map(|k| ins!(self).bitselect(mask[k], a[k], b[k]));
                    Val::Wide([first, second])
                }
            }),
            _ => Err(Unsupported("no truth")),
        }
    }

    /// By the mask that a comparison of these integers gave: vectors by lanes, others by a truth.
    pub fn pick(&mut self, truth: Value, a: Value, b: Value) -> Value {
        if self.ty(a).is_vector() {
            ins!(self).bitselect(truth, a, b)
        } else {
            ins!(self).select(truth, a, b)
        }
    }
}

/// Only values that are no longer than 64 bits stand in 128.
pub fn narrow(hold: Hold) -> Hold {
    if hold == Hold::W32 { Hold::W32 } else { Hold::W64 }
}

/// The float type with the bits of an integer type.
pub fn float_of(ty: Type) -> Type {
    match ty {
        I32 => F32,
        I32X4 => F32X4,
        I64 => F64,
        _ => F64X2,
    }
}
