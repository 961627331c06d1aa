//! Arrays in files: raw little-endian elements, and NumPy's `.npy`.

use super::{Array, ArrayError, DType, count, size_bytes, type_name};
use npyz::{NpyHeader, Order, TypeChar};
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::Path;
use wavesim_files::Files;

fn wrong(path: &Path, message: impl std::fmt::Display) -> ArrayError {
    ArrayError::File(format!("{}: {message}", path.display()))
}

/// Reads a file of raw elements of type `stored`, and converts them to `dtype`. Its size must be that of the shape.
pub fn raw(
    path: &Path,
    files: &Files,
    stored: DType,
    dtype: DType,
    shape: &[u64],
) -> Result<Array, ArrayError> {
    let (mut file, len) = files.open(path)?;
    let wanted = size_bytes(stored, shape)?;
    if len != wanted as u64 {
        let message = format!(
            "{len} bytes, but {} of {} elements needs {wanted}",
            type_name(dtype, shape),
            stored.name()
        );
        return Err(wrong(path, message));
    }
    let mut bytes = vec![0; wanted];
    file.read_exact(&mut bytes).map_err(|e| wrong(path, e))?;
    convert(Array { dtype: stored, shape: shape.to_vec(), bytes }, dtype)
}

fn convert(array: Array, dtype: DType) -> Result<Array, ArrayError> {
    if array.dtype == dtype {
        return Ok(array);
    }
    let mut bytes = Vec::with_capacity(array.len() * dtype.size());
    for value in array.values() {
        dtype.encode(value, &mut bytes)?;
    }
    Ok(Array { dtype, shape: array.shape, bytes })
}

/// Reads a `.npy` file in C order. The file defines type and shape; as the format has no bf16, elements of u16 or of 2-byte
/// void are bf16 if `wanted` is.
pub fn npy(path: &Path, files: &Files, wanted: Option<DType>) -> Result<Array, ArrayError> {
    let (mut file, len) = files.open(path)?;
    let header = header(&mut file).ok_or_else(|| wrong(path, "not a .npy file"))?;
    if header.order() != Order::C {
        return Err(wrong(path, "only C order is supported"));
    }
    let described = header.dtype().descr();
    let stored = plain(&header.dtype(), wanted).ok_or_else(|| {
        wrong(path, format!("elements of {described} are not supported; types are {}", DType::names()))
    })?;
    let shape = header.shape().to_vec();
    let size = size_bytes(stored, &shape)?;
    if size as u64 > len {
        return Err(wrong(
            path,
            format!("{} needs {size} bytes, the file has {len}", type_name(stored, &shape)),
        ));
    }
    let mut bytes = vec![0; size];
    file.read_exact(&mut bytes).map_err(|e| wrong(path, e))?;
    Ok(Array { dtype: stored, shape, bytes })
}

/// Limits of the size of a header and of its nesting, as the parser of npyz has none.
const MAX_HEADER: u32 = 64 << 10;
const MAX_NESTING: u32 = 6;

