//! Decoding of field values by a binding.

use super::code::{SDWA_SCALAR, cdna_scalar, code};
use super::{
    Binding, Code, Constants, EXEC_HI, FLAT_SCRATCH_BASE, FLOATS, Fmt, NULL, Operand, OperandKind,
    ScalarNumbering, SdwaFields, VCC_LO,
};
use crate::arch::Arch;
use crate::image;
use crate::inst::Inst;
use isa_spec::mnemonic::ImageSuffixes;
use isa_spec::tables::{ArchTable, Role};

impl Binding {
    /// A dword of an inline constant or a literal, as an operand reads it; 0 if `code` is neither. A matrix has
    /// the constant in every element.
    pub fn constant(&self, inst: &Inst, code: Code, operand: &Operand, index: u32) -> u32 {
        let bits = self.constant_bits(inst, code, operand);
        match operand.constants {
            Constants::TwoF16 | Constants::TwoBF16 if operand.size_bits > 64 => {
                let half = bits as u32 & 0xffff;
                half | half << 16
            }
            Constants::F64 if operand.size_bits > 64 => (bits >> (32 * (index & 1))) as u32,
            _ if operand.size_bits > 64 => bits as u32,
            _ if index < 2 => (bits >> (32 * index)) as u32,
            _ => 0,
        }
    }

    /// The bits of a constant, or of one element of a matrix.
    fn constant_bits(&self, inst: &Inst, code: Code, operand: &Operand) -> u64 {
        use Constants::*;
        let bits = match code {
            Code::Int(value) => match operand.constants {
                Bits64 | F64 | TwoDwords => value as i64 as u64,
                Int16 | F16 | BF16 => value as u16 as u64,
                _ => value as u32 as u64,
            },
            Code::Float(at) => {
                let (half, bfloat, single, double) = FLOATS[at as usize];
                match operand.constants {
                    F16 | TwoF16 => half as u64,
                    BF16 | TwoBF16 => bfloat as u64,
                    Bits64 | F64 => double,
                    _ if self.is_half_of_mix(inst, operand) && self.mixes_bf16 => bfloat as u64,
                    _ if self.is_half_of_mix(inst, operand) => half as u64,
                    Never | Int16 | Bits32 | F32 | TwoDwords | TwoInts => single as u64,
                }
            }
            Code::Literal => {
                let literal = self.get(inst, self.mods.literal);
                match operand.constants {
                    F64 => (literal as u64) << 32,
                    Bits64 if operand.fmt == Fmt::Signed => literal as i32 as u64,
                    _ => literal as u64,
                }
            }
            // An operand of 64 bits is the whole address, whichever half it names, as AMD's own tests expect.
            Code::ScratchBase { high: true } if !matches!(operand.constants, F64 | Bits64) => {
                FLAT_SCRATCH_BASE >> 32
            }
            Code::ScratchBase { .. } => FLAT_SCRATCH_BASE,
            // An operand of 32 bits or less reads the low half.
            Code::Literal64 => {
                let high = self.get(inst, self.mods.literal_hi) as u64;
                (if matches!(operand.constants, F64 | Bits64) { high << 32 } else { 0 })
                    | self.get(inst, self.mods.literal) as u64
            }
            _ => 0,
        };
        match code {
            _ if operand.fmt == Fmt::Scale => (bits >> 23 & 0xff) * 0x0101_0101,
            Code::Int(_) | Code::Float(_) if operand.replicated => bits & 0xffff | (bits & 0xffff) << 16,
            _ => bits,
        }
    }

    /// Returns whether OPSEL_HI selects 16 bits for a source of a mixed-precision instruction (V_FMA_MIX_F32 and
    /// similar). Among packed encodings, the XML leaves only these sources untyped.
    fn is_half_of_mix(&self, inst: &Inst, operand: &Operand) -> bool {
        let halves = self.get(inst, self.mods.op_sel_hi) | self.get(inst, self.mods.op_sel_hi_2) << 2;
        self.packed && operand.fmt == Fmt::Bits && halves >> operand.source & 1 != 0
    }

