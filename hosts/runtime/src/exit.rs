//! The exit status of a program in which something was found (`WAVESIM_ERROR_EXITCODE`).

use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};

/// The status; 0: the program's own.
static STATUS: AtomicI32 = AtomicI32::new(0);
static FOUND: AtomicBool = AtomicBool::new(false);

/// Makes `status` that of this program, if something is found.
pub(crate) fn use_status(status: i32) {
    if STATUS.swap(status, Ordering::SeqCst) == 0 {
        // SAFETY: `at_exit` does not unwind. If there is no room for it, the program's status remains.
        unsafe { libc::atexit(at_exit) };
    }
}

/// Something was found.
pub(crate) fn found() {
    FOUND.store(true, Ordering::SeqCst);
}

/// Handlers cannot change the status but by ending the program. Those that were registered before this one are not run, as with
/// the sanitizers of compilers.
extern "C" fn at_exit() {
    if FOUND.load(Ordering::SeqCst) {
        // SAFETY: null is for all streams; the process ends.
        unsafe {
            libc::fflush(std::ptr::null_mut());
            libc::_exit(STATUS.load(Ordering::SeqCst));
        }
    }
}
