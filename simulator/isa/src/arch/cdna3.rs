//! CDNA 3 (gfx940 to gfx942): AMD's *CDNA3 Instruction Set Architecture*, and LLVM AMDGPUUsage.

use super::Arch;
use super::facts::{
    Coherence, Counter, CounterSet, DescriptorRules, DppSet, DualRules, Facts, FloatRules, HalfWrite,
    HalfWrites, HazardRules, InstructionRules, ProcessorRow, ScalarCodes, SharedRecords, StartLayout,
    StatusLayout, ValuHazards, VgprFile, WaitStates,
};
use crate::descriptor::USER_SGPR_COUNT;

/// The facts of CDNA 3.
pub const FACTS: Facts = Facts {
    name: "cdna3",
    title: "CDNA 3",
    processors: &[ProcessorRow("gfx942", 0x4c), ProcessorRow("gfx940", 0x40), ProcessorRow("gfx941", 0x4b)],
    machine: None,
    gfx: 9,
    wave_sizes: &[64],
    cluster_workgroups: 1,
    lds_bytes: 64 << 10,
    lds_per_processor: 1,
    lds_mask: None,
    vgprs: VgprFile { granule: [8, 4], accumulation: true, msbs: false },
    scalar_codes: ScalarCodes::Cdna,
    true16: false,
    replicates_packed_constants: false,
    buffer_offset_is_register: false,
    instructions: InstructionRules {
        scalar_values: 1,
        even_vgprs: true,
        lds_direct: false,
        global_data_share: false,
        divides_matrix_sources: false,
        message_operations: true,
    },
    dpp: DppSet { across_rows: true, xmask: false, only_broadcasts_doubles: true },
    instruction_modes: true,
    float: FloatRules { default_mode: 0x3f0, mode_bits: u32::MAX, mode_has_ieee: true, omod_always: false },
    status: StatusLayout { scc: true, wave64: false },
    start: StartLayout { ids_in_ttmps: false },
    counters: CounterSet {
        // One counter for loads and stores.
        all: &[Counter::Vm, Counter::Lgkm],
        load: Counter::Vm,
        store: Counter::Vm,
        lds: Counter::Lgkm,
        scalar: Counter::Lgkm,
        copies: None,
        tensor: None,
        textures: None,
        cache_maintenance: true,
        replays: false,
    },
    half_writes: HalfWrites { load: HalfWrite::Register, result: HalfWrite::Register },
    coherence: Coherence::ScBits,
    image_row_bytes: None,
    image_tiling: None,
    release_writes_back: true,
    dealloc_message: None,
    dual_issue: DualRules { moves_share_banks: false, same_register: false },
    hazards: HazardRules {
        wait_states: Some(WaitStates {
            lane_permutations: false,
            slow_double_products: false,
            late_matrix_results: false,
        }),
        matrix_needs_gap: false,
        coexecution: false,
        valu: ValuHazards::NONE,
    },
    target_features: true,
    descriptor: DescriptorRules {
        vgpr_granule: [8, 8],
        sgpr_granule: Some([8, 6]),
        accum_offset: true,
        preloads_kernarg: true,
        user_sgpr_count: USER_SGPR_COUNT,
        named_barriers: false,
    },
    records: Some(SharedRecords { of: Arch::Cdna4, only_common: true }),
};
