//! `race`: conflicting accesses of two waves to the same bytes, at least one of them a store, that
//! happens-before does not order.
//!
//! This is a happens-before detector with vector clocks and epochs, in the manner of FastTrack and
//! ThreadSanitizer. The vector clock of a wave holds its own epoch and, for every other wave, the latest
//! epoch that happened before the wave's next access. At a barrier, waves release their clocks and acquire
//! those of the others. An atomic releases at its address. An atomic that returns a value, or a load with a
//! coherence bit (GLC, or a scope), acquires the clock released at its address and the clocks of the last
//! writers. Atomics do not race with each other.
//!
//! An access that happened before may still be invisible: its wave performed the release without waiting for
//! it ([`late`]), or the reader's cache holds stale bytes that it did not invalidate ([`ordering`]). Both are
//! reported with the missing instruction.
//!
//! Two benign races are notes: two waves that store the same value ([`values`]), and a plain load whose value
//! becomes the expected value of a compare-and-swap.
//!
//! Shadow memory keeps the last two writers and two readers of each dword ([`super::shadow_memory`]). Where
//! many accesses race, some are reported, not all.

mod barriers;
mod clock;
mod cluster;
mod late;
mod locks;
mod ordering;
mod phase;
mod plain;
mod polling;
mod report;
mod stale;
mod sync;
mod values;
mod view;
mod write_back;

use super::kind::{CheckState, Setup};
use super::report::Report;
use super::shadow_memory::{Hit, Record, ShadowMemory};
use super::waits::{IssuedAccess, Scoreboard};
use barriers::{Arrivals, ByCache};
use clock::VectorClock;
use cluster::{ClusterReleases, Clusters};
use late::LateCompletions;
use locks::Locks;
use ordering::{Caches, Ordering};
use phase::Phase;
pub use plain::is_atomic_pair;
use plain::is_repeated_load;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::Range;
use std::sync::Arc;
use view::{Missing, view};
use wavesim_engine::observe::{Done, Step};
use wavesim_isa::arch::facts::Facts;
use wavesim_loader::prepared::{Prepared, Shape};
use wavesim_machine::exec::effects::{Class, Effects};
use wavesim_machine::exec::program::Program;
use wavesim_machine::exec::watch::Place;
use write_back::WriteBacks;

/// A wave's vector clocks, each with the epoch from which it applies, for waves that acquire one of the
/// wave's stores. Empty if no instruction of the program acquires.
type History = Vec<(u32, Arc<VectorClock>)>;

struct WaveState {
    /// The current epoch, advanced by stores, barriers and cache invalidations.
    epoch: u32,
    /// The epoch of the last access.
    accessed: u32,
    /// The epoch after the last barrier. Accesses of earlier epochs may have been released before they
    /// completed.
    released: u32,
    vector: Arc<VectorClock>,
    history: History,
    /// Epochs of the workgroup's waves that the wave has acquired through LDS, by index; empty if there are
    /// none. LDS executes the operations of a wave in order: a wave that sees one of them sees all earlier
    /// ones, without a wait.
    through_lds: Vec<u32>,
    /// The barrier at which the wave waits.
    waiting: Option<usize>,
    late: LateCompletions,
    invalidations: Invalidations,
    write_backs: WriteBacks,
}

/// The points at which a wave last invalidated each cache.
#[derive(Clone)]
struct Invalidations {
    /// The wave's vector clock at the invalidation.
    clocks: [Arc<VectorClock>; Caches::COUNT],
    /// The wave's epoch after the invalidation.
    epochs: [u32; Caches::COUNT],
}

/// State kept of a wave whose workgroup has ended.
struct EndedWave {
    history: History,
    late: LateCompletions,
    invalidations: Invalidations,
    write_backs: WriteBacks,
}

