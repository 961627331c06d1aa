//! Values: what a lane loop, or code that runs once a wave, computes.

use super::VectorAt;
use isa_spec::pcode::ir::{Control, FieldName, LocalId, Pure, Space, State, Ty};
use isa_spec::tables::Role;

/// The host integer that holds a value. Bits above the value's own width are zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Hold {
    /// 32 bits.
    W32,
    /// 64 bits.
    W64,
    /// 128 bits.
    W128,
}

impl Hold {
    /// The smallest holder with at least `width` bits.
    pub fn of(width: u32) -> Hold {
        match width {
            0..=32 => Hold::W32,
            33..=64 => Hold::W64,
            _ => Hold::W128,
        }
    }

    /// Width in bits.
    pub fn bits(self) -> u32 {
        match self {
            Hold::W32 => 32,
            Hold::W64 => 64,
            Hold::W128 => 128,
        }
    }
}

/// A value. In a lane loop it is computed for each lane, elsewhere once.
#[derive(Debug, Clone, PartialEq)]
pub struct Value {
    /// How it is computed.
    pub kind: ValueKind,
    /// The holder of its result.
    pub hold: Hold,
}

/// A signed or unsigned integer type; the holder has at least its width.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Int {
    /// In bits.
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

/// Operations on two values of one holder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Op2 {
    /// Wrapping at the holder's width.
    Add,
    /// Wrapping at the holder's width.
    Sub,
    /// Wrapping at the holder's width.
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
    /// Every bit of the holder inverted.
    Not,
    /// Two's complement.
    Neg,
    /// 1 for zero, else 0, in 32 bits.
    IsZero,
    /// Number of bits that are set; 32 bits.
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
    /// `==`; comparisons give 1 or 0.
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
    /// The greater one; a number wins over a NaN.
    MaximumNumber,
    /// The smaller one; a NaN wins (IEEE 754-2019 `minimum`).
    Minimum,
    /// The greater one; a NaN wins.
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
    /// `a * b + c`, rounded toward zero whatever MODE says.
    FmaRtz,
    /// To nearest even and with denormals in every mode.
    FmaNearest,
    /// To an 8-bit float with stochastic rounding by a seed.
    ToFp8Sr,
    /// To E5M2 with stochastic rounding by a seed.
    ToBf8Sr,
    /// `a - floor(a)`.
    Fract,
    /// Scaled by a power of two, whose exponent is the second argument.
    Ldexp,
    /// A multiply-add, scaled by a power of two.
    FmaLdexp,
    /// Mantissa, as V_FREXP_MANT gives it.
    FrexpMant,
    /// Exponent, as V_FREXP_EXP gives it.
    FrexpExp,
    /// A segment of 2/pi for the first argument, by number (V_TRIG_PREOP_F64).
    TrigPreop,
}

/// Properties of a float's bits, which do not depend on MODE.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FloatBits {
    /// Any NaN.
    IsNan,
    /// A signalling NaN.
    IsSignalNan,
    /// A quiet NaN.
    IsQuietNan,
    /// A NaN made quiet; anything else unchanged.
    Quiet,
    /// The exponent field.
    Exponent,
}

/// Conversions that have a runtime function of their own.
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
    /// Toward zero whatever MODE says.
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

/// Something that has a value in a lane, or in the wave, and can be assigned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Var {
    /// A local variable.
    Local(LocalId),
    /// The staged value of an operand; for D0 the result.
    Operand(Role),
    /// The value of the [`Stmt::Parts`] around, in 128 bits.
    Whole,
}

/// A mask of which a lane reads or writes its own bit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Mask {
    /// The destination, where it is a mask.
    D0,
    /// The carry-in or carry-out operand.
    Vcc,
    /// EXEC.
    Exec,
}

/// Where an operation names an operand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Slot {
    /// A source, by the number of its slot.
    Source(usize),
    /// The fifth source.
    Fifth,
    /// The destination, as a scalar register's number.
    ScalarResult,
    /// The destination, as lane vectors.
    VectorResult,
}

/// How an operand is read or written in code that runs once a wave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scalar {
    /// Any operand: register, inline constant or literal.
    Any,
    /// A word of the scalar file: an SGPR, or a constant stored there.
    Direct,
    /// Any operand, with the input modifiers of this source.
    Modified(usize),
}

/// The kinds of [`Value`].
#[derive(Debug, Clone, PartialEq)]
pub enum ValueKind {
    /// A constant, zero-extended.
    Const(u128),
    /// A variable.
    Var(Var),
    /// An element of an array local; 0 out of range.
    Element(LocalId, Box<Value>),

    // The instruction.
    /// A raw encoding field.
    Field(FieldName),
    /// The bit that a field has for one of the first four sources, in 32 bits: of NEG and NEG_HI as the sign, of OPSEL and OPSEL_HI
    /// as 0 or 1.
    SourceBit { field: FieldName, source: usize },
    /// The register number of an operand.
    OperandNumber(Slot),

