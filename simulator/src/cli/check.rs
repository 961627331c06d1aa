//! `wavesim check`: runs a kernel under checks that hardware does not make.

use super::coverage::Collected;
use super::input::InputArgs;
use super::{BAD_INPUT, FAILED, INTERRUPTED, OK};
use anyhow::{Context as _, bail};
use rayon::prelude::*;
use serde_json::Value;
use std::io::Write;
use std::path::PathBuf;
use wavesim_campaign::annotation::Annotation;
use wavesim_campaign::junit::{self, Outcome, Test};
use wavesim_coverage::Recorder;
use wavesim_engine::observe::Observers;
use wavesim_engine::sched::dispatch::{self, GroupOrder, RunStats, Schedule};
use wavesim_files as files;
use wavesim_inspect::check::suppress::{self, Suppression};
use wavesim_inspect::check::{Check, Checker, Finding, Severity, fault_as_finding, sarif};
use wavesim_isa::arch::Arch;
use wavesim_loader::prepared::Prepared;
use wavesim_machine::fault::{Fault, FaultKind};
use wavesim_services::launch::{Printed, Services};

/// Run a kernel and report errors: out-of-bounds accesses, uninitialised registers and memory, races, missing waits,
/// barriers, hazards
#[derive(Debug, clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub struct CheckArgs {
    #[command(flatten)]
    pub input: super::input::InputArgs,
    /// More files, each of which is checked with the same options
    pub more: Vec<PathBuf>,
    /// Host threads; each checks one of the files at a time
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..))]
    pub threads: u16,
    /// Run only these checks: mem, init, race, waits, barrier, hazard (together: all, the default); on demand: lanes,
    /// arith
    #[arg(long = "check", value_name = "NAME[,NAME]", value_delimiter = ',', value_parser = parse_checks)]
    pub checks: Vec<Checks>,
    /// Run the kernel N times, in random orders of workgroups and waves after the first run. Reports findings of any
    /// order, and outputs that differ between orders
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=100_000))]
    pub orders: u64,
    /// Print JSON Lines, one object per finding
    #[arg(long)]
    pub json: bool,
    /// Also write the findings to a file in SARIF 2.1.0
    #[arg(long, value_name = "FILE")]
    pub sarif: Option<PathBuf>,
    /// Also write the results to a file in JUnit's XML, with a test for each file
    #[arg(long, value_name = "FILE")]
    pub junit: Option<PathBuf>,
    /// Also write which instructions, operands, branches and lanes have run to a file (docs/coverage.md)
    #[arg(long, value_name = "FILE.json")]
    pub coverage: Option<PathBuf>,
    /// Also write a report to a file of HTML: findings in the source, pictures of races, who accessed which memory, active
    /// lanes and waves over time. The kernel runs once more for it
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Print an annotation of GitHub Actions for each finding, which appears in the diff of a pull request
    #[arg(long, conflicts_with = "json")]
    pub annotate: bool,
    /// Do not report the findings that a file lists (repeatable; `--print-suppressions` shows the format)
    #[arg(long, value_name = "FILE")]
    pub suppress: Vec<PathBuf>,
    /// Print a suppression after each finding
    #[arg(long, conflicts_with = "json")]
    pub print_suppressions: bool,
    /// Show no progress bar
    #[arg(long, short = 'q')]
    pub quiet: bool,
}

