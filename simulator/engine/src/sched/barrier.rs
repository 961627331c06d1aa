//! Scheduling at barriers for compiled code. Compiled code knows where the registers of each wave are, so the
//! context is synchronised only where something reads it.

use super::next_ready::{Limits, next_ready};
use super::slot::{Status, WaveSlot, is_ready};
use std::ptr::NonNull;
use std::sync::atomic::AtomicBool;
use wavesim_machine::state::{Wave, Workgroup};

/// The waves of a `Round`, accessed through raw pointers.
pub struct BarrierScheduler {
    waves: *mut WaveSlot<'static>,
    count: usize,
    turn: usize,
    limits: Limits,
    cancel: Option<NonNull<AtomicBool>>,
}

impl BarrierScheduler {
    /// Captures the present state of a round.
    pub(super) fn new(
        waves: &mut [WaveSlot<'_>],
        turn: usize,
        limits: Limits,
        cancel: Option<&AtomicBool>,
    ) -> BarrierScheduler {
        let (count, waves) = (waves.len(), waves.as_mut_ptr().cast());
        BarrierScheduler { waves, count, turn, limits, cancel: cancel.map(NonNull::from) }
    }

    /// The index of the wave whose turn it is.
    pub fn turn(&self) -> usize {
        self.turn
    }

    /// Marks the wave whose turn it is as waiting for a barrier (its PC is already past the instruction) and
    /// schedules the next wave, as `Waves::next` does. Returns that wave and the instruction count up to
    /// which it may run.
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
        // SAFETY: the contract is that of `stop`.
        unsafe { self.stop(Status::Waiting(barrier), group, instructions) }
    }

    /// As [`BarrierScheduler::wait`], but the wave, which is not the last one, has ended and has joined this barrier.
    ///
    /// # Safety
    /// As for [`BarrierScheduler::wait`].
    #[inline(always)]
    pub unsafe fn end(
        &mut self,
        joined: u32,
        group: &mut Workgroup,
        instructions: u64,
    ) -> Option<(*mut Wave, u64)> {
        group.end_wave(joined);
        // SAFETY: the contract is that of `stop`.
        unsafe { self.stop(Status::Ended, group, instructions) }
    }

    /// # Safety
    /// As for [`BarrierScheduler::wait`].
    #[inline(always)]
    unsafe fn stop(
        &mut self,
        status: Status,
        group: &Workgroup,
        instructions: u64,
    ) -> Option<(*mut Wave, u64)> {
        // SAFETY: the caller guarantees that the round is alive and unaliased; `turn` stays below `count`,
        // the number of waves.
        unsafe {
            *(*self.waves.add(self.turn)).status = status;
            let waves = self.waves;
            let cancel = self.cancel.map(|cancel| cancel.as_ref());
            let (turn, end) = next_ready(self.turn, self.count, self.limits, cancel, instructions, |turn| {
                let parked = &mut *waves.add(turn);
                is_ready(&mut *parked.pointer, parked.status, group)
            })?;
            self.turn = turn;
            Some(((*waves.add(turn)).pointer, end))
        }
    }
}
