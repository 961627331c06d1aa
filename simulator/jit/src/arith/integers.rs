//! Integer operations on values, with what is known about them.

use crate::arith::builder::{Bug, Builder, R};
use crate::arith::facts::{KnownBits, Repeated};
use crate::arith::ops::width;
use crate::arith::val::{Val, low_mask};
use crate::lowering::Shift;
use isa_lower::ir::{HostWidth, Op1, Op2};
use wavesim_x64::Code;
use wavesim_x64::inst::{Cc, Int2, V};

impl Builder {
    /// Sign-extends the low `width` bits to a host width.
    pub fn signed(&mut self, v: Val, host_width: HostWidth, width: u32) -> R<Val> {
        let above = host_width.bits() - width;
        if above == 0 {
            return Ok(match v {
                Val::Bool(_) => Val::Uniform(self.uniform(v, host_width)?),
                Val::Mask(_) => Val::Lanes(self.lanes(v)?),
                v => v,
            });
        }
        let up = self.shift(Shift::Left, host_width, v, Val::Const(above as u128))?;
        self.shift(Shift::Arithmetic, host_width, up, Val::Const(above as u128))
    }

    pub fn op1(&mut self, op: Op1, host_width: HostWidth, v: Val) -> R<Val> {
        if host_width == HostWidth::W128 {
            return Err(Bug("128 bits"));
        }
        let bits = host_width.bits();
        let result = match op {
            Op1::Not => match v {
                Val::Const(v) => return Ok(Val::Const(!v & low_mask(bits))),
                v => return self.unary_op(host_width, v, |e, host_width, v| e.bnot(host_width, v)),
            },
            Op1::Neg => match v {
                Val::Const(v) => return Ok(Val::Const(v.wrapping_neg() & low_mask(bits))),
                v => return self.unary_op(host_width, v, |e, host_width, v| e.ineg(host_width, v)),
            },
            Op1::IsZero => {
                return match self.boolean(v, host_width)? {
                    Val::Const(bits) => Ok(Val::Const((bits == 0) as u128)),
                    Val::Bool(v) => Ok(Val::Bool(self.f.int2(Int2::Xor, width(HostWidth::W32), v, 1))),
                    Val::Mask(v) => Ok(Val::Mask(self.bnot(HostWidth::W32, v))),
                    _ => Err(Bug("a value that is not a boolean")),
                };
            }
            Op1::CountOnes => self.unary_op(host_width, v, |e, host_width, v| e.count_ones(host_width, v))?,
            Op1::LeadingZeros { width } => {
                let more = (bits - width) as u64;
                self.unary_op(host_width, v, |e, host_width, v| {
                    let n = e.leading_zeros(host_width, v);
                    let more = e.constant_like(host_width, more, n);
                    e.isub(host_width, n, more)
                })?
            }
            Op1::TrailingZeros { width } => self.unary_op(host_width, v, |e, host_width, v| {
                let n = e.trailing_zeros(host_width, v);
                let most = e.constant_like(host_width, width as u64, n);
                e.umin(n, most)
            })?,
            Op1::ReverseBits { width } => {
                let reversed =
                    self.unary_op(host_width, v, |e, host_width, v| e.reverse_bits(host_width, v))?;
                return self.shift(Shift::Right, host_width, reversed, Val::Const((bits - width) as u128));
            }
        };
        // Counts have 32 bits.
        self.resize(result, host_width, HostWidth::W32)
    }

