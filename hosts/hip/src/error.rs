//! The last error of a thread, and the names and descriptions of errors.

use crate::ffi::Out;
use crate::status::{Status, call};
use std::ffi::{c_char, c_int};

/// `hipGetLastError`.
pub unsafe extern "C" fn hipGetLastError() -> c_int {
    let last = crate::status::last();
    crate::status::set_last(Status::SUCCESS);
    last.0
}

/// `hipExtGetLastError`.
pub unsafe extern "C" fn hipExtGetLastError() -> c_int {
    // SAFETY: the caller guarantees what the API demands.
    unsafe { hipGetLastError() }
}

/// `hipPeekAtLastError`.
pub unsafe extern "C" fn hipPeekAtLastError() -> c_int {
    crate::status::last().0
}

/// `hipGetErrorString`.
pub unsafe extern "C" fn hipGetErrorString(status: c_int) -> *const c_char {
    Status(status).text().unwrap_or(c"unrecognized error code").as_ptr()
}

/// `hipGetErrorName`.
pub unsafe extern "C" fn hipGetErrorName(status: c_int) -> *const c_char {
    Status(status).name().unwrap_or(c"hipErrorUnknown").as_ptr()
}

/// `hipDrvGetErrorString`.
pub unsafe extern "C" fn hipDrvGetErrorString(status: c_int, text: Out<*const c_char>) -> c_int {
    call("hipDrvGetErrorString", || text.put(Status(status).text().ok_or(Status::INVALID_VALUE)?.as_ptr()))
}

/// `hipDrvGetErrorName`.
pub unsafe extern "C" fn hipDrvGetErrorName(status: c_int, text: Out<*const c_char>) -> c_int {
    call("hipDrvGetErrorName", || text.put(Status(status).name().ok_or(Status::INVALID_VALUE)?.as_ptr()))
}
