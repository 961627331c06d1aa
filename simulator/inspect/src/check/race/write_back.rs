//! Write-backs of the L2 cache, which a release to other workgroups needs where a device has several L2 caches.

use super::super::shadow_memory::Record;
use super::clock::VectorClock;
use super::ordering::{DEVICE, Ordering};
use super::{Shadow, WaveState};
use std::ops::Range;
use std::sync::Arc;
use wavesim_isa::arch::facts::Facts;

/// The write-backs of a wave, oldest first.
#[derive(Debug, Default, Clone)]
pub(super) struct WriteBacks(Vec<WriteBack>);

#[derive(Debug, Clone)]
struct WriteBack {
    /// Byte offset of the instruction.
    pc: u32,
    /// The wave's epoch and vector clock when it was issued.
    issued: u32,
    clock: Arc<VectorClock>,
    /// The wave's epoch when it completed; the maximum before that.
    complete: u32,
}

impl WriteBack {
    /// Returns whether this write-back of `wave` follows an access of its workgroup, whose first wave is `first`.
    fn covers(&self, r: &Record, wave: u32, first: u32) -> bool {
        match wave == r.wave {
            true => r.epoch <= self.issued,
            false => r.epoch <= self.clock.epoch_of(first, r.wave),
        }
    }
}

impl WriteBacks {
    /// Records that the oldest write-back of an instruction that is under way has completed.
    #[inline]
    pub fn complete(&mut self, pc: u32, now: u32) {
        if self.0.last().is_some_and(|w| w.complete == u32::MAX) {
            // They complete in order.
            let first = self.0.partition_point(|w| w.complete != u32::MAX);
            if let Some(done) = self.0[first..].iter_mut().find(|w| w.pc == pc) {
                done.complete = now;
            }
        }
    }

    /// Returns whether a write-back of `wave` covers an access of its workgroup, whose first wave is `first`,
    /// and had completed when the wave released `clock`.
    pub fn cover(&self, r: &Record, clock: u32, wave: u32, first: u32) -> bool {
        let complete = self.0.partition_point(|w| w.complete < clock);
        // Later ones cover more.
        self.0[..complete].last().is_some_and(|w| w.covers(r, wave, first))
    }

    /// Like [`WriteBacks::cover`], but the write-back had only been issued.
    pub fn issued(&self, r: &Record, clock: u32, wave: u32, first: u32) -> bool {
        let issued = self.0.partition_point(|w| w.issued < clock);
        self.0[..issued].last().is_some_and(|w| w.covers(r, wave, first))
    }
}

/// What determines whether a store needs a write-back.
#[derive(Clone, Copy)]
pub(super) struct DeviceRelease<'v> {
    /// Byte offsets of the instructions, and their memory-model properties.
    index: &'v [u32],
    orderings: &'v [Ordering],
    waves_per_group: u32,
}

impl DeviceRelease<'_> {
    /// Returns whether an access leaves bytes in the L2 cache that other workgroups do not see: a store of
    /// less than device scope. Atomics execute where all see them.
    pub fn stays_in_cache(&self, r: &Record) -> bool {
        let ordering = self.index.binary_search(&r.pc).ok().map(|at| self.orderings[at]);
        ordering.is_some_and(|o| o.stores && !o.atomic && o.scope < DEVICE)
    }

    /// Returns the numbers of the waves of a wave's workgroup.
    pub fn workgroup(&self, wave: u32) -> Range<u32> {
        let first = (wave - 1) / self.waves_per_group * self.waves_per_group + 1;
        first..first + self.waves_per_group
    }
}

/// Returns what determines whether a store needs a write-back, on architectures that need one.
#[inline(always)]
pub(super) fn device_release<'v>(
    facts: &Facts,
    index: &'v [u32],
    orderings: &'v [Ordering],
    waves_per_group: u32,
) -> Option<DeviceRelease<'v>> {
    facts.release_writes_back.then_some(DeviceRelease { index, orderings, waves_per_group })
}

impl Shadow {
    pub(super) fn device_release(&self) -> Option<DeviceRelease<'_>> {
        device_release(self.facts, &self.index, &self.orderings, self.waves_per_group)
    }
}

impl WaveState {
    /// Records a write-back that the wave has issued.
    pub(super) fn write_back(&mut self, pc: u32) {
        let (issued, clock) = (self.epoch, self.vector.clone());
        self.write_backs.0.push(WriteBack { pc, issued, clock, complete: u32::MAX });
    }
}
