//! Functions about the API itself.

use crate::ffi::{Out, Text};
use crate::status::{Status, call};
use std::ffi::{c_int, c_void};

/// `HIP_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM`, the last of the flags: default, legacy stream,
/// per-thread stream.
const PER_THREAD: u64 = 2;
/// The API version that introduced the `R0600` variants of functions.
const R0600: c_int = 600;
/// Functions with an `R0600` variant.
const VERSIONED: [&str; 2] = ["hipGetDeviceProperties", "hipChooseDevice"];

/// `hipGetProcAddress`. Returns a function of this library by name, in the variant for a version of HIP.
pub unsafe extern "C" fn hipGetProcAddress(
    name: Text,
    function: Out<*mut c_void>,
    version: c_int,
    flags: u64,
    result: Out<c_int>,
) -> c_int {
    call("hipGetProcAddress", || {
        if flags > PER_THREAD {
            return Err(Status::INVALID_VALUE.into());
        }
        let found = lookup(&symbol(&name.get()?, version, flags == PER_THREAD));
        // HIP_GET_PROC_ADDRESS_SUCCESS, HIP_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND
        result.put_optional(if found.is_null() { 1 } else { 0 });
        function.put(found)?;
        if found.is_null() { Err(Status::NOT_FOUND.into()) } else { Ok(()) }
    })
}

/// `hipGetDriverEntryPoint`. Returns the variant for the latest version.
pub unsafe extern "C" fn hipGetDriverEntryPoint(
    name: Text,
    function: Out<*mut c_void>,
    flags: u64,
    result: Out<c_int>,
) -> c_int {
    // SAFETY: the caller guarantees what the API demands.
    unsafe { hipGetProcAddress(name, function, c_int::MAX, flags, result) }
}

/// Returns the symbol of a function for a version of HIP. With `per_thread`, prefers the variant that uses
/// the per-thread default stream.
pub fn symbol(name: &str, version: c_int, per_thread: bool) -> String {
    let name = match VERSIONED.contains(&name) && version >= R0600 {
        true => format!("{name}R0600"),
        false => name.to_string(),
    };
    let per_thread_name = format!("{name}_spt");
    if per_thread && is_exported(&per_thread_name) { per_thread_name } else { name }
}

fn is_exported(name: &str) -> bool {
    wavesim_hip_api::FUNCTIONS.iter().any(|f| f.name == name)
}

/// Returns the address of an exported function.
fn lookup(name: &str) -> *mut c_void {
    let known = is_exported(name);
    let Ok(name) = std::ffi::CString::new(name) else { return std::ptr::null_mut() };
    if !known {
        return std::ptr::null_mut();
    }
    // SAFETY: `name` is NUL-terminated. The library, and with it the symbol, stays loaded while this code
    // runs.
    unsafe { libc::dlsym(own_library(), name.as_ptr()) }
}

/// Returns a handle of this library. Its symbols may not be global, if it was opened with `RTLD_LOCAL`.
fn own_library() -> *mut c_void {
    // SAFETY: the structure consists of pointers and integers, for which all zeros is valid.
    let mut info: libc::Dl_info = unsafe { std::mem::zeroed() };
    // SAFETY: the address is that of a function of this library, and `info` is valid for writes.
    let found = unsafe { libc::dladdr(own_library as *const c_void, &mut info) };
    if found == 0 {
        return libc::RTLD_DEFAULT;
    }
    // SAFETY: `dladdr` succeeded and set a NUL-terminated path. `RTLD_NOLOAD` runs no initialisers.
    let handle = unsafe { libc::dlopen(info.dli_fname, libc::RTLD_LAZY | libc::RTLD_NOLOAD) };
    if handle.is_null() { libc::RTLD_DEFAULT } else { handle }
}
