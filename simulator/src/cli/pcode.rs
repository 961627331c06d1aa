//! `wavesim pcode check | eval`: checks and evaluates pseudocode files without a rebuild.

use super::conform::Tally;
use super::output::emit;
use super::{FAILED, OK, input_name};
use anyhow::bail;
use isa_spec::diag::{self, Diagnostic};
use isa_spec::pcode::ir::{Semantics, Shape};
use isa_spec::report::{self, Report};
use isa_spec::source::{FileId, SourceMap};
use serde_json::json;
use std::collections::BTreeMap;
use std::io::Write;
use std::path::PathBuf;
use wavesim_asm::describe;
use wavesim_conform::{self as conform, Engine};
use wavesim_files as files;
use wavesim_isa::arch::Arch;
use wavesim_machine::isa;

/// Check pseudocode files, or run them on conformance vectors
#[derive(Debug, clap::Args)]
pub struct PcodeArgs {
    #[command(subcommand)]
    pub command: PcodeCommand,
}

#[derive(Debug, clap::Subcommand)]
pub enum PcodeCommand {
    /// Parse and type-check every instruction block of the files
    #[command(after_long_help = "\
Examples:
  wavesim pcode check my.pcode
  wavesim pcode check pseudocode/vector/*.pcode --json

Exit code 1 if a block has an error; warnings alone do not count.")]
    Check {
        /// Pseudocode files, or `-` for standard input
        #[arg(required = true)]
        files: Vec<PathBuf>,
        /// Print JSON Lines, one object per instruction
        #[arg(long)]
        json: bool,
    },
    /// Run conformance vectors of one instruction with the semantics in a file
    #[command(after_long_help = "\
Example:
  wavesim pcode eval --instruction v_add_f32 --file my.pcode \\
      --vector tests/filetests/vectors/rdna3/vop2.jsonl.gz")]
    Eval {
        /// Name of the instruction, in upper or lower case
        #[arg(long)]
        instruction: String,
        /// Pseudocode file that defines it
        #[arg(long)]
        file: PathBuf,
        /// Vector file (repeatable); records of other instructions are ignored
        #[arg(long, required = true)]
        vector: Vec<PathBuf>,
        /// Print one JSON object
        #[arg(long)]
        json: bool,
        /// Show the differences of this many records
        #[arg(long, default_value_t = 5)]
        show: u32,
    },
}

pub fn run(args: &PcodeArgs, out: &mut dyn Write) -> anyhow::Result<u8> {
    match &args.command {
        PcodeCommand::Check { files, json } => check(files, *json, out),
        PcodeCommand::Eval { instruction, file, vector, json, show } => {
            eval(instruction, file, vector, *json, *show, out)
        }
    }
}

/// The files to check, and the built-in pseudocode that they can call.
struct Loaded {
    sources: SourceMap,
    files: Vec<FileId>,
    base: Vec<FileId>,
    report: Report,
}

fn load(files: &[PathBuf]) -> anyhow::Result<Loaded> {
    let mut sources = SourceMap::default();
    let mut ids = Vec::new();
    for path in files {
        let text = files::read_text(path)?;
        if text.trim().is_empty() {
            bail!("{}: the file is empty", input_name(path));
        }
        ids.push(sources.add(input_name(path), text));
    }
    let base: Vec<FileId> = isa::PSEUDOCODE.iter().map(|(name, text)| sources.add(*name, *text)).collect();
    let tables: Vec<_> = Arch::ALL.iter().map(|a| a.table()).collect();
    let report = report::check_files(&sources, &ids, &base, &tables);
    Ok(Loaded { sources, files: ids, base, report })
}

fn check(files: &[PathBuf], json: bool, out: &mut dyn Write) -> anyhow::Result<u8> {
    let Loaded { sources, report, .. } = load(files)?;
    if json {
        for block in &report.blocks {
            let name = &block.instruction;
            let line = match block.shape {
                Some(shape) if block.errors.is_empty() => {
                    json!({"instruction": name, "ok": true, "shape": shape_name(shape)})
                }
                _ => {
                    json!({"instruction": name, "ok": false, "errors": errors_json(&sources, &block.errors)})
                }
            };
            writeln!(out, "{line}")?;
        }
        // Errors outside of all blocks.
        if !report.ok() && report.blocks.iter().all(|b| b.errors.is_empty()) {
            let errors = errors_json(&sources, &report.diagnostics);
            writeln!(out, "{}", json!({"instruction": null, "ok": false, "errors": errors}))?;
        }
    } else {
        for block in report.blocks.iter().filter(|b| b.errors.is_empty()) {
            let shape = block.shape.map_or("", shape_name);
            writeln!(out, "{}: ok, {shape} shape", block.instruction)?;
        }
    }
    emit(diag::render_all(&sources, &report.diagnostics));
    Ok(if report.ok() { OK } else { FAILED })
}

fn errors_json(sources: &SourceMap, errors: &[Diagnostic]) -> Vec<serde_json::Value> {
    errors
        .iter()
        .map(|d| {
            let (line, column) = sources.line_col(d.span.file, d.span.start);
            let file = &sources.file(d.span.file).name;
            json!({"file": file, "line": line, "column": column, "message": d.message})
        })
        .collect()
}

fn shape_name(shape: Shape) -> &'static str {
    match shape {
        Shape::Scalar => "scalar",
        Shape::Lane => "lane",
        Shape::Wave => "wave",
    }
}

fn eval(
    instruction: &str,
    file: &PathBuf,
    vectors: &[PathBuf],
    json: bool,
    show: u32,
    out: &mut dyn Write,
) -> anyhow::Result<u8> {
    let wanted = instruction.to_uppercase();
    let mut tally = Tally::default();
    let mut by_arch: BTreeMap<Arch, BTreeMap<String, Semantics>> = BTreeMap::new();
    for path in vectors {
        let mut records = conform::read_file(path)?;
        records.retain(|r| describe::plain_name(&r.op.to_uppercase()) == describe::plain_name(&wanted));
        let mut groups: BTreeMap<Option<Arch>, Vec<conform::Record>> = BTreeMap::new();
        for record in records {
            groups.entry(record.architecture()).or_default().push(record);
        }
        for (arch, records) in groups {
            let overrides = match arch {
                None => &BTreeMap::new(),
                Some(arch) => match by_arch.entry(arch) {
                    std::collections::btree_map::Entry::Occupied(e) => &*e.into_mut(),
                    std::collections::btree_map::Entry::Vacant(e) => {
                        let all = semantics(std::slice::from_ref(file), arch)?;
                        if !all.contains_key(describe::plain_name(&wanted)) && !all.contains_key(&wanted) {
                            let has: Vec<&str> = all.keys().map(String::as_str).collect();
                            bail!(
                                "{}: no block for {wanted} on {}; blocks are {}",
                                file.display(),
                                arch.name(),
                                has.join(", ")
                            );
                        }
                        &*e.insert(all)
                    }
                },
            };
            let name = arch.map_or("other", |a| a.name());
            tally.add(&format!("{name}/{}", wanted.to_lowercase()), &records, Engine::Reference, overrides);
        }
    }
    if tally.records() == 0 {
        bail!("the vectors contain no record of {wanted}");
    }
    tally.report(json, false, show, out)?;
    Ok(tally.code())
}

/// Returns the checked semantics of pseudocode files for one architecture, by upper-case instruction name.
/// Errors in the files are returned as [`super::Diagnostics`].
pub fn semantics(files: &[PathBuf], arch: Arch) -> anyhow::Result<BTreeMap<String, Semantics>> {
    let Loaded { sources, files, base, report } = load(files)?;
    if !report.ok() {
        return Err(super::Diagnostics(diag::render_all(&sources, &report.diagnostics)).into());
    }
    Ok(report::semantics_of(&sources, &files, &base, arch.table()))
}
