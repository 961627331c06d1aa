//! Shifts and their counts.

use crate::arith::builder::{Bug, Builder, R};
use crate::arith::facts::KnownBits;
use crate::arith::ops::width;
use crate::arith::val::{Val, low_mask, narrow};
use crate::lowering::Shift;
use isa_lower::ir::*;
use wavesim_x64::inst::{Cc, Int2};

/// A shift count in 32 bits.
#[derive(Debug, Clone, Copy)]
pub struct ShiftCount {
    pub v: Val,
    /// The count is known to be below the width of the shifted value.
    pub in_range: bool,
}

impl From<Val> for ShiftCount {
    fn from(v: Val) -> ShiftCount {
        ShiftCount { v, in_range: false }
    }
}

impl Builder {
    /// Shifts by any count: counts from the host width on shift everything out.
    pub fn shift(
        &mut self,
        shift: Shift,
        host_width: HostWidth,
        v: Val,
        count: impl Into<ShiftCount>,
    ) -> R<Val> {
        let ShiftCount { v: n, in_range } = count.into();
        if let Val::Const(n) = n {
            return self.shift_const(shift, host_width, v, n as u32);
        }
        if host_width == HostWidth::W128 {
            return Err(Bug("128 bits"));
        }
        if v.is_varying() || n.is_varying() {
            let n = self.resize(n, HostWidth::W32, host_width)?;
            return self
                .binary_op(host_width, v, n, |e, host_width, v, n| e.shift_lanes(shift, host_width, v, n));
        }
        let (v, mut n) = (self.uniform(v, host_width)?, self.uniform(n, HostWidth::W32)?);
        let (op, all) = match shift {
            Shift::Left => (Int2::Shl, false),
            Shift::Right => (Int2::Shr, false),
            Shift::Arithmetic => (Int2::Sar, !in_range),
        };
        if all {
            let most = self.f.iconst(host_width.bits() as u64 - 1);
            n = self.umin(n, most);
        }
        let shifted = self.f.int2(op, width(host_width), v, n);
        if in_range || shift == Shift::Arithmetic {
            return Ok(Val::Uniform(shifted));
        }
        let inside = self.f.compare(Cc::LtU, width(HostWidth::W32), n, host_width.bits() as i32);
        let zero = self.f.iconst(0);
        Ok(Val::Uniform(self.f.select(inside, shifted, zero)))
    }

    fn shift_const(&mut self, shift: Shift, host_width: HostWidth, v: Val, n: u32) -> R<Val> {
        let bits = host_width.bits();
        if n == 0 {
            return Ok(v);
        }
        if let Val::Const(v) = v {
            let above = 128 - bits;
            return Ok(Val::Const(
                low_mask(bits)
                    & match shift {
                        Shift::Arithmetic => ((v << above) as i128 >> above >> n.min(bits - 1)) as u128,
                        _ if n >= bits => 0,
                        Shift::Left => v << n,
                        Shift::Right => v >> n,
                    },
            ));
        }
        if host_width == HostWidth::W128 {
            return match (shift, v) {
                (Shift::Right, Val::Lanes64(v)) if n == 64 && self.facts.bit_64.contains_key(&v) => {
                    Ok(Val::Mask(self.facts.bit_64[&v]))
                }
                (_, Val::Lanes64(v)) if self.facts.bit_64.contains_key(&v) => Err(Bug("128 bits")),
                (Shift::Right, _) if n >= 64 => Ok(Val::Const(0)),
                (Shift::Right, _) => self.shift_const(shift, HostWidth::W64, v, n),
                // Bits shifted beyond bit 63 would be lost.
                _ => Err(Bug("128 bits")),
            };
        }
        if n >= bits && shift != Shift::Arithmetic {
            return Ok(Val::Const(0));
        }
        let mut result = KnownBits::default();
        if let (HostWidth::W32, Val::Lanes(v)) = (host_width, v) {
            let v = self.flush_pending(v);
            let KnownBits { zeros, ones } = self.facts.bits_of(v);
            result = match shift {
                Shift::Left => KnownBits { zeros: zeros << n | !(u32::MAX << n), ones: ones << n },
                Shift::Right => KnownBits { zeros: zeros >> n | !(u32::MAX >> n), ones: ones >> n },
                Shift::Arithmetic => KnownBits::default(),
            };
            if let Some(all) = result.as_constant() {
                return Ok(Val::Const(all as u128));
            }
        }
        let val = self.unary_op(narrow(host_width), v, |e, host_width, v| {
            e.shift_by(shift, host_width, v, n.min(bits - 1))
        })?;
        if let Val::Lanes(v) = val {
            self.facts.record_bits(v, result);
        }
        Ok(val)
    }
}
