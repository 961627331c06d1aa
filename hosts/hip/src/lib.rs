//! `libamdhip64.so`: runs programs that use HIP on wavesim, selected with `LD_LIBRARY_PATH`. `docs/hip.md`
//! has an example.
//!
//! - [`status`]: `hipError_t`, and the conversion of failures to it
//! - [`ffi`]: arguments of C callers
//! - [`gpu`]: the process's devices
//! - [`module`]: registration of compiled programs; the module API; [`managed`]: managed variables of modules
//! - [`library`]: libraries of kernels for all devices
//! - [`launch`]: launches; [`launch_multi`]: launches on several devices; [`occupancy`]: attributes and occupancy of kernels
//! - [`memory`], [`copy`], [`copy_batch`], [`copy_driver`]: allocations, copies, fills
//! - [`virtual_memory`]: addresses that the program reserves, and memory that it maps there
//! - [`pool`]: memory pools; [`pool_share`]: pools that processes share; [`advice`]: advice on managed memory
//! - [`ipc`]: memory and events that processes share
//! - [`array`](mod@array), [`array_copy`]: arrays, their copies
//! - [`texture`], [`texture_driver`], [`texture_reference`]: textures and surfaces
//! - [`stream`], [`event`]: streams and events; [`op`]: their operations; [`graph`]: graphs
//! - [`rtc`]: `hiprtc`; [`link`]: run-time linking of bitcode
//! - [`profiling`]: markers for profilers
//! - [`device`]: properties, attributes; [`peer`]: access of devices to each other; [`context`]: contexts; [`error`]: the last error, error strings
//!
//! The table in `wavesim-hip-api` lists every function of the API with its symbol version and state.
//! `build.rs` generates exports for all of them; unsupported functions report themselves when they are
//! called.

// Names follow the C API.
#![allow(non_snake_case)]
// The documentation of the API states what callers must guarantee.
#![allow(clippy::missing_safety_doc)]
#![cfg(target_os = "linux")]

pub mod advice;
pub mod array;
pub mod array_copy;
pub mod context;
pub mod copy;
pub mod copy_batch;
pub mod copy_driver;
pub mod device;
pub mod error;
pub mod event;
pub mod ffi;
pub mod gpu;
pub mod graph;
pub mod ipc;
pub mod launch;
pub mod launch_multi;
pub mod library;
pub mod link;
pub mod managed;
pub mod memory;
pub mod module;
pub mod occupancy;
pub mod op;
pub mod peer;
pub mod pointer;
pub mod pool;
pub mod pool_share;
pub mod process;
pub mod profiling;
pub mod rtc;
pub mod status;
pub mod stream;
pub mod stream_value;
pub mod texture;
pub mod texture_driver;
pub mod texture_reference;
pub mod virtual_memory;

/// All implemented functions of the table.
mod functions {
    pub use crate::advice::*;
    pub use crate::array::*;
    pub use crate::array_copy::*;
    pub use crate::context::*;
    pub use crate::copy::*;
    pub use crate::copy_batch::*;
    pub use crate::copy_driver::*;
    pub use crate::device::*;
    pub use crate::error::*;
    pub use crate::event::*;
    pub use crate::graph::*;
    pub use crate::ipc::*;
    pub use crate::launch::*;
    pub use crate::launch_multi::*;
    pub use crate::library::*;
    pub use crate::link::*;
    pub use crate::memory::*;
    pub use crate::module::*;
    pub use crate::occupancy::*;
    pub use crate::peer::*;
    pub use crate::pointer::*;
    pub use crate::pool::*;
    pub use crate::pool_share::*;
    pub use crate::process::*;
    pub use crate::profiling::*;
    pub use crate::rtc::*;
    pub use crate::stream::*;
    pub use crate::stream_value::*;
    pub use crate::texture::*;
    pub use crate::texture_driver::*;
    pub use crate::texture_reference::*;
    pub use crate::virtual_memory::*;
}

/// Defines an exported symbol. Versioned symbols require a version script that lists the names, and rustc
/// passes a script of its own for the symbols that it exports itself; assembly keeps the exports out of
/// rustc's script. HIP exists on Linux only; elsewhere, the crate has its functions without the symbols.
macro_rules! export {
    ($name:literal, $function:path) => {
        #[cfg(all(target_os = "linux", target_arch = "x86_64"))]
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
        #[cfg(all(target_os = "linux", target_arch = "aarch64"))]
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
