//! Float operations by mode. `Keep` and `Flush` round to nearest even with the host's own instructions,
//! inlined into lane loops; `General` uses the exact library.

use super::half_conversions::half_to_single;
use super::nan;
use isa_spec::arith::{self, FloatEnv};
use isa_spec::pcode::ir::Ty;

/// The float environment that a handler is compiled for.
pub trait Mode {
    /// f32 denormals of sources and results become zeros.
    const FLUSH: bool;
    /// f32 denormals of sources become zeros; false if the sources are flagged as free of them.
    const FLUSH_IN: bool = Self::FLUSH;
    /// Results are flushed when they are written, a lane vector at a time; for semantics of a single
    /// operation.
    const FLUSH_VECS: bool = false;
    /// All operations use the library.
    const GENERAL: bool;
    /// A single operation on f32 lane vectors is that of the host ([`super::ordered`]).
    const DIRECT: bool = false;
    /// The rounding, denormal and overflow settings of MODE.
    fn env(&self) -> &FloatEnv;
}

/// Rounds to nearest even, keeps all denormals.
pub struct Keep;
/// Rounds to nearest even, flushes f32 denormals.
pub struct Flush;
/// As `Flush`, for sources without denormals.
pub struct FlushOut;
/// As `FlushOut`, for semantics of a single operation.
pub struct FlushVecs;
/// Any environment.
#[derive(Clone, Copy)]
pub struct General(pub FloatEnv);

const FLUSH_ENV: FloatEnv = FloatEnv { flush_in32: true, flush_out32: true, ..FloatEnv::KEEP };

impl Mode for Keep {
    const FLUSH: bool = false;
    const GENERAL: bool = false;
    const DIRECT: bool = cfg!(target_arch = "x86_64");
    #[inline(always)]
    fn env(&self) -> &FloatEnv {
        &FloatEnv::KEEP
    }
}

impl Mode for Flush {
    const FLUSH: bool = true;
    const GENERAL: bool = false;
    #[inline(always)]
    fn env(&self) -> &FloatEnv {
        &FLUSH_ENV
    }
}

impl Mode for FlushOut {
    const FLUSH: bool = true;
    const FLUSH_IN: bool = false;
    const GENERAL: bool = false;
    #[inline(always)]
    fn env(&self) -> &FloatEnv {
        &FLUSH_ENV
    }
}

impl Mode for FlushVecs {
    const FLUSH: bool = false;
    const FLUSH_VECS: bool = true;
    const GENERAL: bool = false;
    const DIRECT: bool = cfg!(target_arch = "x86_64");
    #[inline(always)]
    fn env(&self) -> &FloatEnv {
        &FLUSH_ENV
    }
}

impl Mode for General {
    const FLUSH: bool = false;
    const GENERAL: bool = true;
    #[inline(always)]
    fn env(&self) -> &FloatEnv {
        &self.0
    }
}

#[inline(always)]
pub(super) fn fl<M: Mode>(x: u32) -> u32 {
    if M::FLUSH && x & 0x7f80_0000 == 0 { x & 0x8000_0000 } else { x }
}

#[inline(always)]
pub(super) fn fl_in<M: Mode>(x: u32) -> u32 {
    if M::FLUSH_IN { fl::<M>(x) } else { x }
}

#[inline(always)]
pub(super) fn f(x: u32) -> f32 {
    f32::from_bits(x)
}

macro_rules! arith32 {
    ($($name:ident $lib:ident |$a:ident, $b:ident| $e:expr;)*) => { $(
        /// An operation of two f32, rounded once.
        #[inline(always)]
        pub fn $name<M: Mode>(m: &M, a: u32, b: u32) -> u32 {
            if M::GENERAL {
                return arith::$lib(a as u128, b as u128, Ty::F32, m.env()) as u32;
            }
            let ($a, $b) = (f(fl_in::<M>(a)), f(fl_in::<M>(b)));
            fl::<M>(($e).to_bits())
        }
    )* };
}

