//! LLVM's dialect: syntax rules for single instructions or families of instructions. No other module of the
//! assembler names instructions.
//!
//! Operands, fields, formats and functional groups come from the ISA description. The tables here hold LLVM's
//! choices and facts missing from the description:
//!
//! - [`TRAITS`]: properties of instructions.
//! - [`alias`]: old names of instructions.
//! - [`absent`]: instructions of LLVM that the descriptions lack.
//! - [`advice`]: instructions that diagnostics recommend.
//! - [`symbols`]: names of values such as hardware registers and messages.

pub mod absent;
pub mod advice;
pub mod alias;
pub mod portable;
pub mod symbols;

use isa_spec::pattern::matches;
use wavesim_isa::arch::Arch;

/// A property of an instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Trait {
    /// Assembly lists the operands in the reverse order of the description.
    Reversed,
    /// SIMM16, which is not an operand in the description, is written unless it is 0.
    OptionalImmediate,
    /// SIMM16 is printed in decimal if it is an inline integer; by default it is always hexadecimal.
    DecimalImmediate,
    /// Loads a matrix that is distributed over the lanes of a wave.
    MatrixLoad,
    /// Moves untyped bits that may be a float: sign modifiers are meaningful (ISA manuals, V_MOV_B32,
    /// V_CNDMASK_B32).
    Untyped,
    /// Reads at most one scalar value (ISA manuals, *VALU: Operands*).
    SingleScalar,
    /// Constants of the third source have 32 bits, although the description says that 16 bits are read.
    WideThirdSource,
    /// As [`Trait::WideThirdSource`], for the second source in the 64-bit encodings.
    WideSecondSource,
    /// LLVM has no 64-bit encoding, so the 32-bit one has no suffix.
    ShortOnly,
    /// The bits of a 16-bit float are always a literal, even those of an inline constant; inline constants
    /// are written as floats.
    BitPatternsAreLiterals,
    /// `op_sel:` selects halves of 16-bit operands; register names do not.
    OpSel,
    /// As [`Trait::OpSel`], with an additional bit for the accumulator.
    OpSelWithAccumulator,
    /// OP_SEL does not select halves; its two bits select the lanes that are read.
    OpSelSelectsLanes,
    /// LLVM also names the low half of 16-bit operands.
    LowHalfNamed,
    /// OP_SEL selects the byte that is read: `byte_sel:`.
    SourceByteSelect,
    /// OP_SEL selects the byte that is written.
    ResultByteSelect,
    /// A buffer access with a `format:`.
    TypedBuffer,
    /// Two 8-bit offsets: `offset0:` and `offset1:`.
    TwoOffsets,
    /// The offset is a lane permutation pattern.
    Swizzle,
    /// Only exists for the global data share: `gds` is required.
    GlobalDataShare,
    /// The 32-bit encoding has its suffix although there is no 64-bit encoding.
    AlwaysSuffixed,
    /// The immediate is the set of indexed operands.
    RegisterIndex,
    /// OP_SEL, OP_SEL_HI and the sign modifiers of halves are unused.
    NoHalves,
    /// As [`Trait::NoHalves`], but LLVM prints the fields; the assembler accepts their defaults only.
    FixedHalves,
    /// The result is not clamped.
    NoClamp,
    /// The output modifiers of floats do not apply to the result, although it is a float.
    NoOutputModifier,
    /// M0 as the lane select does not count as a scalar value that is read.
    FreeLaneSelect,
    /// A literal that equals an inline constant is written as that constant.
    InlineLiteral,
    /// The second source is an integer, although the description says float.
    IntegerSecondSource,
    /// The element format determines the number of registers of a matrix.
    SizeFromFormat,
    /// With `lds`, the data is written to LDS.
    LoadsToLds,
    /// Stores data of LDS: `lds` is required, and there is no vector address.
    StoresFromLds,
    /// SDWA selects a part of the source only.
    SdwaSourceOnly,
    /// The sign and output modifiers hold a truth table: `bitop3:`.
    TruthTable,
    /// OP_SEL selects the scale of a conversion: `scale_sel:`.
    ScaleSelect,
    /// OP_SEL and OP_SEL_HI are the element formats of a matrix product: `matrix_a_fmt:`.
    MatrixFormats,
    /// Bits of OP_SEL and OP_SEL_HI announce that a matrix is used again: `matrix_a_reuse`.
    MatrixReuse,
    /// OP_SEL_HI has its default in all bits, as the element format of the second matrix.
    FixedFormats,
    /// The immediate extends the VGPR numbers of the following instructions.
    SetsVgprMsbs,
    /// Two of these as the halves of a dual instruction may read from the same register banks.
    AnyBank,
    /// The last two operands are groups of a tensor descriptor, written both or not at all; none of the other
    /// fields of image instructions is used.
    TensorGroups,
    /// `bound_ctrl:` and `fi:` without lane movement, in the two bits of OP_SEL.
    SwapControls,
    /// LLVM's disassembler prints no suffix, although there are two encodings.
    Unsuffixed,
    /// Constants of the first source are those of a 16-bit integer, although the description says otherwise.
    IntegerFirstSource,
    /// Constants of the first source are those of an f16, although the description says otherwise.
    HalfFirstSource,
    /// The first source has no inline constants: they are literals.
    NoInlineFirstSource,
    /// OP_SEL's first bit selects the half of the first source that the semantics read, of which the description
    /// therefore says 32 bits.
    HalfOfFirstSource,
    /// The registers of vectors may start at an odd one (LLVM 22).
    AnyFirstVgpr,
    /// Sources have no signs, although the encoding has their bits.
    NoSigns,
    /// A scalar source gives one value of 32 bits to both halves, so that OP_SEL and OP_SEL_HI are clear for it.
    OneScalarHalf,
    /// Approximates the reciprocal of an integer that was converted to f32, for a division (ISA manuals,
    /// V_RCP_IFLAG_F32: *Reciprocal intended for integer division*).
    ReciprocalOfInteger,
}

