//! Float arithmetic with the semantics of the interpreter's handlers (`exec::rt::float`): round to nearest
//! even, with f32 denormals flushed in the mode that does so.
//!
//! With MXCSR.DAZ set ([`Builder::run_daz`]), sources need no flushing, and a result needs it only where its
//! bits are observed; until then it is *unflushed*. (The host's flush-to-zero is not used: it also flushes
//! results that round to the smallest normal number.)

use crate::arith::builder::{Bug, Builder, R};
use crate::arith::ops::width;
use crate::arith::val::{Val, narrow};
use crate::lowering::{Arithmetic, FloatCompare, FloatFormat, Rounding};
use isa_lower::ir::{FloatBits, HostWidth};
use isa_spec::pcode::ir::Ty;
use wavesim_x64::Code;
use wavesim_x64::inst::{Cc, Int2, V};

/// The constants of a format, and the host's instructions for it.
pub struct Format {
    pub host_width: HostWidth,
    pub infinity: u64,
    pub quiet: u64,
    pub significand: u32,
    pub one: u64,
    pub below_one: u64,
    pub add: Code,
    pub sub: Code,
    pub mul: Code,
    pub div: Code,
    pub min: Code,
    pub max: Code,
    pub compare: Code,
    pub round: Code,
    pub sqrt: Code,
}

pub const SINGLE: Format = Format {
    host_width: HostWidth::W32,
    infinity: 0x7f80_0000,
    quiet: 0x0040_0000,
    significand: 23,
    one: 0x3f80_0000,
    below_one: 0x3f7f_ffff,
    add: Code::VEX_Vaddps_ymm_ymm_ymmm256,
    sub: Code::VEX_Vsubps_ymm_ymm_ymmm256,
    mul: Code::VEX_Vmulps_ymm_ymm_ymmm256,
    div: Code::VEX_Vdivps_ymm_ymm_ymmm256,
    min: Code::VEX_Vminps_ymm_ymm_ymmm256,
    max: Code::VEX_Vmaxps_ymm_ymm_ymmm256,
    compare: Code::VEX_Vcmpps_ymm_ymm_ymmm256_imm8,
    round: Code::VEX_Vroundps_ymm_ymmm256_imm8,
    sqrt: Code::VEX_Vsqrtps_ymm_ymmm256,
};
pub const DOUBLE: Format = Format {
    host_width: HostWidth::W64,
    infinity: 0x7ff0 << 48,
    quiet: 8 << 48,
    significand: 52,
    one: 0x3ff0 << 48,
    below_one: (0x3ff0 << 48) - 1,
    add: Code::VEX_Vaddpd_ymm_ymm_ymmm256,
    sub: Code::VEX_Vsubpd_ymm_ymm_ymmm256,
    mul: Code::VEX_Vmulpd_ymm_ymm_ymmm256,
    div: Code::VEX_Vdivpd_ymm_ymm_ymmm256,
    min: Code::VEX_Vminpd_ymm_ymm_ymmm256,
    max: Code::VEX_Vmaxpd_ymm_ymm_ymmm256,
    compare: Code::VEX_Vcmppd_ymm_ymm_ymmm256_imm8,
    round: Code::VEX_Vroundpd_ymm_ymmm256_imm8,
    sqrt: Code::VEX_Vsqrtpd_ymm_ymmm256,
};

/// Predicates of the host's float comparisons. Only `UNORDERED` and `NOT_EQUAL` hold for NaN.
pub mod predicate {
    pub const EQUAL: u8 = 0x00;
    pub const UNORDERED: u8 = 0x03;
    pub const NOT_EQUAL: u8 = 0x04;
    pub const ORDERED: u8 = 0x07;
    pub const LESS_OR_GREATER: u8 = 0x0c;
    pub const LESS: u8 = 0x11;
    pub const LESS_OR_EQUAL: u8 = 0x12;
    pub const GREATER_OR_EQUAL: u8 = 0x1d;
    pub const GREATER: u8 = 0x1e;
}