/// Reads the header. The file is then at the data.
fn header(file: &mut File) -> Option<NpyHeader> {
    let mut bytes = vec![0; 10];
    file.read_exact(&mut bytes).ok()?;
    let mut len = u16::from_le_bytes([bytes[8], bytes[9]]) as u32;
    // Since version 2 the length has four bytes.
    if bytes[6] > 1 {
        bytes.resize(12, 0);
        file.read_exact(&mut bytes[10..]).ok()?;
        len = u32::from_le_bytes([bytes[8], bytes[9], bytes[10], bytes[11]]);
    }
    if !bytes.starts_with(b"\x93NUMPY") || len > MAX_HEADER {
        return None;
    }
    let start = bytes.len();
    bytes.resize(start + len as usize, 0);
    file.read_exact(&mut bytes[start..]).ok()?;
    let mut depth = 0u32;
    for byte in &bytes[start..] {
        match byte {
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth > MAX_NESTING {
            return None;
        }
    }
    NpyHeader::from_reader(&bytes[..]).ok()
}

/// Reads a `.npy` file that must have this type and number of elements. Its shape may differ.
pub fn npy_as(path: &Path, files: &Files, dtype: DType, shape: &[u64]) -> Result<Array, ArrayError> {
    let found = npy(path, files, Some(dtype))?;
    if found.dtype != dtype || found.len() != count(shape)? {
        let message = format!("{}, expected {}", found.type_name(), type_name(dtype, shape));
        return Err(wrong(path, message));
    }
    Ok(Array { shape: shape.to_vec(), ..found })
}

fn plain(dtype: &npyz::DType, wanted: Option<DType>) -> Option<DType> {
    let npyz::DType::Plain(t) = dtype else { return None };
    if t.endianness() == npyz::Endianness::Big {
        return None;
    }
    let size = t.size_field();
    Some(match (t.type_char(), size) {
        (TypeChar::Uint, 2) if wanted == Some(DType::BF16) => DType::BF16,
        (TypeChar::RawData, 2) if wanted == Some(DType::BF16) => DType::BF16,
        (TypeChar::Uint, 1) => DType::U8,
        (TypeChar::Uint, 2) => DType::U16,
        (TypeChar::Uint, 4) => DType::U32,
        (TypeChar::Uint, 8) => DType::U64,
        (TypeChar::Int, 1) => DType::I8,
        (TypeChar::Int, 2) => DType::I16,
        (TypeChar::Int, 4) => DType::I32,
        (TypeChar::Int, 8) => DType::I64,
        (TypeChar::Float, 2) => DType::F16,
        (TypeChar::Float, 4) => DType::F32,
        (TypeChar::Float, 8) => DType::F64,
        _ => return None,
    })
}

/// NumPy's name of an element type. It has none for bf16: its bits are written as u16.
fn descr(dtype: DType) -> &'static str {
    match dtype {
        DType::U8 => "|u1",
        DType::U16 | DType::BF16 => "<u2",
        DType::U32 => "<u4",
        DType::U64 => "<u8",
        DType::I8 => "|i1",
        DType::I16 => "<i2",
        DType::I32 => "<i4",
        DType::I64 => "<i8",
        DType::F16 => "<f2",
        DType::F32 => "<f4",
        DType::F64 => "<f8",
    }
}

/// Writes a version 1.0 `.npy` (NumPy's *npy format*). The bytes are at hand, so there is nothing to serialise an element at a time.
pub fn write_npy(mut out: impl Write, array: &Array) -> io::Result<()> {
    let dims: String = array.shape.iter().map(|d| format!("{d},")).collect();
    let mut header =
        format!("{{'descr': '{}', 'fortran_order': False, 'shape': ({dims}), }}", descr(array.dtype));
    // Magic, version and length take 10 bytes; the data starts at a multiple of 64, after a line break.
    while (10 + header.len() + 1) % 64 != 0 {
        header.push(' ');
    }
    header.push('\n');
    out.write_all(b"\x93NUMPY\x01\x00")?;
    out.write_all(&(header.len() as u16).to_le_bytes())?;
    out.write_all(header.as_bytes())?;
    out.write_all(&array.bytes)
}

/// The longest file name of an output in bytes, leaving room for the extension.
const MAX_NAME: usize = 200;

/// The file name of an output. Its name may come from a foreign file: characters that could leave the folder, hide the file
/// or control a terminal or a shell are percent-encoded, as in URLs. `None` if the name is empty or too long.
pub fn file_name(name: &str) -> Option<String> {
    let mut out = String::new();
    for (at, byte) in name.bytes().enumerate() {
        let plain = byte.is_ascii_alphanumeric() || b"_-+=,@$".contains(&byte) || byte == b'.' && at > 0;
        match plain {
            true => out.push(byte as char),
            false => out += &format!("%{byte:02x}"),
        }
    }
    (!out.is_empty() && out.len() <= MAX_NAME).then_some(out)
}

