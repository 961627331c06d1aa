//! A run that goes forward and backward, one instruction of one wave at a time.
//!
//! Execution is deterministic. To go back, [`Timeline`] restores a checkpoint and replays from there. It keeps a
//! journal (the wave of each step, and the user's edits) and checkpoints of the whole state, dense near the present and
//! sparse far from it. A replay to a place without a near checkpoint leaves some on its way.
//!
//! A time is a number of steps; time N is the state before step N. This module knows nothing of breakpoints and
//! commands.

mod edit;
mod groups;
mod journal;
mod replay;
mod turns;

pub use super::checkpoints::LEAST as LEAST_CHECKPOINTS;
pub use edit::Edit;
pub(crate) use groups::{Groups, Parked};

use super::checkpoints::{Checkpoint, Checkpoints};
use super::checks::{Checks, Recorder};
use super::gate::{Gate, Gated};
use super::pages::Pages;
use super::search::Search;
use super::written::{self, Sgprs, Tracker};
use std::rc::Rc;
use wavesim_engine::observe::{NoObserver, Observer};
use wavesim_engine::sched::dispatch::{Dispatch, DispatchError};
use wavesim_engine::sched::group::{Group, Status};
use wavesim_inspect::check::{Check, Finding};
use wavesim_loader::prepared::Prepared;
use wavesim_machine::exec::effects;
use wavesim_machine::exec::watch::Access;
use wavesim_machine::fault::{Fault, FaultKind};
use wavesim_machine::memory::Memory;
use wavesim_machine::state::Wave;

/// The least number of steps between checkpoints.
const INTERVAL: u64 = 4096;
/// Copying so many bytes takes about as long as one step of a replay.
const BYTES_PER_STEP: u64 = 256;
/// Bytes that all checkpoints together may take, unless the user says otherwise.
pub const CHECKPOINT_BYTES: usize = 256 << 20;
/// Steps of a replay between two questions whether to go on.
const POLL_STEPS: u64 = 1 << 14;

/// How a step ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// The wave has executed an instruction.
    Stepped,
    /// This wave cannot run: it waits or has ended. Others can.
    Blocked,
    /// No wave can run: each has ended or waits.
    Finished,
    /// The run has taken as many steps as it may.
    Limit,
    /// The run has ended with a fault.
    Fault(Box<Fault>),
}

/// A run with its journal and checkpoints.
pub struct Timeline<'a> {
    /// The kernel, its arguments and its memory.
    pub prepared: &'a Prepared,
    dispatch: &'a Dispatch<'a>,
    /// The workgroup that runs.
    pub group: Group<'a>,
    /// Number of the workgroup in the grid.
    index: u64,
    /// Those that have begun and wait.
    groups: Groups<'a>,
    /// Whether workgroups take turns in the steps that are being taken.
    may_switch: bool,
    /// Steps taken.
    time: u64,
    /// The wave of each step, run-length encoded: the wave, and the time after its last step.
    log: Vec<(u32, u64)>,
    /// The times at which a workgroup was parked.
    switches: Vec<u64>,
    /// Edits with the time at which they were made.
    edits: Vec<(u64, Edit)>,
    checkpoints: Checkpoints<'a>,
    /// The time of the checkpoint that was taken or restored last.
    last_checkpoint: u64,
    /// What of global memory differs from that checkpoint.
    pages: Pages,
    fault: Option<Box<Fault>>,
    /// The time at which each workgroup so far started.
    starts: Vec<u64>,
    /// The wave whose turn it is, and how many steps of its turn it has taken.
    turn: (usize, u64),
    /// SGPRs that each wave has written, and those that each instruction writes.
    written: Vec<Sgprs>,
    writes: Vec<Sgprs>,
    /// Whose turn follows whose, if the order is not random.
    order: Vec<usize>,
    /// Stops nowhere.
    open: Gate,
    /// Checks that watch the run.
    checks: Option<Box<Checks<'a>>>,
    /// Accesses of the last step to memory, where they are recorded.
    accesses: Vec<Access>,
    /// Whether accesses are recorded, for watchpoints that stop when memory is read.
    pub record_accesses: bool,
    /// Asked now and then in long replays: whether to give up.
    poll: Option<Rc<dyn Fn() -> bool + 'a>>,
    gave_up: bool,
}

