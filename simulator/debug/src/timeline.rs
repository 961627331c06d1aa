//! A run that goes forward and backward, one instruction of one wave at a time.
//!
//! Execution is deterministic. To go back, [`Timeline`] restores a checkpoint and replays from there. It
//! keeps a journal (the wave of each step, and the user's edits) and checkpoints of the whole state, dense
//! near the current time and sparse far from it. A long replay takes additional checkpoints on its way.
//!
//! A time is a number of steps; time N is the state before step N. This module must not depend on breakpoints
//! or commands.

mod edit;
mod groups;
mod journal;
mod replay;
mod session;
mod turns;

pub use super::checkpoints::MIN_CHECKPOINTS;
pub use edit::Edit;
pub(crate) use groups::{Groups, SuspendedGroup};
pub use session::Journal;

use super::checkpoints::{Checkpoint, Checkpoints};
use super::checks::{Checks, Recorder};
use super::frames::Selected;
use super::pages::Pages;
use super::search::Search;
use super::stop_points::{StopObserver, StopPoints};
use super::tracked::{self, Table, Tracked, Tracker};
use std::ops::Range;
use std::rc::Rc;
use wavesim_engine::observe::{NoObserver, Observer};
use wavesim_engine::sched::dispatch::{Dispatch, DispatchError};
use wavesim_engine::sched::group::{RunningGroup, Status};
use wavesim_inspect::calls::Call;
use wavesim_inspect::check::{Check, Finding};
use wavesim_loader::prepared::Prepared;
use wavesim_machine::exec::effects;
use wavesim_machine::exec::watch::Access;
use wavesim_machine::fault::{Fault, FaultKind};
use wavesim_machine::memory::Memory;
use wavesim_machine::state::Wave;

/// Minimum number of steps between checkpoints.
const INTERVAL: u64 = 4096;
/// Copying this many bytes takes about as long as replaying one step.
const BYTES_PER_STEP: u64 = 256;
/// Default limit on the total size of the checkpoints, in bytes.
pub const CHECKPOINT_BYTES: usize = 256 << 20;
/// Number of steps of a replay between polls for cancellation.
const POLL_STEPS: u64 = 1 << 14;

/// The result of a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// The wave has executed an instruction.
    Stepped,
    /// This wave cannot run: it waits or has ended. Other waves can.
    Blocked,
    /// No wave can run: each waits or has ended.
    Finished,
    /// The run has reached the maximum number of steps.
    Limit,
    /// The run has ended with a fault.
    Fault(Box<Fault>),
}

/// A run with its journal and checkpoints.
pub struct Timeline<'a> {
    /// The kernel, its arguments and its memory.
    pub prepared: &'a Prepared,
    dispatch: &'a Dispatch<'a>,
    /// The running workgroup.
    pub group: RunningGroup<'a>,
    /// Index of the running workgroup in the grid.
    group_index: u64,
    /// The suspended workgroups.
    groups: Groups<'a>,
    /// Whether the current steps may switch workgroups.
    may_switch: bool,
    /// Number of steps taken.
    time: u64,
    /// The wave of each step, run-length encoded: the wave, and the time after its last step.
    log: Vec<(u32, u64)>,
    /// The times at which workgroups were suspended.
    switches: Vec<u64>,
    /// Edits with the time at which they were made.
    edits: Vec<(u64, Edit)>,
    checkpoints: Checkpoints<'a>,
    /// The time of the checkpoint that was taken or restored last.
    last_checkpoint: u64,
    /// The pages of global memory that may differ from that checkpoint.
    pages: Pages,
    fault: Option<Box<Fault>>,
    /// The time at which each workgroup so far started.
    group_starts: Vec<u64>,
    /// The wave whose turn it is, and the number of steps of its turn that it has taken.
    turn: (usize, u64),
    /// What is tracked of each wave, and what each instruction does to it.
    tracked: Vec<Tracked>,
    table: Table,
    /// The order of turns, unless it is random.
    order: Vec<usize>,
    /// Stop points for a run that never stops.
    no_stops: StopPoints,
    /// The checks that observe the run.
    checks: Option<Box<Checks<'a>>>,
    /// Memory accesses of the last step, if they are recorded.
    accesses: Vec<Access>,
    /// Whether accesses are recorded, for watchpoints that stop when memory is read.
    pub record_accesses: bool,
    /// Polled in long replays: returns whether to cancel.
    poll: Option<Rc<dyn Fn() -> bool + 'a>>,
    cancelled: bool,
    /// The frame that the user has selected.
    pub(crate) selected: Option<Selected>,
    /// Whether the record comes from a file, and may not be one of this launch.
    replays_foreign: bool,
    /// The time from which on the run does not follow the recorded schedule of the launch, because the user has chosen
    /// another wave.
    deviates: Option<u64>,
}

