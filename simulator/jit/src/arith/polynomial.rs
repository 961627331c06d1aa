//! Powers of 2, logarithms, sines and cosines of f32: the polynomials in f64 that handlers use
//! (`exec::rt::polynomials`, with the error bounds that `isa_spec::arith::approx` proves). Where the error
//! might change the rounded result, the packet calls the handlers' function, so that results are
//! bit-identical.

use crate::arith::builder::{Builder, R};
use crate::arith::float::predicate;
use crate::arith::float::{DOUBLE, SINGLE};
use crate::arith::lane_calls::RESULT;
use crate::arith::lane_calls::address;
use crate::arith::val::Val;
use crate::frame::frame_offset;
use crate::lowering::{LaneFunction, Shift, Transcendental};
use isa_lower::ir::HostWidth;
use isa_spec::arith::approx::quick::{ATANH, COS, EXP, MARGIN, ROUNDER, SIN};
use wavesim_x64::Code;
use wavesim_x64::inst::{Cc, Class, Inst, Mem, V};

/// The NaN that hardware returns for invalid arguments.
const NAN: u64 = 0xffc0_0000;

impl Builder {
    /// Emits a function of f32.
    pub fn polynomial_builtin(&mut self, builtin: Transcendental, v: Val) -> R<Val> {
        let host_width = HostWidth::W32;
        let argument = self.lanes(v)?;
        // Except for sines, hardware flushes denormals of these functions in every mode.
        let flush = self.flush || builtin != Transcendental::Sin;
        let x = if flush { self.flush_denormals(argument) } else { argument };
        let margin = self.f64_constant(MARGIN);
        let zero = self.splat_constant(HostWidth::W64, 0);
        let wide = self.widen_halves(x, Code::VEX_Vcvtps2pd_ymm_xmmm128);
        let (mut least, mut most, mut none) = (wide, wide, wide);
        for k in 0..2 {
            let y = match builtin {
                Transcendental::Exp2 => self.power_of_2(wide[k]),
                Transcendental::Log2 => self.logarithm(wide[k]),
                Transcendental::Sin | Transcendental::Cos => {
                    self.sine(wide[k], builtin == Transcendental::Cos)
                }
            };
            let error = self.f.rvm(DOUBLE.mul, y, margin, None);
            least[k] = self.f.rvm(DOUBLE.sub, y, error, None);
            most[k] = self.f.rvm(DOUBLE.add, y, error, None);
            none[k] = self.f.rvm(DOUBLE.compare, y, zero, Some(predicate::EQUAL));
        }
        let [least, most] = [least, most].map(|v| self.narrow_halves(v, Code::VEX_Vcvtpd2ps_xmm_ymmm256));
        // A zero result is +0.
        let none = self.low_words(none);
        let number = self.and_not(host_width, none, least);
        let differ = self.f.rvm(SINGLE.compare, least, most, Some(predicate::NOT_EQUAL));
        let (special, instead) = self.special(builtin, x);
        let uncertain = self.and_not(host_width, special, differ);
        let mut result = self.f.blend(false, special, instead, number);
        if flush {
            result = self.flush_denormals(result);
        }
        let (out, done) = (self.f.fresh(Class::Vec), self.f.label());
        self.f.assign(out, result);
        self.f.branch_unless_any(uncertain, uncertain, done);
        self.f.vstore(self.frame, frame_offset::LANE_BUFFER, argument);
        self.call_cold(address(LaneFunction::F32(builtin), self.flush));
        let from = Mem { base: self.frame, disp: frame_offset::LANE_BUFFER + 4 * RESULT as i32 };
        self.f.push(Inst::VecLoad { d: out, from, foldable: false });
        self.f.push(Inst::Label(done));
        if flush {
            self.facts.denormal_free.insert(out);
        }
        Ok(Val::Lanes(out))
    }

    fn f64_constant(&mut self, number: f64) -> V {
        self.splat_constant(HostWidth::W64, number.to_bits())
    }

    /// Evaluates a polynomial by its even and its odd terms.
    fn polynomial(&mut self, terms: &[f64], x: V) -> V {
        let last = terms.len() - 1;
        let square = self.f.rvm(DOUBLE.mul, x, x, None);
        let mut sums = [last & !1, (last - 1) | 1].map(|k| self.f64_constant(terms[k]));
        for k in (0..last - 1).rev() {
            let term = self.f64_constant(terms[k]);
            sums[k & 1] = self.f.fma(true, sums[k & 1], square, term);
        }
        self.f.fma(true, sums[1], x, sums[0])
    }

    /// Emits `2^x`. For
    /// x
    /// >= 200, every result is infinite or zero.
    fn power_of_2(&mut self, x: V) -> V {
        let [most, least, rounder, ln] =
            [200.0, -200.0, ROUNDER, std::f64::consts::LN_2].map(|number| self.f64_constant(number));
        let x = self.f.rvm(DOUBLE.min, x, most, None);
        let x = self.f.rvm(DOUBLE.max, x, least, None);
        let shifted = self.f.rvm(DOUBLE.add, x, rounder, None);
        let n = self.f.rvm(DOUBLE.sub, shifted, rounder, None);
        let t = self.f.rvm(DOUBLE.sub, x, n, None);
        let t = self.f.rvm(DOUBLE.mul, t, ln, None);
        let sum = self.polynomial(&EXP, t);
        let bias = self.splat_constant(HostWidth::W64, 1023);
        let exponent = self.iadd(HostWidth::W64, shifted, bias);
        let scale = self.shift_by(Shift::Left, HostWidth::W64, exponent, 52);
        self.f.rvm(DOUBLE.mul, sum, scale, None)
    }

