//! The binding of an entry's operands: fields, formats and modifiers, computed once per entry from the
//! tables, and shared by the reference executor and the lowering to operations. This module must not know how
//! operands are read or written.

mod build;
mod code;
mod format;
mod listed;
mod value;

pub use crate::registers::{ACC, EXEC_HI, EXEC_LO, M0, NULL, TTMP, VCC_HI, VCC_LO};
pub use code::{Code, FLAT_SCRATCH_BASE, FLOATS, code, mask_register, number};
pub use format::{Constants, FORMATS, Format, format};
pub use listed::unlisted_code;
pub use value::address_registers;

use crate::arch::Arch;
use crate::arch::machine::{ScalarFile, VectorFile};
use isa_spec::tables::Role;
use std::sync::{LazyLock, OnceLock};

/// The interpretation of an operand's bits, from the XML's data format.
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
    /// Two 16-bit values of this format.
    Packed(Half),
    /// A lane mask: one bit per lane.
    Mask,
    /// A scale in each byte; a constant is reduced to the exponent of its f32 value.
    Scale,
    /// Any other format: descriptors, 8-bit floats …
    Other,
}

/// The format of a packed operand's halves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Half {
    /// 16-bit integers or bits.
    Int,
    /// IEEE binary16.
    F16,
    /// bfloat16.
    BF16,
}