/// The host's encodings of rounding to an integer, without the inexact exception.
pub mod rounding {
    pub const NEAREST: u8 = 8;
    pub const DOWN: u8 = 9;
    pub const UP: u8 = 10;
    pub const TO_ZERO: u8 = 11;
}

/// The treatment of f32 denormals by an operation.
#[derive(Clone, Copy, PartialEq)]
pub enum Denormals {
    Keep,
    Flush,
}

/// Returns the host's encoding of a comparison.
fn predicate_of(compare: FloatCompare) -> u8 {
    match compare {
        FloatCompare::Equal => predicate::EQUAL,
        FloatCompare::NotEqual => predicate::NOT_EQUAL,
        FloatCompare::Less => predicate::LESS,
        FloatCompare::LessOrEqual => predicate::LESS_OR_EQUAL,
        FloatCompare::Greater => predicate::GREATER,
        FloatCompare::GreaterOrEqual => predicate::GREATER_OR_EQUAL,
        FloatCompare::LessOrGreater => predicate::LESS_OR_GREATER,
    }
}

/// Returns the host's encoding of a rounding.
fn rounding_of(how: Rounding) -> u8 {
    match how {
        Rounding::Down => rounding::DOWN,
        Rounding::Up => rounding::UP,
        Rounding::ToZero => rounding::TO_ZERO,
        Rounding::Nearest => rounding::NEAREST,
    }
}

impl Builder {
    pub fn float(&mut self, op: Arithmetic, format: FloatFormat, vals: &[Val]) -> R<Val> {
        let single = format == FloatFormat::F32;
        let denormals = if self.flush && single { Denormals::Flush } else { Denormals::Keep };
        // Hardware approximates some operations, and flushes denormals of f32 in them in every mode.
        let approximated = if single { Denormals::Flush } else { Denormals::Keep };
        let format = if single { &SINGLE } else { &DOUBLE };
        self.float_in_format(op, format, [denormals, approximated], vals)
    }

    /// Emits an operation in a format. `denormals` is for exact operations, `approximated` for those that
    /// hardware approximates.
    pub fn float_in_format(
        &mut self,
        op: Arithmetic,
        format: &Format,
        [denormals, approximated]: [Denormals; 2],
        vals: &[Val],
    ) -> R<Val> {
        let (a, b) = (vals[0], vals.get(1).copied().unwrap_or(vals[0]));
        let single = format.host_width == HostWidth::W32;
        let one = Val::Const(format.one as u128);
        let binary = |e: &mut Self, code: Code| {
            e.float_op(denormals, format, [a, b], |e, [a, b]| e.f.rvm(code, a, b, None))
        };
        match op {
            Arithmetic::Compare(which) => self.float_compare(predicate_of(which), denormals, format, a, b),
            Arithmetic::Round(how) => self
                .float_op(denormals, format, [a], |e, [v]| e.f.rm(format.round, v, Some(rounding_of(how)))),
            Arithmetic::Add => binary(self, format.add),
            Arithmetic::Sub => binary(self, format.sub),
            Arithmetic::Mul => binary(self, format.mul),
            Arithmetic::Div => binary(self, format.div),
            Arithmetic::Fma => self.fma(denormals, format, [a, b, vals[2]]),
            Arithmetic::FmaNearest => self.fma(Denormals::Keep, format, [a, b, vals[2]]),
            Arithmetic::MinMax { less, nan_wins } => self.min_max(denormals, format, less, nan_wins, a, b),
            Arithmetic::Sqrt if single => self.root_f32(a, |e, v| e.f.rm(format.sqrt, v, None)),
            Arithmetic::Sqrt => {
                self.float_op(approximated, format, [a], |e, [v]| e.f.rm(format.sqrt, v, None))
            }
            Arithmetic::Rcp => {
                self.float_op(approximated, format, [one, a], |e, [a, b]| e.f.rvm(format.div, a, b, None))
            }
            Arithmetic::Rsq if single => self.rsq_f32(a),
            Arithmetic::Rsq => self.rsq_f64(a),
            Arithmetic::FmaLdexp if single => self.fma_ldexp_f32([a, b, vals[2], vals[3]]),
            Arithmetic::FmaLdexp => {
                let only = self.demanded;
                self.fma_ldexp_f64([a, b, vals[2], vals[3]], only)
            }
            Arithmetic::Fract => self.fract(denormals, format, a),
            Arithmetic::FrexpMantissa => self.frexp_mantissa(format, denormals, a),
            Arithmetic::FrexpExponent => self.frexp_exponent(format, denormals, a),
            Arithmetic::Ldexp if single => self.ldexp_f32(denormals, a, b),
            Arithmetic::Ldexp => self.ldexp_f64(a, b),
        }
    }

