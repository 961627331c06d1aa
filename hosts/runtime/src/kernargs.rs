//! Pool of kernarg segments, so that launches need no allocation.

use crate::Error;
use crate::memory::{Allocation, HostMemory};
use std::sync::{Arc, Mutex, PoisonError};

/// Size of a slot in bytes. A slot holds a kernarg segment, followed by the dispatch packet.
const SLOT_BYTES: u64 = 8192;
/// Size of the dispatch packet in bytes.
pub const PACKET_BYTES: u64 = 64;
const SLOTS: u64 = 64;

/// A device's pool of slots.
#[derive(Debug)]
pub struct Kernargs {
    _pool: Allocation,
    free: Mutex<Vec<u64>>,
}

/// The kernarg segment and the dispatch packet of one launch.
#[derive(Debug)]
pub struct Slot {
    /// Address of the kernarg segment.
    pub kernarg: u64,
    /// Address of the dispatch packet.
    pub packet: u64,
    /// Size of the segment in bytes.
    len: u64,
    /// The slot's own memory, if the pool is exhausted or the segment does not fit.
    own: Option<Arc<Allocation>>,
}

impl Kernargs {
    pub fn new() -> Result<Kernargs, Error> {
        let pool = Allocation::apart(SLOTS * SLOT_BYTES, "kernarg")?;
        let free = (0..SLOTS).map(|at| pool.address() + at * SLOT_BYTES).rev().collect();
        Ok(Kernargs { _pool: pool, free: Mutex::new(free) })
    }

    /// Returns a slot for a segment of `len` bytes.
    pub fn acquire(&self, len: u64) -> Result<Slot, Error> {
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

    /// Returns a slot to the pool.
    pub fn release(&self, slot: Slot) {
        if slot.own.is_none() {
            self.free.lock().unwrap_or_else(PoisonError::into_inner).push(slot.kernarg);
        }
    }
}

impl Slot {
    /// Whether the slot belongs to the pool, so that later launches use the same addresses.
    pub fn is_pooled(&self) -> bool {
        self.own.is_none()
    }

    /// Returns the memory of the slot, which is independent of the kernel.
    pub fn whole(&self) -> HostMemory {
        self.own.as_ref().map_or_else(|| self.part(self.kernarg, SLOT_BYTES, "kernarg"), |own| own.range())
    }

    /// Returns the exact ranges of the segment and the packet, for bounds checks.
    pub fn exact(&self) -> [HostMemory; 2] {
        let packet = self.part(self.packet, PACKET_BYTES, "dispatch packet");
        [self.part(self.kernarg, self.len.max(1), "kernarg"), packet]
    }

    /// Returns a part of the slot.
    fn part(&self, address: u64, len: u64, name: &str) -> HostMemory {
        debug_assert!(self.kernarg <= address && address + len <= self.packet + PACKET_BYTES);
        let host = std::ptr::with_exposed_provenance_mut(address as usize);
        // SAFETY: the memory belongs to the pool or to `own`. Both outlive the launch, and the launch has
        // exclusive use of its slot.
        unsafe { HostMemory::new(address, host, len, true, name) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_reused() {
        let pool = Kernargs::new().unwrap();
        let first = pool.acquire(16).unwrap();
        let (at, second) = (first.kernarg, pool.acquire(SLOT_BYTES - PACKET_BYTES).unwrap());
        assert!(first.packet + PACKET_BYTES <= second.kernarg || second.packet < first.kernarg);
        pool.release(first);
        assert_eq!(pool.acquire(1).unwrap().kernarg, at);
        let large = pool.acquire(SLOT_BYTES).unwrap();
        assert!(!large.is_pooled() && large.packet == large.kernarg + SLOT_BYTES);
        let all: Vec<Slot> = (0..SLOTS).map(|_| pool.acquire(8).unwrap()).collect();
        assert!(all.iter().filter(|slot| slot.is_pooled()).count() < SLOTS as usize);
    }
}