arith32! {
    add_f32 add |a, b| nan::of_two(a, b, |a, b| a + b);
    sub_f32 sub |a, b| nan::result([a, b], a - b);
    mul_f32 mul |a, b| nan::of_two(a, b, |a, b| a * b);
    div_f32 div_float |a, b| nan::result([a, b], a / b);
}

/// `a * b + c`, rounded once.
#[inline(always)]
pub fn fma_f32<M: Mode>(m: &M, a: u32, b: u32, c: u32) -> u32 {
    if M::GENERAL {
        return arith::fma(a as u128, b as u128, c as u128, Ty::F32, m.env()) as u32;
    }
    let [a, b, c] = [a, b, c].map(|x| f(fl_in::<M>(x)));
    fl::<M>(nan::of_three(a, b, c, fused).to_bits())
}

/// Returns `a * b + c`, rounded once. WebAssembly has no such instruction, and the library function is slow.
#[inline(always)]
fn fused(a: f32, b: f32, c: f32) -> f32 {
    if cfg!(target_arch = "wasm32") { fused_by_f64(a, b, c) } else { a.mul_add(b, c) }
}

/// Computes in f64, in which the product is exact. Rounding the sum twice equals rounding once if the first
/// rounding is to odd, which sets the last bit if bits were lost.
#[inline(always)]
pub(super) fn fused_by_f64(a: f32, b: f32, c: f32) -> f32 {
    let (product, c) = (a as f64 * b as f64, c as f64);
    let sum = product + c;
    // The rounding error of the sum (Knuth's TwoSum); NaN if the sum is not finite.
    let rest = sum - product;
    let lost = (product - (sum - rest)) + (c - rest);
    let bits = sum.to_bits();
    // Where the last bit is even, move one unit in the last place toward the exact sum.
    let away = (lost > 0.0) == (sum > 0.0);
    let odd = if away { bits.wrapping_add(1) } else { bits.wrapping_sub(1) };
    let inexact = (lost > 0.0) | (lost < 0.0);
    f64::from_bits(if inexact & (bits & 1 == 0) { odd } else { bits }) as f32
}

macro_rules! compare {
    ($($name:ident $name16:ident $name64:ident $op:tt;)*) => { $(
        /// Compares two f32: returns 1 if the relation holds, else 0. If either is NaN, only `ne` holds.
        #[inline(always)]
        pub fn $name<M: Mode>(m: &M, a: u32, b: u32) -> u32 {
            let flush = |x: u32| {
                if M::GENERAL && m.env().flush_in32 && x & 0x7f80_0000 == 0 { x & 0x8000_0000 } else { fl::<M>(x) }
            };
            (f(flush(a)) $op f(flush(b))) as u32
        }
        /// The same for f16.
        #[inline(always)]
        pub fn $name16<M: Mode>(m: &M, a: u32, b: u32) -> u32 {
            let flush = |x: u32| if M::GENERAL && m.env().flush_in64 && x & 0x7c00 == 0 { x & 0x8000 } else { x };
            (f(half_to_single(flush(a))) $op f(half_to_single(flush(b)))) as u32
        }
        /// The same for f64.
        #[inline(always)]
        pub fn $name64<M: Mode>(m: &M, a: u64, b: u64) -> u32 {
            let flush = |x: u64| {
                if M::GENERAL && m.env().flush_in64 && x & 0x7ff0_0000_0000_0000 == 0 { x & 1 << 63 } else { x }
            };
            (f64::from_bits(flush(a)) $op f64::from_bits(flush(b))) as u32
        }
    )* };
}

compare! {
    eq_f32 eq_f16 eq_f64 ==;
    ne_f32 ne_f16 ne_f64 !=;
    lt_f32 lt_f16 lt_f64 <;
    le_f32 le_f16 le_f64 <=;
    gt_f32 gt_f16 gt_f64 >;
    ge_f32 ge_f16 ge_f64 >=;
}

/// Returns 1 if `a < b` or `a > b`, and 0 if they are equal or unordered.
#[inline(always)]
pub fn lg_f32<M: Mode>(m: &M, a: u32, b: u32) -> u32 {
    lt_f32(m, a, b) | gt_f32(m, a, b)
}

