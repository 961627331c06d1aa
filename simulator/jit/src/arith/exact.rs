//! Operations that the host's arithmetic computes exactly for nearly all inputs, with calls of the handlers'
//! functions for the rest.

use crate::arith::builder::{Builder, R};
use crate::arith::float::predicate;
use crate::arith::float::{DOUBLE, Denormals};
use crate::arith::lane_calls::RESULT;
use crate::arith::lane_calls::for_each_lane;
use crate::arith::val::Val;
use crate::frame::frame_offset;
use crate::lowering::Shift;
use isa_lower::ir::{HostWidth, Op2};

use crate::frame::{Frame, called};
use wavesim_machine::exec::rt::{Keep, fma_ldexp_f64, rsq_f64, trig_preop_f64};
use wavesim_x64::Code;
use wavesim_x64::inst::{Cc, Class, Inst, V};

impl Builder {
    /// Replaces the results by those of a handlers' function if a bit of the masks is set.
    fn replace_unless_exact(
        &mut self,
        uncertain: [V; 2],
        args: &[[V; 2]],
        results: [V; 2],
        function: u64,
    ) -> [V; 2] {
        let uncertain = self.bor(HostWidth::W64, uncertain[0], uncertain[1]);
        let certain = self.f.label();
        let out = results.map(|v| {
            let out = self.f.fresh(Class::Vec);
            self.f.assign(out, v);
            out
        });
        self.f.branch_unless_any(uncertain, uncertain, certain);
        for (n, v) in (0..).zip(args.iter().flatten()) {
            self.f.vstore(self.frame, frame_offset::LANE_BUFFER + 32 * n, *v);
        }
        self.call_cold(function);
        for (n, d) in (0..).zip(out) {
            let from = wavesim_x64::inst::Mem {
                base: self.frame,
                disp: frame_offset::LANE_BUFFER + 8 * RESULT as i32 + 32 * n,
            };
            self.f.push(Inst::VecLoad { d, from, foldable: false });
        }
        self.f.push(Inst::Label(certain));
        out
    }

    /// Emits a segment of 2 / pi for an f64, by its number.
    pub fn trig_preop(&mut self, a: Val, n: Val) -> R<Val> {
        let a = self.lanes64(a)?;
        let n = self.lanes(n)?;
        let n = self.extend(n, false);
        for (place, v) in (0..).zip(a.into_iter().chain(n)) {
            self.f.vstore(self.frame, frame_offset::LANE_BUFFER + 32 * place, v);
        }
        self.call_cold(exact_trig_preop as *const () as u64);
        let results = [0, 1].map(|k| -> V {
            let disp = frame_offset::LANE_BUFFER + 8 * RESULT as i32 + 32 * k;
            self.f.vload(self.frame, disp, false)
        });
        Ok(Val::Lanes64(results))
    }

