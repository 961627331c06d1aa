//! Conversions between numbers, and float operations by way of f64, with the semantics of handlers
//! (`exec::rt::float`, `double`).

use crate::arith::builder::{Builder, R};
use crate::arith::float::predicate;
use crate::arith::float::rounding;
use crate::arith::float::{DOUBLE, Denormals, SINGLE};
use crate::arith::half::Round;
use crate::arith::val::Val;
use crate::lowering::{LaneFunction, Shift};
use isa_lower::ir::{Conversion, HostWidth};
use wavesim_x64::Code;
use wavesim_x64::inst::{Class, Inst, V};

/// 2^31 as f64.
const HALF_RANGE: u64 = 0x41e0 << 48;

const MIN_WORD: Code = Code::VEX_Vpminsd_ymm_ymm_ymmm256;
const MAX_WORD: Code = Code::VEX_Vpmaxsd_ymm_ymm_ymmm256;

impl Builder {
    pub fn conversion(&mut self, conversion: Conversion, v: Val) -> R<Val> {
        let keep = Denormals::Keep;
        match conversion {
            Conversion::I32ToF32 => {
                let v = self.flush_pending_val(v)?;
                self.float_op(keep, &SINGLE, [v], |e, [v]| {
                    let v = e.f.rm(Code::VEX_Vcvtdq2ps_ymm_ymmm256, v, None);
                    e.facts.denormal_free.insert(v);
                    v
                })
            }
            Conversion::U32ToF32 => {
                let v = self.flush_pending_val(v)?;
                self.float_op(keep, &SINGLE, [v], |e, [v]| e.u32_to_f32(v))
            }
            Conversion::F32ToI32 => self.float_op(keep, &SINGLE, [v], |e, [v]| e.f32_to_i32(v)),
            Conversion::F32ToU32 => self.float_op(keep, &SINGLE, [v], |e, [v]| e.f32_to_u32(v)),
            Conversion::F32ToF64 => {
                let v = self.unflushed_lanes(v)?;
                let v = self.float_source(self.f32_denormals(), v);
                Ok(Val::Lanes64(self.widen_halves(v, Code::VEX_Vcvtps2pd_ymm_xmmm128)))
            }
            Conversion::F64ToF32 => {
                let v = self.lanes64(v)?;
                let v = self.narrow_halves(v, Code::VEX_Vcvtpd2ps_xmm_ymmm256);
                Ok(Val::Lanes(self.float_result(self.f32_denormals(), v)))
            }
            Conversion::I32ToF64 => {
                let v = self.lanes(v)?;
                Ok(Val::Lanes64(self.widen_halves(v, Code::VEX_Vcvtdq2pd_ymm_xmmm128)))
            }
            Conversion::U32ToF64 => {
                // Convert after subtracting half of the range, which is added again; both steps are exact.
                let v = self.lanes(v)?;
                let top = self.splat_constant(HostWidth::W32, 1 << 31);
                let v = self.bxor(HostWidth::W32, v, top);
                let v = self.widen_halves(v, Code::VEX_Vcvtdq2pd_ymm_xmmm128);
                let half = self.splat_constant(HostWidth::W64, HALF_RANGE);
                Ok(Val::Lanes64(v.map(|v| self.f.rvm(DOUBLE.add, v, half, None))))
            }
            Conversion::F64ToI32 | Conversion::F64ToU32 => {
                let signed = conversion == Conversion::F64ToI32;
                let v = self.lanes64(v)?;
                let v = v.map(|v| self.clamp_for_truncation(v, signed));
                let v = self.narrow_halves(v, Code::VEX_Vcvttpd2dq_xmm_ymmm256);
                let top = self.splat_constant(HostWidth::W32, 1 << 31);
                Ok(Val::Lanes(if signed { v } else { self.bxor(HostWidth::W32, v, top) }))
            }
            Conversion::F32ToI16 | Conversion::F32ToU16 => {
                let (least, most) =
                    if conversion == Conversion::F32ToI16 { (-0x8000, 0x7fff) } else { (0, 0xffff) };
                let v = self.float_op(keep, &SINGLE, [v], |e, [v]| {
                    let r = e.f32_to_i32(v);
                    let [least, most] =
                        [least, most].map(|n: i32| e.splat_constant(HostWidth::W32, n as u32 as u64));
                    let r = e.f.rvm(Code::VEX_Vpminsd_ymm_ymm_ymmm256, r, most, None);
                    e.f.rvm(Code::VEX_Vpmaxsd_ymm_ymm_ymmm256, r, least, None)
                })?;
                self.op2(isa_lower::ir::Op2::And, HostWidth::W32, v, Val::Const(0xffff))
            }
            Conversion::F16ToF32 => self.f16_as_f32(v),
            Conversion::F32ToF16 => self.round_to_f16(v, Round::Nearest),
            Conversion::F32ToF16Rtz => self.round_to_f16(v, Round::TowardZero),
            Conversion::F16ToI16 | Conversion::F16ToU16 => {
                let single = self.f16_as_f32(v)?;
                let signed = conversion == Conversion::F16ToI16;
                self.conversion(if signed { Conversion::F32ToI16 } else { Conversion::F32ToU16 }, single)
            }
            Conversion::I16ToF16 => self.i16_to_f16(v, true),
            Conversion::U16ToF16 => self.i16_to_f16(v, false),
            Conversion::F32ToBf16 => self.call_per_lane(LaneFunction::F32ToBf16, &[v]),
            Conversion::F32ToFp8 => self.call_per_lane(LaneFunction::F32ToFp8, &[v]),
            Conversion::F32ToBf8 => self.call_per_lane(LaneFunction::F32ToBf8, &[v]),
            Conversion::Fp8ToF32 => self.call_per_lane(LaneFunction::Fp8ToF32, &[v]),
            Conversion::Bf8ToF32 => self.call_per_lane(LaneFunction::Bf8ToF32, &[v]),
            Conversion::F16ToSnorm => self.call_per_lane(LaneFunction::F16ToSnorm, &[v]),
            Conversion::F16ToUnorm => self.call_per_lane(LaneFunction::F16ToUnorm, &[v]),
            Conversion::F32ToSnorm => self.call_per_lane(LaneFunction::F32ToSnorm, &[v]),
            Conversion::F32ToUnorm => self.call_per_lane(LaneFunction::F32ToUnorm, &[v]),
            Conversion::F32ToU8 => self.call_per_lane(LaneFunction::F32ToU8, &[v]),
        }
    }

