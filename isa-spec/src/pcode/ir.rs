//! Typed semantics: the checker's output, which the reference evaluator executes and the macro lowers. Names
//! are resolved, every expression has a type, every conversion is explicit, and calls of other instructions,
//! functions and lambdas are expanded inline.
//!
//! Values are bit patterns of at most 128 bits ([`Ty::width`]); the type determines their interpretation.

pub use crate::pcode::builtins::{Builtin, Control, Pure};
use crate::source::Span;
pub use crate::tables::Role;

/// The type of a value. `B` (raw bits) is allowed in bitwise operations, shifts, slices and concatenation; in
/// arithmetic and comparison it acts as `U` of the same width.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Ty {
    /// Raw bits of a width.
    B(u16),
    /// Unsigned integer of a width.
    U(u16),
    /// Two's complement integer of a width.
    I(u16),
    /// IEEE binary16.
    F16,
    /// bfloat16.
    BF16,
    /// IEEE binary32.
    F32,
    /// IEEE binary64.
    F64,
    /// 8-bit float E4M3 (OCP).
    FP8,
    /// 8-bit float E5M2 (OCP).
    BF8,
}

/// As written in a view.
impl std::fmt::Display for Ty {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Ty::B(width) => write!(f, "b{width}"),
            Ty::U(width) => write!(f, "u{width}"),
            Ty::I(width) => write!(f, "i{width}"),
            Ty::F16 => f.write_str("f16"),
            Ty::BF16 => f.write_str("bf16"),
            Ty::F32 => f.write_str("f32"),
            Ty::F64 => f.write_str("f64"),
            Ty::FP8 => f.write_str("fp8"),
            Ty::BF8 => f.write_str("bf8"),
        }
    }
}

/// Index of a [`Local`] in [`Semantics::locals`].
pub type LocalId = u32;

/// The semantics of one instruction.
#[derive(Debug, Clone, PartialEq)]
pub struct Semantics {
    /// The names that the block lists, in upper case.
    pub names: Vec<String>,
    /// How often the body runs; set by the shape pass.
    pub shape: Shape,
    /// Variables, including those of expanded calls; [`LocalId`] indexes them.
    pub locals: Vec<Local>,
    /// The statements, with every call expanded.
    pub body: Vec<Stmt>,
    /// The operands and state that the body uses; set by the shape pass.
    pub uses: Uses,
    /// Float arithmetic rounds to nearest even and keeps denormals, whatever MODE says: another unit than the vector
    /// ALU performs it. Set by the shape pass.
    pub ignores_mode: bool,
    /// The definitions for some architectures only that the body uses: it has another meaning where they are
    /// others.
    pub definitions: std::collections::BTreeSet<Definition>,
    /// Source text of the block's body with template placeholders filled in, for documentation and `isa
    /// show`.
    pub text: String,
    /// The block in its pseudocode file.
    pub span: Span,
}

/// A function, record or called instruction that is limited to architectures.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Definition {
    /// What it defines.
    pub kind: DefinitionKind,
    /// Its name.
    pub name: String,
    /// The whole definition.
    pub span: Span,
}

/// What a [`Definition`] defines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[expect(missing_docs, reason = "the variants say what they are")]
pub enum DefinitionKind {
    Function,
    Record,
    Instruction,
}

/// How often a body runs, and on what.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Shape {
    /// Once per wave, on scalar operands.
    Scalar,
    /// Once per active lane, each lane independently.
    Lane,
    /// Once per wave, accessing lanes explicitly (`VGPR[lane][reg]`, whole EXEC …).
    Wave,
}

/// A variable of a body.
#[derive(Debug, Clone, PartialEq)]
pub struct Local {
    /// Name as declared.
    pub name: String,
    /// Type of its value, or of each element.
    pub ty: Ty,
    /// `Some(n)` for `declare x : 32'B[n]`.
    pub len: Option<u32>,
}

