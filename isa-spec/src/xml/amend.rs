//! Overlay elements that change existing elements of the base document, selected by name patterns:
//!
//! ```xml
//! <Operands Of="V_CMP*" Output="true" Format="FMT_NUM_B64" Reason="why">
//!   <DataFormatName>FMT_NUM_M64</DataFormatName>
//! </Operands>
//! <Alias Of="V_X" Name="V_X_B32" Reason="why"/>
//! <AddEncoding Of="V_X" Encoding="VOP1_VOP_DPP" Condition="has_dpp" From="ENC_VOP1" Reason="why"/>
//! <RemoveEncodings Of="V_X" Encodings="*SDWA*" Reason="why"/>
//! ```
//!
//! `Of` lists patterns of instruction names, in which `*` matches any text. A pattern that matches nothing
//! and an element that changes nothing are errors: the element's target no longer exists.

use super::element::{child, text_of};
use super::load::Loader;
use super::model::*;
use super::overlay::add_identifiers;
use crate::diag::nearest;
use crate::pattern::matches;
use roxmltree::Node;

/// Elements that [`amend`] applies.
pub(super) const ELEMENTS: [&str; 4] = ["Operands", "Alias", "AddEncoding", "RemoveEncodings"];

/// Applies an element whose name is in [`ELEMENTS`].
pub(super) fn amend(loader: &mut Loader, node: Node<'_, '_>, spec: &mut Spec) {
    let tag = node.tag_name().name();
    let Some(patterns) = patterns(loader, node, spec) else { return };
    let errors = loader.errors.len();
    let chosen = |i: &Instruction| patterns.iter().any(|p| matches(p, &i.name));
    let instructions = spec.instructions.iter_mut().filter(|i| chosen(i));
    let changed = match tag {
        "Operands" => operands(loader, node, instructions),
        "Alias" => alias(loader, node, instructions),
        "AddEncoding" => add_encoding(loader, node, &mut spec.encodings, instructions),
        _ => remove_encodings(loader, node, instructions),
    };
    if tag == "RemoveEncodings" {
        spec.instructions.retain(|i| !i.encodings.is_empty());
    }
    if changed == 0 && loader.errors.len() == errors {
        loader.error(node, format!("this `{tag}` changes nothing"));
        loader.help("remove it if the base document has been corrected".to_string());
    }
}

/// Returns the patterns of `Of`; reports a pattern that matches no instruction.
fn patterns(loader: &mut Loader, node: Node<'_, '_>, spec: &Spec) -> Option<Vec<String>> {
    let tag = node.tag_name().name();
    let Some(of) = node.attribute("Of") else {
        loader.error(
            node,
            format!(
                "`{tag}` lacks the attribute `Of`: names of instructions, in which `*` stands for any text"
            ),
        );
        return None;
    };
    let patterns: Vec<String> = of.split_whitespace().map(str::to_string).collect();
    for pattern in &patterns {
        if !spec.instructions.iter().any(|i| matches(pattern, &i.name)) {
            loader.error(node, format!("unknown instruction `{pattern}`"));
            if let Some(near) = nearest(pattern, spec.instructions.iter().map(|i| i.name.as_str())) {
                loader.help(format!("did you mean `{near}`?"));
            }
            return None;
        }
    }
    Some(patterns)
}

