//! Facts about values, collected while a block is emitted. They hold in straight-line code only: after a
//! branch, the facts from before it are restored.

use super::val::Val;
use super::{Emitter, R};
use crate::lowering::Shift;
use isa_lower::ir::{Hold, Op2};
use std::collections::{HashMap, HashSet};
use wavesim_x64::Code;
use wavesim_x64::inst::{Cc, V};

/// The bits of each lane that are statically known.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct KnownBits {
    pub zeros: u32,
    pub ones: u32,
}

impl KnownBits {
    /// Returns the value if all bits are known.
    pub fn as_constant(self) -> Option<u32> {
        (self.zeros | self.ones == u32::MAX).then_some(self.ones)
    }
}

/// Facts about values; see the module's documentation.
#[derive(Default, Clone)]
pub struct Facts {
    /// Integers (and whether their lanes have 32 bits), to their broadcasts.
    pub broadcasts: HashMap<(V, bool), V>,
    /// Values, to their copies with denormals flushed.
    pub flushed: HashMap<V, V>,
    /// Values without f32 denormals.
    pub denormal_free: HashSet<V>,
    /// Values whose denormals are still to be flushed.
    pub unflushed: HashSet<V>,
    /// 64-bit values that are zero- or sign-extended words.
    pub zero_extended: HashSet<V>,
    pub sign_extended: HashSet<V>,
    /// Low and high words, to the 64-bit values made of them.
    pub joined: HashMap<(V, V), [V; 2]>,
    /// The inverse of `joined`.
    pub split: HashMap<[V; 2], (V, V)>,
    /// Sums of words, to a varying and a uniform term.
    pub sums: HashMap<V, (V, Val)>,
    /// 64-bit sums of two words, to the mask of lanes with a carry.
    pub carries: HashMap<[V; 2], V>,
    /// 128-bit sums, of which only 64 bits are represented, to the mask of lanes where bit 64 is set.
    pub bit_64: HashMap<[V; 2], V>,
    /// Words that are 1 where a mask is set and 0 elsewhere, to the mask.
    pub bool_words: HashMap<V, V>,
    /// Masks, to their complements.
    pub complements: HashMap<V, V>,
    /// Masks, to the comparisons of words that they result from.
    pub comparisons: HashMap<V, (Cc, V, V)>,
    /// Known bits of words.
    pub bits: HashMap<V, KnownBits>,
    /// Words with an f16 in the low half and zero in the high half, to eight such f16 packed in 128 bits.
    pub packed_f16: HashMap<V, V>,
    /// Words, to their zero-extended low halves.
    pub low_halves: HashMap<V, V>,
    /// See [`Emitter::shuffle_controls`].
    pub shuffle_controls: HashMap<V, [V; 2]>,
}

impl Facts {
    /// Returns the known bits of a word.
    pub fn bits_of(&self, v: V) -> KnownBits {
        self.bits.get(&v).copied().unwrap_or_default()
    }

    /// Records the known bits of a word.
    pub fn record_bits(&mut self, v: V, bits: KnownBits) {
        if bits != KnownBits::default() {
            self.bits.insert(v, bits);
        }
    }
}

impl Emitter<'_> {
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
        let hold = Hold::W32;
        let (a, b) = (self.term(a)?, self.term(b)?);
        let (low, carry) = match (a, b) {
            (Some(Term::Word(a)), Some(Term::Word(b))) => {
                let low = self.iadd(hold, a, b);
                // The sum can be compared with either term. A loop-invariant term is cheaper.
                let than = if self.f.is_outside_loop(b) { b } else { a };
                let sign = self.splat_constant(hold, 1 << 31);
                let carry = if self.f.is_outside_loop(than) {
                    let (x, y) = (self.bxor(hold, than, sign), self.bxor(hold, low, sign));
                    self.icmp(Cc::GtS, hold, x, y)
                } else {
                    self.icmp(Cc::LtU, hold, low, than)
                };
                (low, carry)
            }
            (Some(Term::Sum { low, carry }), Some(Term::Bit(mask)))
            | (Some(Term::Bit(mask)), Some(Term::Sum { low, carry })) => {
                let low = self.isub(hold, low, mask);
                let none = self.is_zero(hold, low);
                let beyond = self.band(hold, none, mask);
                (low, self.bor(hold, carry, beyond))
            }
            _ => return Ok(()),
        };
        let one = self.shift_by(Shift::Right, hold, carry, 31);
        self.facts.bool_words.insert(one, carry);
        self.facts.split.insert(sum, (low, one));
        self.facts.carries.insert(sum, carry);
        Ok(())
    }

    /// Emits a product of words, or a sum of two 64-bit values, in 128 bits.
    pub fn wide_sum(&mut self, op: Op2, a: Val, b: Val) -> R<Val> {
        let hold = Hold::W64;
        let (a, b) = (self.wide(a)?, self.wide(b)?);
        if op == Op2::Mul {
            let product = Code::VEX_Vpmuludq_ymm_ymm_ymmm256;
            return Ok(Val::Wide([0, 1].map(|k| self.f.rvm(product, a[k], b[k], None))));
        }
        let sum = [0, 1].map(|k| self.iadd(hold, a[k], b[k]));
        let less = [0, 1].map(|k| self.icmp(Cc::LtU, hold, sum[k], b[k]));
        let carry = self.low_words(less);
        self.facts.bit_64.insert(sum, carry);
        Ok(Val::Wide(sum))
    }

    /// Classifies a term of a sum, if it is a word or a sum of words.
    fn term(&mut self, val: Val) -> R<Option<Term>> {
        Ok(match val {
            Val::Const(bits) if bits < 1 << 32 => {
                Some(Term::Word(self.splat_constant(Hold::W32, bits as u64)))
            }
            Val::Uniform(v) if self.zero_extended_ints.contains(&v) => {
                Some(Term::Word(self.broadcast(Hold::W32, v)))
            }
            Val::Wide(v) => match (self.facts.carries.get(&v), self.facts.split.get(&v)) {
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

/// The terms that [`Emitter::term`] distinguishes.
enum Term {
    Word(V),
    /// 1 where the mask is set.
    Bit(V),
    Sum {
        low: V,
        carry: V,
    },
}
