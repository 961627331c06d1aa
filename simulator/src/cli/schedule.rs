//! `--schedule`: the order of waves, by name or as recorded in a file.

use anyhow::Context as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use wavesim_engine::sched::dispatch::{Dispatch, Schedule};
use wavesim_engine::sched::recorded::Recorded;
use wavesim_files as files;
use wavesim_loader::prepared::Prepared;

/// The extension of files with schedules.
const EXTENSION: &str = "sched";

/// The order of waves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WaveOrder {
    /// By name.
    Named(Schedule),
    /// As recorded in a file.
    File(PathBuf),
}

impl WaveOrder {
    /// Parses the value of the option.
    ///
    /// # Errors
    /// It is neither an order nor the name of a file with a schedule.
    pub fn parse(text: &str) -> Result<WaveOrder, String> {
        let schedule = match text.split_once(':') {
            None if text == "round-robin" => Schedule::RoundRobin,
            None if text == "reverse" => Schedule::Reverse,
            Some((kind @ ("random" | "fine"), seed)) => {
                let of = if kind == "fine" { Schedule::Fine } else { Schedule::Random };
                let seed = seed.parse().map_err(|_| format!("the seed `{seed}` is not a number"))?;
                of(seed)
            }
            _ if Path::new(text).extension().is_some_and(|extension| extension == EXTENSION) => {
                return Ok(WaveOrder::File(text.into()));
            }
            _ => {
                return Err(format!(
                    "orders are round-robin, reverse, random:SEED, fine:SEED and files whose names end in .{EXTENSION}"
                ));
            }
        };
        Ok(WaveOrder::Named(schedule))
    }

    /// Returns the order of waves by name, which a recorded one does not need.
    pub fn schedule(&self) -> Schedule {
        match self {
            WaveOrder::Named(schedule) => *schedule,
            WaveOrder::File(_) => Schedule::RoundRobin,
        }
    }

    /// Reads the schedule from its file, if it is in one.
    ///
    /// # Errors
    /// The file cannot be read, is not a schedule, or was recorded for another kernel.
    pub fn recorded(&self, prepared: &Prepared) -> anyhow::Result<Option<Arc<Recorded>>> {
        let WaveOrder::File(path) = self else { return Ok(None) };
        let text = files::read_text(path)?;
        let recorded = Recorded::parse(&text).with_context(|| path.display().to_string())?;
        recorded.check(prepared.identity()).with_context(|| path.display().to_string())?;
        Ok(Some(Arc::new(recorded)))
    }

    /// Sets the order of a launch.
    ///
    /// # Errors
    /// As for [`WaveOrder::recorded`].
    pub fn apply(&self, prepared: &Prepared, dispatch: &mut Dispatch<'_>) -> anyhow::Result<()> {
        dispatch.schedule = self.schedule();
        if let Some(recorded) = self.recorded(prepared)? {
            dispatch.follow(recorded);
        }
        Ok(())
    }
}
