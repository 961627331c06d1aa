//! Arrays read from files: raw little-endian elements, and NumPy's `.npy`.

use super::npy::Header;
use super::{Array, ArrayError, DType, count, size_bytes, type_name};
use std::io::Read as _;
use std::path::Path;
use wavesim_files::Files;

fn wrong(path: &Path, message: impl std::fmt::Display) -> ArrayError {
    ArrayError::File(format!("{}: {message}", path.display()))
}

/// Reads a file of raw elements of type `stored` and converts them to `dtype`. The file's size must match the
/// shape.
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

/// Reads a `.npy` file in C order. The file determines type and shape. The format has no bf16: elements of
/// u16 or of 2-byte void are read as bf16 if `wanted` is bf16.
pub fn npy(path: &Path, files: &Files, wanted: Option<DType>) -> Result<Array, ArrayError> {
    let (mut file, len) = files.open(path)?;
    let header = Header::read(&mut file).ok_or_else(|| wrong(path, "not a .npy file"))?;
    if header.fortran_order {
        return Err(wrong(path, "only C order is supported"));
    }
    let stored = header.dtype(wanted).ok_or_else(|| {
        wrong(path, format!("elements of {} are not supported; types are {}", header.descr, DType::names()))
    })?;
    let size = size_bytes(stored, &header.shape)?;
    if size as u64 > len {
        return Err(wrong(
            path,
            format!("{} needs {size} bytes, the file has {len}", type_name(stored, &header.shape)),
        ));
    }
    let mut bytes = vec![0; size];
    file.read_exact(&mut bytes).map_err(|e| wrong(path, e))?;
    Ok(Array { dtype: stored, shape: header.shape, bytes })
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
