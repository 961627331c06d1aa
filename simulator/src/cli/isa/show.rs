//! The description of an instruction: `wavesim isa show`.

use super::{operation, semantics_source};
use isa_exactness::Exactness;
use isa_spec::pcode::ir::Shape;
use isa_spec::tables::{ArchTable, Entry, Field, Instruction};
use serde_json::{Value, json};
use std::fmt::Write as _;
use wavesim_asm::describe;
use wavesim_isa::arch::Arch;
use wavesim_machine::isa;

/// Returns the description as text.
pub(super) fn show_text(found: &[(Arch, usize)]) -> String {
    let mut out = String::new();
    let first = &found[0].0.table().instructions[found[0].1];
    let _ = writeln!(out, "{}", first.name.to_lowercase());
    let names: Vec<&str> = found.iter().map(|(a, _)| a.name()).collect();
    let _ = writeln!(out, "  architectures  {}", names.join(", "));
    let _ =
        writeln!(out, "  group          {} {}", first.group(), first.subgroup().replace("NOT_ASSIGNED", ""));
    let flags = flag_names(first);
    if !flags.is_empty() {
        let _ = writeln!(out, "  flags          {}", flags.join(", "));
    }
    // Architectures with identical text are merged.
    for (part, title) in
        [(semantics_text as fn(Arch, usize) -> String, "semantics"), (forms_text, "encodings")]
    {
        let mut groups: Vec<(Vec<&str>, String)> = Vec::new();
        for &(arch, at) in found {
            let text = part(arch, at);
            match groups.iter_mut().find(|g| g.1 == text) {
                Some(group) => group.0.push(arch.name()),
                None => groups.push((vec![arch.name()], text)),
            }
        }
        for (archs, text) in groups {
            let _ = writeln!(out, "\n{title} ({})", archs.join(", "));
            out += &text;
        }
    }
    out
}

fn flag_names(inst: &Instruction) -> Vec<&'static str> {
    let f = inst.flags();
    [
        (f.branch, "branch"),
        (f.conditional_branch, "conditional branch"),
        (f.indirect_branch, "indirect branch"),
        (f.terminator, "ends the program"),
        (f.immediately_executed, "executed immediately"),
    ]
    .into_iter()
    .filter_map(|(set, name)| set.then_some(name))
    .collect()
}

fn forms_text(arch: Arch, index: usize) -> String {
    let table = arch.table();
    let inst = &table.instructions[index];
    let mut out = String::new();
    if !inst.aliases().is_empty() {
        let _ = writeln!(out, "  also called {}", inst.aliases().join(", ").to_lowercase());
    }
    for form in describe::instruction_forms(arch, index) {
        let (encoding, condition) = (form.encoding, form.condition.unwrap_or_default());
        let _ = writeln!(
            out,
            "  {encoding}  {condition}  opcode {} (0x{:x})  {} bits",
            form.opcode, form.opcode, form.bits
        );
        for o in &form.operands {
            let _ = writeln!(
                out,
                "    {:7} {:14} {:5} {} {} {} bits{}",
                format!("{:?}", o.role),
                o.place(),
                o.access,
                o.ty,
                o.format,
                o.bits,
                if o.implicit { " (implicit)" } else { "" },
            );
        }
        let fields: Vec<String> = form.fields.iter().map(field_text).collect();
        let _ = writeln!(out, "    fields: {}", fields.join(" "));
    }
    out
}

fn field_text((field, value): &(&Field, Option<u32>)) -> String {
    let value = value.map_or(String::new(), |v| format!("=0x{v:x}"));
    format!("{}{}{value}", field.name, describe::bits_text(field))
}

fn semantics_text(arch: Arch, index: usize) -> String {
    let Some(op) = operation(arch, index) else { return "  none\n".to_string() };
    let mut out = format!("  {}, {} shape\n", isa::location(op.sem.span), shape_name(op.sem.shape));
    let _ = writeln!(out, "  {}", Exactness::of(&op.sem));
    for line in describe::unindented(&op.sem.text) {
        let _ = writeln!(out, "{}", format!("    {line}").trim_end());
    }
    out
}

fn shape_name(shape: Shape) -> &'static str {
    match shape {
        Shape::Scalar => "scalar",
        Shape::Lane => "lane",
        Shape::Wave => "wave",
    }
}

/// Returns the description as a JSON value.
pub(super) fn show_json(found: &[(Arch, usize)]) -> String {
    let mut archs = serde_json::Map::new();
    for &(arch, at) in found {
        let table = arch.table();
        let inst = &table.instructions[at];
        let forms: Vec<Value> = table.entries_of(inst).iter().map(|e| form_json(table, e)).collect();
        let op = operation(arch, at);
        let semantics = op.map(|op| {
            json!({
                "place": isa::location(op.sem.span),
                "shape": shape_name(op.sem.shape),
                "exactness": Exactness::of(&op.sem).json(),
                "text": describe::unindented(&op.sem.text).join("\n"),
            })
        });
        let value = json!({
            "aliases": inst.aliases().iter().map(|a| a.to_lowercase()).collect::<Vec<_>>(),
            "group": inst.group(),
            "subgroup": inst.subgroup(),
            "flags": flag_names(inst),
            "encodings": forms,
            "semantics": semantics_source(op).name(),
            "pseudocode": semantics,
        });
        archs.insert(arch.name().to_string(), value);
    }
    let (arch, at) = found[0];
    let name = arch.table().instructions[at].name.to_lowercase();
    format!("{}\n", json!({"schema": "wavesim-isa-1", "name": name, "archs": archs}))
}

fn form_json(table: &'static ArchTable, entry: &Entry) -> Value {
    let encoding = &table.encodings[entry.enc as usize];
    let ranges = |f: &Field| -> Vec<Value> { f.ranges.iter().map(|r| json!([r.0, r.1])).collect() };
    let operands: Vec<Value> = table.signatures[entry.sig as usize]
        .iter()
        .map(|o| {
            json!({
                "field": o.field.map(|f| encoding.fields[f as usize].name),
                "role": format!("{:?}", o.role),
                "type": table.operand_types[o.ty as usize].name,
                "format": table.formats[o.format as usize].name,
                "bits": o.size_bits,
                "input": o.input,
                "output": o.output,
                "implicit": o.implicit,
            })
        })
        .collect();
    let fields: Vec<Value> = encoding
        .fields
        .iter()
        .map(|f| json!({"name": f.name, "ranges": ranges(f), "fixed": f.fixed}))
        .collect();
    json!({
        "encoding": encoding.name,
        "condition": encoding.conditions.get(entry.cond as usize).map(|c| c.name),
        "opcode": entry.opcode,
        "bits": encoding.bits,
        "operands": operands,
        "fields": fields,
    })
}