/// The operands, state and memory that a body reads and writes, and whether it calls control builtins.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Uses {
    /// Operands read by value.
    pub reads: std::collections::BTreeSet<Role>,
    /// Operands assigned, fully or partially.
    pub writes: std::collections::BTreeSet<Role>,
    /// Operands whose register number, not value, the body reads (`SRC0`, `VDST`, `indexOf(SADDR)`).
    pub indexed: std::collections::BTreeSet<Role>,
    /// State read.
    pub state_reads: std::collections::BTreeSet<State>,
    /// State assigned.
    pub state_writes: std::collections::BTreeSet<State>,
    /// Encoding fields read as raw values (`OFFSET`, `NEG`, `OPSEL` …).
    pub fields: std::collections::BTreeSet<FieldName>,
    /// Assigns registers by number (`VGPR[lane][reg]`).
    pub registers: bool,
    /// Loads from any address space.
    pub memory_read: bool,
    /// Stores to any address space.
    pub memory_write: bool,
    /// Formats with float arithmetic, rounding or conversion that depends on MODE.
    pub float: std::collections::BTreeSet<Ty>,
    /// Calls a [`Control`] builtin.
    pub control: bool,
}

/// A statement.
#[derive(Debug, Clone, PartialEq)]
#[expect(missing_docs, reason = "the variants say what their fields are")]
pub enum Stmt {
    /// Stores a value, whose type has the width of the place.
    Assign { place: Place, value: Expr, span: Span },
    /// Runs the first arm whose condition, a `U(1)`, is 1, else `otherwise`.
    If { arms: Vec<(Expr, Vec<Stmt>)>, otherwise: Vec<Stmt>, span: Span },
    /// `for var in from : to do`, both bounds inclusive, counting up; `var` is a local. Does not run if `from
    /// > to` (signed).
    For { var: LocalId, from: Expr, to: Expr, body: Vec<Stmt>, span: Span },
    /// Repeats while the condition, a `U(1)`, is 1.
    While { cond: Expr, body: Vec<Stmt>, span: Span },
    /// Ends the body (in lane shape, for this lane). Does not occur in expanded calls.
    Return { span: Span },
    /// Calls a builtin for its side effects and discards its value.
    Call { builtin: Control, args: Vec<Expr>, span: Span },
}

/// A place expression: something that can be assigned.
#[derive(Debug, Clone, PartialEq)]
pub struct Place {
    /// The place without its type.
    pub kind: PlaceKind,
    /// Type of the value stored.
    pub ty: Ty,
}

/// Kinds of [`Place`].
#[derive(Debug, Clone, PartialEq)]
#[expect(missing_docs, reason = "the variants say what their fields are")]
pub enum PlaceKind {
    /// A variable that is not an array.
    Local(LocalId),
    /// Element of an array local; a store with an index out of range is ignored.
    Element(LocalId, Box<Expr>),
    /// The whole operand, interpreted as `ty`. A narrower `ty` keeps the upper bits of a register unless the
    /// operand itself is that narrow.
    Operand(Role),
    /// Architectural state; some is read-only.
    State(State),
    /// Bits `[lo + width - 1 : lo]` of `base` (`width` = `ty.width()`); the other bits keep their value.
    Slice { base: Box<Place>, lo: Box<Expr> },
    /// `VGPR[lane][reg]`, 32 bits.
    Vgpr { lane: Box<Expr>, reg: Box<Expr> },
    /// `SGPR[reg]`, 32 bits.
    Sgpr { reg: Box<Expr> },
    /// `ty.width()` bits of memory starting at a byte address.
    Mem { space: Space, addr: Box<Expr> },
    /// `{ hi, …, lo } = …`: distributes the value's bits over the places.
    Concat(Vec<Place>),
}

/// An expression with its type and span.
#[derive(Debug, Clone, PartialEq)]
pub struct Expr {
    /// The expression without type and span.
    pub kind: ExprKind,
    /// Type of the value.
    pub ty: Ty,
    /// Source location; for an expanded call, in the callee.
    pub span: Span,
}

