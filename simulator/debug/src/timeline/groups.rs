//! Which workgroup runs. They start one after another, and one that runs long is parked for others, as without the
//! debugger: it may wait for what they store. The journal has the times at which that happened, for replays.

use super::written::Sgprs;
use super::{Timeline, written};
use std::collections::VecDeque;
use std::rc::Rc;
use wavesim_engine::observe::Observer;
use wavesim_engine::sched::group::{Group, Status};

/// Steps of a workgroup before another one runs in its place.
const FIRST_SLICE: u64 = 1 << 20;
/// The same of one that goes on, or if workgroups are known to wait for each other.
const NEXT_SLICE: u64 = 1 << 16;
/// Bytes of workgroups that have begun and not ended, at most.
const PARKED_BYTES: usize = 1 << 28;

/// A workgroup that has begun and not ended, and does not run now.
pub(crate) struct Parked<'a> {
    index: u64,
    group: Group<'a>,
    turn: (usize, u64),
    written: Vec<Sgprs>,
}

impl Parked<'_> {
    /// Bytes that a copy takes.
    pub fn bytes(&self) -> usize {
        self.group.bytes()
    }
}

/// The workgroups beside the one that runs.
#[derive(Clone)]
pub(crate) struct Groups<'a> {
    /// How many have started.
    started: u64,
    /// In the order in which they go on. Checkpoints share them.
    pub parked: VecDeque<Rc<Parked<'a>>>,
    /// Steps of the present one since it started or went on.
    steps: u64,
    /// How many there are to be before others run.
    slice: u64,
}

impl Groups<'_> {
    /// The first one runs.
    pub fn new(cooperative: bool) -> Self {
        let slice = if cooperative { NEXT_SLICE } else { FIRST_SLICE };
        Groups { started: 1, parked: VecDeque::new(), steps: 0, slice }
    }

    /// Steps until the present one has run long.
    pub fn left(&self) -> u64 {
        self.slice.saturating_sub(self.steps).max(1)
    }
}

impl<'a> Timeline<'a> {
    /// How many workgroups have begun and wait for the one that runs.
    pub fn parked(&self) -> usize {
        self.groups.parked.len()
    }

    /// Whether a workgroup, by its number, has ended.
    pub fn has_ended(&self, index: u64) -> bool {
        let runs = self.index == index && !self.group.slots.iter().all(|s| s.status == Status::Ended);
        index < self.groups.started && !runs && self.groups.parked.iter().all(|p| p.index != index)
    }

    /// Whether the workgroup that ran before, by its number, has left its place to one in progress, or has been parked.
    pub fn has_switched(&self, before: u64) -> bool {
        self.index != before && (!self.has_ended(before) || self.group_start(self.index) != Some(self.time))
    }

    /// Steps that can be taken before another workgroup may run, if the present one runs by itself.
    pub(super) fn until_switch(&self) -> u64 {
        if self.is_replay() {
            let next = self.switches.get(self.switches.partition_point(|at| *at <= self.time));
            return next.map_or(u64::MAX, |at| at - self.time);
        }
        if self.may_switch { self.groups.left() } else { u64::MAX }
    }

    /// After steps of the present workgroup: starts the next one if it has ended, or gives others a turn.
    pub(super) fn stepped(&mut self, steps: u64, replay: bool, observer: &mut dyn Observer) {
        self.groups.steps += steps;
        if self.group.slots.iter().all(|s| s.status == Status::Ended) {
            observer.group_ended(self.workgroup());
            if self.can_start() {
                self.start_group(observer);
            } else {
                self.go_on(observer);
            }
            return;
        }
        let switch = match replay {
            true => self.switches.binary_search(&self.time).is_ok(),
            false => self.may_switch && self.groups.steps >= self.groups.slice,
        };
        if switch && (self.can_start() || !self.groups.parked.is_empty()) {
            if !replay {
                self.switches.push(self.time);
            }
            self.park(observer);
        }
    }

    fn can_start(&self) -> bool {
        self.groups.started < self.dispatch.workgroups()
            && self.groups.parked.len() <= PARKED_BYTES / self.group.bytes().max(1)
    }

    /// Starts the next workgroup in the place of the present one.
    fn start_group(&mut self, observer: &mut dyn Observer) {
        self.index = self.groups.started;
        self.groups.started += 1;
        self.groups.steps = 0;
        self.starts.truncate(self.index as usize);
        self.starts.push(self.time);
        self.group.start(self.workgroup());
        observer.group_started(self.workgroup(), self.waves());
        self.written.fill(written::at_start(self.prepared));
        self.turn = self.first_turn();
    }

    /// Parks the present workgroup. Another one starts, or goes on.
    fn park(&mut self, observer: &mut dyn Observer) {
        observer.group_parked(self.workgroup());
        let starts = self.can_start();
        // The one that goes on brings its own.
        let group = match starts {
            true => std::mem::replace(&mut self.group, Group::new(self.dispatch, &self.prepared.memory)),
            false => self.group.clone(),
        };
        let (index, turn, written) = (self.index, self.turn, self.written.clone());
        self.groups.parked.push_back(Rc::new(Parked { index, group, turn, written }));
        if starts {
            // The time of an observer is that of the dispatch.
            self.group.executed = self.time;
            self.start_group(observer);
        } else {
            self.go_on(observer);
        }
    }

    /// The workgroup that was parked first goes on, if there is one.
    fn go_on(&mut self, observer: &mut dyn Observer) {
        let Some(parked) = self.groups.parked.pop_front() else { return };
        self.index = parked.index;
        self.turn = parked.turn;
        self.written.clone_from(&parked.written);
        self.group = match Rc::try_unwrap(parked) {
            Ok(parked) => parked.group,
            Err(shared) => shared.group.clone(),
        };
        self.group.executed = self.time;
        (self.groups.steps, self.groups.slice) = (0, NEXT_SLICE);
        observer.group_resumed(self.workgroup());
    }
}
