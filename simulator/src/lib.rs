//! wavesim: a functional simulator for AMD RDNA GPUs.

pub mod arch;
pub mod exec;
pub mod fault;
pub mod inst;
pub mod isa;
pub mod memory;
pub mod sched;
