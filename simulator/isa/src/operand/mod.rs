//! Where an entry's operands are: a description of fields, formats and modifiers, computed once per entry
//! from the tables, that the reference executor and the lowering to operations share. It must not know how an
//! operand is read or written.

mod build;
mod code;
mod value;

pub use code::{
    ACC, Code, EXEC_HI, EXEC_LO, FLOATS, M0, NULL, TTMP, VCC_HI, VCC_LO, code, mask_register, number,
};

use crate::arch::Arch;
use crate::arch::machine::{ScalarFile, VectorFile};
use isa_spec::tables::Role;
use std::sync::{LazyLock, OnceLock};

/// How an operand's bits are read, from the XML's data format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fmt {
    /// Unsigned integer.
    Unsigned,
    /// Signed integer.
    Signed,
    /// Untyped bits.
    Bits,
    /// IEEE binary16.
    F16,
    /// bfloat16.
    BF16,
    /// IEEE binary32.
    F32,
    /// IEEE binary64.
    F64,
    /// Two 16-bit values; the format of each.
    Packed(Half),
    /// A lane mask: one bit per lane.
    Mask,
    /// Scales in each byte: of a constant, the exponent of an f32.
    Scale,
    /// Any other format: descriptors, 8-bit floats …
    Other,
}

/// Format of the halves of a packed operand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Half {
    /// 16-bit integers or bits.
    Int,
    /// IEEE binary16.
    F16,
    /// bfloat16.
    BF16,
}

