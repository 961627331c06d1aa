//! How accesses order waves: what atomics, coherent loads and polling loads release and acquire.

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
    /// Whether a plain store is likely an atomic one, which has no mark of its own: another wave has polled there, or this wave holds a lock
    /// that it now gives back.
    pub(super) fn is_atomic_store(
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

    /// Atomics and coherent loads acquire and release at their addresses.
    pub(super) fn synchronise(
        &mut self,
        at: usize,
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
                let before = key.0.then(|| self.waves[at].vector.clone());
                if let Some(release) = self.released.get(&key)
                    && !Arc::ptr_eq(release, &self.waves[at].vector)
                {
                    let release = release.clone();
                    changed |= self.acquire(at, &release.foreign, ordering);
                }
                changed |= self.acquire_from_writers(at, key, ordering);
                if let Some(before) = before {
                    self.waves[at].acquired_through_lds(&before);
                }
            }
            let wave = self.first + at as u32;
            if effects.returns && effects.atomic {
                self.swaps.acquired.insert((wave, key));
            }
            if ordering.compares {
                self.swaps.done.insert((wave, key));
                for finding in self.swaps.candidates.remove(&(wave, key)).into_iter().flatten() {
                    report.demote(finding, report::EXPECTED_VALUE);
                }
            }
        }
        if changed {
            self.waves[at].record_clock();
        }
        if !effects.atomic {
            return;
        }
        let first = self.first;
        let wave = &self.waves[at];
        // Everything so far and the atomic itself, which gets this epoch.
        let mut release = VectorClock { own: Vec::new(), foreign: wave.vector.numbered(first) };
        release.foreign.insert(first + at as u32, wave.epoch + 1);
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

    /// A load that asks for coherence acquires what the last writers did before they stored, if it reaches as far as they are.
    pub(super) fn acquire_from_writers(&mut self, at: usize, (lds, dword): Key, ordering: Ordering) -> bool {
        let me = self.first + at as u32;
        let cell = if lds { self.lds.cell(dword) } else { self.global.cell(dword) };
        let mut changed = false;
        for r in cell.writes.iter().filter(|r| r.wave != 0 && r.wave != me) {
            let local = r.wave.wrapping_sub(self.first) < self.waves.len() as u32;
            if !local && !self.releases_to_all(r) {
                continue;
            }
            let mut clock = match self.history(r.wave, r.epoch) {
                Some(before) => {
                    before.numbered((r.wave - 1) / self.waves_per_group * self.waves_per_group + 1)
                }
                None => BTreeMap::new(),
            };
            clock.insert(r.wave, r.epoch);
            changed |= self.acquire(at, &clock, ordering);
        }
        changed
    }

    /// Whether the scope of a store reaches other workgroups, where stores have one.
    pub(super) fn releases_to_all(&self, store: &Record) -> bool {
        let store = self.index.binary_search(&store.pc).ok().map(|at| self.orderings[at]);
        store.is_none_or(|o| !o.scoped || o.atomic || o.scope >= ordering::DEVICE)
    }

    /// Takes over epochs by wave number; true if any was newer. A load whose scope is narrower than the device's acquires nothing of other
    /// workgroups; atomics are executed where all see them.
    pub(super) fn acquire(&mut self, at: usize, numbers: &BTreeMap<u32, u32>, ordering: Ordering) -> bool {
        let (first, waves) = (self.first, self.waves.len() as u32);
        let everything = ordering.atomic || ordering.scope >= ordering::DEVICE;
        self.waves[at].acquire(numbers, first, waves, at, everything)
    }

    /// A wave's vector clock at one of its epochs.
    pub(super) fn history(&self, wave: u32, epoch: u32) -> Option<&Arc<VectorClock>> {
        let list = match wave.checked_sub(self.first).and_then(|at| self.waves.get(at as usize)) {
            Some(running) => &running.history,
            None => &self.ended.get(&wave)?.history,
        };
        let at = list.partition_point(|h| h.0 <= epoch).checked_sub(1)?;
        Some(&list[at].1)
    }

    /// A plain load that races with an atomic is harmless if its wave then compares and swaps there: so do compilers' loops of atomics that
    /// the hardware does not have.
    pub(super) fn explained_by_swap(
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
            report.demote(finding, report::EXPECTED_VALUE);
        } else {
            self.swaps.candidates.entry((loader, key)).or_default().push(finding);
        }
    }
}

impl WaveState {
    pub(super) fn discard(&mut self, caches: Caches) {
        // Loads before and after it have different epochs.
        self.epoch += 1;
        for cache in caches.numbers() {
            self.discards.clocks[cache] = self.vector.clone();
            self.discards.epochs[cache] = self.epoch;
        }
    }

    /// What it has acquired since its clock was `before` came through LDS.
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

    /// Takes over epochs by wave number, those of other workgroups only if `everything`.
    pub(super) fn acquire(
        &mut self,
        numbers: &BTreeMap<u32, u32>,
        first: u32,
        waves: u32,
        at: usize,
        everything: bool,
    ) -> bool {
        let mut changed = false;
        for (&wave, &epoch) in numbers {
            let own = wave.checked_sub(first).filter(|k| *k < waves);
            let have = match own {
                Some(k) if k as usize == at => continue,
                Some(k) => self.vector.own[k as usize],
                None if !everything => continue,
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