/// Kinds of [`Expr`].
#[derive(Debug, Clone, PartialEq)]
#[expect(missing_docs, reason = "the variants say what their fields are")]
pub enum ExprKind {
    /// A constant: the bit pattern of `ty`.
    Const(u128),
    /// A variable that is not an array.
    Local(LocalId),
    /// An element of an array; an index out of range reads zero.
    Element(LocalId, Box<Expr>),
    /// The low `ty.width()` bits of the operand's value.
    Operand(Role),
    /// The register number in the operand's encoding field: for a VGPR 0..255 (`VGPR[lane][SRC0.u32]`), for
    /// an SGPR its number.
    OperandIndex(Role),
    /// Dword `index` of a multi-register operand in `lane` (of a VGPR, or of the constant or SGPR encoded):
    /// `S2` of WMMA. `B(32)`.
    OperandLane { role: Role, lane: Box<Expr>, index: Box<Expr> },
    /// A raw encoding field.
    Field(FieldName),
    /// Architectural state.
    State(State),
    /// Bits `[lo + ty.width() - 1 : lo]`; bits beyond the base read zero.
    Slice { base: Box<Expr>, lo: Box<Expr> },
    /// A unary operator.
    Unary(UnOp, Box<Expr>),
    /// A binary operator. The operands have been converted: to the same type for arithmetic, bitwise
    /// operators and comparison, to `U(32)` for shift counts.
    Binary(BinOp, Box<Expr>, Box<Expr>),
    /// `c ? a : b`: the condition is a `U(1)`, both arms have type `ty`, and only the chosen arm is
    /// evaluated.
    Select(Box<Expr>, Box<Expr>, Box<Expr>),
    /// Conversion of the value: sign or zero extension, truncation, float <-> int, float <-> float;
    /// docs/pseudocode.md lists the pairs of types.
    Convert(Box<Expr>),
    /// Reinterpretation of the bits as another type: a narrower type takes the low bits, a wider one
    /// zero-extends.
    Bits(Box<Expr>),
    /// A builtin with its arguments.
    Call(Builtin, Vec<Expr>),
    /// `VGPR[lane][reg]`, 32 bits.
    Vgpr { lane: Box<Expr>, reg: Box<Expr> },
    /// `SGPR[reg]`, 32 bits.
    Sgpr { reg: Box<Expr> },
    /// `ty.width()` bits of memory starting at a byte address.
    Mem { space: Space, addr: Box<Expr> },
    /// `{ hi, …, lo }`: most significant first.
    Concat(Vec<Expr>),
}

/// Unary operators.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum UnOp {
    /// Negates an integer (two's complement) or flips the sign of a float.
    Neg,
    /// `~`: inverts every bit.
    Not,
    /// `!`: 1 if zero, as a `U(1)`.
    LogicalNot,
}

/// Binary operators.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum BinOp {
    /// Wrapping for integers.
    Add,
    /// Wrapping for integers.
    Sub,
    /// Wrapping for integers.
    Mul,
    /// Integers round toward zero; division by zero returns all ones (unsigned) or -1 (signed). Floats follow
    /// IEEE.
    Div,
    /// Integer remainder with the sign of the dividend; division by zero returns the dividend.
    Rem,
    /// `a ** b`.
    Pow,
    /// `&`.
    And,
    /// `|`.
    Or,
    /// `^`.
    Xor,
    /// `<<`; a count at or beyond the width returns 0.
    Shl,
    /// `>>`, logical or arithmetic depending on the left type; a count beyond the width returns 0 or all sign
    /// bits.
    Shr,
    /// `==`. Comparisons return a `U(1)`. Float comparisons are false with a NaN, except `Ne` (`<>` of
    /// ordered values is `Lg`).
    Eq,
    /// `!=`; true with a NaN.
    Ne,
    /// `<`.
    Lt,
    /// `<=`.
    Le,
    /// `>`.
    Gt,
    /// `>=`.
    Ge,
    /// `<>`: less or greater; false with a NaN.
    Lg,
    /// `&&` on `U(1)`; the right side is evaluated only if needed.
    LogicalAnd,
    /// `||` on `U(1)`; the right side is evaluated only if needed.
    LogicalOr,
}

