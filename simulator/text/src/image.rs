//! Images and samplers in the header: `arg_t: image2d<rgba8unorm>[64, 64]`, `arg_s: sampler(linear, repeat)`.

use super::constant::{Constants, Cursor, TextError};
use super::lex::Token;
use isa_spec::arith::buffer_format::{self, Number};
use isa_spec::arith::{block_format, format_block, format_bytes, to_format};
use isa_spec::diag;
use wavesim_array::{Array, DType};
use wavesim_isa::image::{Border, Dimension, Filter, Image, MipFilter, Sampler, Wrap, components};

/// What an argument is besides an array: the kernel gets the address of a descriptor.
#[derive(Debug, Clone, PartialEq)]
pub enum Resource {
    /// An image, whose texels are the array.
    Image(Image),
    /// A sampler; the array is empty.
    Sampler(Sampler),
}

/// The types of images, with the numbers of sizes that they accept.
const IMAGES: [(&str, Dimension, usize); 6] = [
    ("image1d", Dimension::D1, 1),
    ("image2d", Dimension::D2, 2),
    ("image3d", Dimension::D3, 3),
    ("imagecube", Dimension::Cube, 3),
    ("image1darray", Dimension::D1Array, 2),
    ("image2darray", Dimension::D2Array, 3),
];

/// The names of the types of this module.
pub fn types() -> impl Iterator<Item = &'static str> {
    IMAGES.iter().map(|image| image.0).chain(["sampler"])
}

/// Returns whether a type is an image.
pub fn is_image(name: &str) -> bool {
    IMAGES.iter().any(|image| image.0 == name)
}

/// How an image is in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InMemory {
    /// Levels of detail.
    pub levels: u32,
    /// The layout, the field of the descriptor.
    pub sw_mode: u32,
    /// Samples of a texel.
    pub samples: u32,
}

impl Default for InMemory {
    fn default() -> InMemory {
        InMemory { levels: 1, sw_mode: 0, samples: 1 }
    }
}

/// A number of the header; those that are too large are wrong for every property.
fn number(value: u64) -> u32 {
    u32::try_from(value).unwrap_or(u32::MAX)
}

/// Parses `<format[, levels][, property = number]>[width, …]` after the name of a type.
pub fn image(name: &str, cursor: &mut Cursor<'_>, constants: &Constants) -> Result<Image, TextError> {
    cursor.expect('<', "before the format of the texels")?;
    let (format_name, at) = cursor.name("the format of the texels")?;
    let format =
        self::format(format_name).map_err(|(message, help)| TextError::new(at, message).help(help))?;
    let mut memory = InMemory::default();
    while cursor.eat(',') {
        let Some(Token::Name(_)) = cursor.peek() else {
            memory.levels = number(cursor.integer(constants, 1, "the number of levels")?);
            continue;
        };
        let (word, at) = cursor.name("a property of the image")?;
        let field = match word {
            "sw_mode" => &mut memory.sw_mode,
            "samples" => &mut memory.samples,
            other => {
                let message = format!("`{other}` is no property of an image");
                return Err(
                    TextError::new(at, message).help("there are `sw_mode = NUMBER` and `samples = NUMBER`")
                );
            }
        };
        cursor.expect('=', "after the property")?;
        *field = number(cursor.integer(constants, 0, "a property of an image")?);
    }
    cursor.expect('>', "after the format")?;
    cursor.expect('[', "before the size of the image")?;
    let start = cursor.rest_span();
    let mut given = Vec::new();
    loop {
        let at = cursor.rest_span();
        let size = cursor.integer(constants, 1, "the size of an image")?;
        let size = u32::try_from(size).ok().filter(|size| *size <= 1 << 16);
        given.push(size.ok_or_else(|| TextError::new(at, "a size of an image is at most 65536"))?);
        if !cursor.eat(',') {
            break;
        }
    }
    cursor.expect(']', "after the size of the image")?;
    build(name, format, memory, &given).map_err(|message| TextError::new(start, message))
}

/// The numbers of formats whose components have different sizes, by common names.
const PACKED: [(&str, u32); 4] =
    [("rgb10a2unorm", 36), ("rgb10a2uint", 40), ("rg11b10ufloat", 30), ("rgb9e5ufloat", 67)];

