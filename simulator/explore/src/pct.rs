//! Random schedules: probabilistic concurrency testing (Burckhardt, Kothari, Musuvathi, Nagarakatti: *A Randomized
//! Scheduler with Probabilistic Guarantees of Finding Bugs*, ASPLOS 2010).
//!
//! Each wave has a random priority, and the one with the highest runs. At `depth - 1` random steps, the running wave
//! gets the lowest one. A bug that needs `depth` orderings appears with a probability of at least 1/(n·k^(depth-1)) in
//! each run, for n waves and k steps.
//!
//! In every second run, memory operations are delayed: an eighth of them, half of them, or all. The two steps of a delayed
//! operation, its access and the return of its results, happen at once, or when its wave waits for it. For a few, they have
//! random priorities as waves have, or come when nothing else can. In some of these runs, loads may hit lines that caches
//! hold; which caches a wave sits behind is random.

use crate::choice::Chooser;
use crate::machine::{Event, IsLate, Machine, Thread};
use std::collections::HashSet;
use std::sync::Arc;
use wavesim_engine::caches::Arrangement;
use wavesim_engine::sched::order::splitmix64;

/// Steps in a row after which a wave that keeps others waiting gets the lowest priority: it may wait for them.
const PATIENCE: u64 = 4096;

/// The choices of one run.
pub struct Pct {
    /// By wave; the highest runs.
    priorities: Vec<u64>,
    /// The steps before which the running wave gets the lowest priority, in ascending order.
    changes: Vec<u64>,
    steps: u64,
    /// The next lowest priority.
    lowest: u64,
    last: Option<Thread>,
    in_row: u64,
    seed: u64,
    /// Steps of a run, about.
    expected: u64,
    /// Of 16 operations, the number of those that are delayed.
    late: u64,
    /// How workgroups are spread over caches.
    caches: Option<Arrangement>,
    /// The operations that have accessed memory.
    performed: HashSet<Thread>,
    /// The wave of each step.
    pub threads: Vec<Thread>,
    /// Number of visible operations.
    pub visible: u64,
}

impl Pct {
    /// Creates the choices for a seed, for `threads` waves and a run of about `steps` steps.
    pub fn new(seed: u64, threads: u32, steps: u64, depth: u32) -> Pct {
        let mut state = splitmix64(seed ^ 0x70c7);
        let mut next = || {
            state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            splitmix64(state)
        };
        // The upper half is for the initial priorities.
        let priorities = (0..threads).map(|_| next() | 1 << 63).collect();
        let mut changes: Vec<u64> = (1..depth).map(|_| next() % steps.max(1)).collect();
        changes.sort_unstable();
        Pct {
            priorities,
            changes,
            steps: 0,
            lowest: (1 << 62) - 1,
            last: None,
            in_row: 0,
            seed,
            expected: steps,
            late: 0,
            caches: None,
            performed: HashSet::new(),
            threads: Vec::new(),
            visible: 0,
        }
    }

    /// Delays memory operations if the seed is odd.
    #[must_use]
    pub fn with_delays(mut self) -> Pct {
        if !pure(self.seed) {
            self.late = [16, 8, 2][(self.seed / 2 % 3) as usize];
            // A wave has a step more where it waits.
            let seed = self.seed;
            // In half of these runs, and in a quarter of the others, caches are always coherent.
            self.caches = Arrangement::of_seed(seed).filter(|_| splitmix64(seed ^ 0xca4) & 1 == 1);
            self.changes
                .iter_mut()
                .for_each(|change| *change = 2 * *change + (splitmix64(seed ^ *change) & 1));
        }
        self
    }

    fn highest(&self, machine: &Machine<'_>, enabled: &[Thread]) -> Option<Thread> {
        enabled.iter().copied().max_by_key(|thread| (self.priority(machine, *thread), *thread))
    }

