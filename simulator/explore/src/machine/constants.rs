//! Lines of memory that no execution stores to, such as those of a kernel's arguments: what a cache holds of them is what
//! memory holds, so that it does not matter which wave brings them there.

use super::Machine;
use crate::footprint::{Footprint, Space};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use wavesim_engine::caches::LINE;

/// The lines to which executions store, as far as they are known. A search takes all others to be constant, and must begin
/// again if one of them is not.
#[derive(Debug, Default)]
pub struct StoredLines {
    lines: BTreeSet<u64>,
    others: AtomicBool,
}

impl StoredLines {
    /// Returns whether an execution has stored to a line that is not among them.
    pub fn are_incomplete(&self) -> bool {
        self.others.load(Ordering::Relaxed)
    }

    /// Adds the lines to which a run of a machine has stored, as recorded since [`Machine::record_stores`].
    pub fn add(&mut self, machine: &Machine<'_>) {
        self.lines.extend(machine.recorded_stores.iter().flatten());
    }

    fn has(&self, line: u64) -> bool {
        self.lines.contains(&line)
    }
}

/// Returns the lines to which a step stores.
fn stored(footprint: &Footprint) -> impl Iterator<Item = u64> {
    let global = footprint.stores.iter().filter(|range| range.space == Space::Global);
    global.flat_map(|range| range.start / LINE..=range.end.saturating_sub(1) / LINE)
}

impl Machine<'_> {
    /// Records from now on the lines to which runs store, for [`StoredLines::add`].
    pub fn record_stores(&mut self) {
        self.recorded_stores = Some(BTreeSet::new());
    }

    /// Takes lines that are not among these to be constant from the next run on; none without.
    pub fn assume_constant(&mut self, stored: Option<Arc<StoredLines>>) {
        self.stored = stored;
    }

    /// Returns whether a line is taken to be constant.
    pub(super) fn is_constant(&self, line: u64) -> bool {
        self.stored.as_ref().is_some_and(|stored| !stored.has(line))
    }

    /// Records the lines to which a step has stored.
    pub(super) fn note_stores(&mut self, footprint: &Footprint) {
        if let Some(recorded) = &mut self.recorded_stores {
            recorded.extend(stored(footprint));
        }
        if let Some(known) = &self.stored
            && stored(footprint).any(|line| !known.has(line))
        {
            known.others.store(true, Ordering::Relaxed);
        }
    }
}
