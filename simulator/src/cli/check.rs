//! `wavesim check`: runs a kernel under checks that hardware does not make.

use super::{FAILED, INTERRUPTED, OK};
use anyhow::bail;
use std::io::Write;
use wavesim_engine::sched::dispatch::{self, RunStats};
use wavesim_inspect::check::{Check, Checker, Finding};
use wavesim_loader::prepared::Prepared;
use wavesim_machine::fault::{Fault, FaultKind};

/// Run a kernel and report errors: out-of-bounds accesses, uninitialised registers and memory, races, missing waits,
/// barriers, hazards
#[derive(Debug, clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub struct CheckArgs {
    #[command(flatten)]
    pub input: super::input::InputArgs,
    /// Run only these checks: mem, init, race, waits, barrier, hazard
    #[arg(long = "check", value_name = "NAME[,NAME]", value_delimiter = ',', value_parser = parse_check)]
    pub checks: Vec<Check>,
    /// Print JSON Lines, one object per finding
    #[arg(long)]
    pub json: bool,
    /// Show no progress bar
    #[arg(long, short = 'q')]
    pub quiet: bool,
}

const EXAMPLES: &str = "\
Examples:
  wavesim check kernel.rdna
  wavesim check vadd/launch.json --target gfx1201 --check mem,waits
  wavesim check kernel.rdna --json | jq .message

Exit codes: 0 no findings; 1 findings, or the kernel faulted; 2 bad usage or bad
input; 130 interrupted.";

pub fn parse_check(name: &str) -> Result<Check, String> {
    Check::from_name(name).ok_or_else(|| {
        let names: Vec<&str> = Check::ALL.iter().map(|c| c.name()).collect();
        format!("checks are {}", names.join(", "))
    })
}

/// The findings, the statistics of the run, and the fault that ended it, if any.
pub type Checked = (Vec<Finding>, RunStats, Option<Box<Fault>>);

/// Runs the kernel with some checks; an empty list means all.
pub fn checked(
    prepared: &Prepared,
    dispatch: &dispatch::Dispatch<'_>,
    checks: &[Check],
) -> Result<Checked, dispatch::DispatchError> {
    let checks = if checks.is_empty() { Check::of(prepared.program.arch) } else { checks };
    let mut checker = Checker::new(prepared, checks)?;
    let (stats, result) = dispatch::run_observed(dispatch, &prepared.memory, &mut checker);
    let fault = result.err();
    let findings = checker.finish(fault.as_deref());
    // The barrier check has already reported a deadlock.
    let reported = checks.contains(&Check::Barrier);
    let fault = fault.filter(|f| !(reported && f.kind == FaultKind::BarrierDeadlock));
    Ok((findings, stats, fault))
}

pub fn run(args: &CheckArgs, out: &mut dyn Write) -> anyhow::Result<u8> {
    let prepared = args.input.prepare(wavesim_inspect::check::GUARD_BYTES)?;
    let arch = prepared.program.arch;
    let possible = Check::of(arch);
    if let Some(check) = args.checks.iter().find(|c| !possible.contains(c)) {
        let names: Vec<&str> = possible.iter().map(|c| c.name()).collect();
        bail!("{} does not have the check `{}`; it has {}", arch.name(), check.name(), names.join(", "));
    }
    super::progress::catch_interrupts();
    let mut dispatch = args.input.dispatch(&prepared)?;
    let bar = super::progress::Bar::new(args.quiet || args.json, dispatch.workgroups());
    dispatch.progress = Some(bar.counter());
    let (findings, stats, fault) = bar.during(|| checked(&prepared, &dispatch, &args.checks))?;
    for finding in &findings {
        if args.json {
            writeln!(out, "{}", finding.json())?;
        } else {
            writeln!(out, "{finding}\n")?;
        }
    }
    if let Some(fault) = &fault {
        if args.json {
            writeln!(out, "{}", fault_json(fault))?;
        } else {
            writeln!(out, "{fault}\n")?;
        }
    }
    if !args.json {
        let waves = stats.waves;
        match (findings.len(), &fault) {
            (0, None) => writeln!(out, "clean: {} wave-instructions, {waves} waves", stats.instructions)?,
            (0, Some(_)) => writeln!(out, "the kernel faulted")?,
            (n, fault) => {
                let s = if n == 1 { "" } else { "s" };
                let end = if fault.is_some() { "; then the kernel faulted" } else { "" };
                writeln!(out, "{n} finding{s}{end}")?;
            }
        }
    }
    Ok(match &fault {
        Some(fault) if fault.kind == FaultKind::Interrupted => INTERRUPTED,
        None if findings.is_empty() => OK,
        _ => FAILED,
    })
}

/// A fault, in the JSON form of a finding.
fn fault_json(fault: &Fault) -> serde_json::Value {
    serde_json::json!({
        "check": "fault",
        "kind": fault.kind.name(),
        "message": fault.message,
        "line": fault.line,
        "file": fault.file.as_deref(),
        "pc": fault.pc,
        "text": fault.instruction,
        "workgroup": fault.workgroup,
        "wave": fault.wave,
        "lane": fault.lane,
        "address": fault.address.map(|a| format!("{a:x}")),
    })
}
