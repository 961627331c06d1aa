//! RDNA 4 (gfx12): AMD's *RDNA4 Instruction Set Architecture*, and LLVM AMDGPUUsage.

use super::facts::{
    Coherence, Counter, CounterSet, DualRules, Facts, FloatRules, HazardRules, InstructionRules,
    ProcessorRow, StartLayout, StatusLayout, ValuHazards,
};
use super::rdna3;

/// The facts of RDNA 4.
pub const FACTS: Facts = Facts {
    name: "rdna4",
    title: "RDNA 4",
    processors: &[ProcessorRow("gfx1201", 0x4e), ProcessorRow("gfx1200", 0x48)],
    gfx: 12,
    buffer_offset_is_register: true,
    instructions: InstructionRules {
        lds_direct: false,
        global_data_share: false,
        divides_matrix_sources: true,
        ..rdna3::FACTS.instructions
    },
    float: FloatRules { default_mode: 0xf0, mode_bits: u32::MAX, mode_has_ieee: false, omod_always: true },
    status: StatusLayout { scc: false, wave64: true },
    start: StartLayout { ids_in_ttmps: true },
    counters: CounterSet {
        all: &[Counter::Load, Counter::Store, Counter::Ds, Counter::Km, Counter::Sample, Counter::Bvh],
        load: Counter::Load,
        store: Counter::Store,
        lds: Counter::Ds,
        scalar: Counter::Km,
        copies: None,
        tensor: None,
        textures: Some([Counter::Sample, Counter::Bvh]),
        // RDNA4 manual, *Memory Scopes*.
        cache_maintenance: true,
        replays: false,
    },
    coherence: Coherence::Scope,
    image_row_bytes: Some(128),
    image_tiling: Some(2),
    dual_issue: DualRules { moves_share_banks: true, ..rdna3::FACTS.dual_issue },
    hazards: HazardRules {
        valu: ValuHazards { permutation_after_exec: true, ..ValuHazards::NONE },
        ..rdna3::FACTS.hazards
    },
    ..rdna3::FACTS
};
