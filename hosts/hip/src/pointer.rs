//! What is known of addresses: the kind of memory, its device, its range.

use crate::ffi::{In, Memory, Out};
use crate::gpu::{gpu, lock};
use crate::memory::{AllocationKind, DEVICE, HOST, MANAGED, UNREGISTERED};
use crate::status::{Outcome, Status, call};
use std::collections::BTreeSet;
use std::ffi::{c_int, c_uint};
use std::sync::Mutex;

/// `hipPointerAttribute_t`.
#[repr(C)]
pub struct PointerAttributes {
    memory: c_int,
    device: c_int,
    device_pointer: u64,
    host_pointer: u64,
    managed: c_int,
    flags: c_uint,
}

/// `hipPointerGetAttributes`.
pub unsafe extern "C" fn hipPointerGetAttributes(attributes: Out<PointerAttributes>, address: u64) -> c_int {
    call("hipPointerGetAttributes", || {
        let found = gpu()?.find_allocation(address);
        let kind = found.as_ref().map(|known| known.kind);
        let memory = kind.map_or(UNREGISTERED, memory_type);
        let host = if matches!(memory, HOST | MANAGED) { address } else { 0 };
        attributes.put(PointerAttributes {
            memory,
            device: found.map_or(-2, |known| known.device as c_int),
            device_pointer: if kind.is_some() { address } else { 0 },
            host_pointer: host,
            managed: (kind == Some(AllocationKind::Managed)).into(),
            flags: kind.map_or(0, flags),
        })
    })
}

/// `hipPointer_attribute` values.
mod attribute {
    pub const MEMORY_TYPE: i32 = 2;
    pub const DEVICE_POINTER: i32 = 3;
    pub const HOST_POINTER: i32 = 4;
    pub const SYNC_MEMOPS: i32 = 6;
    pub const BUFFER_ID: i32 = 7;
    pub const IS_MANAGED: i32 = 8;
    pub const DEVICE_ORDINAL: i32 = 9;
    pub const RANGE_START: i32 = 11;
    pub const RANGE_SIZE: i32 = 12;
    pub const MAPPED: i32 = 13;
    pub const ACCESS_FLAGS: i32 = 16;
}

/// Addresses of allocations with `HIP_POINTER_ATTRIBUTE_SYNC_MEMOPS`. Copies by functions that are not asynchronous have
/// always ended when the functions return.
static SYNCHRONOUS: Mutex<BTreeSet<u64>> = Mutex::new(BTreeSet::new());

/// Forgets the attributes of an allocation that has been freed.
pub fn forget(address: u64) {
    lock(&SYNCHRONOUS).remove(&address);
}

/// `hipPointerSetAttribute`. There is one attribute that can be set.
pub unsafe extern "C" fn hipPointerSetAttribute(value: Memory, attribute: c_int, address: u64) -> c_int {
    call("hipPointerSetAttribute", || {
        let known = gpu()?.find_allocation(address).ok_or(Status::INVALID_VALUE)?;
        if value.is_null() || attribute != attribute::SYNC_MEMOPS {
            return Err(Status::INVALID_VALUE.into());
        }
        // SAFETY: the caller of the API passes a boolean.
        match unsafe { value.read(1) }[0] {
            0 => lock(&SYNCHRONOUS).remove(&known.address),
            _ => lock(&SYNCHRONOUS).insert(known.address),
        };
        Ok(())
    })
}

/// Stores an attribute of an address at `data`, in the attribute's size.
fn put_attribute(data: usize, attribute: c_int, address: u64) -> Outcome {
    let known = gpu()?.find_allocation(address).ok_or(Status::INVALID_VALUE)?;
    let is_managed = known.kind == AllocationKind::Managed;
    let of_host = known.kind != AllocationKind::Device;
    let bytes: &[u8] = match attribute {
        attribute::MEMORY_TYPE => &memory_type(known.kind).to_le_bytes(),
        attribute::DEVICE_POINTER => &address.to_le_bytes(),
        attribute::HOST_POINTER if of_host => &address.to_le_bytes(),
        // Allocations are told apart by their addresses. ROCm stores this number and the size in 32 bits.
        attribute::BUFFER_ID => &((known.address >> 8) as u32).to_le_bytes(),
        attribute::RANGE_START => &known.address.to_le_bytes(),
        attribute::RANGE_SIZE => &(known.len as u32).to_le_bytes(),
        attribute::IS_MANAGED => &[is_managed.into()],
        attribute::DEVICE_ORDINAL => &(known.device as c_int).to_le_bytes(),
        attribute::MAPPED => &[1],
        attribute::ACCESS_FLAGS => &flags(known.kind).to_le_bytes(),
        attribute::SYNC_MEMOPS => &[lock(&SYNCHRONOUS).contains(&known.address).into()],
        attribute::HOST_POINTER => return Err(Status::INVALID_VALUE.into()),
        _ => return Err(Status::NOT_SUPPORTED.because(format!("attribute {attribute} of a pointer"))),
    };
    if data == 0 {
        return Err(Status::INVALID_VALUE.into());
    }
    // SAFETY: the caller of the API passes memory of the attribute's size.
    unsafe { Memory::at(data as u64).write(bytes) };
    Ok(())
}

/// Returns the flags with which memory was allocated.
fn flags(kind: AllocationKind) -> c_uint {
    if let AllocationKind::Host(flags) = kind { flags } else { 0 }
}

fn memory_type(kind: AllocationKind) -> c_int {
    match kind {
        AllocationKind::Device => DEVICE,
        AllocationKind::Managed => MANAGED,
        AllocationKind::Host(_) | AllocationKind::Registered => HOST,
    }
}

/// `hipPointerGetAttribute`.
pub unsafe extern "C" fn hipPointerGetAttribute(data: usize, attribute: c_int, address: u64) -> c_int {
    call("hipPointerGetAttribute", || put_attribute(data, attribute, address))
}

/// `hipDrvPointerGetAttributes`. Of an address that is not known, nothing is stored.
pub unsafe extern "C" fn hipDrvPointerGetAttributes(
    count: c_uint,
    attributes: In<c_int>,
    data: In<usize>,
    address: u64,
) -> c_int {
    call("hipDrvPointerGetAttributes", || {
        if count == 0 || address == 0 {
            return Err(Status::INVALID_VALUE.into());
        }
        // SAFETY: the caller of the API passes arrays of this length.
        let (attributes, data) = unsafe { (attributes.list(count as usize)?, data.list(count as usize)?) };
        if gpu()?.find_allocation(address).is_none() {
            return Ok(());
        }
        attributes.into_iter().zip(data).try_for_each(|(attribute, data)| match attribute {
            // Memory of the device has no address for the host.
            attribute::HOST_POINTER if data != 0 => put_attribute(data, attribute, address).or_else(|_| {
                // SAFETY: the caller of the API passes memory for an address.
                unsafe { Memory::at(data as u64).write(&[0; 8]) };
                Ok(())
            }),
            _ => put_attribute(data, attribute, address),
        })
    })
}
