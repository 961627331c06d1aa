//! Texture references: variables of the program that kernels read textures through, HIP's interface before texture
//! objects. The variable on the device holds the handle of an object, which binding creates and writes.

use crate::array::{ChannelFormat, Description, channel_format, format_number};
use crate::ffi::{In, Memory, Out, Text};
use crate::gpu::{gpu, lock};
use crate::status::{Outcome, Status, call};
use crate::texture::{
    ARRAY, Handle, LINEAR, MIPMAPPED, NO_FORMAT, PITCHED, Resource, Settings, create, destroy,
};
use crate::{module, stream};
use std::collections::BTreeMap;
use std::ffi::{c_int, c_uint};
use std::mem::offset_of;
use std::sync::Mutex;

/// `textureReference`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct Reference {
    normalized_coordinates: c_int,
    normalized_read: c_int,
    filter: c_int,
    addressing: [c_int; 3],
    format: ChannelFormat,
    srgb: c_int,
    anisotropy: c_uint,
    mip_filter: c_int,
    bias: f32,
    lod: [f32; 2],
    object: Handle,
    channels: c_int,
    array_format: c_uint,
}

/// Flags of `hipTexRefSetFlags`: HIP_TRSF_READ_AS_INTEGER, …_NORMALIZED_COORDINATES, …_SRGB.
const READ_AS_INTEGER: c_uint = 1;
const NORMALIZED_COORDINATES: c_uint = 2;
const SRGB: c_uint = 0x10;

/// Returns whether narrow integers are read as fractions.
pub(crate) fn is_normalized_read(flags: c_uint) -> bool {
    flags & READ_AS_INTEGER == 0
}

/// Returns whether coordinates are fractions of the size.
pub(crate) fn uses_normalized_coordinates(flags: c_uint) -> bool {
    flags & NORMALIZED_COORDINATES != 0
}

/// Returns whether components are read through the curve of sRGB.
pub(crate) fn uses_srgb(flags: c_uint) -> bool {
    flags & SRGB != 0
}

/// Returns the flags of a setting.
pub(crate) fn flags_of(normalized_read: c_int, normalized_coordinates: c_int, srgb: c_int) -> c_uint {
    let flags = [
        (normalized_read == 0, READ_AS_INTEGER),
        (normalized_coordinates != 0, NORMALIZED_COORDINATES),
        (srgb != 0, SRGB),
    ];
    flags.iter().filter(|(set, _)| *set).map(|(_, flag)| flag).sum()
}

/// What a reference is bound to.
struct Binding {
    object: Handle,
    resource: Resource,
    /// The handle's address on the device.
    place: u64,
}

/// What the program's structure does not say about a reference.
#[derive(Default)]
struct State {
    binding: Option<Binding>,
    border: [f32; 4],
    /// The address on the device, of a reference that `hipModuleGetTexRef` has returned.
    variable: Option<u64>,
    /// The module and the name of such a reference.
    name: Option<(stream::Handle, String)>,
}

/// The state of each reference, by its address in the program.
static REFERENCES: Mutex<BTreeMap<usize, State>> = Mutex::new(BTreeMap::new());

fn with<T>(reference: usize, body: impl FnOnce(&mut State) -> T) -> T {
    body(lock(&REFERENCES).entry(reference).or_default())
}

/// Returns the address of the handle on the device.
fn place(reference: usize) -> Outcome<u64> {
    let variable = match with(reference, |state| state.variable) {
        Some(variable) => variable,
        None => module::variable(reference)?.0,
    };
    Ok(variable + offset_of!(Reference, object) as u64)
}

/// Ends the binding of a reference.
fn unbind(reference: usize) -> Outcome {
    let Some(bound) = with(reference, |state| state.binding.take()) else { return Ok(()) };
    // What runs may read the variable, or the object.
    destroy(bound.object)?;
    gpu()?.device.write(bound.place, &0_u64.to_le_bytes())?;
    Ok(())
}

/// Binds a reference to memory or to an array, with the settings that the reference has now.
fn bind(reference: &Out<Reference>, resource: Resource) -> Outcome {
    let (address, mut value) = (reference.address(), reference.get()?);
    let place = place(address)?;
    let settings = Settings {
        addressing: value.addressing,
        filter: value.filter,
        normalized_read: value.normalized_read,
        srgb: value.srgb,
        border: with(address, |state| state.border),
        normalized_coordinates: value.normalized_coordinates,
        anisotropy: value.anisotropy,
        mip_filter: value.mip_filter,
        bias: value.bias,
        lod: value.lod,
    };
    let object = create(resource, settings, None)?;
    unbind(address)?;
    gpu()?.device.write(place, &object.to_le_bytes())?;
    with(address, |state| state.binding = Some(Binding { object, resource, place }));
    value.object = object;
    reference.put(value)
}

