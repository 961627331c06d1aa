//! The dense operation that the interpreter runs: what an instruction becomes once its operands are resolved.

use crate::isa::OPERATION_COUNT;
use crate::state::wave::{ALL_VGPRS, NULL, ROWS, SCALAR_CONSTS, SCALARS, SGPRS, STAGE, STAGE_VECS};

/// What a source of an operation names. 16 bits, in ranges that cannot overlap: the words of the scalar file (SGPRs by operand code, then
/// the program's first constants), the lane vectors of the register file, and the rest. Constructors give nothing else.
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
pub enum Place {
    /// Word of the scalar file.
    Scalar(usize),
    /// Lane vector of the register file: a VGPR, a constant, or an SGPR's copy.
    Vector(usize),
    /// SCC as 0 or 1.
    Scc,
    /// 1 if VCC is zero.
    Vccz,
    /// 1 if EXEC is zero.
    Execz,
    /// Base address of the LDS aperture, `src_shared_base`.
    SharedBase,
    /// Base address of the scratch aperture, `src_private_base`.
    PrivateBase,
    /// Last offset in an aperture, `src_shared_limit` and `src_private_limit`.
    Limit,
    /// A constant that has no place in the files: where in the program's pool is in [`Ext::pool`], by source slot.
    Pool(usize),
}

/// Words of the scalar file.
const SCALAR_WORDS: usize = SGPRS + SCALAR_CONSTS;
/// First code of a lane vector. No other code has this bit, so one test separates vectors from the rest.
const VECTOR: u16 = 0x400;
/// First code of what is in no file.
const SPECIAL: u16 = 0x4000;
/// First of those of each source slot.
const POOL: u16 = SPECIAL + 6;
/// Slots of sources: of an operation, and the fifth ([`Ext::fifth`]).
pub const SLOTS: usize = 5;
const SPECIAL_END: u16 = POOL + SLOTS as u16;

// The ranges are disjoint, and each holds all it is for.
const _: () = {
    assert!(SCALAR_WORDS <= VECTOR as usize);
    assert!(ROWS <= VECTOR as usize);
    assert!(VECTOR.is_power_of_two() && 2 * VECTOR <= SPECIAL);
    assert!(SPECIAL & (2 * VECTOR - 1) == 0 && SPECIAL_END - SPECIAL <= VECTOR);
};

// Codes of operations, and those after them, fit.
const _: () = assert!(Op::CODES <= u16::MAX as usize);

impl Source {
    /// Reads [`Place::Scc`].
    pub const SCC: Source = Source(SPECIAL);
    /// Reads [`Place::SharedBase`].
    pub const SHARED_BASE: Source = Source(SPECIAL + 1);
    /// Reads [`Place::PrivateBase`].
    pub const PRIVATE_BASE: Source = Source(SPECIAL + 2);
    /// Reads [`Place::Limit`].
    pub const LIMIT: Source = Source(SPECIAL + 3);
    /// Reads [`Place::Vccz`].
    pub const VCCZ: Source = Source(SPECIAL + 4);
    /// Reads [`Place::Execz`].
    pub const EXECZ: Source = Source(SPECIAL + 5);
    /// Reads zero.
    pub const NULL: Source = Source(NULL as u16);

    /// An SGPR by its operand code; null for what is none.
    #[inline(always)]
    pub const fn sgpr(code: u16) -> Source {
        if (code as usize) < SGPRS { Source(code) } else { Source::NULL }
    }

    /// A VGPR; the first for what is none, as hardware has it (RDNA3 manual, *VGPR Out of Range Behavior*).
    pub const fn vgpr(number: u16) -> Source {
        Source(VECTOR + if (number as usize) < ALL_VGPRS { number } else { 0 })
    }

    /// A lane vector of the register file. Behind it are at least as many as the widest source has.
    pub const fn vector(at: usize) -> Option<Source> {
        if at + STAGE_VECS <= ROWS { Some(Source(VECTOR + at as u16)) } else { None }
    }

    /// The staged source of a slot of an operation.
    #[inline(always)]
    pub(crate) const fn staged(slot: usize) -> Source {
        assert!(slot < 4);
        Source(VECTOR + (STAGE + STAGE_VECS * slot) as u16)
    }

