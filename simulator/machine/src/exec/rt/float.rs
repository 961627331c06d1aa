//! Float operations by mode. `Keep` and `Flush` are nearest-even on the host's own instructions, inlined into lane loops;
//! `General` goes through the exact library.

use isa_spec::arith::{self, FloatEnv};
use isa_spec::pcode::ir::Ty;

/// The float environment a handler was made for.
pub trait Mode {
    /// f32 denormals of sources and results become zeros.
    const FLUSH: bool;
    /// The same for sources, unless their flags say that they have none.
    const FLUSH_IN: bool = Self::FLUSH;
    /// Results are flushed a lane vector at a time, where they are written: for bodies of one operation.
    const FLUSH_ROWS: bool = false;
    /// Every operation by the library.
    const GENERAL: bool;
    fn env(&self) -> &FloatEnv;
}

/// Nearest even, all denormals kept.
pub struct Keep;
/// Nearest even, f32 denormals flushed.
pub struct Flush;
/// As `Flush`, for sources without denormals.
pub struct FlushOut;
/// As `FlushOut`, for bodies of one operation.
pub struct FlushRows;
/// Any environment.
#[derive(Clone, Copy)]
pub struct General(pub FloatEnv);

const FLUSH_ENV: FloatEnv = FloatEnv { flush_in32: true, flush_out32: true, ..FloatEnv::KEEP };

