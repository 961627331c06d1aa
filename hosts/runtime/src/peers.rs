//! Several devices in one process: whose memory the kernels of a device can access, and memory that all can access.

use crate::device::Inner;
use crate::launch::lock;
use crate::memory::Allocation;
use crate::{Device, Error, MemoryRange, Settings, Target};
use std::fmt;
use std::sync::{Arc, Mutex, OnceLock, Weak};
use wavesim::check::Written;

/// What the devices of a process have in common.
#[derive(Default)]
pub(crate) struct ProcessDevices {
    /// All devices, by ordinal. Not set if there is only one.
    members: OnceLock<Vec<Weak<Inner>>>,
    /// Written bytes of the allocations whose contents are undefined at first.
    pub(crate) written: Arc<Mutex<Written>>,
}

impl ProcessDevices {
    fn devices(&self) -> impl Iterator<Item = Device> {
        let members = self.members.get().map_or(&[][..], Vec::as_slice);
        members.iter().filter_map(|member| Some(Device { inner: member.upgrade()? }))
    }
}

/// The allocations of the peers whose memory a device can access.
#[derive(Default)]
pub(crate) struct PeerMemory {
    pub(crate) allocations: Vec<Arc<Allocation>>,
    /// Changes with every change of the peers' memory. The sum of their generations, which only increase.
    pub(crate) generation: u64,
}

/// Memory of another device, accessed by a kernel whose device has no access to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Foreign {
    /// The address.
    pub address: u64,
    /// The allocation.
    pub range: MemoryRange,
    /// Ordinal of the device that it belongs to.
    pub owner: usize,
    /// Ordinal of the device whose kernel has accessed it.
    pub device: usize,
}

impl fmt::Display for Foreign {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (owner, device, range) = (self.owner, self.device, &self.range);
        write!(
            f,
            "0x{:x} is in `{}` ({} bytes at 0x{:x}) of device {owner}, to which device {device} has not enabled peer access",
            self.address, range.name, range.len, range.address
        )
    }
}

impl Device {
    /// Opens all devices that the settings describe: those of [`Settings::devices`], or one for
    /// [`Settings::target`]. Each has memory and threads of its own.
    pub fn open_all(settings: &Settings) -> Result<Vec<Device>, Error> {
        let one = [settings.target.clone().unwrap_or_else(|| Target::DEFAULT.to_string())];
        let names = if settings.devices.is_empty() { &one[..] } else { &settings.devices };
        let group = Arc::new(ProcessDevices::default());
        let open = |(ordinal, name): (usize, &String)| Device::open_in(name, settings, ordinal, &group);
        let devices = names.iter().enumerate().map(open).collect::<Result<Vec<Device>, Error>>()?;
        if devices.len() > 1 {
            let members = devices.iter().map(|device| Arc::downgrade(&device.inner)).collect();
            // The group is new, so nobody has set its members.
            let _ = group.members.set(members);
        }
        Ok(devices)
    }

    /// Returns the index of the device among those of [`Device::open_all`]; otherwise 0.
    pub fn ordinal(&self) -> usize {
        self.inner.ordinal
    }

    /// Returns the other devices that were opened with this one.
    fn others(&self) -> impl Iterator<Item = Device> {
        self.inner.group.devices().filter(|other| other.ordinal() != self.ordinal())
    }

    /// Lets kernels of this device access the memory of another one. Returns false if they could already.
    pub fn enable_peer(&self, peer: &Device) -> bool {
        let mut peers = lock(&self.inner.peers);
        let new = !peers.contains(&peer.ordinal());
        if new {
            peers.push(peer.ordinal());
            drop(peers);
            self.change_memory();
        }
        new
    }

    /// Reverts [`Device::enable_peer`]. Returns false if kernels have no access.
    pub fn disable_peer(&self, peer: &Device) -> bool {
        let mut peers = lock(&self.inner.peers);
        let before = peers.len();
        peers.retain(|ordinal| *ordinal != peer.ordinal());
        let removed = peers.len() < before;
        drop(peers);
        if removed {
            self.change_memory();
        }
        removed
    }

