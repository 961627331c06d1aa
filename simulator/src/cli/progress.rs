//! Support for long runs: a progress bar on the terminal, and Ctrl-C.

use super::INTERRUPTED;
use indicatif::{HumanCount, HumanDuration, ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};
use std::fmt::Write;
use std::io::IsTerminal;
use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use wavesim_engine::sched::dispatch::{Dispatch, INTERRUPT, Progress};

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

/// A style of progress bars whose `{left}` is the remaining time, and empty until that is known.
pub fn style(template: &str) -> ProgressStyle {
    let left = |state: &ProgressState, out: &mut dyn Write| {
        let time = state.eta();
        if !time.is_zero() {
            // The terminal's line is a string, which takes all that is written.
            let _ = write!(out, ", {:#} left", HumanDuration(time));
        }
    };
    ProgressStyle::with_template(template)
        .unwrap_or_else(|_| ProgressStyle::default_bar())
        .with_key("left", left)
}

/// Progress in instructions and waves, shown on a terminal if the run takes longer than [`DELAY`].
pub struct Bar {
    done: Progress,
    /// The number of waves.
    total: u64,
    shown: bool,
}

/// Delay before the bar appears.
const DELAY: Duration = Duration::from_millis(700);
const TICK: Duration = Duration::from_millis(100);

impl Bar {
    /// Creates a bar for a launch; hidden if `quiet` or if standard error is not a terminal.
    pub fn new(quiet: bool, dispatch: &Dispatch<'_>) -> Bar {
        let total = dispatch.workgroups().saturating_mul(dispatch.waves() as u64);
        Bar { done: Progress::default(), total, shown: !quiet && std::io::stderr().is_terminal() }
    }

    /// Returns the counters that the run increments.
    pub fn counters(&self) -> &Progress {
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
        // Its time and rate count from here.
        let bar = ProgressBar::with_draw_target(Some(self.total), ProgressDrawTarget::hidden());
        std::thread::park_timeout(DELAY);
        if ended.load(Ordering::Relaxed) {
            return;
        }
        bar.set_draw_target(ProgressDrawTarget::stderr());
        // Nobody knows how many instructions a kernel takes. Once waves have ended, their number tells the time.
        let [unknown, known] =
            ["{elapsed_precise} {msg}", "{elapsed_precise} {wide_bar} {msg}{left}"].map(style);
        bar.set_style(unknown);
        let mut started = false;
        while !ended.load(Ordering::Relaxed) {
            let waves = self.done.waves.load(Ordering::Relaxed);
            let instructions = self.done.instructions.load(Ordering::Relaxed);
            if waves > 0 && !std::mem::replace(&mut started, true) {
                bar.set_style(known.clone());
            }
            bar.set_message(format!(
                "{} instructions, {waves}/{} waves",
                HumanCount(instructions),
                self.total
            ));
            bar.set_position(waves);
            std::thread::park_timeout(TICK);
        }
        bar.finish_and_clear();
    }
}
