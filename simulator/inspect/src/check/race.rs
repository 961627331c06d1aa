//! `race`: accesses to the same bytes from two waves, at least one a store, that nothing orders.
//!
//! A happens-before detector. Every wave has a vector clock: its own epoch, and the epochs of other waves that happened before its next
//! access. Waves release their clock and acquire others' at barriers. An atomic releases at its address; an atomic that returns a value, or a
//! load that asks for coherence (GLC, or a scope), acquires what was released there and what the last writers had done. Atomics do not race
//! with each other.
//!
//! A store to LDS is released at a barrier only if it has been waited for: otherwise another wave may read the old bytes after
//! the barrier. Such a race is reported as a missing wait.
//!
//! Shadow memory keeps the last two writers and two readers of a dword ([`super::shadow_memory`]), so of many racing accesses some are
//! reported, not all.

use super::report::{Finding, Report, Site, describe};
use super::shadow_memory::{Hit, Record, ShadowMemory};
use super::{Check, waits};
use isa_spec::pcode::builtins::Control;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use wavesim_engine::observe::{Done, Step};
use wavesim_loader::prepared::{Prepared, Shape};
use wavesim_machine::exec::effects::{Class, Effects};
use wavesim_machine::exec::machine_ops::Event;
use wavesim_machine::exec::watch::{Access, Place};

/// Epochs of waves that happened before. Epochs start at 1; 0 is never.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct VectorClock {
    /// Of the waves of its workgroup, by index.
    own: Vec<u32>,
    /// Of waves of other workgroups, by number.
    foreign: BTreeMap<u32, u32>,
}

impl VectorClock {
    /// Of a wave that nothing happened before, in a workgroup of so many.
    fn of_waves(waves: usize) -> VectorClock {
        VectorClock { own: vec![0; waves], foreign: BTreeMap::new() }
    }

    /// What happened before either.
    fn join(&mut self, other: &VectorClock) {
        for (epoch, other) in self.own.iter_mut().zip(&other.own) {
            *epoch = (*epoch).max(*other);
        }
        for (&wave, &other) in &other.foreign {
            let epoch = self.foreign.entry(wave).or_default();
            *epoch = other.max(*epoch);
        }
    }
}

struct WaveState {
    epoch: u32,
    vector: Arc<VectorClock>,
    /// Its vector clock from which epoch on, for waves that acquire one of its stores; empty if nothing in the program acquires.
    history: Vec<(u32, Arc<VectorClock>)>,
    /// At which barrier it waits.
    waiting: Option<usize>,
    /// Stores to LDS that were outstanding at a barrier: first epoch, epoch at the barrier, PC of the store.
    unwaited: Vec<(u32, u32, u64)>,
}

/// Vector clocks and shadow memory.
pub struct Shadow {
    enabled: bool,
    /// Whether anything of the program can order waves of different workgroups, or through memory.
    synchronises: bool,
    waves_per_group: u32,
    /// Number of the first wave of the running workgroup, from 1.
    first: u32,
    groups: Vec<[u32; 3]>,
    waves: Vec<WaveState>,
    ended: HashMap<u32, Vec<(u32, Arc<VectorClock>)>>,
    lds: ShadowMemory,
    global: ShadowMemory,
    /// Races of the access at hand.
    hits: Vec<Hit>,
    /// Arrivals at barrier and phase; completed phases are merged.
    arrivals: BTreeMap<(usize, u32), VectorClock>,
    merged: BTreeMap<usize, (u32, VectorClock)>,
    /// What atomics have released at an address.
    released: HashMap<(bool, u64), Arc<VectorClock>>,
}

impl Shadow {
    pub fn new(shape: &Shape, effects: &[Effects], enabled: bool) -> Shadow {
        let items: u32 = shape.block.iter().product();
        Shadow {
            enabled,
            synchronises: effects.iter().any(|e| e.returns && (e.atomic || e.coherent)),
            waves_per_group: items.div_ceil(shape.wave_size),
            first: 1,
            groups: Vec::new(),
            waves: Vec::new(),
            ended: HashMap::new(),
            lds: ShadowMemory::default(),
            global: ShadowMemory::default(),
            hits: Vec::new(),
            arrivals: BTreeMap::new(),
            merged: BTreeMap::new(),
            released: HashMap::new(),
        }
    }

