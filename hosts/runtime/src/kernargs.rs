//! Kernarg segments: a pool, so that a launch allocates nothing.

use crate::Error;
use crate::memory::{Allocation, HostMemory};
use std::sync::{Arc, Mutex, PoisonError};

/// Bytes of a slot: a kernarg segment, then the dispatch packet.
const SLOT_BYTES: u64 = 8192;
/// Bytes of the dispatch packet.
pub const PACKET_BYTES: u64 = 64;
const SLOTS: u64 = 64;

/// Slots of a device.
#[derive(Debug)]
pub struct Kernargs {
    pool: Allocation,
    free: Mutex<Vec<u64>>,
}

/// Memory of one launch.
#[derive(Debug)]
pub struct Slot {
    /// Address of the kernarg segment.
    pub kernarg: u64,
    /// Address of the dispatch packet.
    pub packet: u64,
    /// The segment's size.
    len: u64,
    /// Of a segment that has no place in the pool.
    own: Option<Arc<Allocation>>,
}

impl Kernargs {
    pub fn new() -> Result<Kernargs, Error> {
        let pool = Allocation::new(SLOTS * SLOT_BYTES, "kernarg")?;
        let free = (0..SLOTS).map(|at| pool.address() + at * SLOT_BYTES).rev().collect();
        Ok(Kernargs { pool, free: Mutex::new(free) })
    }

    /// All slots, as memory that kernels can access.
    pub fn range(&self) -> HostMemory {
        self.pool.range()
    }

    /// A slot for a segment of `len` bytes.
    pub fn take(&self, len: u64) -> Result<Slot, Error> {
        if len <= SLOT_BYTES - PACKET_BYTES {
            let slot = self.free.lock().unwrap_or_else(PoisonError::into_inner).pop();
            if let Some(kernarg) = slot {
                return Ok(Slot { kernarg, packet: kernarg + SLOT_BYTES - PACKET_BYTES, len, own: None });
            }
        }
        let packet = len.next_multiple_of(PACKET_BYTES);
        let own = Arc::new(Allocation::new(packet + PACKET_BYTES, "kernarg")?);
        Ok(Slot { kernarg: own.address(), packet: own.address() + packet, len, own: Some(own) })
    }

    /// Returns a slot.
    pub fn give_back(&self, slot: Slot) {
        if slot.own.is_none() {
            self.free.lock().unwrap_or_else(PoisonError::into_inner).push(slot.kernarg);
        }
    }
}

impl Slot {
    /// What the pool does not have.
    pub fn extra(&self) -> Option<&Arc<Allocation>> {
        self.own.as_ref()
    }

    /// Exactly the bytes of the segment and of the packet, for checks of bounds.
    pub fn exact(&self) -> [HostMemory; 2] {
        let at = |address: u64, len, name| {
            let host = std::ptr::with_exposed_provenance_mut(address as usize);
            // SAFETY: of the pool or of `own`, which both outlive the launch, and nobody else uses the slot.
            unsafe { HostMemory::new(address, host, len, true, name) }
        };
        [at(self.kernarg, self.len.max(1), "kernarg"), at(self.packet, PACKET_BYTES, "dispatch packet")]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_reused() {
        let pool = Kernargs::new().unwrap();
        let first = pool.take(16).unwrap();
        let (at, second) = (first.kernarg, pool.take(SLOT_BYTES - PACKET_BYTES).unwrap());
        assert!(first.packet + PACKET_BYTES <= second.kernarg || second.packet < first.kernarg);
        pool.give_back(first);
        assert_eq!(pool.take(1).unwrap().kernarg, at);
        let large = pool.take(SLOT_BYTES).unwrap();
        assert!(large.extra().is_some() && large.packet == large.kernarg + SLOT_BYTES);
        let all: Vec<Slot> = (0..SLOTS).map(|_| pool.take(8).unwrap()).collect();
        assert!(all.iter().filter(|slot| slot.extra().is_none()).count() < SLOTS as usize);
    }
}