    /// Returns the observable bits of lanes: flushes the denormals of an unflushed result.
    pub fn flush_pending(&mut self, v: V) -> V {
        if !self.facts.unflushed.contains(&v) {
            return v;
        }
        if let Some(found) = self.facts.flushed.get(&v) {
            return *found;
        }
        // Under DAZ, adding -0 turns a denormal into a zero and changes no other number.
        let nothing = self.splat_constant(HostWidth::W32, 0x8000_0000);
        let out = self.f.rvm(SINGLE.add, v, nothing, None);
        self.facts.flushed.insert(v, out);
        self.facts.denormal_free.insert(out);
        out
    }

    /// Changes signs. The result of an unflushed value is unflushed, too.
    pub fn change_sign(&mut self, v: V, keep: u32, flip: u32) -> V {
        let mut out = v;
        if keep != u32::MAX {
            let keep = self.splat_constant(HostWidth::W32, keep as u64);
            out = self.band(HostWidth::W32, out, keep);
        }
        if flip != 0 {
            let flip = self.splat_constant(HostWidth::W32, flip as u64);
            out = self.bxor(HostWidth::W32, out, flip);
        }
        if self.facts.unflushed.contains(&v) {
            self.facts.unflushed.insert(out);
        }
        out
    }

    /// Replaces f32 denormals by zeros of the same sign.
    pub fn flush_denormals(&mut self, v: V) -> V {
        if self.facts.denormal_free.contains(&v) {
            return v;
        }
        if let Some(found) = self.facts.flushed.get(&v) {
            return *found;
        }
        let host_width = HostWidth::W32;
        let [exponent, zero, magnitude] =
            [0x7f80_0000, 0, 0x7fff_ffff].map(|bits| self.splat_constant(host_width, bits));
        let exponent = self.band(host_width, v, exponent);
        let is_zero = self.icmp(Cc::Eq, host_width, exponent, zero);
        let dropped = self.band(host_width, is_zero, magnitude);
        let out = self.and_not(host_width, dropped, v);
        self.facts.flushed.insert(v, out);
        self.facts.denormal_free.insert(out);
        out
    }

    /// Prepares a source operand.
    pub fn float_source(&mut self, denormals: Denormals, v: V) -> V {
        match denormals {
            Denormals::Flush if !self.run_daz => self.flush_denormals(v),
            _ => v,
        }
    }

    /// Completes a result.
    pub fn float_result(&mut self, denormals: Denormals, v: V) -> V {
        match denormals {
            Denormals::Keep => v,
            Denormals::Flush if self.run_daz => {
                self.facts.unflushed.insert(v);
                v
            }
            Denormals::Flush => self.flush_denormals(v),
        }
    }