/// As [`lg_f32`], for f16.
#[inline(always)]
pub fn lg_f16<M: Mode>(m: &M, a: u32, b: u32) -> u32 {
    lt_f16(m, a, b) | gt_f16(m, a, b)
}

/// As [`lg_f32`], for f64.
#[inline(always)]
pub fn lg_f64<M: Mode>(m: &M, a: u64, b: u64) -> u32 {
    lt_f64(m, a, b) | gt_f64(m, a, b)
}

macro_rules! arith64 {
    ($($name:ident $lib:ident |$a:ident, $b:ident| $e:expr;)*) => { $(
        /// An operation of two f64, rounded once.
        #[inline(always)]
        pub fn $name<M: Mode>(m: &M, a: u64, b: u64) -> u64 {
            if M::GENERAL {
                return arith::$lib(a as u128, b as u128, Ty::F64, m.env()) as u64;
            }
            let ($a, $b) = (f64::from_bits(a), f64::from_bits(b));
            ($e).to_bits()
        }
    )* };
}

arith64! {
    add_f64 add |a, b| nan::of_two(a, b, |a, b| a + b);
    sub_f64 sub |a, b| nan::result([a, b], a - b);
    mul_f64 mul |a, b| nan::of_two(a, b, |a, b| a * b);
    div_f64 div_float |a, b| nan::result([a, b], a / b);
}

/// `a * b + c`, rounded once.
#[inline(always)]
pub fn fma_f64<M: Mode>(m: &M, a: u64, b: u64, c: u64) -> u64 {
    if M::GENERAL {
        return arith::fma(a as u128, b as u128, c as u128, Ty::F64, m.env()) as u64;
    }
    let [a, b, c] = [a, b, c].map(f64::from_bits);
    nan::of_three(a, b, c, f64::mul_add).to_bits()
}

macro_rules! tests {
    ($($suffix:ident $t:ty, $is_nan:ident $is_snan:ident $is_qnan:ident $quiet:ident $exponent:ident $inf:literal $abs:literal $qbit:literal $shift:literal;)*) => { $(
        /// Returns 1 for any NaN.
        #[inline(always)]
        pub fn $is_nan(x: $t) -> u32 { (x & $abs > $inf) as u32 }
        /// Returns 1 for a signalling NaN, whose first significand bit is 0.
        #[inline(always)]
        pub fn $is_snan(x: $t) -> u32 { (x & $abs > $inf && x & $qbit == 0) as u32 }
        /// Returns 1 for a quiet NaN.
        #[inline(always)]
        pub fn $is_qnan(x: $t) -> u32 { (x & $abs > $inf && x & $qbit != 0) as u32 }
        /// Makes a signalling NaN quiet; returns other values unchanged.
        #[inline(always)]
        pub fn $quiet(x: $t) -> $t { if x & $abs > $inf { x | $qbit } else { x } }
        /// Returns the biased exponent, as the format stores it.
        #[inline(always)]
        pub fn $exponent(x: $t) -> u32 { ((x & $abs) >> $shift) as u32 }
    )* };
}

tests! {
    f16 u32, is_nan_f16 is_snan_f16 is_qnan_f16 quiet_f16 exponent_f16 0x7c00 0x7fff 0x200 10;
    f32 u32, is_nan_f32 is_snan_f32 is_qnan_f32 quiet_f32 exponent_f32 0x7f80_0000 0x7fff_ffff 0x40_0000 23;
    f64 u64, is_nan_f64 is_snan_f64 is_qnan_f64 quiet_f64 exponent_f64 0x7ff0_0000_0000_0000 0x7fff_ffff_ffff_ffff 0x8_0000_0000_0000 52;
}