/// The address space of `MEM[…]`, chosen by the checker from the instruction's encoding family. `LDS[…]` is
/// always `Lds`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Space {
    /// Device memory, addressed by 64-bit byte addresses.
    Global,
    /// Global, LDS or scratch, selected by the aperture of the address.
    Flat,
    /// The workgroup's local data share.
    Lds,
    /// The lane's private memory.
    Scratch,
    /// Buffer access. An address from 2^63 on means out of range, as bodies say by one of all ones: loads return 0, stores
    /// and atomics do nothing.
    Buffer,
    /// Scalar memory: global, dword aligned.
    Scalar,
    /// Data memory of a word-addressed machine (one 32-bit word per address).
    Word,
}

/// Architectural state that a body names directly.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum State {
    /// The EXEC mask: 64 bits, of which wave32 zeroes the upper half. `EXEC.u64[laneId]` is a slice of it.
    Exec,
    /// EXEC of lanes 0..31.
    ExecLo,
    /// EXEC of lanes 32..63.
    ExecHi,
    /// The VCC register itself (scalar instructions). In vector bodies `VCC` is [`Role::Vcc`].
    Vcc,
    /// VCC of lanes 0..31.
    VccLo,
    /// VCC of lanes 32..63.
    VccHi,
    /// `U(1)`: VCC is zero.
    Vccz,
    /// `U(1)`: EXEC is zero.
    Execz,
    /// `U(1)`: the scalar condition code.
    Scc,
    /// 32-bit M0 register.
    M0,
    /// Byte address of this instruction; an assignment is a jump.
    Pc,
    /// Size in bytes of this instruction.
    InstSize,
    /// 32-bit MODE register.
    Mode,
    /// STATUS register.
    Status,
    /// Index of this lane, 0..31 or 0..63 (lane shape).
    LaneId,
    /// `U(1)`: the wave has 32 lanes.
    Wave32,
    /// `U(1)`: the wave has 64 lanes.
    Wave64,
    /// 32 or 64.
    WaveSize,
    /// Number of VGPRs of the wave.
    VgprSize,
    /// Index of the wave in its workgroup.
    WaveId,
    /// Bytes of LDS of the workgroup.
    LdsSize,
    /// `SCRATCH_BASE`, `U(64)`.
    ScratchBase,
    /// Base address of the LDS aperture, `U(64)`.
    SharedBase,
    /// Base address of the scratch aperture, `U(64)`.
    PrivateBase,
    /// `TBA`, `U(64)`: address of the trap handler.
    TrapBase,
}

/// Interned name of an encoding field or modifier, the same for all architectures (see `pcode/builtins.rs`):
/// `OFFSET`, `OFFSET0`, `OFFSET1`, `NEG`, `ABS`, `OPSEL`, `OPSEL_HI`, `NEG_HI`, `CLAMP`, `OMOD`, `GLC`,
/// `IDXEN`, `OFFEN`, `FORMAT`, `SIMM16`, `SIMM32`, `WAIT_EXP` …
pub type FieldName = &'static str;

impl Ty {
    /// Returns the width in bits.
    pub fn width(self) -> u32 {
        match self {
            Ty::B(w) | Ty::U(w) | Ty::I(w) => w as u32,
            Ty::F16 | Ty::BF16 => 16,
            Ty::F32 => 32,
            Ty::F64 => 64,
            Ty::FP8 | Ty::BF8 => 8,
        }
    }

    /// Returns whether the type is a float of any format.
    pub fn is_float(self) -> bool {
        !matches!(self, Ty::B(_) | Ty::U(_) | Ty::I(_))
    }

    /// Returns whether the type is a signed integer.
    pub fn is_signed(self) -> bool {
        matches!(self, Ty::I(_))
    }
}
