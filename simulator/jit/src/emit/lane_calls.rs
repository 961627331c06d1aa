//! Calls of functions for the lanes of a packet ([`crate::lane_calls`]).

use super::val::Val;
use super::{Bug, Emitter, R};
use crate::exact::exact_trig_preop;
use crate::frame::frame_offset;
use crate::lane_calls::{RESULT, address, allows_any_mxcsr};
use crate::lowering::LaneFunction;
use isa_lower::ir::Hold;
use wavesim_x64::inst::{Class, Inst, Mem, V};

impl Emitter<'_> {
    /// Calls a function of words. If only some lanes are demanded, the call is skipped in packets without
    /// any.
    pub fn call_per_lane(&mut self, function: LaneFunction, args: &[Val]) -> R<Val> {
        if self.packet.is_none() {
            return Err(Bug("a lane function of uniform values"));
        }
        let mut words = Vec::new();
        for arg in args {
            words.push(self.lanes(*arg)?);
        }
        let (out, done) = (self.f.fresh(Class::Vec), self.f.label());
        if let Some(only) = self.demanded {
            let none = self.f.vconst([0; 8]);
            self.f.assign(out, none);
            self.f.branch_unless_any(only, only, done);
        }
        for (n, v) in (0..).zip(&words) {
            self.f.vstore(self.frame, frame_offset::LANE_BUFFER + 32 * n, *v);
        }
        let called = address(function, self.flush);
        if allows_any_mxcsr(function) {
            self.f.push(Inst::ColdCall { function: called, arg: self.frame });
        } else {
            self.call_cold(called);
        }
        let from = Mem { base: self.frame, disp: frame_offset::LANE_BUFFER + 4 * RESULT as i32 };
        self.f.push(Inst::VecLoad { d: out, from, foldable: false });
        self.f.push(Inst::Label(done));
        Ok(Val::Lanes(out))
    }

    /// Emits a segment of 2 / pi for an f64, by its number.
    pub fn trig_preop(&mut self, a: Val, n: Val) -> R<Val> {
        let a = self.wide(a)?;
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
        Ok(Val::Wide(results))
    }

    /// Emits `a * b + c` of signed integers of 32, 32 and 64 bits: 64 bits of the sum, and bit 64.
    pub fn signed_sum(&mut self, [a, b, c]: [Val; 3]) -> R<Val> {
        let hold = Hold::W64;
        let [a, b] = [self.lanes(a)?, self.lanes(b)?];
        let [a, b] = [self.extend(a, false), self.extend(b, false)];
        let c = self.wide(c)?;
        let zero = self.splat_constant(hold, 0);
        let (mut sum, mut beyond) = (a, a);
        for k in 0..2 {
            let product = self.f.rvm(wavesim_x64::Code::VEX_Vpmuldq_ymm_ymm_ymmm256, a[k], b[k], None);
            sum[k] = self.iadd(hold, product, c[k]);
            let carry = self.icmp(wavesim_x64::inst::Cc::LtU, hold, sum[k], c[k]);
            let signs = self.bxor(hold, product, c[k]);
            let differ = self.icmp(wavesim_x64::inst::Cc::GtS, hold, zero, signs);
            beyond[k] = self.bxor(hold, differ, carry);
        }
        let beyond = self.low_words(beyond);
        self.facts.bit_64.insert(sum, beyond);
        Ok(Val::Wide(sum))
    }
}