impl<'a> Timeline<'a> {
    /// A run at its start, with the first workgroup's waves ready.
    pub fn new(prepared: &'a Prepared, dispatch: &'a Dispatch<'a>) -> Result<Timeline<'a>, DispatchError> {
        dispatch.check()?;
        let mut group = Group::new(dispatch, &prepared.memory);
        if dispatch.workgroups() > 0 {
            group.start(dispatch.workgroup(0));
        }
        let mut order: Vec<usize> = (0..group.slots.len()).collect();
        dispatch.schedule.arrange(&mut order);
        let effects = effects::table(&prepared.program, prepared.shape.wave_size);
        let mut timeline = Timeline {
            prepared,
            dispatch,
            group,
            index: 0,
            groups: Groups::new(dispatch.cooperative),
            may_switch: false,
            time: 0,
            log: Vec::new(),
            switches: Vec::new(),
            edits: Vec::new(),
            checkpoints: Checkpoints::new(CHECKPOINT_BYTES),
            last_checkpoint: 0,
            pages: Pages::default(),
            open: Gate::open(&effects),
            fault: None,
            starts: vec![0],
            turn: (0, 0),
            written: vec![written::at_start(prepared); order.len()],
            writes: written::table(&effects),
            order,
            checks: None,
            accesses: Vec::new(),
            record_accesses: false,
            poll: None,
            gave_up: false,
        };
        timeline.turn = timeline.first_turn();
        timeline.checkpoint();
        Ok(timeline)
    }

    /// Runs these checks from now on, and in the steps so far. An empty list ends them.
    ///
    /// # Errors
    /// A launch that cannot run.
    pub fn check(&mut self, chosen: &[Check]) -> Result<(), DispatchError> {
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

    /// The checks that run.
    pub fn checks(&self) -> &[Check] {
        self.checks.as_ref().map_or(&[], |c| &c.chosen)
    }

    /// What the checks have found so far, with the number of the step that each finding belongs to.
    pub fn findings(&self) -> impl Iterator<Item = &(u64, Finding)> {
        self.checks.iter().flat_map(|c| &c.found)
    }

    /// Whether a wave has written a scalar register, by operand code, or started with it.
    pub fn is_sgpr_written(&self, wave: usize, code: u16) -> bool {
        self.written.get(wave).is_none_or(|w| code >= 128 || w >> code & 1 == 1)
    }

    /// Accesses of the last step to memory, if [`Timeline::record_accesses`] is set.
    pub fn accesses(&self) -> &[Access] {
        &self.accesses
    }

    /// Replays the run for a checker that has not seen the steps so far, or has seen others.
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

    /// Whether accesses outside of all memory go on, as the checks report them.
    fn keeps_going(&self) -> bool {
        self.checks().contains(&Check::Mem)
    }

    /// Steps taken so far.
    pub fn time(&self) -> u64 {
        self.time
    }

    /// The fault that ended the run, if any.
    pub fn fault(&self) -> Option<&Fault> {
        self.fault.as_deref()
    }

    /// Global memory.
    pub fn memory(&self) -> &'a Memory {
        &self.prepared.memory
    }

    /// Coordinates of the workgroup that runs.
    pub fn workgroup(&self) -> [u32; 3] {
        self.dispatch.workgroup(self.index)
    }

    /// Number of the workgroup in the grid, and the number of workgroups.
    pub fn position(&self) -> (u64, u64) {
        (self.index, self.dispatch.workgroups())
    }

    /// A wave of the workgroup.
    pub fn wave(&self, at: usize) -> &Wave {
        &self.group.slots[at].wave
    }

    /// The number of waves in the workgroup.
    pub fn waves(&self) -> usize {
        self.group.slots.len()
    }

    /// Whether a wave runs, waits or has ended.
    pub fn status(&self, at: usize) -> Status {
        self.group.slots[at].status
    }

    /// Whether a wave can take a step.
    pub fn can_run(&self, at: usize) -> bool {
        self.fault.is_none() && self.group.can_run(at)
    }

    /// Executes one instruction of a wave. The last instruction of a workgroup starts the next workgroup, or goes on with
    /// one that is parked.
    ///
    /// Where the recorded run goes on with this wave, this repeats the recorded step; else the record ends here.
    pub fn step(&mut self, wave: usize) -> Outcome {
        self.run(wave, 1, None)
    }

    /// Executes at most `n` instructions of a wave, up to a place of the gate. The first instruction runs even if it is
    /// such a place. With a gate, workgroups take turns.
    pub fn run(&mut self, wave: usize, n: u64, gate: Option<&Gate>) -> Outcome {
        self.may_switch = gate.is_some();
        // Where no other wave can run, a new turn begins.
        if self.turn.0 != wave || self.turn.1 >= self.turn_length() {
            self.turn = (wave, 0);
        }
        let n = n.min(self.turn_length() - self.turn.1);
        if let Some(recorded) = self.recorded(wave) {
            let next = self.findings().map(|f| f.0).find(|step| *step >= self.time);
            let n = n.min(recorded).min(next.map_or(n, |step| step + 1 - self.time));
            return self.forward(wave, n, gate);
        }
        self.truncate();
        if self.checks.as_ref().is_some_and(|c| c.time != self.time) {
            // The launch was fit to run when the checks began.
            let _ = self.check_again();
        }
        let n = n.min(self.interval() - (self.time - self.last_checkpoint).min(self.interval() - 1));
        let Some(mut checks) = self.checks.take() else {
            let outcome = self.forward(wave, n, gate);
            if self.time - self.last_checkpoint >= self.interval() {
                self.checkpoint();
            }
            return outcome;
        };
        let step = self.time;
        // While the checks are away, `keeps_going` is theirs.
        let outcome = self.step_observed(wave, &mut checks.checker);
        checks.collect(step);
        checks.time = self.time;
        self.checks = Some(checks);
        if self.time - self.last_checkpoint >= self.interval() {
            self.checkpoint();
        }
        outcome
    }

    /// Steps between checkpoints near the present: replaying them takes about as long as restoring one.
    fn interval(&self) -> u64 {
        let bytes = self.pages.dirty_bytes() + self.group.bytes() as u64;
        INTERVAL.max(bytes / BYTES_PER_STEP)
    }

    fn forward(&mut self, wave: usize, n: u64, gate: Option<&Gate>) -> Outcome {
        if n == 1 && gate.is_none() {
            return self.step_observed(wave, &mut NoObserver);
        }
        let mut accesses = std::mem::take(&mut self.accesses);
        accesses.clear();
        let keeps_going = self.keeps_going();
        let open = std::mem::replace(&mut self.open, Gate::nowhere());
        let kept = self.record_accesses.then_some(&mut accesses);
        let gate = gate.unwrap_or(&open);
        let prepared = self.prepared;
        let mut pages = std::mem::take(&mut self.pages);
        let mut observer = Gated {
            gate,
            prepared,
            leave: true,
            reached: false,
            keeps_going,
            pages: &mut pages,
            accesses: kept,
        };
        let outcome = self.advance(wave, n, &mut observer);
        self.pages = pages;
        self.open = open;
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
        let replay = self.is_replay();
        let n = n.min(self.dispatch.max_instructions.saturating_sub(self.time)).min(self.until_switch());
        if n == 0 {
            return Outcome::Limit;
        }
        self.group.ready(wave);
        let before = self.group.executed;
        let mut tracker = Tracker::new(&mut *observer, &self.writes, self.written[wave]);
        let result = self.group.advance_observed(wave, n, &mut tracker as &mut dyn Observer);
        let at = self.prepared.program.inst_at(self.group.slots[wave].wave.pc);
        self.written[wave] = tracker.finish(at);
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
                self.stepped(steps, replay, observer);
                Outcome::Stepped
            }
        }
    }

    /// Whether the run has ended: by a fault, or because every wave has.
    pub fn finished(&self) -> bool {
        self.fault.is_some() || self.group.slots.iter().all(|s| s.status == Status::Ended)
    }

    /// Searches and [`Timeline::travel`] ask this now and then, and give up when it returns true.
    pub fn poll_by(&mut self, poll: Rc<dyn Fn() -> bool + 'a>) {
        self.poll = Some(poll);
    }

    /// Whether a search or a travel has given up, which its caller has to report; the next one begins afresh.
    pub fn take_gave_up(&mut self) -> bool {
        std::mem::take(&mut self.gave_up)
    }

    fn poll(&mut self) -> bool {
        self.gave_up |= self.poll.as_ref().is_some_and(|poll| poll());
        self.gave_up
    }
}