/// The architectures that a table row applies to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ArchSet {
    /// All architectures.
    Any,
    /// RDNA.
    Rdna,
    /// CDNA.
    Cdna,
    /// CDNA 4 only.
    Cdna4,
    /// Generations before RDNA 4.
    BeforeGfx12,
    /// RDNA 4 and later.
    Gfx12,
    /// CDNA 5 only.
    Cdna5,
    /// RDNA without CDNA 5, whose encodings are RDNA's.
    BeforeCdna5,
    /// CDNA 4 and 5, which LLVM supports since version 22.
    Llvm22,
}

impl ArchSet {
    /// Returns whether the set contains an architecture.
    pub fn has(self, arch: Arch) -> bool {
        match self {
            ArchSet::Any => true,
            ArchSet::Rdna => !arch.is_cdna(),
            ArchSet::Cdna => arch.is_cdna(),
            ArchSet::Cdna4 => arch == Arch::Cdna4,
            ArchSet::BeforeGfx12 => arch.facts().gfx < 12,
            ArchSet::Gfx12 => arch.facts().gfx >= 12,
            ArchSet::Cdna5 => arch == Arch::Cdna5,
            ArchSet::BeforeCdna5 => !arch.is_cdna() && arch != Arch::Cdna5,
            ArchSet::Llvm22 => matches!(arch, Arch::Cdna4 | Arch::Cdna5),
        }
    }
}

use ArchSet::*;
use Trait::*;

/// The functions of BF16 that CDNA 5 adds.
const FUNCTIONS_OF_BF16: &[&str] = &[
    "V_COS_BF16",
    "V_EXP_BF16",
    "V_LOG_BF16",
    "V_RCP_BF16",
    "V_RSQ_BF16",
    "V_SIN_BF16",
    "V_SQRT_BF16",
    "V_TANH_BF16",
];

