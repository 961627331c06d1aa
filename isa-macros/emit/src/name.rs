//! The names of the representation's nodes in the emitted Rust.

use isa_lower::ir::*;
use isa_spec::pcode::ir::{LocalId, Ty};
use isa_spec::tables::Role;
use proc_macro2::{Ident, TokenStream};
use quote::{format_ident, quote};

/// Returns the Rust type of a host integer.
pub fn host_width(host_width: HostWidth) -> Ident {
    format_ident!("u{}", host_width.bits())
}

/// Returns the variable of a local.
pub fn local(id: LocalId) -> Ident {
    format_ident!("t{id}")
}

/// Returns the variable with a local's values for all lanes.
pub fn each(id: LocalId) -> Ident {
    format_ident!("each{id}")
}

/// Returns the variable of a staged operand: `s0`, `vaddr` …
pub fn role_name(role: Role) -> Ident {
    format_ident!("{}", format!("{role:?}").to_lowercase())
}

/// Returns the Rust variable of a [`Var`].
pub fn var(var: Var) -> Ident {
    match var {
        Var::Local(id) => local(id),
        Var::Operand(role) => role_name(role),
        Var::Whole => format_ident!("v"),
    }
}

/// Returns the variable in which a lane builds its bit of a mask.
pub fn mask_bit(mask: Mask) -> Ident {
    format_ident!("m_{}", mask_name(mask))
}

/// Returns the part of Rust names that denotes a mask.
pub fn mask_name(mask: Mask) -> &'static str {
    match mask {
        Mask::D0 => "d0",
        Mask::Vcc => "vcc",
        Mask::Exec => "exec",
    }
}

