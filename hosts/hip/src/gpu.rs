//! The device of the process, and what belongs to it.

use crate::status::{Failure, Outcome, Status, complain};
use crate::stream::Streams;
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Mutex, MutexGuard};
use std::sync::{OnceLock, PoisonError};
use wavesim_runtime::Device;

/// The device, which the environment describes (`WAVESIM_TARGET`).
pub struct Gpu {
    /// The simulated device with its memory and modules.
    pub device: Device,
    /// Streams of the program, and its null streams.
    pub streams: Streams,
    /// The status of the first launch that failed. As on GPUs, nothing works after it until the device is reset.
    failed: AtomicI32,
}

/// Locks. What panics leave behind is consistent: each change is one assignment.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The device.
pub fn gpu() -> Outcome<&'static Gpu> {
    static GPU: OnceLock<Result<Gpu, Failure>> = OnceLock::new();
    // The reason is reported once: every later call fails for it.
    let open = || Gpu::open().inspect_err(|e| complain(e.message.as_deref().unwrap_or("there is no device")));
    GPU.get_or_init(open).as_ref().map_err(|e| e.status.into())
}

impl Gpu {
    /// The device that the environment describes.
    pub fn open() -> Outcome<Gpu> {
        Ok(Gpu {
            device: Device::from_env()?,
            streams: Streams::default(),
            failed: AtomicI32::new(Status::SUCCESS.0),
        })
    }

    /// Why earlier work failed, if any did.
    pub fn check(&self) -> Outcome {
        match Status(self.failed.load(Ordering::SeqCst)) {
            Status::SUCCESS => Ok(()),
            status => Err(status.into()),
        }
    }

    /// Work failed whose caller has gone on.
    pub fn fail(&self, failure: &Failure) {
        if let Some(message) = &failure.message {
            complain(message);
        }
        let none = Status::SUCCESS.0;
        // The first failure counts.
        let _ = self.failed.compare_exchange(none, failure.status.0, Ordering::SeqCst, Ordering::SeqCst);
    }

    /// Forgets failures.
    pub fn reset(&self) {
        self.failed.store(Status::SUCCESS.0, Ordering::SeqCst);
    }
}
