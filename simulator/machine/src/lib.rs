//! The simulated machine: registers, memory, lowered code, and the runtime functions that handlers call. It
//! opens no file, starts no thread and knows no assembly syntax. The generated handlers are built on it, and
//! the engines that run them on those.
//!
//! - [`state`]: a wave and its workgroup; [`memory`]: global memory
//! - [`isa`]: operations, generated from the pseudocode
//! - [`exec`]: lowered code and its invariants, effects of instructions, the runtime of handlers
//! - [`fault`]: runtime faults

// No files, threads, processes or clocks: clippy.toml lists the forbidden methods.
#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

pub mod exec;
pub mod fault;
pub mod isa;
pub mod memory;
pub mod state;
