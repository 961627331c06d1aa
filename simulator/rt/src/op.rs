//! The dense operation that the interpreter runs: an instruction with its operands resolved.

use crate::operations::OPERATION_COUNT;
use wavesim_state::wave::{ALL_VGPRS, NULL, OPERAND_VECS, SCALAR_CONSTS, SCALARS, SGPRS, STAGE, STAGE_VECS};

/// The operand binding of a source, encoded in 16 bits with disjoint ranges: words of the scalar file (SGPRs
/// by operand code, then the program's first constants), lane vectors of the register file, and special
/// values. Constructors produce no other codes.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub struct Source(u16);

impl Default for Source {
    fn default() -> Source {
        Source::NULL
    }
}

/// A [`Source`], decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DecodedSource {
    /// A word of the scalar file.
    Scalar(usize),
    /// A lane vector of the register file: a VGPR, a constant, or a copy of an SGPR.
    Vector(usize),
    /// SCC, as 0 or 1.
    Scc,
    /// VCCZ: 1 if VCC is zero.
    Vccz,
    /// EXECZ: 1 if EXEC is zero.
    Execz,
    /// Base address of the LDS aperture, `src_shared_base`.
    SharedBase,
    /// Base address of the scratch aperture, `src_private_base`.
    PrivateBase,
    /// Last offset in an aperture, `src_shared_limit` and `src_private_limit`.
    Limit,
    /// A constant that is not in a register file: [`Ext::pool`] has its index in the program's pool, by
    /// source slot.
    Pool(usize),
}

/// Number of words in the scalar file.
const SCALAR_WORDS: usize = SGPRS + SCALAR_CONSTS;
/// Code of the first lane vector. No other kind of code has this bit set, so a single test recognises
/// vectors.
const VECTOR: u16 = 0x800;
/// First code of the special values.
const SPECIAL: u16 = 0x4000;
/// First code of pool constants, one code per source slot.
const POOL: u16 = SPECIAL + 6;
/// Number of source slots: those of an operation, and the fifth ([`Ext::fifth`]).
pub const SLOTS: usize = 5;
const SPECIAL_END: u16 = POOL + SLOTS as u16;

// The ranges are disjoint and large enough.
const _: () = {
    assert!(SCALAR_WORDS <= VECTOR as usize);
    assert!(OPERAND_VECS <= VECTOR as usize);
    assert!(VECTOR.is_power_of_two() && 2 * VECTOR <= SPECIAL);
    assert!(SPECIAL & (2 * VECTOR - 1) == 0 && SPECIAL_END - SPECIAL <= VECTOR);
};

// The codes of operations, and the special codes after them, fit.
const _: () = assert!(Op::CODES <= u16::MAX as usize);

impl Source {
    /// Reads [`DecodedSource::Scc`].
    pub const SCC: Source = Source(SPECIAL);
    /// Reads [`DecodedSource::SharedBase`].
    pub const SHARED_BASE: Source = Source(SPECIAL + 1);
    /// Reads [`DecodedSource::PrivateBase`].
    pub const PRIVATE_BASE: Source = Source(SPECIAL + 2);
    /// Reads [`DecodedSource::Limit`].
    pub const LIMIT: Source = Source(SPECIAL + 3);
    /// Reads [`DecodedSource::Vccz`].
    pub const VCCZ: Source = Source(SPECIAL + 4);
    /// Reads [`DecodedSource::Execz`].
    pub const EXECZ: Source = Source(SPECIAL + 5);
    /// Reads zero.
    pub const NULL: Source = Source(NULL as u16);

    /// An SGPR by its operand code; null if the code names none.
    #[inline(always)]
    pub const fn sgpr(code: u16) -> Source {
        if (code as usize) < SGPRS { Source(code) } else { Source::NULL }
    }

    /// A VGPR; v0 if there is no such VGPR, as on hardware (RDNA3 manual, *VGPR Out of Range Behavior*).
    pub const fn vgpr(number: u16) -> Source {
        Source(VECTOR + if (number as usize) < ALL_VGPRS { number } else { 0 })
    }

