//! The events that stop a wave.

use crate::fault::FaultKind;
use crate::memory::{MemError, Memory};

/// An event that stops a wave, for now or for good.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// S_ENDPGM: the wave has ended.
    EndPgm,
    /// The wave continues when the barrier with this index (`Workgroup::index`) has completed more often than
    /// the wave has passed it.
    BarrierWait(usize),
    /// The wave cannot continue. The scheduler turns this into a [`Fault`](wavesim_state::fault::Fault), which
    /// includes the location. Boxed, because turns end with an event, and most events are barriers.
    Fault(Box<Cause>),
}

/// The cause of a fault.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cause {
    /// [`Fault::kind`](wavesim_state::fault::Fault::kind).
    pub kind: FaultKind,
    /// [`Fault::message`](wavesim_state::fault::Fault::message).
    pub message: String,
    /// [`Fault::lane`](wavesim_state::fault::Fault::lane).
    pub lane: Option<u32>,
    /// [`Fault::address`](wavesim_state::fault::Fault::address).
    pub address: Option<u64>,
}

// An event fits in two words, so handlers return it in registers.
const _: () = assert!(size_of::<Event>() == 2 * size_of::<usize>());

impl Event {
    /// Creates a fault without lane and address.
    pub fn fault(kind: FaultKind, message: impl Into<String>) -> Event {
        Event::Fault(Box::new(Cause { kind, message: message.into(), lane: None, address: None }))
    }

    /// Creates the fault of a failed access to global memory.
    pub fn out_of_bounds(memory: &Memory, e: MemError, lane: Option<u32>) -> Event {
        Event::Fault(Box::new(Cause {
            kind: FaultKind::OutOfBounds { size_bytes: e.size_bytes, write: e.write },
            message: memory.explain(&e),
            lane,
            address: Some(memory.own_address(e.address)),
        }))
    }

    /// Creates the fault of an access beyond the lane's scratch; `e.address` is the offset in it.
    pub fn scratch_overflow(e: MemError, lane_bytes: u32, lane: Option<u32>) -> Event {
        let what = if e.write { "store" } else { "load" };
        let MemError { address, size_bytes, write } = e;
        Event::Fault(Box::new(Cause {
            kind: FaultKind::OutOfBounds { size_bytes, write },
            message: format!(
                "{what} of {size_bytes} bytes at scratch offset 0x{address:x} is beyond the lane's {lane_bytes} bytes of scratch"
            ),
            lane,
            address: Some(address),
        }))
    }

    /// Creates the fault of an atomic whose address is not a multiple of its size.
    pub fn misaligned(e: MemError, lane: Option<u32>) -> Event {
        let MemError { address, size_bytes, .. } = e;
        Event::Fault(Box::new(Cause {
            kind: FaultKind::Misaligned { size_bytes },
            message: format!(
                "atomic of {size_bytes} bytes at 0x{address:x}, which is not a multiple of {size_bytes}"
            ),
            lane,
            address: Some(address),
        }))
    }
}
