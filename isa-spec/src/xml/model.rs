//! The typed model of an ISA document: one struct per element, named as in AMD's XML ISA schema. The model
//! does not interpret elements for the simulator.

use crate::source::Span;

/// A whole document (`Spec`).
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Spec {
    /// `Document`.
    pub document: Document,
    /// `Architecture`.
    pub architecture: Architecture,
    /// `Encodings`.
    pub encodings: Vec<Encoding>,
    /// `Instructions`.
    pub instructions: Vec<Instruction>,
    /// `DataFormats`.
    pub formats: Vec<DataFormat>,
    /// `OperandTypes`.
    pub operand_types: Vec<OperandType>,
    /// `FunctionalGroups`; empty if the document has none.
    pub functional_groups: Vec<FunctionalGroup>,
}

/// `Document`: metadata of the file.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Document {
    /// `Copyright`.
    pub copyright: String,
    /// `Sensitivity`.
    pub sensitivity: String,
    /// `License`.
    pub license: String,
    /// `ReleaseDate`, as written.
    pub release_date: String,
    /// `SchemaVersion`.
    pub schema_version: String,
}

/// `Architecture`: the architecture that the document describes.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Architecture {
    /// `ArchitectureName`: `AMD RDNA 4` …
    pub name: String,
    /// `ArchitectureId`.
    pub id: Option<u32>,
}

/// `Encoding`: a microcode format.
#[derive(Debug, Clone, PartialEq)]
pub struct Encoding {
    /// `EncodingName`.
    pub name: String,
    /// Attribute `Order`: decoding tries low orders first.
    pub order: i32,
    /// `BitCount`: at most 128.
    pub bits: u16,
    /// `EncodingIdentifierMask`: the bits that `identifiers` specify.
    pub mask: u128,
    /// The masked bits that only encoders need: decoders take any value (`IgnoredField` in overlays).
    pub ignored: u128,
    /// `EncodingIdentifiers`: values of the masked bits.
    pub identifiers: Vec<u128>,
    /// `EncodingConditions`.
    pub conditions: Vec<Condition>,
    /// `Description`.
    pub description: String,
    /// `MicrocodeFormat` > `BitMap`.
    pub fields: Vec<Field>,
    /// Start tag of the element.
    pub span: Span,
}

/// `EncodingCondition`.
#[derive(Debug, Clone, PartialEq)]
pub struct Condition {
    /// `ConditionName`.
    pub name: String,
    /// `ConditionExpression`, which AMD's files spell `CondtionExpression`; `None` if it could not be read.
    pub expr: Option<CondExpr>,
}

/// A node of a condition's tree: `op type`, `id val` or `lit val`, each with an optional `ty`, see
/// [`TypeMark`].
#[derive(Debug, Clone, PartialEq)]
#[expect(missing_docs, reason = "the variants say what their fields are")]
pub enum CondExpr {
    /// An operator by its schema name, with its arguments.
    Op { op: String, args: Vec<CondExpr>, ty: Option<TypeMark> },
    /// A field of the encoding.
    Id { name: String, ty: Option<TypeMark> },
    /// A constant.
    Lit { value: u64, ty: Option<TypeMark> },
}

/// The type of a condition node: `t base="U" size="1"`.
#[derive(Debug, Clone, PartialEq)]
pub struct TypeMark {
    /// Type of number: `U` for unsigned.
    pub base: String,
    /// Width in bits.
    pub size: Option<u32>,
}

/// `Field` of a bit map: of an encoding, a data format or a partitioned operand type.
#[derive(Debug, Clone, PartialEq)]
pub struct Field {
    /// `FieldName`.
    pub name: String,
    /// Attribute `IsConditional`.
    pub conditional: bool,
    /// `Description`.
    pub description: String,
    /// `BitLayout`, least significant first (XML `Range Order`).
    pub ranges: Vec<Range>,
    /// `FieldPredefinedValues`: named values of a partitioned operand type's field.
    pub values: Vec<PredefinedValue>,
    /// Attribute `Signedness`.
    pub signedness: Option<String>,
    /// Start tag of the element.
    pub span: Span,
}

/// `Range` of a `BitLayout`: adjacent bits.
#[derive(Debug, Clone, PartialEq)]
pub struct Range {
    /// `BitCount`: at least 1.
    pub bit_count: u16,
    /// `BitOffset` of the lowest bit.
    pub bit_offset: u16,
    /// XML `Padding`: constant bits of the value that the microcode omits (SBASE: an even SGPR without its
    /// low bit). The tables do not have it: register fields count single registers by their width (see `Inst`
    /// in the simulator).
    pub padding: u16,
}