    pub fn op2(&mut self, op: Op2, host_width: HostWidth, a: Val, b: Val) -> R<Val> {
        let all = low_mask(host_width.bits());
        let bitwise = matches!(op, Op2::And | Op2::Or | Op2::Xor);
        match (op, a, b) {
            (_, Val::Const(a), Val::Const(b)) => {
                return Ok(Val::Const(
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
            (Op2::Add | Op2::Sub | Op2::Or | Op2::Xor, a, Val::Const(0)) => return Ok(a),
            (Op2::Add | Op2::Or | Op2::Xor, Val::Const(0), b) => return Ok(b),
            (Op2::And, a, Val::Const(m)) | (Op2::And, Val::Const(m), a) if m & all == all => return Ok(a),
            (Op2::And, Val::Const(0), _) | (Op2::And, _, Val::Const(0)) => return Ok(Val::Const(0)),
            // Booleans stay booleans.
            (Op2::And, a @ (Val::Bool(_) | Val::Mask(_)), Val::Const(m)) if m & 1 == 1 => return Ok(a),
            (_, Val::Mask(a), Val::Mask(b)) if bitwise => {
                return Ok(Val::Mask(match op {
                    Op2::And => self.band(HostWidth::W32, a, b),
                    Op2::Or => self.bor(HostWidth::W32, a, b),
                    _ => self.bxor(HostWidth::W32, a, b),
                }));
            }
            _ => {}
        }
        // Of 128-bit values, only 64 bits are represented; operations that carry into higher bits are not
        // compiled, except for one carry of a sum.
        if host_width == HostWidth::W128 && !bitwise {
            return self.wide_sum(op, a, b);
        }
        let mut result = KnownBits::default();
        if let (HostWidth::W32, true, (Val::Lanes(v), Val::Const(bits)) | (Val::Const(bits), Val::Lanes(v))) =
            (host_width, bitwise, (a, b))
        {
            let v = self.flush_pending(v);
            if let (Op2::And, 0xffff, Some(half)) = (op, bits, self.facts.low_halves.get(&v)) {
                return Ok(Val::Lanes(*half));
            }
            match self.simplify_bitwise(op, v, bits as u32) {
                Ok(val) => return Ok(val),
                Err(bits) => result = bits,
            }
        }
        let this = (op, host_width, [a, b]);
        if let Some(done) = self.facts.repeated.iter().flatten().find(|done| done.op == this) {
            return Ok(done.val);
        }
        let val = self.binary_op(host_width, a, b, |e, host_width, a, b| match op {
            Op2::Add => e.iadd(host_width, a, b),
            Op2::Sub => e.isub(host_width, a, b),
            Op2::Mul => e.imul(host_width, a, b),
            Op2::And => e.band(host_width, a, b),
            Op2::Or => e.bor(host_width, a, b),
            Op2::Xor => e.bxor(host_width, a, b),
        })?;
        if let Some(repeated) = self.facts.repeated.as_mut().filter(|_| !a.is_varying() && !b.is_varying()) {
            repeated.push(Repeated { op: this, val });
        }
        if let (Op2::Add, Val::Lanes(sum), (Val::Lanes(v), one) | (one, Val::Lanes(v))) = (op, val, (a, b))
            && !one.is_varying()
        {
            self.facts.sums.insert(sum, (v, one));
        }
        match (op, val) {
            (_, Val::Lanes(v)) => self.facts.record_bits(v, result),
            (Op2::Add, Val::Lanes64(v)) => self.record_sum(v, a, b)?,
            _ => {}
        }
        Ok(val)
    }

    /// Combines two booleans by AND or OR.
    pub fn logical_op(&mut self, and: bool, a: Val, b: Val) -> R<Val> {
        match (a, b) {
            (Val::Const(bits), other) | (other, Val::Const(bits)) => {
                return Ok(if (bits != 0) == and { other } else { Val::Const(!and as u128) });
            }
            (Val::Bool(a), Val::Bool(b)) => {
                let op = if and { Int2::And } else { Int2::Or };
                return Ok(Val::Bool(self.f.int2(op, width(HostWidth::W32), a, b)));
            }
            _ => {}
        }
        let (a, b) = (self.mask(a)?, self.mask(b)?);
        Ok(Val::Mask(if and { self.band(HostWidth::W32, a, b) } else { self.bor(HostWidth::W32, a, b) }))
    }
}

impl Builder {
    /// Simplifies a bitwise operation on a word with a constant. Returns the result if it needs no code,
    /// otherwise its known bits.
    pub fn simplify_bitwise(&self, op: Op2, v: V, bits: u32) -> Result<Val, KnownBits> {
        let known = self.facts.bits_of(v);
        let result = match op {
            Op2::And => KnownBits { zeros: known.zeros | !bits, ones: known.ones & bits },
            Op2::Or => KnownBits { zeros: known.zeros & !bits, ones: known.ones | bits },
            Op2::Xor => KnownBits {
                zeros: known.zeros & !bits | known.ones & bits,
                ones: known.ones & !bits | known.zeros & bits,
            },
            _ => return Err(KnownBits::default()),
        };
        match (op, result.as_constant()) {
            (_, Some(all)) => Ok(Val::Const(all as u128)),
            (Op2::And, _) if !bits & !known.zeros == 0 => Ok(Val::Lanes(v)),
            (Op2::Or, _) if bits & !known.ones == 0 => Ok(Val::Lanes(v)),
            _ => Err(result),
        }
    }

    /// Records a 64-bit sum of words as its low word and the mask of lanes with a carry. The sum itself is
    /// emitted, too; it is dead code unless other bits of it are used.
    pub fn record_sum(&mut self, sum: [V; 2], a: Val, b: Val) -> R<()> {
        let host_width = HostWidth::W32;
        let (a, b) = (self.term(a)?, self.term(b)?);
        let (low, carry) = match (a, b) {
            (Some(Term::Word(a)), Some(Term::Word(b))) => {
                let low = self.iadd(host_width, a, b);
                // The sum can be compared with either term. A loop-invariant term is cheaper.
                let than = if self.f.is_outside_loop(b) { b } else { a };
                let sign = self.splat_constant(host_width, 1 << 31);
                let carry = if self.f.is_outside_loop(than) {
                    let (x, y) = (self.bxor(host_width, than, sign), self.bxor(host_width, low, sign));
                    self.icmp(Cc::GtS, host_width, x, y)
                } else {
                    self.icmp(Cc::LtU, host_width, low, than)
                };
                (low, carry)
            }
            (Some(Term::Sum { low, carry }), Some(Term::Bit(mask)))
            | (Some(Term::Bit(mask)), Some(Term::Sum { low, carry })) => {
                let low = self.isub(host_width, low, mask);
                let none = self.is_zero(host_width, low);
                let beyond = self.band(host_width, none, mask);
                (low, self.bor(host_width, carry, beyond))
            }
            _ => return Ok(()),
        };
        let one = self.shift_by(Shift::Right, host_width, carry, 31);
        self.facts.bool_words.insert(one, carry);
        self.facts.split.insert(sum, (low, one));
        self.facts.carries.insert(sum, carry);
        Ok(())
    }

    /// Emits a product of words, or a sum of two 64-bit values, in 128 bits.
    pub fn wide_sum(&mut self, op: Op2, a: Val, b: Val) -> R<Val> {
        let host_width = HostWidth::W64;
        let (a, b) = (self.lanes64(a)?, self.lanes64(b)?);
        if op == Op2::Mul {
            let product = Code::VEX_Vpmuludq_ymm_ymm_ymmm256;
            return Ok(Val::Lanes64([0, 1].map(|k| self.f.rvm(product, a[k], b[k], None))));
        }
        let sum = [0, 1].map(|k| self.iadd(host_width, a[k], b[k]));
        let less = [0, 1].map(|k| self.icmp(Cc::LtU, host_width, sum[k], b[k]));
        let carry = self.low_words(less);
        self.facts.bit_64.insert(sum, carry);
        Ok(Val::Lanes64(sum))
    }

    /// Emits `a * b + c` of signed integers of 32, 32 and 64 bits: 64 bits of the sum, and bit 64.
    pub fn signed_sum(&mut self, [a, b, c]: [Val; 3]) -> R<Val> {
        let host_width = HostWidth::W64;
        let [a, b] = [self.lanes(a)?, self.lanes(b)?];
        let [a, b] = [self.extend(a, false), self.extend(b, false)];
        let c = self.lanes64(c)?;
        let zero = self.splat_constant(host_width, 0);
        let (mut sum, mut beyond) = (a, a);
        for k in 0..2 {
            let product = self.f.rvm(wavesim_x64::Code::VEX_Vpmuldq_ymm_ymm_ymmm256, a[k], b[k], None);
            sum[k] = self.iadd(host_width, product, c[k]);
            let carry = self.icmp(wavesim_x64::inst::Cc::LtU, host_width, sum[k], c[k]);
            let signs = self.bxor(host_width, product, c[k]);
            let differ = self.icmp(wavesim_x64::inst::Cc::GtS, host_width, zero, signs);
            beyond[k] = self.bxor(host_width, differ, carry);
        }
        let beyond = self.low_words(beyond);
        self.facts.bit_64.insert(sum, beyond);
        Ok(Val::Lanes64(sum))
    }

    /// Classifies a term of a sum, if it is a word or a sum of words.
    fn term(&mut self, val: Val) -> R<Option<Term>> {
        Ok(match val {
            Val::Const(bits) if bits < 1 << 32 => {
                Some(Term::Word(self.splat_constant(HostWidth::W32, bits as u64)))
            }
            Val::Uniform(v) if self.zero_extended_ints.contains(&v) => {
                Some(Term::Word(self.broadcast(HostWidth::W32, v)))
            }
            Val::Lanes64(v) => match (self.facts.carries.get(&v), self.facts.split.get(&v)) {
                (Some(carry), Some((low, _))) => Some(Term::Sum { low: *low, carry: *carry }),
                (_, Some((low, _))) if self.facts.zero_extended.contains(&v[0]) => {
                    Some(match self.facts.bool_words.get(low) {
                        Some(mask) => Term::Bit(*mask),
                        None => Term::Word(*low),
                    })
                }
                _ => None,
            },
            _ => None,
        })
    }
}

/// The terms that [`Builder::term`] distinguishes.
enum Term {
    Word(V),
    /// 1 where the mask is set.
    Bit(V),
    Sum {
        low: V,
        carry: V,
    },
}