    /// A lane vector of the register file, if at least as many follow as the widest source has.
    pub const fn vector(index: usize) -> Option<Source> {
        if index + STAGE_VECS <= OPERAND_VECS { Some(Source(VECTOR + index as u16)) } else { None }
    }

    /// The staged source of an operation's slot.
    #[inline(always)]
    pub const fn staged(slot: usize) -> Source {
        assert!(slot < 4);
        Source(VECTOR + (STAGE + STAGE_VECS * slot) as u16)
    }

    /// `dwords` constants in the scalar file, beginning at `index`.
    pub const fn scalar_constant(index: usize, dwords: usize) -> Option<Source> {
        let fits = dwords <= SCALAR_CONSTS && index <= SCALAR_CONSTS - dwords;
        if fits { Some(Source((SGPRS + index) as u16)) } else { None }
    }

    /// A constant in the program's pool, for a source slot.
    pub const fn pool(slot: usize) -> Source {
        assert!(slot < SLOTS);
        Source(POOL + slot as u16)
    }

    /// Decodes the source.
    pub fn decode(self) -> DecodedSource {
        match self.0 {
            code if (code as usize) < SCALAR_WORDS => DecodedSource::Scalar(code as usize),
            _ if self.is_vector() => DecodedSource::Vector(self.number() as usize),
            SPECIAL => DecodedSource::Scc,
            n if n == SPECIAL + 1 => DecodedSource::SharedBase,
            n if n == SPECIAL + 2 => DecodedSource::PrivateBase,
            n if n == SPECIAL + 4 => DecodedSource::Vccz,
            n if n == SPECIAL + 5 => DecodedSource::Execz,
            n if (POOL..SPECIAL_END).contains(&n) => DecodedSource::Pool((n - POOL) as usize),
            _ => DecodedSource::Limit,
        }
    }

    /// Returns whether the source is a lane vector, with the number [`Source::number`].
    #[inline(always)]
    pub const fn is_vector(self) -> bool {
        self.0 & VECTOR != 0
    }

    /// Returns whether the source is a word of the scalar file, with the number [`Source::number`].
    #[inline(always)]
    pub const fn is_scalar(self) -> bool {
        (self.0 as usize) < SCALAR_WORDS
    }

    /// Returns the number in the scalar file or among the lane vectors.
    #[inline(always)]
    pub const fn number(self) -> u16 {
        self.0 & (VECTOR - 1)
    }

    /// Returns the number of the lane vector, wrapping for other sources. The constant folds into an
    /// address.
    #[inline(always)]
    pub(crate) const fn vector_offset(self) -> usize {
        (self.0 as usize).wrapping_sub(VECTOR as usize)
    }

    /// Returns the distance in bytes between [`Source::BIAS`] and the lane vector, as
    /// [`Source::vector_offset`] without a subtraction.
    #[inline(always)]
    #[cfg(target_arch = "x86_64")]
    pub(crate) const fn scaled(self) -> usize {
        self.0 as usize * size_of::<wavesim_state::LaneVec>()
    }

    /// The place relative to the file from which [`Source::scaled`] counts, in bytes.
    #[cfg(target_arch = "x86_64")]
    pub(crate) const BIAS: i32 = -(VECTOR as i32 * size_of::<wavesim_state::LaneVec>() as i32);

    /// Returns the index in the scalar file; beyond the file for other sources. Lacks the mask of
    /// [`Source::number`], which the operands of a fast handler do not need.
    #[inline(always)]
    pub(crate) const fn scalar_word(self) -> usize {
        self.0 as usize
    }

    /// Returns the lane vector that an operation writes, as a source.
    #[inline(always)]
    pub const fn result(d: u16) -> Source {
        Source(VECTOR + (d & (VECTOR - 1)))
    }
}

impl std::fmt::Debug for Source {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.decode().fmt(f)
    }
}

