//! The lane-loop representation. Everything that typed bodies leave implicit is a node here: how wide the
//! integers are that hold values, which operands become lane vectors, where lanes that are switched off are
//! skipped, when memory is accessed, what is written back. It knows nothing of Rust tokens, and nothing of
//! the host.
//!
//! [`Handlers`] are all that runs for one operation. Each is a [`Body`]: [`Lanes`] is a list of [`Step`]s for
//! every 32 lanes, of which one or more are [`LaneLoop`]s; [`Once`] runs once a wave. Both contain [`Stmt`]s
//! over [`Value`]s.

mod vector;

use crate::lower::operands::Operands;
use isa_spec::pcode::ir::{Control, FieldName, Local, LocalId, Pure, Shape, Space, State, Ty};
use isa_spec::tables::Role;

pub use vector::{Vector, VectorAt, VectorPlace, VectorRead, VectorWrite};

/// The host integer that holds a value. Bits above the value's own width are zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Hold {
    W32,
    W64,
    W128,
}

impl Hold {
    /// The smallest one with `width` bits.
    pub fn of(width: u32) -> Hold {
        match width {
            0..=32 => Hold::W32,
            33..=64 => Hold::W64,
            _ => Hold::W128,
        }
    }

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
    pub kind: ValueKind,
    pub hold: Hold,
}

/// A signed or unsigned integer type; the holder has at least its width.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Int {
    pub width: u32,
    pub signed: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compare {
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
}

/// Operations on two values of one holder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Op2 {
    /// Wrapping at the holder's width, as are `Sub` and `Mul`.
    Add,
    Sub,
    Mul,
    And,
    Or,
    Xor,
}

/// Operations on one value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Op1 {
    Not,
    /// Two's complement.
    Neg,
    /// 1 for zero, else 0, in 32 bits.
    IsZero,
    /// 32 bits.
    CountOnes,
    /// Zeros above the highest of `width` bits; 32 bits.
    LeadingZeros {
        width: u32,
    },
    /// Zeros below the lowest set bit, `width` for none; 32 bits.
    TrailingZeros {
        width: u32,
    },
    /// The low `width` bits in reverse order.
    ReverseBits {
        width: u32,
    },
}

/// Operations on floats whose rounding and denormals depend on MODE.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FloatOp {
    Add,
    Sub,
    Mul,
    Div,
    Fma,
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
    /// Less or greater.
    Lg,
    MinimumNumber,
    MaximumNumber,
    /// A NaN wins, as in `Maximum`.
    Minimum,
    Maximum,
    Floor,
    Ceil,
    Trunc,
    Rndne,
    Sqrt,
    Rcp,
    Rsq,
    /// Toward zero in every mode.
    FmaRtz,
    /// To nearest even and with denormals in every mode.
    FmaNearest,
    /// To an 8-bit float with stochastic rounding by a seed.
    ToFp8Sr,
    ToBf8Sr,
    Fract,
    /// By a power of two, whose exponent is the second argument.
    Ldexp,
    /// Of a multiply-add, by a power of two.
    FmaLdexp,
    FrexpMant,
    FrexpExp,
    /// A segment of 2/pi for the first argument, by number.
    TrigPreop,
}

/// Questions about a float's bits, which do not depend on MODE.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FloatBits {
    IsNan,
    IsSignalNan,
    IsQuietNan,
    Quiet,
    Exponent,
}

/// Conversions that have a function of their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Conversion {
    F16ToF32,
    F16ToI16,
    F16ToU16,
    F16ToSnorm,
    F16ToUnorm,
    I16ToF16,
    U16ToF16,
    F32ToF16,
    F32ToF16Rtz,
    F32ToBf16,
    F32ToFp8,
    F32ToBf8,
    Fp8ToF32,
    Bf8ToF32,
    F32ToF64,
    F32ToI32,
    F32ToU32,
    F32ToI16,
    F32ToU16,
    F32ToU8,
    F32ToSnorm,
    F32ToUnorm,
    I32ToF32,
    U32ToF32,
    F64ToF32,
    F64ToI32,
    F64ToU32,
    I32ToF64,
    U32ToF64,
}

