//! `wavesim isa list | show | ir | rust | coverage`: what the tables and the pseudocode say about instructions, and what is compiled
//! of them.
//!
//! [`run`] is the entry point; each command has a function that gives its text or JSON, so that tests need no process.

use super::engine::Engine;
use super::output::emit;
use super::target::Target;
use isa_spec::canonical::Operation;
use isa_spec::pcode::ir::{Shape, Stmt};
use isa_spec::tables::{ArchTable, Entry, Field, Instruction};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::io::Write;
use wavesim_asm::describe;
use wavesim_isa::arch::Arch;
use wavesim_machine::isa;

/// `wavesim isa …`
#[derive(Debug, clap::Args)]
pub struct IsaArgs {
    #[command(subcommand)]
    pub command: IsaCommand,
}

#[derive(Debug, clap::Subcommand)]
pub enum IsaCommand {
    /// List instructions, one per line: name, encodings, functional group, and where the semantics come from
    List {
        #[command(flatten)]
        target: Target,
        /// Only instructions of this functional group (VALU, SALU, VMEM …)
        #[arg(long)]
        group: Option<String>,
        /// JSON Lines
        #[arg(long)]
        json: bool,
    },
    /// Encodings, operands, fields and pseudocode of one instruction
    Show {
        /// The instruction, in any case; a suffix as in `v_add_f32_e64` is ignored
        name: String,
        #[command(flatten)]
        target: Target,
        #[arg(long)]
        json: bool,
    },
    /// The lane loops of one instruction: its pseudocode lowered, before it becomes Rust
    #[cfg(feature = "lowering")]
    Ir {
        /// The instruction, as for `show`
        name: String,
        #[command(flatten)]
        target: Target,
    },
    /// The handlers of one instruction, as they are compiled
    #[cfg(feature = "lowering")]
    Rust {
        /// The instruction, as for `show`
        name: String,
        #[command(flatten)]
        target: Target,
        /// The handler for any host and float mode, instead of those for hosts with AVX2
        #[arg(long)]
        portable: bool,
    },
    /// How many instructions have semantics, by architecture and functional group
    Coverage {
        #[command(flatten)]
        target: Target,
        /// How many of them this engine has code for; the interpreter has handlers for all that have semantics
        #[arg(long, value_name = "ENGINE", default_value = "interpreter")]
        engine: Engine,
        #[arg(long)]
        json: bool,
    },
}

/// Runs one command. The exit code: 0, or 2 for a name that is not an instruction.
pub fn run(args: &IsaArgs, out: &mut dyn Write) -> anyhow::Result<u8> {
    let text = match &args.command {
        IsaCommand::List { target, group, json } => list(&target.archs(), group.as_deref(), *json),
        IsaCommand::Show { name, target, json } => show(&target.archs(), name, *json),
        #[cfg(feature = "lowering")]
        IsaCommand::Ir { name, target } => lowered(&target.archs(), name, |_, handlers| handlers.to_string()),
        #[cfg(feature = "lowering")]
        IsaCommand::Rust { name, target, portable } => {
            let host = if *portable { isa_emit::Host::Any } else { isa_emit::Host::Avx2 };
            lowered(&target.archs(), name, |number, handlers| {
                isa_emit::text(isa_emit::emit(number, handlers, host))
            })
        }
        IsaCommand::Coverage { target, engine: Engine::Interpreter, json } => {
            Ok(coverage(&target.archs(), *json))
        }
        IsaCommand::Coverage { target, engine: Engine::Jit | Engine::Auto, json } => {
            compiled(&target.archs(), *json)
        }
    };
    match text {
        Ok(text) => {
            out.write_all(text.as_bytes())?;
            Ok(super::OK)
        }
        Err(message) => {
            emit(format!("error: {message}"));
            Ok(super::BAD_INPUT)
        }
    }
}

/// Where an instruction's meaning comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Meaning {
    /// A body in the pseudocode language.
    Pseudocode,
    /// A body that does nothing but call machine builtins (barriers, waits, messages).
    Builtin,
    None,
}

impl Meaning {
    pub fn name(self) -> &'static str {
        match self {
            Meaning::Pseudocode => "pseudocode",
            Meaning::Builtin => "builtin",
            Meaning::None => "none",
        }
    }
}

