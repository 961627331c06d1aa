//! Textures and surfaces: objects that kernels read and write arrays and memory with.
//!
//! The object of a texture is that of an image, then that of a sampler (HIP's header `texture_fetch_functions.h`).

use crate::array::{Array, ChannelFormat, own, wait_for_device};
use crate::ffi::{In, Out};
use crate::gpu::{gpu, lock};
use crate::status::{Outcome, Status, call};
use std::collections::BTreeMap;
use std::ffi::{c_int, c_uint};
use std::sync::Mutex;
use wavesim::exec::image::View as Part;
use wavesim::exec::image::{Border, Dimension, Filter, Image, MipFilter, Sampler, Wrap, sampler_descriptor};
use wavesim_runtime::Owned;
use wavesim_runtime::image::{self, MAX_BUFFER_TEXELS, MAX_SIZE};

/// Handle of a texture or a surface: the address of its object.
pub type Handle = u64;

/// `hipResourceDesc`. The second word is an array, an array with levels of detail, or a device pointer.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct Resource {
    pub(crate) kind: c_int,
    pub(crate) object: u64,
    /// Of memory.
    pub(crate) format: ChannelFormat,
    /// The size in bytes of linear memory; the width of rows.
    pub(crate) width: usize,
    pub(crate) height: usize,
    pub(crate) pitch: usize,
}

/// `hipResourceTypeArray` to `hipResourceTypePitch2D`.
pub(crate) const ARRAY: c_int = 0;
pub(crate) const MIPMAPPED: c_int = 1;
pub(crate) const LINEAR: c_int = 2;
pub(crate) const PITCHED: c_int = 3;

/// `hipTextureDesc`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct Settings {
    pub(crate) addressing: [c_int; 3],
    pub(crate) filter: c_int,
    pub(crate) normalized_read: c_int,
    pub(crate) srgb: c_int,
    pub(crate) border: [f32; 4],
    pub(crate) normalized_coordinates: c_int,
    pub(crate) anisotropy: c_uint,
    pub(crate) mip_filter: c_int,
    pub(crate) bias: f32,
    pub(crate) lod: [f32; 2],
}

/// `hipResourceViewDesc`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct View {
    format: c_int,
    size: [usize; 3],
    levels: [c_uint; 2],
    layers: [c_uint; 2],
}

impl View {
    /// The format of texels: that of the resource, or another one of the same size.
    fn format(&self, own: ChannelFormat) -> Outcome<ChannelFormat> {
        /// Bits and kind of each three formats, of one, two and four components (`hipResourceViewFormat`).
        const FORMATS: [(c_int, c_int); 8] =
            [(8, 1), (8, 0), (16, 1), (16, 0), (32, 1), (32, 0), (16, 2), (32, 2)];
        let Some(number) = usize::try_from(self.format).ok().and_then(|number| number.checked_sub(1)) else {
            return Ok(own);
        };
        let Some((bits, kind)) = FORMATS.get(number / 3) else {
            return Err(Status::NOT_SUPPORTED.because(format!("views of format {}: compressed", self.format)));
        };
        let mut format = ChannelFormat { bits: [0; 4], kind: *kind };
        format.bits[..[1, 2, 4][number % 3]].fill(*bits);
        let size = |format: &ChannelFormat| format.bits.iter().sum::<c_int>();
        match size(&format) == size(&own) {
            true => Ok(format),
            false => Err(Status::INVALID_VALUE.because("a view whose texels have another size")),
        }
    }

    /// Restricts what of an image is shown.
    fn restrict(&self, image: &Image, part: &mut Part) -> Outcome {
        let wrong = |what: &str, [first, last]: [c_uint; 2]| {
            Status::INVALID_VALUE.because(format!("a view of {what} {first} to {last}"))
        };
        // Levels count from the first one of the resource.
        let [first, last] = self.levels;
        if first > last || last > part.levels[1] - part.levels[0] {
            return Err(wrong("levels", self.levels));
        }
        part.levels = [part.levels[0] + first, part.levels[0] + last];
        let size = image.level_size(part.levels[0] - first);
        let given = self.size.iter().zip(size).find(|(given, own)| **given > 1 && **given != *own as usize);
        if let (Some((given, own)), None) = (given, part.layers) {
            return Err(Status::INVALID_VALUE.because(format!("a view of size {given}, not {own}")));
        }
        match &mut part.layers {
            Some(layers) if self.layers[0] <= self.layers[1] && self.layers[1] <= layers[1] => {
                *layers = self.layers;
                Ok(())
            }
            None if self.layers == [0, 0] => Ok(()),
            _ => Err(wrong("layers", self.layers)),
        }
    }
}

/// The format of resources that have it themselves.
pub(crate) const NO_FORMAT: ChannelFormat = ChannelFormat { bits: [0; 4], kind: 0 };

/// A texture or a surface.
struct Object {
    /// The object in device memory.
    memory: Owned,
    resource: Resource,
    /// `None` for surfaces.
    settings: Option<Settings>,
}

static OBJECTS: Mutex<BTreeMap<Handle, Object>> = Mutex::new(BTreeMap::new());

