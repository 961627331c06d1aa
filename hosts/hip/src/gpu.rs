//! The process's device, with its streams and error state.

use crate::status::{Failure, Outcome, Status, report};
use crate::stream::Streams;
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Mutex, MutexGuard};
use std::sync::{OnceLock, PoisonError};
use wavesim_runtime::Device;

/// The device that the environment variables describe (`WAVESIM_TARGET`).
pub struct Gpu {
    /// The simulated device with its memory and modules.
    pub device: Device,
    /// Streams of the program, including the default streams.
    pub streams: Streams,
    /// Status of the first failed operation. As on a GPU, the error is sticky: all later work fails until a
    /// reset.
    failed: AtomicI32,
}

/// Locks, ignoring poisoning: each change is a single assignment, so a panic leaves the state consistent.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

static GPU: OnceLock<Result<Gpu, Failure>> = OnceLock::new();

/// Checks that this process is not a child of the one that opened the device. Takes no lock, since a thread of
/// the parent may have held it.
pub fn check_process() -> Outcome {
    match GPU.get() {
        Some(Ok(gpu)) => Ok(gpu.device.check_process()?),
        _ => Ok(()),
    }
}

/// Returns the device, opening it on first use.
pub fn gpu() -> Outcome<&'static Gpu> {
    // The reason is reported only once, although every later call fails for the same reason.
    let open = || Gpu::open().inspect_err(|e| report(e.message.as_deref().unwrap_or("there is no device")));
    GPU.get_or_init(open).as_ref().map_err(|e| e.status.into())
}

impl Gpu {
    /// Opens the device that the environment variables describe.
    pub fn open() -> Outcome<Gpu> {
        Ok(Gpu {
            device: Device::from_env()?,
            streams: Streams::default(),
            failed: AtomicI32::new(Status::SUCCESS.0),
        })
    }

    /// Returns the failure of earlier work, if any.
    pub fn check(&self) -> Outcome {
        match Status(self.failed.load(Ordering::SeqCst)) {
            Status::SUCCESS => Ok(()),
            status => Err(status.into()),
        }
    }

    /// Reports a failure of asynchronous work and makes it sticky.
    pub fn fail(&self, failure: &Failure) {
        if let Some(message) = &failure.message {
            report(message);
        }
        let none = Status::SUCCESS.0;
        // Only the first failure is kept.
        let _ = self.failed.compare_exchange(none, failure.status.0, Ordering::SeqCst, Ordering::SeqCst);
    }

    /// Clears the sticky failure.
    pub fn reset(&self) {
        self.failed.store(Status::SUCCESS.0, Ordering::SeqCst);
    }
}
