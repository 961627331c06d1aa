//! A wave's outstanding memory operations, as the hardware's counters would count them. The simulator
//! completes memory operations at once; the debugger shows these as additional information.

use super::kind::CheckState;
use super::report::Report;
use super::waits;
use std::ops::ControlFlow;
use wavesim_engine::observe::{Done, Observer, Step};
use wavesim_isa::arch::Arch;
use wavesim_machine::exec::effects::{self, Effects};
use wavesim_machine::exec::machine_ops::Event;
use wavesim_machine::exec::program::Program;

/// An observer that tracks outstanding operations; it must observe a workgroup from its start.
pub struct Outstanding {
    arch: Arch,
    effects: Vec<Effects>,
    scoreboard: waits::Scoreboard,
    /// Collects no findings: `wavesim check` reports errors.
    report: Report,
}

impl Outstanding {
    /// Creates the observer for a program and waves of `wave_size` lanes.
    pub fn new(program: &Program, wave_size: u32) -> Outstanding {
        let effects = effects::table(program, wave_size);
        let scoreboard = waits::Scoreboard::of(program, &effects, true);
        Outstanding { arch: program.arch, effects, scoreboard, report: Report::new(&[]) }
    }

    /// Returns the architecture's counters, each with the PCs of the wave's operations that it counts, oldest
    /// first.
    pub fn of_wave(&self, wave: u32) -> Vec<(&'static str, Vec<u64>)> {
        let counters = self.arch.facts().counters.all.iter();
        counters.map(|&counter| (counter.name(), self.scoreboard.outstanding(wave, counter))).collect()
    }
}

impl Observer for Outstanding {
    fn group_started(&mut self, workgroup: [u32; 3], waves: usize) {
        self.scoreboard.start(workgroup, waves);
    }

    fn before(&mut self, step: &Step<'_>) -> ControlFlow<()> {
        self.scoreboard.before(step, &self.effects[step.index], &mut self.report);
        ControlFlow::Continue(())
    }

    fn after(&mut self, step: &Step<'_>, done: &Done<'_>) {
        self.scoreboard.after(step, done);
        if matches!(done.event, Some(Event::EndPgm)) {
            self.scoreboard.end(step);
        }
    }
}