    fn flush_pending_val(&mut self, v: Val) -> R<Val> {
        Ok(match v {
            Val::Lanes(v) => Val::Lanes(self.flush_pending(v)),
            v => v,
        })
    }

    /// Converts both halves of the word exactly, with one rounding in their sum.
    fn u32_to_f32(&mut self, v: V) -> V {
        let host_width = HostWidth::W32;
        let [mask, at_low, at_high, less] =
            [0xffff, 0x4b00_0000, 0x5300_0000, 0x5300_0080].map(|bits| self.splat_constant(host_width, bits));
        let low = self.band(host_width, v, mask);
        let low = self.bor(host_width, low, at_low);
        let high = self.shift_by(Shift::Right, host_width, v, 16);
        let high = self.bor(host_width, high, at_high);
        let high = self.f.rvm(SINGLE.sub, high, less, None);
        let sum = self.f.rvm(SINGLE.add, high, low, None);
        self.facts.denormal_free.insert(sum);
        sum
    }

    /// Converts toward zero, saturating; NaN becomes 0.
    fn f32_to_i32(&mut self, v: V) -> V {
        let host_width = HostWidth::W32;
        let limit = self.splat_constant(host_width, 0x4f00_0000);
        let r = self.f.rm(Code::VEX_Vcvttps2dq_ymm_ymmm256, v, None);
        // The host returns the smallest number if the value does not fit.
        let above = self.f.rvm(SINGLE.compare, v, limit, Some(predicate::GREATER_OR_EQUAL));
        let r = self.bxor(host_width, r, above);
        let number = self.f.rvm(SINGLE.compare, v, v, Some(predicate::ORDERED));
        self.band(host_width, r, number)
    }

    /// The same for unsigned numbers.
    fn f32_to_u32(&mut self, v: V) -> V {
        let host_width = HostWidth::W32;
        let [zero, half, all, top] =
            [0, 0x4f00_0000, 0x4f80_0000, 0x8000_0000].map(|bits| self.splat_constant(host_width, bits));
        // NaN becomes zero, the second operand.
        let v = self.f.rvm(SINGLE.max, v, zero, None);
        let small = self.f.rm(Code::VEX_Vcvttps2dq_ymm_ymmm256, v, None);
        let rest = self.f.rvm(SINGLE.sub, v, half, None);
        let large = self.f.rm(Code::VEX_Vcvttps2dq_ymm_ymmm256, rest, None);
        let large = self.bxor(host_width, large, top);
        let is_large = self.f.rvm(SINGLE.compare, v, half, Some(predicate::GREATER_OR_EQUAL));
        let r = self.f.blend(false, is_large, large, small);
        let beyond = self.f.rvm(SINGLE.compare, v, all, Some(predicate::GREATER_OR_EQUAL));
        self.bor(host_width, r, beyond)
    }

    /// Returns the treatment of f32 denormals.
    pub fn f32_denormals(&self) -> Denormals {
        if self.flush { Denormals::Flush } else { Denormals::Keep }
    }

