//! Records of a run for people and tools: a line per instruction ([`jsonl`]), a timeline ([`chrome`]),
//! statistics ([`stats`]), accesses and lanes over time for pictures ([`activity`]), a listing with counts ([`profile`]), and the output of `print` directives
//! ([`prints`]). Each is an [`wavesim_engine::observe::Observer`].
#![warn(missing_docs)]
// No files, threads, processes or clocks; clippy.toml lists the disallowed methods.
#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

pub mod activity;
pub mod chrome;
pub mod jsonl;
pub mod prints;
pub mod profile;
pub mod stats;

use wavesim_engine::observe::Step;

/// Selects the instructions to trace.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Filter {
    /// Wave indices in the workgroup; empty for all waves.
    pub waves: Vec<u32>,
    /// Coordinates in the grid; `None` for all workgroups.
    pub workgroup: Option<[u32; 3]>,
    /// First and last PC.
    pub pcs: Option<(u64, u64)>,
}

impl Filter {
    /// Returns whether this instruction of this wave must be traced.
    pub fn matches(&self, step: &Step<'_>) -> bool {
        (self.waves.is_empty() || self.waves.contains(&step.wave.id))
            && self.workgroup.is_none_or(|g| g == step.wave.workgroup)
            && self.pcs.is_none_or(|(first, last)| (first..=last).contains(&step.program.address(step.pc)))
    }
}
