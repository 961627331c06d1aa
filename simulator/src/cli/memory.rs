//! `--memory` and `--poison`: when memory operations take effect, and what registers hold at first.

use wavesim_engine::delayed::{DelayedMemory, NoCounters, Timing};
use wavesim_engine::sched::dispatch::Dispatch;
use wavesim_engine::sched::poison::Poison;
use wavesim_loader::prepared::Prepared;

/// When memory operations take effect, and what registers, LDS and scratch hold at first
#[derive(Debug, Clone, clap::Args)]
pub struct MemoryArgs {
    /// When memory operations take effect: immediate, or delayed[:SEED], at random times before the wait that demands
    /// them, as on hardware (interpreted)
    #[arg(long, value_name = "TIMING", default_value = "immediate", value_parser = str::parse::<Timing>)]
    pub memory: Timing,
    /// Fill registers, LDS and scratch with garbage at the start of each workgroup, derived from a seed; `none` fills them
    /// with zeros [default: none; with delayed memory, its seed]
    #[arg(long, value_name = "SEED", value_parser = parse_poison)]
    pub poison: Option<Garbage>,
}

/// Garbage, or none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Garbage(Option<Poison>);

fn parse_poison(text: &str) -> Result<Garbage, String> {
    match text {
        "none" => Ok(Garbage(None)),
        seed => match seed.parse() {
            Ok(seed) => Ok(Garbage(Some(Poison(seed)))),
            Err(_) => Err(format!("`{seed}` is neither a number nor `none`")),
        },
    }
}

impl MemoryArgs {
    /// Returns the delayed memory of a kernel, or `None` for immediate memory.
    ///
    /// # Errors
    /// The architecture has no delayed memory.
    pub fn model(&self, prepared: &Prepared) -> Result<Option<DelayedMemory>, NoCounters> {
        self.memory.model(&prepared.program, prepared.shape.wave_size)
    }

    /// Completes a dispatch; `model` is what [`MemoryArgs::model`] has returned.
    pub fn apply<'m>(&self, dispatch: &mut Dispatch<'m>, model: Option<&'m DelayedMemory>) {
        dispatch.delayed = model;
        dispatch.poison = self.poison.map_or(self.memory.poison(), |garbage| garbage.0);
        if model.is_some() {
            dispatch.compiled = None;
        }
    }
}
