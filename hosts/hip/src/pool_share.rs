//! Pools and their allocations, shared between processes.

use crate::ffi::{Memory, Out};
use crate::gpu::{Gpu, gpu, gpu_at, gpus};
use crate::ipc::ApiHandle;
use crate::pool;
use crate::status::{Failure, Outcome, Status, call};
use crate::stream::Handle;
use std::ffi::{c_int, c_uint};
use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd, IntoRawFd};
use std::os::unix::fs::FileExt;
use wavesim_runtime::Error;
use wavesim_runtime::virtual_memory::PhysicalMemory;

/// `hipMemHandleTypePosixFileDescriptor`.
const FILE_DESCRIPTOR: c_int = 1;
/// The first bytes of a pool's file; the ordinal of the device follows.
const MAGIC: [u8; 12] = *b"wavesim pool";
/// Size of the file in bytes: that of a page.
const FILE_BYTES: u64 = 4096;
/// Name of imported memory in messages.
const IMPORTED: &str = "hipMemPoolImportPointer";

fn refused(error: std::io::Error) -> Failure {
    Status::INVALID_VALUE.because(format!("the file of a pool: {error}"))
}

/// Returns the file that stands for a pool of a device.
fn export(device: c_int) -> Outcome<File> {
    let memory = PhysicalMemory::new(FILE_BYTES)?;
    let file = memory.file().try_clone().map_err(refused)?;
    let content = [&MAGIC[..], &device.to_le_bytes()].concat();
    file.write_all_at(&content, 0).map_err(refused)?;
    Ok(file)
}

/// Returns the device of an exported pool; the current one if this process does not have it.
fn import(file: File) -> Outcome<&'static Gpu> {
    // Only files of wavesim are accepted, whose size is final.
    let memory =
        PhysicalMemory::of_file(file).map_err(|error| Status::INVALID_VALUE.because(error.to_string()))?;
    let mut content = [0; MAGIC.len() + 4];
    memory.file().read_exact_at(&mut content, 0).map_err(refused)?;
    let device = content.strip_prefix(&MAGIC).and_then(|rest| rest.try_into().ok());
    let device = device.ok_or_else(|| Status::INVALID_VALUE.because("the file is not that of a pool"))?;
    gpu_at(c_int::from_le_bytes(device)).or_else(|_| gpu())
}

/// `hipMemPoolExportToShareableHandle`. Stores a file descriptor, which the program closes.
pub unsafe extern "C" fn hipMemPoolExportToShareableHandle(
    shareable: Out<c_int>,
    pool: Handle,
    kind: c_int,
    flags: c_uint,
) -> c_int {
    call("hipMemPoolExportToShareableHandle", || {
        let (device, kinds) = pool::device_and_handle_types(pool)?;
        if shareable.is_null() || flags != 0 || kind != FILE_DESCRIPTOR || kind != kinds {
            return Err(Status::INVALID_VALUE.into());
        }
        shareable.put(export(device)?.into_raw_fd())
    })
}

/// `hipMemPoolImportFromShareableHandle`. The pool has a limit and attributes of its own.
pub unsafe extern "C" fn hipMemPoolImportFromShareableHandle(
    pool: Out<Handle>,
    shareable: usize,
    kind: c_int,
    flags: c_uint,
) -> c_int {
    call("hipMemPoolImportFromShareableHandle", || {
        if pool.is_null() || shareable == 0 || flags != 0 || kind != FILE_DESCRIPTOR {
            return Err(Status::INVALID_VALUE.into());
        }
        // Programs store the number in the low half of a pointer.
        let descriptor = shareable as u32 as c_int;
        if descriptor < 0 {
            return Err(Status::INVALID_VALUE.into());
        }
        // SAFETY: the caller of the API passes a file that is open during the call.
        let file = unsafe { BorrowedFd::borrow_raw(descriptor) }.as_fd().try_clone_to_owned();
        let gpu = import(File::from(file.map_err(refused)?))?;
        pool.put(pool::imported(gpu.ordinal())?)
    })
}

/// `hipMemPoolExportPointer`. The memory becomes shared after all submitted work.
pub unsafe extern "C" fn hipMemPoolExportPointer(data: Out<ApiHandle>, address: u64) -> c_int {
    call("hipMemPoolExportPointer", || {
        if data.is_null() || address == 0 {
            return Err(Status::INVALID_VALUE.into());
        }
        gpus()?.iter().try_for_each(|gpu| gpu.streams.wait())?;
        let (owner, _) = gpu()?.device.locate(address).ok_or(Status::INVALID_VALUE)?;
        data.put(ApiHandle::of(&owner.export(address)?))
    })
}

/// `hipMemPoolImportPointer`. Unlike the functions of `hipIpcMemHandle_t`, it opens memory of the same process, too.
pub unsafe extern "C" fn hipMemPoolImportPointer(pointer: Out<u64>, pool: Handle, data: Memory) -> c_int {
    call("hipMemPoolImportPointer", || {
        let (device, _) = pool::device_and_handle_types(pool)?;
        if pointer.is_null() || data.is_null() {
            return Err(Status::INVALID_VALUE.into());
        }
        // SAFETY: the caller of the API passes exported data.
        let handle = unsafe { ApiHandle::read_from(data) }.ok_or(Status::INVALID_VALUE)?;
        let opened = gpu_at(device)?.device.import(&handle, IMPORTED);
        pointer.put(opened.map_err(|error| match error {
            Error::Shared(_) => Status::INVALID_VALUE.because(error.to_string()),
            error => error.into(),
        })?)
    })
}
