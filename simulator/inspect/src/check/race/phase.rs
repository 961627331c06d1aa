//! Loads of LDS between two barriers. Behind a barrier at which all waves of the workgroup have met, with nothing outstanding, all that
//! was accessed before is ordered for all of them. Until something is stored, loads cannot race: they are only kept, in case that
//! something is. Most are forgotten at the next barrier.

use super::super::shadow_memory::Record;
use super::super::waits::Scoreboard;
use super::ordering::Ordering;
use super::{Shadow, WaveState};
use isa_spec::pcode::builtins::Control;
use wavesim_engine::observe::Step;
use wavesim_machine::exec::effects::Effects;
use wavesim_machine::exec::watch::Access;

/// Loads kept at most.
const MOST: usize = 1 << 14;

/// LDS since all waves have met.
#[derive(Default)]
pub struct Phase {
    /// Loads without a record in shadow memory, if nothing has been stored.
    loads: Vec<(Access, Record)>,
    stored: bool,
}

impl Phase {
    /// Nothing has been accessed.
    #[inline]
    pub fn begin(&mut self) {
        self.loads.clear();
        self.stored = false;
    }

    /// Keeps a load, if it cannot race with anything.
    #[inline(always)]
    pub fn keeps(&mut self, a: &Access, me: Record) -> bool {
        if self.stored || self.loads.len() >= MOST {
            return false;
        }
        self.loads.push((*a, me));
        true
    }
}

/// Whether a program signals barriers without waiting there: then its waves access memory in between.
pub fn splits_barriers(effects: &[Effects]) -> bool {
    let calls = |at: usize, bi| effects.get(at).is_some_and(|e| e.calls.contains(&bi));
    let signals = |at| calls(at, Control::BarrierSignal) || calls(at, Control::BarrierSignalIsFirst);
    (0..effects.len()).any(|at| signals(at) && !calls(at + 1, Control::BarrierWait))
}

impl Shadow {
    /// A wave goes on behind a barrier. If it is the first, and all others wait there, a phase begins; whether one does.
    #[inline]
    pub(super) fn meet(
        &mut self,
        step: &Step<'_>,
        at: usize,
        barrier: usize,
        scoreboard: &Scoreboard,
    ) -> bool {
        let waits = |(other, wave): (usize, &WaveState)| other == at || wave.waiting == Some(barrier);
        // Nobody has come to the next one.
        let begins = !self.splits
            && step.group.barrier(barrier).signals == 0
            && self.waves.iter().enumerate().all(waits)
            && (0..self.waves.len() as u32).all(|wave| !scoreboard.may_access_lds(wave));
        if begins {
            self.phase.begin();
        }
        begins
    }

    /// Something is stored to LDS: from here on, loads are compared, and those before have records.
    #[inline]
    pub(super) fn stores(&mut self, scoreboard: &Scoreboard) {
        if !self.phase.stored {
            self.phase.stored = true;
            if !self.phase.loads.is_empty() {
                self.record_loads(scoreboard);
            }
        }
    }

    #[inline(never)]
    fn record_loads(&mut self, scoreboard: &Scoreboard) {
        let mut loads = std::mem::take(&mut self.phase.loads);
        let hits = self.hits.len();
        for (a, me) in loads.drain(..) {
            let at = me.wave.wrapping_sub(self.first) as usize;
            self.record(at, Ordering::default(), &a, me, scoreboard);
        }
        // They race with nothing.
        self.hits.truncate(hits);
        self.phase.loads = loads;
    }
}
