//! Virtual memory management: addresses that the program reserves, and memory that it maps there.

use crate::ffi::{In, Out};
use crate::gpu::{Gpu, gpu, gpu_at, gpus, lock};
use crate::status::{Failure, Outcome, Status, call};
use crate::stream::{Handle, new_handle};
use std::collections::{BTreeMap, HashMap};
use std::ffi::c_int;
use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd, IntoRawFd};
use std::sync::{Arc, Mutex};
use wavesim_runtime::Device;
use wavesim_runtime::virtual_memory::{Access, AddressRange, PhysicalMemory};

/// Granularity of sizes and addresses in bytes: the smallest, and the one that is recommended.
const MINIMUM: usize = 4096;
const RECOMMENDED: usize = 2 << 20;

/// Name of the memory in messages.
pub const MAPPED_NAME: &str = "hipMemMap";

/// `hipMemAllocationTypePinned`.
pub const PINNED: c_int = 1;
/// `hipMemLocationTypeDevice`.
const ON_DEVICE: c_int = 1;
/// `hipMemHandleTypePosixFileDescriptor`.
const FILE_DESCRIPTOR: c_int = 1;
/// Values of `hipMemAccessFlags`.
pub const NO_ACCESS: c_int = 0;
pub const READ: c_int = 1;
pub const READ_WRITE: c_int = 3;

/// `hipMemLocation`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct Location {
    kind: c_int,
    id: c_int,
}

impl Location {
    /// Returns the location of a device.
    pub fn of_device(id: c_int) -> Location {
        Location { kind: ON_DEVICE, id }
    }

    /// Returns the device.
    pub fn gpu(self) -> Outcome<&'static Gpu> {
        if self.kind != ON_DEVICE {
            return Err(Status::INVALID_VALUE.because("memory is on devices only (hipMemLocationTypeDevice)"));
        }
        gpu_at(self.id).map_err(|_| Status::INVALID_VALUE.into())
    }

    /// Returns the ordinal of the device, or `hipCpuDeviceId`: all other locations are memory of the host.
    pub fn device_or_host(self) -> c_int {
        if self.kind == ON_DEVICE { self.id } else { -1 }
    }

    /// Returns the device, for functions to which an unknown one is an error of its own.
    pub fn peer(self) -> Outcome<&'static Gpu> {
        if self.kind == ON_DEVICE { gpu_at(self.id) } else { self.gpu() }
    }
}

/// `hipMemAllocationProp`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct Properties {
    kind: c_int,
    handle_type: c_int,
    location: Location,
    _windows_attributes: usize,
    compression: u8,
    remote_access: u8,
    usage: u16,
}

/// `hipMemAccessDesc`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct AccessDescription {
    /// The device.
    pub location: Location,
    /// `hipMemAccessFlags`.
    pub flags: c_int,
}

/// Memory of a device that has a handle.
struct Physical {
    memory: Arc<PhysicalMemory>,
    properties: Properties,
    /// How often the program must still release it.
    references: u32,
}

#[derive(Default)]
struct Tables {
    /// Memory whose handle is valid, or which is mapped.
    physical: HashMap<Handle, Physical>,
    /// Reserved addresses, by the first one.
    ranges: BTreeMap<u64, Arc<AddressRange>>,
}

static TABLES: Mutex<Option<Tables>> = Mutex::new(None);

/// Calls `body` with the tables.
fn with<T>(body: impl FnOnce(&mut Tables) -> Outcome<T>) -> Outcome<T> {
    body(lock(&TABLES).get_or_insert_default())
}

impl Tables {
    fn of_handle(&mut self, handle: Handle) -> Outcome<&mut Physical> {
        let found = self.physical.get_mut(&handle).filter(|physical| physical.references != 0);
        found.ok_or(Status::INVALID_VALUE.into())
    }

    fn insert(&mut self, memory: PhysicalMemory, properties: Properties) -> Handle {
        self.forget_unused();
        let handle = new_handle();
        let physical = Physical { memory: Arc::new(memory), properties, references: 1 };
        self.physical.insert(handle, physical);
        handle
    }

    /// Forgets memory that has been released and is not mapped.
    fn forget_unused(&mut self) {
        self.physical
            .retain(|_, physical| physical.references != 0 || Arc::strong_count(&physical.memory) > 1);
    }

    fn range(&self, address: u64) -> Outcome<&Arc<AddressRange>> {
        let found = self.ranges.range(..=address).next_back();
        let found = found.filter(|(start, range)| address - **start < range.len());
        found.map(|(_, range)| range).ok_or(Status::INVALID_VALUE.into())
    }
}

/// Returns the size of the memory of a device that has handles or is mapped, in bytes.
pub fn allocated(gpu: &Gpu) -> u64 {
    let mut tables = lock(&TABLES);
    let tables = tables.get_or_insert_default();
    tables.forget_unused();
    let on_device = tables.physical.values().filter(|p| p.properties.location.id == gpu.ordinal());
    on_device.map(|p| p.memory.len()).sum()
}

