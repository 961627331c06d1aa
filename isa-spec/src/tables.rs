//! The types of an architecture's tables: the description of encodings, fields and operands that the decoder,
//! encoder, assembler, disassembler, interpreter and listing commands share.
//!
//! Tables are built in two ways: [`from_spec`](crate::xml::to_tables) builds them from an XML
//! [`Spec`](crate::xml::model::Spec) at run time (tests, tools), and the macro emits them as `static` data. A
//! test compares the two.

use std::collections::HashMap;

/// Index of an [`Entry`] in [`ArchTable::entries`].
pub type EntryId = u16;

/// Everything the machine-readable ISA says about one architecture.
#[derive(Debug, PartialEq)]
pub struct ArchTable {
    /// Short name, as on the command line: `rdna3`, `rdna3.5`, `rdna4` …
    pub name: &'static str,
    /// XML `ArchitectureName`.
    pub full_name: &'static str,
    /// Microcode formats in document order; [`Entry::enc`] indexes them.
    pub encodings: &'static [Encoding],
    /// Every instruction in document order; [`Entry::inst`] indexes them.
    pub instructions: &'static [Instruction],
    /// One (instruction, encoding) pair each, in XML order.
    pub entries: &'static [Entry],
    /// Operand lists, deduplicated; [`Entry::sig`] points here. Operands in assembly order.
    pub signatures: &'static [&'static [OperandSig]],
    /// XML `OperandTypes`; [`OperandSig::ty`] indexes them.
    pub operand_types: &'static [OperandType],
    /// XML `DataFormats`; [`OperandSig::format`] indexes them.
    pub formats: &'static [DataFormat],
}

/// A microcode format: how an instruction is recognised and where its fields are.
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
    /// The values of the masked bits that identify this encoding.
    pub identifiers: &'static [u128],
    /// Conditions that select among the entries of an opcode; [`Entry::cond`] indexes them.
    pub conditions: &'static [Condition],
    /// In the order of the XML; [`OperandSig::field`] indexes this. At most [`MAX_FIELDS`].
    pub fields: &'static [Field],
    /// Index in `fields` of the opcode field (`OP`; `OPX` in VOPD), if any.
    pub op_field: Option<u8>,
}

/// Upper bound on `Encoding::fields.len()` over all ISAs; structural tests check it.
pub const MAX_FIELDS: usize = 24;

/// A named bit field of an encoding, of at most 32 bits.
#[derive(Debug, PartialEq)]
pub struct Field {
    /// XML `FieldName`: `SRC0`, `VDST`, `OP_SEL`, `IOFFSET` …
    pub name: &'static str,
    /// `(bit offset, bit count)`, least significant part of the value first.
    pub ranges: &'static [(u8, u8)],
    /// The field's value if it is constant in the whole encoding (`ENCODING`, `SEG`, …), else `None`. Outside of
    /// the encoding's mask, it is what encoders write: decoders take any.
    pub fixed: Option<u32>,
}

/// A named condition of an encoding (XML `EncodingConditions`): `default`, `has_lit`, `has_dpp16` …
#[derive(Debug, PartialEq)]
pub struct Condition {
    /// XML `ConditionName`.
    pub name: &'static str,
    /// The condition holds if this evaluates to a non-zero value.
    pub expr: Cond,
}

/// A condition's expression tree, over field values of the encoding (`field` indexes `Encoding::fields`).
#[derive(Debug, PartialEq)]
pub enum Cond {
    /// Always 1.
    True,
    /// A constant.
    Lit(u64),
    /// The value of a field of the encoding.
    Field(u8),
    /// An operator with its arguments: one for [`CondOp::Not`], two for every other.
    Op(CondOp, &'static [Cond]),
}

/// An operator of a condition, on unsigned 64-bit values. Arithmetic wraps, division by 0 returns 0,
/// comparisons and logical operators return 0 or 1.
#[derive(Debug, PartialEq, Eq, Clone, Copy)]
pub enum CondOp {
    /// `==`.
    Eq,
    /// `!=`.
    Ne,
    /// `<`.
    Lt,
    /// `<=`.
    Le,
    /// `>`.
    Gt,
    /// `>=`.
    Ge,
    /// `&&`; the right side is evaluated only if needed.
    And,
    /// `||`; the right side is evaluated only if needed.
    Or,
    /// `!`: 1 for 0, else 0.
    Not,
    /// Wrapping `+`.
    Add,
    /// Wrapping `-`.
    Sub,
    /// Wrapping `*`.
    Mul,
    /// `/`; 0 for a divisor of 0.
    Div,
    /// `%`; 0 for a divisor of 0.
    Mod,
    /// `&`.
    BitAnd,
    /// `|`.
    BitOr,
    /// `^`.
    BitXor,
    /// `<<`; 0 for counts of 64 and above.
    Shl,
    /// Logical `>>`; 0 for counts of 64 and above.
    Shr,
}

/// An instruction with all of its encodings.
#[derive(Debug, PartialEq)]
pub struct Instruction {
    /// Upper case, as in the XML and the manual: `V_ADD_F32`.
    pub name: &'static str,
    /// Properties shared by many instructions.
    pub class: &'static Class,
    /// Its entries, contiguous in [`ArchTable::entries`]: first index and count.
    pub entries: (u16, u16),
}

/// Properties shared by many instructions. Each combination is stored once: an architecture has more than a
/// thousand instructions.
#[derive(Debug, PartialEq, Eq, Hash, Clone, Copy)]
pub struct Class {
    /// Other names (XML `AliasedInstructionNames`), which few instructions have.
    pub aliases: &'static [&'static str],
    /// XML `InstructionFlags`.
    pub flags: InstFlags,
    /// XML name of the functional group: `VALU`, `VMEM` …; `NOT_ASSIGNED` if there is none.
    pub group: &'static str,
    /// First XML functional subgroup, for example `ATOMIC`; `NOT_ASSIGNED` if there is none.
    pub subgroup: &'static str,
}

