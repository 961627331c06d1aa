//! What a wave sees of earlier accesses: whether they happened before, are complete, and are not hidden by what a cache holds.

use super::super::shadow_memory::Record;
use super::super::waits::Scoreboard;
use super::clock::VectorClock;
use super::ordering::{Caches, Ordering};
use super::{Discards, Ended, WaveState};
use std::collections::HashMap;

/// What an access is compared by: who happened before it, and whether that is complete and seen.
pub(super) struct View<'v> {
    first: u32,
    waves: &'v [WaveState],
    ended: &'v HashMap<u32, Ended>,
    scoreboard: &'v Scoreboard,
    vector: &'v VectorClock,
    /// Caches that a load may hit in, and since which clocks they hold nothing older.
    hits: Caches,
    discards: &'v Discards,
    through_lds: &'v [u32],
    cu_mode: bool,
}

/// Why an earlier access does not count as done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Missing {
    /// Nothing orders the two.
    Order,
    /// It was outstanding when its wave released it.
    Wait,
    /// The load may hit in a cache that holds older bytes.
    Invalidate,
}

impl View<'_> {
    /// Of an earlier access in LDS or in global memory; `None`: it is done and seen.
    #[inline(always)]
    pub(super) fn missing(&self, r: &Record, lds: bool) -> Option<Missing> {
        let clock = self.vector.of(self.first, r.wave);
        if clock < r.epoch {
            return Some(Missing::Order);
        }
        // Whoever acquires through the access itself sees it.
        if clock == r.epoch {
            return None;
        }
        let index = r.wave.wrapping_sub(self.first) as usize;
        match self.waves.get(index) {
            Some(wave) => {
                let scalar = self.hits.and(Caches::SCALAR);
                if !lds && self.cu_mode && scalar.is_empty() {
                    return None;
                }
                if lds && self.through_lds.get(index).is_some_and(|&epoch| epoch > r.epoch) {
                    return None;
                }
                let quiet = wave.late.is_empty() && self.scoreboard.is_idle(index as u32);
                if !quiet
                    && (wave.late.incomplete(r.epoch, r.pc, clock)
                        || self.scoreboard.is_outstanding(index as u32, r.epoch, r.pc))
                {
                    return Some(Missing::Wait);
                }
                let own = self.hits.and(Caches::L0.or(Caches::SCALAR));
                (!lds && !own.is_empty() && !self.stale(r, own).is_empty()).then_some(Missing::Invalidate)
            }
            None => self.missing_of_other_group(r, clock),
        }
    }

    #[inline(never)]
    pub(super) fn missing_of_other_group(&self, r: &Record, clock: u32) -> Option<Missing> {
        if self.ended.get(&r.wave).is_some_and(|w| w.late.incomplete(r.epoch, r.pc, clock)) {
            return Some(Missing::Wait);
        }
        // Scalar loads miss into L1 too.
        let behind = if self.hits.is_empty() { self.hits } else { self.hits.or(Caches::L1) };
        (!self.stale(r, behind).is_empty()).then_some(Missing::Invalidate)
    }

    /// Of some caches, those that the wave has not discarded since it knows of a store.
    pub(super) fn stale(&self, r: &Record, caches: Caches) -> Caches {
        let old = |n: &usize| self.discards.clocks[*n].of(self.first, r.wave) < r.epoch;
        Caches(caches.numbers().filter(old).fold(0, |all, n| all | 1 << n))
    }
}

/// What wave `at` sees.
#[inline(always)]
pub(super) fn view<'v>(
    first: u32,
    waves: &'v [WaveState],
    ended: &'v HashMap<u32, Ended>,
    scoreboard: &'v Scoreboard,
    at: usize,
    ordering: Ordering,
    cu_mode: bool,
) -> View<'v> {
    let WaveState { vector, discards, through_lds, .. } = &waves[at];
    View { first, waves, ended, scoreboard, vector, hits: ordering.hits, discards, through_lds, cu_mode }
}
