//! Barriers, at which waves release their clocks and acquire those of the others, and what they have discarded of caches.

use super::super::waits::Scoreboard;
use super::Shadow;
use super::clock::VectorClock;
use super::ordering::Caches;
use isa_spec::pcode::builtins::Control;
use std::sync::Arc;
use wavesim_engine::observe::{Done, Step};
use wavesim_machine::exec::machine_ops::Event;

/// Waves that have come to a barrier.
pub(super) struct Arrivals {
    /// What the first of them had acquired: mostly that of all.
    first: Arc<VectorClock>,
    all: VectorClock,
}

/// A clock for each cache.
pub(super) type ByCache = [VectorClock; Caches::COUNT];

/// None of a workgroup of so many waves.
fn no_discards(waves: usize) -> ByCache {
    std::array::from_fn(|_| VectorClock::new(waves))
}

impl Shadow {
    /// A wave continues after a barrier: it acquires what the others released there. Whether all have met.
    #[inline(always)]
    pub fn resume(&mut self, step: &Step<'_>, scoreboard: &Scoreboard) -> bool {
        let at = step.wave.id as usize;
        if self.enabled
            && let Some(barrier) = self.waves[at].waiting.take()
        {
            let met = self.meet(step, at, barrier, scoreboard);
            if self.splits {
                self.record_loads(scoreboard);
            }
            self.acquire_barrier(step, at, barrier);
            return met;
        }
        false
    }

    fn acquire_barrier(&mut self, step: &Step<'_>, at: usize, barrier: usize) {
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
            if self.discards
                && let Some(arrived) = self.discarded.remove(&(barrier, *phase))
            {
                let before = self.discarded_before.entry(barrier);
                let before = before.or_insert_with(|| no_discards(waves));
                before.iter_mut().zip(&arrived).for_each(|(before, arrived)| before.join(arrived));
            }
            *phase = phase.wrapping_add(1);
        }
        let wave = &mut self.waves[at];
        // What it had when it came is among these.
        if self.synchronises || self.splits {
            Arc::make_mut(&mut wave.vector).join(clocks);
        } else {
            wave.vector.clone_from(clocks);
        }
        if let Some(discarded) = self.discarded_before.get(&barrier) {
            for (mine, all) in wave.discards.clocks.iter_mut().zip(discarded) {
                Arc::make_mut(mine).join(all);
            }
        }
        if self.synchronises {
            wave.record_clock();
        }
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
                    self.discards |= !caches.and(self.of_group()).is_empty();
                    None
                }
                Control::Barrier => Some(0),
                Control::BarrierSignal | Control::BarrierSignalIsFirst => {
                    wavesim_machine::state::Workgroup::index(*number as i32)
                }
                _ => None,
            };
            if let Some(barrier) = barrier.filter(|_| step.group.is_multi_wave()) {
                self.arrive(step, at, barrier);
            }
        }
        if let Some(Event::BarrierWait(barrier)) = done.event {
            self.waves[at].waiting = Some(*barrier);
        }
    }

    /// Caches that all waves of a workgroup share: what one of them discards is discarded for those that it then meets at a barrier.
    fn of_group(&self) -> Caches {
        let more = if self.cu_mode { Caches::L0 } else { Caches::default() };
        Caches::L1.or(Caches::SCALAR).or(more)
    }

    fn arrive(&mut self, step: &Step<'_>, at: usize, barrier: usize) {
        let state = step.group.barrier(barrier);
        // The arrival that completes the barrier has counted already.
        let phase = if state.signals == 0 { state.completed.wrapping_sub(1) } else { state.completed };
        if self.discards {
            let shared = self.of_group();
            let waves = self.waves.len();
            let discarded = self.discarded.entry((barrier, phase)).or_insert_with(|| no_discards(waves));
            for cache in shared.numbers() {
                discarded[cache].join(&self.waves[at].discards.clocks[cache]);
            }
        }
        let wave = &mut self.waves[at];
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
        clocks.own[at] = clocks.own[at].max(wave.epoch);
        wave.epoch += 1;
        wave.released = wave.epoch;
    }
}
