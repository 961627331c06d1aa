//! What a handler does, step by step: lane loops, accesses of all lanes, write-back.

use super::{Mask, Stmt, Value};
use isa_spec::pcode::ir::{Pure, Space, Ty};
use isa_spec::tables::Role;

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
    /// What hosts with SIMD vectors run instead of the body, if anything.
    pub with_vectors: Option<Vec<Stmt>>,
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