    /// The value of an operand's field for [`code`](super::code()) and [`mask_register`](super::mask_register).
    /// Accumulation VGPRs are resolved, and scalar registers are converted to the simulator's numbering.
    pub fn value(&self, inst: &Inst, operand: &Operand) -> Option<u32> {
        let value = inst.fields[operand.field? as usize];
        let value = if matches!(operand.kind, OperandKind::Vgpr) { value & !SDWA_SCALAR } else { value };
        let value = match operand.acc {
            // Source codes number VGPRs from 256; other fields from 0.
            Some((field, bit)) if inst.fields[field as usize] >> bit & 1 == 1 => {
                if matches!(operand.kind, OperandKind::Code) && value < 256 { value } else { value + 256 }
            }
            _ => value,
        };
        // The source of an SDWA word is a VGPR, or an SGPR if its flag is set.
        if let Some(sdwa) = &self.mods.sdwa
            && matches!(operand.kind, OperandKind::Vgpr)
            && operand.input
            && !operand.output
        {
            let scalar = sdwa.scalar.get(operand.source as usize).copied().flatten();
            if self.get(inst, scalar) != 0 {
                return Some(cdna_scalar(value) | SDWA_SCALAR);
            }
        }
        // A compare writes VCC unless SD is set.
        if let Some(SdwaFields { has_sdst: Some(has), .. }) = self.mods.sdwa
            && operand.output
        {
            return Some(if inst.fields[has as usize] == 0 { VCC_LO as u32 } else { cdna_scalar(value) });
        }
        Some(match operand.scalars {
            _ if matches!(operand.kind, OperandKind::Vgpr | OperandKind::Acc) => value,
            ScalarNumbering::Rdna => value,
            ScalarNumbering::Cdna => cdna_scalar(value),
            ScalarNumbering::CdnaBase if value == EXEC_HI as u32 => NULL as u32,
            ScalarNumbering::CdnaBase => cdna_scalar(value),
            ScalarNumbering::CdnaSmemOffset => {
                let offset = self.get(inst, self.mods.offset) & 0x7f;
                match (self.get(inst, self.mods.soffset_en), self.get(inst, self.mods.imm)) {
                    (0, 0) => cdna_scalar(offset),
                    (0, _) => NULL as u32,
                    _ => cdna_scalar(value),
                }
            }
        })
    }

    /// The value of a modifier field; 0 if the encoding does not have it.
    pub fn get(&self, inst: &Inst, field: Option<u8>) -> u32 {
        field.map_or(0, |f| inst.fields[f as usize])
    }

    /// Returns whether the encoding has a DPP16 or DPP8 word.
    pub fn has_dpp(&self) -> bool {
        self.mods.dpp_ctrl.is_some() || self.mods.lane_sel.is_some()
    }

    /// The value of a field by its name in pseudocode.
    pub fn named_field(&self, inst: &Inst, table: &'static ArchTable, name: &str) -> u32 {
        let m = &self.mods;
        match name {
            "OFFSET" => match m.offset {
                // SMEM of CDNA: the field holds a register.
                Some(_) if m.imm.is_some_and(|imm| inst.fields[imm as usize] == 0) => 0,
                Some(at) => {
                    let value = inst.fields[at as usize];
                    let width = inst.encoding(table).fields[at as usize].width();
                    if self.signed_offset {
                        ((value << (32 - width)) as i32 >> (32 - width)) as u32
                    } else {
                        value
                    }
                }
                // DS: two 8-bit fields form a 16-bit offset.
                None => self.get(inst, m.offset1) << 8 | self.get(inst, m.offset0),
            },
            "OFFSET0" => self.get(inst, m.offset0),
            "OFFSET1" => self.get(inst, m.offset1),
            "NEG" => self.get(inst, m.neg),
            "NEG_HI" => self.get(inst, m.neg_hi),
            "ABS" => self.get(inst, m.abs),
            "OPSEL" if m.op_sel.is_none() => self.half_bits(inst),
            "OPSEL" => self.get(inst, m.op_sel),
            "OPSEL_HI" => self.get(inst, m.op_sel_hi) | self.get(inst, m.op_sel_hi_2) << 2,
            "CLAMP" => self.get(inst, m.clamp),
            "OMOD" => self.get(inst, m.omod),
            "GLC" => self.get(inst, m.glc) & 1,
            "SIMM16" => self.get(inst, m.simm16),
            "SIMM4" => inst.field(table, "SSRC1").unwrap_or(0),
            "SIMM32" => self.get(inst, m.literal),
            "SIMM32_HI" => self.get(inst, m.literal_hi),
            "SCALE_OPSEL" => inst.field(table, "SCALE_OP_SEL").unwrap_or(0),
            "SCALE_OPSEL_HI" => inst.field(table, "SCALE_OP_SEL_HI").unwrap_or(0),
            "SCALE_CODE_A" => inst.field(table, "SCALE_SRC0").unwrap_or(0),
            "SCALE_CODE_B" => inst.field(table, "SCALE_SRC1").unwrap_or(0),
            "GFX" => self.gfx,
            "TO_LDS" => inst.field(table, "LDS").unwrap_or(0),
            // Combines gfx9's two fields as in its descriptors.
            "FORMAT" if self.gfx == 9 => {
                let part = |name| inst.field(table, name).unwrap_or(0);
                part("DFMT") << 3 | part("NFMT")
            }
            "SAMP" => inst.field(table, "SAMP").or(inst.field(table, "SSAMP")).unwrap_or(0),
            "VADDR0" => inst.field(table, "VADDR0").or(inst.field(table, "VADDR")).unwrap_or(0),
            // Where there are four fields, the last one is the first register of the rest.
            "VADDR4" => {
                let own = inst.field(table, "VADDR4");
                own.or(inst.field(table, "VADDR3").map(|register| register + 1)).unwrap_or(0)
            }
            "NSA" => inst.field(table, "VADDR1").is_some() as u32,
            "SUFFIXES" => ImageSuffixes::of(inst.instruction(table).name).0,
            "ADDRESS_MASK" => (1 << image::address_registers(inst, table)) - 1,
            "DATA_MASK" => (1 << image::component_registers(inst, table)) - 1,
            other => inst.field(table, other).unwrap_or(0),
        }
    }

