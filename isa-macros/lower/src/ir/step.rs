//! Steps of handlers: lane loops, memory accesses of all lanes, write-back.

use super::{Mask, Stmt, Value};
use isa_spec::pcode::ir::{FieldName, LocalId, Pure, Space, Ty};
use isa_spec::tables::Role;

/// An operand that a lane reads from its lane vectors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Read {
    /// The operand.
    pub role: Role,
    /// Width in bits.
    pub width: u32,
}

/// The initial value of a lane's result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Start {
    /// Zero: the body assigns the whole result.
    Zero,
    /// The contents of the destination.
    Old,
    /// The half of the destination register that the instruction selects.
    OldHalf,
}

/// The result of a lane.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LaneResult {
    /// Width in bits.
    pub width: u32,
    /// Initial value.
    pub start: Start,
    /// False for instructions that only read their destination.
    pub written: bool,
}

impl LaneResult {
    /// Returns the number of registers per lane.
    pub fn dwords(&self) -> u32 {
        self.width.div_ceil(32)
    }
}

/// The locals of a lane loop that exist outside of it. All others are a lane's own, and 0 at the start.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Outer {
    /// Locals with one value, which the loop only reads.
    pub same: Vec<LocalId>,
    /// Locals with a value for each lane.
    pub lanes: Vec<LocalId>,
    /// Arrays with elements for each lane, which are accessed as [`ValueKind::LaneElement`].
    ///
    /// [`ValueKind::LaneElement`]: super::ValueKind::LaneElement
    pub rows: Vec<LocalId>,
}

impl Outer {
    /// Returns whether there are none.
    pub fn is_empty(&self) -> bool {
        self.same.is_empty() && self.lanes.is_empty() && self.rows.is_empty()
    }
}

/// A loop over 32 independent lanes.
#[derive(Debug, Clone, PartialEq)]
pub struct LaneLoop {
    /// Skips inactive lanes: set for bodies with side effects, and for those too expensive to compute
    /// speculatively.
    pub active_only: bool,
    /// Operands that the body reads.
    pub reads: Vec<Read>,
    /// The lane's result in VGPRs, if any.
    pub result: Option<LaneResult>,
    /// Masks whose bit for this lane the body computes.
    pub bits: Vec<Mask>,
    /// The statements of one lane.
    pub body: Vec<Stmt>,
    /// The body has [`Stmt::Leave`].
    pub leaves: bool,
    /// The body has [`Stmt::Exchange`].
    pub retries: bool,
    /// Locals that other steps share.
    pub outer: Outer,
}

/// The source of the addresses of 32 lanes.
#[derive(Debug, Clone, PartialEq)]
pub enum Addresses {
    /// A separate loop computes them.
    Computed(LaneLoop),
    /// The lane loop before the step has set them.
    Set,
    /// A uniform value plus 32 bits of each lane, without a vector of addresses.
    Sum(Box<Sum>),
}

/// What 32 bits of each lane are multiplied by in an address of 64 bits: `factor` if a field of the instruction is
/// not 0, otherwise 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Scale {
    /// The field.
    pub field: FieldName,
    /// At least 2.
    pub factor: u32,
}

/// An address that is a uniform value plus 32 bits of each lane, which may be scaled.
#[derive(Debug, Clone, PartialEq)]
pub struct Sum {
    /// The scalar part of the address.
    pub saddr: Value,
    /// Uniform terms.
    pub base: Vec<Value>,
    /// The operand with each lane's 32 bits.
    pub offsets: Role,
    /// What these are multiplied by.
    pub scale: Option<Scale>,
    /// A uniform condition under which (if not 0) the loop computes the addresses instead; the scalar part
    /// then becomes a lane vector.
    pub unless: Option<(Value, LaneLoop)>,
    /// In the case of `unless`, the uniform terms, if the lanes' part is then 64 bits of the same operand.
    pub address64: Option<Vec<Value>>,
    /// The steps that stage the scalar part as a lane vector in the case of `unless`.
    pub stage: Vec<Step>,
}

/// A memory access of 32 lanes at once.
#[derive(Debug, Clone, PartialEq)]
pub struct Memory {
    /// Number of the access in its handler, to which [`ValueKind::Loaded`] refers.
    pub number: usize,
    /// True for a store, false for a load.
    pub store: bool,
    /// Address space.
    pub space: Space,
    /// Size of the access per lane, in bytes.
    pub bytes: u32,
    /// Registers loaded or stored per lane.
    pub dwords: u32,
    /// The source of each lane's address.
    pub addresses: Addresses,
}

