//! Errors. The C API reports an error as a status and a per-thread message.

use crate::wavesim_status;
use std::cell::RefCell;
use std::ffi::{CString, c_char};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Reason why an API function failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The argument must not be null.
    #[error("{0} is null")]
    Null(&'static str),
    /// The argument `what` points to `len` bytes that are not all readable, or writable if `write`.
    #[error("{what}: {len} bytes at 0x{address:x} are not all {} in this process", if *.write { "writable" } else { "readable" })]
    Pointer { what: &'static str, address: u64, len: u64, write: bool },
    /// The argument is not a C string in UTF-8, or exceeds the length limit.
    #[error("{0} is not a UTF-8 string of at most {max} bytes", max = crate::host::MAX_STRING)]
    Text(&'static str),
    /// The `struct_size` of `what` is wrong: the structure is of another version, or was not initialised.
    #[error(
        "{what}.struct_size is {given}, not {expected}: it must be that of the header, of the same version as the library{init}",
        init = if matches!(*what, "launch" | "object_launch" | "exploration") { format!("; wavesim_{what}_init sets it") } else { String::new() }
    )]
    StructSize { what: &'static str, given: u32, expected: u32 },
    /// The handle is not that of a device, or the device was destroyed.
    #[error("there is no device {0}")]
    NoDevice(u64),
    /// The handle is not that of a module, or the module was unloaded.
    #[error("there is no module {0}")]
    NoModule(u64),
    #[error("there is no {0} {1}: the count is {2}")]
    Index(&'static str, u32, usize),
    #[error("this is an ELF code object, not raw machine code; use wavesim_device_launch_object")]
    Elf,
    /// The memory map of the process is unavailable, so pointers cannot be checked.
    #[error("the memory map of this process cannot be read: {0}")]
    Maps(#[from] std::io::Error),
    /// An error of the host runtime: a fault, or an invalid launch or module.
    #[error(transparent)]
    Runtime(#[from] wavesim_runtime::Error),
    /// A panic inside wavesim, with its message.
    #[error("internal error: {0}")]
    Internal(String),
}

impl Error {
    fn status(&self) -> wavesim_status {
        match self {
            Error::Runtime(wavesim_runtime::Error::Fault(_)) => wavesim_status::WAVESIM_FAULT,
            Error::Internal(_) => wavesim_status::WAVESIM_INTERNAL,
            _ => wavesim_status::WAVESIM_BAD_ARGUMENT,
        }
    }
}

thread_local! {
    static LAST: RefCell<CString> = RefCell::default();
}

/// Runs the body of an API call. Turns panics into errors, and stores the message for [`last`].
pub fn guard(body: impl FnOnce() -> Result<(), Error>) -> wavesim_status {
    // Unwind safety: state shared by calls is behind locks that ignore poisoning, and is never left
    // inconsistent.
    let result = catch_unwind(AssertUnwindSafe(body)).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<&str>().copied();
        let text = text.or(panic.downcast_ref::<String>().map(String::as_str));
        Err(Error::Internal(text.unwrap_or("panic").to_string()))
    });
    let (status, text) = match result {
        Ok(()) => (wavesim_status::WAVESIM_OK, String::new()),
        Err(e) => (e.status(), e.to_string()),
    };
    // Names in a code object can contain arbitrary bytes, and the caller prints the message.
    let text = CString::new(wavesim::files::escape::escape(&text)).unwrap_or_default();
    // Access fails while the thread exits; nothing can read the message then.
    let _ = LAST.try_with(|last| last.replace(text));
    status
}

/// Returns the message of the last call on this thread.
pub fn last() -> *const c_char {
    LAST.try_with(|last| last.borrow().as_ptr()).unwrap_or(c"".as_ptr())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::CStr;

    #[test]
    fn panics_are_errors() {
        let status = guard(|| panic!("at the {}\0th\x1b[2J", 3));
        assert_eq!(status, wavesim_status::WAVESIM_INTERNAL);
        // SAFETY: no other call has replaced the string.
        let text = unsafe { CStr::from_ptr(last()) };
        assert_eq!(text.to_str(), Ok("internal error: at the 3\\u0000th\\u001b[2J"));
        assert_eq!(guard(|| Ok(())), wavesim_status::WAVESIM_OK);
        // SAFETY: no other call has replaced the string.
        assert!(unsafe { CStr::from_ptr(last()) }.is_empty());
    }
}
