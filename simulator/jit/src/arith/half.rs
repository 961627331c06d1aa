//! f16 by way of the host's f32 arithmetic, with the semantics of handlers (`exec::rt::half`). f32 has more
//! than twice the precision, so that only a multiply-add needs special treatment. No intermediate result is
//! an f32 denormal.

use crate::arith::builder::{Bug, Builder, R};
use crate::arith::facts::KnownBits;
use crate::arith::float::Format;
use crate::arith::float::predicate;
use crate::arith::float::{Denormals, SINGLE};
use crate::arith::val::Val;
use crate::lowering::{Arithmetic, Shift};
use isa_lower::ir::{FloatBits, HostWidth, Op2};
use wavesim_x64::Code;
use wavesim_x64::inst::{Cc, V};

/// The bits of the largest f16 below one.
const BELOW_ONE: u64 = 0x3bff;
const ONE: u64 = 0x3c00;
/// Infinity; greater magnitudes are NaN.
const INFINITY: u64 = 0x7c00;
/// The quiet bit of NaNs.
const QUIET: u64 = 0x200;

/// The host's encoding of rounding modes.
#[derive(Clone, Copy, PartialEq)]
pub enum Round {
    Nearest = 0,
    TowardZero = 3,
}

impl Builder {
    /// Emits an f16 operation on lanes.
    pub fn float_f16(&mut self, op: Arithmetic, args: &[Val]) -> R<Val> {
        if self.packet.is_none() {
            return Err(Bug("a uniform f16"));
        }
        let mut vals = Vec::new();
        for arg in args {
            vals.push(Val::Lanes(self.f16_to_f32(*arg)?));
        }
        let keep = Denormals::Keep;
        let result = match op {
            Arithmetic::Fma => self.float_op(keep, &SINGLE, [vals[0], vals[1], vals[2]], |e, v| {
                e.fma_round_to_odd(&SINGLE, v)
            })?,
            Arithmetic::Rsq => self.float_op(keep, &SINGLE, [vals[0]], |e, [v]| {
                let (one, root) =
                    (e.splat_constant(HostWidth::W32, SINGLE.one), e.f.rm(SINGLE.sqrt, v, None));
                e.f.rvm(SINGLE.div, one, root, None)
            })?,
            _ => self.float_in_format(op, &SINGLE, [keep; 2], &vals)?,
        };
        let Val::Lanes(single) = result else { return Ok(result) };
        let half = self.f32_to_f16(single, Round::Nearest);
        if op != Arithmetic::Fract {
            return Ok(Val::Lanes(half));
        }
        // The result may have been rounded up to one.
        let [one, most] = [ONE, BELOW_ONE].map(|bits| self.splat_constant(HostWidth::W32, bits));
        let is_one = self.icmp(Cc::Eq, HostWidth::W32, half, one);
        Ok(Val::Lanes(self.f.blend(false, is_one, most, half)))
    }

    /// Emits `a * b + c`, rounded to odd; the product must be exact. Rounding the result again gives the
    /// correctly rounded sum.
    pub fn fma_round_to_odd(&mut self, format: &Format, [a, b, c]: [V; 3]) -> V {
        let host_width = format.host_width;
        let product = self.f.rvm(format.mul, a, b, None);
        // Equals the sum of product and addend, but for NaNs: those of `c` have precedence over that of an invalid
        // product.
        let sum = self.f.fma(host_width != HostWidth::W32, a, b, c);
        // The exact rounding error of the sum.
        let of_c = self.f.rvm(format.sub, sum, product, None);
        let of_product = self.f.rvm(format.sub, sum, of_c, None);
        let [first, second] =
            [(product, of_product), (c, of_c)].map(|(a, b)| self.f.rvm(format.sub, a, b, None));
        let lost = self.f.rvm(format.add, first, second, None);
        let [zero, one] = [0, 1].map(|bits| self.splat_constant(host_width, bits));
        let [below, negative] =
            [lost, sum].map(|v| self.f.rvm(format.compare, v, zero, Some(predicate::LESS)));
        let inward = self.bxor(host_width, below, negative);
        let step = self.bor(host_width, inward, one);
        let odd = self.iadd(host_width, sum, step);
        let inexact = self.f.rvm(format.compare, lost, zero, Some(predicate::LESS_OR_GREATER));
        let last = self.band(host_width, sum, one);
        let even = self.is_zero(host_width, last);
        let moves = self.band(host_width, inexact, even);
        self.f.blend(host_width != HostWidth::W32, moves, odd, sum)
    }

    /// Converts f16 in the low halves of words, whose high halves are zero, to f32. Signalling NaNs become
    /// quiet.
    fn f16_to_f32(&mut self, v: Val) -> R<V> {
        let v = self.lanes(v)?;
        let packed = match self.facts.packed_f16.get(&v) {
            Some(packed) => *packed,
            None => {
                let words = self.f.rvm(Code::VEX_Vpackusdw_ymm_ymm_ymmm256, v, v, None);
                self.f.rm(Code::VEX_Vpermq_ymm_ymmm256_imm8, words, Some(0x88))
            }
        };
        self.facts.packed_f16.insert(v, packed);
        let single = self.f.rm(Code::VEX_Vcvtph2ps_ymm_xmmm128, packed, None);
        self.facts.denormal_free.insert(single);
        Ok(single)
    }

