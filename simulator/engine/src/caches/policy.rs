//! What each instruction means for caches: the caches that it can hit, discards or writes back, and how far its stores go
//! (LLVM AMDGPUUsage, *Memory Model gfx10-gfx11*, *gfx12* and *gfx942*).
//!
//! A global load may hit in the L0 cache of its compute unit. Unless the kernel runs in CU mode, the waves of one
//! workgroup run on two compute units. Waves of other workgroups may, in addition, use other L1 caches. A scalar load may
//! hit in the scalar cache, which no store updates. An acquire therefore invalidates these caches, or its loads have a
//! scope that bypasses them.

use isa_spec::pcode::builtins::Control;
use isa_spec::pcode::ir::Space;
use wavesim_isa::arch::Arch;
use wavesim_isa::arch::facts::Coherence;
use wavesim_isa::inst::Inst;
use wavesim_machine::exec::effects::{Class, Effects, cache_scope};

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
    /// The caches between the L0 caches and the memory that all workgroups share: RDNA's L1, which several compute units
    /// share; where a device has several L2 caches, one of these.
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
    #[must_use]
    pub fn and(self, other: Caches) -> Caches {
        Caches(self.0 & other.0)
    }

    /// Returns the union of two sets.
    #[must_use]
    pub fn or(self, other: Caches) -> Caches {
        Caches(self.0 | other.0)
    }

    /// Returns whether the sets have a cache in common.
    pub fn meets(self, other: Caches) -> bool {
        !self.and(other).is_empty()
    }

    /// Returns the numbers of the caches in the set.
    pub fn numbers(self) -> impl Iterator<Item = usize> {
        (0..Caches::COUNT).filter(move |n| self.0 >> n & 1 == 1)
    }
}

/// What an instruction means for caches.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Policy {
    /// The instruction accesses global memory, or may do so.
    pub global: bool,
    /// It is an atomic read-modify-write, which executes where all waves see it.
    pub atomic: bool,
    /// The scope of the accesses' coherence; GLC of RDNA 3 means device scope or wider.
    pub scope: u8,
    /// Whether plain stores have a scope, too.
    pub scoped: bool,
    /// Caches in which the instruction's load may hit. What misses in the scalar cache goes to the L1 cache.
    pub hits: Caches,
    /// The caches that the instruction's scope covers; an invalidation affects only these.
    pub reaches: Caches,
    /// Stores that the wave's L1 cache holds become visible to all waves. Only where stores of less than device scope
    /// stay there.
    pub writes_back: bool,
    /// Its stores stay in the wave's L1 cache until it is written back.
    pub stays: bool,
}

impl Policy {
    /// Returns the policy of an instruction.
    pub fn of(arch: Arch, inst: &Inst, effects: &Effects) -> Policy {
        let facts = arch.facts();
        let field = match facts.coherence {
            Coherence::Scope => inst.field(arch.table(), "SCOPE").map(|scope| scope.min(3) as u8),
            Coherence::ScBits => Some(cache_scope(arch, inst) as u8),
            Coherence::Glc => None,
        };
        let scope = match facts.coherence {
            Coherence::Scope | Coherence::ScBits => field.unwrap_or(0),
            Coherence::Glc if effects.coherent => 3,
            Coherence::Glc => 0,
        };
        let hits = match effects.class {
            _ if !effects.returns || effects.atomic || scope >= DEVICE => Caches::default(),
            Class::Vmem | Class::Flat | Class::Smem if scope >= WORKGROUP => Caches::L1,
            Class::Vmem | Class::Flat => Caches::L0.or(Caches::L1),
            Class::Smem => Caches::SCALAR,
            _ => Caches::default(),
        };
        let reaches = match field {
            Some(scope) if effects.class == Class::Vmem && scope < WORKGROUP => Caches::default(),
            Some(scope) if effects.class == Class::Vmem && scope < DEVICE => Caches::L0,
            _ => Caches(u8::MAX),
        };
        let global = effects.memory.iter().any(|m| !matches!(m.space, Space::Lds | Space::Scratch));
        Policy {
            global,
            atomic: effects.atomic,
            scope,
            scoped: facts.coherence != Coherence::Glc,
            hits,
            reaches,
            writes_back: facts.release_writes_back
                && scope >= DEVICE
                && effects.calls.contains(&Control::WriteBackCaches),
            stays: facts.release_writes_back && global && !effects.atomic && scope < DEVICE,
        }
    }
}