    /// `dwords` constants in the scalar file, from one on.
    pub const fn scalar_constant(at: usize, dwords: usize) -> Option<Source> {
        let fits = dwords <= SCALAR_CONSTS && at <= SCALAR_CONSTS - dwords;
        if fits { Some(Source((SGPRS + at) as u16)) } else { None }
    }

    /// A constant in the program's pool, of a source slot.
    pub const fn pool(slot: usize) -> Source {
        assert!(slot < SLOTS);
        Source(POOL + slot as u16)
    }

    /// Decodes it.
    pub fn place(self) -> Place {
        match self.0 {
            code if (code as usize) < SCALAR_WORDS => Place::Scalar(code as usize),
            _ if self.is_vector() => Place::Vector(self.number() as usize),
            SPECIAL => Place::Scc,
            n if n == SPECIAL + 1 => Place::SharedBase,
            n if n == SPECIAL + 2 => Place::PrivateBase,
            n if n == SPECIAL + 4 => Place::Vccz,
            n if n == SPECIAL + 5 => Place::Execz,
            n if (POOL..SPECIAL_END).contains(&n) => Place::Pool((n - POOL) as usize),
            _ => Place::Limit,
        }
    }

    /// Whether it is a lane vector; [`Source::number`] says which.
    #[inline(always)]
    pub const fn is_vector(self) -> bool {
        self.0 & VECTOR != 0
    }

    /// Whether it is a word of the scalar file; [`Source::number`] says which.
    #[inline(always)]
    pub const fn is_scalar(self) -> bool {
        (self.0 as usize) < SCALAR_WORDS
    }

    /// Number in the scalar file or among the lane vectors.
    #[inline(always)]
    pub const fn number(self) -> u16 {
        self.0 & (VECTOR - 1)
    }

    /// Distance of its lane vector from the first, wrapping for other sources: the constant becomes part of an address.
    #[inline(always)]
    pub(crate) const fn vector_offset(self) -> usize {
        (self.0 as usize).wrapping_sub(VECTOR as usize)
    }

    /// Which word of the scalar file it is; beyond the file for what is none. Without the mask of [`Source::number`], which a fast handler's
    /// operands do not need.
    #[inline(always)]
    pub(crate) const fn scalar_word(self) -> usize {
        self.0 as usize
    }

    /// The lane vector that an operation writes, as a source.
    #[inline(always)]
    pub const fn result(d: u16) -> Source {
        Source(VECTOR + (d & (VECTOR - 1)))
    }
}

impl std::fmt::Debug for Source {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.place().fmt(f)
    }
}

/// One operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub struct Op {
    /// Place in a table of handlers: [`Op::code_of`].
    pub code: u16,
    /// [`Op::MODIFY`], [`Op::CLAMP`] and the others below, or-ed.
    pub flags: u16,
    /// First result: lane vector, or SGPR.
    pub d: u16,
    /// SGPR of the mask result (carry-out).
    pub d1: u16,
    /// S0 or the vector address; S1 or the scalar address; S2 or the data; S3, the mask source, DATA1 or SOFFSET.
    pub src: [Source; 4],
    /// SIMM16, offset, or both DS offsets.
    pub imm: u32,
    /// Index in the program's table of modifiers and raw fields.
    pub ext: u32,
    /// Byte offset of its instruction in the code.
    pub pc: u32,
    /// Instructions complete before it.
    pub number: u32,
}

impl Op {
    /// Handlers of an operation: one a [`Variant`].
    pub const VARIANTS: usize = 3;

    /// Code of a canonical operation's handler variant.
    pub const fn code_of(operation: u16, variant: Variant) -> u16 {
        operation * Op::VARIANTS as u16 + variant as u16
    }

    /// Code of an instruction without semantics: the first after the operations.
    pub const UNKNOWN: u16 = (OPERATION_COUNT * Op::VARIANTS) as u16;
    /// Code of words that are not an instruction.
    pub const HOLE: u16 = Op::UNKNOWN + 1;
    /// Code of the place after a program.
    pub const END: u16 = Op::UNKNOWN + 2;
    /// Code of an instruction that names registers after the last one.
    pub const BEYOND: u16 = Op::UNKNOWN + 3;
    /// Code of an instruction with DPP whose body selects lanes itself.
    pub const LANES: u16 = Op::UNKNOWN + 4;
    /// Codes there are: every operation has one below this.
    pub const CODES: usize = OPERATION_COUNT * Op::VARIANTS + 5;

