//! Normalises facts that AMD's releases express in two ways, so that later passes see one form.
//!
//! **Literals.** A release may list a literal form once for each position of the literal (`has_lit_0`,
//! `has_lit_1`, `has_lit_0_has_lit_1`; in schema 1.2.0 `has_lit_0&has_lit_1`), with `LITERAL` in place of the source. The normal form is one entry
//! under `has_lit` with the operands of the form without literal: the source field itself encodes 255. A
//! literal that is an operand of its own (`V_FMAMK_F32`) stays. The same holds for literals of 64 bits
//! (`has_lit64_0` …, `LITERAL64`). A condition that is only a list of absent literals (`!has_lit_0&!has_lit_1`) is
//! `default`.
//!
//! **Wide fields.** The value of a field has 32 bits in an instruction. A wider one (`LITERAL64`) becomes two:
//! the low 32 bits under its name, and the others under the name with `_HI`.
//!
//! **DPP.** The source in the DPP dword (`VSRC0`) may be listed second (`V_SUBREV_F32`). The normal form
//! lists sources by number, the order of assembly and of S0, S1, S2.

use super::model::*;

/// Normalises literal and DPP forms.
pub fn normalize(spec: &mut Spec) {
    for encoding in &mut spec.encodings {
        split_wide_fields(encoding);
        name_forms_without_literal(encoding);
        LITERALS.iter().for_each(|literal| merge_literal_conditions(encoding, literal));
    }
    for inst in &mut spec.instructions {
        for form in &mut inst.encodings {
            if is_without_literal(&form.condition) {
                form.condition = "default".to_string();
            }
        }
        LITERALS.iter().for_each(|literal| merge_literal_forms(inst, &spec.encodings, literal));
        for form in &mut inst.encodings {
            sort_dpp_sources(form);
        }
    }
}

/// Splits fields of more than 32 bits.
fn split_wide_fields(encoding: &mut Encoding) {
    let mut fields = Vec::with_capacity(encoding.fields.len());
    for mut field in encoding.fields.drain(..) {
        let mut low = Vec::new();
        let mut high = Vec::new();
        let mut room = 32;
        for range in field.ranges.drain(..) {
            let kept = range.bit_count.min(room);
            room -= kept;
            if kept > 0 {
                low.push(Range { bit_count: kept, ..range });
            }
            if kept < range.bit_count {
                let (bit_count, bit_offset) = (range.bit_count - kept, range.bit_offset + kept);
                high.push(Range { bit_count, bit_offset, ..range });
            }
        }
        field.ranges = low;
        let upper = (!high.is_empty()).then(|| Field {
            name: format!("{}_HI", field.name),
            ranges: high,
            values: Vec::new(),
            ..field.clone()
        });
        fields.push(field);
        fields.extend(upper);
    }
    encoding.fields = fields;
}

/// A kind of literal.
struct Literal {
    /// The condition of the normal form.
    condition: &'static str,
    /// The suffix of the encodings.
    suffix: &'static str,
    /// The fields.
    fields: &'static [&'static str],
}

const LITERALS: [Literal; 2] = [
    Literal { condition: "has_lit", suffix: "_INST_LITERAL", fields: &["LITERAL", "SIMM32"] },
    Literal { condition: "has_lit64", suffix: "_INST_LITERAL64", fields: &["LITERAL64"] },
];

impl Literal {
    /// Returns whether a condition says that there are literals of this kind, and which.
    fn is(&self, condition: &str) -> bool {
        let own = |part: &str| part == self.condition || self.is_numbered(part);
        condition.split('&').all(own)
    }

    /// Returns whether a condition says which sources are literals.
    fn is_numbered(&self, condition: &str) -> bool {
        condition.strip_prefix(self.condition).is_some_and(|rest| rest.starts_with('_'))
    }
}

/// Returns whether a condition only says which literals are absent.
fn is_without_literal(condition: &str) -> bool {
    condition.split('&').all(|part| part.starts_with("!has_lit"))
}

/// Names the condition of a form without literals `default`. An encoding that has `default` in addition is
/// recognised without a condition.
fn name_forms_without_literal(encoding: &mut Encoding) {
    if encoding.conditions.iter().any(|c| c.name == "default") {
        return encoding.conditions.retain(|c| !is_without_literal(&c.name));
    }
    for condition in &mut encoding.conditions {
        if is_without_literal(&condition.name) {
            condition.name = "default".to_string();
        }
    }
}

/// Replaces the numbered conditions of a kind of literal by one, their disjunction.
fn merge_literal_conditions(encoding: &mut Encoding, kind: &Literal) {
    if !encoding.conditions.iter().any(|c| kind.is_numbered(&c.name)) {
        return;
    }
    let (literal, mut rest): (Vec<_>, Vec<_>) = encoding.conditions.drain(..).partition(|c| kind.is(&c.name));
    let expr = literal
        .into_iter()
        .map(|c| c.expr)
        .reduce(|a, b| Some(CondExpr::Op { op: "||".to_string(), args: vec![a?, b?], ty: None }))
        .flatten();
    rest.push(Condition { name: kind.condition.to_string(), expr });
    encoding.conditions = rest;
}

fn merge_literal_forms(inst: &mut Instruction, encodings: &[Encoding], kind: &Literal) {
    let forms = std::mem::take(&mut inst.encodings);
    for mut form in forms.iter().cloned() {
        if kind.is(&form.condition) {
            form.condition = kind.condition.to_string();
            if let Some(plain) = form_without_literal(&forms, &form, encodings, kind) {
                form.operands.clone_from(&plain.operands);
            }
            let same =
                |f: &&InstructionEncoding| f.encoding == form.encoding && f.condition == form.condition;
            if inst.encodings.iter().any(|f| same(&f)) {
                continue;
            }
        }
        inst.encodings.push(form);
    }
}

/// Returns the instruction's form without literal, if `form` differs from it only in having `LITERAL` as a
/// source.
fn form_without_literal<'a>(
    forms: &'a [InstructionEncoding],
    form: &InstructionEncoding,
    encodings: &[Encoding],
    kind: &Literal,
) -> Option<&'a InstructionEncoding> {
    let literal = |o: &Operand| o.field.as_deref().is_some_and(|field| kind.fields.contains(&field));
    if !form.operands.iter().any(literal) {
        return None;
    }
    let family = form.encoding.strip_suffix(kind.suffix)?;
    let encoding = encodings.iter().find(|e| e.name == form.encoding)?;
    forms.iter().find(|plain| {
        plain.encoding.strip_prefix("ENC_").unwrap_or(&plain.encoding) == family
            && plain.opcode == form.opcode
            && plain.operands.len() == form.operands.len()
            && plain.operands.iter().zip(&form.operands).all(|(a, b)| a.field == b.field || literal(b))
            && plain
                .operands
                .iter()
                .flat_map(|o| &o.field)
                .all(|f| encoding.fields.iter().any(|x| x.name == *f))
    })
}

fn sort_dpp_sources(form: &mut InstructionEncoding) {
    if !form.condition.starts_with("has_dpp") {
        return;
    }
    let number = |o: &Operand| o.field.as_ref().filter(|f| f.contains("SRC")).and_then(|f| f.chars().last());
    let places: Vec<usize> =
        (0..form.operands.len()).filter(|&at| number(&form.operands[at]).is_some()).collect();
    let mut sources: Vec<Operand> = places.iter().map(|&at| form.operands[at].clone()).collect();
    sources.sort_by_key(number);
    for (at, source) in places.into_iter().zip(sources) {
        let order = form.operands[at].order;
        form.operands[at] = Operand { order, ..source };
    }
}