fn operation(arch: Arch, at: usize) -> Option<&'static Operation> {
    let set = &*isa::SEMANTICS;
    let op = (*set.by_arch.get(arch as usize)?.get(at)?)?;
    set.operations.get(op as usize)
}

fn meaning(operation: Option<&Operation>) -> Meaning {
    match operation {
        None => Meaning::None,
        Some(op) if op.sem.uses.control && op.sem.body.iter().all(|s| matches!(s, Stmt::Call { .. })) => {
            Meaning::Builtin
        }
        Some(_) => Meaning::Pseudocode,
    }
}

/// One instruction per line. With several architectures, each line says its own.
pub fn list(archs: &[Arch], group: Option<&str>, json: bool) -> Result<String, String> {
    let groups: BTreeSet<&str> = archs.iter().flat_map(|a| a.table().instructions).map(|i| i.group).collect();
    if let Some(wanted) = group
        && !groups.iter().any(|g| g.eq_ignore_ascii_case(wanted))
    {
        let known: Vec<&str> = groups.into_iter().collect();
        return Err(format!("no functional group is called `{wanted}`; they are {}", known.join(", ")));
    }
    let mut out = String::new();
    for &arch in archs {
        let table = arch.table();
        let width = table.instructions.iter().map(|i| i.name.len()).max().unwrap_or(0);
        for (at, inst) in table.instructions.iter().enumerate() {
            if group.is_some_and(|g| !g.eq_ignore_ascii_case(inst.group)) {
                continue;
            }
            let meaning = meaning(operation(arch, at)).name();
            let name = inst.name.to_lowercase();
            let encodings = encoding_names(table, inst);
            if json {
                let mut line = json!({
                    "name": name, "encodings": encodings, "group": inst.group, "semantics": meaning
                });
                if archs.len() > 1 {
                    line["arch"] = arch.name().into();
                }
                let _ = writeln!(out, "{line}");
            } else {
                if archs.len() > 1 {
                    let _ = write!(out, "{:8}", arch.name());
                }
                let _ =
                    writeln!(out, "{name:width$}  {:12} {meaning:10}  {}", inst.group, encodings.join(" "));
            }
        }
    }
    Ok(out)
}

