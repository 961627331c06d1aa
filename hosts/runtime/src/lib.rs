//! Shared host runtime of wavesim. The C library and the Python, HIP and OpenCL hosts are thin layers over
//! this crate.
//!
//! - [`Device`]: a target, its memory, and how it runs launches
//! - [`memory`]: device memory at host addresses, and host memory that kernels may access
//! - [`Module`]: a loaded code object, whose variables persist
//! - [`Kernel`]: a kernel of a module: arguments, resources, launches
//! - [`Launch`], [`Outcome`]: the parameters and the result of a launch
//! - [`raw`]: launches of machine code without a code object
//! - [`queue`]: in-order work queues with their own threads, for streams and command queues
//! - [`callback`]: callbacks of the program in queues
//! - `ipc`: allocations that processes share (Linux)
//! - `virtual_memory`: address ranges whose memory the program maps and unmaps (Linux)
//! - [`hostcall`]: services that running kernels request from the host: `printf`, `malloc`
//! - [`image`]: images in device memory, and the objects that kernels get
//! - [`Settings`]: the environment variables
//! - [`ffi`]: arguments of C callers
//! - [`pitched`]: copies of 2D and 3D regions; [`message`]: diagnostics on standard error
//!
//! ```
//! use wavesim::loader::assembly::AssemblyOptions;
//! use wavesim_runtime::{Device, Launch, Settings};
//!
//! let source = include_str!("../../../examples/scale.s");
//! let object = AssemblyOptions::default().assemble("scale.s", source).map_err(|e| e[0].to_string())?.object;
//! let device = Device::open("gfx1100", &Settings::default())?;
//! let kernel = device.load(&object)?.kernel("scale")?;
//!
//! let (x, y) = (device.alloc(200, "x")?, device.alloc(200, "y")?);
//! let numbers: Vec<u8> = (0..50).flat_map(|k| (k as f32).to_le_bytes()).collect();
//! device.write(x, &numbers)?;
//! let mut arguments = Vec::new();
//! arguments.extend(x.to_le_bytes());
//! arguments.extend(y.to_le_bytes());
//! arguments.extend(2.5f32.to_le_bytes());
//! arguments.extend(50u32.to_le_bytes());
//! kernel.launch(&Launch::new([2, 1, 1], [32, 1, 1]), &arguments)?;
//!
//! let mut last = [0; 4];
//! device.read(y + 49 * 4, &mut last)?;
//! assert_eq!(f32::from_le_bytes(last), 122.5);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Kernels and the host share one address space: device memory is ordinary memory of the process, at the same
//! address. A kernel can nevertheless access only the memory that its launch maps.

#![warn(missing_docs)]

pub mod callback;
pub mod clock;
mod coverage;
pub mod debug;
mod device;
mod engine;
mod error;
mod exit;
pub mod explore;
pub mod ffi;
mod fork;
pub mod hostcall;
pub mod image;
#[cfg(target_os = "linux")]
pub mod ipc;
mod kernargs;
mod kernel;
mod launch;
pub mod memory;
pub mod message;
mod module;
mod owned;
mod peers;
pub mod pitched;
pub mod queue;
pub mod raw;
mod report;
mod settings;
mod target;
mod timing;
#[cfg(target_os = "linux")]
pub mod virtual_memory;

pub use coverage::Observation;
pub use device::{Device, MemoryRange};
pub use engine::{CodeCache, Engine};
pub use error::Error;
pub use explore::{ExploreOptions, Explored};
pub use kernel::Kernel;
pub use launch::{Launch, Outcome, RunOptions, run};
pub use memory::{Bounds, HostMemory};
pub use module::Module;
pub use owned::Owned;
pub use peers::Foreign;
pub use report::Report;
pub use settings::{
    MAX_INSTRUCTIONS, MEMORY_BYTES, OnFault, SettingError, Settings, VARIABLES, parse_checks,
};
pub use target::Target;
pub use timing::{Profiled, Timing, TimingSettings};
pub use wavesim::loader::abi::Services;
/// Returns the memory of a prepared kernel, for [`RunOptions::timing`].
pub use wavesim_cost::profile::regions as memory_of;
