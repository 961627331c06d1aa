//! Scheduling of workgroups. They start one after another. As in a run without the debugger, a workgroup that
//! runs long is suspended in favour of others, since it may wait for their stores. The journal has the times of
//! these switches, for replays.

use super::tracked::Tracked;
use super::{Timeline, tracked};
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;
use wavesim_engine::observe::Observer;
use wavesim_engine::sched::group::{RunningGroup, Status};
use wavesim_machine::state::barrier::Common;

/// Number of steps after which a newly started workgroup is suspended.
const FIRST_SLICE: u64 = 1 << 20;
/// The same for a resumed workgroup, or if workgroups are known to wait for each other.
const NEXT_SLICE: u64 = 1 << 16;
/// The part of [`Dispatch::resident_bytes`] that suspended workgroups may take: checkpoints hold copies of them.
const SUSPENDED_PART: usize = 4;

/// A workgroup that has started but is neither running nor ended.
#[derive(Clone)]
pub(crate) struct SuspendedGroup<'a> {
    index: u64,
    group: RunningGroup<'a>,
    turn: (usize, u64),
    tracked: Vec<Tracked>,
}

impl SuspendedGroup<'_> {
    /// Returns the size of a copy in bytes.
    pub fn bytes(&self) -> usize {
        self.group.bytes()
    }
}

/// The workgroups other than the running one.
#[derive(Clone)]
pub(crate) struct Groups<'a> {
    /// Number of workgroups that have started.
    started: u64,
    /// Suspended workgroups, in the order in which they are resumed. Checkpoints share them.
    pub suspended: VecDeque<Rc<SuspendedGroup<'a>>>,
    /// Steps of the running workgroup since it was started or resumed.
    steps: u64,
    /// Number of steps after which it is suspended.
    slice: u64,
    /// What the workgroups of a cluster share, for those of which one has run, by the index of the cluster. The running workgroup has
    /// the present state of its own.
    clusters: BTreeMap<u64, Common>,
}

impl Groups<'_> {
    /// Creates the state in which the first workgroup runs.
    pub fn new(cooperative: bool) -> Self {
        let slice = if cooperative { NEXT_SLICE } else { FIRST_SLICE };
        Groups { started: 1, suspended: VecDeque::new(), steps: 0, slice, clusters: BTreeMap::new() }
    }

    /// Returns the number of steps until the running workgroup is suspended.
    pub fn left(&self) -> u64 {
        self.slice.saturating_sub(self.steps).max(1)
    }
}

impl<'a> Timeline<'a> {
    /// Returns the number of suspended workgroups.
    pub fn suspended(&self) -> usize {
        self.groups.suspended.len()
    }

    /// Returns whether a workgroup, given by its index, has ended.
    pub fn has_ended(&self, index: u64) -> bool {
        let runs = self.group_index == index && !self.group.slots.iter().all(|s| s.status == Status::Ended);
        index < self.groups.started && !runs && self.groups.suspended.iter().all(|p| p.index != index)
    }

    /// Returns whether the workgroup that ran before, given by its index, has been suspended, or has ended and
    /// been replaced by a resumed one.
    pub fn has_switched(&self, before: u64) -> bool {
        self.group_index != before
            && (!self.has_ended(before) || self.group_start(self.group_index) != Some(self.time))
    }