/// The instructions with each trait. `*` matches any characters.
pub const TRAITS: &[(Trait, ArchSet, &[&str])] = &[
    (Reversed, Any, &["S_SETREG_B32"]),
    (InlineLiteral, Any, &["S_SETREG_IMM32_B32"]),
    (OptionalImmediate, Any, &["S_ENDPGM"]),
    (
        DecimalImmediate,
        Any,
        &[
            "S_BARRIER_LEAVE",
            "S_BARRIER_WAIT",
            "S_DECPERFLEVEL",
            "S_DENORM_MODE",
            "S_ICACHE_INV",
            "S_INCPERFLEVEL",
            "S_NOP",
            "S_MONITOR_SLEEP",
            "S_SETHALT",
            "S_SETKILL",
            "S_SETPRIO",
            "S_SETPRIO_INC_WG",
            "S_SET_VGPR_MSB",
            "S_SLEEP",
            "S_TRAP",
        ],
    ),
    (MatrixLoad, Any, &["GLOBAL_LOAD_TR_*"]),
    (Untyped, Rdna, &["V_MOV_B*", "V_CNDMASK_B*", "V_DUAL_CNDMASK_B*"]),
    (SingleScalar, BeforeCdna5, &["V_LSHLREV_B64", "V_LSHRREV_B64", "V_ASHRREV_I64"]),
    (SingleScalar, Cdna5, &["V_LSHLREV_B64"]),
    (WideThirdSource, BeforeCdna5, &["V_ALIGNBIT_B32", "V_ALIGNBYTE_B32"]),
    (WideThirdSource, Cdna, &["V_ALIGNBIT_B32", "V_ALIGNBYTE_B32"]),
    (WideSecondSource, BeforeCdna5, &["V_CMP_CLASS_F16", "V_CMPX_CLASS_F16"]),
    (ShortOnly, Any, &["V_READFIRSTLANE_B32"]),
    (ShortOnly, Cdna, &["V_ACCVGPR_MOV_B32"]),
    (AlwaysSuffixed, Cdna, &["V_PK_FMAC_F16"]),
    (RegisterIndex, Cdna, &["S_SET_GPR_IDX_MODE"]),
    (Untyped, Cdna, &["V_CNDMASK_B32"]),
    (SizeFromFormat, Cdna4, &["V_MFMA_*_F8F6F4"]),
    (IntegerSecondSource, Cdna, &["V_LDEXP_F16", "V_CMP*_CLASS_F16"]),
    (IntegerSecondSource, Cdna5, &["V_LDEXP_F16"]),
    (IntegerFirstSource, Cdna5, &["V_CVT_PK_F16_FP8", "V_CVT_PK_F16_BF8"]),
    (HalfFirstSource, Cdna5, &["V_CVT_PK_F32_FP8", "V_CVT_PK_F32_BF8"]),
    (NoInlineFirstSource, Cdna5, &["V_CVT_PK_FP8_F16", "V_CVT_PK_BF8_F16"]),
    (Unsuffixed, Cdna5, &["V_CVT_PK_F16_FP8", "V_CVT_PK_F16_BF8"]),
    (NoSigns, Cdna5, &["V_CVT_SCALEF32_*", "V_PK_ADD_M*16"]),
    (HalfOfFirstSource, Cdna5, &["V_CVT_SR_FP8_F16", "V_CVT_SR_BF8_F16"]),
    (AnyFirstVgpr, Cdna5, &["*_LOAD_TR6_B96"]),
    (OneScalarHalf, Cdna5, &["V_PK_ADD_F32", "V_PK_FMA_F32", "V_PK_MUL_F32"]),
    (OpSelWithAccumulator, Cdna, &["V_CVT_SR_BF8_F32", "V_CVT_SR_FP8_F32"]),
    (SdwaSourceOnly, Cdna, &["V_CVT_*F32_FP8", "V_CVT_*F32_BF8"]),
    (
        LoadsToLds,
        Cdna,
        &[
            "BUFFER_LOAD_DWORD",
            "BUFFER_LOAD_FORMAT_X",
            "BUFFER_LOAD_SBYTE",
            "BUFFER_LOAD_SSHORT",
            "BUFFER_LOAD_UBYTE",
            "BUFFER_LOAD_USHORT",
        ],
    ),
    (StoresFromLds, Cdna, &["BUFFER_STORE_LDS_DWORD"]),
    (LoadsToLds, Cdna4, &["BUFFER_LOAD_DWORDX3", "BUFFER_LOAD_DWORDX4"]),
    (NoHalves, Cdna, &["V_ACCVGPR_*"]),
    (FixedHalves, Cdna, &["V_DOT*"]),
    (NoHalves, Cdna5, &["V_DOT4_*", "V_DOT8_*"]),
    (NoClamp, Cdna5, &["V_CVT_*F16_FP8", "V_CVT_*F16_BF8", "V_CVT_F32_BF16", "V_CVT_SR_*8_F16"]),
    (NoClamp, Cdna5, &["V_MUL_U64", "V_ASHR_PK_*8_I32"]),
    (NoOutputModifier, Cdna5, &["V_CVT_*F16_FP8", "V_CVT_*F16_BF8", "V_CVT_F32_BF16"]),
    (NoClamp, Cdna5, FUNCTIONS_OF_BF16),
    (NoOutputModifier, Cdna5, FUNCTIONS_OF_BF16),
    (NoClamp, Cdna, &["V_CVT_SR_FP8_F32", "V_CVT_SR_BF8_F32", "V_CVT_PK_FP8_F32", "V_CVT_PK_BF8_F32"]),
    (NoClamp, BeforeCdna5, &["V_CVT_SR_FP8_F32", "V_CVT_SR_BF8_F32", "V_CVT_PK_FP8_F32", "V_CVT_PK_BF8_F32"]),
    (NoClamp, BeforeCdna5, &["V_CVT_F32_FP8", "V_CVT_F32_BF8"]),
    (NoOutputModifier, Rdna, &["V_CVT_F32_FP8", "V_CVT_F32_BF8"]),
    (FreeLaneSelect, Cdna, &["V_WRITELANE_B32"]),
    (BitPatternsAreLiterals, Any, &["S_CMP_*_F16"]),
    (
        OpSel,
        Any,
        &[
            "V_ADD_NC_I16",
            "V_ADD_NC_U16",
            "V_CVT_PK_BF8_F32",
            "V_CVT_PK_FP8_F32",
            "V_CVT_PK_NORM_I16_F16",
            "V_CVT_PK_NORM_U16_F16",
            "V_DIV_FIXUP_F16",
            "V_DOT2_BF16_BF16",
            "V_DOT2_F16_F16",
            "V_FMA_F16",
            "V_INTERP_*",
            "V_MAD_I16",
            "V_MAD_I32_I16",
            "V_MAD_U16",
            "V_MAD_U32_U16",
            "V_MAX3_*16",
            "V_MAXIMUM3_F16",
            "V_MAXIMUMMINIMUM_F16",
            "V_MED3_*16",
            "V_MIN3_*16",
            "V_MINIMUM3_F16",
            "V_MINIMUMMAXIMUM_F16",
            "V_PACK_B32_F16",
            "V_SUB_NC_I16",
            "V_SUB_NC_U16",
        ],
    ),
    (OpSel, Rdna, &["V_CVT_PK_F32_BF8", "V_CVT_PK_F32_FP8"]),
    (OpSel, Cdna, &["V_ADD_I16", "V_CVT_PKNORM_*_F16", "V_MAD_F16", "V_SUB_I16"]),
    // From parts of a register, and to parts of one.
    (OpSel, Cdna, &["V_CVT_SCALEF32_*_FP8", "V_CVT_SCALEF32_*_BF8", "V_CVT_SCALEF32_PK_*_FP4"]),
    (OpSel, Cdna, &["V_CVT_SCALEF32_PK_FP8_*", "V_CVT_SCALEF32_PK_BF8_*", "V_CVT_SCALEF32_PK_FP4_F32"]),
    (OpSel, Cdna, &["V_CVT_SCALEF32_SR_FP8_*", "V_CVT_SCALEF32_SR_BF8_*", "V_CVT_SCALEF32_SR_PK_FP4_*"]),
    (OpSelWithAccumulator, Cdna, &["V_CVT_SCALEF32_PK_FP4_F16", "V_CVT_SCALEF32_PK_FP4_BF16"]),
    (OpSelWithAccumulator, Rdna, &["V_FMAC_F16"]),
    (OpSelSelectsLanes, Any, &["V_PERMLANE*16*"]),
    (SwapControls, Llvm22, &["V_PERMLANE16_SWAP_B32", "V_PERMLANE32_SWAP_B32"]),
    (TensorGroups, Cdna5, &["TENSOR_*_LDS"]),
    (LowHalfNamed, Rdna, &["V_MOV_B16", "V_SWAP_B16"]),
    (SourceByteSelect, Rdna, &["V_CVT_F32_FP8", "V_CVT_F32_BF8", "V_CVT_F16_FP8", "V_CVT_F16_BF8"]),
    (ResultByteSelect, Rdna, &["V_CVT_SR_FP8_F*", "V_CVT_SR_BF8_F*"]),
    (TruthTable, Any, &["V_BITOP3_B*"]),
    (ScaleSelect, Cdna5, &["V_CVT_SCALE_PK*"]),
    (MatrixFormats, Cdna5, &["V_WMMA_*_F8F6F4"]),
    (FixedFormats, Cdna5, &["V_WMMA_*_F4"]),
    (
        MatrixReuse,
        Cdna5,
        &[
            "V_WMMA_*_F16",
            "V_WMMA_*_BF16",
            "V_WMMA_*_FP8",
            "V_WMMA_*_BF8",
            "V_WMMA_*_F32",
            "V_WMMA_*_IU8",
            "V_SWMMAC_*",
        ],
    ),
    (TypedBuffer, Any, &["TBUFFER_*"]),
    (TwoOffsets, Any, &["*_2ADDR_*"]),
    (TwoOffsets, Cdna, &["DS_READ2*", "DS_WRITE2*", "DS_WRXCHG2*"]),
    (Swizzle, Any, &["DS_SWIZZLE_B32"]),
    (GlobalDataShare, Any, &["DS_GWS_*", "*_GS_REG_RTN"]),
    (SetsVgprMsbs, Any, &["S_SET_VGPR_MSB"]),
    (AnyBank, Gfx12, &["V_DUAL_MOV_B32"]),
    (ReciprocalOfInteger, Any, &["V_RCP_IFLAG_F32"]),
];

