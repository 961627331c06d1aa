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

#[cfg(test)]
mod tests {
    use super::super::fill::{self, Random};
    use super::*;
    use crate::npy;
    use std::io::Write;

    #[test]
    fn npy_files_round_trip() {
        let dir = std::env::temp_dir().join(format!("wavesim-npy-{}", std::process::id()));
        for dtype in DType::ALL {
            for shape in [&[][..], &[5], &[2, 3, 4]] {
                let array = fill::rand(dtype, shape, &mut Random::new(1)).unwrap();
                wavesim_files::write_all(&dir, "npy", [("x", |out: &mut dyn Write| npy::write(out, &array))])
                    .unwrap();
                assert_eq!(
                    npy(&dir.join("x.npy"), &Files::any(), Some(dtype)).unwrap(),
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
    fn hostile_headers_are_rejected() {
        let path = std::env::temp_dir().join(format!("wavesim-hostile-{}.npy", std::process::id()));
        let long = [&b"\x93NUMPY\x02\x00"[..], &u32::MAX.to_le_bytes()].concat();
        let deep = [&b"\x93NUMPY\x01\x00"[..], &40000u16.to_le_bytes(), &[b'('; 40000]].concat();
        for bytes in [&long[..], &deep, b"\x93NUMPY", b"secret contents of another file", b""] {
            std::fs::write(&path, bytes).unwrap();
            let error = npy(&path, &Files::any(), None).unwrap_err().to_string();
            assert!(error.ends_with("not a .npy file"), "{error}");
        }
        std::fs::remove_file(&path).unwrap();
    }
}
