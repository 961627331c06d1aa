//! Typed semantics: what the checker makes of a pseudocode body, what the reference evaluator walks and the
//! macro lowers. Names are resolved, every expression has its type, every conversion is explicit, and calls
//! of other instructions, functions and lambdas have been expanded in place.
//!
//! Values are bit patterns of at most 128 bits ([`Ty::width`]); a signed or float type says how to read them.

pub use crate::pcode::builtins::{Builtin, Control, Pure};
use crate::source::Span;
pub use crate::tables::Role;

/// A value's type. `B` (raw bits) takes part in bitwise operations, shifts, slices and concatenation; in
/// arithmetic and comparison it counts as `U` of the same width.
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

/// Index of a [`Local`] in [`Semantics::locals`].
pub type LocalId = u32;

/// One instruction's meaning.
#[derive(Debug, Clone, PartialEq)]
pub struct Semantics {
    /// Every name the block lists, upper case.
    pub names: Vec<String>,
    /// How often the body runs; filled by the shape pass.
    pub shape: Shape,
    /// Variables, those of expanded calls included; [`LocalId`] indexes them.
    pub locals: Vec<Local>,
    /// The statements, with every call expanded.
    pub body: Vec<Stmt>,
    /// What the body touches; filled by the shape pass.
    pub uses: Uses,
    /// Source text of the block's body with the holes of its templates filled, for documentation and `isa
    /// show`.
    pub text: String,
    /// The block in its pseudocode file.
    pub span: Span,
}

/// How often a body runs, and on what.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Shape {
    /// Once a wave, on scalar operands.
    Scalar,
    /// Once per active lane, lanes independent.
    Lane,
    /// Once a wave, reaching into lanes itself (`VGPR[lane][reg]`, whole EXEC …).
    Wave,
}

/// A variable of a body.
#[derive(Debug, Clone, PartialEq)]
pub struct Local {
    /// As declared.
    pub name: String,
    /// Type of its value, or of each element.
    pub ty: Ty,
    /// `Some(n)` for `declare x : 32'B[n]`.
    pub len: Option<u32>,
}

/// What a body reads, writes and calls.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Uses {
    /// Operands read by value.
    pub reads: std::collections::BTreeSet<Role>,
    /// Operands assigned, in whole or in part.
    pub writes: std::collections::BTreeSet<Role>,
    /// Operands whose number, not value, the body reads (`SRC0`, `VDST`, `indexOf(SADDR)`).
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
    /// Any float arithmetic, rounding or conversion that depends on MODE, by format.
    pub float: std::collections::BTreeSet<Ty>,
    /// Calls a [`Control`] builtin.
    pub control: bool,
}

/// A statement.
#[derive(Debug, Clone, PartialEq)]
#[expect(missing_docs, reason = "the variants say what their fields are")]
pub enum Stmt {
    /// Stores a value; its type has the place's width.
    Assign { place: Place, value: Expr, span: Span },
    /// The first arm whose condition, a `U(1)`, is 1, else `otherwise`.
    If { arms: Vec<(Expr, Vec<Stmt>)>, otherwise: Vec<Stmt>, span: Span },
    /// `for var in from : to do`, both ends included; counts up; `var` is a local. Empty if `from > to`
    /// (signed).
    For { var: LocalId, from: Expr, to: Expr, body: Vec<Stmt>, span: Span },
    /// Repeats while the condition, a `U(1)`, is 1.
    While { cond: Expr, body: Vec<Stmt>, span: Span },
    /// Ends the body (of this lane, in lane shape). Expanded calls never contain it.
    Return { span: Span },
    /// A builtin called for its effect; a value that it has is dropped.
    Call { builtin: Control, args: Vec<Expr>, span: Span },
}

/// Something that can be assigned. `ty` is the type of the value stored.
#[derive(Debug, Clone, PartialEq)]
pub struct Place {
    /// What is assigned.
    pub kind: PlaceKind,
    /// Type of the value stored.
    pub ty: Ty,
}