/// Returns the number of a format by name, that of the manuals or a common one; or a message and a suggestion.
pub fn format(name: &str) -> Result<u32, (String, String)> {
    let numbers = 1..128;
    let is_named = |number: &u32| {
        let format = buffer_format::by_number(*number);
        let manual = format.map(|format| format.name).or(block_format::name(*number));
        let common = format.and_then(buffer_format::common_name);
        manual.is_some_and(|own| own.eq_ignore_ascii_case(name)) || common.is_some_and(|own| own == name)
    };
    let packed = PACKED.iter().find(|(own, _)| *own == name).map(|(_, number)| *number);
    numbers.clone().find(is_named).or(packed).ok_or_else(|| {
        let known: Vec<String> = numbers
            .filter_map(|number| buffer_format::common_name(buffer_format::by_number(number)?))
            .collect();
        let help = match diag::nearest(name, known.iter().map(String::as_str)) {
            Some(near) => format!("did you mean `{near}`?"),
            None => "formats are named like rgba8unorm, r32float or 8_8_8_8_UNORM".to_string(),
        };
        (format!("`{name}` is not a format of images"), help)
    })
}

/// Builds an image from the name of its type and its sizes: width, height or layers, …
pub fn build(name: &str, format: u32, memory: InMemory, sizes: &[u32]) -> Result<Image, String> {
    let Some(&(_, dimension, wanted)) = IMAGES.iter().find(|image| image.0 == name) else {
        let names: Vec<&str> = IMAGES.iter().map(|image| image.0).collect();
        return Err(format!("`{name}` is not a type of images; there are {}", names.join(", ")));
    };
    let mut given = sizes.to_vec();
    // A cube has six faces unless it says otherwise.
    if dimension == Dimension::Cube && given.len() == 2 {
        given.push(6);
    }
    if given.len() != wanted {
        return Err(format!("`{name}` has {wanted} sizes, not {}", given.len()));
    }
    if given.iter().any(|size| *size == 0 || *size > 1 << 16) {
        return Err("a size of an image is from 1 to 65536".to_string());
    }
    let InMemory { levels, sw_mode, samples } = memory;
    if levels > 16 {
        return Err(format!("an image has at most 16 levels of detail, not {levels}"));
    }
    if !matches!(samples, 1 | 2 | 4 | 8) {
        return Err(format!("a texel has 1, 2, 4 or 8 samples, not {samples}"));
    }
    let mut image =
        Image { dimension, levels, sw_mode, samples, ..Image::two_dimensional(format, given[0], 1) };
    match dimension {
        Dimension::D1 => {}
        Dimension::D2 => image.size[1] = given[1],
        Dimension::D3 => image.size = [given[0], given[1], given[2]],
        Dimension::D1Array => image.layers = given[1],
        Dimension::Cube | Dimension::D2Array => (image.size[1], image.layers) = (given[1], given[2]),
    }
    Ok(image)
}

/// The type and shape of the array of an image's elements: a component each, or whole elements where components have
/// different sizes. Images with several levels are one list, level 0 first.
pub fn array_type(image: &Image) -> Result<(DType, Vec<u64>), String> {
    let (dtype, parts) = element(image.format);
    if format_bytes(image.format) == 0 {
        return Err(format!("format {} is not supported for images", image.format));
    }
    let block = format_block(image.format);
    let depth = image.size[2];
    let count = |size: [u32; 3]| {
        let elements = size[0].div_ceil(block) as u64 * size[1].div_ceil(block) as u64;
        elements * size[2] as u64 * image.layers as u64 * image.samples as u64
    };
    if image.levels > 1 {
        let elements: u64 = (0..image.levels).map(|level| count(image.level_size(level))).sum();
        return Ok((dtype, vec![elements * parts as u64]));
    }
    let (width, height) = (image.size[0].div_ceil(block) as u64, image.size[1].div_ceil(block) as u64);
    let mut shape = match image.dimension {
        Dimension::D1 => vec![width],
        Dimension::D2 => vec![height, width],
        Dimension::D3 => vec![depth as u64, height, width],
        Dimension::D1Array => vec![image.layers as u64, width],
        Dimension::Cube | Dimension::D2Array => vec![image.layers as u64, height, width],
    };
    if image.samples > 1 {
        shape.push(image.samples as u64);
    }
    if parts > 1 {
        shape.push(parts as u64);
    }
    Ok((dtype, shape))
}

/// The type of the parts of an element, and their number.
fn element(format: u32) -> (DType, u32) {
    let bytes = format_bytes(format);
    let whole = match bytes {
        1 => (DType::U8, 1),
        2 => (DType::U16, 1),
        4 => (DType::U32, 1),
        8 => (DType::U64, 1),
        _ => (DType::U32, bytes / 4),
    };
    let Some(format) = buffer_format::by_number(format) else { return whole };
    let parts = format.widths.len() as u32;
    let signed = matches!(format.number, Number::Snorm | Number::Sint | Number::Sscaled);
    let float = format.number == Number::Float;
    let dtype = match (format.widths[0], signed, float) {
        (8, false, _) => DType::U8,
        (8, true, _) => DType::I8,
        (16, _, true) => DType::F16,
        (16, false, _) => DType::U16,
        (16, true, _) => DType::I16,
        (32, _, true) => DType::F32,
        (32, false, _) => DType::U32,
        (32, true, _) => DType::I32,
        _ => return whole,
    };
    if format.widths.iter().all(|width| *width == format.widths[0]) { (dtype, parts) } else { whole }
}

