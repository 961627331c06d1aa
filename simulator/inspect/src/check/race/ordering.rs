//! What each instruction does to the order of memory (LLVM AMDGPUUsage, *Memory Model gfx10-gfx11* and *Memory Model gfx12*).
//!
//! A global load may hit in the L0 cache of its compute unit. Waves of one workgroup run on two compute units unless the kernel is in
//! CU mode, and waves of other workgroups behind other L1 caches too. A scalar load may hit in the scalar cache, which no store
//! updates. An acquire therefore discards what these caches hold, or its loads ask for a scope that bypasses them.

use super::polling;
use wavesim_isa::arch::Arch;
use wavesim_isa::inst::Inst;
use wavesim_machine::exec::effects::{Class, Effects, cache_scope};
use wavesim_machine::exec::program::Program;

/// Scopes, as RDNA 4 and CDNA number them.
pub const WORKGROUP: u8 = 1;
/// Waves of all workgroups.
pub const DEVICE: u8 = 2;

/// A set of caches, as `invalidate_caches` of the pseudocode numbers them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Caches(pub u8);

impl Caches {
    /// The vector cache of a compute unit.
    pub const L0: Caches = Caches(1);
    /// What lies between L0 caches and the device's cache.
    pub const L1: Caches = Caches(2);
    /// The cache of scalar loads.
    pub const SCALAR: Caches = Caches(4);
    /// How many there are.
    pub const COUNT: usize = 3;

    /// No cache is in it.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Caches that are in both.
    pub fn and(self, other: Caches) -> Caches {
        Caches(self.0 & other.0)
    }

    /// Caches that are in either.
    pub fn or(self, other: Caches) -> Caches {
        Caches(self.0 | other.0)
    }

    /// Their numbers.
    pub fn numbers(self) -> impl Iterator<Item = usize> {
        (0..Caches::COUNT).filter(move |n| self.0 >> n & 1 == 1)
    }
}

/// An instruction's part in the order of memory.
#[derive(Debug, Clone, Copy, Default)]
pub struct Ordering {
    /// Reads, changes and writes in one step.
    pub atomic: bool,
    /// An atomic that stores only if it finds what it expects.
    pub compares: bool,
    /// As far as its accesses are coherent; GLC of RDNA 3 reaches the device.
    pub scope: u8,
    /// Plain stores have a scope too.
    pub scoped: bool,
    /// A load may read what these hold.
    pub hits: Caches,
    /// Of the caches that it discards, its scope reaches these.
    pub reaches: Caches,
    /// A load of LDS that waits for another wave's store.
    pub polls: bool,
}

/// By instruction.
pub fn table(program: &Program, effects: &[Effects]) -> Vec<Ordering> {
    let polls = polling::loads(program, effects);
    let all = program.insts.iter().zip(effects).zip(polls);
    all.map(|((inst, effects), polls)| Ordering { polls, ..of(program.arch, inst, effects) }).collect()
}

fn of(arch: Arch, inst: &Inst, effects: &Effects) -> Ordering {
    let field = match arch {
        Arch::Rdna4 => inst.field(arch.table(), "SCOPE").map(|scope| scope.min(3) as u8),
        Arch::Cdna3 | Arch::Cdna4 => Some(cache_scope(arch, inst) as u8),
        _ => None,
    };
    let scope = match arch {
        Arch::Rdna4 | Arch::Cdna3 | Arch::Cdna4 => field.unwrap_or(0),
        _ if effects.coherent => 3,
        _ => 0,
    };
    let hits = match effects.class {
        _ if !effects.returns || effects.atomic || scope != 0 => Caches::default(),
        Class::Vmem | Class::Flat => Caches::L0.or(Caches::L1),
        Class::Smem => Caches::SCALAR,
        _ => Caches::default(),
    };
    let reaches = match field {
        Some(scope) if effects.class == Class::Vmem && scope < WORKGROUP => Caches::default(),
        Some(scope) if effects.class == Class::Vmem && scope < DEVICE => Caches::L0,
        _ => Caches(u8::MAX),
    };
    Ordering {
        atomic: effects.atomic,
        compares: effects.compares,
        scope,
        scoped: arch == Arch::Rdna4,
        hits,
        reaches,
        polls: false,
    }
}
