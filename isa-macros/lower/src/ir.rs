//! The lane-loop representation. Everything that typed bodies leave implicit is a node here: how wide the
//! integers are that hold values, which operands become lane vectors, where lanes that are switched off are
//! skipped, when memory is accessed, what is written back. It must not depend on Rust tokens, nor on
//! the host.
//!
//! [`Handlers`] are all that runs for one operation. Each is a [`Body`]: [`Lanes`] is a list of [`Step`]s for
//! every 32 lanes, of which one or more are [`LaneLoop`]s; [`Once`] runs once a wave. Both contain [`Stmt`]s
//! over [`Value`]s.

mod vector;

use crate::lower::operands::Operands;
use crate::visit::any_value;
use isa_spec::pcode::ir::{Control, FieldName, Local, LocalId, Pure, Shape, Space, State, Ty};
use isa_spec::tables::Role;

pub use vector::{
    Numbers, Places, Product, ProductPart, Vector, VectorAt, VectorPlace, VectorRead, VectorWrite,
};

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

/// A statement of a lane, or of code that runs once a wave.
#[derive(Debug, Clone, PartialEq)]
pub enum Stmt {
    /// Assigns a variable; the value has the variable's holder.
    Set(Var, Value),
    /// Assigns the low `width` bits of a variable; the others stay.
    SetLow { var: Var, hold: Hold, width: u32, value: Value },
    /// Assigns an element of an array local; does nothing out of range.
    SetElement { id: LocalId, index: Value, value: Value },
    /// Assigns this lane's bit of a mask.
    SetBit(Mask, Value),
    /// Assigns architectural state.
    SetState(State, Value),
    /// Assigns a VGPR by lane and number.
    SetVgpr { lane: Value, reg: Value, value: Value },
    /// Assigns an SGPR by number.
    SetSgpr { reg: Value, value: Value },
    /// Assigns the scalar result, in code that runs once a wave.
    SetScalar { dwords: u32, direct: bool, value: Value },
    /// Assigns the whole mask that is the carry-out operand, in code that runs once a wave.
    SetMaskOperand(Value),
    /// Assigns parts of a value to several places: it is computed once, and is [`Var::Whole`] in the
    /// statements.
    Parts { value: Value, parts: Vec<Stmt> },
    /// A store in place, which may end the handler with a fault.
    Store { space: Space, addr: Value, bytes: u32, value: Value },
    /// The store of a read-modify-write: it happens only if memory still has what the lane's load gave, else
    /// the lane starts again.
    Exchange { space: Space, addr: Value, bytes: u32, value: Value },
    /// This lane's value for the store step that follows the loop, and its address unless the step has a
    /// [`Sum`].
    SetStored { address: Option<(Space, Value)>, value: Value, dwords: u32 },
    /// This lane's address for the memory step that follows.
    SetAddress { space: Space, addr: Value },
    /// The first arm whose condition is not 0, else `otherwise`.
    If { arms: Vec<(Value, Vec<Stmt>)>, otherwise: Vec<Stmt> },
    /// Counts `var` up from `from` to `to`, both included, signed.
    For { var: LocalId, from: Value, to: Value, body: Vec<Stmt> },
    /// Repeats while the condition is not 0.
    While { cond: Value, body: Vec<Stmt> },
    /// A loop whose reads come before all of its writes.
    Vector(Box<Vector>),
    /// The loops of a matrix product.
    Product(Box<Product>),
    /// Ends the body, for this lane.
    Leave,
    /// A control builtin called for its effect; it may end the handler.
    Control { builtin: Control, args: Vec<Value> },
}

/// An operand that a lane reads from its lane vectors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Read {
    /// Which operand.
    pub role: Role,
    /// In bits.
    pub width: u32,
}

/// The value of a lane's result before the body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Start {
    /// Zero: the body assigns all of it.
    Zero,
    /// What the destination holds.
    Old,
    /// The half of the destination's register that the instruction names.
    OldHalf,
}

/// The result of a lane.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LaneResult {
    /// In bits.
    pub width: u32,
    /// Its value before the body.
    pub start: Start,
    /// False for instructions that only read their destination.
    pub written: bool,
}

impl LaneResult {
    /// Registers per lane.
    pub fn dwords(&self) -> u32 {
        self.width.div_ceil(32)
    }
}

/// A loop over 32 lanes that are independent of each other.
#[derive(Debug, Clone, PartialEq)]
pub struct LaneLoop {
    /// Skips inactive lanes: for bodies with effects, and for those too expensive to compute speculatively.
    pub active_only: bool,
    /// Operands that the body reads.
    pub reads: Vec<Read>,
    /// The lane's result, if it has one in VGPRs.
    pub result: Option<LaneResult>,
    /// Masks of which the body builds this lane's bit.
    pub bits: Vec<Mask>,
    /// The statements of one lane.
    pub body: Vec<Stmt>,
    /// The body has [`Stmt::Leave`].
    pub leaves: bool,
    /// The body has [`Stmt::Exchange`].
    pub retries: bool,
}

