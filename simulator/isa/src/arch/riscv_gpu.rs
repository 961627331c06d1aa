//! The RISC-V based SIMT GPU (docs/riscv-gpu.md): RV32I's registers per thread (`x`) and per warp (`s`), with
//! 32 threads per warp.

use super::machine::{Assembly, Machine, ReadOnlyValue, ScalarFile, Special, VectorFile, WaveLanes};

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
