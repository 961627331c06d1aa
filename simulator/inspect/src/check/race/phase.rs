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
use wavesim_machine::exec::watch::{Access, LdsLoads};

/// Loads kept at most.
const MOST: usize = 1 << 12;

/// A load without a record in shadow memory.
enum Kept {
    One(Access),
    /// The next one of `lanes`.
    Lanes,
}

/// LDS since all waves have met.
#[derive(Default)]
pub struct Phase {
    /// Loads without a record in shadow memory, if nothing has been stored.
    loads: Vec<(Kept, Record)>,
    lanes: LdsLoads,
    stored: bool,
}

impl Phase {
    /// Nothing has been accessed.
    #[inline]
    pub fn begin(&mut self) {
        self.loads.clear();
        self.lanes.clear();
        self.stored = false;
    }

    /// Whether loads cannot race with anything.
    #[inline(always)]
    pub fn is_open(&self) -> bool {
        !self.stored && self.loads.len() < MOST
    }

    /// Keeps a load, if it cannot race with anything.
    #[inline(always)]
    pub fn keeps(&mut self, a: &Access, me: Record) -> bool {
        let open = self.is_open();
        if open {
            self.loads.push((Kept::One(*a), me));
        }
        open
    }

    /// Keeps loads of lanes, which a phase that is open has room for.
    #[inline(always)]
    pub fn keep(&mut self, loads: &mut LdsLoads, me: Record) {
        self.loads.extend((0..loads.len()).map(|_| (Kept::Lanes, me)));
        self.lanes.append(loads);
    }
}

/// Whether waves signal barriers without waiting there, or wait without having signalled, as those do that are no members of a named
/// barrier: then what one has done before is not what all have.
pub fn splits_barriers(effects: &[Effects]) -> bool {
    let calls = |at: usize, bi| effects.get(at).is_some_and(|e| e.calls.contains(&bi));
    let signals = |at| calls(at, Control::BarrierSignal) || calls(at, Control::BarrierSignalIsFirst);
    let named = |at| calls(at, Control::BarrierInit) || calls(at, Control::BarrierJoin);
    (0..effects.len()).any(|at| named(at) || signals(at) && !calls(at + 1, Control::BarrierWait))
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
        self.phase.stored = true;
        self.record_loads(scoreboard);
    }

    /// Records the loads that were kept: also where a wave acquires, as of two loads the later one would take the place of the earlier one
    /// then.
    #[inline]
    pub(super) fn record_loads(&mut self, scoreboard: &Scoreboard) {
        if !self.phase.loads.is_empty() {
            self.record_kept(scoreboard);
        }
    }

    #[inline(never)]
    fn record_kept(&mut self, scoreboard: &Scoreboard) {
        let mut loads = std::mem::take(&mut self.phase.loads);
        let mut lanes = std::mem::take(&mut self.phase.lanes);
        let mut accesses_of_lanes = lanes.accesses();
        let hits = self.hits.len();
        for (load, me) in loads.drain(..) {
            let at = me.wave.wrapping_sub(self.first) as usize;
            let accesses = match load {
                Kept::One(a) => vec![a],
                Kept::Lanes => accesses_of_lanes.next().unwrap_or_default(),
            };
            for a in &accesses {
                self.record(at, Ordering::default(), a, me, scoreboard);
            }
        }
        // They race with nothing.
        self.hits.truncate(hits);
        drop(accesses_of_lanes);
        lanes.clear();
        (self.phase.loads, self.phase.lanes) = (loads, lanes);
    }
}