/// The properties of one instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Traits(u64);

impl Traits {
    /// The traits of an instruction, given by its upper-case name.
    pub fn of(name: &str, arch: Arch) -> Traits {
        let named = |names: &[&str]| names.iter().any(|pattern| matches(pattern, name));
        let own = TRAITS.iter().filter(|(_, archs, names)| archs.has(arch) && named(names));
        Traits(own.fold(0, |bits, (t, ..)| bits | 1 << *t as u32))
    }

    /// Returns whether the set contains a trait.
    #[inline]
    pub fn has(self, t: Trait) -> bool {
        self.0 >> t as u32 & 1 != 0
    }
}

/// Address sizes of ray intersection instructions in registers, without and with A16, which packs direction
/// and inverse direction. Order: node, extent (and mask), origin, direction, inverse direction (or offsets).
pub const RAYS: [(&str, &[u16], &[u16]); 4] = [
    ("IMAGE_BVH_INTERSECT_RAY", &[1, 1, 3, 3, 3], &[1, 1, 3, 3]),
    ("IMAGE_BVH64_INTERSECT_RAY", &[2, 1, 3, 3, 3], &[2, 1, 3, 3]),
    ("IMAGE_BVH_DUAL_INTERSECT_RAY", &[2, 2, 3, 3, 2], &[2, 2, 3, 3, 2]),
    ("IMAGE_BVH8_INTERSECT_RAY", &[2, 2, 3, 3, 1], &[2, 2, 3, 3, 1]),
];

