//! Where an entry's operands are: a description of fields, formats and modifiers, computed once per entry
//! from the tables, that the reference executor and the lowering to operations share. It must not know how an
//! operand is read or written.

use crate::arch::Arch;
use crate::arch::machine::{ScalarFile, VectorFile};
use crate::inst::Inst;
use isa_spec::tables::{ArchTable, Encoding, Entry, OperandSig, Role};
use std::sync::{LazyLock, OnceLock};

/// How an operand's bits are read, from the XML's data format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fmt {
    /// Unsigned integer.
    Unsigned,
    /// Signed integer.
    Signed,
    /// Untyped bits.
    Bits,
    /// IEEE binary16.
    F16,
    /// bfloat16.
    BF16,
    /// IEEE binary32.
    F32,
    /// IEEE binary64.
    F64,
    /// Two 16-bit values; the format of each.
    Packed(Half),
    /// A lane mask: one bit per lane.
    Mask,
    /// Scales in each byte: of a constant, the exponent of an f32.
    Scale,
    /// Any other format: descriptors, 8-bit floats …
    Other,
}

/// Format of the halves of a packed operand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Half {
    /// 16-bit integers or bits.
    Int,
    /// IEEE binary16.
    F16,
    /// bfloat16.
    BF16,
}

/// What an operand's field encodes.
#[derive(Debug, Clone, Copy)]
pub enum Holds {
    /// A source code of AMD's ISAs: see [`Code`].
    Code,
    /// A VGPR number.
    Vgpr,
    /// The number of an accumulation VGPR.
    Acc,
    /// Register numbers of a machine's own files.
    Vector(&'static VectorFile),
    /// A register number of a machine's own scalar file.
    Scalar(&'static ScalarFile),
    /// The value itself (operand types `OPR_IMM…`).
    Number { bits: u32, signed: bool },
}

/// One operand of an entry.
#[derive(Debug, Clone, Copy)]
pub struct Operand {
    /// The name by which pseudocode refers to it.
    pub role: Role,
    /// Index of the encoding field.
    pub field: Option<u8>,
    /// XML `OperandSize`, in bits.
    pub size_bits: u16,
    /// How its bits are read.
    pub fmt: Fmt,
    /// What its field encodes.
    pub holds: Holds,
    /// Position among the sources: bit of NEG, ABS, OP_SEL.
    pub source: u8,
    /// The instruction writes it.
    pub output: bool,
    /// The instruction reads it.
    pub input: bool,
    /// An inline constant applies to both halves: see [`replicate_constants`].
    pub replicated: bool,
    /// Field and bit that make an accumulation VGPR of it.
    pub acc: Option<(u8, u8)>,
    /// Which numbers the scalar registers in its field have.
    pub scalars: Scalars,
    /// A write keeps the other bits of the register, where the architecture clears them.
    pub preserves: bool,
}

/// Numbers of M0 and of no register. Everywhere else they are those of RDNA 3 and 4 ([`M0`], [`NULL`]).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scalars {
    Rdna,
    /// M0 is 124, and no register is null.
    Cdna,
    /// The scalar base of FLAT instructions: 127 means that there is none.
    CdnaBase,
    /// The scalar offset of SMEM instructions: SOFFSET, or a register that OFFSET names, or none, by two bits.
    CdnaSmemOffset,
}

/// Indices in `Encoding::fields` of the modifier fields that the encoding has.
#[derive(Debug, Clone, Copy, Default)]
pub struct ModFields {
    /// ABS: a bit per source.
    pub abs: Option<u8>,
    /// NEG: a bit per source; NEG_LO in packed encodings.
    pub neg: Option<u8>,
    /// NEG_HI of packed encodings.
    pub neg_hi: Option<u8>,
    /// OP_SEL: which half of a source or the result.
    pub op_sel: Option<u8>,
    /// OP_SEL_HI of packed encodings, sources 0 and 1.
    pub op_sel_hi: Option<u8>,
    /// OP_SEL_HI of source 2, which has a field of its own.
    pub op_sel_hi_2: Option<u8>,
    /// CLAMP.
    pub clamp: Option<u8>,
    /// OMOD: the result times 2, times 4 or halved.
    pub omod: Option<u8>,
    /// SRC0_ABS of DPP words.
    pub src0_abs: Option<u8>,
    /// SRC0_NEG of DPP words.
    pub src0_neg: Option<u8>,
    /// SRC1_ABS of DPP words.
    pub src1_abs: Option<u8>,
    /// SRC1_NEG of DPP words.
    pub src1_neg: Option<u8>,
    /// DPP_CTRL of DPP16 words.
    pub dpp_ctrl: Option<u8>,
    /// FI: inactive lanes are read too.
    pub fi: Option<u8>,
    /// BOUND_CTRL: a lane without a source lane reads 0.
    pub bound_ctrl: Option<u8>,
    /// ROW_MASK: a bit per row of 16 lanes.
    pub row_mask: Option<u8>,
    /// BANK_MASK: a bit per bank of 4 lanes of a row.
    pub bank_mask: Option<u8>,
    /// The first of DPP8's eight lane selections.
    pub lane_sel: Option<u8>,
    /// SRC0: with DPP8 its code says whether inactive lanes are read.
    pub src0: Option<u8>,
    /// The literal constant.
    pub literal: Option<u8>,
    /// GLC, or TH of RDNA 4 (bit 0 returns).
    pub glc: Option<u8>,
    /// SIMM16 of scalar encodings.
    pub simm16: Option<u8>,
    /// Address offset: OFFSET, or IOFFSET of RDNA 4.
    pub offset: Option<u8>,
    /// OFFSET0 of DS.
    pub offset0: Option<u8>,
    /// OFFSET1 of DS.
    pub offset1: Option<u8>,
    /// SMEM of CDNA: OFFSET is a number; SOFFSET counts.
    pub imm: Option<u8>,
    pub soffset_en: Option<u8>,
    pub sdwa: Option<SdwaFields>,
}

/// Fields of SDWA forms. Compares have no destination select, others no second source.
#[derive(Debug, Clone, Copy)]
pub struct SdwaFields {
    pub dst_sel: Option<u8>,
    pub dst_unused: Option<u8>,
    /// Select, sign extension, and whether it is an SGPR, of each source.
    pub sel: [Option<u8>; 2],
    pub sext: [Option<u8>; 2],
    pub scalar: [Option<u8>; 2],
    /// The result is in SDST instead of VCC.
    pub has_sdst: Option<u8>,
}

/// The operands and modifiers of an entry, by field.
#[derive(Debug)]
pub struct Plan {
    /// In assembly order.
    pub operands: Vec<Operand>,
    /// Modifier fields of the encoding.
    pub mods: ModFields,
    /// VOP3P: packed operand selection.
    pub packed: bool,
    /// VOP1, VOP2, VOPC: bit 7 of a VGPR number picks the half of a 16-bit operand.
    pub e32: bool,
    /// Second half of VOPD: its operands by the Y fields.
    pub y: Vec<Operand>,
    /// A memory atomic.
    pub atomic: bool,
    /// 16-bit results clear the upper half of their register, but for operands that preserve it.
    pub clears_upper_half: bool,
    /// Buffers are those of gfx9.
    pub gfx9: bool,
    /// Offset fields wider than this are signed.
    pub signed_offset: bool,
}

/// The plan of an entry, computed on first use: a kernel uses a few dozen of thousands.
pub fn plan(arch: Arch, entry: u16) -> &'static Plan {
    static PLANS: LazyLock<Vec<Vec<OnceLock<Plan>>>> = LazyLock::new(|| {
        Arch::ALL.into_iter().map(|a| a.table().entries.iter().map(|_| OnceLock::new()).collect()).collect()
    });
    PLANS[arch as usize][entry as usize].get_or_init(|| build(arch, &arch.table().entries[entry as usize]))
}

