//! `race`: accesses to the same bytes from two waves, at least one a store, that nothing orders.
//!
//! A happens-before detector. Every wave has a vector clock: its own epoch, and the epochs of other waves that happened before its next
//! access. Waves release their clock and acquire others' at barriers. An atomic releases at its address; an atomic that returns a value, or a
//! load that asks for coherence (GLC, or a scope), acquires what was released there and what the last writers had done. Atomics do not race
//! with each other.
//!
//! An access that happened before may still come too late, because it was not waited for before the release ([`late`]), or a load may
//! read an old value, because the reader has not discarded what its caches hold ([`ordering`]). Both are reported with what is missing.
//!
//! Two orders that give the same result are notes: two waves that store the same value ([`values`]), and a plain load whose value is
//! then the expected one of a compare-and-swap.
//!
//! Shadow memory keeps the last two writers and two readers of a dword ([`super::shadow_memory`]), so of many racing accesses some are
//! reported, not all.

mod barriers;
mod clock;
mod late;
mod ordering;
mod phase;
mod plain;
mod polling;
mod report;
mod stale;
mod sync;
mod values;
mod view;

use super::report::Report;
use super::shadow_memory::{Hit, Record, ShadowMemory};
use super::waits::{Retired, Scoreboard};
use barriers::{Arrivals, ByCache};
use clock::VectorClock;
use late::Late;
use ordering::{Caches, Ordering};
use phase::Phase;
use plain::repeats;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;
use view::{Missing, view};
use wavesim_engine::observe::{Done, Step};
use wavesim_loader::prepared::{Prepared, Shape};
use wavesim_machine::exec::effects::{Class, Effects};
use wavesim_machine::exec::program::Program;
use wavesim_machine::exec::watch::Place;

/// A wave's vector clocks from which epoch on, for waves that acquire one of its stores; empty if nothing in the program acquires.
type History = Vec<(u32, Arc<VectorClock>)>;

struct WaveState {
    /// Counts its stores and barriers.
    epoch: u32,
    /// That of its last access.
    accessed: u32,
    /// That after its last barrier: what is older may have been released too early.
    released: u32,
    vector: Arc<VectorClock>,
    history: History,
    /// Epochs of the workgroup's waves that it has acquired through LDS, by index; empty if there are none. LDS does the operations of a wave
    /// in their order: who sees one sees those before it, without a wait.
    through_lds: Vec<u32>,
    /// At which barrier it waits.
    waiting: Option<usize>,
    late: Late,
    discards: Discards,
}

/// When a wave last discarded what each cache held.
#[derive(Clone)]
struct Discards {
    /// Its vector clock then.
    clocks: [Arc<VectorClock>; Caches::COUNT],
    /// Its epoch from then on.
    epochs: [u32; Caches::COUNT],
}

/// A wave of a workgroup that has ended.
struct Ended {
    history: History,
    late: Late,
    discards: Discards,
}

/// Vector clocks and shadow memory.
pub struct Shadow {
    enabled: bool,
    /// Whether anything of the program can order waves of different workgroups, or through memory.
    synchronises: bool,
    /// By instruction.
    orderings: Vec<Ordering>,
    /// Byte offsets of the instructions.
    index: Vec<u32>,
    /// The waves of a workgroup share one L0 cache.
    cu_mode: bool,
    waves_per_group: u32,
    /// Number of the first wave of the running workgroup, from 1.
    first: u32,
    groups: Vec<[u32; 3]>,
    waves: Vec<WaveState>,
    ended: HashMap<u32, Ended>,
    lds: ShadowMemory,
    global: ShadowMemory,
    phase: Phase,
    /// Whether a barrier is signalled without waiting there.
    splits: bool,
    /// Races of the access at hand.
    hits: Vec<Hit>,
    /// By dword: loads that came before its last store, and whose cache may still hold what they found.
    copies: foldhash::HashMap<u64, Vec<Record>>,
    /// Arrivals at barrier and phase; completed phases are merged.
    arrivals: BTreeMap<(usize, u32), Arrivals>,
    merged: BTreeMap<usize, (u32, Arc<VectorClock>)>,
    /// Whether a wave has discarded what a cache of the whole workgroup held.
    discards: bool,
    /// By cache: when waves had done so as they arrived at barrier and phase.
    discarded: BTreeMap<(usize, u32), ByCache>,
    /// The same of completed phases.
    discarded_before: BTreeMap<usize, ByCache>,
    /// What atomics have released at an address.
    released: HashMap<Key, Arc<VectorClock>>,
    swaps: Swaps,
}

