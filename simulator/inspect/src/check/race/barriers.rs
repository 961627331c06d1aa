//! Barriers: arriving waves release their vector clocks and their cache invalidations, and leaving waves
//! acquire those of all others.

use super::super::waits::Scoreboard;
use super::Shadow;
use super::clock::VectorClock;
use super::ordering::{Caches, DEVICE};
use isa_spec::pcode::builtins::Control;
use std::sync::Arc;
use wavesim_engine::observe::{Done, Step};
use wavesim_machine::exec::machine_ops::Event;
use wavesim_machine::state::barrier::{CLUSTER_INDEX, WORKGROUP_BARRIER};
use wavesim_machine::state::gws;

/// The clocks of the waves that have arrived at a barrier.
pub(super) struct Arrivals {
    /// The clock of the first wave to arrive; usually all others have the same one.
    first: Arc<VectorClock>,
    all: VectorClock,
}

/// A clock for each cache.
pub(super) type ByCache = [VectorClock; Caches::COUNT];

/// Returns the clocks of a workgroup of `waves` waves that have invalidated nothing.
fn no_invalidations(waves: usize) -> ByCache {
    std::array::from_fn(|_| VectorClock::new(waves))
}

impl Shadow {
    /// Resumes a wave after a barrier: the wave acquires the clocks released there. Returns whether all waves
    /// were waiting there, with nothing outstanding.
    #[inline(always)]
    pub fn resume(&mut self, step: &Step<'_>, scoreboard: &Scoreboard) -> bool {
        let at = step.wave.id as usize;
        if self.enabled
            && let Some(barrier) = self.waves[at].waiting.take()
        {
            // What waves of other workgroups do is no phase of this one.
            let own = gws::resource_of(barrier).is_none();
            let begun = own && self.try_begin_phase(step, at, barrier, scoreboard);
            if self.split_barriers {
                self.record_loads(scoreboard);
            }
            self.acquire_barrier(step, at, barrier);
            return begun;
        }
        false
    }

    fn acquire_barrier(&mut self, step: &Step<'_>, wave_index: usize, barrier: usize) {
        if barrier == CLUSTER_INDEX {
            return self.acquire_cluster(step, wave_index);
        }
        if let Some((resource, _)) = gws::resource_of(barrier) {
            return self.acquire_gws(resource as u32, wave_index);
        }
        let completed = step.group.barrier(barrier).completed;
        let waves = self.waves.len();
        let (phase, clocks) =
            self.merged.entry(barrier).or_insert_with(|| (0, Arc::new(VectorClock::new(waves))));
        while *phase != completed {
            if let Some(Arrivals { first, all }) = self.arrivals.remove(&(barrier, *phase)) {
                match Arc::ptr_eq(&first, clocks) {
                    true => *clocks = Arc::new(all),
                    false => Arc::make_mut(clocks).join(&all),
                }
            }
            if self.group_invalidates
                && let Some(arrived) = self.arrival_invalidations.remove(&(barrier, *phase))
            {
                let before = self.merged_invalidations.entry(barrier);
                let before = before.or_insert_with(|| no_invalidations(waves));
                before.iter_mut().zip(&arrived).for_each(|(before, arrived)| before.join(arrived));
            }
            *phase = phase.wrapping_add(1);
        }
        let wave = &mut self.waves[wave_index];
        // These clocks include the one that the wave released on arrival.
        if self.synchronises || self.split_barriers {
            Arc::make_mut(&mut wave.vector).join(clocks);
        } else {
            wave.vector.clone_from(clocks);
        }
        if let Some(merged) = self.merged_invalidations.get(&barrier) {
            for (mine, all) in wave.invalidations.clocks.iter_mut().zip(merged) {
                Arc::make_mut(mine).join(all);
            }
        }
        if self.synchronises {
            wave.record_clock();
        }
    }

    /// Records barrier arrivals and cache invalidations.
    pub fn record_calls(&mut self, step: &Step<'_>, done: &Done<'_>) {
        if !self.enabled {
            return;
        }
        let at = step.wave.id as usize;
        for (bi, number) in done.calls {
            let barrier = match bi {
                Control::InvalidateCaches => {
                    let caches = Caches(*number as u8).and(self.orderings[step.index].reaches);
                    self.waves[at].invalidate(caches);
                    self.group_invalidates |= !caches.and(self.group_caches()).is_empty();
                    None
                }
                Control::WriteBackCaches if self.writes_back_to_device(step.index) => {
                    self.waves[at].write_back(step.pc as u32);
                    None
                }
                Control::Barrier => step.group.own_index(WORKGROUP_BARRIER),
                Control::BarrierSignal | Control::BarrierSignalIsFirst => {
                    step.group.own_index(*number as i32)
                }
                _ => None,
            };
            if bi.meets() {
                self.meet(*bi, *number % gws::RESOURCES as u32, done.event.is_some(), at);
            }
            match barrier {
                Some(CLUSTER_INDEX) => self.arrive_at_cluster(step, at),
                Some(barrier) => self.arrive(step, at, barrier),
                None => {}
            }
        }
        if let Some(Event::BarrierWait(barrier)) = done.event {
            self.waves[at].waiting = Some(*barrier);
        }
    }

    /// Returns whether an instruction writes back the L2 cache for other workgroups.
    pub fn writes_back_to_device(&self, index: usize) -> bool {
        self.facts.release_writes_back && self.synchronises && self.orderings[index].scope >= DEVICE
    }

    /// Returns the caches that all waves of a workgroup share. An invalidation by one wave holds for every
    /// wave that then synchronises with it at a barrier.
    fn group_caches(&self) -> Caches {
        let more = if self.cu_mode { Caches::L0 } else { Caches::default() };
        Caches::L1.or(Caches::SCALAR).or(more)
    }

    fn arrive(&mut self, step: &Step<'_>, wave_index: usize, barrier: usize) {
        let state = step.group.barrier(barrier);
        // `completed` already counts the arrival that completes the barrier.
        let phase = if state.signals == 0 { state.completed.wrapping_sub(1) } else { state.completed };
        if self.group_invalidates {
            let shared = self.group_caches();
            let waves = self.waves.len();
            let invalidations =
                self.arrival_invalidations.entry((barrier, phase)).or_insert_with(|| no_invalidations(waves));
            for cache in shared.numbers() {
                invalidations[cache].join(&self.waves[wave_index].invalidations.clocks[cache]);
            }
        }
        let wave = &mut self.waves[wave_index];
        let arrivals = self.arrivals.entry((barrier, phase)).or_insert_with(|| Arrivals {
            first: wave.vector.clone(),
            all: VectorClock::clone(&wave.vector),
        });
        if !Arc::ptr_eq(&arrivals.first, &wave.vector) {
            arrivals.all.join(&wave.vector);
        }
        let clocks = &mut arrivals.all;
        // The barrier has an epoch of its own.
        wave.epoch += 1;
        clocks.own[wave_index] = clocks.own[wave_index].max(wave.epoch);
        wave.epoch += 1;
        wave.released = wave.epoch;
    }
}
