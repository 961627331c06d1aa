//! What `check`, `debug` and `tui` run: any kernel that the other commands take.

use super::execute::parse_schedule;
use super::run::KernelArgs;
use crate::loader::launch::{self, Wanted};
use crate::loader::prepared::Prepared;
use crate::sched::dispatch::{Dispatch, Schedule};
use std::path::PathBuf;

/// A kernel on the command line
#[derive(Debug, Clone, clap::Args)]
pub struct InputArgs {
    /// A text kernel, or a launch description (`.json`)
    pub file: PathBuf,
    /// Launch descriptions: key of the launch's `code` (gfx1201, gfx1100.w64)
    #[arg(long, conflicts_with_all = ["arch", "mcpu", "wave"])]
    pub target: Option<String>,
    #[command(flatten)]
    pub kernel: KernelArgs,
    /// Order of a workgroup's waves: round-robin, reverse or random:SEED
    #[arg(long, value_name = "ORDER", default_value = "round-robin", value_parser = parse_schedule)]
    pub schedule: Schedule,
    /// Stop with a fault after this many wave-instructions
    #[arg(long, value_name = "N", default_value_t = 10_000_000_000)]
    pub max_instructions: u64,
}

impl InputArgs {
    /// Loads the kernel with `guard` bytes free between its arguments; what is wrong with a text is the inner error, as shown to a user.
    pub fn prepare(&self, guard: u64) -> anyhow::Result<Result<Prepared, String>> {
        if self.file.extension().is_none_or(|e| e != "json") {
            return self.kernel.prepare_guarded(&self.file, guard);
        }
        let machine = &self.kernel.target;
        let wanted = Wanted {
            target: self.target.clone().or(machine.mcpu_name()),
            arch: machine.arch(),
            wave: self.kernel.wave.wave,
        };
        // Launch descriptions have arrays of any size.
        let bytes = (self.kernel.global_memsize << 20).max(1 << 30);
        Ok(Ok(launch::load(&self.file, &wanted, bytes, guard)?.prepared))
    }

    pub fn dispatch<'p>(&self, prepared: &'p Prepared) -> Dispatch<'p> {
        Dispatch { schedule: self.schedule, ..prepared.dispatch(self.max_instructions) }
    }
}
