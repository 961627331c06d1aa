//! Samplers.

use crate::context::Context;
use crate::ffi::{In, Memory, Out};
use crate::handle::{self, Handle, Identity, Object, object};
use crate::image::place;
use crate::info::{Query, unknown_parameter};
use crate::platform::gpu;
use crate::status::{Outcome, Status, call, create};
use std::ffi::{c_int, c_uint};
use std::sync::Arc;
use wavesim::arch::Arch;
use wavesim::exec::image::{Filter, MipFilter, Sampler as Settings, Wrap, sampler_descriptor};
use wavesim_runtime::{Owned, image};

/// A sampler.
pub struct Sampler {
    identity: Identity,
    context: Arc<Context>,
    properties: Properties,
    /// The property list that the program passed.
    list: Vec<u64>,
    /// The object that kernels get.
    object: Owned,
}

object!(Sampler, INVALID_SAMPLER, clRetainSampler, clReleaseSampler);

impl Sampler {
    /// Returns the address of the object that kernels get.
    pub fn object(&self) -> u64 {
        self.object.address()
    }
}

/// The properties of a sampler, as the API's numbers.
#[derive(Debug, Clone, Copy)]
struct Properties {
    normalized: bool,
    addressing: c_uint,
    filter: c_uint,
    mip_filter: c_uint,
    lod: [f32; 2],
}

/// `CL_ADDRESS_NONE` to `CL_ADDRESS_MIRRORED_REPEAT`.
const NONE: c_uint = 0x1130;
const CLAMP: c_uint = 0x1132;
const REPEAT: c_uint = 0x1133;
const MIRRORED_REPEAT: c_uint = 0x1134;
/// `CL_FILTER_NEAREST`, `CL_FILTER_LINEAR`.
const NEAREST: c_uint = 0x1140;
const LINEAR: c_uint = 0x1141;

/// No limit of the level of detail.
const ANY_LOD: [f32; 2] = [0.0, f32::MAX];

impl Properties {
    fn check(&self) -> Outcome {
        let filters = NEAREST..=LINEAR;
        let known = (NONE..=MIRRORED_REPEAT).contains(&self.addressing)
            && filters.contains(&self.filter)
            && filters.contains(&self.mip_filter);
        // Repeated images need normalised coordinates.
        let repeats = matches!(self.addressing, REPEAT | MIRRORED_REPEAT);
        match known && (self.normalized || !repeats) {
            true => Ok(()),
            false => Err(Status::INVALID_VALUE.into()),
        }
    }

    fn settings(&self) -> Settings {
        let wrap = match self.addressing {
            CLAMP => Wrap::Border,
            REPEAT => Wrap::Repeat,
            MIRRORED_REPEAT => Wrap::Mirror,
            _ => Wrap::ClampToEdge,
        };
        let filter = if self.filter == LINEAR { Filter::Linear } else { Filter::Nearest };
        Settings {
            wrap: [wrap; 3],
            mag: filter,
            min: filter,
            mip: if self.mip_filter == LINEAR { MipFilter::Linear } else { MipFilter::Nearest },
            unnormalized: !self.normalized,
            // The device libraries compute the texel of a nearest sample, as a quotient that may be below it.
            truncates: false,
            lod: self.lod,
            ..Settings::default()
        }
    }
}

/// Returns the words of the descriptors of all samplers that a program can have in its source: by filter, addressing mode
/// and normalised coordinates, as `__translate_sampler_initializer` numbers them.
///
/// # Errors
/// The device has no samplers.
pub fn literals(arch: Arch) -> Outcome<Vec<u32>> {
    let mut words = Vec::new();
    for filter in [NEAREST, LINEAR] {
        for addressing in NONE..=MIRRORED_REPEAT {
            for normalized in [false, true] {
                let literal =
                    Properties { normalized, addressing, filter, mip_filter: NEAREST, lod: ANY_LOD };
                words.extend(sampler_descriptor(&literal.settings(), arch)?);
            }
        }
    }
    Ok(words)
}

