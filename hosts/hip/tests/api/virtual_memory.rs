//! Virtual memory management, as called by C programs.

use super::{Handle, INVALID_VALUE, SUCCESS, created, hipDeviceSynchronize, hipFree, kernel};
use std::ffi::{c_int, c_void};
use std::ptr::null_mut;

unsafe extern "C" {
    fn hipMemAddressFree(pointer: Handle, len: usize) -> c_int;
    fn hipMemAddressReserve(
        pointer: &mut Handle,
        len: usize,
        alignment: usize,
        wanted: Handle,
        flags: u64,
    ) -> c_int;
    fn hipMemCreate(handle: &mut Handle, len: usize, properties: *const Properties, flags: u64) -> c_int;
    fn hipMemExportToShareableHandle(out: *mut c_int, handle: Handle, kind: c_int, flags: u64) -> c_int;
    safe fn hipMemGetAccess(flags: &mut u64, location: &Location, pointer: Handle) -> c_int;
    fn hipMemGetAllocationGranularity(out: &mut usize, properties: *const Properties, option: c_int)
    -> c_int;
    safe fn hipMemGetAllocationPropertiesFromHandle(properties: &mut Properties, handle: Handle) -> c_int;
    safe fn hipMemGetInfo(free: &mut usize, total: &mut usize) -> c_int;
    fn hipMemImportFromShareableHandle(handle: &mut Handle, from: *const c_void, kind: c_int) -> c_int;
    fn hipMemMap(pointer: Handle, len: usize, offset: usize, handle: Handle, flags: u64) -> c_int;
    safe fn hipMemRelease(handle: Handle) -> c_int;
    safe fn hipMemRetainAllocationHandle(handle: &mut Handle, pointer: Handle) -> c_int;
    fn hipMemSetAccess(pointer: Handle, len: usize, access: *const Access, count: usize) -> c_int;
    fn hipMemUnmap(pointer: Handle, len: usize) -> c_int;
    fn hipMemcpy(to: Handle, from: Handle, len: usize, kind: c_int) -> c_int;
    fn hipModuleLaunchKernel(
        function: Handle,
        groups_x: u32,
        groups_y: u32,
        groups_z: u32,
        block_x: u32,
        block_y: u32,
        block_z: u32,
        dynamic_lds: u32,
        stream: Handle,
        arguments: *mut *mut c_void,
        extra: *mut *mut c_void,
    ) -> c_int;
}

#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq)]
struct Location {
    kind: c_int,
    id: c_int,
}

/// `hipMemAllocationProp`.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq)]
struct Properties {
    kind: c_int,
    handle: c_int,
    location: Location,
    windows: usize,
    flags: [u8; 4],
}

/// `hipMemAccessDesc`.
#[repr(C)]
struct Access {
    location: Location,
    flags: c_int,
}

const DEVICE: Location = Location { kind: 1, id: 0 };
const PINNED: Properties = Properties { kind: 1, handle: 0, location: DEVICE, windows: 0, flags: [0; 4] };
const PART: usize = 2 << 20;
const READ_WRITE: Access = Access { location: DEVICE, flags: 3 };

/// The address in a range.
fn at(pointer: Handle, offset: usize) -> Handle {
    pointer.wrapping_byte_add(offset)
}

/// Launches a kernel that counts work-items at an address, and returns the status of the wait and the count.
fn count(counter: Handle) -> (c_int, u32) {
    let function = kernel(c"count");
    let mut argument = counter;
    let mut arguments = [(&raw mut argument).cast::<c_void>()];
    let (none, list) = (null_mut(), arguments.as_mut_ptr());
    let mut found = 0u32;
    // SAFETY: the kernel has one argument, and the counter is mapped.
    unsafe {
        assert_eq!(hipModuleLaunchKernel(function, 1, 1, 1, 64, 1, 1, 0, none, list, null_mut()), SUCCESS);
        let status = hipDeviceSynchronize();
        assert_eq!(hipMemcpy((&raw mut found).cast(), counter, 4, 2), SUCCESS);
        (status, found)
    }
}

