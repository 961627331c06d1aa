//! Shifts and their counts.

use super::known::Bits;
use super::ops::{Shift, width};
use super::val::{Val, low, narrow};
use super::{Emitter, R, Unsupported};
use isa_lower::ir::*;
use wavesim_x64::inst::{Cc, Int2};

/// A shift count in 32 bits.
#[derive(Debug, Clone, Copy)]
pub struct Count {
    v: Val,
    /// The count is known to be below the width of the shifted value.
    sure: bool,
}

impl From<Val> for Count {
    fn from(v: Val) -> Count {
        Count { v, sure: false }
    }
}

impl Emitter<'_> {
    /// Lowers a shift count, and records whether it is known to be below the holder's width.
    pub fn bounded(&mut self, count: &Value, hold: Hold) -> R<Count> {
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

    /// Lowers the low word of a 64-bit right shift.
    pub fn low_of_shifted(&mut self, inner: &Value, n: &Value) -> R<Val> {
        let hold = Hold::W32;
        let (v, n) = (self.value(inner)?, self.bounded(n, hold)?);
        match v {
            Val::Wide(v) if n.sure => {
                // For a count of 0, the high word contributes nothing: a left shift by 32 shifts everything
                // out.
                let (low, high) = (self.low_words(v), self.high_words(v));
                let more = self.op2(Op2::Sub, hold, Val::Known(32), n.v)?;
                let low = self.shifted(Shift::Right, hold, Val::Lanes(low), n)?;
                let high = self.shifted(Shift::Left, hold, Val::Lanes(high), more)?;
                self.op2(Op2::Or, hold, low, high)
            }
            v => {
                let v = self.shifted(Shift::Right, Hold::W64, v, n)?;
                self.resized(v, Hold::W64, hold)
            }
        }
    }

    /// Shifts by any count: counts from the holder's width on shift everything out.
    pub fn shifted(&mut self, shift: Shift, hold: Hold, v: Val, count: impl Into<Count>) -> R<Val> {
        let Count { v: n, sure } = count.into();
        if let Val::Known(n) = n {
            return self.shifted_by(shift, hold, v, n as u32);
        }
        if hold == Hold::W128 {
            return Err(Unsupported("128 bits"));
        }
        if v.varies() || n.varies() {
            let n = self.resized(n, Hold::W32, hold)?;
            return self.both(hold, v, n, |e, hold, v, n| e.shift_lanes(shift, hold, v, n));
        }
        let (v, mut n) = (self.one(v, hold)?, self.one(n, Hold::W32)?);
        let (op, all) = match shift {
            Shift::Left => (Int2::Shl, false),
            Shift::Right => (Int2::Shr, false),
            Shift::Arithmetic => (Int2::Sar, !sure),
        };
        if all {
            let most = self.f.iconst(hold.bits() as u64 - 1);
            n = self.umin(n, most);
        }
        let shifted = self.f.int2(op, width(hold), v, n);
        if sure || shift == Shift::Arithmetic {
            return Ok(Val::One(shifted));
        }
        let inside = self.f.compare(Cc::LtU, width(Hold::W32), n, hold.bits() as i32);
        let zero = self.f.iconst(0);
        Ok(Val::One(self.f.select(inside, shifted, zero)))
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
            return match (shift, v) {
                (Shift::Right, Val::Wide(v)) if n == 64 && self.known.beyond.contains_key(&v) => {
                    Ok(Val::Mask(self.known.beyond[&v]))
                }
                (_, Val::Wide(v)) if self.known.beyond.contains_key(&v) => Err(Unsupported("128 bits")),
                (Shift::Right, _) if n >= 64 => Ok(Val::Known(0)),
                (Shift::Right, _) => self.shifted_by(shift, Hold::W64, v, n),
                // Bits shifted beyond bit 63 would be lost.
                _ => Err(Unsupported("128 bits")),
            };
        }
        if n >= bits && shift != Shift::Arithmetic {
            return Ok(Val::Known(0));
        }
        let mut result = Bits::default();
        if let (Hold::W32, Val::Lanes(v)) = (hold, v) {
            let v = self.exact(v);
            let Bits { zeros, ones } = self.known.bits_of(v);
            result = match shift {
                Shift::Left => Bits { zeros: zeros << n | !(u32::MAX << n), ones: ones << n },
                Shift::Right => Bits { zeros: zeros >> n | !(u32::MAX >> n), ones: ones >> n },
                Shift::Arithmetic => Bits::default(),
            };
            if let Some(all) = result.all() {
                return Ok(Val::Known(all as u128));
            }
        }
        let val = self.each(narrow(hold), v, |e, hold, v| e.shift_by(shift, hold, v, n.min(bits - 1)))?;
        if let Val::Lanes(v) = val {
            self.known.note_bits(v, result);
        }
        Ok(val)
    }
}
