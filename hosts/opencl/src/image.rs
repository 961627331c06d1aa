//! Images: memory objects with texels.

use crate::channels::ImageFormat;
use crate::context::Context;
use crate::ffi::{In, Memory, Out};
use crate::handle::{self, Handle, Object};
use crate::info::{Query, unknown_parameter};
use crate::memory::{self, COPY_HOST_PTR, MemObject, Parts, USE_HOST_PTR, check_flags};
use crate::platform::gpu;
use crate::status::{Failure, Outcome, Status, call, create};
use std::ffi::{c_int, c_uint};
use std::sync::{Arc, OnceLock};
use wavesim::exec::image::{Dimension, Image, ImageError};
use wavesim_runtime::Owned;
use wavesim_runtime::image::{self, Arrangement, MAX_BUFFER_TEXELS, MAX_DEPTH, MAX_SIZE, Region};
use wavesim_runtime::pitched::Pitched;

/// Alignment of the address and of the rows of an image of two dimensions in a buffer, in texels.
pub const PITCH_ALIGNMENT: u32 = 256;

/// The type of an image (`cl_mem_object_type`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum ImageKind {
    D2 = 0x10f1,
    D3 = 0x10f2,
    D2Array = 0x10f3,
    D1 = 0x10f4,
    D1Array = 0x10f5,
    Buffer1D = 0x10f6,
}

impl ImageKind {
    /// `CL_MEM_OBJECT_BUFFER`.
    pub const BUFFER: u32 = 0x10f0;
    const ALL: [ImageKind; 6] = [
        ImageKind::D2,
        ImageKind::D3,
        ImageKind::D2Array,
        ImageKind::D1,
        ImageKind::D1Array,
        ImageKind::Buffer1D,
    ];

    fn of(number: c_uint) -> Option<ImageKind> {
        ImageKind::ALL.into_iter().find(|kind| *kind as u32 == number)
    }

    /// Number of coordinates, with that of the layer.
    pub fn coordinates(self) -> usize {
        match self {
            ImageKind::D1 | ImageKind::Buffer1D => 1,
            ImageKind::D2 | ImageKind::D1Array => 2,
            ImageKind::D3 | ImageKind::D2Array => 3,
        }
    }

    fn dimension(self) -> Dimension {
        match self {
            ImageKind::D1 | ImageKind::Buffer1D => Dimension::D1,
            ImageKind::D2 => Dimension::D2,
            ImageKind::D3 => Dimension::D3,
            ImageKind::D1Array => Dimension::D1Array,
            ImageKind::D2Array => Dimension::D2Array,
        }
    }

    fn has_height(self) -> bool {
        matches!(self, ImageKind::D2 | ImageKind::D3 | ImageKind::D2Array)
    }

    fn is_array(self) -> bool {
        matches!(self, ImageKind::D1Array | ImageKind::D2Array)
    }
}

impl From<ImageError> for Failure {
    fn from(error: ImageError) -> Failure {
        Status::INVALID_IMAGE_DESCRIPTOR.because(error.to_string())
    }
}

/// What distinguishes an image from a buffer.
pub struct Picture {
    pub kind: ImageKind,
    pub format: ImageFormat,
    /// The image that the descriptor describes.
    pub image: Image,
    pub arrangement: Arrangement,
    /// Distances of rows and slices as the program knows them: in its memory, or without gaps.
    row_pitch: usize,
    slice_pitch: usize,
    /// `num_mip_levels` of the creation.
    levels: u32,
    /// The words of the object that kernels get.
    words: [u32; image::OBJECT_WORDS],
    /// The object, once a kernel has the image as an argument: many images are never one, and an allocation takes longer
    /// than the rest of the creation of a small image.
    object: OnceLock<Owned>,
}

impl Picture {
    /// Returns the address of the object that kernels get.
    pub fn object(&self) -> Outcome<u64> {
        if let Some(object) = self.object.get() {
            return Ok(object.address());
        }
        // Of two threads, one keeps its object.
        let placed = place(&self.words)?;
        Ok(self.object.get_or_init(|| placed).address())
    }

    /// Distance of rows in bytes, as the program knows it.
    pub fn row_pitch(&self) -> usize {
        self.row_pitch
    }

    /// Bytes of a texel.
    pub fn texel_bytes(&self) -> usize {
        self.arrangement.texel_bytes as usize
    }

