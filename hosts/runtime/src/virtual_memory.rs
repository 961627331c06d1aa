//! Addresses that a program reserves, and memory that it maps there and unmaps.
//!
//! Memory is a file without a name, which any number of address ranges map. A kernel can access what is mapped and has
//! been made accessible to its device; adjacent mappings are one range for it. Reserved addresses without a mapping are
//! zeros that only the process sees, so that an access of the program does not end it.

use crate::launch::lock;
use crate::memory::{PAGE_BYTES, SharedFile, VirtualError};
use crate::{Device, Error, HostMemory};
use memmap2::{MmapOptions, MmapRaw};
use std::collections::BTreeMap;
use std::fs::File;
use std::os::fd::AsRawFd;
use std::sync::{Arc, Mutex};

/// What kernels of a device may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Load.
    Read,
    /// Load and store.
    ReadWrite,
}

/// Memory without an address.
#[derive(Debug)]
pub struct PhysicalMemory {
    file: File,
    len: u64,
}

impl PhysicalMemory {
    /// Allocates zeroed memory. The host commits pages on first access.
    ///
    /// # Errors
    /// [`VirtualError::Page`] unless the size is whole pages, and not zero; [`Error::Shared`] if the host has none.
    pub fn new(len: u64) -> Result<PhysicalMemory, Error> {
        if len == 0 || !len.is_multiple_of(PAGE_BYTES) {
            return Err(VirtualError::Page(len).into());
        }
        let SharedFile(file) = SharedFile::new(len).map_err(Error::Shared)?;
        Ok(PhysicalMemory { file, len })
    }

    /// Accepts a file that [`PhysicalMemory::file`] has returned, in this process or another one.
    ///
    /// # Errors
    /// [`Error::Shared`] for other files, whose pages may disappear.
    pub fn of_file(file: File) -> Result<PhysicalMemory, Error> {
        let len = file.metadata().map_err(Error::Shared)?.len();
        if !SharedFile::is_sealed(&file) {
            return Err(Error::Shared(std::io::Error::other("the file is not memory of wavesim")));
        }
        Ok(PhysicalMemory { file, len })
    }

    /// Returns the file that is the memory.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Returns the size in bytes.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Returns false, since there is no memory of size 0.
    pub fn is_empty(&self) -> bool {
        false
    }
}

/// A part of an address range that has memory.
#[derive(Debug, Clone)]
struct Mapping {
    len: u64,
    memory: Arc<PhysicalMemory>,
    /// What kernels may do, by the ordinal of their device.
    access: BTreeMap<usize, Access>,
}

#[derive(Debug, Default)]
struct State {
    /// The mappings, by address.
    mappings: BTreeMap<u64, Mapping>,
    /// The addresses of the ranges that each device has, by ordinal.
    published: BTreeMap<usize, Vec<u64>>,
}

/// Reserved addresses.
#[derive(Debug)]
pub struct AddressRange {
    map: MmapRaw,
    address: u64,
    len: u64,
    /// Name in messages.
    name: &'static str,
    state: Mutex<State>,
}

impl AddressRange {
    /// Reserves addresses, at a multiple of `alignment` (0 for that of a page).
    ///
    /// # Errors
    /// [`VirtualError::Page`] unless the size is whole pages, and not zero, and the alignment is a power of two;
    /// [`Error::HostMemory`] if the process has no addresses left.
    pub fn reserve(len: u64, alignment: u64, name: &'static str) -> Result<Arc<AddressRange>, Error> {
        if len == 0 || !len.is_multiple_of(PAGE_BYTES) {
            return Err(VirtualError::Page(len).into());
        }
        if alignment != 0 && !alignment.is_power_of_two() {
            return Err(VirtualError::Page(alignment).into());
        }
        let failed = || Error::HostMemory { bytes: len, name: name.to_string() };
        let alignment = alignment.max(PAGE_BYTES);
        // A page after the range separates it from the next one.
        let size = len.checked_add(alignment).and_then(|n| usize::try_from(n).ok()).ok_or_else(failed)?;
        let map = MmapOptions::new().len(size).no_reserve_swap().map_anon().map_err(|_| failed())?;
        let map: MmapRaw = map.into();
        let address = (map.as_mut_ptr().addr() as u64).next_multiple_of(alignment);
        Ok(Arc::new(AddressRange { map, address, len, name, state: Mutex::default() }))
    }