/// Writes arrays as `DIR/NAME.npy` (see [`file_name`]). All files are written under temporary names first and then renamed,
/// so that an error leaves none of them.
pub fn write_all<'a>(dir: &Path, arrays: impl IntoIterator<Item = (&'a str, &'a Array)>) -> io::Result<()> {
    std::fs::create_dir_all(dir)?;
    let mut written = Vec::new();
    let result = arrays.into_iter().try_for_each(|(name, array)| {
        let file = file_name(name).ok_or_else(|| {
            io::Error::other(format!(
                "the name of an output has {} bytes, too many for a file name",
                name.len()
            ))
        })?;
        let partial = dir.join(format!(".{file}.npy.{}", std::process::id()));
        let to = dir.join(format!("{file}.npy"));
        if written.iter().any(|(_, other)| *other == to) {
            return Err(io::Error::other(format!("two outputs have the name `{name}`")));
        }
        // `create_new` does not follow an existing link.
        let mut out = io::BufWriter::new(File::create_new(&partial)?);
        written.push((partial, to));
        write_npy(&mut out, array)?;
        out.flush()
    });
    let result = result.and_then(|()| written.iter().try_for_each(|(from, to)| std::fs::rename(from, to)));
    if result.is_err() {
        for (partial, _) in &written {
            // Best effort: the first error is reported.
            let _ = std::fs::remove_file(partial);
        }
    }
    result
}

#[cfg(test)]
mod tests {
    use super::super::fill::{self, Random};
    use super::*;

    #[test]
    fn npy_files_round_trip() {
        let dir = std::env::temp_dir().join(format!("wavesim-npy-{}", std::process::id()));
        for dtype in DType::ALL {
            for shape in [&[][..], &[5], &[2, 3, 4]] {
                let array = fill::rand(dtype, shape, &mut Random::new(1)).unwrap();
                write_all(&dir, [("x", &array)]).unwrap();
                assert_eq!(
                    npy(&dir.join("x.npy"), &Files::anywhere(), Some(dtype)).unwrap(),
                    array,
                    "{}",
                    array.type_name()
                );
            }
        }
        assert_eq!(std::fs::read_dir(&dir).unwrap().count(), 1, "nothing partial stays");
        std::fs::remove_dir_all(&dir).unwrap();
    }

    #[test]
    fn names_stay_in_the_folder() {
        let name = |n: &str| file_name(n).unwrap();
        assert_eq!(name("out_y"), "out_y");
        assert_eq!(name("a.b"), "a.b");
        assert_eq!(name("./../evil"), "%2e%2f..%2fevil");
        assert_eq!(name(".."), "%2e.");
        assert_eq!(name("/etc/passwd"), "%2fetc%2fpasswd");
        assert_eq!(name("a\\b\0c\x1b"), "a%5cb%00c%1b");
        // Different names are different files.
        assert_ne!(name("%2e"), name("."));
        assert!(file_name("").is_none() && file_name(&"x".repeat(300)).is_none());
    }

    #[test]
    fn two_outputs_of_one_name_are_an_error_that_leaves_nothing() {
        let dir = std::env::temp_dir().join(format!("wavesim-twice-{}", std::process::id()));
        let array = Array::zeros(DType::U8, &[1]).unwrap();
        assert!(write_all(&dir, [("x", &array), ("x", &array)]).is_err());
        assert_eq!(std::fs::read_dir(&dir).unwrap().count(), 0);
        std::fs::remove_dir_all(&dir).unwrap();
    }

    #[test]
    fn hostile_headers_are_refused() {
        let path = std::env::temp_dir().join(format!("wavesim-hostile-{}.npy", std::process::id()));
        let long = [&b"\x93NUMPY\x02\x00"[..], &u32::MAX.to_le_bytes()].concat();
        let deep = [&b"\x93NUMPY\x01\x00"[..], &40000u16.to_le_bytes(), &[b'('; 40000]].concat();
        for bytes in [&long[..], &deep, b"\x93NUMPY", b"secret contents of another file", b""] {
            std::fs::write(&path, bytes).unwrap();
            let error = npy(&path, &Files::anywhere(), None).unwrap_err().to_string();
            assert!(error.ends_with("not a .npy file"), "{error}");
        }
        std::fs::remove_file(&path).unwrap();
    }
}
