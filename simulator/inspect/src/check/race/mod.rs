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

mod clock;
mod late;
mod ordering;
mod report;
mod values;

use super::report::Report;
use super::shadow_memory::{Hit, Record, ShadowMemory};
use super::waits::{Retired, Scoreboard};
use clock::VectorClock;
use isa_spec::pcode::builtins::Control;
use late::Late;
use ordering::{Caches, Ordering};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;
use values::Values;
use wavesim_engine::observe::{Done, Step};
use wavesim_loader::prepared::{Prepared, Shape};
use wavesim_machine::exec::effects::{Class, Effects};
use wavesim_machine::exec::machine_ops::Event;
use wavesim_machine::exec::program::Program;
use wavesim_machine::exec::watch::{Access, Place};

/// A wave's vector clocks from which epoch on, for waves that acquire one of its stores; empty if nothing in the program acquires.
type History = Vec<(u32, Arc<VectorClock>)>;

struct WaveState {
    /// Counts its stores and barriers.
    epoch: u32,
    /// That of its last access.
    accessed: u32,
    vector: Arc<VectorClock>,
    history: History,
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
    values: Values,
    /// Races of the access at hand.
    hits: Vec<Hit>,
    /// By dword: loads that came before its last store, and whose cache may still hold what they found.
    copies: HashMap<u64, Vec<Record>>,
    /// Arrivals at barrier and phase; completed phases are merged.
    arrivals: BTreeMap<(usize, u32), VectorClock>,
    merged: BTreeMap<usize, (u32, VectorClock)>,
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
    lds_values: Vec<u8>,
    arrivals: BTreeMap<(usize, u32), VectorClock>,
    merged: BTreeMap<usize, (u32, VectorClock)>,
    released: HashMap<Key, Arc<VectorClock>>,
}

/// A dword: whether it is in LDS, and its address.
type Key = (bool, u64);

/// Compare-and-swaps, and findings that one would explain.
#[derive(Default)]
struct Swaps {
    done: HashSet<(u32, Key)>,
    /// Findings of plain loads, by wave number and dword.
    candidates: HashMap<(u32, Key), Vec<usize>>,
}

/// What an access is compared by: who happened before it, and whether that is complete and seen.
struct View<'v> {
    first: u32,
    waves: &'v [WaveState],
    ended: &'v HashMap<u32, Ended>,
    scoreboard: &'v Scoreboard,
    vector: &'v VectorClock,
    /// Caches that a load may hit in, and since which clocks they hold nothing older.
    hits: Caches,
    discards: &'v Discards,
    cu_mode: bool,
}

/// Why an earlier access does not count as done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Missing {
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
    fn missing(&self, r: &Record, lds: bool) -> Option<Missing> {
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
    fn missing_of_other_group(&self, r: &Record, clock: u32) -> Option<Missing> {
        if self.ended.get(&r.wave).is_some_and(|w| w.late.incomplete(r.epoch, r.pc, clock)) {
            return Some(Missing::Wait);
        }
        // Scalar loads miss into L1 too.
        let behind = if self.hits.is_empty() { self.hits } else { self.hits.or(Caches::L1) };
        (!self.stale(r, behind).is_empty()).then_some(Missing::Invalidate)
    }

    /// Of some caches, those that the wave has not discarded since it knows of a store.
    fn stale(&self, r: &Record, caches: Caches) -> Caches {
        let old = |n: &usize| self.discards.clocks[*n].of(self.first, r.wave) < r.epoch;
        Caches(caches.numbers().filter(old).fold(0, |all, n| all | 1 << n))
    }
}