    // The wave.
    /// Architectural state.
    State(State),
    /// This lane's bit of a mask.
    LaneBit(Mask),
    /// The whole mask that is this operand, for the lanes that run.
    MaskOperand(Mask),
    /// An operand in code that runs once a wave: `dwords` registers.
    Scalar { slot: Slot, dwords: u32, how: Scalar },
    /// A register of a staged operand in another lane of the same 32.
    StagedLane { role: Role, lane: Box<Value> },
    /// Register `index` of a staged operand in this lane. The operand has it, and it is the same in all lanes.
    StagedDword { role: Role, index: Box<Value> },
    /// Register `index` of an operand in any lane.
    OperandLane { slot: Slot, lane: Box<Value>, index: Box<Value> },
    /// A VGPR by lane and number.
    Vgpr { lane: Box<Value>, reg: Box<Value> },
    /// An SGPR by number.
    Sgpr { reg: Box<Value> },

    // Memory.
    /// A load in place, which may end the handler with a fault. `retry`: the lane runs again if its
    /// [`Stmt::Exchange`] fails.
    Load { space: Space, addr: Box<Value>, bytes: u32, retry: bool },
    /// What [`Step::Memory`] number `access` has loaded for this lane.
    Loaded { access: usize, dwords: u32 },
    /// An element of read number `read` of the enclosing [`Stmt::Vector`].
    VectorRead { read: usize, at: VectorAt },
    /// This lane's result of call number `call` of [`Step::Simd`].
    SimdResult { call: usize },
    /// The byte address for an address in words, on machines whose memory is addressed by words.
    WordAddress(Box<Value>),

    // Integers.
    /// Zero-extended or truncated to the holder.
    Resize(Box<Value>),
    /// Sign-extended from `width` bits to the holder, by which it may also be truncated.
    SignExtend { value: Box<Value>, width: u32 },
    /// An operation on one value.
    Op1(Op1, Box<Value>),
    /// An operation on two values.
    Op2(Op2, Box<Value>, Box<Value>),
    /// Quotient toward zero, all ones for a divisor of 0; or remainder with the sign of the dividend, the
    /// dividend for a divisor of 0.
    Div { int: Int, remainder: bool, a: Box<Value>, b: Box<Value> },
    /// A left shift by a constant below the holder's width.
    ShlConst(Box<Value>, u32),
    /// A logical right shift by a constant below the holder's width.
    ShrConst(Box<Value>, u32),
    /// A left shift by a count in 32 bits; 0 from the holder's width on.
    Shl(Box<Value>, Box<Value>),
    /// A logical right shift by a count in 32 bits; 0 from the holder's width on.
    Shr(Box<Value>, Box<Value>),
    /// An arithmetic right shift of a signed value of `width` bits; all sign bits from the holder's width on.
    Sar { value: Box<Value>, count: Box<Value>, width: u32 },
    /// A comparison of integers: 1 or 0, in 32 bits.
    Compare { op: Compare, int: Int, a: Box<Value>, b: Box<Value> },
    /// 1 if both are not 0; the right side is evaluated only if needed.
    LogicalAnd(Box<Value>, Box<Value>),
    /// 1 if either is not 0; the right side is evaluated only if needed.
    LogicalOr(Box<Value>, Box<Value>),
    /// Only the chosen side is evaluated. The condition is 32 bits, true unless zero.
    Select(Box<Value>, Box<Value>, Box<Value>),
    /// Bits from `lo` on, resized to the holder; 0 from the value's holder on.
    Extract { value: Box<Value>, lo: Box<Value> },
    /// `old` with the low `width` bits of `value` from `lo` on; `old` if `lo` is beyond the holder.
    Insert { old: Box<Value>, value: Box<Value>, lo: Box<Value>, width: u32 },
    /// Parts in the value's holder that do not overlap, each at its lowest bit.
    Concat(Vec<(Value, u32)>),
    /// Saturated to `to` if the instruction's clamp bit is set, else wrapped.
    Saturate { value: Box<Value>, from: Int, to: Int },

    // Floats.
    /// A float operation under MODE; `ty` is the type of the arguments.
    Float { op: FloatOp, ty: Ty, args: Vec<Value> },
    /// A property of a float of type `ty`.
    FloatBits { op: FloatBits, ty: Ty, value: Box<Value> },
    /// A conversion with a runtime function of its own.
    Conversion(Conversion, Box<Value>),
    /// Any other conversion that has a float on one side.
    Convert { value: Box<Value>, from: Ty, to: Ty },
    /// `base` to the power of `power`.
    Pow { base: Box<Value>, power: Box<Value>, ty: Ty, power_ty: Ty },

    // Calls.
    /// A builtin that is computed for many lanes at once ([`crate::passes::simd`]); `ty` is the type of its
    /// result.
    Simd { builtin: Pure, ty: Ty, args: Vec<Value> },
    /// Any other pure builtin, by the evaluator's definition.
    Pure { builtin: Pure, args: Vec<Value>, types: Vec<Ty> },
    /// A control builtin used for its value; it may end the handler.
    Control { builtin: Control, args: Vec<Value> },
}
