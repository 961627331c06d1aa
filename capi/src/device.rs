//! Handles of devices and modules, and launches of raw code.

use crate::error::Error;
use crate::host::AddressSpace;
use crate::object::text;
use crate::{
    WAVESIM_MODE_DEFAULT, wavesim_device, wavesim_launch, wavesim_module, wavesim_outcome, wavesim_status,
};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use wavesim::fault::Fault;
use wavesim::loader::prepared::Modes;
use wavesim::sharing::{MAX_THREADS, Threads};
use wavesim_runtime::raw::{MAX_USER_SGPRS, RawLaunch};
use wavesim_runtime::{self as runtime, Device, HostMemory, MAX_INSTRUCTIONS, Module, Outcome};

/// Objects by handle. Handles are never reused, so a stale handle is always detected.
struct Registry<T> {
    last: u64,
    live: BTreeMap<u64, Arc<Mutex<T>>>,
}

/// A second reference to each device, for cancelling launches: a running call holds the lock of its device in
/// `DEVICES`.
static CANCELLABLE: Mutex<BTreeMap<u64, Device>> = Mutex::new(BTreeMap::new());

static DEVICES: Mutex<Registry<Device>> = Mutex::new(Registry::new());
static MODULES: Mutex<Registry<Loaded>> = Mutex::new(Registry::new());

/// A module with its device. Calls on the module lock the device as well.
struct Loaded {
    module: Module,
    device: Arc<Mutex<Device>>,
}

/// Locks, ignoring poisoning: a panicking call leaves no inconsistent state.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<T> Registry<T> {
    const fn new() -> Registry<T> {
        Registry { last: 0, live: BTreeMap::new() }
    }

    fn insert(&mut self, object: T) -> u64 {
        self.last += 1;
        self.live.insert(self.last, Arc::new(Mutex::new(object)));
        self.last
    }
}

/// Registers a device and returns its handle.
pub fn insert(device: Device) -> wavesim_device {
    let handle = lock(&DEVICES).insert(device.clone());
    lock(&CANCELLABLE).insert(handle, device);
    handle
}

/// Cancels the running launches of a device.
pub fn cancel(handle: wavesim_device) -> Result<(), Error> {
    let device = lock(&CANCELLABLE).get(&handle).cloned().ok_or(Error::NoDevice(handle))?;
    device.cancel();
    Ok(())
}

/// Destroys a device, after waiting for a running launch. Modules keep the device alive, but not its mapped
/// memory.
pub fn remove(handle: wavesim_device) -> Result<(), Error> {
    let device = lock(&DEVICES).live.remove(&handle).ok_or(Error::NoDevice(handle))?;
    lock(&CANCELLABLE).remove(&handle);
    lock(&device).unmap_all();
    Ok(())
}

fn find(handle: wavesim_device) -> Result<Arc<Mutex<Device>>, Error> {
    lock(&DEVICES).live.get(&handle).cloned().ok_or(Error::NoDevice(handle))
}

/// Calls `body` with a device, holding the device's lock.
pub fn with<T>(handle: wavesim_device, body: impl FnOnce(&Device) -> Result<T, Error>) -> Result<T, Error> {
    let device = find(handle)?;
    let device = lock(&device);
    // The device may have been destroyed while this call waited for the lock.
    find(handle)?;
    body(&device)
}

/// Loads a module and returns its handle.
pub fn load(handle: wavesim_device, object: &[u8]) -> Result<wavesim_module, Error> {
    let device = find(handle)?;
    let module = with(handle, |device| Ok(device.load(object)?))?;
    Ok(lock(&MODULES).insert(Loaded { module, device }))
}

/// Unloads a module, after waiting for a running launch of the module.
pub fn remove_module(handle: wavesim_module) -> Result<(), Error> {
    let module = lock(&MODULES).live.remove(&handle).ok_or(Error::NoModule(handle))?;
    drop(lock(&module));
    Ok(())
}

/// Calls `body` with a module, holding the locks of the module and its device.
pub fn with_module<T>(
    handle: wavesim_module,
    body: impl FnOnce(&Module) -> Result<T, Error>,
) -> Result<T, Error> {
    let loaded = lock(&MODULES).live.get(&handle).cloned().ok_or(Error::NoModule(handle))?;
    let loaded = lock(&loaded);
    let _device = lock(&loaded.device);
    body(&loaded.module)
}

/// Maps host memory on a device.
///
/// # Safety
/// The requirements of [`HostMemory::new`] must hold until the memory is unmapped or the device is dropped.
pub unsafe fn map(
    device: &Device,
    address: u64,
    host: *mut u8,
    len: u64,
    writable: bool,
) -> Result<(), Error> {
    // SAFETY: the caller guarantees it.
    let range = unsafe { HostMemory::new(address, host, len, writable, "mapped memory") };
    // SAFETY: the caller guarantees it.
    unsafe { device.map(range) }?;
    Ok(())
}

