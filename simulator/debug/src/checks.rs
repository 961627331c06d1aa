//! Checks in the debugger: [`Checks`] runs the checks of `wavesim check` over the steps of a [`super::timeline::Timeline`].
//!
//! A checker only goes forward. Going back keeps it where it is, with what it found: as long as the same steps are
//! repeated, the findings are those that were recorded. When the run takes another course, a new checker replays it.

use super::pages::Pages;
use std::ops::ControlFlow;
use wavesim_engine::observe::{Done, Observer, Skip, Step};
use wavesim_engine::sched::dispatch::DispatchError;
use wavesim_inspect::check::{Check, Checker, Finding};
use wavesim_loader::prepared::Prepared;
use wavesim_machine::exec::watch::Access;

/// The checks of a run, and what they have found.
pub struct Checks<'a> {
    /// The checks.
    pub chosen: Vec<Check>,
    /// What has seen the steps before `time`.
    pub(super) checker: Checker<'a>,
    pub(super) time: u64,
    /// Findings, with the step that each belongs to.
    pub(super) found: Vec<(u64, Finding)>,
    /// Of the checker's findings, how many are in `found`.
    taken: usize,
    prepared: &'a Prepared,
}

impl<'a> Checks<'a> {
    /// Checks of a run at its start.
    pub(super) fn new(prepared: &'a Prepared, chosen: Vec<Check>) -> Result<Checks<'a>, DispatchError> {
        let checker = Checker::new(prepared, &chosen)?;
        Ok(Checks { chosen, checker, time: 0, found: Vec::new(), taken: 0, prepared })
    }

    /// Records the findings of a step.
    pub(super) fn collect(&mut self, step: u64) {
        for finding in self.checker.found().iter().skip(self.taken) {
            let mut finding = finding.clone();
            finding.resolve(self.prepared);
            self.found.push((step, finding));
        }
        self.taken = self.checker.found().len();
    }

    /// Forgets findings of steps from `time` on.
    pub(super) fn truncate(&mut self, time: u64) {
        self.found.retain(|f| f.0 < time);
    }
}

/// The observer of a step: passes everything to a checker, if there is one, and keeps the accesses.
pub(super) struct Recorder<'o> {
    pub(super) inner: &'o mut dyn Observer,
    /// What stores reach.
    pub(super) pages: &'o mut Pages,
    /// Accesses are kept only if asked for.
    pub(super) accesses: Option<&'o mut Vec<Access>>,
    /// Whether accesses outside of all memory go on.
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

    fn group_ended(&mut self, workgroup: [u32; 3]) {
        self.inner.group_ended(workgroup);
    }

    fn keeps_going(&self) -> bool {
        self.keeps_going
    }
}
