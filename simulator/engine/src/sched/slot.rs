//! A wave of a workgroup, and whether it gets turns.

use smallvec::SmallVec;
use wavesim_machine::exec::machine_ops::Event;
use wavesim_machine::state::{Wave, Workgroup};

/// Upper bound of work-items in a workgroup (RDNA4 manual, *Work-groups and Barriers*).
pub const MAX_ITEMS: u64 = 1024;
/// Upper bound of waves in a workgroup, reached with waves of 32 lanes.
pub const MAX_WAVES: usize = MAX_ITEMS as usize / 32;

/// The state of a wave between its turns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// The wave gets a turn in each round.
    Running,
    /// The wave waits at the barrier with this index.
    Waiting(usize),
    /// The wave has executed S_ENDPGM and gets no more turns.
    Ended,
}

/// A wave and its scheduling status.
#[derive(Clone)]
pub struct Slot {
    /// The wave's registers.
    pub wave: Wave,
    /// Whether the wave gets turns.
    pub status: Status,
}

/// A wave that is not running. The entry of the running wave is empty.
pub struct WaveSlot<'a> {
    pub(super) wave: Option<&'a mut Wave>,
    /// Points to the wave, whether it is parked or runs.
    pub(super) pointer: *mut Wave,
    pub(super) scratch: &'a mut [u8],
    pub(super) status: &'a mut Status,
}

/// Parks all waves of a workgroup in the given order, a permutation of their indices. Each wave gets
/// `per_wave` bytes of scratch.
#[inline(always)]
pub fn park<'a>(
    waves: &mut SmallVec<[WaveSlot<'a>; MAX_WAVES]>,
    slots: &'a mut [Slot],
    mut scratch: &'a mut [u8],
    per_wave: usize,
    order: &[usize],
) {
    for Slot { wave, status } in slots {
        let (own, rest) = scratch.split_at_mut(per_wave);
        scratch = rest;
        let pointer = &raw mut *wave;
        waves.push(WaveSlot { wave: Some(wave), pointer, scratch: own, status });
    }
    if order.iter().enumerate().any(|(turn, at)| turn != *at) {
        let mut by_number: Vec<Option<WaveSlot<'a>>> = waves.drain(..).map(Some).collect();
        waves.extend(order.iter().filter_map(|at| by_number.get_mut(*at)?.take()));
    }
}

/// Returns whether a wave can run, and releases it if the barrier that it waits for has completed.
#[inline(always)]
pub fn is_ready(wave: &mut Wave, status: &mut Status, shared: &Workgroup) -> bool {
    if let Status::Waiting(barrier) = *status {
        if !shared.release(barrier, &mut wave.passed) {
            return false;
        }
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
