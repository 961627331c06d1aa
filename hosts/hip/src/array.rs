//! Arrays: images in device memory, whose arrangement programs do not see.

use crate::ffi::{In, Memory, Out};
use crate::gpu::{gpu, gpu_at, lock};
use crate::memory::Extent;
use crate::op::Pitched;
use crate::status::{Failure, Outcome, Status, call};
use std::collections::BTreeMap;
use std::ffi::{c_int, c_uint};
use std::sync::{Arc, Mutex};
use wavesim::exec::image::{Dimension, Image, ImageError, ONE, View, ZERO};
use wavesim_runtime::Owned;
use wavesim_runtime::image::{self, Arrangement, Channels, MAX_DEPTH, MAX_SIZE, Region, format_by_name};

/// Handle of an array (`hipArray_t`) or of an array with levels of detail (`hipMipmappedArray_t`).
pub type Handle = usize;

/// `hipArrayLayered`, `hipArrayCubemap`; and all flags, with those of surfaces and of gathers.
const LAYERED: c_uint = 1;
const CUBEMAP: c_uint = 4;
const FLAGS: c_uint = 15;

/// `hipChannelFormatDesc`: bits of each component, and how they are interpreted.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChannelFormat {
    pub bits: [c_int; 4],
    pub kind: c_int,
}

/// `hipChannelFormatKindSigned`, …`Unsigned`, …`Float`.
const SIGNED: c_int = 0;
const UNSIGNED: c_int = 1;
const FLOAT: c_int = 2;

/// How texels are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Texels {
    /// Number of the format in the manuals.
    pub format: u32,
    pub swizzle: [u8; 4],
    pub channels: Channels,
}

impl ChannelFormat {
    /// Number of components.
    pub fn components(&self) -> usize {
        self.bits.iter().take_while(|bits| **bits != 0).count()
    }

    /// Returns whether components are integers of 8 or 16 bits, which can be read as fractions.
    pub fn is_narrow_integer(&self) -> bool {
        self.kind != FLOAT && self.bits[0] <= 16
    }

    /// Returns how texels are stored, with components that are read as fractions or through the curve of sRGB.
    pub fn texels(&self, normalized: bool, srgb: bool) -> Outcome<Texels> {
        let count = self.components();
        let bits = self.bits[0];
        let equal = self.bits.iter().enumerate().all(|(at, own)| *own == if at < count { bits } else { 0 });
        let unknown = || Status::INVALID_VALUE.because(format!("channels of {:?} bits", self.bits));
        if !matches!(count, 1 | 2 | 4) || !equal || !matches!(bits, 8 | 16 | 32) {
            return Err(unknown());
        }
        let width = bits.trailing_zeros() - 3;
        let fraction = normalized && self.is_narrow_integer();
        let (name, kind) = match (self.kind, fraction) {
            (UNSIGNED, true) => (if srgb && bits == 8 { "SRGB" } else { "UNORM" }, 2 + width),
            (SIGNED, true) => ("SNORM", width),
            (UNSIGNED, false) => ("UINT", 11 + width),
            (SIGNED, false) => ("SINT", 8 + width),
            (FLOAT, _) if bits > 8 => ("FLOAT", 13 + width),
            _ => return Err(unknown()),
        };
        let name = format!("{}_{name}", vec![bits.to_string(); count].join("_"));
        let format = format_by_name(&name).ok_or_else(unknown)?;
        let (swizzle, order) = match count {
            1 => ([0, ZERO, ZERO, ONE], 1),
            2 => ([0, 1, ZERO, ONE], 3),
            _ => ([0, 1, 2, 3], 8),
        };
        Ok(Texels { format, swizzle, channels: Channels { kind, order } })
    }
}

impl From<ImageError> for Failure {
    fn from(error: ImageError) -> Failure {
        Status::INVALID_VALUE.because(error.to_string())
    }
}

