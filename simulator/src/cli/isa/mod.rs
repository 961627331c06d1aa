//! `wavesim isa list | show | cost | ir | rust | jit | export | equivalent | exactness | coverage`: queries the ISA
//! tables, the pseudocode and the code generated from it.
//!
//! [`run`] is the entry point. Each command has a function that returns text or JSON, so that tests need no
//! process.

mod cost;
mod coverage;
#[cfg(feature = "prove")]
pub mod equivalent;
mod exactness;
#[cfg(feature = "prove")]
mod export;
#[cfg(feature = "jit")]
mod jit;
mod show;
#[cfg(test)]
mod tests;

use super::engine::Engine;
use super::output::emit;
use super::target::Target;
use coverage::{compiled, coverage};
use isa_spec::canonical::Operation;
use isa_spec::pcode::ir::Stmt;
use isa_spec::tables::{ArchTable, Instruction};
use serde_json::json;
use show::{show_json, show_text};
#[cfg(feature = "lowering")]
use std::collections::BTreeMap;
use std::collections::BTreeSet;
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
    /// The costs of an instruction in the timing model, with the source of each number; without a name, all constants
    /// of an architecture, or of a device
    Cost {
        /// The instruction, as for `show`
        name: Option<String>,
        #[command(flatten)]
        target: Target,
        /// A device, or a file (.toml): its constants
        #[arg(long, value_name = "DEVICE", conflicts_with_all = ["arch", "mcpu", "name"])]
        device: Option<String>,
        /// JSON Lines
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
    /// How the compiled engine executes instructions: as code, or by calling their handlers, and why
    #[cfg(feature = "jit")]
    Jit {
        /// The instruction, as for `show`, or with operands: its code for this host, too
        name: Option<String>,
        #[command(flatten)]
        target: Target,
    },
    /// All instructions with their encodings, operands and typed bodies, in a form for other tools
    #[cfg(feature = "prove")]
    Export {
        /// Only these instructions
        names: Vec<String>,
        #[command(flatten)]
        target: Target,
        /// The form
        #[arg(long, default_value = "json")]
        format: export::Form,
        /// Write to this file instead of standard output
        #[arg(short, long, value_name = "FILE")]
        output: Option<std::path::PathBuf>,
    },
    /// Instructions whose results are not specified in every bit: approximations with the documented error, sums that
    /// depend on the order, and what is left to the implementation (docs/fidelity.md)
    Exactness {
        #[command(flatten)]
        target: Target,
        /// Only this class
        #[arg(long, value_name = "CLASS", value_parser = exactness::parse_class)]
        class: Option<isa_exactness::Class>,
        /// JSON Lines
        #[arg(long)]
        json: bool,
    },
    /// Other instructions, and pairs of them, that compute the same for all inputs
    #[cfg(feature = "prove")]
    Equivalent(equivalent::EquivalentArgs),
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

/// Runs a command. Returns the exit code: 0, or 2 if there is no such instruction.
pub fn run(args: &IsaArgs, out: &mut dyn Write) -> anyhow::Result<u8> {
    #[cfg(feature = "prove")]
    if let IsaCommand::Export { names, target, format, output } = &args.command {
        return export::run(&target.archs(), names, *format, output.as_deref(), out);
    }
    #[cfg(feature = "prove")]
    if let IsaCommand::Equivalent(args) = &args.command {
        return equivalent::run(args, out);
    }
    let text = match &args.command {
        IsaCommand::List { target, group, json } => list(&target.archs(), group.as_deref(), *json),
        IsaCommand::Show { name, target, json } => show(&target.archs(), name, *json),
        IsaCommand::Cost { name, target, device, json } => {
            cost::cost(&target.archs(), name.as_deref(), device.as_deref(), *json)
        }
        #[cfg(feature = "lowering")]
        IsaCommand::Ir { name, target } => {
            lowered(&target.archs(), name, |_, op| isa_lower::lower(op).to_string())
        }
        #[cfg(feature = "lowering")]
        IsaCommand::Rust { name, target, portable } => {
            let host = if *portable { isa_emit::Host::Any } else { isa_emit::Host::Avx2 };
            lowered(&target.archs(), name, |number, op| {
                isa_emit::text(isa_emit::emit(number, &isa_emit::lower(op, host), host))
            })
        }
        #[cfg(feature = "prove")]
        IsaCommand::Export { .. } | IsaCommand::Equivalent(_) => return Ok(super::OK),
        #[cfg(feature = "jit")]
        IsaCommand::Jit { name, target } => match name {
            Some(name) => jit::one(&target.archs(), name),
            None => jit::all(&target.archs()),
        },
        IsaCommand::Exactness { target, class, json } => Ok(exactness::list(&target.archs(), *class, *json)),
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

/// The source of an instruction's semantics.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum SemanticsSource {
    /// A body in the pseudocode language.
    Pseudocode,
    /// A body that only calls machine builtins (barriers, waits, messages).
    Builtin,
    None,
}

impl SemanticsSource {
    pub fn name(self) -> &'static str {
        match self {
            SemanticsSource::Pseudocode => "pseudocode",
            SemanticsSource::Builtin => "builtin",
            SemanticsSource::None => "none",
        }
    }
}

fn operation(arch: Arch, index: usize) -> Option<&'static Operation> {
    isa::number(arch, index).and_then(isa::operation)
}

