//! The handlers of one operation.

use super::{Body, Lanes, Once, Output, Scale, Slot, Step, Value, ValueKind, WriteBack};
use crate::lower::operands::Operands;
use crate::visit::any_value;
use isa_spec::pcode::ir::{Local, Shape};
use isa_spec::tables::Role;

/// A block copy between registers and memory for all lanes, valid if every lane is active and addresses are
/// coalesced.
#[derive(Debug, Clone, PartialEq)]
pub enum Block {
    Global {
        base: Vec<Value>,
        offsets: Role,
        /// What the lanes' offsets are multiplied by, unless `unless` holds.
        scale: Option<Scale>,
        unless: Option<Value>,
        /// The uniform terms of the address if `unless` is not 0 and the address is such a sum, with 64 bits
        /// of each lane.
        address64: Option<Vec<Value>>,
        store: bool,
        dwords: u32,
    },
    /// LDS at the lanes' addresses, plus each of several offsets from the instruction. Loads go to
    /// consecutive registers.
    Lds { lanes: Role, plus: Vec<Value>, store: bool, dwords: u32 },
}

/// The fast handler of an operation, in addition to the general one.
#[derive(Debug, Clone, PartialEq)]
pub enum Fast {
    /// No fast handler.
    None,
    /// For operands that are lane vectors without modifiers; a second copy, `FastBroadcast`, broadcasts
    /// scalars first.
    Lanes(Lanes),
    /// For operands that are SGPRs and constants of the scalar file.
    Scalar(Once),
    /// For coalesced accesses of all lanes.
    Block(Block),
}

/// Properties of an operation that flushes denormals and whose sources are mostly results of such operations.
#[derive(Debug, Clone, PartialEq)]
pub struct Flushing {
    /// Sources read as f32.
    pub sources: Vec<Slot>,
    /// The result comes from one operation and is flushed during the write-back.
    pub direct: bool,
}

/// Float formats of an operation's operands and results, by the bits of MODE that govern them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Floats {
    /// f32 and bf16: rounding and denormals of f32.
    pub single: bool,
    /// All other formats, which have their own rounding and denormal modes, and bf16: FP16_OVFL applies to
    /// all formats except f32.
    pub others: bool,
}

impl Floats {
    /// Returns whether the operation uses any floats.
    pub fn any(self) -> bool {
        self.single || self.others
    }
}

/// The handlers of one operation.
#[derive(Debug, Clone, PartialEq)]
pub struct Handlers {
    /// The operation's name.
    pub name: String,
    /// How often the body runs.
    pub shape: Shape,
    /// The body's variables; [`LocalId`] indexes them.
    pub locals: Vec<Local>,
    /// Operands with their widths, and operands used by register number.
    pub operands: Operands,
    /// The destination is a lane mask rather than a vector register.
    pub mask_result: bool,
    /// The handler for any operands and either wave size.
    pub general: Body,
    /// The handler for operands without modifiers, if there is one.
    pub fast: Fast,
    /// The general handler needs no separate code: applying `fast`, which is [`Fast::Lanes`], to staged
    /// operands with modifiers, and then output modifiers, has the same effect.
    pub general_uses_fast: bool,
    /// The floats whose MODE bits affect results.
    pub floats: Floats,
    /// The handlers depend on the f32 bits of MODE and must be compiled for each of two modes. Products test
    /// MODE at run time instead.
    pub floats_f32: bool,
    /// All hosts share one handler: see [`Handlers::is_serial`].
    pub shared: bool,
    /// The semantics are those of another unit than the vector ALU ([`Semantics::ignores_mode`]): lane by lane.
    ///
    /// [`Semantics::ignores_mode`]: isa_spec::pcode::ir::Semantics::ignores_mode
    pub other_unit: bool,
    /// Set for operations that flush denormals and whose sources are mostly results of such operations.
    pub flushing: Option<Flushing>,
}

impl Handlers {
    /// Returns the number of vector registers of the result; 0 for a mask.
    pub fn result_dwords(&self) -> u32 {
        match self.mask_result {
            true => 0,
            false => self.operands.widths.get(&Role::D0).map_or(0, |width| width.div_ceil(32)),
        }
    }

    /// Returns whether the host's vectors would not make the handler faster: it runs lane by lane or loads
    /// scalars.
    pub(crate) fn is_serial(&self) -> bool {
        let serial = match &self.general {
            Body::Lanes(lanes) => {
                !lanes.broadcast
                    && !lanes.steps.iter().any(|s| {
                        matches!(
                            s,
                            Step::Memory(_) | Step::Simd { .. } | Step::If { .. } | Step::Masked { .. }
                        )
                    })
            }
            Body::Once(once) => {
                (self.shape == Shape::Scalar || self.other_unit)
                    && any_value(&once.body, &|v| matches!(v.kind, ValueKind::Load { .. }))
            }
        };
        serial && self.fast == Fast::None && !self.floats.any()
    }

    /// Returns whether the general handler writes the result to a half of the register.
    pub fn writes_half(&self) -> bool {
        matches!(&self.general, Body::Lanes(lanes) if lanes.writes_half())
    }

    /// Returns the output modifiers that the general handler applies to a result of whole registers, if it
    /// has one.
    pub fn output(&self) -> Option<Output> {
        let Body::Lanes(lanes) = &self.general else { return None };
        lanes.steps.iter().find_map(|step| match step {
            Step::Write { how: WriteBack::General { output }, .. } => Some(*output),
            _ => None,
        })
    }
}
