//! `wavesim check`: runs a kernel under checks that hardware does not make.

use super::{FAILED, INTERRUPTED, OK};
use anyhow::{Context as _, bail};
use std::io::Write;
use std::path::{Path, PathBuf};
use wavesim_engine::sched::dispatch::{self, GroupOrder, RunStats, Schedule};
use wavesim_files as files;
use wavesim_inspect::check::suppress::{self, Suppression};
use wavesim_inspect::check::{Check, Checker, Finding, Severity, fault_as_finding, sarif};
use wavesim_isa::arch::Arch;
use wavesim_loader::prepared::Prepared;
use wavesim_machine::fault::{Fault, FaultKind};

/// Run a kernel and report errors: out-of-bounds accesses, uninitialised registers and memory, races, missing waits,
/// barriers, hazards
#[derive(Debug, clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub struct CheckArgs {
    #[command(flatten)]
    pub input: super::input::InputArgs,
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

/// Runs the kernel with some checks; an empty list means all.
pub fn checked(
    prepared: &Prepared,
    dispatch: &dispatch::Dispatch<'_>,
    checks: &[Check],
) -> Result<Checked, dispatch::DispatchError> {
    let checks = if checks.is_empty() { Check::default_of(prepared.program.arch) } else { checks };
    let mut checker = Checker::new(prepared, checks)?;
    let (stats, result) = checker.run(dispatch);
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

fn write_sarif(path: &Path, findings: &[Finding], input: &Path) -> anyhow::Result<()> {
    let log = sarif::log(findings, &input.display().to_string(), env!("CARGO_PKG_VERSION"));
    files::write(path, |out| writeln!(out, "{log:#}")).with_context(|| path.display().to_string())
}

pub fn run(args: &CheckArgs, out: &mut dyn Write) -> anyhow::Result<u8> {
    let suppressions = suppressions(&args.suppress)?;
    let prepared = args.input.prepare(wavesim_inspect::check::GUARD_BYTES)?;
    let arch = prepared.program.arch;
    let checks = chosen(&args.checks, arch)?;
    super::progress::catch_interrupts();
    let mut runs = Runs { checks, ..Runs::default() };
    runs.add(args, prepared, None)?;
    for seed in 1..args.orders {
        if runs.fault.is_some() {
            break;
        }
        runs.add(args, args.input.prepare(wavesim_inspect::check::GUARD_BYTES)?, Some(seed))?;
    }
    let Runs { findings, stats, fault, differences, .. } = runs;
    let found = findings.len();
    let suppressed = |finding: &Finding| suppressions.iter().any(|s| s.covers(finding));
    let (findings, orders): (Vec<Finding>, Vec<Option<u64>>) =
        findings.into_iter().filter(|(f, _)| !suppressed(f)).unzip();
    if let Some(path) = &args.sarif {
        write_sarif(path, &findings, &args.input.file)?;
    }
    for (finding, order) in findings.iter().zip(&orders) {
        if args.json {
            let mut finding = finding.json();
            if let Some(seed) = order {
                finding["order"] = serde_json::json!(format!("random:{seed}"));
            }
            writeln!(out, "{finding}")?;
        } else {
            writeln!(out, "{finding}")?;
            if let Some(seed) = order {
                writeln!(out, "  = found with --order random:{seed}")?;
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
                "message": format!("{name} depends on the order"), "order": format!("random:{seed}"),
            });
            writeln!(out, "{note}")?;
        } else {
            writeln!(out, "note: {name} depends on the order: it differs with --order random:{seed}\n")?;
        }
    }
    if let Some(fault) = &fault {
        if args.json {
            writeln!(out, "{}", fault_as_finding(fault))?;
        } else {
            writeln!(out, "{fault}\n")?;
        }
    }
    if !args.json {
        let mut more = String::new();
        let notes = findings.len() - errors + differences.len();
        for (n, what) in [(notes, "note"), (found - findings.len(), "suppressed finding")] {
            if n > 0 {
                more += &format!(", {}", count(n, what));
            }
        }
        let (instructions, waves) = (stats.instructions, stats.waves);
        match (errors, &fault) {
            (0, None) => writeln!(out, "clean: {instructions} wave-instructions, {waves} waves{more}")?,
            (0, Some(_)) => writeln!(out, "the kernel faulted{more}")?,
            (n, None) => writeln!(out, "{}{more}", count(n, "finding"))?,
            (n, Some(_)) => writeln!(out, "{}{more}; then the kernel faulted", count(n, "finding"))?,
        }
    }
    Ok(match &fault {
        Some(fault) if fault.kind == FaultKind::Interrupted => INTERRUPTED,
        None if errors == 0 => OK,
        _ => FAILED,
    })
}

/// The runs of a kernel in several orders.
#[derive(Default)]
struct Runs {
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
}

impl Runs {
    /// Runs the kernel in the order of the command line or in a random one. Findings of the same two instructions
    /// are one finding.
    fn add(&mut self, args: &CheckArgs, prepared: Prepared, seed: Option<u64>) -> anyhow::Result<()> {
        let mut dispatch = args.input.dispatch(&prepared)?;
        if let Some(seed) = seed {
            (dispatch.schedule, dispatch.order) = (Schedule::Random(seed), GroupOrder::Random(seed));
        }
        let bar = super::progress::Bar::new(args.quiet || args.json, &dispatch);
        dispatch.progress = Some(bar.counters());
        let (findings, stats, fault) = bar.during(|| checked(&prepared, &dispatch, &self.checks))?;
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
        Ok(())
    }
}

/// `1 finding`, `2 findings`.
fn count(n: usize, what: &str) -> String {
    format!("{n} {what}{}", if n == 1 { "" } else { "s" })
}