/// Waits for all work, which may use what is taken away.
fn wait() -> Outcome {
    gpus()?.iter().try_for_each(|gpu| gpu.streams.wait())
}

/// Checks the properties of memory, and returns its device.
fn check(properties: &Properties) -> Outcome<&'static Gpu> {
    if properties.kind != PINNED {
        return Err(Status::INVALID_VALUE.because("memory is pinned (hipMemAllocationTypePinned)"));
    }
    properties.location.gpu()
}

/// `hipMemGetAllocationGranularity`.
pub unsafe extern "C" fn hipMemGetAllocationGranularity(
    granularity: Out<usize>,
    properties: In<Properties>,
    option: c_int,
) -> c_int {
    call("hipMemGetAllocationGranularity", || {
        check(&properties.get()?)?;
        match option {
            0 => granularity.put(MINIMUM),
            1 => granularity.put(RECOMMENDED),
            _ => Err(Status::INVALID_VALUE.into()),
        }
    })
}

/// `hipMemCreate`.
pub unsafe extern "C" fn hipMemCreate(
    handle: Out<Handle>,
    len: usize,
    properties: In<Properties>,
    _flags: u64,
) -> c_int {
    call("hipMemCreate", || {
        let properties = properties.get()?;
        let gpu = check(&properties)?;
        if handle.is_null() || len == 0 || !len.is_multiple_of(MINIMUM) {
            return Err(Status::INVALID_VALUE.into());
        }
        if len as u64 > gpu.free_bytes() {
            return Err(Status::OUT_OF_MEMORY.into());
        }
        let memory = PhysicalMemory::new(len as u64)?;
        handle.put(with(|tables| Ok(tables.insert(memory, properties)))?)
    })
}

/// `hipMemRelease`. Mappings keep the memory.
pub unsafe extern "C" fn hipMemRelease(handle: Handle) -> c_int {
    call("hipMemRelease", || {
        with(|tables| {
            tables.of_handle(handle)?.references -= 1;
            tables.forget_unused();
            Ok(())
        })
    })
}

/// `hipMemRetainAllocationHandle`.
pub unsafe extern "C" fn hipMemRetainAllocationHandle(handle: Out<Handle>, address: u64) -> c_int {
    call("hipMemRetainAllocationHandle", || {
        if handle.is_null() {
            return Err(Status::INVALID_VALUE.into());
        }
        let found = with(|tables| {
            let memory = tables.range(address)?.memory(address).map_err(wrong)?;
            let same = |(_, physical): &(&Handle, &mut Physical)| Arc::ptr_eq(&physical.memory, &memory);
            let (handle, physical) = tables.physical.iter_mut().find(same).ok_or(Status::INVALID_VALUE)?;
            physical.references += 1;
            Ok(*handle)
        })?;
        handle.put(found)
    })
}

/// `hipMemGetAllocationPropertiesFromHandle`.
pub unsafe extern "C" fn hipMemGetAllocationPropertiesFromHandle(
    properties: Out<Properties>,
    handle: Handle,
) -> c_int {
    call("hipMemGetAllocationPropertiesFromHandle", || {
        properties.put(with(|tables| Ok(tables.of_handle(handle)?.properties))?)
    })
}

/// `hipMemAddressReserve`. The wanted address is a hint, which is not followed.
pub unsafe extern "C" fn hipMemAddressReserve(
    pointer: Out<u64>,
    len: usize,
    alignment: usize,
    _wanted: u64,
    _flags: u64,
) -> c_int {
    call("hipMemAddressReserve", || {
        if pointer.is_null() {
            return Err(Status::INVALID_VALUE.into());
        }
        // Of wrong sizes and alignments, ROCm's runtime says that there is no memory.
        let range = AddressRange::reserve(len as u64, alignment as u64, MAPPED_NAME)
            .map_err(|error| Status::OUT_OF_MEMORY.because(error.to_string()))?;
        let address = range.address();
        with(|tables| {
            tables.ranges.insert(address, range);
            Ok(())
        })?;
        pointer.put(address)
    })
}

/// `hipMemAddressFree`.
pub unsafe extern "C" fn hipMemAddressFree(address: u64, len: usize) -> c_int {
    call("hipMemAddressFree", || {
        wait()?;
        let range = with(|tables| {
            let range = tables.ranges.get(&address).filter(|range| range.len() == len as u64);
            let range = range.ok_or(Status::INVALID_VALUE)?;
            if !range.is_empty() {
                return Err(Status::INVALID_VALUE.because("memory is still mapped at these addresses"));
            }
            tables.ranges.remove(&address).ok_or(Status::INVALID_VALUE.into())
        })?;
        drop(range);
        Ok(())
    })
}

