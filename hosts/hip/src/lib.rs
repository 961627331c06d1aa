//! `libamdhip64.so`: programs that use HIP run on wavesim, by `LD_LIBRARY_PATH` alone. `docs/hip.md` has an example.
//!
//! - [`status`]: `hipError_t`, and how failures become it
//! - [`ffi`]: arguments of C callers
//! - [`gpu`]: the device of the process
//! - [`module`]: what compiled programs register; the module API
//! - [`launch`]: launches; [`occupancy`]: attributes of kernels, occupancy
//! - [`memory`], [`copy`]: allocations, copies, fills
//! - [`stream`]: streams and events; [`op`]: what they do; [`graph`]: graphs
//! - [`rtc`]: `hiprtc`; [`link`]: linking of what it compiles
//! - [`device`]: properties, attributes; [`context`]: contexts; [`error`]: the last error, error strings
//!
//! The table of `wavesim-hip-api` has every function of the API, with the version of its symbol and its state. `build.rs` exports
//! all of them: those that are not supported say so when they are called.

// The names are those of the C API.
#![allow(non_snake_case)]
#![cfg(target_os = "linux")]

pub mod context;
pub mod copy;
pub mod device;
pub mod error;
pub mod ffi;
pub mod gpu;
pub mod graph;
pub mod launch;
pub mod link;
pub mod memory;
pub mod module;
pub mod occupancy;
pub mod op;
pub mod rtc;
pub mod status;
pub mod stream;

/// All functions of the table that are supported.
mod functions {
    pub use crate::context::*;
    pub use crate::copy::*;
    pub use crate::device::*;
    pub use crate::error::*;
    pub use crate::graph::*;
    pub use crate::launch::*;
    pub use crate::link::*;
    pub use crate::memory::*;
    pub use crate::module::*;
    pub use crate::occupancy::*;
    pub use crate::process::*;
    pub use crate::rtc::*;
    pub use crate::stream::*;
}

mod process;

/// Defines an exported symbol. Versions of symbols need a version script with the names in it, and the compiler passes one of its
/// own for what it exports itself.
macro_rules! export {
    ($name:literal, $function:path) => {
        #[cfg(target_arch = "x86_64")]
        core::arch::global_asm!(
            concat!(".pushsection .text.", $name, ",\"ax\",@progbits"),
            concat!(".globl ", $name),
            concat!(".type ", $name, ",@function"),
            concat!($name, ":"),
            "jmp {function}",
            concat!(".size ", $name, ", . - ", $name),
            ".popsection",
            function = sym $function
        );
        #[cfg(target_arch = "aarch64")]
        core::arch::global_asm!(
            concat!(".pushsection .text.", $name, ",\"ax\",%progbits"),
            concat!(".globl ", $name),
            concat!(".type ", $name, ",%function"),
            concat!($name, ":"),
            "b {function}",
            concat!(".size ", $name, ", . - ", $name),
            ".popsection",
            function = sym $function
        );
    };
}

include!(concat!(env!("OUT_DIR"), "/exports.rs"));
