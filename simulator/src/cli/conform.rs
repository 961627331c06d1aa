//! `wavesim conform`: instruction conformance vectors, compared output by output.

use super::{FAILED, OK};
use crate::conform::{self, Engine, Outcome, Record};
use isa_spec::pcode::ir::Semantics;
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::path::{Path, PathBuf};

/// Run instruction conformance vectors (JSON Lines, plain or gzip)
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  wavesim conform vectors/rdna3
  wavesim conform vectors/rdna4/vop2.jsonl.gz --reference --show 5")]
pub struct ConformArgs {
    /// Vector files, or folders of them
    #[arg(required = true)]
    pub paths: Vec<PathBuf>,
    /// Execute with the evaluator in place of the compiled handlers
    #[arg(long)]
    pub reference: bool,
    /// Show what differs, in this many records per instruction
    #[arg(long, default_value_t = 1)]
    pub show: u32,
    /// One JSON object
    #[arg(long)]
    pub json: bool,
}

pub fn run(args: &ConformArgs, out: &mut dyn Write) -> anyhow::Result<u8> {
    let engine = if args.reference { Engine::Reference } else { Engine::Interpreter };
    let mut tally = Tally::default();
    for path in files(&args.paths)? {
        let records = conform::read_file(&path)?;
        tally.add(&family(&path), &records, engine, &BTreeMap::new());
    }
    tally.report(args.json, args.show, out)?;
    Ok(tally.code())
}

/// Results over all records.
#[derive(Debug, Default)]
pub struct Tally {
    families: BTreeMap<String, Counts>,
    /// `(record, instruction, what differs)`.
    failures: Vec<(String, String, Vec<String>)>,
    unsupported: BTreeMap<String, BTreeSet<String>>,
}

#[derive(Debug, Default, Clone, Copy)]
struct Counts {
    passed: u64,
    failed: u64,
    unsupported: u64,
}

impl Tally {
    /// Runs `records`; `overrides` replace the built-in semantics by upper-case name.
    pub fn add(
        &mut self,
        family: &str,
        records: &[Record],
        engine: Engine,
        overrides: &BTreeMap<String, Semantics>,
    ) {
        let counts = self.families.entry(family.to_string()).or_default();
        for record in records {
            let outcome = match record.architecture() {
                Some(arch) => conform::run(record, arch, engine, overrides),
                None => Outcome::Unsupported(record.op.clone()),
            };
            match outcome {
                Outcome::Passed => counts.passed += 1,
                Outcome::Unsupported(_) => {
                    counts.unsupported += 1;
                    self.unsupported.entry(record.arch.clone()).or_default().insert(record.op.clone());
                }
                Outcome::Failed(diffs) => {
                    counts.failed += 1;
                    let what = format!("{} {} {}", record.arch, record.enc, record.op);
                    self.failures.push((record.id.clone(), what, diffs));
                }
            }
        }
    }

    fn total(&self) -> Counts {
        self.families.values().fold(Counts::default(), |a, b| Counts {
            passed: a.passed + b.passed,
            failed: a.failed + b.failed,
            unsupported: a.unsupported + b.unsupported,
        })
    }

    pub fn code(&self) -> u8 {
        if self.failures.is_empty() { OK } else { FAILED }
    }

    pub fn report(&self, json: bool, show: u32, out: &mut dyn Write) -> anyhow::Result<()> {
        let total = self.total();
        if json {
            let counts =
                |c: &Counts| json!({"passed": c.passed, "failed": c.failed, "unsupported": c.unsupported});
            let families: BTreeMap<&str, _> =
                self.families.iter().map(|(name, c)| (name.as_str(), counts(c))).collect();
            let failures: Vec<&str> = self.failures.iter().map(|(id, ..)| id.as_str()).collect();
            let value = json!({
                "schema": "wavesim-conform-1",
                "passed": total.passed,
                "failed": total.failed,
                "unsupported": total.unsupported,
                "families": families,
                "failures": failures,
                "unsupported_ops": self.unsupported,
            });
            writeln!(out, "{value}")?;
            return Ok(());
        }
        let mut shown: BTreeMap<&str, u32> = BTreeMap::new();
        for (id, what, diffs) in &self.failures {
            let seen = shown.entry(what).or_default();
            *seen += 1;
            if *seen <= show {
                writeln!(out, "{id} {what}\n    {}", diffs.join("\n    "))?;
            }
        }
        for (name, c) in &self.families {
            writeln!(
                out,
                "{name:24} {:7} passed {:6} failed {:6} unsupported",
                c.passed, c.failed, c.unsupported
            )?;
        }
        writeln!(out, "{} passed, {} failed, {} unsupported", total.passed, total.failed, total.unsupported)?;
        Ok(())
    }
}

/// Every vector file named or below a folder named, sorted within the folder.
fn files(paths: &[PathBuf]) -> anyhow::Result<Vec<PathBuf>> {
    let mut out = Vec::new();
    for path in paths {
        if !path.is_dir() {
            out.push(path.clone());
            continue;
        }
        let before = out.len();
        for end in ["jsonl", "gz"] {
            out.extend(isa_spec::data::files_below(path, end));
        }
        if out.len() == before {
            anyhow::bail!("{}: no .jsonl or .jsonl.gz file below this folder", path.display());
        }
        out[before..].sort();
    }
    Ok(out)
}

/// `rdna3/vop2` for `…/rdna3/vop2.jsonl.gz`.
fn family(path: &Path) -> String {
    let part = |p: Option<&std::ffi::OsStr>| p.map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
    let name = part(path.file_name());
    let stem = name.split('.').next().unwrap_or_default();
    let folder = part(path.parent().and_then(Path::file_name));
    if folder.is_empty() { stem.to_string() } else { format!("{folder}/{stem}") }
}