/// Changes a reference. If it is bound, kernels that start later see the change.
fn change(reference: &Out<Reference>, body: impl FnOnce(&mut Reference, &mut State) -> Outcome) -> Outcome {
    let address = reference.address();
    let mut value = reference.get()?;
    with(address, |state| body(&mut value, state))?;
    reference.put(value)?;
    match with(address, |state| state.binding.as_ref().map(|bound| bound.resource)) {
        Some(resource) => bind(reference, resource),
        None => Ok(()),
    }
}

/// Returns what a reference is bound to, if it is of one of the kinds.
fn bound(reference: In<Reference>, kinds: &[c_int]) -> Outcome<Resource> {
    reference.get()?;
    let found = with(reference.address(), |state| state.binding.as_ref().map(|bound| bound.resource));
    let unbound = || Status::INVALID_VALUE.because("the texture reference is not bound to such a resource");
    found.filter(|resource| kinds.contains(&resource.kind)).ok_or_else(unbound)
}

/// Returns the rest of the allocation at an address, at most `most` bytes.
fn rest(address: u64, most: usize) -> usize {
    let range = gpu().ok().and_then(|gpu| gpu.device.find(address));
    range.map_or(0, |range| (range.len - (address - range.address)) as usize).min(most)
}

const EMPTY: Resource =
    Resource { kind: LINEAR, object: 0, format: NO_FORMAT, width: 0, height: 0, pitch: 0 };

fn of_array(array: usize, kind: c_int) -> Resource {
    Resource { kind, object: array as u64, ..EMPTY }
}

/// `hipBindTexture`. The size counts up to the end of the allocation.
pub unsafe extern "C" fn hipBindTexture(
    offset: Out<usize>,
    reference: Out<Reference>,
    memory: Memory,
    format: In<ChannelFormat>,
    size: usize,
) -> c_int {
    call("hipBindTexture", || {
        let object = memory.address();
        bind(&reference, Resource { object, format: format.get()?, width: rest(object, size), ..EMPTY })?;
        offset.put_optional(0);
        Ok(())
    })
}

/// `hipBindTexture2D`.
#[allow(clippy::too_many_arguments, reason = "the C API's")]
pub unsafe extern "C" fn hipBindTexture2D(
    offset: Out<usize>,
    reference: Out<Reference>,
    memory: Memory,
    format: In<ChannelFormat>,
    width: usize,
    height: usize,
    pitch: usize,
) -> c_int {
    call("hipBindTexture2D", || {
        let (object, format) = (memory.address(), format.get()?);
        bind(&reference, Resource { kind: PITCHED, object, format, width, height, pitch })?;
        offset.put_optional(0);
        Ok(())
    })
}

/// `hipBindTextureToArray`. The format is that of the array.
pub unsafe extern "C" fn hipBindTextureToArray(
    reference: Out<Reference>,
    array: usize,
    _format: In<ChannelFormat>,
) -> c_int {
    call("hipBindTextureToArray", || bind(&reference, of_array(array, ARRAY)))
}

/// `hipBindTextureToMipmappedArray`. The format is that of the array.
pub unsafe extern "C" fn hipBindTextureToMipmappedArray(
    reference: Out<Reference>,
    array: usize,
    _format: In<ChannelFormat>,
) -> c_int {
    call("hipBindTextureToMipmappedArray", || bind(&reference, of_array(array, MIPMAPPED)))
}

/// `hipUnbindTexture`.
pub unsafe extern "C" fn hipUnbindTexture(reference: In<Reference>) -> c_int {
    call("hipUnbindTexture", || {
        reference.get()?;
        unbind(reference.address())
    })
}

/// `hipGetTextureAlignmentOffset`. Memory is bound at any address, so the offset is 0.
pub unsafe extern "C" fn hipGetTextureAlignmentOffset(offset: Out<usize>, reference: In<Reference>) -> c_int {
    call("hipGetTextureAlignmentOffset", || {
        bound(reference, &[ARRAY, MIPMAPPED, LINEAR, PITCHED])?;
        offset.put(0)
    })
}

/// `hipGetTextureReference`.
pub unsafe extern "C" fn hipGetTextureReference(out: Out<usize>, symbol: usize) -> c_int {
    call("hipGetTextureReference", || {
        module::variable(symbol)?;
        out.put(symbol)
    })
}

