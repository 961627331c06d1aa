//! Arrays in files: raw little-endian elements, and NumPy's `.npy`.

use super::{Array, ArrayError, DType, count, size_bytes, type_name};
use npyz::{NpyHeader, Order, TypeChar};
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::Path;

fn wrong(path: &Path, message: impl std::fmt::Display) -> ArrayError {
    ArrayError::File(format!("{}: {message}", path.display()))
}

/// Bytes of a regular file whose length is known before a byte is read.
fn sized(path: &Path) -> Result<(File, u64), ArrayError> {
    let io = |e: io::Error| wrong(path, e);
    let meta = std::fs::metadata(path).map_err(io)?;
    if !meta.is_file() {
        return Err(wrong(path, "not a file"));
    }
    Ok((File::open(path).map_err(io)?, meta.len()))
}

/// Raw elements of `stored`, converted to `dtype` where the two differ. The file holds exactly the shape's elements.
pub fn raw(path: &Path, stored: DType, dtype: DType, shape: &[u64]) -> Result<Array, ArrayError> {
    let (mut file, len) = sized(path)?;
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

/// A `.npy` file in C order, with the type and shape it states. bf16, which the format does not have, may be stored as u16 or
/// void of 2 bytes: then `wanted` decides.
pub fn npy(path: &Path, wanted: Option<DType>) -> Result<Array, ArrayError> {
    let (mut file, len) = sized(path)?;
    let header = NpyHeader::from_reader(&mut file).map_err(|e| wrong(path, e))?;
    if header.order() != Order::C {
        return Err(wrong(path, "only C order is supported"));
    }
    let described = header.dtype().descr();
    let stored = plain(&header.dtype(), wanted)
        .ok_or_else(|| wrong(path, format!("elements of {described} are none of {}", DType::names())))?;
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

/// As [`npy`], with the wanted type and number of elements; the shape may differ.
pub fn npy_as(path: &Path, dtype: DType, shape: &[u64]) -> Result<Array, ArrayError> {
    let found = npy(path, Some(dtype))?;
    if found.dtype != dtype || found.len() != count(shape)? {
        let message = format!("{} where {} is wanted", found.type_name(), type_name(dtype, shape));
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

/// Writes arrays as `DIR/NAME.npy`, all or none as far as the file system allows: everything is written beside its place first and
/// then renamed.
pub fn write_all<'a>(dir: &Path, arrays: impl IntoIterator<Item = (&'a str, &'a Array)>) -> io::Result<()> {
    std::fs::create_dir_all(dir)?;
    let mut written = Vec::new();
    let result = arrays.into_iter().try_for_each(|(name, array)| {
        let partial = dir.join(format!(".{name}.npy.{}", std::process::id()));
        written.push((partial.clone(), dir.join(format!("{name}.npy"))));
        let mut out = io::BufWriter::new(File::create(&partial)?);
        write_npy(&mut out, array)?;
        out.flush()
    });
    let result = result.and_then(|()| written.iter().try_for_each(|(from, to)| std::fs::rename(from, to)));
    if result.is_err() {
        for (partial, _) in &written {
            // Best effort: the error that matters is already on its way.
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
    fn what_is_written_reads_back() {
        let dir = std::env::temp_dir().join(format!("wavesim-npy-{}", std::process::id()));
        for dtype in DType::ALL {
            for shape in [&[][..], &[5], &[2, 3, 4]] {
                let array = fill::rand(dtype, shape, &mut Random::new(1)).unwrap();
                write_all(&dir, [("x", &array)]).unwrap();
                assert_eq!(npy(&dir.join("x.npy"), Some(dtype)).unwrap(), array, "{}", array.type_name());
            }
        }
        assert_eq!(std::fs::read_dir(&dir).unwrap().count(), 1, "nothing partial stays");
        std::fs::remove_dir_all(&dir).unwrap();
    }
}
