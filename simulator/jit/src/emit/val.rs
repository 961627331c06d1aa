//! Values of the lane-loop representation at compile time: constant, uniform, or with one element for each of
//! eight lanes.

use super::known::Bits;
use super::ops::{Shift, width};
use super::{Emitter, R, Unsupported};
use isa_lower::ir::Hold;
use wavesim_x64::inst::{Cc, Int1, V};

/// A value. Its holder is known from the context.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Val {
    /// A constant.
    Known(u128),
    /// A uniform integer, whose bits beyond its holder are zero.
    One(V),
    /// A uniform boolean: an integer, 0 or 1.
    Truth(V),
    /// 32 bits of each of eight lanes.
    Lanes(V),
    /// A boolean of each of eight lanes: all ones or zero, in 32 bits.
    Mask(V),
    /// 64 bits of each of eight lanes: those of lanes 0, 1, 4 and 5, and those of the other four.
    Wide([V; 2]),
}

/// Returns a mask of the low `width` bits.
pub fn low(width: u32) -> u128 {
    if width >= 128 { u128::MAX } else { (1 << width) - 1 }
}

impl Val {
    /// Returns whether lanes may differ.
    pub fn varies(self) -> bool {
        matches!(self, Val::Lanes(_) | Val::Mask(_) | Val::Wide(_))
    }
}

