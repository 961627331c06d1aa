//! `wavesim conform`: runs instruction conformance vectors and compares the results.

use super::{FAILED, OK};
use anyhow::{Context as _, bail};
use isa_spec::pcode::ir::Semantics;
use rayon::prelude::*;
use regex_lite::Regex;
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::ops::Range;
use std::path::{Path, PathBuf};
use wavesim_campaign::annotation::Annotation;
use wavesim_campaign::junit;
use wavesim_conform::{self as conform, Engine, Outcome, Record};
use wavesim_files as files;
use wavesim_inspect::check::sarif;
use wavesim_isa::arch::Arch;

/// Run instruction conformance vectors (JSON Lines, plain or gzip)
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  wavesim conform tests/filetests/vectors/rdna3
  wavesim conform tests/filetests/vectors --arch rdna4 --filter 'v_add_f(16|32)'
  wavesim conform tests/filetests/vectors/rdna4/vop2.jsonl.gz --show 5

Exit code 1 if a record fails. A list of disputed records (--disputed) is a text
file with their names in blocks fenced by ```disputed and ```. They are counted
separately, and those that pass are listed. The file disputed.md of the vectors'
folder, or of the one above, is such a list.")]
pub struct ConformArgs {
    /// Vector files, or folders that contain them
    #[arg(required = true)]
    pub paths: Vec<PathBuf>,
    /// Run only records of this architecture; records of rdna3 also run as rdna3.5, and those of cdna4 as cdna3 where the instruction is the same
    #[arg(long, value_parser = parse_arch)]
    pub arch: Option<Arch>,
    /// Run only records of instructions whose name matches this regular expression
    #[arg(long, value_name = "REGEX")]
    pub filter: Option<Regex>,
    /// Execute with the reference evaluator instead of the compiled handlers
    #[arg(long)]
    pub reference: bool,
    /// Count the records listed in this file separately, as they are known to be wrong [default: disputed.md near the vectors]
    #[arg(long, value_name = "FILE")]
    pub disputed: Option<PathBuf>,
    /// Use no list of disputed records
    #[arg(long, conflicts_with = "disputed")]
    pub no_disputed: bool,
    /// Show the counts of all families of instructions, not only of those with failed or unsupported records
    #[arg(long)]
    pub families: bool,
    /// Show the differences of this many records per instruction
    #[arg(long, default_value_t = 1)]
    pub show: u32,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
    /// Host threads [default: all processors]
    #[arg(long, visible_alias = "threads", value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub jobs: Option<u16>,
    /// Also write the results to a file in JUnit's XML, with a test for each file of vectors
    #[arg(long, value_name = "FILE")]
    pub junit: Option<PathBuf>,
    /// Also write the failing records to a file in SARIF 2.1.0
    #[arg(long, value_name = "FILE")]
    pub sarif: Option<PathBuf>,
    /// Print an annotation of GitHub Actions for each failing record
    #[arg(long, conflicts_with = "json")]
    pub annotate: bool,
}

fn parse_arch(name: &str) -> Result<Arch, String> {
    Arch::from_name(name).or_else(|| Arch::from_mcpu(name)).ok_or_else(|| {
        let names = super::target::arch_names();
        format!("architectures are {}", names.join(", "))
    })
}

pub fn run(args: &ConformArgs, out: &mut dyn Write) -> anyhow::Result<u8> {
    let engine = if args.reference { Engine::Reference } else { Engine::Interpreter };
    let mut pool = rayon::ThreadPoolBuilder::new();
    if let Some(jobs) = args.jobs {
        pool = pool.num_threads(jobs.into());
    }
    let pool = pool.build()?;
    let mut tally = Tally::default();
    let lists = match &args.disputed {
        Some(path) => BTreeSet::from([path.clone()]),
        None if args.no_disputed => BTreeSet::new(),
        None => args.paths.iter().filter_map(|path| disputed_near(path)).collect(),
    };
    for path in lists {
        let text = files::read_text(&path)?;
        let before = tally.disputed.len();
        tally.disputed.extend(conform::disputed(&text).map(|id| (id.to_string(), false)));
        if tally.disputed.len() == before {
            bail!("{}: no names in blocks fenced by ```disputed and ```", path.display());
        }
    }
    let mut read = 0;
    let mut files_run = Vec::new();
    for path in vector_files(&args.paths)? {
        let mut records = conform::read_file(&path)?;
        read += records.len();
        if let Some(filter) = &args.filter {
            records.retain(|r| filter.is_match(&r.op));
        }
        if let Some(arch) = args.arch {
            records.retain_mut(|r| r.retarget(arch));
        }
        let (before, started) = (tally.failures.len(), std::time::Instant::now());
        pool.install(|| tally.add(&family(&path), &records, engine, &BTreeMap::new()));
        files_run.push(FileRun {
            path,
            failures: before..tally.failures.len(),
            seconds: started.elapsed().as_secs_f64(),
        });
    }
    if tally.records() == 0 {
        let (filter, arch) = (args.filter.as_ref().map(Regex::as_str), args.arch.map(Arch::name));
        let wanted = [filter.map(|f| format!("--filter '{f}'")), arch.map(|a| format!("--arch {a}"))];
        let wanted: Vec<String> = wanted.into_iter().flatten().collect();
        match read {
            0 => bail!("these files contain no records"),
            n => bail!("{} matches none of {n} records", wanted.join(" with ")),
        }
    }
    tally.report(args.json, args.families, args.show, out)?;
    reports(args, &tally, &files_run, out)?;
    Ok(tally.code())
}

