//! Float arithmetic, as the interpreter's handlers have it (`exec::rt::float`): to nearest even, with denormals of f32
//! flushed in the mode that does so.

use super::val::{LITTLE, Val, float_of, narrow};
use super::{Emitter, R, Unsupported, ins};
use cranelift_codegen::cursor::{Cursor, FuncCursor};
use cranelift_codegen::ir::condcodes::{FloatCC, IntCC};
use cranelift_codegen::ir::types::{I32, I32X4};
use cranelift_codegen::ir::{InstBuilder, Value as V};
use isa_lower::ir::{Conversion, FloatBits, FloatOp, Hold, Value};
use isa_spec::pcode::ir::Ty;

/// What a format's bits are.
struct Format {
    hold: Hold,
    infinity: u64,
    quiet: u64,
    significand: u32,
    one: u64,
    below_one: u64,
}

const SINGLE: Format = Format {
    hold: Hold::W32,
    infinity: 0x7f80_0000,
    quiet: 0x0040_0000,
    significand: 23,
    one: 0x3f80_0000,
    below_one: 0x3f7f_ffff,
};
const DOUBLE: Format = Format {
    hold: Hold::W64,
    infinity: 0x7ff0 << 48,
    quiet: 8 << 48,
    significand: 52,
    one: 0x3ff0 << 48,
    below_one: (0x3ff0 << 48) - 1,
};

/// How an operation treats denormals of f32.
#[derive(Clone, Copy, PartialEq)]
enum Denormals {
    Keep,
    Flush,
}