/// The kinds of [`Place`].
#[derive(Debug, Clone, PartialEq)]
#[expect(missing_docs, reason = "the variants say what their fields are")]
pub enum PlaceKind {
    /// A variable that is not an array.
    Local(LocalId),
    /// Element of an array local; an index out of range is ignored.
    Element(LocalId, Box<Expr>),
    /// The whole operand, read as `ty`; a narrower `ty` keeps the upper bits of a register unless the operand
    /// is that narrow.
    Operand(Role),
    /// Architectural state; some is read-only.
    State(State),
    /// Bits `[lo + width - 1 : lo]` of `base` (`width` = `ty.width()`); the other bits keep their value.
    Slice { base: Box<Place>, lo: Box<Expr> },
    /// `VGPR[lane][reg]`, 32 bits.
    Vgpr { lane: Box<Expr>, reg: Box<Expr> },
    /// `SGPR[reg]`, 32 bits.
    Sgpr { reg: Box<Expr> },
    /// Memory from a byte address on, `ty.width()` bits.
    Mem { space: Space, addr: Box<Expr> },
    /// `{ hi, …, lo } = …`: the value's bits, spread over the places.
    Concat(Vec<Place>),
}

/// An expression with its type and place in the source.
#[derive(Debug, Clone, PartialEq)]
pub struct Expr {
    /// What is computed.
    pub kind: ExprKind,
    /// Type of the value.
    pub ty: Ty,
    /// Where it is written; in an expanded call, in the callee.
    pub span: Span,
}

/// The kinds of [`Expr`].
#[derive(Debug, Clone, PartialEq)]
#[expect(missing_docs, reason = "the variants say what their fields are")]
pub enum ExprKind {
    /// A constant: the bit pattern of `ty`.
    Const(u128),
    /// A variable that is not an array.
    Local(LocalId),
    /// An element of an array; an index out of range reads zero.
    Element(LocalId, Box<Expr>),
    /// The operand's value, `ty.width()` low bits.
    Operand(Role),
    /// The raw number in the operand's encoding field as a register index: for a VGPR its number 0..255
    /// (`VGPR[lane][SRC0.u32]`), for an SGPR its number.
    OperandIndex(Role),
    /// Dword `index` of a multi-register operand in `lane` (VGPR, or the constant/SGPR it is): `S2` of WMMA.
    /// `B(32)`.
    OperandLane { role: Role, lane: Box<Expr>, index: Box<Expr> },
    /// A raw encoding field.
    Field(FieldName),
    /// Architectural state.
    State(State),
    /// Bits `[lo + ty.width() - 1 : lo]`; bits beyond the base read zero.
    Slice { base: Box<Expr>, lo: Box<Expr> },
    /// An operator with one operand.
    Unary(UnOp, Box<Expr>),
    /// Operands have been converted: same type for arithmetic, bitwise and comparison; shift counts are
    /// `U(32)`.
    Binary(BinOp, Box<Expr>, Box<Expr>),
    /// Condition is `U(1)`; both arms have `ty`. Only the chosen arm is evaluated.
    Select(Box<Expr>, Box<Expr>, Box<Expr>),
    /// Conversion of the value: see [`Ty`] pairs in docs/pseudocode.md (sign/zero extension, truncation,
    /// float <-> int, float <-> float).
    Convert(Box<Expr>),
    /// The same bits under another type; narrower: low bits; wider: zero-extended.
    Bits(Box<Expr>),
    /// A builtin with its arguments.
    Call(Builtin, Vec<Expr>),
    /// `VGPR[lane][reg]`, 32 bits.
    Vgpr { lane: Box<Expr>, reg: Box<Expr> },
    /// `SGPR[reg]`, 32 bits.
    Sgpr { reg: Box<Expr> },
    /// Memory from a byte address on, `ty.width()` bits.
    Mem { space: Space, addr: Box<Expr> },
    /// `{ hi, …, lo }`: most significant first.
    Concat(Vec<Expr>),
}

/// Operators with one operand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum UnOp {
    /// Two's complement of an integer; a float's sign flipped.
    Neg,
    /// `~`: every bit inverted.
    Not,
    /// `!`: 1 if zero. Result `U(1)`.
    LogicalNot,
}

