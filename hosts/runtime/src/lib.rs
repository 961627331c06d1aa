//! What every host of wavesim needs: the C library, Python, HIP and OpenCL are thin layers over this crate.
//!
//! - [`Device`]: a target, its memory, and how it runs launches
//! - [`memory`]: device memory at host addresses, and host memory that kernels may access
//! - [`Module`]: a loaded code object, whose variables persist
//! - [`Kernel`]: a kernel of a module: arguments, resources, launches
//! - [`Launch`], [`Outcome`]: what a launch is given, and what it reports
//! - [`raw`]: launches of machine code without a code object
//! - [`queue`]: work in order, on threads of its own: streams and command queues
//! - [`hostcall`]: what kernels ask the host for while they run: `printf`, `malloc`
//! - [`Settings`]: the environment variables
//! - [`ffi`]: arguments of C callers; [`clang`]: kernels that are compiled while the program runs
//! - [`pitched`]: copies of boxes; [`message`]: what hosts write to standard error
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
//! A pointer of a kernel is a pointer of the host: device memory is ordinary memory of the process, at the same address.
//! A kernel can still only access memory that it was given.

#![warn(missing_docs)]

pub mod clang;
mod device;
mod engine;
mod error;
mod exit;
pub mod ffi;
mod heap;
pub mod hostcall;
mod kernargs;
mod kernel;
mod launch;
pub mod memory;
pub mod message;
mod module;
pub mod pitched;
pub mod printf;
pub mod queue;
pub mod raw;
mod report;
mod settings;
mod target;

pub use device::{Device, Range};
pub use engine::{Codes, Engine};
pub use error::Error;
pub use kernel::Kernel;
pub use launch::{Launch, Manner, Outcome, run};
pub use memory::{Bounds, HostMemory};
pub use module::Module;
pub use report::Report;
pub use settings::{MAX_INSTRUCTIONS, MAX_THREADS, SettingError, Settings, VARIABLES, parse_checks};
pub use target::Target;
pub use wavesim::loader::abi::Services;
