//! `--trace`, `--stats`, `--profile-lines`, `--fidelity`, `--coverage`: reports of `run` and `launch` in addition to the outputs.

use super::output;
use anyhow::{Context as _, bail};
use serde_json::{Value, json};
use std::cell::RefCell;
use std::io::Write;
use std::path::PathBuf;
use wavesim_coverage::{Coverage, Recorder};
use wavesim_engine::observe::{Observer, Observers};
use wavesim_engine::sched::dispatch::{self, Dispatch, RunStats, parse_group};
use wavesim_fidelity::{Fidelity, Report};
use wavesim_files::Files;
use wavesim_inspect::check::{Check, Checker, fault_as_finding};
use wavesim_inspect::sharing::sharing;
use wavesim_loader::prepared::Prepared;
use wavesim_machine::fault::Fault;
use wavesim_trace::Filter;
use wavesim_trace::chrome::Chrome;
use wavesim_trace::jsonl::Jsonl;
use wavesim_trace::prints::Prints;
use wavesim_trace::profile::Profile;
use wavesim_trace::stats::Stats;

/// Reports about an execution
#[derive(Debug, Default, Clone, clap::Args)]
#[command(next_help_heading = "Observation")]
pub struct ObserveArgs {
    /// Write one line of JSON per executed instruction to FILE (`-`: standard output)
    #[arg(long, value_name = "FILE")]
    pub trace: Option<PathBuf>,
    /// Format of the trace: `jsonl`, or `chrome` (a timeline for ui.perfetto.dev)
    #[arg(long, value_name = "FORMAT", default_value = "jsonl", value_parser = ["jsonl", "chrome"])]
    pub trace_format: String,
    /// Trace only this wave (its index in the workgroup; repeatable)
    #[arg(long, requires = "trace", value_name = "N")]
    pub trace_wave: Vec<u32>,
    /// Trace only this workgroup
    #[arg(long, requires = "trace", value_name = "X,Y,Z", value_parser = parse_group)]
    pub trace_group: Option<[u32; 3]>,
    /// Trace only instructions at these byte offsets (hexadecimal, both ends included)
    #[arg(long, requires = "trace", value_name = "FIRST..LAST", value_parser = parse_pcs)]
    pub trace_pc: Option<(u64, u64)>,
    /// Print instruction counts by class and opcode, lane utilisation, divergence, memory traffic and bank conflicts; with
    /// --engine jit also the units that it compiles, and how code executes each instruction
    #[arg(long, value_name = "FORMAT", num_args = 0..=1, default_missing_value = "table", value_parser = ["table", "json"])]
    pub stats: Option<String>,
    /// Write statistics, the source with the number of executions, who accessed which memory, active lanes and waves over
    /// time to a file of HTML
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Print the program with the number of executions of each line
    #[arg(long)]
    pub profile_lines: bool,
    /// Print how far the results can be trusted: instructions with inexact results, and what depends on them
    #[arg(long)]
    pub fidelity: bool,
    /// As --fidelity, and run again with approximate operations at both ends of their documented error
    #[arg(long)]
    pub perturb: bool,
    /// With --perturb: the error of functions whose error is not documented, in units in the last place
    #[arg(long, value_name = "ULP", requires = "perturb", value_parser = clap::value_parser!(u64).range(1..=1 << 40))]
    pub assume_ulp: Option<u64>,
    /// Write which instructions, operands, branches and lanes have run to a file (docs/coverage.md)
    #[arg(long, value_name = "FILE.json")]
    pub coverage: Option<PathBuf>,
}

impl ObserveArgs {
    /// Returns whether any report is requested.
    pub fn any(&self) -> bool {
        self.trace.is_some()
            || self.stats.is_some()
            || self.profile_lines
            || self.coverage.is_some()
            || self.html.is_some()
            || self.wants_fidelity()
    }

    /// Returns whether the report about inexact results is requested.
    pub fn wants_fidelity(&self) -> bool {
        self.fidelity || self.perturb
    }

    /// Whether standard output is a report for programs, with which nothing else may be mixed.
    ///
    /// # Errors
    /// There is more than one.
    pub fn owns_stdout(&self, json: bool) -> anyhow::Result<bool> {
        let trace = self.trace.as_ref().is_some_and(|path| path.as_os_str() == "-");
        let stats = self.stats.as_deref() == Some("json") && !json;
        match (trace, stats, json) {
            (true, _, true) => {
                bail!("--json and --trace - both write to standard output; write the trace to a file")
            }
            (true, true, _) => {
                bail!("--stats json and --trace - both write to standard output; write the trace to a file")
            }
            _ => Ok(trace || stats),
        }
    }