fn build(arch: Arch, entry: &Entry) -> Plan {
    let table = arch.table();
    let encoding = &table.encodings[entry.enc as usize];
    let inst = &table.instructions[entry.inst as usize];
    let find = |name: &str| encoding.fields.iter().position(|f| f.name == name).map(|at| at as u8);
    let sig = table.signatures[entry.sig as usize];
    let mut sources = 0;
    let mut operands: Vec<Operand> = sig.iter().map(|o| operand(arch, entry, o, &mut sources)).collect();
    let mut y = Vec::new();
    if encoding.name.starts_with("VOPD") {
        let mut sources = 0;
        for o in sig {
            let field = o.field.map(|f| encoding.fields[f as usize].name);
            let role = match field {
                Some("VDSTY") => Role::D0,
                Some("SRCY0") => Role::S0,
                Some("VSRCY1") => Role::S1,
                // LITERAL and VCC serve both halves.
                None => o.role,
                _ => continue,
            };
            y.push(Operand { role, ..operand(arch, entry, o, &mut sources) });
        }
        let fields: Vec<Option<&str>> =
            sig.iter().map(|o| o.field.map(|f| encoding.fields[f as usize].name)).collect();
        let mut at = 0;
        operands.retain(|_| {
            at += 1;
            !matches!(fields[at - 1], Some("VDSTY" | "SRCY0" | "VSRCY1"))
        });
        // An operation listed for the second half alone can only be one.
    }
    // CDNA's manuals have no such rule.
    if !arch.is_cdna() {
        replicate_constants(&mut operands);
        replicate_constants(&mut y);
    }
    let offset = find("OFFSET").or(find("IOFFSET"));
    Plan {
        operands,
        y,
        mods: ModFields {
            abs: find("ABS"),
            neg: find("NEG"),
            neg_hi: find("NEG_HI"),
            op_sel: find("OP_SEL"),
            op_sel_hi: find("OP_SEL_HI"),
            op_sel_hi_2: find("OP_SEL_HI_2"),
            clamp: find("CLAMP"),
            omod: find("OMOD"),
            src0_abs: find("SRC0_ABS"),
            src0_neg: find("SRC0_NEG"),
            src1_abs: find("SRC1_ABS"),
            src1_neg: find("SRC1_NEG"),
            dpp_ctrl: find("DPP_CTRL"),
            fi: find("FI"),
            bound_ctrl: find("BOUND_CTRL"),
            row_mask: find("ROW_MASK"),
            bank_mask: find("BANK_MASK"),
            lane_sel: find("LANE_SEL_0"),
            src0: find("SRC0"),
            literal: find("LITERAL").or(find("SIMM32")),
            glc: find("GLC").or(find("TH")).or(find("SC0")),
            simm16: find("SIMM16"),
            offset,
            offset0: find("OFFSET0"),
            offset1: find("OFFSET1"),
            imm: find("IMM"),
            soffset_en: find("SOFFSET_EN"),
            sdwa: find("SRC0_SEL").map(|_| SdwaFields {
                dst_sel: find("DST_SEL"),
                dst_unused: find("DST_UNUSED"),
                sel: [find("SRC0_SEL"), find("SRC1_SEL")],
                sext: [find("SRC0_SEXT"), find("SRC1_SEXT")],
                scalar: [find("S0"), find("S1")],
                has_sdst: find("SD"),
            }),
        },
        // Matrix operands of CDNA, and accumulation registers that are moved, have no halves to select.
        packed: encoding.name.contains("VOP3P")
            && find("ACC_CD").is_none()
            && !sig.iter().any(|o| table.operand_types[o.ty as usize].name.contains("ACCVGPR")),
        // CDNA has no true 16-bit registers.
        e32: !arch.is_cdna()
            && ["ENC_VOP1", "ENC_VOP2", "ENC_VOPC", "VOP1_", "VOP2_", "VOPC_"]
                .iter()
                .any(|p| encoding.name.starts_with(p)),
        atomic: inst.subgroup == "ATOMIC" && encoding.name != "ENC_DS" && encoding.name != "ENC_VDS",
        clears_upper_half: arch.is_cdna() && inst.group == "VALU" && !encoding.name.contains("VOP3P"),
        gfx9: arch.is_cdna(),
        signed_offset: offset.is_some_and(|f| encoding.fields[f as usize].width() > 12),
    }
}

