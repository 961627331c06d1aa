//! All inequivalent executions of a launch, each once: dynamic partial-order reduction with source sets and sleep sets
//! (Abdulla, Aronis, Jonsson, Sagonas: *Optimal Dynamic Partial Order Reduction*, POPL 2014, algorithm Source-DPOR).
//!
//! Two executions are equivalent if one becomes the other by exchanging neighbouring steps of different waves that do not
//! conflict. The search runs one execution to its end, finds the pairs of conflicting steps that could have come in the
//! other order, and runs the launch again with a choice that reverses one of them.
//!
//! With delayed memory, every operation is a thread of two steps: its access, and the return of its results. They happen
//! after its issue, and before what the wave does after the wait that demands it.

mod clocks;
mod parts;

pub use parts::{late_sets, parts};

use crate::choice::Run;
use crate::footprint::Footprint;
use crate::machine::{End, Event, IsLate, Machine, Thread};
use clocks::{Clocks, happens_before, join};
use std::rc::Rc;
use std::sync::Arc;
use wavesim_engine::caches::Arrangement;

/// By [slot](Clocks::slot) of a wave or of a delayed operation: the number of its steps that happen before something.
type Clock = Vec<u32>;

/// A step of the present execution, and the choices before it.
struct Node {
    /// The wave, or the operation, that was chosen.
    thread: Thread,
    /// Its slot in clocks.
    slot: usize,
    /// What its step accesses.
    footprint: Rc<Footprint>,
    /// The waves that could have been chosen.
    enabled: Vec<Thread>,
    /// Waves to choose here, those that were chosen among them.
    backtrack: Vec<Thread>,
    /// Waves whose next step would only lead to executions that are known, with what that step accesses.
    sleep: Vec<(Thread, Rc<Footprint>)>,
    /// The steps that happen before the chosen one, itself included.
    clock: Clock,
    /// Number of switches, up to and with this step, from a wave that could have gone on.
    preemptions: u32,
}

/// Bounds of a search.
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    /// Switches from a wave that could have gone on, at most. With a bound, every execution within it is run, whether or
    /// not it is equivalent to another.
    pub preemptions: Option<u32>,
    /// Steps of an execution, at most.
    pub steps: u64,
    /// How workgroups are spread over caches; `None` for caches that are always coherent.
    pub caches: Option<Arrangement>,
    /// The operations that can be delayed; `None` for all.
    pub late: Option<LateSet>,
}

/// Operations that can be delayed, at most as many as an exploration with a bound of delays has; `Thread::MAX` for none.
pub type LateSet = [Thread; MOST_DELAYS];

/// The highest bound of delays.
pub const MOST_DELAYS: usize = 4;

/// What a search has done.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Executions that were run to their end; no two of them are equivalent.
    pub executions: u64,
    /// Executions that ended early, because they are equivalent to others.
    pub redundant: u64,
    /// Executions that were ended at the bound of steps.
    pub cut: u64,
}

/// A search through all executions. [`Search::next`] runs one after the other.
pub struct Search {
    bounds: Bounds,
    stack: Vec<Node>,
    started: bool,
    /// Number of first choices that belong to the part that is searched ([`parts`]).
    fixed: usize,
    /// What it has done so far.
    pub counts: Counts,
}

impl Search {
    /// Creates a search through all executions.
    pub fn new(bounds: Bounds) -> Search {
        Search { bounds, stack: Vec::new(), started: false, fixed: 0, counts: Counts::default() }
    }

    /// Creates a search through the executions of a part.
    ///
    /// # Errors
    /// The launch does not have these choices.
    pub fn of_part(machine: &mut Machine<'_>, bounds: Bounds, part: &[Choice]) -> Result<Search, String> {
        let mut search = Search::resume(machine, bounds, part, part.len(), Counts::default())?;
        search.started = false;
        Ok(search)
    }

