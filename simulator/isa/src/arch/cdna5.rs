//! CDNA 5 (gfx1250): AMD's *CDNA5 Instruction Set Architecture*, and LLVM AMDGPUUsage. Its encodings are those
//! of RDNA 4, in waves of 32 only.

use super::facts::{
    Counter, CounterSet, DescriptorRules, DualRules, Facts, FloatRules, HazardRules, InstructionRules,
    ProcessorRow, VgprFile,
};
use super::rdna4;
use crate::descriptor::USER_SGPR_COUNT_6;

/// The facts of CDNA 5.
pub const FACTS: Facts = Facts {
    name: "cdna5",
    title: "CDNA 5",
    processors: &[ProcessorRow("gfx1250", 0x49), ProcessorRow("gfx1251", 0x5a)],
    wave_sizes: &[32],
    cluster_workgroups: 16,
    lds_bytes: 320 << 10,
    lds_per_processor: 1,
    // Triton's.
    lds_mask: Some(0x7fff_ffff),
    vgprs: VgprFile { granule: [16, 16], msbs: true, ..rdna4::FACTS.vgprs },
    instructions: InstructionRules { even_vgprs: true, ..rdna4::FACTS.instructions },
    // Rounding, denormals, bits of VGPR numbers, FP16_OVFL and hints.
    float: FloatRules { mode_bits: 0x0f8f_f0ff, ..rdna4::FACTS.float },
    dual_issue: DualRules { same_register: true, ..rdna4::FACTS.dual_issue },
    counters: CounterSet {
        all: &[Counter::Load, Counter::Store, Counter::Ds, Counter::Km, Counter::Async, Counter::Tensor],
        copies: Some(Counter::Async),
        tensor: Some(Counter::Tensor),
        textures: None,
        replays: true,
        ..rdna4::FACTS.counters
    },
    hazards: HazardRules { matrix_needs_gap: false, coexecution: true, ..rdna4::FACTS.hazards },
    descriptor: DescriptorRules {
        vgpr_granule: [16, 16],
        preloads_kernarg: true,
        user_sgpr_count: USER_SGPR_COUNT_6,
        named_barriers: true,
        ..rdna4::FACTS.descriptor
    },
    image_row_bytes: None,
    image_tiling: None,
    ..rdna4::FACTS
};
