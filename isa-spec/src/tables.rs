//! The shape of an architecture's tables: the one description of encodings, fields and operands that the
//! decoder, encoder, assembler, disassembler, interpreter and listing commands share.
//!
//! The same types are filled twice: [`from_spec`](crate::xml::to_tables) builds them from an XML
//! [`Spec`](crate::xml::model::Spec) at run time (tests, tools), and the macro emits them as `static` data. A
//! test compares the two.

/// Index of an [`Entry`] in [`ArchTable::entries`].
pub type EntryId = u16;

/// Everything the machine-readable ISA says about one architecture.
#[derive(Debug, PartialEq)]
pub struct ArchTable {
    /// Short name as on the command line: `rdna3`, `rdna3.5`, `rdna4` …
    pub name: &'static str,
    /// XML `ArchitectureName`.
    pub full_name: &'static str,
    pub encodings: &'static [Encoding],
    pub instructions: &'static [Instruction],
    /// One (instruction, encoding) pair each, in XML order.
    pub entries: &'static [Entry],
    /// Operand lists, deduplicated; [`Entry::sig`] points here. Operands in assembly order.
    pub signatures: &'static [&'static [OperandSig]],
    pub operand_types: &'static [OperandType],
    pub formats: &'static [DataFormat],
}

#[derive(Debug, PartialEq)]
pub struct Encoding {
    /// XML `EncodingName`, for example `ENC_VOP3` or `VOP2_INST_LITERAL`.
    pub name: &'static str,
    /// Size in bits: 32, 64 or 96 (up to 128).
    pub bits: u16,
    /// XML `Order`: decoding tries low orders first.
    pub order: i32,
    /// Bits that identify encoding and opcode; bit 0 is bit 0 of the first word.
    pub mask: u128,
    pub identifiers: &'static [u128],
    pub conditions: &'static [Condition],
    /// In the order of the XML; [`OperandSig::field`] indexes this. At most [`MAX_FIELDS`].
    pub fields: &'static [Field],
    /// Index in `fields` of the opcode field (`OP`; `OPX` in VOPD), if any.
    pub op_field: Option<u8>,
}

/// Upper bound of `Encoding::fields.len()` over all ISAs; structural tests check it.
pub const MAX_FIELDS: usize = 24;

#[derive(Debug, PartialEq)]
pub struct Field {
    /// XML `FieldName`: `SRC0`, `VDST`, `OP_SEL`, `IOFFSET` …
    pub name: &'static str,
    /// `(bit offset, bit count)`, least significant part of the value first.
    pub ranges: &'static [(u8, u8)],
    /// Value where the field is constant in the whole encoding (`ENCODING`, `SEG`, …), else `None`.
    pub fixed: Option<u32>,
}

/// A named condition of an encoding (XML `EncodingConditions`): `default`, `has_lit`, `has_dpp16` …
#[derive(Debug, PartialEq)]
pub struct Condition {
    pub name: &'static str,
    pub expr: Cond,
}

/// A condition's expression tree, over field values of the encoding (`field` indexes `Encoding::fields`).
#[derive(Debug, PartialEq)]
pub enum Cond {
    True,
    Lit(u64),
    Field(u8),
    Op(CondOp, &'static [Cond]),
}

#[derive(Debug, PartialEq, Eq, Clone, Copy)]
pub enum CondOp {
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
    And,
    Or,
    Not,
    Add,
    Sub,
    Mul,
    Div,
    Mod,
    BitAnd,
    BitOr,
    BitXor,
    Shl,
    Shr,
}

#[derive(Debug, PartialEq)]
pub struct Instruction {
    /// Upper case, as in the XML and the manual: `V_ADD_F32`.
    pub name: &'static str,
    pub aliases: &'static [&'static str],
    pub flags: InstFlags,
    /// XML functional group and subgroup: `VALU`/`NOT_ASSIGNED`, `VMEM`/`ATOMIC` …
    pub group: &'static str,
    pub subgroup: &'static str,
    /// Its entries, contiguous in [`ArchTable::entries`]: first index and count.
    pub entries: (u16, u16),
}