    /// Emits an operation on floats with vector instructions. The result is uniform if the operands are.
    pub fn float_op<const N: usize>(
        &mut self,
        denormals: Denormals,
        format: &Format,
        vals: [Val; N],
        mut f: impl FnMut(&mut Self, [V; N]) -> V,
    ) -> R<Val> {
        let mut one = |e: &mut Self, v: [V; N]| {
            let v = v.map(|v| e.float_source(denormals, v));
            let r = f(e, v);
            e.float_result(denormals, r)
        };
        let varies = vals.iter().any(|v| v.is_varying()) || self.packet.is_some();
        if narrow(format.host_width) == HostWidth::W32 {
            let mut v = Vec::with_capacity(N);
            for val in vals {
                let val = match val {
                    Val::Const(bits) if denormals == Denormals::Flush && bits & 0x7f80_0000 == 0 => {
                        Val::Const(bits & 0x8000_0000)
                    }
                    val => val,
                };
                v.push(self.unflushed_lanes(val)?);
                if denormals == Denormals::Flush && matches!(val, Val::Const(_)) {
                    self.facts.denormal_free.insert(v[v.len() - 1]);
                }
            }
            let r = one(self, std::array::from_fn(|k| v[k]));
            return Ok(if varies { Val::Lanes(r) } else { Val::Uniform(self.f.low_int(r)) });
        }
        let mut v = Vec::with_capacity(N);
        for val in vals {
            v.push(self.lanes64(val)?);
        }
        Ok(Val::Lanes64([0, 1].map(|half| one(self, std::array::from_fn(|k| v[k][half])))))
    }

    fn fma(&mut self, denormals: Denormals, format: &Format, args: [Val; 3]) -> R<Val> {
        let is_64 = format.host_width != HostWidth::W32;
        self.float_op(denormals, format, args, |e, [a, b, c]| e.f.fma(is_64, a, b, c))
    }

    fn float_compare(&mut self, which: u8, denormals: Denormals, format: &Format, a: Val, b: Val) -> R<Val> {
        let mut masks = Vec::new();
        // The result of a comparison is not a float: it needs no flushing.
        let single = format.host_width == HostWidth::W32;
        let varies = a.is_varying() || b.is_varying() || self.packet.is_some();
        self.float_sources(denormals, single, [a, b], |e, [a, b]| {
            masks.push(e.f.rvm(format.compare, a, b, Some(which)));
        })?;
        Ok(match (masks[..].first(), masks.get(1)) {
            (Some(low), Some(high)) => Val::Mask(self.low_words([*low, *high])),
            (Some(mask), None) if varies => Val::Mask(*mask),
            (Some(mask), None) => {
                let bits = self.f.low_int(*mask);
                Val::Bool(self.f.int2(Int2::And, width(HostWidth::W32), bits, 1))
            }
            _ => return Err(Bug("a comparison")),
        })
    }

    /// Calls `f` with the sources' vectors; twice for f64.
    fn float_sources<const N: usize>(
        &mut self,
        denormals: Denormals,
        single: bool,
        vals: [Val; N],
        mut f: impl FnMut(&mut Self, [V; N]),
    ) -> R<()> {
        let mut v = Vec::with_capacity(N);
        for val in vals {
            v.push(match single {
                true => [self.unflushed_lanes(val)?; 2],
                false => self.lanes64(val)?,
            });
        }
        for half in 0..if single { 1 } else { 2 } {
            let v = std::array::from_fn(|k| v[k][half]);
            let v = v.map(|v| self.float_source(denormals, v));
            f(self, v);
        }
        Ok(())
    }

    /// Tests for NaN: the bits without the sign are greater than infinity's.
    pub fn is_nan(&mut self, format: &Format, v: V) -> V {
        if self.is_vector(v) {
            return self.f.rvm(format.compare, v, v, Some(predicate::UNORDERED));
        }
        let (magnitude, infinity) = (
            self.constant_like(format.host_width, !sign_bit(format), v),
            self.constant_like(format.host_width, format.infinity, v),
        );
        let v = self.band(format.host_width, v, magnitude);
        self.icmp(Cc::GtS, format.host_width, v, infinity)
    }

