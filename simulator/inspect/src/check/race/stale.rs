//! Loads that may return stale bytes from a cache.

use super::super::report::Report;
use super::super::shadow_memory::Record;
use super::super::waits::Scoreboard;
use super::Shadow;
use super::ordering::{Caches, Ordering};
use wavesim_engine::observe::{Done, Step};
use wavesim_loader::prepared::Prepared;
use wavesim_machine::exec::watch::{Access, Place};

impl Shadow {
    /// Reports scalar loads of bytes that vector stores of the same wave have written: stores do not reach
    /// the scalar cache.
    #[cold]
    pub(super) fn check_own_stores(
        &self,
        step: &Step<'_>,
        done: &Done<'_>,
        scoreboard: &Scoreboard,
        report: &mut Report,
        prepared: &Prepared,
    ) {
        let at = step.wave.id;
        let arrival_invalidations =
            self.waves[at as usize].invalidations.epochs[Caches::SCALAR.numbers().next().unwrap_or(0)];
        let loads = done.accesses.iter().filter(|a| !a.write && !a.outside && a.place == Place::Global);
        for dword in loads.flat_map(|a| (a.address & !3..a.address + a.len_bytes()).step_by(4)) {
            let cell = self.global.cell(dword);
            let own_store = cell.writes.iter().find(|r| r.wave == self.first + at && r.pc != step.pc as u32);
            let Some(store) = own_store else { continue };
            let waited = !scoreboard.is_outstanding(at, store.epoch, store.pc);
            if store.epoch >= arrival_invalidations || !waited {
                self.report_own_store(step, dword, store, waited, scoreboard, prepared, report);
                return;
            }
        }
    }

    /// Reports accesses to bytes of LDS that an outstanding load to LDS of the same wave writes. LDS
    /// instructions do not wait for it.
    #[cold]
    pub(super) fn check_own_loads_to_lds(
        &self,
        step: &Step<'_>,
        done: &Done<'_>,
        scoreboard: &Scoreboard,
        report: &mut Report,
        prepared: &Prepared,
    ) {
        let wave = step.wave.id;
        let loads_to_lds = |pc| self.index.binary_search(&pc).is_ok_and(|at| self.orderings[at].loads_to_lds);
        for a in done.accesses.iter().filter(|a| !a.outside && a.place == Place::Lds) {
            for dword in (a.address & !3..a.address + a.len_bytes()).step_by(4) {
                let cell = self.lds.cell(dword);
                let outstanding = |r: &&Record| {
                    r.wave == self.first + wave
                        && loads_to_lds(r.pc)
                        && scoreboard.is_outstanding(wave, r.epoch, r.pc)
                };
                if let Some(load) = cell.writes.iter().find(outstanding) {
                    let one = a.each().find(|one| one.address + one.size_bytes as u64 > dword);
                    self.report_own_load_to_lds(step, &one.unwrap_or(*a), load, scoreboard, prepared, report);
                    return;
                }
            }
        }
    }

    /// Keeps the loads by other waves that a store of `writer` has superseded.
    #[cold]
    pub(super) fn record_cached_copies(&mut self, writer: u32) {
        for (dword, reads) in self.global.superseded.drain(..) {
            let reads = reads.into_iter().filter(|r| r.wave != 0 && r.wave != writer && !r.atomic);
            self.cached_copies.insert(dword, reads.collect());
        }
    }

    /// Returns a load preceding `store` that may have left the older bytes in a cache in which the wave's
    /// present load may hit.
    pub(super) fn find_cached_copy(
        &self,
        step: &Step<'_>,
        wave_index: usize,
        a: &Access,
        store: &Record,
        ordering: Ordering,
    ) -> Option<Record> {
        let mine = &self.waves[wave_index].invalidations;
        let local = store.wave.wrapping_sub(self.first) < self.waves.len() as u32;
        // An invalidation since the acquire of the store has dropped the copy, whichever wave loaded it.
        let not_invalidated = |n: &usize| mine.clocks[*n].epoch_of(self.first, store.wave) < store.epoch;
        let reach = if local { ordering.hits.and(Caches::L0.or(Caches::SCALAR)) } else { ordering.hits };
        let holds = |r: &&Record| {
            // The stores of a wave update its own cache.
            if r.wave == store.wave {
                return false;
            }
            let invalidations = match self.waves.get(r.wave.wrapping_sub(self.first) as usize) {
                Some(wave) => Some(&wave.invalidations),
                None => self.ended.get(&r.wave).map(|w| &w.invalidations),
            };
            let loaded = step.program.inst_at(r.pc as u64).map_or(Caches(0), |i| self.orderings[i].hits);
            let kept = |n: &usize| invalidations.is_none_or(|d| r.epoch >= d.epochs[*n]);
            reach.and(loaded).numbers().any(|n| not_invalidated(&n) && kept(&n))
        };
        let dwords = (a.address & !3..a.address + a.size_bytes as u64).step_by(4);
        dwords.filter_map(|dword| self.cached_copies.get(&dword)).flatten().find(holds).copied()
    }
}
