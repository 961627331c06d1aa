//! What each instruction does to the order of memory (LLVM AMDGPUUsage, *Memory Model gfx10-gfx11* and *Memory Model gfx12*).
//!
//! A global load may hit in the L0 cache of its compute unit. Waves of one workgroup run on two compute units unless the kernel is in
//! CU mode, and waves of other workgroups behind other L1 caches too. An acquire therefore discards what these caches hold, or its
//! loads ask for a scope that bypasses them.

use wavesim_isa::arch::Arch;
use wavesim_isa::inst::Inst;
use wavesim_machine::exec::effects::{Class, Effects};
use wavesim_machine::exec::program::Program;

/// Scopes, as RDNA 4 numbers them.
pub const WORKGROUP: u8 = 1;
pub const DEVICE: u8 = 2;

/// An instruction's part in the order of memory.
#[derive(Debug, Clone, Copy, Default)]
pub struct Ordering {
    /// Reads, changes and writes in one step.
    pub atomic: bool,
    /// An atomic that stores only if it finds what it expects.
    pub compares: bool,
    /// As far as its accesses are coherent; GLC of RDNA 3 reaches the device.
    pub scope: u8,
    /// It may read what a cache holds.
    pub cached: bool,
    /// Discards what the L0 cache holds.
    pub discards_l0: bool,
    /// Discards what the caches between L0 and the device's hold.
    pub discards_l1: bool,
}

/// By instruction.
pub fn table(program: &Program, effects: &[Effects]) -> Vec<Ordering> {
    program.insts.iter().zip(effects).map(|(inst, effects)| of(program.arch, inst, effects)).collect()
}

fn of(arch: Arch, inst: &Inst, effects: &Effects) -> Ordering {
    let name = inst.instruction(arch.table()).name;
    let scope = match arch {
        Arch::Rdna4 => inst.field(arch.table(), "SCOPE").unwrap_or(0).min(3) as u8,
        _ if effects.coherent => 3,
        _ => 0,
    };
    // The pseudocode has nothing for caches to do: only the names tell these apart.
    let (l0, l1) = match name {
        "BUFFER_GL0_INV" => (true, false),
        "BUFFER_GL1_INV" => (false, true),
        "GLOBAL_INV" => (scope >= WORKGROUP, scope >= DEVICE),
        _ => (false, false),
    };
    Ordering {
        atomic: effects.atomic,
        compares: effects.atomic && name.contains("_CMP"),
        scope,
        cached: matches!(effects.class, Class::Vmem | Class::Flat)
            && effects.returns
            && scope == 0
            && !effects.atomic,
        discards_l0: l0,
        discards_l1: l1,
    }
}
