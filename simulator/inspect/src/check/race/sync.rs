//! Synchronisation through memory: the acquire and release effects of atomics, coherent loads and polling
//! loads.

use super::super::report::Report;
use super::super::shadow_memory::Record;
use super::clock::VectorClock;
use super::ordering::{self, Caches, Ordering};
use super::{Key, Shadow, WaveState, report};
use std::collections::BTreeMap;
use std::sync::Arc;
use wavesim_engine::observe::Step;
use wavesim_machine::exec::effects::Effects;
use wavesim_machine::exec::watch::{Access, Place};

impl Shadow {
    /// Returns whether a plain store is likely an atomic one, whose encoding is no different: another wave
    /// has polled the dword, or this wave holds a lock there and releases it.
    pub(super) fn is_likely_atomic_store(
        &self,
        step: &Step<'_>,
        a: &Access,
        other: &Record,
        ordering: Ordering,
    ) -> bool {
        if !a.write || !other.atomic || ordering.atomic {
            return false;
        }
        let earlier = step.program.inst_at(other.pc as u64).map(|at| self.orderings[at]);
        let key = (a.place == Place::Lds, a.address & !3);
        !earlier.is_some_and(|o| o.atomic) || self.swaps.acquired.contains(&(self.first + step.wave.id, key))
    }

    /// Applies the acquire and release effects of an instruction at the addresses of its accesses.
    pub(super) fn synchronise(
        &mut self,
        wave_index: usize,
        accesses: &[Access],
        effects: &Effects,
        ordering: Ordering,
        report: &mut Report,
    ) {
        let mut changed = false;
        let accesses: Vec<Access> = accesses.iter().flat_map(|a| a.each()).filter(|a| !a.outside).collect();
        for a in accesses.iter().filter(|a| matches!(a.place, Place::Global | Place::Lds)) {
            let key = (a.place == Place::Lds, a.address & !3);
            if effects.returns && !a.write {
                let before = key.0.then(|| self.waves[wave_index].vector.clone());
                if let Some(release) = self.released.get(&key)
                    && !Arc::ptr_eq(release, &self.waves[wave_index].vector)
                {
                    let release = release.clone();
                    changed |= self.acquire(wave_index, &release.foreign, ordering);
                }
                changed |= self.acquire_from_writers(wave_index, key, ordering);
                if let Some(before) = before {
                    self.waves[wave_index].acquired_through_lds(&before);
                }
            }
            let wave = self.first + wave_index as u32;
            if effects.returns && effects.atomic {
                self.swaps.acquired.insert((wave, key));
            }
            if ordering.compares {
                self.swaps.done.insert((wave, key));
                for finding in self.swaps.candidates.remove(&(wave, key)).into_iter().flatten() {
                    report.demote(finding, report::CAS_EXPLANATION);
                }
            }
        }
        if changed {
            self.waves[wave_index].record_clock();
        }
        if !effects.atomic {
            return;
        }
        let first = self.first;
        let wave = &self.waves[wave_index];
        // The release covers everything so far and the atomic itself, which gets this epoch.
        let mut release = VectorClock { own: Vec::new(), foreign: wave.vector.by_wave_number(first) };
        release.foreign.insert(first + wave_index as u32, wave.epoch + 1);
        let release = Arc::new(release);
        for a in accesses.iter().filter(|a| a.write) {
            let key = (a.place == Place::Lds, a.address & !3);
            match self.released.get_mut(&key) {
                Some(released) if Arc::ptr_eq(released, &release) => {}
                Some(released) => Arc::make_mut(released).join(&release),
                None => {
                    self.released.insert(key, release.clone());
                }
            }
        }
    }

    /// Acquires the clocks of the last writers of a dword for a coherent load, as far as its scope covers the
    /// writers. Returns whether the wave's clock changed.
    pub(super) fn acquire_from_writers(
        &mut self,
        wave_index: usize,
        (lds, dword): Key,
        ordering: Ordering,
    ) -> bool {
        let me = self.first + wave_index as u32;
        let cell = if lds { self.lds.cell(dword) } else { self.global.cell(dword) };
        let mut changed = false;
        for r in cell.writes.iter().filter(|r| r.wave != 0 && r.wave != me) {
            let local = r.wave.wrapping_sub(self.first) < self.waves.len() as u32;
            if !local && !self.releases_to_all(r) {
                continue;
            }
            let mut clock = match self.history(r.wave, r.epoch) {
                Some(before) => {
                    before.by_wave_number((r.wave - 1) / self.waves_per_group * self.waves_per_group + 1)
                }
                None => BTreeMap::new(),
            };
            clock.insert(r.wave, r.epoch);
            changed |= self.acquire(wave_index, &clock, ordering);
        }
        changed
    }

