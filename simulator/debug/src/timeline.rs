//! A run that goes forward and backward, one instruction of one wave at a time.
//!
//! Execution is deterministic. To go back, [`Timeline`] restores a checkpoint and replays from there. It keeps a
//! journal (the wave of each step, and the user's edits) and checkpoints of the whole state. When checkpoints
//! take too much memory, every other one is dropped and the interval doubles.
//!
//! A time is a number of steps; time N is the state before step N. This module knows nothing of breakpoints and
//! commands.

use super::search::Search;
use wavesim_engine::observe::{Nobody, Observer};
use wavesim_engine::sched::dispatch::{Dispatch, DispatchError};
use wavesim_engine::sched::group::{Group, Status};
use wavesim_loader::prepared::Prepared;
use wavesim_machine::fault::Fault;
use wavesim_machine::memory::{MemError, Memory};
use wavesim_machine::state::Wave;

/// Initial number of steps between checkpoints.
const INTERVAL: u64 = 1024;
/// Bytes that all checkpoints together may take before every other one is dropped.
const CHECKPOINT_BYTES: usize = 256 << 20;
/// Steps of a wave before the next wave's turn, as in a run without the debugger.
const TURN: u64 = 4096;

/// A change of state that the user makes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "the variants say what their fields are")]
pub enum Edit {
    /// An SGPR, by its operand code.
    Sgpr { wave: usize, code: u16, value: u32 },
    /// A VGPR in one lane.
    Vgpr { wave: usize, lane: u32, register: u16, value: u32 },
    /// The condition code.
    Scc { wave: usize, value: u32 },
    /// The program counter.
    Pc { wave: usize, value: u64 },
    /// One byte of global memory.
    Memory { address: u64, value: u8 },
    /// One byte of LDS.
    Lds { offset: usize, value: u8 },
}

/// How a step ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// The wave has executed an instruction.
    Stepped,
    /// This wave cannot run: it waits or has ended. Others can.
    Blocked,
    /// No wave can run: each has ended or waits.
    Finished,
    /// The run has ended with a fault.
    Fault(Box<Fault>),
}

struct Checkpoint<'a> {
    time: u64,
    group: Group<'a>,
    index: u64,
    memory: Vec<u8>,
    turn: (usize, u64),
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
    /// Steps taken.
    time: u64,
    /// The wave of each step, run-length encoded: the wave, and the time after its last step.
    log: Vec<(u32, u64)>,
    /// Edits with the time at which they were made.
    edits: Vec<(u64, Edit)>,
    checkpoints: Vec<Checkpoint<'a>>,
    interval: u64,
    fault: Option<Box<Fault>>,
    /// The time at which each workgroup so far started.
    starts: Vec<u64>,
    /// The wave whose turn it is, and how many steps of its turn it has taken.
    turn: (usize, u64),
}