    /// The inverse; magnitudes below half of the smallest f16 become zero.
    fn f32_to_f16(&mut self, v: V, round: Round) -> V {
        let packed = self.f.rm(Code::VEX_Vcvtps2ph_xmmm128_ymm_imm8, v, Some(round as u8));
        let half = self.f.rm(Code::VEX_Vpmovzxwd_ymm_xmmm128, packed, None);
        self.facts.packed_f16.insert(half, packed);
        self.facts.record_bits(half, KnownBits { zeros: 0xffff_0000, ones: 0 });
        half
    }

    /// Inserts a 16-bit result into the high or low half of a register and keeps the other half.
    pub fn insert_half(&mut self, old: V, v: Val, high: bool) -> R<V> {
        let host_width = HostWidth::W32;
        let half = self.op2(Op2::And, host_width, v, Val::Const(0xffff))?;
        let half = self.lanes(half)?;
        let (own, rest) = match high {
            false => (half, 0xffff_0000),
            true => (self.shift_by(Shift::Left, host_width, half, 16), 0xffff),
        };
        let old = self.flush_pending(old);
        let kept = self.op2(Op2::And, host_width, Val::Lanes(old), Val::Const(rest))?;
        let kept = self.lanes(kept)?;
        let register = self.bor(host_width, kept, own);
        if !high {
            self.facts.low_halves.insert(register, half);
        }
        Ok(register)
    }

    /// Converts f16 to f32.
    pub fn f16_as_f32(&mut self, v: Val) -> R<Val> {
        Ok(Val::Lanes(self.f16_to_f32(v)?))
    }

    /// Rounds f32 to f16.
    pub fn round_to_f16(&mut self, v: Val, round: Round) -> R<Val> {
        // f32 denormals become zeros of the same sign, whether they are flushed first or not.
        let v = self.unflushed_lanes(v)?;
        Ok(Val::Lanes(self.f32_to_f16(v, round)))
    }

    /// Converts 16-bit integers to f16.
    pub fn i16_to_f16(&mut self, v: Val, signed: bool) -> R<Val> {
        let host_width = HostWidth::W32;
        let v = self.op2(Op2::And, host_width, v, Val::Const(0xffff))?;
        let mut v = self.lanes(v)?;
        if signed {
            v = self.shift_by(Shift::Left, host_width, v, 16);
            v = self.shift_by(Shift::Arithmetic, host_width, v, 16);
        }
        let single = self.float_op(Denormals::Keep, &SINGLE, [Val::Lanes(v)], |e, [v]| {
            e.f.rm(Code::VEX_Vcvtdq2ps_ymm_ymmm256, v, None)
        })?;
        let single = self.lanes(single)?;
        Ok(Val::Lanes(self.f32_to_f16(single, Round::Nearest)))
    }

    /// Tests the bits of f16 in the low halves of words, whose high halves are zero.
    pub fn float_bits_f16(&mut self, op: FloatBits, v: Val) -> R<Val> {
        let host_width = HostWidth::W32;
        let nan = |e: &mut Self, v: V| {
            let (magnitude, infinity) =
                (e.constant_like(host_width, 0x7fff, v), e.constant_like(host_width, INFINITY, v));
            let v = e.band(host_width, v, magnitude);
            e.icmp(Cc::GtS, host_width, v, infinity)
        };
        match op {
            FloatBits::IsNan => self.compare_op(host_width, v, v, |e, _, v, _| nan(e, v)),
            FloatBits::IsSignalNan | FloatBits::IsQuietNan => {
                let cc = if op == FloatBits::IsQuietNan { Cc::Ne } else { Cc::Eq };
                self.compare_op(host_width, v, v, |e, host_width, v, _| {
                    let nan = nan(e, v);
                    let (bit, zero) =
                        (e.constant_like(host_width, QUIET, v), e.constant_like(host_width, 0, v));
                    let bit = e.band(host_width, v, bit);
                    let has = e.icmp(cc, host_width, bit, zero);
                    e.band(host_width, nan, has)
                })
            }
            FloatBits::Quiet => self.unary_op(host_width, v, |e, host_width, v| {
                let nan = nan(e, v);
                let bit = e.constant_like(host_width, QUIET, v);
                let quiet = e.bor(host_width, v, bit);
                e.select_same_class(host_width, nan, quiet, v)
            }),
            FloatBits::Exponent => {
                let v = self.op2(Op2::And, host_width, v, Val::Const(0x7fff))?;
                self.shift(Shift::Right, host_width, v, Val::Const(10))
            }
        }
    }
}
