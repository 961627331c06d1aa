//! A cluster: workgroups that run together and share a barrier (CDNA5 manual, *Workgroup Clusters*). One thread runs
//! them in turns. Where there are no clusters, each workgroup is one of its own.

use super::group::{Pause, RunningGroup};
use super::launch::{Budget, Dispatch};
use super::queue::Followers;
use crate::observe::Observer;
use wavesim_machine::fault::Fault;
use wavesim_machine::memory::Memory;

/// Instructions in a turn of a workgroup whose cluster has several: they may wait for each other's stores.
const TURN: u64 = 64 << 10;

/// The state of a workgroup of a cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// It has not run yet.
    New,
    Suspended,
    Ended,
}

/// A cluster in progress. The object is reused from cluster to cluster.
pub struct Cluster<'a> {
    dispatch: &'a Dispatch<'a>,
    groups: Vec<RunningGroup<'a>>,
    states: Vec<State>,
    /// Whose turn it is.
    turn: usize,
    /// Instructions that all clusters run by this object have executed; with an observer, of the dispatch.
    pub executed: u64,
    /// The index of the cluster, in the order of starts.
    pub index: u64,
}

impl<'a> Cluster<'a> {
    /// Creates the object. `dispatch` has passed [`Dispatch::check`].
    pub fn new(dispatch: &'a Dispatch<'a>, memory: &'a Memory) -> Cluster<'a> {
        let count = dispatch.cluster_workgroups() as usize;
        Cluster {
            dispatch,
            groups: (0..count).map(|_| RunningGroup::new(dispatch, memory)).collect(),
            states: vec![State::Ended; count],
            turn: 0,
            executed: 0,
            index: 0,
        }
    }

    /// Starts the workgroups of the cluster that starts as the `index`-th.
    pub fn start(&mut self, index: u64) {
        let first = index * self.groups.len() as u64;
        for (index, group) in (first..).zip(&mut self.groups) {
            group.start(index);
        }
        self.states.fill(State::New);
        (self.turn, self.index) = (0, index);
    }

    /// Number of bytes that the cluster takes.
    pub fn bytes(&self) -> usize {
        self.groups.iter().map(RunningGroup::bytes).sum()
    }

    /// Returns the reusable parts to the dispatch's pool.
    pub fn recycle(self) {
        self.groups.into_iter().for_each(RunningGroup::recycle);
    }

    /// Runs the cluster until it ends or has executed `slice` instructions. Returns whether it has ended. If it has
    /// only one workgroup, others may then have started in its place and ended ([`Cluster::index`]).
    #[inline]
    pub fn run(
        &mut self,
        budget: &Budget,
        slice: u64,
        followers: Option<Followers<'_>>,
    ) -> Result<bool, Box<Fault>> {
        let followers = followers.filter(|_| self.groups.len() == 1);
        let result = self.run_turns(slice, |_, group, _, slice| group.run(budget, slice, followers));
        if let [group] = &self.groups[..] {
            self.index = group.index;
        }
        result
    }

    /// As [`Cluster::run`], with an observer of every instruction, which also sees the turns of workgroups.
    pub fn run_observed<O: Observer + ?Sized>(
        &mut self,
        budget: &Budget,
        slice: u64,
        observer: &mut O,
    ) -> Result<bool, Box<Fault>> {
        self.run_turns(slice, |dispatch, group, mut state, slice| {
            let end = group.executed.saturating_add(slice);
            loop {
                let observed = observer.observed_instructions(group.id);
                if observed > 0 {
                    match state {
                        State::New => observer.group_started(group.id, dispatch.waves() as usize),
                        _ => observer.group_resumed(group.id),
                    }
                    state = State::Suspended;
                    let left = end - group.executed;
                    let pause = group.run_observed(budget, left.min(observed), observer)?;
                    match pause {
                        Pause::Ended => observer.group_ended(group.id),
                        _ => observer.group_parked(group.id),
                    }
                    if pause != Pause::Slice || group.executed >= end {
                        return Ok(pause);
                    }
                }
                let most = observer.unobserved_instructions(group.id).max(1);
                let before = group.executed;
                let pause = group.run(budget, (end - before).min(most), None)?;
                observer.ran_unobserved(group.id, group.executed - before, pause == Pause::Ended);
                if pause != Pause::Slice || group.executed >= end {
                    return Ok(pause);
                }
            }
        })
    }

    #[inline(always)]
    fn run_turns(
        &mut self,
        slice: u64,
        mut run: impl FnMut(&Dispatch<'a>, &mut RunningGroup<'a>, State, u64) -> Result<Pause, Box<Fault>>,
    ) -> Result<bool, Box<Fault>> {
        let started = self.executed;
        let turn = if self.groups.len() == 1 { slice } else { slice.min(TURN) };
        // Workgroups in sequence that could not run at all.
        let mut blocked = 0;
        loop {
            let (group, state) = (&mut self.groups[self.turn], self.states[self.turn]);
            // A run counts the instructions of the whole dispatch.
            group.executed = self.executed;
            let result = run(self.dispatch, group, state, turn);
            let ran = group.executed != self.executed;
            self.executed = group.executed;
            let pause = result?;
            self.states[self.turn] = if pause == Pause::Ended { State::Ended } else { State::Suspended };
            if let [group] = &self.groups[..] {
                let ended = pause == Pause::Ended;
                if self.dispatch.meets() {
                    if pause == Pause::ForOthers {
                        return Err(group.deadlock());
                    }
                    if ended {
                        self.dispatch.keep_gws(&group.shared.common());
                    }
                }
                return Ok(ended);
            }
            blocked = if ran || pause == Pause::Ended { 0 } else { blocked + 1 };
            let common = self.groups[self.turn].shared.common();
            if blocked >= self.groups.len() {
                let first = self.states.iter().position(|state| *state != State::Ended);
                let group = &mut self.groups[first.unwrap_or(self.turn)];
                group.shared.take_common(&common);
                return Err(group.deadlock());
            }
            let count = self.groups.len();
            let next = (1..=count).map(|after| (self.turn + after) % count);
            let Some(next) = next.into_iter().find(|at| self.states[*at] != State::Ended) else {
                self.dispatch.keep_gws(&common);
                return Ok(true);
            };
            self.groups[next].shared.take_common(&common);
            self.turn = next;
            if self.executed - started >= slice {
                return Ok(false);
            }
        }
    }
}
