//! Checks that hardware does not make: a run with a shadow of every register and byte, and a report of each mistake once.
//!
//! [`Checker`] is an observer; each check is a module with its own shadow: [`init`] (reads of registers that nothing wrote),
//! [`mem`] (bounds, alignment, bytes that nothing wrote), [`race`] (accesses that no barrier or atomic orders), [`waits`] (results used
//! before their counter was waited for), [`barrier`] (waves that do not meet), [`hazard`] (uses that the architecture forbids).

mod barrier;
mod hazard;
mod init;
mod mem;
mod race;
mod report;
mod waits;

pub use report::{Finding, Other, Report, Site};

use crate::exec::effects::{self, Effects};
use crate::exec::machine_ops::Event;
use crate::exec::observe::{Done, Observer, Step};
use crate::exec::rt::watch::Place;
use crate::fault::{Fault, FaultKind};
use crate::loader::prepared::Prepared;
use std::ops::ControlFlow;

/// One check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Check {
    Mem,
    Init,
    Race,
    Waits,
    Barrier,
    Hazard,
}

impl Check {
    pub const ALL: [Check; 6] =
        [Check::Mem, Check::Init, Check::Race, Check::Waits, Check::Barrier, Check::Hazard];

    /// As on the command line and in reports.
    pub fn name(self) -> &'static str {
        match self {
            Check::Mem => "mem",
            Check::Init => "init",
            Check::Race => "race",
            Check::Waits => "waits",
            Check::Barrier => "barrier",
            Check::Hazard => "hazard",
        }
    }

    pub fn from_name(name: &str) -> Option<Check> {
        Check::ALL.into_iter().find(|c| c.name() == name)
    }
}

/// Bytes left free between allocations of a checked run, so that an access beyond one does not land in the next.
pub const GUARD_BYTES: u64 = 4096;

/// Runs the chosen checks over an observed run.
pub struct Checker<'a> {
    prepared: &'a Prepared,
    effects: Vec<Effects>,
    enabled: Vec<Check>,
    report: Report,
    init: init::Shadow,
    mem: mem::Shadow,
    race: race::Shadow,
    waits: waits::Shadow,
    barrier: barrier::Shadow,
    hazard: hazard::Shadow,
}

impl<'a> Checker<'a> {
    pub fn new(prepared: &'a Prepared, checks: &[Check]) -> Checker<'a> {
        let shape = &prepared.shape;
        let effects = effects::table(&prepared.program, shape.wave_size);
        let on = |check| checks.contains(&check);
        Checker {
            prepared,
            init: init::Shadow::new(&prepared.program, shape),
            mem: mem::Shadow::new(shape),
            race: race::Shadow::new(shape, &effects, on(Check::Race)),
            waits: waits::Shadow::new(&prepared.program),
            barrier: barrier::Shadow::default(),
            hazard: hazard::Shadow::new(&prepared.program, &effects, shape.wave_size),
            effects,
            enabled: checks.to_vec(),
            report: Report::new(checks),
        }
    }

    fn on(&self, check: Check) -> bool {
        self.enabled.contains(&check)
    }

    /// Everything found; `fault` is what ended the run, if something did.
    pub fn finish(mut self, fault: Option<&Fault>) -> Vec<Finding> {
        if let Some(fault) = fault {
            self.fault(fault);
        }
        self.report.finish()
    }

    /// A deadlock is the barrier check's, accesses out of bounds have been reported already; everything else stays a fault.
    fn fault(&mut self, fault: &Fault) {
        if fault.kind == FaultKind::BarrierDeadlock && self.on(Check::Barrier) {
            let site = Site::of_fault(fault);
            self.report.add(Finding::new(Check::Barrier, "deadlock", fault.message.clone(), site));
        }
    }
}

impl Observer for Checker<'_> {
    fn group_started(&mut self, workgroup: [u32; 3], waves: usize) {
        self.init.start(waves);
        self.mem.start();
        self.race.start(workgroup, waves);
        self.waits.start(waves);
        self.barrier.start(waves);
        self.hazard.start(waves);
    }

    fn before(&mut self, step: &Step<'_>) -> ControlFlow<()> {
        let effects = &self.effects[step.index];
        self.race.wake(step);
        if self.on(Check::Waits) {
            self.waits.before(step, effects, &mut self.report);
        }
        if self.on(Check::Init) || self.on(Check::Mem) {
            self.init.before(step, effects, &mut self.report);
        }
        if self.on(Check::Hazard) {
            self.hazard.before(step, effects, &mut self.report);
        }
        if self.on(Check::Barrier) {
            self.barrier.before(step);
        }
        self.mem.before(step);
        ControlFlow::Continue(())
    }

    fn after(&mut self, step: &Step<'_>, done: &Done<'_>) {
        let effects = &self.effects[step.index];
        if !done.accesses.is_empty() {
            if self.on(Check::Mem) {
                self.mem.after(step, done, effects, self.prepared, &mut self.report);
            }
            if self.on(Check::Race) {
                self.race.after(step, done, effects, self.prepared, &mut self.report);
            }
        }
        if self.on(Check::Init) || self.on(Check::Mem) {
            self.init.after(step, done, effects, &mut self.mem);
        }
        if self.on(Check::Waits) || self.on(Check::Race) {
            self.waits.after(step, done, effects);
            if done.accesses.iter().any(|a| a.write && a.place == Place::Lds) && self.on(Check::Race) {
                self.waits.stamp_lds_store(step.wave.id, self.race.time(step.wave.id));
            }
        }
        if self.on(Check::Barrier) {
            self.barrier.after(step, done, &mut self.report);
        }
        if !done.calls.is_empty() || done.event.is_some() {
            self.race.calls(step, done, &self.waits);
        }
        if matches!(done.event, Some(Event::EndPgm)) {
            self.waits.end(step);
        }
    }

    fn keeps_going(&self) -> bool {
        self.on(Check::Mem)
    }
}
