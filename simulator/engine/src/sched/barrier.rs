//! Scheduling at barriers for compiled code. Compiled code knows where the registers of each wave are, so the
//! context is synchronised only where something reads it.

use super::dispatch::Dispatch;
use super::group::{Status, TURN};
use super::round::{Parked, Round, is_ready};
use wavesim_machine::state::{Wave, Workgroup};

/// The waves of a `Round`, accessed through raw pointers.
pub struct BarrierScheduler {
    waves: *mut Parked<'static>,
    count: usize,
    turn: usize,
    budget_end: u64,
    slice_end: u64,
    dispatch: *const Dispatch<'static>,
}

impl BarrierScheduler {
    /// Captures the present state of a round.
    pub(super) fn of(round: &mut Round<'_, '_>) -> BarrierScheduler {
        BarrierScheduler {
            waves: round.waves.as_mut_ptr().cast(),
            count: round.waves.len(),
            turn: round.turn,
            budget_end: round.budget_end,
            slice_end: round.slice_end,
            dispatch: std::ptr::from_ref(round.dispatch).cast(),
        }
    }

    /// The index of the wave whose turn it is.
    pub fn turn(&self) -> usize {
        self.turn
    }

    /// Marks the wave whose turn it is as waiting for a barrier (its PC is already past the instruction) and
    /// schedules the next wave, as `Waves::next` does. Returns that wave and the instruction count up to
    /// which it may run. Cancellation is checked once a round.
    ///
    /// # Safety
    /// The round is alive and has not been used since this value was created. No references to the
    /// workgroup's waves exist.
    #[inline(always)]
    pub unsafe fn wait(
        &mut self,
        barrier: usize,
        group: &Workgroup,
        instructions: u64,
    ) -> Option<(*mut Wave, u64)> {
        // SAFETY: the caller guarantees that the round is alive and unaliased; `turn` stays below `count`,
        // the number of waves.
        unsafe {
            *(*self.waves.add(self.turn)).status = Status::Waiting(barrier);
            let end = instructions + TURN;
            if end > self.budget_end {
                return None;
            }
            let mut turn = self.turn;
            loop {
                turn += 1;
                if turn == self.count {
                    // The order stays the same from round to round.
                    if instructions >= self.slice_end || (*self.dispatch).is_cancelled() {
                        return None;
                    }
                    turn = 0;
                }
                let parked = &mut *self.waves.add(turn);
                if is_ready(&mut *parked.pointer, parked.status, group) {
                    self.turn = turn;
                    return Some((parked.pointer, end));
                }
                if turn == self.turn {
                    return None;
                }
            }
        }
    }
}