impl Emitter<'_> {
    /// Returns a uniform value as an integer of its holder.
    pub fn one(&mut self, val: Val, hold: Hold) -> R<V> {
        Ok(match val {
            _ if hold == Hold::W128 => return Err(Unsupported("128 bits")),
            Val::Known(bits) => self.f.iconst(bits as u64 & low(hold.bits()) as u64),
            Val::One(v) | Val::Truth(v) => v,
            Val::Lanes(_) | Val::Mask(_) | Val::Wide(_) => {
                return Err(Unsupported("a lane's value for the wave"));
            }
        })
    }

    /// Returns 32-bit lanes with denormals flushed if they are still to be.
    pub fn lanes(&mut self, val: Val) -> R<V> {
        let v = self.raw_lanes(val)?;
        Ok(self.exact(v))
    }

    /// Returns 32-bit lanes, whose denormals may still have to be flushed.
    pub fn raw_lanes(&mut self, val: Val) -> R<V> {
        Ok(match val {
            Val::Known(bits) => self.lanes_constant(Hold::W32, bits as u64),
            Val::Lanes(v) => v,
            Val::Mask(mask) => {
                let v = self.shift_by(Shift::Right, Hold::W32, mask, 31);
                self.known.truths.insert(v, mask);
                self.known.bits.insert(v, Bits { zeros: !1, ones: 0 });
                v
            }
            Val::One(_) | Val::Truth(_) => {
                let one = self.one(val, Hold::W32)?;
                self.spread(Hold::W32, one)
            }
            Val::Wide(_) => return Err(Unsupported("64 bits for 32")),
        })
    }

    /// Returns 64-bit lanes.
    pub fn wide(&mut self, val: Val) -> R<[V; 2]> {
        Ok(match val {
            Val::Known(bits) => [self.lanes_constant(Hold::W64, bits as u64); 2],
            Val::Wide(v) => v,
            Val::One(v) | Val::Truth(v) => [self.spread(Hold::W64, v); 2],
            Val::Lanes(_) | Val::Mask(_) => return Err(Unsupported("32 bits for 64")),
        })
    }

    /// Converts to a boolean: uniform ([`Val::Bool`] or constant), or of each lane.
    pub fn truth(&mut self, val: Val, hold: Hold) -> R<Val> {
        Ok(match val {
            Val::Known(bits) => Val::Known((bits != 0) as u128),
            Val::Truth(_) | Val::Mask(_) => val,
            Val::One(v) => {
                let zero = self.is_zero(narrow(hold), v);
                Val::Truth(self.f.int2(wavesim_x64::inst::Int2::Xor, width(Hold::W32), zero, 1))
            }
            Val::Lanes(v) => {
                let v = self.exact(v);
                let zero = self.is_zero(Hold::W32, v);
                Val::Mask(self.bnot(Hold::W32, zero))
            }
            Val::Wide(v) => {
                let v = v.map(|v| self.is_zero(Hold::W64, v));
                let zero = self.low_words(v);
                Val::Mask(self.bnot(Hold::W32, zero))
            }
        })
    }

    /// Converts a boolean to a mask of lanes.
    pub fn mask(&mut self, truth: Val) -> R<V> {
        Ok(match truth {
            Val::Mask(v) => v,
            Val::Known(bits) => self.lanes_constant(Hold::W32, if bits != 0 { u64::MAX } else { 0 }),
            Val::Truth(v) => {
                let v = self.ineg(Hold::W32, v);
                self.spread(Hold::W32, v)
            }
            _ => return Err(Unsupported("no truth")),
        })
    }

    /// Zero-extends or truncates.
    pub fn resized(&mut self, val: Val, from: Hold, to: Hold) -> R<Val> {
        if from == to {
            return Ok(val);
        }
        Ok(match (val, from, to) {
            (Val::Known(bits), ..) => Val::Known(bits & low(to.bits())),
            (Val::Truth(_) | Val::Mask(_), _, Hold::W32) => val,
            (Val::Truth(_), ..) => val,
            // Values of at most 64 bits keep their representation in 128 bits.
            (_, _, Hold::W128) => self.resized(val, from, Hold::W64)?,
            (_, Hold::W128, Hold::W64) => val,
            (Val::One(v), _, Hold::W64) => {
                self.words.insert(v);
                val
            }
            (Val::One(v), _, Hold::W32) => Val::One(self.f.int1(Int1::ZeroExtend32, width(Hold::W32), v)),
            (Val::Wide(v), _, Hold::W32) => Val::Lanes(self.low_words(v)),
            (Val::Lanes(_) | Val::Mask(_), ..) => {
                let v = self.lanes(val)?;
                Val::Wide(self.extended(v, false))
            }
            (Val::Wide(_), ..) => return Err(Unsupported("128 bits")),
        })
    }

    /// Applies a binary operation; `f` gets the holder of the elements.
    pub fn both(
        &mut self,
        hold: Hold,
        a: Val,
        b: Val,
        mut f: impl FnMut(&mut Self, Hold, V, V) -> V,
    ) -> R<Val> {
        let hold = narrow(hold);
        if !a.varies() && !b.varies() {
            let (a, b) = (self.one(a, hold)?, self.one(b, hold)?);
            return Ok(Val::One(f(self, hold, a, b)));
        }
        Ok(match hold {
            Hold::W32 => {
                let (a, b) = (self.lanes(a)?, self.lanes(b)?);
                Val::Lanes(f(self, hold, a, b))
            }
            _ => {
                let (a, b) = (self.wide(a)?, self.wide(b)?);
                Val::Wide([f(self, hold, a[0], b[0]), f(self, hold, a[1], b[1])])
            }
        })
    }

    /// Applies a unary operation.
    pub fn each(&mut self, hold: Hold, a: Val, mut f: impl FnMut(&mut Self, Hold, V) -> V) -> R<Val> {
        let known = matches!(a, Val::Known(_));
        debug_assert!(!known || !a.varies());
        self.both(hold, a, a, |e, hold, a, _| f(e, hold, a))
    }

    /// Compares two values.
    pub fn compared(
        &mut self,
        hold: Hold,
        a: Val,
        b: Val,
        f: impl FnMut(&mut Self, Hold, V, V) -> V,
    ) -> R<Val> {
        let v = self.both(hold, a, b, f)?;
        Ok(self.as_truth(v))
    }

    /// Converts the result of a comparison to a boolean.
    pub fn as_truth(&mut self, val: Val) -> Val {
        match val {
            Val::One(v) => Val::Truth(v),
            Val::Lanes(v) => Val::Mask(v),
            Val::Wide(v) => Val::Mask(self.low_words(v)),
            other => other,
        }
    }

    /// Selects `a` where the condition holds, else `b`.
    pub fn chosen(&mut self, truth: Val, hold: Hold, a: Val, b: Val) -> R<Val> {
        if let Val::Known(bits) = truth {
            return Ok(if bits != 0 { a } else { b });
        }
        if a == b {
            return Ok(a);
        }
        // Booleans stay booleans.
        if let (
            Hold::W32,
            Val::Mask(mask),
            Val::Mask(_) | Val::Known(0 | 1),
            Val::Mask(_) | Val::Known(0 | 1),
        ) = (hold, truth, a, b)
        {
            let (a, b) = (self.mask(a)?, self.mask(b)?);
            return Ok(Val::Mask(self.f.blend(false, mask, a, b)));
        }
        let (truth, a, b) = match truth {
            Val::Mask(mask) => match self.known.complements.get(&mask) {
                Some(mask) => (Val::Mask(*mask), b, a),
                None => (truth, a, b),
            },
            _ => (truth, a, b),
        };
        match truth {
            Val::Truth(truth) if !a.varies() && !b.varies() => {
                self.both(hold, a, b, |e, _, a, b| e.f.select(truth, a, b))
            }
            Val::Truth(_) | Val::Mask(_) => {
                let mask = self.mask(truth)?;
                Ok(match narrow(hold) {
                    Hold::W32 => {
                        let zero = [a, b].map(|val| val == Val::Known(0));
                        let (a, b) = (self.lanes(a)?, self.lanes(b)?);
                        Val::Lanes(match (self.known.comparisons.get(&mask), zero) {
                            (Some(comparison), _) if let Some(v) = extreme(*comparison, a, b) => {
                                let (greater, signed) = v;
                                self.extreme(greater, signed, a, b)
                            }
                            (_, [_, true]) => self.band(Hold::W32, mask, a),
                            (_, [true, _]) => self.without(Hold::W32, mask, b),
                            _ => self.f.blend(false, mask, a, b),
                        })
                    }
                    _ => {
                        let (a, b, mask) = (self.wide(a)?, self.wide(b)?, self.wide_mask(mask));
                        Val::Wide([0, 1].map(|k| self.f.blend(true, mask[k], a[k], b[k])))
                    }
                })
            }
            _ => Err(Unsupported("no truth")),
        }
    }
}

/// Recognises a select on a comparison as a maximum (`true`) or minimum, and returns whether it is signed.
fn extreme((cc, x, y): (Cc, V, V), a: V, b: V) -> Option<(bool, bool)> {
    let (greater, signed) = match cc {
        Cc::GtS | Cc::GeS => (true, true),
        Cc::LtS | Cc::LeS => (false, true),
        Cc::GtU | Cc::GeU => (true, false),
        Cc::LtU | Cc::LeU => (false, false),
        Cc::Eq | Cc::Ne => return None,
    };
    match (a == x && b == y, a == y && b == x) {
        (true, _) => Some((greater, signed)),
        (_, true) => Some((!greater, signed)),
        _ => None,
    }
}

/// Returns the holder of the representation: 128-bit values are represented by 64 bits.
pub fn narrow(hold: Hold) -> Hold {
    if hold == Hold::W32 { Hold::W32 } else { Hold::W64 }
}