    /// Returns the first address, for the host and for kernels.
    pub fn address(&self) -> u64 {
        self.address
    }

    /// Returns the size in bytes.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Returns true if no memory is mapped.
    pub fn is_empty(&self) -> bool {
        lock(&self.state).mappings.is_empty()
    }

    fn host(&self, address: u64) -> *mut u8 {
        let first = self.map.as_mut_ptr();
        first.wrapping_add((address - first.addr() as u64) as usize)
    }

    /// Checks that a part consists of pages of the range.
    fn check(&self, address: u64, len: u64) -> Result<(), VirtualError> {
        if let Some(wrong) = [address, len].into_iter().find(|n| !n.is_multiple_of(PAGE_BYTES)) {
            return Err(VirtualError::Page(wrong));
        }
        let inside = address >= self.address
            && len != 0
            && (address - self.address).checked_add(len).is_some_and(|end| end <= self.len);
        let (start, reserved) = (self.address, self.len);
        if inside { Ok(()) } else { Err(VirtualError::Outside { address, len, start, reserved }) }
    }

    /// Replaces the pages of a part, by those of a file or by zeros.
    fn set_pages(&self, address: u64, len: u64, file: Option<(&File, u64)>) -> Result<(), Error> {
        let (kind, descriptor, offset) = match file {
            Some((file, offset)) => (libc::MAP_SHARED, file.as_raw_fd(), offset),
            None => (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE, -1, 0),
        };
        let access = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: `check` guarantees that the pages belong to `self.map`. They stay mapped until it is dropped, which
        // unmaps whatever is there.
        let at = unsafe {
            let (to, size) = (self.host(address).cast(), len as usize);
            libc::mmap(to, size, access, kind | libc::MAP_FIXED, descriptor, offset as libc::off_t)
        };
        if at == libc::MAP_FAILED { Err(Error::Shared(std::io::Error::last_os_error())) } else { Ok(()) }
    }

    /// Maps `len` bytes of memory, from an offset on, at an address of the range. Kernels cannot access it yet.
    pub fn map(&self, address: u64, len: u64, memory: Arc<PhysicalMemory>, offset: u64) -> Result<(), Error> {
        self.check(address, len)?;
        if !offset.is_multiple_of(PAGE_BYTES) {
            return Err(VirtualError::Page(offset).into());
        }
        if offset.checked_add(len).is_none_or(|end| end > memory.len) {
            return Err(VirtualError::Memory { offset, len, of: memory.len }.into());
        }
        let mut state = lock(&self.state);
        let before = state.mappings.range(..address + len).next_back();
        if let Some((at, other)) = before.filter(|(at, other)| **at + other.len > address) {
            return Err(VirtualError::Occupied((*at).max(address).min(*at + other.len)).into());
        }
        self.set_pages(address, len, Some((&memory.file, offset)))?;
        state.mappings.insert(address, Mapping { len, memory, access: BTreeMap::new() });
        Ok(())
    }

    /// Takes the memory away from a part, which consists of whole mappings. Running launches are the caller's to wait
    /// for.
    pub fn unmap(self: &Arc<Self>, address: u64, len: u64, devices: &[Device]) -> Result<(), Error> {
        self.check(address, len)?;
        let mut state = lock(&self.state);
        state.mappings_of(address, len)?;
        let kept = state.mappings.split_off(&(address + len));
        let removed = state.mappings.split_off(&address);
        state.mappings.extend(kept);
        devices.iter().for_each(|device| self.publish(&mut state, device));
        let done = self.set_pages(address, len, None);
        // The memory is freed only now that nothing maps it.
        drop(removed);
        done
    }

    /// Sets what kernels of a device may do in a part, which consists of whole mappings; `None` takes the access away.
    pub fn set_access(
        self: &Arc<Self>,
        address: u64,
        len: u64,
        device: &Device,
        access: Option<Access>,
    ) -> Result<(), Error> {
        self.check(address, len)?;
        let mut state = lock(&self.state);
        state.mappings_of(address, len)?;
        for (_, mapping) in state.mappings.range_mut(address..address + len) {
            match access {
                Some(access) => mapping.access.insert(device.ordinal(), access),
                None => mapping.access.remove(&device.ordinal()),
            };
        }
        self.publish(&mut state, device);
        Ok(())
    }