    /// Returns a workgroup that has started and not ended, given by its index.
    pub(super) fn group_of(&mut self, index: u64) -> Option<&mut RunningGroup<'a>> {
        if self.group_index == index {
            return Some(&mut self.group);
        }
        let suspended = self.groups.suspended.iter_mut().find(|suspended| suspended.index == index)?;
        Some(&mut Rc::make_mut(suspended).group)
    }

    /// Returns the number of steps that can be taken before workgroups are switched.
    pub(super) fn steps_until_switch(&self) -> u64 {
        if self.is_replay() {
            let next = self.switches.get(self.switches.partition_point(|at| *at <= self.time));
            return next.map_or(u64::MAX, |at| at - self.time);
        }
        if let Some((_, end)) = self.scheduled_turn() {
            return end - self.time;
        }
        if self.may_switch { self.groups.left() } else { u64::MAX }
    }

    /// Updates the schedule after steps of the running workgroup: starts or resumes another one if it has
    /// ended or its slice is used up.
    pub(super) fn after_steps(&mut self, steps: u64, replay: bool, observer: &mut dyn Observer) {
        self.groups.steps += steps;
        if self.group.slots.iter().all(|s| s.status == Status::Ended) {
            observer.group_ended(self.workgroup());
            self.leave_cluster();
            if self.starts_next() {
                self.start_group(observer);
            } else {
                self.resume_suspended(observer);
            }
            self.skip_waiting(observer);
            return;
        }
        let scheduled = self.scheduled_turn().map(|(turn, _)| turn.group);
        let switch = match replay {
            true => self.switches.binary_search(&self.time).is_ok(),
            false if scheduled.is_some() => scheduled != Some(self.group_index),
            false => self.waits_for_others() || self.may_switch && self.groups.steps >= self.groups.slice,
        };
        if switch && (self.starts_next() || !self.groups.suspended.is_empty()) {
            if !replay {
                self.switches.push(self.time);
            }
            self.park(observer);
            self.skip_waiting(observer);
        }
    }

    /// Runs another workgroup as long as the running one waits for others, unless all of them wait.
    fn skip_waiting(&mut self, observer: &mut dyn Observer) {
        if self.scheduled_turn().is_some() {
            return;
        }
        for _ in 0..self.groups.suspended.len() {
            if !self.waits_for_others() {
                break;
            }
            self.park(observer);
        }
    }

    /// Returns whether the next workgroup starts, rather than a suspended one going on. The latter is then the first one
    /// in the queue.
    fn starts_next(&mut self) -> bool {
        let Some((turn, _)) = self.scheduled_turn() else { return self.can_start() };
        let suspended = &mut self.groups.suspended;
        match suspended.iter().position(|suspended| suspended.index == turn.group) {
            Some(at) => {
                if let Some(group) = suspended.remove(at) {
                    suspended.push_front(group);
                }
                false
            }
            None => self.groups.started < self.dispatch.workgroups(),
        }
    }

    fn can_start(&self) -> bool {
        // All workgroups of a cluster run together.
        let within_cluster =
            !self.groups.started.is_multiple_of(u64::from(self.dispatch.cluster_workgroups()));
        self.groups.started < self.dispatch.workgroups()
            && (within_cluster
                || self.groups.suspended.len()
                    <= self.dispatch.resident_bytes / SUSPENDED_PART / self.group.bytes().max(1))
    }

    /// Returns whether no wave of the running workgroup can run before others have signalled.
    fn waits_for_others(&self) -> bool {
        self.group.waits_for_others() && (0..self.waves()).all(|wave| !self.can_run(wave))
    }

    fn cluster_index(&self) -> u64 {
        self.group_index / u64::from(self.dispatch.cluster_workgroups())
    }

    /// Stores the state of the cluster's barrier, before another workgroup runs.
    fn leave_cluster(&mut self) {
        if self.dispatch.cluster_workgroups() > 1 {
            let index = self.cluster_index();
            self.groups.clusters.insert(index, self.group.shared.common());
        }
    }

    /// Gives the workgroup that runs now the state of its cluster's barrier.
    fn enter_cluster(&mut self) {
        if let Some(common) = self.groups.clusters.get(&self.cluster_index()) {
            self.group.shared.take_common(common);
        }
    }

    /// Starts the next workgroup in place of the running one.
    fn start_group(&mut self, observer: &mut dyn Observer) {
        self.group_index = self.groups.started;
        self.groups.started += 1;
        self.groups.steps = 0;
        self.group_starts.truncate(self.group_index as usize);
        self.group_starts.push(self.time);
        self.group.start(self.group_index);
        self.enter_cluster();
        observer.group_started(self.workgroup(), self.waves());
        self.tracked.fill(tracked::at_start(self.prepared));
        self.turn = self.first_turn();
    }

    /// Parks the running workgroup, and starts or resumes another one.
    fn park(&mut self, observer: &mut dyn Observer) {
        observer.group_parked(self.workgroup());
        self.leave_cluster();
        let starts = self.starts_next();
        // A resumed workgroup brings its own state, so a copy suffices there.
        let group = match starts {
            true => {
                std::mem::replace(&mut self.group, RunningGroup::new(self.dispatch, &self.prepared.memory))
            }
            false => self.group.clone(),
        };
        let (index, turn, tracked) = (self.group_index, self.turn, self.tracked.clone());
        self.groups.suspended.push_back(Rc::new(SuspendedGroup { index, group, turn, tracked }));
        if starts {
            // Observers count time by the dispatch.
            self.group.executed = self.time;
            self.start_group(observer);
        } else {
            self.resume_suspended(observer);
        }
    }

    /// Resumes the workgroup that was suspended first, if there is one.
    fn resume_suspended(&mut self, observer: &mut dyn Observer) {
        let Some(suspended) = self.groups.suspended.pop_front() else { return };
        self.group_index = suspended.index;
        self.turn = suspended.turn;
        self.tracked.clone_from(&suspended.tracked);
        self.group = match Rc::try_unwrap(suspended) {
            Ok(suspended) => suspended.group,
            Err(shared) => shared.group.clone(),
        };
        self.group.executed = self.time;
        self.enter_cluster();
        (self.groups.steps, self.groups.slice) = (0, NEXT_SLICE);
        observer.group_resumed(self.workgroup());
    }
}
