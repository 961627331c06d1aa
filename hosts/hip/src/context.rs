//! Contexts. Each device has one. A thread's current context is its current device.

use crate::ffi::Out;
use crate::gpu::{Gpu, gpu, gpu_at, gpus, make_current};
use crate::status::{Outcome, Status, call};
use crate::stream::Handle;
use std::cell::RefCell;
use std::ffi::{c_int, c_uint};

/// The context of the first device.
const FIRST: Handle = 0x100;
/// Distance between the contexts of devices, of which there are at most 64.
const STEP: Handle = 0x10;

thread_local! {
    /// Ordinals of the devices that were current before each push of a context.
    static PUSHED: RefCell<Vec<c_int>> = const { RefCell::new(Vec::new()) };
}

/// Returns the context of a device.
fn context_of(gpu: &Gpu) -> Handle {
    FIRST + STEP * gpu.device.ordinal()
}

/// Returns the device of a context.
pub fn gpu_of(context: Handle) -> Outcome<&'static Gpu> {
    let found = gpus()?.iter().find(|gpu| context_of(gpu) == context);
    found.ok_or(Status::INVALID_CONTEXT.into())
}

/// Makes a device current until the context is popped.
fn push(gpu: &'static Gpu) -> Outcome {
    let before = crate::gpu::gpu()?.ordinal();
    PUSHED.with_borrow_mut(|list| list.push(before));
    make_current(gpu);
    Ok(())
}

/// `hipCtxCreate`.
pub unsafe extern "C" fn hipCtxCreate(context: Out<Handle>, _flags: c_uint, device: c_int) -> c_int {
    call("hipCtxCreate", || {
        let gpu = gpu_at(device)?;
        context.put(context_of(gpu))?;
        push(gpu)
    })
}

/// `hipCtxDestroy`. The context of a device always exists.
pub unsafe extern "C" fn hipCtxDestroy(context: Handle) -> c_int {
    call("hipCtxDestroy", || gpu_of(context).map(drop))
}

/// `hipCtxGetCurrent`.
pub unsafe extern "C" fn hipCtxGetCurrent(context: Out<Handle>) -> c_int {
    call("hipCtxGetCurrent", || context.put(context_of(gpu()?)))
}

/// `hipCtxSetCurrent`. Null changes nothing, since a thread always has a device.
pub unsafe extern "C" fn hipCtxSetCurrent(context: Handle) -> c_int {
    call("hipCtxSetCurrent", || if context == 0 { Ok(()) } else { gpu_of(context).map(make_current) })
}

/// `hipCtxPushCurrent`.
pub unsafe extern "C" fn hipCtxPushCurrent(context: Handle) -> c_int {
    call("hipCtxPushCurrent", || push(gpu_of(context)?))
}

/// `hipCtxPopCurrent`.
pub unsafe extern "C" fn hipCtxPopCurrent(context: Out<Handle>) -> c_int {
    call("hipCtxPopCurrent", || {
        context.put_optional(context_of(gpu()?));
        let before = PUSHED.with_borrow_mut(Vec::pop).ok_or(Status::INVALID_CONTEXT)?;
        make_current(gpu_at(before)?);
        Ok(())
    })
}

/// `hipCtxGetDevice`.
pub unsafe extern "C" fn hipCtxGetDevice(device: Out<c_int>) -> c_int {
    // SAFETY: the caller guarantees what the API demands.
    unsafe { crate::device::hipGetDevice(device) }
}

/// `hipDevicePrimaryCtxRetain`.
pub unsafe extern "C" fn hipDevicePrimaryCtxRetain(context: Out<Handle>, device: c_int) -> c_int {
    call("hipDevicePrimaryCtxRetain", || context.put(context_of(gpu_at(device)?)))
}

/// `hipDevicePrimaryCtxRelease`.
pub unsafe extern "C" fn hipDevicePrimaryCtxRelease(device: c_int) -> c_int {
    call("hipDevicePrimaryCtxRelease", || gpu_at(device).map(drop))
}

/// `hipDevicePrimaryCtxGetState`.
pub unsafe extern "C" fn hipDevicePrimaryCtxGetState(
    device: c_int,
    flags: Out<c_uint>,
    active: Out<c_int>,
) -> c_int {
    call("hipDevicePrimaryCtxGetState", || {
        gpu_at(device)?;
        flags.put_optional(0);
        active.put_optional(1);
        Ok(())
    })
}

/// `hipDevicePrimaryCtxReset`. Waits for all work of the device and clears its failure.
pub unsafe extern "C" fn hipDevicePrimaryCtxReset(device: c_int) -> c_int {
    call("hipDevicePrimaryCtxReset", || {
        let gpu = gpu_at(device)?;
        gpu.streams.wait()?;
        gpu.reset();
        Ok(())
    })
}

/// `hipDevicePrimaryCtxSetFlags`. As in ROCm's runtime, the context is in use and its flags cannot change.
pub unsafe extern "C" fn hipDevicePrimaryCtxSetFlags(device: c_int, _flags: c_uint) -> c_int {
    call("hipDevicePrimaryCtxSetFlags", || {
        gpu_at(device)?;
        Err(Status::CONTEXT_ALREADY_IN_USE.into())
    })
}

/// `hipCtxGetApiVersion`.
pub unsafe extern "C" fn hipCtxGetApiVersion(context: Handle, version: Out<c_int>) -> c_int {
    /// What ROCm's runtime returns.
    const VERSION: c_int = 4;
    call("hipCtxGetApiVersion", || {
        if context != 0 {
            gpu_of(context)?;
        }
        version.put(VERSION)
    })
}

/// `hipCtxGetFlags`.
pub unsafe extern "C" fn hipCtxGetFlags(flags: Out<c_uint>) -> c_int {
    call("hipCtxGetFlags", || flags.put(0))
}

/// `hipCtxGetCacheConfig`.
pub unsafe extern "C" fn hipCtxGetCacheConfig(config: Out<c_int>) -> c_int {
    // SAFETY: the caller guarantees what the API demands.
    unsafe { crate::device::hipDeviceGetCacheConfig(config) }
}

/// `hipCtxSetCacheConfig`.
pub unsafe extern "C" fn hipCtxSetCacheConfig(config: c_int) -> c_int {
    // SAFETY: the caller guarantees what the API demands.
    unsafe { crate::device::hipDeviceSetCacheConfig(config) }
}

/// `hipCtxGetSharedMemConfig`.
pub unsafe extern "C" fn hipCtxGetSharedMemConfig(config: Out<c_int>) -> c_int {
    // SAFETY: the caller guarantees what the API demands.
    unsafe { crate::device::hipDeviceGetSharedMemConfig(config) }
}

/// `hipCtxSetSharedMemConfig`.
pub unsafe extern "C" fn hipCtxSetSharedMemConfig(config: c_int) -> c_int {
    // SAFETY: the caller guarantees what the API demands.
    unsafe { crate::device::hipDeviceSetSharedMemConfig(config) }
}
