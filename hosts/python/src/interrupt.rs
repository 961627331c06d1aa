//! Ctrl-C: Python's handlers of signals run in its main thread, when that thread runs Python code.

use pyo3::prelude::*;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;
use wavesim_runtime::Device;

/// How often the handlers of signals that have arrived run.
const INTERVAL: Duration = Duration::from_millis(50);

/// Runs a launch in another thread, while this one lets Python handle signals. If a handler raises an exception, as that
/// of Ctrl-C does, the launch is cancelled and the exception is the result. The launch gets the flag that cancels it.
pub fn interruptible<T: Send>(py: Python<'_>, launch: impl FnOnce(&AtomicBool) -> T + Send) -> PyResult<T> {
    let cancel = Arc::new(AtomicBool::new(false));
    py.detach(|| {
        std::thread::scope(|scope| {
            let (sender, ended) = channel::<()>();
            let flag = cancel.clone();
            let worker = scope.spawn(move || {
                // Dropped at the end, even by a panic.
                let _sender = sender;
                Device::cancelled_by(&flag, || launch(&flag))
            });
            let mut raised = Ok(());
            while raised.is_ok() && ended.recv_timeout(INTERVAL) == Err(RecvTimeoutError::Timeout) {
                raised = Python::attach(|py| py.check_signals());
            }
            cancel.store(raised.is_err(), Ordering::Relaxed);
            let result = worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            raised.map(|()| result)
        })
    })
}