fn operand(arch: Arch, entry: &Entry, o: &OperandSig, sources: &mut u8) -> Operand {
    let table = arch.table();
    let encoding = &table.encodings[entry.enc as usize];
    let source = *sources;
    let numbered =
        matches!(o.role, Role::S0 | Role::S1 | Role::S2 | Role::S3 | Role::S4 | Role::Y0Src0 | Role::Y0Src1);
    if numbered {
        *sources += 1;
    }
    let ty = table.operand_types[o.ty as usize].name;
    let fmt = match fmt(table.formats[o.format as usize].name, ty) {
        // One half with zeros above: the result of V_S_EXP_F16 and its like.
        Fmt::Packed(Half::F16) if o.output && ty.starts_with("OPR_SREG") => Fmt::F16,
        // CDNA 4 manual, *MFMA with Block Exponent Scaling*.
        _ if o.field.is_some_and(|f| encoding.fields[f as usize].name.starts_with("SCALE_SRC")) => Fmt::Scale,
        fmt => fmt,
    };
    Operand {
        role: o.role,
        field: o.field,
        size_bits: o.size_bits,
        fmt,
        holds: holds(arch, entry, o, ty, fmt),
        source,
        output: o.output,
        input: o.input,
        replicated: false,
        acc: acc(encoding, ty, o),
        scalars: scalars(arch, encoding, o),
        preserves: o.preserves,
    }
}

