//! Access of devices to each other's memory.

use crate::context::gpu_of;
use crate::ffi::Out;
use crate::gpu::{Gpu, gpu, gpu_at, gpus};
use crate::status::{Outcome, Status, call};
use crate::stream::Handle;
use std::ffi::{c_int, c_uint};

/// `hipDeviceCanAccessPeer`. Every device can access every other one.
pub unsafe extern "C" fn hipDeviceCanAccessPeer(can: Out<c_int>, device: c_int, peer: c_int) -> c_int {
    call("hipDeviceCanAccessPeer", || {
        let (device, peer) = (gpu_at(device)?, gpu_at(peer)?);
        can.put((device.ordinal() != peer.ordinal()).into())
    })
}

/// Gives kernels of the current device access to the memory of another one.
fn enable(peer: &Gpu, flags: c_uint) -> Outcome {
    let gpu = gpu()?;
    if flags != 0 {
        return Err(Status::INVALID_VALUE.into());
    }
    if peer.ordinal() == gpu.ordinal() {
        return Err(Status::INVALID_DEVICE.into());
    }
    match gpu.device.enable_peer(&peer.device) {
        true => Ok(()),
        false => Err(Status::PEER_ACCESS_ALREADY_ENABLED.into()),
    }
}

/// Takes the access away, after the work of the current device.
fn disable(peer: &Gpu) -> Outcome {
    let gpu = gpu()?;
    gpu.streams.wait()?;
    match gpu.device.disable_peer(&peer.device) {
        true => Ok(()),
        false => Err(Status::PEER_ACCESS_NOT_ENABLED.into()),
    }
}

/// `hipDeviceEnablePeerAccess`.
pub unsafe extern "C" fn hipDeviceEnablePeerAccess(peer: c_int, flags: c_uint) -> c_int {
    call("hipDeviceEnablePeerAccess", || enable(gpu_at(peer)?, flags))
}

/// `hipDeviceDisablePeerAccess`.
pub unsafe extern "C" fn hipDeviceDisablePeerAccess(peer: c_int) -> c_int {
    call("hipDeviceDisablePeerAccess", || disable(gpu_at(peer)?))
}

/// `hipCtxEnablePeerAccess`.
pub unsafe extern "C" fn hipCtxEnablePeerAccess(peer: Handle, flags: c_uint) -> c_int {
    call("hipCtxEnablePeerAccess", || enable(gpu_of(peer)?, flags))
}

/// `hipCtxDisablePeerAccess`.
pub unsafe extern "C" fn hipCtxDisablePeerAccess(peer: Handle) -> c_int {
    call("hipCtxDisablePeerAccess", || disable(gpu_of(peer)?))
}

/// Returns two devices.
///
/// # Errors
/// They are the same.
fn pair(device: c_int, peer: c_int) -> Outcome {
    let (device, peer) = (gpu_at(device)?, gpu_at(peer)?);
    if device.ordinal() == peer.ordinal() { Err(Status::INVALID_DEVICE.into()) } else { Ok(()) }
}

/// `hipDeviceGetP2PAttribute`. All links are equal; access and atomics are supported.
pub unsafe extern "C" fn hipDeviceGetP2PAttribute(
    value: Out<c_int>,
    attribute: c_int,
    device: c_int,
    peer: c_int,
) -> c_int {
    call("hipDeviceGetP2PAttribute", || {
        pair(device, peer)?;
        match attribute {
            // hipDevP2PAttrPerformanceRank
            0 => value.put(0),
            // hipDevP2PAttrAccessSupported, hipDevP2PAttrNativeAtomicSupported, hipDevP2PAttrHipArrayAccessSupported
            1..=3 => value.put(1),
            _ => Err(Status::INVALID_VALUE.into()),
        }
    })
}

/// `hipExtGetLinkTypeAndHopCount`. Devices are connected by XGMI (`HSA_AMD_LINK_INFO_TYPE_XGMI`), directly.
pub unsafe extern "C" fn hipExtGetLinkTypeAndHopCount(
    device: c_int,
    peer: c_int,
    kind: Out<u32>,
    hops: Out<u32>,
) -> c_int {
    call("hipExtGetLinkTypeAndHopCount", || {
        pair(device, peer)?;
        kind.put(4)?;
        hops.put(1)
    })
}

/// `hipSetValidDevices`. Only checks the list, since every thread chooses its device.
pub unsafe extern "C" fn hipSetValidDevices(list: crate::ffi::In<c_int>, count: c_int) -> c_int {
    // SAFETY: the caller of the API passes an array of this length.
    let list = unsafe { list.array(usize::try_from(count).unwrap_or(0)) };
    call("hipSetValidDevices", || {
        if count < 0 || count as usize > gpus()?.len() {
            return Err(Status::INVALID_VALUE.into());
        }
        list.read()?.into_iter().try_for_each(|device| gpu_at(device).map(drop))
    })
}