impl Shadow {
    /// For a kernel about to run; without `enabled`, it sees nothing.
    pub fn new(prepared: &Prepared, effects: &[Effects], enabled: bool) -> Shadow {
        let shape: &Shape = &prepared.shape;
        let program: &Program = &prepared.program;
        let items: u32 = shape.block.iter().product();
        Shadow {
            enabled,
            synchronises: effects.iter().any(|e| e.returns && (e.atomic || e.coherent)),
            orderings: ordering::table(program, effects),
            cu_mode: prepared.modes.cu,
            waves_per_group: items.div_ceil(shape.wave_size),
            first: 1,
            groups: Vec::new(),
            waves: Vec::new(),
            ended: HashMap::new(),
            lds: ShadowMemory::default(),
            global: ShadowMemory::default(),
            values: Values::default(),
            hits: Vec::new(),
            copies: HashMap::new(),
            arrivals: BTreeMap::new(),
            merged: BTreeMap::new(),
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
            vector: vector.clone(),
            history: history.clone(),
            waiting: None,
            late: Late::default(),
            discards: Discards {
                clocks: std::array::from_fn(|_| vector.clone()),
                epochs: [0; Caches::COUNT],
            },
        });
        self.lds.clear();
        self.values.start();
        self.arrivals.clear();
        self.merged.clear();
        self.released.retain(|(lds, _), _| !lds);
        self.swaps.done.retain(|(_, (lds, _))| !lds);
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
        self.values.swap_lds(&mut group.lds_values);
        std::mem::swap(&mut self.arrivals, &mut group.arrivals);
        std::mem::swap(&mut self.merged, &mut group.merged);
    }

    /// A wave continues after a barrier: it acquires what the others released there.
    #[inline(always)]
    pub fn resume(&mut self, step: &Step<'_>) {
        let at = step.wave.id as usize;
        if self.enabled
            && let Some(barrier) = self.waves[at].waiting.take()
        {
            self.acquire_barrier(step, at, barrier);
        }
    }

    fn acquire_barrier(&mut self, step: &Step<'_>, at: usize, barrier: usize) {
        let completed = step.group.barrier(barrier).completed;
        let waves = self.waves.len();
        let (phase, clocks) = self.merged.entry(barrier).or_insert_with(|| (0, VectorClock::new(waves)));
        while *phase != completed {
            if let Some(arrived) = self.arrivals.remove(&(barrier, *phase)) {
                clocks.join(&arrived);
            }
            *phase = phase.wrapping_add(1);
        }
        let wave = &mut self.waves[at];
        Arc::make_mut(&mut wave.vector).join(clocks);
        if self.synchronises {
            wave.record_clock();
        }
    }

    /// The epoch of a wave's last access, for [`Scoreboard::stamp`].
    pub fn accessed(&self, wave: u32) -> u32 {
        self.waves.get(wave as usize).map_or(0, |w| w.accessed)
    }

    /// Accesses of a wave are complete.
    pub fn retire(&mut self, wave: u32, retired: impl Iterator<Item = Retired>) {
        let state = &mut self.waves[wave as usize];
        retired.for_each(|r| state.late.retire(r.epoch, r.pc, r.store, state.epoch));
    }

    /// A wave has ended: what is outstanding was released by nothing.
    pub fn end(&mut self, wave: u32, outstanding: impl Iterator<Item = Retired>) {
        let state = &mut self.waves[wave as usize];
        outstanding.for_each(|r| state.late.retire(r.epoch, r.pc, r.store, u32::MAX));
    }

    /// Barriers arrived at, and caches discarded.
    pub fn calls(&mut self, step: &Step<'_>, done: &Done<'_>) {
        if !self.enabled {
            return;
        }
        let at = step.wave.id as usize;
        for (bi, number) in done.calls {
            let barrier = match bi {
                Control::InvalidateCaches => {
                    let caches = Caches(*number as u8).and(self.orderings[step.index].reaches);
                    self.waves[at].discard(caches);
                    None
                }
                Control::Barrier => Some(0),
                Control::BarrierSignal | Control::BarrierSignalIsFirst => {
                    wavesim_machine::state::Workgroup::index(*number as i32)
                }
                _ => None,
            };
            if let Some(barrier) = barrier.filter(|_| step.group.in_group()) {
                self.arrive(step, at, barrier);
            }
        }
        if let Some(Event::BarrierWait(barrier)) = done.event {
            self.waves[at].waiting = Some(*barrier);
        }
    }

    fn arrive(&mut self, step: &Step<'_>, at: usize, barrier: usize) {
        let state = step.group.barrier(barrier);
        // The arrival that completes the barrier has counted already.
        let phase = if state.signals == 0 { state.completed.wrapping_sub(1) } else { state.completed };
        let wave = &mut self.waves[at];
        let waves = wave.vector.own.len();
        let clocks = self.arrivals.entry((barrier, phase)).or_insert_with(|| VectorClock::new(waves));
        clocks.join(&wave.vector);
        // The barrier has an epoch of its own.
        wave.epoch += 1;
        clocks.own[at] = clocks.own[at].max(wave.epoch);
        wave.epoch += 1;
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
        if self.synchronises && (effects.atomic || effects.coherent) && effects.class != Class::Smem {
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
            atomic: effects.atomic || effects.coherent,
            ..Record::default()
        };
        let mut hits = std::mem::take(&mut self.hits);
        let view = view(self.first, &self.waves, &self.ended, scoreboard, at, ordering, self.cu_mode);
        for a in done.accesses.iter().filter(|a| !a.outside) {
            match a.place {
                Place::Lds => {
                    let ordered = |r: &Record| view.missing(r, true).is_none();
                    self.lds.access(a.address, a, me, ordered, &mut hits);
                }
                Place::Global => {
                    let ordered = |r: &Record| view.missing(r, false).is_none();
                    self.global.access(a.address, a, me, ordered, &mut hits);
                }
                Place::Scratch | Place::Nowhere => {}
            }
        }
        self.lds.superseded.clear();
        for (dword, reads) in self.global.superseded.drain(..) {
            let reads = reads.into_iter().filter(|r| r.wave != 0 && r.wave != me.wave && !r.atomic);
            self.copies.insert(dword, reads.collect());
        }
        let missing = |r: &Record, place| view.missing(r, place == Place::Lds).unwrap_or(Missing::Order);
        let races =
            hits.drain(..).map(|(a, other, was_write)| (a, other, was_write, missing(&other, a.place)));
        let races: Vec<(Access, Record, bool, Missing)> = races.collect();
        for (a, other, was_write, missing) in races {
            let same = a.write
                && was_write
                && missing == Missing::Order
                && self.values.unchanged(&a, done, &prepared.memory);
            let copy = match missing {
                Missing::Invalidate => self.copy(step, at, &a, &other, ordering),
                _ => None,
            };
            let race = report::Race { a: &a, other: &other, was_write, missing, same, copy };
            if let Some(finding) = self.report(step, &race, scoreboard, prepared, report) {
                self.explained_by_swap(&a, &other, me.wave, finding, report);
            }
        }
        self.hits = hits;
        for a in done.accesses.iter().filter(|a| a.write && !a.outside) {
            self.values.record(a, done, &prepared.memory);
        }
        self.waves[at].epoch += stores as u32;
    }

    /// A load before `store` that may have left the older bytes in a cache of the wave, where it would now find them.
    fn copy(
        &self,
        step: &Step<'_>,
        at: usize,
        a: &Access,
        store: &Record,
        ordering: Ordering,
    ) -> Option<Record> {
        let mine = &self.waves[at].discards;
        let local = store.wave.wrapping_sub(self.first) < self.waves.len() as u32;
        // What is discarded since the store was acquired is no longer there, whoever loaded it.
        let old = |n: &usize| mine.clocks[*n].of(self.first, store.wave) < store.epoch;
        let reach = if local { ordering.hits.and(Caches::L0.or(Caches::SCALAR)) } else { ordering.hits };
        let holds = |r: &&Record| {
            // The stores of a wave update its own cache.
            if r.wave == store.wave {
                return false;
            }
            let discards = match self.waves.get(r.wave.wrapping_sub(self.first) as usize) {
                Some(wave) => Some(&wave.discards),
                None => self.ended.get(&r.wave).map(|w| &w.discards),
            };
            let loaded = step.program.inst_at(r.pc as u64).map_or(Caches(0), |i| self.orderings[i].hits);
            let kept = |n: &usize| discards.is_none_or(|d| r.epoch >= d.epochs[*n]);
            reach.and(loaded).numbers().any(|n| old(&n) && kept(&n))
        };
        let dwords = (a.address & !3..a.address + a.size_bytes as u64).step_by(4);
        dwords.filter_map(|dword| self.copies.get(&dword)).flatten().find(holds).copied()
    }

    /// Atomics and coherent loads acquire and release at their addresses.
    fn synchronise(
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
                if let Some(release) = self.released.get(&key)
                    && !Arc::ptr_eq(release, &self.waves[at].vector)
                {
                    let release = release.clone();
                    changed |= self.acquire(at, &release.foreign, ordering);
                }
                changed |= self.acquire_from_writers(at, key, ordering);
            }
            if ordering.compares {
                let wave = self.first + at as u32;
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
    fn acquire_from_writers(&mut self, at: usize, (lds, dword): Key, ordering: Ordering) -> bool {
        let me = self.first + at as u32;
        let cell = if lds { self.lds.cell(dword) } else { self.global.cell(dword) };
        let mut changed = false;
        for r in cell.writes.iter().filter(|r| r.wave != 0 && r.wave != me) {
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

    /// Takes over epochs by wave number; true if any was newer. A load whose scope is narrower than the device's acquires nothing of other
    /// workgroups; atomics are executed where all see them.
    fn acquire(&mut self, at: usize, numbers: &BTreeMap<u32, u32>, ordering: Ordering) -> bool {
        let (first, waves) = (self.first, self.waves.len() as u32);
        let everything = ordering.atomic || ordering.scope >= ordering::DEVICE;
        self.waves[at].acquire(numbers, first, waves, at, everything)
    }

    /// A wave's vector clock at one of its epochs.
    fn history(&self, wave: u32, epoch: u32) -> Option<&Arc<VectorClock>> {
        let list = match wave.checked_sub(self.first).and_then(|at| self.waves.get(at as usize)) {
            Some(running) => &running.history,
            None => &self.ended.get(&wave)?.history,
        };
        let at = list.partition_point(|h| h.0 <= epoch).checked_sub(1)?;
        Some(&list[at].1)
    }

    /// A plain load that races with an atomic is harmless if its wave then compares and swaps there: so do compilers' loops of atomics that
    /// the hardware does not have.
    fn explained_by_swap(
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

/// What wave `at` sees.
fn view<'v>(
    first: u32,
    waves: &'v [WaveState],
    ended: &'v HashMap<u32, Ended>,
    scoreboard: &'v Scoreboard,
    at: usize,
    ordering: Ordering,
    cu_mode: bool,
) -> View<'v> {
    let WaveState { vector, discards, .. } = &waves[at];
    View { first, waves, ended, scoreboard, vector, hits: ordering.hits, discards, cu_mode }
}

impl WaveState {
    fn discard(&mut self, caches: Caches) {
        // Loads before and after it have different epochs.
        self.epoch += 1;
        for cache in caches.numbers() {
            self.discards.clocks[cache] = self.vector.clone();
            self.discards.epochs[cache] = self.epoch;
        }
    }

    fn record_clock(&mut self) {
        let (epoch, vector) = (self.epoch, self.vector.clone());
        match self.history.last_mut() {
            Some(last) if last.0 == epoch => last.1 = vector,
            _ => self.history.push((epoch, vector)),
        }
    }

    /// Takes over epochs by wave number, those of other workgroups only if `everything`.
    fn acquire(
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
