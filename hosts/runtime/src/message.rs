//! Diagnostics on standard error, and the output of kernels.

use crate::hostcall::Stream;
use std::collections::BTreeSet;
use std::io::Write;
use std::sync::{Mutex, PoisonError};

/// Writes a diagnostic to standard error.
pub fn report(message: &str) {
    // In one call, so that lines of several threads do not mix.
    let line = format!("wavesim: {message}\n");
    // Standard error may be closed.
    let _ = write_error(line.as_bytes());
}

/// Writes to standard error without the lock of the Rust library, which another thread may have held when this
/// process was forked.
#[cfg(unix)]
pub(crate) fn write_error(bytes: &[u8]) -> std::io::Result<()> {
    use std::os::fd::FromRawFd;
    // SAFETY: the file is not closed, since it is never dropped; its descriptor belongs to the process.
    let file = std::mem::ManuallyDrop::new(unsafe { std::fs::File::from_raw_fd(libc::STDERR_FILENO) });
    (&*file).write_all(bytes)
}

#[cfg(not(unix))]
pub(crate) fn write_error(bytes: &[u8]) -> std::io::Result<()> {
    std::io::stderr().write_all(bytes)
}

/// Reports that a function is not supported, once per function. `list` is the command that lists supported
/// functions.
pub fn unsupported(name: &'static str, list: &str) {
    static REPORTED: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());
    if REPORTED.lock().unwrap_or_else(PoisonError::into_inner).insert(name) {
        report(&format!("{name} is not supported (`{list}` lists supported functions)"));
    }
}

#[cfg(target_os = "linux")]
unsafe extern "C" {
    #[link_name = "stdout"]
    static C_STDOUT: *mut libc::FILE;
    #[link_name = "stderr"]
    static C_STDERR: *mut libc::FILE;
}

/// Prints the output of a kernel through the C library, so that it follows the program's own buffered output.
#[cfg(target_os = "linux")]
pub fn print(to: Stream, bytes: &[u8]) {
    // SAFETY: the C library initialises both variables before `main`, and they stay valid for reads.
    let file = unsafe {
        match to {
            Stream::Output => C_STDOUT,
            Stream::Error => C_STDERR,
        }
    };
    // SAFETY: `bytes` is valid for reads of its length, and `file` is one of the C library's standard
    // streams.
    unsafe { libc::fwrite(bytes.as_ptr().cast(), 1, bytes.len(), file) };
}

/// Prints the output of a kernel.
#[cfg(not(target_os = "linux"))]
pub fn print(to: Stream, bytes: &[u8]) {
    // The stream may be closed.
    let _ = match to {
        Stream::Output => std::io::stdout().write_all(bytes),
        Stream::Error => std::io::stderr().write_all(bytes),
    };
}