/// A workgroup that has begun and does not run.
#[derive(Default)]
pub struct Group {
    first: u32,
    waves: Vec<WaveState>,
    lds: ShadowMemory,
    phase: Phase,
    arrivals: BTreeMap<(usize, u32), Arrivals>,
    merged: BTreeMap<usize, (u32, Arc<VectorClock>)>,
    discards: bool,
    discarded: BTreeMap<(usize, u32), ByCache>,
    discarded_before: BTreeMap<usize, ByCache>,
    released: HashMap<Key, Arc<VectorClock>>,
}

/// A dword: whether it is in LDS, and its address.
type Key = (bool, u64);

/// Compare-and-swaps, and findings that one would explain.
#[derive(Default)]
struct Swaps {
    done: HashSet<(u32, Key)>,
    /// Atomics that return a value: a wave may hold a lock there.
    acquired: HashSet<(u32, Key)>,
    /// Findings of plain loads, by wave number and dword.
    candidates: HashMap<(u32, Key), Vec<usize>>,
}

impl Shadow {
    /// For a kernel about to run; without `enabled`, it sees nothing.
    pub fn new(prepared: &Prepared, effects: &[Effects], enabled: bool) -> Shadow {
        let shape: &Shape = &prepared.shape;
        let program: &Program = &prepared.program;
        let items: u32 = shape.block.iter().product();
        let orderings = if enabled { ordering::table(program, effects) } else { Vec::new() };
        Shadow {
            enabled,
            synchronises: effects.iter().any(|e| e.returns && (e.atomic || e.coherent))
                || orderings.iter().any(|o| o.polls),
            orderings,
            index: program.pcs.iter().map(|pc| *pc as u32).collect(),
            cu_mode: prepared.modes.cu_mode,
            waves_per_group: items.div_ceil(shape.wave_size),
            first: 1,
            groups: Vec::new(),
            waves: Vec::new(),
            ended: HashMap::new(),
            lds: ShadowMemory::default(),
            global: ShadowMemory::following(),
            phase: Phase::default(),
            splits: phase::splits_barriers(effects),
            hits: Vec::new(),
            copies: Default::default(),
            arrivals: BTreeMap::new(),
            merged: BTreeMap::new(),
            discards: false,
            discarded: BTreeMap::new(),
            discarded_before: BTreeMap::new(),
            released: HashMap::new(),
            swaps: Swaps::default(),
        }
    }

    /// A workgroup of so many waves begins.
    pub fn start(&mut self, workgroup: [u32; 3], waves: usize) {
        if !self.enabled {
            return;
        }
        if self.synchronises {
            for (at, wave) in self.waves.drain(..).enumerate() {
                let ended = Ended { history: wave.history, late: wave.late, discards: wave.discards };
                self.ended.insert(self.first + at as u32, ended);
            }
        }
        self.first = 1 + self.groups.len() as u32 * self.waves_per_group;
        self.groups.push(workgroup);
        self.waves.clear();
        let vector = Arc::new(VectorClock::new(waves));
        let history = if self.synchronises { vec![(0, vector.clone())] } else { Vec::new() };
        self.waves.resize_with(waves, || WaveState {
            epoch: 1,
            accessed: 1,
            released: 0,
            vector: vector.clone(),
            history: history.clone(),
            through_lds: Vec::new(),
            waiting: None,
            late: Late::default(),
            discards: Discards {
                clocks: std::array::from_fn(|_| vector.clone()),
                epochs: [0; Caches::COUNT],
            },
        });
        self.lds.clear();
        self.phase.begin();
        self.arrivals.clear();
        self.merged.clear();
        self.discards = false;
        self.discarded.clear();
        self.discarded_before.clear();
        self.released.retain(|(lds, _), _| !lds);
        self.swaps.done.retain(|(_, (lds, _))| !lds);
        self.swaps.acquired.retain(|(_, (lds, _))| !lds);
        self.swaps.candidates.retain(|(_, (lds, _)), _| !lds);
    }

    /// The running workgroup stops for now. To others its waves are as if they had ended.
    pub fn park(&mut self) -> Group {
        for (at, wave) in self.waves.iter().enumerate() {
            let ended = Ended {
                history: wave.history.clone(),
                late: wave.late.clone(),
                discards: wave.discards.clone(),
            };
            self.ended.insert(self.first + at as u32, ended);
        }
        let mut group = Group { first: self.first, ..Group::default() };
        self.exchange(&mut group);
        group.released = self.released.extract_if(|(lds, _), _| *lds).collect();
        group
    }

    /// It goes on.
    pub fn unpark(&mut self, mut group: Group) {
        self.first = group.first;
        self.exchange(&mut group);
        self.released.extend(group.released);
        for at in 0..self.waves.len() as u32 {
            self.ended.remove(&(self.first + at));
        }
    }