impl<'a> Timeline<'a> {
    /// Creates a run at its start, with the waves of the first workgroup ready.
    pub fn new(prepared: &'a Prepared, dispatch: &'a Dispatch<'a>) -> Result<Timeline<'a>, DispatchError> {
        Timeline::with_host_memory(prepared, dispatch, Vec::new())
    }

    /// As [`Timeline::new`], for memory that is mapped from the host: going back restores these ranges of
    /// addresses, too, which must be writable.
    ///
    /// # Errors
    /// The launch cannot run.
    pub fn with_host_memory(
        prepared: &'a Prepared,
        dispatch: &'a Dispatch<'a>,
        host: Vec<Range<u64>>,
    ) -> Result<Timeline<'a>, DispatchError> {
        dispatch.check()?;
        dispatch.check_recorded()?;
        dispatch.begin();
        let mut group = RunningGroup::new(dispatch, &prepared.memory);
        if dispatch.workgroups() > 0 {
            group.start(0);
        }
        let mut order: Vec<usize> = (0..group.slots.len()).collect();
        dispatch.schedule.arrange(&mut order);
        let effects = effects::table(&prepared.program, prepared.shape.wave_size);
        let mut timeline = Timeline {
            prepared,
            dispatch,
            group,
            group_index: 0,
            groups: Groups::new(dispatch.cooperative),
            may_switch: false,
            time: 0,
            log: Vec::new(),
            switches: Vec::new(),
            edits: Vec::new(),
            checkpoints: Checkpoints::new(CHECKPOINT_BYTES),
            last_checkpoint: 0,
            pages: Pages::new(host),
            no_stops: StopPoints::none(&effects),
            fault: None,
            group_starts: vec![0],
            turn: (0, 0),
            tracked: vec![tracked::at_start(prepared); order.len()],
            table: Table::new(&effects),
            order,
            checks: None,
            accesses: Vec::new(),
            record_accesses: false,
            poll: None,
            cancelled: false,
            selected: None,
            replays_foreign: false,
            deviates: None,
        };
        timeline.turn = timeline.first_turn();
        timeline.checkpoint();
        Ok(timeline)
    }

    /// Enables these checks for the steps so far and from now on. An empty list disables all.
    ///
    /// # Errors
    /// The launch cannot run.
    pub fn check(&mut self, chosen: &[Check]) -> Result<(), DispatchError> {
        if self.dispatch.delayed.is_some() && !chosen.is_empty() {
            return Err(DispatchError::DelayedChecks);
        }
        self.truncate();
        self.checks = match chosen {
            [] => None,
            _ => Some(Box::new(Checks::new(self.prepared, chosen.to_vec())?)),
        };
        if let Some(checks) = &mut self.checks {
            checks.checker.group_started(self.dispatch.workgroup(0), self.group.slots.len());
        }
        self.check_again()
    }

    /// Returns the enabled checks.
    pub fn checks(&self) -> &[Check] {
        self.checks.as_ref().map_or(&[], |c| &c.chosen)
    }

    /// Returns the findings so far, each with the number of its step.
    pub fn findings(&self) -> impl Iterator<Item = &(u64, Finding)> {
        self.checks.iter().flat_map(|c| &c.found)
    }

    /// Returns whether a scalar register, given by operand code, was written by the wave or initialised at
    /// its start.
    pub fn is_sgpr_written(&self, wave: usize, code: u16) -> bool {
        self.tracked.get(wave).is_none_or(|w| code >= 128 || w.sgprs >> code & 1 == 1)
    }

    /// Returns the memory accesses of the last step, if [`Timeline::record_accesses`] is set.
    pub fn accesses(&self) -> &[Access] {
        &self.accesses
    }

    /// Replays the run for a checker that has not observed the steps so far, or has observed others.
    fn check_again(&mut self) -> Result<(), DispatchError> {
        let now = self.time;
        let Some(old) = self.checks.take() else { return Ok(()) };
        if old.time == now {
            self.checks = Some(old);
            return Ok(());
        }
        let mut checks = Checks::new(self.prepared, old.chosen)?;
        self.go_to(0);
        checks.checker.group_started(self.workgroup(), self.waves());
        while self.time < now {
            let step = self.time;
            self.replay_step(&mut checks.checker);
            checks.collect(step);
        }
        checks.time = now;
        self.checks = Some(Box::new(checks));
        Ok(())
    }