/// A change that the state of the addresses does not permit is an error of the arguments.
fn wrong(error: impl std::fmt::Display) -> Failure {
    Status::INVALID_VALUE.because(error.to_string())
}

/// `hipMemMap`.
pub unsafe extern "C" fn hipMemMap(
    address: u64,
    len: usize,
    offset: usize,
    handle: Handle,
    _flags: u64,
) -> c_int {
    call("hipMemMap", || {
        with(|tables| {
            let memory = tables.of_handle(handle)?.memory.clone();
            tables.range(address)?.map(address, len as u64, memory, offset as u64).map_err(wrong)
        })
    })
}

/// `hipMemUnmap`. Waits for all work.
pub unsafe extern "C" fn hipMemUnmap(address: u64, len: usize) -> c_int {
    call("hipMemUnmap", || {
        wait()?;
        let devices: Vec<Device> = gpus()?.iter().map(|gpu| gpu.device.clone()).collect();
        with(|tables| {
            tables.range(address)?.unmap(address, len as u64, &devices).map_err(wrong)?;
            tables.forget_unused();
            Ok(())
        })
    })
}

/// `hipMemSetAccess`.
pub unsafe extern "C" fn hipMemSetAccess(
    address: u64,
    len: usize,
    descriptions: In<AccessDescription>,
    count: usize,
) -> c_int {
    call("hipMemSetAccess", || {
        if count == 0 {
            return Err(Status::INVALID_VALUE.into());
        }
        // SAFETY: the caller of the API passes an array of this length.
        let descriptions = unsafe { descriptions.list(count)? };
        for description in descriptions {
            let device = &description.location.gpu()?.device;
            let access = match description.flags {
                NO_ACCESS => None,
                READ => Some(Access::Read),
                READ_WRITE => Some(Access::ReadWrite),
                _ => return Err(Status::INVALID_VALUE.into()),
            };
            with(|tables| {
                tables.range(address)?.set_access(address, len as u64, device, access).map_err(wrong)
            })?;
        }
        Ok(())
    })
}

/// `hipMemGetAccess`.
pub unsafe extern "C" fn hipMemGetAccess(flags: Out<u64>, location: In<Location>, address: u64) -> c_int {
    call("hipMemGetAccess", || {
        let ordinal = location.get()?.gpu()?.device.ordinal();
        let access = with(|tables| tables.range(address)?.access(address, ordinal).map_err(wrong))?;
        flags.put(match access {
            None => NO_ACCESS,
            Some(Access::Read) => READ,
            Some(Access::ReadWrite) => READ_WRITE,
        } as u64)
    })
}

/// `hipMemExportToShareableHandle`. Stores a file descriptor, which the program closes.
pub unsafe extern "C" fn hipMemExportToShareableHandle(
    shareable: Out<c_int>,
    handle: Handle,
    kind: c_int,
    _flags: u64,
) -> c_int {
    call("hipMemExportToShareableHandle", || {
        if kind != FILE_DESCRIPTOR || shareable.is_null() {
            return Err(Status::INVALID_VALUE.into());
        }
        let file = with(|tables| {
            let physical = tables.of_handle(handle)?;
            physical.memory.file().try_clone().map_err(|_| Status::OPERATING_SYSTEM.into())
        })?;
        shareable.put(file.into_raw_fd())
    })
}

/// `hipMemImportFromShareableHandle`. The memory belongs to the current device. `shareable` is the file descriptor, as
/// since HIP 7, or the address of one, as before.
pub unsafe extern "C" fn hipMemImportFromShareableHandle(
    handle: Out<Handle>,
    shareable: In<c_int>,
    kind: c_int,
) -> c_int {
    /// No process has as many files, and none has memory at lower addresses.
    const DESCRIPTORS: usize = 1 << 16;
    call("hipMemImportFromShareableHandle", || {
        if kind != FILE_DESCRIPTOR || handle.is_null() {
            return Err(Status::INVALID_VALUE.into());
        }
        let descriptor = match shareable.address() {
            descriptor @ 0..DESCRIPTORS => descriptor as c_int,
            _ => shareable.get()?,
        };
        if descriptor < 0 {
            return Err(Status::INVALID_VALUE.into());
        }
        // SAFETY: the caller of the API passes a file that is open during the call.
        let file = unsafe { BorrowedFd::borrow_raw(descriptor) }.as_fd().try_clone_to_owned();
        let memory = PhysicalMemory::of_file(File::from(file.map_err(wrong)?)).map_err(wrong)?;
        let location = Location { kind: ON_DEVICE, id: gpu()?.ordinal() };
        let properties = Properties {
            kind: PINNED,
            handle_type: FILE_DESCRIPTOR,
            location,
            _windows_attributes: 0,
            compression: 0,
            remote_access: 0,
            usage: 0,
        };
        handle.put(with(|tables| Ok(tables.insert(memory, properties)))?)
    })
}