#[derive(Debug, PartialEq, Eq, Clone, Copy, Default)]
pub struct InstFlags {
    pub branch: bool,
    pub conditional_branch: bool,
    pub indirect_branch: bool,
    pub terminator: bool,
    pub immediately_executed: bool,
}

#[derive(Debug, PartialEq)]
pub struct Entry {
    /// Index in [`ArchTable::instructions`].
    pub inst: u16,
    /// Index in [`ArchTable::encodings`].
    pub enc: u8,
    /// Index in the encoding's `conditions` (the condition under which this entry applies).
    pub cond: u8,
    pub opcode: u16,
    /// Index in [`ArchTable::signatures`].
    pub sig: u16,
}

#[derive(Debug, PartialEq, Eq, Hash, Clone)]
pub struct OperandSig {
    /// Index in the encoding's fields; `None` for operands fixed by the instruction (VCC, SCC, EXEC …).
    pub field: Option<u8>,
    /// Index in [`ArchTable::operand_types`].
    pub ty: u8,
    /// Index in [`ArchTable::formats`].
    pub format: u8,
    /// XML `OperandSize`, in bits.
    pub size_bits: u16,
    pub input: bool,
    pub output: bool,
    /// Not written in assembly.
    pub implicit: bool,
    /// XML `IsBinaryMicrocodeRequired`.
    pub in_microcode: bool,
    /// How pseudocode names it; see [`Role`].
    pub role: Role,
}

/// What an operand is to the pseudocode. Assigned from the XML by one rule (`roles.rs`):
/// outputs are D0, D1 in order; inputs S0, S1, … in order, by *semantic* order; see each variant.
#[derive(Debug, PartialEq, Eq, Hash, Clone, Copy, PartialOrd, Ord)]
pub enum Role {
    /// First data result (VDST, SDST, SDATA, VDATA of a load; the mask of a compare). Also an input where the
    /// instruction reads it first (FMAC, S_ADDK); so is VDATA of a buffer or image atomic, which is the data
    /// and then the result.
    D0,
    /// Second data result (second half of VOPD is *not* this; SDST of VOP3SD is [`Role::Vcc`]).
    D1,
    S0,
    S1,
    S2,
    S3,
    /// A lane mask operand beside the data: carry in/out, condition of cndmask. Pseudocode says `VCC`.
    /// In e32 forms it is VCC itself, in VOP3 the SREG operand.
    Vcc,
    /// An immediate operand: SIMM16, SIMM32, LITERAL of fmaak, offsets that the XML lists as operands.
    Imm,
    /// Address operand of a memory instruction: ADDR/VADDR (VGPR).
    VAddr,
    /// SADDR of flat/global/scratch; SBASE of SMEM; SRSRC/RSRC of buffers.
    SAddr,
    /// SOFFSET of SMEM and buffers.
    SOffset,
    /// Store/atomic data: DATA, DATA0, VSRC, VDATA of a store, SDATA of a store.
    Data,
    /// DATA1 of DS.
    Data1,
    /// EXEC, SCC, M0 … fixed operands: pseudocode names them as state. V_CMPX writes EXEC so in all forms.
    State,
    /// Second half of VOPD (VDSTY, SRCY0, VSRCY1): handled as an instruction of its own.
    Y0Dst,
    Y0Src0,
    Y0Src1,
    /// Listed by the XML but without data flow here (sampler, export targets …).
    Other,
}

#[derive(Debug, PartialEq)]
pub struct OperandType {
    /// XML `OperandTypeName`: `OPR_SRC`, `OPR_VGPR` …
    pub name: &'static str,
    /// Assembly name and encoded value, in XML order.
    pub values: &'static [(&'static str, u32)],
    pub subtypes: &'static [&'static str],
    /// Fields of a partitioned type (`OPR_WAITCNT`, `OPR_HWREG`, `OPR_DELAY` …); empty otherwise.
    pub parts: &'static [Part],
}

