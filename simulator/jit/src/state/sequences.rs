//! VGPRs whose lanes are arithmetic sequences, while the sequence version of a block is emitted.

use crate::arith::val::Val;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use wavesim_x64::inst::{Label, V};

/// Values of lanes: lane `n` has `first + n * stride`, which does not wrap around in any lane.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sequence {
    /// Lane 0's value, which is uniform.
    pub first: Val,
    pub stride: u32,
}

/// Strides of registers, which are expected, not known: code tests them before it uses them.
pub type Strides = BTreeMap<u16, u32>;

/// How a vector instruction is computed as a sequence.
pub enum SequenceResult {
    /// Not at all.
    None,
    /// Its whole result.
    Whole,
    /// The low one of two result registers.
    Low(Sequence),
}

/// The sequence version of a block, up to its first effect.
pub struct Sequences {
    /// Registers that are sequences at this point.
    pub registers: BTreeMap<u16, Sequence>,
    /// Those that have not been stored to the wave yet.
    pub unstored: BTreeSet<u16>,
    /// Words of masks in which either all lanes or none are set, and whether they are.
    pub masks: Vec<(Val, Val)>,
    /// The low bits of values, by their number.
    pub low_bits: HashMap<(V, u32), V>,
    /// First values and strides of sequences that have been proven to fit in so many bits.
    pub proven: HashSet<(V, u64, u32)>,
    /// Where the general code of the block begins.
    pub abandon: Label,
    /// EXEC, with all lanes active.
    pub exec: Val,
    /// The strides of registers that have not been read yet.
    pub expected: Strides,
}

/// What the emission of sequence versions knows about the unit.
#[derive(Default)]
pub struct SequenceVersions {
    /// The version that is being emitted, until its first effect.
    pub active: Option<Sequences>,
    /// The strides that are expected where blocks begin, by their first operation.
    pub expected: BTreeMap<u32, Strides>,
    /// The same at this point.
    pub here: Strides,
    /// Registers that are stored after the run that is being emitted, which need not store them.
    pub stored_later: BTreeSet<u16>,
}