/// Where the addresses of 32 lanes come from.
#[derive(Debug, Clone, PartialEq)]
pub enum Addresses {
    /// A loop of their own computes them.
    Computed(LaneLoop),
    /// The lane loop before the step has set them.
    Set,
    /// A wave-uniform value plus 32 bits of each lane, without a vector of addresses.
    Sum(Box<Sum>),
}

/// An address that is a wave-uniform value plus 32 bits of each lane.
#[derive(Debug, Clone, PartialEq)]
pub struct Sum {
    /// How the scalar part of the address is read.
    pub saddr: Value,
    /// Wave-uniform terms.
    pub base: Vec<Value>,
    /// The operand that has each lane's 32 bits.
    pub offsets: Role,
    /// A wave-uniform condition: where it is not 0 the loop computes the addresses instead, for which the
    /// scalar part becomes a lane vector.
    pub unless: Option<(Value, LaneLoop)>,
    /// Uniform: what the wave adds in this case, if the lanes' part is then 64 bits of the same operand.
    pub wide: Option<Vec<Value>>,
    /// That step.
    pub stage: Vec<Step>,
}

/// A memory access of 32 lanes at once.
#[derive(Debug, Clone, PartialEq)]
pub struct Memory {
    /// Which of the handler's accesses it is; [`ValueKind::Loaded`] refers to it.
    pub number: usize,
    /// True for a store, false for a load.
    pub store: bool,
    /// Address space.
    pub space: Space,
    /// Size of the access per lane, in bytes.
    pub bytes: u32,
    /// Registers per lane that it loads or stores.
    pub dwords: u32,
    /// Where each lane's address comes from.
    pub addresses: Addresses,
}

/// The float format by which output modifiers (clamp, omod) apply to a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Output {
    /// No float: output modifiers do not apply.
    Bits,
    /// f16 in the low half.
    F16,
    /// bf16 in the low half.
    BF16,
    /// f32.
    F32,
    /// f64, in two registers.
    F64,
    /// Two halves, each clamped.
    PackedF16,
}

/// How a result is written back to the lanes that are active.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WriteBack {
    /// With output modifiers.
    General { output: Output },
    /// Into the half of the register that the instruction names.
    Half { output: Output },
    /// Without modifiers. `flushing`: in modes that flush, results have no denormals. `direct`: such a result
    /// comes from one operation, and is flushed as it is written.
    Fast { flushing: bool, direct: bool },
}

/// A step of a handler for 32 lanes.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    /// Stages an operand as lane vectors: registers as they are, scalars broadcast. `direct`: it is lane
    /// vectors already.
    Stage { role: Role, slot: usize, dwords: u32, direct: bool },
    /// Stages the destination's lane vectors as they are before the instruction.
    StageOld,
    /// Applies DPP, input modifiers and op_sel, if the instruction has any, to these sources; DPP may switch
    /// lanes off.
    Modify { sources: Vec<(usize, Role)> },
    /// Reads the bits of the carry-in operand for these lanes.
    ReadMask,
    /// Calls of a SIMD builtin ahead of the lane loop, with the arguments of each. `ty` is the type of the
    /// results.
    Simd { builtin: Pure, ty: Ty, calls: Vec<Vec<Value>>, lanes: LaneLoop },
    /// Declares the vectors of what a loop is to store, and of its addresses unless the store step has a
    /// [`Sum`].
    StoreRoom { space: Space, dwords: u32, addresses: bool },
    /// An access of all active lanes.
    Memory(Memory),
    /// A lane loop.
    Loop(LaneLoop),
    /// Collects the bits that the loop computed of a mask. `keep`: those of inactive lanes stay.
    Gather { mask: Mask, keep: bool },
    /// Writes the result back.
    Write { dwords: u32, how: WriteBack },
}

/// Which lanes a handler's steps are for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Halves {
    /// The 32 lanes of a wave of 32, or the half of a wave of 64 that the context is at.
    One,
    /// Each 32 lanes of the wave, one after the other.
    Each,
    /// The 32 lanes that the caller passes.
    Given,
}

/// A handler that runs in lanes.
#[derive(Debug, Clone, PartialEq)]
pub struct Lanes {
    /// Which lanes the steps are for.
    pub halves: Halves,
    /// Copies of SGPRs among the sources are refreshed first, if the operation was lowered for
    /// `FastBroadcast`.
    pub broadcast: bool,
    /// In order, for every 32 lanes.
    pub steps: Vec<Step>,
    /// Masks that are written after all lanes have run: a source may be the same register.
    pub masks: Vec<Mask>,
}