/// `hipModuleGetTexRef`. Returns the same reference for the same name, with HIP's default settings at first. It stays
/// in memory when the module is unloaded, since the program may still have it.
pub unsafe extern "C" fn hipModuleGetTexRef(out: Out<usize>, module: stream::Handle, name: Text) -> c_int {
    call("hipModuleGetTexRef", || {
        let name = name.get()?;
        let (variable, size) = module::variable_of(module, &name)?;
        if size < size_of::<Reference>() as u64 {
            return Err(Status::NOT_FOUND.because(format!("`{name}` is not a texture reference")));
        }
        let name = Some((module, name));
        let mut references = lock(&REFERENCES);
        if let Some((reference, _)) = references.iter().find(|(_, state)| state.name == name) {
            return out.put(*reference);
        }
        let value = Reference {
            normalized_coordinates: 0,
            normalized_read: 0,
            filter: 0,
            addressing: [1; 3],
            format: NO_FORMAT,
            srgb: 0,
            anisotropy: 0,
            mip_filter: 0,
            bias: 0.0,
            lod: [0.0; 2],
            object: 0,
            channels: 0,
            array_format: 0,
        };
        let reference = std::ptr::from_mut(Box::leak(Box::new(value))).expose_provenance();
        references.insert(reference, State { variable: Some(variable), name, ..State::default() });
        out.put(reference)
    })
}

/// `hipTexRefSetAddress`. The format is that of `hipTexRefSetFormat`.
pub unsafe extern "C" fn hipTexRefSetAddress(
    offset: Out<usize>,
    reference: Out<Reference>,
    memory: Memory,
    bytes: usize,
) -> c_int {
    call("hipTexRefSetAddress", || {
        let (object, format) = (memory.address(), reference.get()?.format);
        bind(&reference, Resource { object, format, width: rest(object, bytes), ..EMPTY })?;
        offset.put_optional(0);
        Ok(())
    })
}

/// `hipTexRefSetAddress2D`.
pub unsafe extern "C" fn hipTexRefSetAddress2D(
    reference: Out<Reference>,
    description: In<Description>,
    memory: Memory,
    pitch: usize,
) -> c_int {
    call("hipTexRefSetAddress2D", || {
        let Description { width, height, format, channels } = description.get()?;
        let (object, format) = (memory.address(), channel_format(format, channels)?);
        bind(&reference, Resource { kind: PITCHED, object, format, width, height, pitch })
    })
}

/// `hipTexRefSetArray`. The flag HIP_TRSA_OVERRIDE_FORMAT demands the format of the array, which is always used.
pub unsafe extern "C" fn hipTexRefSetArray(reference: Out<Reference>, array: usize, _flags: c_uint) -> c_int {
    call("hipTexRefSetArray", || bind(&reference, of_array(array, ARRAY)))
}

/// `hipTexRefSetMipmappedArray`. As for `hipTexRefSetArray`.
pub unsafe extern "C" fn hipTexRefSetMipmappedArray(
    reference: Out<Reference>,
    array: usize,
    _flags: c_uint,
) -> c_int {
    call("hipTexRefSetMipmappedArray", || bind(&reference, of_array(array, MIPMAPPED)))
}

/// `hipTexRefSetFormat`.
pub unsafe extern "C" fn hipTexRefSetFormat(
    reference: Out<Reference>,
    format: c_uint,
    channels: c_int,
) -> c_int {
    call("hipTexRefSetFormat", || {
        let texels = channel_format(format, channels as c_uint)?;
        change(&reference, |value, _| {
            (value.format, value.array_format, value.channels) = (texels, format, channels);
            Ok(())
        })
    })
}

/// `hipTexRefSetFlags`. Without HIP_TRSF_READ_AS_INTEGER, narrow integers are read as fractions.
pub unsafe extern "C" fn hipTexRefSetFlags(reference: Out<Reference>, flags: c_uint) -> c_int {
    call("hipTexRefSetFlags", || {
        change(&reference, |value, _| {
            value.normalized_read = is_normalized_read(flags).into();
            value.normalized_coordinates = uses_normalized_coordinates(flags).into();
            value.srgb = uses_srgb(flags).into();
            Ok(())
        })
    })
}

/// `hipTexRefSetAddressMode`.
pub unsafe extern "C" fn hipTexRefSetAddressMode(
    reference: Out<Reference>,
    dimension: c_int,
    mode: c_int,
) -> c_int {
    call("hipTexRefSetAddressMode", || {
        change(&reference, |value, _| {
            *value.addressing.get_mut(dimension as usize).ok_or(Status::INVALID_VALUE)? = mode;
            Ok(())
        })
    })
}

