//! Images in device memory: the objects that kernels get, and regions of texels.
//!
//! A kernel gets the address of an object of twelve words: the descriptor (eight words, or a buffer descriptor of
//! four), then what AMD's device libraries read in addition (ROCR's `image_manager_gfx11.cpp`): the channel type, the
//! channel order and the width. The last word, which AMD's runtime does not use, is the number of levels.

use crate::Device;
use crate::ffi::Memory;
use crate::pitched::{Copy, Pitched};
use isa_spec::arith::{buffer_format, to_format};
use wavesim::arch::Arch;
use wavesim::exec::image::{self, Dimension, Image, ImageError, Level, View};
use wavesim::exec::record::{self, FieldError};

/// Words of an image object, and of a sampler object.
pub const OBJECT_WORDS: usize = 12;
/// Largest width and height, largest depth, largest number of layers: what the device libraries extract from a
/// descriptor (14 and 13 bits).
pub const MAX_SIZE: u32 = 16384;
/// See [`MAX_SIZE`].
pub const MAX_DEPTH: u32 = 8192;
/// Largest number of texels of an image of a buffer.
pub const MAX_BUFFER_TEXELS: u32 = 1 << 27;

/// Returns whether a device has image instructions.
pub fn supported(device: &Device) -> bool {
    device.target().arch.facts().image_row_bytes.is_some()
}

/// The words that follow a descriptor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Channels {
    /// HSA's number of the channel type (`hsa_ext_image_channel_type_t`).
    pub kind: u32,
    /// HSA's number of the channel order (`hsa_ext_image_channel_order_t`).
    pub order: u32,
}

/// Returns the object of an image at an address.
///
/// # Errors
/// The device has no images, or the image no descriptor.
pub fn object(
    image: &Image,
    arch: Arch,
    address: u64,
    channels: Channels,
) -> Result<[u32; OBJECT_WORDS], ImageError> {
    let mut words = [0; OBJECT_WORDS];
    words[..8].copy_from_slice(&image::descriptor(image, arch, address)?);
    words[8..].copy_from_slice(&[channels.kind, channels.order, image.size[0], image.levels]);
    Ok(words)
}

/// As [`object`], of some levels and layers of the image.
///
/// # Errors
/// The device has no images, or the image no descriptor.
pub fn view_object(
    image: &Image,
    arch: Arch,
    address: u64,
    channels: Channels,
    view: &View,
) -> Result<[u32; OBJECT_WORDS], ImageError> {
    let mut words = object(image, arch, address, channels)?;
    image::restrict(&mut words[..8], arch, view)?;
    let [first, last] = view.levels;
    words[10..].copy_from_slice(&[image.level_size(first)[0], last - first + 1]);
    Ok(words)
}

/// Returns the object of a buffer whose elements are the texels of an image of one dimension.
///
/// # Errors
/// The address or the size is too large for the descriptor.
pub fn buffer_object(
    image: &Image,
    arch: Arch,
    address: u64,
    channels: Channels,
) -> Result<[u32; OBJECT_WORDS], ImageError> {
    let unknown = || FieldError::Unknown { record: "BufferDescriptor".to_string(), field: String::new() };
    let layout = record::layout(arch, "BufferDescriptor").ok_or_else(unknown)?;
    let mut words = [0; OBJECT_WORDS];
    let mut set = |name: &str, value: u64| layout.set(&mut words[..4], name, value);
    set("base", address)?;
    set("stride", image.element_bytes() as u64)?;
    set("num_records", image.size[0] as u64)?;
    set("format", image.format as u64)?;
    for (name, from) in ["dst_sel_x", "dst_sel_y", "dst_sel_z", "dst_sel_w"].into_iter().zip(image.swizzle) {
        set(name, image::select(from))?;
    }
    words[8..].copy_from_slice(&[channels.kind, channels.order, image.size[0], 1]);
    Ok(words)
}

/// Returns the bytes of words in memory.
pub fn bytes(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

/// Returns the element of a texel whose components, in registers, are given: floats, or integers if the format is
/// one of integers.
pub fn texel(image: &Image, components: [u32; 4]) -> Vec<u8> {
    let stored = |element: usize| image.swizzle.iter().position(|from| *from as usize == element);
    let word = |element| stored(element).map_or(0, |component| components[component]);
    let packed = (0..4).fold(0, |all, element| all | (word(element) as u128) << (32 * element));
    to_format(image.format, packed).to_le_bytes()[..image.element_bytes() as usize].to_vec()
}

/// Returns the number of a format by its name in the manuals: `8_8_8_8_UNORM`.
pub fn format_by_name(name: &str) -> Option<u32> {
    (1..256).find(|number| buffer_format::by_number(*number).is_some_and(|format| format.name == name))
}

/// Returns whether the texels of a format are integers.
pub fn is_integer(format: u32) -> bool {
    buffer_format::from_format(format, 0, 4) == 1
}

/// The arrangement of an image's texels in memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Arrangement {
    /// The levels of a layer.
    pub levels: Vec<Level>,
    /// Distance of layers, or of slices in depth.
    pub layer_bytes: u64,
    /// Bytes of a texel.
    pub texel_bytes: u64,
    /// Whether the second coordinate is the layer.
    pub rows_are_layers: bool,
    /// Bytes of the whole image.
    pub bytes: u64,
}

/// A box of texels. The coordinates are those of the dimension; a layer follows them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Region {
    /// The first texel.
    pub origin: [usize; 3],
    /// Numbers of texels; 1 where the dimension has none.
    pub size: [usize; 3],
    /// The level of detail.
    pub level: usize,
}

impl Arrangement {
    /// Returns the arrangement of an image.
    ///
    /// # Errors
    /// The device has no images, or the image no layout.
    pub fn new(image: &Image, arch: Arch) -> Result<Arrangement, ImageError> {
        Ok(Arrangement {
            levels: image.levels(arch)?,
            layer_bytes: image.layer_bytes(arch)?,
            texel_bytes: image.element_bytes() as u64,
            rows_are_layers: image.dimension == Dimension::D1Array,
            bytes: image.bytes(arch)?,
        })
    }

    /// Returns the arrangement of a buffer whose elements are texels.
    pub fn of_buffer(image: &Image) -> Arrangement {
        let texel_bytes = image.element_bytes() as u64;
        let bytes = texel_bytes * image.size[0] as u64;
        let level = Level { size: image.size, offset: 0, row_bytes: bytes, rows: 1 };
        Arrangement { levels: vec![level], layer_bytes: bytes, texel_bytes, rows_are_layers: false, bytes }
    }

    /// Distance of rows of a level in bytes, where the second coordinate of an image of layers of one dimension counts
    /// rows, too.
    pub fn row_pitch(&self, level: usize) -> usize {
        if self.rows_are_layers { self.layer_bytes as usize } else { self.levels[level].row_bytes as usize }
    }

    /// Returns the memory of a region, of an image at an address. The region is inside the image.
    pub fn region(&self, image: Memory, region: &Region) -> Pitched {
        let (pitch, slice) = (self.row_pitch(region.level), self.layer_bytes as usize);
        let [x, y, z] = region.origin;
        let first = self.levels[region.level].offset as usize + z * slice + y * pitch;
        Pitched { at: image.offset(first + x * self.texel_bytes as usize), pitch, slice }
    }

    /// Returns the copy of a region to or from other memory.
    pub fn copy(&self, to: Pitched, from: Pitched, size: [usize; 3]) -> Copy {
        Copy { to, from, width: size[0] * self.texel_bytes as usize, height: size[1], depth: size[2] }
    }
}
