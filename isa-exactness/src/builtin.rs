//! What the builtins of the language do to floats. A new builtin does not compile until it is here.

use isa_spec::pcode::ir::Pure;

/// What a builtin does to floats.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BuiltinKind {
    /// Hardware approximates it.
    Approximate,
    /// Arithmetic or conversion that hardware rounds correctly; the NaN that it returns is not specified.
    Rounds,
    /// Conversion to an integer, which not all floats have.
    ToInteger,
    /// Everything else: every bit of the result is specified.
    Other,
}

/// Returns what a builtin does to floats.
pub fn kind(builtin: Pure) -> BuiltinKind {
    use Pure::*;
    match builtin {
        Sqrt | Rcp | Rsq | Exp2 | Log2 | Sin | Cos | Tanh => BuiltinKind::Approximate,
        Fma | FmaRtz | FmaNearest | FmaLdexp | Floor | Ceil | Trunc | Rndne | Fract | Ldexp => {
            BuiltinKind::Rounds
        }
        F32ToF16 | F16ToF32 | F32ToF16Rtz | F32ToBf16 | Bf16ToF32 | F32ToF64 | F64ToF32 | Fp8ToF32
        | Bf8ToF32 | F32ToFp8 | F32ToBf8 | F32ToFp8Sr | F32ToBf8Sr | TrigPreop => BuiltinKind::Rounds,
        F32ToI32 | F32ToU32 | F32ToU8 | F64ToI32 | F64ToU32 | F16ToI16 | F16ToU16 => BuiltinKind::ToInteger,
        // Minimum and maximum have rules of their own for NaNs. Conversions to normalised integers and image formats
        // saturate, as their definition says.
        Abs | FrexpExp | FrexpMant | Exponent | Mantissa | Sign | IsNan | IsSignalNan | IsQuietNan
        | IsInf | IsDenorm | CvtToQuietNan | Minimum | Maximum | MinimumNumber | MaximumNumber | SignExt
        | SignExtFromBit | CountOnes | CountLeadingZeros | CountTrailingZeros | ReverseBits | SelectBytes
        | I32ToF32 | U32ToF32 | I32ToF64 | U32ToF64 | I16ToF16 | U16ToF16 | F16ToSnorm | F16ToUnorm
        | F32ToSnorm | F32ToUnorm | U8ToU32 | U4ToU32 | U16ToU32 | I16ToI32 | U32ToU16 | I32ToI16
        | ClampU16 | ClampI16 | ClampU32 | ClampI32 | ClampU64 | ClampI64 | FormatBytes | FormatBlock
        | BlockFormat | BlockTexel | TileBlock | TileOffset | FromFormat | ToFormat | FromFormat16
        | ToFormat16 => BuiltinKind::Other,
    }
}
