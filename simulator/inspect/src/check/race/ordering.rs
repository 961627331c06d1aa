//! The memory-model properties of each instruction: what it means for caches ([`Policy`]), and for other waves.

use super::polling;
use wavesim_engine::caches::Policy;
pub use wavesim_engine::caches::{Caches, DEVICE};
use wavesim_isa::arch::Arch;
use wavesim_isa::inst::Inst;
use wavesim_machine::exec::effects::Effects;
use wavesim_machine::exec::program::Program;

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
    let Policy { scope, scoped, hits, reaches, .. } = Policy::of(arch, inst, effects);
    Ordering {
        atomic: effects.atomic,
        compares: effects.compares,
        loads_to_lds: effects.loads_to_lds(),
        stores: !effects.returns && !effects.memory.is_empty(),
        scope,
        scoped,
        hits,
        reaches,
        polls: false,
    }
}
