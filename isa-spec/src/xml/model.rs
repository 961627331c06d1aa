//! The typed model of an ISA document: one struct an element, in the schema's words (AMD XML ISA
//! specification).

use crate::source::Span;

#[derive(Debug, Clone, Default, PartialEq)]
pub struct Spec {
    pub document: Document,
    pub architecture: Architecture,
    pub encodings: Vec<Encoding>,
    pub instructions: Vec<Instruction>,
    pub formats: Vec<DataFormat>,
    pub operand_types: Vec<OperandType>,
    pub functional_groups: Vec<FunctionalGroup>,
}

/// `Document`: about the file itself.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Document {
    pub copyright: String,
    pub sensitivity: String,
    pub license: String,
    pub release_date: String,
    pub schema_version: String,
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct Architecture {
    pub name: String,
    pub id: Option<u32>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Encoding {
    pub name: String,
    pub order: i32,
    pub bits: u16,
    pub mask: u128,
    pub identifiers: Vec<u128>,
    pub conditions: Vec<Condition>,
    pub description: String,
    pub fields: Vec<Field>,
    pub span: Span,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Condition {
    pub name: String,
    pub expr: Option<CondExpr>,
}

/// A node of a condition's tree: `op type`, `id val` or `lit val`, each possibly with a type mark (`ty` > `t
/// base size`).
#[derive(Debug, Clone, PartialEq)]
pub enum CondExpr {
    Op { op: String, args: Vec<CondExpr>, ty: Option<TypeMark> },
    Id { name: String, ty: Option<TypeMark> },
    Lit { value: u64, ty: Option<TypeMark> },
}

/// `t base="U" size="1"`.
#[derive(Debug, Clone, PartialEq)]
pub struct TypeMark {
    pub base: String,
    pub size: Option<u32>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Field {
    pub name: String,
    pub conditional: bool,
    pub description: String,
    /// Least significant first (XML `Range Order`).
    pub ranges: Vec<Range>,
    /// Named values of a partitioned operand type's field.
    pub values: Vec<PredefinedValue>,
    pub signedness: Option<String>,
    pub span: Span,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Range {
    pub bit_count: u16,
    pub bit_offset: u16,
    /// XML `Padding`: constant bits that the value has and the microcode has not (SBASE: an even SGPR without
    /// its low bit). The tables leave it out: register fields count single registers by their width (see
    /// `Inst` in the simulator).
    pub padding: u16,
}

#[derive(Debug, Clone, PartialEq)]
pub struct PredefinedValue {
    pub name: String,
    pub description: String,
    pub value: u32,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Instruction {
    pub name: String,
    pub aliases: Vec<String>,
    pub description: String,
    pub flags: Flags,
    pub encodings: Vec<InstructionEncoding>,
    pub group: String,
    pub subgroups: Vec<String>,
    pub span: Span,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Flags {
    pub branch: bool,
    pub conditional_branch: bool,
    pub indirect_branch: bool,
    pub terminator: bool,
    pub immediately_executed: bool,
}

#[derive(Debug, Clone, PartialEq)]
pub struct InstructionEncoding {
    pub encoding: String,
    pub condition: String,
    pub opcode: u32,
    pub operands: Vec<Operand>,
    pub span: Span,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Operand {
    pub field: Option<String>,
    pub format: String,
    pub ty: String,
    /// In bits.
    pub size: u16,
    pub input: bool,
    pub output: bool,
    pub implicit: bool,
    pub in_microcode: bool,
    pub order: u32,
    pub span: Span,
}

#[derive(Debug, Clone, PartialEq)]
pub struct DataFormat {
    pub name: String,
    pub description: String,
    /// `float`, `integer`, `bits`, `descriptor`.
    pub data_type: String,
    /// `BitCount`; AMD's schema document does not have it.
    pub bits: Option<u32>,
    pub components: u16,
    pub fields: Vec<Field>,
    pub span: Span,
}

#[derive(Debug, Clone, PartialEq)]
pub struct OperandType {
    pub name: String,
    pub partitioned: bool,
    pub values: Vec<PredefinedValue>,
    pub subtypes: Vec<String>,
    /// The parts of a partitioned type.
    pub fields: Vec<Field>,
    pub description: String,
    pub span: Span,
}

#[derive(Debug, Clone, PartialEq)]
pub struct FunctionalGroup {
    pub name: String,
    pub description: String,
}