/// Allocates memory of the current device for an object.
pub(crate) fn own(bytes: u64, name: &str) -> Outcome<Owned> {
    let gpu = gpu()?;
    if bytes > gpu.total_bytes().saturating_sub(gpu.device.allocated()) {
        return Err(Status::OUT_OF_MEMORY.into());
    }
    Ok(Owned::new(&gpu.device, bytes, name)?)
}

/// Waits for what runs on the device that has an object's memory: it may use the object.
pub(crate) fn wait_for_device(ordinal: Option<usize>) -> Outcome {
    ordinal.map_or(Ok(()), |ordinal| gpu_at(ordinal as c_int)?.streams.wait())
}

/// An array, an array with levels of detail, or one of its levels.
#[derive(Clone)]
pub struct Array {
    memory: Arc<Owned>,
    pub format: ChannelFormat,
    /// The image of all levels.
    pub image: Image,
    arrangement: Arc<Arrangement>,
    flags: c_uint,
    /// The level that the array is, of an array with levels of detail.
    level: Option<usize>,
    extent: Extent,
}

/// All arrays, by handle.
static ARRAYS: Mutex<BTreeMap<Handle, Array>> = Mutex::new(BTreeMap::new());

impl Array {
    fn new(format: ChannelFormat, extent: Extent, levels: u32, flags: c_uint, what: &str) -> Outcome<Array> {
        let device = &gpu()?.device;
        if !image::supported(device) {
            return Err(Status::NOT_SUPPORTED.because("the device has no images"));
        }
        let Extent { width, height, depth } = extent;
        let (layered, cube) = (flags & LAYERED != 0, flags & CUBEMAP != 0);
        let limits = [(width, MAX_SIZE), (height, MAX_SIZE), (depth, MAX_DEPTH)];
        let faces =
            !cube || width == height && if layered { depth != 0 && depth % 6 == 0 } else { depth == 6 };
        let large = limits.iter().any(|(size, most)| *size > *most as usize);
        if flags & !FLAGS != 0 || width == 0 || large || !faces || depth != 0 && height == 0 && !layered {
            let message = format!("an array of {width}x{height}x{depth}, flags {flags}");
            return Err(Status::INVALID_VALUE.because(message));
        }
        let dimension = match (cube, layered, height, depth) {
            // ROCm's runtime has no images of type cube: faces are layers, with the coordinates of its device libraries.
            (true, ..) => Dimension::D2Array,
            (_, true, 0, _) => Dimension::D1Array,
            (_, true, ..) => Dimension::D2Array,
            (_, _, 0, _) => Dimension::D1,
            (_, _, _, 0) => Dimension::D2,
            _ => Dimension::D3,
        };
        let is_3d = dimension == Dimension::D3;
        let texels = format.texels(false, false)?;
        let longest = width.max(height).max(if is_3d { depth } else { 0 });
        if levels == 0 || levels > longest.ilog2() + 1 {
            return Err(Status::INVALID_VALUE.because(format!("{levels} levels of detail")));
        }
        let image = Image {
            dimension,
            format: texels.format,
            size: [width, height.max(1), if is_3d { depth } else { 1 }].map(|n| n as u32),
            layers: if is_3d { 1 } else { depth.max(1) as u32 },
            levels,
            pitch: None,
            swizzle: texels.swizzle,
            sw_mode: 0,
            samples: 1,
        };
        let arrangement = Arrangement::new(&image, device.target().arch)?;
        let memory = Arc::new(own(arrangement.bytes, what)?);
        let arrangement = Arc::new(arrangement);
        Ok(Array { memory, format, image, arrangement, flags, level: None, extent })
    }

    fn register(self, out: &Out<Handle>) -> Outcome {
        // Handles are not reused, so that a handle of a freed array is an error.
        static NEXT: Mutex<Handle> = Mutex::new(0x1000);
        let mut next = lock(&NEXT);
        *next += 16;
        out.put(*next)?;
        lock(&ARRAYS).insert(*next, self);
        Ok(())
    }