/// XML `InstructionFlags`.
#[derive(Debug, PartialEq, Eq, Hash, Clone, Copy, Default)]
pub struct InstFlags {
    /// `IsBranch`.
    pub branch: bool,
    /// `IsConditionalBranch`.
    pub conditional_branch: bool,
    /// `IsIndirectBranch`: the target is in a register.
    pub indirect_branch: bool,
    /// `IsProgramTerminator`: the wave ends.
    pub terminator: bool,
    /// `IsImmediatelyExecuted`.
    pub immediately_executed: bool,
}

/// An instruction in one encoding, under one of the encoding's conditions.
#[derive(Debug, PartialEq)]
pub struct Entry {
    /// Index in [`ArchTable::instructions`].
    pub inst: u16,
    /// Index in [`ArchTable::encodings`].
    pub enc: u8,
    /// Index in the encoding's `conditions`: the condition under which this entry applies.
    pub cond: u8,
    /// Value of the encoding's opcode field.
    pub opcode: u16,
    /// Index in [`ArchTable::signatures`].
    pub sig: u16,
}

/// An operand of an entry.
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
    /// XML `Input`: the instruction reads it.
    pub input: bool,
    /// XML `Output`: the instruction writes it.
    pub output: bool,
    /// Not written in assembly.
    pub implicit: bool,
    /// XML `IsBinaryMicrocodeRequired`.
    pub in_microcode: bool,
    /// The write keeps the other bits of the register, where the architecture clears them.
    pub preserves: bool,
    /// The name by which pseudocode refers to it.
    pub role: Role,
}

/// The name of an operand in pseudocode, assigned from the XML by one rule (`roles.rs`): outputs are D0, D1
/// in order; inputs are S0, S1, … in order, by *semantic* order; see each variant.
#[derive(Debug, PartialEq, Eq, Hash, Clone, Copy, PartialOrd, Ord)]
pub enum Role {
    /// First data result (VDST, SDST, SDATA, VDATA of a load; the mask of a compare). Also an input if the
    /// instruction first reads it (FMAC, S_ADDK), such as VDATA of a buffer or image atomic, which holds the
    /// data and then the result.
    D0,
    /// Second data result (second half of VOPD is *not* this; SDST of VOP3SD is [`Role::Vcc`]).
    D1,
    /// First source.
    S0,
    /// Second source.
    S1,
    /// Third source.
    S2,
    /// Fourth source.
    S3,
    /// Fifth source, of instructions that run once per wave.
    S4,
    /// A lane mask operand next to the data: carry in/out, condition of cndmask. Pseudocode calls it `VCC`.
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
    /// DATA1 of DS: the second data operand.
    Data1,
    /// A register fixed by the instruction (EXEC, SCC, M0 …), which pseudocode names as state. V_CMPX writes
    /// EXEC this way in all forms.
    State,
    /// Destination of the second half of VOPD (VDSTY). That half is handled as an instruction of its own.
    Y0Dst,
    /// First source of the second half of VOPD (SRCY0).
    Y0Src0,
    /// Second source of the second half of VOPD (VSRCY1).
    Y0Src1,
    /// Third source of the second half of VOPD3 (VSRCY2).
    Y0Src2,
    /// Listed by the XML, but without data flow in the simulator (sampler, export targets …).
    Other,
}