/// Something that has a value in a lane, or in the wave, and can be assigned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Var {
    Local(LocalId),
    /// What was staged of an operand; of D0 the result.
    Operand(Role),
    /// The value of the [`Stmt::Parts`] around, in 128 bits.
    Whole,
}

/// A mask of which a lane reads or writes its own bit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Mask {
    /// A mask that is the destination.
    D0,
    /// The carry-in or carry-out operand.
    Vcc,
    Exec,
}

/// Where an operation names an operand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Slot {
    Source(usize),
    /// The destination, as the number of a scalar register.
    ScalarResult,
    /// The destination, as lane vectors.
    VectorResult,
}

/// How an operand of what runs once a wave is read or written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scalar {
    /// Whatever it is.
    Any,
    /// A word of the scalar file: an SGPR or a constant there.
    Direct,
    /// Whatever it is, with the input modifiers of this source.
    Modified(usize),
}

#[derive(Debug, Clone, PartialEq)]
pub enum ValueKind {
    Const(u128),
    Var(Var),
    /// An element of an array local; 0 out of range.
    Element(LocalId, Box<Value>),

    // The instruction.
    /// A raw encoding field.
    Field(FieldName),
    /// The register number of an operand.
    OperandNumber(Slot),

    // The wave.
    State(State),
    /// This lane's bit of a mask.
    LaneBit(Mask),
    /// The whole mask that is this operand, of the lanes that run.
    MaskOperand(Mask),
    /// An operand of what runs once a wave: `dwords` registers.
    Scalar {
        slot: Slot,
        dwords: u32,
        how: Scalar,
    },
    /// A register of a staged operand in another lane of the same 32.
    StagedLane {
        role: Role,
        lane: Box<Value>,
    },
    /// Register `index` of an operand in any lane.
    OperandLane {
        slot: Slot,
        lane: Box<Value>,
        index: Box<Value>,
    },
    Vgpr {
        lane: Box<Value>,
        reg: Box<Value>,
    },
    Sgpr {
        reg: Box<Value>,
    },

    // Memory.
    /// A load in place, which may end the handler with a fault. `retry`: the lane runs again if its
    /// [`Stmt::Exchange`] fails.
    Load {
        space: Space,
        addr: Box<Value>,
        bytes: u32,
        retry: bool,
    },
    /// What [`Step::Memory`] number `access` has loaded for this lane.
    Loaded {
        access: usize,
        dwords: u32,
    },
    /// Of read number `read` of the [`Stmt::Vector`] around.
    VectorRead {
        read: usize,
        at: VectorAt,
    },
    /// What call number `call` of [`Step::Simd`] has given this lane.
    SimdResult {
        call: usize,
    },
    /// The byte address of a machine with word addresses.
    WordAddress(Box<Value>),

