//! The fast path of plain loads and stores, which order nothing and are the most frequent: recording is short
//! where no other wave has accessed the bytes.

use super::super::report::Report;
use super::super::shadow_memory::Record;
use super::super::waits::{IssuedAccess, Scoreboard};
use super::Shadow;
use super::cluster::Clusters;
use super::ordering::{Caches, Ordering};
use super::view::view;
use super::write_back::device_release;
use wavesim_engine::observe::{Done, Step};
use wavesim_loader::prepared::Prepared;
use wavesim_machine::exec::effects::{Class, Effects};
use wavesim_machine::exec::watch::{Access, LdsLoads, Place};

impl Shadow {
    /// Returns whether an instruction only loads or only stores, and orders nothing.
    pub fn is_plain(&self, index: usize, effects: &Effects) -> bool {
        let memory = matches!(effects.class, Class::Vmem | Class::Lds) && !effects.memory.is_empty();
        let ordering = self.orderings.get(index).copied().unwrap_or_default();
        let orders = effects.atomic || effects.coherent || ordering.polls || !effects.calls.is_empty();
        let orders = orders || self.loads_to_lds && (effects.class == Class::Lds || ordering.loads_to_lds);
        memory && self.enabled && !orders && ordering.hits.and(Caches::SCALAR).is_empty()
    }

    /// Records accesses that cannot conflict with any other wave's: to bytes that only this wave has
    /// accessed, and deferred loads of LDS. Otherwise the same as [`Shadow::record_plain`]. Returns `None` if
    /// any access is of another kind; [`Shadow::record_plain`] then records all of them again.
    #[inline(always)]
    pub fn record_exclusive(&mut self, wave: u32, pc: u32, accesses: &[Access]) -> Option<IssuedAccess> {
        let at = wave as usize;
        let store = accesses.first().is_some_and(|a| a.write);
        let epoch = self.waves[at].epoch + store as u32;
        let me = Record { wave: self.first + wave, epoch, pc, ..Record::default() };
        let exclusive = match accesses {
            [a] => self.try_record_exclusive(a, me),
            all => (0..all.len()).all(|n| is_repeated_load(all, n) || self.try_record_exclusive(&all[n], me)),
        };
        if !exclusive {
            return None;
        }
        let state = &mut self.waves[at];
        state.accessed = epoch;
        state.epoch = epoch + store as u32;
        Some(IssuedAccess { epoch, pc, store })
    }

    #[inline(always)]
    fn try_record_exclusive(&mut self, a: &Access, me: Record) -> bool {
        match a.place {
            Place::Lds => !a.write && self.phase.try_defer(a, me),
            _ => self.global.record_exclusive(a, me),
        }
    }

    /// Returns whether loads of LDS can be deferred.
    #[inline(always)]
    pub fn can_defer_loads(&self) -> bool {
        self.phase.is_open()
    }

    /// Defers a wave's loads of LDS.
    #[inline(always)]
    pub fn defer_loads(&mut self, wave: u32, pc: u32, loads: &mut LdsLoads) -> IssuedAccess {
        let state = &mut self.waves[wave as usize];
        let epoch = state.epoch;
        state.accessed = epoch;
        self.phase.defer_lanes(loads, Record { wave: self.first + wave, epoch, pc, ..Record::default() });
        IssuedAccess { epoch, pc, store: false }
    }

    /// Does the work of [`Shadow::after`] for a plain instruction whose accesses are all in bounds.
    pub fn record_plain(
        &mut self,
        step: &Step<'_>,
        done: &Done<'_>,
        scoreboard: &Scoreboard,
        prepared: &Prepared,
        report: &mut Report,
    ) -> IssuedAccess {
        let at = step.wave.id as usize;
        let store = done.accesses.first().is_some_and(|a| a.write);
        let wave = &mut self.waves[at];
        let epoch = wave.epoch + store as u32;
        wave.accessed = epoch;
        wave.epoch = epoch + store as u32;
        let pc = step.pc as u32;
        let me = Record { wave: self.first + at as u32, epoch, pc, ..Record::default() };
        for (n, a) in done.accesses.iter().enumerate() {
            if is_repeated_load(done.accesses, n) {
                continue;
            }
            if a.place == Place::Lds || !self.global.record_exclusive(a, me) {
                self.compare(at, self.orderings[step.index], a, me, scoreboard);
            }
        }
        if !self.global.superseded.is_empty() {
            self.record_cached_copies(me.wave);
        }
        if !self.hits.is_empty() {
            self.report_races(step, done, self.orderings[step.index], scoreboard, prepared, report);
        }
        IssuedAccess { epoch, pc, store }
    }

