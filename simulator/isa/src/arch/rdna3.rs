//! RDNA 3 (gfx11): AMD's *RDNA3 Instruction Set Architecture*, and LLVM AMDGPUUsage.

use super::facts::{
    Coherence, Counter, CounterSet, DescriptorRules, DppSet, DualRules, Facts, FloatRules, HalfWrite,
    HalfWrites, HazardRules, InstructionRules, ProcessorRow, ScalarCodes, StartLayout, StatusLayout,
    ValuHazards, VgprFile,
};
use crate::descriptor::USER_SGPR_COUNT;

/// The facts of RDNA 3.
pub const FACTS: Facts = Facts {
    name: "rdna3",
    title: "RDNA 3",
    processors: &[
        ProcessorRow("gfx1100", 0x41),
        ProcessorRow("gfx1101", 0x46),
        ProcessorRow("gfx1102", 0x47),
        ProcessorRow("gfx1103", 0x44),
    ],
    machine: None,
    gfx: 11,
    wave_sizes: &[32, 64],
    lds_bytes: 64 << 10,
    lds_per_processor: 2,
    lds_mask: None,
    vgprs: VgprFile { granule: [8, 4], accumulation: false, msbs: false },
    scalar_codes: ScalarCodes::Rdna,
    true16: true,
    replicates_packed_constants: true,
    buffer_offset_is_register: false,
    instructions: InstructionRules {
        scalar_values: 2,
        even_vgprs: false,
        lds_direct: true,
        global_data_share: true,
        divides_matrix_sources: false,
        message_operations: false,
    },
    dpp: DppSet { across_rows: false, xmask: true, only_broadcasts_doubles: false },
    instruction_modes: false,
    float: FloatRules { default_mode: 0x3f0, mode_has_ieee: true, omod_always: false },
    status: StatusLayout { scc: true, wave64: false },
    start: StartLayout { ids_in_ttmps: false },
    counters: CounterSet {
        all: &[Counter::Vm, Counter::Vs, Counter::Lgkm],
        load: Counter::Vm,
        store: Counter::Vs,
        lds: Counter::Lgkm,
        scalar: Counter::Lgkm,
        copies: None,
        tensor: None,
        cache_maintenance: false,
    },
    half_writes: HalfWrites { load: HalfWrite::Half, result: HalfWrite::Merge },
    coherence: Coherence::Glc,
    release_writes_back: false,
    dealloc_message: Some(3),
    dual_issue: DualRules { moves_share_banks: false, same_register: false },
    hazards: HazardRules {
        wait_states: None,
        matrix_needs_gap: true,
        valu: ValuHazards {
            trans_use: true,
            partial_forwarding: true,
            mask_write: true,
            permutation_after_exec: true,
        },
    },
    target_features: false,
    descriptor: DescriptorRules {
        vgpr_granule: [8, 4],
        sgpr_granule: None,
        accum_offset: false,
        preloads_kernarg: false,
        user_sgpr_count: USER_SGPR_COUNT,
        named_barriers: false,
    },
    records: None,
};
