//! `<type>_<operation>` functions over native integer widths. One macro makes them for all formats from the generic
//! layer; f32 and f64 take the host's instruction where its result is defined to be the same.

use std::cmp::Ordering;

use super::approx::{Function, evaluate};
use super::env::{FloatEnv, Round};
use super::format::Format;
use super::{integral, soft, trig_preop};

/// Functions of one to three operands of one format, result in the same format.
macro_rules! functions {
    ($format:ident, $bits:ty; $($(#[$doc:meta])* $name:ident($($arg:ident),+) = $($path:ident)::+;)+) => {
        $($(#[$doc])*
        #[inline]
        pub fn $name($($arg: $bits),+, env: &FloatEnv) -> $bits {
            $($path)::+(Format::$format, $($arg as u64),+, env) as $bits
        })+
    };
}

macro_rules! rounding {
    ($format:ident, $bits:ty; $($name:ident = $round:ident;)+) => {
        $(#[doc = concat!("Rounded to an integral value, ", stringify!($round), ".")]
        #[inline]
        pub fn $name(a: $bits, env: &FloatEnv) -> $bits {
            integral::round_to_integral(Format::$format, a as u64, Round::$round, env) as $bits
        })+
    };
}

macro_rules! approximated {
    ($format:ident, $bits:ty; $($name:ident = $function:ident;)+) => {
        $(#[doc = concat!("Correctly rounded; see [`approx`](super::approx): ", stringify!($function), ".")]
        #[inline]
        pub fn $name(a: $bits, env: &FloatEnv) -> $bits {
            evaluate(Function::$function, Format::$format, a as u64, env) as $bits
        })+
    };
}

/// `a` as an integer of `$int`, truncated, saturated, NaN 0; and with a rounding mode of the caller's choice.
macro_rules! integers {
    ($format:ident, $bits:ty; $($int:ty: $to:ident $to_round:ident $from:ident $width:literal $signed:literal;)+) => {
        $(/// Truncated and saturated; NaN gives 0.
        #[inline]
        pub fn $to(a: $bits, env: &FloatEnv) -> $int {
            $to_round(a, Round::Zero, env)
        }
        /// Rounded by `round` and saturated; NaN gives 0.
        #[inline]
        pub fn $to_round(a: $bits, round: Round, env: &FloatEnv) -> $int {
            integral::to_int(Format::$format, a as u64, $width, $signed, round, env) as $int
        }
        /// Rounded as the format's mode says.
        #[inline]
        pub fn $from(a: $int, env: &FloatEnv) -> $bits {
            integral::from_int(Format::$format, a as i128, env) as $bits
        })+
    };
}

macro_rules! conversions {
    ($($from:ident $from_bits:ty => $to:ident $to_bits:ty: $name:ident;)+) => {
        $(/// Rounded as the destination's mode says; a signalling NaN becomes quiet.
        #[inline]
        pub fn $name(a: $from_bits, env: &FloatEnv) -> $to_bits {
            integral::to_float(Format::$from, Format::$to, a as u64, true, env) as $to_bits
        })+
    };
}

/// Everything that has no host path, for one format.
macro_rules! format_functions {
    ($format:ident, $bits:ty, $p:ident, $($names:ident)+) => {
        format_functions!(@ $format, $bits; $($names)+);
    };
    (@ $format:ident, $bits:ty; $min_num:ident $max_num:ident $minimum:ident $maximum:ident $rsq:ident $rcp:ident
     $floor:ident $ceil:ident $trunc:ident $rndne:ident $fract:ident $exp2:ident $log2:ident $sin:ident $cos:ident
     $ldexp:ident $mant:ident $exp:ident $compare:ident $is_nan:ident $is_quiet:ident $is_signal:ident $quiet:ident
     $snorm:ident $unorm:ident $flush_in:ident $flush_out:ident) => {
        functions! { $format, $bits;
            /// IEEE `minimumNumber`: a number beats a NaN, `-0 < +0`.
            $min_num(a, b) = soft::min_num;
            /// IEEE `maximumNumber`.
            $max_num(a, b) = soft::max_num;
            /// IEEE `minimum`: a NaN wins.
            $minimum(a, b) = soft::minimum;
            /// IEEE `maximum`: a NaN wins.
            $maximum(a, b) = soft::maximum;
            /// `1 / sqrt(a)`, rounded once.
            $rsq(a) = soft::rsq;
            /// `a - floor(a)`, below one.
            $fract(a) = integral::fract;
            /// Significand of `frexp`.
            $mant(a) = integral::frexp_mant;
            /// A denormal operand becomes zero if the mode says so.
            $flush_in(a) = soft::flush_input;
            /// A denormal result becomes zero if the mode says so.
            $flush_out(a) = soft::flush_output;
        }
        rounding! { $format, $bits;
            $floor = Down; $ceil = Up; $trunc = Zero; $rndne = NearestEven;
        }
        approximated! { $format, $bits; $exp2 = Exp2; $log2 = Log2; $sin = Sin; $cos = Cos; }

        /// `1 / a`, rounded once.
        #[inline]
        pub fn $rcp(a: $bits, env: &FloatEnv) -> $bits {
            soft::div(Format::$format, Format::$format.one(), a as u64, env) as $bits
        }
        /// `a · 2^by`, rounded once.
        #[inline]
        pub fn $ldexp(a: $bits, by: i32, env: &FloatEnv) -> $bits {
            integral::ldexp(Format::$format, a as u64, by, env) as $bits
        }
        /// Exponent of `frexp`; 0 for zeros, infinities and NaNs.
        #[inline]
        pub fn $exp(a: $bits, env: &FloatEnv) -> i32 {
            integral::frexp_exp(Format::$format, a as u64, env)
        }
        /// Numeric order; `None` with a NaN.
        #[inline]
        pub fn $compare(a: $bits, b: $bits, env: &FloatEnv) -> Option<Ordering> {
            soft::compare(Format::$format, a as u64, b as u64, env)
        }
        #[inline]
        pub fn $is_nan(a: $bits) -> bool {
            Format::$format.is_nan(a as u64)
        }
        #[inline]
        pub fn $is_quiet(a: $bits) -> bool {
            Format::$format.is_quiet_nan(a as u64)
        }
        #[inline]
        pub fn $is_signal(a: $bits) -> bool {
            Format::$format.is_signal_nan(a as u64)
        }
        /// A NaN made quiet; anything else unchanged.
        #[inline]
        pub fn $quiet(a: $bits) -> $bits {
            Format::$format.quiet(a as u64) as $bits
        }
        /// As a signed normalised 16-bit integer.
        #[inline]
        pub fn $snorm(a: $bits, env: &FloatEnv) -> i16 {
            integral::to_snorm(Format::$format, a as u64, 16, env) as i16
        }
        /// As an unsigned normalised 16-bit integer.
        #[inline]
        pub fn $unorm(a: $bits, env: &FloatEnv) -> u16 {
            integral::to_unorm(Format::$format, a as u64, 16, env) as u16
        }
    };
}

format_functions! { F16, u16, f16, f16_min_num f16_max_num f16_minimum f16_maximum f16_rsq f16_rcp f16_floor f16_ceil
f16_trunc f16_rndne f16_fract f16_exp2 f16_log2 f16_sin f16_cos f16_ldexp f16_frexp_mant f16_frexp_exp f16_compare
f16_is_nan f16_is_quiet_nan f16_is_signal_nan f16_quiet f16_to_snorm f16_to_unorm f16_flush_input f16_flush_output }

format_functions! { BF16, u16, bf16, bf16_min_num bf16_max_num bf16_minimum bf16_maximum bf16_rsq bf16_rcp bf16_floor
bf16_ceil bf16_trunc bf16_rndne bf16_fract bf16_exp2 bf16_log2 bf16_sin bf16_cos bf16_ldexp bf16_frexp_mant
bf16_frexp_exp bf16_compare bf16_is_nan bf16_is_quiet_nan bf16_is_signal_nan bf16_quiet bf16_to_snorm bf16_to_unorm
bf16_flush_input bf16_flush_output }

format_functions! { F32, u32, f32, f32_min_num f32_max_num f32_minimum f32_maximum f32_rsq f32_rcp f32_floor f32_ceil
f32_trunc f32_rndne f32_fract f32_exp2 f32_log2 f32_sin f32_cos f32_ldexp f32_frexp_mant f32_frexp_exp f32_compare
f32_is_nan f32_is_quiet_nan f32_is_signal_nan f32_quiet f32_to_snorm f32_to_unorm f32_flush_input f32_flush_output }

format_functions! { F64, u64, f64, f64_min_num f64_max_num f64_minimum f64_maximum f64_rsq f64_rcp f64_floor f64_ceil
f64_trunc f64_rndne f64_fract f64_exp2 f64_log2 f64_sin f64_cos f64_ldexp f64_frexp_mant f64_frexp_exp f64_compare
f64_is_nan f64_is_quiet_nan f64_is_signal_nan f64_quiet f64_to_snorm f64_to_unorm f64_flush_input f64_flush_output }

functions! { F16, u16;
    f16_add(a, b) = soft::add; f16_sub(a, b) = soft::sub; f16_mul(a, b) = soft::mul; f16_div(a, b) = soft::div;
    /// `a * b + c`, rounded once.
    f16_fma(a, b, c) = soft::fma;
    f16_sqrt(a) = soft::sqrt;
}

functions! { BF16, u16;
    bf16_add(a, b) = soft::add; bf16_sub(a, b) = soft::sub; bf16_mul(a, b) = soft::mul; bf16_div(a, b) = soft::div;
    /// `a * b + c`, rounded once.
    bf16_fma(a, b, c) = soft::fma;
    bf16_sqrt(a) = soft::sqrt;
}

/// Operations that the host has: taken when rounding to nearest even, else computed in software. Denormals are flushed
/// around the host's operation, which itself keeps them.
macro_rules! host {
    ($format:ident, $float:ty, $bits:ty;
     $($(#[$doc:meta])* $name:ident($($arg:ident),+) = $host:expr, $soft:path;)+) => {
        $($(#[$doc])*
        #[inline]
        pub fn $name($($arg: $bits),+, env: &FloatEnv) -> $bits {
            let mode = env.of(Format::$format);
            if mode.round != Round::NearestEven {
                return $soft(Format::$format, $($arg as u64),+, env) as $bits;
            }
            let operand = |bits: $bits| {
                <$float>::from_bits(if mode.flush_in { Format::$format.flush(bits as u64) as $bits } else { bits })
            };
            let operation: fn($(host!(@ty $arg $float)),+) -> $float = $host;
            host_result!($format, $bits, mode, operation($(operand($arg)),+))
        })+
    };
    (@ty $arg:ident $float:ty) => { $float };
}

macro_rules! host_result {
    ($format:ident, $bits:ty, $mode:ident, $result:expr) => {{
        let bits = $result.to_bits();
        let mode = $mode;
        if mode.flush_out { Format::$format.flush(bits as u64) as $bits } else { bits }
    }};
}

host! { F32, f32, u32;
    f32_add(a, b) = |a, b| a + b, soft::add;
    f32_sub(a, b) = |a, b| a - b, soft::sub;
    f32_mul(a, b) = |a, b| a * b, soft::mul;
    f32_div(a, b) = |a, b| a / b, soft::div;
    /// `a * b + c`, rounded once.
    f32_fma(a, b, c) = f32::mul_add, soft::fma;
    f32_sqrt(a) = f32::sqrt, soft::sqrt;
}

host! { F64, f64, u64;
    f64_add(a, b) = |a, b| a + b, soft::add;
    f64_sub(a, b) = |a, b| a - b, soft::sub;
    f64_mul(a, b) = |a, b| a * b, soft::mul;
    f64_div(a, b) = |a, b| a / b, soft::div;
    /// `a * b + c`, rounded once.
    f64_fma(a, b, c) = f64::mul_add, soft::fma;
    f64_sqrt(a) = f64::sqrt, soft::sqrt;
}

integers! { F16, u16;
    i16: f16_to_i16 f16_to_i16_round i16_to_f16 16 true;
    u16: f16_to_u16 f16_to_u16_round u16_to_f16 16 false;
    i32: f16_to_i32 f16_to_i32_round i32_to_f16 32 true;
    u32: f16_to_u32 f16_to_u32_round u32_to_f16 32 false;
}

integers! { F32, u32;
    i8: f32_to_i8 f32_to_i8_round i8_to_f32 8 true;
    u8: f32_to_u8 f32_to_u8_round u8_to_f32 8 false;
    i16: f32_to_i16 f32_to_i16_round i16_to_f32 16 true;
    u16: f32_to_u16 f32_to_u16_round u16_to_f32 16 false;
    i32: f32_to_i32 f32_to_i32_round i32_to_f32 32 true;
    u32: f32_to_u32 f32_to_u32_round u32_to_f32 32 false;
    i64: f32_to_i64 f32_to_i64_round i64_to_f32 64 true;
    u64: f32_to_u64 f32_to_u64_round u64_to_f32 64 false;
}

integers! { F64, u64;
    i32: f64_to_i32 f64_to_i32_round i32_to_f64 32 true;
    u32: f64_to_u32 f64_to_u32_round u32_to_f64 32 false;
    i64: f64_to_i64 f64_to_i64_round i64_to_f64 64 true;
    u64: f64_to_u64 f64_to_u64_round u64_to_f64 64 false;
}

conversions! {
    F16 u16 => F32 u32: f16_to_f32;
    F16 u16 => F64 u64: f16_to_f64;
    BF16 u16 => F32 u32: bf16_to_f32;
    BF16 u16 => F64 u64: bf16_to_f64;
    F32 u32 => F16 u16: f32_to_f16;
    F32 u32 => BF16 u16: f32_to_bf16;
    F32 u32 => F64 u64: f32_to_f64;
    F64 u64 => F16 u16: f64_to_f16;
    F64 u64 => F32 u32: f64_to_f32;
    FP8 u8 => F32 u32: fp8_to_f32;
    BF8 u8 => F32 u32: bf8_to_f32;
    FP8 u8 => F16 u16: fp8_to_f16;
    BF8 u8 => F16 u16: bf8_to_f16;
    F32 u32 => FP8 u8: f32_to_fp8;
    F32 u32 => BF8 u8: f32_to_bf8;
}

/// See [`trig_preop::trig_preop`].
#[inline]
pub fn f64_trig_preop(a: u64, segment: u32, env: &FloatEnv) -> u64 {
    trig_preop::trig_preop(a, segment, env)
}
