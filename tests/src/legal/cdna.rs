//! Random legal instructions: fields specific to CDNA.

use super::{Get, Random, Set};
use isa_spec::tables::{Encoding, MAX_FIELDS};
use wavesim::asm;
use wavesim::asm::form::SlotKind;

/// Removes combinations of fields that are meaningless or redundant on CDNA.
pub(super) fn restrict(
    name: &str,
    encoding: &Encoding,
    form: &asm::form::Form,
    fields: &mut [u32; MAX_FIELDS],
    set: Set,
    get: Get,
    random: &mut Random,
) {
    let names: Vec<&str> = encoding.fields.iter().map(|f| f.name).collect();
    let encoding = encoding.name;
    let clear = |fields: &mut [u32; MAX_FIELDS], names: &[&str]| names.iter().for_each(|n| set(fields, n, 0));
    if encoding.contains("_DPP") {
        let controls =
            [0xe4, 0x101, 0x112, 0x121, 0x130, 0x134, 0x138, 0x13c, 0x140, 0x141, 0x142, 0x143, 0x155];
        set(fields, "SRC0", 250);
        set(fields, "DPP_CTRL", controls[random.below(controls.len() as u32) as usize]);
        clear(fields, &["SRC0_NEG", "SRC0_ABS", "SRC1_NEG", "SRC1_ABS"]);
    }
    if encoding.contains("_SDWA") {
        for (field, most) in [("DST_SEL", 7), ("DST_UNUSED", 3), ("SRC0_SEL", 7), ("SRC1_SEL", 7)] {
            set(fields, field, get(fields, field) % most);
        }
        if form.mods.iter().all(|m| m.name() != "dst_sel") {
            clear(fields, &["SRC0_SEXT"]);
            let start =
                |name: &str| names.iter().position(|n| *n == name).map_or(0, |at| form.initial_fields[at]);
            set(fields, "DST_SEL", start("DST_SEL"));
            set(fields, "DST_UNUSED", start("DST_UNUSED"));
        }
        for slot in form.slots.iter().filter(|s| s.source.is_some_and(|s| s < 2)) {
            let n = slot.source.unwrap_or(0);
            // For example, scales and classes of 16-bit floats.
            let unused: &[String] = if slot.signed {
                &[format!("SRC{n}_SEXT")]
            } else {
                &[format!("SRC{n}_NEG"), format!("SRC{n}_ABS")]
            };
            unused.iter().for_each(|field| set(fields, field, 0));
            let scalar = format!("S{n}");
            if get(fields, &scalar) != 0 {
                // A scalar register, or an inline constant.
                let code = if random.below(2) == 0 { random.below(100) } else { 128 + random.below(80) };
                set(fields, if n == 0 { "VSRC0" } else { "VSRC1" }, code);
            }
        }
        let sources = form.slots.iter().filter_map(|s| s.source).filter(|s| *s < 2).count();
        if sources < 2 {
            clear(fields, &["S1", "SRC1_SEL", "SRC1_SEXT", "SRC1_NEG", "SRC1_ABS"]);
        }
        if get(fields, "SD") == 0 {
            clear(fields, &["SDST"]);
        }
    }
    if form.slots.is_empty() && encoding != "ENC_MUBUF" {
        clear(fields, &["SC0", "SC1", "NT", "LDS", "OFFSET0", "OFFSET1", "ACC"]);
    }
    // Offsets of scalar loads: an immediate, a register encoded in the immediate's field, or both.
    if encoding == "ENC_SMEM" {
        let [register, number] = ["SOFFSET_EN", "IMM"].map(|f| get(fields, f));
        let none = !form.slots.iter().any(|s| s.kind == SlotKind::ScalarOffset);
        if none {
            clear(fields, &["SOFFSET_EN", "IMM", "SOFFSET", "OFFSET"]);
        } else if register == 0 {
            clear(fields, &["SOFFSET"]);
            if number == 0 {
                set(fields, "OFFSET", random.below(102));
            }
        } else if number == 0 {
            clear(fields, &["OFFSET"]);
        }
    }
    if name == "S_SET_GPR_IDX_MODE" || name == "S_SET_GPR_IDX_ON" {
        let field = if name.ends_with("ON") { "SSRC1" } else { "SIMM16" };
        set(fields, field, random.below(16));
    }
    if form.slots.is_empty() {
        clear(fields, &["OFFSET", "OFFEN", "IDXEN"]);
    }
    for slot in form.slots.iter().filter(|s| !s.signed) {
        for bit in [slot.neg, slot.abs].into_iter().flatten() {
            fields[bit.field as usize] &= !(1 << bit.bit);
        }
    }
    // Equivalent to the modifiers of older instructions, but LLVM uses other names.
    if name.starts_with("V_PERMLANE") {
        clear(fields, &["OP_SEL"]);
    }
    if name.ends_with("_F8F6F4") {
        for field in ["CBSZ", "BLGP"] {
            set(fields, field, random.below(5));
        }
        set(fields, "ABID", u32::from(name.contains("_SCALE_")));
        if name.contains("_SCALE_") {
            set(fields, "OP_SEL", get(fields, "OP_SEL") & 3);
            clear(fields, &["NEG", "NEG_HI"]);
        }
    }
    if name.starts_with("V_ACCVGPR") {
        clear(fields, &["NEG", "NEG_HI", "CLAMP"]);
    }
    if form.mods.iter().all(|m| m.name() != "glc") {
        clear(fields, &["GLC"]);
    }
    if form.mods.iter().all(|m| !matches!(m.name(), "blgp" | "neg")) {
        clear(fields, &["BLGP"]);
    }
    if get(fields, "LDS") != 0 && form.to_lds.is_some() {
        clear(fields, &["VDATA", "ACC"]);
    }
    if form.to_lds.is_none() {
        set(fields, "LDS", u32::from(name == "BUFFER_STORE_LDS_DWORD"));
    }
    // Dot products read whole registers.
    if name.starts_with("V_DOT") && encoding.contains("VOP3P") {
        set(fields, "OP_SEL", 0);
        set(fields, "OP_SEL_HI", 3);
        set(fields, "OP_SEL_HI_2", 1);
    }
    // No operand can be an accumulation register.
    if !form.slots.iter().any(|s| s.acc.is_some()) {
        clear(fields, &["ACC", "ACC_CD"]);
    }
    if name.starts_with("DS_") && !name.starts_with("DS_GWS_") {
        clear(fields, &["GDS"]);
    }
}
