//! Pictures: PNG files as arrays of bytes, and arrays of bytes as PNG files.

use super::{Array, ArrayError, DType};
use std::io::Write;
use std::path::Path;
use wavesim_files::Files;

/// The most pixels of a picture, so that a small file cannot request all memory.
const MAX_PIXELS: u64 = 1 << 28;

/// Reads a PNG file as `u8[height, width, 4]`: red, green, blue, alpha.
///
/// # Errors
/// The file cannot be read, is no PNG file or too large.
pub fn read(path: &Path, files: &Files) -> Result<Array, ArrayError> {
    let failed = |message: String| ArrayError::File(format!("{}: {message}", path.display()));
    let bytes = files.read(path, wavesim_files::MAX_FILE)?;
    let mut decoder = png::Decoder::new(std::io::Cursor::new(bytes));
    decoder.set_transformations(png::Transformations::normalize_to_color8() | png::Transformations::ALPHA);
    let mut reader = decoder.read_info().map_err(|e| failed(e.to_string()))?;
    let (width, height) = reader.info().size();
    let size = reader.output_buffer_size();
    let size = size.filter(|_| width as u64 * height as u64 <= MAX_PIXELS);
    let mut pixels = vec![0; size.ok_or_else(|| failed(format!("{width}x{height} pixels are too many")))?];
    let frame = reader.next_frame(&mut pixels).map_err(|e| failed(e.to_string()))?;
    let pixels = &pixels[..frame.buffer_size()];
    let rgba = match frame.color_type {
        png::ColorType::Rgba => pixels.to_vec(),
        // Gray and alpha.
        _ => pixels.chunks_exact(2).flat_map(|p| [p[0], p[0], p[0], p[1]]).collect(),
    };
    Ok(Array { dtype: DType::U8, shape: vec![height as u64, width as u64, 4], bytes: rgba })
}

/// Writes `u8[height, width, 4]` as a PNG file.
///
/// # Errors
/// The array has another type or shape, or writing fails.
pub fn write(out: &mut dyn Write, array: &Array) -> std::io::Result<()> {
    let invalid =
        || std::io::Error::new(std::io::ErrorKind::InvalidInput, "a picture is u8[height, width, 4]");
    let &[height, width, 4] = array.shape.as_slice() else { return Err(invalid()) };
    let (Ok(width), Ok(height), DType::U8) = (u32::try_from(width), u32::try_from(height), array.dtype)
    else {
        return Err(invalid());
    };
    let mut encoder = png::Encoder::new(out, width, height);
    encoder.set_color(png::ColorType::Rgba);
    encoder.set_depth(png::BitDepth::Eight);
    let mut writer = encoder.write_header()?;
    writer.write_image_data(&array.bytes)?;
    Ok(writer.finish()?)
}