    /// Emits `1 / sqrt(x)` of f64: the handler's error estimate for the quotient by the rounded root.
    pub fn rsq_f64(&mut self, a: Val) -> R<Val> {
        let host_width = HostWidth::W64;
        let x = self.lanes64(a)?;
        let [one, half, tiny, sign, zero, infinity] =
            [DOUBLE.one, 0.5f64.to_bits(), (1023 - 95) << 52, 1 << 63, 0, DOUBLE.infinity]
                .map(|bits| self.splat_constant(host_width, bits));
        let mut uncertain = Vec::new();
        let results = x.map(|x| {
            let (mul, add) = (DOUBLE.mul, DOUBLE.add);
            let root = self.f.rm(DOUBLE.sqrt, x, None);
            let y = self.f.rvm(DOUBLE.div, one, root, None);
            let high = self.f.rvm(mul, x, y, None);
            let minus_high = self.bxor(host_width, high, sign);
            let low = self.f.fma(true, x, y, minus_high);
            let minus_low = self.bxor(host_width, low, sign);
            let rest = self.f.fma(true, minus_high, y, one);
            let rest = self.f.fma(true, minus_low, y, rest);
            let half = self.f.rvm(mul, half, y, None);
            let error = self.f.rvm(mul, half, rest, None);
            let reserve = self.f.rvm(mul, y, tiny, None);
            let less = self.f.rvm(DOUBLE.sub, error, reserve, None);
            let more = self.f.rvm(add, error, reserve, None);
            let [least, most] = [less, more].map(|error| self.f.rvm(add, y, error, None));
            let equal = self.f.rvm(DOUBLE.compare, least, most, Some(predicate::EQUAL));
            // Zero, infinity, NaN and negative numbers are exact, too.
            let none = self.f.rvm(DOUBLE.compare, x, zero, Some(predicate::EQUAL));
            let far = self.f.rvm(DOUBLE.compare, x, infinity, Some(predicate::EQUAL));
            let nan = self.f.rvm(DOUBLE.compare, y, y, Some(predicate::UNORDERED));
            let certain =
                [none, far, nan].into_iter().fold(equal, |all, mask| self.bor(host_width, all, mask));
            uncertain.push(self.bnot(host_width, certain));
            self.f.blend(true, equal, least, y)
        });
        let function = exact_rsq_f64 as *const () as u64;
        Ok(Val::Lanes64(self.replace_unless_exact([uncertain[0], uncertain[1]], &[x], results, function)))
    }

    /// Emits `(a * b + c) * 2^n` of f32, by a sum in f64 that is rounded to odd, which makes the second
    /// rounding exact. It is skipped if no lane needs it, as is usual in divisions.
    pub fn fma_ldexp_f32(&mut self, terms: [Val; 4]) -> R<Val> {
        let Some(only) = self.demanded else { return self.fma_ldexp_f32_unconditional(terms) };
        let (out, done) = (self.f.fresh(Class::Vec), self.f.label());
        let none = self.f.vconst([0; 8]);
        self.f.assign(out, none);
        self.f.branch_unless_any(only, only, done);
        // Values defined on this path do not dominate the code after it.
        let known = self.facts.clone();
        let v = self.fma_ldexp_f32_unconditional(terms)?;
        let v = self.lanes(v)?;
        self.f.assign(out, v);
        self.facts = known;
        self.f.push(Inst::Label(done));
        Ok(Val::Lanes(out))
    }

    fn fma_ldexp_f32_unconditional(&mut self, [a, b, c, n]: [Val; 4]) -> R<Val> {
        let denormals = self.f32_denormals();
        let mut terms = Vec::new();
        for val in [a, b, c] {
            let v = self.unflushed_lanes(val)?;
            let v = self.float_source(denormals, v);
            terms.push(self.widen_halves(v, Code::VEX_Vcvtps2pd_ymm_xmmm128));
        }
        // This is exact: the exponent of a sum of f32 is far from f64's limits. For
        // n
        // > 600, every result is infinite or zero.
        let n = self.lanes(n)?;
        let [least, most, bias] =
            [-600i32, 600, 1023].map(|n| self.splat_constant(HostWidth::W32, n as u32 as u64));
        let n = self.f.rvm(Code::VEX_Vpmaxsd_ymm_ymm_ymmm256, n, least, None);
        let n = self.f.rvm(Code::VEX_Vpminsd_ymm_ymm_ymmm256, n, most, None);
        let n = self.iadd(HostWidth::W32, n, bias);
        let scales = self.extend(n, false).map(|v| self.shift_by(Shift::Left, HostWidth::W64, v, 52));
        let results = [0, 1].map(|k| {
            let sum = self.fma_round_to_odd(&DOUBLE, [terms[0][k], terms[1][k], terms[2][k]]);
            self.f.rvm(DOUBLE.mul, sum, scales[k], None)
        });
        let v = self.narrow_halves(results, Code::VEX_Vcvtpd2ps_xmm_ymmm256);
        Ok(Val::Lanes(self.float_result(denormals, v)))
    }