    /// Returns what kernels of a device may do at an address; `None` if they cannot access it.
    ///
    /// # Errors
    /// [`VirtualError::Unmapped`].
    pub fn access(&self, address: u64, ordinal: usize) -> Result<Option<Access>, VirtualError> {
        Ok(lock(&self.state).mapping(address)?.access.get(&ordinal).copied())
    }

    /// Returns the memory at an address.
    ///
    /// # Errors
    /// [`VirtualError::Unmapped`].
    pub fn memory(&self, address: u64) -> Result<Arc<PhysicalMemory>, VirtualError> {
        Ok(lock(&self.state).mapping(address)?.memory.clone())
    }

    /// Gives a device the ranges that its kernels can access.
    fn publish(self: &Arc<Self>, state: &mut State, device: &Device) {
        let ordinal = device.ordinal();
        let mut runs: Vec<(u64, u64, Access)> = Vec::new();
        for (address, mapping) in &state.mappings {
            let Some(access) = mapping.access.get(&ordinal) else { continue };
            match runs.last_mut() {
                Some((start, len, same)) if *start + *len == *address && same == access => {
                    *len += mapping.len
                }
                _ => runs.push((*address, mapping.len, *access)),
            }
        }
        let range = |&(address, len, access): &(u64, u64, Access)| {
            // SAFETY: the pages are mapped while the owner, this value, exists, and any thread may access them.
            let range = unsafe {
                HostMemory::new(address, self.host(address), len, access == Access::ReadWrite, self.name)
            };
            range.owned_by(self.clone())
        };
        let new: Vec<HostMemory> = runs.iter().map(range).collect();
        let old = state.published.insert(ordinal, runs.iter().map(|run| run.0).collect()).unwrap_or_default();
        // SAFETY: as above; the addresses are of this range only, and the runs are disjoint.
        unsafe { device.replace_mapped(&old, new) };
    }
}

impl State {
    fn mapping(&self, address: u64) -> Result<&Mapping, VirtualError> {
        let found = self.mappings.range(..=address).next_back();
        let found = found.filter(|(at, mapping)| address - **at < mapping.len);
        found.map(|(_, mapping)| mapping).ok_or(VirtualError::Unmapped(address))
    }

