//! Overlays: additions and corrections to an architecture's XML, each with its reason (docs/isa-xml.md).
//!
//! ```xml
//! <Overlay Architectures="rdna3 rdna3.5">
//!   <Instructions Reason="why"> <Instruction>…</Instruction> </Instructions>
//!   <Encodings Reason="why"> <Encoding>…</Encoding> </Encodings>
//! </Overlay>
//! ```
//!
//! An instruction or encoding whose name exists replaces the old one; others are added.

use super::load::{Loader, elements, parse};
use super::model::Spec;
use crate::diag::Diagnostic;
use crate::source::{FileId, SourceMap, Span};

/// Applies the overlay in `file` to `spec` if it names architecture `arch` (its short name). Returns whether it did.
pub fn apply_overlay(
    sources: &SourceMap,
    file: FileId,
    arch: &str,
    spec: &mut Spec,
) -> Result<bool, Vec<Diagnostic>> {
    let doc = parse(&sources.file(file).text, file).map_err(|e| vec![e])?;
    let root = doc.root_element();
    let mut loader = Loader { file, errors: Vec::new(), context: String::new() };
    let span = loader.span(root);
    if root.tag_name().name() != "Overlay" {
        return Err(vec![Diagnostic::error(span, "the root element of an overlay must be `Overlay`")]);
    }
    let Some(archs) = root.attribute("Architectures") else {
        return Err(vec![
            Diagnostic::error(span, "`Overlay` lacks the attribute `Architectures`")
                .help("for example Architectures=\"rdna3 rdna3.5\""),
        ]);
    };
    if !archs.split([' ', ',']).any(|a| a == arch) {
        return Ok(false);
    }
    for list in root.children().filter(|n| n.is_element()) {
        if list.attribute("Reason").is_none_or(|r| r.trim().is_empty()) {
            loader.errors.push(Diagnostic::error(
                loader.span(list),
                format!("`{}` lacks a `Reason`", list.tag_name().name()),
            ));
        }
        match list.tag_name().name() {
            "Instructions" => {
                for node in elements(list, "Instruction") {
                    if let Some(inst) = loader.instruction(node) {
                        merge_encodings(spec, &inst);
                        match spec.instructions.iter().position(|i| i.name == inst.name) {
                            Some(at) => spec.instructions[at] = inst,
                            None => spec.instructions.push(inst),
                        }
                    }
                }
            }
            "Encodings" => {
                for node in elements(list, "Encoding") {
                    if let Some(enc) = loader.encoding(node) {
                        match spec.encodings.iter().position(|e| e.name == enc.name) {
                            Some(at) => spec.encodings[at] = enc,
                            None => spec.encodings.push(enc),
                        }
                    }
                }
            }
            "RemoveInstruction" => {
                let name = list.attribute("Name").unwrap_or("");
                spec.instructions.retain(|i| i.name != name);
            }
            other => {
                let span: Span = loader.span(list);
                loader.errors.push(
                    Diagnostic::error(span, format!("unexpected element `{other}` in an overlay"))
                        .help("expected `Instructions`, `Encodings` or `RemoveInstruction`"),
                );
            }
        }
    }
    if loader.errors.is_empty() {
        super::load::check(spec, &mut loader.errors);
    }
    if loader.errors.is_empty() { Ok(true) } else { Err(loader.errors) }
}

/// A new instruction's opcode adds its identifier to each encoding it uses: the base XML lists only its own.
fn merge_encodings(spec: &mut Spec, inst: &super::model::Instruction) {
    for ie in &inst.encodings {
        let Some(enc) = spec.encodings.iter_mut().find(|e| e.name == ie.encoding) else { continue };
        let Some(op) = enc.fields.iter().find(|f| f.name == "OP") else { continue };
        let Some(&sample) = enc.identifiers.first() else { continue };
        let (mut identifier, mut at) = (sample, 0);
        for range in &op.ranges {
            let mask = (1u128 << range.bit_count) - 1;
            identifier &= !(mask << range.bit_offset);
            identifier |= ((ie.opcode as u128 >> at) & mask) << range.bit_offset;
            at += range.bit_count;
        }
        if !enc.identifiers.contains(&identifier) {
            enc.identifiers.push(identifier);
        }
    }
}
