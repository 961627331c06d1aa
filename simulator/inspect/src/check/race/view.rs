//! Visibility of earlier accesses to a wave: whether they happened before, have completed, and are not hidden
//! by stale cache contents.

use super::super::shadow_memory::Record;
use super::super::waits::Scoreboard;
use super::clock::VectorClock;
use super::cluster::Clusters;
use super::ordering::{Caches, Ordering};
use super::write_back::{DeviceRelease, WriteBacks};
use super::{EndedWave, Invalidations, WaveState};
use std::collections::HashMap;

/// The state against which an earlier access is tested.
pub(super) struct View<'v> {
    first: u32,
    waves: &'v [WaveState],
    ended: &'v HashMap<u32, EndedWave>,
    scoreboard: &'v Scoreboard,
    vector: &'v VectorClock,
    /// Caches in which the load may hit.
    hits: Caches,
    invalidations: &'v Invalidations,
    through_lds: &'v [u32],
    cu_mode: bool,
    /// Where a release to other workgroups writes back the L2 cache.
    release: Option<DeviceRelease<'v>>,
    clusters: Option<Clusters<'v>>,
}

/// The reason why an earlier access is not visible.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Missing {
    /// Happens-before does not order the two accesses.
    Order,
    /// The access was still outstanding when its wave performed the release.
    Wait,
    /// The store was not written back to where other workgroups see it.
    WriteBack,
    /// The write-back of the store was still outstanding when its wave performed the release.
    WriteBackWait,
    /// The load may hit in a cache that holds stale bytes.
    Invalidate,
}

impl View<'_> {
    /// Returns what is missing for an earlier access to LDS or global memory to be visible; `None` if it is
    /// visible.
    #[inline(always)]
    pub(super) fn missing(&self, r: &Record, lds: bool) -> Option<Missing> {
        let clock = self.vector.epoch_of(self.first, r.wave);
        if clock < r.epoch {
            return Some(Missing::Order);
        }
        // A wave that acquires through the access itself sees it.
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
                let all_complete = wave.late.is_empty() && self.scoreboard.is_idle(index as u32);
                if !all_complete
                    && (wave.late.incomplete(r.epoch, r.pc, clock)
                        || self.scoreboard.is_outstanding(index as u32, r.epoch, r.pc))
                {
                    return Some(Missing::Wait);
                }
                let in_group = self.hits.and(Caches::L0.or(Caches::SCALAR));
                (!lds && !in_group.is_empty() && !self.stale(r, in_group).is_empty())
                    .then_some(Missing::Invalidate)
            }
            None => self.missing_for_other_group(r, clock),
        }
    }

    #[inline(never)]
    pub(super) fn missing_for_other_group(&self, r: &Record, clock: u32) -> Option<Missing> {
        let late = self.ended.get(&r.wave).is_some_and(|w| w.late.incomplete(r.epoch, r.pc, clock));
        let cached = self.release.is_some_and(|release| release.stays_in_cache(r));
        if (late || cached) && !self.any_write_back(r, WriteBacks::cover) {
            return Some(match () {
                _ if self.any_write_back(r, WriteBacks::issued) => Missing::WriteBackWait,
                _ if late => Missing::Wait,
                _ => Missing::WriteBack,
            });
        }
        // Scalar loads miss into L1, too, which the workgroups of a cluster share.
        let beyond_group = match self.hits {
            _ if self.shares_cluster(r) => self.hits.and(Caches::L0.or(Caches::SCALAR)),
            hits if hits.is_empty() => hits,
            hits => hits.or(Caches::L1),
        };
        (!self.stale(r, beyond_group).is_empty()).then_some(Missing::Invalidate)
    }

    /// Returns whether a wave of the same workgroup has written back the L2 cache after an access, and, as `cover`
    /// says, waited for it or only issued it before it released to this wave.
    fn any_write_back(&self, r: &Record, cover: fn(&WriteBacks, &Record, u32, u32, u32) -> bool) -> bool {
        let Some(release) = self.release else { return false };
        let group = release.workgroup(r.wave);
        group.clone().any(|wave| {
            let clock = self.vector.epoch_of(self.first, wave);
            self.ended.get(&wave).is_some_and(|w| cover(&w.write_backs, r, clock, wave, group.start))
        })
    }

    /// Returns whether the wave has discarded its L0 cache since it acquired a store of another workgroup, but
    /// not the caches behind it: its acquire has the scope of a workgroup.
    pub(super) fn is_scope_too_narrow(&self, r: &Record) -> bool {
        let local = r.wave.wrapping_sub(self.first) < self.waves.len() as u32 || self.shares_cluster(r);
        let vector = !self.hits.and(Caches::L0).is_empty();
        !local && vector && self.stale(r, Caches::L0.or(Caches::L1)) == Caches::L1
    }

    /// Returns whether an access is one of another workgroup of the cluster.
    fn shares_cluster(&self, r: &Record) -> bool {
        self.clusters.is_some_and(|clusters| clusters.has(r.wave))
    }

    /// Returns those of some caches that the wave has not invalidated since it acquired a store.
    pub(super) fn stale(&self, r: &Record, caches: Caches) -> Caches {
        let not_invalidated =
            |n: &usize| self.invalidations.clocks[*n].epoch_of(self.first, r.wave) < r.epoch;
        Caches(caches.numbers().filter(not_invalidated).fold(0, |all, n| all | 1 << n))
    }
}

/// Returns the view of wave `wave_index`.
#[allow(clippy::too_many_arguments)]
#[inline(always)]
pub(super) fn view<'v>(
    first: u32,
    waves: &'v [WaveState],
    ended: &'v HashMap<u32, EndedWave>,
    scoreboard: &'v Scoreboard,
    wave_index: usize,
    ordering: Ordering,
    cu_mode: bool,
    release: Option<DeviceRelease<'v>>,
    clusters: Option<Clusters<'v>>,
) -> View<'v> {
    let WaveState { vector, invalidations, through_lds, .. } = &waves[wave_index];
    let hits = ordering.hits;
    View {
        first,
        waves,
        ended,
        scoreboard,
        vector,
        hits,
        invalidations,
        through_lds,
        cu_mode,
        release,
        clusters,
    }
}
