//! The queue of a dispatch's workgroups, and workgroups that follow one another in the same round: where one has
//! ended, the next one starts in its place, so that neither the interpreter nor compiled code is left in between.

use super::launch::Dispatch;
use super::slot::{Status, WaveSlot};
use super::start::{InitialRegisters, start};
use std::sync::atomic::{AtomicU64, Ordering};
use wavesim_machine::exec::rt::Cx;
use wavesim_machine::state::Workgroup;

/// Clusters that have not started. Threads share it.
pub struct Queue {
    /// Number of clusters; without clusters, of workgroups.
    total: u64,
    /// The next cluster to start.
    next: AtomicU64,
    /// Index of the first cluster known to have faulted. Those before it still finish, so that the reported
    /// fault does not depend on the number of threads.
    first_faulty: AtomicU64,
}

impl Queue {
    /// Creates the queue of `total` clusters.
    pub fn new(total: u64) -> Queue {
        Queue { total, next: AtomicU64::new(0), first_faulty: AtomicU64::new(u64::MAX) }
    }

    /// Takes the next cluster that has to run.
    pub fn take(&self) -> Option<u64> {
        let index = self.next.fetch_add(1, Ordering::Relaxed);
        (index < self.total && !self.is_needless(index)).then_some(index)
    }

    /// Returns whether a cluster before this one has faulted.
    pub fn is_needless(&self, index: u64) -> bool {
        index > self.first_faulty.load(Ordering::Relaxed)
    }

    /// Records that a cluster has faulted.
    pub fn record_fault(&self, index: u64) {
        self.first_faulty.fetch_min(index, Ordering::Relaxed);
    }
}

/// The workgroups that may start in place of one that ends.
#[derive(Clone, Copy)]
pub struct Followers<'q> {
    /// Where they are taken from; there are no clusters of several workgroups.
    pub queue: &'q Queue,
    /// Instructions that each of them runs before it is suspended.
    pub slice: u64,
}

/// What a round needs to start the next workgroup in its place.
pub struct Succession<'r, 'a> {
    pub dispatch: &'a Dispatch<'a>,
    pub followers: Followers<'r>,
    pub initial: &'r mut InitialRegisters,
    /// The workgroup's coordinates.
    pub id: &'r mut [u32; 3],
    /// Its index in the order of starts.
    pub index: &'r mut u64,
}

impl Succession<'_, '_> {
    /// Starts the next workgroup, if there is one: in the waves of the round, of which `cx` has one, and in the
    /// memories of `cx`.
    pub fn start_next(&mut self, waves: &mut [WaveSlot<'_>], cx: &mut Cx<'_>) -> bool {
        let Some(index) = self.followers.queue.take() else { return false };
        self.dispatch.count_cluster();
        let id = self.dispatch.workgroup(index);
        (*self.index, *self.id) = (index, id);
        *cx.workgroup = new_workgroup(self.dispatch, waves.len());
        zero(cx.lds);
        zero(cx.scratch);
        self.initial.set_workgroup(&self.dispatch.shape.init.layout, id, None);
        let mode = cx.wave.mode;
        for WaveSlot { wave, scratch, status, .. } in waves {
            **status = Status::Running;
            zero(scratch);
            let wave = wave.as_deref_mut().unwrap_or(&mut *cx.wave);
            start(self.dispatch, self.initial, wave, wave.id);
        }
        if cx.wave.mode != mode {
            cx.refresh_mode();
        }
        true
    }
}

/// Returns the state of a workgroup that starts with this many waves, in no cluster.
pub fn new_workgroup(dispatch: &Dispatch<'_>, waves: usize) -> Workgroup {
    let mut shared = Workgroup::new(waves as u32);
    let joins = dispatch.program.arch.facts().descriptor.named_barriers;
    shared.set_named_barriers(dispatch.shape.named_barriers, joins);
    shared
}

/// Zeroes a memory. `memset` of no bytes at a dangling address takes 70 ns on hosts with AVX-512: its masked store is
/// slow at an address that is not mapped, although the mask is empty.
pub fn zero(bytes: &mut [u8]) {
    if !bytes.is_empty() {
        bytes.fill(0);
    }
}