    /// Returns the place of texels in the program's memory for the image.
    pub fn in_program(&self, memory: Memory, region: &Region) -> Pitched {
        let array = self.kind == ImageKind::D1Array;
        let pitch = if array { self.slice_pitch } else { self.row_pitch };
        let [x, y, z] = region.origin;
        let first = z * self.slice_pitch + y * pitch + x * self.texel_bytes();
        Pitched { at: memory.offset(first), pitch, slice: self.slice_pitch }
    }

    /// Returns the size of a level in texels, and the layers; 1 where the dimension has none.
    pub fn extent(&self, level: usize) -> [usize; 3] {
        let size = self.arrangement.levels[level].size.map(|n| n as usize);
        let layers = self.image.layers as usize;
        match self.kind {
            ImageKind::D1Array => [size[0], layers, 1],
            ImageKind::D2Array => [size[0], size[1], layers],
            _ => size,
        }
    }

    /// Name of the type in OpenCL C.
    pub fn type_name(&self) -> &'static str {
        match (self.kind, self.format.is_depth()) {
            (ImageKind::D1, _) => "image1d_t",
            (ImageKind::Buffer1D, _) => "image1d_buffer_t",
            (ImageKind::D1Array, _) => "image1d_array_t",
            (ImageKind::D2, false) => "image2d_t",
            (ImageKind::D2, true) => "image2d_depth_t",
            (ImageKind::D2Array, false) => "image2d_array_t",
            (ImageKind::D2Array, true) => "image2d_array_depth_t",
            (ImageKind::D3, _) => "image3d_t",
        }
    }
}

/// `cl_image_desc`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct Description {
    kind: c_uint,
    width: usize,
    height: usize,
    depth: usize,
    layers: usize,
    row_pitch: usize,
    slice_pitch: usize,
    levels: c_uint,
    samples: c_uint,
    object: Handle,
}

fn invalid(what: impl Into<String>) -> Failure {
    Status::INVALID_IMAGE_DESCRIPTOR.because(what)
}

impl Description {
    /// Returns the image without a pitch of its own.
    fn image(&self, kind: ImageKind, format: ImageFormat) -> Outcome<Image> {
        let texels = format.texels().ok_or(Status::IMAGE_FORMAT_NOT_SUPPORTED)?;
        let height = if kind.has_height() { self.height } else { 1 };
        let depth = if kind == ImageKind::D3 { self.depth } else { 1 };
        let layers = if kind.is_array() { self.layers } else { 1 };
        let most = |limit: u32| limit as usize;
        let wide = match kind {
            ImageKind::Buffer1D => most(MAX_BUFFER_TEXELS),
            ImageKind::D3 => most(MAX_DEPTH),
            _ => most(MAX_SIZE),
        };
        if [self.width, height, depth, layers].contains(&0) {
            return Err(Status::INVALID_IMAGE_SIZE.because("a size of 0"));
        }
        let high = wide.min(most(MAX_SIZE));
        if self.width > wide || height > high || depth > most(MAX_DEPTH) || layers > most(MAX_DEPTH) {
            let size = format!("{}x{height}x{depth}, {layers} layers", self.width);
            return Err(Status::INVALID_IMAGE_SIZE.because(format!("{size} is beyond the device's limits")));
        }
        let longest = self.width.max(height).max(depth);
        if self.levels > longest.ilog2() + 1 {
            return Err(invalid(format!("{} levels of detail", self.levels)));
        }
        Ok(Image {
            dimension: kind.dimension(),
            format: texels.format,
            size: [self.width, height, depth].map(|n| n as u32),
            layers: layers as u32,
            levels: self.levels.max(1),
            pitch: None,
            swizzle: texels.swizzle,
            sw_mode: 0,
            samples: 1,
        })
    }

    /// Returns the distances of rows and slices in the program's memory.
    fn pitches(&self, kind: ImageKind, texel: usize, has_memory: bool) -> Outcome<(usize, usize)> {
        let row = if self.row_pitch == 0 { self.width * texel } else { self.row_pitch };
        let rows = if kind.has_height() { self.height } else { 1 };
        let has_slices = kind.is_array() || kind == ImageKind::D3;
        let natural = if has_slices { row.checked_mul(rows) } else { Some(0) };
        let natural = natural.ok_or_else(|| invalid(format!("a row pitch of {row} bytes")))?;
        let slice = if self.slice_pitch == 0 || natural == 0 { natural } else { self.slice_pitch };
        if !has_memory && (self.row_pitch != 0 || self.slice_pitch != 0) {
            return Err(invalid("a pitch without memory of the program"));
        }
        if row < self.width * texel || !row.is_multiple_of(texel) {
            return Err(invalid(format!("a row pitch of {row} bytes")));
        }
        if slice < natural || !slice.is_multiple_of(row) {
            return Err(invalid(format!("a slice pitch of {slice} bytes")));
        }
        Ok((row, slice))
    }
}

