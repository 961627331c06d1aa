//! Image formats: channel orders and types (`cl_channel_order`, `cl_channel_type`), and the formats of texels.

use crate::image::ImageKind;
use crate::memory::{KERNEL_READ_AND_WRITE, READ_WRITE, WRITE_ONLY};
use std::ffi::c_uint;
use wavesim::exec::image::{ONE, ZERO};
use wavesim_runtime::image::{Channels, format_by_name};

/// `cl_image_format`.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ImageFormat {
    pub order: c_uint,
    pub kind: c_uint,
}

/// How texels of a format are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Texels {
    /// Number of the format in the manuals.
    pub format: u32,
    /// The component of the texel that each component of a result is.
    pub swizzle: [u8; 4],
    /// HSA's numbers.
    pub channels: Channels,
}

/// A channel order.
struct Order {
    /// OpenCL's number.
    number: c_uint,
    /// HSA's number.
    hsa: u32,
    /// Components in memory.
    components: usize,
    swizzle: [u8; 4],
    types: Types,
}

/// The channel types that go with an order.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Types {
    /// All of one component.
    All,
    /// Those of 8 bits.
    Bytes,
    /// Fractions and floats of up to 32 bits.
    Fractions,
    /// Three components in 16 or 32 bits.
    Packed,
    /// 8-bit fractions with the curve of sRGB.
    Srgb,
    /// 16-bit fractions and floats.
    Depth,
}

const fn order(number: c_uint, hsa: u32, components: usize, swizzle: [u8; 4], types: Types) -> Order {
    Order { number, hsa, components, swizzle, types }
}

/// The channel orders that images can have.
const ORDERS: [Order; 15] = [
    // R, A, RG, RA, RGBA
    order(0x10b0, 1, 1, [0, ZERO, ZERO, ONE], Types::All),
    order(0x10b1, 0, 1, [ZERO, ZERO, ZERO, 0], Types::All),
    order(0x10b2, 3, 2, [0, 1, ZERO, ONE], Types::All),
    order(0x10b3, 5, 2, [0, ZERO, ZERO, 1], Types::All),
    order(0x10b5, 8, 4, [0, 1, 2, 3], Types::All),
    // BGRA, ARGB, ABGR
    order(0x10b6, 9, 4, [2, 1, 0, 3], Types::Bytes),
    order(0x10b7, 10, 4, [1, 2, 3, 0], Types::Bytes),
    order(0x10c3, 11, 4, [3, 2, 1, 0], Types::Bytes),
    // INTENSITY, LUMINANCE
    order(0x10b8, 16, 1, [0, 0, 0, 0], Types::Fractions),
    order(0x10b9, 17, 1, [0, 0, 0, ONE], Types::Fractions),
    // RGB, RGBx: the first component is in the high bits
    order(0x10b4, 6, 3, [2, 1, 0, ONE], Types::Packed),
    order(0x10bc, 7, 3, [2, 1, 0, ONE], Types::Packed),
    // sRGBA, sBGRA
    order(0x10c1, 14, 4, [0, 1, 2, 3], Types::Srgb),
    order(0x10c2, 15, 4, [2, 1, 0, 3], Types::Srgb),
    // DEPTH
    order(0x10bd, 18, 1, [0, ZERO, ZERO, ONE], Types::Depth),
];

/// A channel type: OpenCL's number, HSA's, bits, interpretation, and the name of the format if it is packed.
struct Type {
    number: c_uint,
    hsa: u32,
    bits: u32,
    kind: &'static str,
    packed: Option<&'static str>,
}

const fn kind(number: c_uint, hsa: u32, bits: u32, kind: &'static str) -> Type {
    Type { number, hsa, bits, kind, packed: None }
}

const fn packed(number: c_uint, hsa: u32, bits: u32, name: &'static str) -> Type {
    Type { number, hsa, bits, kind: "UNORM", packed: Some(name) }
}

