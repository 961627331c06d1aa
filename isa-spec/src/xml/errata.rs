//! Facts that the documents leave out, added by rule.
//!
//! The XML lists the literal form (`…_INST_LITERAL`) of scalar instructions for some opcodes only, and of SOPC not at all on RDNA 3.
//! The manuals allow a literal in any SSRC operand of SOP1, SOP2 and SOPC (*Scalar Source Operands*: code 255), and LLVM
//! assembles it. So: each such encoding gets its literal form, and each instruction with an SSRC source an entry in it.

use super::model::*;

pub fn add_scalar_literals(spec: &mut Spec) {
    for family in ["SOP1", "SOP2", "SOPC"] {
        let base_name = format!("ENC_{family}");
        let name = format!("{family}_INST_LITERAL");
        let Some(base) = spec.encodings.iter().find(|e| e.name == base_name).cloned() else { continue };
        let sources: Vec<String> =
            base.fields.iter().filter(|f| f.name.starts_with("SSRC")).map(|f| f.name.clone()).collect();
        if sources.is_empty() || base.bits != 32 {
            continue;
        }
        let condition = Condition { name: "has_lit".to_string(), expr: Some(any_is(&sources, 255)) };
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
        spec.encodings[at].identifiers.clone_from(&base.identifiers);
        for inst in &mut spec.instructions {
            let Some(entry) = inst.encodings.iter().find(|e| e.encoding == base_name) else { continue };
            let literal_source = entry.operands.iter().any(|o| o.ty == "OPR_SSRC" && o.field.is_some());
            if !literal_source || inst.encodings.iter().any(|e| e.encoding == name) {
                continue;
            }
            let mut copy = entry.clone();
            copy.encoding.clone_from(&name);
            copy.condition = "has_lit".to_string();
            inst.encodings.push(copy);
        }
    }
}

fn any_is(fields: &[String], value: u64) -> CondExpr {
    let test = |name: &String| CondExpr::Op {
        op: "==".to_string(),
        args: vec![CondExpr::Id { name: name.clone(), ty: None }, CondExpr::Lit { value, ty: None }],
        ty: None,
    };
    let mut tests = fields.iter().map(test);
    let first = tests.next().unwrap_or(CondExpr::Lit { value: 0, ty: None });
    tests.fold(first, |a, b| CondExpr::Op { op: "||".to_string(), args: vec![a, b], ty: None })
}
