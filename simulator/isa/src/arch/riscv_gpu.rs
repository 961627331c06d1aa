//! The RISC-V based SIMT GPU (docs/riscv-gpu.md): RV32I's registers per thread (`x`) and per warp (`s`), with
//! 32 threads per warp.

use super::facts::{Facts, FloatRules};
use super::machine::{Assembly, Machine, ReadOnlyValue, ScalarFile, Special, VectorFile, WaveLanes};
use super::rdna3;

/// The facts of the RISC-V GPU. What only AMD's instructions can observe is as on RDNA 3.
pub const FACTS: Facts = Facts {
    name: "riscv_gpu",
    title: "RISC-V GPU",
    processors: &[],
    machine: Some(&MACHINE),
    gfx: 0,
    lds_per_processor: 1,
    lds_mask: None,
    float: FloatRules { default_mode: 0xf0, mode_bits: u32::MAX, mode_has_ieee: false, omod_always: false },
    ..rdna3::FACTS
};

/// The register files and assembly syntax.
pub static MACHINE: Machine = Machine {
    lanes: WaveLanes::new(32),
    vector: VectorFile {
        prefix: 'x',
        count: 32,
        operand_types: &["OPR_VECTOR"],
        read_only: &[
            ReadOnlyValue::Zero,
            ReadOnlyValue::ItemId,
            ReadOnlyValue::GroupId,
            ReadOnlyValue::GroupSize,
        ],
    },
    scalar: ScalarFile {
        prefix: 's',
        count: 32,
        operand_types: &["OPR_SCALAR", "OPR_SCALAR_LINK"],
        special: &[(0, Special::Zero), (1, Special::ExecMask)],
    },
    pc_bytes: 4,
    max_waves: 1024,
    assembly: Assembly {
        extension: "as",
        comment: '#',
        separator: '.',
        groups: ".blocks",
        waves: ".warps",
        operands: &[
            ("ENC_LOAD", &["RD, IMM(RS1)"]),
            ("ENC_STORE", &["RS2, IMM(RS1)"]),
            // A label denotes the index of its instruction, with the zero register as base.
            ("ENC_JALR", &["RD, IMM(RS1)", "RD, RS1, IMM", "RD, IMM"]),
        ],
    },
};