/// The encoding of an operand's field.
#[derive(Debug, Clone, Copy)]
#[expect(missing_docs, reason = "the variants say what their fields are")]
pub enum OperandKind {
    /// A source code of AMD's ISAs; see [`Code`].
    Code,
    /// A VGPR number.
    Vgpr,
    /// The number of an accumulation VGPR.
    Acc,
    /// A register number in a machine's own vector file.
    Vector(&'static VectorFile),
    /// A register number in a machine's own scalar file.
    Scalar(&'static ScalarFile),
    /// The value itself (operand types `OPR_IMM…`).
    Number { bits: u32, signed: bool },
}

/// One operand of an entry.
#[derive(Debug, Clone, Copy)]
pub struct Operand {
    /// The operand's name in pseudocode.
    pub role: Role,
    /// Index of the encoding field.
    pub field: Option<u8>,
    /// XML `OperandSize`, in bits.
    pub size_bits: u16,
    /// The interpretation of the bits.
    pub fmt: Fmt,
    /// The expansion of inline constants and literals.
    pub constants: Constants,
    /// Index of the operand type in the table.
    pub ty: u8,
    /// The encoding of the field.
    pub kind: OperandKind,
    /// Position among the sources, which selects the bit of NEG, ABS and OP_SEL.
    pub source: u8,
    /// The field with the NEG bit: NEG, or that of a half of VOPD3.
    pub neg: Option<u8>,
    /// Whether the instruction writes the operand.
    pub output: bool,
    /// Whether the instruction reads the operand.
    pub input: bool,
    /// Whether an inline constant applies to both halves; see `build::replicate_constants`.
    pub replicated: bool,
    /// Field and bit that turn the register into an accumulation VGPR.
    pub acc: Option<(u8, u8)>,
    /// The position in MODE of two more bits of the number of a VGPR in this operand.
    pub msb: Option<u8>,
    /// The numbering of scalar registers in the field.
    pub scalars: ScalarNumbering,
    /// Whether a write preserves the other bits of the register, where the architecture otherwise clears
    /// them.
    pub preserves: bool,
}

/// The numbering of M0 and null in a field. The rest of the simulator uses the numbers of RDNA 3 and 4
/// ([`M0`], [`NULL`]).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ScalarNumbering {
    /// The numbering of RDNA 3 and 4.
    Rdna,
    /// M0 is 124, and there is no null register.
    Cdna,
    /// The scalar base of FLAT instructions: 127 means none.
    CdnaBase,
    /// The scalar offset of SMEM instructions: two bits select SOFFSET, a register in OFFSET, or none.
    CdnaSmemOffset,
}

/// Indices into `Encoding::fields` of the encoding's modifier fields.
#[derive(Debug, Clone, Copy, Default)]
pub struct ModFields {
    /// ABS: one bit per source.
    pub abs: Option<u8>,
    /// NEG: one bit per source; NEG_LO in packed encodings.
    pub neg: Option<u8>,
    /// NEG_HI of packed encodings.
    pub neg_hi: Option<u8>,
    /// OP_SEL: selects the half of each source and of the result.
    pub op_sel: Option<u8>,
    /// OP_SEL_HI of packed encodings, sources 0 and 1.
    pub op_sel_hi: Option<u8>,
    /// OP_SEL_HI of source 2, which has a field of its own.
    pub op_sel_hi_2: Option<u8>,
    /// CLAMP.
    pub clamp: Option<u8>,
    /// OMOD: multiplies the result by 2, 4 or 0.5.
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
    /// FI: also read inactive lanes.
    pub fi: Option<u8>,
    /// BOUND_CTRL: a lane without a valid source lane reads 0.
    pub bound_ctrl: Option<u8>,
    /// ROW_MASK: one bit per row of 16 lanes.
    pub row_mask: Option<u8>,
    /// BANK_MASK: one bit per bank of 4 lanes in a row.
    pub bank_mask: Option<u8>,
    /// The first of DPP8's eight lane selectors.
    pub lane_sel: Option<u8>,
    /// SRC0; for DPP8, its code specifies whether inactive lanes are read.
    pub src0: Option<u8>,
    /// The literal constant, or the lower half of one of 64 bits.
    pub literal: Option<u8>,
    /// The upper half of a literal of 64 bits.
    pub literal_hi: Option<u8>,
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
    /// SMEM of CDNA: OFFSET is an immediate instead of a register.
    pub imm: Option<u8>,
    /// SMEM of CDNA: SOFFSET is used.
    pub soffset_en: Option<u8>,
    /// The fields of an SDWA word.
    pub sdwa: Option<SdwaFields>,
}

/// Fields of SDWA encodings. Compares have no destination select, and unary operations no second source.
#[derive(Debug, Clone, Copy)]
pub struct SdwaFields {
    /// DST_SEL: selects the part of the register that is written.
    pub dst_sel: Option<u8>,
    /// DST_UNUSED: the treatment of the other bits.
    pub dst_unused: Option<u8>,
    /// The part of each source that is read.
    pub sel: [Option<u8>; 2],
    /// Whether the part is sign-extended.
    pub sext: [Option<u8>; 2],
    /// Whether each source is an SGPR.
    pub scalar: [Option<u8>; 2],
    /// SD: the result is written to SDST instead of VCC.
    pub has_sdst: Option<u8>,
}

/// The binding of an entry's operands and modifiers to fields.
#[derive(Debug)]
pub struct Binding {
    /// Operands in assembly order.
    pub operands: Vec<Operand>,
    /// Modifier fields of the encoding.
    pub mods: ModFields,
    /// VOP3P: OP_SEL and OP_SEL_HI select the halves of packed operands.
    pub packed: bool,
    /// The 16-bit floats of a mixed-precision instruction are BF16.
    pub mixes_bf16: bool,
    /// VOP1, VOP2, VOPC: bit 7 of a VGPR number selects the half of a 16-bit operand.
    pub e32: bool,
    /// The encoding is VOPD's: the instruction has two halves.
    pub dual: bool,
    /// The operands of VOPD's second half, from the Y fields; empty if the operation cannot be one.
    pub y: Vec<Operand>,
    /// The instruction is a memory atomic.
    pub atomic: bool,
    /// 16-bit results clear the upper half of the register, except for operands that preserve it.
    pub clears_upper_half: bool,
    /// The major version of the target, which buffer descriptors depend on: 9, 11 or 12.
    pub gfx: u32,
    /// The offset field is signed.
    pub signed_offset: bool,
}

/// The binding of an entry, computed on first use, since a kernel uses a few dozen of several thousand.
pub fn binding(arch: Arch, entry: u16) -> &'static Binding {
    static BINDINGS: LazyLock<Vec<Vec<OnceLock<Binding>>>> = LazyLock::new(|| {
        Arch::ALL.into_iter().map(|a| a.table().entries.iter().map(|_| OnceLock::new()).collect()).collect()
    });
    BINDINGS[arch as usize][entry as usize]
        .get_or_init(|| build::binding(arch, &arch.table().entries[entry as usize]))
}
