//! Support for long runs: a progress bar on the terminal, and Ctrl-C.

use super::INTERRUPTED;
use indicatif::{ProgressBar, ProgressStyle};
use std::io::IsTerminal;
use std::sync::Once;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;
use wavesim_engine::sched::dispatch::INTERRUPT;

/// Whether the command polls [`INTERRUPT`].
static POLLED: AtomicBool = AtomicBool::new(false);

/// Makes Ctrl-C end the process with exit code 130.
pub fn exit_on_interrupt() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // Without a handler, Ctrl-C kills the process, which is acceptable.
        let _ = ctrlc::set_handler(|| {
            if !POLLED.load(Ordering::Relaxed) || INTERRUPT.swap(true, Ordering::Relaxed) {
                std::process::exit(INTERRUPTED.into());
            }
        });
    });
}

/// Makes Ctrl-C end the run of the kernel with a fault; a second Ctrl-C ends the process.
pub fn catch_interrupts() {
    POLLED.store(true, Ordering::Relaxed);
    exit_on_interrupt();
}

/// Progress in workgroups, shown on a terminal if the run takes longer than [`DELAY`].
pub struct Bar {
    done: AtomicU64,
    total: u64,
    shown: bool,
}

/// Delay before the bar appears.
const DELAY: Duration = Duration::from_millis(700);
const TICK: Duration = Duration::from_millis(100);

impl Bar {
    /// Creates a bar of `total` workgroups; hidden if `quiet` or if standard error is not a terminal.
    pub fn new(quiet: bool, total: u64) -> Bar {
        Bar { done: AtomicU64::new(0), total, shown: !quiet && std::io::stderr().is_terminal() }
    }

    /// Returns the counter that the run increments.
    pub fn counter(&self) -> &AtomicU64 {
        &self.done
    }

    /// Runs `work` while a thread updates the bar.
    pub fn during<T>(&self, work: impl FnOnce() -> T) -> T {
        if !self.shown {
            return work();
        }
        let ended = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let watcher = scope.spawn(|| self.show(&ended));
            let result = work();
            ended.store(true, Ordering::Relaxed);
            watcher.thread().unpark();
            result
        })
    }

    fn show(&self, ended: &AtomicBool) {
        std::thread::park_timeout(DELAY);
        if ended.load(Ordering::Relaxed) {
            return;
        }
        let bar = ProgressBar::new(self.total);
        let style =
            ProgressStyle::with_template("{elapsed_precise} {wide_bar} {pos}/{len} workgroups, {eta} left");
        if let Ok(style) = style {
            bar.set_style(style);
        }
        while !ended.load(Ordering::Relaxed) {
            bar.set_position(self.done.load(Ordering::Relaxed));
            std::thread::park_timeout(TICK);
        }
        bar.finish_and_clear();
    }
}
