//! Descriptions of instructions for the completion and documentation of an editor.

use serde::Serialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use wavesim_asm::describe;
use wavesim_isa::arch::Arch;
use wavesim_isa::operand;
use wavesim_machine::isa;

/// Returns the architectures of kernels, for a menu.
pub fn architectures() -> Value {
    let row =
        |arch: Arch| json!({ "name": arch.name(), "title": arch.facts().title, "waves": arch.wave_sizes() });
    Arch::AMD.into_iter().map(row).collect()
}

/// Returns the names of all instructions, each with its functional group and whether it has semantics; also
/// modifiers, wait counters, and encoding suffixes, longest first.
pub fn names(arch: Arch) -> Result<Value, String> {
    let list: Vec<Value> = arch
        .table()
        .instructions
        .iter()
        .enumerate()
        .map(|(at, inst)| json!([inst.name.to_lowercase(), inst.group(), operation(arch, at).is_some()]))
        .collect();
    Ok(json!({
        "instructions": list,
        "modifiers": describe::modifiers(arch),
        "counters": describe::wait_counters(arch),
        "suffixes": describe::SUFFIXES,
    }))
}

/// Returns the operation of an instruction, given by its index in the table, if it has semantics.
pub fn operation(arch: Arch, index: usize) -> Option<u16> {
    let operation = isa::BY_ARCH[arch as usize][index];
    ((operation as usize) < isa::OPERATIONS.len()).then_some(operation)
}

/// The description of an instruction.
#[derive(Debug, Clone, Serialize)]
pub struct Description {
    /// The name in lower case.
    pub name: String,
    /// The functional group (XML: `FunctionalGroup`).
    pub group: &'static str,
    /// Alternative names.
    pub aliases: Vec<String>,
    /// The explicit operands in assembly order, by their names in pseudocode.
    pub syntax: String,
    /// The encodings. Those with the same operands and fields are one form; the shortest come first.
    pub forms: Vec<Form>,
    /// The semantics, if there are any.
    pub pseudocode: Option<String>,
    /// File and line of the semantics.
    pub place: Option<String>,
    /// The reason why the instruction has no semantics.
    pub unsupported: Option<&'static str>,
}

/// Encodings of an instruction with the same operands and fields.
#[derive(Debug, Clone, Serialize)]
pub struct Form {
    /// A line about each operand.
    pub operands: Vec<String>,
    /// The fields with their bits.
    pub fields: String,
    /// Name, opcode and size of each encoding.
    pub encodings: Vec<String>,
}

/// Returns the description of an instruction: its group, encodings with operands and fields, and pseudocode.
///
/// # Errors
/// The architecture has no such instruction; the message suggests a similar one.
pub fn instruction(arch: Arch, name: &str) -> Result<Description, String> {
    let (_, at) = describe::find(&[arch], name)?[0];
    let inst = &arch.table().instructions[at];
    let mut forms: BTreeMap<(u16, Vec<String>, String), Vec<String>> = BTreeMap::new();
    for form in describe::instruction_forms(arch, at) {
        let operands = form.operands.iter().map(|o| {
            let (role, place) = (format!("{:?}", o.role), o.place().to_lowercase());
            let implicit = if o.implicit { ", implicit" } else { "" };
            format!("{role} ({}{implicit}): {place}, {}, {}, {} bits", o.access, o.ty, o.format, o.bits)
        });
        let fields = form.fields.iter().map(|(field, value)| {
            let value = value.map_or(String::new(), |v| format!(" = 0x{v:x}"));
            format!("{}{}{value}", field.name.to_lowercase(), describe::bits_text(field))
        });
        let heading = format!("{}, opcode {}, {} bits", form.encoding, form.opcode, form.bits);
        forms
            .entry((form.bits, operands.collect(), fields.collect::<Vec<_>>().join(", ")))
            .or_default()
            .push(heading);
    }
    let form = |((_, operands, fields), encodings)| Form { operands, fields, encodings };
    let operation = operation(arch, at);
    let info = operation.map(|number| &isa::OPERATIONS[number as usize]);
    Ok(Description {
        name: inst.name.to_lowercase(),
        group: inst.group(),
        aliases: inst.aliases().iter().map(|a| a.to_lowercase()).collect(),
        syntax: syntax(arch, inst.entries.0),
        forms: forms.into_iter().map(form).collect(),
        pseudocode: operation.map(|number| describe::unindented(isa::text(number)).join("\n")),
        place: info.map(|i| format!("{}:{}", i.file, i.line)),
        unsupported: match info {
            Some(_) => None,
            None => isa::unsupported_reason(inst.name),
        },
    })
}

/// Returns the explicit operands of an entry in assembly order, by their names in pseudocode.
fn syntax(arch: Arch, entry: u16) -> String {
    let plan = operand::binding(arch, entry as _);
    let names = plan.operands.iter().filter(|o| o.field.is_some());
    names.map(|o| format!("{:?}", o.role).to_lowercase()).collect::<Vec<_>>().join(", ")
}
