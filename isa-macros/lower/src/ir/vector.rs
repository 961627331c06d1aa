//! Loops of bodies that run once a wave, over neighbours: what [`crate::passes::vector`] makes.

use super::{Slot, Value};
use isa_spec::pcode::ir::LocalId;

/// A loop over neighbouring elements or lanes. [`Vector::var`] counts; in places it has its first value.
#[derive(Debug, Clone, PartialEq)]
pub struct Vector {
    pub var: LocalId,
    pub from: u32,
    pub count: u32,
    /// For each half of the wave, of so many lanes.
    pub lanes: bool,
    pub reads: Vec<VectorRead>,
    pub writes: Vec<VectorWrite>,
}

/// What a [`Vector`] reads before its iterations.
#[derive(Debug, Clone, PartialEq)]
pub enum VectorRead {
    Place(VectorPlace),
    /// A register of an operand, in the lanes from `lane` on.
    Lanes {
        slot: Slot,
        lane: Value,
        index: Value,
    },
    /// The same in all lanes of the wave.
    Wave {
        slot: Slot,
        index: Value,
    },
    /// A VGPR in all lanes of the wave.
    WaveVgpr {
        reg: Value,
    },
    /// A value that is the same for all.
    Same(Value),
}

/// Which part of a read an iteration takes.
#[derive(Debug, Clone, PartialEq)]
pub enum VectorAt {
    Own,
    Same,
    Lane(Box<Value>),
}

/// Where the vector of a [`Vector`] begins.
#[derive(Debug, Clone, PartialEq)]
pub enum VectorPlace {
    Elements { id: LocalId, start: Value },
    Vgpr { lane: Value, reg: Value },
}

impl VectorPlace {
    /// The array, if it is one.
    pub fn array(&self) -> Option<LocalId> {
        match self {
            VectorPlace::Elements { id, .. } => Some(*id),
            VectorPlace::Vgpr { .. } => None,
        }
    }
}

/// What a [`Vector`] writes after its iterations; where `when` is 0, nothing.
#[derive(Debug, Clone, PartialEq)]
pub struct VectorWrite {
    pub to: VectorPlace,
    pub when: Option<Value>,
    pub value: Value,
}
