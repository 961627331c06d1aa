//! wavesim: a functional simulator for AMD RDNA GPUs.

pub mod arch;
pub mod array;
pub mod asm;
pub mod bench;
pub mod check;
pub mod cli;
pub mod codec;
pub mod conform;
pub mod debug;
pub mod exec;
pub mod fault;
pub mod files;
pub mod inst;
pub mod isa;
pub mod loader;
pub mod machine;
pub mod memory;
pub mod sched;
pub mod text;
pub mod trace;
pub mod tui;
