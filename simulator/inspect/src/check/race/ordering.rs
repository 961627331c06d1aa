//! The memory-model properties of each instruction (LLVM AMDGPUUsage, *Memory Model gfx10-gfx11* and *Memory
//! Model gfx12*).
//!
//! A global load may hit in the L0 cache of its compute unit. Unless the kernel runs in CU mode, the waves of
//! one workgroup run on two compute units. Waves of other workgroups may, in addition, use other L1 caches. A
//! scalar load may hit in the scalar cache, which no store updates. An acquire therefore invalidates these
//! caches, or its loads have a scope that bypasses them.

use super::polling;
use wavesim_isa::arch::Arch;
use wavesim_isa::arch::facts::Coherence;
use wavesim_isa::inst::Inst;
use wavesim_machine::exec::effects::{Class, Effects, cache_scope};
use wavesim_machine::exec::program::Program;

/// Workgroup scope, as RDNA 4 and CDNA number scopes.
pub const WORKGROUP: u8 = 1;
/// Device scope: the waves of all workgroups.
pub const DEVICE: u8 = 2;

/// A set of caches, numbered as in `invalidate_caches` of the pseudocode.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Caches(pub u8);

impl Caches {
    /// The vector cache of a compute unit.
    pub const L0: Caches = Caches(1);
    /// The caches between the L0 caches and the device's L2 cache.
    pub const L1: Caches = Caches(2);
    /// The cache of scalar loads.
    pub const SCALAR: Caches = Caches(4);
    /// The number of caches.
    pub const COUNT: usize = 3;

    /// Returns whether the set is empty.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Returns the intersection of two sets.
    pub fn and(self, other: Caches) -> Caches {
        Caches(self.0 & other.0)
    }

    /// Returns the union of two sets.
    pub fn or(self, other: Caches) -> Caches {
        Caches(self.0 | other.0)
    }

    /// Returns the numbers of the caches in the set.
    pub fn numbers(self) -> impl Iterator<Item = usize> {
        (0..Caches::COUNT).filter(move |n| self.0 >> n & 1 == 1)
    }
}

/// The memory-model properties of an instruction.
#[derive(Debug, Clone, Copy, Default)]
pub struct Ordering {
    /// Whether the instruction is an atomic read-modify-write.
    pub atomic: bool,
    /// Whether the instruction is a compare-and-swap, which stores only if it finds the expected value.
    pub compares: bool,
    /// The scope of the accesses' coherence; GLC of RDNA 3 means device scope or wider.
    pub scope: u8,
    /// Whether plain stores have a scope, too.
    pub scoped: bool,
    /// Whether the instruction loads from global memory to LDS.
    pub loads_to_lds: bool,
    /// Whether the instruction only stores.
    pub stores: bool,
    /// Caches in which the instruction's load may hit.
    pub hits: Caches,
    /// The caches that the instruction's scope covers; an invalidation affects only these.
    pub reaches: Caches,
    /// Whether the instruction is a load of LDS that polls for another wave's store.
    pub polls: bool,
}

/// Returns the properties of each instruction.
pub fn table(program: &Program, effects: &[Effects]) -> Vec<Ordering> {
    let polls = polling::loads(program, effects);
    let all = program.insts.iter().zip(effects).zip(polls);
    all.map(|((inst, effects), polls)| Ordering { polls, ..of(program.arch, inst, effects) }).collect()
}

fn of(arch: Arch, inst: &Inst, effects: &Effects) -> Ordering {
    let coherence = arch.facts().coherence;
    let field = match coherence {
        Coherence::Scope => inst.field(arch.table(), "SCOPE").map(|scope| scope.min(3) as u8),
        Coherence::ScBits => Some(cache_scope(arch, inst) as u8),
        Coherence::Glc => None,
    };
    let scope = match coherence {
        Coherence::Scope | Coherence::ScBits => field.unwrap_or(0),
        Coherence::Glc => {
            if effects.coherent {
                3
            } else {
                0
            }
        }
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
        loads_to_lds: effects.loads_to_lds(),
        stores: !effects.returns && !effects.memory.is_empty(),
        scope,
        scoped: coherence != Coherence::Glc,
        hits,
        reaches,
        polls: false,
    }
}