    /// Instructions complete after it.
    #[inline(always)]
    pub fn complete(&self) -> u32 {
        self.number + (self.flags & Op::MORE == 0) as u32
    }

    /// No SGPR in this byte of `imm`, nor in those above.
    pub const NO_SCALAR: u8 = 0xff;

    /// SGPRs that [`Op::BROADCAST`] copies to all lanes, and the hidden lane vector of each.
    #[inline(always)]
    pub fn broadcasts(&self) -> impl Iterator<Item = (usize, usize)> {
        let list = self.imm.to_le_bytes().into_iter();
        list.take_while(|sgpr| *sgpr != Op::NO_SCALAR)
            .map(|sgpr| (sgpr as usize % SGPRS, SCALARS + sgpr as usize))
    }

    /// Words that are not an instruction.
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

    /// The place after a program.
    pub const fn end() -> Op {
        Op { code: Op::END, ..Op::hole() }
    }

    /// Sources or results have modifiers: the slow staging path.
    pub const MODIFY: u16 = 1;
    /// The clamp bit.
    pub const CLAMP: u16 = 2;
    /// A 16-bit result goes to the upper half.
    pub const HIGH: u16 = 4;
    /// Float results need the output pass (omod, float clamp).
    pub const OUTPUT: u16 = 8;
    /// `d` is an SGPR.
    pub const SCALAR_DEST: u16 = 16;
    /// The instruction goes on with the next operation (VOPD). Also on what is not an instruction: none is complete after it.
    pub const MORE: u16 = 32;
    /// Of modifiers, the instruction has DPP alone, and all sources are vectors.
    pub const MOVED: u16 = 64;
    /// The result is dropped, though the destination is read: a buffer atomic without return. With [`Op::OUTPUT`], so that only
    /// the slow path tests for it.
    pub const NO_RESULT: u16 = 256;
    /// `imm` lists the SGPRs that the sources need in all lanes, a byte each: see `scalars`.
    pub const BROADCAST: u16 = 512;
}

/// The variants of a handler, by what an operation's operands need. Lowering chooses one, so that no handler tests for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u16)]
pub enum Variant {
    /// Any operands: modifiers, special sources, halves of registers.
    General,
    /// Sources that are lane vectors of the register file and have no modifiers.
    Fast,
    /// As [`Variant::Fast`], after the SGPRs among the sources have been copied to all lanes ([`Op::BROADCAST`]).
    FastBroadcast,
}

impl Variant {
    /// All of them, by number.
    pub const ALL: [Variant; Op::VARIANTS] = [Variant::General, Variant::Fast, Variant::FastBroadcast];
}

// Two fit in a cache line.
const _: () = assert!(size_of::<Op>() == 32);

/// Modifiers and fields that only some operations have.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Ext {
    /// Applied in staging, a bit a source.
    pub abs_bits: u8,
    /// Sources whose sign is flipped in staging, after `abs_bits`, a bit a source.
    pub neg_bits: u8,
    /// Bit that abs and neg work on (15, 31 or 63), by source.
    pub sign_at: [u8; 4],
    /// 16-bit sources in the upper half, a bit a source.
    pub high_bits: u8,
    /// Sources narrowed to 16 bits.
    pub narrow_bits: u8,
    /// VOP3P sources to be rearranged: a bit a source.
    pub packed_bits: u8,
    /// VOP3P: the upper half is read as the low one (op_sel), a bit a source.
    pub packed_sel: u8,
    /// VOP3P: the upper half is read as the upper one, not the low one (op_sel_hi), a bit a source.
    pub packed_sel_hi: u8,
    /// VOP3P: the sign of the low half is flipped (neg_lo), a bit a source.
    pub packed_neg: u8,
    /// VOP3P: the sign of the upper half is flipped (neg_hi), a bit a source.
    pub packed_neg_hi: u8,
    /// Output scale: 0 none, 1 times 2, 2 times 4, 3 divided by 2 (RDNA manuals, *Output Operand Modifiers*).
    pub omod: u8,
    /// A scalar float result is f16, not f32.
    pub half_result: bool,
    /// DPP of the first source.
    pub dpp: Option<Dpp>,
    pub sdwa: Option<Sdwa>,
    /// For modes that skip vector instructions or offset their VGPRs.
    pub by_mode: ByMode,
    /// Where the constants of the sources are that are [`Place::Pool`], in words.
    pub pool: [u32; SLOTS],
    /// The fifth source, which only bodies that run once a wave have.
    pub fifth: Source,
    // Raw fields for bodies that name them.
    /// NEG, a bit a source.
    pub neg: u32,
    /// NEG_HI, a bit a source.
    pub neg_hi: u32,
    /// ABS, a bit a source.
    pub abs: u32,
    /// OPSEL, a bit a source; bit 3 is the result's.
    pub op_sel: u32,
    /// OPSEL_HI, a bit a source.
    pub op_sel_hi: u32,
    /// Bits of these fields that lane loops take for each source.
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
    /// GLC of an atomic: it returns the value before.
    pub glc: u32,
    pub gfx9: u32,
    pub to_lds: u32,
    pub cbsz: u32,
    pub abid: u32,
    pub blgp: u32,
}