fn semantics_source(operation: Option<&Operation>) -> SemanticsSource {
    match operation {
        None => SemanticsSource::None,
        Some(op) if op.sem.uses.control && op.sem.body.iter().all(|s| matches!(s, Stmt::Call { .. })) => {
            SemanticsSource::Builtin
        }
        Some(_) => SemanticsSource::Pseudocode,
    }
}

/// Lists one instruction per line. With several architectures, each line names its own.
pub fn list(archs: &[Arch], group: Option<&str>, json: bool) -> Result<String, String> {
    let groups: BTreeSet<&str> =
        archs.iter().flat_map(|a| a.table().instructions).map(|i| i.group()).collect();
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
            if group.is_some_and(|g| !g.eq_ignore_ascii_case(inst.group())) {
                continue;
            }
            let source = semantics_source(operation(arch, at)).name();
            let name = inst.name.to_lowercase();
            let encodings = encoding_names(table, inst);
            if json {
                let mut line = json!({
                    "name": name, "encodings": encodings, "group": inst.group(), "semantics": source
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
                    writeln!(out, "{name:width$}  {:12} {source:10}  {}", inst.group(), encodings.join(" "));
            }
        }
    }
    Ok(out)
}

/// Returns each encoding once, in the order of the tables.
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

/// Returns the description of an instruction, or an error if no instruction has this name.
pub fn show(archs: &[Arch], name: &str, json: bool) -> Result<String, String> {
    let found = describe::find(archs, name)?;
    Ok(if json { show_json(&found) } else { show_text(&found) })
}

/// Returns `text` of each operation of an instruction, below a line that names its architectures and its
/// pseudocode.
#[cfg(feature = "lowering")]
pub fn lowered(
    archs: &[Arch],
    name: &str,
    text: impl Fn(usize, &isa_spec::canonical::Operation) -> String,
) -> Result<String, String> {
    let mut operations: BTreeMap<u16, Vec<&str>> = BTreeMap::new();
    for (arch, at) in describe::find(archs, name)? {
        if let Some(number) = isa::number(arch, at) {
            operations.entry(number).or_default().push(arch.name());
        }
    }
    if operations.is_empty() {
        return Err(format!("`{name}` has no semantics: {}", coverage::reason(name)));
    }
    let mut out = String::new();
    for (number, archs) in operations {
        let Some(op) = isa::operation(number) else { continue };
        let _ = writeln!(out, "// {} ({})", archs.join(", "), isa::location(op.sem.span));
        let _ = writeln!(out, "{}", text(number as usize, op));
    }
    Ok(out)
}