    /// Rejects filters that match nothing in the dispatch.
    pub fn check(&self, dispatch: &Dispatch<'_>) -> anyhow::Result<()> {
        let waves = dispatch.waves();
        if let Some(wave) = self.trace_wave.iter().find(|w| **w >= waves) {
            bail!("--trace-wave {wave}: a workgroup has {waves} waves, counted from 0");
        }
        let [x, y, z] = dispatch.shape.grid;
        if let Some(group) =
            self.trace_group.filter(|g| g.iter().zip(dispatch.shape.grid).any(|(g, n)| *g >= n))
        {
            let [gx, gy, gz] = group;
            bail!("--trace-group {gx},{gy},{gz}: the grid has {x},{y},{z} workgroups, counted from 0");
        }
        if let Some((first, last)) = self.trace_pc
            && !dispatch.program.pcs.iter().any(|pc| (first..=last).contains(pc))
        {
            bail!("--trace-pc {first:x}..{last:x}: there is no instruction at these offsets");
        }
        Ok(())
    }

    fn filter(&self) -> Filter {
        Filter { waves: self.trace_wave.clone(), workgroup: self.trace_group, pcs: self.trace_pc }
    }
}

/// The result of an observed run.
pub struct Observed {
    pub result: Result<RunStats, Box<Fault>>,
    /// The statistics, if they belong into the JSON output.
    pub statistics: Option<Value>,
    /// How far the results can be trusted, and the number of executions of each instruction.
    pub fidelity: Option<(Report, Vec<u64>)>,
    /// What has run, under no name.
    pub coverage: Option<Coverage>,
}

/// A part of the statistics: about the code that the compiled engine has for the program.
pub struct CompiledStatistics {
    /// As lines of the table.
    pub table: String,
    /// As a part of the JSON object.
    pub json: Value,
}

/// Returns [`CompiledStatistics`], given the number of executions of each instruction.
pub type CountCompiled<'a> = &'a dyn Fn(&[u64]) -> CompiledStatistics;

/// Runs the dispatch, with observers if options or `print` directives of the kernel require them. Listings
/// and statistics go to `out`, even after a fault; with JSON output (`quiet`), or if a report for programs is written
/// there, text goes to standard error. `compiled` completes the statistics; `files` are those that the input may name.
/// An error is a write error.
pub fn run(
    args: &ObserveArgs,
    prepared: &Prepared,
    dispatch: &Dispatch<'_>,
    quiet: bool,
    compiled: Option<CountCompiled<'_>>,
    files: &Files,
    out: &mut dyn Write,
) -> anyhow::Result<Observed> {
    if !args.any() && prepared.prints.is_empty() {
        let result = dispatch::run(dispatch, &prepared.memory);
        return Ok(Observed { result, statistics: None, fidelity: None, coverage: None });
    }
    observed(args, prepared, dispatch, quiet, compiled, files, out)
}