    /// Emits the logarithm of a positive normal number.
    fn logarithm(&mut self, x: V) -> V {
        let host_width = HostWidth::W64;
        // Split into exponent and significand in [sqrt(1/2), sqrt(2)).
        let [root, top, place, exponents] = [0x3fe6_a09e_667f_3bcd, 1 << 63, 0x4330 << 48, 0xfff0 << 48]
            .map(|bits| self.splat_constant(host_width, bits));
        let shifted = self.isub(host_width, x, root);
        let e = self.iadd(host_width, shifted, top);
        let e = self.shift_by(Shift::Right, host_width, e, 52);
        let e = self.bor(host_width, e, place);
        let less = self.f64_constant(((1u64 << 52) + (1 << 11)) as f64);
        let e = self.f.rvm(DOUBLE.sub, e, less, None);
        let whole = self.band(host_width, shifted, exponents);
        let m = self.isub(host_width, x, whole);
        let one = self.f64_constant(1.0);
        let [below, above] = [DOUBLE.sub, DOUBLE.add].map(|code| self.f.rvm(code, m, one, None));
        let s = self.f.rvm(DOUBLE.div, below, above, None);
        let q = self.f.rvm(DOUBLE.mul, s, s, None);
        let sum = self.polynomial(&ATANH, q);
        let sum = self.f.rvm(DOUBLE.mul, s, sum, None);
        let twice = self.f64_constant(2.0 * std::f64::consts::LOG2_E);
        let sum = self.f.rvm(DOUBLE.mul, sum, twice, None);
        self.f.rvm(DOUBLE.add, e, sum, None)
    }

    /// Emits the sine or cosine of an angle in turns, below 2^24.
    fn sine(&mut self, x: V, cosine: bool) -> V {
        let host_width = HostWidth::W64;
        let [four, rounder, quarter] =
            [4.0, ROUNDER, std::f64::consts::FRAC_PI_2].map(|number| self.f64_constant(number));
        let x = self.f.rvm(DOUBLE.mul, x, four, None);
        let shifted = self.f.rvm(DOUBLE.add, x, rounder, None);
        let n = self.f.rvm(DOUBLE.sub, shifted, rounder, None);
        let t = self.f.rvm(DOUBLE.sub, x, n, None);
        let t = self.f.rvm(DOUBLE.mul, t, quarter, None);
        let q = self.f.rvm(DOUBLE.mul, t, t, None);
        let sin = self.polynomial(&SIN, q);
        let sin = self.f.rvm(DOUBLE.mul, sin, t, None);
        let cos = self.polynomial(&COS, q);
        // The quadrant, in the low bits, selects sine or cosine and the sign.
        let odd = self.shift_by(Shift::Left, host_width, shifted, 63);
        let (own, other) = if cosine { (cos, sin) } else { (sin, cos) };
        let value = self.f.blend(true, odd, other, own);
        let [one, top] = [1, 1 << 63].map(|bits| self.splat_constant(host_width, bits));
        let quarter = if cosine { self.iadd(host_width, shifted, one) } else { shifted };
        let sign = self.shift_by(Shift::Left, host_width, quarter, 62);
        let sign = self.band(host_width, sign, top);
        self.bxor(host_width, value, sign)
    }

    /// Returns the mask of special arguments, whose result is not the polynomial's, and their results.
    fn special(&mut self, builtin: Transcendental, x: V) -> (V, V) {
        let host_width = HostWidth::W32;
        let [magnitude, infinity, quiet, nan] =
            [0x7fff_ffff, 0x7f80_0000, 0x0040_0000, NAN].map(|bits| self.splat_constant(host_width, bits));
        let magnitude = self.band(host_width, x, magnitude);
        let is_nan = self.icmp(Cc::GtS, host_width, magnitude, infinity);
        let quiet = self.bor(host_width, x, quiet);
        if builtin == Transcendental::Exp2 {
            return (is_nan, quiet);
        }
        let is_zero = self.is_zero(host_width, magnitude);
        let is_infinite = self.icmp(Cc::Eq, host_width, magnitude, infinity);
        let (mut all, mut result) = (self.bor(host_width, is_nan, is_zero), x);
        if builtin == Transcendental::Log2 {
            let [none, least] = [0, 0xff80_0000].map(|bits| self.splat_constant(host_width, bits));
            let is_negative = self.icmp(Cc::LtS, host_width, x, none);
            for other in [is_negative, is_infinite] {
                all = self.bor(host_width, all, other);
            }
            result = self.f.blend(false, is_negative, nan, result);
            result = self.f.blend(false, is_zero, least, result);
        } else {
            // Every f32 above 2^24 is an integer.
            let [whole, most] = [if builtin == Transcendental::Cos { SINGLE.one } else { 0 }, 0x4b7f_ffff]
                .map(|bits| self.splat_constant(host_width, bits));
            let is_whole = self.icmp(Cc::GtS, host_width, magnitude, most);
            all = self.bor(host_width, all, is_whole);
            let of_zero = if builtin == Transcendental::Cos { whole } else { x };
            result = self.f.blend(false, is_zero, of_zero, whole);
            result = self.f.blend(false, is_infinite, nan, result);
        }
        (all, self.f.blend(false, is_nan, quiet, result))
    }
}
