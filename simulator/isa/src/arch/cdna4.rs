//! CDNA 4 (gfx950): AMD's *CDNA4 Instruction Set Architecture*, and LLVM AMDGPUUsage.

use super::cdna3;
use super::facts::{Facts, HazardRules, ProcessorRow, WaitStates};

/// The facts of CDNA 4.
pub const FACTS: Facts = Facts {
    name: "cdna4",
    title: "CDNA 4",
    processors: &[ProcessorRow("gfx950", 0x4f)],
    lds_bytes: 160 << 10,
    hazards: HazardRules {
        wait_states: Some(WaitStates {
            lane_permutations: true,
            slow_double_products: true,
            late_matrix_results: true,
        }),
        ..cdna3::FACTS.hazards
    },
    records: None,
    ..cdna3::FACTS
};