/// Minimum and maximum, with the format in the highest bits of an integer; only f32 is flushed.
macro_rules! choices {
    ($min_num:ident $max_num:ident $minimum:ident $maximum:ident $choose:ident $t:ty, $held:ty, $int:ty, $ty:ident, $up:literal $inf:literal $quiet:literal;) => {
        /// Returns the lesser of two numbers if `less`, else the greater. If one is NaN, returns a NaN if
        /// `nan_wins`, else the number.
        #[inline(always)]
        fn $choose(less: bool, nan_wins: bool, a: $held, b: $held) -> $held {
            // A signed integer key that orders numbers like floats, with -0 below +0.
            let key = |x: $held| x as $int ^ ((x as $int >> (<$held>::BITS - 1)) as $held >> 1) as $int;
            let nan = |x: $held| x << 1 > $inf << 1;
            let number = if less == (key(a) < key(b)) { a } else { b };
            let (of_a, of_b) = if nan_wins { (a | $quiet, b | $quiet) } else { (b, a) };
            if nan(a) & nan(b) {
                a | $quiet
            } else if nan(a) {
                of_a
            } else if nan(b) {
                of_b
            } else {
                number
            }
        }

        choices! { @ $choose $t, $held, $ty, $up; $min_num true false; $max_num false false; $minimum true true; $maximum false true; }
    };
    (@ $choose:ident $t:ty, $held:ty, $ty:ident, $up:literal; $($name:ident $less:literal $nan_wins:literal;)*) => { $(
        /// Returns the lesser or the greater of two, with -0 below +0. If one is NaN, `minimum` and `maximum`
        /// return NaN, the others the number.
        #[inline(always)]
        pub fn $name<M: Mode>(m: &M, a: $t, b: $t) -> $t {
            if M::GENERAL {
                return arith::min_max(a as u128, b as u128, Ty::$ty, m.env(), !$less, $nan_wins) as $t;
            }
            let operand = |x: $t| (if <$held>::BITS == 32 && $up == 0 { fl::<M>(x as u32) as $t } else { x }) << $up;
            $choose($less, $nan_wins, operand(a), operand(b)) >> $up
        }
    )* };
}

choices! { min_num_f16 max_num_f16 minimum_f16 maximum_f16 choose_f16 u32, u32, i32, F16, 16 0x7c00_0000 0x0200_0000; }
choices! { min_num_f32 max_num_f32 minimum_f32 maximum_f32 choose_f32 u32, u32, i32, F32, 0 0x7f80_0000 0x0040_0000; }
choices! { min_num_f64 max_num_f64 minimum_f64 maximum_f64 choose_f64 u64, u64, i64, F64, 0 0x7ff0_0000_0000_0000 0x0008_0000_0000_0000; }

macro_rules! one32 {
    ($($name:ident $lib:ident |$x:ident| $e:expr;)*) => { $(
        /// A function of one f32, rounded once, with denormals according to the mode.
        #[inline(always)]
        pub fn $name<M: Mode>(m: &M, x: u32) -> u32 {
            if M::GENERAL {
                return arith::$lib(x as u128, Ty::F32, m.env()) as u32;
            }
            let $x = f(fl::<M>(x));
            let r: f32 = $e;
            fl::<M>(r.to_bits())
        }
    )* };
}

one32! {
    floor_f32 floor |x| x.floor();
    ceil_f32 ceil |x| x.ceil();
    trunc_f32 trunc |x| x.trunc();
    rndne_f32 rndne |x| x.round_ties_even();
    fract_f32 fract |x| fract(x);
}

/// Functions that hardware approximates: rounded to nearest even with denormals flushed, in every mode.
macro_rules! approximated32 {
    ($($name:ident |$x:ident| $e:expr;)*) => { $(
        /// The function, rounded once; hardware's own result may differ in the last bits.
        #[inline(always)]
        pub fn $name<M: Mode>(_m: &M, x: u32) -> u32 {
            let $x = f(fl::<Flush>(x));
            let r: f32 = nan::result([$x], $e);
            fl::<Flush>(r.to_bits())
        }
    )* };
}

approximated32! {
    sqrt_f32 |x| x.sqrt();
    rcp_f32 |x| 1.0 / x;
    // f64 is wide enough for a single rounding, as a test of all significands shows.
    rsq_f32 |x| if x == 0.0 { f32::INFINITY.copysign(x) } else { (1.0 / (x as f64).sqrt()) as f32 };
}

#[inline(always)]
pub(super) fn fract(x: f32) -> f32 {
    // Of an infinity: not a number.
    let r = nan::result([x], x - x.floor());
    let below_one = f(0x3f7f_ffff);
    if r > below_one {
        below_one
    } else if r == 0.0 {
        0.0
    } else {
        r
    }
}

