//! The simulated machine, without files, threads' hosts or syntax: a program, a dispatch and memory in, finished waves or a fault out.
//!
//! - [`machine`]: a wave and its workgroup; [`memory`]: what they reach
//! - [`isa`]: operations and handlers, generated from the pseudocode
//! - [`exec`]: lowered code, the interpreter, the observed run, the reference engine
//! - [`sched`]: dispatches, workgroups, turns of waves; [`fault`]: what stops a kernel

pub mod exec;
pub mod fault;
pub mod isa;
pub mod machine;
pub mod memory;
