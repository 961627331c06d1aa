//! A dispatch whose waves run as the caller decides: any wave of any workgroup, for any number of instructions.
//! Recorded schedules and the exploration of schedules use it.

use super::group::{RunningGroup, Status};
use super::launch::{Dispatch, DispatchError};
use super::recorded::Act;
use crate::delayed::{Choices, OperationId};
use crate::observe::Observer;
use std::collections::BTreeMap;
use wavesim_machine::exec::machine_ops::Event;
use wavesim_machine::fault::{Fault, FaultKind};
use wavesim_machine::memory::Memory;
use wavesim_machine::state::barrier::Common;

/// Workgroups that [`Controlled::run_fairly`] runs at a time.
const MOST_RESIDENT: u64 = 32;

/// The state of a workgroup.
enum Slot<'a> {
    New,
    Running(Box<RunningGroup<'a>>),
    Ended,
}

/// A dispatch under the caller's control. Workgroups are given by their place in the order of starts
/// ([`Dispatch::workgroup`]); each starts when one of its waves first runs.
pub struct Controlled<'a> {
    dispatch: &'a Dispatch<'a>,
    memory: &'a Memory,
    groups: Vec<Slot<'a>>,
    /// Objects of workgroups that have ended; boxed, as those of running ones, which are large and move into a slot.
    #[allow(clippy::vec_box, reason = "the boxes move between this list and the slots")]
    spare: Vec<Box<RunningGroup<'a>>>,
    /// What the workgroups of a cluster share, for those of which one has run, by the index of the cluster.
    clusters: BTreeMap<u64, Common>,
    /// The workgroup that the observer has seen last, if it has not ended.
    current: Option<usize>,
    started: u64,
    ended: u64,
    /// Wave-instructions of the dispatch executed so far.
    pub executed: u64,
    /// Which memory operations are delayed; `None` as the dispatch says.
    choices: Option<Choices>,
}

