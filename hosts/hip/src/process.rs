//! Functions about the API itself.

use crate::ffi::{Out, Text};
use crate::status::{Status, call};
use std::ffi::{c_int, c_void};

/// `HIP_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM`, the last of the flags: default, legacy stream, stream of the thread.
const PER_THREAD: u64 = 2;
/// The version from which on functions have the meaning that their names with `R0600` say.
const R0600: c_int = 600;
/// Functions that changed their meaning.
const CHANGED: [&str; 2] = ["hipGetDeviceProperties", "hipChooseDevice"];

/// `hipGetProcAddress`: a function of this library by name, as programs of a version of HIP know it.
pub extern "C" fn hipGetProcAddress(
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
        result.put_if_wanted(if found.is_null() { 1 } else { 0 });
        function.put(found)?;
        if found.is_null() { Err(Status::NOT_FOUND.into()) } else { Ok(()) }
    })
}

/// `hipGetDriverEntryPoint`: as programs of this version know the function.
pub extern "C" fn hipGetDriverEntryPoint(
    name: Text,
    function: Out<*mut c_void>,
    flags: u64,
    result: Out<c_int>,
) -> c_int {
    hipGetProcAddress(name, function, c_int::MAX, flags, result)
}

/// The symbol of a function for programs of a version, or the one whose default stream is that of the thread.
fn symbol(name: &str, version: c_int, per_thread: bool) -> String {
    let name = match CHANGED.contains(&name) && version >= R0600 {
        true => format!("{name}R0600"),
        false => name.to_string(),
    };
    let of_thread = format!("{name}_spt");
    if per_thread && is_exported(&of_thread) { of_thread } else { name }
}

fn is_exported(name: &str) -> bool {
    wavesim_hip_api::FUNCTIONS.iter().any(|f| f.name == name)
}

/// The address of an exported function.
fn lookup(name: &str) -> *mut c_void {
    let known = is_exported(name);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_are_those_of_the_version() {
        assert_eq!(symbol("hipGetDeviceProperties", 600, false), "hipGetDevicePropertiesR0600");
        assert_eq!(symbol("hipChooseDevice", 602, true), "hipChooseDeviceR0600");
        assert_eq!(symbol("hipGetDeviceProperties", 507, false), "hipGetDeviceProperties");
        assert_eq!(symbol("hipMemcpy", 600, true), "hipMemcpy_spt");
        assert_eq!(symbol("hipMemcpy", 600, false), "hipMemcpy");
        assert_eq!(symbol("hipMalloc", 600, true), "hipMalloc");
    }
}