impl Settings {
    fn sampler(&self) -> Outcome<Sampler> {
        let wrap = |mode: c_int| match mode {
            0 => Ok(Wrap::Repeat),
            1 => Ok(Wrap::ClampToEdge),
            2 => Ok(Wrap::Mirror),
            3 => Ok(Wrap::Border),
            _ => Err(Status::INVALID_VALUE.because(format!("address mode {mode}"))),
        };
        let border = match self.border {
            [0.0, 0.0, 0.0, 0.0] => Border::Transparent,
            [0.0, 0.0, 0.0, 1.0] => Border::Black,
            [1.0, 1.0, 1.0, 1.0] => Border::White,
            other => return Err(Status::NOT_SUPPORTED.because(format!("a border of color {other:?}"))),
        };
        let normalized = self.normalized_coordinates != 0;
        let mut modes = [Wrap::ClampToEdge; 3];
        for (mode, given) in modes.iter_mut().zip(self.addressing) {
            *mode = match wrap(given)? {
                // Coordinates in texels cannot be repeated, as the manuals of HIP and CUDA say.
                Wrap::Repeat | Wrap::Mirror if !normalized => Wrap::ClampToEdge,
                mode => mode,
            };
        }
        let filter = if self.filter == 1 { Filter::Linear } else { Filter::Nearest };
        Ok(Sampler {
            wrap: modes,
            mag: filter,
            min: filter,
            mip: if self.mip_filter == 1 { MipFilter::Linear } else { MipFilter::Nearest },
            unnormalized: !normalized,
            // The device libraries compute the texel of a nearest sample, as a quotient that may be below it.
            truncates: false,
            border,
            anisotropy: self.anisotropy,
            lod: self.lod,
            bias: self.bias,
            compare: 0,
        })
    }
}

impl Resource {
    /// Returns the words of the object, with texels that are read as fractions or through the curve of sRGB.
    fn object(
        &self,
        normalized: bool,
        srgb: bool,
        view: Option<View>,
    ) -> Outcome<[u32; image::OBJECT_WORDS]> {
        let arch = gpu()?.device.target().arch;
        match self.kind {
            ARRAY | MIPMAPPED => {
                let array = Array::get(self.object as usize)?;
                let format = view.map_or(Ok(array.format), |view| view.format(array.format))?;
                let texels = format.texels(normalized, srgb)?;
                let (image, address, mut part) = array.view(&texels);
                if let Some(view) = view {
                    view.restrict(&image, &mut part)?;
                }
                Ok(image::view_object(&image, arch, address, texels.channels, &part)?)
            }
            LINEAR | PITCHED if view.is_some() => {
                Err(Status::INVALID_VALUE.because("a view of memory that is no array"))
            }
            LINEAR | PITCHED => {
                let texels = self.format.texels(normalized, srgb)?;
                let linear = Image {
                    dimension: Dimension::D1,
                    format: texels.format,
                    size: [1; 3],
                    layers: 1,
                    levels: 1,
                    pitch: None,
                    swizzle: texels.swizzle,
                    sw_mode: 0,
                    samples: 1,
                };
                let texel = linear.element_bytes() as usize;
                self.check_memory(texel)?;
                if self.kind == LINEAR {
                    let count = (self.width / texel).min(MAX_BUFFER_TEXELS as usize) as u32;
                    let image = Image { size: [count, 1, 1], ..linear };
                    return Ok(image::buffer_object(&image, arch, self.object, texels.channels)?);
                }
                let size = [self.width as u32, self.height as u32, 1];
                let pitch = Some((self.pitch / texel) as u32);
                let image = Image { dimension: Dimension::D2, size, pitch, ..linear };
                Ok(image::object(&image, arch, self.object, texels.channels)?)
            }
            kind => Err(Status::INVALID_VALUE.because(format!("resource type {kind}"))),
        }
    }

    fn check_memory(&self, texel: usize) -> Outcome {
        let bytes = match self.kind {
            LINEAR => self.width,
            _ => self.pitch.checked_mul(self.height).ok_or(Status::INVALID_VALUE)?,
        };
        let most = MAX_SIZE as usize;
        let rows = self.kind == PITCHED;
        let fits = self.width <= most && self.height <= most && self.pitch >= self.width * texel;
        if self.width == 0 || rows && (self.height == 0 || !fits || !self.pitch.is_multiple_of(texel)) {
            let message = format!("{}x{} texels, pitch {}", self.width, self.height, self.pitch);
            return Err(Status::INVALID_VALUE.because(message));
        }
        let found = gpu()?.device.find(self.object);
        match found.is_some_and(|range| bytes as u64 <= range.len - (self.object - range.address)) {
            true => Ok(()),
            false => Err(Status::INVALID_VALUE
                .because(format!("{bytes} bytes at 0x{:x} are not device memory", self.object))),
        }
    }

    fn format(&self) -> Outcome<ChannelFormat> {
        match self.kind {
            ARRAY | MIPMAPPED => Ok(Array::get(self.object as usize)?.format),
            _ => Ok(self.format),
        }
    }
}