/// What an operand's field encodes.
#[derive(Debug, Clone, Copy)]
#[expect(missing_docs, reason = "the variants say what their fields are")]
pub enum OperandKind {
    /// A source code of AMD's ISAs: see [`Code`].
    Code,
    /// A VGPR number.
    Vgpr,
    /// The number of an accumulation VGPR.
    Acc,
    /// Register numbers of a machine's own files.
    Vector(&'static VectorFile),
    /// A register number of a machine's own scalar file.
    Scalar(&'static ScalarFile),
    /// The value itself (operand types `OPR_IMM…`).
    Number { bits: u32, signed: bool },
}

/// One operand of an entry.
#[derive(Debug, Clone, Copy)]
pub struct Operand {
    /// The name by which pseudocode refers to it.
    pub role: Role,
    /// Index of the encoding field.
    pub field: Option<u8>,
    /// XML `OperandSize`, in bits.
    pub size_bits: u16,
    /// How its bits are read.
    pub fmt: Fmt,
    /// What its field encodes.
    pub kind: OperandKind,
    /// Position among the sources: bit of NEG, ABS, OP_SEL.
    pub source: u8,
    /// The instruction writes it.
    pub output: bool,
    /// The instruction reads it.
    pub input: bool,
    /// An inline constant applies to both halves: see `build::replicate_constants`.
    pub replicated: bool,
    /// Field and bit that make an accumulation VGPR of it.
    pub acc: Option<(u8, u8)>,
    /// Which numbers the scalar registers in its field have.
    pub scalars: Scalars,
    /// A write keeps the other bits of the register, where the architecture clears them.
    pub preserves: bool,
}

/// Numbers of M0 and of no register. Everywhere else they are those of RDNA 3 and 4 ([`M0`], [`NULL`]).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scalars {
    /// Those of RDNA 3 and 4.
    Rdna,
    /// M0 is 124, and no register is null.
    Cdna,
    /// The scalar base of FLAT instructions: 127 means that there is none.
    CdnaBase,
    /// The scalar offset of SMEM instructions: SOFFSET, or a register that OFFSET names, or none, by two bits.
    CdnaSmemOffset,
}

/// Indices in `Encoding::fields` of the modifier fields that the encoding has.
#[derive(Debug, Clone, Copy, Default)]
pub struct ModFields {
    /// ABS: a bit per source.
    pub abs: Option<u8>,
    /// NEG: a bit per source; NEG_LO in packed encodings.
    pub neg: Option<u8>,
    /// NEG_HI of packed encodings.
    pub neg_hi: Option<u8>,
    /// OP_SEL: which half of a source or the result.
    pub op_sel: Option<u8>,
    /// OP_SEL_HI of packed encodings, sources 0 and 1.
    pub op_sel_hi: Option<u8>,
    /// OP_SEL_HI of source 2, which has a field of its own.
    pub op_sel_hi_2: Option<u8>,
    /// CLAMP.
    pub clamp: Option<u8>,
    /// OMOD: the result times 2, times 4 or halved.
    pub omod: Option<u8>,
    /// SRC0_ABS of DPP words.
    pub src0_abs: Option<u8>,
    /// SRC0_NEG of DPP words.
    pub src0_neg: Option<u8>,
    /// SRC1_ABS of DPP words.
    pub src1_abs: Option<u8>,
    /// SRC1_NEG of DPP words.
    pub src1_neg: Option<u8>,
    /// DPP_CTRL of DPP16 words.
    pub dpp_ctrl: Option<u8>,
    /// FI: inactive lanes are read too.
    pub fi: Option<u8>,
    /// BOUND_CTRL: a lane without a source lane reads 0.
    pub bound_ctrl: Option<u8>,
    /// ROW_MASK: a bit per row of 16 lanes.
    pub row_mask: Option<u8>,
    /// BANK_MASK: a bit per bank of 4 lanes of a row.
    pub bank_mask: Option<u8>,
    /// The first of DPP8's eight lane selections.
    pub lane_sel: Option<u8>,
    /// SRC0: with DPP8 its code says whether inactive lanes are read.
    pub src0: Option<u8>,
    /// The literal constant.
    pub literal: Option<u8>,
    /// GLC, or TH of RDNA 4 (bit 0 returns).
    pub glc: Option<u8>,
    /// SIMM16 of scalar encodings.
    pub simm16: Option<u8>,
    /// Address offset: OFFSET, or IOFFSET of RDNA 4.
    pub offset: Option<u8>,
    /// OFFSET0 of DS.
    pub offset0: Option<u8>,
    /// OFFSET1 of DS.
    pub offset1: Option<u8>,
    /// SMEM of CDNA: OFFSET is a number; SOFFSET counts.
    pub imm: Option<u8>,
    /// SMEM of CDNA: SOFFSET names a register.
    pub soffset_en: Option<u8>,
    /// Those of an SDWA word.
    pub sdwa: Option<SdwaFields>,
}

/// Fields of SDWA forms. Compares have no destination select, others no second source.
#[derive(Debug, Clone, Copy)]
pub struct SdwaFields {
    /// DST_SEL: the part of the register that is written.
    pub dst_sel: Option<u8>,
    /// DST_UNUSED: what becomes of the other parts.
    pub dst_unused: Option<u8>,
    /// The part of each source.
    pub sel: [Option<u8>; 2],
    /// Whether the part is sign-extended.
    pub sext: [Option<u8>; 2],
    /// Whether each source is an SGPR.
    pub scalar: [Option<u8>; 2],
    /// The result is in SDST instead of VCC.
    pub has_sdst: Option<u8>,
}

/// How the operands and modifiers of an entry are bound to fields.
#[derive(Debug)]
pub struct Binding {
    /// In assembly order.
    pub operands: Vec<Operand>,
    /// Modifier fields of the encoding.
    pub mods: ModFields,
    /// VOP3P: packed operand selection.
    pub packed: bool,
    /// VOP1, VOP2, VOPC: bit 7 of a VGPR number picks the half of a 16-bit operand.
    pub e32: bool,
    /// Second half of VOPD: its operands by the Y fields.
    pub y: Vec<Operand>,
    /// A memory atomic.
    pub atomic: bool,
    /// 16-bit results clear the upper half of their register, but for operands that preserve it.
    pub clears_upper_half: bool,
    /// Buffers are those of gfx9.
    pub gfx9: bool,
    /// Offset fields wider than this are signed.
    pub signed_offset: bool,
}

/// The binding of an entry's operands, computed on first use: a kernel uses a few dozen of thousands.
pub fn binding(arch: Arch, entry: u16) -> &'static Binding {
    static BINDINGS: LazyLock<Vec<Vec<OnceLock<Binding>>>> = LazyLock::new(|| {
        Arch::ALL.into_iter().map(|a| a.table().entries.iter().map(|_| OnceLock::new()).collect()).collect()
    });
    BINDINGS[arch as usize][entry as usize]
        .get_or_init(|| build::binding(arch, &arch.table().entries[entry as usize]))
}