    fn exchange(&mut self, group: &mut Group) {
        std::mem::swap(&mut self.waves, &mut group.waves);
        std::mem::swap(&mut self.lds, &mut group.lds);
        std::mem::swap(&mut self.phase, &mut group.phase);
        std::mem::swap(&mut self.arrivals, &mut group.arrivals);
        std::mem::swap(&mut self.merged, &mut group.merged);
        std::mem::swap(&mut self.discards, &mut group.discards);
        std::mem::swap(&mut self.discarded, &mut group.discarded);
        std::mem::swap(&mut self.discarded_before, &mut group.discarded_before);
    }

    /// Accesses of a wave that are older than this epoch may have been released before they were complete.
    #[inline]
    pub fn released(&self, wave: u32) -> u32 {
        // Without atomics, only barriers release.
        if self.synchronises { u32::MAX } else { self.waves.get(wave as usize).map_or(0, |w| w.released) }
    }

    /// The epoch of a wave's last access, for [`Scoreboard::stamp`].
    pub fn accessed(&self, wave: u32) -> u32 {
        self.waves.get(wave as usize).map_or(0, |w| w.accessed)
    }

    /// An access of a wave is complete.
    #[inline]
    pub fn retire(&mut self, wave: u32, access: Retired) {
        let released = self.released(wave);
        let state = &mut self.waves[wave as usize];
        if access.epoch < released {
            state.late.retire(access.epoch, access.pc, access.store, state.epoch);
        }
    }

    /// A wave has ended: what is outstanding was released by nothing.
    pub fn end(&mut self, wave: u32, outstanding: impl Iterator<Item = Retired>) {
        let released = self.released(wave);
        let state = &mut self.waves[wave as usize];
        for r in outstanding.filter(|r| r.epoch < released) {
            state.late.retire(r.epoch, r.pc, r.store, u32::MAX);
        }
    }

    /// Reports the accesses of an instruction that race, and notes them and what they order.
    pub fn after(
        &mut self,
        step: &Step<'_>,
        done: &Done<'_>,
        effects: &Effects,
        scoreboard: &Scoreboard,
        prepared: &Prepared,
        report: &mut Report,
    ) {
        let at = step.wave.id as usize;
        let ordering = self.orderings[step.index];
        let stores = done.accesses.iter().any(|a| a.write);
        if !ordering.hits.and(Caches::SCALAR).is_empty() {
            self.own_stores(step, done, scoreboard, report, prepared);
        }
        if self.synchronises
            && (effects.atomic || effects.coherent || ordering.polls)
            && effects.class != Class::Smem
        {
            self.record_loads(scoreboard);
            self.synchronise(at, done.accesses, effects, ordering, report);
        }
        let wave = &mut self.waves[at];
        // Every store has an epoch of its own, so that a barrier or a reader can acquire some of them.
        wave.epoch += stores as u32;
        wave.accessed = wave.epoch;
        let me = Record {
            wave: self.first + at as u32,
            epoch: wave.epoch,
            pc: step.pc as u32,
            atomic: effects.atomic || effects.coherent || ordering.polls,
            ..Record::default()
        };
        for (n, a) in done.accesses.iter().enumerate() {
            if a.outside || !stores && repeats(done.accesses, n) {
                continue;
            }
            if matches!(a.place, Place::Lds | Place::Global) {
                self.compare(at, ordering, a, me, scoreboard);
            }
        }
        if !self.global.superseded.is_empty() {
            self.keep_copies(me.wave);
        }
        if !self.hits.is_empty() {
            self.races(step, done, ordering, scoreboard, prepared, report);
        }
        self.waves[at].epoch += stores as u32;
    }

    /// Reports the races of an instruction's accesses.
    #[cold]
    #[allow(clippy::too_many_arguments)]
    fn races(
        &mut self,
        step: &Step<'_>,
        done: &Done<'_>,
        ordering: Ordering,
        scoreboard: &Scoreboard,
        prepared: &Prepared,
        report: &mut Report,
    ) {
        let at = step.wave.id as usize;
        let mut hits = std::mem::take(&mut self.hits);
        for (a, other, was_write) in hits.drain(..) {
            let view = view(self.first, &self.waves, &self.ended, scoreboard, at, ordering, self.cu_mode);
            let missing = view.missing(&other, a.place == Place::Lds).unwrap_or(Missing::Order);
            if missing == Missing::Order && self.is_atomic_store(step, &a, &other, ordering) {
                continue;
            }
            let same = a.write
                && was_write
                && missing == Missing::Order
                && values::unchanged(&a, done, &prepared.memory);
            let copy = match missing {
                Missing::Invalidate => self.copy(step, at, &a, &other, ordering),
                _ => None,
            };
            let race = report::Race { a: &a, other: &other, was_write, missing, same, copy };
            if let Some(finding) = self.report(step, &race, scoreboard, prepared, report) {
                self.explained_by_swap(&a, &other, self.first + at as u32, finding, report);
            }
        }
        self.hits = hits;
    }
}
