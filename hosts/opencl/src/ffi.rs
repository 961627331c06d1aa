//! Types of arguments that C callers pass. An unexpected null pointer is `CL_INVALID_VALUE`.

use crate::status::{Failure, Status};
use std::ffi::c_void;
use wavesim_runtime::ffi;
pub use wavesim_runtime::ffi::{Memory, Null};

/// Pointer to storage for a result.
pub type Out<T> = ffi::Out<T, Failure>;
/// Pointer to a structure or an array that the library reads.
pub type In<T> = ffi::In<T, Failure>;
/// Array that the library reads, with its length.
pub type Array<T> = ffi::Array<T, Failure>;
/// Pointer to a string.
pub type Text = ffi::Text<Failure>;

impl From<Null> for Failure {
    fn from(_: Null) -> Failure {
        Status::INVALID_VALUE.into()
    }
}

/// Opaque pointer that the program passes to its callbacks.
#[repr(transparent)]
#[derive(Clone, Copy)]
pub struct UserData(*mut c_void);

// SAFETY: the library never dereferences the pointer; it only passes it back to the program.
unsafe impl Send for UserData {}
// SAFETY: as above.
unsafe impl Sync for UserData {}
