//! Services of the host that compiled kernels request: `printf`, and `malloc` on the device.
//!
//! - [`hostcall`]: LLVM's protocol, by which running kernels ask the host; HIP's `printf` and `malloc`
//! - [`messages`]: the buffer of OpenCL's `printf`, which the host reads when the kernel has ended
//! - [`printf`]: the conversions of both
//! - [`heap`]: the memory of `malloc`
//! - [`launch`]: the services of a single launch in its own memory, for the command
//!
//! Hosts keep the buffers of a device for all its launches (`hosts/runtime`); the command has one launch and its memory.

#![warn(missing_docs)]

pub mod heap;
pub mod hostcall;
pub mod launch;
pub mod messages;
pub mod printf;

use std::sync::{Mutex, MutexGuard, PoisonError};

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