/// `x · 2^n` for a signed `n`, rounded once.
#[inline(always)]
pub fn ldexp_f32<M: Mode>(m: &M, x: u32, n: u32) -> u32 {
    if M::GENERAL {
        return arith::ldexp(x as u128, n as i32, Ty::F32, m.env()) as u32;
    }
    // The product is exact in f64; scales beyond 300 yield infinity or zero.
    let scale = f64::from_bits(((n as i32).clamp(-300, 300) + 1023) as u64 * (1 << 52));
    fl::<M>(((f(fl::<M>(x)) as f64 * scale) as f32).to_bits())
}

/// Normalises a denormal; returns the number and the increase of its exponent.
#[inline(always)]
fn normal_f32(x: u32) -> (u32, u32) {
    let denormal = x & 0x7f80_0000 == 0;
    if denormal { ((f(x) * f((127 + 24) << 23)).to_bits(), 24) } else { (x, 0) }
}

/// Returns the significand in [0.5, 1), with the sign of `x`; zero, infinity and NaN (made quiet) are
/// returned unchanged.
#[inline(always)]
pub fn frexp_mant_f32<M: Mode>(m: &M, x: u32) -> u32 {
    if M::GENERAL {
        return arith::frexp_mant(x as u128, Ty::F32, m.env()) as u32;
    }
    let x = fl::<M>(x);
    let special = x & 0x7fff_ffff == 0 || x & 0x7f80_0000 == 0x7f80_0000;
    let mantissa = normal_f32(x).0 & 0x807f_ffff | 0x3f00_0000;
    if special { quiet_f32(x) } else { mantissa }
}

/// Returns the exponent that belongs to [`frexp_mant_f32`]; 0 for zero, infinity and NaN.
#[inline(always)]
pub fn frexp_exp_f32<M: Mode>(m: &M, x: u32) -> u32 {
    if M::GENERAL {
        return arith::frexp_exp(x as u128, Ty::F32, m.env()) as u32;
    }
    let x = fl::<M>(x) & 0x7fff_ffff;
    let (normal, added) = normal_f32(x);
    let exponent = (normal >> 23).wrapping_sub(126 + added);
    if x == 0 || x >= 0x7f80_0000 { 0 } else { exponent }
}

/// Returns `a * b + c` in f64, rounded to odd: the product is exact, and the last bit is set if the sum lost
/// bits.
#[inline(always)]
fn fma_to_odd(a: f32, b: f32, c: f32) -> f64 {
    let [a, b, c] = [a, b, c].map(|x| x as f64);
    let product = a * b;
    let sum = nan::of_three(a, b, c, f64::mul_add);
    let from_c = sum - product;
    let lost = (product - (sum - from_c)) + (c - from_c);
    let bits = sum.to_bits();
    let inexact = (lost > 0.0) | (lost < 0.0);
    let odd = if (lost < 0.0) == (sum < 0.0) { bits.wrapping_add(1) } else { bits.wrapping_sub(1) };
    f64::from_bits(if inexact & (bits & 1 == 0) { odd } else { bits })
}

/// Rounds to nearest even and keeps denormals, in every mode.
#[inline(always)]
pub fn fma_nearest_f32<M: Mode>(_: &M, a: u32, b: u32, c: u32) -> u32 {
    fma_f32(&Keep, a, b, c)
}

/// Rounds to nearest even and keeps denormals, in every mode.
#[inline(always)]
pub fn fma_nearest_f64<M: Mode>(_: &M, a: u64, b: u64, c: u64) -> u64 {
    fma_f64(&Keep, a, b, c)
}

/// Rounds toward zero in every mode.
#[inline(always)]
pub fn fma_rtz_f32<M: Mode>(m: &M, a: u32, b: u32, c: u32) -> u32 {
    if M::GENERAL {
        let env = m.env().with_round(arith::Round::Zero);
        return arith::fma(a as u128, b as u128, c as u128, Ty::F32, &env) as u32;
    }
    let [a, b, c] = [a, b, c].map(|x| f(fl::<M>(x)));
    let sum = fma_to_odd(a, b, c);
    let near = sum as f32;
    // Rounding to nearest may have rounded away from zero.
    let outward = (near as f64).abs() > sum.abs();
    fl::<M>(near.to_bits() - outward as u32)
}