    /// The OP_SEL bits that correspond to the halves encoded in e32 register numbers.
    fn half_bits(&self, inst: &Inst) -> u32 {
        let high = |o: &&Operand| {
            let value = self.get(inst, o.field);
            // Source codes number VGPRs from 256.
            self.e32
                && o.size_bits == 16
                && (matches!(o.kind, OperandKind::Vgpr) || value >= 256)
                && value & 0x80 != 0
        };
        let bit = |o: &Operand| if o.output { 3 } else { o.source };
        self.operands.iter().filter(high).fold(0, |bits, o| bits | 1 << bit(o))
    }

    /// Returns whether an atomic returns the old value.
    pub fn returns(&self, inst: &Inst) -> bool {
        !self.atomic || self.mods.glc.is_none() || self.get(inst, self.mods.glc) & 1 != 0
    }

    /// The shift that selects the half of a 16-bit register operand.
    pub fn half_shift(&self, inst: &Inst, operand: &Operand, reg: u16, dest: bool) -> u32 {
        if operand.size_bits != 16 || self.packed {
            return 0;
        }
        if self.e32 {
            return if reg & 0x80 != 0 { 16 } else { 0 };
        }
        let bit = if dest { 3 } else { operand.source as u32 };
        if self.get(inst, self.mods.op_sel) >> bit & 1 != 0 { 16 } else { 0 }
    }

    /// The register number without e32's half bit.
    pub fn register(&self, operand: &Operand, reg: u16) -> u16 {
        if operand.size_bits == 16 && self.e32 { reg & !0x80 } else { reg }
    }
}

/// Returns the number of VGPRs of an instruction's per-lane address, where its fields determine it; `None` if
/// the instruction has no such address, or one of fixed size.
///
/// - Buffers: one each for an index (IDXEN) and an offset (OFFEN) (ISA manuals, *Buffer Addressing*).
/// - FLAT and GLOBAL: 64 bits, or an offset of 32 bits if there is a scalar base (*Flat Addressing*).
/// - SCRATCH: one if SVE is set, else none (*Scratch Addressing*).
pub fn address_registers(arch: Arch, inst: &Inst) -> Option<u16> {
    let binding = super::binding(arch, inst.entry);
    let operand = |role| binding.operands.iter().find(|o| o.role == role);
    let field = |name| inst.field(arch.table(), name).map(|value| value as u16);
    let address = operand(Role::VAddr)?;
    if let (Some(index), Some(offset)) = (field("IDXEN"), field("OFFEN")) {
        return Some(index + offset);
    }
    let base = operand(Role::SAddr)?;
    if address.size_bits == 64 {
        let is_absent = code(arch, base, binding.value(inst, base)?) == Code::Sgpr(NULL as u16);
        return Some(1 + u16::from(is_absent));
    }
    field("SVE")
}
