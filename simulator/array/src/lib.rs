//! Typed arrays: the contents of kernel arguments and outputs, for the headers of text kernels, launch
//! descriptions and the command line.
//!
//! - [`dtype`]: element types, and conversion of numbers to bytes and back
//! - [`fill`]: arrays from initialisers: `repeat`, `arange`, `rand`, lists
//! - [`mod@file`]: arrays in files: raw bytes and `.npy`
//! - [`picture`]: PNG files
//! - [`mod@show`]: arrays as text, in the format of NumPy
//! - [`json`]: arrays as JSON
//!
//! This crate must not depend on kernels and their memory.

#![warn(missing_docs)]
// No files, threads, processes or clocks; clippy.toml lists the disallowed methods.
#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

pub mod dtype;
pub mod file;
pub mod fill;
pub mod json;
pub mod npy;
pub mod picture;
pub mod show;

pub use dtype::{DType, Num};

use wavesim_files::FileError;

/// A dense row-major array of little-endian elements. An empty shape is a scalar: one element.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Array {
    /// The element type.
    pub dtype: DType,
    /// Length of each axis, outermost first.
    pub shape: Vec<u64>,
    /// The elements.
    pub bytes: Vec<u8>,
}

impl Array {
    /// An array of zeros.
    pub fn zeros(dtype: DType, shape: &[u64]) -> Result<Array, ArrayError> {
        let bytes = vec![0; size_bytes(dtype, shape)?];
        Ok(Array { dtype, shape: shape.to_vec(), bytes })
    }

    /// Number of elements.
    pub fn len(&self) -> usize {
        self.bytes.len() / self.dtype.size()
    }

    /// Returns whether the array has no elements.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Element `index` in row-major order.
    pub fn get(&self, index: usize) -> Option<Num> {
        let size = self.dtype.size();
        Some(self.dtype.decode(self.bytes.get(index * size..(index + 1) * size)?))
    }

    /// The elements in row-major order.
    pub fn values(&self) -> impl Iterator<Item = Num> + '_ {
        self.bytes.chunks_exact(self.dtype.size()).map(|b| self.dtype.decode(b))
    }

    /// The type as text: `f32[4,4]`, or `f32` for a scalar.
    pub fn type_name(&self) -> String {
        type_name(self.dtype, &self.shape)
    }
}

/// The type of an array as text; see [`Array::type_name`].
pub fn type_name(dtype: DType, shape: &[u64]) -> String {
    if shape.is_empty() {
        return dtype.name().to_string();
    }
    let dims: Vec<String> = shape.iter().map(u64::to_string).collect();
    format!("{}[{}]", dtype.name(), dims.join(","))
}

/// The largest number of dimensions, as in NumPy.
pub const MAX_DIMENSIONS: usize = 64;

/// The number of elements of a shape; an error if no host could store them.
pub fn count(shape: &[u64]) -> Result<usize, ArrayError> {
    if shape.len() > MAX_DIMENSIONS {
        return Err(ArrayError::Dimensions(shape.len()));
    }
    let count = shape.iter().try_fold(1u64, |n, &d| n.checked_mul(d));
    count.filter(|n| *n <= isize::MAX as u64 / 16).map(|n| n as usize).ok_or(ArrayError::TooLarge)
}

/// The size of an array in bytes.
pub fn size_bytes(dtype: DType, shape: &[u64]) -> Result<usize, ArrayError> {
    Ok(count(shape)? * dtype.size())
}

/// The reason why an array cannot be created.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum ArrayError {
    /// The array exceeds any host's memory.
    #[error("an array of this shape is larger than any memory")]
    TooLarge,
    /// The shape has more than [`MAX_DIMENSIONS`] dimensions.
    #[error("{0} dimensions: an array has at most {MAX_DIMENSIONS}")]
    Dimensions(usize),
    /// A value is out of the type's range.
    #[error("{value} is not a valid {} ({range})", dtype.name())]
    Range {
        /// The value.
        value: String,
        /// The type.
        dtype: DType,
        /// The range of the type, for the message.
        range: String,
    },
    /// `arange` with a step of 0.
    #[error("arange with a step of 0")]
    ZeroStep,
    /// The number of values does not match the shape.
    #[error("{what} gives {given} values, {wanted_type} has {wanted}")]
    Count {
        /// The initialiser.
        what: String,
        /// The number of values it produces.
        given: String,
        /// The number of elements in the shape.
        wanted: usize,
        /// The array type.
        wanted_type: String,
    },
    /// A file cannot be read, or its contents do not match.
    #[error("{0}")]
    File(String),
}

impl From<FileError> for ArrayError {
    fn from(e: FileError) -> ArrayError {
        ArrayError::File(e.to_string())
    }
}