    /// Emits `(a * b + c) * 2^n` of f64. The fast path is exact if both the sum and the result are normal
    /// numbers. Only the demanded lanes matter.
    pub fn fma_ldexp_f64(&mut self, [a, b, c, n]: [Val; 4], only: Option<V>) -> R<Val> {
        let sum =
            self.float_op(Denormals::Keep, &DOUBLE, [a, b, c], |e, [a, b, c]| e.f.fma(true, a, b, c))?;
        let sum = self.lanes64(sum)?;
        let bits = self.high_words(sum);
        let exponent = self.shift_by(Shift::Right, HostWidth::W32, bits, 20);
        let field = self.splat_constant(HostWidth::W32, 0x7ff);
        let exponent = self.band(HostWidth::W32, exponent, field);
        let words = self.lanes(n)?;
        let scaled = self.iadd(HostWidth::W32, exponent, words);
        // The exponent must be at least 2: a number with exponent 1 may be rounded from a denormal.
        let [least, most] = [1, 0x7ff].map(|n| self.splat_constant(HostWidth::W32, n));
        let inside = [exponent, scaled].map(|v| {
            let above = self.icmp(Cc::GtS, HostWidth::W32, v, least);
            let below = self.icmp(Cc::GtS, HostWidth::W32, most, v);
            self.band(HostWidth::W32, above, below)
        });
        let certain = self.band(HostWidth::W32, inside[0], inside[1]);
        let mut uncertain = self.bnot(HostWidth::W32, certain);
        if let Some(only) = only {
            uncertain = self.band(HostWidth::W32, uncertain, only);
        }
        let first = self.shift(Shift::Arithmetic, HostWidth::W32, n, Val::Const(1))?;
        let second = self.op2(Op2::Sub, HostWidth::W32, n, first)?;
        let mut results = sum;
        for n in [first, second] {
            let power = self.pow2(n)?;
            results = [0, 1].map(|k| self.f.rvm(DOUBLE.mul, results[k], power[k], None));
        }
        let [a, b, c] = [self.lanes64(a)?, self.lanes64(b)?, self.lanes64(c)?];
        let n = self.extend(words, false);
        let uncertain = self.mask64(uncertain);
        let function = exact_fma_ldexp_f64 as *const () as u64;
        Ok(Val::Lanes64(self.replace_unless_exact(uncertain, &[a, b, c, n], results, function)))
    }
}

called! {
    /// Computes `1 / sqrt(a)`.
    ///
    /// # Safety
    /// Must be called by compiled code with its frame, which has one argument per lane.
    pub unsafe fn exact_rsq_f64(frame: *mut Frame) -> () {
        // SAFETY: the contract guarantees a valid frame with one argument per lane.
        unsafe { for_each_lane(frame, |[a]| rsq_f64(&Keep, a)) }
    }
}

called! {
    /// Computes `(a * b + c) * 2^n`.
    ///
    /// # Safety
    /// Must be called by compiled code with its frame, which has four arguments per lane.
    pub unsafe fn exact_fma_ldexp_f64(frame: *mut Frame) -> () {
        // SAFETY: the contract guarantees a valid frame with four arguments per lane.
        unsafe { for_each_lane(frame, |[a, b, c, n]| fma_ldexp_f64(&Keep, a, b, c, n as u32)) }
    }
}

called! {
    /// Returns segment `n` of 2 / pi for `a`.
    ///
    /// # Safety
    /// Must be called by compiled code with its frame, which has two arguments per lane.
    pub unsafe fn exact_trig_preop(frame: *mut Frame) -> () {
        // SAFETY: the contract guarantees a valid frame with two arguments per lane.
        unsafe { for_each_lane(frame, |[a, n]| trig_preop_f64(&Keep, a, n as u32)) }
    }
}
