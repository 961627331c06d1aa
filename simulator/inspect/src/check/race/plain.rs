//! Loads and stores that order nothing, which are most: recorded in few steps where no other wave has accessed their bytes.

use super::super::report::Report;
use super::super::shadow_memory::Record;
use super::super::waits::{Retired, Scoreboard};
use super::Shadow;
use super::ordering::{Caches, Ordering};
use super::view::view;
use wavesim_engine::observe::{Done, Step};
use wavesim_loader::prepared::Prepared;
use wavesim_machine::exec::effects::{Class, Effects};
use wavesim_machine::exec::watch::{Access, LdsLoads, Place};

impl Shadow {
    /// Whether an instruction only loads or only stores, and orders nothing.
    pub fn is_plain(&self, at: usize, effects: &Effects) -> bool {
        let memory = matches!(effects.class, Class::Vmem | Class::Lds) && !effects.memory.is_empty();
        let ordering = self.orderings.get(at).copied().unwrap_or_default();
        let orders = effects.atomic || effects.coherent || ordering.polls || !effects.calls.is_empty();
        memory && self.enabled && !orders && ordering.hits.and(Caches::SCALAR).is_empty()
    }

    /// As [`Shadow::plain`], of accesses that no other wave can have to do with: to bytes that only this wave has accessed, and loads of LDS
    /// of which nothing is stored between two barriers. `None` if there are others; what is recorded of them then is recorded once more.
    #[inline(always)]
    pub fn alone(&mut self, wave: u32, pc: u32, accesses: &[Access]) -> Option<Retired> {
        let at = wave as usize;
        let store = accesses.first().is_some_and(|a| a.write);
        let epoch = self.waves[at].epoch + store as u32;
        let me = Record { wave: self.first + wave, epoch, pc, ..Record::default() };
        let alone = match accesses {
            [a] => self.is_alone(a, me),
            all => (0..all.len()).all(|n| repeats(all, n) || self.is_alone(&all[n], me)),
        };
        if !alone {
            return None;
        }
        let state = &mut self.waves[at];
        state.accessed = epoch;
        state.epoch = epoch + store as u32;
        Some(Retired { epoch, pc, store })
    }

    #[inline(always)]
    fn is_alone(&mut self, a: &Access, me: Record) -> bool {
        match a.place {
            Place::Lds => !a.write && self.phase.keeps(a, me),
            _ => self.global.is_alone(a, me),
        }
    }

    /// Whether loads of LDS may only be kept.
    #[inline(always)]
    pub fn keeps_loads(&self) -> bool {
        self.phase.is_open()
    }

    /// Keeps a wave's loads of LDS.
    #[inline(always)]
    pub fn keep(&mut self, wave: u32, pc: u32, loads: &mut LdsLoads) -> Retired {
        let state = &mut self.waves[wave as usize];
        let epoch = state.epoch;
        state.accessed = epoch;
        self.phase.keep(loads, Record { wave: self.first + wave, epoch, pc, ..Record::default() });
        Retired { epoch, pc, store: false }
    }

    /// As [`Shadow::after`], for a plain instruction whose accesses are all inside.
    pub fn plain(
        &mut self,
        step: &Step<'_>,
        done: &Done<'_>,
        scoreboard: &Scoreboard,
        prepared: &Prepared,
        report: &mut Report,
    ) -> Retired {
        let at = step.wave.id as usize;
        let store = done.accesses.first().is_some_and(|a| a.write);
        let wave = &mut self.waves[at];
        let epoch = wave.epoch + store as u32;
        wave.accessed = epoch;
        wave.epoch = epoch + store as u32;
        let pc = step.pc as u32;
        let me = Record { wave: self.first + at as u32, epoch, pc, ..Record::default() };
        for (n, a) in done.accesses.iter().enumerate() {
            if repeats(done.accesses, n) {
                continue;
            }
            if a.place == Place::Lds || !self.global.is_alone(a, me) {
                self.compare(at, self.orderings[step.index], a, me, scoreboard);
            }
        }
        if !self.global.superseded.is_empty() {
            self.keep_copies(me.wave);
        }
        if !self.hits.is_empty() {
            self.races(step, done, self.orderings[step.index], scoreboard, prepared, report);
        }
        Retired { epoch, pc, store }
    }

    /// Compares an access with earlier ones to its bytes, and records it.
    #[inline(always)]
    pub(super) fn compare(
        &mut self,
        at: usize,
        ordering: Ordering,
        a: &Access,
        me: Record,
        scoreboard: &Scoreboard,
    ) {
        if a.place == Place::Lds {
            if a.write {
                self.stores(scoreboard);
            } else if self.phase.keeps(a, me) {
                return;
            }
        }
        self.record(at, ordering, a, me, scoreboard);
    }

    #[inline(never)]
    pub(super) fn record(
        &mut self,
        at: usize,
        ordering: Ordering,
        a: &Access,
        me: Record,
        scoreboard: &Scoreboard,
    ) {
        let lds = a.place == Place::Lds;
        let (first, waves, ended, cu_mode) = (self.first, &self.waves, &self.ended, self.cu_mode);
        // Made where it is needed: most accesses are alone with their bytes.
        let view = || view(first, waves, ended, scoreboard, at, ordering, cu_mode);
        let ordered = |r: &Record| view().missing(r, lds).is_none();
        let shadow = if lds { &mut self.lds } else { &mut self.global };
        // Of global memory, what stores take the place of is kept.
        if a.write && !lds || !shadow.passes(a, me, ordered) {
            shadow.access(a.address, a, me, ordered, &mut self.hits);
        }
    }
}

/// Half of the lanes of a wave of 32: those of a matrix's other half often load the same bytes.
const HALF: usize = 16;

/// Whether access `n` is a load of what other lanes have just loaded, which stand for it.
#[inline(always)]
pub(super) fn repeats(accesses: &[Access], n: usize) -> bool {
    let a = &accesses[n];
    let like = |back: usize| match n.checked_sub(back).map(|k| &accesses[k]) {
        Some(before) => {
            (before.address, before.stride, before.lanes) == (a.address, a.stride, a.lanes)
                && (before.place, before.size_bytes, before.write) == (a.place, a.size_bytes, a.write)
        }
        None => false,
    };
    !a.write && (like(1) || like(HALF))
}
