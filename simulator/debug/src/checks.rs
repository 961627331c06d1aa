//! Checks in the debugger: [`Checks`] runs the checks of `wavesim check` over the steps of a
//! [`super::timeline::Timeline`].
//!
//! A checker can only advance. When the run goes back, the checker keeps its state and findings. While the
//! same steps are replayed, the recorded findings apply. When the run takes a different course, a new checker
//! replays it.

use super::pages::Pages;
use std::ops::ControlFlow;
use wavesim_engine::observe::{Done, Observer, Skip, Step};
use wavesim_engine::sched::dispatch::DispatchError;
use wavesim_inspect::check::{Check, Checker, Finding};
use wavesim_loader::prepared::Prepared;
use wavesim_machine::exec::watch::Access;

/// The checks of a run, and their findings.
pub struct Checks<'a> {
    /// The enabled checks.
    pub chosen: Vec<Check>,
    /// The checker, which has observed the steps before `time`.
    pub(super) checker: Checker<'a>,
    pub(super) time: u64,
    /// The findings, each with its step.
    pub(super) found: Vec<(u64, Finding)>,
    /// Number of the checker's findings that are already in `found`.
    taken: usize,
    prepared: &'a Prepared,
}

impl<'a> Checks<'a> {
    /// Creates the checks of a run at its start.
    pub(super) fn new(prepared: &'a Prepared, chosen: Vec<Check>) -> Result<Checks<'a>, DispatchError> {
        let checker = Checker::new(prepared, &chosen)?;
        Ok(Checks { chosen, checker, time: 0, found: Vec::new(), taken: 0, prepared })
    }

    /// Records the findings of a step.
    pub(super) fn collect(&mut self, step: u64) {
        for finding in self.checker.findings().iter().skip(self.taken) {
            let mut finding = finding.clone();
            finding.resolve(self.prepared);
            self.found.push((step, finding));
        }
        self.taken = self.checker.findings().len();
    }

    /// Drops the findings of steps from `time` on.
    pub(super) fn truncate(&mut self, time: u64) {
        self.found.retain(|f| f.0 < time);
    }
}

/// The observer of a step: forwards everything to another observer, and records the accesses.
pub(super) struct Recorder<'o> {
    pub(super) inner: &'o mut dyn Observer,
    /// Receives the accesses, to mark the pages that stores change.
    pub(super) pages: &'o mut Pages,
    /// Receives the accesses, if they are to be recorded.
    pub(super) accesses: Option<&'o mut Vec<Access>>,
    /// Whether execution continues after accesses outside of all memory.
    pub(super) keeps_going: bool,
}

impl Observer for Recorder<'_> {
    fn group_started(&mut self, workgroup: [u32; 3], waves: usize) {
        self.inner.group_started(workgroup, waves);
    }

    fn group_parked(&mut self, workgroup: [u32; 3]) {
        self.inner.group_parked(workgroup);
    }

    fn group_resumed(&mut self, workgroup: [u32; 3]) {
        self.inner.group_resumed(workgroup);
    }

    fn skip(&mut self, step: &Step<'_>) -> Skip {
        let skip = self.inner.skip(step);
        if self.accesses.is_some() { Skip::default() } else { skip }
    }

    fn before(&mut self, step: &Step<'_>) -> ControlFlow<()> {
        self.inner.before(step)
    }

    fn jumped(&mut self, wave: u32, from: u64, to: u64) {
        self.inner.jumped(wave, from, to);
    }

    fn after(&mut self, step: &Step<'_>, done: &Done<'_>) {
        self.pages.mark(done.accesses);
        if let Some(accesses) = &mut self.accesses {
            accesses.extend_from_slice(done.accesses);
        }
        self.inner.after(step, done);
    }

    fn performed(&mut self, step: &Step<'_>, done: &Done<'_>) {
        self.pages.mark(done.accesses);
        if let Some(accesses) = &mut self.accesses {
            accesses.extend_from_slice(done.accesses);
        }
        self.inner.performed(step, done);
    }

    fn group_ended(&mut self, workgroup: [u32; 3]) {
        self.inner.group_ended(workgroup);
    }

    fn keeps_going(&self) -> bool {
        self.keeps_going
    }
}
