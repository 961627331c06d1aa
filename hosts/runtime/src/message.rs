//! What hosts write to standard error, and what kernels print.

use crate::hostcall::Stream;
use std::collections::BTreeSet;
use std::io::Write;
use std::sync::{Mutex, PoisonError};

/// A message on standard error.
pub fn complain(message: &str) {
    // Nobody may be listening.
    let _ = writeln!(std::io::stderr(), "wavesim: {message}");
}

/// Reports, the first time, that a function is not supported. `list` is the command that lists what is.
pub fn unsupported(name: &'static str, list: &str) {
    static NAMED: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());
    if NAMED.lock().unwrap_or_else(PoisonError::into_inner).insert(name) {
        complain(&format!("{name} is not supported (`{list}` lists what is)"));
    }
}

#[cfg(target_os = "linux")]
unsafe extern "C" {
    #[link_name = "stdout"]
    static C_STDOUT: *mut libc::FILE;
    #[link_name = "stderr"]
    static C_STDERR: *mut libc::FILE;
}

/// Prints what a kernel prints through the C library, whose buffers have what the program printed before.
#[cfg(target_os = "linux")]
pub fn print(to: Stream, bytes: &[u8]) {
    // SAFETY: the C library sets both before the program starts.
    let file = unsafe {
        match to {
            Stream::Output => C_STDOUT,
            Stream::Error => C_STDERR,
        }
    };
    // SAFETY: `bytes` is readable, and the file is open, or a write to it fails.
    unsafe { libc::fwrite(bytes.as_ptr().cast(), 1, bytes.len(), file) };
}

/// Prints what a kernel prints.
#[cfg(not(target_os = "linux"))]
pub fn print(to: Stream, bytes: &[u8]) {
    // Nobody may be listening.
    let _ = match to {
        Stream::Output => std::io::stdout().write_all(bytes),
        Stream::Error => std::io::stderr().write_all(bytes),
    };
}
