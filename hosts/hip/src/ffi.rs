//! Types of arguments that C callers pass. An unexpected null pointer is `hipErrorInvalidValue`.

use crate::status::{Failure, Status};
use wavesim_runtime::ffi;
pub use wavesim_runtime::ffi::{HostFunction, Memory, c_text};

/// Pointer to storage for a result.
pub type Out<T> = ffi::Out<T, Failure>;
/// Pointer to a structure or an array that the library reads.
pub type In<T> = ffi::In<T, Failure>;
/// Array that the library reads, with its length.
pub type Array<T> = ffi::Array<T, Failure>;
/// Pointer to a string.
pub type Text = ffi::Text<Failure>;

impl From<ffi::Null> for Failure {
    fn from(_: ffi::Null) -> Failure {
        Status::INVALID_VALUE.into()
    }
}