/// Instructions whose LLVM name differs from the ISA description.
pub const NAMES: [(ArchSet, &str, &str); 5] = [
    (Cdna, "V_ACCVGPR_READ", "v_accvgpr_read_b32"),
    (Cdna, "V_ACCVGPR_WRITE", "v_accvgpr_write_b32"),
    (Cdna, "V_MAD_MIX_F32", "v_fma_mix_f32"),
    (Cdna, "V_MAD_MIXLO_F16", "v_fma_mixlo_f16"),
    (Cdna, "V_MAD_MIXHI_F16", "v_fma_mixhi_f16"),
];

/// LLVM's name of an instruction, given the name in the ISA description.
pub fn name(own: &str, arch: Arch) -> String {
    let other = NAMES.iter().find(|n| n.0.has(arch) && n.1 == own);
    other.map_or_else(|| own.to_lowercase(), |n| n.2.to_string())
}

/// `bound_ctrl:0` sets the bit, too: the modifier is a flag with a number (LLVM).
pub const BOUND_CTRL_IS_FLAG: ArchSet = Cdna;

/// All sources of matrix products accept signs, also integers, of which hardware ignores them (LLVM).
pub const SIGNS_OF_INTEGERS: ArchSet = BeforeGfx12;

/// Offsets of buffer accesses are not negative, although their field has room for a sign (LLVM 22).
pub const POSITIVE_BUFFER_OFFSETS: ArchSet = Cdna5;

/// Three trap registers are no operand (LLVM).
pub const NO_TRAP_REGISTER_TRIPLES: ArchSet = Gfx12;

/// A negative literal of a 16-bit integer fills all 32 bits (LLVM 22).
pub const SIGN_EXTENDED_LITERALS: ArchSet = Llvm22;

/// `swizzle()` has the modes FFT and ROTATE (LLVM 22).
pub const SWIZZLE_FFT_AND_ROTATE: ArchSet = Llvm22;

/// LLVM's names of hardware registers keep the `WAVE_` of the description.
pub const WAVE_IN_REGISTER_NAMES: ArchSet = Cdna5;

/// In encodings with OP_SEL, halves are names of registers and bits of `op_sel:` (LLVM 22).
pub const HALVES_HAVE_BOTH: ArchSet = Cdna5;

/// A literal that could be an inline constant is `lit(…)` (LLVM 22).
pub const LITERALS_ARE_MARKED: ArchSet = Cdna5;

/// The instruction used as padding in code sections.
pub const PADDING: &str = "s_nop 0";