    // Integers.
    /// Zero-extended or truncated to the holder.
    Resize(Box<Value>),
    /// Sign-extended from `width` bits to the holder, by which it may also be truncated.
    SignExtend {
        value: Box<Value>,
        width: u32,
    },
    Op1(Op1, Box<Value>),
    Op2(Op2, Box<Value>, Box<Value>),
    /// Toward zero; by zero all ones. The remainder has the sign of the dividend; by zero it is the dividend.
    Div {
        int: Int,
        remainder: bool,
        a: Box<Value>,
        b: Box<Value>,
    },
    /// By a count below the holder's width.
    ShlConst(Box<Value>, u32),
    ShrConst(Box<Value>, u32),
    /// By a count in 32 bits; 0 from the holder's width on.
    Shl(Box<Value>, Box<Value>),
    Shr(Box<Value>, Box<Value>),
    /// Of a signed value of `width` bits; all sign bits from the holder's width on.
    Sar {
        value: Box<Value>,
        count: Box<Value>,
        width: u32,
    },
    /// 1 or 0, in 32 bits.
    Compare {
        op: Compare,
        int: Int,
        a: Box<Value>,
        b: Box<Value>,
    },
    /// The right side is evaluated only if needed.
    LogicalAnd(Box<Value>, Box<Value>),
    LogicalOr(Box<Value>, Box<Value>),
    /// Only the chosen side is evaluated. The condition is 32 bits, true unless zero.
    Select(Box<Value>, Box<Value>, Box<Value>),
    /// Bits from `lo` on, resized to the holder; 0 from the value's holder on.
    Extract {
        value: Box<Value>,
        lo: Box<Value>,
    },
    /// `old` with the low `width` bits of `value` from `lo` on; `old` if `lo` is beyond the holder.
    Insert {
        old: Box<Value>,
        value: Box<Value>,
        lo: Box<Value>,
        width: u32,
    },
    /// Parts in the value's holder that do not overlap, each at its lowest bit.
    Concat(Vec<(Value, u32)>),
    /// Saturated to `to` if the instruction's clamp bit is set, else wrapped.
    Saturate {
        value: Box<Value>,
        from: Int,
        to: Int,
    },

    // Floats.
    Float {
        op: FloatOp,
        ty: Ty,
        args: Vec<Value>,
    },
    FloatBits {
        op: FloatBits,
        ty: Ty,
        value: Box<Value>,
    },
    Conversion(Conversion, Box<Value>),
    /// Any other conversion that has a float on one side.
    Convert {
        value: Box<Value>,
        from: Ty,
        to: Ty,
    },
    Pow {
        base: Box<Value>,
        power: Box<Value>,
        ty: Ty,
        power_ty: Ty,
    },

    // Calls.
    /// A builtin that hosts compute for many lanes at once ([`crate::passes::simd`]); `ty` is that of its
    /// result.
    Simd {
        builtin: Pure,
        ty: Ty,
        args: Vec<Value>,
    },
    /// Any other pure builtin, by the evaluator's definition.
    Pure {
        builtin: Pure,
        args: Vec<Value>,
        types: Vec<Ty>,
    },
    /// May end the handler.
    Control {
        builtin: Control,
        args: Vec<Value>,
    },
}

#[derive(Debug, Clone, PartialEq)]
pub enum Stmt {
    /// The value has the variable's holder.
    Set(Var, Value),
    /// The low `width` bits of a variable; the others stay.
    SetLow {
        var: Var,
        hold: Hold,
        width: u32,
        value: Value,
    },
    /// An element of an array local; nothing out of range.
    SetElement {
        id: LocalId,
        index: Value,
        value: Value,
    },
    /// This lane's bit of a mask.
    SetBit(Mask, Value),
    SetState(State, Value),
    SetVgpr {
        lane: Value,
        reg: Value,
        value: Value,
    },
    SetSgpr {
        reg: Value,
        value: Value,
    },
    /// The scalar result of what runs once a wave.
    SetScalar {
        dwords: u32,
        direct: bool,
        value: Value,
    },
    /// The whole mask that is the carry-out operand, of what runs once a wave.
    SetMaskOperand(Value),
    /// Parts of a value to several places: it is computed once, and is [`Var::Whole`] in the statements.
    Parts {
        value: Value,
        parts: Vec<Stmt>,
    },
    /// A store in place, which may end the handler with a fault.
    Store {
        space: Space,
        addr: Value,
        bytes: u32,
        value: Value,
    },
    /// The store of a read-modify-write: it happens only if memory still has what the lane's load gave, else
    /// the lane starts again.
    Exchange {
        space: Space,
        addr: Value,
        bytes: u32,
        value: Value,
    },
    /// What the store step that follows the loop is to store for this lane, and where, unless the step has a
    /// sum.
    SetStored {
        address: Option<(Space, Value)>,
        value: Value,
        dwords: u32,
    },
    /// Where the access of this lane goes.
    SetAddress {
        space: Space,
        addr: Value,
    },
    If {
        arms: Vec<(Value, Vec<Stmt>)>,
        otherwise: Vec<Stmt>,
    },
    /// Both ends included, signed.
    For {
        var: LocalId,
        from: Value,
        to: Value,
        body: Vec<Stmt>,
    },
    While {
        cond: Value,
        body: Vec<Stmt>,
    },
    /// A loop whose reads come before all of its writes.
    Vector(Box<Vector>),
    /// Ends the body, for this lane.
    Leave,
    /// May end the handler.
    Control {
        builtin: Control,
        args: Vec<Value>,
    },
}