/// What makes an accumulation VGPR of an operand that can be one.
fn acc(encoding: &Encoding, ty: &str, o: &OperandSig) -> Option<(u8, u8)> {
    if !ty.contains("_OR_ACCVGPR") {
        return None;
    }
    let find = |name: &str| encoding.fields.iter().position(|f| f.name == name).map(|at| at as u8);
    let field = encoding.fields[o.field? as usize].name;
    match find("ACC_CD") {
        Some(result) if matches!(field, "VDST" | "SRC2") => Some((result, 0)),
        Some(_) => Some((find("ACC")?, (field == "SRC1") as u8)),
        None => Some((find("ACC")?, 0)),
    }
}

fn scalars(arch: Arch, encoding: &Encoding, o: &OperandSig) -> Scalars {
    let field = o.field.map(|f| encoding.fields[f as usize].name);
    match field {
        _ if !arch.is_cdna() => Scalars::Rdna,
        Some("SADDR") => Scalars::CdnaBase,
        Some("SOFFSET") if encoding.name == "ENC_SMEM" => Scalars::CdnaSmemOffset,
        _ => Scalars::Cdna,
    }
}

/// The packed sources of a dot product of 16-bit floats: sources of two halves whose result has none. Their
/// inline constants apply to both halves (RDNA4 manual, *Inline constants with V_DOT2…*, and RDNA 3 and 4,
/// *Inline Constants with Packed Math*). Literals are 32 bits as written, and so are the constants of the
/// other packed instructions, which have op_sel to choose a half.
fn replicate_constants(operands: &mut [Operand]) {
    if operands.iter().any(|o| o.output && matches!(o.fmt, Fmt::Packed(_))) {
        return;
    }
    for o in operands.iter_mut().filter(|o| o.input && o.size_bits == 32) {
        o.replicated = matches!(o.fmt, Fmt::Packed(Half::F16 | Half::BF16));
    }
}

fn holds(arch: Arch, entry: &Entry, o: &OperandSig, ty: &str, fmt: Fmt) -> Holds {
    match ty {
        "OPR_VGPR" | "OPR_VGPR_OR_ACCVGPR" => return Holds::Vgpr,
        "OPR_ACCVGPR" | "OPR_SRC_ACCVGPR" => return Holds::Acc,
        // Messages have the codes of inline constants.
        "OPR_SENDMSG_RTN" => return Holds::Number { bits: 8, signed: false },
        _ => {}
    }
    if let (true, Some(field)) = (ty.starts_with("OPR_IMM"), o.field) {
        let bits = arch.table().encodings[entry.enc as usize].fields[field as usize].width();
        return Holds::Number { bits, signed: fmt == Fmt::Signed };
    }
    let Some(machine) = arch.machine() else { return Holds::Code };
    if machine.vector.operand_types.contains(&ty) {
        return Holds::Vector(&machine.vector);
    }
    if machine.scalar.operand_types.contains(&ty) { Holds::Scalar(&machine.scalar) } else { Holds::Code }
}