/// Changes format, type, size or `Preserves` of the operands that match the direction, format, type and size
/// given as attributes. Returns how many operands changed.
fn operands<'s>(
    loader: &mut Loader,
    node: Node<'_, '_>,
    instructions: impl Iterator<Item = &'s mut Instruction>,
) -> usize {
    let output = loader.flag_attribute(node, "Output");
    let format = node.attribute("Format");
    let ty = node.attribute("Type");
    let below = loader.attribute_number(node, "SizeBelow");
    let new_format = child(node, "DataFormatName").map(text_of);
    let new_type = child(node, "OperandType").map(text_of);
    let new_size =
        child(node, "OperandSize").and_then(|_| loader.at_most(node, "OperandSize", u16::MAX as u64));
    let preserves = loader.flag_attribute(node, "Preserves");
    let mut changed = 0;
    for operand in instructions.flat_map(|i| &mut i.encodings).flat_map(|e| &mut e.operands) {
        let chosen = output.is_none_or(|o| o == operand.output)
            && format.is_none_or(|f| f == operand.format)
            && ty.is_none_or(|t| t == operand.ty)
            && below.is_none_or(|size| (operand.size as u64) < size);
        if !chosen {
            continue;
        }
        let old = operand.clone();
        if let Some(format) = &new_format {
            operand.format.clone_from(format);
        }
        if let Some(ty) = &new_type {
            operand.ty.clone_from(ty);
        }
        if let Some(size) = new_size {
            operand.size = size as u16;
        }
        if let Some(preserves) = preserves {
            operand.preserves = preserves;
        }
        changed += (*operand != old) as usize;
    }
    changed
}

/// Adds an alias under which the assembler accepts the instruction.
fn alias<'s>(
    loader: &mut Loader,
    node: Node<'_, '_>,
    instructions: impl Iterator<Item = &'s mut Instruction>,
) -> usize {
    let Some(name) = node.attribute("Name") else {
        loader.error(node, "`Alias` lacks the attribute `Name`");
        return 0;
    };
    let mut changed = 0;
    for inst in instructions {
        if changed > 0 {
            loader.error(node, "`Of` names more than one instruction");
            return changed;
        }
        inst.aliases.push(name.to_string());
        changed += 1;
    }
    changed
}

/// The field of the first source, and its field in the encodings that move lanes (DPP) or select parts of
/// registers (SDWA), where it is a vector register (ISA manuals, *DPP* and *SDWA*).
const FIRST_SOURCE: [&str; 2] = ["SRC0", "VSRC0"];
/// The operand type of vector registers.
const VECTOR_REGISTER: &str = "OPR_VGPR";

/// Adds a form in `Encoding`, with the opcode and the operands of the form in the encoding `From`; the first
/// source becomes the vector register VSRC0. Returns how many forms were added.
fn add_encoding<'s>(
    loader: &mut Loader,
    node: Node<'_, '_>,
    encodings: &mut [Encoding],
    instructions: impl Iterator<Item = &'s mut Instruction>,
) -> usize {
    let mut attribute = |name: &str| {
        let found = node.attribute(name).map(str::to_string);
        if found.is_none() {
            loader.error(node, format!("`AddEncoding` lacks the attribute `{name}`"));
        }
        found
    };
    let (Some(encoding), Some(condition), Some(from)) =
        (attribute("Encoding"), attribute("Condition"), attribute("From"))
    else {
        return 0;
    };
    let mut added = 0;
    for inst in instructions.filter(|i| i.encodings.iter().all(|e| e.encoding != encoding)) {
        let Some(base) = inst.encodings.iter().find(|e| e.encoding == from) else {
            loader.error(node, format!("{} has no form in the encoding `{from}`", inst.name));
            continue;
        };
        let mut form = base.clone();
        (form.encoding, form.condition) = (encoding.clone(), condition.clone());
        for operand in form.operands.iter_mut().filter(|o| o.field.as_deref() == Some(FIRST_SOURCE[0])) {
            operand.field = Some(FIRST_SOURCE[1].to_string());
            operand.ty = VECTOR_REGISTER.to_string();
        }
        add_identifiers(encodings, &form);
        inst.encodings.push(form);
        added += 1;
    }
    added
}

/// Removes an instruction's forms in the encodings that match a pattern.
fn remove_encodings<'s>(
    loader: &mut Loader,
    node: Node<'_, '_>,
    instructions: impl Iterator<Item = &'s mut Instruction>,
) -> usize {
    let Some(pattern) = node.attribute("Encodings") else {
        loader.error(node, "`RemoveEncodings` lacks the attribute `Encodings`");
        return 0;
    };
    let mut removed = 0;
    for inst in instructions {
        let before = inst.encodings.len();
        inst.encodings.retain(|form| !matches(pattern, &form.encoding));
        removed += before - inst.encodings.len();
    }
    removed
}
