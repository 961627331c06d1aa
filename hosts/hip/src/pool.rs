//! Memory pools. Pools allocate directly from the device and keep no memory that
//! has been freed; they count what programs allocate from them.

use crate::ffi::{In, Memory, Out};
use crate::gpu::{Gpu, gpu_at, gpus, lock};
use crate::status::{Outcome, Status, call};
use crate::stream::{Handle, new_handle};
use crate::virtual_memory::{AccessDescription, Location, NO_ACCESS, PINNED, READ, READ_WRITE};
use std::collections::BTreeMap;
use std::ffi::c_int;
use std::sync::Mutex;

/// Handle of the default pool of the first device; those of other devices follow.
const DEFAULT_POOL: Handle = 0x10;
/// Distance between them. There are at most 64 devices, so that handles of created pools are larger.
const STEP: Handle = 0x10;

/// `hipMemPoolProps`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct PoolProperties {
    kind: c_int,
    handle_types: c_int,
    location: Location,
    windows_attributes: usize,
    /// The most bytes that are allocated at a time; 0 for no limit.
    max: usize,
    reserved: [u8; 56],
}

impl PoolProperties {
    /// Returns the properties of a default pool.
    pub fn of_device(device: c_int) -> PoolProperties {
        let location = Location::of_device(device);
        PoolProperties {
            kind: PINNED,
            handle_types: 0,
            location,
            windows_attributes: 0,
            max: 0,
            reserved: [0; 56],
        }
    }

    /// Checks the properties, and returns the device.
    pub fn gpu(&self) -> Outcome<&'static Gpu> {
        if self.kind != PINNED {
            return Err(Status::INVALID_VALUE.because("memory is pinned (hipMemAllocationTypePinned)"));
        }
        self.location.gpu()
    }
}

/// A pool.
struct Pool {
    device: c_int,
    /// `hipMemAllocationHandleType`: how other processes can get the pool.
    handle_types: c_int,
    /// As in the properties.
    max: u64,
    /// `hipMemPoolReuseFollowEventDependencies`, `…AllowOpportunistic`, `…AllowInternalDependencies`.
    reuse: [u32; 3],
    /// `hipMemPoolAttrReleaseThreshold`.
    threshold: u64,
    /// What other devices may do.
    access: BTreeMap<c_int, c_int>,
    /// Bytes that are allocated, and the most that were since the program has reset the number.
    used: u64,
    high: u64,
}

impl Pool {
    fn new(device: c_int, max: u64) -> Pool {
        let access = BTreeMap::new();
        Pool { device, handle_types: 0, max, reuse: [1; 3], threshold: 0, access, used: 0, high: 0 }
    }
}

#[derive(Default)]
struct Pools {
    pools: BTreeMap<Handle, Pool>,
    /// The pool from which `hipMallocAsync` allocates, by the ordinal of the device, if it is not the default one.
    current: BTreeMap<c_int, Handle>,
    /// The pool and the size of each allocation, by its address.
    allocations: BTreeMap<u64, (Handle, u64)>,
}

static POOLS: Mutex<Option<Pools>> = Mutex::new(None);

/// Calls `body` with the table of pools.
fn with<T>(body: impl FnOnce(&mut Pools) -> Outcome<T>) -> Outcome<T> {
    let mut pools = lock(&POOLS);
    if pools.is_none() {
        let defaults = gpus()?.iter().map(|gpu| (default_pool(gpu), Pool::new(gpu.ordinal(), 0)));
        *pools = Some(Pools { pools: defaults.collect(), ..Pools::default() });
    }
    body(pools.get_or_insert_default())
}

/// Returns the handle of the default pool of a device.
fn default_pool(gpu: &Gpu) -> Handle {
    DEFAULT_POOL + STEP * gpu.device.ordinal()
}

impl Pools {
    fn pool(&mut self, pool: Handle) -> Outcome<&mut Pool> {
        self.pools.get_mut(&pool).ok_or(Status::INVALID_VALUE.into())
    }

    fn current(&self, gpu: &Gpu) -> Handle {
        self.current.get(&gpu.ordinal()).copied().unwrap_or_else(|| default_pool(gpu))
    }
}