/// Returns `(a * b + c) · 2^n`, rounded once: a sum in f64 that is rounded to odd is precise enough for f32.
#[inline(always)]
pub fn fma_ldexp_f32<M: Mode>(m: &M, a: u32, b: u32, c: u32, n: u32) -> u32 {
    if M::GENERAL {
        return arith::fma_ldexp(a as u128, b as u128, c as u128, n as i32, Ty::F32, m.env()) as u32;
    }
    let [a, b, c] = [a, b, c].map(|x| f(fl::<M>(x)));
    let sum = fma_to_odd(a, b, c);
    // The product is exact: exponents of f32 sums are far from the limits of f64. Scales beyond 600 yield
    // infinity or zero.
    let scale = f64::from_bits(((n as i32).clamp(-600, 600) + 1023) as u64 * (1 << 52));
    fl::<M>(((sum * scale) as f32).to_bits())
}

/// Converts a signed 32-bit integer to f32.
#[inline(always)]
pub fn cvt_i32_f32<M: Mode>(m: &M, x: u32) -> u32 {
    if M::GENERAL {
        return arith::from_int(x as i32 as i128 as u128, true, Ty::F32, m.env()) as u32;
    }
    (x as i32 as f32).to_bits()
}

/// Converts an unsigned 32-bit integer to f32.
#[inline(always)]
pub fn cvt_u32_f32<M: Mode>(m: &M, x: u32) -> u32 {
    if M::GENERAL {
        return arith::from_int(x as u128, false, Ty::F32, m.env()) as u32;
    }
    (x as f32).to_bits()
}

/// Converts f32 to a signed 16-bit integer: truncates, saturates, maps NaN to 0.
#[inline(always)]
pub fn cvt_f32_i16<M: Mode>(_m: &M, x: u32) -> u32 {
    (f(x) as i32).clamp(-0x8000, 0x7fff) as u32 & 0xffff
}

/// Converts f32 to an unsigned 16-bit integer: truncates, saturates, maps NaN to 0.
#[inline(always)]
pub fn cvt_f32_u16<M: Mode>(_m: &M, x: u32) -> u32 {
    (f(x) as i32).clamp(0, 0xffff) as u32
}

/// Converts f32 to an unsigned 8-bit integer, rounded according to MODE.
#[inline(always)]
pub fn cvt_f32_u8<M: Mode>(m: &M, x: u32) -> u32 {
    if M::GENERAL {
        return arith::to_int(x as u128, Ty::F32, m.env(), 8, false, m.env().round(Ty::F32)) as u32;
    }
    (f(x).round_ties_even() as i32).clamp(0, 0xff) as u32
}

/// Rust's `as` truncates, saturates and maps NaN to 0, as the ISA does.
#[inline(always)]
pub fn cvt_f32_i32<M: Mode>(_m: &M, x: u32) -> u32 {
    f(x) as i32 as u32
}

/// As [`cvt_f32_i32`], to an unsigned integer.
#[inline(always)]
pub fn cvt_f32_u32<M: Mode>(_m: &M, x: u32) -> u32 {
    f(x) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Computes 1/sqrt(x) of every significand with an even and an odd exponent. Where f64 is near a tie, the
    /// result must agree with the exact library.
    #[test]
    fn reciprocal_roots_round_once() {
        let mut window = 0;
        for bits in 0x3f80_0000u32..0x4080_0000 {
            let wide = (1.0 / (f(bits) as f64).sqrt()).to_bits();
            let below_f32 = wide & 0x1fff_ffff;
            if below_f32.abs_diff(0x1000_0000) < 8 {
                window += 1;
                let exact = arith::rsq(bits as u128, Ty::F32, &FloatEnv::KEEP) as u32;
                assert_eq!(rsq_f32(&Keep, bits), exact, "{bits:08x}");
            }
        }
        assert!(window < 1000, "{window}");
    }
}