/// A named value of an operand type or a field.
#[derive(Debug, Clone, PartialEq)]
pub struct PredefinedValue {
    /// `Name`: as in assembly.
    pub name: String,
    /// `Description`.
    pub description: String,
    /// `Value`.
    pub value: u32,
}

/// `Instruction`.
#[derive(Debug, Clone, PartialEq)]
pub struct Instruction {
    /// `InstructionName`.
    pub name: String,
    /// `AliasedInstructionNames`.
    pub aliases: Vec<String>,
    /// `Description`.
    pub description: String,
    /// `InstructionFlags`.
    pub flags: Flags,
    /// `InstructionEncodings`.
    pub encodings: Vec<InstructionEncoding>,
    /// `FunctionalGroup` > `Name`; `NOT_ASSIGNED` if there is none.
    pub group: String,
    /// `FunctionalGroup` > `Subgroup`, in document order.
    pub subgroups: Vec<String>,
    /// Start tag of the element.
    pub span: Span,
}

/// `InstructionFlags`; a flag that is absent is false.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Flags {
    /// `IsBranch`.
    pub branch: bool,
    /// `IsConditionalBranch`.
    pub conditional_branch: bool,
    /// `IsIndirectBranch`.
    pub indirect_branch: bool,
    /// `IsProgramTerminator`.
    pub terminator: bool,
    /// `IsImmediatelyExecuted`.
    pub immediately_executed: bool,
}

/// `InstructionEncoding`: an instruction in one encoding.
#[derive(Debug, Clone, PartialEq)]
pub struct InstructionEncoding {
    /// `EncodingName`.
    pub encoding: String,
    /// `EncodingCondition`, by name.
    pub condition: String,
    /// `Opcode`: at most 16 bits.
    pub opcode: u32,
    /// `Operands`, sorted by `order`.
    pub operands: Vec<Operand>,
    /// Start tag of the element.
    pub span: Span,
}

/// `Operand`.
#[derive(Debug, Clone, PartialEq)]
pub struct Operand {
    /// `FieldName`; `None` for an operand without a field.
    pub field: Option<String>,
    /// `DataFormatName`.
    pub format: String,
    /// `OperandType`, by name.
    pub ty: String,
    /// `OperandSize`, in bits.
    pub size: u16,
    /// Attribute `Input`.
    pub input: bool,
    /// Attribute `Output`.
    pub output: bool,
    /// Attribute `IsImplicit`: not written in assembly.
    pub implicit: bool,
    /// Attribute `IsBinaryMicrocodeRequired`; true if absent.
    pub in_microcode: bool,
    /// Attribute `Preserves` of overlays: writing this output keeps the other bits of its register, on
    /// architectures that otherwise clear them.
    pub preserves: bool,
    /// Attribute `Order`: 1-based position in assembly; the element's position if absent.
    pub order: u32,
    /// Start tag of the element.
    pub span: Span,
}

/// `DataFormat`.
#[derive(Debug, Clone, PartialEq)]
pub struct DataFormat {
    /// `DataFormatName`.
    pub name: String,
    /// `Description`.
    pub description: String,
    /// `DataType`: `float`, `integer`, `bits`, `descriptor`.
    pub data_type: String,
    /// `BitCount`; absent from AMD's schema document.
    pub bits: Option<u32>,
    /// `ComponentCount`; 1 if absent.
    pub components: u16,
    /// `DataAttributes` > `BitMap`.
    pub fields: Vec<Field>,
    /// Start tag of the element.
    pub span: Span,
}

/// `OperandType`.
#[derive(Debug, Clone, PartialEq)]
pub struct OperandType {
    /// `OperandTypeName`.
    pub name: String,
    /// Attribute `IsPartitioned`.
    pub partitioned: bool,
    /// `OperandPredefinedValues`.
    pub values: Vec<PredefinedValue>,
    /// `Subtypes`, by name.
    pub subtypes: Vec<String>,
    /// The parts of a partitioned type.
    pub fields: Vec<Field>,
    /// `Description`.
    pub description: String,
    /// Start tag of the element.
    pub span: Span,
}

/// An element of `FunctionalGroups`.
#[derive(Debug, Clone, PartialEq)]
pub struct FunctionalGroup {
    /// `Name`.
    pub name: String,
    /// `Description`.
    pub description: String,
}
