//! Callbacks of the program, which queues run in order with other work.
//!
//! A callback that waits for its own queue, or for work that waits for its queue, never ends. Whether that is
//! so can depend on timing, so hosts refuse every call that waits, as their standards demand: the documentation
//! of hipLaunchHostFunc, and of clSetEventCallback.

use std::cell::Cell;

thread_local! {
    static RUNNING: Cell<bool> = const { Cell::new(false) };
}

/// Runs a callback of the program.
pub fn run<T>(callback: impl FnOnce() -> T) -> T {
    /// Restores the state when dropped, because callbacks can be nested.
    struct Outer(bool);
    impl Drop for Outer {
        fn drop(&mut self) {
            RUNNING.set(self.0);
        }
    }
    let _outer = Outer(RUNNING.replace(true));
    callback()
}

/// Returns true if the calling thread runs a callback.
pub fn is_running() -> bool {
    RUNNING.get()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn callbacks_nest() {
        assert!(!is_running());
        run(|| {
            run(|| assert!(is_running()));
            assert!(is_running());
            assert!(!std::thread::spawn(is_running).join().unwrap());
        });
        assert!(!is_running());
        let _ = std::panic::catch_unwind(|| run(|| panic!("as planned")));
        assert!(!is_running());
    }
}