impl Mode for Keep {
    const FLUSH: bool = false;
    const GENERAL: bool = false;
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

impl Mode for FlushRows {
    const FLUSH: bool = false;
    const FLUSH_ROWS: bool = true;
    const GENERAL: bool = false;
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
fn fl<M: Mode>(x: u32) -> u32 {
    if M::FLUSH && x & 0x7f80_0000 == 0 { x & 0x8000_0000 } else { x }
}

#[inline(always)]
fn fl_in<M: Mode>(x: u32) -> u32 {
    if M::FLUSH_IN { fl::<M>(x) } else { x }
}

#[inline(always)]
fn f(x: u32) -> f32 {
    f32::from_bits(x)
}

macro_rules! arith32 {
    ($($name:ident $lib:ident |$a:ident, $b:ident| $e:expr;)*) => { $(
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
    add_f32 add |a, b| a + b;
    sub_f32 sub |a, b| a - b;
    mul_f32 mul |a, b| a * b;
    div_f32 div_float |a, b| a / b;
}

#[inline(always)]
pub fn fma_f32<M: Mode>(m: &M, a: u32, b: u32, c: u32) -> u32 {
    if M::GENERAL {
        return arith::fma(a as u128, b as u128, c as u128, Ty::F32, m.env()) as u32;
    }
    fl::<M>(f(fl_in::<M>(a)).mul_add(f(fl_in::<M>(b)), f(fl_in::<M>(c))).to_bits())
}

macro_rules! compare {
    ($($name:ident $name16:ident $name64:ident $op:tt;)*) => { $(
        #[inline(always)]
        pub fn $name<M: Mode>(m: &M, a: u32, b: u32) -> u32 {
            let flush = |x: u32| {
                if M::GENERAL && m.env().flush_in32 && x & 0x7f80_0000 == 0 { x & 0x8000_0000 } else { fl::<M>(x) }
            };
            (f(flush(a)) $op f(flush(b))) as u32
        }
        #[inline(always)]
        pub fn $name16<M: Mode>(m: &M, a: u32, b: u32) -> u32 {
            let flush = |x: u32| if M::GENERAL && m.env().flush_in64 && x & 0x7c00 == 0 { x & 0x8000 } else { x };
            (f(half_to_single(flush(a))) $op f(half_to_single(flush(b)))) as u32
        }
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

#[inline(always)]
pub fn lg_f32<M: Mode>(m: &M, a: u32, b: u32) -> u32 {
    lt_f32(m, a, b) | gt_f32(m, a, b)
}

#[inline(always)]
pub fn lg_f16<M: Mode>(m: &M, a: u32, b: u32) -> u32 {
    lt_f16(m, a, b) | gt_f16(m, a, b)
}

#[inline(always)]
pub fn lg_f64<M: Mode>(m: &M, a: u64, b: u64) -> u32 {
    lt_f64(m, a, b) | gt_f64(m, a, b)
}

macro_rules! arith64 {
    ($($name:ident $lib:ident $op:tt;)*) => { $(
        #[inline(always)]
        pub fn $name<M: Mode>(m: &M, a: u64, b: u64) -> u64 {
            if M::GENERAL {
                return arith::$lib(a as u128, b as u128, Ty::F64, m.env()) as u64;
            }
            (f64::from_bits(a) $op f64::from_bits(b)).to_bits()
        }
    )* };
}

arith64! {
    add_f64 add +;
    sub_f64 sub -;
    mul_f64 mul *;
    div_f64 div_float /;
}

#[inline(always)]
pub fn fma_f64<M: Mode>(m: &M, a: u64, b: u64, c: u64) -> u64 {
    if M::GENERAL {
        return arith::fma(a as u128, b as u128, c as u128, Ty::F64, m.env()) as u64;
    }
    f64::from_bits(a).mul_add(f64::from_bits(b), f64::from_bits(c)).to_bits()
}

/// f16 to f32, exact, in operations that vectorise.
#[inline(always)]
pub fn half_to_single(h: u32) -> u32 {
    let sign = (h & 0x8000) << 16;
    let rest = h & 0x7fff;
    // Normal numbers: rebias; infinities and NaN: rebias twice; denormals: through a float subtraction.
    let shifted = rest << 13;
    let exponent = shifted & 0x0f80_0000;
    let normal = shifted + (112 << 23);
    let special = normal + (112 << 23);
    let denormal = (f(shifted + (113 << 23)) - f(113 << 23)).to_bits();
    let magnitude = if exponent == 0x0f80_0000 {
        special
    } else if exponent == 0 {
        denormal
    } else {
        normal
    };
    sign | magnitude
}

/// f32 to f16, nearest even.
#[inline(always)]
pub fn single_to_half(x: u32) -> u32 {
    let sign = x >> 16 & 0x8000;
    let a = x & 0x7fff_ffff;
    let nan = 0x7e00 | (a >> 13 & 0x3ff);
    // Rounds to 10 fraction bits by adding half of the last place less one, plus its lowest bit.
    let odd = a >> 13 & 1;
    let normal = (a.wrapping_add(0xc800_0fff).wrapping_add(odd)) >> 13;
    // Denormals: the float addition rounds at the right place.
    let denormal = (f(a) + f(126 << 23)).to_bits().wrapping_sub(126 << 23);
    let magnitude = if a > 0x7f80_0000 {
        nan
    } else if a >= 0x4780_0000 {
        0x7c00
    } else if a < 0x3880_0000 {
        denormal
    } else {
        normal
    };
    sign | magnitude
}

macro_rules! arith16 {
    ($($name:ident $lib:ident $op:tt;)*) => { $(
        /// One rounding: f32 has more than twice f16's precision, so rounding twice gives the same.
        #[inline(always)]
        pub fn $name<M: Mode>(m: &M, a: u32, b: u32) -> u32 {
            if M::GENERAL {
                return arith::$lib(a as u128, b as u128, Ty::F16, m.env()) as u32;
            }
            single_to_half((f(half_to_single(a)) $op f(half_to_single(b))).to_bits())
        }
    )* };
}

arith16! {
    add_f16 add +;
    sub_f16 sub -;
    mul_f16 mul *;
    div_f16 div_float /;
}

macro_rules! library {
    ($($name:ident $lib:ident $ty:ident ($($arg:ident),*);)*) => { $(
        #[inline(always)]
        pub fn $name<M: Mode>(m: &M, $($arg: u32),*) -> u32 {
            arith::$lib($($arg as u128,)* Ty::$ty, m.env()) as u32
        }
    )* };
}

library! {
    fma_f16 fma F16 (a, b, c);
    add_bf16 add BF16 (a, b);
    sub_bf16 sub BF16 (a, b);
    mul_bf16 mul BF16 (a, b);
    div_bf16 div_float BF16 (a, b);
    fma_bf16 fma BF16 (a, b, c);
}

macro_rules! tests {
    ($($suffix:ident $t:ty, $is_nan:ident $is_snan:ident $is_qnan:ident $quiet:ident $exponent:ident $inf:literal $abs:literal $qbit:literal $shift:literal;)*) => { $(
        #[inline(always)]
        pub fn $is_nan(x: $t) -> u32 { (x & $abs > $inf) as u32 }
        #[inline(always)]
        pub fn $is_snan(x: $t) -> u32 { (x & $abs > $inf && x & $qbit == 0) as u32 }
        #[inline(always)]
        pub fn $is_qnan(x: $t) -> u32 { (x & $abs > $inf && x & $qbit != 0) as u32 }
        #[inline(always)]
        pub fn $quiet(x: $t) -> $t { if x & $abs > $inf { x | $qbit } else { x } }
        #[inline(always)]
        pub fn $exponent(x: $t) -> u32 { ((x & $abs) >> $shift) as u32 }
    )* };
}

tests! {
    f16 u32, is_nan_f16 is_snan_f16 is_qnan_f16 quiet_f16 exponent_f16 0x7c00 0x7fff 0x200 10;
    f32 u32, is_nan_f32 is_snan_f32 is_qnan_f32 quiet_f32 exponent_f32 0x7f80_0000 0x7fff_ffff 0x40_0000 23;
    f64 u64, is_nan_f64 is_snan_f64 is_qnan_f64 quiet_f64 exponent_f64 0x7ff0_0000_0000_0000 0x7fff_ffff_ffff_ffff 0x8_0000_0000_0000 52;
}

/// Orders like floats with -0 below +0: for numbers, a signed integer key.
#[inline(always)]
fn key(x: u32) -> i32 {
    let s = x as i32;
    s ^ ((s >> 31) as u32 >> 1) as i32
}

#[inline(always)]
fn pick(m: bool, a: u32, b: u32) -> u32 {
    let (nan_a, nan_b) = (is_nan_f32(a) != 0, is_nan_f32(b) != 0);
    let number = if m == (key(a) < key(b)) { a } else { b };
    if nan_b {
        if nan_a { a | 0x40_0000 } else { a }
    } else if nan_a {
        b
    } else {
        number
    }
}

#[inline(always)]
pub fn min_num_f32<M: Mode>(m: &M, a: u32, b: u32) -> u32 {
    if M::GENERAL {
        return arith::min_max(a as u128, b as u128, Ty::F32, m.env(), false, false) as u32;
    }
    pick(true, fl::<M>(a), fl::<M>(b))
}

#[inline(always)]
pub fn max_num_f32<M: Mode>(m: &M, a: u32, b: u32) -> u32 {
    if M::GENERAL {
        return arith::min_max(a as u128, b as u128, Ty::F32, m.env(), true, false) as u32;
    }
    pick(false, fl::<M>(a), fl::<M>(b))
}

macro_rules! one32 {
    ($($name:ident $lib:ident |$x:ident| $e:expr;)*) => { $(
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

/// What hardware approximates: nearest even and denormals flushed, in every mode.
macro_rules! approximated32 {
    ($($name:ident |$x:ident| $e:expr;)*) => { $(
        #[inline(always)]
        pub fn $name<M: Mode>(_m: &M, x: u32) -> u32 {
            let $x = f(fl::<Flush>(x));
            let r: f32 = $e;
            fl::<Flush>(r.to_bits())
        }
    )* };
}

approximated32! {
    sqrt_f32 |x| x.sqrt();
    rcp_f32 |x| 1.0 / x;
    // f64 is wide enough for the one rounding: a test goes over all significands.
    rsq_f32 |x| if x == 0.0 { f32::INFINITY.copysign(x) } else { (1.0 / (x as f64).sqrt()) as f32 };
}

#[inline(always)]
fn fract(x: f32) -> f32 {
    let r = x - x.floor();
    let below_one = f(0x3f7f_ffff);
    if r > below_one {
        below_one
    } else if r == 0.0 {
        0.0
    } else {
        r
    }
}

#[inline(always)]
pub fn cvt_f16_f32<M: Mode>(m: &M, x: u32) -> u32 {
    if M::GENERAL {
        return arith::convert(x as u128, Ty::F16, Ty::F32, m.env()) as u32;
    }
    fl::<M>(quiet_f32(half_to_single(x)))
}

#[inline(always)]
pub fn cvt_f32_f16<M: Mode>(m: &M, x: u32) -> u32 {
    if M::GENERAL {
        return arith::convert(x as u128, Ty::F32, Ty::F16, m.env()) as u32;
    }
    single_to_half(fl::<M>(x))
}

#[inline(always)]
pub fn cvt_i32_f32<M: Mode>(m: &M, x: u32) -> u32 {
    if M::GENERAL {
        return arith::from_int(x as i32 as i128 as u128, true, Ty::F32, m.env()) as u32;
    }
    (x as i32 as f32).to_bits()
}

#[inline(always)]
pub fn cvt_u32_f32<M: Mode>(m: &M, x: u32) -> u32 {
    if M::GENERAL {
        return arith::from_int(x as u128, false, Ty::F32, m.env()) as u32;
    }
    (x as f32).to_bits()
}

/// Rust's `as` truncates, saturates and maps NaN to 0, as the ISA does.
#[inline(always)]
pub fn cvt_f32_i32<M: Mode>(_m: &M, x: u32) -> u32 {
    f(x) as i32 as u32
}

#[inline(always)]
pub fn cvt_f32_u32<M: Mode>(_m: &M, x: u32) -> u32 {
    f(x) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_half_converts_exactly_and_back() {
        for h in 0..=0xffffu32 {
            let single = half_to_single(h);
            let value = half::f16::from_bits(h as u16);
            if value.is_nan() {
                // The library makes signalling NaNs quiet; here that is the operation's business.
                assert_eq!(single, (h & 0x8000) << 16 | 0x7f80_0000 | (h & 0x3ff) << 13, "{h:04x}");
            } else {
                assert_eq!(single, value.to_f32_const().to_bits(), "{h:04x}");
            }
            if h & 0x7fff <= 0x7c00 {
                assert_eq!(single_to_half(single), h);
            }
        }
    }

    /// 1/sqrt(x) of every significand, with an even and an odd exponent: where f64 is near a tie, the exact library must agree.
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

    #[test]
    fn singles_round_to_halves_like_the_library() {
        let mut x = 12345u32;
        for _ in 0..200_000 {
            x = x.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            for y in [x, x & 0x8fff_ffff | 0x3000_0000, (x & 0xffff_e000) | 0x1000] {
                let ours = single_to_half(y);
                let theirs =
                    arith::convert_float(y as u128, Ty::F32, Ty::F16, arith::Round::NearestEven) as u32;
                if arith::is_nan(y as u128, Ty::F32) {
                    assert!(arith::is_nan(ours as u128, Ty::F16));
                } else {
                    assert_eq!(ours, theirs, "{y:08x}");
                }
            }
        }
    }
}
