//! Overlays: additions and corrections to an architecture's XML, each with a reason (docs/isa-xml.md).
//!
//! ```xml
//! <Overlay Architectures="rdna3 rdna3.5">
//!   <Instructions Reason="why"> <Instruction>…</Instruction> </Instructions>
//!   <Encodings Reason="why"> <Encoding>…</Encoding> </Encodings>
//!   <RemoveInstruction Name="V_X" Reason="why"/>
//!   <IgnoredField Encoding="ENC_X" Field="SRC2" Reason="why"/>
//!   <Operands Of="V_X*" Output="true" Reason="why">…</Operands>
//! </Overlay>
//! ```
//!
//! The lists contain elements as in the base document. An element replaces the existing one of the same name
//! or is added; `<Instruction Extend="true">` adds its encodings to the existing instruction of that name.
//! For elements that change operands, names and forms of existing instructions, see [`amend`].

use super::amend;
use super::check::check;
use super::document::parse;
use super::element::{elements, low_bits};
use super::load::Loader;
use super::model::*;
use crate::diag::{Diagnostic, nearest};
use crate::source::{FileId, SourceMap};
use roxmltree::Node;

/// Applies the overlay in `file` to `spec` if the overlay names the architecture `arch` (a short name).
/// Returns whether it was applied.
pub fn apply_overlay(
    sources: &SourceMap,
    file: FileId,
    arch: &str,
    spec: &mut Spec,
) -> Result<bool, Vec<Diagnostic>> {
    let doc = parse(&sources.file(file).text, file).map_err(|e| vec![e])?;
    let root = doc.root_element();
    let mut loader = Loader::new(file);
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
    for list in root.children().filter(Node::is_element) {
        apply_list(&mut loader, list, spec);
    }
    if loader.errors.is_empty() {
        check(spec, &mut loader.errors);
    }
    if loader.errors.is_empty() { Ok(true) } else { Err(loader.errors) }
}

fn apply_list(loader: &mut Loader, list: Node<'_, '_>, spec: &mut Spec) {
    let tag = list.tag_name().name();
    if list.attribute("Reason").is_none_or(|r| r.trim().is_empty()) {
        loader.error(list, format!("`{tag}` lacks a `Reason`"));
    }
    match tag {
        "Encodings" => {
            for new in elements(list, "Encoding").filter_map(|n| loader.encoding(n)) {
                replace_or_push(&mut spec.encodings, new, |e| &e.name);
            }
        }
        "DataFormats" => {
            for new in elements(list, "DataFormat").filter_map(|n| loader.format(n)) {
                replace_or_push(&mut spec.formats, new, |f| &f.name);
            }
        }
        "OperandTypes" => {
            for new in elements(list, "OperandType").filter_map(|n| loader.operand_type(n)) {
                replace_or_push(&mut spec.operand_types, new, |t| &t.name);
            }
        }
        "Instructions" => {
            for node in elements(list, "Instruction") {
                let extend = loader.flag_attribute(node, "Extend").unwrap_or(false);
                let Some(new) = loader.instruction(node) else { continue };
                for form in &new.encodings {
                    add_identifiers(&mut spec.encodings, form);
                }
                if !extend {
                    replace_or_push(&mut spec.instructions, new, |i| &i.name);
                    continue;
                }
                match spec.instructions.iter_mut().find(|i| i.name == new.name) {
                    Some(old) => old.encodings.extend(new.encodings),
                    None => unknown_instruction(loader, node, &new.name, spec),
                }
            }
        }
        "RemoveInstruction" => {
            let name = list.attribute("Name").unwrap_or("");
            match spec.instructions.iter().position(|i| i.name == name) {
                Some(at) => drop(spec.instructions.remove(at)),
                None => unknown_instruction(loader, list, name, spec),
            }
        }
        "IgnoredField" => ignore_field(loader, list, spec),
        tag if amend::ELEMENTS.contains(&tag) => amend::amend(loader, list, spec),
        other => {
            loader.error(list, format!("unexpected element `{other}` in an overlay"));
            let lists = "`Instructions`, `Encodings`, `DataFormats`, `OperandTypes`, `RemoveInstruction`, `IgnoredField`";
            loader.help(format!("expected {lists}, `{}`", amend::ELEMENTS.join("`, `")));
        }
    }
}

/// Makes decoders ignore a field whose value an encoding's identifiers specify.
fn ignore_field(loader: &mut Loader, node: Node<'_, '_>, spec: &mut Spec) {
    let attribute = |name| node.attribute(name).unwrap_or("");
    let (encoding, field) = (attribute("Encoding"), attribute("Field"));
    let Some(found) = spec.encodings.iter_mut().find(|e| e.name == encoding) else {
        return loader.error(node, format!("unknown encoding `{encoding}`"));
    };
    let Some(field) = found.fields.iter().find(|f| f.name == field) else {
        return loader.error(node, format!("{encoding} has no field `{field}`"));
    };
    let bits = field.ranges.iter().fold(0, |bits, r| bits | low_bits(r.bit_count) << r.bit_offset);
    if found.mask & bits == 0 {
        return loader.error(node, "this `IgnoredField` changes nothing");
    }
    found.ignored |= found.mask & bits;
}

/// Replaces the item of the same name in place, or appends the new one.
fn replace_or_push<T>(list: &mut Vec<T>, new: T, name: impl Fn(&T) -> &String) {
    match list.iter().position(|old| name(old) == name(&new)) {
        Some(at) => list[at] = new,
        None => list.push(new),
    }
}

fn unknown_instruction(loader: &mut Loader, node: Node<'_, '_>, name: &str, spec: &Spec) {
    loader.error(node, format!("unknown instruction `{name}`"));
    if let Some(near) = nearest(name, spec.instructions.iter().map(|i| i.name.as_str())) {
        loader.help(format!("did you mean `{near}`?"));
    }
}

/// Adds the identifier of a new form's opcode to its encoding: the base document lists only identifiers of
/// its own instructions.
pub(super) fn add_identifiers(encodings: &mut [Encoding], form: &InstructionEncoding) {
    let Some(enc) = encodings.iter_mut().find(|e| e.name == form.encoding) else { return };
    let Some(op) = enc.fields.iter().find(|f| f.name == "OP") else { return };
    let Some(&sample) = enc.identifiers.first() else { return };
    let (mut identifier, mut at) = (sample, 0);
    for range in &op.ranges {
        let mask = low_bits(range.bit_count);
        identifier &= !(mask << range.bit_offset);
        identifier |= ((form.opcode as u128 >> at) & mask) << range.bit_offset;
        at += range.bit_count;
    }
    let identifier = identifier & enc.mask;
    if !enc.identifiers.contains(&identifier) {
        enc.identifiers.push(identifier);
    }
}