/// One operation of lowered code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub struct Op {
    /// Index in the handler table: see [`Op::code_of`].
    pub code: u16,
    /// A union of [`Op::MODIFY`], [`Op::CLAMP`] and the other flags below.
    pub flags: u16,
    /// First result: lane vector, or SGPR.
    pub d: u16,
    /// SGPR of the mask result (carry-out).
    pub d1: u16,
    /// The sources: S0 or the vector address; S1 or the scalar address; S2 or the data; S3, the mask source,
    /// DATA1 or SOFFSET.
    pub src: [Source; 4],
    /// SIMM16, offset, or both DS offsets.
    pub imm: u32,
    /// Index in the program's table of modifiers and raw fields.
    pub ext: u32,
    /// Byte offset of the instruction in the code.
    pub pc: u32,
    /// Number of instructions completed before this operation.
    pub number: u32,
}

impl Op {
    /// Number of handlers per operation: one for each [`Variant`].
    pub const VARIANTS: usize = 3;

    /// Returns the code of a canonical operation's handler variant.
    pub const fn code_of(operation: u16, variant: Variant) -> u16 {
        operation * Op::VARIANTS as u16 + variant as u16
    }

    /// Code of an instruction without semantics: the first code after the operations.
    pub const UNKNOWN: u16 = (OPERATION_COUNT * Op::VARIANTS) as u16;
    /// Code of words that do not decode to an instruction.
    pub const HOLE: u16 = Op::UNKNOWN + 1;
    /// Code of the end of a program.
    pub const END: u16 = Op::UNKNOWN + 2;
    /// Code of an instruction with an operand that extends beyond the last VGPR.
    pub const OUT_OF_RANGE: u16 = Op::UNKNOWN + 3;
    /// Code of an instruction with DPP whose semantics select lanes themselves.
    pub const DPP_UNSUPPORTED: u16 = Op::UNKNOWN + 4;
    /// Code of an instruction with an operand code, kept in [`Op::imm`], that the operand does not accept.
    pub const UNLISTED_CODE: u16 = Op::UNKNOWN + 5;
    /// Number of codes: every operation has a smaller one.
    pub const CODES: usize = OPERATION_COUNT * Op::VARIANTS + 6;

    /// Returns whether the operation has no handler and only stops the wave.
    pub fn only_stops(&self) -> bool {
        self.code >= Op::UNKNOWN
    }

    /// Returns the number of instructions completed after this operation.
    #[inline(always)]
    pub fn complete(&self) -> u32 {
        self.number + (self.flags & Op::MORE == 0) as u32
    }

    /// Terminates the list of SGPRs in the bytes of `imm`.
    pub const NO_SCALAR: u8 = 0xff;

    /// Returns the SGPRs that [`Op::BROADCAST`] copies to all lanes, each with its hidden lane vector.
    #[inline(always)]
    pub fn broadcasts(&self) -> impl Iterator<Item = (usize, usize)> {
        let list = self.imm.to_le_bytes().into_iter();
        list.take_while(|sgpr| *sgpr != Op::NO_SCALAR)
            .map(|sgpr| (sgpr as usize % SGPRS, SCALARS + sgpr as usize))
    }

    /// Returns the operation for words that do not decode to an instruction.
    pub const fn hole() -> Op {
        Op {
            code: Op::HOLE,
            flags: Op::MORE,
            d: 0,
            d1: 0,
            src: [Source::NULL; 4],
            imm: 0,
            ext: 0,
            pc: 0,
            number: 0,
        }
    }

    /// Returns the operation for the end of a program.
    pub const fn end() -> Op {
        Op { code: Op::END, ..Op::hole() }
    }

    /// Sources or results have modifiers: the operation takes the slow path through staging.
    pub const MODIFY: u16 = 1;
    /// The clamp bit.
    pub const CLAMP: u16 = 2;
    /// A 16-bit result is written to the upper half.
    pub const HIGH: u16 = 4;
    /// Float results need the output pass (omod, float clamp).
    pub const OUTPUT: u16 = 8;
    /// `d` is an SGPR.
    pub const SCALAR_DEST: u16 = 16;
    /// The instruction continues with the next operation (VOPD). Also set on operations that are not
    /// instructions: they complete none.
    pub const MORE: u16 = 32;
    /// DPP is the only modifier, and all sources are lane vectors (O8).
    pub const DPP_ONLY: u16 = 64;
    /// A 16-bit result, written to the lower half, clears the upper one (CDNA).
    pub const CLEAR_UPPER: u16 = 128;
    /// The result is dropped, though the destination is read: a buffer atomic without return. Always combined
    /// with [`Op::OUTPUT`], so that only the slow path tests for it.
    pub const NO_RESULT: u16 = 256;
    /// `imm` lists the SGPRs that the sources need in all lanes, one per byte: see [`Op::broadcasts`].
    pub const BROADCAST: u16 = 512;
}

