//! RDNA 3.5 (gfx11.5): AMD's *RDNA3.5 Instruction Set Architecture*. Its machine is that of RDNA 3.

use super::Arch;
use super::facts::{Facts, HazardRules, ProcessorRow, SharedRecords, ValuHazards};
use super::rdna3;

/// The facts of RDNA 3.5.
pub const FACTS: Facts = Facts {
    name: "rdna3.5",
    title: "RDNA 3.5",
    processors: &[
        ProcessorRow("gfx1150", 0x43),
        ProcessorRow("gfx1151", 0x4a),
        ProcessorRow("gfx1152", 0x55),
        ProcessorRow("gfx1153", 0x58),
    ],
    hazards: HazardRules {
        valu: ValuHazards { trans_use: false, ..rdna3::FACTS.hazards.valu },
        ..rdna3::FACTS.hazards
    },
    records: Some(SharedRecords { of: Arch::Rdna3, only_common: false }),
    image_tiling: Some(1),
    ..rdna3::FACTS
};
