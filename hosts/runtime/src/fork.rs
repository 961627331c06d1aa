//! Detection of forked processes. A child has none of the threads of its parent, so work that it submits to a
//! device of the parent would never end.

#[cfg(unix)]
use std::sync::Once;
use std::sync::atomic::{AtomicU32, Ordering};

/// Number of forks between the first process that opened a device and this one.
static FORKS: AtomicU32 = AtomicU32::new(0);

/// Returns a number that identifies this process among its parents and children.
pub(crate) fn process() -> u32 {
    #[cfg(unix)]
    {
        extern "C" fn in_child() {
            FORKS.fetch_add(1, Ordering::Relaxed);
        }
        static REGISTERED: Once = Once::new();
        // SAFETY: the handler only changes an atomic, which is permitted after a fork. If registration fails,
        // forks are not detected.
        REGISTERED.call_once(|| unsafe {
            libc::pthread_atfork(None, None, Some(in_child));
        });
    }
    FORKS.load(Ordering::Relaxed)
}