/// Bits of fields, a word a source: a lane loop that takes them out of the fields does so for each instruction. Handlers find registers by
/// them, so that only [`BySource::new`] makes them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct BySource {
    neg: [u32; 4],
    neg_hi: [u32; 4],
    op_sel: [u32; 4],
    op_sel_hi: [u32; 4],
}

impl BySource {
    /// Of the fields NEG, NEG_HI, OPSEL and OPSEL_HI.
    pub fn new(neg: u32, neg_hi: u32, op_sel: u32, op_sel_hi: u32) -> BySource {
        let each = |field: u32| std::array::from_fn(|source| field >> source & 1);
        let signs = |field: u32| each(field).map(|bit: u32| bit << 31);
        BySource { neg: signs(neg), neg_hi: signs(neg_hi), op_sel: each(op_sel), op_sel_hi: each(op_sel_hi) }
    }

    /// NEG, as sign bits of 32.
    #[inline(always)]
    pub fn neg(&self) -> &[u32; 4] {
        &self.neg
    }

    /// NEG_HI, as sign bits of 32.
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

/// What modes of CDNA ask about an operation.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct ByMode {
    /// Its instruction is one of vector arithmetic or memory.
    pub vector: bool,
    /// Registers of the first three sources and of the result, if they are VGPRs that M0 can offset.
    pub vgprs: [u8; 4],
}

/// Parts of registers that SDWA reads and writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Sdwa {
    /// Of the first two sources.
    pub sources: [Part; 2],
    /// A byte or half whose upper bits are copies of its sign.
    pub signed: [bool; 2],
    pub result: Part,
    pub rest: Rest,
}

/// A part of a register (CDNA manuals, *SDWA*).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Part {
    pub shift: u8,
    /// 8, 16 or 32.
    pub bits: u8,
}

/// What SDWA does to the bits that it does not write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Rest {
    Zero,
    Sign,
    Keep,
}

impl Part {
    pub const WHOLE: Part = Part { shift: 0, bits: 32 };
    pub const LOW: Part = Part { shift: 0, bits: 16 };

    /// Of a select field.
    pub const fn new(select: u32) -> Part {
        match select {
            0..=3 => Part { shift: select as u8 * 8, bits: 8 },
            4 | 5 => Part { shift: (select as u8 - 4) * 16, bits: 16 },
            _ => Part::WHOLE,
        }
    }

    /// The part of a register, in the lowest bits.
    #[inline(always)]
    pub const fn read(self, value: u32, signed: bool) -> u32 {
        let above = 32 - self.bits as u32;
        let value = value >> self.shift << above;
        if signed { (value as i32 >> above) as u32 } else { value >> above }
    }

    /// A register with `value` in this part; `old` is what it held.
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

/// Where DPP takes the first source of each lane from, in 32 lanes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Dpp {
    /// The lane, below 32 and in the same row of 16, or [`Dpp::NOWHERE`].
    pub from: [u8; 32],
    /// Of a wave of 64, whose lanes can be in other rows: CDNA's shifts of whole waves, and broadcasts from
    /// row to row. Likewise.
    pub across: Option<[u8; 64]>,
    /// Lanes of each half whose source is outside of their row, or of the wave.
    pub outside: [u32; 2],
    /// Lanes of each half that the masks of rows and banks switch off.
    pub disabled: [u32; 2],
    /// Lanes without a source take zero; otherwise they write nothing.
    pub bound: bool,
    /// Inactive lanes are sources.
    pub fetch: bool,
}

impl Dpp {
    /// In place of the lane that a lane without a source takes.
    pub const NOWHERE: u8 = 0x80;
}
