//! The time at which work of queues ends: the host's clock, or, if the times of a GPU are predicted (`WAVESIM_TIMING`), a
//! clock that only the predicted work advances.

use std::cell::Cell;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// The start of the predicted clock; set if times are predicted.
static START: OnceLock<Instant> = OnceLock::new();
/// Nanoseconds of predicted work since then.
static NANOSECONDS: AtomicU64 = AtomicU64::new(0);
/// How often the host has waited for work; the start of the program counts.
static WAITS: AtomicU64 = AtomicU64::new(1);
/// The waits before the last launch or copy was submitted.
static LAST: AtomicU64 = AtomicU64::new(0);

thread_local! {
    /// The submission of the work that runs on this thread.
    static RUNNING: Cell<Option<Submission>> = const { Cell::new(None) };
}

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
    WAITS.fetch_add(1, Ordering::SeqCst);
}

/// The waits of the host before it submitted some work. They are counted when work is submitted because a queue may
/// start it before or after the host waits for it, and predictions must not depend on that.
#[derive(Clone, Copy)]
pub(crate) struct Submission(u64);

impl Submission {
    /// Returns the submission of work that is submitted now.
    pub(crate) fn now() -> Submission {
        Submission(WAITS.load(Ordering::SeqCst))
    }

    /// Runs the work.
    pub(crate) fn run<T>(self, work: impl FnOnce() -> T) -> T {
        struct Outer(Option<Submission>);
        impl Drop for Outer {
            fn drop(&mut self) {
                RUNNING.set(self.0);
            }
        }
        let _outer = Outer(RUNNING.replace(Some(self)));
        work()
    }
}

/// Returns whether the host waited between the submissions of the last launch or copy and of the one that runs on this
/// thread, which becomes the last.
pub(crate) fn take_waited() -> bool {
    let Submission(waits) = RUNNING.get().unwrap_or_else(Submission::now);
    LAST.fetch_max(waits, Ordering::SeqCst) < waits
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_count_when_work_is_submitted() {
        let Submission(before) = Submission::now();
        host_waits();
        assert!(Submission::now().0 > before);
        // Later than what other tests submit; the host waits after the second.
        let [first, second, third] = [1 << 40, 1 << 40, (1 << 40) + 1].map(Submission);
        assert!(first.run(take_waited));
        assert!(!second.run(take_waited));
        assert!(third.run(take_waited));
        assert!(!third.run(take_waited));
    }
}