fn register(words: &[u32], resource: Resource, settings: Option<Settings>) -> Outcome<Handle> {
    let memory = own(words.len() as u64 * 4, "descriptor")?;
    memory.device().write(memory.address(), &image::bytes(words))?;
    let handle = memory.address();
    lock(&OBJECTS).insert(handle, Object { memory, resource, settings });
    Ok(handle)
}

fn check_images() -> Outcome {
    match image::supported(&gpu()?.device) {
        true => Ok(()),
        false => Err(Status::NOT_SUPPORTED.because("the device has no images")),
    }
}

/// `hipCreateTextureObject`.
pub unsafe extern "C" fn hipCreateTextureObject(
    out: Out<Handle>,
    resource: In<Resource>,
    settings: In<Settings>,
    view: In<View>,
) -> c_int {
    call("hipCreateTextureObject", || {
        let (resource, settings) = (resource.get()?, settings.get()?);
        out.put(create(resource, settings, optional(view)?)?)
    })
}

/// The view of a texture, if it has one.
pub(crate) fn optional(view: In<View>) -> Outcome<Option<View>> {
    if view.is_null() { Ok(None) } else { view.get().map(Some) }
}

/// Creates a texture.
pub(crate) fn create(resource: Resource, settings: Settings, view: Option<View>) -> Outcome<Handle> {
    check_images()?;
    let normalized = settings.normalized_read != 0;
    let own = resource.format()?;
    let format = view.map_or(Ok(own), |view| view.format(own))?;
    let fraction = format.kind == 2 || normalized && format.is_narrow_integer();
    if settings.filter == 1 && !fraction {
        return Err(Status::INVALID_VALUE.because("linear filters of integers that are read as such"));
    }
    let mut words = resource.object(normalized, settings.srgb != 0, view)?.to_vec();
    words.extend(sampler_descriptor(&settings.sampler()?, gpu()?.device.target().arch)?);
    words.resize(2 * image::OBJECT_WORDS, 0);
    register(&words, resource, Some(settings))
}

/// Destroys a texture or a surface, after what runs on its device.
pub(crate) fn destroy(handle: Handle) -> Outcome {
    if handle == 0 {
        return Ok(());
    }
    let device = lock(&OBJECTS).get(&handle).map(|object| object.memory.device().ordinal());
    wait_for_device(device)?;
    match lock(&OBJECTS).remove(&handle) {
        Some(_) => Ok(()),
        None => Err(Status::INVALID_VALUE.because("not the handle of a texture or surface")),
    }
}

/// `hipDestroyTextureObject`.
pub unsafe extern "C" fn hipDestroyTextureObject(handle: Handle) -> c_int {
    call("hipDestroyTextureObject", || destroy(handle))
}

/// Returns the resource of a texture or a surface.
pub(crate) fn resource_of(handle: Handle) -> Outcome<Resource> {
    Ok(lock(&OBJECTS).get(&handle).ok_or(Status::INVALID_VALUE)?.resource)
}

/// Returns the settings of a texture.
pub(crate) fn settings_of(handle: Handle) -> Outcome<Settings> {
    let settings = lock(&OBJECTS).get(&handle).and_then(|object| object.settings);
    settings.ok_or(Status::INVALID_VALUE.into())
}

/// `hipGetTextureObjectResourceDesc`.
pub unsafe extern "C" fn hipGetTextureObjectResourceDesc(out: Out<Resource>, handle: Handle) -> c_int {
    call("hipGetTextureObjectResourceDesc", || out.put(resource_of(handle)?))
}

/// `hipGetTextureObjectTextureDesc`.
pub unsafe extern "C" fn hipGetTextureObjectTextureDesc(out: Out<Settings>, handle: Handle) -> c_int {
    call("hipGetTextureObjectTextureDesc", || out.put(settings_of(handle)?))
}

/// `hipCreateSurfaceObject`.
pub unsafe extern "C" fn hipCreateSurfaceObject(out: Out<Handle>, resource: In<Resource>) -> c_int {
    call("hipCreateSurfaceObject", || {
        check_images()?;
        let resource = resource.get()?;
        if resource.kind != ARRAY {
            return Err(Status::INVALID_VALUE.because("only arrays have surfaces"));
        }
        out.put(register(&resource.object(false, false, None)?, resource, None)?)
    })
}

/// `hipDestroySurfaceObject`.
pub unsafe extern "C" fn hipDestroySurfaceObject(handle: Handle) -> c_int {
    call("hipDestroySurfaceObject", || destroy(handle))
}

/// `hipDeviceGetTexture1DLinearMaxWidth`.
pub unsafe extern "C" fn hipDeviceGetTexture1DLinearMaxWidth(
    out: Out<usize>,
    format: In<ChannelFormat>,
    device: c_int,
) -> c_int {
    call("hipDeviceGetTexture1DLinearMaxWidth", || {
        crate::gpu::gpu_at(device)?;
        check_images()?;
        format.get()?.texels(false, false)?;
        out.put(MAX_BUFFER_TEXELS as usize)
    })
}