/// A value of an operand that a lane reads out of its lane vectors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Read {
    pub role: Role,
    pub width: u32,
}

/// How a lane's result starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Start {
    /// As zero: the body assigns all of it.
    Zero,
    /// As what the destination holds.
    Old,
    /// As the half of the destination's register that the instruction names.
    OldHalf,
}

/// The result of a lane.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LaneResult {
    pub width: u32,
    pub start: Start,
    /// False for what only reads its destination.
    pub written: bool,
}

impl LaneResult {
    pub fn dwords(&self) -> u32 {
        self.width.div_ceil(32)
    }
}

/// A loop over 32 lanes, whose lanes do not depend on each other.
#[derive(Debug, Clone, PartialEq)]
pub struct LaneLoop {
    /// Skips inactive lanes: for bodies with effects, and those too expensive to compute in vain.
    pub active_only: bool,
    pub reads: Vec<Read>,
    pub result: Option<LaneResult>,
    /// Masks of which the body builds this lane's bit.
    pub bits: Vec<Mask>,
    pub body: Vec<Stmt>,
    /// The body has [`Stmt::Leave`].
    pub leaves: bool,
    /// The body has [`Stmt::Exchange`].
    pub retries: bool,
}

/// Addresses of 32 lanes.
#[derive(Debug, Clone, PartialEq)]
pub enum Addresses {
    /// A loop of their own computes them.
    Computed(LaneLoop),
    /// The lane loop before the step has set them.
    Set,
    /// A number of the wave plus 32 bits of each lane, without a vector of addresses.
    Sum(Box<Sum>),
}

/// An address that is one number of the wave and 32 bits of each lane.
#[derive(Debug, Clone, PartialEq)]
pub struct Sum {
    /// How the scalar part of the address is read.
    pub saddr: Value,
    /// Uniform: what the wave adds.
    pub base: Vec<Value>,
    /// The lanes' part.
    pub offsets: Role,
    /// Uniform: unless it is 0 the address is what the loop computes, for which the scalar part becomes a
    /// lane vector.
    pub unless: Option<(Value, LaneLoop)>,
    /// Uniform: what the wave adds in this case, if the lanes' part is then 64 bits of the same operand.
    pub wide: Option<Vec<Value>>,
    /// That step.
    pub stage: Vec<Step>,
}

/// An access for 32 lanes at once.
#[derive(Debug, Clone, PartialEq)]
pub struct Memory {
    /// Which of the handler's accesses it is.
    pub number: usize,
    pub store: bool,
    pub space: Space,
    pub bytes: u32,
    pub dwords: u32,
    pub addresses: Addresses,
}

/// Output modifiers that a result takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Output {
    Bits,
    F16,
    BF16,
    F32,
    F64,
    /// Two halves, each clamped.
    PackedF16,
}

/// How a result is written back, under the lanes that are active.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WriteBack {
    /// With output modifiers.
    General { output: Output },
    /// Into the half of the register that the instruction names.
    Half { output: Output },
    /// As it is. `flushing`: in modes that flush, results have no denormals. `direct`: such a result is that
    /// of one operation, and is flushed as it is written.
    Fast { flushing: bool, direct: bool },
}