/// A handler that runs once a wave.
#[derive(Debug, Clone, PartialEq)]
pub struct Once {
    /// Operands that are read before the body.
    pub operands: Vec<(Role, Value)>,
    /// The statements.
    pub body: Vec<Stmt>,
    /// The body can change MODE, and with it the table of handlers.
    pub changes_mode: bool,
    /// The body has [`Stmt::Exchange`].
    pub retries: bool,
}

/// What a handler does.
#[derive(Debug, Clone, PartialEq)]
pub enum Body {
    /// Steps for every 32 lanes.
    Lanes(Lanes),
    /// Code that runs once a wave.
    Once(Once),
}

/// One block copy between registers and memory for all lanes, possible if every lane is active and addresses
/// are coalesced.
#[derive(Debug, Clone, PartialEq)]
pub enum Block {
    Global {
        base: Vec<Value>,
        offsets: Role,
        unless: Option<Value>,
        /// What the wave adds where `unless` is not 0 and the address is 64 bits of each lane, if it is such a sum.
        wide: Option<Vec<Value>>,
        store: bool,
        dwords: u32,
    },
    /// LDS at the lanes' addresses, each plus a number of the instruction. Loads go to one register after the other.
    Lds { lanes: Role, plus: Vec<Value>, store: bool, dwords: u32 },
}

/// The fast handler of an operation, beside the general one.
#[derive(Debug, Clone, PartialEq)]
pub enum Fast {
    /// There is none.
    None,
    /// For operands that are lane vectors without modifiers; a twin broadcasts scalars first.
    Lanes(Lanes),
    /// For operands that are SGPRs and constants of the scalar file.
    Scalar(Once),
    /// For coalesced accesses of all lanes.
    Block(Block),
}

/// Flushing operations whose sources are mostly results of flushing operations.
#[derive(Debug, Clone, PartialEq)]
pub struct Flushing {
    /// Sources that are read as f32.
    pub sources: Vec<Slot>,
    /// The result comes from one operation, and is flushed as it is written.
    pub direct: bool,
}

/// All that runs for one operation.
#[derive(Debug, Clone, PartialEq)]
pub struct Handlers {
    /// The operation's name.
    pub name: String,
    /// How often the body runs.
    pub shape: Shape,
    /// The body's variables; [`LocalId`] indexes them.
    pub locals: Vec<Local>,
    /// Widths of its operands, and those used by number.
    pub operands: Operands,
    /// The destination is a mask, not a register of every lane.
    pub mask_result: bool,
    /// The handler for any operands and either wave size.
    pub general: Body,
    /// The handler for operands without modifiers, if there is one.
    pub fast: Fast,
    /// The general handler needs no code of its own: what `fast`, which is [`Fast::Lanes`], makes of staged operands with their modifiers
    /// applied, followed by output modifiers, is the same.
    pub by_fast: bool,
    /// Whether results depend on MODE at all.
    pub floats: bool,
    /// Whether handlers depend on how MODE treats f32, so that two modes need two of them. Products find out themselves.
    pub floats_f32: bool,
    /// Set for operations that flush and whose sources are mostly results of flushing operations.
    pub flushing: Option<Flushing>,
}

impl Handlers {
    /// Registers of the result; a mask has none of the lanes'.
    pub fn result_dwords(&self) -> u32 {
        match self.mask_result {
            true => 0,
            false => self.operands.widths.get(&Role::D0).map_or(0, |width| width.div_ceil(32)),
        }
    }

    /// Whether nothing is in it that is faster with the host's vectors: lanes one after the other, or scalar loads. One handler is for all
    /// hosts then.
    pub fn is_serial(&self) -> bool {
        let serial = match &self.general {
            Body::Lanes(lanes) => {
                !lanes.broadcast
                    && !lanes.steps.iter().any(|s| matches!(s, Step::Memory(_) | Step::Simd { .. }))
            }
            Body::Once(once) => {
                self.shape == Shape::Scalar
                    && any_value(&once.body, &|v| matches!(v.kind, ValueKind::Load { .. }))
            }
        };
        serial && self.fast == Fast::None && !self.floats
    }

    /// Which output modifiers the general handler applies to a result of whole registers, if it has one.
    pub fn output(&self) -> Option<Output> {
        let Body::Lanes(lanes) = &self.general else { return None };
        lanes.steps.iter().find_map(|step| match step {
            Step::Write { how: WriteBack::General { output }, .. } => Some(*output),
            _ => None,
        })
    }
}
