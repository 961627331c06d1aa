//! The exit status of a process in which a check or a launch failed (`WAVESIM_ERROR_EXITCODE`).

use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};

/// The exit status on failure; 0 keeps the program's own status.
static STATUS: AtomicI32 = AtomicI32::new(0);
static FAILED: AtomicBool = AtomicBool::new(false);

/// Sets the exit status of the process for the case that [`record_failure`] is called.
pub(crate) fn set_failure_status(status: i32) {
    if STATUS.swap(status, Ordering::SeqCst) == 0 {
        // SAFETY: `at_exit` does not unwind. If registration fails, the program's own status remains in
        // effect.
        unsafe { libc::atexit(at_exit) };
    }
}

/// Records that a check reported an error or a kernel faulted.
pub(crate) fn record_failure() {
    FAILED.store(true, Ordering::SeqCst);
}

/// Ends the process with the failure status. An exit handler can change the status only by ending the process
/// itself, so handlers registered earlier do not run; compilers' sanitizers behave the same way.
extern "C" fn at_exit() {
    if FAILED.load(Ordering::SeqCst) {
        // SAFETY: `fflush(NULL)` flushes all streams; `_exit` does not return.
        unsafe {
            libc::fflush(std::ptr::null_mut());
            libc::_exit(STATUS.load(Ordering::SeqCst));
        }
    }
}
