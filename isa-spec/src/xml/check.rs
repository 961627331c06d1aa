//! Checks of a whole document: references between elements, uniqueness, and the limits of the tables.

use super::element::low_bits;
use super::model::*;
use crate::diag::{Diagnostic, nearest};
use crate::source::Span;
use crate::tables::MAX_FIELDS;
use std::collections::{BTreeMap, BTreeSet};

/// Appends a diagnostic for each error that concerns the whole document.
pub(super) fn check(spec: &Spec, errors: &mut Vec<Diagnostic>) {
    unique("encoding", spec.encodings.iter().map(|e| (e.name.as_str(), e.span)), errors);
    unique("instruction", spec.instructions.iter().map(|i| (i.name.as_str(), i.span)), errors);
    unique("data format", spec.formats.iter().map(|f| (f.name.as_str(), f.span)), errors);
    unique("operand type", spec.operand_types.iter().map(|t| (t.name.as_str(), t.span)), errors);
    for encoding in &spec.encodings {
        unique("field", encoding.fields.iter().map(|f| (f.name.as_str(), f.span)), errors);
        unique("condition", encoding.conditions.iter().map(|c| (c.name.as_str(), encoding.span)), errors);
        for id in &encoding.identifiers {
            if id & !encoding.mask != 0 {
                let message = format!("an identifier of {} has bits outside the mask", encoding.name);
                errors.push(Diagnostic::error(encoding.span, message).label(format!("{id:b}")));
            }
        }
    }
    limits(spec, errors);
    references(spec, errors);
}

fn unique<'a>(what: &str, names: impl Iterator<Item = (&'a str, Span)>, errors: &mut Vec<Diagnostic>) {
    let mut seen: BTreeMap<&str, Span> = BTreeMap::new();
    for (name, span) in names {
        if let Some(first) = seen.insert(name, span) {
            errors
                .push(Diagnostic::error(span, format!("duplicate {what} {name}")).also(first, "first here"));
        }
    }
}

/// Checks the limits that narrow table indices and the fixed number of field values per instruction impose.
fn limits(spec: &Spec, errors: &mut Vec<Diagnostic>) {
    for encoding in spec.encodings.iter().filter(|e| e.fields.len() > MAX_FIELDS) {
        let message =
            format!("{} has {} fields; at most {MAX_FIELDS} fit", encoding.name, encoding.fields.len());
        errors.push(Diagnostic::error(encoding.span, message));
    }
    let entries: usize = spec.instructions.iter().map(|i| i.encodings.len()).sum();
    let conditions = spec.encodings.iter().map(|e| e.conditions.len()).max().unwrap_or(0);
    for (what, count, limit) in [
        ("encodings", spec.encodings.len(), 256),
        ("conditions in one encoding", conditions, 256),
        ("data formats", spec.formats.len(), 256),
        ("operand types", spec.operand_types.len(), 256),
        ("instructions", spec.instructions.len(), 65536),
        // One less than the type's range: `EntryId::MAX` means none.
        ("instruction encodings", entries, 65535),
    ] {
        if count > limit {
            let span = spec.encodings.first().map_or(Span::default(), |e| e.span);
            errors.push(Diagnostic::error(span, format!("{count} {what}; at most {limit} fit")));
        }
    }
}

fn references(spec: &Spec, errors: &mut Vec<Diagnostic>) {
    let encodings: BTreeMap<&str, &Encoding> = spec.encodings.iter().map(|e| (e.name.as_str(), e)).collect();
    let formats: BTreeSet<&str> = spec.formats.iter().map(|f| f.name.as_str()).collect();
    let types: BTreeSet<&str> = spec.operand_types.iter().map(|t| t.name.as_str()).collect();
    let mut opcodes: BTreeMap<(&str, &str, u32), (&str, Span)> = BTreeMap::new();
    for inst in &spec.instructions {
        let context = format!("(instruction {})", inst.name);
        for enc in &inst.encodings {
            let Some(encoding) = encodings.get(enc.encoding.as_str()) else {
                let known = encodings.keys().copied();
                errors.push(dangling(enc.span, "encoding", &enc.encoding, known, &context));
                continue;
            };
            // An encoding without conditions has one form, under any condition name.
            if !encoding.conditions.is_empty() && encoding.conditions.iter().all(|c| c.name != enc.condition)
            {
                let known = encoding.conditions.iter().map(|c| c.name.as_str());
                errors.push(dangling(enc.span, "condition", &enc.condition, known, &context));
            }
            let key = (enc.encoding.as_str(), enc.condition.as_str(), enc.opcode);
            if let Some((other, first)) = opcodes.insert(key, (&inst.name, enc.span)) {
                let message = format!(
                    "opcode {} of {} under {} is used by {other} and {}",
                    enc.opcode, enc.encoding, enc.condition, inst.name
                );
                errors.push(Diagnostic::error(enc.span, message).also(first, format!("{other} here")));
            }
            if enc.opcode as u128 > opcode_limit(encoding) {
                let message =
                    format!("opcode {} does not fit the opcode field of {}", enc.opcode, enc.encoding);
                errors.push(Diagnostic::error(enc.span, format!("{message} {context}")));
            }
            for operand in &enc.operands {
                if let Some(field) = &operand.field
                    && encoding.fields.iter().all(|f| f.name != *field)
                {
                    let known = encoding.fields.iter().map(|f| f.name.as_str());
                    errors.push(dangling(operand.span, "field", field, known, &context));
                }
                if !formats.contains(operand.format.as_str()) {
                    let known = formats.iter().copied();
                    errors.push(dangling(operand.span, "data format", &operand.format, known, &context));
                }
                if !types.contains(operand.ty.as_str()) {
                    let known = types.iter().copied();
                    errors.push(dangling(operand.span, "operand type", &operand.ty, known, &context));
                }
            }
        }
    }
}

/// Returns the largest opcode that fits an encoding. VOPD has two opcode fields; an operation that exists
/// only in its second half uses the wider one.
fn opcode_limit(encoding: &Encoding) -> u128 {
    let width = |f: &Field| f.ranges.iter().map(|r| r.bit_count).sum::<u16>();
    let widest =
        encoding.fields.iter().filter(|f| ["OP", "OPX", "OPY"].contains(&f.name.as_str())).map(width);
    // An encoding of one instruction has no opcode field (EXP).
    widest.max().map_or(u128::MAX, low_bits)
}

fn dangling<'a>(
    span: Span,
    what: &str,
    name: &str,
    known: impl Iterator<Item = &'a str>,
    context: &str,
) -> Diagnostic {
    let error = Diagnostic::error(span, format!("unknown {what} `{name}` {context}"));
    match nearest(name, known) {
        Some(near) => error.help(format!("did you mean `{near}`?")),
        None => error,
    }
}
