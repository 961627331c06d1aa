//! wavesim: a functional simulator for AMD RDNA GPUs.

pub use wavesim_array as array;
pub use wavesim_asm as asm;
pub use wavesim_debug as debug;
pub use wavesim_engine::sched;
pub use wavesim_files as files;
pub use wavesim_inspect::{check, conform, trace};
pub use wavesim_isa::{arch, codec, inst, operand, tables};
pub use wavesim_loader as loader;
pub use wavesim_machine::{fault, isa, memory, state};

/// Lowered code, and the engines that run it.
pub mod exec {
    pub use wavesim_engine::{interp, observe, reference, step};
    pub use wavesim_machine::exec::*;
}

pub use wavesim_text as text;

pub mod bench;
pub mod cli;
pub mod tui;
