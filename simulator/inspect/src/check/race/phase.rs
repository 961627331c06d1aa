//! Deferred recording of loads of LDS between two barriers. After a barrier at which all waves of the
//! workgroup arrived with nothing outstanding, all earlier accesses are ordered for every wave. Until the
//! next store, loads cannot race; they are only kept in a list, in case a store follows. Usually none does,
//! and the next barrier drops the list.

use super::super::shadow_memory::Record;
use super::super::waits::Scoreboard;
use super::ordering::Ordering;
use super::{Shadow, WaveState};
use isa_spec::pcode::builtins::Control;
use wavesim_engine::observe::Step;
use wavesim_machine::exec::effects::Effects;
use wavesim_machine::exec::watch::{Access, LdsLoads};

/// Maximum number of deferred loads.
const MAX_ENTRIES: usize = 1 << 12;

/// A load that is not yet recorded in shadow memory.
enum Deferred {
    One(Access),
    /// The next load of [`Phase::lanes`].
    Lanes,
}

/// The accesses to LDS since the last barrier at which all waves arrived.
#[derive(Default)]
pub struct Phase {
    /// Loads that are not recorded in shadow memory, kept until the first store.
    loads: Vec<(Deferred, Record)>,
    lanes: LdsLoads,
    stored: bool,
}

impl Phase {
    /// Begins a phase without accesses.
    #[inline]
    pub fn begin(&mut self) {
        self.loads.clear();
        self.lanes.clear();
        self.stored = false;
    }

    /// Returns whether loads cannot race and can be deferred.
    #[inline(always)]
    pub fn is_open(&self) -> bool {
        !self.stored && self.loads.len() < MAX_ENTRIES
    }

    /// Defers a load if it cannot race. Returns whether it did.
    #[inline(always)]
    pub fn try_defer(&mut self, a: &Access, me: Record) -> bool {
        let open = self.is_open();
        if open {
            self.loads.push((Deferred::One(*a), me));
        }
        open
    }

    /// Defers the loads of a wave's lanes. The phase must be open.
    #[inline(always)]
    pub fn defer_lanes(&mut self, loads: &mut LdsLoads, me: Record) {
        self.loads.extend((0..loads.len()).map(|_| (Deferred::Lanes, me)));
        self.lanes.append(loads);
    }
}

/// Returns whether a program splits barriers: it signals a barrier without waiting there, or waits without
/// having signalled, as non-members of a named barrier do. Then the accesses of one wave before a barrier say
/// nothing about those of the others.
pub fn has_split_barriers(effects: &[Effects]) -> bool {
    let calls = |at: usize, bi| effects.get(at).is_some_and(|e| e.calls.contains(&bi));
    let signals = |at| calls(at, Control::BarrierSignal) || calls(at, Control::BarrierSignalIsFirst);
    let named = |at| calls(at, Control::BarrierInit) || calls(at, Control::BarrierJoin);
    (0..effects.len()).any(|at| named(at) || signals(at) && !calls(at + 1, Control::BarrierWait))
}

impl Shadow {
    /// Resumes a wave after a barrier. Begins a phase if this is the first wave to resume and all others wait
    /// at the same barrier; returns whether it did.
    #[inline]
    pub(super) fn try_begin_phase(
        &mut self,
        step: &Step<'_>,
        wave_index: usize,
        barrier: usize,
        scoreboard: &Scoreboard,
    ) -> bool {
        let waits = |(other, wave): (usize, &WaveState)| other == wave_index || wave.waiting == Some(barrier);
        // No wave has arrived at the next barrier yet.
        let begins = !self.split_barriers
            && step.group.barrier(barrier).signals == 0
            && self.waves.iter().enumerate().all(waits)
            && (0..self.waves.len() as u32).all(|wave| !scoreboard.may_access_lds(wave));
        if begins {
            self.phase.begin();
        }
        begins
    }

    /// Ends deferral at a store to LDS: earlier loads are recorded, and later ones are compared.
    #[inline]
    pub(super) fn end_deferral(&mut self, scoreboard: &Scoreboard) {
        self.phase.stored = true;
        self.record_loads(scoreboard);
    }

    /// Records the deferred loads. This is needed before a wave acquires, too: after the acquire, the later
    /// of two loads would supersede the earlier one.
    #[inline]
    pub(super) fn record_loads(&mut self, scoreboard: &Scoreboard) {
        if !self.phase.loads.is_empty() {
            self.record_deferred(scoreboard);
        }
    }

    #[inline(never)]
    fn record_deferred(&mut self, scoreboard: &Scoreboard) {
        let mut loads = std::mem::take(&mut self.phase.loads);
        let mut lanes = std::mem::take(&mut self.phase.lanes);
        let mut accesses_of_lanes = lanes.accesses();
        let hits = self.hits.len();
        for (load, me) in loads.drain(..) {
            let at = me.wave.wrapping_sub(self.first) as usize;
            let accesses = match load {
                Deferred::One(a) => vec![a],
                Deferred::Lanes => accesses_of_lanes.next().unwrap_or_default(),
            };
            for a in &accesses {
                self.record(at, Ordering::default(), a, me, scoreboard);
            }
        }
        // Deferred loads cannot race.
        self.hits.truncate(hits);
        drop(accesses_of_lanes);
        lanes.clear();
        (self.phase.loads, self.phase.lanes) = (loads, lanes);
    }
}
