//! Evaluates pure builtins, as the reference for other implementations.

use super::operator::convert;
use crate::arith::{self, FloatEnv, Round};
use crate::pcode::builtins::Pure;
use crate::pcode::ir::Ty;

/// Evaluates a builtin. `types` are the arguments' types; `clamp` is the instruction's clamp bit, which only
/// the `clamp_*` builtins use.
pub fn pure(builtin: Pure, args: &[u128], types: &[Ty], env: &FloatEnv, clamp: bool) -> u128 {
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
    match builtin {
        Pure::Fma => arith::fma(a, b, c, ty, env),
        Pure::FmaRtz => arith::fma(a, b, c, ty, &env.with_round(zero)),
        Pure::FmaNearest => arith::fma(a, b, c, ty, &arith::FloatEnv::KEEP),
        Pure::FmaLdexp => {
            let n = args.get(3).copied().unwrap_or(0) as u32 as i32;
            arith::fma_ldexp(a, b, c, n, ty, env)
        }
        Pure::Abs if ty.is_float() => a & !(1 << (width - 1)),
        Pure::Abs if ty.is_signed() && a >> (width - 1) & 1 == 1 => a.wrapping_neg() & arith::mask(width),
        Pure::Abs => a,
        Pure::Floor => arith::floor(a, ty, env),
        Pure::Ceil => arith::ceil(a, ty, env),
        Pure::Trunc => arith::trunc(a, ty, env),
        Pure::Rndne => arith::rndne(a, ty, env),
        Pure::Fract => arith::fract(a, ty, env),
        Pure::Sqrt => arith::sqrt(a, ty, &env.approximated()),
        Pure::Rcp => arith::rcp(a, ty, &env.approximated()),
        Pure::Rsq => arith::rsq(a, ty, &env.approximated()),
        Pure::Exp2 => arith::exp2(a, ty, env),
        Pure::Log2 => arith::log2(a, ty, env),
        Pure::Sin => arith::sin(a, ty, env),
        Pure::Cos => arith::cos(a, ty, env),
        Pure::Tanh => arith::tanh(a, ty, env),
        Pure::Ldexp => arith::ldexp(a, b as u32 as i32, ty, env),
        Pure::FrexpExp => arith::frexp_exp(a, ty, env) as u32 as u128,
        Pure::FrexpMant | Pure::Mantissa => arith::frexp_mant(a, ty, env),
        Pure::Exponent => arith::exponent(a, ty) as u128,
        Pure::Sign => a >> (width - 1) & 1,
        Pure::IsNan => arith::is_nan(a, ty) as u128,
        Pure::IsSignalNan => arith::is_signal_nan(a, ty) as u128,
        Pure::IsQuietNan => arith::is_quiet_nan(a, ty) as u128,
        Pure::IsInf => arith::is_inf(a, ty) as u128,
        Pure::IsDenorm => arith::is_denorm(a, ty) as u128,
        Pure::CvtToQuietNan => arith::quiet(a, ty),
        Pure::Minimum => arith::min_max(a, b, ty, env, false, true),
        Pure::Maximum => arith::min_max(a, b, ty, env, true, true),
        Pure::MinimumNumber => arith::min_max(a, b, ty, env, false, false),
        Pure::MaximumNumber => arith::min_max(a, b, ty, env, true, false),
        Pure::SignExt => arith::sign_extend(a, width) & arith::mask(64),
        Pure::SignExtFromBit => arith::signext_from_bit(a, b as u32, width),
        Pure::CountOnes => a.count_ones() as u128,
        Pure::CountLeadingZeros => (a.leading_zeros() - (128 - width)) as u128,
        Pure::CountTrailingZeros => a.trailing_zeros().min(width) as u128,
        Pure::ReverseBits => a.reverse_bits() >> (128 - width),
        Pure::SelectBytes => arith::select_bytes(a as u32, b as u32, c as u32) as u128,
        Pure::F32ToF16 => cvt(Ty::F16),
        Pure::Bf16ToF32 => a << 16,
        Pure::F16ToF32 | Pure::F64ToF32 | Pure::Fp8ToF32 | Pure::Bf8ToF32 => cvt(Ty::F32),
        Pure::F32ToF64 => cvt(Ty::F64),
        Pure::F32ToBf16 => cvt(Ty::BF16),
        Pure::F32ToF16Rtz => arith::convert(a, ty, Ty::F16, &env.with_round(Round::Zero)),
        Pure::F32ToFp8 => cvt(Ty::FP8),
        Pure::F32ToBf8 => cvt(Ty::BF8),
        Pure::F32ToFp8Sr => arith::stochastic_8(a, b as u32, Ty::FP8, env),
        Pure::F32ToBf8Sr => arith::stochastic_8(a, b as u32, Ty::BF8, env),
        Pure::F32ToI32 | Pure::F64ToI32 => to_int(32, true, zero),
        Pure::F32ToU32 | Pure::F64ToU32 => to_int(32, false, zero),
        Pure::F16ToI16 => to_int(16, true, zero),
        Pure::F16ToU16 => to_int(16, false, zero),
        Pure::F32ToU8 => to_int(8, false, env.round(ty)),
        Pure::I32ToF32 | Pure::U32ToF32 => int_to(Ty::F32),
        Pure::I32ToF64 | Pure::U32ToF64 => int_to(Ty::F64),
        Pure::I16ToF16 | Pure::U16ToF16 => int_to(Ty::F16),
        Pure::F16ToSnorm | Pure::F32ToSnorm => arith::to_norm(a, ty, true, 16, env),
        Pure::F16ToUnorm | Pure::F32ToUnorm => arith::to_norm(a, ty, false, 16, env),
        Pure::U8ToU32 | Pure::U4ToU32 | Pure::U16ToU32 => a,
        Pure::I16ToI32 => arith::sign_extend(a, 16) & arith::mask(32),
        Pure::U32ToU16 => a.min(0xffff),
        Pure::I32ToI16 => (a as u32 as i32).clamp(-0x8000, 0x7fff) as u16 as u128,
        Pure::ClampU16 => narrow(16, false),
        Pure::ClampI16 => narrow(16, true),
        Pure::ClampU32 => narrow(32, false),
        Pure::ClampI32 => narrow(32, true),
        Pure::ClampU64 => narrow(64, false),
        Pure::ClampI64 => narrow(64, true),
        Pure::TrigPreop => arith::trig_preop(a, b as u32, env),
        Pure::FormatBytes => arith::format_bytes(a as u32) as u128,
        Pure::FormatBlock => arith::format_block(a as u32) as u128,
        Pure::BlockFormat => arith::block_format(a as u32) as u128,
        Pure::BlockTexel => arith::block_texel(a as u32, b, args[2] as u32, args[3] as u32),
        Pure::TileBlock => arith::tile_block(a as u32, b as u32) as u128,
        Pure::TileOffset => arith::tile_offset(a as u32, b as u32, c as u64) as u128,
        Pure::FromFormat => arith::from_format(a as u32, b, c as u32) as u128,
        Pure::ToFormat => arith::to_format(a as u32, b),
        Pure::FromFormat16 => arith::from_format16(a as u32, b, c as u32) as u128,
        Pure::ToFormat16 => arith::to_format16(a as u32, b as u64),
    }
}