    /// Returns whether execution continues after accesses outside of all memory, which the `mem` check
    /// reports.
    fn keeps_going(&self) -> bool {
        self.checks().contains(&Check::Mem)
    }

    /// Returns the number of steps taken so far.
    pub fn time(&self) -> u64 {
        self.time
    }

    /// Returns the fault that ended the run, if any.
    pub fn fault(&self) -> Option<&Fault> {
        self.fault.as_deref()
    }

    /// Returns global memory.
    pub fn memory(&self) -> &'a Memory {
        &self.prepared.memory
    }

    /// Returns the coordinates of the running workgroup.
    pub fn workgroup(&self) -> [u32; 3] {
        self.dispatch.workgroup(self.group_index)
    }

    /// Returns the index of the running workgroup in the grid, and the number of workgroups.
    pub fn position(&self) -> (u64, u64) {
        (self.group_index, self.dispatch.workgroups())
    }

    /// Returns a wave of the running workgroup.
    pub fn wave(&self, index: usize) -> &Wave {
        &self.group.slots[index].wave
    }

    /// Returns the calls of a wave that have not returned, innermost last.
    pub fn calls(&self, index: usize) -> &[Call] {
        self.tracked.get(index).map_or(&[], |tracked| tracked.calls.calls())
    }

    /// Returns the number of waves in the workgroup.
    pub fn waves(&self) -> usize {
        self.group.slots.len()
    }

    /// Returns whether a wave runs, waits or has ended.
    pub fn status(&self, index: usize) -> Status {
        self.group.slots[index].status
    }

    /// Returns whether a wave can take a step.
    pub fn can_run(&self, index: usize) -> bool {
        self.fault.is_none() && self.group.can_run(index)
    }

    /// Executes one instruction of a wave. The last instruction of a workgroup starts the next workgroup, or
    /// resumes a suspended one.
    ///
    /// If the recorded run continues with this wave, this repeats the recorded step. Otherwise the rest of
    /// the record is dropped.
    pub fn step(&mut self, wave: usize) -> Outcome {
        self.run(wave, 1, None)
    }

    /// Executes at most `n` instructions of a wave, up to a stop point. The first instruction runs even if it
    /// is a stop point. With `stop_points`, workgroups may be switched.
    pub fn run(&mut self, wave: usize, n: u64, stop_points: Option<&StopPoints>) -> Outcome {
        self.may_switch = stop_points.is_some();
        if self.recorded(wave).is_none() {
            self.note_deviation(wave);
        }
        // If no other wave can run, a new turn begins.
        if self.turn.0 != wave || self.turn.1 >= self.turn_length() {
            self.turn = (wave, 0);
        }
        let n = n.min(self.turn_length() - self.turn.1);
        if let Some(recorded) = self.recorded(wave) {
            let next = self.findings().map(|f| f.0).find(|step| *step >= self.time);
            let n = n.min(recorded).min(next.map_or(n, |step| step + 1 - self.time));
            return self.run_forward(wave, n, stop_points);
        }
        self.truncate();
        if self.checks.as_ref().is_some_and(|c| c.time != self.time) {
            // This cannot fail: the launch was validated when the checks were enabled.
            let _ = self.check_again();
        }
        let n = n.min(self.interval() - (self.time - self.last_checkpoint).min(self.interval() - 1));
        let Some(mut checks) = self.checks.take() else {
            let outcome = self.run_forward(wave, n, stop_points);
            if self.time - self.last_checkpoint >= self.interval() {
                self.checkpoint();
            }
            return outcome;
        };
        let step = self.time;
        // While `checks` is moved out, the checker itself answers `keeps_going`.
        let outcome = self.step_observed(wave, &mut checks.checker);
        checks.collect(step);
        checks.time = self.time;
        self.checks = Some(checks);
        if self.time - self.last_checkpoint >= self.interval() {
            self.checkpoint();
        }
        outcome
    }

    /// Returns the number of steps between checkpoints near the current time: replaying them takes about as
    /// long as restoring one.
    fn interval(&self) -> u64 {
        let bytes = self.pages.dirty_bytes() + self.group.bytes() as u64;
        INTERVAL.max(bytes / BYTES_PER_STEP)
    }

    fn run_forward(&mut self, wave: usize, n: u64, stop_points: Option<&StopPoints>) -> Outcome {
        if n == 1 && stop_points.is_none() {
            return self.step_observed(wave, &mut NoObserver);
        }
        let mut accesses = std::mem::take(&mut self.accesses);
        accesses.clear();
        let keeps_going = self.keeps_going();
        let open = std::mem::replace(&mut self.no_stops, StopPoints::empty());
        let kept = self.record_accesses.then_some(&mut accesses);
        let stop_points = stop_points.unwrap_or(&open);
        let prepared = self.prepared;
        let mut pages = std::mem::take(&mut self.pages);
        let mut observer = StopObserver {
            stop_points,
            prepared,
            leave: true,
            reached: false,
            keeps_going,
            pages: &mut pages,
            accesses: kept,
            performed: false,
        };
        let outcome = self.advance(wave, n, &mut observer);
        self.pages = pages;
        self.no_stops = open;
        self.accesses = accesses;
        outcome
    }

    fn step_observed(&mut self, wave: usize, observer: &mut dyn Observer) -> Outcome {
        let keeps_going = observer.keeps_going() || self.keeps_going();
        let mut accesses = std::mem::take(&mut self.accesses);
        accesses.clear();
        let kept = self.record_accesses.then_some(&mut accesses);
        let mut pages = std::mem::take(&mut self.pages);
        let mut observer = Recorder { inner: observer, pages: &mut pages, accesses: kept, keeps_going };
        let outcome = self.advance(wave, 1, &mut observer);
        self.pages = pages;
        self.accesses = accesses;
        outcome
    }

    /// Executes at most `n` instructions of a wave under an observer.
    fn advance(&mut self, wave: usize, n: u64, observer: &mut dyn Observer) -> Outcome {
        if let Some(fault) = &self.fault {
            return Outcome::Fault(fault.clone());
        }
        if !self.can_run(wave) {
            let any = (0..self.waves()).any(|at| self.can_run(at));
            return if any { Outcome::Blocked } else { Outcome::Finished };
        }
        if let Err(fault) = self.act(observer) {
            self.fault = Some(fault.clone());
            return Outcome::Fault(fault);
        }
        let replay = self.is_replay();
        let n = n
            .min(self.dispatch.max_instructions.saturating_sub(self.time))
            .min(self.steps_until_switch())
            .min(self.steps_until_action());
        if n == 0 {
            return Outcome::Limit;
        }
        self.group.ready(wave);
        let before = self.group.executed;
        let mut tracker = Tracker::new(&mut *observer, &self.table, &mut self.tracked[wave]);
        let result = self.group.advance_observed(wave, n, &mut tracker as &mut dyn Observer);
        let at = self.prepared.program.inst_at(self.group.slots[wave].wave.pc);
        tracker.finish(at);
        let steps = self.group.executed - before;
        self.turn = if self.turn.0 == wave { (wave, self.turn.1 + steps) } else { (wave, steps) };
        self.time += steps;
        match self.log.last_mut() {
            // A replay: the log has these steps already.
            Some(last) if last.1 >= self.time => {}
            Some(last) if last.0 == wave as u32 => last.1 = self.time,
            _ => self.log.push((wave as u32, self.time)),
        }
        match result {
            Err(fault) => {
                self.fault = Some(fault.clone());
                Outcome::Fault(fault)
            }
            Ok(()) => {
                self.after_steps(steps, replay, observer);
                Outcome::Stepped
            }
        }
    }

    /// Returns whether the run has ended, by a fault or because every wave has ended.
    pub fn finished(&self) -> bool {
        self.fault.is_some() || self.group.slots.iter().all(|s| s.status == Status::Ended)
    }

    /// Sets the function that searches and [`Timeline::travel`] poll; they are cancelled when it returns
    /// true.
    pub fn set_poll(&mut self, poll: Rc<dyn Fn() -> bool + 'a>) {
        self.poll = Some(poll);
    }

    /// Returns whether a search or [`Timeline::travel`] was cancelled, and clears the flag. The caller must
    /// report it.
    pub fn take_cancelled(&mut self) -> bool {
        std::mem::take(&mut self.cancelled)
    }

    fn poll(&mut self) -> bool {
        self.cancelled |= self.poll.as_ref().is_some_and(|poll| poll());
        self.cancelled
    }
}