    /// Applies an instruction that widens 32 to 64 bits to a vector in lane order.
    pub fn widen_halves(&mut self, v: V, code: Code) -> [V; 2] {
        let v = self.swap_middle_quarters(v);
        let high = self.f.upper_half(v);
        [v, high].map(|half| self.f.rm(code, half, None))
    }

    /// The inverse of [`Builder::widen_halves`].
    pub fn narrow_halves(&mut self, halves: [V; 2], code: Code) -> V {
        let [low, high] = halves.map(|v| self.f.rm(code, v, None));
        let v = self.f.rvm(Code::VEX_Vinserti128_ymm_ymm_xmmm128_imm8, low, high, Some(1));
        self.swap_middle_quarters(v)
    }

    /// Swaps lanes 2 and 3 with 4 and 5: converts between lane order and the order of [`Val::Lanes64`].
    fn swap_middle_quarters(&mut self, v: V) -> V {
        self.f.rm(Code::VEX_Vpermq_ymm_ymmm256_imm8, v, Some(0xd8))
    }

    /// Clamps f64 for the host's truncation to a 32-bit integer; unsigned values are offset by -2^31. NaN
    /// becomes 0.
    fn clamp_for_truncation(&mut self, v: V, signed: bool) -> V {
        let host_width = HostWidth::W64;
        let number = self.f.rvm(DOUBLE.compare, v, v, Some(predicate::ORDERED));
        let v = self.band(host_width, v, number);
        let (least, most) = if signed { (-2147483648.0, 2147483647.0) } else { (0.0, 4294967295.0f64) };
        let [least, most] = [least, most].map(|bound: f64| self.splat_constant(host_width, bound.to_bits()));
        let v = self.f.rvm(DOUBLE.min, v, most, None);
        let v = self.f.rvm(DOUBLE.max, v, least, None);
        if signed {
            return v;
        }
        let v = self.f.rm(DOUBLE.round, v, Some(rounding::TO_ZERO));
        let half = self.splat_constant(host_width, HALF_RANGE);
        self.f.rvm(DOUBLE.sub, v, half, None)
    }

    /// Emits `1 / sqrt(x)` of f32: the host's estimate, improved to the value that rounds to the result. Where
    /// that value is near a tie, and for zero, infinity, NaN and negative numbers, a division in f64 follows,
    /// which is precise enough for one rounding.
    pub fn rsq_f32(&mut self, a: Val) -> R<Val> {
        self.root_f32(a, |e, x| {
            let (least, most) = e.rsq_f32_bounds(x);
            let (out, done) = (e.f.fresh(Class::Vec), e.f.label());
            e.f.assign(out, least);
            let uncertain = e.f.rvm(SINGLE.compare, least, most, Some(predicate::NOT_EQUAL));
            e.f.branch_unless_any(uncertain, uncertain, done);
            // Values defined on this path do not dominate the code after it.
            let known = e.facts.clone();
            let exact = e.rsq_f32_by_f64(x);
            e.f.assign(out, exact);
            e.facts = known;
            e.f.push(Inst::Label(done));
            out
        })
    }

    /// Emits two roundings of `1 / sqrt(x)`, of values below and above it: if they are equal, so is the
    /// rounded result. One of them is NaN if `x` is not a positive normal number.
    fn rsq_f32_bounds(&mut self, x: V) -> (V, V) {
        // The estimate's relative error is 1.5 * 2^-12 at most. One step of Newton's method reduces it to less
        // than 2^-21, for which the next step is a correction whose relative error is less than 2^-20.
        const MARGIN: f32 = 1.0 / (1 << 18) as f32;
        let [minus_one, minus_half, minus_less, minus_more, sign] =
            [-1.0, -0.5, -0.5 + MARGIN / 2.0, -0.5 - MARGIN / 2.0, -0.0f32]
                .map(|v| self.splat_constant(HostWidth::W32, v.to_bits().into()));
        let mul = |e: &mut Self, a, b| e.f.rvm(SINGLE.mul, a, b, None);
        let estimate = self.f.rm(Code::VEX_Vrsqrtps_ymm_ymmm256, x, None);
        let root = mul(self, x, estimate);
        let minus_error = self.f.fma(false, root, estimate, minus_one);
        let minus_half_estimate = mul(self, minus_half, estimate);
        let y = self.f.fma(false, minus_half_estimate, minus_error, estimate);
        // x * y is the sum of `high` and `low`.
        let high = mul(self, x, y);
        let minus_high = self.bxor(HostWidth::W32, high, sign);
        let low = self.f.fma(false, x, y, minus_high);
        let minus_error = self.f.fma(false, high, y, minus_one);
        let minus_error = self.f.fma(false, low, y, minus_error);
        let [least, most] = [minus_less, minus_more].map(|factor| {
            let factor = self.f.rvm(SINGLE.mul, factor, y, None);
            self.f.fma(false, factor, minus_error, y)
        });
        (least, most)
    }

