//! The data formats of the descriptions: the interpretation of an operand's bits, and how its inline
//! constants and literals expand.
//!
//! Sources: RDNA 4 manual, *Inline constants* and *Literal constants* (3.2), *Inline Constants with Packed
//! Math* (7.7.2); RDNA 3 and CDNA 3 manuals, *Literal Expansion to 64 bits*; and LLVM's operand types
//! (`AMDGPU::OperandType`), which the names in parentheses refer to.

use super::{Fmt, Half};

/// How inline constants and literals expand to the bits of an operand. Integers are sign-extended, and
/// literals have 32 bits, except where a variant says otherwise.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Constants {
    /// Operands of this format are registers or numbers in the instruction.
    Never,
    /// 16 bits that are no float. Of a float constant, it is the low half of an f32 that the instruction
    /// reads (LLVM, `isInlinableLiteralI16`; `INT16`).
    Int16,
    /// An f16, zero-extended (`FP16`).
    F16,
    /// A bf16, zero-extended (`BF16`).
    BF16,
    /// 32 bits that are no float, floats narrower than 16 bits, and each element of a matrix of 32-bit numbers.
    /// A float constant is an f32 (`INT32`).
    Bits32,
    /// An f32 (`FP32`).
    F32,
    /// 64 bits that are no float. A float constant is an f64; a literal is sign-extended for a signed format,
    /// otherwise zero-extended (`INT64`).
    Bits64,
    /// An f64; a literal is its upper half (`FP64`). Also each element of a matrix.
    F64,
    /// Two dwords. A float constant is an f32 in the low one; the high one is zero. OPSEL and OPSEL_HI select
    /// (`V2FP32`, `V2INT32`).
    TwoDwords,
    /// Two 16-bit integers. A constant has 32 bits; a float constant is an f32 (`V2INT16`).
    TwoInts,
    /// Two f16. A constant is in the low half; a matrix repeats it (`V2FP16`).
    TwoF16,
    /// Two bf16. A constant is in the low half; a matrix repeats it (`V2BF16`).
    TwoBF16,
}

/// A data format.
#[derive(Debug, Clone, Copy)]
pub struct Format {
    /// The interpretation of the bits.
    pub fmt: Fmt,
    /// The expansion of constants.
    pub constants: Constants,
}

/// The data format of this name, for an operand of `size_bits`. Every format of the descriptions is listed;
/// others are plain bits.
pub fn format(name: &str, size_bits: u16) -> Format {
    match FORMATS.binary_search_by(|row| row.0.cmp(name)) {
        Ok(at) => Format { fmt: FORMATS[at].1, constants: FORMATS[at].2 },
        Err(_) if size_bits == 64 => Format { fmt: Fmt::Other, constants: Constants::Bits64 },
        Err(_) => Format { fmt: Fmt::Other, constants: Constants::Bits32 },
    }
}

