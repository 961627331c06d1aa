//! How an operation is executed: what selection has found, for the modules that compile units.

use crate::frame::Update;
use crate::lowering::Why;
use isa_lower::ir::*;
use isa_spec::pcode::ir::Space;
use isa_spec::tables::Role;
use std::sync::Arc;

/// An operation of a program.
pub struct Selection {
    /// Its lowered handlers.
    pub handlers: Arc<Handlers>,
    pub how: Selected,
    /// Execution can fall through to the next operation.
    pub falls_through: bool,
    /// Its handler may end the turn without a fault.
    pub may_end_turn: bool,
}

/// The way in which an operation is executed, and the code that has been recognised.
pub enum Selected {
    /// Not at all: it has no effect in the simulator.
    Nop,
    /// As scalar code.
    Scalar(Arc<Once>),
    /// As scalar code that may write the PC; it ends its block.
    Branch(Arc<Once>),
    /// In a loop over packets of lanes.
    Lanes(Arc<Lanes>),
    /// In such a loop, as a load or store.
    Access(Access),
    /// As an atomic, whose lanes access memory in a function.
    Atomic(Arc<AtomicUpdate>),
    /// By a call of its handler.
    Call(Why),
}

/// A load or store.
pub enum Access {
    /// Of whole registers of all lanes.
    Words(Arc<Block>),
    /// Of bytes or 16-bit halves.
    Subword(Arc<Subword>),
    /// Several stores to LDS.
    MultiStore(Arc<MultiStore>),
    /// Of each lane's own memory.
    Scratch(Arc<Scratch>, Arc<Lanes>),
}

/// A load or store of less than a word per lane: a copy of words, plus the per-lane code around the access.
pub struct Subword {
    /// The addresses, described as a copy of words.
    pub block: Block,
    /// The address space.
    pub space: Space,
    /// Bytes per lane.
    pub bytes: usize,
    /// The per-lane code.
    pub lanes: LaneLoop,
}

/// Stores of one instruction to several LDS addresses, which each lane performs in order.
pub struct MultiStore {
    /// Their addresses.
    pub block: Block,
    /// The data of each store.
    pub data: Vec<Role>,
}

/// An atomic read-modify-write of each lane.
pub struct AtomicUpdate {
    /// The addresses, described as those of a store of words.
    pub block: Block,
    pub space: Space,
    /// Bytes per lane.
    pub bytes: usize,
    pub update: Update,
    /// The old value may be returned.
    pub returned: bool,
}

/// A load or store of scratch by each lane.
pub struct Scratch {
    pub store: bool,
    /// Bytes per lane.
    pub bytes: usize,
    /// Registers per lane.
    pub registers: usize,
    /// Whole registers are moved unchanged.
    pub copy: bool,
    /// The per-lane code that computes the address.
    pub address_code: LaneLoop,
    /// The lane's 32-bit address.
    pub address: Value,
    /// The per-lane code around the access.
    pub lanes: LaneLoop,
}

impl Selected {
    /// Returns the name of the way.
    pub fn name(&self) -> &'static str {
        match self {
            Selected::Nop => "nop",
            Selected::Scalar(_) => "scalar",
            Selected::Branch(_) => "branch",
            Selected::Lanes(_) => "lanes",
            Selected::Access(Access::Words(_)) => "access of words",
            Selected::Access(Access::Subword(_)) => "access of subwords",
            Selected::Access(Access::MultiStore(_)) => "several stores",
            Selected::Access(Access::Scratch(..)) => "access of scratch",
            Selected::Atomic(_) => "atomic",
            Selected::Call(_) => "call",
        }
    }

    /// Returns whether the operation may write the PC.
    pub fn is_branch(&self) -> bool {
        matches!(self, Selected::Branch(_))
    }

    /// Returns whether the handler is called.
    pub fn is_call(&self) -> bool {
        matches!(self, Selected::Call(_))
    }
}

impl Selection {
    /// Returns the code of a branch.
    pub fn branch(&self) -> Option<&Once> {
        match &self.how {
            Selected::Branch(once) => Some(once),
            _ => None,
        }
    }

    /// Returns the access of an operation that is not one of scratch: its addresses, and the access itself.
    pub fn access(&self) -> Option<(&Block, &Access)> {
        match &self.how {
            Selected::Access(access @ Access::Words(block)) => Some((block, access)),
            Selected::Access(access @ Access::Subword(subword)) => Some((&subword.block, access)),
            Selected::Access(access @ Access::MultiStore(stores)) => Some((&stores.block, access)),
            _ => None,
        }
    }

    /// Returns the per-lane code of an operation that is an instruction of a run, unless it is an access by
    /// [`Selection::access`].
    pub fn lanes(&self) -> Option<&Arc<Lanes>> {
        match &self.how {
            Selected::Lanes(lanes) | Selected::Access(Access::Scratch(_, lanes)) => Some(lanes),
            _ => None,
        }
    }

    /// Returns the scratch access of an operation.
    pub fn scratch(&self) -> Option<&Arc<Scratch>> {
        match &self.how {
            Selected::Access(Access::Scratch(scratch, _)) => Some(scratch),
            _ => None,
        }
    }
}

/// The selections of a program's operations. Each operation is selected once.
#[derive(Default)]
pub struct Selections(Vec<Option<Selection>>);

impl Selections {
    /// Returns the selection of an operation that belongs to a unit: all of them have been selected when the
    /// unit was discovered.
    pub fn of(&self, op_index: u32) -> &Selection {
        self.0[op_index as usize].as_ref().expect("operations of units have been selected")
    }

    /// Returns the selection of an operation, which `select` selects if it has not been selected before.
    pub fn of_or(&mut self, op_index: u32, select: impl FnOnce() -> Selection) -> &Selection {
        let op_index = op_index as usize;
        if self.0.len() <= op_index {
            self.0.resize_with(op_index + 1, || None);
        }
        self.0[op_index].get_or_insert_with(select)
    }
}
