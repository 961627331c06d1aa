//! Arguments of C callers: a null pointer where something has to be is `hipErrorInvalidValue`.

use crate::status::{Failure, Status};
use wavesim_runtime::ffi;
pub use wavesim_runtime::ffi::{HostFunction, Memory, c_text};

/// A place for a result.
pub type Out<T> = ffi::Out<T, Failure>;
/// A structure or an array that is read.
pub type In<T> = ffi::In<T, Failure>;
/// A string.
pub type Text = ffi::Text<Failure>;

impl From<ffi::Null> for Failure {
    fn from(_: ffi::Null) -> Failure {
        Status::INVALID_VALUE.into()
    }
}
