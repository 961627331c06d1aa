//! The state that kernels change, and what changes it: registers, memory, lowered code, and the functions that handlers call. It opens no
//! file, starts no thread and knows no syntax. The generated handlers stand above it, and the engines that run them above those.
//!
//! - [`state`]: a wave and its workgroup; [`memory`]: what they reach
//! - [`isa`]: operations, generated from the pseudocode
//! - [`exec`]: lowered code and its invariants, what an instruction reads and writes, what handlers call
//! - [`fault`]: what stops a kernel

// No files, threads, processes or clocks: clippy.toml has the list.
#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

pub mod exec;
pub mod fault;
pub mod isa;
pub mod memory;
pub mod state;