/// Each encoding once, in the order of the tables.
fn encoding_names(table: &'static ArchTable, inst: &Instruction) -> Vec<&'static str> {
    let mut names: Vec<&str> = Vec::new();
    for entry in table.entries_of(inst) {
        let name = table.encodings[entry.enc as usize].name;
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

/// Everything about one instruction; or why there is none of that name.
pub fn show(archs: &[Arch], name: &str, json: bool) -> Result<String, String> {
    let found = describe::find(archs, name)?;
    Ok(if json { show_json(&found) } else { show_text(&found) })
}

/// What `text` says of each operation that an instruction is, under a line that names its architectures and its pseudocode.
#[cfg(feature = "lowering")]
pub fn lowered(
    archs: &[Arch],
    name: &str,
    text: impl Fn(usize, &isa_lower::ir::Handlers) -> String,
) -> Result<String, String> {
    let set = &*isa::SEMANTICS;
    let mut operations: BTreeMap<u32, Vec<&str>> = BTreeMap::new();
    for (arch, at) in describe::find(archs, name)? {
        if let Some(number) = set.by_arch[arch as usize][at] {
            operations.entry(number).or_default().push(arch.name());
        }
    }
    if operations.is_empty() {
        return Err(format!("`{name}` has no semantics: {}", reason(name)));
    }
    let mut out = String::new();
    for (number, archs) in operations {
        let op = &set.operations[number as usize];
        let _ = writeln!(out, "// {} ({})", archs.join(", "), isa::place(op.sem.span));
        let _ = writeln!(out, "{}", text(number as usize, &isa_lower::lower(op)));
    }
    Ok(out)
}

fn show_text(found: &[(Arch, usize)]) -> String {
    let mut out = String::new();
    let first = &found[0].0.table().instructions[found[0].1];
    let _ = writeln!(out, "{}", first.name.to_lowercase());
    let names: Vec<&str> = found.iter().map(|(a, _)| a.name()).collect();
    let _ = writeln!(out, "  architectures  {}", names.join(", "));
    let _ = writeln!(out, "  group          {} {}", first.group, first.subgroup.replace("NOT_ASSIGNED", ""));
    let flags = flag_names(first);
    if !flags.is_empty() {
        let _ = writeln!(out, "  flags          {}", flags.join(", "));
    }
    // Architectures that say the same are shown once.
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
    let f = inst.flags;
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

fn forms_text(arch: Arch, at: usize) -> String {
    let table = arch.table();
    let inst = &table.instructions[at];
    let mut out = String::new();
    if !inst.aliases.is_empty() {
        let _ = writeln!(out, "  also called {}", inst.aliases.join(", ").to_lowercase());
    }
    for form in describe::instruction_forms(arch, at) {
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

fn semantics_text(arch: Arch, at: usize) -> String {
    let Some(op) = operation(arch, at) else { return "  none\n".to_string() };
    let mut out = format!("  {}, {} shape\n", isa::place(op.sem.span), shape_name(op.sem.shape));
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

fn show_json(found: &[(Arch, usize)]) -> String {
    let mut archs = serde_json::Map::new();
    for &(arch, at) in found {
        let table = arch.table();
        let inst = &table.instructions[at];
        let forms: Vec<Value> = table.entries_of(inst).iter().map(|e| form_json(table, e)).collect();
        let op = operation(arch, at);
        let semantics = op.map(|op| {
            json!({
                "place": isa::place(op.sem.span),
                "shape": shape_name(op.sem.shape),
                "text": describe::unindented(&op.sem.text).join("\n"),
            })
        });
        let value = json!({
            "aliases": inst.aliases.iter().map(|a| a.to_lowercase()).collect::<Vec<_>>(),
            "group": inst.group,
            "subgroup": inst.subgroup,
            "flags": flag_names(inst),
            "encodings": forms,
            "semantics": meaning(op).name(),
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

/// Instructions of one functional group.
#[derive(Debug, Default, Clone)]
struct Count {
    total: usize,
    semantics: usize,
    missing: Vec<String>,
}

/// By architecture and functional group: how many instructions with semantics the compiled engine has code for, where their
/// operands have no modifiers.
#[cfg(feature = "jit")]
fn compiled(archs: &[Arch], json: bool) -> Result<String, String> {
    use wavesim_machine::isa::BY_ARCH;
    let (mut out, mut object) = (String::new(), serde_json::Map::new());
    for &arch in archs {
        let mut groups: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
        for (inst, number) in arch.table().instructions.iter().zip(BY_ARCH[arch as usize]) {
            if *number != u16::MAX {
                let (all, with_code) = groups.entry(inst.group).or_default();
                *all += 1;
                *with_code += wavesim_jit::is_compiled(*number) as usize;
            }
        }
        let _ = writeln!(out, "{:14} {:>9} {:>8} {:>6}", arch.name(), "semantics", "compiled", "share");
        let sum = groups.values().fold((0, 0), |sum, group| (sum.0 + group.0, sum.1 + group.1));
        for (name, (all, with_code)) in groups.iter().chain([(&"all", &sum)]) {
            let share = 100.0 * *with_code as f64 / (*all).max(1) as f64;
            let _ = writeln!(out, "  {name:12} {all:9} {with_code:8} {share:5.0}%");
        }
        out.push('\n');
        let of = |(name, (all, with_code)): (&&str, &(usize, usize))| {
            (name.to_string(), json!({ "semantics": all, "compiled": with_code }))
        };
        let groups: serde_json::Map<String, Value> = groups.iter().map(of).collect();
        object.insert(arch.name().to_string(), groups.into());
    }
    Ok(match json {
        true => format!("{}\n", json!({ "schema": "wavesim-coverage-jit-1", "archs": object })),
        false => out,
    })
}

#[cfg(not(feature = "jit"))]
fn compiled(_: &[Arch], _: bool) -> Result<String, String> {
    Err("--engine jit: this wavesim was built without the feature `jit`".to_string())
}

/// By architecture, a table of functional groups: how many instructions, how many with semantics, which without.
pub fn coverage(archs: &[Arch], json: bool) -> String {
    let counts: Vec<(Arch, BTreeMap<&str, Count>)> = archs.iter().map(|&a| (a, count(a))).collect();
    if json {
        let archs: serde_json::Map<String, Value> = counts
            .iter()
            .map(|(arch, groups)| {
                let groups: serde_json::Map<String, Value> = groups
                    .iter()
                    .map(|(name, c)| {
                        let reasons: BTreeMap<&str, &str> =
                            c.missing.iter().map(|name| (name.as_str(), reason(name))).collect();
                        let value = json!({
                            "total": c.total, "semantics": c.semantics, "missing": c.missing, "reasons": reasons
                        });
                        (name.to_string(), value)
                    })
                    .collect();
                (arch.name().to_string(), groups.into())
            })
            .collect();
        return format!("{}\n", json!({"schema": "wavesim-coverage-1", "archs": archs}));
    }
    let mut out = String::new();
    for (arch, groups) in &counts {
        let _ = writeln!(out, "{:14} {:>6} {:>9} {:>8}", arch.name(), "total", "semantics", "missing");
        let mut sum = Count::default();
        for (name, c) in groups {
            let _ = writeln!(out, "  {name:12} {:6} {:9} {:8}", c.total, c.semantics, c.missing.len());
            sum.total += c.total;
            sum.semantics += c.semantics;
        }
        let _ = writeln!(
            out,
            "  {:12} {:6} {:9} {:8}\n",
            "all",
            sum.total,
            sum.semantics,
            sum.total - sum.semantics
        );
    }
    for (arch, groups) in &counts {
        for (name, c) in groups.iter().filter(|(_, c)| !c.missing.is_empty()) {
            let _ = writeln!(out, "{} {name} without semantics:", arch.name());
            let mut by_reason: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
            for name in &c.missing {
                by_reason.entry(reason(name)).or_default().push(name);
            }
            for (reason, names) in by_reason {
                let _ = writeln!(out, "  {reason}:\n    {}", names.join(" "));
            }
        }
    }
    out
}

fn reason(name: &str) -> &'static str {
    isa::unsupported_reason(&name.to_uppercase()).unwrap_or("no reason is on record")
}

fn count(arch: Arch) -> BTreeMap<&'static str, Count> {
    let mut groups: BTreeMap<&str, Count> = BTreeMap::new();
    for (at, inst) in arch.table().instructions.iter().enumerate() {
        let group = groups.entry(inst.group).or_default();
        group.total += 1;
        match operation(arch, at) {
            Some(_) => group.semantics += 1,
            None => group.missing.push(inst.name.to_lowercase()),
        }
    }
    groups
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(clap::Parser)]
    struct Cli {
        #[command(flatten)]
        args: IsaArgs,
    }

    /// The output of `isa ARGS`, and the exit code.
    fn isa(args: &str) -> (String, u8) {
        let cli = Cli::try_parse_from(std::iter::once("isa").chain(args.split(' '))).unwrap();
        let mut out = Vec::new();
        let code = run(&cli.args, &mut out).unwrap();
        (String::from_utf8(out).unwrap(), code)
    }

    fn refused(args: &str) -> String {
        match Cli::try_parse_from(std::iter::once("isa").chain(args.split(' '))) {
            Ok(_) => panic!("accepted: {args}"),
            Err(e) => e.to_string(),
        }
    }

    #[test]
    fn list_has_one_line_an_instruction() {
        for (arch, count) in [("rdna3", 1150), ("rdna3.5", 1228), ("rdna4", 1269)] {
            assert_eq!(isa(&format!("list --arch {arch}")).0.lines().count(), count);
            let (json, _) = isa(&format!("list --arch {arch} --json"));
            for line in json.lines() {
                let value: Value = serde_json::from_str(line).unwrap();
                assert!(["pseudocode", "builtin", "none"].contains(&value["semantics"].as_str().unwrap()));
                assert!(!value["encodings"].as_array().unwrap().is_empty());
            }
            assert_eq!(json.lines().count(), count);
        }
        let (json, _) = isa("list --mcpu gfx1100 --json");
        let line = json.lines().find(|l| l.contains("\"v_add_f32\"")).unwrap();
        let value: Value = serde_json::from_str(line).unwrap();
        assert_eq!((&value["encodings"][0], &value["group"]), (&json!("ENC_VOP2"), &json!("VALU")));
        assert_eq!(value["semantics"], "pseudocode");
    }

    #[test]
    fn list_by_group() {
        let (text, _) = isa("list --arch rdna3 --group smem");
        assert_eq!(text.lines().count(), 12);
        assert_eq!(isa("list --arch rdna3 --group valve").1, 2);
    }

    #[test]
    fn show_in_any_case_and_with_suffix() {
        let (text, code) = isa("show v_cndmask_b32 --arch rdna3");
        assert_eq!(code, 0);
        for part in ["opcode 257 (0x101)", "S0      SRC0[40:32]", "Vcc     SRC2[58:50]", "D0.u32 ="] {
            assert!(text.contains(part), "no `{part}` in\n{text}");
        }
        assert_eq!(isa("show V_CNDMASK_B32_e64 --arch rdna3").0, text);
        assert_eq!(isa("show v_cndmask_b32_e64_dpp --arch rdna3").0, text);
        let (json, _) = isa("show s_load_b64 --json");
        let value: Value = serde_json::from_str(&json).unwrap();
        let archs: Vec<&String> = value["archs"].as_object().unwrap().keys().collect();
        assert_eq!(archs, ["rdna3", "rdna3.5", "rdna4"]);
        assert_eq!(value["archs"]["rdna3"]["encodings"][0]["operands"][1]["role"], "SAddr");
    }

    #[cfg(feature = "lowering")]
    #[test]
    fn lane_loops_and_handlers_are_shown() {
        let (ir, code) = isa("ir v_add_f32_e64 --arch rdna3");
        assert_eq!(code, 0);
        for part in
            ["// rdna3 (pseudocode/vector/", "V_ADD_F32 (Lane)", "d0 = add.f32(s0, s1)", "modify exec"]
        {
            assert!(ir.contains(part), "no `{part}` in\n{ir}");
        }
        let (rust, _) = isa("rust v_add_f32 --arch rdna3");
        for part in ["rt::add_f32(m, s0, s1)", "_keep(cx", "_flush_broadcast(cx", "_keep_general(cx"] {
            assert!(rust.contains(part), "no `{part}` in\n{rust}");
        }
        let (portable, _) = isa("rust v_add_f32 --arch rdna3 --portable");
        assert!(portable.contains("_base(cx") && !portable.contains("_keep(cx"), "{portable}");
        // One operation, however many architectures have it.
        assert_eq!(isa("ir v_add_f32").0.matches("V_ADD_F32").count(), 1);
        assert_eq!(isa("rust v_ad_f32").1, 2);
    }

    #[test]
    fn unknown_names() {
        assert_eq!(isa("show v_ad_f32").1, 2);
        let message = show(&Arch::ALL, "v_ad_f32", false).unwrap_err();
        assert!(message.contains("did you mean `v_add_f32`?"), "{message}");
        let message = show(&[Arch::Rdna3], "v_minimum_f32", false).unwrap_err();
        assert!(message.contains("(rdna4 has it)"), "{message}");
        assert!(refused("list --arch rdna5").contains("rdna3, rdna3.5, rdna4"));
        assert!(refused("list --mcpu gfx900").contains("gfx1200"));
        assert!(refused("list --arch rdna3 --mcpu gfx1100").contains("cannot be used with"));
    }

    #[test]
    fn coverage_counts_every_instruction() {
        let (json, _) = isa("coverage --json");
        let value: Value = serde_json::from_str(&json).unwrap();
        assert_eq!(value["schema"], "wavesim-coverage-1");
        for (arch, count) in [("rdna3", 1150), ("rdna3.5", 1228), ("rdna4", 1269)] {
            let groups = value["archs"][arch].as_object().unwrap();
            let sum: u64 = groups.values().map(|g| g["total"].as_u64().unwrap()).sum();
            assert_eq!(sum, count);
            for group in groups.values() {
                let missing = group["missing"].as_array().unwrap().len() as u64;
                assert_eq!(group["semantics"].as_u64().unwrap() + missing, group["total"].as_u64().unwrap());
            }
        }
        #[cfg(feature = "jit")]
        {
            let (text, _) = isa("coverage --arch rdna4 --engine jit");
            assert!(
                text.starts_with("rdna4") && text.contains("compiled") && text.contains("VALU"),
                "{text}"
            );
        }
        let (text, _) = isa("coverage --arch rdna4");
        assert!(text.starts_with("rdna4") && text.contains("VALU") && !text.contains("rdna3"), "{text}");
    }

    #[test]
    fn bodies_are_shown_without_their_indentation() {
        assert_eq!(
            describe::unindented("\n  if a then\n    b = 1;\n\n  endif\n"),
            ["if a then", "  b = 1;", "", "endif"]
        );
        assert_eq!(describe::unindented(" nop(); "), ["nop();"]);
        assert_eq!(describe::unindented(""), [""; 0]);
    }
}