/// A file of vectors that has run.
struct FileRun {
    path: PathBuf,
    /// Its failures in [`Tally::failures`].
    failures: Range<usize>,
    seconds: f64,
}

/// Writes the reports for build servers.
fn reports(
    args: &ConformArgs,
    tally: &Tally,
    files_run: &[FileRun],
    out: &mut dyn Write,
) -> anyhow::Result<()> {
    let title = |failure: &Failure| format!("{}: {}", failure.id, failure.what);
    let message = |failure: &Failure| format!("{}\n{}", failure.asm, failure.diffs.join("\n"));
    let (mut tests, mut results) = (Vec::new(), Vec::new());
    for FileRun { path, failures, seconds } in files_run {
        let (file, failures) = (path.display().to_string(), &tally.failures[failures.clone()]);
        let details =
            || failures.iter().map(|f| format!("{}\n{}\n", title(f), message(f))).collect::<String>();
        let outcome = match failures.len() {
            0 => junit::Outcome::Passed,
            n => junit::Outcome::Failed(format!("{n} records failed"), details()),
        };
        let class = "wavesim conform".to_string();
        tests.push(junit::Test { class, name: file.clone(), seconds: *seconds, outcome });
        for failure in failures {
            let text = format!("{}\n{}", title(failure), message(failure));
            results.push(json!({
                "ruleId": "conform/mismatch", "level": "error", "message": {"text": text},
                "locations": [{"physicalLocation": {"artifactLocation": {"uri": file}}}],
            }));
            if args.annotate {
                let (title, message) = (title(failure), message(failure));
                let annotation =
                    Annotation { error: true, file: &file, line: 0, title: &title, message: &message };
                writeln!(out, "{annotation}")?;
            }
        }
    }
    if let Some(path) = &args.junit {
        let text = junit::report("wavesim conform", &tests);
        files::write(path, |out| out.write_all(text.as_bytes()))
            .with_context(|| path.display().to_string())?;
    }
    if let Some(path) = &args.sarif {
        let rule = json!({"id": "conform/mismatch", "shortDescription": {"text": "conform: mismatch"}});
        let log = sarif::wrap(vec![rule], results, env!("CARGO_PKG_VERSION"));
        files::write(path, |out| writeln!(out, "{log:#}")).with_context(|| path.display().to_string())?;
    }
    Ok(())
}

/// Results over all records.
#[derive(Debug, Default)]
pub struct Tally {
    families: BTreeMap<String, Counts>,
    failures: Vec<Failure>,
    unsupported: BTreeMap<String, BTreeSet<String>>,
    /// Disputed records, each with whether it was run and failed.
    disputed: BTreeMap<String, bool>,
    /// Disputed records that passed.
    disputed_passed: Vec<String>,
}