/// Converts a picture, `u8[height, width, 4]`, to the elements of an image of its size.
pub fn from_picture(image: &Image, picture: &Array) -> Result<Array, String> {
    let (dtype, shape) = array_type(image)?;
    let size = [picture.shape.get(1), picture.shape.first()].map(|n| n.copied().unwrap_or(0));
    let wanted = [image.size[0] as u64, image.size[1] as u64 * (image.layers * image.size[2]) as u64];
    if size != wanted {
        let ([width, height], [w, h]) = (size, wanted);
        return Err(format!("the picture has {width}x{height} pixels, the image {w}x{h}"));
    }
    if format_block(image.format) != 1 || image.levels != 1 || image.samples != 1 {
        return Err("a picture cannot be compressed or have several levels or samples".to_string());
    }
    let is_integer = components(image.format) > 0 && buffer_format::from_format(image.format, 0, 4) == 1;
    let bytes = format_bytes(image.format) as usize;
    let texel = |pixel: &[u8]| {
        let value = |k: usize| if is_integer { pixel[k] as u32 } else { (pixel[k] as f32 / 255.0).to_bits() };
        let registers = (0..4).fold(0, |all, k| all | (value(k) as u128) << (32 * k));
        to_format(image.format, registers).to_le_bytes()
    };
    let texels = picture.bytes.chunks_exact(4).flat_map(|pixel| texel(pixel).into_iter().take(bytes));
    Ok(Array { dtype, shape, bytes: texels.collect() })
}

/// The words of a sampler.
const WORDS: [&str; 26] = [
    "nearest",
    "linear",
    "anisotropic_2",
    "anisotropic_4",
    "anisotropic_8",
    "anisotropic_16",
    "mip_nearest",
    "mip_linear",
    "repeat",
    "mirror",
    "clamp",
    "mirror_once",
    "border",
    "transparent",
    "black",
    "white",
    "unnormalized",
    "rounded",
    "never",
    "less",
    "equal",
    "less_equal",
    "greater",
    "not_equal",
    "greater_equal",
    "always",
];

/// Parses `(word, …)` after `sampler`.
pub fn sampler(cursor: &mut Cursor<'_>) -> Result<Sampler, TextError> {
    let mut sampler = Sampler::default();
    if !cursor.eat('(') {
        return Ok(sampler);
    }
    while cursor.peek() != Some(&Token::Punct(')')) {
        let (word, at) = cursor.name("a property of the sampler")?;
        set_property(&mut sampler, word).map_err(|(message, help)| TextError::new(at, message).help(help))?;
        if !cursor.eat(',') {
            break;
        }
    }
    cursor.expect(')', "after the sampler's properties")?;
    Ok(sampler)
}

/// Sets a property of a sampler by its word; returns a message and a suggestion for unknown words.
pub fn set_property(sampler: &mut Sampler, word: &str) -> Result<(), (String, String)> {
    const COMPARE: [&str; 8] =
        ["never", "less", "equal", "less_equal", "greater", "not_equal", "greater_equal", "always"];
    match word {
        "nearest" => (sampler.mag, sampler.min) = (Filter::Nearest, Filter::Nearest),
        "linear" => (sampler.mag, sampler.min) = (Filter::Linear, Filter::Linear),
        "anisotropic_2" => sampler.anisotropy = 2,
        "anisotropic_4" => sampler.anisotropy = 4,
        "anisotropic_8" => sampler.anisotropy = 8,
        "anisotropic_16" => sampler.anisotropy = 16,
        "mip_nearest" => sampler.mip = MipFilter::Nearest,
        "mip_linear" => sampler.mip = MipFilter::Linear,
        "repeat" => sampler.wrap = [Wrap::Repeat; 3],
        "mirror" => sampler.wrap = [Wrap::Mirror; 3],
        "clamp" => sampler.wrap = [Wrap::ClampToEdge; 3],
        "mirror_once" => sampler.wrap = [Wrap::MirrorOnce; 3],
        "border" => sampler.wrap = [Wrap::Border; 3],
        "transparent" => sampler.border = Border::Transparent,
        "black" => sampler.border = Border::Black,
        "white" => sampler.border = Border::White,
        "unnormalized" => sampler.unnormalized = true,
        "rounded" => sampler.truncates = false,
        other => {
            let compare = COMPARE.iter().position(|own| *own == other).ok_or_else(|| {
                let help = match diag::nearest(other, WORDS) {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => format!("there are {}", WORDS.join(", ")),
                };
                (format!("`{other}` is no property of a sampler"), help)
            })?;
            sampler.compare = compare as u8;
        }
    }
    Ok(())
}
