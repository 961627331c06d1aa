//! Texture objects with the structures of the driver API, which name formats by numbers.

use crate::array::{channel_format, format_number};
use crate::ffi::{In, Out};
use crate::status::{Outcome, Status, call};
use crate::texture::{self, ARRAY, Handle, MIPMAPPED, Resource, Settings, View};
use crate::texture_reference::{flags_of, is_normalized_read, uses_normalized_coordinates, uses_srgb};
use std::ffi::{c_int, c_uint};

/// `HIP_RESOURCE_DESC`. The second word is an array or a device pointer; the numbers after the format are the size
/// of linear memory in bytes, or the width, height and pitch of rows.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct DriverResource {
    kind: c_int,
    object: u64,
    format: c_uint,
    channels: c_uint,
    sizes: [usize; 3],
    reserved: [u64; 11],
    flags: c_uint,
}

/// `HIP_TEXTURE_DESC`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct DriverSettings {
    addressing: [c_int; 3],
    filter: c_int,
    flags: c_uint,
    anisotropy: c_uint,
    mip_filter: c_int,
    bias: f32,
    lod: [f32; 2],
    border: [f32; 4],
    reserved: [c_int; 12],
}

impl DriverResource {
    fn resource(&self) -> Outcome<Resource> {
        if self.flags != 0 {
            return Err(Status::INVALID_VALUE.because(format!("flags {} of a resource", self.flags)));
        }
        let [width, height, pitch] = self.sizes;
        let format = match self.kind {
            ARRAY | MIPMAPPED => texture::NO_FORMAT,
            _ => channel_format(self.format, self.channels)?,
        };
        Ok(Resource { kind: self.kind, object: self.object, format, width, height, pitch })
    }

    fn new(resource: &Resource) -> DriverResource {
        DriverResource {
            kind: resource.kind,
            object: resource.object,
            format: format_number(&resource.format),
            channels: resource.format.components() as c_uint,
            sizes: [resource.width, resource.height, resource.pitch],
            reserved: [0; 11],
            flags: 0,
        }
    }
}

impl DriverSettings {
    fn settings(&self) -> Settings {
        Settings {
            addressing: self.addressing,
            filter: self.filter,
            normalized_read: is_normalized_read(self.flags).into(),
            srgb: uses_srgb(self.flags).into(),
            border: self.border,
            normalized_coordinates: uses_normalized_coordinates(self.flags).into(),
            anisotropy: self.anisotropy,
            mip_filter: self.mip_filter,
            bias: self.bias,
            lod: self.lod,
        }
    }

    fn new(settings: &Settings) -> DriverSettings {
        DriverSettings {
            addressing: settings.addressing,
            filter: settings.filter,
            flags: flags_of(settings.normalized_read, settings.normalized_coordinates, settings.srgb),
            anisotropy: settings.anisotropy,
            mip_filter: settings.mip_filter,
            bias: settings.bias,
            lod: settings.lod,
            border: settings.border,
            reserved: [0; 12],
        }
    }
}

/// `hipTexObjectCreate`.
pub unsafe extern "C" fn hipTexObjectCreate(
    out: Out<Handle>,
    resource: In<DriverResource>,
    settings: In<DriverSettings>,
    view: In<View>,
) -> c_int {
    call("hipTexObjectCreate", || {
        let (resource, settings) = (resource.get()?.resource()?, settings.get()?.settings());
        out.put(texture::create(resource, settings, texture::optional(view)?)?)
    })
}

/// `hipTexObjectDestroy`.
pub unsafe extern "C" fn hipTexObjectDestroy(handle: Handle) -> c_int {
    call("hipTexObjectDestroy", || texture::destroy(handle))
}

/// `hipTexObjectGetResourceDesc`.
pub unsafe extern "C" fn hipTexObjectGetResourceDesc(out: Out<DriverResource>, handle: Handle) -> c_int {
    call("hipTexObjectGetResourceDesc", || out.put(DriverResource::new(&texture::resource_of(handle)?)))
}

/// `hipTexObjectGetTextureDesc`.
pub unsafe extern "C" fn hipTexObjectGetTextureDesc(out: Out<DriverSettings>, handle: Handle) -> c_int {
    call("hipTexObjectGetTextureDesc", || out.put(DriverSettings::new(&texture::settings_of(handle)?)))
}