#[derive(Debug, PartialEq)]
pub struct Part {
    pub name: &'static str,
    pub ranges: &'static [(u8, u8)],
    pub values: &'static [(&'static str, u32)],
}

#[derive(Debug, PartialEq)]
pub struct DataFormat {
    /// XML `DataFormatName`: `FMT_NUM_F32`, `FMT_NUM_PK2_F16` …
    pub name: &'static str,
    /// XML `DataType`: `float`, `integer`, `bits`, `descriptor`.
    pub data_type: &'static str,
    pub components: u16,
}

impl Cond {
    /// Its value for an encoding's field values; a condition holds where it is not 0.
    pub fn eval(&self, fields: &[u32]) -> u64 {
        let (op, args) = match self {
            Cond::True => return 1,
            Cond::Lit(value) => return *value,
            Cond::Field(at) => return fields.get(*at as usize).copied().unwrap_or(0) as u64,
            Cond::Op(op, args) => (op, args),
        };
        let a = args.first().map_or(0, |x| x.eval(fields));
        let b = || args.get(1).map_or(0, |x| x.eval(fields));
        match op {
            CondOp::And => (a != 0 && b() != 0) as u64,
            CondOp::Or => (a != 0 || b() != 0) as u64,
            CondOp::Not => (a == 0) as u64,
            CondOp::Eq => (a == b()) as u64,
            CondOp::Ne => (a != b()) as u64,
            CondOp::Lt => (a < b()) as u64,
            CondOp::Le => (a <= b()) as u64,
            CondOp::Gt => (a > b()) as u64,
            CondOp::Ge => (a >= b()) as u64,
            CondOp::Add => a.wrapping_add(b()),
            CondOp::Sub => a.wrapping_sub(b()),
            CondOp::Mul => a.wrapping_mul(b()),
            CondOp::Div => a.checked_div(b()).unwrap_or(0),
            CondOp::Mod => a.checked_rem(b()).unwrap_or(0),
            CondOp::BitAnd => a & b(),
            CondOp::BitOr => a | b(),
            CondOp::BitXor => a ^ b(),
            // A count too great for the type shifts everything out.
            CondOp::Shl => u32::try_from(b()).ok().and_then(|n| a.checked_shl(n)).unwrap_or(0),
            CondOp::Shr => u32::try_from(b()).ok().and_then(|n| a.checked_shr(n)).unwrap_or(0),
        }
    }
}

impl Field {
    pub fn width(&self) -> u32 {
        self.ranges.iter().map(|r| r.1 as u32).sum()
    }

    /// The field's value in an encoded instruction.
    pub fn extract(&self, bits: u128) -> u32 {
        let mut value = 0;
        let mut at = 0;
        for &(offset, count) in self.ranges {
            value |= ((bits >> offset) as u32 & low_mask(count)) << at;
            at += count;
        }
        value
    }

    /// `bits` with this field set to the low bits of `value`.
    pub fn insert(&self, bits: u128, value: u32) -> u128 {
        let mut out = bits;
        let mut at = 0;
        for &(offset, count) in self.ranges {
            let mask = low_mask(count);
            out &= !((mask as u128) << offset);
            out |= (((value >> at) & mask) as u128) << offset;
            at += count;
        }
        out
    }
}

fn low_mask(count: u8) -> u32 {
    if count >= 32 { u32::MAX } else { (1 << count) - 1 }
}

impl DataFormat {
    /// A bit a lane.
    pub fn is_lane_mask(&self) -> bool {
        matches!(self.name, "FMT_NUM_M64" | "FMT_NUM_M32")
    }
}

impl ArchTable {
    pub fn instruction(&self, name: &str) -> Option<&Instruction> {
        self.instructions.iter().find(|i| i.name == name || i.aliases.contains(&name))
    }

    pub fn entries_of(&self, inst: &Instruction) -> &'static [Entry] {
        &self.entries[inst.entries.0 as usize..][..inst.entries.1 as usize]
    }
}
