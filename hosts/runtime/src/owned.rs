//! Device memory that belongs to an object of a host's API.

use crate::{Device, Error};

/// Device memory, freed when dropped.
pub struct Owned {
    device: Device,
    address: u64,
}

impl Owned {
    /// Allocates `bytes` bytes on a device. Findings name the allocation.
    ///
    /// # Errors
    /// The memory is exhausted.
    pub fn new(device: &Device, bytes: u64, name: &str) -> Result<Owned, Error> {
        Ok(Owned { address: device.alloc(bytes, name)?, device: device.clone() })
    }

    /// Returns the address.
    pub fn address(&self) -> u64 {
        self.address
    }

    /// Returns the device that has the memory.
    pub fn device(&self) -> &Device {
        &self.device
    }
}

impl Drop for Owned {
    fn drop(&mut self) {
        // Freeing fails only for memory that is not allocated.
        let _ = self.device.free(self.address);
    }
}
