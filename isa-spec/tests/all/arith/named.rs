//! `<type>_<operation>` functions on native integers, for readable tests.

use isa_spec::arith::Format;
use isa_spec::arith::approx::{Function, evaluate};
use isa_spec::arith::{FloatEnv, Round};
use isa_spec::arith::{integral, soft};

/// Functions from one or two operands to a result of the same format.
macro_rules! functions {
    ($($format:ident $bits:ty { $($name:ident($($arg:ident),+) = $path:path;)+ })+) => {
        $($(pub fn $name($($arg: $bits),+, env: &FloatEnv) -> $bits {
            $path(Format::$format, $($arg as u64),+, env) as $bits
        })+)+
    };
}

functions! {
    F16 u16 {
        f16_add(a, b) = soft::add;
        f16_mul(a, b) = soft::mul;
        f16_sqrt(a) = soft::sqrt;
        f16_rcp(a) = soft::rcp;
        f16_rsq(a) = soft::rsq;
    }
    F32 u32 {
        f32_mul(a, b) = soft::mul;
        f32_sqrt(a) = soft::sqrt;
        f32_rcp(a) = soft::rcp;
        f32_rsq(a) = soft::rsq;
        f32_min_num(a, b) = soft::min_num;
        f32_max_num(a, b) = soft::max_num;
        f32_minimum(a, b) = soft::minimum;
        f32_maximum(a, b) = soft::maximum;
        f32_fract(a) = integral::fract;
        f32_frexp_mant(a) = integral::frexp_mant;
    }
    F64 u64 {
        f64_fract(a) = integral::fract;
    }
}

/// Functions that round correctly although the ISA allows an error.
macro_rules! approximated {
    ($($name:ident: $format:ident $bits:ty = $function:ident;)+) => {
        $(pub fn $name(a: $bits, env: &FloatEnv) -> $bits {
            evaluate(Function::$function, Format::$format, a as u64, env) as $bits
        })+
    };
}

approximated! {
    f16_exp2: F16 u16 = Exp2; f16_log2: F16 u16 = Log2; f16_sin: F16 u16 = Sin; f16_cos: F16 u16 = Cos;
    f32_exp2: F32 u32 = Exp2; f32_log2: F32 u32 = Log2; f32_sin: F32 u32 = Sin; f32_cos: F32 u32 = Cos;
}

macro_rules! conversions {
    ($($name:ident: $from:ident $from_bits:ty => $to:ident $to_bits:ty;)+) => {
        $(pub fn $name(a: $from_bits, env: &FloatEnv) -> $to_bits {
            integral::to_float(Format::$from, Format::$to, a as u64, true, env) as $to_bits
        })+
    };
}

conversions! {
    f32_to_f16: F32 u32 => F16 u16;
    f64_to_f32: F64 u64 => F32 u32;
    f32_to_fp8: F32 u32 => FP8 u8;
    f32_to_bf8: F32 u32 => BF8 u8;
    fp8_to_f32: FP8 u8 => F32 u32;
    bf8_to_f32: BF8 u8 => F32 u32;
}

pub fn f32_ceil(a: u32, env: &FloatEnv) -> u32 {
    integral::round_to_integral(Format::F32, a as u64, Round::Up, env) as u32
}

pub fn f32_rndne(a: u32, env: &FloatEnv) -> u32 {
    integral::round_to_integral(Format::F32, a as u64, Round::NearestEven, env) as u32
}

pub fn f32_frexp_exp(a: u32, env: &FloatEnv) -> i32 {
    integral::frexp_exp(Format::F32, a as u64, env)
}

pub fn f32_is_nan(a: u32) -> bool {
    Format::F32.is_nan(a as u64)
}

pub fn f32_to_snorm(a: u32, env: &FloatEnv) -> i16 {
    integral::to_snorm(Format::F32, a as u64, 16, env) as i16
}

pub fn f32_to_unorm(a: u32, env: &FloatEnv) -> u16 {
    integral::to_unorm(Format::F32, a as u64, 16, env) as u16
}
