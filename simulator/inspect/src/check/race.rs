//! `race`: accesses to the same bytes from two waves, at least one a store, that nothing orders.
//!
//! Every wave has a clock, and knows of the others how far their clocks had come at the last point that ordered them: a barrier orders
//! what its waves did before against what they do behind it; an atomic that returns a value, or a load that asks for coherence (GLC, or a
//! scope), orders what the wave that wrote there had done before it. Atomics do not race with each other.
//!
//! A store to LDS counts as done at a barrier only if it has been waited for: otherwise another wave may read the old bytes behind
//! the barrier. Such a race is reported as a missing wait.
//!
//! A dword remembers its last two writers and two readers ([`super::lines`]), so of many racing accesses some are reported, not all.

use super::lines::{Hit, Lines, Record};
use super::report::{Finding, Report, Site, describe};
use super::{Check, waits};
use isa_spec::pcode::builtins::Control;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use wavesim_engine::observe::{Done, Step};
use wavesim_loader::prepared::{Prepared, Shape};
use wavesim_machine::exec::effects::{Class, Effects};
use wavesim_machine::exec::machine_ops::Event;
use wavesim_machine::exec::watch::{Access, Place};
use wavesim_machine::memory::OWNED_BASE;

/// How far a wave knows the others. Clocks start at 1; 0 is never.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Knowledge {
    /// Of the waves of its workgroup, by index.
    own: Vec<u32>,
    /// Of waves of other workgroups, by number.
    foreign: BTreeMap<u32, u32>,
}

struct WaveState {
    clock: u32,
    knows: Arc<Knowledge>,
    /// What it knew from which clock on, for those who later see one of its stores; empty if nothing of the program can.
    history: Vec<(u32, Arc<Knowledge>)>,
    /// At which barrier it waits.
    waiting: Option<usize>,
    /// Stores to LDS that were under way at a barrier: first clock, clock at the barrier, PCs of store and barrier.
    unwaited: Vec<(u32, u32, u64)>,
}