/// Emits the operand in a slot.
pub fn slot(slot: Slot) -> TokenStream {
    match slot {
        Slot::Source(at) => quote! { op.src[#at] },
        Slot::Fifth => quote! { cx.raw(op).fifth },
        Slot::ScalarResult => quote! { Source::sgpr(op.d) },
        Slot::VectorResult => quote! { Source::result(op.d) },
    }
}

/// Returns the identifier of an enum variant.
pub fn variant(name: impl std::fmt::Debug) -> Ident {
    format_ident!("{}", format!("{name:?}"))
}

/// Emits a literal of a host integer's type; drops higher bits.
pub fn literal(bits: u128, host_width: HostWidth) -> TokenStream {
    match host_width {
        HostWidth::W32 => {
            let v = bits as u32;
            quote! { #v }
        }
        HostWidth::W64 => {
            let v = bits as u64;
            quote! { #v }
        }
        HostWidth::W128 => quote! { #bits },
    }
}

/// Returns a mask of the low `width` bits.
pub fn low_bits(width: u32) -> u128 {
    if width >= 128 { u128::MAX } else { (1 << width) - 1 }
}

/// Returns the suffix of runtime functions for a float type. Panics for other types.
pub fn float_suffix(ty: Ty) -> &'static str {
    match ty {
        Ty::F16 => "f16",
        Ty::BF16 => "bf16",
        Ty::F32 => "f32",
        Ty::F64 => "f64",
        Ty::FP8 => "fp8",
        Ty::BF8 => "bf8",
        Ty::B(_) | Ty::U(_) | Ty::I(_) => unreachable!("a float operation on {ty:?}"),
    }
}

/// Emits the `rt::Ty` value of a type, for calls of the evaluator's definitions.
pub fn ty_token(ty: Ty) -> TokenStream {
    match ty {
        Ty::B(w) => quote! { rt::Ty::B(#w) },
        Ty::U(w) => quote! { rt::Ty::U(#w) },
        Ty::I(w) => quote! { rt::Ty::I(#w) },
        Ty::F16 | Ty::BF16 | Ty::F32 | Ty::F64 | Ty::FP8 | Ty::BF8 => {
            let name = variant(ty);
            quote! { rt::Ty::#name }
        }
    }
}

pub fn float_name(op: FloatOp) -> &'static str {
    match op {
        FloatOp::Add => "add",
        FloatOp::Sub => "sub",
        FloatOp::Mul => "mul",
        FloatOp::Div => "div",
        FloatOp::Fma => "fma",
        FloatOp::Eq => "eq",
        FloatOp::Ne => "ne",
        FloatOp::Lt => "lt",
        FloatOp::Le => "le",
        FloatOp::Gt => "gt",
        FloatOp::Ge => "ge",
        FloatOp::Lg => "lg",
        FloatOp::MinimumNumber => "min_num",
        FloatOp::MaximumNumber => "max_num",
        FloatOp::Floor => "floor",
        FloatOp::Ceil => "ceil",
        FloatOp::Trunc => "trunc",
        FloatOp::Rndne => "rndne",
        FloatOp::Sqrt => "sqrt",
        FloatOp::Rcp => "rcp",
        FloatOp::Rsq => "rsq",
        FloatOp::Fract => "fract",
        FloatOp::FmaRtz => "fma_rtz",
        FloatOp::FmaNearest => "fma_nearest",
        FloatOp::ToFp8Sr => "fp8_sr",
        FloatOp::ToBf8Sr => "bf8_sr",
        FloatOp::Minimum => "minimum",
        FloatOp::Maximum => "maximum",
        FloatOp::Ldexp => "ldexp",
        FloatOp::FmaLdexp => "fma_ldexp",
        FloatOp::FrexpMant => "frexp_mant",
        FloatOp::FrexpExp => "frexp_exp",
        FloatOp::TrigPreop => "trig_preop",
    }
}

pub fn float_bits_name(op: FloatBits) -> &'static str {
    match op {
        FloatBits::IsNan => "is_nan",
        FloatBits::IsSignalNan => "is_snan",
        FloatBits::IsQuietNan => "is_qnan",
        FloatBits::Quiet => "quiet",
        FloatBits::Exponent => "exponent",
    }
}

pub fn conversion_name(conversion: Conversion) -> &'static str {
    match conversion {
        Conversion::F16ToF32 => "cvt_f16_f32",
        Conversion::F16ToI16 => "cvt_f16_i16",
        Conversion::F16ToU16 => "cvt_f16_u16",
        Conversion::F16ToSnorm => "snorm_f16",
        Conversion::F16ToUnorm => "unorm_f16",
        Conversion::I16ToF16 => "cvt_i16_f16",
        Conversion::U16ToF16 => "cvt_u16_f16",
        Conversion::F32ToF16 => "cvt_f32_f16",
        Conversion::F32ToF16Rtz => "cvt_rtz_f32_f16",
        Conversion::F32ToBf16 => "cvt_f32_bf16",
        Conversion::F32ToFp8 => "cvt_f32_fp8",
        Conversion::F32ToBf8 => "cvt_f32_bf8",
        Conversion::Fp8ToF32 => "cvt_fp8_f32",
        Conversion::Bf8ToF32 => "cvt_bf8_f32",
        Conversion::F32ToF64 => "cvt_f32_f64",
        Conversion::F32ToI32 => "cvt_f32_i32",
        Conversion::F32ToU32 => "cvt_f32_u32",
        Conversion::F32ToI16 => "cvt_f32_i16",
        Conversion::F32ToU16 => "cvt_f32_u16",
        Conversion::F32ToU8 => "cvt_f32_u8",
        Conversion::F32ToSnorm => "snorm_f32",
        Conversion::F32ToUnorm => "unorm_f32",
        Conversion::I32ToF32 => "cvt_i32_f32",
        Conversion::U32ToF32 => "cvt_u32_f32",
        Conversion::F64ToF32 => "cvt_f64_f32",
        Conversion::F64ToI32 => "cvt_f64_i32",
        Conversion::F64ToU32 => "cvt_f64_u32",
        Conversion::I32ToF64 => "cvt_i32_f64",
        Conversion::U32ToF64 => "cvt_u32_f64",
    }
}