/// All formats, in the order of their names. A format whose operands are never constants says so, so that a new
/// operand is classified.
#[rustfmt::skip]
pub static FORMATS: &[(&str, Fmt, Constants)] = {
    use Constants::*;
    use Fmt::{Bits, Mask, Other, Packed, Signed, Unsigned};
    &[
        ("FMT_ANY", Bits, Bits32),
        ("FMT_BUF", Other, Never),
        ("FMT_IMG", Other, Never),
        ("FMT_IMG_BVH", Other, Never),
        ("FMT_NUM_B1", Bits, Never),
        ("FMT_NUM_B128", Bits, Never),
        ("FMT_NUM_B16", Bits, Int16),
        ("FMT_NUM_B256", Bits, Never),
        ("FMT_NUM_B32", Bits, Bits32),
        ("FMT_NUM_B64", Bits, Bits64),
        ("FMT_NUM_B8", Bits, Never),
        ("FMT_NUM_B96", Bits, Never),
        ("FMT_NUM_BF16", Fmt::BF16, BF16),
        ("FMT_NUM_BF8", Other, Bits32),
        ("FMT_NUM_F16", Fmt::F16, F16),
        ("FMT_NUM_F32", Fmt::F32, F32),
        ("FMT_NUM_F64", Fmt::F64, F64),
        ("FMT_NUM_FP8", Other, Bits32),
        ("FMT_NUM_I16", Signed, Int16),
        ("FMT_NUM_I24", Signed, Bits32),
        ("FMT_NUM_I32", Signed, Bits32),
        ("FMT_NUM_I64", Signed, Bits64),
        ("FMT_NUM_I8", Signed, Int16),
        ("FMT_NUM_M32", Mask, Never),
        ("FMT_NUM_M64", Mask, Never),
        ("FMT_NUM_PK16_BF16", Other, Never),
        ("FMT_NUM_PK16_BF6", Other, Never),
        ("FMT_NUM_PK16_BF8", Other, Never),
        ("FMT_NUM_PK16_F16", Other, Never),
        ("FMT_NUM_PK16_F32", Other, Bits32),
        ("FMT_NUM_PK16_FP6", Other, Never),
        ("FMT_NUM_PK16_FP8", Other, Never),
        ("FMT_NUM_PK16_I32", Other, Bits32),
        ("FMT_NUM_PK16_I8", Other, Never),
        ("FMT_NUM_PK2_B16", Packed(Half::Int), Never),
        ("FMT_NUM_PK2_B32", Other, TwoDwords),
        ("FMT_NUM_PK2_B64", Other, Never),
        ("FMT_NUM_PK2_BF16", Packed(Half::BF16), TwoBF16),
        ("FMT_NUM_PK2_BF8", Other, Bits32),
        ("FMT_NUM_PK2_F16", Packed(Half::F16), TwoF16),
        ("FMT_NUM_PK2_F32", Other, TwoDwords),
        ("FMT_NUM_PK2_FP4", Other, Bits32),
        ("FMT_NUM_PK2_FP8", Other, Bits32),
        ("FMT_NUM_PK2_I16", Packed(Half::Int), TwoInts),
        ("FMT_NUM_PK2_I8", Other, Never),
        ("FMT_NUM_PK2_U16", Packed(Half::Int), TwoInts),
        ("FMT_NUM_PK2_U8", Other, Never),
        ("FMT_NUM_PK32_BF16", Other, Never),
        ("FMT_NUM_PK32_BF6", Other, Never),
        ("FMT_NUM_PK32_BF8", Other, Never),
        ("FMT_NUM_PK32_F16", Other, Never),
        ("FMT_NUM_PK32_F32", Other, Bits32),
        ("FMT_NUM_PK32_FP6", Other, Never),
        ("FMT_NUM_PK32_FP8", Other, Never),
        ("FMT_NUM_PK32_I32", Other, Bits32),
        ("FMT_NUM_PK32_I8", Other, Never),
        ("FMT_NUM_PK4_B8", Other, Never),
        ("FMT_NUM_PK4_BF16", Other, Never),
        ("FMT_NUM_PK4_BF8", Other, Bits32),
        ("FMT_NUM_PK4_F16", Other, Never),
        ("FMT_NUM_PK4_F32", Other, Bits32),
        ("FMT_NUM_PK4_F64", Other, F64),
        ("FMT_NUM_PK4_FP8", Other, Bits32),
        ("FMT_NUM_PK4_I32", Other, Bits32),
        ("FMT_NUM_PK4_I4", Other, Never),
        ("FMT_NUM_PK4_I8", Other, Bits32),
        ("FMT_NUM_PK4_IU8", Other, Bits32),
        ("FMT_NUM_PK4_U4", Other, Never),
        ("FMT_NUM_PK4_U8", Other, Bits32),
        ("FMT_NUM_PK8_B32", Other, Never),
        ("FMT_NUM_PK8_BF16", Other, Never),
        ("FMT_NUM_PK8_BF8", Other, Never),
        ("FMT_NUM_PK8_F16", Other, Never),
        ("FMT_NUM_PK8_F32", Other, Never),
        ("FMT_NUM_PK8_FP4", Other, Never),
        ("FMT_NUM_PK8_FP8", Other, Never),
        ("FMT_NUM_PK8_I4", Other, Bits32),
        ("FMT_NUM_PK8_I8", Other, Never),
        ("FMT_NUM_PK8_IU4", Other, Bits32),
        ("FMT_NUM_PK8_U4", Other, Bits32),
        ("FMT_NUM_U16", Unsigned, Int16),
        ("FMT_NUM_U24", Unsigned, Bits32),
        ("FMT_NUM_U32", Unsigned, Bits32),
        ("FMT_NUM_U64", Unsigned, Bits64),
        ("FMT_NUM_U8", Unsigned, Int16),
        ("FMT_RSRC_SCALAR", Other, Never),
        ("FMT_RSRC_SCRATCH", Other, Never),
        ("FMT_RSRC_TYPED", Other, Never),
        ("FMT_SAMP", Other, Never),
        ("FMT_WMMA_AB_16X128_B8", Other, Never),
        ("FMT_WMMA_AB_16X128_BF8", Other, Never),
        ("FMT_WMMA_AB_16X128_F4", Other, Never),
        ("FMT_WMMA_AB_16X128_FP8", Other, Never),
        ("FMT_WMMA_AB_16X128_IU8", Other, Never),
        ("FMT_WMMA_AB_16X16_BF16", Other, Never),
        ("FMT_WMMA_AB_16X16_BF8", Other, Never),
        ("FMT_WMMA_AB_16X16_F16", Other, Never),
        ("FMT_WMMA_AB_16X16_FP8", Other, Never),
        ("FMT_WMMA_AB_16X16_IU4", Other, Never),
        ("FMT_WMMA_AB_16X16_IU8", Other, Never),
        ("FMT_WMMA_AB_16X32_BF16", Other, Never),
        ("FMT_WMMA_AB_16X32_BF8", Other, Never),
        ("FMT_WMMA_AB_16X32_F16", Other, Never),
        ("FMT_WMMA_AB_16X32_FP8", Other, Never),
        ("FMT_WMMA_AB_16X32_IU4", Other, Never),
        ("FMT_WMMA_AB_16X32_IU8", Other, Never),
        ("FMT_WMMA_AB_16X4_F32", Other, Never),
        ("FMT_WMMA_AB_16X64_BF16", Other, Never),
        ("FMT_WMMA_AB_16X64_BF8", Other, Never),
        ("FMT_WMMA_AB_16X64_F16", Other, Never),
        ("FMT_WMMA_AB_16X64_FP8", Other, Never),
        ("FMT_WMMA_AB_16X64_IU4", Other, Never),
        ("FMT_WMMA_AB_16X64_IU8", Other, Never),
        ("FMT_WMMA_AB_32X128_F4", Other, Never),
        ("FMT_WMMA_AB_BF16", Packed(Half::BF16), Never),
        ("FMT_WMMA_AB_F16", Packed(Half::F16), Never),
        ("FMT_WMMA_AB_IU4", Other, Never),
        ("FMT_WMMA_AB_IU8", Other, Never),
        ("FMT_WMMA_DC_16X16_BF16", Packed(Half::BF16), TwoBF16),
        ("FMT_WMMA_DC_16X16_F16", Packed(Half::F16), TwoF16),
        ("FMT_WMMA_DC_16X16_F32", Other, Bits32),
        ("FMT_WMMA_DC_16X16_I32", Other, Bits32),
        ("FMT_WMMA_DC_32X16_F32", Other, Bits32),
        ("FMT_WMMA_DC_BF16", Packed(Half::BF16), TwoBF16),
        ("FMT_WMMA_DC_F16", Packed(Half::F16), TwoF16),
        ("FMT_WMMA_DC_F32", Fmt::F32, F32),
        ("FMT_WMMA_DC_I32", Other, Bits32),
        ("FMT_WMMA_INDEX_SET", Other, Never),
    ]
};