#[derive(Debug)]
struct Failure {
    id: String,
    /// Architecture, encoding and operation.
    what: String,
    asm: String,
    diffs: Vec<String>,
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
        let outcomes: Vec<Outcome> = records
            .par_iter()
            .map(|record| match record.architecture() {
                Some(arch) => conform::run(record, arch, engine, overrides),
                None => Outcome::Unsupported(record.op.clone()),
            })
            .collect();
        let counts = self.families.entry(family.to_string()).or_default();
        for (record, outcome) in records.iter().zip(outcomes) {
            match outcome {
                Outcome::Passed => {
                    counts.passed += 1;
                    if self.disputed.contains_key(&record.id) {
                        self.disputed_passed.push(record.id.clone());
                    }
                }
                Outcome::Unsupported(_) => {
                    counts.unsupported += 1;
                    self.unsupported.entry(record.arch.clone()).or_default().insert(record.op.clone());
                }
                Outcome::Failed(diffs) => {
                    if let Some(failed) = self.disputed.get_mut(&record.id) {
                        *failed = true;
                        continue;
                    }
                    counts.failed += 1;
                    self.failures.push(Failure {
                        id: record.id.clone(),
                        what: format!("{} {} {}", record.arch, record.enc, record.op),
                        asm: record.asm.clone().unwrap_or_else(|| record.words.join(" ")),
                        diffs,
                    });
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

    /// Returns the number of records that were run or unsupported.
    pub fn records(&self) -> u64 {
        let total = self.total();
        total.passed + total.failed + total.unsupported + self.disputed_failed().len() as u64
    }

    /// Returns the exit code.
    pub fn code(&self) -> u8 {
        if self.failures.is_empty() { OK } else { FAILED }
    }

    /// Returns the disputed records that were run and failed, as the list expects.
    fn disputed_failed(&self) -> Vec<&str> {
        self.disputed.iter().filter(|(_, failed)| **failed).map(|(id, _)| id.as_str()).collect()
    }

    /// Prints the results, with the differences of `show` records per instruction, and the counts of families that
    /// have anything but records that passed, or of all.
    pub fn report(
        &self,
        json: bool,
        all_families: bool,
        show: u32,
        out: &mut dyn Write,
    ) -> anyhow::Result<()> {
        let total = self.total();
        let disputed = self.disputed_failed();
        if json {
            let counts =
                |c: &Counts| json!({"passed": c.passed, "failed": c.failed, "unsupported": c.unsupported});
            let families: BTreeMap<&str, _> =
                self.families.iter().map(|(name, c)| (name.as_str(), counts(c))).collect();
            let failures: Vec<&str> = self.failures.iter().map(|f| f.id.as_str()).collect();
            let value = json!({
                "schema": "wavesim-conform-1",
                "passed": total.passed,
                "failed": total.failed,
                "unsupported": total.unsupported,
                "families": families,
                "failures": failures,
                "disputed": disputed,
                "disputed_but_passed": self.disputed_passed,
                "unsupported_ops": self.unsupported,
            });
            writeln!(out, "{value}")?;
            return Ok(());
        }
        let mut shown: BTreeMap<&str, u32> = BTreeMap::new();
        for Failure { id, what, asm, diffs } in &self.failures {
            let seen = shown.entry(what).or_default();
            *seen += 1;
            if *seen <= show {
                writeln!(out, "{id} {what}\n    {asm}\n    {}", diffs.join("\n    "))?;
            }
        }
        let told = |c: &Counts| all_families || c.failed + c.unsupported > 0;
        for (name, c) in self.families.iter().filter(|(_, c)| told(c)) {
            writeln!(
                out,
                "{name:24} {:7} passed {:6} failed {:6} unsupported",
                c.passed, c.failed, c.unsupported
            )?;
        }
        writeln!(out, "{} passed, {} failed, {} unsupported", total.passed, total.failed, total.unsupported)?;
        if !disputed.is_empty() {
            writeln!(out, "{} more are disputed, as disputed.md or --disputed says", disputed.len())?;
        }
        if !self.disputed_passed.is_empty() {
            writeln!(out, "disputed records that pass: {}", self.disputed_passed.join(" "))?;
        }
        Ok(())
    }
}

/// Returns the named vector files, and those in the named folders, sorted by folder.
fn vector_files(paths: &[PathBuf]) -> anyhow::Result<Vec<PathBuf>> {
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
            bail!("{}: no .jsonl or .jsonl.gz file below this folder", path.display());
        }
        out[before..].sort();
    }
    Ok(out)
}

/// Returns the list of disputed records in the folder of vectors or in the one above it, if there is one.
fn disputed_near(path: &Path) -> Option<PathBuf> {
    let path = std::path::absolute(path).ok()?;
    let folders = path.ancestors().skip(usize::from(!path.is_dir())).take(2);
    folders.map(|folder| folder.join("disputed.md")).find(|list| list.is_file())
}

/// Returns `rdna3/vop2` for `…/rdna3/vop2.jsonl.gz`.
fn family(path: &Path) -> String {
    let part = |p: Option<&std::ffi::OsStr>| p.map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
    let name = part(path.file_name());
    let stem = name.split('.').next().unwrap_or_default();
    let folder = part(path.parent().and_then(Path::file_name));
    if folder.is_empty() { stem.to_string() } else { format!("{folder}/{stem}") }
}
