//! The values that lane loops, and code that runs once per wave, compute.

use super::VectorAt;
use isa_spec::pcode::ir::{Control, FieldName, LocalId, Pure, Space, State, Ty};
use isa_spec::tables::Role;

/// The width of the host integer that holds a value. Bits above the value's own width are zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum HostWidth {
    /// 32 bits.
    W32,
    /// 64 bits.
    W64,
    /// 128 bits.
    W128,
}

impl HostWidth {
    /// The smallest width of at least `width` bits.
    pub fn of(width: u32) -> HostWidth {
        match width {
            0..=32 => HostWidth::W32,
            33..=64 => HostWidth::W64,
            _ => HostWidth::W128,
        }
    }

    /// Width in bits.
    pub fn bits(self) -> u32 {
        match self {
            HostWidth::W32 => 32,
            HostWidth::W64 => 64,
            HostWidth::W128 => 128,
        }
    }
}

/// A value, computed for each lane in a lane loop, and otherwise once.
#[derive(Debug, Clone, PartialEq)]
pub struct Value {
    /// The computation.
    pub kind: ValueKind,
    /// The host width of the result.
    pub host_width: HostWidth,
}

/// A signed or unsigned integer type, at most as wide as the host width.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Int {
    /// Width in bits.
    pub width: u32,
    /// Two's complement.
    pub signed: bool,
}

/// Comparisons of integers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compare {
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
}

/// Operations on two values of one host width.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Op2 {
    /// Wrapping at the host width.
    Add,
    /// Wrapping at the host width.
    Sub,
    /// Wrapping at the host width.
    Mul,
    /// Bitwise.
    And,
    /// Bitwise.
    Or,
    /// Bitwise.
    Xor,
}

/// Operations on one value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Op1 {
    /// Inverts every bit of the host integer.
    Not,
    /// Two's complement.
    Neg,
    /// 1 for zero, else 0, in 32 bits.
    IsZero,
    /// Number of set bits; 32 bits.
    CountOnes,
    /// Zeros above the highest of `width` bits; 32 bits.
    LeadingZeros { width: u32 },
    /// Zeros below the lowest set bit, `width` for none; 32 bits.
    TrailingZeros { width: u32 },
    /// The low `width` bits in reverse order.
    ReverseBits { width: u32 },
}

/// Operations on floats whose rounding and denormals depend on MODE.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FloatOp {
    /// `a + b`.
    Add,
    /// `a - b`.
    Sub,
    /// `a * b`.
    Mul,
    /// `a / b`.
    Div,
    /// `a * b + c`, rounded once.
    Fma,
    /// `==`; comparisons return 1 or 0.
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
    /// Less or greater: false with a NaN.
    Lg,
    /// The smaller one; a number wins over a NaN (IEEE 754-2019 `minimumNumber`).
    MinimumNumber,
    /// The larger one; a number wins over a NaN.
    MaximumNumber,
    /// The smaller one; a NaN wins (IEEE 754-2019 `minimum`).
    Minimum,
    /// The larger one; a NaN wins.
    Maximum,
    /// Toward minus infinity, to an integer.
    Floor,
    /// Toward plus infinity, to an integer.
    Ceil,
    /// Toward zero, to an integer.
    Trunc,
    /// To the nearest integer, ties to even.
    Rndne,
    /// Square root.
    Sqrt,
    /// `1 / a`.
    Rcp,
    /// `1 / sqrt(a)`.
    Rsq,
    /// `a * b + c`, rounded toward zero in every mode.
    FmaRtz,
    /// `a * b + c`, rounded to nearest even and with denormals in every mode.
    FmaNearest,
    /// To an 8-bit float with stochastic rounding by a seed.
    ToFp8Sr,
    /// To E5M2 with stochastic rounding by a seed.
    ToBf8Sr,
    /// `a - floor(a)`.
    Fract,
    /// Scales by a power of two, whose exponent is the second argument.
    Ldexp,
    /// A fused multiply-add, scaled by a power of two.
    FmaLdexp,
    /// Mantissa, as of V_FREXP_MANT.
    FrexpMant,
    /// Exponent, as of V_FREXP_EXP.
    FrexpExp,
    /// A numbered segment of 2/pi for the first argument (V_TRIG_PREOP_F64).
    TrigPreop,
}

/// Operations on a float's bits, which do not depend on MODE.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FloatBits {
    /// Any NaN.
    IsNan,
    /// A signalling NaN.
    IsSignalNan,
    /// A quiet NaN.
    IsQuietNan,
    /// Makes a NaN quiet; leaves any other value unchanged.
    Quiet,
    /// The exponent field.
    Exponent,
}