/// Operators with two operands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum BinOp {
    /// Wrapping for integers.
    Add,
    /// Wrapping for integers.
    Sub,
    /// Wrapping for integers.
    Mul,
    /// Integer: toward zero, by zero gives all ones (unsigned) or -1 (signed). Float: IEEE.
    Div,
    /// Integer remainder, sign of the dividend; by zero gives the dividend.
    Rem,
    /// `a ** b`.
    Pow,
    /// `&`.
    And,
    /// `|`.
    Or,
    /// `^`.
    Xor,
    /// A count at or beyond the width gives 0.
    Shl,
    /// Logical or arithmetic by the left type; beyond the width 0 or all sign bits.
    Shr,
    /// `==`. Comparisons give `U(1)`; those of floats are false with a NaN, except `Ne` (`<>` of ordered
    /// values is `Lg`).
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

/// Where `MEM[…]` goes. The checker picks it from the instruction's encoding family; `LDS[…]` is always
/// `Lds`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Space {
    /// Device memory, by 64-bit byte addresses.
    Global,
    /// Aperture check: global, LDS or scratch.
    Flat,
    /// The workgroup's local data share.
    Lds,
    /// The lane's private memory.
    Scratch,
    /// Buffer access: an address of all ones (2^64-1) means out of range: loads give 0, stores and atomics do
    /// nothing.
    Buffer,
    /// Scalar memory: global, dword aligned.
    Scalar,
    /// Data memory of a machine with word addresses (one 32-bit word per address).
    Word,
}

/// Architectural state that a body names directly.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum State {
    /// The EXEC mask: 64 bits, the upper half zero in wave32. `EXEC.u64[laneId]` is a slice of it.
    Exec,
    /// EXEC of lanes 0..31.
    ExecLo,
    /// EXEC of lanes 32..63.
    ExecHi,
    /// The real VCC register (scalar instructions). In vector bodies `VCC` is [`Role::Vcc`].
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
    /// Byte address of this instruction when read; assigning it jumps.
    Pc,
    /// Size in bytes of this instruction.
    InstSize,
    /// 32-bit MODE register.
    Mode,
    /// STATUS register.
    Status,
    /// 0..31 or 0..63: this lane (lane shape).
    LaneId,
    /// `U(1)`: the wave has 32 lanes.
    Wave32,
    /// `U(1)`: the wave has 64 lanes.
    Wave64,
    /// 32 or 64.
    WaveSize,
    /// VGPRs that the wave has.
    VgprSize,
    /// Wave's index in its workgroup.
    WaveId,
    /// `SCRATCH_BASE`, `U(64)`.
    ScratchBase,
    /// Base address of the LDS aperture, `U(64)`.
    SharedBase,
    /// Base address of the scratch aperture, `U(64)`.
    PrivateBase,
    /// `TBA`, `U(64)`: address of the trap handler.
    TrapBase,
}

/// Interned name of an encoding field or modifier: `OFFSET`, `OFFSET0`, `OFFSET1`, `NEG`, `ABS`, `OPSEL`,
/// `OPSEL_HI`, `NEG_HI`, `CLAMP`, `OMOD`, `GLC`, `IDXEN`, `OFFEN`, `FORMAT`, `SIMM16`, `SIMM32`, `WAIT_EXP` …
/// Canonical over architectures (see `pcode/builtins.rs`).
pub type FieldName = &'static str;

impl Ty {
    /// In bits.
    pub fn width(self) -> u32 {
        match self {
            Ty::B(w) | Ty::U(w) | Ty::I(w) => w as u32,
            Ty::F16 | Ty::BF16 => 16,
            Ty::F32 => 32,
            Ty::F64 => 64,
            Ty::FP8 | Ty::BF8 => 8,
        }
    }

    /// Whether the type is a float of any format.
    pub fn is_float(self) -> bool {
        !matches!(self, Ty::B(_) | Ty::U(_) | Ty::I(_))
    }

    /// Whether the type is a signed integer.
    pub fn is_signed(self) -> bool {
        matches!(self, Ty::I(_))
    }
}
