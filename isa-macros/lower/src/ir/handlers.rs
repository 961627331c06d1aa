//! All that runs for one operation.

use super::{Body, Lanes, Once, Output, Slot, Step, Value, ValueKind, WriteBack};
use crate::lower::operands::Operands;
use crate::visit::any_value;
use isa_spec::pcode::ir::{Local, Shape};
use isa_spec::tables::Role;

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

/// Floats that an operation reads or gives, by the bits of MODE that govern them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Floats {
    /// f32 and bf16: rounding and denormals of f32.
    pub single: bool,
    /// All others, which have rounding and denormals of their own. With bf16, as FP16_OVFL is for them all but f32.
    pub others: bool,
}

impl Floats {
    /// Whether there are any.
    pub fn any(self) -> bool {
        self.single || self.others
    }
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
    /// Which floats of MODE results depend on.
    pub floats: Floats,
    /// Whether handlers depend on how MODE treats f32, so that two modes need two of them. Products find out themselves.
    pub floats_f32: bool,
    /// One handler is for all hosts: see [`Handlers::is_serial`].
    pub shared: bool,
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

    /// Whether nothing is in it that is faster with the host's vectors: lanes one after the other, or scalar loads.
    pub(crate) fn is_serial(&self) -> bool {
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
        serial && self.fast == Fast::None && !self.floats.any()
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