/// Conversions with a dedicated runtime function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Conversion {
    /// Exact.
    F16ToF32,
    /// Toward zero, saturating.
    F16ToI16,
    /// Toward zero, saturating.
    F16ToU16,
    /// To a 16-bit signed normalised integer.
    F16ToSnorm,
    /// To a 16-bit unsigned normalised integer.
    F16ToUnorm,
    /// Rounded by MODE.
    I16ToF16,
    /// Rounded by MODE.
    U16ToF16,
    /// Rounded by MODE.
    F32ToF16,
    /// Toward zero in every mode.
    F32ToF16Rtz,
    /// Rounded by MODE.
    F32ToBf16,
    /// To E4M3, nearest even; NaN beyond the range.
    F32ToFp8,
    /// To E5M2, nearest even; infinity beyond the range.
    F32ToBf8,
    /// Exact.
    Fp8ToF32,
    /// Exact.
    Bf8ToF32,
    /// Exact.
    F32ToF64,
    /// Toward zero, saturating; 0 for NaN.
    F32ToI32,
    /// Toward zero, saturating; 0 for NaN.
    F32ToU32,
    /// Toward zero, saturating; 0 for NaN.
    F32ToI16,
    /// Toward zero, saturating; 0 for NaN.
    F32ToU16,
    /// Rounded by MODE, saturating; 0 for NaN.
    F32ToU8,
    /// To a 16-bit signed normalised integer.
    F32ToSnorm,
    /// To a 16-bit unsigned normalised integer.
    F32ToUnorm,
    /// Rounded by MODE.
    I32ToF32,
    /// Rounded by MODE.
    U32ToF32,
    /// Rounded by MODE.
    F64ToF32,
    /// Toward zero, saturating; 0 for NaN.
    F64ToI32,
    /// Toward zero, saturating; 0 for NaN.
    F64ToU32,
    /// Exact.
    I32ToF64,
    /// Exact.
    U32ToF64,
}

/// A variable of a lane, or of the wave.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Var {
    /// A local variable.
    Local(LocalId),
    /// The staged value of an operand; for D0, the result.
    Operand(Role),
    /// The value of the enclosing [`Stmt::Parts`], in 128 bits.
    Whole,
}

/// A mask whose own bit a lane reads or writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Mask {
    /// The destination, if it is a mask.
    D0,
    /// The carry-in or carry-out operand.
    Vcc,
    /// EXEC.
    Exec,
}

/// The field of an operation that names an operand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Slot {
    /// A source, by slot number.
    Source(usize),
    /// The fifth source.
    Fifth,
    /// The destination, as a scalar register's number.
    ScalarResult,
    /// The destination, as lane vectors.
    VectorResult,
}

/// The access to an operand in code that runs once per wave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scalar {
    /// Any operand: register, inline constant or literal.
    Any,
    /// A word of the scalar file: an SGPR, or a constant stored there.
    Direct,
    /// Any operand, with the input modifiers of this source.
    Modified(usize),
}

/// Kinds of [`Value`].
#[derive(Debug, Clone, PartialEq)]
pub enum ValueKind {
    /// A constant, zero-extended.
    Const(u128),
    /// A variable.
    Var(Var),
    /// An element of an array local; 0 if the index is out of range.
    Element(LocalId, Box<Value>),
    /// This lane's element of an array with elements for each lane; the index is the same for all lanes.
    LaneElement(LocalId, Box<Value>),

    // The instruction.
    /// A raw encoding field.
    Field(FieldName),
    /// A modifier field's bit for one of the first four sources, in 32 bits: for NEG and NEG_HI as the sign
    /// bit, for OPSEL and OPSEL_HI as 0 or 1.
    SourceBit { field: FieldName, source: usize },
    /// The register number of an operand.
    OperandNumber(Slot),

    // The wave.
    /// Architectural state.
    State(State),
    /// This lane's bit of a mask.
    LaneBit(Mask),
    /// The whole mask of this operand, for the lanes being processed.
    MaskOperand(Mask),
    /// An operand in code that runs once per wave: `dwords` registers.
    Scalar { slot: Slot, dwords: u32, how: Scalar },
    /// A register of a staged operand in another lane of the same 32.
    StagedLane { role: Role, lane: Box<Value> },
    /// Register `index` of a staged operand in this lane. The index is in range and uniform over the lanes.
    StagedDword { role: Role, index: Box<Value> },
    /// Register `index` of an operand in any lane.
    OperandLane { slot: Slot, lane: Box<Value>, index: Box<Value> },
    /// A VGPR by lane and number.
    Vgpr { lane: Box<Value>, reg: Box<Value> },
    /// An SGPR by number.
    Sgpr { reg: Box<Value> },