/// The variants of a handler, by the kinds of the operands. Lowering chooses one, so that no handler tests
/// operand kinds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u16)]
pub enum Variant {
    /// Any operands: modifiers, special sources, halves of registers.
    General,
    /// All sources are lane vectors of the register file without modifiers.
    Fast,
    /// As [`Variant::Fast`], after the SGPRs among the sources have been broadcast to all lanes
    /// ([`Op::BROADCAST`]).
    FastBroadcast,
}

impl Variant {
    /// All variants, by number.
    pub const ALL: [Variant; Op::VARIANTS] = [Variant::General, Variant::Fast, Variant::FastBroadcast];
}

// Two operations fit in a cache line.
const _: () = assert!(size_of::<Op>() == 32);

/// What the operations of a program index, besides registers.
pub struct Pools {
    /// Unique among programs, and not 0: the wave remembers whose constants it has ([`Wave::install`]).
    ///
    /// [`Wave::install`]: wavesim_state::Wave::install
    pub id: u64,
    /// The constant pool, in words. The first ones are copied to the register files, where handlers read them
    /// like registers.
    pub consts: Vec<u32>,
    /// The sets of modifiers, by [`Op::ext`]. The first one is empty.
    pub exts: Vec<Ext>,
}

/// Modifiers and fields that only some operations have.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Ext {
    /// Sources whose absolute value is taken in staging, one bit per source.
    pub abs_bits: u8,
    /// Sources whose sign is flipped in staging, after `abs_bits`, one bit per source.
    pub neg_bits: u8,
    /// Sign bit that abs and neg change (15, 31 or 63), by source.
    pub sign_at: [u8; 4],
    /// 16-bit sources in the upper half, one bit per source.
    pub high_bits: u8,
    /// Sources narrowed to 16 bits, one bit per source.
    pub narrow_bits: u8,
    /// VOP3P sources that have to be rearranged, one bit per source.
    pub packed_bits: u8,
    /// VOP3P: the low half is taken from the upper one (op_sel), one bit per source.
    pub packed_sel: u8,
    /// VOP3P: the upper half is taken from the upper one, not from the low one (op_sel_hi), one bit per
    /// source.
    pub packed_sel_hi: u8,
    /// VOP3P: the sign of the low half is flipped (neg_lo), one bit per source.
    pub packed_neg: u8,
    /// VOP3P: the sign of the upper half is flipped (neg_hi), one bit per source.
    pub packed_neg_hi: u8,
    /// Output scale: 0 for none, 1 for times 2, 2 for times 4, 3 for divided by 2 (RDNA manuals, *Output
    /// Operand Modifiers*).
    pub omod: u8,
    /// The clamp bit has a meaning of its own: the result is not clamped.
    pub own_clamp: bool,
    /// A scalar float result is f16, not f32.
    pub half_result: bool,
    /// The DPP control of the first source.
    pub dpp: Option<Dpp>,
    pub sdwa: Option<Sdwa>,
    /// Used in modes that skip vector instructions or offset their VGPRs.
    pub by_mode: ByMode,
    /// Index in the program's pool, in words, of each source that is a [`DecodedSource::Pool`].
    pub pool: [u32; SLOTS],
    /// The fifth source, which only semantics that run once per wave have.
    pub fifth: Source,
    // Raw fields for semantics that name them.
    /// NEG, one bit per source.
    pub neg: u32,
    /// NEG_HI, one bit per source.
    pub neg_hi: u32,
    /// ABS, one bit per source.
    pub abs: u32,
    /// OPSEL, one bit per source; bit 3 is the result's.
    pub op_sel: u32,
    /// OPSEL_HI, one bit per source.
    pub op_sel_hi: u32,
    /// The same fields, expanded to a word per source for lane loops.
    pub by_source: BySource,
    /// SIMM32: the literal.
    pub simm32: u32,
    /// IDXEN of a buffer instruction: a VGPR has an index.
    pub idxen: u32,
    /// OFFEN of a buffer instruction: a VGPR has an offset.
    pub offen: u32,
    /// FORMAT of a typed buffer instruction.
    pub format: u32,
    /// SVE of a scratch instruction: a VGPR has an offset.
    pub sve: u32,
    /// GLC of an atomic: it returns the previous value.
    pub glc: u32,
    pub gfx: u32,
    pub to_lds: u32,
    pub cbsz: u32,
    pub abid: u32,
    pub blgp: u32,
    /// SIMM32_HI: the upper half of a 64-bit literal.
    pub simm32_hi: u32,
    /// SCALE_OFFSET: an offset in a register counts elements.
    pub scale_offset: u32,
    /// SCALE_NEG of a scaled matrix product: the format of A's scales.
    pub scale_neg: u32,
    /// SCALE_NEG_HI: the format of B's scales.
    pub scale_neg_hi: u32,
    /// SCALE_OP_SEL: bit 0 selects the lanes of A's scales.
    pub scale_op_sel: u32,
    /// SCALE_OP_SEL_HI: bit 0 selects the lanes of B's scales.
    pub scale_op_sel_hi: u32,
    /// The source code of A's scales.
    pub scale_code_a: u32,
    /// The source code of B's scales.
    pub scale_code_b: u32,
    /// The fields of an image instruction.
    pub image: ImageFields,
}