/// The values that an operand field can encode: a register class, inline constants, or named bits.
#[derive(Debug, PartialEq)]
pub struct OperandType {
    /// XML `OperandTypeName`: `OPR_SRC`, `OPR_VGPR` …
    pub name: &'static str,
    /// Assembly name and encoded value, in XML order.
    pub values: &'static [(&'static str, u32)],
    /// XML `Subtypes`: names of the operand types that this one includes.
    pub subtypes: &'static [&'static str],
    /// Fields of a partitioned type (`OPR_WAITCNT`, `OPR_HWREG`, `OPR_DELAY` …); empty otherwise.
    pub parts: &'static [Part],
}

/// A named bit field of a partitioned operand type.
#[derive(Debug, PartialEq)]
pub struct Part {
    /// XML `FieldName`.
    pub name: &'static str,
    /// `(bit offset, bit count)` in the operand's value, least significant part first.
    pub ranges: &'static [(u8, u8)],
    /// Assembly name and value, in XML order; empty if the part has no named values.
    pub values: &'static [(&'static str, u32)],
}

/// The interpretation of an operand's bits.
#[derive(Debug, PartialEq)]
pub struct DataFormat {
    /// XML `DataFormatName`: `FMT_NUM_F32`, `FMT_NUM_PK2_F16` …
    pub name: &'static str,
    /// XML `DataType`: `float`, `integer`, `bits`, `descriptor`.
    pub data_type: &'static str,
    /// XML `ComponentCount`: number of components, 1 unless the format is packed.
    pub components: u16,
}

impl Cond {
    /// Evaluates the expression for the field values of an encoding, indexed like [`Encoding::fields`]; a
    /// missing field reads 0. A condition holds if the result is not 0.
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
            // A count that does not fit the type shifts all bits out.
            CondOp::Shl => u32::try_from(b()).ok().and_then(|n| a.checked_shl(n)).unwrap_or(0),
            CondOp::Shr => u32::try_from(b()).ok().and_then(|n| a.checked_shr(n)).unwrap_or(0),
        }
    }
}

impl Field {
    /// Returns the width of the value in bits, over all ranges.
    pub fn width(&self) -> u32 {
        self.ranges.iter().map(|r| r.1 as u32).sum()
    }

    /// Extracts the field's value from an encoded instruction.
    pub fn extract(&self, bits: u128) -> u32 {
        let mut value = 0;
        let mut at = 0;
        for &(offset, count) in self.ranges {
            value |= ((bits >> offset) as u32 & low_mask(count)) << at;
            at += count;
        }
        value
    }

    /// Returns `bits` with this field set to the low bits of `value`.
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
    /// Returns whether the operand is a lane mask: one bit per lane.
    pub fn is_lane_mask(&self) -> bool {
        matches!(self.name, "FMT_NUM_M64" | "FMT_NUM_M32")
    }
}

impl Instruction {
    /// [`Class::aliases`].
    pub fn aliases(&self) -> &'static [&'static str] {
        self.class.aliases
    }

    /// [`Class::flags`].
    pub fn flags(&self) -> InstFlags {
        self.class.flags
    }

    /// [`Class::group`].
    pub fn group(&self) -> &'static str {
        self.class.group
    }

    /// [`Class::subgroup`].
    pub fn subgroup(&self) -> &'static str {
        self.class.subgroup
    }
}

impl ArchTable {
    /// Returns the instruction with this name or alias. Names are upper case and compared case-sensitively.
    pub fn instruction(&self, name: &str) -> Option<&Instruction> {
        self.instructions.iter().find(|i| i.name == name || i.aliases().contains(&name))
    }

    /// Returns the entries of an instruction of this table.
    pub fn entries_of(&self, inst: &Instruction) -> &'static [Entry] {
        &self.entries[inst.entries.0 as usize..][..inst.entries.1 as usize]
    }
}

/// The instructions of some architectures by name or alias, for many lookups.
pub struct NameIndex(HashMap<(&'static str, &'static str), usize>);

impl NameIndex {
    /// Creates the index.
    pub fn of(tables: &[&'static ArchTable]) -> NameIndex {
        let mut index = HashMap::new();
        for table in tables {
            for (at, inst) in table.instructions.iter().enumerate() {
                for name in [inst.name].iter().chain(inst.aliases()) {
                    index.entry((table.name, *name)).or_insert(at);
                }
            }
        }
        NameIndex(index)
    }

    /// As [`ArchTable::instruction`], for one of the indexed tables.
    pub fn instruction(&self, table: &'static ArchTable, name: &str) -> Option<&'static Instruction> {
        self.0.get(&(table.name, name)).map(|at| &table.instructions[*at])
    }

    /// Returns the index in [`ArchTable::instructions`] of the instruction with this name, excluding aliases.
    pub fn named(&self, table: &'static ArchTable, name: &str) -> Option<usize> {
        self.0.get(&(table.name, name)).copied().filter(|at| table.instructions[*at].name == name)
    }
}
