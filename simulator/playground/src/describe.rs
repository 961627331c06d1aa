//! Instructions: what an editor completes, and what it shows of one.

use serde_json::{Value, json};
use std::collections::BTreeMap;
use wavesim_isa::arch::Arch;
use wavesim_isa::operand;
use wavesim_machine::isa;

/// Names of all instructions with their functional group and whether they have semantics.
pub fn names(arch: Arch) -> Result<Value, String> {
    let list: Vec<Value> = arch
        .table()
        .instructions
        .iter()
        .enumerate()
        .map(|(at, inst)| json!([inst.name.to_lowercase(), inst.group, operation(arch, at).is_some()]))
        .collect();
    Ok(json!({ "instructions": list }))
}

fn operation(arch: Arch, at: usize) -> Option<&'static isa::OpInfo> {
    isa::OPERATIONS.get(isa::BY_ARCH[arch as usize][at] as usize)
}

/// One instruction: its group, encodings with operands and fields, and pseudocode.
pub fn instruction(arch: Arch, name: &str) -> Result<Value, String> {
    let table = arch.table();
    let upper = name.to_uppercase();
    let suffixes = ["_E32", "_E64", "_DPP", "_DPP8", "_DPP16", "_E64_DPP"];
    let plain = suffixes.iter().filter_map(|s| upper.strip_suffix(s)).min_by_key(|rest| rest.len());
    let found = table.instruction(&upper).or_else(|| table.instruction(plain?));
    let inst = found.ok_or_else(|| format!("no instruction of {} is called `{name}`", arch.name()))?;
    let at = table.instructions.iter().position(|i| std::ptr::eq(i, inst)).unwrap_or(0);
    // Forms with the same operands are shown once.
    let mut forms: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for entry in table.entries_of(inst) {
        let encoding = &table.encodings[entry.enc as usize];
        let operands: Vec<String> = table.signatures[entry.sig as usize]
            .iter()
            .map(|o| {
                let access = match (o.input, o.output) {
                    (true, true) => "inout",
                    (false, true) => "out",
                    _ => "in",
                };
                let implicit = if o.implicit { ", implicit" } else { "" };
                let field = o.field.map_or("fixed", |f| encoding.fields[f as usize].name);
                let (ty, format) =
                    (table.operand_types[o.ty as usize].name, table.formats[o.format as usize].name);
                format!(
                    "{:?} ({access}{implicit}): {} {ty}, {format}, {} bits",
                    o.role,
                    field.to_lowercase(),
                    o.size_bits
                )
            })
            .collect();
        let heading = format!("{}, opcode {}, {} bits", encoding.name, entry.opcode, encoding.bits);
        forms.entry(operands.join("\n")).or_default().push(heading);
    }
    let forms: Vec<Value> = forms
        .into_iter()
        .map(|(operands, encodings)| json!({"operands": operands.lines().collect::<Vec<_>>(), "encodings": encodings}))
        .collect();
    let info = operation(arch, at);
    Ok(json!({
        "name": inst.name.to_lowercase(),
        "group": inst.group,
        "aliases": inst.aliases.iter().map(|a| a.to_lowercase()).collect::<Vec<_>>(),
        "syntax": syntax(arch, inst.entries.0),
        "forms": forms,
        "pseudocode": info.map(|i| unindented(i.text)),
        "place": info.map(|i| format!("{}:{}", i.file, i.line)),
        "unsupported": match info {
            Some(_) => None,
            None => isa::unsupported_reason(inst.name),
        },
    }))
}

/// The explicit operands of an entry in the order of assembly, by the names that pseudocode has for them.
fn syntax(arch: Arch, entry: u16) -> String {
    let plan = operand::plan(arch, entry as _);
    let names = plan.operands.iter().filter(|o| o.field.is_some());
    names.map(|o| format!("{:?}", o.role).to_lowercase()).collect::<Vec<_>>().join(", ")
}

/// A body's lines without the indentation they share and without blank lines around.
fn unindented(text: &str) -> String {
    let lines: Vec<&str> = text.trim_end().lines().skip_while(|l| l.trim().is_empty()).collect();
    let indent = |l: &&str| l.len() - l.trim_start().len();
    let shared = lines.iter().filter(|l| !l.trim().is_empty()).map(indent).min().unwrap_or(0);
    lines.into_iter().map(|l| l.get(shared..).unwrap_or("")).collect::<Vec<_>>().join("\n")
}