/// State of the race check: vector clocks and shadow memory.
pub struct Shadow {
    enabled: bool,
    facts: &'static Facts,
    /// Whether any instruction of the program can order waves of different workgroups, or order waves through
    /// memory.
    synchronises: bool,
    /// By instruction.
    orderings: Vec<Ordering>,
    /// Whether any instruction loads from global memory to LDS.
    loads_to_lds: bool,
    /// Byte offsets of the instructions.
    index: Vec<u32>,
    /// Whether the waves of a workgroup share one L0 cache.
    cu_mode: bool,
    waves_per_group: u32,
    /// Number of the first wave of the running workgroup, counted from 1.
    first: u32,
    groups: Vec<[u32; 3]>,
    waves: Vec<WaveState>,
    ended: HashMap<u32, EndedWave>,
    lds: ShadowMemory,
    global: ShadowMemory,
    phase: Phase,
    /// Whether any instruction signals a barrier without waiting there.
    split_barriers: bool,
    /// Races of the current instruction.
    hits: Vec<Hit>,
    /// By dword: loads that preceded the last store, whose cache may still hold the older bytes.
    cached_copies: foldhash::HashMap<u64, Vec<Record>>,
    /// Arrivals by barrier and phase; those of completed phases are in `merged`.
    arrivals: BTreeMap<(usize, u32), Arrivals>,
    merged: BTreeMap<usize, (u32, Arc<VectorClock>)>,
    /// Whether a wave has invalidated a cache that the whole workgroup shares.
    group_invalidates: bool,
    /// By barrier and phase: the cache invalidations of waves at their arrival.
    arrival_invalidations: BTreeMap<(usize, u32), ByCache>,
    /// By barrier: the cache invalidations of all completed phases.
    merged_invalidations: BTreeMap<usize, ByCache>,
    /// The clocks that atomics have released, by address.
    released: HashMap<Key, Arc<VectorClock>>,
    swaps: CompareSwaps,
    locks: Locks,
    /// Workgroups of a cluster per dimension, if there are clusters whose barrier the program signals.
    cluster_size: Option<[u32; 3]>,
    cluster_releases: ClusterReleases,
}

/// Race state of a workgroup that has started but is not running now.
#[derive(Default)]
pub struct RaceGroup {
    first: u32,
    waves: Vec<WaveState>,
    lds: ShadowMemory,
    phase: Phase,
    arrivals: BTreeMap<(usize, u32), Arrivals>,
    merged: BTreeMap<usize, (u32, Arc<VectorClock>)>,
    group_invalidates: bool,
    arrival_invalidations: BTreeMap<(usize, u32), ByCache>,
    merged_invalidations: BTreeMap<usize, ByCache>,
    released: HashMap<Key, Arc<VectorClock>>,
}

/// A dword: whether it is in LDS, and its address.
type Key = (bool, u64);

/// Compare-and-swaps, and the findings that one of them would explain.
#[derive(Default)]
struct CompareSwaps {
    done: HashSet<(u32, Key)>,
    /// Atomics that return a value: a wave may hold a lock there.
    acquired: HashSet<(u32, Key)>,
    /// Findings of plain loads, by wave number and dword.
    candidates: HashMap<(u32, Key), Vec<usize>>,
}

impl CheckState for Shadow {
    type WorkgroupState = RaceGroup;

    /// If the check is not chosen, nothing is recorded.
    fn new(setup: &Setup<'_>) -> Shadow {
        let Setup { prepared, effects, chosen } = *setup;
        let enabled = chosen.running().race;
        let shape: &Shape = &prepared.shape;
        let program: &Program = &prepared.program;
        let items: u32 = shape.block.iter().product();
        let orderings = if enabled { ordering::table(program, effects) } else { Vec::new() };
        let signals = |e: &Effects| e.calls.iter().any(|bi| bi.signals_barrier());
        let in_clusters = shape.cluster != [1; 3] && effects.iter().any(signals);
        Shadow {
            enabled,
            facts: program.arch.facts(),
            synchronises: effects.iter().any(|e| e.returns && (e.atomic || e.coherent))
                || orderings.iter().any(|o| o.polls)
                || in_clusters,
            loads_to_lds: orderings.iter().any(|o| o.loads_to_lds),
            orderings,
            index: program.pcs.iter().map(|pc| *pc as u32).collect(),
            cu_mode: prepared.modes.cu_mode,
            waves_per_group: items.div_ceil(shape.wave_size),
            first: 1,
            groups: Vec::new(),
            waves: Vec::new(),
            ended: HashMap::new(),
            lds: ShadowMemory::default(),
            global: ShadowMemory::tracking_superseded(),
            phase: Phase::default(),
            split_barriers: phase::has_split_barriers(effects) || in_clusters,
            hits: Vec::new(),
            cached_copies: Default::default(),
            arrivals: BTreeMap::new(),
            merged: BTreeMap::new(),
            group_invalidates: false,
            arrival_invalidations: BTreeMap::new(),
            merged_invalidations: BTreeMap::new(),
            released: HashMap::new(),
            swaps: CompareSwaps::default(),
            locks: Locks::default(),
            cluster_size: in_clusters.then_some(shape.cluster),
            cluster_releases: ClusterReleases::default(),
        }
    }

