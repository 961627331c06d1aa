//! Conversions between the representations of values, and operations on any of them.

use crate::arith::builder::{Bug, Builder, R};
use crate::arith::facts::KnownBits;
use crate::arith::ops::width;
use crate::arith::val::{Val, low_mask, narrow};
use crate::lowering::Shift;
use isa_lower::ir::HostWidth;
use wavesim_x64::inst::{Cc, Int1, V};

impl Builder {
    /// Returns a uniform value as an integer of its host width.
    pub fn uniform(&mut self, val: Val, host_width: HostWidth) -> R<V> {
        Ok(match val {
            _ if host_width == HostWidth::W128 => return Err(Bug("128 bits")),
            Val::Const(bits) => self.f.iconst(bits as u64 & low_mask(host_width.bits()) as u64),
            Val::Uniform(v) | Val::Bool(v) => v,
            Val::Lanes(_) | Val::Mask(_) | Val::Lanes64(_) => {
                return Err(Bug("a varying value as a uniform one"));
            }
        })
    }

    /// Returns 32-bit lanes with denormals flushed if they are still to be.
    pub fn lanes(&mut self, val: Val) -> R<V> {
        let v = self.unflushed_lanes(val)?;
        Ok(self.flush_pending(v))
    }

    /// Returns 32-bit lanes, whose denormals may still have to be flushed.
    pub fn unflushed_lanes(&mut self, val: Val) -> R<V> {
        Ok(match val {
            Val::Const(bits) => self.splat_constant(HostWidth::W32, bits as u64),
            Val::Lanes(v) => v,
            Val::Mask(mask) => {
                let v = self.shift_by(Shift::Right, HostWidth::W32, mask, 31);
                self.facts.bool_words.insert(v, mask);
                self.facts.bits.insert(v, KnownBits { zeros: !1, ones: 0 });
                v
            }
            Val::Uniform(_) | Val::Bool(_) => {
                let one = self.uniform(val, HostWidth::W32)?;
                self.broadcast(HostWidth::W32, one)
            }
            Val::Lanes64(_) => return Err(Bug("64 bits as 32")),
        })
    }

    /// Returns 64-bit lanes.
    pub fn lanes64(&mut self, val: Val) -> R<[V; 2]> {
        Ok(match val {
            Val::Const(bits) => [self.splat_constant(HostWidth::W64, bits as u64); 2],
            Val::Lanes64(v) => v,
            Val::Uniform(v) | Val::Bool(v) => [self.broadcast(HostWidth::W64, v); 2],
            Val::Lanes(_) | Val::Mask(_) => return Err(Bug("32 bits as 64")),
        })
    }

    /// Converts to a boolean: uniform ([`Val::Bool`] or constant), or of each lane.
    pub fn boolean(&mut self, val: Val, host_width: HostWidth) -> R<Val> {
        Ok(match val {
            Val::Const(bits) => Val::Const((bits != 0) as u128),
            Val::Bool(_) | Val::Mask(_) => val,
            Val::Uniform(v) => {
                let zero = self.is_zero(narrow(host_width), v);
                Val::Bool(self.f.int2(wavesim_x64::inst::Int2::Xor, width(HostWidth::W32), zero, 1))
            }
            Val::Lanes(v) => {
                let v = self.flush_pending(v);
                let zero = self.is_zero(HostWidth::W32, v);
                Val::Mask(self.bnot(HostWidth::W32, zero))
            }
            Val::Lanes64(v) => {
                let v = v.map(|v| self.is_zero(HostWidth::W64, v));
                let zero = self.low_words(v);
                Val::Mask(self.bnot(HostWidth::W32, zero))
            }
        })
    }

    /// Converts a boolean to a mask of lanes.
    pub fn mask(&mut self, cond: Val) -> R<V> {
        Ok(match cond {
            Val::Mask(v) => v,
            Val::Const(bits) => self.splat_constant(HostWidth::W32, if bits != 0 { u64::MAX } else { 0 }),
            Val::Bool(v) => {
                let v = self.ineg(HostWidth::W32, v);
                self.broadcast(HostWidth::W32, v)
            }
            _ => return Err(Bug("a value that is not a boolean")),
        })
    }

    /// Zero-extends or truncates.
    pub fn resize(&mut self, val: Val, from: HostWidth, to: HostWidth) -> R<Val> {
        if from == to {
            return Ok(val);
        }
        Ok(match (val, from, to) {
            (Val::Const(bits), ..) => Val::Const(bits & low_mask(to.bits())),
            (Val::Bool(_) | Val::Mask(_), _, HostWidth::W32) => val,
            (Val::Bool(_), ..) => val,
            // Values of at most 64 bits keep their representation in 128 bits.
            (_, _, HostWidth::W128) => self.resize(val, from, HostWidth::W64)?,
            (_, HostWidth::W128, HostWidth::W64) => val,
            (Val::Uniform(v), _, HostWidth::W64) => {
                self.zero_extended_ints.insert(v);
                val
            }
            (Val::Uniform(v), _, HostWidth::W32) => {
                Val::Uniform(self.f.int1(Int1::ZeroExtend32, width(HostWidth::W32), v))
            }
            (Val::Lanes64(v), _, HostWidth::W32) => Val::Lanes(self.low_words(v)),
            (Val::Lanes(_) | Val::Mask(_), ..) => {
                let v = self.lanes(val)?;
                Val::Lanes64(self.extend(v, false))
            }
            (Val::Lanes64(_), ..) => return Err(Bug("128 bits")),
        })
    }