    /// Compares an access with earlier ones to its bytes, and records it.
    #[inline(always)]
    pub(super) fn compare(
        &mut self,
        wave_index: usize,
        ordering: Ordering,
        a: &Access,
        me: Record,
        scoreboard: &Scoreboard,
    ) {
        if a.place == Place::Lds {
            if a.write {
                self.end_deferral(scoreboard);
            } else if self.phase.try_defer(a, me) {
                return;
            }
        }
        self.record(wave_index, ordering, a, me, scoreboard);
    }

    #[inline(never)]
    pub(super) fn record(
        &mut self,
        wave_index: usize,
        ordering: Ordering,
        a: &Access,
        me: Record,
        scoreboard: &Scoreboard,
    ) {
        let lds = a.place == Place::Lds;
        let (first, waves, ended, cu_mode) = (self.first, &self.waves, &self.ended, self.cu_mode);
        let release = device_release(self.facts, &self.index, &self.orderings, self.waves_per_group);
        let clusters = Clusters::of(self.cluster_size, &self.groups, self.waves_per_group, self.first);
        // Created lazily: most accesses are to bytes that no other wave has accessed.
        let view = || view(first, waves, ended, scoreboard, wave_index, ordering, cu_mode, release, clusters);
        let ordered = |r: &Record| view().missing(r, lds).is_none();
        let shadow = if lds { &mut self.lds } else { &mut self.global };
        shadow.compare(a, me, ordered, &mut self.hits);
    }

    /// Compares the accesses of an atomic with earlier ones, and records them. The loads and stores of lanes that access
    /// dwords alternate; such a pair is recorded at once where only atomics have accessed the dword.
    pub(super) fn compare_atomics(
        &mut self,
        wave_index: usize,
        ordering: Ordering,
        accesses: &[Access],
        me: Record,
        scoreboard: &Scoreboard,
    ) {
        let in_memory = |a: &&Access| !a.outside && matches!(a.place, Place::Lds | Place::Global);
        if accesses.iter().filter(in_memory).any(|a| a.write && a.place == Place::Lds) {
            self.end_deferral(scoreboard);
        }
        let (first, waves, ended, cu_mode) = (self.first, &self.waves, &self.ended, self.cu_mode);
        let release = device_release(self.facts, &self.index, &self.orderings, self.waves_per_group);
        let clusters = Clusters::of(self.cluster_size, &self.groups, self.waves_per_group, self.first);
        let view = view(first, waves, ended, scoreboard, wave_index, ordering, cu_mode, release, clusters);
        let mut rest = accesses;
        while let Some((a, after)) = rest.split_first() {
            rest = after;
            if !in_memory(&a) {
                continue;
            }
            let lds = a.place == Place::Lds;
            let ordered = |r: &Record| view.missing(r, lds).is_none();
            let shadow = if lds { &mut self.lds } else { &mut self.global };
            if let Some((store, after)) = rest.split_first()
                && is_atomic_pair(a, store)
                && shadow.record_atomic(a, me, ordered)
            {
                rest = after;
            } else if !(lds && !a.write && self.phase.try_defer(a, me)) {
                shadow.compare(a, me, ordered, &mut self.hits);
            }
        }
    }
}

/// Returns whether two accesses are the load and the store of one lane's atomic.
#[inline(always)]
pub fn is_atomic_pair(load: &Access, store: &Access) -> bool {
    !load.write && *store == Access { write: true, ..*load }
}

/// Half of the lanes of a wave of 32: in matrix code, the two halves often load the same bytes.
const HALF: usize = 16;

/// Returns whether access `n` repeats a load that other lanes of the instruction have just made. The earlier
/// load then represents both.
#[inline(always)]
pub(super) fn is_repeated_load(accesses: &[Access], n: usize) -> bool {
    let a = &accesses[n];
    let repeats = |back: usize| match n.checked_sub(back).map(|k| &accesses[k]) {
        Some(before) => {
            (before.address, before.stride, before.lanes) == (a.address, a.stride, a.lanes)
                && (before.place, before.size_bytes, before.write) == (a.place, a.size_bytes, a.write)
        }
        None => false,
    };
    !a.write && (repeats(1) || repeats(HALF))
}
