//! What waves have under way, as the hardware's counters would have it. The simulator's own memory operations come back at once; the
//! debugger shows these beside them.

use super::report::Report;
use super::waits;
use std::ops::ControlFlow;
use wavesim_engine::observe::{Done, Observer, Step};
use wavesim_isa::arch::Arch;
use wavesim_machine::exec::effects::{self, Effects};
use wavesim_machine::exec::machine_ops::Event;
use wavesim_machine::exec::program::Program;

/// Follows a workgroup from its start.
pub struct Outstanding {
    arch: Arch,
    effects: Vec<Effects>,
    shadow: waits::Shadow,
    /// Collects nothing: mistakes are for `wavesim check`.
    report: Report,
}

impl Outstanding {
    pub fn new(program: &Program, wave_size: u32) -> Outstanding {
        let effects = effects::table(program, wave_size);
        let shadow = waits::Shadow::new(program, &effects);
        Outstanding { arch: program.arch, effects, shadow, report: Report::new(&[], program.arch) }
    }

    /// The architecture's counters, each with the PCs of a wave's operations that it counts, oldest first.
    pub fn of_wave(&self, wave: u32) -> Vec<(&'static str, Vec<u64>)> {
        let counters = waits::Counter::of_arch(self.arch).iter();
        counters.map(|&counter| (counter.name(), self.shadow.outstanding(wave, counter))).collect()
    }
}

impl Observer for Outstanding {
    fn group_started(&mut self, _workgroup: [u32; 3], waves: usize) {
        self.shadow.start(waves);
    }

    fn before(&mut self, step: &Step<'_>) -> ControlFlow<()> {
        self.shadow.before(step, &self.effects[step.index], &mut self.report);
        ControlFlow::Continue(())
    }

    fn after(&mut self, step: &Step<'_>, done: &Done<'_>) {
        self.shadow.after(step, done);
        if matches!(done.event, Some(Event::EndPgm)) {
            self.shadow.end(step);
        }
    }
}