#[test]
fn memory_is_mapped_and_grows() {
    let free = || {
        let (mut free, mut total) = (0, 0);
        assert_eq!(hipMemGetInfo(&mut free, &mut total), SUCCESS);
        free
    };
    let before = free();
    // SAFETY: addresses are those of the range, and memory is accessed while it is mapped.
    unsafe {
        let mut granularity = 0;
        assert_eq!(hipMemGetAllocationGranularity(&mut granularity, &PINNED, 0), SUCCESS);
        assert!(PART.is_multiple_of(granularity));
        let range = created(|out| hipMemAddressReserve(out, 4 * PART, PART, null_mut(), 0));
        assert!((range as usize).is_multiple_of(PART));
        let memory = created(|out| hipMemCreate(out, PART, &PINNED, 0));
        assert_eq!(hipMemMap(range, PART, 0, memory, 0), SUCCESS);
        assert_eq!(hipMemSetAccess(range, PART, &READ_WRITE, 1), SUCCESS);
        assert_eq!(count(range), (SUCCESS, 64));

        // The range grows by memory behind it, and copies go across the border.
        let more = created(|out| hipMemCreate(out, PART, &PINNED, 0));
        assert_eq!(hipMemMap(at(range, PART), PART, 0, more, 0), SUCCESS);
        let mut bytes = [7u8; 16];
        assert_eq!(hipMemcpy(at(range, PART - 8), bytes.as_mut_ptr().cast(), 16, 1), INVALID_VALUE);
        assert_eq!(hipMemSetAccess(at(range, PART), PART, &READ_WRITE, 1), SUCCESS);
        assert_eq!(hipMemcpy(at(range, PART - 8), bytes.as_mut_ptr().cast(), 16, 1), SUCCESS);
        bytes.fill(0);
        assert_eq!(hipMemcpy(bytes.as_mut_ptr().cast(), at(range, PART), 8, 2), SUCCESS);
        assert_eq!(bytes, [7, 7, 7, 7, 7, 7, 7, 7, 0, 0, 0, 0, 0, 0, 0, 0]);
        assert!(free() + 2 * PART <= before);

        let mut flags = 0;
        assert_eq!(hipMemGetAccess(&mut flags, &DEVICE, range), SUCCESS);
        assert_eq!(flags, 3);
        assert_eq!(hipMemGetAccess(&mut flags, &DEVICE, at(range, 3 * PART)), INVALID_VALUE);

        // Handles may be released before their memory; it is not hipMalloc's.
        assert_eq!((hipMemRelease(memory), hipMemRelease(memory)), (SUCCESS, INVALID_VALUE));
        assert_eq!(count(range), (SUCCESS, 128));
        let again = created(|out| hipMemRetainAllocationHandle(out, range));
        assert_eq!((again, hipMemRelease(again)), (memory, SUCCESS));
        assert_eq!(hipFree(range), INVALID_VALUE);
        assert_eq!(hipMemAddressFree(range, 4 * PART), INVALID_VALUE);
        assert_eq!(hipMemUnmap(range, PART / 2), INVALID_VALUE);
        assert_eq!(hipMemUnmap(range, 2 * PART), SUCCESS);
        assert_eq!(hipMemcpy(range, at(range, 8), 8, 3), INVALID_VALUE);
        assert_eq!(hipMemRelease(more), SUCCESS);
        assert_eq!(
            (hipMemAddressFree(range, PART), hipMemAddressFree(range, 4 * PART)),
            (INVALID_VALUE, SUCCESS)
        );
    }
}

#[test]
fn memory_is_shared_by_its_file() {
    let mut descriptor = 0;
    // SAFETY: addresses are those of the range, and the descriptor is that of the memory.
    unsafe {
        let memory = created(|out| hipMemCreate(out, PART, &PINNED, 0));
        let mut properties = Properties { kind: 0, ..PINNED };
        assert_eq!(hipMemGetAllocationPropertiesFromHandle(&mut properties, memory), SUCCESS);
        assert_eq!(properties, PINNED);
        assert_eq!(hipMemExportToShareableHandle(&mut descriptor, memory, 1, 0), SUCCESS);
        // HIP 6 passes the address of the descriptor, HIP 7 the descriptor.
        let old = created(|out| hipMemImportFromShareableHandle(out, (&raw const descriptor).cast(), 1));
        let value = std::ptr::without_provenance(descriptor as usize);
        let new = created(|out| hipMemImportFromShareableHandle(out, value, 1));
        let range = created(|out| hipMemAddressReserve(out, 2 * PART, 0, null_mut(), 0));
        assert_eq!(hipMemMap(range, PART, 0, old, 0), SUCCESS);
        assert_eq!(hipMemMap(at(range, PART), PART, 0, new, 0), SUCCESS);
        assert_eq!(hipMemSetAccess(range, 2 * PART, &READ_WRITE, 1), SUCCESS);
        assert_eq!(count(range), (SUCCESS, 64));
        assert_eq!(count(at(range, PART)), (SUCCESS, 128));
        assert_eq!(hipMemUnmap(range, 2 * PART), SUCCESS);
        assert_eq!(hipMemAddressFree(range, 2 * PART), SUCCESS);
        for handle in [memory, old, new] {
            assert_eq!(hipMemRelease(handle), SUCCESS);
        }
        let mut handle = null_mut();
        // Not memory: standard input.
        let input = std::ptr::without_provenance(0);
        assert_eq!(hipMemImportFromShareableHandle(&mut handle, input, 1), INVALID_VALUE);
    }
}

#[test]
fn wrong_arguments_are_refused() {
    const OUT_OF_MEMORY: c_int = 2;
    let mut handle = null_mut();
    // SAFETY: the calls fail.
    unsafe {
        let nowhere = Properties { location: Location { kind: 1, id: 64 }, ..PINNED };
        let unpinned = Properties { kind: 0, ..PINNED };
        for wrong in [nowhere, unpinned] {
            assert_eq!(hipMemCreate(&mut handle, PART, &wrong, 0), INVALID_VALUE);
        }
        for len in [0, PART - 1] {
            assert_eq!(hipMemCreate(&mut handle, len, &PINNED, 0), INVALID_VALUE);
            assert_eq!(hipMemAddressReserve(&mut handle, len, 0, null_mut(), 0), OUT_OF_MEMORY);
        }
        assert_eq!(hipMemAddressReserve(&mut handle, PART, 3, null_mut(), 0), OUT_OF_MEMORY);
        assert_eq!(hipMemCreate(&mut handle, 1 << 50, &PINNED, 0), OUT_OF_MEMORY);
        assert_eq!(hipMemUnmap(null_mut(), PART), INVALID_VALUE);
    }
}
