//! Cancellation of runs.

use std::sync::atomic::{AtomicBool, Ordering};

/// Set on Ctrl-C to end all runs of the process between turns, with a fault that lists the position of every
/// wave.
pub static INTERRUPT: AtomicBool = AtomicBool::new(false);

/// Returns whether a run is cancelled; `cancel` is set to end only this one.
#[inline]
pub fn is_cancelled(cancel: Option<&AtomicBool>) -> bool {
    INTERRUPT.load(Ordering::Relaxed) || cancel.is_some_and(|cancel| cancel.load(Ordering::Relaxed))
}
