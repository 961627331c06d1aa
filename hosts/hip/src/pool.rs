//! Memory pools, and attributes of ranges of managed memory. All pools allocate directly from the device.

use crate::ffi::{In, Memory, Out};
use crate::gpu::gpu;
use crate::memory::AllocationKind;
use crate::status::{Outcome, Status, call};
use crate::stream::Handle;
use std::ffi::c_int;

/// Handle of the default memory pool.
const POOL: Handle = 0x10;

/// `hipDeviceGetDefaultMemPool`.
pub unsafe extern "C" fn hipDeviceGetDefaultMemPool(pool: Out<Handle>, _device: c_int) -> c_int {
    call("hipDeviceGetDefaultMemPool", || pool.put(POOL))
}

/// `hipDeviceGetMemPool`.
pub unsafe extern "C" fn hipDeviceGetMemPool(pool: Out<Handle>, device: c_int) -> c_int {
    // SAFETY: the caller guarantees what the API demands.
    unsafe { hipDeviceGetDefaultMemPool(pool, device) }
}

/// `hipDeviceSetMemPool`.
pub unsafe extern "C" fn hipDeviceSetMemPool(_device: c_int, _pool: Handle) -> c_int {
    0
}

/// `hipMemPoolCreate`. All pools allocate directly from the device.
pub unsafe extern "C" fn hipMemPoolCreate(pool: Out<Handle>, _properties: Memory) -> c_int {
    call("hipMemPoolCreate", || pool.put(crate::stream::new_handle()))
}

/// `hipMemPoolDestroy`.
pub unsafe extern "C" fn hipMemPoolDestroy(_pool: Handle) -> c_int {
    0
}

/// `hipMemPoolTrimTo`. Does nothing, since pools retain no memory.
pub unsafe extern "C" fn hipMemPoolTrimTo(_pool: Handle, _keep: usize) -> c_int {
    0
}

/// `hipMemPoolSetAttribute`. Does nothing, since pools retain no memory whatever the threshold.
pub unsafe extern "C" fn hipMemPoolSetAttribute(_pool: Handle, _attribute: c_int, _value: Memory) -> c_int {
    0
}

/// `hipMemPoolGetAttribute`. Pools retain no memory: every number is 0, and every permission is given.
pub unsafe extern "C" fn hipMemPoolGetAttribute(_pool: Handle, attribute: c_int, value: Memory) -> c_int {
    call("hipMemPoolGetAttribute", || {
        if value.is_null() {
            return Err(Status::INVALID_VALUE.into());
        }
        let bytes: &[u8] = match attribute {
            // hipMemPoolReuseFollowEventDependencies, …AllowOpportunistic, …AllowInternalDependencies
            1..=3 => &1u32.to_le_bytes(),
            // hipMemPoolAttrReleaseThreshold, …ReservedMemCurrent, …ReservedMemHigh, …UsedMemCurrent, …UsedMemHigh
            4..=8 => &0u64.to_le_bytes(),
            _ => return Err(Status::INVALID_VALUE.into()),
        };
        // SAFETY: the caller of the API passes memory of the attribute's size.
        unsafe { value.write(bytes) };
        Ok(())
    })
}

/// The values of `hipMemRangeAttribute` that are known: read mostly, preferred location, accessed by, last prefetch
/// location.
const RANGE_ATTRIBUTES: [c_int; 4] = [1, 2, 3, 4];

/// Stores an attribute of managed memory: advice has no effect, so that none has been given.
fn put_range_attribute(data: Memory, size: usize, attribute: c_int, address: u64) -> Outcome {
    /// `hipInvalidDeviceId`.
    const NO_DEVICE: c_int = -2;
    let found = gpu()?.find_allocation(address).ok_or(Status::INVALID_VALUE)?;
    let valid = RANGE_ATTRIBUTES.contains(&attribute) && found.kind == AllocationKind::Managed;
    if !valid || data.is_null() || size == 0 || !size.is_multiple_of(4) {
        return Err(Status::INVALID_VALUE.into());
    }
    let value = if attribute == RANGE_ATTRIBUTES[0] { 0 } else { NO_DEVICE };
    let bytes: Vec<u8> = value.to_le_bytes().repeat(size / 4);
    // SAFETY: the caller of the API passes memory of this size.
    unsafe { data.write(&bytes) };
    Ok(())
}

/// `hipMemRangeGetAttribute`.
pub unsafe extern "C" fn hipMemRangeGetAttribute(
    data: Memory,
    size: usize,
    attribute: c_int,
    address: u64,
    _len: usize,
) -> c_int {
    call("hipMemRangeGetAttribute", || put_range_attribute(data, size, attribute, address))
}

/// `hipMemRangeGetAttributes`.
pub unsafe extern "C" fn hipMemRangeGetAttributes(
    data: In<Memory>,
    sizes: In<usize>,
    attributes: In<c_int>,
    count: usize,
    address: u64,
    _len: usize,
) -> c_int {
    call("hipMemRangeGetAttributes", || {
        if count == 0 {
            return Err(Status::INVALID_VALUE.into());
        }
        // SAFETY: the caller of the API passes arrays of this length.
        let (data, sizes, attributes) =
            unsafe { (data.list(count)?, sizes.list(count)?, attributes.list(count)?) };
        let rows = data.into_iter().zip(sizes).zip(attributes);
        rows.into_iter()
            .try_for_each(|((data, size), attribute)| put_range_attribute(data, size, attribute, address))
    })
}