/// The fields of an image instruction, as semantics name them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct ImageFields {
    /// VADDR0 to VADDR4: the numbers of the address registers, or of the first one only.
    pub vaddr: [u16; 5],
    /// SAMP: the number of the sampler's first SGPR.
    pub samp: u16,
    /// SUFFIXES: those of the name (`isa_spec::mnemonic::ImageSuffixes`).
    pub suffixes: u16,
    /// ADDRESS_MASK: a bit for each dword of the address.
    pub address_mask: u16,
    /// DATA_MASK: a bit for each register of the data.
    pub data_mask: u16,
    /// DIM: the dimension of the image.
    pub dim: u8,
    /// DMASK: a bit for each component.
    pub dmask: u8,
    /// A16: addresses have 16 bits.
    pub a16: bool,
    /// D16: components have 16 bits.
    pub d16: bool,
    /// UNORM: coordinates are in texels.
    pub unorm: bool,
    /// R128: the descriptor has 128 bits.
    pub r128: bool,
    /// TFE: a register more, for faults.
    pub tfe: bool,
    /// LWE: a register more, for levels of detail that are too small.
    pub lwe: bool,
    /// NSA: addresses have fields of their own.
    pub nsa: bool,
}

/// Bit fields expanded to a word per source; otherwise a lane loop would extract the bits in every
/// instruction. Handlers compute register numbers from them, so only [`BySource::new`] creates them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct BySource {
    neg: [u32; 4],
    neg_hi: [u32; 4],
    op_sel: [u32; 4],
    op_sel_hi: [u32; 4],
}

impl BySource {
    /// Expands the fields NEG, NEG_HI, OPSEL and OPSEL_HI.
    pub fn new(neg: u32, neg_hi: u32, op_sel: u32, op_sel_hi: u32) -> BySource {
        let each = |field: u32| std::array::from_fn(|source| field >> source & 1);
        let signs = |field: u32| each(field).map(|bit: u32| bit << 31);
        BySource { neg: signs(neg), neg_hi: signs(neg_hi), op_sel: each(op_sel), op_sel_hi: each(op_sel_hi) }
    }

    /// NEG, as the sign bit of a 32-bit word.
    #[inline(always)]
    pub fn neg(&self) -> &[u32; 4] {
        &self.neg
    }

    /// NEG_HI, as the sign bit of a 32-bit word.
    #[inline(always)]
    pub fn neg_hi(&self) -> &[u32; 4] {
        &self.neg_hi
    }

    /// OPSEL, as 0 or 1.
    #[inline(always)]
    pub fn op_sel(&self) -> &[u32; 4] {
        &self.op_sel
    }

