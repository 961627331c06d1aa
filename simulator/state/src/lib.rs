//! The state of the simulated machine: global memory, the registers of waves, workgroups, and what stops a
//! wave. It knows no program.

// No files, threads, processes or clocks: clippy.toml lists the forbidden methods.
#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

pub mod barrier;
pub mod context;
pub mod event;
pub mod fault;
mod file;
pub mod gws;
pub mod host;
mod layout;
pub mod memory;
pub mod scratch;
pub mod wave;

pub use barrier::{ClusterPlace, Workgroup};
pub use context::Context;
pub use event::Event;
pub use file::Half;
pub use wave::{ALL_VGPRS, LaneVec, VGPRS, Wave};
