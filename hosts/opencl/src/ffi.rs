//! Arguments of C callers: a null pointer where something has to be is `CL_INVALID_VALUE`.

use crate::status::{Failure, Status};
use std::ffi::c_void;
use wavesim_runtime::ffi;
pub use wavesim_runtime::ffi::{Memory, Null};

/// A place for a result.
pub type Out<T> = ffi::Out<T, Failure>;
/// A structure or an array that is read.
pub type In<T> = ffi::In<T, Failure>;
/// A string.
pub type Text = ffi::Text<Failure>;

impl From<Null> for Failure {
    fn from(_: Null) -> Failure {
        Status::INVALID_VALUE.into()
    }
}

/// What the program passes to its own callbacks: the library never reads it.
#[repr(transparent)]
#[derive(Clone, Copy)]
pub struct UserData(*mut c_void);

// SAFETY: a value that only goes back to the program.
unsafe impl Send for UserData {}
// SAFETY: as above.
unsafe impl Sync for UserData {}
