//! Tracks what the state of a wave does not show: the scalar registers that it has written, to distinguish
//! unwritten registers from zeros (waves track vector registers themselves), and its calls.

use std::ops::ControlFlow;
use wavesim_engine::observe::{Done, Observer, Skip, Step};
use wavesim_inspect::calls::{self, CallStack, Jump};
use wavesim_inspect::check::initial_registers;
use wavesim_loader::prepared::Prepared;
use wavesim_machine::exec::effects::{Effects, File};

/// A set of SGPRs, by operand code.
pub(super) type Sgprs = u128;

/// What each instruction of a program does to the tracked state.
pub(super) struct Table {
    /// The SGPRs that it writes.
    sgprs: Vec<Sgprs>,
    jumps: Vec<Option<Jump>>,
}

/// The tracked state of a wave.
#[derive(Clone)]
pub(super) struct Tracked {
    /// The SGPRs that the wave has written, or that were initialised at its start.
    pub sgprs: Sgprs,
    /// The calls that have not returned.
    pub calls: CallStack,
}

impl Table {
    pub fn new(effects: &[Effects]) -> Table {
        Table { sgprs: sgprs(effects), jumps: calls::jumps(effects) }
    }
}

fn sgprs(effects: &[Effects]) -> Vec<Sgprs> {
    let one = |e: &Effects| {
        e.writes.iter().filter(|w| w.file == File::Sgpr).fold(0, |all, w| match w.relative {
            Some(_) => Sgprs::MAX,
            None => (w.first..w.first + w.count).filter(|r| *r < 128).fold(all, |all, r| all | 1 << r),
        })
    };
    effects.iter().map(one).collect()
}

/// Returns the state at the start of a wave.
pub(super) fn at_start(prepared: &Prepared) -> Tracked {
    let sgprs = match prepared.program.arch.machine() {
        Some(_) => Sgprs::MAX,
        None => initial_registers(&prepared.shape).0,
    };
    Tracked { sgprs, calls: CallStack::default() }
}

/// Forwards everything to another observer, and tracks a wave.
pub(super) struct Tracker<'t> {
    pub inner: &'t mut dyn Observer,
    pub table: &'t Table,
    pub tracked: &'t mut Tracked,
    /// Instructions that run unobserved: the first one, and the maximum number.
    pending: Option<(usize, usize)>,
}

impl<'t> Tracker<'t> {
    pub fn new(inner: &'t mut dyn Observer, table: &'t Table, tracked: &'t mut Tracked) -> Tracker<'t> {
        Tracker { inner, table, tracked, pending: None }
    }

    /// Records the writes of the unobserved instructions before `end`, which have run.
    fn flush(&mut self, end: usize) {
        if let Some((first, count)) = self.pending.take() {
            let end = if (first..first + count).contains(&end) { end } else { first + count };
            let written = &self.table.sgprs[first..end];
            self.tracked.sgprs = written.iter().fold(self.tracked.sgprs, |all, w| all | w);
        }
    }

    /// Completes the tracked state once the wave has stopped before an instruction.
    pub fn finish(mut self, position: Option<usize>) {
        self.flush(position.unwrap_or(usize::MAX));
    }
}

impl Observer for Tracker<'_> {
    fn group_started(&mut self, workgroup: [u32; 3], waves: usize) {
        self.inner.group_started(workgroup, waves);
    }

    fn skip(&mut self, step: &Step<'_>) -> Skip {
        self.flush(usize::MAX);
        let skip = self.inner.skip(step);
        if skip.count > 0 {
            self.pending = Some((step.index, skip.count.min(self.table.sgprs.len() - step.index)));
        }
        skip
    }

    fn before(&mut self, step: &Step<'_>) -> ControlFlow<()> {
        self.inner.before(step)
    }

    fn jumped(&mut self, wave: u32, from: u64, to: u64) {
        self.flush(usize::MAX);
        self.inner.jumped(wave, from, to);
    }

    fn after(&mut self, step: &Step<'_>, done: &Done<'_>) {
        self.flush(step.index);
        self.tracked.sgprs |= self.table.sgprs[step.index];
        if let Some(jump) = self.table.jumps[step.index] {
            self.tracked.calls.jumped(jump, step);
        }
        self.inner.after(step, done);
    }

    fn performed(&mut self, step: &Step<'_>, done: &Done<'_>) {
        self.inner.performed(step, done);
    }

    fn group_ended(&mut self, workgroup: [u32; 3]) {
        self.inner.group_ended(workgroup);
    }

    fn keeps_going(&self) -> bool {
        self.inner.keeps_going()
    }
}