impl Emitter<'_> {
    pub fn float(&mut self, op: FloatOp, ty: Ty, args: &[Value]) -> R<Val> {
        let format = match ty {
            Ty::F32 => SINGLE,
            Ty::F64 => DOUBLE,
            _ => return Err(Unsupported("a float format")),
        };
        let mut vals = Vec::new();
        for arg in args {
            vals.push(self.value(arg)?);
        }
        let (a, b) = (vals[0], vals.get(1).copied().unwrap_or(vals[0]));
        let single = ty == Ty::F32;
        let denormals = if self.flush && single { Denormals::Flush } else { Denormals::Keep };
        // Hardware approximates these, without denormals in every mode.
        let without = if single { Denormals::Flush } else { Denormals::Keep };
        let cc = match op {
            FloatOp::Eq => Some(FloatCC::Equal),
            FloatOp::Ne => Some(FloatCC::NotEqual),
            FloatOp::Lt => Some(FloatCC::LessThan),
            FloatOp::Le => Some(FloatCC::LessThanOrEqual),
            FloatOp::Gt => Some(FloatCC::GreaterThan),
            FloatOp::Ge => Some(FloatCC::GreaterThanOrEqual),
            _ => None,
        };
        if let Some(cc) = cc {
            return self.float_compared(cc, denormals, &format, a, b);
        }
        match op {
            FloatOp::Lg => {
                let less = self.float_compared(FloatCC::LessThan, denormals, &format, a, b)?;
                let greater = self.float_compared(FloatCC::GreaterThan, denormals, &format, a, b)?;
                self.either(false, less, greater)
            }
            FloatOp::Add => self.float2(denormals, &format, a, b, |e, a, b| ins!(e).fadd(a, b)),
            FloatOp::Sub => self.float2(denormals, &format, a, b, |e, a, b| ins!(e).fsub(a, b)),
            FloatOp::Mul => self.float2(denormals, &format, a, b, |e, a, b| ins!(e).fmul(a, b)),
            FloatOp::Div => self.float2(denormals, &format, a, b, |e, a, b| ins!(e).fdiv(a, b)),
            FloatOp::Fma => self.fma(denormals, &format, [a, b, vals[2]]),
            FloatOp::FmaNearest => self.fma(Denormals::Keep, &format, [a, b, vals[2]]),
            FloatOp::MinimumNumber => self.least(denormals, &format, true, false, a, b),
            FloatOp::MaximumNumber => self.least(denormals, &format, false, false, a, b),
            FloatOp::Minimum => self.least(denormals, &format, true, true, a, b),
            FloatOp::Maximum => self.least(denormals, &format, false, true, a, b),
            FloatOp::Floor if single => self.float1(denormals, &format, a, |e, v| ins!(e).floor(v)),
            FloatOp::Ceil if single => self.float1(denormals, &format, a, |e, v| ins!(e).ceil(v)),
            FloatOp::Trunc if single => self.float1(denormals, &format, a, |e, v| ins!(e).trunc(v)),
            FloatOp::Rndne if single => self.float1(denormals, &format, a, |e, v| ins!(e).nearest(v)),
            FloatOp::Sqrt if single => self.float1(without, &format, a, |e, v| ins!(e).sqrt(v)),
            FloatOp::Rcp if single => {
                self.float2(without, &format, Val::Known(format.one as u128), a, |e, a, b| ins!(e).fdiv(a, b))
            }
            FloatOp::Fract if single => self.fract(denormals, &format, a),
            _ => Err(Unsupported("a float operation")),
        }
    }

    /// Bits as the float of their width.
    fn as_float(&mut self, v: V) -> V {
        let ty = float_of(self.ty(v));
        ins!(self).bitcast(ty, LITTLE, v)
    }

    /// Bits of a float, as the integer that `like` is.
    fn as_bits(&mut self, v: V, like: V) -> V {
        let ty = self.ty(like);
        ins!(self).bitcast(ty, LITTLE, v)
    }

    /// A denormal of f32 as a zero of its sign.
    fn flushed(&mut self, denormals: Denormals, v: V) -> V {
        if denormals == Denormals::Keep || self.normal.contains(&v) {
            return v;
        }
        if let Some(found) = self.flushes.get(&v) {
            return *found;
        }
        let out = self.hoisted(v, |e| {
            let ty = e.ty(v);
            let [exponent, zero, magnitude] = [0x7f80_0000, 0, 0x7fff_ffff].map(|bits| e.constant(ty, bits));
            let exponent = ins!(e).band(v, exponent);
            if ty.is_vector() {
                let is_zero = ins!(e).icmp(IntCC::Equal, exponent, zero);
                let dropped = ins!(e).band(is_zero, magnitude);
                ins!(e).band_not(v, dropped)
            } else {
                let sign = ins!(e).band_not(v, magnitude);
                ins!(e).select(exponent, v, sign)
            }
        });
        self.flushes.insert(v, out);
        self.normal.insert(out);
        out
    }

    /// A known value of f32 has its denormals flushed now.
    fn input(&mut self, denormals: Denormals, val: Val) -> Val {
        match val {
            Val::Known(bits) if denormals == Denormals::Flush && bits & 0x7f80_0000 == 0 => {
                Val::Known(bits & 0x8000_0000)
            }
            val => val,
        }
    }

    fn flushed_input(&mut self, denormals: Denormals, val: Val, v: V) -> V {
        // What was known has been flushed already.
        if matches!(val, Val::Known(_)) { v } else { self.flushed(denormals, v) }
    }

    fn float1(
        &mut self,
        denormals: Denormals,
        format: &Format,
        a: Val,
        f: impl Fn(&mut Self, V) -> V,
    ) -> R<Val> {
        self.float2(denormals, format, a, a, |e, a, _| f(e, a))
    }

    fn float2(
        &mut self,
        denormals: Denormals,
        format: &Format,
        a: Val,
        b: Val,
        f: impl Fn(&mut Self, V, V) -> V,
    ) -> R<Val> {
        let (a, b) = (self.input(denormals, a), self.input(denormals, b));
        self.both(format.hold, a, b, |e, x, y| {
            let (x, y) = (e.flushed_input(denormals, a, x), e.flushed_input(denormals, b, y));
            let (p, q) = (e.as_float(x), e.as_float(y));
            let r = f(e, p, q);
            let r = e.as_bits(r, x);
            e.flushed(denormals, r)
        })
    }

    fn fma(&mut self, denormals: Denormals, format: &Format, args: [Val; 3]) -> R<Val> {
        let args = args.map(|v| self.input(denormals, v));
        let one = |e: &mut Self, v: [V; 3]| {
            let [a, b, c] = [0, 1, 2].map(|k| e.flushed_input(denormals, args[k], v[k]));
            let [p, q, s] = [a, b, c].map(|v| e.as_float(v));
            let r = ins!(e).fma(p, q, s);
            let r = e.as_bits(r, a);
            e.flushed(denormals, r)
        };
        if !args.iter().any(|v| v.varies()) {
            let [a, b, c] = args;
            let v = [self.one(a, format.hold)?, self.one(b, format.hold)?, self.one(c, format.hold)?];
            return Ok(Val::One(one(self, v)));
        }
        let [a, b, c] = args;
        Ok(if narrow(format.hold) == Hold::W32 {
            let v = [self.lanes(a)?, self.lanes(b)?, self.lanes(c)?];
            Val::Lanes(one(self, v))
        } else {
            let v = [self.wide(a)?, self.wide(b)?, self.wide(c)?];
            let [first, second] = [0, 1].map(|k| one(self, v.map(|v| v[k])));
            Val::Wide([first, second])
        })
    }

    fn float_compared(
        &mut self,
        cc: FloatCC,
        denormals: Denormals,
        format: &Format,
        a: Val,
        b: Val,
    ) -> R<Val> {
        let (a, b) = (self.input(denormals, a), self.input(denormals, b));
        self.compared(format.hold, a, b, |e, x, y| {
            let (x, y) = (e.flushed_input(denormals, a, x), e.flushed_input(denormals, b, y));
            let (p, q) = (e.as_float(x), e.as_float(y));
            ins!(e).fcmp(cc, p, q)
        })
    }

    /// The bits without the sign are above infinity's.
    fn is_nan(&mut self, format: &Format, v: V) -> V {
        let ty = self.ty(v);
        let (magnitude, infinity) = (!sign(format), format.infinity);
        let (magnitude, infinity) = (self.constant(ty, magnitude), self.constant(ty, infinity));
        let v = ins!(self).band(v, magnitude);
        ins!(self).icmp(IntCC::SignedGreaterThan, v, infinity)
    }

    /// The lesser or the greater of two, -0 below +0, with the rules for NaN of `exec::rt::float`.
    fn least(
        &mut self,
        denormals: Denormals,
        format: &Format,
        less: bool,
        nan_wins: bool,
        a: Val,
        b: Val,
    ) -> R<Val> {
        let (a, b) = (self.input(denormals, a), self.input(denormals, b));
        let bits = format.hold.bits() as i64;
        self.both(format.hold, a, b, |e, x, y| {
            let (a, b) = (e.flushed_input(denormals, a, x), e.flushed_input(denormals, b, y));
            let (sign_at, one) = (ins!(e).iconst(I32, bits - 1), ins!(e).iconst(I32, 1));
            // A signed integer that orders like the float.
            let [p, q] = [a, b].map(|v| {
                let signs = ins!(e).sshr(v, sign_at);
                let flip = ins!(e).ushr(signs, one);
                ins!(e).bxor(v, flip)
            });
            let cc = if less { IntCC::SignedLessThan } else { IntCC::SignedGreaterThanOrEqual };
            let first = ins!(e).icmp(cc, p, q);
            let number = e.pick(first, a, b);
            let (nan_a, nan_b) = (e.is_nan(format, a), e.is_nan(format, b));
            let quiet = e.constant(e.ty(a), format.quiet);
            let quiet_a = ins!(e).bor(a, quiet);
            let (of_a, of_b) = match nan_wins {
                true => (quiet_a, ins!(e).bor(b, quiet)),
                false => (b, a),
            };
            let out = e.pick(nan_b, of_b, number);
            let out = e.pick(nan_a, of_a, out);
            let both = ins!(e).band(nan_a, nan_b);
            let out = e.pick(both, quiet_a, out);
            if denormals == Denormals::Flush {
                e.normal.insert(out);
            }
            out
        })
    }

    fn fract(&mut self, denormals: Denormals, format: &Format, a: Val) -> R<Val> {
        let a = self.input(denormals, a);
        self.each(format.hold, a, |e, x| {
            let x = e.flushed_input(denormals, a, x);
            let p = e.as_float(x);
            let below = ins!(e).floor(p);
            let r = ins!(e).fsub(p, below);
            let [most, zero] = [format.below_one, 0].map(|bits| e.constant(e.ty(x), bits));
            let [most_f, zero_f] = [most, zero].map(|v| e.as_float(v));
            let (beyond, none) =
                (ins!(e).fcmp(FloatCC::GreaterThan, r, most_f), ins!(e).fcmp(FloatCC::Equal, r, zero_f));
            let r = e.as_bits(r, x);
            let r = e.pick(none, zero, r);
            let r = e.pick(beyond, most, r);
            e.flushed(denormals, r)
        })
    }

    pub fn float_bits(&mut self, op: FloatBits, ty: Ty, hold: Hold, v: Val) -> R<Val> {
        let format = match ty {
            Ty::F32 => SINGLE,
            Ty::F64 => DOUBLE,
            _ => return Err(Unsupported("a float format")),
        };
        debug_assert_eq!(format.hold, hold);
        match op {
            FloatBits::IsNan => self.compared(hold, v, v, |e, v, _| e.is_nan(&format, v)),
            FloatBits::IsSignalNan | FloatBits::IsQuietNan => {
                let quiet = op == FloatBits::IsQuietNan;
                self.compared(hold, v, v, |e, v, _| {
                    let nan = e.is_nan(&format, v);
                    let ty = e.ty(v);
                    let (bit, zero) = (e.constant(ty, format.quiet), e.constant(ty, 0));
                    let bit = ins!(e).band(v, bit);
                    let cc = if quiet { IntCC::NotEqual } else { IntCC::Equal };
                    let has = ins!(e).icmp(cc, bit, zero);
                    ins!(e).band(nan, has)
                })
            }
            FloatBits::Quiet => self.each(hold, v, |e, v| {
                let nan = e.is_nan(&format, v);
                let bit = e.constant(e.ty(v), format.quiet);
                let quiet = ins!(e).bor(v, bit);
                e.pick(nan, quiet, v)
            }),
            FloatBits::Exponent => {
                let exponent = self.each(hold, v, |e, v| {
                    let magnitude = e.constant(e.ty(v), !sign(&format));
                    let v = ins!(e).band(v, magnitude);
                    let n = ins!(e).iconst(I32, format.significand as i64);
                    ins!(e).ushr(v, n)
                })?;
                self.resized(exponent, hold, Hold::W32)
            }
        }
    }

    pub fn conversion(&mut self, conversion: Conversion, v: Val) -> R<Val> {
        let (most, least) = match conversion {
            Conversion::F32ToI16 => (0x7fff, -0x8000),
            Conversion::F32ToU16 => (0xffff, 0),
            _ => (0, 0),
        };
        match conversion {
            Conversion::I32ToF32 | Conversion::U32ToF32 => {
                let signed = conversion == Conversion::I32ToF32;
                self.each(Hold::W32, v, |e, v| {
                    let ty = float_of(e.ty(v));
                    let r =
                        if signed { ins!(e).fcvt_from_sint(ty, v) } else { ins!(e).fcvt_from_uint(ty, v) };
                    let r = e.as_bits(r, v);
                    e.normal.insert(r);
                    r
                })
            }
            Conversion::F32ToI32 => self.each(Hold::W32, v, |e, v| e.integer_of(v, true)),
            Conversion::F32ToU32 => self.each(Hold::W32, v, |e, v| e.integer_of(v, false)),
            Conversion::F32ToI16 | Conversion::F32ToU16 => {
                let v = self.each(Hold::W32, v, |e, v| {
                    let r = e.integer_of(v, true);
                    let ty = e.ty(r);
                    let (most, least) = (e.constant(ty, most as u64), e.constant(ty, least as u32 as u64));
                    let r = ins!(e).smin(r, most);
                    ins!(e).smax(r, least)
                })?;
                self.op2(isa_lower::ir::Op2::And, Hold::W32, v, Val::Known(0xffff))
            }
            _ => Err(Unsupported("a conversion")),
        }
    }

    /// Toward zero, saturating; 0 for NaN.
    fn integer_of(&mut self, v: V, signed: bool) -> V {
        let ty = if self.ty(v) == I32 { I32 } else { I32X4 };
        let v = self.as_float(v);
        if signed { ins!(self).fcvt_to_sint_sat(ty, v) } else { ins!(self).fcvt_to_uint_sat(ty, v) }
    }
}

/// The sign bit of a format, in the integer of its width.
fn sign(format: &Format) -> u64 {
    1 << (format.hold.bits() - 1)
}
