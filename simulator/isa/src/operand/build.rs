//! Builds the operand binding of a table entry; fields are found by the names in the description.

use super::format::format;
use super::{Binding, Fmt, Half, ModFields, Operand, OperandKind, ScalarNumbering, SdwaFields};
use crate::arch::Arch;
use crate::arch::facts::ScalarCodes;
use isa_spec::tables::{Encoding, Entry, OperandSig, Role};

/// The operand binding of an entry.
pub(super) fn binding(arch: Arch, entry: &Entry) -> Binding {
    let table = arch.table();
    let encoding = &table.encodings[entry.enc as usize];
    let inst = &table.instructions[entry.inst as usize];
    let find = |name: &str| encoding.fields.iter().position(|f| f.name == name).map(|at| at as u8);
    let sig = table.signatures[entry.sig as usize];
    let mut sources = 0;
    let mut operands: Vec<Operand> = sig.iter().map(|o| operand(arch, entry, o, &mut sources)).collect();
    let mut y = Vec::new();
    let dual = encoding.name.starts_with("VOPD");
    if dual {
        let mut sources = 0;
        for o in sig {
            let field = o.field.map(|f| encoding.fields[f as usize].name);
            let role = match field {
                Some("VDSTY") => Role::D0,
                Some("SRCY0") => Role::S0,
                Some("VSRCY1") => Role::S1,
                Some("VSRCY2") if is_mask(arch, o) => Role::Vcc,
                Some("VSRCY2") => Role::S2,
                // LITERAL and VCC belong to both halves.
                None => o.role,
                _ => continue,
            };
            let neg = find("NEGY");
            y.push(Operand { role, neg, ..operand(arch, entry, o, &mut sources) });
        }
        let fields: Vec<Option<&str>> =
            sig.iter().map(|o| o.field.map(|f| encoding.fields[f as usize].name)).collect();
        let mut at = 0;
        operands.retain(|_| {
            at += 1;
            !matches!(fields[at - 1], Some("VDSTY" | "SRCY0" | "VSRCY1" | "VSRCY2"))
        });
        operands.iter_mut().for_each(|o| o.neg = find("NEGX"));
    }
    let facts = arch.facts();
    if facts.replicates_packed_constants {
        replicate_constants(&mut operands);
        replicate_constants(&mut y);
    }
    let offset = find("OFFSET").or(find("IOFFSET"));
    Binding {
        operands,
        dual,
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
            literal: find("LITERAL").or(find("SIMM32")).or(find("LITERAL64")),
            literal_hi: find("LITERAL64_HI"),
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
        // CDNA's matrix operands and moves of accumulation registers do not select halves.
        packed: encoding.name.contains("VOP3P")
            && find("ACC_CD").is_none()
            && !sig.iter().any(|o| table.operand_types[o.ty as usize].name.contains("ACCVGPR")),
        mixes_bf16: inst.name.ends_with("BF16"),
        e32: facts.true16
            && ["ENC_VOP1", "ENC_VOP2", "ENC_VOPC", "VOP1_", "VOP2_", "VOPC_"]
                .iter()
                .any(|p| encoding.name.starts_with(p)),
        atomic: inst.subgroup() == "ATOMIC" && encoding.name != "ENC_DS" && encoding.name != "ENC_VDS",
        clears_upper_half: !facts.true16 && inst.group() == "VALU" && !encoding.name.contains("VOP3P"),
        gfx: facts.gfx,
        signed_offset: offset.is_some_and(|f| encoding.fields[f as usize].width() > 12),
    }
}

fn operand(arch: Arch, entry: &Entry, o: &OperandSig, sources: &mut u8) -> Operand {
    let table = arch.table();
    let encoding = &table.encodings[entry.enc as usize];
    let source = *sources;
    let numbered = matches!(
        o.role,
        Role::S0 | Role::S1 | Role::S2 | Role::S3 | Role::S4 | Role::Y0Src0 | Role::Y0Src1 | Role::Y0Src2
    );
    if numbered {
        *sources += 1;
    }
    let ty = table.operand_types[o.ty as usize].name;
    let format = format(table.formats[o.format as usize].name, o.size_bits);
    let fmt = match format.fmt {
        _ if ty == "OPR_VCC" => Fmt::Mask,
        // The result of V_S_EXP_F16 and similar instructions: one half, zero-extended.
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
        constants: format.constants,
        ty: o.ty,
        kind: kind(arch, entry, o, ty, fmt),
        source,
        neg: encoding.fields.iter().position(|f| f.name == "NEG").map(|at| at as u8),
        output: o.output,
        input: o.input,
        replicated: false,
        acc: acc(encoding, ty, o),
        msb: msb(arch, entry, o),
        scalars: scalars(arch, encoding, o),
        preserves: o.preserves,
    }
}

