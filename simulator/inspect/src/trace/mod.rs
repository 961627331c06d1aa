//! What a run did, for people and tools: a line an instruction ([`jsonl`]), a timeline ([`chrome`]), figures ([`stats`]), and a listing
//! with counts ([`profile`]); and what its `print` directives show ([`prints`]). Each is an [`wavesim_engine::observe::Observer`].

pub mod chrome;
pub mod jsonl;
pub mod prints;
pub mod profile;
pub mod stats;

use wavesim_engine::observe::Step;

/// Which instructions to trace.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Filter {
    /// Indices in the workgroup; empty: all.
    pub waves: Vec<u32>,
    /// Coordinates in the grid; `None`: all.
    pub workgroup: Option<[u32; 3]>,
    /// First and last PC.
    pub pcs: Option<(u64, u64)>,
}

impl Filter {
    /// Whether this instruction of this wave is to be traced.
    pub fn takes(&self, step: &Step<'_>) -> bool {
        (self.waves.is_empty() || self.waves.contains(&step.wave.id))
            && self.workgroup.is_none_or(|g| g == step.wave.workgroup)
            && self.pcs.is_none_or(|(first, last)| (first..=last).contains(&step.program.address(step.pc)))
    }
}
