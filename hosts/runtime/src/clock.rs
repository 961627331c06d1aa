//! The time at which work of queues ends: the host's clock, or, if the times of a GPU are predicted (`WAVESIM_TIMING`), a
//! clock that only the predicted work advances.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// The start of the predicted clock; set if times are predicted.
static START: OnceLock<Instant> = OnceLock::new();
/// Nanoseconds of predicted work since then.
static NANOSECONDS: AtomicU64 = AtomicU64::new(0);
/// The host has waited for work since the last launch.
static WAITED: AtomicBool = AtomicBool::new(true);

/// Predicts times from now on.
pub fn predict() {
    START.get_or_init(Instant::now);
}

/// Returns the time.
pub fn now() -> Instant {
    match START.get() {
        Some(start) => *start + Duration::from_nanos(NANOSECONDS.load(Ordering::SeqCst)),
        None => Instant::now(),
    }
}

/// Returns the nanoseconds of predicted work, if times are predicted.
pub(crate) fn predicted() -> Option<u64> {
    START.get().map(|_| NANOSECONDS.load(Ordering::SeqCst))
}

/// Advances the predicted clock.
pub(crate) fn advance(microseconds: f64) {
    NANOSECONDS.fetch_add((microseconds * 1e3).round() as u64, Ordering::SeqCst);
}

/// Records that the host waits for work.
pub(crate) fn host_waits() {
    WAITED.store(true, Ordering::SeqCst);
}

/// Returns whether the host has waited since the last call.
pub(crate) fn take_waited() -> bool {
    WAITED.swap(false, Ordering::SeqCst)
}