    fn start(&mut self, workgroup: [u32; 3], waves: usize) {
        if !self.enabled {
            return;
        }
        self.keep_ended_waves();
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
            late: LateCompletions::default(),
            invalidations: Invalidations {
                clocks: std::array::from_fn(|_| vector.clone()),
                epochs: [0; Caches::COUNT],
            },
            write_backs: WriteBacks::default(),
        });
        self.lds.clear();
        self.phase.begin();
        self.arrivals.clear();
        self.merged.clear();
        self.group_invalidates = false;
        self.arrival_invalidations.clear();
        self.merged_invalidations.clear();
        self.released.retain(|(lds, _), _| !lds);
        self.swaps.done.retain(|(_, (lds, _))| !lds);
        self.swaps.acquired.retain(|(_, (lds, _))| !lds);
        self.swaps.candidates.retain(|(_, (lds, _)), _| !lds);
    }

    fn park(&mut self) -> RaceGroup {
        for (at, wave) in self.waves.iter().enumerate() {
            let ended = EndedWave {
                history: wave.history.clone(),
                late: wave.late.clone(),
                invalidations: wave.invalidations.clone(),
                write_backs: wave.write_backs.clone(),
            };
            self.ended.insert(self.first + at as u32, ended);
        }
        let mut group = RaceGroup { first: self.first, ..RaceGroup::default() };
        self.swap(&mut group);
        group.released = self.released.extract_if(|(lds, _), _| *lds).collect();
        group
    }

    fn unpark(&mut self, mut group: RaceGroup) {
        self.keep_ended_waves();
        self.first = group.first;
        self.swap(&mut group);
        self.released.retain(|(lds, _), _| !lds);
        self.released.extend(group.released);
        for at in 0..self.waves.len() as u32 {
            self.ended.remove(&(self.first + at));
        }
    }

    fn swap(&mut self, group: &mut RaceGroup) {
        std::mem::swap(&mut self.waves, &mut group.waves);
        std::mem::swap(&mut self.lds, &mut group.lds);
        std::mem::swap(&mut self.phase, &mut group.phase);
        std::mem::swap(&mut self.arrivals, &mut group.arrivals);
        std::mem::swap(&mut self.merged, &mut group.merged);
        std::mem::swap(&mut self.group_invalidates, &mut group.group_invalidates);
        std::mem::swap(&mut self.arrival_invalidations, &mut group.arrival_invalidations);
        std::mem::swap(&mut self.merged_invalidations, &mut group.merged_invalidations);
    }
}

impl Shadow {
    /// Keeps what other workgroups may need of the waves of a workgroup that has ended.
    fn keep_ended_waves(&mut self) {
        if !self.synchronises {
            return;
        }
        for (at, wave) in self.waves.drain(..).enumerate() {
            let ended = EndedWave {
                history: wave.history,
                late: wave.late,
                invalidations: wave.invalidations,
                write_backs: wave.write_backs,
            };
            self.ended.insert(self.first + at as u32, ended);
        }
    }

    /// Forgets the accesses to bytes of global memory: they are a new block of `malloc`, which orders its users.
    pub fn forget(&mut self, bytes: &Range<u64>) {
        self.global.forget(bytes);
    }

    /// Returns an epoch of a wave: accesses of earlier epochs may have been released before they completed.
    #[inline]
    pub fn release_epoch(&self, wave: u32) -> u32 {
        // Without atomics, only barriers release.
        if self.synchronises { u32::MAX } else { self.waves.get(wave as usize).map_or(0, |w| w.released) }
    }

