//! Register files and LDS that dispatches use in turn.

use super::slot::{Slot, Status};
use std::sync::{Mutex, PoisonError};
use wavesim_machine::state::Wave;

/// Register files and LDS of finished workgroups, kept for later dispatches: a small launch would spend most
/// of its time allocating them. [`start`](super::group::RunningGroup::start) clears them, as it does between the workgroups of a
/// dispatch.
#[derive(Default)]
pub struct Pool(Mutex<Vec<Spare>>);

/// The reusable parts of a finished workgroup.
#[derive(Default)]
pub(super) struct Spare {
    pub slots: Vec<Slot>,
    /// Waves beyond those of the last workgroup.
    pub spare: Vec<Slot>,
    pub lds: Vec<u8>,
}

/// Upper bound of the bytes that a pool keeps: two workgroups of 32 waves of 64 lanes.
const POOL_BYTES: usize = 16 << 20;

impl Pool {
    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Spare>> {
        // The list is consistent even after a panic, because each change is a single insertion or removal.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn take(&self, lanes: u32) -> Option<Spare> {
        let mut list = self.lock();
        let at = list.iter().rposition(|spare| spare.lanes() == Some(lanes))?;
        Some(list.swap_remove(at))
    }

    pub(super) fn put(&self, spare: Spare) {
        let mut list = self.lock();
        if list.iter().chain([&spare]).map(Spare::bytes).sum::<usize>() <= POOL_BYTES {
            list.push(spare);
        }
    }

    /// Returns the number of bytes that the pool holds.
    pub fn bytes(&self) -> usize {
        self.lock().iter().map(Spare::bytes).sum()
    }
}

impl Spare {
    /// Number of lanes of each wave.
    fn lanes(&self) -> Option<u32> {
        self.slots.first().map(|slot| slot.wave.size())
    }

    fn bytes(&self) -> usize {
        let waves = self.slots.iter().chain(&self.spare);
        waves.map(|s| size_of::<Slot>() + s.wave.file_bytes()).sum::<usize>() + self.lds.capacity()
    }

    /// Adjusts the number of waves to `waves`.
    pub fn resize(&mut self, waves: usize, lanes: u32) {
        if self.slots.len() > waves {
            self.spare.extend(self.slots.drain(waves..));
        }
        while self.slots.len() < waves {
            let new = || Slot { wave: Wave::new(lanes), status: Status::Ended };
            self.slots.push(self.spare.pop().unwrap_or_else(new));
        }
    }
}
