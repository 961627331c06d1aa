//! The meaning of source codes and scalar register numbers.

use super::{Operand, OperandKind};
use crate::arch::Arch;
use crate::registers::{ACC, M0, NULL};
use isa_spec::tables::ArchTable;
use std::sync::LazyLock;

/// The meaning of a source code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Code {
    /// Index in the SGPR file.
    Sgpr(u16),
    /// A VGPR by number.
    Vgpr(u16),
    /// A read-only VGPR.
    Fixed(u16),
    /// An inline integer: -16..=64.
    Int(i32),
    /// Index into [`FLOATS`].
    Float(u8),
    /// The 32-bit literal after the instruction.
    Literal,
    /// The 64-bit literal after the instruction.
    Literal64,
    /// SCC as 0 or 1.
    Scc,
    /// 1 if VCC is zero.
    Vccz,
    /// 1 if EXEC is zero.
    Execz,
    /// Base of the LDS aperture.
    SharedBase,
    /// Limit of the LDS aperture.
    SharedLimit,
    /// Base of the scratch aperture.
    PrivateBase,
    /// Limit of the scratch aperture.
    PrivateLimit,
    /// [`FLAT_SCRATCH_BASE`], or its upper half.
    ScratchBase {
        /// The upper half.
        high: bool,
    },
    /// A code without a meaning.
    Invalid,
}

/// The generic address of offset 0 of a wave's scratch, where its bits 63:58 identify scratch (CDNA5 manual,
/// *Scratch*). The lane is in bits 56:52.
pub const FLAT_SCRATCH_BASE: u64 = 1 << 58;

/// Inline float constants as f16, bf16, f32 and f64 bits.
pub const FLOATS: [(u16, u16, u32, u64); 9] = [
    (0x3800, 0x3f00, 0x3f00_0000, 0x3fe0_0000_0000_0000),
    (0xb800, 0xbf00, 0xbf00_0000, 0xbfe0_0000_0000_0000),
    (0x3c00, 0x3f80, 0x3f80_0000, 0x3ff0_0000_0000_0000),
    (0xbc00, 0xbf80, 0xbf80_0000, 0xbff0_0000_0000_0000),
    (0x4000, 0x4000, 0x4000_0000, 0x4000_0000_0000_0000),
    (0xc000, 0xc000, 0xc000_0000, 0xc000_0000_0000_0000),
    (0x4400, 0x4080, 0x4080_0000, 0x4010_0000_0000_0000),
    (0xc400, 0xc080, 0xc080_0000, 0xc010_0000_0000_0000),
    (0x3118, 0x3e22, 0x3e22_f983, 0x3fc4_5f30_6dc9_c882),
];

/// The meaning of source codes 0 to 511, derived from the names in the XML's `OPR_SRC`.
static CODES: LazyLock<Vec<[Code; 512]>> =
    LazyLock::new(|| Arch::ALL.into_iter().map(|a| codes(a.table())).collect());

/// Builds the codes of an architecture. [`ScalarNumbering`](super::ScalarNumbering) has already been
/// translated, so M0 and null have unique numbers.
fn codes(table: &ArchTable) -> [Code; 512] {
    let mut out = [Code::Invalid; 512];
    out[NULL] = Code::Sgpr(NULL as u16);
    let names = table.operand_types.iter().find(|t| t.name == "OPR_SRC").map_or(&[][..], |t| t.values);
    for &(name, value) in names {
        let Some(slot) = out.get_mut(value as usize) else { continue };
        let number = |prefix: &str| name.strip_prefix(prefix).and_then(|n| n.parse::<u16>().ok());
        *slot = if let Some(v) = number("v") {
            Code::Vgpr(v)
        } else if name == "m0" {
            out[M0] = Code::Sgpr(M0 as u16);
            continue;
        } else if value < 128 {
            Code::Sgpr(value as u16)
        } else if let Ok(int) = name.parse::<i32>() {
            Code::Int(int)
        } else if let Ok(float) = name.parse::<f32>() {
            let at = FLOATS.iter().position(|f| (f32::from_bits(f.2) - float).abs() < 1e-6);
            at.map_or(Code::Invalid, |at| Code::Float(at as u8))
        } else {
            match name {
                "src_literal" => Code::Literal,
                "src_literal64" => Code::Literal64,
                "src_scc" => Code::Scc,
                "src_vccz" => Code::Vccz,
                "src_execz" => Code::Execz,
                "src_shared_base" => Code::SharedBase,
                "src_shared_limit" => Code::SharedLimit,
                "src_private_base" => Code::PrivateBase,
                "src_private_limit" => Code::PrivateLimit,
                "src_flat_scratch_base_lo" => Code::ScratchBase { high: false },
                "src_flat_scratch_base_hi" => Code::ScratchBase { high: true },
                _ => Code::Invalid,
            }
        };
    }
    out
}

/// Decodes the value of an operand's field.
pub fn code(arch: Arch, operand: &Operand, value: u32) -> Code {
    match operand.kind {
        // Accumulation VGPRs, and VGPRs with a number from `Operand::msb`.
        OperandKind::Code if value >= 512 => Code::Vgpr((value - 256) as u16),
        OperandKind::Code => CODES[arch as usize][value as usize & 511],
        OperandKind::Vgpr if value & SDWA_SCALAR != 0 => CODES[arch as usize][(value & 511) as usize],
        OperandKind::Vgpr => Code::Vgpr(value as u16),
        OperandKind::Acc => Code::Vgpr(ACC as u16 + (value & 255) as u16),
        OperandKind::Vector(file) if (value as usize) < file.read_only.len() => Code::Fixed(value as u16),
        OperandKind::Vector(_) => Code::Vgpr(value as u16),
        OperandKind::Scalar(file) => Code::Sgpr(file.code(value as u16)),
        OperandKind::Number { bits, signed } => Code::Int(number(value, bits, signed)),
    }
}

/// Interprets a field value as a signed or unsigned number of `bits` bits.
pub fn number(value: u32, bits: u32, signed: bool) -> i32 {
    if signed && (1..32).contains(&bits) {
        return (value << (32 - bits)) as i32 >> (32 - bits);
    }
    value as i32
}

/// The scalar register that holds a lane mask.
pub fn mask_register(operand: &Operand, value: u32) -> u16 {
    match operand.kind {
        OperandKind::Scalar(file) => file.code(value as u16),
        _ => value as u16,
    }
}

/// Converts CDNA's number of a scalar register to the simulator's.
pub(super) fn cdna_scalar(value: u32) -> u32 {
    match value {
        124 => M0 as u32,
        125 => NULL as u32,
        _ => value,
    }
}

/// Flag for an SGPR in a field that normally holds a VGPR.
pub(super) const SDWA_SCALAR: u32 = 1 << 16;
