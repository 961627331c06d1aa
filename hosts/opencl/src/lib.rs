//! An OpenCL platform (ICD) that runs programs on wavesim. The system's `libOpenCL` finds it through an
//! `.icd` file. `docs/opencl.md` has an example.
//!
//! - [`status`]: status codes, and the conversion of failures to them
//! - [`ffi`]: arguments of C callers; [`handle`]: handles and their objects; [`info`]: queries
//! - [`platform`]: the platform, and what it says of its devices; [`devices`]: their list; [`context`]: contexts
//! - [`queue`]: command queues; [`command`]: types of commands; [`event`]: events
//! - [`memory`], [`svm`]: buffers and shared virtual memory; [`transfer`]: commands on them
//! - [`image`], [`channels`], [`sampler`]: images and samplers; [`image_transfer`]: commands on images
//! - [`program`], [`compile`]: programs; [`kernel`]: kernels and their arguments; [`launch`], [`printf`]: launches
//!
//! The table in `wavesim-opencl-api` lists every function of the API with its state. `build.rs` generates the
//! dispatch table from it; unsupported functions report themselves when they are called.

// Names follow the C API.
#![allow(non_snake_case)]
// The documentation of the API states what callers must guarantee.
#![allow(clippy::missing_safety_doc)]

pub mod channels;
pub mod command;
pub mod compile;
pub mod context;
pub mod devices;
pub mod event;
pub mod ffi;
pub mod handle;
pub mod image;
pub mod image_transfer;
pub mod info;
pub mod kernel;
pub mod launch;
pub mod memory;
pub mod platform;
pub mod printf;
pub mod program;
pub mod queue;
pub mod sampler;
pub mod status;
pub mod svm;
pub mod transfer;

/// All implemented functions of the table.
mod functions {
    pub use crate::context::*;
    pub use crate::event::*;
    pub use crate::image::*;
    pub use crate::image_transfer::*;
    pub use crate::kernel::*;
    pub use crate::launch::*;
    pub use crate::memory::*;
    pub use crate::platform::*;
    pub use crate::program::*;
    pub use crate::queue::*;
    pub use crate::sampler::*;
    pub use crate::svm::*;
    pub use crate::transfer::*;
}

/// The address of a function.
#[repr(transparent)]
#[derive(Clone, Copy)]
struct Entry(*const ());

// SAFETY: the value is the address of a function, which is immutable.
unsafe impl Send for Entry {}
// SAFETY: as above.
unsafe impl Sync for Entry {}

include!(concat!(env!("OUT_DIR"), "/table.rs"));

/// The dispatch table that loaders use (`cl_icd_dispatch`).
#[repr(transparent)]
struct Table([Option<EntryPointer>; NAMED.len()]);

/// The address of a function, as [`Entry`], but non-null so that `None` is a null pointer in the table.
type EntryPointer = std::ptr::NonNull<()>;

// SAFETY: the table holds addresses of functions and is immutable.
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

/// Returns the dispatch table.
fn table() -> &'static Table {
    &TABLE
}

/// Returns the address of the function with a name.
fn function(name: &str) -> Option<*const ()> {
    NAMED.iter().find(|row| row.0 == name).and_then(|row| Some(row.1?.0))
}

/// Symbols that loaders look up in the library.
mod exports {
    use crate::ffi::{Memory, Out, Text};
    use crate::handle::Handle;
    use std::ffi::{c_int, c_uint};

    /// Entry point of loaders.
    // SAFETY: loaders look the symbol up through this library's handle, so it cannot replace another
    // library's symbol.
    #[unsafe(no_mangle)]
    unsafe extern "C" fn clIcdGetPlatformIDsKHR(
        count: c_uint,
        list: Out<Handle>,
        found: Out<c_uint>,
    ) -> c_int {
        // SAFETY: the caller guarantees what the API demands.
        unsafe { crate::platform::clGetPlatformIDs(count, list, found) }
    }

    /// The function of the dispatch table.
    // SAFETY: as above.
    #[unsafe(no_mangle)]
    unsafe extern "C" fn clGetPlatformInfo(
        platform: Handle,
        name: c_uint,
        size: usize,
        value: Memory,
        needed: Out<usize>,
    ) -> c_int {
        // SAFETY: the caller guarantees what the API demands.
        unsafe { crate::platform::clGetPlatformInfo(platform, name, size, value, needed) }
    }

    /// The function of the dispatch table.
    // SAFETY: as above.
    #[unsafe(no_mangle)]
    unsafe extern "C" fn clGetExtensionFunctionAddress(name: Text) -> *const () {
        // SAFETY: the caller guarantees what the API demands.
        unsafe { crate::platform::clGetExtensionFunctionAddress(name) }
    }
}