/// Creates an image.
///
/// # Safety
/// Unless it is null, `host` is memory of the image's size, which the flags may require to be valid as long as the image.
unsafe fn new(
    context: Handle,
    flags: u64,
    format: In<ImageFormat>,
    description: In<Description>,
    host: Memory,
    properties: Vec<u64>,
) -> Outcome<Handle> {
    let context = handle::get::<Context>(context)?;
    let device = &gpu()?.device;
    if !image::supported(device) {
        return Err(Status::INVALID_OPERATION.because("the device has no images"));
    }
    check_flags(flags)?;
    let format = format.get().map_err(|_| Status::INVALID_IMAGE_FORMAT_DESCRIPTOR)?;
    if !format.is_valid() {
        return Err(Status::INVALID_IMAGE_FORMAT_DESCRIPTOR.into());
    }
    let given = description.get().map_err(|_| Status::INVALID_IMAGE_DESCRIPTOR)?;
    let kind = ImageKind::of(given.kind).ok_or_else(|| invalid(format!("image type 0x{:x}", given.kind)))?;
    if given.samples != 0 {
        return Err(invalid("multisampled images are not supported"));
    }
    if !given.object.is_null() || kind == ImageKind::Buffer1D {
        return of_object(context, flags, format, given, kind, host, properties);
    }
    if host.is_null() == (flags & (USE_HOST_PTR | COPY_HOST_PTR) != 0) {
        return Err(Status::INVALID_HOST_PTR.into());
    }
    if !format.is_supported(kind, flags) {
        return Err(Status::IMAGE_FORMAT_NOT_SUPPORTED.into());
    }
    let made = given.image(kind, format)?;
    let (row_pitch, slice_pitch) = given.pitches(kind, made.element_bytes() as usize, !host.is_null())?;
    if given.levels > 1 && !host.is_null() {
        return Err(invalid("an image with levels of detail and memory of the program"));
    }
    let arch = device.target().arch;
    let arrangement = Arrangement::new(&made, arch)?;
    if arrangement.bytes > gpu()?.max_allocation() {
        return Err(Status::MEM_OBJECT_ALLOCATION_FAILURE.because(format!("{} bytes", arrangement.bytes)));
    }
    let owned = Owned::new(&gpu()?.device, arrangement.bytes, "clCreateImage")?;
    let address = owned.address();
    let size = arrangement.bytes as usize;
    let words = image::object(&made, arch, address, channels(format)?)?;
    let levels = given.levels;
    let object = OnceLock::new();
    let picture =
        Picture { kind, format, image: made, arrangement, row_pitch, slice_pitch, levels, words, object };
    let uses = flags & USE_HOST_PTR != 0;
    let created = memory::register(Parts {
        context,
        flags,
        address,
        size,
        parent: None,
        host: if uses { host } else { Memory::null() },
        owned: Some(owned),
        properties,
        image: Some(picture),
    });
    if let (false, Some(picture)) = (host.is_null(), created.picture()) {
        let whole = Region { origin: [0; 3], size: picture.extent(0), level: 0 };
        let (to, from) = (created.texels(&whole, false)?, picture.in_program(host, &whole));
        // SAFETY: the caller guarantees memory of the image's size.
        unsafe { picture.arrangement.copy(to, from, whole.size).run() };
    }
    Ok(created.handle())
}

fn channels(format: ImageFormat) -> Outcome<image::Channels> {
    Ok(format.texels().ok_or(Status::IMAGE_FORMAT_NOT_SUPPORTED)?.channels)
}

/// Stores an object for kernels in device memory.
pub fn place(words: &[u32]) -> Outcome<Owned> {
    let owned = Owned::new(&gpu()?.device, words.len() as u64 * 4, "descriptor")?;
    owned.device().write(owned.address(), &image::bytes(words))?;
    Ok(owned)
}

