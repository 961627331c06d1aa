//! Images: the number of registers of an instruction's addresses and data; and the layout of images in memory
//! (RDNA manuals, *Image Resource* and *Image Sampler*; AMD's address library), for those who build descriptors.
//!
//! The order of addresses is: offset, bias or depth reference, gradients, coordinates, and level of detail or
//! clamp (ISA manuals, *Image Addressing*). The name determines which of them are present, and DIM the number
//! of coordinates.

mod layout;

pub use layout::{Layout, LayoutError, Place};

use crate::arch::Arch;
use crate::inst::Inst;
use isa_spec::arith::buffer_format;
use isa_spec::arith::{block_format, format_block, format_bytes};
use isa_spec::mnemonic::ImageSuffixes;
use isa_spec::tables::ArchTable;

/// Coordinates and gradients of each dimension, by the value of DIM.
const COORDINATES: [u16; 8] = [1, 2, 3, 3, 2, 3, 3, 4];
const GRADIENTS: [u16; 8] = [2, 4, 6, 4, 2, 4, 4, 4];

/// Number of address registers of an image instruction other than a ray intersection, which has groups of registers.
pub fn address_registers(inst: &Inst, table: &'static ArchTable) -> u16 {
    let field = |name| inst.field(table, name).unwrap_or(0);
    let dim = field("DIM") as usize & 7;
    let suffixes = ImageSuffixes::of(inst.instruction(table).name);
    let has = |suffix| suffixes.has(suffix);
    let sampled = has(ImageSuffixes::SAMPLED);
    // One register each.
    let extra = [ImageSuffixes::COMPARE, ImageSuffixes::OFFSET, ImageSuffixes::BIAS];
    let extra = extra.into_iter().filter(|suffix| sampled && has(*suffix)).count() as u16;
    let info = has(ImageSuffixes::INFO);
    let level = info || has(ImageSuffixes::MIP) || sampled && has(ImageSuffixes::LOD | ImageSuffixes::CLAMP);
    let coordinates = if info { 0 } else { COORDINATES[dim] } + u16::from(level);
    let coordinates = if field("A16") != 0 { coordinates.div_ceil(2) } else { coordinates };
    let gradients = match (sampled && has(ImageSuffixes::DERIVATIVES), has(ImageSuffixes::G16)) {
        (false, _) => 0,
        (true, false) => GRADIENTS[dim],
        // Two 16-bit gradients per register; the two directions are in separate registers.
        (true, true) => (GRADIENTS[dim] / 2).next_multiple_of(2),
    };
    extra + gradients + coordinates
}

/// Number of data registers of an image instruction other than a ray intersection: those of components, and one for
/// the status with TFE.
pub fn data_registers(inst: &Inst, table: &'static ArchTable) -> u16 {
    component_registers(inst, table) + u16::from(inst.field(table, "TFE").is_some_and(|bit| bit != 0))
}

/// Number of data registers that hold components.
pub fn component_registers(inst: &Inst, table: &'static ArchTable) -> u16 {
    let field = |name| inst.field(table, name).unwrap_or(0);
    let instruction = inst.instruction(table);
    let one_channel = ImageSuffixes::of(instruction.name).has(ImageSuffixes::ONE_CHANNEL);
    let components = if one_channel { 4 } else { field("DMASK").count_ones().max(1) as u16 };
    let packed = field("D16") != 0 && instruction.subgroup() != "ATOMIC";
    if packed { components.div_ceil(2) } else { components }
}

/// The dimension of an image: the value of the field `type` of its descriptor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Dimension {
    /// One dimension.
    D1 = 8,
    /// Two dimensions.
    D2 = 9,
    /// Three dimensions.
    D3 = 10,
    /// Six faces for each layer.
    Cube = 11,
    /// Layers of one dimension.
    D1Array = 12,
    /// Layers of two dimensions.
    D2Array = 13,
}