/// The float format in which output modifiers (clamp, omod) apply to a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Output {
    /// Not a float: output modifiers do not apply.
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

/// The write-back of a result to the active lanes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WriteBack {
    /// With output modifiers.
    General { output: Output },
    /// To the half of the register that the instruction selects.
    Half { output: Output },
    /// Without modifiers. `flushing`: in modes that flush, results have no denormals. `direct`: the result
    /// comes from one operation and is flushed during the write-back.
    Fast { flushing: bool, direct: bool },
}

/// A step of a handler for 32 lanes.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    /// Stages an operand as lane vectors: copies vector registers and broadcasts scalars. `direct`: the
    /// operand is lane vectors already.
    Stage { role: Role, slot: usize, dwords: u32, direct: bool },
    /// Stages the destination's lane vectors before the instruction.
    StageOld,
    /// Applies the instruction's DPP, input modifiers and op_sel, if any, to these sources; DPP may
    /// deactivate lanes.
    Modify { sources: Vec<(usize, Role)> },
    /// Reads the bits of the carry-in operand for these lanes.
    ReadMask,
    /// Calls a SIMD builtin ahead of the lane loop, with the arguments of each call; `ty` is the type of the
    /// results.
    Simd { builtin: Pure, ty: Ty, calls: Vec<Vec<Value>>, lanes: LaneLoop },
    /// Declares the vectors for the values that a loop stores, and for its addresses unless the store step
    /// has a [`Sum`].
    StoreRoom { space: Space, dwords: u32, addresses: bool },
    /// A memory access of all active lanes.
    Memory(Memory),
    /// A lane loop.
    Loop(LaneLoop),
    /// Declares locals for the steps that follow, all 0: with one value, with a value for each lane, and arrays with
    /// elements for each lane.
    Declare { same: Vec<LocalId>, lanes: Vec<LocalId>, rows: Vec<LocalId> },
    /// Statements that run once for the 32 lanes. `reads` are the scalar operands that they read.
    Once { reads: Vec<Read>, body: Vec<Stmt> },
    /// Runs the first arm whose condition, which is the same for all lanes, is not 0, else `otherwise`.
    If { arms: Vec<(Value, Vec<Step>)>, otherwise: Vec<Step> },
    /// Counts a local up from `from` to `to`, both inclusive, signed, and the same for all lanes.
    For { var: LocalId, from: Value, to: Value, body: Vec<Step> },
    /// Steps for the active lanes in which a local is not 0.
    Masked { mask: LocalId, steps: Vec<Step> },
    /// Collects the bits of a mask that the loop has computed. `keep` preserves the bits of inactive lanes.
    Gather { mask: Mask, keep: bool },
    /// Writes the result back.
    Write { dwords: u32, how: WriteBack },
}

/// The lanes that a handler's steps process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Halves {
    /// The 32 lanes of a wave32, or the current half of a wave64, as set in the context.
    One,
    /// Each 32 lanes of the wave in turn.
    Each,
    /// The 32 lanes that the caller passes.
    Given,
}

/// A handler that processes lanes.
#[derive(Debug, Clone, PartialEq)]
pub struct Lanes {
    /// The lanes that the steps process.
    pub halves: Halves,
    /// Broadcast copies of SGPR sources are updated first, if the operation was lowered for `FastBroadcast`.
    pub broadcast: bool,
    /// The steps for every 32 lanes, in order.
    pub steps: Vec<Step>,
    /// Masks that are written after all lanes have run, since a source may be the same register.
    pub masks: Vec<Mask>,
}

impl Lanes {
    /// Returns whether a 16-bit result is written to a half of the register.
    pub fn writes_half(&self) -> bool {
        self.steps.iter().any(|step| matches!(step, Step::Write { how: WriteBack::Half { .. }, .. }))
    }
}

/// A handler that runs once per wave.
#[derive(Debug, Clone, PartialEq)]
pub struct Once {
    /// Operands read before the body.
    pub operands: Vec<(Role, Value)>,
    /// The statements.
    pub body: Vec<Stmt>,
    /// The statements that hosts with SIMD vectors run instead of `body`, if they differ.
    pub with_vectors: Option<Vec<Stmt>>,
    /// The body can change MODE and thereby the table of handlers.
    pub changes_mode: bool,
    /// The body has [`Stmt::Exchange`].
    pub retries: bool,
}

/// The body of a handler.
#[derive(Debug, Clone, PartialEq)]
pub enum Body {
    /// Steps for every 32 lanes.
    Lanes(Lanes),
    /// Code that runs once per wave.
    Once(Once),
}
