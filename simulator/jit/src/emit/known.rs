//! What is known of values while a block is emitted. It holds in the straight code that it was found in: of arms, only
//! what was known before them.

use super::ops::Shift;
use super::val::Val;
use super::{Emitter, R};
use isa_lower::ir::{Hold, Op2};
use std::collections::{HashMap, HashSet};
use wavesim_x64::Code;
use wavesim_x64::inst::{Cc, V};

/// Bits of each lane of a value that are known.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Bits {
    pub zeros: u32,
    pub ones: u32,
}

impl Bits {
    /// The value, if each bit is known.
    pub fn all(self) -> Option<u32> {
        (self.zeros | self.ones == u32::MAX).then_some(self.ones)
    }
}

/// See the module.
#[derive(Default, Clone)]
pub struct Known {
    /// Values in all lanes, of 32 bits or not.
    pub spreads: HashMap<(V, bool), V>,
    /// Values without their denormals.
    pub flushes: HashMap<V, V>,
    /// Values that have no f32 denormal.
    pub normal: HashSet<V>,
    /// Values of which denormals are still to be flushed.
    pub raw: HashSet<V>,
    /// Values of 64 bits that 32 were extended to.
    pub zero_extended: HashSet<V>,
    pub sign_extended: HashSet<V>,
    /// Values of 64 bits, by their low and high words.
    pub wholes: HashMap<(V, V), [V; 2]>,
    /// The reverse.
    pub words: HashMap<[V; 2], (V, V)>,
    /// Sums of 64 bits of two words, by the mask of lanes that have a carry.
    pub carries: HashMap<[V; 2], V>,
    /// Sums of 128 bits, of which only 64 are in values, by the mask of lanes that have a 65th.
    pub beyond: HashMap<[V; 2], V>,
    /// Words that are 1 where a mask holds, else 0.
    pub truths: HashMap<V, V>,
    /// Masks that are the complements of others.
    pub complements: HashMap<V, V>,
    /// Masks that are comparisons of words.
    pub comparisons: HashMap<V, (Cc, V, V)>,
    /// Bits of words.
    pub bits: HashMap<V, Bits>,
    /// f16 in the low halves of words, whose high halves are zero, by eight of them in 128 bits.
    pub halves: HashMap<V, V>,
    /// The low halves of words, by those.
    pub low_halves: HashMap<V, V>,
    /// See [`Emitter::selectors`].
    pub selectors: HashMap<V, [V; 2]>,
}

impl Known {
    /// What is known of the bits of a word.
    pub fn bits_of(&self, v: V) -> Bits {
        self.bits.get(&v).copied().unwrap_or_default()
    }

    /// The reverse.
    pub fn note_bits(&mut self, v: V, bits: Bits) {
        if bits != Bits::default() {
            self.bits.insert(v, bits);
        }
    }
}

impl Emitter<'_> {
    /// Words with some bits that are known, by an operation with known bits: what it gives without being computed, or
    /// what is known of the result.
    pub fn by_bits(&self, op: Op2, v: V, bits: u32) -> Result<Val, Bits> {
        let known = self.known.bits_of(v);
        let result = match op {
            Op2::And => Bits { zeros: known.zeros | !bits, ones: known.ones & bits },
            Op2::Or => Bits { zeros: known.zeros & !bits, ones: known.ones | bits },
            Op2::Xor => Bits {
                zeros: known.zeros & !bits | known.ones & bits,
                ones: known.ones & !bits | known.zeros & bits,
            },
            _ => return Err(Bits::default()),
        };
        match (op, result.all()) {
            (_, Some(all)) => Ok(Val::Known(all as u128)),
            (Op2::And, _) if !bits & !known.zeros == 0 => Ok(Val::Lanes(v)),
            (Op2::Or, _) if bits & !known.ones == 0 => Ok(Val::Lanes(v)),
            _ => Err(result),
        }
    }

    /// 64 bits of lanes that are a sum of words: what is known of it is its low word, and which lanes have a carry. The
    /// sum itself is made, too, and dropped if nothing needs more.
    pub fn note_sum(&mut self, sum: [V; 2], a: Val, b: Val) -> R<()> {
        let hold = Hold::W32;
        let (a, b) = (self.term(a)?, self.term(b)?);
        let (low, carry) = match (a, b) {
            (Some(Term::Word(a)), Some(Term::Word(b))) => {
                let low = self.iadd(hold, a, b);
                // Either tells; one that does not change in the loop takes less.
                let than = if self.f.is_outside(b) { b } else { a };
                let sign = self.lanes_constant(hold, 1 << 31);
                let carry = if self.f.is_outside(than) {
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
        self.known.truths.insert(one, carry);
        self.known.words.insert(sum, (low, one));
        self.known.carries.insert(sum, carry);
        Ok(())
    }

    /// A product of words, or a sum of two values of 64 bits, in 128.
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
        self.known.beyond.insert(sum, carry);
        Ok(Val::Wide(sum))
    }

    /// A term of a sum, if it is a word or one more than that.
    fn term(&mut self, val: Val) -> R<Option<Term>> {
        Ok(match val {
            Val::Known(bits) if bits < 1 << 32 => {
                Some(Term::Word(self.lanes_constant(Hold::W32, bits as u64)))
            }
            Val::One(v) if self.words.contains(&v) => Some(Term::Word(self.spread(Hold::W32, v))),
            Val::Wide(v) => match (self.known.carries.get(&v), self.known.words.get(&v)) {
                (Some(carry), Some((low, _))) => Some(Term::Sum { low: *low, carry: *carry }),
                (_, Some((low, _))) if self.known.zero_extended.contains(&v[0]) => {
                    Some(match self.known.truths.get(low) {
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

/// See [`Emitter::term`].
enum Term {
    Word(V),
    /// 1 where the mask holds.
    Bit(V),
    Sum {
        low: V,
        carry: V,
    },
}
