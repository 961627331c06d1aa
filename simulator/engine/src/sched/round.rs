//! Rounds: the waves of a workgroup run one after the other in the same context. Where waves reach barriers
//! after a few instructions, creating a context for each turn would cost more than the turn.

use super::barrier::BarrierScheduler;
use super::dispatch::{Dispatch, MAX_WAVES};
use super::group::{Slot, Status, TURN};
use crate::interp::{Next, Waves};
use smallvec::SmallVec;
use wavesim_machine::exec::machine_ops::Event;
use wavesim_machine::exec::rt::Cx;
use wavesim_machine::state::{Wave, Workgroup};

/// The rest of a round, and the rounds after it, as long as the order of waves stays the same.
pub struct Round<'r, 'a> {
    /// The waves of the workgroup, in the order of their turns.
    pub waves: &'r mut [Parked<'a>],
    /// The index in `waves` of the wave that runs, or ran last.
    pub turn: usize,
    /// The instruction count at which the part of the budget taken so far is used up.
    pub budget_end: u64,
    /// The instruction count at which no further round begins.
    pub slice_end: u64,
    /// The dispatch, which may be cancelled.
    pub dispatch: &'r Dispatch<'r>,
}

/// A wave that is not running. The entry of the running wave is empty.
pub struct Parked<'a> {
    wave: Option<&'a mut Wave>,
    /// Points to the wave, whether it is parked or runs.
    pub(super) pointer: *mut Wave,
    scratch: &'a mut [u8],
    pub(super) status: &'a mut Status,
}

/// Parks all waves of a workgroup in the given order, a permutation of their indices. Each wave gets
/// `per_wave` bytes of scratch.
#[inline(always)]
pub fn park<'a>(
    waves: &mut SmallVec<[Parked<'a>; MAX_WAVES]>,
    slots: &'a mut [Slot],
    mut scratch: &'a mut [u8],
    per_wave: usize,
    order: &[usize],
) {
    for Slot { wave, status } in slots {
        let (own, rest) = scratch.split_at_mut(per_wave);
        scratch = rest;
        let pointer = &raw mut *wave;
        waves.push(Parked { wave: Some(wave), pointer, scratch: own, status });
    }
    if order.iter().enumerate().any(|(turn, at)| turn != *at) {
        let mut by_number: Vec<Option<Parked<'a>>> = waves.drain(..).map(Some).collect();
        waves.extend(order.iter().filter_map(|at| by_number.get_mut(*at)?.take()));
    }
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
        let (wave, scratch) = cx.switch(wave, scratch, self.dispatch.program.lowered().pools());
        let parked = &mut self.waves[self.turn];
        (parked.wave, parked.scratch) = (Some(wave), scratch);
        self.turn = turn;
    }

    /// Switches from the wave of `cx`, which has stopped, to the next one that is ready. Returns the
    /// instruction count up to which that one may run.
    #[inline(always)]
    fn switch_to_next(&mut self, cx: &mut Cx<'a>) -> Option<u64> {
        let end = cx.instructions + TURN;
        if end > self.budget_end || self.dispatch.is_cancelled() {
            return None;
        }
        let mut turn = self.turn;
        loop {
            turn += 1;
            if turn == self.waves.len() {
                // The order stays the same from round to round.
                if cx.instructions >= self.slice_end {
                    return None;
                }
                turn = 0;
            }
            let Parked { wave, scratch, status, .. } = &mut self.waves[turn];
            match wave.take_if(|wave| is_ready(wave, status, cx.workgroup)) {
                Some(wave) => {
                    let scratch = std::mem::take(scratch);
                    self.switch(cx, wave, scratch, turn);
                    return Some(end);
                }
                None if turn == self.turn => return is_ready(cx.wave, status, cx.workgroup).then_some(end),
                None => {}
            }
        }
    }
}

// SAFETY: `switch` replaces the wave through `Cx::switch`; otherwise only barriers change.
unsafe impl<'a> Waves<'a> for Round<'_, 'a> {
    #[inline(always)]
    fn next(&mut self, cx: &mut Cx<'a>, event: Event) -> Next {
        if let Some(event) = apply_event(cx.wave, self.waves[self.turn].status, cx.workgroup, event) {
            return Next::Event(event);
        }
        self.switch_to_next(cx).map_or(Next::None, Next::Wave)
    }

    fn barrier_scheduler(&mut self) -> Option<BarrierScheduler> {
        Some(BarrierScheduler::of(self))
    }

    fn sync_context(&mut self, cx: &mut Cx<'a>, turn: usize) {
        let Some(Parked { wave, scratch, .. }) = self.waves.get_mut(turn) else { return };
        if let Some(wave) = wave.take() {
            let scratch = std::mem::take(scratch);
            self.switch(cx, wave, scratch, turn);
        }
    }
}

/// Returns whether a wave can run, and releases it if the barrier that it waits for has completed.
#[inline(always)]
pub fn is_ready(wave: &mut Wave, status: &mut Status, shared: &Workgroup) -> bool {
    if let Status::Waiting(barrier) = *status {
        let completed = shared.barrier(barrier).completed;
        if wave.passed[barrier] == completed {
            return false;
        }
        wave.passed[barrier] = completed;
        *status = Status::Running;
    }
    *status == Status::Running
}

/// Applies an event to a wave's status and its workgroup. Returns the event if it is a fault.
#[inline(always)]
pub fn apply_event(wave: &Wave, status: &mut Status, shared: &mut Workgroup, event: Event) -> Option<Event> {
    match event {
        Event::EndPgm => {
            *status = Status::Ended;
            shared.end_wave(wave.joined);
            None
        }
        Event::BarrierWait(barrier) => {
            *status = Status::Waiting(barrier);
            None
        }
        fault => Some(fault),
    }
}