    // Memory.
    /// A load that is performed immediately and may end the handler with a fault. `retry`: the lane runs
    /// again if its [`Stmt::Exchange`] fails.
    Load { space: Space, addr: Box<Value>, bytes: u32, retry: bool },
    /// The value that [`Step::Memory`] number `access` has loaded for this lane.
    Loaded { access: usize, dwords: u32 },
    /// An element of the enclosing [`Stmt::Vector`]'s read number `read`.
    VectorRead { read: usize, at: VectorAt },
    /// This lane's result of call number `call` of [`Step::Simd`].
    SimdResult { call: usize },
    /// Converts a word address to a byte address, on word-addressed machines.
    WordAddress(Box<Value>),

    // Integers.
    /// Zero-extends or truncates to the host width.
    Resize(Box<Value>),
    /// Sign-extends from `width` bits to the host width, which may also be narrower.
    SignExtend { value: Box<Value>, width: u32 },
    /// An operation on one value.
    Op1(Op1, Box<Value>),
    /// An operation on two values.
    Op2(Op2, Box<Value>, Box<Value>),
    /// Quotient rounded toward zero, all ones for a divisor of 0; or remainder with the sign of the dividend,
    /// which is the dividend for a divisor of 0.
    Div { int: Int, remainder: bool, a: Box<Value>, b: Box<Value> },
    /// A left shift by a constant below the host width.
    ShlConst(Box<Value>, u32),
    /// A logical right shift by a constant below the host width.
    ShrConst(Box<Value>, u32),
    /// A left shift by a 32-bit count; 0 for counts of at least the host width.
    Shl(Box<Value>, Box<Value>),
    /// A logical right shift by a 32-bit count; 0 for counts of at least the host width.
    Shr(Box<Value>, Box<Value>),
    /// An arithmetic right shift of a signed value of `width` bits; all sign bits for counts of at least the
    /// host width.
    Sar { value: Box<Value>, count: Box<Value>, width: u32 },
    /// A comparison of integers: 1 or 0, in 32 bits.
    Compare { op: Compare, int: Int, a: Box<Value>, b: Box<Value> },
    /// 1 if both are not 0; the right side is evaluated only if needed.
    LogicalAnd(Box<Value>, Box<Value>),
    /// 1 if either is not 0; the right side is evaluated only if needed.
    LogicalOr(Box<Value>, Box<Value>),
    /// Selects by a 32-bit condition, true unless zero; only the chosen side is evaluated.
    Select(Box<Value>, Box<Value>, Box<Value>),
    /// The bits starting at `lo`, resized to the host width; bits beyond the value's host width are 0.
    Extract { value: Box<Value>, lo: Box<Value> },
    /// `old` with the low `width` bits of `value` inserted at `lo`; `old` if `lo` is beyond the host width.
    Insert { old: Box<Value>, value: Box<Value>, lo: Box<Value>, width: u32 },
    /// Non-overlapping parts, each of the value's host width, with their bit offsets.
    Concat(Vec<(Value, u32)>),
    /// Saturates to `to` if the instruction's clamp bit is set, else wraps.
    Saturate { value: Box<Value>, from: Int, to: Int },

    // Floats.
    /// A float operation under MODE; `ty` is the type of the arguments.
    Float { op: FloatOp, ty: Ty, args: Vec<Value> },
    /// A property of a float of type `ty`.
    FloatBits { op: FloatBits, ty: Ty, value: Box<Value> },
    /// A conversion with a dedicated runtime function.
    Conversion(Conversion, Box<Value>),
    /// Any other conversion that has a float on one side.
    Convert { value: Box<Value>, from: Ty, to: Ty },
    /// `base` to the power of `power`.
    Pow { base: Box<Value>, power: Box<Value>, ty: Ty, power_ty: Ty },

    // Calls.
    /// A builtin computed for many lanes at once ([`crate::passes::simd`]); `ty` is the type of its result.
    Simd { builtin: Pure, ty: Ty, args: Vec<Value> },
    /// Any other pure builtin, by the evaluator's definition.
    Pure { builtin: Pure, args: Vec<Value>, types: Vec<Ty> },
    /// Calls a control builtin for its value; it may end the handler.
    Control { builtin: Control, args: Vec<Value> },
}
