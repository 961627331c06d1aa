//! Rounds: the waves of a workgroup run one after the other, by one context. Where waves meet at barriers after a few instructions, a
//! context for each turn would cost more than they do.

use super::dispatch::{Dispatch, MAX_WAVES};
use super::group::{Slot, Status, TURN};
use super::ring::Ring;
use crate::interp::{Next, Waves};
use smallvec::SmallVec;
use wavesim_machine::exec::machine_ops::Event;
use wavesim_machine::exec::rt::Cx;
use wavesim_machine::state::{Wave, Workgroup};

/// What remains of a round, and the rounds after it, where the order of waves does not change.
pub struct Round<'r, 'a> {
    /// The waves of the workgroup, in the order of their turns.
    pub waves: &'r mut [Parked<'a>],
    /// The place in `waves` of the one that runs, or ran last.
    pub turn: usize,
    /// The count of instructions at which the budget is used up that was taken so far.
    pub allowed: u64,
    /// The count from which on no other round begins.
    pub slice: u64,
    /// What runs, and whether it is to end.
    pub dispatch: &'r Dispatch<'r>,
}

/// A wave that does not run now; the one that runs leaves its place empty.
pub struct Parked<'a> {
    wave: Option<&'a mut Wave>,
    /// The wave, wherever it is.
    pub(super) any: *mut Wave,
    scratch: &'a mut [u8],
    pub(super) status: &'a mut Status,
}

/// The waves of a workgroup in an order, which has each of them once. Each has as many bytes of scratch.
#[inline(always)]
pub fn park<'a>(
    slots: &'a mut [Slot],
    mut scratch: &'a mut [u8],
    per_wave: usize,
    order: &[usize],
) -> SmallVec<[Parked<'a>; MAX_WAVES]> {
    let mut waves = SmallVec::new();
    for Slot { wave, status } in slots {
        let (own, rest) = scratch.split_at_mut(per_wave);
        scratch = rest;
        let any = &raw mut *wave;
        waves.push(Parked { wave: Some(wave), any, scratch: own, status });
    }
    if order.iter().enumerate().any(|(turn, at)| turn != *at) {
        let mut by_number: Vec<Option<Parked<'a>>> = waves.drain(..).map(Some).collect();
        waves.extend(order.iter().filter_map(|at| by_number.get_mut(*at)?.take()));
    }
    waves
}

impl<'a> Round<'_, 'a> {
    /// Takes the wave whose turn it is, and its scratch. `None` if it is taken already.
    pub fn take(&mut self) -> Option<(&'a mut Wave, &'a mut [u8])> {
        let parked = &mut self.waves[self.turn];
        Some((parked.wave.take()?, std::mem::take(&mut parked.scratch)))
    }

    /// A wave takes the place of the one in `cx`.
    #[inline(always)]
    fn switch(&mut self, cx: &mut Cx<'a>, wave: &'a mut Wave, scratch: &'a mut [u8], turn: usize) {
        let (wave, scratch) = cx.switch(wave, scratch, self.dispatch.program.lowered());
        let parked = &mut self.waves[self.turn];
        (parked.wave, parked.scratch) = (Some(wave), scratch);
        self.turn = turn;
    }

    /// The wave of `cx` does not run now. The next one that is ready takes its place, and runs up to the count that this gives.
    #[inline(always)]
    fn other(&mut self, cx: &mut Cx<'a>) -> Option<u64> {
        let end = cx.instructions + TURN;
        if end > self.allowed || self.dispatch.is_cancelled() {
            return None;
        }
        let mut turn = self.turn;
        loop {
            turn += 1;
            if turn == self.waves.len() {
                // The order stays the same from round to round.
                if cx.instructions >= self.slice {
                    return None;
                }
                turn = 0;
            }
            let Parked { wave, scratch, status, .. } = &mut self.waves[turn];
            match wave.take_if(|wave| ready(wave, status, cx.workgroup)) {
                Some(wave) => {
                    let scratch = std::mem::take(scratch);
                    self.switch(cx, wave, scratch, turn);
                    return Some(end);
                }
                None if turn == self.turn => return ready(cx.wave, status, cx.workgroup).then_some(end),
                None => {}
            }
        }
    }
}

// SAFETY: the wave is replaced by `Cx::switch`; of the rest, only barriers change.
unsafe impl<'a> Waves<'a> for Round<'_, 'a> {
    #[inline(always)]
    fn next(&mut self, cx: &mut Cx<'a>, event: Event) -> Next {
        if let Some(event) = stop(cx.wave, self.waves[self.turn].status, cx.workgroup, event) {
            return Next::Event(event);
        }
        self.other(cx).map_or(Next::None, Next::Wave)
    }

    fn ring(&mut self) -> Option<Ring> {
        Some(Ring::of(self))
    }

    fn catch_up(&mut self, cx: &mut Cx<'a>, turn: usize) {
        let Some(Parked { wave, scratch, .. }) = self.waves.get_mut(turn) else { return };
        if let Some(wave) = wave.take() {
            let scratch = std::mem::take(scratch);
            self.switch(cx, wave, scratch, turn);
        }
    }
}

/// Whether a wave can run; one whose barrier has completed goes on.
#[inline(always)]
pub fn ready(wave: &mut Wave, status: &mut Status, shared: &Workgroup) -> bool {
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

/// What an event changes; gives back a fault.
#[inline(always)]
pub fn stop(wave: &Wave, status: &mut Status, shared: &mut Workgroup, event: Event) -> Option<Event> {
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