fn new(context: Handle, properties: Properties, list: Vec<u64>) -> Outcome<Handle> {
    let context = handle::get::<Context>(context)?;
    let device = &gpu()?.device;
    if !image::supported(device) {
        return Err(Status::INVALID_OPERATION.because("the device has no images"));
    }
    properties.check()?;
    let mut words = sampler_descriptor(&properties.settings(), device.target().arch)?.to_vec();
    words.resize(image::OBJECT_WORDS, 0);
    let object = place(&words)?;
    Ok(handle::register(|identity| Sampler { identity, context, properties, list, object }).0)
}

/// `clCreateSampler`.
pub unsafe extern "C" fn clCreateSampler(
    context: Handle,
    normalized: c_uint,
    addressing: c_uint,
    filter: c_uint,
    status: Out<c_int>,
) -> Handle {
    create("clCreateSampler", &status, || {
        let normalized = normalized != 0;
        let properties = Properties { normalized, addressing, filter, mip_filter: NEAREST, lod: ANY_LOD };
        new(context, properties, Vec::new())
    })
}

/// `clCreateSamplerWithProperties`.
pub unsafe extern "C" fn clCreateSamplerWithProperties(
    context: Handle,
    list: In<u64>,
    status: Out<c_int>,
) -> Handle {
    create("clCreateSamplerWithProperties", &status, || {
        let mut properties = Properties {
            normalized: true,
            addressing: CLAMP,
            filter: NEAREST,
            mip_filter: NEAREST,
            lod: ANY_LOD,
        };
        let mut given = Vec::new();
        while !list.is_null() {
            // SAFETY: the caller of the API passes pairs of a property and a value, and a terminating zero.
            let name = unsafe { list.at(given.len())? };
            if name == 0 {
                given.push(0);
                break;
            }
            // SAFETY: as above.
            let value = unsafe { list.at(given.len() + 1)? };
            if given.iter().step_by(2).any(|other| *other == name) {
                return Err(Status::INVALID_VALUE.because("a property is given twice"));
            }
            let word = value as u32;
            match name {
                0x1152 => properties.normalized = word != 0,
                0x1153 => properties.addressing = word,
                0x1154 => properties.filter = word,
                0x1155 => properties.mip_filter = word,
                0x1156 => properties.lod[0] = f32::from_bits(word),
                0x1157 => properties.lod[1] = f32::from_bits(word),
                _ => return Err(Status::INVALID_VALUE.because(format!("unknown property 0x{name:x}"))),
            }
            given.extend([name, value]);
        }
        new(context, properties, given)
    })
}

/// `clGetSamplerInfo`.
pub unsafe extern "C" fn clGetSamplerInfo(
    handle: Handle,
    name: c_uint,
    size: usize,
    value: Memory,
    needed: Out<usize>,
) -> c_int {
    call("clGetSamplerInfo", || {
        let sampler = handle::get::<Sampler>(handle)?;
        let properties = sampler.properties;
        // SAFETY: the caller of the API passes null, or a buffer of this size.
        let query = unsafe { Query::new(size, value, needed) };
        match name {
            0x1150 => query.u32(handle::references(handle)),
            0x1151 => query.handle(sampler.context.handle()),
            0x1152 => query.u32(properties.normalized.into()),
            0x1153 => query.u32(properties.addressing),
            0x1154 => query.u32(properties.filter),
            0x1155 => query.u32(properties.mip_filter),
            0x1156 => query.u32(properties.lod[0].to_bits()),
            0x1157 => query.u32(properties.lod[1].to_bits()),
            0x1158 => {
                let bytes: Vec<u8> = sampler.list.iter().flat_map(|n| n.to_le_bytes()).collect();
                query.bytes(&bytes)
            }
            _ => unknown_parameter(),
        }
    })
}
