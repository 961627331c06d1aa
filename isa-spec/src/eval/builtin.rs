//! Builtins that are functions of their arguments.

use super::operator::convert;
use crate::arith::{self, FloatEnv, Round};
use crate::pcode::builtins::Bi;
use crate::pcode::ir::Ty;

/// The value of a pure builtin; `None` for the machine's. `types` are the arguments' types, `clamp` the instruction's clamp
/// bit (only the `clamp_*` builtins look at it).
pub fn pure(bi: Bi, args: &[u128], types: &[Ty], env: &FloatEnv, clamp: bool) -> Option<u128> {
    let a = args.first().copied().unwrap_or(0);
    let b = args.get(1).copied().unwrap_or(0);
    let c = args.get(2).copied().unwrap_or(0);
    let ty = types.first().copied().unwrap_or(Ty::U(32));
    let width = ty.width();
    let zero = Round::Zero;
    let to_int = |w, signed, round| arith::to_int(a, ty, env, w, signed, round);
    let narrow = |w, signed| arith::narrow(a, width, ty.is_signed(), w, signed, clamp);
    let cvt = |to| arith::convert(a, ty, to, env);
    let int_to = |to| convert(a, ty, to, env);
    Some(match bi {
        Bi::Fma => arith::fma(a, b, c, ty, env),
        Bi::FmaRtz => arith::fma(a, b, c, ty, &env.with_round(zero)),
        Bi::FmaLdexp => {
            let n = args.get(3).copied().unwrap_or(0) as u32 as i32;
            arith::fma_ldexp(a, b, c, n, ty, env)
        }
        Bi::Abs if ty.is_float() => a & !(1 << (width - 1)),
        Bi::Abs if ty.is_signed() && a >> (width - 1) & 1 == 1 => a.wrapping_neg() & arith::mask(width),
        Bi::Abs => a,
        Bi::Floor => arith::floor(a, ty, env),
        Bi::Ceil => arith::ceil(a, ty, env),
        Bi::Trunc => arith::trunc(a, ty, env),
        Bi::Rndne => arith::rndne(a, ty, env),
        Bi::Fract => arith::fract(a, ty, env),
        Bi::Sqrt => arith::sqrt(a, ty, &env.approximated()),
        Bi::Rcp => arith::rcp(a, ty, &env.approximated()),
        Bi::Rsq => arith::rsq(a, ty, &env.approximated()),
        Bi::Exp2 => arith::exp2(a, ty, env),
        Bi::Log2 => arith::log2(a, ty, env),
        Bi::Sin => arith::sin(a, ty, env),
        Bi::Cos => arith::cos(a, ty, env),
        Bi::Ldexp => arith::ldexp(a, b as u32 as i32, ty, env),
        Bi::FrexpExp => arith::frexp_exp(a, ty, env) as u32 as u128,
        Bi::FrexpMant | Bi::Mantissa => arith::frexp_mant(a, ty, env),
        Bi::Exponent => arith::exponent(a, ty) as u128,
        Bi::Sign => a >> (width - 1) & 1,
        Bi::IsNan => arith::is_nan(a, ty) as u128,
        Bi::IsSignalNan => arith::is_signal_nan(a, ty) as u128,
        Bi::IsQuietNan => arith::is_quiet_nan(a, ty) as u128,
        Bi::IsInf => arith::is_inf(a, ty) as u128,
        Bi::IsDenorm => arith::is_denorm(a, ty) as u128,
        Bi::CvtToQuietNan => arith::quiet(a, ty),
        Bi::Minimum => arith::min_max(a, b, ty, env, false, true),
        Bi::Maximum => arith::min_max(a, b, ty, env, true, true),
        Bi::MinimumNumber => arith::min_max(a, b, ty, env, false, false),
        Bi::MaximumNumber => arith::min_max(a, b, ty, env, true, false),
        Bi::SignExt => arith::sign_extend(a, width) & arith::mask(64),
        Bi::SignExtFromBit => arith::signext_from_bit(a, b as u32, width),
        Bi::CountOnes => a.count_ones() as u128,
        Bi::CountLeadingZeros => (a.leading_zeros() - (128 - width)) as u128,
        Bi::CountTrailingZeros => a.trailing_zeros().min(width) as u128,
        Bi::ReverseBits => a.reverse_bits() >> (128 - width),
        Bi::SelectBytes => arith::select_bytes(a as u32, b as u32, c as u32) as u128,
        Bi::F32ToF16 => cvt(Ty::F16),
        Bi::Bf16ToF32 => a << 16,
        Bi::F16ToF32 | Bi::F64ToF32 | Bi::Fp8ToF32 | Bi::Bf8ToF32 => cvt(Ty::F32),
        Bi::F32ToF64 => cvt(Ty::F64),
        Bi::F32ToBf16 => cvt(Ty::BF16),
        Bi::F32ToF16Rtz => arith::convert(a, ty, Ty::F16, &env.with_round(Round::Zero)),
        Bi::F32ToFp8 => cvt(Ty::FP8),
        Bi::F32ToBf8 => cvt(Ty::BF8),
        Bi::F32ToFp8Sr => arith::stochastic_8(a, b as u32, Ty::FP8, env),
        Bi::F32ToBf8Sr => arith::stochastic_8(a, b as u32, Ty::BF8, env),
        Bi::F32ToI32 | Bi::F64ToI32 => to_int(32, true, zero),
        Bi::F32ToU32 | Bi::F64ToU32 => to_int(32, false, zero),
        Bi::F16ToI16 => to_int(16, true, zero),
        Bi::F16ToU16 => to_int(16, false, zero),
        Bi::F32ToU8 => to_int(8, false, env.round(ty)),
        Bi::I32ToF32 | Bi::U32ToF32 => int_to(Ty::F32),
        Bi::I32ToF64 | Bi::U32ToF64 => int_to(Ty::F64),
        Bi::I16ToF16 | Bi::U16ToF16 => int_to(Ty::F16),
        Bi::F16ToSnorm | Bi::F32ToSnorm => arith::to_norm(a, ty, true, 16, env),
        Bi::F16ToUnorm | Bi::F32ToUnorm => arith::to_norm(a, ty, false, 16, env),
        Bi::U8ToU32 | Bi::U4ToU32 | Bi::U16ToU32 => a,
        Bi::I16ToI32 => arith::sign_extend(a, 16) & arith::mask(32),
        Bi::U32ToU16 | Bi::I32ToI16 => a & 0xffff,
        Bi::ClampU16 => narrow(16, false),
        Bi::ClampI16 => narrow(16, true),
        Bi::ClampU32 => narrow(32, false),
        Bi::ClampI32 => narrow(32, true),
        Bi::ClampU64 => narrow(64, false),
        Bi::ClampI64 => narrow(64, true),
        Bi::TrigPreop => arith::trig_preop(a, b as u32, env),
        Bi::FormatBytes => arith::format_bytes(a as u32) as u128,
        Bi::FromFormat => arith::from_format(a as u32, b, c as u32) as u128,
        Bi::ToFormat => arith::to_format(a as u32, b),
        Bi::FromFormat16 => arith::from_format16(a as u32, b, c as u32) as u128,
        Bi::ToFormat16 => arith::to_format16(a as u32, b as u64),
        _ => return None,
    })
}