/// Allocates from a pool; `None` for the current one of a device.
pub fn allocate(
    gpu: &'static Gpu,
    pool: Option<Handle>,
    len: u64,
    allocate: impl FnOnce(&'static Gpu) -> Outcome<u64>,
) -> Outcome<u64> {
    let (pool, device) = with(|pools| {
        let handle = pool.unwrap_or_else(|| pools.current(gpu));
        let pool = pools.pool(handle)?;
        if pool.max != 0 && len > pool.max.saturating_sub(pool.used) {
            return Err(Status::OUT_OF_MEMORY.into());
        }
        Ok((handle, pool.device))
    })?;
    let address = allocate(gpu_at(device)?)?;
    if address == 0 {
        return Ok(address);
    }
    with(|pools| {
        pools.allocations.insert(address, (pool, len));
        let pool = pools.pool(pool)?;
        pool.used += len;
        pool.high = pool.high.max(pool.used);
        Ok(address)
    })
}

/// Returns the device of a pool, and how other processes can get it.
pub fn device_and_handle_types(pool: Handle) -> Outcome<(c_int, c_int)> {
    with(|pools| pools.pool(pool).map(|pool| (pool.device, pool.handle_types)))
}

/// Adds a pool that another process has exported. Returns its handle.
pub fn imported(device: c_int) -> Outcome<Handle> {
    let handle = new_handle();
    with(|pools| Ok(pools.pools.insert(handle, Pool::new(device, 0))))?;
    Ok(handle)
}

/// Notes that an allocation has been freed.
pub fn freed(address: u64) {
    let mut pools = lock(&POOLS);
    let Some(pools) = pools.as_mut() else { return };
    if let Some((pool, len)) = pools.allocations.remove(&address)
        && let Some(pool) = pools.pools.get_mut(&pool)
    {
        pool.used = pool.used.saturating_sub(len);
    }
}

/// `hipDeviceGetDefaultMemPool`.
pub unsafe extern "C" fn hipDeviceGetDefaultMemPool(pool: Out<Handle>, device: c_int) -> c_int {
    call("hipDeviceGetDefaultMemPool", || pool.put(default_pool(gpu_at(device)?)))
}

/// `hipDeviceGetMemPool`.
pub unsafe extern "C" fn hipDeviceGetMemPool(pool: Out<Handle>, device: c_int) -> c_int {
    call("hipDeviceGetMemPool", || {
        let gpu = gpu_at(device)?;
        pool.put(with(|pools| Ok(pools.current(gpu)))?)
    })
}

/// `hipDeviceSetMemPool`.
pub unsafe extern "C" fn hipDeviceSetMemPool(device: c_int, pool: Handle) -> c_int {
    call("hipDeviceSetMemPool", || {
        let device = gpu_at(device)?.ordinal();
        with(|pools| {
            if pools.pool(pool)?.device != device {
                return Err(Status::INVALID_DEVICE.because("a pool of another device"));
            }
            pools.current.insert(device, pool);
            Ok(())
        })
    })
}

/// `hipMemPoolCreate`.
pub unsafe extern "C" fn hipMemPoolCreate(pool: Out<Handle>, properties: In<PoolProperties>) -> c_int {
    call("hipMemPoolCreate", || {
        let properties = properties.get()?;
        let device = properties.gpu()?.ordinal();
        if pool.is_null() {
            return Err(Status::INVALID_VALUE.into());
        }
        let handle = new_handle();
        with(|pools| {
            let new = Pool::new(device, properties.max as u64);
            pools.pools.insert(handle, Pool { handle_types: properties.handle_types, ..new });
            Ok(())
        })?;
        pool.put(handle)
    })
}

/// `hipMemPoolDestroy`. What has been allocated from the pool remains.
pub unsafe extern "C" fn hipMemPoolDestroy(pool: Handle) -> c_int {
    call("hipMemPoolDestroy", || {
        if gpus()?.iter().any(|gpu| default_pool(gpu) == pool) {
            return Err(Status::INVALID_VALUE.because("a default pool cannot be destroyed"));
        }
        with(|pools| {
            pools.current.retain(|_, current| *current != pool);
            pools.pools.remove(&pool).map(drop).ok_or(Status::INVALID_VALUE.into())
        })
    })
}

/// `hipMemPoolTrimTo`. Only checks the pool, since pools retain no memory.
pub unsafe extern "C" fn hipMemPoolTrimTo(pool: Handle, _keep: usize) -> c_int {
    call("hipMemPoolTrimTo", || with(|pools| pools.pool(pool).map(drop)))
}

/// `hipMemPoolSetAttribute`. Pools retain no memory whatever the threshold and the permissions, which are kept for the
/// program.
pub unsafe extern "C" fn hipMemPoolSetAttribute(pool: Handle, attribute: c_int, value: Memory) -> c_int {
    call("hipMemPoolSetAttribute", || {
        if value.is_null() {
            return Err(Status::INVALID_VALUE.into());
        }
        // SAFETY: the caller of the API passes a value of the attribute's size.
        let number = |len| unsafe { value.read(len) }.iter().rev().fold(0, |n, &b| n << 8 | u64::from(b));
        with(|pools| {
            let pool = pools.pool(pool)?;
            match attribute {
                1..=3 => pool.reuse[attribute as usize - 1] = number(4) as u32,
                4 => pool.threshold = number(8),
                // hipMemPoolAttrReservedMemHigh, hipMemPoolAttrUsedMemHigh: they are only reset.
                6 | 8 if number(8) == 0 => pool.high = pool.used,
                _ => return Err(Status::INVALID_VALUE.into()),
            }
            Ok(())
        })
    })
}

/// `hipMemPoolGetAttribute`. Memory is reserved while it is used.
pub unsafe extern "C" fn hipMemPoolGetAttribute(pool: Handle, attribute: c_int, value: Memory) -> c_int {
    call("hipMemPoolGetAttribute", || {
        if value.is_null() {
            return Err(Status::INVALID_VALUE.into());
        }
        let bytes = with(|pools| {
            let pool = pools.pool(pool)?;
            Ok(match attribute {
                1..=3 => pool.reuse[attribute as usize - 1].to_le_bytes().to_vec(),
                4 => pool.threshold.to_le_bytes().to_vec(),
                // hipMemPoolAttrReservedMemCurrent, …ReservedMemHigh, …UsedMemCurrent, …UsedMemHigh
                5 | 7 => pool.used.to_le_bytes().to_vec(),
                6 | 8 => pool.high.to_le_bytes().to_vec(),
                _ => return Err(Status::INVALID_VALUE.into()),
            })
        })?;
        // SAFETY: the caller of the API passes memory of the attribute's size.
        unsafe { value.write(&bytes) };
        Ok(())
    })
}

/// `hipMemPoolSetAccess`. A device that may access a pool of another one can access all memory of that device, as after
/// `hipDeviceEnablePeerAccess`.
pub unsafe extern "C" fn hipMemPoolSetAccess(
    pool: Handle,
    descriptions: In<AccessDescription>,
    count: usize,
) -> c_int {
    call("hipMemPoolSetAccess", || {
        let own = with(|pools| Ok(pools.pool(pool)?.device))?;
        if count > gpus()?.len() {
            return Err(Status::INVALID_DEVICE.into());
        }
        // SAFETY: the caller of the API passes an array of this length.
        for AccessDescription { location, flags } in unsafe { descriptions.list(count)? } {
            if ![NO_ACCESS, READ, READ_WRITE].contains(&flags) {
                return Err(Status::INVALID_VALUE.into());
            }
            let gpu = location.peer()?;
            if gpu.ordinal() == own {
                if flags != READ_WRITE {
                    return Err(Status::INVALID_DEVICE.because("a device can always access its own pools"));
                }
                continue;
            }
            if flags != NO_ACCESS {
                // That it has the access already is no error.
                let _ = gpu.device.enable_peer(&gpu_at(own)?.device);
            }
            with(|pools| Ok(pools.pool(pool)?.access.insert(gpu.ordinal(), flags)))?;
        }
        Ok(())
    })
}

/// `hipMemPoolGetAccess`.
pub unsafe extern "C" fn hipMemPoolGetAccess(
    flags: Out<c_int>,
    pool: Handle,
    location: In<Location>,
) -> c_int {
    call("hipMemPoolGetAccess", || {
        let device = location.get()?.gpu()?.ordinal();
        flags.put(with(|pools| {
            let pool = pools.pool(pool)?;
            let given = || pool.access.get(&device).copied().unwrap_or(NO_ACCESS);
            Ok(if pool.device == device { READ_WRITE } else { given() })
        })?)
    })
}
