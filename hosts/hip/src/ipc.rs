//! Memory and events that processes share.

use crate::ffi::{Memory, Out};
use crate::gpu::{gpu, gpus};
use crate::status::{Outcome, Status, call};
use crate::stream::Handle;
use std::ffi::{c_int, c_uint};
use wavesim_runtime::Error;
use wavesim_runtime::ipc::{HANDLE_BYTES, IpcHandle};

/// `hipIpcMemHandle_t` and `hipIpcEventHandle_t`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct ApiHandle([u8; HANDLE_BYTES]);

impl ApiHandle {
    /// Returns the form in which the program passes a handle.
    pub fn of(handle: &IpcHandle) -> ApiHandle {
        ApiHandle(handle.to_bytes())
    }

    /// Reads a handle of any process.
    ///
    /// # Safety
    /// The memory has the size of a handle.
    pub unsafe fn read_from(memory: Memory) -> Option<IpcHandle> {
        // SAFETY: the caller guarantees the size.
        let bytes = unsafe { memory.read(HANDLE_BYTES) };
        IpcHandle::from_bytes(&bytes.try_into().ok()?)
    }

    /// Returns the contents.
    ///
    /// # Errors
    /// They are not a handle, or one of this process: as in ROCm's runtime, only other processes can open it.
    fn read(&self) -> Outcome<IpcHandle> {
        let handle = IpcHandle::from_bytes(&self.0).ok_or(Status::INVALID_HANDLE)?;
        if handle.process == std::process::id() {
            return Err(Status::INVALID_CONTEXT.because("the handle is of this process"));
        }
        Ok(handle)
    }
}

/// `hipIpcGetMemHandle`. The memory becomes shared after all submitted work.
pub unsafe extern "C" fn hipIpcGetMemHandle(handle: Out<ApiHandle>, address: u64) -> c_int {
    call("hipIpcGetMemHandle", || {
        gpus()?.iter().try_for_each(|gpu| gpu.streams.wait())?;
        let (owner, _) = gpu()?.device.locate(address).ok_or(Status::INVALID_VALUE)?;
        handle.put(ApiHandle::of(&owner.export(address)?))
    })
}

/// `hipIpcOpenMemHandle`. The memory belongs to the current device. The flags, which enable peer access lazily, are
/// ignored, since there is nothing to enable.
pub unsafe extern "C" fn hipIpcOpenMemHandle(pointer: Out<u64>, handle: ApiHandle, _flags: c_uint) -> c_int {
    call("hipIpcOpenMemHandle", || {
        let handle = handle.read()?;
        let opened = gpu()?.device.import(&handle, "hipIpcOpenMemHandle");
        pointer.put(opened.map_err(|error| match error {
            Error::Shared(_) => Status::INVALID_VALUE.because(error.to_string()),
            error => error.into(),
        })?)
    })
}

/// `hipIpcCloseMemHandle`.
pub unsafe extern "C" fn hipIpcCloseMemHandle(address: u64) -> c_int {
    call("hipIpcCloseMemHandle", || {
        gpus()?.iter().try_for_each(|gpu| gpu.streams.wait())?;
        let (owner, range) = gpu()?.device.locate(address).ok_or(Status::INVALID_VALUE)?;
        if range.name != "hipIpcOpenMemHandle" {
            return Err(Status::INVALID_VALUE.because("the memory was not opened by hipIpcOpenMemHandle"));
        }
        Ok(owner.free(range.address)?)
    })
}

/// `hipIpcGetEventHandle`.
pub unsafe extern "C" fn hipIpcGetEventHandle(handle: Out<ApiHandle>, event: Handle) -> c_int {
    call("hipIpcGetEventHandle", || {
        let shared = gpu()?.streams.event(event)?.export()?;
        handle.put(ApiHandle::of(&shared))
    })
}

/// `hipIpcOpenEventHandle`.
pub unsafe extern "C" fn hipIpcOpenEventHandle(event: Out<Handle>, handle: ApiHandle) -> c_int {
    call("hipIpcOpenEventHandle", || {
        let handle = handle.read()?;
        event.put(gpu()?.streams.import_event(&handle)?)
    })
}