    /// Returns the array of a handle.
    pub fn get(handle: Handle) -> Outcome<Array> {
        let invalid = || Status::INVALID_HANDLE.because("not the handle of an array");
        lock(&ARRAYS).get(&handle).cloned().ok_or_else(invalid)
    }

    /// Returns the image that a descriptor of the array describes, with texels of the same size, its address, and what
    /// of it the array is.
    pub fn view(&self, texels: &Texels) -> (Image, u64, View) {
        let image = Image { format: texels.format, swizzle: texels.swizzle, ..self.image.clone() };
        let last = image.levels - 1;
        let levels = self.level.map_or([0, last], |level| [level as u32; 2]);
        let layered = matches!(image.dimension, Dimension::D1Array | Dimension::D2Array);
        let layers = layered.then_some([0, image.layers - 1]);
        (image, self.memory.address(), View { levels, layers })
    }

    /// Size of the array in texels.
    fn size(&self) -> [usize; 3] {
        let [width, height, depth] =
            self.arrangement.levels[self.level.unwrap_or(0)].size.map(|n| n as usize);
        match self.image.dimension {
            Dimension::D1Array => [width, self.image.layers as usize, 1],
            Dimension::D3 => [width, height, depth],
            _ => [width, height, self.image.layers as usize],
        }
    }

    /// Bytes of a row of texels.
    pub fn row_bytes(&self) -> usize {
        self.size()[0] * self.arrangement.texel_bytes as usize
    }

    /// Returns the memory of a part: offsets and sizes are bytes, rows and slices.
    pub fn part(&self, at: [usize; 3], size: [usize; 3]) -> Outcome<Pitched> {
        let [_, rows, slices] = self.size();
        for (d, most) in [self.row_bytes(), rows, slices].into_iter().enumerate() {
            if at[d].checked_add(size[d]).is_none_or(|end| end > most) {
                let message = format!("{size:?} (bytes, rows, slices) at {at:?} are beyond the array");
                return Err(Status::INVALID_VALUE.because(message));
            }
        }
        let region = Region { origin: [0, at[1], at[2]], size, level: self.level.unwrap_or(0) };
        // SAFETY: the part is inside the array, as checked above. Programs must not free an array in use.
        let whole = unsafe { Memory::at(self.memory.address()) };
        let first = self.arrangement.region(whole, &region);
        Ok(Pitched { at: first.at.offset(at[0]), ..first })
    }

    /// Bytes of a texel.
    pub fn texel_bytes(&self) -> usize {
        self.arrangement.texel_bytes as usize
    }

    /// Returns a position or a size of which the first number counts texels, in bytes; without a row or a slice, one.
    pub fn in_bytes(&self, extent: &Extent, is_size: bool) -> Outcome<[usize; 3]> {
        let width = extent.width.checked_mul(self.texel_bytes()).ok_or(Status::INVALID_VALUE)?;
        let least = usize::from(is_size);
        let (y, z) = match self.image.dimension {
            // Layers are slices to programs.
            Dimension::D1Array => (extent.depth, 0),
            _ => (extent.height, extent.depth),
        };
        Ok([width, y.max(least), z.max(least)])
    }
}

fn free(handle: Handle) -> Outcome {
    let device = lock(&ARRAYS).get(&handle).map(|array| array.memory.device().ordinal());
    wait_for_device(device)?;
    match lock(&ARRAYS).remove(&handle) {
        Some(_) => Ok(()),
        None if handle == 0 => Err(Status::INVALID_VALUE.into()),
        None => Err(Status::CONTEXT_IS_DESTROYED.because("not the handle of an array")),
    }
}

/// `hipMallocArray`.
pub unsafe extern "C" fn hipMallocArray(
    out: Out<Handle>,
    format: In<ChannelFormat>,
    width: usize,
    height: usize,
    flags: c_uint,
) -> c_int {
    call("hipMallocArray", || {
        if flags & (LAYERED | CUBEMAP) != 0 {
            return Err(Status::INVALID_VALUE.because("an array with layers has three sizes"));
        }
        Array::new(format.get()?, Extent { width, height, depth: 0 }, 1, flags, "hipMallocArray")?
            .register(&out)
    })
}