/// An image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Image {
    /// The dimension.
    pub dimension: Dimension,
    /// The number of the format of texels (*Data Formats* in the manuals).
    pub format: u32,
    /// Width, height and depth of level 0 in texels; 1 where the dimension has none.
    pub size: [u32; 3],
    /// The number of layers; of cubes, the number of faces.
    pub layers: u32,
    /// The number of levels of detail.
    pub levels: u32,
    /// The distance of rows in texels, if it is larger than the width; only for images with one layer and level.
    pub pitch: Option<u32>,
    /// The component of the texel that each component of a result is: 0 to 3; 4 for the constant 0, 5 for 1.
    pub swizzle: [u8; 4],
    /// The layout in memory: the field `sw_mode` of the descriptor, 0 for the linear one.
    pub sw_mode: u32,
    /// Samples of a texel: 1, or 2, 4 or 8 in images of two dimensions that are not linear.
    pub samples: u32,
}

/// The value of [`Image::swizzle`] for the constant 0.
pub const ZERO: u8 = 4;
/// The value of [`Image::swizzle`] for the constant 1.
pub const ONE: u8 = 5;

/// The place of a level of a linear image.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Level {
    /// Width, height and depth in texels.
    pub size: [u32; 3],
    /// Offset of the first row in a layer, in bytes.
    pub offset: u64,
    /// Distance of rows of elements, in bytes.
    pub row_bytes: u64,
    /// Number of rows of elements: of texels, or of compressed blocks.
    pub rows: u32,
}

impl Image {
    /// An image of two dimensions, with one layer and level.
    pub fn two_dimensional(format: u32, width: u32, height: u32) -> Image {
        Image {
            dimension: Dimension::D2,
            format,
            size: [width, height, 1],
            layers: 1,
            levels: 1,
            pitch: None,
            swizzle: swizzle(format),
            sw_mode: 0,
            samples: 1,
        }
    }

    fn check(&self) -> Result<(), LayoutError> {
        if format_bytes(self.format) == 0 {
            return Err(LayoutError::Format(self.format));
        }
        if self.size.contains(&0) || self.layers == 0 || self.levels == 0 || self.samples == 0 {
            return Err(LayoutError::Empty);
        }
        Ok(())
    }

    /// The levels of a layer of a linear image, level 0 first. The last level comes first in memory.
    pub fn levels(&self, arch: Arch) -> Result<Vec<Level>, LayoutError> {
        let alignment = arch.facts().image_row_bytes.ok_or(LayoutError::NoImages(arch.name()))? as u64;
        let (bytes, block) = (format_bytes(self.format) as u64, format_block(self.format));
        self.check()?;
        let own_pitch = self.pitch.filter(|pitch| *pitch > self.size[0].div_ceil(block));
        let flat = matches!(self.dimension, Dimension::D1 | Dimension::D2) && self.levels == 1;
        if own_pitch.is_some() && !flat {
            return Err(LayoutError::Pitch);
        }
        let mut levels = Vec::new();
        let mut offset = 0;
        for level in (0..self.levels).rev() {
            let size = self.level_size(level);
            let natural = size[0].div_ceil(block) as u64 * bytes;
            let (rows, given) = (size[1].div_ceil(block), own_pitch.map(|pitch| pitch as u64 * bytes));
            let row_bytes = given.unwrap_or(natural.next_multiple_of(alignment));
            levels.push(Level { size, offset, row_bytes, rows });
            offset += given.unwrap_or(natural.next_multiple_of(256)) * rows as u64;
        }
        levels.reverse();
        Ok(levels)
    }

    /// The distance of layers, or of slices in depth, of a linear image in bytes.
    pub fn layer_bytes(&self, arch: Arch) -> Result<u64, LayoutError> {
        let (bytes, block) = (format_bytes(self.format) as u64, format_block(self.format));
        let sizes = self.levels(arch)?.into_iter().map(|level| {
            let natural = (level.size[0].div_ceil(block) as u64 * bytes).next_multiple_of(256);
            let row = if self.pitch.is_some() { level.row_bytes.max(natural) } else { natural };
            row * level.rows as u64
        });
        Ok(sizes.sum())
    }

