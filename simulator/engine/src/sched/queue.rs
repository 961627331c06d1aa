//! The queue of a dispatch's workgroups, and workgroups that follow one another in the same round: where one has
//! ended, the next one starts in its place, so that neither the interpreter nor compiled code is left in between.

use super::launch::Dispatch;
use super::slot::{Status, WaveSlot};
use super::start::{InitialRegisters, start};
use std::cell::Cell;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use wavesim_machine::exec::rt::Cx;
use wavesim_machine::state::Workgroup;

/// Clusters that have not started. Threads share it, and each takes several at a time ([`Claims`]).
pub struct Queue {
    /// Number of clusters; without clusters, of workgroups.
    total: u64,
    threads: u64,
    /// Index of the first cluster known to have faulted. Those before it still finish, so that the reported
    /// fault does not depend on the number of threads.
    first_faulty: AtomicU64,
    /// The next cluster to start.
    next: OwnLine<AtomicU64>,
}

/// A value that shares no cache line with others, as long as lines (and the pairs that hosts prefetch) have 128 bytes.
#[repr(align(128))]
struct OwnLine<T>(T);

/// The most clusters that a thread takes at a time: the counter moves from processor to processor with each claim, which
/// takes about a tenth of the time of a workgroup of eight short waves.
const MOST_CLAIMED: u64 = 16;

impl Queue {
    /// Creates the queue of `total` clusters, for this many threads.
    pub fn new(total: u64, threads: usize) -> Queue {
        let (first_faulty, next) = (AtomicU64::new(u64::MAX), OwnLine(AtomicU64::new(0)));
        Queue { total, threads: threads.max(1) as u64, first_faulty, next }
    }

    /// Takes the clusters that a thread starts next: fewer towards the end, so that threads end at the same time.
    fn claim(&self) -> Range<u64> {
        let left = self.total.saturating_sub(self.next.0.load(Ordering::Relaxed));
        let count = (left / (8 * self.threads)).clamp(1, MOST_CLAIMED);
        let first = self.next.0.fetch_add(count, Ordering::Relaxed);
        first.min(self.total)..first.saturating_add(count).min(self.total)
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

/// The clusters that one thread has taken from the queue and not started. It starts them in their order, and takes others
/// after them: of those that have not ended, the first is always running or the next one of its thread.
pub struct Claims<'q> {
    queue: &'q Queue,
    claimed: Cell<(u64, u64)>,
}

impl<'q> Claims<'q> {
    /// Creates the claims of a thread, none so far.
    pub fn new(queue: &'q Queue) -> Claims<'q> {
        Claims { queue, claimed: Cell::new((0, 0)) }
    }

    /// Takes the next cluster that has to run.
    #[inline]
    pub fn take(&self) -> Option<u64> {
        let (mut index, mut end) = self.claimed.get();
        if index == end {
            Range { start: index, end } = self.queue.claim();
        }
        if index == end || self.queue.is_needless(index) {
            return None;
        }
        self.claimed.set((index + 1, end));
        Some(index)
    }
}

/// The workgroups that may start in place of one that ends.
#[derive(Clone, Copy)]
pub struct Followers<'q> {
    /// Where they are taken from; there are no clusters of several workgroups.
    pub claims: &'q Claims<'q>,
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
        let Some(index) = self.followers.claims.take() else { return false };
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