    /// Returns whether a store releases to other workgroups. Where stores have a scope, it must be device
    /// scope or wider.
    pub(super) fn releases_to_all(&self, store: &Record) -> bool {
        let store = self.index.binary_search(&store.pc).ok().map(|at| self.orderings[at]);
        store.is_none_or(|o| !o.scoped || o.atomic || o.scope >= ordering::DEVICE)
    }

    /// Joins epochs, given by wave number, into a wave's clock; returns whether any was newer. A load of less
    /// than device scope acquires nothing from other workgroups. Atomics execute in a cache that all waves
    /// share.
    pub(super) fn acquire(
        &mut self,
        wave_index: usize,
        numbers: &BTreeMap<u32, u32>,
        ordering: Ordering,
    ) -> bool {
        let (first, waves) = (self.first, self.waves.len() as u32);
        let include_foreign = ordering.atomic || ordering.scope >= ordering::DEVICE;
        self.waves[wave_index].acquire(numbers, first, waves, wave_index, include_foreign)
    }

    /// Returns a wave's vector clock at one of its epochs.
    pub(super) fn history(&self, wave: u32, epoch: u32) -> Option<&Arc<VectorClock>> {
        let list = match wave.checked_sub(self.first).and_then(|at| self.waves.get(at as usize)) {
            Some(running) => &running.history,
            None => &self.ended.get(&wave)?.history,
        };
        let at = list.partition_point(|h| h.0 <= epoch).checked_sub(1)?;
        Some(&list[at].1)
    }

    /// Demotes the race of a plain load with an atomic if the loading wave then performs a compare-and-swap
    /// on the dword. Compilers expand atomics that the hardware lacks to such loops.
    pub(super) fn demote_if_swapped(
        &mut self,
        a: &Access,
        other: &Record,
        me: u32,
        finding: usize,
        report: &mut Report,
    ) {
        let key = (a.place == Place::Lds, a.address & !3);
        let loader = if a.write { other.wave } else { me };
        if self.swaps.done.contains(&(loader, key)) {
            report.demote(finding, report::CAS_EXPLANATION);
        } else {
            self.swaps.candidates.entry((loader, key)).or_default().push(finding);
        }
    }
}

impl WaveState {
    pub(super) fn invalidate(&mut self, caches: Caches) {
        // Loads before and after the invalidation have different epochs.
        self.epoch += 1;
        for cache in caches.numbers() {
            self.invalidations.clocks[cache] = self.vector.clone();
            self.invalidations.epochs[cache] = self.epoch;
        }
    }

    /// Records the epochs acquired since the wave's clock was `before` as acquired through LDS.
    pub(super) fn acquired_through_lds(&mut self, before: &VectorClock) {
        self.through_lds.resize(self.vector.own.len(), 0);
        for ((through, now), before) in self.through_lds.iter_mut().zip(&self.vector.own).zip(&before.own) {
            if now > before {
                *through = *now;
            }
        }
    }

    pub(super) fn record_clock(&mut self) {
        let (epoch, vector) = (self.epoch, self.vector.clone());
        match self.history.last_mut() {
            Some(last) if last.0 == epoch => last.1 = vector,
            _ => self.history.push((epoch, vector)),
        }
    }

    /// Joins epochs by wave number, those of other workgroups only if `include_foreign`.
    pub(super) fn acquire(
        &mut self,
        numbers: &BTreeMap<u32, u32>,
        first: u32,
        waves: u32,
        wave_index: usize,
        include_foreign: bool,
    ) -> bool {
        let mut changed = false;
        for (&wave, &epoch) in numbers {
            let own = wave.checked_sub(first).filter(|k| *k < waves);
            let have = match own {
                Some(k) if k as usize == wave_index => continue,
                Some(k) => self.vector.own[k as usize],
                None if !include_foreign => continue,
                None => self.vector.foreign.get(&wave).copied().unwrap_or(0),
            };
            if epoch <= have {
                continue;
            }
            let vector = Arc::make_mut(&mut self.vector);
            match own {
                Some(k) => vector.own[k as usize] = epoch,
                None => {
                    vector.foreign.insert(wave, epoch);
                }
            }
            changed = true;
        }
        changed
    }
}