    /// OPSEL_HI, as 0 or 1.
    #[inline(always)]
    pub fn op_sel_hi(&self) -> &[u32; 4] {
        &self.op_sel_hi
    }
}

/// Properties of an operation that matter in modes of CDNA that change VGPR numbers or skip instructions.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct ByMode {
    /// The operation belongs to a vector arithmetic or vector memory instruction.
    pub vector: bool,
    /// Number of registers of each of the first three sources and of the result, if it is a VGPR that M0 can
    /// offset.
    pub vgprs: [u8; 4],
    /// The VGPRs that MODE extends: those of the sources, and of the result.
    pub msbs: [Msb; 5],
}

impl ByMode {
    /// The properties of a copy of a source, which is the first source of the copy.
    pub fn of_source(&self, slot: usize) -> ByMode {
        let (mut vgprs, mut msbs) = ([0; 4], [Msb::default(); 5]);
        vgprs[0] = self.vgprs.get(slot).copied().filter(|_| slot < 3).unwrap_or(0);
        msbs[0] = self.msbs[slot];
        ByMode { vector: self.vector, vgprs, msbs }
    }
}

/// A VGPR operand whose number MODE extends (CDNA 5).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Msb {
    /// The position of the bits in MODE; 0 if they do not apply.
    pub position: u8,
    /// Number of registers.
    pub dwords: u8,
}

/// The parts of registers that SDWA reads and writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Sdwa {
    /// The parts of the first two sources.
    pub sources: [Part; 2],
    /// Sources that are sign-extended.
    pub signed: [bool; 2],
    pub result: Part,
    pub rest: Rest,
}

impl Sdwa {
    /// Selects nothing.
    pub const NONE: Sdwa =
        Sdwa { sources: [Part::WHOLE; 2], signed: [false; 2], result: Part::WHOLE, rest: Rest::Zero };
}

/// A part of a register (CDNA manuals, *SDWA*).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Part {
    pub shift: u8,
    /// 8, 16 or 32.
    pub bits: u8,
}

/// How SDWA treats the bits of the destination that it does not select.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Rest {
    Zero,
    Sign,
    Keep,
}

impl Part {
    pub const WHOLE: Part = Part { shift: 0, bits: 32 };
    pub const LOW: Part = Part { shift: 0, bits: 16 };

    /// Decodes a select field.
    pub const fn new(select: u32) -> Part {
        match select {
            0..=3 => Part { shift: select as u8 * 8, bits: 8 },
            4 | 5 => Part { shift: (select as u8 - 4) * 16, bits: 16 },
            _ => Part::WHOLE,
        }
    }

    /// Extracts the part of a register to the lowest bits.
    #[inline(always)]
    pub const fn read(self, value: u32, signed: bool) -> u32 {
        let above = 32 - self.bits as u32;
        let value = value >> self.shift << above;
        if signed { (value as i32 >> above) as u32 } else { value >> above }
    }

    /// Inserts `value` into this part of a register that held `old`.
    #[inline(always)]
    pub const fn write(self, value: u32, old: u32, rest: Rest) -> u32 {
        let mask = (u32::MAX >> (32 - self.bits as u32)) << self.shift;
        match rest {
            Rest::Keep => old & !mask | value << self.shift & mask,
            Rest::Zero => value << self.shift & mask,
            Rest::Sign => self.read(value << self.shift, true) << self.shift,
        }
    }
}

/// The source lane of each lane for DPP's first source, in 32 lanes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Dpp {
    /// The source lane: below 32, and in the same row of 16; or [`Dpp::NO_SOURCE`].
    pub from: [u8; 32],
    /// The same for waves of 64 whose source lanes may be in other rows: CDNA's shifts of whole waves, and
    /// row broadcasts.
    pub across: Option<[u8; 64]>,
    /// Lanes of each half whose source is outside their row or the wave.
    pub outside: [u32; 2],
    /// Lanes of each half that the row and bank masks disable.
    pub disabled: [u32; 2],
    /// Lanes without a source read zero; otherwise they write nothing.
    pub bound: bool,
    /// Inactive lanes may be sources.
    pub fetch: bool,
}

impl Dpp {
    /// The source lane of a lane that has no source.
    pub const NO_SOURCE: u8 = 0x80;
}
