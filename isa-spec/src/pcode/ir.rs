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
    B(u16),
    U(u16),
    I(u16),
    F16,
    BF16,
    F32,
    F64,
    /// 8-bit floats (OCP): E4M3 and E5M2.
    FP8,
    BF8,
}

pub type LocalId = u32;

/// One instruction's meaning.
#[derive(Debug, Clone, PartialEq)]
pub struct Semantics {
    /// Every name the block lists, upper case.
    pub names: Vec<String>,
    pub shape: Shape,
    pub locals: Vec<Local>,
    pub body: Vec<Stmt>,
    /// What the body touches; filled by the shape pass.
    pub uses: Uses,
    /// Source text of the block's body with the holes of its templates filled, for documentation and `isa
    /// show`.
    pub text: String,
    pub span: Span,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Shape {
    /// Once a wave, on scalar operands.
    Scalar,
    /// Once per active lane, lanes independent.
    Lane,
    /// Once a wave, reaching into lanes itself (`VGPR[lane][reg]`, whole EXEC …).
    Wave,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Local {
    pub name: String,
    pub ty: Ty,
    /// `Some(n)` for `declare x : 32'B[n]`.
    pub len: Option<u32>,
}

#[derive(Debug, Clone, PartialEq, Default)]
pub struct Uses {
    pub reads: std::collections::BTreeSet<Role>,
    pub writes: std::collections::BTreeSet<Role>,
    /// Operands whose number, not value, the body reads (`SRC0`, `VDST`, `indexOf(SADDR)`).
    pub indexed: std::collections::BTreeSet<Role>,
    pub state_reads: std::collections::BTreeSet<State>,
    pub state_writes: std::collections::BTreeSet<State>,
    /// Encoding fields read as raw values (`OFFSET`, `NEG`, `OPSEL` …).
    pub fields: std::collections::BTreeSet<FieldName>,
    /// Assigns registers by number (`VGPR[lane][reg]`).
    pub registers: bool,
    pub memory_read: bool,
    pub memory_write: bool,
    /// Any float arithmetic, rounding or conversion that depends on MODE, by format.
    pub float: std::collections::BTreeSet<Ty>,
    /// Calls a [`Control`] builtin.
    pub control: bool,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Stmt {
    /// The value's type has the place's width.
    Assign {
        place: Place,
        value: Expr,
        span: Span,
    },
    /// Conditions are `U(1)`.
    If {
        arms: Vec<(Expr, Vec<Stmt>)>,
        otherwise: Vec<Stmt>,
        span: Span,
    },
    /// `for var in from : to do`, both ends included; counts up; `var` is a local. Empty if `from > to`
    /// (signed).
    For {
        var: LocalId,
        from: Expr,
        to: Expr,
        body: Vec<Stmt>,
        span: Span,
    },
    While {
        cond: Expr,
        body: Vec<Stmt>,
        span: Span,
    },
    /// Ends the body (of this lane, in lane shape). Expanded calls never contain it.
    Return {
        span: Span,
    },
    /// A builtin called for its effect; a value that it has is dropped.
    Call {
        builtin: Control,
        args: Vec<Expr>,
        span: Span,
    },
}

/// Something that can be assigned. `ty` is the type of the value stored.
#[derive(Debug, Clone, PartialEq)]
pub struct Place {
    pub kind: PlaceKind,
    pub ty: Ty,
}

#[derive(Debug, Clone, PartialEq)]
pub enum PlaceKind {
    Local(LocalId),
    /// Element of an array local; an index out of range is ignored.
    Element(LocalId, Box<Expr>),
    /// The whole operand, read as `ty`; a narrower `ty` keeps the upper bits of a register unless the operand
    /// is that narrow.
    Operand(Role),
    State(State),
    /// Bits `[lo + width - 1 : lo]` of `base` (`width` = `ty.width()`); the other bits keep their value.
    Slice {
        base: Box<Place>,
        lo: Box<Expr>,
    },
    /// `VGPR[lane][reg]`, 32 bits.
    Vgpr {
        lane: Box<Expr>,
        reg: Box<Expr>,
    },
    /// `SGPR[reg]`, 32 bits.
    Sgpr {
        reg: Box<Expr>,
    },
    Mem {
        space: Space,
        addr: Box<Expr>,
    },
    /// `{ hi, …, lo } = …`.
    Concat(Vec<Place>),
}

#[derive(Debug, Clone, PartialEq)]
pub struct Expr {
    pub kind: ExprKind,
    pub ty: Ty,
    pub span: Span,
}

#[derive(Debug, Clone, PartialEq)]
pub enum ExprKind {
    /// Bit pattern of `ty`.
    Const(u128),
    Local(LocalId),
    /// An index out of range reads zero.
    Element(LocalId, Box<Expr>),
    /// The operand's value, `ty.width()` low bits.
    Operand(Role),
    /// The raw number in the operand's encoding field as a register index: for a VGPR its number 0..255
    /// (`VGPR[lane][SRC0.u32]`), for an SGPR its number.
    OperandIndex(Role),
    /// Dword `index` of a multi-register operand in `lane` (VGPR, or the constant/SGPR it is): `S2` of WMMA.
    /// `B(32)`.
    OperandLane {
        role: Role,
        lane: Box<Expr>,
        index: Box<Expr>,
    },
    /// A raw encoding field.
    Field(FieldName),
    State(State),
    /// Bits `[lo + ty.width() - 1 : lo]`; bits beyond the base read zero.
    Slice {
        base: Box<Expr>,
        lo: Box<Expr>,
    },
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
    Call(Builtin, Vec<Expr>),
    Vgpr {
        lane: Box<Expr>,
        reg: Box<Expr>,
    },
    Sgpr {
        reg: Box<Expr>,
    },
    Mem {
        space: Space,
        addr: Box<Expr>,
    },
    /// Most significant first.
    Concat(Vec<Expr>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum UnOp {
    /// Two's complement or sign flip.
    Neg,
    /// `~`.
    Not,
    /// `!`: 1 if zero. Result `U(1)`.
    LogicalNot,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum BinOp {
    Add,
    Sub,
    Mul,
    /// Integer: toward zero, by zero gives all ones (unsigned) or -1 (signed). Float: IEEE.
    Div,
    /// Integer remainder, sign of the dividend; by zero gives the dividend.
    Rem,
    /// `a ** b`.
    Pow,
    And,
    Or,
    Xor,
    /// A count at or beyond the width gives 0.
    Shl,
    /// Logical or arithmetic by the left type; beyond the width 0 or all sign bits.
    Shr,
    /// Comparisons give `U(1)`; float ones are false with a NaN, except `Ne` (`<>` of ordered values is
    /// `Lg`).
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
    /// `<>`: less or greater; false with a NaN.
    Lg,
    /// `&&`, `||` on `U(1)`; the right side is evaluated only if needed.
    LogicalAnd,
    LogicalOr,
}

/// Where `MEM[…]` goes. The checker picks it from the instruction's encoding family; `LDS[…]` is always
/// `Lds`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Space {
    Global,
    /// Aperture check: global, LDS or scratch.
    Flat,
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
    /// 64 bits (upper half zero in wave32). `EXEC.u64[laneId]` is a slice of it.
    Exec,
    ExecLo,
    ExecHi,
    /// The real VCC register (scalar instructions). In vector bodies `VCC` is [`Role::Vcc`].
    Vcc,
    VccLo,
    VccHi,
    Vccz,
    Execz,
    Scc,
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
    /// `U(1)`.
    Wave32,
    Wave64,
    /// 32 or 64.
    WaveSize,
    /// VGPRs that the wave has.
    VgprSize,
    /// Wave's index in its workgroup.
    WaveId,
    ScratchBase,
    SharedBase,
    PrivateBase,
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

    pub fn is_float(self) -> bool {
        !matches!(self, Ty::B(_) | Ty::U(_) | Ty::I(_))
    }

    pub fn is_signed(self) -> bool {
        matches!(self, Ty::I(_))
    }
}