    /// Emits a minimum or maximum, with -0 below +0 and the NaN rules of `exec::rt::float`.
    fn min_max(
        &mut self,
        denormals: Denormals,
        format: &Format,
        less: bool,
        nan_wins: bool,
        a: Val,
        b: Val,
    ) -> R<Val> {
        let host_width = format.host_width;
        let is_64 = host_width != HostWidth::W32;
        self.float_op(denormals, format, [a, b], |e, [a, b]| {
            let code = if less { format.min } else { format.max };
            // For two zeros, the host returns the second operand.
            let (p, q) = (e.f.rvm(code, a, b, None), e.f.rvm(code, b, a, None));
            let number = if less { e.bor(host_width, p, q) } else { e.band(host_width, p, q) };
            let (nan_a, nan_b) = (e.is_nan(format, a), e.is_nan(format, b));
            let quiet = e.splat_constant(host_width, format.quiet);
            let quiet_a = e.bor(host_width, a, quiet);
            let (of_a, of_b) = match nan_wins {
                true => (quiet_a, e.bor(host_width, b, quiet)),
                false => (b, a),
            };
            let out = e.f.blend(is_64, nan_b, of_b, number);
            let out = e.f.blend(is_64, nan_a, of_a, out);
            let both = e.band(host_width, nan_a, nan_b);
            e.f.blend(is_64, both, quiet_a, out)
        })
    }

    fn fract(&mut self, denormals: Denormals, format: &Format, a: Val) -> R<Val> {
        self.float_op(denormals, format, [a], |e, [x]| {
            let is_64 = format.host_width != HostWidth::W32;
            let below = e.f.rm(format.round, x, Some(rounding::DOWN));
            let mut r = e.f.rvm(format.sub, x, below, None);
            let [most, zero] = [format.below_one, 0].map(|bits| e.splat_constant(format.host_width, bits));
            let beyond = e.f.rvm(format.compare, r, most, Some(predicate::GREATER));
            if !is_64 {
                // A zero is positive.
                let none = e.f.rvm(format.compare, r, zero, Some(predicate::EQUAL));
                r = e.f.blend(false, none, zero, r);
            }
            e.f.blend(is_64, beyond, most, r)
        })
    }

    pub fn float_bits(&mut self, op: FloatBits, ty: Ty, host_width: HostWidth, v: Val) -> R<Val> {
        let format = match ty {
            Ty::F32 => &SINGLE,
            Ty::F64 => &DOUBLE,
            Ty::F16 => return self.float_bits_f16(op, v),
            _ => return Err(Bug("a float format")),
        };
        debug_assert_eq!(format.host_width, host_width);
        match op {
            FloatBits::IsNan => self.compare_op(host_width, v, v, |e, _, v, _| e.is_nan(format, v)),
            FloatBits::IsSignalNan | FloatBits::IsQuietNan => {
                let quiet = op == FloatBits::IsQuietNan;
                self.compare_op(host_width, v, v, |e, host_width, v, _| {
                    let nan = e.is_nan(format, v);
                    let (bit, zero) =
                        (e.constant_like(host_width, format.quiet, v), e.constant_like(host_width, 0, v));
                    let bit = e.band(host_width, v, bit);
                    let cc = if quiet { Cc::Ne } else { Cc::Eq };
                    let has = e.icmp(cc, host_width, bit, zero);
                    e.band(host_width, nan, has)
                })
            }
            FloatBits::Quiet => self.unary_op(host_width, v, |e, host_width, v| {
                let nan = e.is_nan(format, v);
                let bit = e.constant_like(host_width, format.quiet, v);
                let quiet = e.bor(host_width, v, bit);
                e.select_same_class(host_width, nan, quiet, v)
            }),
            FloatBits::Exponent => {
                let exponent = self.unary_op(host_width, v, |e, host_width, v| {
                    let magnitude = e.constant_like(host_width, !sign_bit(format), v);
                    let v = e.band(host_width, v, magnitude);
                    e.shift_by(crate::lowering::Shift::Right, host_width, v, format.significand)
                })?;
                self.resize(exponent, host_width, HostWidth::W32)
            }
        }
    }
}

/// Returns the sign bit of a format as an integer of its width.
fn sign_bit(format: &Format) -> u64 {
    1 << (format.host_width.bits() - 1)
}
