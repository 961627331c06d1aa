//! What a proof is about: the machine, and what is known of the state at the start.

use wavesim_isa::arch::Arch;

/// The machine that both programs run on.
#[derive(Debug, Clone)]
pub struct Setup {
    /// The architecture.
    pub arch: Arch,
    /// Lanes in a wave: 32 or 64.
    pub wave_size: u32,
    /// The MODE register.
    pub mode: u32,
    /// All lanes are active at the start. Otherwise EXEC is arbitrary.
    pub full_exec: bool,
    /// Float arithmetic is unknown functions, for code that only moves floats.
    pub uninterpreted_float: bool,
    /// Global memory through different uniform pointers is apart: see `machine::registers`.
    pub apart: bool,
    /// How often a loop may run.
    pub unroll: u32,
}

impl Setup {
    /// A machine with the default MODE of compute kernels, and arbitrary EXEC.
    pub fn new(arch: Arch, wave_size: u32) -> Setup {
        Setup {
            arch,
            wave_size,
            mode: 0xf0,
            full_exec: false,
            uninterpreted_float: false,
            apart: false,
            unroll: 8,
        }
    }
}

/// The lanes that are modelled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lanes {
    /// One lane; bits of masks that other lanes compute are unknown.
    One(u32),
    /// All lanes.
    All,
}