impl Default for wavesim_launch {
    fn default() -> wavesim_launch {
        wavesim_launch {
            struct_size: size_of::<wavesim_launch>() as u32,
            wave_size: 32,
            code: std::ptr::null(),
            code_bytes: 0,
            code_address: 0,
            entry_offset: 0,
            grid: [1; 3],
            block: [1; 3],
            lds_bytes: 0,
            scratch_bytes: 0,
            user_sgprs: std::ptr::null(),
            user_sgpr_count: 0,
            group_ids: 1,
            item_ids: 0,
            mode: WAVESIM_MODE_DEFAULT,
            max_instructions: MAX_INSTRUCTIONS,
            threads: 0,
            reserved: 0,
        }
    }
}

/// Returns a launch of raw code, with copies of the memory that the pointers in `given` refer to.
///
/// # Safety
/// The requirements of [`AddressSpace::bytes`] must hold for these pointers.
pub unsafe fn raw(memory: &AddressSpace, given: &wavesim_launch) -> Result<RawLaunch, Error> {
    // SAFETY: the caller guarantees it.
    let code = unsafe { memory.bytes("launch.code", given.code, given.code_bytes)? };
    if given.user_sgpr_count > MAX_USER_SGPRS {
        return Err(runtime::Error::UserSgprs(given.user_sgpr_count).into());
    }
    let user_sgprs = match given.user_sgpr_count {
        0 => Vec::new(),
        count => {
            // SAFETY: the caller guarantees it.
            let bytes =
                unsafe { memory.bytes("launch.user_sgprs", given.user_sgprs.cast(), count as u64 * 4)? };
            bytes.chunks_exact(4).map(|b| u32::from_ne_bytes([b[0], b[1], b[2], b[3]])).collect()
        }
    };
    Ok(RawLaunch {
        code,
        code_address: if given.code_address == 0 { given.code as u64 } else { given.code_address },
        entry: given.entry_offset,
        wave_size: given.wave_size,
        grid: given.grid,
        block: given.block,
        lds_bytes: given.lds_bytes,
        scratch_bytes: given.scratch_bytes,
        memory_only_if_used: false,
        user_sgprs,
        first_group_id: given.user_sgpr_count as u16,
        group_ids: [0, 1, 2].map(|dim| given.group_ids >> dim & 1 == 1),
        item_ids: given.item_ids.min(2) as u8,
        modes: Modes::default(),
        mode: (given.mode != WAVESIM_MODE_DEFAULT).then_some(given.mode),
        threads: threads(given.threads).map_or(Threads::Auto, Threads::Fixed),
        max_instructions: given.max_instructions,
    })
}

/// Returns the number of host threads, at most the supported one; `None` for 0, which is automatic.
pub fn threads(given: u32) -> Option<usize> {
    (given != 0).then_some((given as usize).min(MAX_THREADS))
}

/// Writes the outcome of a launch for the caller, and returns its error.
///
/// # Safety
/// If the memory map is not available, `outcome` must be null or valid.
pub unsafe fn report(
    memory: &AddressSpace,
    result: Result<Outcome, runtime::Error>,
    outcome: *mut wavesim_outcome,
) -> Result<(), Error> {
    if !outcome.is_null() {
        let value = match &result {
            Ok(outcome) => wavesim_outcome {
                instructions: outcome.stats.instructions,
                waves: outcome.stats.waves,
                ..wavesim_outcome::default()
            },
            Err(runtime::Error::Fault(report)) => {
                report.fault.as_ref().map_or_else(Default::default, |fault| wavesim_outcome::of(fault))
            }
            Err(_) => wavesim_outcome::default(),
        };
        memory.check("outcome", outcome as u64, size_of::<wavesim_outcome>() as u64, true)?;
        // SAFETY: `check` has verified that the memory is writable; without a memory map, the caller
        // guarantees it.
        unsafe { outcome.write_unaligned(value) };
    }
    Ok(result.map(drop)?)
}

impl Default for wavesim_outcome {
    fn default() -> wavesim_outcome {
        wavesim_outcome {
            instructions: 0,
            waves: 0,
            fault: [0; 32],
            pc: 0,
            address: 0,
            has_address: false,
            workgroup: [0; 3],
            wave: 0,
            lane: -1,
        }
    }
}

impl wavesim_outcome {
    fn of(fault: &Fault) -> wavesim_outcome {
        wavesim_outcome {
            fault: text(fault.kind.name()),
            pc: fault.pc,
            address: fault.address.unwrap_or(0),
            has_address: fault.address.is_some(),
            workgroup: fault.workgroup,
            wave: fault.wave,
            lane: fault.lane.map_or(-1, |lane| lane as i32),
            ..wavesim_outcome::default()
        }
    }
}

const _: () = assert!(wavesim_status::WAVESIM_OK as i32 == 0, "hosts of run_asm compare with 0");
