//! Descriptors of images and samplers, for those who build them: the records of the pseudocode, filled from the types
//! of [`wavesim_isa::image`].

use crate::record::{self, FieldError};
use wavesim_isa::arch::Arch;
pub use wavesim_isa::image::*;

/// The reason why an image has no descriptor.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ImageError {
    /// The image has no layout.
    #[error(transparent)]
    Layout(#[from] LayoutError),
    /// A number is too large for its field.
    #[error(transparent)]
    Field(#[from] FieldError),
    /// The address is not a multiple of the alignment.
    #[error("the image is aligned to {alignment} bytes: 0x{address:x} is not")]
    Alignment {
        /// The address.
        address: u64,
        /// 256 for linear images, otherwise the bytes of a block.
        alignment: u64,
    },
}

/// The types of images with several samples.
const MULTISAMPLED: u64 = 14;
const MULTISAMPLED_ARRAY: u64 = 15;

/// The descriptor (T#) of the image at a global address.
///
/// # Errors
/// The architecture has no images, or a size is too large for its field.
pub fn descriptor(image: &Image, arch: Arch, address: u64) -> Result<[u32; 8], ImageError> {
    let layout = record::layout(arch, "ImageDescriptor").ok_or(LayoutError::NoImages(arch.name()))?;
    let alignment = image.layout(arch)?.alignment;
    if !address.is_multiple_of(alignment) {
        return Err(ImageError::Alignment { address, alignment });
    }
    let mut words = [0; 8];
    let mut set = |name: &str, value: u64| layout.set(&mut words, name, value);
    set("base", address >> 8)?;
    set("format", image.format as u64)?;
    set("width", image.size[0] as u64 - 1)?;
    set("height", image.size[1] as u64 - 1)?;
    // Those of images with several samples are the logarithm of their number.
    let (kind, levels) = match (image.samples, image.dimension) {
        (1, dimension) => (dimension as u64, image.levels - 1),
        (samples, Dimension::D2) => (MULTISAMPLED, samples.ilog2()),
        (samples, _) => (MULTISAMPLED_ARRAY, samples.ilog2()),
    };
    set("sw_mode", image.sw_mode as u64)?;
    set("max_mip", levels as u64)?;
    set("last_level", levels as u64)?;
    set("type", kind)?;
    for (name, from) in ["dst_sel_x", "dst_sel_y", "dst_sel_z", "dst_sel_w"].into_iter().zip(image.swizzle) {
        set(name, select(from))?;
    }
    match image.dimension {
        Dimension::D3 => set("depth", image.size[2] as u64 - 1)?,
        Dimension::D1 | Dimension::D2 => {
            if let Some(pitch) = image.pitch.filter(|pitch| *pitch > image.size[0]) {
                let width = layout.field("depth").map_or(0, |field| field.width);
                set("depth", (pitch as u64 - 1) & ((1 << width) - 1))?;
                set("pitch_msb", (pitch as u64 - 1) >> width)?;
            }
        }
        Dimension::Cube | Dimension::D1Array | Dimension::D2Array => set("depth", image.layers as u64 - 1)?,
    }
    Ok(words)
}

/// The levels and layers of an image that a descriptor shows, each from the first to the last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct View {
    /// Levels of detail.
    pub levels: [u32; 2],
    /// Layers, of images that have them.
    pub layers: Option<[u32; 2]>,
}

/// Restricts a descriptor to a part of its image.
///
/// # Errors
/// The architecture has no images, or a number is too large for its field.
pub fn restrict(words: &mut [u32], arch: Arch, view: &View) -> Result<(), ImageError> {
    let layout = record::layout(arch, "ImageDescriptor").ok_or(LayoutError::NoImages(arch.name()))?;
    layout.set(words, "base_level", view.levels[0] as u64)?;
    layout.set(words, "last_level", view.levels[1] as u64)?;
    if let Some([first, last]) = view.layers {
        layout.set(words, "base_array", first as u64)?;
        layout.set(words, "depth", last as u64)?;
    }
    Ok(())
}