const EXAMPLES: &str = "\
Examples:
  wavesim check kernel.rdna
  wavesim check vadd/launch.json --target gfx1201 --check mem,waits
  wavesim check kernel.rdna --orders 20
  wavesim check kernels/*.rdna --threads 4 --junit junit.xml
  wavesim check kernel.rdna --html report.html
  wavesim check kernel.rdna --json | jq .message

Exit codes: 0 no findings, or notes only; 1 findings, or the kernel faulted; 2 bad
usage or bad input; 130 interrupted.";

/// The checks that a name stands for.
#[derive(Debug, Clone)]
pub struct Checks(pub Vec<Check>);

/// Parses the name of a check, or `all` for those that run by default.
pub fn parse_checks(name: &str) -> Result<Checks, String> {
    if name == "all" {
        return Ok(Checks(Check::DEFAULT.to_vec()));
    }
    let check = Check::from_name(name).ok_or_else(|| {
        let names: Vec<&str> = Check::ALL.iter().map(|c| c.name()).collect();
        format!("checks are {}", names.join(", "))
    })?;
    Ok(Checks(vec![check]))
}

/// Returns the checks that names stand for, of those that an architecture has. For `all`, the others are left out.
///
/// # Errors
/// A check was named that the architecture does not have.
pub fn chosen(names: &[Checks], arch: Arch) -> anyhow::Result<Vec<Check>> {
    let possible = Check::of(arch);
    if let Some(check) =
        names.iter().filter(|c| c.0.len() == 1).flat_map(|c| &c.0).find(|c| !possible.contains(c))
    {
        let names: Vec<&str> = possible.iter().map(|c| c.name()).collect();
        bail!("{} does not have the check `{}`; it has {}", arch.name(), check.name(), names.join(", "));
    }
    Ok(possible.iter().copied().filter(|check| names.iter().any(|c| c.0.contains(check))).collect())
}

/// The findings, the statistics of the run, and the fault that ended it, if any.
pub type Checked = (Vec<Finding>, RunStats, Option<Box<Fault>>);

/// Runs the kernel with some checks; an empty list means all. `recorder` counts what runs.
pub fn checked(
    prepared: &Prepared,
    dispatch: &dispatch::Dispatch<'_>,
    checks: &[Check],
    recorder: Option<&mut Recorder>,
) -> Result<Checked, dispatch::DispatchError> {
    let checks = if checks.is_empty() { Check::default_of(prepared.program.arch) } else { checks };
    let mut checker = Checker::new(prepared, checks)?;
    let (stats, result) = match recorder {
        None => checker.run(dispatch),
        Some(recorder) => {
            let mut both = Observers(vec![&mut checker, recorder]);
            dispatch::run_observed(dispatch, &prepared.memory, &mut both)
        }
    };
    let fault = result.err();
    // Faults that a finding has already reported.
    let reported = |f: &Fault| {
        checks.contains(&Check::Barrier) && f.kind == FaultKind::BarrierDeadlock
            || checks.contains(&Check::Hazard) && checker.is_wild_jump(f)
            || checks.contains(&Check::Mem) && matches!(f.kind, FaultKind::Misaligned { .. })
    };
    let reported = fault.as_deref().is_some_and(reported);
    let findings = checker.finish(fault.as_deref());
    Ok((findings, stats, fault.filter(|_| !reported)))
}

/// Reads the suppressions of some files.
fn suppressions(paths: &[PathBuf]) -> anyhow::Result<Vec<Suppression>> {
    let mut list = Vec::new();
    for path in paths {
        let text = files::read_text(path)?;
        list.extend(suppress::parse(&text).with_context(|| path.display().to_string())?);
    }
    Ok(list)
}

/// The result of a file.
struct FileResult {
    /// What is printed.
    text: Vec<u8>,
    annotations: Vec<u8>,
    findings: Vec<Finding>,
    /// The file's part of the report in HTML.
    page: Option<Value>,
    code: u8,
    seconds: f64,
    /// A headline for a test report, if the file has errors.
    headline: String,
}

pub fn run(args: &CheckArgs, out: &mut dyn Write) -> anyhow::Result<u8> {
    let suppressions = suppressions(&args.suppress)?;
    let inputs = args.input.inputs(&args.more)?;
    super::progress::catch_interrupts();
    let several = inputs.len() > 1;
    let coverage = Collected::default();
    let one = |input: &InputArgs| file(args, input, several, &suppressions, &coverage);
    let results: Vec<anyhow::Result<FileResult>> = match several {
        false => inputs.iter().map(one).collect(),
        true => {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(args.threads.into()).build()?;
            pool.install(|| inputs.par_iter().map(one).collect())
        }
    };
    let mut code = OK;
    let mut tests = Vec::new();
    let mut found: Vec<(String, Vec<Finding>)> = Vec::new();
    let mut pages = Vec::new();
    let mut failed = None;
    for (input, result) in inputs.iter().zip(results) {
        let name = super::input_name(&input.file);
        let test = |seconds, outcome| Test {
            class: "wavesim check".to_string(),
            name: name.clone(),
            seconds,
            outcome,
        };
        match result {
            Ok(result) => {
                out.write_all(&result.text)?;
                out.write_all(&result.annotations)?;
                let text = || String::from_utf8_lossy(&result.text).into_owned();
                let outcome = match result.code {
                    OK => Outcome::Passed,
                    _ => Outcome::Failed(result.headline.clone(), text()),
                };
                tests.push(test(result.seconds, outcome));
                code = code.max(result.code);
                pages.extend(result.page);
                found.push((name, result.findings));
            }
            // The others have their results nevertheless.
            Err(e) if several => {
                let message = match e.downcast_ref::<super::Diagnostics>() {
                    Some(diagnostics) => diagnostics.to_string(),
                    None => format!("error: {}", super::with_causes(&e)),
                };
                super::output::emit(&message);
                tests.push(test(
                    0.0,
                    Outcome::Error(message.lines().next().unwrap_or_default().to_string(), message),
                ));
                failed = Some(BAD_INPUT);
            }
            Err(e) => return Err(e),
        }
    }
    if let Some(path) = &args.sarif {
        let files: Vec<(&str, &[Finding])> =
            found.iter().map(|(name, list)| (name.as_str(), &list[..])).collect();
        let log = sarif::log_of_files(&files, env!("CARGO_PKG_VERSION"));
        files::write(path, |out| writeln!(out, "{log:#}")).with_context(|| path.display().to_string())?;
    }
    if let Some(path) = &args.coverage {
        coverage.write(path)?;
    }
    if let Some(path) = &args.html {
        super::page::write(path, "wavesim check", pages)?;
    }
    if let Some(path) = &args.junit {
        let text = junit::report("wavesim check", &tests);
        files::write(path, |out| out.write_all(text.as_bytes()))
            .with_context(|| path.display().to_string())?;
    }
    Ok(failed.unwrap_or(code))
}

/// Checks a file. Of several files, each object of JSON names its file.
fn file(
    args: &CheckArgs,
    input: &InputArgs,
    several: bool,
    suppressions: &[Suppression],
    coverage: &Collected,
) -> anyhow::Result<FileResult> {
    let started = std::time::Instant::now();
    let name = super::input_name(&input.file);
    let mut text = Vec::new();
    let out = &mut text;
    let json = |mut value: Value| {
        if several {
            value["input"] = serde_json::json!(name);
        }
        value
    };
    if several && !args.json {
        writeln!(out, "{name}:")?;
    }
    let (prepared, services) = input.prepare_with_services(wavesim_inspect::check::GUARD_BYTES)?;
    let arch = prepared.program.arch;
    let checks = chosen(&args.checks, arch)?;
    let quiet = args.quiet || args.json || several;
    let coverage = args.coverage.as_ref().map(|_| coverage);
    let mut runs = Runs { checks, quiet, coverage, ..Runs::default() };
    let printed = runs.add(input, prepared, &services, None)?;
    match args.json {
        true => super::output::show_printed(&printed, &mut super::output::stderr())?,
        false => super::output::show_printed(&printed, out)?,
    }
    for seed in 1..args.orders {
        if runs.fault.is_some() {
            break;
        }
        let (prepared, services) = input.prepare_with_services(wavesim_inspect::check::GUARD_BYTES)?;
        // What it prints is shown once.
        runs.add(input, prepared, &services, Some(seed))?;
    }
    let Runs { findings, stats, fault, differences, .. } = runs;
    let found = findings.len();
    let suppressed = |finding: &Finding| suppressions.iter().any(|s| s.covers(finding));
    let (findings, orders): (Vec<Finding>, Vec<Option<u64>>) =
        findings.into_iter().filter(|(f, _)| !suppressed(f)).unzip();
    for (finding, order) in findings.iter().zip(&orders) {
        if args.json {
            let mut finding = finding.json();
            if let Some(seed) = order {
                finding["order"] = serde_json::json!(order_name(*seed));
            }
            writeln!(out, "{}", json(finding))?;
        } else {
            writeln!(out, "{finding}")?;
            if let Some(seed) = order {
                writeln!(out, "  = found with --order {}", order_name(*seed))?;
            }
            writeln!(out)?;
        }
        if args.print_suppressions {
            writeln!(out, "{}\n", Suppression::for_finding(finding).text())?;
        }
    }
    let errors = findings.iter().filter(|f| f.severity == Severity::Error).count();
    for (name, seed) in &differences {
        if args.json {
            let note = serde_json::json!({
                "schema": "wavesim-check-1", "severity": "note", "check": "orders", "kind": "output differs",
                "message": format!("{name} depends on the order"), "order": order_name(*seed),
            });
            writeln!(out, "{}", json(note))?;
        } else {
            writeln!(
                out,
                "note: {name} depends on the order: it differs with --order {}\n",
                order_name(*seed)
            )?;
        }
    }
    if let Some(fault) = &fault {
        if args.json {
            writeln!(out, "{}", json(fault_as_finding(fault)))?;
        } else {
            writeln!(out, "{fault}\n")?;
        }
    }
    let mut annotations = Vec::new();
    if args.annotate {
        annotate(&name, &findings, fault.as_deref(), &mut annotations)?;
    }
    let summary = {
        let mut more = String::new();
        let notes = findings.len() - errors + differences.len();
        for (n, what) in [(notes, "note"), (found - findings.len(), "suppressed finding")] {
            if n > 0 {
                more += &format!(", {}", count(n, what));
            }
        }
        let (instructions, waves) = (stats.instructions, stats.waves);
        match (errors, &fault) {
            (0, None) => format!("clean: {instructions} wave-instructions, {waves} waves{more}"),
            (0, Some(_)) => format!("the kernel faulted{more}"),
            (n, None) => format!("{}{more}", count(n, "finding")),
            (n, Some(_)) => format!("{}{more}; then the kernel faulted", count(n, "finding")),
        }
    };
    if !args.json {
        writeln!(out, "{summary}")?;
    }
    let code = match &fault {
        Some(fault) if fault.kind == FaultKind::Interrupted => INTERRUPTED,
        None if errors == 0 => OK,
        _ => FAILED,
    };
    let first = findings.iter().find(|f| f.severity == Severity::Error);
    let headline = first.map(|f| format!("{}: {}", f.site.place(), f.message));
    let headline = headline.or_else(|| fault.as_ref().map(|fault| fault.message.clone())).unwrap_or_default();
    let page = args.html.is_some().then(|| {
        let orders = orders.iter().map(|seed| seed.map(order_name));
        let findings = findings.iter().zip(orders).map(|(finding, order)| {
            let mut finding = finding.json();
            finding["order"] = serde_json::json!(order);
            finding
        });
        let findings = findings.chain(fault.as_deref().map(fault_as_finding)).collect();
        super::page::of_check(input, &name, &summary, findings)
    });
    let page = page.transpose()?;
    Ok(FileResult {
        text,
        annotations,
        findings,
        page,
        code,
        seconds: started.elapsed().as_secs_f64(),
        headline,
    })
}

/// Prints the annotations of a file's findings.
fn annotate(
    name: &str,
    findings: &[Finding],
    fault: Option<&Fault>,
    out: &mut dyn Write,
) -> anyhow::Result<()> {
    for finding in findings {
        let title = format!("{}: {}", finding.check.name(), finding.kind);
        let (file, line) = (finding.site.file.as_deref().unwrap_or(name), finding.site.line);
        let error = finding.severity == Severity::Error;
        let message = match &finding.hint {
            Some(hint) => format!("{}\n{hint}", finding.message),
            None => finding.message.clone(),
        };
        writeln!(out, "{}", Annotation { error, file, line, title: &title, message: &message })?;
    }
    if let Some(fault) = fault {
        let (file, line) = (fault.file.as_deref().unwrap_or(name), fault.line);
        let title = fault.kind.name();
        writeln!(out, "{}", Annotation { error: true, file, line, title, message: &fault.message })?;
    }
    Ok(())
}

/// The runs of a kernel in several orders.
#[derive(Default)]
struct Runs<'c> {
    /// The checks; none stands for the default.
    checks: Vec<Check>,
    /// The findings, each with the seed of the order in which it was first found; `None` for the first run.
    findings: Vec<(Finding, Option<u64>)>,
    /// Outputs that differ from those of the first run, each with the seed of the order.
    differences: Vec<(String, u64)>,
    /// The outputs of the first run.
    outputs: Vec<(String, Vec<u8>)>,
    stats: RunStats,
    fault: Option<Box<Fault>>,
    /// Show no progress bar.
    quiet: bool,
    /// Where what has run is added.
    coverage: Option<&'c Collected>,
}

impl Runs<'_> {
    /// Runs the kernel in the order of the command line or in a random one. Findings of the same two instructions
    /// are one finding. Returns what the kernel has printed.
    fn add(
        &mut self,
        input: &InputArgs,
        prepared: Prepared,
        services: &Services,
        seed: Option<u64>,
    ) -> anyhow::Result<Printed> {
        let mut dispatch = input.dispatch(&prepared)?;
        if let Some(seed) = seed {
            dispatch.schedule = if is_fine(seed) { Schedule::Fine(seed) } else { Schedule::Random(seed) };
            dispatch.order = GroupOrder::Random(seed);
            dispatch.recorded = None;
        }
        let bar = super::progress::Bar::new(self.quiet, &dispatch);
        dispatch.progress = Some(bar.counters());
        let name = super::input_name(&input.file);
        let mut recorder = self.coverage.map(|_| Recorder::new(&prepared, &name));
        let run = || checked(&prepared, &dispatch, &self.checks, recorder.as_mut());
        let (result, printed) = services.serve(&prepared.memory, || bar.during(run));
        let (findings, stats, fault) = result?;
        if let (Some(recorder), Some(coverage)) = (recorder, self.coverage) {
            coverage.add(&recorder.finish())?;
        }
        let key = |f: &Finding| (f.check, f.kind, f.severity, f.site.pc, f.other.as_ref().map(|o| o.site.pc));
        for finding in findings {
            match self.findings.iter_mut().find(|(known, _)| key(known) == key(&finding)) {
                Some((known, _)) => known.count += finding.count,
                None => self.findings.push((finding, seed)),
            }
        }
        self.stats.instructions += stats.instructions;
        self.stats.waves += stats.waves;
        let outputs = prepared.outputs()?;
        let outputs = outputs.into_iter().map(|(name, array)| (name.to_string(), array.bytes));
        match seed {
            None => self.outputs = outputs.collect(),
            // A kernel that faults has no results.
            Some(seed) if fault.is_none() => {
                for ((name, bytes), (_, first)) in outputs.zip(&self.outputs) {
                    if bytes != *first && self.differences.iter().all(|(known, _)| *known != name) {
                        self.differences.push((name, seed));
                    }
                }
            }
            Some(_) => {}
        }
        self.fault = fault;
        Ok(printed)
    }
}

/// Returns whether the waves of a random order have turns of a few instructions: in every fourth one, as these take
/// longer.
fn is_fine(seed: u64) -> bool {
    seed % 4 == 3
}

/// Returns a random order as an argument of `--order`.
fn order_name(seed: u64) -> String {
    format!("{}:{seed}", if is_fine(seed) { "fine" } else { "random" })
}

/// `1 finding`, `2 findings`.
fn count(n: usize, what: &str) -> String {
    format!("{n} {what}{}", if n == 1 { "" } else { "s" })
}