    fn rsq_f32_by_f64(&mut self, x: V) -> V {
        let one = self.splat_constant(HostWidth::W64, DOUBLE.one);
        let high = self.f.upper_half(x);
        let [low, high] = [x, high].map(|half| {
            let v = self.f.rm(Code::VEX_Vcvtps2pd_ymm_xmmm128, half, None);
            let v = self.f.rm(DOUBLE.sqrt, v, None);
            let v = self.f.rvm(DOUBLE.div, one, v, None);
            self.f.rm(Code::VEX_Vcvtpd2ps_xmm_ymmm256, v, None)
        });
        self.f.rvm(Code::VEX_Vinserti128_ymm_ymm_xmmm128_imm8, low, high, Some(1))
    }

    /// Emits a root of f32, or the reciprocal of one: no result is a denormal, so none is flushed.
    pub fn root_f32(&mut self, a: Val, mut root: impl FnMut(&mut Self, V) -> V) -> R<Val> {
        let r = self.float_op(Denormals::Flush, &SINGLE, [a], |e, [v]| {
            let r = root(e, v);
            e.facts.denormal_free.insert(r);
            r
        })?;
        if let Val::Lanes(r) = r {
            self.facts.unflushed.remove(&r);
        }
        Ok(r)
    }

    /// Emits `x * 2^n` of f32 by way of f64, which represents the product exactly.
    pub fn ldexp_f32(&mut self, denormals: Denormals, a: Val, n: Val) -> R<Val> {
        let n = self.clamp(n, 300)?;
        let power = self.pow2(n)?;
        let a = self.unflushed_lanes(a)?;
        let a = self.float_source(denormals, a);
        let a = self.widen_halves(a, Code::VEX_Vcvtps2pd_ymm_xmmm128);
        let product = [0, 1].map(|k| self.f.rvm(DOUBLE.mul, a[k], power[k], None));
        let r = self.narrow_halves(product, Code::VEX_Vcvtpd2ps_xmm_ymmm256);
        Ok(Val::Lanes(self.float_result(denormals, r)))
    }

    /// Emits `x * 2^n` of f64, rounded once, by the same factors as the handler.
    pub fn ldexp_f64(&mut self, a: Val, n: Val) -> R<Val> {
        let mut v = self.lanes64(a)?;
        let mut rest = self.clamp(n, 2200)?;
        for last in [false, false, true] {
            let part = match (rest, last) {
                (rest, true) => rest,
                (Val::Const(n), _) => {
                    let n = n as u32 as i32;
                    Val::Const((if n < -1022 { -969 } else { n.min(1023) }) as u32 as u128)
                }
                (rest, _) => {
                    let n = self.lanes(rest)?;
                    let [least, below, most] = [-1022, -969, 1023]
                        .map(|n: i32| self.splat_constant(HostWidth::W32, n as u32 as u64));
                    let less = self.icmp(wavesim_x64::inst::Cc::LtS, HostWidth::W32, n, least);
                    let n = self.f.rvm(MIN_WORD, n, most, None);
                    Val::Lanes(self.f.blend(false, less, below, n))
                }
            };
            rest = self.op2(isa_lower::ir::Op2::Sub, HostWidth::W32, rest, part)?;
            let power = self.pow2(part)?;
            v = [0, 1].map(|k| self.f.rvm(DOUBLE.mul, v[k], power[k], None));
            if rest == Val::Const(0) {
                // The remaining factors are 1.
                break;
            }
        }
        Ok(Val::Lanes64(v))
    }

    /// Clamps a signed word to `-bound..=bound`.
    fn clamp(&mut self, n: Val, bound: i32) -> R<Val> {
        if let Val::Const(n) = n {
            return Ok(Val::Const((n as u32 as i32).clamp(-bound, bound) as u32 as u128));
        }
        let n = self.lanes(n)?;
        let [least, most] = [-bound, bound].map(|n| self.splat_constant(HostWidth::W32, n as u32 as u64));
        let n = self.f.rvm(MIN_WORD, n, most, None);
        Ok(Val::Lanes(self.f.rvm(MAX_WORD, n, least, None)))
    }

    /// Emits `2^n` as f64, for exponents of normal numbers.
    pub fn pow2(&mut self, n: Val) -> R<[V; 2]> {
        let exponent = self.op2(isa_lower::ir::Op2::Add, HostWidth::W32, n, Val::Const(1023))?;
        let exponent = match exponent {
            Val::Const(n) => Val::Const(n << 52),
            n => {
                let n = self.lanes(n)?;
                let high = self.shift_by(Shift::Left, HostWidth::W32, n, 20);
                let low = self.splat_constant(HostWidth::W32, 0);
                Val::Lanes64(self.join_words(low, high))
            }
        };
        self.lanes64(exponent)
    }
}
