//! Functions about the API itself.

use crate::ffi::{Out, Text};
use crate::status::{Status, call};
use std::ffi::{c_int, c_void};

/// `hipGetProcAddress`: a function of this library by name.
pub extern "C" fn hipGetProcAddress(
    name: Text,
    function: Out<*mut c_void>,
    _version: c_int,
    _flags: u64,
    result: Out<c_int>,
) -> c_int {
    call("hipGetProcAddress", || {
        let found = lookup(&name.get()?);
        // HIP_GET_PROC_ADDRESS_SUCCESS, HIP_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND
        result.put_if_wanted(if found.is_null() { 1 } else { 0 });
        function.put(found)?;
        if found.is_null() { Err(Status::NOT_FOUND.into()) } else { Ok(()) }
    })
}

/// `hipGetDriverEntryPoint`.
pub extern "C" fn hipGetDriverEntryPoint(
    name: Text,
    function: Out<*mut c_void>,
    flags: u64,
    result: Out<c_int>,
) -> c_int {
    hipGetProcAddress(name, function, 0, flags, result)
}

/// The address of an exported function.
fn lookup(name: &str) -> *mut c_void {
    let known = wavesim_hip_api::FUNCTIONS.iter().any(|f| f.name == name);
    let Ok(name) = std::ffi::CString::new(name) else { return std::ptr::null_mut() };
    if !known {
        return std::ptr::null_mut();
    }
    // SAFETY: the name is a string; the process has this library, and with it the symbol, for as long as this code runs.
    unsafe { libc::dlsym(own_library(), name.as_ptr()) }
}

/// A handle of this library, which may have been opened without making its symbols global.
fn own_library() -> *mut c_void {
    // SAFETY: all zeros is a valid value of this structure.
    let mut info: libc::Dl_info = unsafe { std::mem::zeroed() };
    // SAFETY: the address is one of this library's functions, and `info` is writable.
    let found = unsafe { libc::dladdr(own_library as *const c_void, &mut info) };
    if found == 0 {
        return libc::RTLD_DEFAULT;
    }
    // SAFETY: `dladdr` gave a path; the library is loaded already.
    let handle = unsafe { libc::dlopen(info.dli_fname, libc::RTLD_LAZY | libc::RTLD_NOLOAD) };
    if handle.is_null() { libc::RTLD_DEFAULT } else { handle }
}
