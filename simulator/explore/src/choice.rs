//! Who decides which wave runs next, and runs in the order of such decisions.

use crate::machine::{End, Event, IsLate, Machine, Thread};
use std::collections::BTreeSet;
use std::sync::Arc;
use wavesim_engine::caches::Arrangement;

/// Decides which wave takes the next step.
pub trait Chooser {
    /// Returns one of the waves that can take a step, of which there is at least one; `None` ends the run here.
    fn choose(&mut self, machine: &Machine<'_>, enabled: &[Thread]) -> Option<Thread>;

    /// Receives each step after it was taken.
    fn executed(&mut self, _event: &Event) {}

    /// Returns how workgroups are spread over caches; `None` for caches that are always coherent. Called before the run.
    fn caches(&self) -> Option<Arrangement> {
        None
    }

    /// Returns which memory operations are delayed; none without. Called before the run.
    fn is_late(&self) -> Option<IsLate> {
        None
    }
}

/// A run and its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Run {
    /// The end; `None` if the chooser has ended the run.
    pub end: Option<End>,
    /// Number of steps taken.
    pub steps: u64,
}

/// Runs a launch from its start. After `limit` steps, waves take turns, so that those that wait for each other finish; if
/// the launch has not ended after as many steps again, it is a livelock.
pub fn run(machine: &mut Machine<'_>, chooser: &mut dyn Chooser, limit: u64) -> Run {
    machine.set_late(chooser.is_late());
    machine.set_caches(chooser.caches());
    machine.restart();
    let mut enabled = Vec::new();
    let (mut steps, mut last) = (0, 0);
    loop {
        machine.enabled(&mut enabled);
        if enabled.is_empty() {
            return Run { end: Some(machine.end()), steps };
        }
        if steps >= limit.saturating_mul(2) {
            let message = format!(
                "no end after {steps} steps, although every wave got its turns; wave at {}",
                machine.position(enabled[0])
            );
            return Run { end: Some(End::Livelock(message)), steps };
        }
        let next = match steps < limit {
            true => chooser.choose(machine, &enabled),
            false => enabled.iter().copied().find(|thread| *thread > last).or(enabled.first().copied()),
        };
        let Some(thread) = next else { return Run { end: None, steps } };
        steps += 1;
        last = thread;
        let (event, fault) = machine.step(thread);
        chooser.executed(&event);
        if let Some(fault) = fault {
            return Run { end: Some(End::Fault(fault)), steps };
        }
    }
}

/// Steps of one wave in a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Segment {
    /// The wave.
    pub thread: Thread,
    /// The number of its steps.
    pub steps: u64,
}

/// What is chosen in a run: the order of steps, the operations that are delayed, and the caches of waves.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Schedule {
    /// Steps of waves and of delayed operations.
    pub segments: Vec<Segment>,
    /// The operations that are delayed.
    pub late: BTreeSet<Thread>,
    /// How workgroups are spread over caches; `None` for caches that are always coherent.
    pub caches: Option<Arrangement>,
}

impl Schedule {
    /// Returns the schedule of a run of the machine that has just ended, which took these steps.
    pub fn of(machine: &Machine<'_>, threads: impl IntoIterator<Item = Thread>) -> Schedule {
        let segments = segments_of(threads);
        let done = segments.iter().map(|segment| segment.thread);
        let late = done.filter(|thread| machine.is_operation(*thread)).chain(machine.late()).collect();
        Schedule { segments, late, caches: machine.caches() }
    }

    /// Returns the schedule in which an operation is not delayed.
    #[must_use]
    pub fn without(&self, operations: &[Thread]) -> Schedule {
        let mut out = self.clone();
        out.segments.retain(|segment| !operations.contains(&segment.thread));
        out.late.retain(|thread| !operations.contains(thread));
        out
    }
}

/// Follows a list of segments: each until its end, or until its wave cannot go on. After the last one, a wave runs until
/// it cannot, then the delayed operations for which it waits, and then the first wave that can.
#[derive(Debug, Clone, Default)]
pub struct Follow {
    segments: Vec<Segment>,
    late: Arc<BTreeSet<Thread>>,
    caches: Option<Arrangement>,
    index: usize,
    taken: u64,
    last: Option<Thread>,
    /// The steps taken.
    pub events: Vec<Event>,
    /// Number of switches from a wave that could have gone on.
    pub preemptions: usize,
}

impl Follow {
    /// Creates the chooser of a schedule without delays.
    pub fn new(segments: &[Segment]) -> Follow {
        Follow { segments: segments.to_vec(), ..Follow::default() }
    }

    /// Creates the chooser of a schedule.
    pub fn schedule(schedule: &Schedule) -> Follow {
        Follow {
            late: Arc::new(schedule.late.clone()),
            caches: schedule.caches,
            ..Follow::new(&schedule.segments)
        }
    }
}

impl Chooser for Follow {
    fn choose(&mut self, machine: &Machine<'_>, enabled: &[Thread]) -> Option<Thread> {
        let mut chosen = None;
        while let Some(segment) = self.segments.get(self.index) {
            if self.taken < segment.steps && enabled.binary_search(&segment.thread).is_ok() {
                self.taken += 1;
                chosen = Some(segment.thread);
                break;
            }
            (self.index, self.taken) = (self.index + 1, 0);
        }
        if chosen.is_some_and(|thread| machine.is_operation(thread)) {
            return chosen;
        }
        let stays = self.last.filter(|last| enabled.binary_search(last).is_ok());
        let own =
            |thread: &&Thread| machine.is_operation(**thread) && Some(machine.wave_of(**thread)) == self.last;
        let demanded = || enabled.iter().find(own).copied();
        let next = chosen.or(stays).or_else(demanded).or(enabled.first().copied());
        if next.is_some_and(|thread| machine.is_operation(thread)) {
            return next;
        }
        self.preemptions += usize::from(stays.is_some() && stays != next);
        self.last = next;
        next
    }

    fn executed(&mut self, event: &Event) {
        self.events.push(event.clone());
    }

    fn caches(&self) -> Option<Arrangement> {
        self.caches
    }

    fn is_late(&self) -> Option<IsLate> {
        let late = self.late.clone();
        (!late.is_empty()).then(|| Arc::new(move |thread: Thread, _: usize| late.contains(&thread)) as IsLate)
    }
}

/// Returns the segments of some steps.
pub fn segments(events: &[Event]) -> Vec<Segment> {
    segments_of(events.iter().map(|event| event.thread))
}

/// Returns the segments of steps of these waves.
pub fn segments_of(threads: impl IntoIterator<Item = Thread>) -> Vec<Segment> {
    let mut out: Vec<Segment> = Vec::new();
    for thread in threads {
        match out.last_mut() {
            Some(last) if last.thread == thread => last.steps += 1,
            _ => out.push(Segment { thread, steps: 1 }),
        }
    }
    out
}
