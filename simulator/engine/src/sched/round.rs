//! Rounds: the waves of a workgroup run one after the other in the same context. Where waves reach barriers
//! after a few instructions, creating a context for each turn would cost more than the turn.

use super::barrier::BarrierScheduler;
use super::cancel::is_cancelled;
use super::next_ready::{Limits, TURN, next_ready};
use super::queue::Succession;
use super::slot::{WaveSlot, apply_event, is_ready};
use crate::compiled::{Next, Waves};
use std::sync::atomic::AtomicBool;
use wavesim_machine::exec::machine_ops::Event;
use wavesim_machine::exec::op::Pools;
use wavesim_machine::exec::rt::Cx;
use wavesim_machine::state::Wave;

/// The rest of a round, and the rounds after it, as long as the order of waves stays the same.
pub struct Round<'r, 'a> {
    /// The waves of the workgroup, in the order of their turns.
    pub waves: &'r mut [WaveSlot<'a>],
    /// The index in `waves` of the wave that runs, or ran last.
    pub turn: usize,
    /// How far the rounds may go.
    pub limits: Limits,
    /// Set to cancel the run.
    pub cancel: Option<&'r AtomicBool>,
    /// The pools of the program, for [`Cx::switch`].
    pub pools: &'r Pools,
    /// The workgroups that start when this one has ended, one after the other, in the same waves.
    pub succession: Option<Succession<'r, 'r>>,
}

impl<'a> Round<'_, 'a> {
    /// Takes the wave whose turn it is, and its scratch. Returns `None` if it is already taken.
    pub fn take(&mut self) -> Option<(&'a mut Wave, &'a mut [u8])> {
        let parked = &mut self.waves[self.turn];
        Some((parked.wave.take()?, std::mem::take(&mut parked.scratch)))
    }

    /// Replaces the wave in `cx` with `wave`, and parks the old one.
    #[inline(always)]
    fn switch(&mut self, cx: &mut Cx<'a>, wave: &'a mut Wave, scratch: &'a mut [u8], turn: usize) {
        let (wave, scratch) = cx.switch(wave, scratch, self.pools);
        let parked = &mut self.waves[self.turn];
        (parked.wave, parked.scratch) = (Some(wave), scratch);
        self.turn = turn;
    }

    /// Starts the next workgroup in place of this one, which has ended, and switches to its first wave. Returns the
    /// instruction count up to which that one may run; `None` if there is no other workgroup, or the scheduler has to
    /// check its budget first.
    #[inline(always)]
    fn start_next(&mut self, cx: &mut Cx<'a>) -> Option<u64> {
        let succession = self.succession.as_mut()?;
        let end = cx.instructions + TURN;
        if end > self.limits.budget_end || is_cancelled(self.cancel) {
            return None;
        }
        if !succession.start_next(self.waves, cx) {
            return None;
        }
        self.limits.slice_end = cx.instructions.saturating_add(succession.followers.slice);
        self.sync_context(cx, 0);
        Some(end)
    }

    /// Switches from the wave of `cx`, which has stopped, to the next one that is ready. Returns the
    /// instruction count up to which that one may run.
    #[inline(always)]
    fn switch_to_next(&mut self, cx: &mut Cx<'a>) -> Option<u64> {
        let (waves, wave, group) = (&mut *self.waves, &mut *cx.wave, &*cx.workgroup);
        let (turn, end) =
            next_ready(self.turn, waves.len(), self.limits, self.cancel, cx.instructions, |turn| {
                let WaveSlot { wave: parked, status, .. } = &mut waves[turn];
                // The entry without a wave is that of the wave in the context.
                is_ready(parked.as_deref_mut().unwrap_or(&mut *wave), status, group)
            })?;
        self.sync_context(cx, turn);
        Some(end)
    }
}

// SAFETY: `switch` replaces the wave through `Cx::switch`; otherwise only barriers change.
unsafe impl<'a> Waves<'a> for Round<'_, 'a> {
    #[inline(always)]
    fn next(&mut self, cx: &mut Cx<'a>, event: Event) -> Next {
        if let Some(event) = apply_event(cx.wave, self.waves[self.turn].status, cx.workgroup, event) {
            return Next::Event(event);
        }
        if cx.workgroup.live() == 0 {
            return self.start_next(cx).map_or(Next::None, Next::Workgroup);
        }
        self.switch_to_next(cx).map_or(Next::None, Next::Wave)
    }

    fn barrier_scheduler(&mut self) -> Option<BarrierScheduler> {
        Some(BarrierScheduler::new(self.waves, self.turn, self.limits, self.cancel))
    }

    fn sync_context(&mut self, cx: &mut Cx<'a>, turn: usize) {
        let Some(WaveSlot { wave, scratch, .. }) = self.waves.get_mut(turn) else { return };
        if let Some(wave) = wave.take() {
            let scratch = std::mem::take(scratch);
            self.switch(cx, wave, scratch, turn);
        }
    }
}