fn is_mask(arch: Arch, o: &OperandSig) -> bool {
    arch.table().formats[o.format as usize].is_lane_mask()
}

/// Field and bit that select the accumulation file for an operand.
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

/// The position in MODE of two more bits of an operand's VGPR number (CDNA5 manual, *Waves with up to 1024
/// VGPRs*). The factor of V_FMAMK that follows the literal takes the bits of the third source, and scales of
/// matrix products none.
fn msb(arch: Arch, entry: &Entry, o: &OperandSig) -> Option<u8> {
    const RESULT: u8 = 12;
    if !arch.facts().vgprs.msbs {
        return None;
    }
    let table = arch.table();
    let fields = table.encodings[entry.enc as usize].fields;
    let name = |o: &OperandSig| o.field.map_or("", |f| fields[f as usize].name);
    let before = table.signatures[entry.sig as usize].iter().take_while(|other| *other != o);
    let follows_literal = before.into_iter().any(|o| name(o).starts_with("LITERAL"));
    Some(match name(o) {
        "VDST" | "VDSTX" | "VDSTY" | "VDATA" => RESULT,
        "SRC0" | "VSRC0" | "SRCX0" | "SRCY0" | "ADDR" | "VADDR" | "VADDR0" => RESULT + 2,
        "VSRC1" | "VSRCX1" | "VSRCY1" if follows_literal => RESULT + 6,
        "SRC1" | "VSRC1" | "VSRCX1" | "VSRCY1" | "DATA0" | "VSRC" | "VADDR1" => RESULT + 4,
        "SRC2" | "VSRCX2" | "VSRCY2" | "DATA1" | "VADDR2" => RESULT + 6,
        _ => return None,
    })
}

fn scalars(arch: Arch, encoding: &Encoding, o: &OperandSig) -> ScalarNumbering {
    let field = o.field.map(|f| encoding.fields[f as usize].name);
    match field {
        _ if arch.facts().scalar_codes == ScalarCodes::Rdna => ScalarNumbering::Rdna,
        Some("SADDR") => ScalarNumbering::CdnaBase,
        Some("SOFFSET") if encoding.name == "ENC_SMEM" => ScalarNumbering::CdnaSmemOffset,
        _ => ScalarNumbering::Cdna,
    }
}

/// Marks the packed sources of dot products of 16-bit floats, which are the packed sources of instructions
/// whose result is not packed. Their inline constants apply to both halves (RDNA4 manual, *Inline constants
/// with V_DOT2…*, and RDNA 3 and 4, *Inline Constants with Packed Math*). Literals are used as 32 bits, and
/// so are the constants of other packed instructions, which select halves by op_sel.
fn replicate_constants(operands: &mut [Operand]) {
    if operands.iter().any(|o| o.output && matches!(o.fmt, Fmt::Packed(_))) {
        return;
    }
    for o in operands.iter_mut().filter(|o| o.input && o.size_bits == 32) {
        o.replicated = matches!(o.fmt, Fmt::Packed(Half::F16 | Half::BF16));
    }
}

fn kind(arch: Arch, entry: &Entry, o: &OperandSig, ty: &str, fmt: Fmt) -> OperandKind {
    match ty {
        "OPR_VGPR" | "OPR_VGPR_OR_ACCVGPR" => return OperandKind::Vgpr,
        "OPR_ACCVGPR" | "OPR_SRC_ACCVGPR" => return OperandKind::Acc,
        // Message codes overlap those of inline constants.
        "OPR_SENDMSG_RTN" => return OperandKind::Number { bits: 8, signed: false },
        _ => {}
    }
    // An immediate in the place of a source is a number, too.
    let number =
        ty.starts_with("OPR_IMM") || ty.starts_with("OPR_SIMM") && matches!(o.role, Role::S2 | Role::Y0Src2);
    if let (true, Some(field)) = (number, o.field) {
        let bits = arch.table().encodings[entry.enc as usize].fields[field as usize].width();
        return OperandKind::Number { bits, signed: fmt == Fmt::Signed };
    }
    let Some(machine) = arch.machine() else { return OperandKind::Code };
    if machine.vector.operand_types.contains(&ty) {
        return OperandKind::Vector(&machine.vector);
    }
    if machine.scalar.operand_types.contains(&ty) {
        OperandKind::Scalar(&machine.scalar)
    } else {
        OperandKind::Code
    }
}