    /// Creates a search that goes on where another one was: see [`Search::position`].
    ///
    /// # Errors
    /// The launch does not have these choices.
    pub fn resume(
        machine: &mut Machine<'_>,
        bounds: Bounds,
        position: &[Choice],
        fixed: usize,
        counts: Counts,
    ) -> Result<Search, String> {
        let mut search = Search { counts, started: true, fixed, ..Search::new(bounds) };
        delay_all(machine, bounds);
        machine.restart();
        let wrong = || "the launch does not have the choices of the saved state".to_string();
        let mut enabled = Vec::new();
        let mut clocks = Clocks::new(machine.threads());
        for choice in position {
            machine.enabled(&mut enabled);
            let known = |thread: &Thread| enabled.binary_search(thread).is_ok();
            if !known(&choice.thread) || !choice.backtrack.iter().all(known) {
                return Err(wrong());
            }
            let mut node = search.node(enabled.clone(), choice.thread);
            node.backtrack.clone_from(&choice.backtrack);
            for (thread, footprint) in &choice.sleep {
                if !known(thread) {
                    return Err(wrong());
                }
                node.sleep.push((*thread, Rc::new(footprint.clone())));
            }
            let (event, _) = machine.step(choice.thread);
            search.stack.push(node);
            // The races of these steps are known: their choices are in the saved state.
            search.record(&mut clocks, &event, false);
        }
        Ok(search)
    }

    /// Returns the choices of the last execution, from which [`Search::resume`] goes on.
    pub fn position(&self) -> Vec<Choice> {
        let one = |node: &Node| Choice {
            thread: node.thread,
            backtrack: node.backtrack.clone(),
            sleep: node.sleep.iter().map(|(thread, footprint)| (*thread, (**footprint).clone())).collect(),
        };
        self.stack.iter().map(one).collect()
    }

    /// Returns the waves of the last execution's steps.
    pub fn threads(&self) -> impl Iterator<Item = Thread> {
        self.stack.iter().map(|node| node.thread)
    }

    /// Number of bytes that the search takes.
    pub fn bytes(&self) -> usize {
        let one = |node: &Node| {
            let ranges = node.footprint.loads.len() + node.footprint.stores.len();
            size_of::<Node>() + 4 * (node.clock.len() + node.enabled.len()) + 32 * ranges
        };
        self.stack.iter().map(one).sum()
    }

    fn node(&self, enabled: Vec<Thread>, thread: Thread) -> Node {
        let last = self.stack.last();
        let preempts = last.is_some_and(|last| last.thread != thread && enabled.contains(&last.thread));
        Node {
            thread,
            slot: 0,
            footprint: Rc::default(),
            backtrack: vec![thread],
            sleep: Vec::new(),
            clock: Vec::new(),
            preemptions: last.map_or(0, |last| last.preemptions) + u32::from(preempts),
            enabled,
        }
    }

    /// Runs the next execution, and returns its end. Executions that are equivalent to others, or end at a bound, are not
    /// returned. Returns `None` after the last one, or if `stop` returns true.
    pub fn next(&mut self, machine: &mut Machine<'_>, stop: &dyn Fn() -> bool) -> Option<Run> {
        loop {
            if stop() || self.started && !self.advance() {
                return None;
            }
            self.started = true;
            if let Some(run) = self.execute(machine) {
                return Some(run);
            }
        }
    }

    /// Chooses another wave at the last step that has one to choose. Returns false if there is none.
    fn advance(&mut self) -> bool {
        while let Some(mut node) = self.stack.pop() {
            if self.stack.len() < self.fixed {
                return false;
            }
            // Without a bound, what follows from this choice is known from now on.
            if self.bounds.preemptions.is_none() {
                node.sleep.push((node.thread, node.footprint.clone()));
            } else {
                node.sleep.push((node.thread, Rc::default()));
            }
            let asleep = |thread: &Thread| node.sleep.iter().any(|(known, _)| known == thread);
            let next = node.backtrack.iter().copied().find(|thread| !asleep(thread));
            let Some(thread) = next else { continue };
            let fresh = self.node(node.enabled.clone(), thread);
            if self.bounds.preemptions.is_some_and(|most| fresh.preemptions > most) {
                self.stack.push(Node { thread, ..node });
                continue;
            }
            let (preemptions, footprint) = (fresh.preemptions, Rc::default());
            self.stack.push(Node { thread, preemptions, footprint, ..node });
            return true;
        }
        false
    }

