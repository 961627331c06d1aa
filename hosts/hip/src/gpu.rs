//! The process's devices, each with its streams and error state.

use crate::status::{Failure, Outcome, Status, report};
use crate::stream::Streams;
use std::cell::Cell;
use std::ffi::c_int;
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Mutex, MutexGuard};
use std::sync::{OnceLock, PoisonError};
use wavesim_runtime::{Device, Error, Settings};

/// A device that the environment variables describe (`WAVESIM_TARGET`, `WAVESIM_DEVICES`).
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

static GPUS: OnceLock<Result<Vec<Gpu>, Failure>> = OnceLock::new();

thread_local! {
    /// Ordinal of the calling thread's current device.
    static CURRENT: Cell<usize> = const { Cell::new(0) };
}

/// Checks that this process is not a child of the one that opened the device. Takes no lock, since a thread of
/// the parent may have held it.
pub fn check_process() -> Outcome {
    match GPUS.get() {
        Some(Ok(gpus)) => gpus.iter().try_for_each(|gpu| Ok(gpu.device.check_process()?)),
        _ => Ok(()),
    }
}

/// Returns all devices, opening them on first use.
pub fn gpus() -> Outcome<&'static [Gpu]> {
    // The reason is reported only once, although every later call fails for the same reason.
    let open =
        || Gpu::open_all().inspect_err(|e| report(e.message.as_deref().unwrap_or("there is no device")));
    GPUS.get_or_init(open).as_ref().map(Vec::as_slice).map_err(|e| e.status.into())
}

/// Returns the current device of the calling thread.
pub fn gpu() -> Outcome<&'static Gpu> {
    // Only the ordinals of devices become current.
    gpus()?.get(CURRENT.get()).ok_or(Status::INVALID_DEVICE.into())
}

/// Returns the device with an ordinal.
pub fn gpu_at(ordinal: c_int) -> Outcome<&'static Gpu> {
    let found =
        usize::try_from(ordinal).ok().and_then(|ordinal| gpus().map(|all| all.get(ordinal)).transpose());
    found.unwrap_or(Err(Status::INVALID_DEVICE.into()))
}

/// Makes a device the current one of the calling thread.
pub fn make_current(gpu: &Gpu) {
    CURRENT.set(gpu.device.ordinal());
}

impl Gpu {
    /// Opens the devices that the environment variables describe.
    pub fn open_all() -> Outcome<Vec<Gpu>> {
        let devices = Device::open_all(&Settings::from_env().map_err(Error::from)?)?;
        let open = |device: Device| {
            let streams = Streams::new(device.ordinal());
            Gpu { device, streams, failed: AtomicI32::new(Status::SUCCESS.0) }
        };
        Ok(devices.into_iter().map(open).collect())
    }

    /// Returns the ordinal of the device, as programs name it.
    pub fn ordinal(&self) -> c_int {
        // There are at most 64 devices.
        self.device.ordinal() as c_int
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
