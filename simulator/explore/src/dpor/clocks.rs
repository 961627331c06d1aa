//! Vector clocks of steps.

use super::{Clock, Node};
use crate::machine::{Completion, Thread};
use std::collections::HashMap;

/// What remains of the state of clocks while an execution runs.
pub(super) struct Clocks {
    /// By slot: the steps that happen before the next one.
    pub threads: Vec<Clock>,
    /// The slots of delayed operations; those of waves are their numbers.
    slots: HashMap<Thread, usize>,
    /// What happens before the completion of a barrier: its signals.
    pub arrivals: HashMap<(u64, u8), Clock>,
    pub completions: HashMap<Completion, Clock>,
    /// By wave: the step that has awakened it from polling.
    pub awakened: Vec<Option<usize>>,
}

impl Clocks {
    pub fn new(threads: u32) -> Clocks {
        Clocks {
            threads: vec![vec![0; threads as usize]; threads as usize],
            slots: HashMap::new(),
            arrivals: HashMap::new(),
            completions: HashMap::new(),
            awakened: vec![None; threads as usize],
        }
    }
}

impl Clocks {
    /// Returns the slot of a wave, or of an operation, which gets one when it is first seen.
    pub fn slot(&mut self, thread: Thread) -> usize {
        if (thread as usize) < self.awakened.len() {
            return thread as usize;
        }
        let next = self.threads.len();
        let slot = *self.slots.entry(thread).or_insert(next);
        if slot == next {
            self.threads.push(Vec::new());
        }
        slot
    }
}

pub(super) fn join(clock: &mut Clock, other: &[u32]) {
    if clock.len() < other.len() {
        clock.resize(other.len(), 0);
    }
    for (own, other) in clock.iter_mut().zip(other) {
        *own = (*own).max(*other);
    }
}

/// Whether a step happens before something with this clock.
pub(super) fn happens_before(node: &Node, clock: &[u32]) -> bool {
    match (node.clock.get(node.slot), clock.get(node.slot)) {
        (Some(step), Some(known)) => step <= known,
        _ => false,
    }
}
