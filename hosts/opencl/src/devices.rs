//! The devices of the platform, which programs name by handles.

use crate::ffi::Array;
use crate::handle::{Handle, StaticHandle};
use crate::platform::Gpu;
use crate::status::{Failure, Outcome, Status, report};
use std::sync::OnceLock;
use wavesim_runtime::{Device, Error, Settings, clock};

static GPUS: OnceLock<Result<Vec<Gpu>, Failure>> = OnceLock::new();

/// Opens the devices. Programs are compiled for one processor, so only devices like the first one are listed.
fn open() -> Outcome<Vec<Gpu>> {
    let mut settings = Settings::from_env().map_err(Error::from)?;
    let all = settings.devices.len();
    if let Some(first) = settings.devices.first().cloned() {
        settings.devices.retain(|name| *name == first);
        if settings.devices.len() < all {
            report(&format!(
                "OpenCL lists only the devices of WAVESIM_DEVICES that are {first}, as the first is"
            ));
        }
    }
    let devices = Device::open_all(&settings)?;
    // The buffers of a context belong to all of its devices.
    for device in &devices {
        devices.iter().filter(|peer| peer.ordinal() != device.ordinal()).for_each(|peer| {
            device.enable_peer(peer);
        });
    }
    Ok(devices.into_iter().map(|device| Gpu { device, opened: clock::now() }).collect())
}

/// Returns all devices, opening them on first use.
pub fn gpus() -> Outcome<&'static [Gpu]> {
    GPUS.get_or_init(open).as_ref().map(Vec::as_slice).map_err(Failure::clone)
}

/// Returns the devices that have been opened.
pub fn opened() -> &'static [Gpu] {
    GPUS.get().and_then(|gpus| gpus.as_deref().ok()).unwrap_or_default()
}

/// Returns the handles of all devices, in their order.
pub fn handles() -> Outcome<&'static [Handle]> {
    static HANDLES: OnceLock<Vec<Handle>> = OnceLock::new();
    let count = gpus()?.len();
    Ok(HANDLES.get_or_init(|| (0..count).map(|_| StaticHandle::new().handle()).collect()))
}

/// Returns the index of the device with a handle.
pub fn index_of(handle: Handle) -> Outcome<usize> {
    let found = handles()?.iter().position(|other| *other == handle);
    found.ok_or(Status::INVALID_DEVICE.into())
}

/// Reads a list of handles of devices, each once.
pub fn read(list: Array<Handle>) -> Outcome<Vec<Handle>> {
    let mut devices = Vec::new();
    for handle in list.read()? {
        index_of(handle)?;
        if !devices.contains(&handle) {
            devices.push(handle);
        }
    }
    Ok(devices)
}