    /// Applies a binary operation; `f` gets the host width of the elements.
    pub fn binary_op(
        &mut self,
        host_width: HostWidth,
        a: Val,
        b: Val,
        mut f: impl FnMut(&mut Self, HostWidth, V, V) -> V,
    ) -> R<Val> {
        let host_width = narrow(host_width);
        if !a.is_varying() && !b.is_varying() {
            let (a, b) = (self.uniform(a, host_width)?, self.uniform(b, host_width)?);
            return Ok(Val::Uniform(f(self, host_width, a, b)));
        }
        Ok(match host_width {
            HostWidth::W32 => {
                let (a, b) = (self.lanes(a)?, self.lanes(b)?);
                Val::Lanes(f(self, host_width, a, b))
            }
            _ => {
                let (a, b) = (self.lanes64(a)?, self.lanes64(b)?);
                Val::Lanes64([f(self, host_width, a[0], b[0]), f(self, host_width, a[1], b[1])])
            }
        })
    }

    /// Applies a unary operation.
    pub fn unary_op(
        &mut self,
        host_width: HostWidth,
        a: Val,
        mut f: impl FnMut(&mut Self, HostWidth, V) -> V,
    ) -> R<Val> {
        self.binary_op(host_width, a, a, |e, host_width, a, _| f(e, host_width, a))
    }

    /// Compares two values.
    pub fn compare_op(
        &mut self,
        host_width: HostWidth,
        a: Val,
        b: Val,
        f: impl FnMut(&mut Self, HostWidth, V, V) -> V,
    ) -> R<Val> {
        let v = self.binary_op(host_width, a, b, f)?;
        Ok(self.comparison_result(v))
    }

    /// Converts the result of a comparison to a boolean.
    pub fn comparison_result(&mut self, val: Val) -> Val {
        match val {
            Val::Uniform(v) => Val::Bool(v),
            Val::Lanes(v) => Val::Mask(v),
            Val::Lanes64(v) => Val::Mask(self.low_words(v)),
            other => other,
        }
    }

    /// Selects `a` where the condition holds, else `b`.
    pub fn select(&mut self, cond: Val, host_width: HostWidth, a: Val, b: Val) -> R<Val> {
        if let Val::Const(bits) = cond {
            return Ok(if bits != 0 { a } else { b });
        }
        if a == b {
            return Ok(a);
        }
        // Booleans stay booleans.
        if let (
            HostWidth::W32,
            Val::Mask(mask),
            Val::Mask(_) | Val::Const(0 | 1),
            Val::Mask(_) | Val::Const(0 | 1),
        ) = (host_width, cond, a, b)
        {
            let (a, b) = (self.mask(a)?, self.mask(b)?);
            return Ok(Val::Mask(self.f.blend(false, mask, a, b)));
        }
        let (cond, a, b) = match cond {
            Val::Mask(mask) => match self.facts.complements.get(&mask) {
                Some(mask) => (Val::Mask(*mask), b, a),
                None => (cond, a, b),
            },
            _ => (cond, a, b),
        };
        match cond {
            Val::Bool(cond) if !a.is_varying() && !b.is_varying() => {
                self.binary_op(host_width, a, b, |e, _, a, b| e.f.select(cond, a, b))
            }
            Val::Bool(_) | Val::Mask(_) => {
                let mask = self.mask(cond)?;
                Ok(match narrow(host_width) {
                    HostWidth::W32 => {
                        let zero = [a, b].map(|val| val == Val::Const(0));
                        let (a, b) = (self.lanes(a)?, self.lanes(b)?);
                        Val::Lanes(match (self.facts.comparisons.get(&mask), zero) {
                            (Some(comparison), _) if let Some(v) = recognise_min_max(*comparison, a, b) => {
                                let (greater, signed) = v;
                                self.min_max_words(greater, signed, a, b)
                            }
                            (_, [_, true]) => self.band(HostWidth::W32, mask, a),
                            (_, [true, _]) => self.and_not(HostWidth::W32, mask, b),
                            _ => self.f.blend(false, mask, a, b),
                        })
                    }
                    _ => {
                        let (a, b, mask) = (self.lanes64(a)?, self.lanes64(b)?, self.mask64(mask));
                        Val::Lanes64([0, 1].map(|k| self.f.blend(true, mask[k], a[k], b[k])))
                    }
                })
            }
            _ => Err(Bug("a value that is not a boolean")),
        }
    }
}

/// Recognises a select on a comparison as a maximum (`true`) or minimum, and returns whether it is signed.
fn recognise_min_max((cc, x, y): (Cc, V, V), a: V, b: V) -> Option<(bool, bool)> {
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
