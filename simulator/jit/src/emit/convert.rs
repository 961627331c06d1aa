//! Conversions between numbers, and float operations by way of f64, with the semantics of handlers
//! (`exec::rt::float`, `double`).

use super::float::{DOUBLE, Denormals, SINGLE, holds, rounds};
use super::ops::Shift;
use super::val::Val;
use super::{Emitter, R};
use isa_lower::ir::{Conversion, Hold};
use wavesim_x64::Code;
use wavesim_x64::inst::V;

/// 2^31 as f64.
const HALF_RANGE: u64 = 0x41e0 << 48;

const MIN_WORD: Code = Code::VEX_Vpminsd_ymm_ymm_ymmm256;
const MAX_WORD: Code = Code::VEX_Vpmaxsd_ymm_ymm_ymmm256;

impl Emitter<'_> {
    pub fn conversion(&mut self, conversion: Conversion, v: Val) -> R<Val> {
        let keep = Denormals::Keep;
        match conversion {
            Conversion::I32ToF32 => {
                let v = self.exact_val(v)?;
                self.float_of(keep, &SINGLE, [v], |e, [v]| {
                    let v = e.f.rm(Code::VEX_Vcvtdq2ps_ymm_ymmm256, v, None);
                    e.known.normal.insert(v);
                    v
                })
            }
            Conversion::U32ToF32 => {
                let v = self.exact_val(v)?;
                self.float_of(keep, &SINGLE, [v], |e, [v]| e.float_of_unsigned(v))
            }
            Conversion::F32ToI32 => self.float_of(keep, &SINGLE, [v], |e, [v]| e.signed_of(v)),
            Conversion::F32ToU32 => self.float_of(keep, &SINGLE, [v], |e, [v]| e.unsigned_of(v)),
            Conversion::F32ToF64 => {
                let v = self.raw_lanes(v)?;
                let v = self.source(self.singles(), v);
                Ok(Val::Wide(self.by_halves(v, Code::VEX_Vcvtps2pd_ymm_xmmm128)))
            }
            Conversion::F64ToF32 => {
                let v = self.wide(v)?;
                let v = self.joined_halves(v, Code::VEX_Vcvtpd2ps_xmm_ymmm256);
                Ok(Val::Lanes(self.result(self.singles(), v)))
            }
            Conversion::I32ToF64 => {
                let v = self.lanes(v)?;
                Ok(Val::Wide(self.by_halves(v, Code::VEX_Vcvtdq2pd_ymm_xmmm128)))
            }
            Conversion::U32ToF64 => {
                // Convert after subtracting half of the range, which is added again; both steps are exact.
                let v = self.lanes(v)?;
                let top = self.lanes_constant(Hold::W32, 1 << 31);
                let v = self.bxor(Hold::W32, v, top);
                let v = self.by_halves(v, Code::VEX_Vcvtdq2pd_ymm_xmmm128);
                let half = self.lanes_constant(Hold::W64, HALF_RANGE);
                Ok(Val::Wide(v.map(|v| self.f.rvm(DOUBLE.add, v, half, None))))
            }
            Conversion::F64ToI32 | Conversion::F64ToU32 => {
                let signed = conversion == Conversion::F64ToI32;
                let v = self.wide(v)?;
                let v = v.map(|v| self.bounded_double(v, signed));
                let v = self.joined_halves(v, Code::VEX_Vcvttpd2dq_xmm_ymmm256);
                let top = self.lanes_constant(Hold::W32, 1 << 31);
                Ok(Val::Lanes(if signed { v } else { self.bxor(Hold::W32, v, top) }))
            }
            Conversion::F32ToI16 | Conversion::F32ToU16 => {
                let (least, most) =
                    if conversion == Conversion::F32ToI16 { (-0x8000, 0x7fff) } else { (0, 0xffff) };
                let v = self.float_of(keep, &SINGLE, [v], |e, [v]| {
                    let r = e.signed_of(v);
                    let [least, most] =
                        [least, most].map(|n: i32| e.lanes_constant(Hold::W32, n as u32 as u64));
                    let r = e.f.rvm(Code::VEX_Vpminsd_ymm_ymm_ymmm256, r, most, None);
                    e.f.rvm(Code::VEX_Vpmaxsd_ymm_ymm_ymmm256, r, least, None)
                })?;
                self.op2(isa_lower::ir::Op2::And, Hold::W32, v, Val::Known(0xffff))
            }
            other => self.half_conversion(other, v),
        }
    }

    fn exact_val(&mut self, v: Val) -> R<Val> {
        Ok(match v {
            Val::Lanes(v) => Val::Lanes(self.exact(v)),
            v => v,
        })
    }

    /// Converts both halves of the word exactly, with one rounding in their sum.
    fn float_of_unsigned(&mut self, v: V) -> V {
        let hold = Hold::W32;
        let [mask, at_low, at_high, less] =
            [0xffff, 0x4b00_0000, 0x5300_0000, 0x5300_0080].map(|bits| self.lanes_constant(hold, bits));
        let low = self.band(hold, v, mask);
        let low = self.bor(hold, low, at_low);
        let high = self.shift_by(super::ops::Shift::Right, hold, v, 16);
        let high = self.bor(hold, high, at_high);
        let high = self.f.rvm(SINGLE.sub, high, less, None);
        let sum = self.f.rvm(SINGLE.add, high, low, None);
        self.known.normal.insert(sum);
        sum
    }

    /// Converts toward zero, saturating; NaN becomes 0.
    fn signed_of(&mut self, v: V) -> V {
        let hold = Hold::W32;
        let limit = self.lanes_constant(hold, 0x4f00_0000);
        let r = self.f.rm(Code::VEX_Vcvttps2dq_ymm_ymmm256, v, None);
        // The host returns the smallest number if the value does not fit.
        let above = self.f.rvm(SINGLE.compare, v, limit, Some(holds::GREATER_OR_EQUAL));
        let r = self.bxor(hold, r, above);
        let number = self.f.rvm(SINGLE.compare, v, v, Some(holds::ORDERED));
        self.band(hold, r, number)
    }

    /// The same for unsigned numbers.
    fn unsigned_of(&mut self, v: V) -> V {
        let hold = Hold::W32;
        let [zero, half, all, top] =
            [0, 0x4f00_0000, 0x4f80_0000, 0x8000_0000].map(|bits| self.lanes_constant(hold, bits));
        // NaN becomes zero, the second operand.
        let v = self.f.rvm(SINGLE.max, v, zero, None);
        let small = self.f.rm(Code::VEX_Vcvttps2dq_ymm_ymmm256, v, None);
        let rest = self.f.rvm(SINGLE.sub, v, half, None);
        let large = self.f.rm(Code::VEX_Vcvttps2dq_ymm_ymmm256, rest, None);
        let large = self.bxor(hold, large, top);
        let is_large = self.f.rvm(SINGLE.compare, v, half, Some(holds::GREATER_OR_EQUAL));
        let r = self.f.blend(false, is_large, large, small);
        let beyond = self.f.rvm(SINGLE.compare, v, all, Some(holds::GREATER_OR_EQUAL));
        self.bor(hold, r, beyond)
    }

    /// Returns the treatment of f32 denormals.
    pub fn singles(&self) -> Denormals {
        if self.flush { Denormals::Flush } else { Denormals::Keep }
    }

    /// Applies an instruction that widens 32 to 64 bits to a vector in lane order.
    pub fn by_halves(&mut self, v: V, code: Code) -> [V; 2] {
        let v = self.swapped_middle(v);
        let high = self.f.upper_half(v);
        [v, high].map(|half| self.f.rm(code, half, None))
    }

    /// The inverse of [`Emitter::widen_halves`].
    pub fn joined_halves(&mut self, halves: [V; 2], code: Code) -> V {
        let [low, high] = halves.map(|v| self.f.rm(code, v, None));
        let v = self.f.rvm(Code::VEX_Vinserti128_ymm_ymm_xmmm128_imm8, low, high, Some(1));
        self.swapped_middle(v)
    }

    /// Swaps lanes 2 and 3 with 4 and 5: converts between lane order and the order of [`Val::Wide`].
    fn swapped_middle(&mut self, v: V) -> V {
        self.f.rm(Code::VEX_Vpermq_ymm_ymmm256_imm8, v, Some(0xd8))
    }

    /// Clamps f64 for the host's truncation to a 32-bit integer; unsigned values are offset by -2^31. NaN
    /// becomes 0.
    fn bounded_double(&mut self, v: V, signed: bool) -> V {
        let hold = Hold::W64;
        let number = self.f.rvm(DOUBLE.compare, v, v, Some(holds::ORDERED));
        let v = self.band(hold, v, number);
        let (least, most) = if signed { (-2147483648.0, 2147483647.0) } else { (0.0, 4294967295.0f64) };
        let [least, most] = [least, most].map(|bound: f64| self.lanes_constant(hold, bound.to_bits()));
        let v = self.f.rvm(DOUBLE.min, v, most, None);
        let v = self.f.rvm(DOUBLE.max, v, least, None);
        if signed {
            return v;
        }
        let v = self.f.rm(DOUBLE.round, v, Some(rounds::TO_ZERO));
        let half = self.lanes_constant(hold, HALF_RANGE);
        self.f.rvm(DOUBLE.sub, v, half, None)
    }

    /// Emits `1 / sqrt(x)` of f32 by way of f64, which is precise enough for one rounding. For zeros, the
    /// host's arithmetic gives the infinities.
    pub fn reciprocal_root(&mut self, a: Val) -> R<Val> {
        let r = self.float_of(Denormals::Flush, &SINGLE, [a], |e, [v]| {
            let one = e.lanes_constant(Hold::W64, DOUBLE.one);
            let high = e.f.upper_half(v);
            let [low, high] = [v, high].map(|half| {
                let v = e.f.rm(Code::VEX_Vcvtps2pd_ymm_xmmm128, half, None);
                let v = e.f.rm(DOUBLE.sqrt, v, None);
                let v = e.f.rvm(DOUBLE.div, one, v, None);
                e.f.rm(Code::VEX_Vcvtpd2ps_xmm_ymmm256, v, None)
            });
            e.f.rvm(Code::VEX_Vinserti128_ymm_ymm_xmmm128_imm8, low, high, Some(1))
        })?;
        if let Val::Lanes(r) = r {
            // The smallest result is far from denormals.
            self.known.raw.remove(&r);
            self.known.normal.insert(r);
        }
        Ok(r)
    }

    /// Emits `x * 2^n` of f32 by way of f64, which represents the product exactly.
    pub fn scaled_single(&mut self, denormals: Denormals, a: Val, n: Val) -> R<Val> {
        let n = self.clamped(n, 300)?;
        let power = self.power(n)?;
        let a = self.raw_lanes(a)?;
        let a = self.source(denormals, a);
        let a = self.by_halves(a, Code::VEX_Vcvtps2pd_ymm_xmmm128);
        let product = [0, 1].map(|k| self.f.rvm(DOUBLE.mul, a[k], power[k], None));
        let r = self.joined_halves(product, Code::VEX_Vcvtpd2ps_xmm_ymmm256);
        Ok(Val::Lanes(self.result(denormals, r)))
    }

    /// Emits `x * 2^n` of f64, rounded once, by the same factors as the handler.
    pub fn scaled_double(&mut self, a: Val, n: Val) -> R<Val> {
        let mut v = self.wide(a)?;
        let mut rest = self.clamped(n, 2200)?;
        for last in [false, false, true] {
            let part = match (rest, last) {
                (rest, true) => rest,
                (Val::Known(n), _) => {
                    let n = n as u32 as i32;
                    Val::Known((if n < -1022 { -969 } else { n.min(1023) }) as u32 as u128)
                }
                (rest, _) => {
                    let n = self.lanes(rest)?;
                    let [least, below, most] =
                        [-1022, -969, 1023].map(|n: i32| self.lanes_constant(Hold::W32, n as u32 as u64));
                    let less = self.icmp(wavesim_x64::inst::Cc::LtS, Hold::W32, n, least);
                    let n = self.f.rvm(MIN_WORD, n, most, None);
                    Val::Lanes(self.f.blend(false, less, below, n))
                }
            };
            rest = self.op2(isa_lower::ir::Op2::Sub, Hold::W32, rest, part)?;
            let power = self.power(part)?;
            v = [0, 1].map(|k| self.f.rvm(DOUBLE.mul, v[k], power[k], None));
            if rest == Val::Known(0) {
                // The remaining factors are 1.
                break;
            }
        }
        Ok(Val::Wide(v))
    }

    /// Clamps a signed word to `-bound..=bound`.
    fn clamped(&mut self, n: Val, bound: i32) -> R<Val> {
        if let Val::Known(n) = n {
            return Ok(Val::Known((n as u32 as i32).clamp(-bound, bound) as u32 as u128));
        }
        let n = self.lanes(n)?;
        let [least, most] = [-bound, bound].map(|n| self.lanes_constant(Hold::W32, n as u32 as u64));
        let n = self.f.rvm(MIN_WORD, n, most, None);
        Ok(Val::Lanes(self.f.rvm(MAX_WORD, n, least, None)))
    }

    /// Emits `2^n` as f64, for exponents of normal numbers.
    pub fn power(&mut self, n: Val) -> R<[V; 2]> {
        let exponent = self.op2(isa_lower::ir::Op2::Add, Hold::W32, n, Val::Known(1023))?;
        let exponent = match exponent {
            Val::Known(n) => Val::Known(n << 52),
            n => {
                let n = self.lanes(n)?;
                let high = self.shift_by(Shift::Left, Hold::W32, n, 20);
                let low = self.lanes_constant(Hold::W32, 0);
                Val::Wide(self.joined(low, high))
            }
        };
        self.wide(exponent)
    }
}
