//! Turns at barriers for compiled code, which knows where the registers of each wave are: the context is brought up to date only where
//! something looks at it.

use super::dispatch::Dispatch;
use super::group::{Status, TURN};
use super::round::{Parked, Round, ready};
use wavesim_machine::state::{Wave, Workgroup};

/// The waves of a [`Round`].
pub struct Ring {
    waves: *mut Parked<'static>,
    count: usize,
    turn: usize,
    allowed: u64,
    slice: u64,
    dispatch: *const Dispatch<'static>,
}

impl Ring {
    /// Of a round, as it is now.
    pub(super) fn of(round: &mut Round<'_, '_>) -> Ring {
        Ring {
            waves: round.waves.as_mut_ptr().cast(),
            count: round.waves.len(),
            turn: round.turn,
            allowed: round.allowed,
            slice: round.slice,
            dispatch: std::ptr::from_ref(round.dispatch).cast(),
        }
    }

    /// The place of the wave whose turn it is.
    pub fn turn(&self) -> usize {
        self.turn
    }

    /// The wave whose turn it is waits for a barrier; its PC is after the instruction. As `Waves::next`: if it is the turn of another
    /// one now, that one, and the count of instructions up to which it runs. Whether the run is to end is looked at once a round.
    ///
    /// # Safety
    /// The round is there, and has not been used since. Nothing refers to waves of the workgroup.
    #[inline(always)]
    pub unsafe fn wait(
        &mut self,
        barrier: usize,
        group: &Workgroup,
        instructions: u64,
    ) -> Option<(*mut Wave, u64)> {
        // SAFETY: by the contract; turns are counted up to the number of waves.
        unsafe {
            *(*self.waves.add(self.turn)).status = Status::Waiting(barrier);
            let end = instructions + TURN;
            if end > self.allowed {
                return None;
            }
            let mut turn = self.turn;
            loop {
                turn += 1;
                if turn == self.count {
                    // The order stays the same from round to round.
                    if instructions >= self.slice || (*self.dispatch).is_cancelled() {
                        return None;
                    }
                    turn = 0;
                }
                let parked = &mut *self.waves.add(turn);
                if ready(&mut *parked.any, parked.status, group) {
                    self.turn = turn;
                    return Some((parked.any, end));
                }
                if turn == self.turn {
                    return None;
                }
            }
        }
    }
}