    /// Runs the execution of the choices on the stack to its end. Returns `None` if it is ended early.
    fn execute(&mut self, machine: &mut Machine<'_>) -> Option<Run> {
        delay_all(machine, self.bounds);
        machine.restart();
        let mut clocks = Clocks::new(machine.threads());
        let given = self.stack.len();
        let mut enabled = Vec::new();
        let mut steps = 0;
        loop {
            machine.enabled(&mut enabled);
            if enabled.is_empty() {
                self.counts.executions += 1;
                return Some(Run { end: Some(machine.end()), steps: steps as u64 });
            }
            if steps as u64 >= self.bounds.steps {
                self.counts.cut += 1;
                return None;
            }
            if steps >= given {
                let Some(node) = self.fresh(&enabled) else {
                    self.counts.redundant += 1;
                    return None;
                };
                self.stack.push(node);
            }
            let thread = self.stack[steps].thread;
            let (event, fault) = machine.step(thread);
            self.record_at(&mut clocks, steps, &event, steps + 1 >= given);
            steps += 1;
            if let Some(fault) = fault {
                self.counts.executions += 1;
                self.stack.truncate(steps);
                return Some(Run { end: Some(End::Fault(fault)), steps: steps as u64 });
            }
        }
    }

    /// Returns the choices after those on the stack; `None` if every wave that can run is asleep.
    fn fresh(&self, enabled: &[Thread]) -> Option<Node> {
        let mut sleep = Vec::new();
        if let Some(last) = self.stack.last().filter(|_| self.bounds.preemptions.is_none()) {
            let others = last.sleep.iter().filter(|(thread, footprint)| {
                *thread != last.thread && footprint.conflict(&last.footprint).is_none()
            });
            sleep.extend(others.cloned());
        }
        let awake = |thread: &Thread| !sleep.iter().any(|(asleep, _)| asleep == thread);
        let last = self.stack.last().map(|last| last.thread);
        let stays = last.filter(|last| enabled.binary_search(last).is_ok() && awake(last));
        let thread = stays.or_else(|| enabled.iter().copied().find(awake))?;
        let mut node = self.node(enabled.to_vec(), thread);
        node.sleep = sleep;
        if self.bounds.preemptions.is_some() {
            // The choices that stay within the bound are all run.
            node.backtrack.extend(enabled.iter().filter(|other| **other != thread));
        }
        Some(node)
    }

    fn record(&mut self, clocks: &mut Clocks, event: &Event, races: bool) {
        self.record_at(clocks, self.stack.len() - 1, event, races);
    }