    /// Returns the epoch of a wave's last access, for [`Scoreboard::stamp`].
    pub fn access_epoch(&self, wave: u32) -> u32 {
        self.waves.get(wave as usize).map_or(0, |w| w.accessed)
    }

    /// Records that an access of a wave has completed.
    #[inline]
    pub fn retire(&mut self, wave: u32, access: IssuedAccess) {
        let released = self.release_epoch(wave);
        let state = &mut self.waves[wave as usize];
        if access.epoch < released {
            state.late.retire(access.epoch, access.pc, access.store, state.epoch);
            state.write_backs.complete(access.pc, state.epoch);
        }
    }

    /// Records the end of a wave. No release covers the operations that are still outstanding.
    pub fn end(&mut self, wave: u32, outstanding: impl Iterator<Item = IssuedAccess>) {
        let released = self.release_epoch(wave);
        let state = &mut self.waves[wave as usize];
        for r in outstanding.filter(|r| r.epoch < released) {
            state.late.retire(r.epoch, r.pc, r.store, u32::MAX);
        }
    }

    /// Records the accesses of an instruction and their acquire and release effects, and reports those that
    /// race.
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
            self.check_own_stores(step, done, scoreboard, report, prepared);
        }
        if self.loads_to_lds && !ordering.loads_to_lds {
            self.check_own_loads_to_lds(step, done, scoreboard, report, prepared);
        }
        if self.synchronises
            && (effects.atomic || effects.coherent || ordering.polls)
            && effects.class != Class::Smem
        {
            self.record_loads(scoreboard);
            self.synchronise(at, done.accesses, effects, ordering, report);
            if effects.atomic {
                self.track_locks(step, done, effects, prepared, report);
            }
        }
        let wave = &mut self.waves[at];
        // Every store has an epoch of its own. A barrier or a reader can thus acquire a prefix of a wave's
        // stores.
        wave.epoch += stores as u32;
        wave.accessed = wave.epoch;
        let me = Record {
            wave: self.first + at as u32,
            epoch: wave.epoch,
            pc: step.pc as u32,
            atomic: effects.atomic || effects.coherent || ordering.polls,
            ..Record::default()
        };
        if effects.atomic {
            self.compare_atomics(at, ordering, done.accesses, me, scoreboard);
        } else {
            for (n, a) in done.accesses.iter().enumerate() {
                if a.outside || !stores && is_repeated_load(done.accesses, n) {
                    continue;
                }
                if matches!(a.place, Place::Lds | Place::Global) {
                    self.compare(at, ordering, a, me, scoreboard);
                }
            }
        }
        if !self.global.superseded.is_empty() {
            self.record_cached_copies(me.wave);
        }
        if !self.hits.is_empty() {
            self.report_races(step, done, ordering, scoreboard, prepared, report);
        }
        self.waves[at].epoch += stores as u32;
    }

    /// Reports the races of an instruction's accesses.
    #[cold]
    #[allow(clippy::too_many_arguments)]
    fn report_races(
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
            let clusters = Clusters::of(self.cluster_size, &self.groups, self.waves_per_group, self.first);
            let release = self.device_release();
            let view = view(
                self.first,
                &self.waves,
                &self.ended,
                scoreboard,
                at,
                ordering,
                self.cu_mode,
                release,
                clusters,
            );
            let missing = view.missing(&other, a.place == Place::Lds).unwrap_or(Missing::Order);
            let narrow = missing == Missing::Invalidate && view.is_scope_too_narrow(&other);
            if missing == Missing::Order && self.is_likely_atomic_store(step, &a, &other, ordering) {
                continue;
            }
            let same = a.write
                && was_write
                && missing == Missing::Order
                && values::leaves_memory_unchanged(&a, done, &prepared.memory);
            let copy = match missing {
                Missing::Invalidate => self.find_cached_copy(step, at, &a, &other, ordering),
                _ => None,
            };
            let narrow = narrow && copy.is_none();
            let race = report::Race { a: &a, other: &other, was_write, missing, same, narrow, copy };
            if let Some(finding) = self.report(step, &race, scoreboard, prepared, report) {
                self.demote_if_swapped(&a, &other, self.first + at as u32, finding, report);
            }
        }
        self.hits = hits;
    }
}
