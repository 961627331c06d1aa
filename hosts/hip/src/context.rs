//! Contexts. There is a single context.

use crate::device::{hipGetDevice, only};
use crate::ffi::Out;
use crate::status::call;
use crate::stream::Handle;
use std::ffi::{c_int, c_uint};

/// The only context.
const CONTEXT: Handle = 0x20;

/// `hipCtxCreate`.
pub extern "C" fn hipCtxCreate(context: Out<Handle>, _flags: c_uint, device: c_int) -> c_int {
    hipDevicePrimaryCtxRetain(context, device)
}

/// `hipCtxDestroy`.
pub extern "C" fn hipCtxDestroy(_context: Handle) -> c_int {
    0
}

/// `hipCtxGetCurrent`.
pub extern "C" fn hipCtxGetCurrent(context: Out<Handle>) -> c_int {
    hipDevicePrimaryCtxRetain(context, 0)
}

/// `hipCtxSetCurrent`.
pub extern "C" fn hipCtxSetCurrent(_context: Handle) -> c_int {
    0
}

/// `hipCtxPushCurrent`.
pub extern "C" fn hipCtxPushCurrent(_context: Handle) -> c_int {
    0
}

/// `hipCtxPopCurrent`.
pub extern "C" fn hipCtxPopCurrent(context: Out<Handle>) -> c_int {
    context.put_optional(CONTEXT);
    0
}

/// `hipCtxGetDevice`.
pub extern "C" fn hipCtxGetDevice(device: Out<c_int>) -> c_int {
    hipGetDevice(device)
}

/// `hipDevicePrimaryCtxRetain`.
pub extern "C" fn hipDevicePrimaryCtxRetain(context: Out<Handle>, device: c_int) -> c_int {
    call("hipDevicePrimaryCtxRetain", || {
        only(device)?;
        context.put(CONTEXT)
    })
}

/// `hipDevicePrimaryCtxRelease`.
pub extern "C" fn hipDevicePrimaryCtxRelease(_device: c_int) -> c_int {
    0
}

/// `hipDevicePrimaryCtxGetState`.
pub extern "C" fn hipDevicePrimaryCtxGetState(
    _device: c_int,
    flags: Out<c_uint>,
    active: Out<c_int>,
) -> c_int {
    flags.put_optional(0);
    active.put_optional(1);
    0
}