    /// Allocates zeroed memory that the kernels of all devices of the group can access. [`Device::free`] on any of
    /// them frees it.
    pub fn alloc_shared(&self, len: u64, name: &str) -> Result<u64, Error> {
        let allocation = Arc::new(Allocation::new(len, name)?);
        let address = allocation.address();
        self.others().for_each(|other| other.register_allocation(allocation.clone()));
        self.register_allocation(allocation);
        Ok(address)
    }

    /// Takes an allocation that this device has freed away from the others, if it was shared.
    pub(crate) fn free_shared(&self, allocation: &Arc<Allocation>) {
        self.others().for_each(|other| other.forget_allocation(allocation));
    }

    /// Returns the allocation or mapped range that contains an address, with its device: this one if it can access
    /// it without being a peer, otherwise another one.
    pub fn locate(&self, address: u64) -> Option<(Device, MemoryRange)> {
        let own = self.find(address).map(|range| (self.clone(), range));
        own.or_else(|| self.others().find_map(|other| other.find(address).map(|range| (other, range))))
    }

    /// Returns memory of another device that contains an address and that kernels of this device cannot access.
    pub fn find_foreign(&self, address: u64) -> Option<Foreign> {
        let (owner, range) = self.locate(address)?;
        let (owner, device) = (owner.ordinal(), self.ordinal());
        let foreign = owner != device && !lock(&self.inner.peers).contains(&owner);
        foreign.then_some(Foreign { address, range, owner, device })
    }

    /// Returns what kernels can access through peers.
    pub(crate) fn peer_memory(&self) -> PeerMemory {
        let peers = lock(&self.inner.peers).clone();
        let mut memory = PeerMemory::default();
        for peer in self.inner.group.devices().filter(|other| peers.contains(&other.ordinal())) {
            let (allocations, generation) = peer.allocations();
            memory.allocations.extend(allocations);
            memory.generation += generation;
        }
        memory
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Launch;
    use wavesim::loader::assembly::AssemblyOptions;

    #[test]
    fn peers_need_access() {
        let settings = Settings { devices: vec!["gfx1100".into(), "gfx1100".into()], ..Settings::default() };
        let [first, second] = &Device::open_all(&settings).unwrap()[..] else { panic!() };
        let source = include_str!("../tests/kernels.s");
        let object = AssemblyOptions::default().assemble("kernels.s", source).unwrap().object;
        let kernel = first.load(&object).unwrap().kernel("iota").unwrap();
        let launch =
            |address: u64| kernel.launch(&Launch::new([1; 3], [32, 1, 1]), &address.to_le_bytes()).map(drop);

        let theirs = second.alloc(128, "theirs").unwrap();
        let error = launch(theirs).unwrap_err().to_string();
        let note = format!(
            "0x{theirs:x} is in `theirs` (128 bytes at 0x{theirs:x}) of device 1, to which device 0 has not enabled peer access"
        );
        assert!(error.contains(&note), "{error}");
        assert!(first.enable_peer(second) && !first.enable_peer(second));
        launch(theirs).unwrap();
        let mut last = [0; 4];
        second.read(theirs + 31 * 4, &mut last).unwrap();
        assert_eq!(u32::from_le_bytes(last), 31);
        // What a peer allocates or frees later counts, too.
        let later = second.alloc(128, "later").unwrap();
        launch(later).unwrap();
        second.free(later).unwrap();
        assert!(launch(later).is_err());
        // Access has a direction, and ends.
        assert!(!second.disable_peer(first) && first.disable_peer(second));
        assert!(launch(theirs).is_err());

        let shared = second.alloc_shared(128, "shared").unwrap();
        launch(shared).unwrap();
        first.free(shared).unwrap();
        assert!(second.find(shared).is_none() && second.free(shared).is_err());
        assert_eq!(second.locate(theirs).map(|(device, _)| device.ordinal()), Some(1));
    }
}