    /// Width, height and depth of a level in texels.
    pub fn level_size(&self, level: u32) -> [u32; 3] {
        self.size.map(|size| size.checked_shr(level).unwrap_or(0).max(1))
    }

    /// Bytes of an element: of a texel, or of a compressed block.
    pub fn element_bytes(&self) -> u32 {
        format_bytes(self.format)
    }

    /// Width and height of an element in texels.
    pub fn block(&self) -> u32 {
        format_block(self.format)
    }

    /// The size in bytes.
    pub fn bytes(&self, arch: Arch) -> Result<u64, LayoutError> {
        Ok(self.layout(arch)?.bytes)
    }
}

/// The usual swizzle of a format: its components, then 0, and 1 for the last one.
pub fn swizzle(format: u32) -> [u8; 4] {
    let components = components(format);
    std::array::from_fn(|k| match k {
        k if k < components => k as u8,
        3 => ONE,
        _ => ZERO,
    })
}

/// The number of components of a texel.
pub fn components(format: u32) -> usize {
    let texel = block_format(format);
    buffer_format::by_number(texel).map_or(0, |format| format.components())
}

/// How coordinates outside of an image are treated: the value of the fields `clamp_x` to `clamp_z`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[repr(u8)]
pub enum Wrap {
    /// Repeats the image.
    #[default]
    Repeat = 0,
    /// Repeats the image, every second time mirrored.
    Mirror = 1,
    /// The texel at the edge.
    ClampToEdge = 2,
    /// Mirrors the image once, then the texel at the edge.
    MirrorOnce = 3,
    /// The border color.
    Border = 6,
}

/// How texels are combined.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Filter {
    /// The nearest texel.
    #[default]
    Nearest,
    /// The weighted sum of the texels around.
    Linear,
}

/// How levels of detail are combined: the value of the field `mip_filter`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[repr(u8)]
pub enum MipFilter {
    /// Only the first level of the view is used.
    #[default]
    None = 0,
    /// The nearest level.
    Nearest = 1,
    /// The weighted sum of two levels.
    Linear = 2,
}

/// The color of texels outside of an image: the value of the field `border_color_type`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[repr(u8)]
pub enum Border {
    /// Zero in all components.
    #[default]
    Transparent = 0,
    /// Zero, and one in the last component.
    Black = 1,
    /// One in all components.
    White = 2,
}

/// A sampler.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sampler {
    /// The wrap mode of each coordinate.
    pub wrap: [Wrap; 3],
    /// The filter of magnified images.
    pub mag: Filter,
    /// The filter of minified images.
    pub min: Filter,
    /// The filter between levels.
    pub mip: MipFilter,
    /// How many samples anisotropic filters take at most: 2, 4, 8 or 16; 1 for filters that are not anisotropic. Other
    /// numbers count as the next smaller one.
    pub anisotropy: u32,
    /// Coordinates are in texels, not from 0 to 1.
    pub unnormalized: bool,
    /// Nearest sampling takes the texel that contains the coordinate, without rounding it to 8 fractional bits first.
    pub truncates: bool,
    /// The color outside of the image.
    pub border: Border,
    /// The least and the largest level of detail.
    pub lod: [f32; 2],
    /// Added to the level of detail.
    pub bias: f32,
    /// The comparison with the reference (`depth_compare_func`): 0 never, 1 less, 2 equal, 3 less or equal, 4 greater,
    /// 5 not equal, 6 greater or equal, 7 always.
    pub compare: u8,
}

impl Default for Sampler {
    fn default() -> Sampler {
        Sampler {
            wrap: [Wrap::default(); 3],
            mag: Filter::default(),
            min: Filter::default(),
            mip: MipFilter::default(),
            anisotropy: 1,
            unnormalized: false,
            truncates: true,
            border: Border::default(),
            lod: [0.0, 15.0],
            bias: 0.0,
            compare: 0,
        }
    }
}