    /// Records a step: the steps that happen before it, and the races with them.
    fn record_at(&mut self, clocks: &mut Clocks, index: usize, event: &Event, races: bool) {
        let thread = clocks.slot(event.thread);
        let mut clock = clocks.threads[thread].clone();
        for operation in &event.demanded {
            let slot = clocks.slot(*operation);
            join(&mut clock, &clocks.threads[slot]);
        }
        for completion in &event.waited {
            if let Some(arrived) = clocks.completions.get(completion) {
                join(&mut clock, arrived);
            }
        }
        let awakened = clocks.awakened.get_mut(thread).and_then(Option::take);
        if let Some(by) = awakened {
            let known = self.stack[by].clock.clone();
            join(&mut clock, &known);
        }
        let footprint = Rc::new(event.footprint.clone());
        if !event.footprint.is_empty() {
            for before in (0..index).rev() {
                let other = &self.stack[before];
                if happens_before(other, &clock) || other.footprint.conflict(&footprint).is_none() {
                    continue;
                }
                if races && before >= self.fixed && self.bounds.preemptions.is_none() {
                    self.race(before, index, event.thread, &clock);
                }
                let known = self.stack[before].clock.clone();
                join(&mut clock, &known);
            }
        }
        if clock.len() <= thread {
            clock.resize(thread + 1, 0);
        }
        clock[thread] += 1;
        clocks.threads[thread].clone_from(&clock);
        for operation in &event.issued {
            let slot = clocks.slot(*operation);
            clocks.threads[slot].clone_from(&clock);
        }
        for signal in &event.signals {
            let arrivals = clocks.arrivals.entry((signal.group, signal.barrier)).or_default();

            join(arrivals, &clock);
        }
        for completion in &event.completed {
            let arrived = clocks.arrivals.remove(&(completion.group, completion.barrier));
            clocks.completions.insert(*completion, arrived.unwrap_or_else(|| clock.clone()));
        }
        for waited in &event.waited {
            // A wait at the end of the step.
            if let Some(arrived) = clocks.completions.get(waited) {
                join(&mut clocks.threads[thread], arrived);
            }
        }
        for other in &event.awakened {
            clocks.awakened[*other as usize] = Some(index);
        }
        let node = &mut self.stack[index];
        (node.slot, node.footprint, node.clock) = (thread, footprint, clock);
    }

    /// Adds a choice before the step `before` that leads to executions in which the step `index`, of `thread`, comes first.
    /// `clock` has the steps that happen before it, apart from `before` and those before that.
    fn race(&mut self, before: usize, index: usize, thread: Thread, clock: &[u32]) {
        let first = &self.stack[before];
        // The steps in between that do not happen after the first one, and then the second one. A wave whose first step
        // among them depends on no other of them can come first.
        let mut independent: Vec<usize> = Vec::new();
        let mut initials: Vec<Thread> = Vec::new();
        let mut seen: Vec<Thread> = Vec::new();
        for between in before + 1..index {
            let node = &self.stack[between];
            if happens_before(first, &node.clock) {
                continue;
            }
            if !seen.contains(&node.thread) {
                seen.push(node.thread);
                if !independent.iter().any(|other| happens_before(&self.stack[*other], &node.clock)) {
                    initials.push(node.thread);
                }
            }
            independent.push(between);
        }
        if !seen.contains(&thread)
            && !independent.iter().any(|other| happens_before(&self.stack[*other], clock))
        {
            initials.push(thread);
        }
        let known = |initial: &Thread| {
            first.backtrack.contains(initial) || first.sleep.iter().any(|(asleep, _)| asleep == initial)
        };
        if initials.iter().any(known) {
            return;
        }
        let can = |initial: &Thread| first.enabled.contains(initial);
        let chosen = [thread].into_iter().find(|own| initials.contains(own) && can(own));
        let chosen = chosen.or_else(|| initials.iter().copied().find(can));
        let first = &mut self.stack[before];
        match chosen {
            Some(chosen) => first.backtrack.push(chosen),
            None => {
                let all: Vec<Thread> =
                    first.enabled.iter().copied().filter(|t| !first.backtrack.contains(t)).collect();
                first.backtrack.extend(all);
            }
        }
    }
}

/// Delays every operation, if memory is delayed: when it takes effect is a choice. With a bound of preemptions, memory is
/// immediate.
fn delay_all(machine: &mut Machine<'_>, bounds: Bounds) {
    let all = machine.has_delays() && bounds.preemptions.is_none();
    machine.set_caches(bounds.caches.filter(|_| all));
    let is_late = move |thread: Thread, _: usize| bounds.late.is_none_or(|late| late.contains(&thread));
    machine.set_late(all.then(|| Arc::new(is_late) as IsLate));
}

/// The choices before a step, for [`Search::resume`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Choice {
    /// The wave that was chosen.
    pub thread: Thread,
    /// The waves to choose.
    pub backtrack: Vec<Thread>,
    /// The waves that need not be chosen, with what their next steps access.
    pub sleep: Vec<(Thread, Footprint)>,
}
