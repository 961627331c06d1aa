//! Typed arrays: what arguments are filled with and outputs are read into. One mechanism for the text format's header, launch
//! descriptions and the command line.
//!
//! - [`dtype`]: element types; numbers to bytes and back
//! - [`fill`]: `repeat`, `arange`, `rand`, lists
//! - [`file`]: raw bytes and `.npy`
//! - [`show`]: text as NumPy prints it
//! - [`json`]: machine output

pub mod dtype;
pub mod file;
pub mod fill;
pub mod json;
pub mod show;

pub use dtype::{DType, Num};

use wavesim_files::FileError;

/// A dense row-major array of little-endian elements. An empty shape is a scalar: one element.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Array {
    pub dtype: DType,
    pub shape: Vec<u64>,
    pub bytes: Vec<u8>,
}

impl Array {
    pub fn zeros(dtype: DType, shape: &[u64]) -> Result<Array, ArrayError> {
        let bytes = vec![0; size_bytes(dtype, shape)?];
        Ok(Array { dtype, shape: shape.to_vec(), bytes })
    }

    /// Number of elements.
    pub fn len(&self) -> usize {
        self.bytes.len() / self.dtype.size()
    }

    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Element `at` in row-major order.
    pub fn get(&self, at: usize) -> Option<Num> {
        let size = self.dtype.size();
        Some(self.dtype.decode(self.bytes.get(at * size..(at + 1) * size)?))
    }

    pub fn values(&self) -> impl Iterator<Item = Num> + '_ {
        self.bytes.chunks_exact(self.dtype.size()).map(|b| self.dtype.decode(b))
    }

    /// `f32[4,4]`, or `f32` of a scalar.
    pub fn type_name(&self) -> String {
        type_name(self.dtype, &self.shape)
    }
}

/// As [`Array::type_name`].
pub fn type_name(dtype: DType, shape: &[u64]) -> String {
    if shape.is_empty() {
        return dtype.name().to_string();
    }
    let dims: Vec<String> = shape.iter().map(u64::to_string).collect();
    format!("{}[{}]", dtype.name(), dims.join(","))
}

/// Dimensions of an array at most, as NumPy has it.
pub const MAX_DIMENSIONS: usize = 64;

/// Elements of a shape; an error where no host could hold them.
pub fn count(shape: &[u64]) -> Result<usize, ArrayError> {
    if shape.len() > MAX_DIMENSIONS {
        return Err(ArrayError::Dimensions(shape.len()));
    }
    let count = shape.iter().try_fold(1u64, |n, &d| n.checked_mul(d));
    count.filter(|n| *n <= isize::MAX as u64 / 16).map(|n| n as usize).ok_or(ArrayError::TooLarge)
}

/// Bytes of an array.
pub fn size_bytes(dtype: DType, shape: &[u64]) -> Result<usize, ArrayError> {
    Ok(count(shape)? * dtype.size())
}

/// Why an array cannot be made.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum ArrayError {
    #[error("an array of this shape fits in no memory")]
    TooLarge,
    #[error("{0} dimensions: an array has at most {MAX_DIMENSIONS}")]
    Dimensions(usize),
    #[error("{value} is no {} ({range})", dtype.name())]
    Range { value: String, dtype: DType, range: String },
    #[error("arange with a step of 0")]
    ZeroStep,
    #[error("{what} gives {given} values, {wanted_type} has {wanted}")]
    Count { what: String, given: String, wanted: usize, wanted_type: String },
    #[error("{0}")]
    File(String),
}

impl From<FileError> for ArrayError {
    fn from(e: FileError) -> ArrayError {
        ArrayError::File(e.to_string())
    }
}