/// Creates an image whose texels are in a buffer, or in another image of two dimensions.
fn of_object(
    context: Arc<Context>,
    flags: u64,
    format: ImageFormat,
    given: Description,
    kind: ImageKind,
    host: Memory,
    properties: Vec<u64>,
) -> Outcome<Handle> {
    let parent = handle::get::<MemObject>(given.object).map_err(|_| invalid("no buffer"))?;
    if !host.is_null() {
        return Err(Status::INVALID_HOST_PTR.into());
    }
    if !Arc::ptr_eq(parent.context(), &context) {
        return Err(Status::INVALID_CONTEXT.because("a memory object of another context"));
    }
    let flags = memory::inherit(flags, parent.flags())?;
    if !format.is_supported(kind, flags & memory::KERNEL_ACCESS) {
        return Err(Status::IMAGE_FORMAT_NOT_SUPPORTED.into());
    }
    let arch = gpu()?.device.target().arch;
    let mut made = given.image(kind, format)?;
    let texel = made.element_bytes() as usize;
    let (arrangement, row_pitch) = match (kind, parent.picture()) {
        (ImageKind::Buffer1D, None) => (Arrangement::of_buffer(&made), given.width * texel),
        (ImageKind::D2, None) => {
            let row = if given.row_pitch == 0 { given.width * texel } else { given.row_pitch };
            let alignment = PITCH_ALIGNMENT as usize * texel;
            if row < given.width * texel || !row.is_multiple_of(alignment) {
                let message = format!("a row pitch of {row} bytes, not a multiple of {alignment}");
                return Err(Status::INVALID_IMAGE_FORMAT_DESCRIPTOR.because(message));
            }
            let beyond = || invalid(format!("a row pitch of {row} bytes"));
            made.pitch = Some(u32::try_from(row / texel).map_err(|_| beyond())?);
            let mut arrangement = Arrangement::new(&made, arch)?;
            arrangement.levels[0].row_bytes = row as u64;
            arrangement.bytes = row.checked_mul(given.height).ok_or_else(beyond)? as u64;
            (arrangement, row)
        }
        // An image of the same texels with another format, such as one without sRGB's curve.
        (ImageKind::D2, Some(other)) if other.kind == ImageKind::D2 && given.levels <= 1 => {
            let same = other.image.size == made.size && other.texel_bytes() == texel;
            if !same || other.format.kind != format.kind {
                return Err(Status::INVALID_IMAGE_FORMAT_DESCRIPTOR.into());
            }
            made.pitch = other.image.pitch;
            (other.arrangement.clone(), other.row_pitch)
        }
        _ => return Err(invalid("an image of this type cannot be created from another object")),
    };
    if parent.picture().is_none() && arrangement.bytes > parent.size() as u64 {
        let (needs, has) = (arrangement.bytes, parent.size());
        return Err(Status::INVALID_IMAGE_SIZE.because(format!("{needs} bytes in a buffer of {has}")));
    }
    let (address, channels) = (parent.address(), channels(format)?);
    let words = match kind {
        ImageKind::Buffer1D => image::buffer_object(&made, arch, address, channels)?,
        _ => image::object(&made, arch, address, channels)?,
    };
    let (size, levels) = (arrangement.bytes as usize, given.levels);
    let (slice_pitch, object) = (0, OnceLock::new());
    let picture =
        Picture { kind, format, image: made, arrangement, row_pitch, slice_pitch, levels, words, object };
    let created = memory::register(Parts {
        context,
        flags,
        address,
        size,
        host: parent.host(),
        parent: Some((parent, 0)),
        owned: None,
        properties,
        image: Some(picture),
    });
    Ok(created.handle())
}

/// `clCreateImage`.
pub unsafe extern "C" fn clCreateImage(
    context: Handle,
    flags: u64,
    format: In<ImageFormat>,
    description: In<Description>,
    host: Memory,
    status: Out<c_int>,
) -> Handle {
    create("clCreateImage", &status, || {
        // SAFETY: the caller of the API passes memory of the image's size, as the flags require.
        unsafe { new(context, flags, format, description, host, Vec::new()) }
    })
}

/// `clCreateImageWithProperties`.
pub unsafe extern "C" fn clCreateImageWithProperties(
    context: Handle,
    properties: In<u64>,
    flags: u64,
    format: In<ImageFormat>,
    description: In<Description>,
    host: Memory,
    status: Out<c_int>,
) -> Handle {
    create("clCreateImageWithProperties", &status, || {
        let list = memory::properties(properties)?;
        // SAFETY: the caller of the API passes memory of the image's size, as the flags require.
        unsafe { new(context, flags, format, description, host, list) }
    })
}

impl Description {
    fn plain(kind: ImageKind, size: [usize; 3], row_pitch: usize, slice_pitch: usize) -> Description {
        let [width, height, depth] = size;
        let (layers, levels, samples, object) = (0, 0, 0, Handle::NULL);
        Description {
            kind: kind as u32,
            width,
            height,
            depth,
            layers,
            row_pitch,
            slice_pitch,
            levels,
            samples,
            object,
        }
    }
}