impl<'a> Controlled<'a> {
    /// Creates the state before the first instruction. `dispatch` has passed [`Dispatch::check`].
    pub fn new(dispatch: &'a Dispatch<'a>, memory: &'a Memory) -> Controlled<'a> {
        Controlled {
            dispatch,
            memory,
            groups: (0..dispatch.workgroups()).map(|_| Slot::New).collect(),
            spare: Vec::new(),
            clusters: BTreeMap::new(),
            current: None,
            started: 0,
            ended: 0,
            executed: 0,
            choices: None,
        }
    }

    /// Sets which memory operations are delayed, in workgroups that start from now on. Only with
    /// [`Delays::Demanded`](crate::delayed::Delays::Demanded).
    pub fn set_choices(&mut self, choices: Option<Choices>) {
        self.choices = choices;
    }

    /// Lets an outstanding operation access memory or return. Nothing happens if it has done so.
    ///
    /// # Errors
    /// The operation faults.
    pub fn act<O: Observer + ?Sized>(
        &mut self,
        operation: OperationId,
        act: Act,
        observer: &mut O,
    ) -> Result<(), Box<Fault>> {
        let Some(Slot::Running(_)) = self.groups.get(operation.group as usize) else { return Ok(()) };
        self.switch_to(operation.group, observer);
        let Some(Slot::Running(running)) = self.groups.get_mut(operation.group as usize) else {
            return Ok(());
        };
        running.executed = self.executed;
        running.act(operation.wave as usize, operation.number, act, observer)
    }

    /// As [`Controlled::new`], for a launch that has not been checked.
    ///
    /// # Errors
    /// The launch cannot run.
    pub fn checked(dispatch: &'a Dispatch<'a>, memory: &'a Memory) -> Result<Controlled<'a>, DispatchError> {
        dispatch.check()?;
        Ok(Controlled::new(dispatch, memory))
    }

    /// Returns to the state before the first instruction; memory is left to the caller.
    pub fn restart(&mut self) {
        for slot in &mut self.groups {
            if let Slot::Running(group) = std::mem::replace(slot, Slot::New) {
                self.spare.push(group);
            }
        }
        self.clusters.clear();
        self.dispatch.begin();
        self.current = None;
        (self.started, self.ended, self.executed) = (0, 0, 0);
    }

    /// Returns the reusable parts to the dispatch's pool.
    pub fn recycle(self) {
        let running = self.groups.into_iter().filter_map(|slot| match slot {
            Slot::Running(group) => Some(group),
            Slot::New | Slot::Ended => None,
        });
        running.chain(self.spare).for_each(|group| group.recycle());
    }

    /// Number of workgroups that have started.
    pub fn started(&self) -> u64 {
        self.started
    }

    /// Number of workgroups that have started and not ended.
    pub fn resident(&self) -> u64 {
        self.started - self.ended
    }

    /// Returns whether every wave has ended.
    pub fn has_ended(&self) -> bool {
        self.ended == self.groups.len() as u64
    }

    /// Returns a workgroup that has started and not ended.
    pub fn group(&self, group: u64) -> Option<&RunningGroup<'a>> {
        match self.groups.get(group as usize)? {
            Slot::Running(group) => Some(group),
            Slot::New | Slot::Ended => None,
        }
    }

    /// Returns whether a workgroup has not started.
    pub fn is_new(&self, group: u64) -> bool {
        matches!(self.groups.get(group as usize), Some(Slot::New))
    }

    /// Returns whether a wave can execute an instruction.
    pub fn can_run(&self, group: u64, wave: usize) -> bool {
        match self.groups.get(group as usize) {
            Some(Slot::New) => wave < self.dispatch.waves() as usize,
            Some(Slot::Running(running)) => wave < running.slots.len() && running.can_run(wave),
            Some(Slot::Ended) | None => false,
        }
    }

    /// Runs a wave that [can run](Controlled::can_run) for at most `instructions`; the observer may end its turn before.
    /// Returns the number of instructions executed.
    ///
    /// # Errors
    /// The fault that ends the run.
    pub fn run<O: Observer + ?Sized>(
        &mut self,
        group: u64,
        wave: usize,
        instructions: u64,
        observer: &mut O,
    ) -> Result<u64, Box<Fault>> {
        if self.dispatch.is_cancelled() {
            let message = format!("stopped after {} instructions", self.executed);
            return Err(self.fault(FaultKind::Interrupted, message));
        }
        let left = self.dispatch.max_instructions.saturating_sub(self.executed);
        if left == 0 {
            let message = format!("{} instructions executed without an end", self.dispatch.max_instructions);
            return Err(self.fault(FaultKind::InstructionLimit, message));
        }
        self.switch_to(group, observer);
        let cluster = self.cluster_of(group);
        let Some(Slot::Running(running)) = self.groups.get_mut(group as usize) else { return Ok(0) };
        running.executed = self.executed;
        running.ready(wave);
        let result = running.advance_observed(wave, instructions.min(left), observer);
        let executed = running.executed - self.executed;
        self.executed = running.executed;
        if let Some(cluster) = cluster {
            self.clusters.insert(cluster, running.shared.common());
        }
        self.dispatch.count_instructions(executed);
        result?;
        if running.slots.iter().all(|slot| slot.status == Status::Ended) {
            observer.group_ended(running.id);
            self.current = None;
            self.ended += 1;
            if let Slot::Running(group) = std::mem::replace(&mut self.groups[group as usize], Slot::Ended) {
                self.spare.push(group);
            }
            self.dispatch.count_group();
        }
        self.share_cluster(cluster);
        Ok(executed)
    }

    /// Makes a workgroup the one that the observer sees; starts it if it has not started.
    fn switch_to<O: Observer + ?Sized>(&mut self, group: u64, observer: &mut O) {
        let index = group as usize;
        if self.current == Some(index) {
            return;
        }
        if let Some(Slot::Running(last)) = self.current.and_then(|last| self.groups.get(last)) {
            observer.group_parked(last.id);
        }
        self.current = Some(index);
        match &mut self.groups[index] {
            Slot::Running(running) => observer.group_resumed(running.id),
            slot => {
                let spare = self.spare.pop();
                let mut running =
                    spare.unwrap_or_else(|| Box::new(RunningGroup::new(self.dispatch, self.memory)));
                running.start(group);
                if self.choices.is_some() {
                    running.set_choices(self.choices.clone());
                }
                observer.group_started(running.id, running.slots.len());
                *slot = Slot::Running(running);
                self.started += 1;
                let cluster = self.cluster_of(group);
                self.share_cluster(cluster);
            }
        }
    }

    /// The cluster of a workgroup, if there are clusters of several.
    fn cluster_of(&self, group: u64) -> Option<u64> {
        let workgroups = u64::from(self.dispatch.cluster_workgroups());
        (workgroups > 1).then(|| group / workgroups)
    }

    /// Gives the workgroups of a cluster the present state of its barrier.
    fn share_cluster(&mut self, cluster: Option<u64>) {
        let Some(cluster) = cluster else { return };
        let Some(common) = self.clusters.get(&cluster) else { return };
        let workgroups = u64::from(self.dispatch.cluster_workgroups());
        let range = (cluster * workgroups) as usize..((cluster + 1) * workgroups) as usize;
        for slot in self.groups.get_mut(range).into_iter().flatten() {
            if let Slot::Running(group) = slot {
                group.shared.take_common(common);
            }
        }
    }

    /// Runs the waves in turns of `turn` instructions by index, workgroup by workgroup, until all have ended.
    ///
    /// # Errors
    /// The fault that ends the run, such as a deadlock.
    pub fn run_fairly<O: Observer + ?Sized>(
        &mut self,
        turn: u64,
        observer: &mut O,
    ) -> Result<(), Box<Fault>> {
        let waves = self.dispatch.waves() as usize;
        while !self.has_ended() {
            let mut progress = false;
            for group in 0..self.groups.len() as u64 {
                if self.is_new(group) && self.resident() >= MOST_RESIDENT {
                    continue;
                }
                for wave in 0..waves {
                    if self.can_run(group, wave) {
                        progress |= self.run(group, wave, turn, observer)? > 0;
                    }
                }
            }
            if !progress {
                return Err(self.deadlock());
            }
        }
        Ok(())
    }

    /// Returns the fault of a run in which no wave can run.
    pub fn deadlock(&self) -> Box<Fault> {
        let running = self.groups.iter().find_map(|slot| match slot {
            Slot::Running(group) => Some(group),
            Slot::New | Slot::Ended => None,
        });
        match running {
            Some(group) => group.deadlock(),
            None => self.fault(FaultKind::Other, "no wave can run".to_string()),
        }
    }

    /// Returns a fault at the wave that ran last, or at the start.
    pub fn fault(&self, kind: FaultKind, message: String) -> Box<Fault> {
        let event = Event::fault(kind, message);
        let current = self.current.and_then(|at| match &self.groups[at] {
            Slot::Running(group) => Some(group),
            Slot::New | Slot::Ended => None,
        });
        match current {
            Some(group) => group.fault_of(0, event),
            None => {
                let group = RunningGroup::new(self.dispatch, self.memory);
                group.fault_of(0, event)
            }
        }
    }
}
