//! `--memory` and `--poison`: when memory operations take effect, and what registers hold at first.

use super::schedule::WaveOrder;
use wavesim_engine::delayed::{DelayedMemory, Delays, Timing};
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

/// When memory operations take effect in an exploration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Memory {
    /// At once.
    Immediate,
    /// When the exploration chooses.
    Delayed,
}

/// The garbage in explored runs.
const POISON: Poison = Poison(1);

impl Memory {
    /// Parses the value of the option.
    ///
    /// # Errors
    /// It is neither `immediate` nor `delayed`.
    pub fn parse(text: &str) -> Result<Memory, String> {
        match text {
            "immediate" => Ok(Memory::Immediate),
            "delayed" => Ok(Memory::Delayed),
            _ => Err(format!("`{text}` is neither immediate nor delayed")),
        }
    }

    /// Returns the delayed memory of a kernel; `None` for immediate memory, and on machines without counters of
    /// outstanding operations.
    pub fn model(self, prepared: &Prepared) -> Option<DelayedMemory> {
        let model = || DelayedMemory::new(&prepared.program, prepared.shape.wave_size, Delays::Demanded).ok();
        (self == Memory::Delayed).then(model).flatten()
    }

    /// Completes a dispatch; `model` is what [`Memory::model`] has returned.
    pub fn apply<'m>(self, dispatch: &mut Dispatch<'m>, model: Option<&'m DelayedMemory>) {
        dispatch.delayed = model;
        dispatch.poison = model.map(|_| POISON);
    }
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
    /// Returns the delayed memory of a kernel, or `None` for immediate memory. `order` may be a recorded schedule, which
    /// says itself which operations are delayed.
    ///
    /// # Errors
    /// The architecture has no delayed memory, or the schedule is not valid.
    pub fn model(&self, prepared: &Prepared, order: &WaveOrder) -> anyhow::Result<Option<DelayedMemory>> {
        let (program, wave_size) = (&prepared.program, prepared.shape.wave_size);
        match order.recorded(prepared)? {
            Some(recorded) if !recorded.late().is_immediate() => {
                if self.memory != Timing::Immediate {
                    anyhow::bail!("the recorded schedule has delays of its own; leave out --memory");
                }
                Ok(recorded.model(program, wave_size)?)
            }
            _ => Ok(self.memory.model(program, wave_size)?),
        }
    }

    /// Completes a dispatch; `model` is what [`MemoryArgs::model`] has returned.
    pub fn apply<'m>(&self, dispatch: &mut Dispatch<'m>, model: Option<&'m DelayedMemory>) {
        dispatch.delayed = model;
        // A recorded schedule has set its own.
        dispatch.poison = self.poison.map_or(self.memory.poison().or(dispatch.poison), |garbage| garbage.0);
        if model.is_some() {
            dispatch.compiled = None;
        }
    }
}