/// `hipTexRefSetBorderColor`.
pub unsafe extern "C" fn hipTexRefSetBorderColor(reference: Out<Reference>, color: In<[f32; 4]>) -> c_int {
    call("hipTexRefSetBorderColor", || {
        let color = color.get()?;
        change(&reference, |_, state| {
            state.border = color;
            Ok(())
        })
    })
}

/// `hipTexRefSetMipmapLevelClamp`.
pub unsafe extern "C" fn hipTexRefSetMipmapLevelClamp(
    reference: Out<Reference>,
    min: f32,
    max: f32,
) -> c_int {
    call("hipTexRefSetMipmapLevelClamp", || {
        change(&reference, |value, _| {
            value.lod = [min, max];
            Ok(())
        })
    })
}

/// Defines the functions that set and return one field.
macro_rules! fields {
    ($($set:ident, $get:ident: $ty:ty = $field:ident;)*) => {
        $(
            #[doc = concat!("`", stringify!($set), "`.")]
            pub unsafe extern "C" fn $set(reference: Out<Reference>, given: $ty) -> c_int {
                call(stringify!($set), || {
                    change(&reference, |value, _| {
                        value.$field = given;
                        Ok(())
                    })
                })
            }

            #[doc = concat!("`", stringify!($get), "`.")]
            pub unsafe extern "C" fn $get(out: Out<$ty>, reference: In<Reference>) -> c_int {
                call(stringify!($get), || out.put(reference.get()?.$field))
            }
        )*
    };
}

fields! {
    hipTexRefSetFilterMode, hipTexRefGetFilterMode: c_int = filter;
    hipTexRefSetMaxAnisotropy, hipTexRefGetMaxAnisotropy: c_uint = anisotropy;
    hipTexRefSetMipmapFilterMode, hipTexRefGetMipmapFilterMode: c_int = mip_filter;
    hipTexRefSetMipmapLevelBias, hipTexRefGetMipmapLevelBias: f32 = bias;
}

/// `hipTexRefGetAddress`.
pub unsafe extern "C" fn hipTexRefGetAddress(out: Out<u64>, reference: In<Reference>) -> c_int {
    call("hipTexRefGetAddress", || out.put(bound(reference, &[LINEAR, PITCHED])?.object))
}

/// `hipTexRefGetArray`.
pub unsafe extern "C" fn hipTexRefGetArray(out: Out<u64>, reference: In<Reference>) -> c_int {
    call("hipTexRefGetArray", || out.put(bound(reference, &[ARRAY])?.object))
}

/// `hipTexRefGetMipMappedArray`.
pub unsafe extern "C" fn hipTexRefGetMipMappedArray(out: Out<u64>, reference: In<Reference>) -> c_int {
    call("hipTexRefGetMipMappedArray", || out.put(bound(reference, &[MIPMAPPED])?.object))
}

/// `hipTexRefGetAddressMode`.
pub unsafe extern "C" fn hipTexRefGetAddressMode(
    out: Out<c_int>,
    reference: In<Reference>,
    dimension: c_int,
) -> c_int {
    call("hipTexRefGetAddressMode", || {
        let addressing = reference.get()?.addressing;
        out.put(*addressing.get(dimension as usize).ok_or(Status::INVALID_VALUE)?)
    })
}

/// `hipTexRefGetFlags`.
pub unsafe extern "C" fn hipTexRefGetFlags(out: Out<c_uint>, reference: In<Reference>) -> c_int {
    call("hipTexRefGetFlags", || {
        let value = reference.get()?;
        out.put(flags_of(value.normalized_read, value.normalized_coordinates, value.srgb))
    })
}

/// `hipTexRefGetFormat`.
pub unsafe extern "C" fn hipTexRefGetFormat(
    format: Out<c_uint>,
    channels: Out<c_int>,
    reference: In<Reference>,
) -> c_int {
    call("hipTexRefGetFormat", || {
        let texels = reference.get()?.format;
        format.put_optional(format_number(&texels));
        channels.put_optional(texels.components() as c_int);
        Ok(())
    })
}

/// `hipTexRefGetBorderColor`.
pub unsafe extern "C" fn hipTexRefGetBorderColor(out: Out<[f32; 4]>, reference: In<Reference>) -> c_int {
    call("hipTexRefGetBorderColor", || {
        reference.get()?;
        out.put(with(reference.address(), |state| state.border))
    })
}

/// `hipTexRefGetMipmapLevelClamp`.
pub unsafe extern "C" fn hipTexRefGetMipmapLevelClamp(
    min: Out<f32>,
    max: Out<f32>,
    reference: In<Reference>,
) -> c_int {
    call("hipTexRefGetMipmapLevelClamp", || {
        let [low, high] = reference.get()?.lod;
        min.put_optional(low);
        max.put_optional(high);
        Ok(())
    })
}
