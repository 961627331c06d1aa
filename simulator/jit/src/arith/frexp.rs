//! Mantissas and exponents with the semantics of handlers (`frexp` of `exec::rt::float` and `double`).

use crate::arith::builder::{Builder, R};
use crate::arith::float::Denormals;
use crate::arith::float::Format;
use crate::arith::val::Val;
use crate::lowering::Shift;
use isa_lower::ir::HostWidth;
use wavesim_x64::inst::{Cc, V};

/// The power of two that makes any denormal normal.
const SCALE_EXPONENT: u64 = 64;

/// A decomposed number.
struct Decomposed {
    /// The number, with its denormals flushed if the mode says so.
    x: V,
    /// The number, scaled to be normal.
    normal: V,
    /// The mask of lanes with a denormal.
    denormal: V,
    /// The mask of lanes with zero, infinity or NaN.
    special: V,
}

impl Builder {
    /// Emits the mantissa in [0.5, 1), with the sign of the number; zero, infinity and (quieted) NaN are
    /// returned as they are.
    pub fn frexp_mantissa(&mut self, format: &Format, denormals: Denormals, a: Val) -> R<Val> {
        self.map_float_bits(format, denormals, a, |e, x| {
            let (host_width, significand) = (format.host_width, format.significand);
            let taken = e.decompose(format, x);
            let exponent = e.splat_constant(host_width, format.infinity);
            let half = e.splat_constant(host_width, format.one - (1 << significand));
            let rest = e.and_not(host_width, exponent, taken.normal);
            let made = e.bor(host_width, rest, half);
            let quiet = e.splat_constant(host_width, format.quiet);
            let quiet = e.bor(host_width, taken.x, quiet);
            let nan = e.is_nan(format, taken.x);
            let is_64 = host_width != HostWidth::W32;
            let own = e.f.blend(is_64, nan, quiet, taken.x);
            let made = e.f.blend(is_64, taken.special, own, made);
            if !is_64 {
                e.facts.denormal_free.insert(made);
            }
            made
        })
    }

    /// Emits the matching exponent, in 32 bits; 0 for zero, infinity and NaN.
    pub fn frexp_exponent(&mut self, format: &Format, denormals: Denormals, a: Val) -> R<Val> {
        let v = self.map_float_bits(format, denormals, a, |e, x| {
            let (host_width, significand) = (format.host_width, format.significand);
            let taken = e.decompose(format, x);
            let exponent = e.splat_constant(host_width, format.infinity);
            let field = e.band(host_width, taken.normal, exponent);
            let field = e.shift_by(Shift::Right, host_width, field, significand);
            let bias = e.splat_constant(host_width, (format.one >> significand) - 1);
            let number = e.isub(host_width, field, bias);
            let powers = e.splat_constant(host_width, SCALE_EXPONENT);
            let powers = e.band(host_width, taken.denormal, powers);
            let number = e.isub(host_width, number, powers);
            e.and_not(host_width, taken.special, number)
        })?;
        self.resize(v, format.host_width, HostWidth::W32)
    }

    /// Applies a function to the bits of lanes.
    fn map_float_bits(
        &mut self,
        format: &Format,
        denormals: Denormals,
        a: Val,
        mut f: impl FnMut(&mut Self, V) -> V,
    ) -> R<Val> {
        if format.host_width != HostWidth::W32 {
            let v = self.lanes64(a)?;
            return Ok(Val::Lanes64(v.map(|v| f(self, v))));
        }
        let v = self.lanes(a)?;
        let v = if denormals == Denormals::Flush { self.flush_denormals(v) } else { v };
        Ok(Val::Lanes(f(self, v)))
    }

    fn decompose(&mut self, format: &Format, x: V) -> Decomposed {
        let (host_width, is_64) = (format.host_width, format.host_width != HostWidth::W32);
        let [exponent, zero] = [format.infinity, 0].map(|bits| self.splat_constant(host_width, bits));
        let field = self.band(host_width, x, exponent);
        let least = self.icmp(Cc::Eq, host_width, field, zero);
        let most = self.icmp(Cc::Eq, host_width, field, exponent);
        let sign = self.splat_constant(host_width, 1 << (host_width.bits() - 1));
        let magnitude = self.and_not(host_width, sign, x);
        let none = self.icmp(Cc::Eq, host_width, magnitude, zero);
        let power = self.splat_constant(host_width, format.one + (SCALE_EXPONENT << format.significand));
        // With DAZ set, there are no denormals to scale.
        let scaled = self.f.rvm(format.mul, x, power, None);
        let normal = self.f.blend(is_64, least, scaled, x);
        let special = self.bor(host_width, most, none);
        Decomposed { x, normal, denormal: least, special }
    }
}