    fn priority(&self, machine: &Machine<'_>, thread: Thread) -> u64 {
        if let Some(priority) = self.priorities.get(thread as usize) {
            return *priority;
        }
        let performed = self.performed.contains(&thread);
        let random =
            splitmix64(splitmix64(self.seed ^ 0xde1a) ^ (u64::from(thread) << 1 | u64::from(performed)));
        // A few operations of a run are late for others than their wave: more would keep it from ever coming first.
        let few = (1 << 16) / self.expected.max(8);
        match random & 0xffff {
            choice if choice < 2 * few => random >> 8,
            choice if choice < 4 * few => random | 1 << 63,
            choice if choice & 3 == 0 => u64::MAX,
            // When its wave waits for it.
            _ if machine.waits(thread) => self.priorities[machine.wave_of(thread) as usize],
            _ => random >> 8,
        }
    }

    fn lower(&mut self, thread: Thread) {
        self.priorities[thread as usize] = self.lowest;
        self.lowest -= 1;
    }
}

impl Chooser for Pct {
    fn choose(&mut self, machine: &Machine<'_>, enabled: &[Thread]) -> Option<Thread> {
        let mut next = self.highest(machine, enabled)?;
        if machine.is_operation(next) {
            self.performed.insert(next);
            self.threads.push(next);
            return Some(next);
        }
        while self.changes.first().is_some_and(|change| *change <= self.steps) {
            self.changes.remove(0);
            if !machine.is_operation(next) {
                self.lower(next);
            }
            next = self.highest(machine, enabled)?;
        }
        if self.last == Some(next) && self.in_row >= PATIENCE && enabled.len() > 1 {
            self.lower(next);
            next = self.highest(machine, enabled)?;
        }
        if machine.is_operation(next) {
            self.performed.insert(next);
            self.threads.push(next);
            return Some(next);
        }
        self.in_row = if self.last == Some(next) { self.in_row + 1 } else { 1 };
        self.last = Some(next);
        self.steps += 1;
        self.threads.push(next);
        Some(next)
    }

    fn executed(&mut self, event: &Event) {
        self.visible += u64::from(event.index.is_some());
    }

    fn caches(&self) -> Option<Arrangement> {
        self.caches
    }

    fn is_late(&self) -> Option<IsLate> {
        let (seed, late) = (splitmix64(self.seed ^ 0x1a7e), self.late);
        let is_late = move |thread: Thread, _: usize| splitmix64(seed ^ u64::from(thread)) & 15 < late;
        (late > 0).then(|| Arc::new(is_late) as IsLate)
    }
}

/// Whether the runs of a seed delay nothing. The bounds of probability hold for these.
fn pure(seed: u64) -> bool {
    seed.is_multiple_of(2)
}

/// The least probability that a run shows a bug that needs `depth` orderings, for `threads` waves and `steps` steps.
pub fn bound(threads: u32, steps: u64, depth: u32) -> f64 {
    1.0 / (f64::from(threads.max(1)) * (steps.max(1) as f64).powi(depth.max(1) as i32 - 1))
}

/// The least probability that one of `runs` runs shows such a bug.
pub fn bound_of_runs(threads: u32, steps: u64, depth: u32, runs: u64) -> f64 {
    // Without a loss of precision for small probabilities.
    -(runs as f64 * (-bound(threads, steps, depth)).ln_1p()).exp_m1()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds() {
        assert_eq!(bound(2, 10, 1), 0.5);
        assert_eq!(bound(2, 10, 3), 0.005);
        assert!((bound_of_runs(2, 10, 1, 2) - 0.75).abs() < 1e-12);
        assert!((bound_of_runs(4, 1_000_000, 3, 4_000_000) - 1e-6).abs() < 1e-9);
    }

    #[test]
    fn a_seed_determines_the_choices() {
        let one = |seed| {
            let pct = Pct::new(seed, 4, 100, 3);
            (pct.priorities, pct.changes)
        };
        assert_eq!(one(1), one(1));
        assert_ne!(one(1), one(2));
        assert_eq!(one(5).1.len(), 2);
        assert!(one(5).1.iter().all(|change| *change < 100));
    }
}
