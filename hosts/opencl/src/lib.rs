//! An OpenCL platform (ICD): the system's `libOpenCL` finds it by a file that names it, and programs run on wavesim.
//! `docs/opencl.md` has an example.
//!
//! - [`status`]: statuses, and how failures become them
//! - [`ffi`]: arguments of C callers; [`handle`]: what their handles stand for; [`info`]: queries
//! - [`platform`]: the platform and its device; [`context`]: contexts
//! - [`queue`]: command queues; [`event`]: events
//! - [`memory`], [`svm`]: buffers and shared virtual memory; [`transfer`]: commands on them
//! - [`program`], [`compile`]: programs; [`kernel`]: kernels and their arguments; [`launch`], [`printf`]: launches
//!
//! The table of `wavesim-opencl-api` has every function of the API with its state. `build.rs` makes the ICD's table of it: functions
//! that are not supported say so when they are called.

// The names are those of the C API.
#![allow(non_snake_case)]

pub mod compile;
pub mod context;
pub mod event;
pub mod ffi;
pub mod handle;
pub mod info;
pub mod kernel;
pub mod launch;
pub mod memory;
pub mod platform;
pub mod printf;
pub mod program;
pub mod queue;
pub mod status;
pub mod svm;
pub mod transfer;

/// All functions of the table that are supported.
mod functions {
    pub use crate::context::*;
    pub use crate::event::*;
    pub use crate::kernel::*;
    pub use crate::launch::*;
    pub use crate::memory::*;
    pub use crate::platform::*;
    pub use crate::program::*;
    pub use crate::queue::*;
    pub use crate::svm::*;
    pub use crate::transfer::*;
}

/// The address of a function.
#[repr(transparent)]
#[derive(Clone, Copy)]
struct Entry(*const ());

// SAFETY: the address of code.
unsafe impl Send for Entry {}
// SAFETY: as above.
unsafe impl Sync for Entry {}

include!(concat!(env!("OUT_DIR"), "/table.rs"));

/// The table that loaders find functions in (`cl_icd_dispatch`).
#[repr(transparent)]
struct Table([Option<EntryPointer>; NAMED.len()]);

/// As [`Entry`], where null is no function.
type EntryPointer = std::ptr::NonNull<()>;

// SAFETY: addresses of code.
unsafe impl Sync for Table {}

static TABLE: Table = {
    let mut table = [None; NAMED.len()];
    let mut at = 0;
    while at < NAMED.len() {
        if let Some(entry) = NAMED[at].1 {
            table[at] = std::ptr::NonNull::new(entry.0.cast_mut());
        }
        at += 1;
    }
    Table(table)
};

/// The table of functions.
fn table() -> &'static Table {
    &TABLE
}

/// The address of a function by name.
fn function(name: &str) -> Option<*const ()> {
    NAMED.iter().find(|row| row.0 == name).and_then(|row| Some(row.1?.0))
}

/// What loaders ask the library for.
mod exports {
    use crate::ffi::{Memory, Out, Text};
    use crate::handle::Handle;
    use std::ffi::{c_int, c_uint};

    /// Where a loader begins.
    // SAFETY: no other library has a function of this name that is called by it.
    #[unsafe(no_mangle)]
    extern "C" fn clIcdGetPlatformIDsKHR(count: c_uint, list: Out<Handle>, found: Out<c_uint>) -> c_int {
        crate::platform::clGetPlatformIDs(count, list, found)
    }

    /// As the table's.
    // SAFETY: loaders ask this library for it by its handle.
    #[unsafe(no_mangle)]
    extern "C" fn clGetPlatformInfo(
        platform: Handle,
        name: c_uint,
        size: usize,
        value: Memory,
        needed: Out<usize>,
    ) -> c_int {
        crate::platform::clGetPlatformInfo(platform, name, size, value, needed)
    }

    /// As the table's.
    // SAFETY: as above.
    #[unsafe(no_mangle)]
    extern "C" fn clGetExtensionFunctionAddress(name: Text) -> *const () {
        crate::platform::clGetExtensionFunctionAddress(name)
    }
}