/// `hipMalloc3DArray`.
pub unsafe extern "C" fn hipMalloc3DArray(
    out: Out<Handle>,
    format: In<ChannelFormat>,
    extent: Extent,
    flags: c_uint,
) -> c_int {
    call("hipMalloc3DArray", || {
        Array::new(format.get()?, extent, 1, flags, "hipMalloc3DArray")?.register(&out)
    })
}

/// `hipFreeArray`.
pub unsafe extern "C" fn hipFreeArray(handle: Handle) -> c_int {
    call("hipFreeArray", || free(handle))
}

/// `hipArrayDestroy`.
pub unsafe extern "C" fn hipArrayDestroy(handle: Handle) -> c_int {
    call("hipArrayDestroy", || free(handle))
}

/// `HIP_ARRAY_DESCRIPTOR`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Description {
    pub(crate) width: usize,
    pub(crate) height: usize,
    pub(crate) format: c_uint,
    pub(crate) channels: c_uint,
}

/// `HIP_ARRAY3D_DESCRIPTOR`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Description3d {
    width: usize,
    height: usize,
    depth: usize,
    format: c_uint,
    channels: c_uint,
    flags: c_uint,
}

/// `hipArray_Format`: its number, bits, interpretation.
const FORMATS: [(c_uint, c_int, c_int); 8] = [
    (0x01, 8, UNSIGNED),
    (0x02, 16, UNSIGNED),
    (0x03, 32, UNSIGNED),
    (0x08, 8, SIGNED),
    (0x09, 16, SIGNED),
    (0x0a, 32, SIGNED),
    (0x10, 16, FLOAT),
    (0x20, 32, FLOAT),
];

/// Returns the format of a number of `hipArray_Format`.
pub(crate) fn channel_format(format: c_uint, channels: c_uint) -> Outcome<ChannelFormat> {
    let row = FORMATS.iter().find(|row| row.0 == format).ok_or(Status::INVALID_VALUE)?;
    let bits = std::array::from_fn(|at| if (at as c_uint) < channels { row.1 } else { 0 });
    Ok(ChannelFormat { bits, kind: row.2 })
}

/// Returns the number of `hipArray_Format`; 0 if it has none.
pub(crate) fn format_number(format: &ChannelFormat) -> c_uint {
    let row = FORMATS.iter().find(|row| (row.1, row.2) == (format.bits[0], format.kind));
    row.map_or(0, |row| row.0)
}

/// `hipArrayCreate`.
pub unsafe extern "C" fn hipArrayCreate(out: Out<Handle>, description: In<Description>) -> c_int {
    call("hipArrayCreate", || {
        let Description { width, height, format, channels } = description.get()?;
        let extent = Extent { width, height, depth: 0 };
        Array::new(channel_format(format, channels)?, extent, 1, 0, "hipArrayCreate")?.register(&out)
    })
}

/// `hipArray3DCreate`.
pub unsafe extern "C" fn hipArray3DCreate(out: Out<Handle>, description: In<Description3d>) -> c_int {
    call("hipArray3DCreate", || {
        let Description3d { width, height, depth, format, channels, flags } = description.get()?;
        let extent = Extent { width, height, depth };
        Array::new(channel_format(format, channels)?, extent, 1, flags, "hipArray3DCreate")?.register(&out)
    })
}

/// `hipArrayGetDescriptor`.
pub unsafe extern "C" fn hipArrayGetDescriptor(out: Out<Description>, handle: Handle) -> c_int {
    call("hipArrayGetDescriptor", || {
        let array = Array::get(handle)?;
        let Extent { width, height, .. } = array.extent;
        let (format, channels) = (format_number(&array.format), array.format.components() as c_uint);
        out.put(Description { width, height, format, channels })
    })
}

