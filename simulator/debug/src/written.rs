//! Tracks the scalar registers that a wave has written, to distinguish unwritten registers from zeros. (Waves
//! track vector registers themselves.)

use std::ops::ControlFlow;
use wavesim_engine::observe::{Done, Observer, Skip, Step};
use wavesim_inspect::check::initial_registers;
use wavesim_loader::prepared::Prepared;
use wavesim_machine::exec::effects::{Effects, File};

/// A set of SGPRs, by operand code.
pub(super) type Sgprs = u128;

/// Returns the SGPRs that each instruction of a program writes.
pub(super) fn table(effects: &[Effects]) -> Vec<Sgprs> {
    let one = |e: &Effects| {
        e.writes.iter().filter(|w| w.file == File::Sgpr).fold(0, |all, w| match w.relative {
            Some(_) => Sgprs::MAX,
            None => (w.first..w.first + w.count).filter(|r| *r < 128).fold(all, |all, r| all | 1 << r),
        })
    };
    effects.iter().map(one).collect()
}

/// Returns the SGPRs that are initialised at the start of a wave.
pub(super) fn at_start(prepared: &Prepared) -> Sgprs {
    match prepared.program.arch.machine() {
        Some(_) => Sgprs::MAX,
        None => initial_registers(&prepared.shape).0,
    }
}

/// Forwards everything to another observer, and records the SGPRs that a wave writes.
pub(super) struct Tracker<'t> {
    pub inner: &'t mut dyn Observer,
    pub table: &'t [Sgprs],
    pub written: Sgprs,
    /// Instructions that run unobserved: the first one, and the maximum number.
    pending: Option<(usize, usize)>,
}

impl<'t> Tracker<'t> {
    pub fn new(inner: &'t mut dyn Observer, table: &'t [Sgprs], written: Sgprs) -> Tracker<'t> {
        Tracker { inner, table, written, pending: None }
    }

    /// Records the writes of the unobserved instructions before `end`, which have run.
    fn flush(&mut self, end: usize) {
        if let Some((first, count)) = self.pending.take() {
            let end = if (first..first + count).contains(&end) { end } else { first + count };
            self.written = self.table[first..end].iter().fold(self.written, |all, w| all | w);
        }
    }

    /// Returns the SGPRs written once the wave has stopped before an instruction.
    pub fn finish(mut self, at: Option<usize>) -> Sgprs {
        self.flush(at.unwrap_or(usize::MAX));
        self.written
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
            self.pending = Some((step.index, skip.count.min(self.table.len() - step.index)));
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
        self.written |= self.table[step.index];
        self.inner.after(step, done);
    }

    fn group_ended(&mut self, workgroup: [u32; 3]) {
        self.inner.group_ended(workgroup);
    }

    fn keeps_going(&self) -> bool {
        self.inner.keeps_going()
    }
}