/// The image that a descriptor describes, and its address. All levels and layers are those of the memory: a view begins
/// at the fields `base_level` and `base_array`.
///
/// # Errors
/// The architecture has no images, or the type is none of images.
pub fn described(words: &[u32], arch: Arch) -> Result<(Image, u64), DescribeError> {
    let layout = record::layout(arch, "ImageDescriptor").ok_or(LayoutError::NoImages(arch.name()))?;
    let get = |name: &str| layout.field(name).map_or(0, |field| layout.get(field, words));
    let kind = get("type");
    let all = [
        Dimension::D1,
        Dimension::D2,
        Dimension::D3,
        Dimension::Cube,
        Dimension::D1Array,
        Dimension::D2Array,
    ];
    let one_sample = match kind {
        MULTISAMPLED => Dimension::D2 as u64,
        MULTISAMPLED_ARRAY => Dimension::D2Array as u64,
        kind => kind,
    };
    let dimension =
        all.into_iter().find(|dimension| *dimension as u64 == one_sample).ok_or(DescribeError::Type(kind))?;
    let (levels, samples) = match kind == one_sample {
        true => (get("max_mip") as u32 + 1, 1),
        false => (1, 1 << (get("last_level") & 7)),
    };
    let sw_mode = get("sw_mode") as u32;
    let width = get("width") as u32 + 1;
    let depth = get("depth") as u32 + 1;
    let flat = matches!(dimension, Dimension::D1 | Dimension::D2);
    let pitch_width = layout.field("depth").map_or(0, |field| field.width);
    let pitch = (get("depth") | get("pitch_msb") << pitch_width) as u32 + 1;
    let tall = !matches!(dimension, Dimension::D1 | Dimension::D1Array);
    let swizzle = ["dst_sel_x", "dst_sel_y", "dst_sel_z", "dst_sel_w"].map(|name| match get(name) {
        1 => ONE,
        component if component >= 4 => component as u8 - 4,
        _ => ZERO,
    });
    let image = Image {
        dimension,
        format: get("format") as u32,
        size: [
            width,
            if tall { get("height") as u32 + 1 } else { 1 },
            if dimension == Dimension::D3 { depth } else { 1 },
        ],
        layers: if flat || dimension == Dimension::D3 { 1 } else { depth },
        levels,
        pitch: (flat && sw_mode == 0 && levels == 1 && pitch > width).then_some(pitch),
        swizzle,
        sw_mode,
        samples,
    };
    Ok((image, get("base") << 8))
}

/// The reason why a descriptor describes no image.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DescribeError {
    /// The image has no layout.
    #[error(transparent)]
    Layout(#[from] LayoutError),
    /// The type is none of images.
    #[error("type {0} is none of images")]
    Type(u64),
}

/// The value of the fields `dst_sel_x` to `dst_sel_w` for a component of [`Image::swizzle`].
pub fn select(from: u8) -> u64 {
    match from {
        ZERO => 0,
        ONE => 1,
        component => 4 + component as u64,
    }
}

/// The descriptor (S#) of the sampler.
///
/// # Errors
/// The architecture has no images.
pub fn sampler_descriptor(sampler: &Sampler, arch: Arch) -> Result<[u32; 4], ImageError> {
    let layout = record::layout(arch, "Sampler").ok_or(LayoutError::NoImages(arch.name()))?;
    let mut words = [0; 4];
    let mut set = |name: &str, value: u64| layout.set(&mut words, name, value);
    for (name, wrap) in ["clamp_x", "clamp_y", "clamp_z"].into_iter().zip(sampler.wrap) {
        set(name, wrap as u64)?;
    }
    set("force_unnormalized", sampler.unnormalized as u64)?;
    set("trunc_coord", sampler.truncates as u64)?;
    let ratio = sampler.anisotropy.clamp(1, 16).ilog2() as u64;
    set("max_aniso_ratio", ratio)?;
    for (name, filter) in [("xy_mag_filter", sampler.mag), ("xy_min_filter", sampler.min)] {
        set(name, u64::from(ratio != 0) << 1 | u64::from(filter == Filter::Linear))?;
    }
    set("mip_filter", sampler.mip as u64)?;
    set("depth_compare_func", sampler.compare as u64)?;
    set("border_color_type", sampler.border as u64)?;
    for (name, lod) in ["min_lod", "max_lod"].into_iter().zip(sampler.lod) {
        let most = layout.field(name).map_or(0, |field| (1u64 << field.width) - 1);
        set(name, ((lod.max(0.0) * 256.0) as u64).min(most))?;
    }
    let bias = (sampler.bias.clamp(-32.0, 31.996) * 256.0) as i64;
    set("lod_bias", bias as u64 & 0x3fff)?;
    Ok(words)
}
