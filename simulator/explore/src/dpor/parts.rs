//! Parts of a search that can be searched independently.

use super::{Bounds, Choice, LateSet, MOST_DELAYS, Search};
use crate::choice::{Chooser, run};
use crate::machine::{Event, IsLate, Machine, Thread};
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

/// Runs each wave as long as it can, and records its memory operations, of which none is delayed.
#[derive(Default)]
struct Operations {
    seen: Arc<Mutex<BTreeSet<Thread>>>,
    last: Option<Thread>,
    /// The wave that runs first.
    first: Thread,
}

impl Chooser for Operations {
    fn choose(&mut self, _machine: &Machine<'_>, enabled: &[Thread]) -> Option<Thread> {
        let stays = self.last.filter(|last| enabled.contains(last));
        let first = Some(self.first).filter(|first| enabled.contains(first));
        stays.or(first).or(enabled.first().copied())
    }

    fn executed(&mut self, event: &Event) {
        self.last = Some(event.thread);
    }

    fn is_late(&self) -> Option<IsLate> {
        let seen = self.seen.clone();
        Some(Arc::new(move |thread, _| {
            seen.lock().unwrap_or_else(PoisonError::into_inner).insert(thread);
            false
        }))
    }
}

/// Returns the sets of at most `most` memory operations that can be delayed, of those that some wave issues in a run in
/// which one of the waves runs first; `None` if there are more than `limit` sets.
pub fn late_sets(machine: &mut Machine<'_>, most: usize, steps: u64, limit: usize) -> Option<Vec<LateSet>> {
    let mut chooser = Operations::default();
    for first in 0..machine.threads() {
        (chooser.first, chooser.last) = (first, None);
        run(machine, &mut chooser, steps);
    }
    let operations = std::mem::take(&mut *chooser.seen.lock().unwrap_or_else(PoisonError::into_inner));
    let mut sets: Vec<(usize, LateSet)> = vec![(0, [Thread::MAX; MOST_DELAYS])];
    for operation in operations {
        let with = sets.iter().filter(|(count, _)| *count < most.min(MOST_DELAYS)).map(|(count, set)| {
            let mut set = *set;
            set[*count] = operation;
            (count + 1, set)
        });
        let with: Vec<(usize, LateSet)> = with.collect();
        sets.extend(with);
        if sets.len() > limit {
            return None;
        }
    }
    // Fewer delays first.
    sets.sort_by_key(|(count, _)| *count);
    Some(sets.into_iter().map(|(_, set)| set).collect())
}

/// Splits the executions of a launch into parts that can be searched independently, at least `wanted` if there are as many:
/// each part has other first choices, and no execution of one is equivalent to one of another.
pub fn parts(machine: &mut Machine<'_>, bounds: Bounds, wanted: usize) -> Vec<Vec<Choice>> {
    let mut parts = vec![Vec::new()];
    // Fewer choices leave more to the reduction.
    for _ in 0..MOST_FIXED {
        if parts.len() >= wanted {
            break;
        }
        let before = parts.len();
        let mut next = Vec::new();
        let mut grown = false;
        for part in parts {
            match children(machine, bounds, &part) {
                Some(children) => {
                    grown = true;
                    next.extend(children);
                }
                None => next.push(part),
            }
        }
        parts = next;
        if !grown || parts.len() < before {
            break;
        }
    }
    parts
}

/// First choices of a part, at most.
const MOST_FIXED: usize = 12;

/// Returns the parts that begin with a part's choices and one more; `None` if the execution ends there.
fn children(machine: &mut Machine<'_>, bounds: Bounds, part: &[Choice]) -> Option<Vec<Vec<Choice>>> {
    let mut search = Search::of_part(machine, bounds, part).ok()?;
    let mut enabled = Vec::new();
    machine.enabled(&mut enabled);
    if enabled.is_empty() {
        return None;
    }
    let Some(node) = search.fresh(&enabled) else { return Some(Vec::new()) };
    let mut sleep = node.sleep.clone();
    let mut out = Vec::new();
    for thread in enabled {
        if sleep.iter().any(|(asleep, _)| *asleep == thread) {
            continue;
        }
        let fresh = search.node(Vec::new(), thread);
        if bounds.preemptions.is_some_and(|most| fresh.preemptions > most) {
            continue;
        }
        let choice = Choice {
            thread,
            backtrack: vec![thread],
            sleep: sleep.iter().map(|(thread, footprint)| (*thread, (**footprint).clone())).collect(),
        };
        let with: Vec<Choice> = part.iter().cloned().chain([choice]).collect();
        if bounds.preemptions.is_none() {
            search = Search::of_part(machine, bounds, &with).ok()?;
            let footprint = search.stack.last()?.footprint.clone();
            search.stack.pop();
            sleep.push((thread, footprint));
        }
        out.push(with);
    }
    Some(out)
}