fn fmt(name: &str, ty: &str) -> Fmt {
    if ty == "OPR_VCC" {
        return Fmt::Mask;
    }
    match name.trim_start_matches("FMT_").trim_start_matches("NUM_") {
        "M64" | "M32" => Fmt::Mask,
        "F16" => Fmt::F16,
        "BF16" => Fmt::BF16,
        "F32" => Fmt::F32,
        "F64" => Fmt::F64,
        "PK2_F16" | "WMMA_AB_F16" | "WMMA_DC_F16" => Fmt::Packed(Half::F16),
        "PK2_BF16" | "WMMA_AB_BF16" | "WMMA_DC_BF16" => Fmt::Packed(Half::BF16),
        "PK2_I16" | "PK2_U16" | "PK2_B16" => Fmt::Packed(Half::Int),
        "WMMA_DC_F32" => Fmt::F32,
        n if n.starts_with('U') => Fmt::Unsigned,
        n if n.starts_with('I') => Fmt::Signed,
        n if n.starts_with('B') || n == "ANY" => Fmt::Bits,
        _ => Fmt::Other,
    }
}

/// Number of the first accumulation VGPR: they follow the others in a wave's file.
pub const ACC: usize = 256;
/// SGPR file indices by operand code (RDNA manuals, *Scalar Source Operands*).
pub const VCC_LO: usize = 106;
/// VCC of lanes 32..63.
pub const VCC_HI: usize = 107;
/// The trap handler's registers.
pub const TTMP: std::ops::Range<usize> = 108..124;
/// Reads zero; writes are dropped.
pub const NULL: usize = 124;
/// The M0 register.
pub const M0: usize = 125;
/// EXEC of lanes 0..31.
pub const EXEC_LO: usize = 126;
/// EXEC of lanes 32..63.
pub const EXEC_HI: usize = 127;
/// What a source code names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Code {
    /// Index in the SGPR file.
    Sgpr(u16),
    /// A VGPR by number.
    Vgpr(u16),
    /// A VGPR that instructions read and none can write.
    Fixed(u16),
    /// An inline integer: -16..=64.
    Int(i32),
    /// Index in [`FLOATS`].
    Float(u8),
    /// The 32 bits that follow the instruction.
    Literal,
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
    /// A code that names no operand.
    Invalid,
}

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

/// Source codes 0..511 by the names the XML gives them in `OPR_SRC`.
static CODES: LazyLock<Vec<[Code; 512]>> =
    LazyLock::new(|| Arch::ALL.into_iter().map(|a| codes(a.table())).collect());

/// [`Scalars`] have been translated: M0 and null have one number each.
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
                "src_scc" => Code::Scc,
                "src_vccz" => Code::Vccz,
                "src_execz" => Code::Execz,
                "src_shared_base" => Code::SharedBase,
                "src_shared_limit" => Code::SharedLimit,
                "src_private_base" => Code::PrivateBase,
                "src_private_limit" => Code::PrivateLimit,
                _ => Code::Invalid,
            }
        };
    }
    out
}

/// The meaning of an operand's field value.
pub fn code(arch: Arch, operand: &Operand, value: u32) -> Code {
    match operand.holds {
        Holds::Code if value >= 512 => Code::Vgpr(ACC as u16 + (value & 255) as u16),
        Holds::Code => CODES[arch as usize][value as usize & 511],
        Holds::Vgpr if value & SDWA_SCALAR != 0 => CODES[arch as usize][(value & 511) as usize],
        Holds::Vgpr => Code::Vgpr(value as u16),
        Holds::Acc => Code::Vgpr(ACC as u16 + (value & 255) as u16),
        Holds::Vector(file) if (value as usize) < file.read_only.len() => Code::Fixed(value as u16),
        Holds::Vector(_) => Code::Vgpr(value as u16),
        Holds::Scalar(file) => Code::Sgpr(file.code(value as u16)),
        Holds::Number { bits, signed } => Code::Int(number(value, bits, signed)),
    }
}

/// A field's value as a signed or unsigned number of `bits` bits.
pub fn number(value: u32, bits: u32, signed: bool) -> i32 {
    if signed && (1..32).contains(&bits) {
        return (value << (32 - bits)) as i32 >> (32 - bits);
    }
    value as i32
}