fn observed(
    args: &ObserveArgs,
    prepared: &Prepared,
    dispatch: &Dispatch<'_>,
    quiet: bool,
    compiled: Option<CountCompiled<'_>>,
    files: &Files,
    out: &mut dyn Write,
) -> anyhow::Result<Observed> {
    let program = &prepared.program;
    let counted = args.stats.is_some() || args.html.is_some();
    let mut stats = counted.then(|| Stats::new(program, dispatch.shape.wave_size));
    let mut activity = args.html.is_some().then(|| super::page::activity(prepared, false));
    let mut profile = args.profile_lines.then(|| Profile::new(program));
    let shared = RefCell::new(&mut *out);
    let name = || args.trace.as_ref().map_or(String::new(), |p| p.display().to_string());
    let file = args.trace.as_ref().filter(|path| path.as_os_str() != "-");
    let mut file = file.map(|path| wavesim_files::create(path)).transpose().with_context(name)?;
    let mut jsonl = None;
    let mut chrome = None;
    if args.trace.is_some() {
        let to: Box<dyn Write> = match &mut file {
            Some(file) => Box::new(file),
            None => Box::new(Shared(&shared)),
        };
        match args.trace_format.as_str() {
            "chrome" => chrome = Some(Chrome::new(to, program, dispatch.shape.wave_size, args.filter())),
            _ => jsonl = Some(Jsonl::new(to, program, dispatch.shape.wave_size, args.filter())),
        }
    }
    let mut stderr = output::stderr();
    let mut stdout = Shared(&shared);
    let elsewhere = quiet || args.owns_stdout(quiet)?;
    let to: &mut dyn Write = if elsewhere { &mut stderr } else { &mut stdout };
    let mut prints = (!prepared.prints.is_empty()).then(|| Prints::new(&prepared.prints, to));
    let mut all = Observers::default();
    let mut fidelity = args.wants_fidelity().then(|| Fidelity::new(prepared));
    // Undefined bits are inexact, too: the check follows them.
    let checks = [Check::Init].iter().filter(|check| Check::of(program.arch).contains(check));
    let checks: Vec<Check> = checks.copied().filter(|_| args.wants_fidelity()).collect();
    let mut checker = if checks.is_empty() { None } else { Some(Checker::new(prepared, &checks)?) };
    let mut recorder = args.coverage.as_ref().map(|_| Recorder::new(prepared, ""));
    let list: [Option<&mut dyn Observer>; 9] = [
        prints.as_mut().map(|o| o as _),
        stats.as_mut().map(|o| o as _),
        activity.as_mut().map(|o| o as _),
        profile.as_mut().map(|o| o as _),
        jsonl.as_mut().map(|o| o as _),
        chrome.as_mut().map(|o| o as _),
        fidelity.as_mut().map(|o| o as _),
        checker.as_mut().map(|o| o as _),
        recorder.as_mut().map(|o| o as _),
    ];
    all.0.extend(list.into_iter().flatten());
    let (run_stats, result) = dispatch::run_observed(dispatch, &prepared.memory, &mut all);
    if let Some(prints) = prints {
        prints.finish()?;
    }
    jsonl.map(|trace| trace.finish()).transpose().with_context(name)?;
    chrome.map(|trace| trace.finish()).transpose().with_context(name)?;
    if let Some(file) = file {
        file.commit().with_context(name)?;
    }
    let mut out = Shared(&shared);
    if let Some(profile) = profile {
        let source = prepared.source.as_ref().map(|s| s.text.as_str());
        let listing = profile.listing(program, source);
        if elsewhere { output::emit(listing) } else { write!(out, "{listing}")? }
    }
    let mut statistics = None;
    if let Some(stats) = &stats {
        let (mut table, mut json) = (stats.table(), stats.json());
        let shared = sharing(program, dispatch.shape.entry_pc).map(|sharing| sharing.describe(program));
        let threads = match &shared {
            Some(means) => format!("one thread (--threads auto): {means}"),
            None => "on all cores (--threads auto): they cannot observe one another".to_string(),
        };
        table.insert_str(0, &format!("workgroups              {threads}\n"));
        json["workgroups"] = json!({ "independent": shared.is_none(), "means": shared });
        if let Some(compiled) = compiled.map(|count| count(&stats.counts)) {
            table += &compiled.table;
            json["compiled"] = compiled.json;
        }
        if let Some((path, activity)) = args.html.as_ref().zip(activity.as_ref()) {
            let name = prepared.source.as_ref().map_or("kernel", |source| &source.name);
            let summary = match &result {
                Ok(()) => format!("{} wave-instructions, {} waves", run_stats.instructions, run_stats.waves),
                Err(fault) => format!("the kernel faulted: {}", fault.message),
            };
            let fault = result.as_ref().err().map(|fault| fault_as_finding(fault));
            let findings: Vec<Value> = fault.into_iter().collect();
            let page = json!({
                "name": name, "summary": summary, "findings": findings, "sources": super::page::sources_json(prepared, files),
                "activity": activity.json(), "stats": json.clone(),
            });
            super::page::write(path, "statistics of a run", vec![page])?;
        }
        match args.stats.as_deref() {
            None => {}
            _ if quiet => statistics = Some(json),
            Some("json") => writeln!(out, "{json}")?,
            _ if elsewhere => output::emit(table),
            _ => write!(out, "{table}")?,
        }
    }
    let undefined = checker.map_or_else(Vec::new, |checker| checker.finish(None));
    let fidelity = fidelity.map(|fidelity| {
        let counts = fidelity.counts().to_vec();
        (fidelity.report(undefined), counts)
    });
    let coverage = recorder.map(Recorder::finish);
    Ok(Observed { result: result.map(|()| run_stats), statistics, fidelity, coverage })
}

/// The command's output, shared by several writers.
struct Shared<'a, 'w, 'o>(&'a RefCell<&'w mut (dyn Write + 'o)>);

impl Write for Shared<'_, '_, '_> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.borrow_mut().write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.0.borrow_mut().flush()
    }
}

fn parse_pcs(text: &str) -> Result<(u64, u64), String> {
    let hex = |t: &str| {
        let t = t.trim().trim_start_matches("0x");
        u64::from_str_radix(t, 16).map_err(|_| format!("`{t}` is not a hexadecimal offset"))
    };
    match text.split_once("..") {
        Some((first, last)) => Ok((hex(first)?, hex(last)?)),
        None => hex(text).map(|pc| (pc, pc)),
    }
}
