//! Systematic omissions of the documents, corrected by rules. Corrections to single instructions are in the
//! overlays.
//!
//! The XML lists the literal form (`…_INST_LITERAL`) of scalar instructions for some opcodes only, and on
//! RDNA 3 not at all for SOPC. The manuals allow a literal in any SSRC operand of SOP1, SOP2 and SOPC
//! (*Scalar Source Operands*: code 255), and LLVM assembles it. Therefore each such encoding gets a literal
//! form, and each instruction with an SSRC source an entry in that form.

use super::model::*;
use super::normalize::normalize;
use super::overlay::add_identifiers;

/// Applies every rule, in order.
pub fn apply_errata(spec: &mut Spec) {
    normalize(spec);
    add_scalar_literals(spec);
    add_vector_literals(spec);
    add_mimg_nsa(spec);
    mark_immediates_as_inputs(spec);
}

/// Marks immediates as inputs. Prefetches hold a length in SDATA (`OPR_SIMM5`), which the documents mark as
/// an output, like the same field elsewhere.
fn mark_immediates_as_inputs(spec: &mut Spec) {
    let operands = spec.instructions.iter_mut().flat_map(|i| &mut i.encodings).flat_map(|e| &mut e.operands);
    for operand in operands.filter(|o| o.ty.starts_with("OPR_SIMM")) {
        (operand.input, operand.output) = (true, false);
    }
}

/// Adds literal forms of vector instructions with 64-bit sources and of lane selects, which also accept
/// literals (LLVM; the manuals list no exception).
fn add_vector_literals(spec: &mut Spec) {
    for (base, literal) in [
        ("ENC_VOP1", "VOP1_INST_LITERAL"),
        ("ENC_VOP2", "VOP2_INST_LITERAL"),
        ("ENC_VOPC", "VOPC_INST_LITERAL"),
        ("ENC_VOP3", "VOP3_INST_LITERAL"),
        ("VOP3_SDST_ENC", "VOP3_SDST_ENC_INST_LITERAL"),
    ] {
        if !spec.encodings.iter().any(|e| e.name == literal) {
            continue;
        }
        for inst in &mut spec.instructions {
            let Some(entry) = inst.encodings.iter().find(|e| e.encoding == base) else { continue };
            let accepts_literal = |o: &Operand| {
                o.field.is_some() && matches!(o.ty.as_str(), "OPR_SRC" | "OPR_SSRC" | "OPR_SSRC_LANESEL")
            };
            if !entry.operands.iter().any(accepts_literal)
                || inst.encodings.iter().any(|e| e.encoding == literal)
            {
                continue;
            }
            let mut copy = entry.clone();
            copy.encoding = literal.to_string();
            copy.condition = "has_lit".to_string();
            add_identifiers(&mut spec.encodings, &copy);
            inst.encodings.push(copy);
        }
    }
}

/// Adds the NSA form of MIMG. The document has the NSA bit but not the word that it announces: a third word
/// with four more address registers, which lifts the requirement that addresses be in consecutive registers
/// (RDNA3 manual, *MIMG*; LLVM assembles it).
fn add_mimg_nsa(spec: &mut Spec) {
    const BASE: &str = "ENC_MIMG";
    const NAME: &str = "ENC_MIMG_NSA";
    let Some(at) = spec.encodings.iter().position(|e| e.name == BASE && e.bits == 64) else { return };
    if !spec.encodings[at].fields.iter().any(|f| f.name == "NSA") {
        return;
    }
    let nsa = ["NSA".to_string()];
    let mut encoding = spec.encodings[at].clone();
    encoding.name = NAME.to_string();
    encoding.bits = 96;
    encoding.order -= 1;
    encoding.conditions =
        vec![Condition { name: "has_nsa".to_string(), expr: Some(any_field_equals(&nsa, 1)) }];
    for n in 1..5 {
        encoding.fields.push(Field {
            name: format!("VADDR{n}"),
            conditional: false,
            description: String::new(),
            ranges: vec![Range { bit_count: 8, bit_offset: 56 + 8 * n, padding: 0 }],
            values: Vec::new(),
            signedness: None,
            span: encoding.span,
        });
    }
    for condition in &mut spec.encodings[at].conditions {
        condition.expr = Some(any_field_equals(&nsa, 0));
    }
    spec.encodings.push(encoding);
    for inst in &mut spec.instructions {
        let Some(mut copy) = inst.encodings.iter().find(|e| e.encoding == BASE).cloned() else { continue };
        copy.encoding = NAME.to_string();
        copy.condition = "has_nsa".to_string();
        add_identifiers(&mut spec.encodings, &copy);
        inst.encodings.push(copy);
    }
}

fn add_scalar_literals(spec: &mut Spec) {
    for family in ["SOP1", "SOP2", "SOPC"] {
        let base_name = format!("ENC_{family}");
        let name = format!("{family}_INST_LITERAL");
        let Some(base) = spec.encodings.iter().find(|e| e.name == base_name).cloned() else { continue };
        let sources: Vec<String> =
            base.fields.iter().filter(|f| f.name.starts_with("SSRC")).map(|f| f.name.clone()).collect();
        if sources.is_empty() || base.bits != 32 {
            continue;
        }
        let condition =
            Condition { name: "has_lit".to_string(), expr: Some(any_field_equals(&sources, 255)) };
        let at = match spec.encodings.iter().position(|e| e.name == name) {
            Some(at) => at,
            None => {
                let mut encoding = base.clone();
                encoding.name.clone_from(&name);
                encoding.bits = 64;
                encoding.order = base.order + 1;
                encoding.fields.push(Field {
                    name: "SIMM32".to_string(),
                    conditional: false,
                    description: String::new(),
                    ranges: vec![Range { bit_count: 32, bit_offset: 32, padding: 0 }],
                    values: Vec::new(),
                    signedness: None,
                    span: base.span,
                });
                spec.encodings.push(encoding);
                spec.encodings.len() - 1
            }
        };
        spec.encodings[at].conditions = vec![condition];
        for inst in &mut spec.instructions {
            let Some(entry) = inst.encodings.iter().find(|e| e.encoding == base_name) else { continue };
            let literal_source = entry.operands.iter().any(|o| o.ty == "OPR_SSRC" && o.field.is_some());
            if !literal_source || inst.encodings.iter().any(|e| e.encoding == name) {
                continue;
            }
            let mut copy = entry.clone();
            copy.encoding.clone_from(&name);
            copy.condition = "has_lit".to_string();
            add_identifiers(&mut spec.encodings, &copy);
            inst.encodings.push(copy);
        }
    }
}

fn any_field_equals(fields: &[String], value: u64) -> CondExpr {
    let test = |name: &String| CondExpr::Op {
        op: "==".to_string(),
        args: vec![CondExpr::Id { name: name.clone(), ty: None }, CondExpr::Lit { value, ty: None }],
        ty: None,
    };
    let mut tests = fields.iter().map(test);
    let first = tests.next().unwrap_or(CondExpr::Lit { value: 0, ty: None });
    tests.fold(first, |a, b| CondExpr::Op { op: "||".to_string(), args: vec![a, b], ty: None })
}