/// The scalar register that holds a lane mask.
pub fn mask_register(operand: &Operand, value: u32) -> u16 {
    match operand.holds {
        Holds::Scalar(file) => file.code(value as u16),
        _ => value as u16,
    }
}

/// A register of CDNA by its number here.
fn cdna_scalar(value: u32) -> u32 {
    match value {
        124 => M0 as u32,
        125 => NULL as u32,
        _ => value,
    }
}

/// Marks an SGPR in a field that otherwise holds a VGPR.
const SDWA_SCALAR: u32 = 1 << 16;

fn mask(width: u32) -> u128 {
    if width >= 128 { u128::MAX } else { (1 << width) - 1 }
}

impl Plan {
    /// An inline integer or float constant, or a literal, as the operand's bits.
    pub fn constant(&self, inst: &Inst, code: Code, operand: &Operand) -> u128 {
        let size = operand.size_bits as u32;
        let bits = match code {
            Code::Int(v) => match operand.fmt {
                Fmt::Packed(_) => v as u32 as u128 & if size > 32 { 0xffff } else { 0xffff_ffff },
                _ => v as i128 as u128 & mask(size.max(16)),
            },
            Code::Float(at) => {
                let (h, b, s, d) = FLOATS[at as usize];
                match operand.fmt {
                    Fmt::F16 | Fmt::Packed(Half::F16) => h as u128,
                    Fmt::BF16 | Fmt::Packed(Half::BF16) => b as u128,
                    _ if size == 64 => d as u128,
                    _ if self.is_half_of_mix(inst, operand) => h as u128,
                    _ => s as u128,
                }
            }
            // RDNA manuals, *Literal Expansion to 64 bits*.
            Code::Literal => {
                let literal = self.get(inst, self.mods.literal);
                match operand.fmt {
                    Fmt::F64 => (literal as u128) << 32,
                    Fmt::Signed if size == 64 => literal as i32 as u64 as u128,
                    _ => literal as u128,
                }
            }
            _ => 0,
        };
        match code {
            _ if operand.fmt == Fmt::Scale => (bits >> 23 & 0xff) * 0x0101_0101,
            Code::Int(_) | Code::Float(_) if operand.replicated => bits & 0xffff | (bits & 0xffff) << 16,
            _ => bits,
        }
    }

    /// Whether a source is f16 by its OPSEL_HI bit. Sources that can be f32 or f16 (V_FMA_MIX_F32 and its
    /// like) are the only ones of packed encodings that the XML leaves untyped.
    fn is_half_of_mix(&self, inst: &Inst, operand: &Operand) -> bool {
        let halves = self.get(inst, self.mods.op_sel_hi) | self.get(inst, self.mods.op_sel_hi_2) << 2;
        self.packed && operand.fmt == Fmt::Bits && halves >> operand.source & 1 != 0
    }

    /// What an operand's field holds, for [`code`] and [`mask_register`]: with the bit that makes an accumulation VGPR of it, and with
    /// scalar registers by the numbers that they have here.
    pub fn value(&self, inst: &Inst, operand: &Operand) -> Option<u32> {
        let value = inst.fields[operand.field? as usize];
        let value = if matches!(operand.holds, Holds::Vgpr) { value & !SDWA_SCALAR } else { value };
        let value = match operand.acc {
            // Codes of sources count VGPRs from 256 on, and others have the numbers below.
            Some((field, bit)) if inst.fields[field as usize] >> bit & 1 == 1 => {
                if matches!(operand.holds, Holds::Code) && value < 256 { value } else { value + 256 }
            }
            _ => value,
        };
        // A source in SDWA's word is a VGPR, or an SGPR if a bit says so.
        if let Some(sdwa) = &self.mods.sdwa
            && matches!(operand.holds, Holds::Vgpr)
            && operand.input
            && !operand.output
        {
            let scalar = sdwa.scalar.get(operand.source as usize).copied().flatten();
            if self.get(inst, scalar) != 0 {
                return Some(cdna_scalar(value) | SDWA_SCALAR);
            }
        }
        // A compare's result goes to VCC unless SDST counts.
        if let Some(SdwaFields { has_sdst: Some(has), .. }) = self.mods.sdwa
            && operand.output
        {
            return Some(if inst.fields[has as usize] == 0 { VCC_LO as u32 } else { cdna_scalar(value) });
        }
        Some(match operand.scalars {
            _ if matches!(operand.holds, Holds::Vgpr | Holds::Acc) => value,
            Scalars::Rdna => value,
            Scalars::Cdna => cdna_scalar(value),
            Scalars::CdnaBase if value == EXEC_HI as u32 => NULL as u32,
            Scalars::CdnaBase => cdna_scalar(value),
            Scalars::CdnaSmemOffset => {
                let offset = self.get(inst, self.mods.offset) & 0x7f;
                match (self.get(inst, self.mods.soffset_en), self.get(inst, self.mods.imm)) {
                    (0, 0) => cdna_scalar(offset),
                    (0, _) => NULL as u32,
                    _ => cdna_scalar(value),
                }
            }
        })
    }