/// Converts a failure of [`new`] to those of functions that have no description.
fn without_description(failure: Failure) -> Failure {
    match failure.status {
        Status::INVALID_IMAGE_DESCRIPTOR => Failure { status: Status::INVALID_IMAGE_SIZE, ..failure },
        _ => failure,
    }
}

/// `clCreateImage2D`.
#[allow(clippy::too_many_arguments, reason = "the C API's")]
pub unsafe extern "C" fn clCreateImage2D(
    context: Handle,
    flags: u64,
    format: In<ImageFormat>,
    width: usize,
    height: usize,
    row_pitch: usize,
    host: Memory,
    status: Out<c_int>,
) -> Handle {
    create("clCreateImage2D", &status, || {
        let given = [Description::plain(ImageKind::D2, [width, height, 1], row_pitch, 0)];
        // SAFETY: the description lives until the end of the call; the caller of the API passes memory of the image's
        // size, as the flags require.
        unsafe { new(context, flags, format, In::of(&given), host, Vec::new()) }.map_err(without_description)
    })
}

/// `clCreateImage3D`.
#[allow(clippy::too_many_arguments, reason = "the C API's")]
pub unsafe extern "C" fn clCreateImage3D(
    context: Handle,
    flags: u64,
    format: In<ImageFormat>,
    width: usize,
    height: usize,
    depth: usize,
    row_pitch: usize,
    slice_pitch: usize,
    host: Memory,
    status: Out<c_int>,
) -> Handle {
    create("clCreateImage3D", &status, || {
        let given = [Description::plain(ImageKind::D3, [width, height, depth], row_pitch, slice_pitch)];
        // SAFETY: as in `clCreateImage2D`.
        unsafe { new(context, flags, format, In::of(&given), host, Vec::new()) }.map_err(without_description)
    })
}

/// `clGetSupportedImageFormats`.
pub unsafe extern "C" fn clGetSupportedImageFormats(
    context: Handle,
    flags: u64,
    kind: c_uint,
    count: c_uint,
    formats: Out<ImageFormat>,
    found: Out<c_uint>,
) -> c_int {
    call("clGetSupportedImageFormats", || {
        handle::get::<Context>(context)?;
        check_flags(flags)?;
        let kind = ImageKind::of(kind).ok_or(Status::INVALID_VALUE)?;
        if count == 0 && !formats.is_null() {
            return Err(Status::INVALID_VALUE.into());
        }
        let list = match image::supported(&gpu()?.device) {
            true => ImageFormat::supported(kind, flags),
            false => Vec::new(),
        };
        for (at, format) in list.iter().take(count as usize).enumerate() {
            // SAFETY: the array has `count` elements.
            unsafe { formats.put_at(at, *format) };
        }
        found.put_optional(list.len() as c_uint);
        Ok(())
    })
}

/// Returns the image of a handle.
pub fn get(handle: Handle) -> Outcome<Arc<MemObject>> {
    let object = handle::get::<MemObject>(handle)?;
    match object.picture() {
        Some(_) => Ok(object),
        None => Err(Status::INVALID_MEM_OBJECT.because("a buffer in place of an image")),
    }
}

/// `clGetImageInfo`.
pub unsafe extern "C" fn clGetImageInfo(
    handle: Handle,
    name: c_uint,
    size: usize,
    value: Memory,
    needed: Out<usize>,
) -> c_int {
    call("clGetImageInfo", || {
        let object = get(handle)?;
        let picture = object.picture().ok_or(Status::INVALID_MEM_OBJECT)?;
        let (kind, size_of) = (picture.kind, picture.image.size.map(|n| n as usize));
        // SAFETY: the caller of the API passes null, or a buffer of this size.
        let query = unsafe { Query::new(size, value, needed) };
        let only = |has: bool, value: usize| query.word(if has { value } else { 0 });
        match name {
            0x1110 => query.bytes(&image::bytes(&[picture.format.order, picture.format.kind])),
            0x1111 => query.word(picture.texel_bytes()),
            0x1112 => query.word(picture.row_pitch),
            0x1113 => query.word(picture.slice_pitch),
            0x1114 => query.word(size_of[0]),
            0x1115 => only(kind.has_height(), size_of[1]),
            0x1116 => only(kind == ImageKind::D3, size_of[2]),
            0x1117 => only(kind.is_array(), picture.image.layers as usize),
            0x1118 => query.handle(object.parent().map_or(Handle::NULL, |parent| parent.handle())),
            0x1119 => query.u32(picture.levels),
            0x111a => query.u32(0),
            _ => unknown_parameter(),
        }
    })
}