impl<'a> Timeline<'a> {
    /// A run at its start, with the first workgroup's waves ready.
    pub fn new(prepared: &'a Prepared, dispatch: &'a Dispatch<'a>) -> Result<Timeline<'a>, DispatchError> {
        dispatch.check()?;
        let mut group = Group::new(dispatch, &prepared.memory);
        if dispatch.workgroups() > 0 {
            group.start(dispatch.workgroup(0));
        }
        let mut timeline = Timeline {
            prepared,
            dispatch,
            group,
            index: 0,
            time: 0,
            log: Vec::new(),
            edits: Vec::new(),
            checkpoints: Vec::new(),
            interval: INTERVAL,
            fault: None,
            starts: vec![0],
            turn: (0, 0),
        };
        timeline.checkpoint();
        Ok(timeline)
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

    /// The wave that the round-robin order runs next.
    pub fn next_wave(&self) -> Option<usize> {
        let (wave, taken) = self.turn;
        let n = self.waves();
        let from = if taken >= TURN { wave + 1 } else { wave };
        (0..n).map(|k| (from + k) % n).find(|&at| self.can_run(at))
    }

    /// Starts a turn of this wave.
    pub fn prefer(&mut self, wave: usize) {
        self.turn = (wave, 0);
    }

    /// Executes one instruction of a wave. The last instruction of a workgroup starts the next workgroup.
    pub fn step(&mut self, wave: usize) -> Outcome {
        self.truncate();
        self.step_observed(wave, &mut Nobody)
    }

    /// Executes one instruction of a wave under an observer.
    pub fn step_with(&mut self, wave: usize, observer: &mut dyn Observer) -> Outcome {
        self.truncate();
        self.step_observed(wave, observer)
    }

    fn step_observed(&mut self, wave: usize, observer: &mut dyn Observer) -> Outcome {
        if let Some(fault) = &self.fault {
            return Outcome::Fault(fault.clone());
        }
        if !self.can_run(wave) {
            let any = (0..self.waves()).any(|at| self.can_run(at));
            return if any { Outcome::Blocked } else { Outcome::Finished };
        }
        if self.time >= self.dispatch.max_instructions {
            return Outcome::Finished;
        }
        self.group.ready(wave);
        let result = self.group.advance_observed(wave, 1, observer);
        self.turn = if self.turn.0 == wave { (wave, self.turn.1 + 1) } else { (wave, 1) };
        self.time += 1;
        match self.log.last_mut() {
            // A replay: the log has this step already.
            Some(last) if last.1 >= self.time => {}
            Some(last) if last.0 == wave as u32 => last.1 = self.time,
            _ => self.log.push((wave as u32, self.time)),
        }
        let outcome = match result {
            Err(fault) => {
                self.fault = Some(fault.clone());
                Outcome::Fault(fault)
            }
            Ok(()) => {
                if self.group.slots.iter().all(|s| s.status == Status::Ended) {
                    self.next_group();
                }
                Outcome::Stepped
            }
        };
        if self.checkpoints.last().is_some_and(|c| self.time >= c.time + self.interval) {
            self.checkpoint();
        }
        outcome
    }

    /// Starts the next workgroup, if there is one.
    fn next_group(&mut self) {
        if self.index + 1 < self.dispatch.workgroups() {
            self.index += 1;
            self.starts.truncate(self.index as usize);
            self.starts.push(self.time);
            self.group.start(self.dispatch.workgroup(self.index));
            self.turn = (0, 0);
        }
    }

    /// Whether the run has ended: by a fault, or because every wave has.
    pub fn finished(&self) -> bool {
        self.fault.is_some() || self.group.slots.iter().all(|s| s.status == Status::Ended)
    }

    /// Changes state now, and in every replay that passes this time.
    pub fn edit(&mut self, edit: Edit) -> Result<(), MemError> {
        self.truncate();
        self.apply(edit)?;
        self.edits.push((self.time, edit));
        Ok(())
    }

    fn apply(&mut self, edit: Edit) -> Result<(), MemError> {
        match edit {
            Edit::Sgpr { wave, code, value } => self.group.slots[wave].wave.set_sgpr(code as u32, value),
            Edit::Vgpr { wave, lane, register, value } => {
                self.group.slots[wave].wave.set_vgpr(lane, register as u32, value);
            }
            Edit::Scc { wave, value } => self.group.slots[wave].wave.scc = value & 1,
            Edit::Pc { wave, value } => self.group.slots[wave].wave.pc = value,
            Edit::Memory { address, value } => self.prepared.memory.write(address, &[value])?,
            Edit::Lds { offset, value } => {
                let error = MemError { address: offset as u64, size_bytes: 1, write: true };
                *self.group.lds.get_mut(offset).ok_or(error)? = value;
            }
        }
        Ok(())
    }

    /// Goes to the state before step `time` (from 0): backward, or forward by replaying recorded steps.
    pub fn go_to(&mut self, time: u64) {
        let end = self.log.last().map_or(0, |l| l.1);
        let time = time.min(end);
        if time < self.time {
            let at = self.checkpoint_before(time);
            self.restore(at);
        }
        while self.time < time {
            self.replay_step(&mut Nobody);
        }
    }

    /// The last step before now that `search` accepts. The present time does not change.
    pub fn find_back(&mut self, search: &mut dyn Search) -> Option<u64> {
        let now = self.time;
        let mut until = now;
        while until > 0 {
            let at = self.checkpoint_before(until - 1);
            let from = self.checkpoints[at].time;
            self.restore(at);
            let mut found = None;
            while self.time < until {
                let before = self.time;
                let Some(wave) = self.logged_wave() else { break };
                let mut hit = search.before(self, wave);
                self.replay_step(&mut Nobody);
                hit |= search.after(self, wave);
                if hit {
                    found = Some(before);
                }
            }
            if found.is_some() {
                self.go_to(now);
                return found;
            }
            until = from;
        }
        self.go_to(now);
        None
    }

    /// Replays the steps of the present workgroup under an observer. The present time does not change.
    pub fn replay_group(&mut self, observer: &mut dyn Observer) {
        let now = self.time;
        let start = self.group_start(self.index).unwrap_or(0);
        self.go_to(start);
        observer.group_started(self.workgroup(), self.waves());
        while self.time < now {
            self.replay_step(observer);
        }
    }

    /// The wave that took the next step, if that is recorded.
    fn logged_wave(&self) -> Option<usize> {
        self.wave_of_step(self.time)
    }

    /// The wave that took a step, if that is recorded.
    pub fn wave_of_step(&self, time: u64) -> Option<usize> {
        let at = self.log.partition_point(|l| l.1 <= time);
        self.log.get(at).map(|l| l.0 as usize)
    }

    /// The time at which a workgroup started, if it has.
    pub fn group_start(&self, index: u64) -> Option<u64> {
        self.starts.get(index as usize).copied()
    }

    /// Repeats the step that was taken at the present time.
    fn replay_step(&mut self, observer: &mut dyn Observer) {
        let Some(wave) = self.logged_wave() else { return };
        let before = self.time;
        self.step_observed(wave, observer);
        debug_assert_eq!(self.time, before + 1, "a replay repeats steps that succeeded");
        self.repeat_edits();
    }

    /// Repeats the edits that were made at the present time.
    fn repeat_edits(&mut self) {
        let time = self.time;
        let now: Vec<Edit> = self.edits.iter().filter(|e| e.0 == time).map(|e| e.1).collect();
        for edit in now {
            // It succeeded when it was made.
            let _ = self.apply(edit);
        }
    }

    /// Drops recorded steps, edits and checkpoints after the present time, as the run will differ from here.
    fn truncate(&mut self) {
        let time = self.time;
        while self.log.len() > 1 && self.log[self.log.len() - 2].1 >= time {
            self.log.pop();
        }
        if let Some(last) = self.log.last_mut() {
            last.1 = last.1.min(time);
        }
        if time == 0 {
            self.log.clear();
        }
        self.edits.retain(|e| e.0 <= time);
        self.checkpoints.retain(|c| c.time <= time);
    }

    fn checkpoint_before(&self, time: u64) -> usize {
        self.checkpoints.partition_point(|c| c.time <= time).saturating_sub(1)
    }

    fn checkpoint(&mut self) {
        let memory = self.prepared.memory.snapshot();
        let one = memory.len() + self.group.bytes();
        let (group, index, time, turn) = (self.group.clone(), self.index, self.time, self.turn);
        self.checkpoints.push(Checkpoint { time, group, index, memory, turn });
        if one.saturating_mul(self.checkpoints.len()) > CHECKPOINT_BYTES && self.checkpoints.len() > 2 {
            let mut keep = false;
            let last = self.checkpoints.len() - 1;
            let mut at = 0;
            self.checkpoints.retain(|_| {
                keep = !keep;
                at += 1;
                keep || at - 1 == last
            });
            self.interval *= 2;
        }
    }

    fn restore(&mut self, at: usize) {
        let c = &self.checkpoints[at];
        self.group = c.group.clone();
        self.index = c.index;
        self.time = c.time;
        self.turn = c.turn;
        self.fault = None;
        self.prepared.memory.restore(&c.memory);
        // A checkpoint is taken directly after its step, before any edit.
        self.repeat_edits();
    }
}