    pub fn get(&self, inst: &Inst, field: Option<u8>) -> u32 {
        field.map_or(0, |f| inst.fields[f as usize])
    }

    /// Whether the encoding has a DPP16 or DPP8 word.
    pub fn has_dpp(&self) -> bool {
        self.mods.dpp_ctrl.is_some() || self.mods.lane_sel.is_some()
    }

    /// Value of a field that pseudocode names.
    pub fn named_field(&self, inst: &Inst, table: &'static ArchTable, name: &str) -> u32 {
        let m = &self.mods;
        match name {
            "OFFSET" => match m.offset {
                // SMEM of CDNA: the field names a register.
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
                // DS: one 16-bit offset out of two.
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
            "GFX9" => self.gfx9 as u32,
            "TO_LDS" => inst.field(table, "LDS").unwrap_or(0),
            // The two parts of gfx9, as in its descriptors.
            "FORMAT" if self.gfx9 => {
                let part = |name| inst.field(table, name).unwrap_or(0);
                part("DFMT") << 3 | part("NFMT")
            }
            other => inst.field(table, other).unwrap_or(0),
        }
    }

    /// What OP_SEL would be for the halves that an e32 form names in its register numbers.
    fn half_bits(&self, inst: &Inst) -> u32 {
        let high = |o: &&Operand| {
            let value = self.get(inst, o.field);
            // A source code counts VGPRs from 256 on.
            self.e32
                && o.size_bits == 16
                && (matches!(o.holds, Holds::Vgpr) || value >= 256)
                && value & 0x80 != 0
        };
        let bit = |o: &Operand| if o.output { 3 } else { o.source };
        self.operands.iter().filter(high).fold(0, |bits, o| bits | 1 << bit(o))
    }

    /// Whether an atomic gives its old value back.
    pub fn returns(&self, inst: &Inst) -> bool {
        !self.atomic || self.mods.glc.is_none() || self.get(inst, self.mods.glc) & 1 != 0
    }

    /// The half of a 16-bit register operand: bits to shift.
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

    /// The register number without the half bit of e32 forms.
    pub fn register(&self, operand: &Operand, reg: u16) -> u16 {
        if operand.size_bits == 16 && self.e32 { reg & 0x7f } else { reg }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arch::Arch;

    /// The numbers of registers are the ISA descriptions'.
    #[test]
    fn registers_have_the_numbers_of_the_descriptions() {
        let numbers = [
            ("s0", 0),
            ("s105", VCC_LO - 1),
            ("vcc_lo", VCC_LO),
            ("vcc_hi", VCC_HI),
            ("ttmp0", TTMP.start),
            ("ttmp15", TTMP.end - 1),
            ("null", NULL),
            ("m0", M0),
            ("exec_lo", EXEC_LO),
            ("exec_hi", EXEC_HI),
        ];
        for arch in Arch::RDNA {
            for (name, number) in numbers {
                let types = arch.table().operand_types.iter();
                let listed: Vec<u32> =
                    types.flat_map(|t| t.values.iter()).filter(|v| v.0 == name).map(|v| v.1).collect();
                assert!(!listed.is_empty(), "{}: no operand is {name}", arch.name());
                assert!(listed.iter().all(|n| *n as usize == number), "{}: {name} {listed:?}", arch.name());
            }
        }
    }
}
