//! Contexts. There is a single context.

use crate::device::{hipGetDevice, only};
use crate::ffi::Out;
use crate::status::call;
use crate::stream::Handle;
use std::ffi::{c_int, c_uint};

/// The only context.
const CONTEXT: Handle = 0x20;

/// `hipCtxCreate`.
pub unsafe extern "C" fn hipCtxCreate(context: Out<Handle>, _flags: c_uint, device: c_int) -> c_int {
    // SAFETY: the caller guarantees what the API demands.
    unsafe { hipDevicePrimaryCtxRetain(context, device) }
}

/// `hipCtxDestroy`.
pub unsafe extern "C" fn hipCtxDestroy(_context: Handle) -> c_int {
    0
}

/// `hipCtxGetCurrent`.
pub unsafe extern "C" fn hipCtxGetCurrent(context: Out<Handle>) -> c_int {
    // SAFETY: the caller guarantees what the API demands.
    unsafe { hipDevicePrimaryCtxRetain(context, 0) }
}

/// `hipCtxSetCurrent`.
pub unsafe extern "C" fn hipCtxSetCurrent(_context: Handle) -> c_int {
    0
}

/// `hipCtxPushCurrent`.
pub unsafe extern "C" fn hipCtxPushCurrent(_context: Handle) -> c_int {
    0
}

/// `hipCtxPopCurrent`.
pub unsafe extern "C" fn hipCtxPopCurrent(context: Out<Handle>) -> c_int {
    context.put_optional(CONTEXT);
    0
}

/// `hipCtxGetDevice`.
pub unsafe extern "C" fn hipCtxGetDevice(device: Out<c_int>) -> c_int {
    // SAFETY: the caller guarantees what the API demands.
    unsafe { hipGetDevice(device) }
}

/// `hipDevicePrimaryCtxRetain`.
pub unsafe extern "C" fn hipDevicePrimaryCtxRetain(context: Out<Handle>, device: c_int) -> c_int {
    call("hipDevicePrimaryCtxRetain", || {
        only(device)?;
        context.put(CONTEXT)
    })
}

/// `hipDevicePrimaryCtxRelease`.
pub unsafe extern "C" fn hipDevicePrimaryCtxRelease(_device: c_int) -> c_int {
    0
}

/// `hipDevicePrimaryCtxGetState`.
pub unsafe extern "C" fn hipDevicePrimaryCtxGetState(
    _device: c_int,
    flags: Out<c_uint>,
    active: Out<c_int>,
) -> c_int {
    flags.put_optional(0);
    active.put_optional(1);
    0
}