/// `hipArray3DGetDescriptor`.
pub unsafe extern "C" fn hipArray3DGetDescriptor(out: Out<Description3d>, handle: Handle) -> c_int {
    call("hipArray3DGetDescriptor", || {
        let array = Array::get(handle)?;
        let Extent { width, height, depth } = array.extent;
        let (format, channels) = (format_number(&array.format), array.format.components() as c_uint);
        out.put(Description3d { width, height, depth, format, channels, flags: array.flags })
    })
}

/// `hipArrayGetInfo`.
pub unsafe extern "C" fn hipArrayGetInfo(
    format: Out<ChannelFormat>,
    extent: Out<Extent>,
    flags: Out<c_uint>,
    handle: Handle,
) -> c_int {
    call("hipArrayGetInfo", || {
        let array = Array::get(handle)?;
        format.put_optional(array.format);
        extent.put_optional(array.extent);
        flags.put_optional(array.flags);
        Ok(())
    })
}

/// `hipGetChannelDesc`.
pub unsafe extern "C" fn hipGetChannelDesc(out: Out<ChannelFormat>, handle: Handle) -> c_int {
    call("hipGetChannelDesc", || out.put(Array::get(handle)?.format))
}

/// `hipMallocMipmappedArray`.
pub unsafe extern "C" fn hipMallocMipmappedArray(
    out: Out<Handle>,
    format: In<ChannelFormat>,
    extent: Extent,
    levels: c_uint,
    flags: c_uint,
) -> c_int {
    call("hipMallocMipmappedArray", || {
        Array::new(format.get()?, extent, levels, flags, "hipMallocMipmappedArray")?.register(&out)
    })
}

/// `hipMipmappedArrayCreate`.
pub unsafe extern "C" fn hipMipmappedArrayCreate(
    out: Out<Handle>,
    description: In<Description3d>,
    levels: c_uint,
) -> c_int {
    call("hipMipmappedArrayCreate", || {
        let Description3d { width, height, depth, format, channels, flags } = description.get()?;
        let (format, extent) = (channel_format(format, channels)?, Extent { width, height, depth });
        Array::new(format, extent, levels, flags, "hipMipmappedArrayCreate")?.register(&out)
    })
}

/// `hipFreeMipmappedArray`. Its levels remain valid until they are freed.
pub unsafe extern "C" fn hipFreeMipmappedArray(handle: Handle) -> c_int {
    call("hipFreeMipmappedArray", || free(handle))
}

/// `hipMipmappedArrayDestroy`.
pub unsafe extern "C" fn hipMipmappedArrayDestroy(handle: Handle) -> c_int {
    call("hipMipmappedArrayDestroy", || free(handle))
}

fn level_of(out: &Out<Handle>, handle: Handle, level: c_uint) -> Outcome {
    let whole = Array::get(handle)?;
    let size = whole.arrangement.levels.get(level as usize).ok_or(Status::INVALID_VALUE)?.size;
    let small = |size: u32, has: usize| if has == 0 { 0 } else { size as usize };
    let extent = Extent {
        width: size[0] as usize,
        height: small(size[1], whole.extent.height),
        depth: if whole.image.size[2] > 1 { size[2] as usize } else { whole.extent.depth },
    };
    Array { level: Some(level as usize), extent, ..whole }.register(out)
}

/// `hipGetMipmappedArrayLevel`.
pub unsafe extern "C" fn hipGetMipmappedArrayLevel(out: Out<Handle>, handle: Handle, level: c_uint) -> c_int {
    call("hipGetMipmappedArrayLevel", || level_of(&out, handle, level))
}

/// `hipMipmappedArrayGetLevel`.
pub unsafe extern "C" fn hipMipmappedArrayGetLevel(out: Out<Handle>, handle: Handle, level: c_uint) -> c_int {
    call("hipMipmappedArrayGetLevel", || level_of(&out, handle, level))
}