    /// Checks that a part consists of whole mappings, one after another.
    fn mappings_of(&self, address: u64, len: u64) -> Result<(), VirtualError> {
        let end = address + len;
        let mut at = address;
        while at < end {
            let found = self.mappings.range(..=at).next_back();
            let (start, mapping) = found.ok_or(VirtualError::Unmapped(at))?;
            let (start, len) = (*start, mapping.len);
            if at - start >= len {
                return Err(VirtualError::Unmapped(at));
            }
            if start != at {
                return Err(VirtualError::Partial { address: at, start, len });
            }
            if start + len > end {
                return Err(VirtualError::Partial { address: end, start, len });
            }
            at += len;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Launch, Settings};
    use wavesim::loader::assembly::AssemblyOptions;

    const PART: u64 = 64 << 10;

    #[test]
    fn kernels_access_what_is_mapped_and_accessible() {
        let device = Device::open("gfx1100", &Settings::default()).unwrap();
        let devices = std::slice::from_ref(&device);
        let source = include_str!("../tests/kernels.s");
        let object = AssemblyOptions::default().assemble("kernels.s", source).unwrap().object;
        let kernel = device.load(&object).unwrap().kernel("iota").unwrap();
        // Stores 32 numbers.
        let launch =
            |address: u64| kernel.launch(&Launch::new([1; 3], [32, 1, 1]), &address.to_le_bytes()).map(drop);
        let read = |address: u64| {
            let mut bytes = [0; 4];
            device.read(address, &mut bytes).map(|()| u32::from_le_bytes(bytes))
        };

        let range = AddressRange::reserve(4 * PART, 1 << 21, "reserved").unwrap();
        let start = range.address();
        assert!(start.is_multiple_of(1 << 21) && range.is_empty());
        let memory = Arc::new(PhysicalMemory::new(2 * PART).unwrap());
        range.map(start, PART, memory.clone(), 0).unwrap();
        assert!(launch(start).is_err() && read(start).is_err());
        range.set_access(start, PART, &device, Some(Access::ReadWrite)).unwrap();
        launch(start).unwrap();
        assert_eq!(read(start + 31 * 4).unwrap(), 31);

        // An access across the border of two mappings, which are one range.
        range.map(start + PART, PART, memory.clone(), PART).unwrap();
        assert!(launch(start + PART - 64).is_err());
        range.set_access(start + PART, PART, &device, Some(Access::ReadWrite)).unwrap();
        launch(start + PART - 64).unwrap();
        assert_eq!(
            device.find(start + PART).map(|found| (found.address, found.len)),
            Some((start, 2 * PART))
        );

        // The same memory at another address.
        range.map(start + 3 * PART, PART, memory.clone(), PART).unwrap();
        range.set_access(start + 3 * PART, PART, &device, Some(Access::Read)).unwrap();
        assert_eq!(read(start + 3 * PART).unwrap(), 16);
        assert!(launch(start + 3 * PART).is_err());
        assert_eq!(range.access(start + 3 * PART, 0), Ok(Some(Access::Read)));
        assert_eq!(range.access(start + 2 * PART, 0), Err(VirtualError::Unmapped(start + 2 * PART)));

        // Unmapped memory keeps its contents, and returns at any address.
        range.unmap(start, 2 * PART, devices).unwrap();
        assert!(launch(start).is_err() && read(start + PART).is_err());
        range.map(start + PART, PART, memory, 0).unwrap();
        range.set_access(start + PART, PART, &device, Some(Access::Read)).unwrap();
        assert_eq!(read(start + PART + 31 * 4).unwrap(), 31);
        range.set_access(start + PART, PART, &device, None).unwrap();
        assert!(read(start + PART).is_err());
    }

    #[test]
    fn wrong_parts_are_errors() {
        let range = AddressRange::reserve(4 * PART, 0, "reserved").unwrap();
        let start = range.address();
        let memory = Arc::new(PhysicalMemory::new(2 * PART).unwrap());
        let map = |address, len, offset| match range.map(address, len, memory.clone(), offset) {
            Err(Error::Virtual(error)) => error,
            other => panic!("{other:?}"),
        };
        assert_eq!(map(start + 1, PART, 0), VirtualError::Page(start + 1));
        assert_eq!(map(start, PART, 7), VirtualError::Page(7));
        let outside =
            VirtualError::Outside { address: start + 3 * PART, len: 2 * PART, start, reserved: 4 * PART };
        assert_eq!(map(start + 3 * PART, 2 * PART, 0), outside);
        assert_eq!(
            map(start, 2 * PART, PART),
            VirtualError::Memory { offset: PART, len: 2 * PART, of: 2 * PART }
        );
        range.map(start + PART, 2 * PART, memory.clone(), 0).unwrap();
        assert_eq!(map(start, 2 * PART, 0), VirtualError::Occupied(start + PART));
        let unmap = |address, len| range.unmap(address, len, &[]).unwrap_err().to_string();
        let partial = VirtualError::Partial { address: start + 2 * PART, start: start + PART, len: 2 * PART };
        assert_eq!(unmap(start + PART, PART), partial.to_string());
        assert_eq!(unmap(start + 2 * PART, PART), partial.to_string());
        assert_eq!(unmap(start, PART), VirtualError::Unmapped(start).to_string());
        assert!(PhysicalMemory::new(1).is_err() && AddressRange::reserve(PART, 3, "reserved").is_err());
    }

    #[test]
    fn files_are_memory_of_another_process() {
        let memory = PhysicalMemory::new(PART).unwrap();
        let other = PhysicalMemory::of_file(memory.file().try_clone().unwrap()).unwrap();
        assert_eq!(other.len(), PART);
        assert!(PhysicalMemory::of_file(File::open("/proc/self/exe").unwrap()).is_err());
    }
}