    pub fn start(&mut self, workgroup: [u32; 3], waves: usize) {
        if !self.enabled {
            return;
        }
        if self.synchronises {
            for (at, wave) in self.waves.drain(..).enumerate() {
                self.ended.insert(self.first + at as u32, wave.history);
            }
        }
        self.first = 1 + self.groups.len() as u32 * self.waves_per_group;
        self.groups.push(workgroup);
        self.waves.clear();
        let vector = Arc::new(VectorClock::of_waves(waves));
        let history = if self.synchronises { vec![(0, vector.clone())] } else { Vec::new() };
        self.waves.resize_with(waves, || WaveState {
            epoch: 1,
            vector: vector.clone(),
            history: history.clone(),
            waiting: None,
            unwaited: Vec::new(),
        });
        self.lds.clear();
        self.arrivals.clear();
        self.merged.clear();
        self.released.retain(|(lds, _), _| !lds);
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
        let (phase, clocks) = self.merged.entry(barrier).or_insert_with(|| (0, VectorClock::of_waves(waves)));
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

    /// A wave's epoch, for [`waits::Scoreboard::stamp_lds_store`].
    pub fn epoch(&self, wave: u32) -> u32 {
        self.waves.get(wave as usize).map_or(0, |w| w.epoch)
    }

    /// Barriers arrived at.
    pub fn calls(&mut self, step: &Step<'_>, done: &Done<'_>, waits: &waits::Scoreboard) {
        if !self.enabled {
            return;
        }
        let at = step.wave.id as usize;
        for (bi, number) in done.calls {
            let barrier = match bi {
                Control::Barrier => Some(0),
                Control::BarrierSignal | Control::BarrierSignalIsFirst => {
                    wavesim_machine::state::Workgroup::index(*number as i32)
                }
                _ => None,
            };
            if let Some(barrier) = barrier.filter(|_| step.group.in_group()) {
                self.arrive(step, at, barrier, waits);
            }
        }
        if let Some(Event::BarrierWait(barrier)) = done.event {
            self.waves[at].waiting = Some(*barrier);
        }
    }

    fn arrive(&mut self, step: &Step<'_>, at: usize, barrier: usize, waits: &waits::Scoreboard) {
        let state = step.group.barrier(barrier);
        // The arrival that completes the barrier has counted already.
        let phase = if state.signals == 0 { state.completed.wrapping_sub(1) } else { state.completed };
        let wave = &mut self.waves[at];
        let mut done = wave.epoch;
        if let Some((since, pc)) = waits.oldest_lds_store(at as u32) {
            wave.unwaited.push((since, wave.epoch, pc));
            done = since - 1;
        }
        wave.epoch += 1;
        let waves = wave.vector.own.len();
        let clocks = self.arrivals.entry((barrier, phase)).or_insert_with(|| VectorClock::of_waves(waves));
        clocks.join(&wave.vector);
        clocks.own[at] = clocks.own[at].max(done);
    }

    pub fn after(
        &mut self,
        step: &Step<'_>,
        done: &Done<'_>,
        effects: &Effects,
        prepared: &Prepared,
        report: &mut Report,
    ) {
        let at = step.wave.id as usize;
        let stores = done.accesses.iter().any(|a| a.write);
        if self.synchronises && (effects.atomic || effects.coherent) && effects.class != Class::Smem {
            self.synchronise(at, done.accesses, effects);
        }
        let wave = &mut self.waves[at];
        // Every store has an epoch of its own, so that a barrier or a reader can acquire some of them.
        if stores {
            wave.epoch += 1;
        }
        let me = Record {
            wave: self.first + at as u32,
            epoch: wave.epoch,
            pc: step.pc as u32,
            atomic: effects.atomic || effects.coherent,
            ..Record::default()
        };
        let (first, vector) = (self.first, &*self.waves[at].vector);
        let ordered = |r: &Record| happened_before(vector, first, r);
        for a in done.accesses.iter().filter(|a| !a.outside) {
            match a.place {
                Place::Lds => self.lds.access(a.address, a, me, ordered, &mut self.hits),
                Place::Global => self.global.access(a.address, a, me, ordered, &mut self.hits),
                Place::Scratch | Place::Nowhere => {}
            }
        }
        for (a, other, was_write) in std::mem::take(&mut self.hits) {
            self.report_race(step, &a, &other, was_write, prepared, report);
        }
    }

    /// Atomics and coherent loads acquire and release at their addresses.
    fn synchronise(&mut self, at: usize, accesses: &[Access], effects: &Effects) {
        let mut changed = false;
        let accesses: Vec<Access> = accesses.iter().flat_map(|a| a.each()).filter(|a| !a.outside).collect();
        for a in accesses.iter().filter(|a| matches!(a.place, Place::Global | Place::Lds)) {
            let local = a.place == Place::Lds;
            let key = (local, a.address & !3);
            if effects.returns && !a.write {
                if let Some(release) = self.released.get(&key)
                    && !Arc::ptr_eq(release, &self.waves[at].vector)
                {
                    let release = release.clone();
                    let waves = self.waves.len() as u32;
                    changed |= self.waves[at].acquire(&release.foreign, self.first, waves, at);
                }
                changed |= self.acquire_from_writers(at, local, a.address & !3);
            }
        }
        if changed {
            self.waves[at].record_clock();
        }
        if !effects.atomic {
            return;
        }
        let first = self.first;
        let wave = &mut self.waves[at];
        let epoch = wave.epoch + 1;
        // Everything so far, by the wave numbers that hold in every workgroup.
        let mut release = VectorClock { own: Vec::new(), foreign: wave.vector.foreign.clone() };
        for (k, &c) in wave.vector.own.iter().enumerate() {
            release.foreign.insert(first + k as u32, c);
        }
        release.foreign.insert(first + at as u32, epoch);
        let release = Arc::new(release);
        for a in accesses.iter().filter(|a| a.write) {
            let key = (a.place == Place::Lds, a.address & !3);
            match self.released.get_mut(&key) {
                Some(released) if Arc::ptr_eq(released, &release) => {}
                Some(released) => {
                    Arc::make_mut(released).join(&release);
                }
                None => {
                    self.released.insert(key, release.clone());
                }
            }
        }
        self.waves[at].epoch += 1;
    }

    /// A load that asks for coherence acquires what the last writers did before they stored.
    fn acquire_from_writers(&mut self, at: usize, local: bool, dword: u64) -> bool {
        let me = self.first + at as u32;
        let cell = if local { self.lds.cell(dword) } else { self.global.cell(dword) };
        let writers = cell.writes;
        let mut changed = false;
        for r in writers.iter().filter(|r| r.wave != 0 && r.wave != me) {
            let mut vector = VectorClock::default();
            if let Some(before) = self.history(r.wave, r.epoch) {
                vector.foreign.clone_from(&before.foreign);
                let base = (r.wave - 1) / self.waves_per_group * self.waves_per_group + 1;
                for (k, &c) in before.own.iter().enumerate() {
                    vector.foreign.insert(base + k as u32, c);
                }
            }
            vector.foreign.insert(r.wave, r.epoch);
            let waves = self.waves.len() as u32;
            let first = self.first;
            let wave = &mut self.waves[at];
            changed |= wave.acquire(&vector.foreign, first, waves, at);
        }
        changed
    }

    /// A wave's vector clock at one of its epochs.
    fn history(&self, wave: u32, epoch: u32) -> Option<&Arc<VectorClock>> {
        let list = match wave.checked_sub(self.first).and_then(|at| self.waves.get(at as usize)) {
            Some(running) => &running.history,
            None => self.ended.get(&wave)?,
        };
        let at = list.partition_point(|h| h.0 <= epoch).checked_sub(1)?;
        Some(&list[at].1)
    }

    fn report_race(
        &self,
        step: &Step<'_>,
        a: &Access,
        other: &Record,
        was_write: bool,
        prepared: &Prepared,
        report: &mut Report,
    ) {
        let name = |write: bool| if write { "store" } else { "load" };
        let group = self.groups[((other.wave - 1) / self.waves_per_group) as usize];
        let index = (other.wave - 1) % self.waves_per_group;
        let what = describe(&prepared.memory, a.place, a.address, a.size_bytes as u32);
        let mut site = Site::at(step, other.pc as u64, group, index);
        site.lane = (other.lane != u8::MAX).then_some(other.lane as u32);
        let lane = a.lane.map(u32::from);
        let role = if was_write { "earlier store" } else { "earlier load" };
        let unwaited = (group == step.wave.workgroup && was_write && a.place == Place::Lds)
            .then(|| self.waves[index as usize].unwaited.iter().find(|u| (u.0..=u.1).contains(&other.epoch)))
            .flatten();
        if unwaited.is_some() {
            let kind = "store not complete at the barrier";
            if report.is_new(Check::Waits, kind, step.pc, Some(other.pc as u64)) {
                let message = format!(
                    "{} of {what} may see the bytes from before a store of wave {index}: the store was not waited for before the barrier",
                    name(a.write)
                );
                let wait = match step.program.arch {
                    wavesim_isa::arch::Arch::Rdna4 => "s_wait_dscnt 0x0",
                    _ => "s_waitcnt lgkmcnt(0)",
                };
                let finding = Finding::new(Check::Waits, kind, message, Site::new(step, lane));
                report.add(
                    finding
                        .other(role, site)
                        .address(a.address)
                        .hint(format!("`{wait}` is needed between the store and the barrier")),
                );
            }
            return;
        }
        let kind = "data race";
        if !report.is_new(Check::Race, kind, step.pc, Some(other.pc as u64)) {
            return;
        }
        let across = if group == step.wave.workgroup {
            format!("waves {} and {index}", step.wave.id)
        } else {
            let [x, y, z] = group;
            format!("this workgroup and workgroup ({x},{y},{z})")
        };
        let message = format!("{} of {what} races with the {role}: nothing orders {across}", name(a.write));
        let hint = match (group == step.wave.workgroup, a.place) {
            (true, _) => "a barrier between the two, or atomics, would order them",
            (false, _) => "workgroups run in any order: only atomics order them",
        };
        report.add(
            Finding::new(Check::Race, kind, message, Site::new(step, lane))
                .other(role, site)
                .address(a.address)
                .hint(hint),
        );
    }
}

#[inline(always)]
fn happened_before(vector: &VectorClock, first: u32, r: &Record) -> bool {
    match vector.own.get(r.wave.wrapping_sub(first) as usize) {
        Some(&epoch) => epoch >= r.epoch,
        None => happened_before_elsewhere(vector, r),
    }
}

/// Of a wave of another workgroup.
#[inline(never)]
fn happened_before_elsewhere(vector: &VectorClock, r: &Record) -> bool {
    vector.foreign.get(&r.wave).is_some_and(|&epoch| epoch >= r.epoch)
}

impl WaveState {
    fn record_clock(&mut self) {
        let (epoch, vector) = (self.epoch, self.vector.clone());
        match self.history.last_mut() {
            Some(last) if last.0 == epoch => last.1 = vector,
            _ => self.history.push((epoch, vector)),
        }
    }

    /// Takes over epochs by wave number; true if any was newer.
    fn acquire(&mut self, numbers: &BTreeMap<u32, u32>, first: u32, waves: u32, at: usize) -> bool {
        let mut changed = false;
        for (&wave, &epoch) in numbers {
            let own = wave.checked_sub(first).filter(|k| *k < waves);
            let have = match own {
                Some(k) if k as usize == at => continue,
                Some(k) => self.vector.own[k as usize],
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