/// A step of a handler for 32 lanes.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    /// The lane vectors of an operand: registers as they are, scalars broadcast. `direct`: it is lane vectors
    /// already.
    Stage {
        role: Role,
        slot: usize,
        dwords: u32,
        direct: bool,
    },
    /// The lane vectors of the destination before the instruction.
    StageOld,
    /// DPP, input modifiers and op_sel, if the instruction has any, on these source numbers; DPP may switch
    /// lanes off.
    Modify {
        sources: Vec<(usize, Role)>,
    },
    /// The bits of the carry-in operand for these lanes.
    ReadMask,
    /// Calls of a SIMD builtin, ahead of the lane loop: the arguments of each. `ty` is that of the results.
    Simd {
        builtin: Pure,
        ty: Ty,
        calls: Vec<Vec<Value>>,
        lanes: LaneLoop,
    },
    /// Room for what a loop is to store, and unless the store step has a sum for where it does.
    StoreRoom {
        space: Space,
        dwords: u32,
        addresses: bool,
    },
    /// An access of all lanes that are active.
    Memory(Memory),
    Loop(LaneLoop),
    /// The bits that the loop made of a mask. `keep`: those of inactive lanes stay.
    Gather {
        mask: Mask,
        keep: bool,
    },
    Write {
        dwords: u32,
        how: WriteBack,
    },
}

/// Which lanes a handler's steps are for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Halves {
    /// The 32 lanes of a wave of 32.
    One,
    /// Each 32 lanes of the wave, one after the other.
    Each,
    /// The 32 lanes that the caller names.
    Given,
}

/// A handler that runs in lanes.
#[derive(Debug, Clone, PartialEq)]
pub struct Lanes {
    pub halves: Halves,
    /// Copies of SGPRs among the sources are refreshed first, if the operation was lowered for
    /// [`Variant::FastBroadcast`].
    pub broadcast: bool,
    pub steps: Vec<Step>,
    /// Masks that are written when all lanes have run: a source may be the same register.
    pub masks: Vec<Mask>,
}

/// A handler that runs once a wave.
#[derive(Debug, Clone, PartialEq)]
pub struct Once {
    /// Operands that are read before the body.
    pub operands: Vec<(Role, Value)>,
    pub body: Vec<Stmt>,
    /// The body can change MODE, and with it the table of handlers.
    pub changes_mode: bool,
}

/// What a handler does.
#[derive(Debug, Clone, PartialEq)]
pub enum Body {
    Lanes(Lanes),
    Once(Once),
}

/// One copy between registers and memory for all lanes, possible if every lane is active and addresses are
/// coalesced.
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

/// What an operation has beside the handler for any operands.
#[derive(Debug, Clone, PartialEq)]
pub enum Fast {
    None,
    /// For lane vectors as they are, in waves of 32; with its twin that broadcasts scalars first.
    Lanes(Lanes),
    /// For SGPRs and constants of the scalar file.
    Scalar(Once),
    Block(Block),
}

/// Flushing operations whose sources are mostly results of flushing operations.
#[derive(Debug, Clone, PartialEq)]
pub struct Flushing {
    /// What is read as f32.
    pub sources: Vec<Slot>,
    /// One operation, whose result is flushed as it is written.
    pub direct: bool,
}

/// All that runs for one operation.
#[derive(Debug, Clone, PartialEq)]
pub struct Handlers {
    pub name: String,
    pub shape: Shape,
    pub locals: Vec<Local>,
    /// Which registers its operands are.
    pub operands: Operands,
    /// The destination is a mask, not a register of every lane.
    pub mask_result: bool,
    /// For any operands and either wave size.
    pub general: Body,
    pub fast: Fast,
    /// Whether results depend on MODE at all, and on whether f32 is flushed.
    pub floats: bool,
    pub floats_f32: bool,
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
}