/// Clocks and last accesses.
pub struct Shadow {
    enabled: bool,
    /// Whether anything of the program can order waves of different workgroups, or through memory.
    synchronises: bool,
    waves_per_group: u32,
    /// Number of the first wave of the running workgroup, from 1.
    first: u32,
    groups: Vec<[u32; 3]>,
    waves: Vec<WaveState>,
    ended: HashMap<u32, Vec<(u32, Arc<Knowledge>)>>,
    lds: Lines,
    global: Lines,
    /// Races of the access at hand.
    hits: Vec<Hit>,
    /// Arrivals at barrier and phase; completed phases are merged.
    arrivals: BTreeMap<(usize, u32), Vec<u32>>,
    merged: BTreeMap<usize, (u32, Vec<u32>)>,
    /// What the waves that did atomics at an address knew.
    released: HashMap<(bool, u64), Arc<Knowledge>>,
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
            lds: Lines::default(),
            global: Lines::default(),
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
        let knows = Arc::new(Knowledge { own: vec![0; waves], foreign: BTreeMap::new() });
        let history = if self.synchronises { vec![(0, knows.clone())] } else { Vec::new() };
        self.waves.resize_with(waves, || WaveState {
            clock: 1,
            knows: knows.clone(),
            history: history.clone(),
            waiting: None,
            unwaited: Vec::new(),
        });
        self.lds.clear();
        self.arrivals.clear();
        self.merged.clear();
        self.released.retain(|(lds, _), _| !lds);
    }

    /// A wave goes on behind a barrier: it knows what the others had done before it.
    #[inline(always)]
    pub fn wake(&mut self, step: &Step<'_>) {
        let at = step.wave.id as usize;
        if self.enabled
            && let Some(barrier) = self.waves[at].waiting.take()
        {
            self.wake_from(step, at, barrier);
        }
    }

    fn wake_from(&mut self, step: &Step<'_>, at: usize, barrier: usize) {
        let completed = step.group.barrier(barrier).completed;
        let waves = self.waves.len();
        let (phase, clocks) = self.merged.entry(barrier).or_insert_with(|| (0, vec![0; waves]));
        while *phase != completed {
            if let Some(arrived) = self.arrivals.remove(&(barrier, *phase)) {
                join(clocks, &arrived);
            }
            *phase = phase.wrapping_add(1);
        }
        let wave = &mut self.waves[at];
        join(&mut Arc::make_mut(&mut wave.knows).own, clocks);
        if self.synchronises {
            wave.remember();
        }
    }

    /// A wave's time, for [`waits::Shadow::stamp_lds_store`].
    pub fn time(&self, wave: u32) -> u32 {
        self.waves.get(wave as usize).map_or(0, |w| w.clock)
    }

    /// Barriers arrived at.
    pub fn calls(&mut self, step: &Step<'_>, done: &Done<'_>, waits: &waits::Shadow) {
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

    fn arrive(&mut self, step: &Step<'_>, at: usize, barrier: usize, waits: &waits::Shadow) {
        let state = step.group.barrier(barrier);
        // The arrival that completes the barrier has counted already.
        let phase = if state.signals == 0 { state.completed.wrapping_sub(1) } else { state.completed };
        let wave = &mut self.waves[at];
        let mut done = wave.clock;
        if let Some((since, pc)) = waits.oldest_lds_store(at as u32) {
            wave.unwaited.push((since, wave.clock, pc));
            done = since - 1;
        }
        wave.clock += 1;
        let own = &wave.knows.own;
        let clocks = self.arrivals.entry((barrier, phase)).or_insert_with(|| vec![0; own.len()]);
        join(clocks, own);
        clocks[at] = clocks[at].max(done);
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
        // Stores have times of their own, so that a barrier or a reader can tell which it has seen.
        if stores {
            wave.clock += 1;
        }
        let me = Record {
            wave: self.first + at as u32,
            clock: wave.clock,
            pc: step.pc as u32,
            atomic: effects.atomic || effects.coherent,
            ..Record::default()
        };
        let (first, knows) = (self.first, &*self.waves[at].knows);
        let sees = |r: &Record| known(knows, first, r);
        for a in done.accesses.iter().filter(|a| !a.outside) {
            match a.place {
                Place::Lds => self.lds.access(a.address, a, me, sees, &mut self.hits),
                Place::Global if a.address >= OWNED_BASE => {
                    self.global.access(a.address - OWNED_BASE, a, me, sees, &mut self.hits);
                }
                Place::Global | Place::Scratch | Place::Nowhere => {}
            }
        }
        for (a, other, was_write) in std::mem::take(&mut self.hits) {
            self.tell(step, &a, &other, was_write, prepared, report);
        }
    }

    /// Knowledge taken from, and left at, the addresses of atomics and coherent loads.
    fn synchronise(&mut self, at: usize, accesses: &[Access], effects: &Effects) {
        let mut changed = false;
        let accesses: Vec<Access> = accesses.iter().flat_map(|a| a.each()).filter(|a| !a.outside).collect();
        for a in accesses.iter().filter(|a| matches!(a.place, Place::Global | Place::Lds)) {
            let local = a.place == Place::Lds;
            let key = (local, a.address & !3);
            if effects.returns && !a.write {
                if let Some(left) = self.released.get(&key)
                    && !Arc::ptr_eq(left, &self.waves[at].knows)
                {
                    let left = left.clone();
                    let waves = self.waves.len() as u32;
                    changed |= self.waves[at].learn_numbers(&left.foreign, self.first, waves, at);
                }
                changed |= self.learn_from_writers(at, local, a.address & !3);
            }
        }
        if changed {
            self.waves[at].remember();
        }
        if !effects.atomic {
            return;
        }
        let first = self.first;
        let wave = &mut self.waves[at];
        let clock = wave.clock + 1;
        // What others get to know: everything so far, by the numbers that hold in every workgroup.
        let mut left = Knowledge { own: Vec::new(), foreign: wave.knows.foreign.clone() };
        for (k, &c) in wave.knows.own.iter().enumerate() {
            left.foreign.insert(first + k as u32, c);
        }
        left.foreign.insert(first + at as u32, clock);
        let left = Arc::new(left);
        for a in accesses.iter().filter(|a| a.write) {
            let key = (a.place == Place::Lds, a.address & !3);
            match self.released.get_mut(&key) {
                Some(known) if Arc::ptr_eq(known, &left) => {}
                Some(known) => {
                    let known = Arc::make_mut(known);
                    for (&wave, &clock) in &left.foreign {
                        let entry = known.foreign.entry(wave).or_default();
                        *entry = clock.max(*entry);
                    }
                }
                None => {
                    self.released.insert(key, left.clone());
                }
            }
        }
        self.waves[at].clock += 1;
    }

    /// A load that asks for coherence sees a plain store: it is ordered behind what the storing wave did before.
    fn learn_from_writers(&mut self, at: usize, local: bool, dword: u64) -> bool {
        let me = self.first + at as u32;
        let cell = match (local, dword.checked_sub(OWNED_BASE)) {
            (true, _) => self.lds.cell(dword),
            (false, Some(offset)) => self.global.cell(offset),
            (false, None) => return false,
        };
        let writers = cell.writes;
        let mut changed = false;
        for r in writers.iter().filter(|r| r.wave != 0 && r.wave != me) {
            let mut knows = Knowledge::default();
            if let Some(before) = self.history(r.wave, r.clock) {
                knows.foreign.clone_from(&before.foreign);
                let base = (r.wave - 1) / self.waves_per_group * self.waves_per_group + 1;
                for (k, &c) in before.own.iter().enumerate() {
                    knows.foreign.insert(base + k as u32, c);
                }
            }
            knows.foreign.insert(r.wave, r.clock);
            let waves = self.waves.len() as u32;
            let first = self.first;
            let wave = &mut self.waves[at];
            changed |= wave.learn_numbers(&knows.foreign, first, waves, at);
        }
        changed
    }

    /// What a wave knew at a time of its clock.
    fn history(&self, wave: u32, clock: u32) -> Option<&Arc<Knowledge>> {
        let list = match wave.checked_sub(self.first).and_then(|at| self.waves.get(at as usize)) {
            Some(running) => &running.history,
            None => self.ended.get(&wave)?,
        };
        let at = list.partition_point(|h| h.0 <= clock).checked_sub(1)?;
        Some(&list[at].1)
    }

    fn tell(
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
            .then(|| self.waves[index as usize].unwaited.iter().find(|u| (u.0..=u.1).contains(&other.clock)))
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

fn join(into: &mut [u32], from: &[u32]) {
    for (a, b) in into.iter_mut().zip(from) {
        *a = (*a).max(*b);
    }
}

#[inline(always)]
fn known(knows: &Knowledge, first: u32, r: &Record) -> bool {
    match knows.own.get(r.wave.wrapping_sub(first) as usize) {
        Some(&clock) => clock >= r.clock,
        None => known_foreign(knows, r),
    }
}

/// Of a wave of another workgroup.
#[inline(never)]
fn known_foreign(knows: &Knowledge, r: &Record) -> bool {
    knows.foreign.get(&r.wave).is_some_and(|&clock| clock >= r.clock)
}

impl WaveState {
    fn remember(&mut self) {
        let (clock, knows) = (self.clock, self.knows.clone());
        match self.history.last_mut() {
            Some(last) if last.0 == clock => last.1 = knows,
            _ => self.history.push((clock, knows)),
        }
    }

    /// Takes over clocks by wave number; true if any was news.
    fn learn_numbers(&mut self, numbers: &BTreeMap<u32, u32>, first: u32, waves: u32, at: usize) -> bool {
        let mut changed = false;
        for (&wave, &clock) in numbers {
            let own = wave.checked_sub(first).filter(|k| *k < waves);
            let have = match own {
                Some(k) if k as usize == at => continue,
                Some(k) => self.knows.own[k as usize],
                None => self.knows.foreign.get(&wave).copied().unwrap_or(0),
            };
            if clock <= have {
                continue;
            }
            let knows = Arc::make_mut(&mut self.knows);
            match own {
                Some(k) => knows.own[k as usize] = clock,
                None => {
                    knows.foreign.insert(wave, clock);
                }
            }
            changed = true;
        }
        changed
    }
}