const TYPES: [Type; 15] = [
    kind(0x10d0, 0, 8, "SNORM"),
    kind(0x10d1, 1, 16, "SNORM"),
    kind(0x10d2, 2, 8, "UNORM"),
    kind(0x10d3, 3, 16, "UNORM"),
    packed(0x10d4, 6, 16, "5_6_5_UNORM"),
    packed(0x10d5, 5, 16, "1_5_5_5_UNORM"),
    packed(0x10d6, 7, 32, "2_10_10_10_UNORM"),
    kind(0x10d7, 8, 8, "SINT"),
    kind(0x10d8, 9, 16, "SINT"),
    kind(0x10d9, 10, 32, "SINT"),
    kind(0x10da, 11, 8, "UINT"),
    kind(0x10db, 12, 16, "UINT"),
    kind(0x10dc, 13, 32, "UINT"),
    kind(0x10dd, 14, 16, "FLOAT"),
    kind(0x10de, 15, 32, "FLOAT"),
];

impl Types {
    fn have(self, of: &Type) -> bool {
        let fraction = matches!(of.kind, "UNORM" | "SNORM") && of.packed.is_none();
        match self {
            Types::All => of.packed.is_none(),
            Types::Bytes => of.bits == 8,
            Types::Fractions => fraction || of.kind == "FLOAT",
            Types::Packed => of.packed.is_some(),
            Types::Srgb => of.bits == 8 && of.kind == "UNORM",
            Types::Depth => {
                of.packed.is_none() && (of.bits, of.kind) == (16, "UNORM")
                    || (of.bits, of.kind) == (32, "FLOAT")
            }
        }
    }
}

impl ImageFormat {
    /// Returns how texels are stored; `None` if there is no such format.
    pub fn texels(self) -> Option<Texels> {
        let order = ORDERS.iter().find(|order| order.number == self.order)?;
        let of = TYPES.iter().find(|of| of.number == self.kind).filter(|of| order.types.have(of))?;
        let name = match (of.packed, order.types) {
            (Some(name), _) => name.to_string(),
            (None, types) => {
                let number = if types == Types::Srgb { "SRGB" } else { of.kind };
                format!("{}_{number}", vec![of.bits.to_string(); order.components].join("_"))
            }
        };
        let channels = Channels { kind: of.hsa, order: order.hsa };
        Some(Texels { format: format_by_name(&name)?, swizzle: order.swizzle, channels })
    }

    /// Returns whether the numbers are those of an order and a type that OpenCL defines, which go with each other.
    pub fn is_valid(self) -> bool {
        let known_order = (0x10b0..=0x10c3).contains(&self.order);
        let known_type = (0x10d0..=0x10e0).contains(&self.kind);
        let packed = (0x10d4..=0x10d6).contains(&self.kind);
        let rgb = matches!(self.order, 0x10b4 | 0x10bc);
        known_order && known_type && (rgb || !packed)
    }

    /// Returns whether it is a format of depths.
    pub fn is_depth(self) -> bool {
        self.order == 0x10bd
    }

    fn is_srgb(self) -> bool {
        matches!(self.order, 0x10bf..=0x10c2)
    }

    /// Returns whether images of a kind and with these flags can have the format.
    pub fn is_supported(self, kind: ImageKind, flags: u64) -> bool {
        let Some(texels) = self.texels() else { return false };
        let kind_fits = match kind {
            // Buffer descriptors have six bits for the format.
            ImageKind::Buffer1D => texels.format < 64 && !self.is_depth(),
            ImageKind::D2 | ImageKind::D2Array => true,
            ImageKind::D1 | ImageKind::D1Array | ImageKind::D3 => !self.is_depth(),
        };
        let writes = flags & (READ_WRITE | WRITE_ONLY | KERNEL_READ_AND_WRITE) != 0;
        kind_fits && !(self.is_srgb() && writes)
    }

    /// All formats of images of a kind with these flags.
    pub fn supported(kind: ImageKind, flags: u64) -> Vec<ImageFormat> {
        let pairs = ORDERS.iter().flat_map(|order| TYPES.iter().map(move |of| (order.number, of.number)));
        let all = pairs.map(|(order, kind)| ImageFormat { order, kind });
        all.filter(|format| format.is_supported(kind, flags)).collect()
    }
}
