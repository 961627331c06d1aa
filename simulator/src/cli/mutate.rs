//! `wavesim mutate`: weakens the waits, barriers, cache controls and scopes of a kernel one by one, and reports which of
//! them its results need.

use super::input::InputArgs;
use super::memory::Memory;
use super::output::emit;
use super::{INTERRUPTED, OK, progress};
use anyhow::bail;
use serde_json::{Value, json};
use std::io::Write;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use wavesim_cost::data;
use wavesim_cost::model::{Effort, History};
use wavesim_cost::profile::{self, Costs};
use wavesim_cost::report;
use wavesim_engine::observe::{Observer, Skip, Step};
use wavesim_engine::sched::dispatch::{self, INTERRUPT};
use wavesim_explore::choice::{Follow, run as run_schedule};
use wavesim_explore::machine::{End, Machine};
use wavesim_explore::mutate::{Variant, Weakening, variants};
use wavesim_explore::outcome::{Difference, Outcome};
use wavesim_explore::pct::Pct;
use wavesim_inspect::check::{Check, Checker, Finding, GUARD_BYTES, Severity};
use wavesim_loader::compare::Tolerance;
use wavesim_loader::prepared::Prepared;

/// Weaken each wait, barrier, cache control, scope and delay of a kernel, one at a time, and report which are needed
#[derive(Debug, clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub struct MutateArgs {
    #[command(flatten)]
    pub input: InputArgs,
    /// Other launches of the same kernel, which also tell if a variant is wrong
    #[arg(long, value_name = "FILE", num_args = 1..)]
    pub tests: Vec<PathBuf>,
    /// Weaken only these: wait, barrier, cache, scope, delay [default: all]
    #[arg(long, value_name = "KIND[,KIND]", value_delimiter = ',', value_parser = parse_kind)]
    pub kind: Vec<Weakening>,
    /// Number of random schedules of each variant
    #[arg(long, value_name = "N", default_value_t = 100)]
    pub random: u64,
    /// Orderings for which random schedules are made
    #[arg(long, value_name = "D", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=64))]
    pub depth: u32,
    /// Relative difference of floats that counts as equal
    #[arg(long, value_name = "T", default_value_t = 0.0)]
    pub tolerance: f64,
    /// When memory operations take effect in these schedules: `delayed`, at times that are explored, with garbage in
    /// registers, LDS and scratch at first; or `immediate`
    #[arg(long, value_name = "TIMING", default_value = "delayed", value_parser = Memory::parse)]
    pub memory: Memory,
    /// Host threads
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub threads: u16,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
    /// Show no progress
    #[arg(long, short = 'q')]
    pub quiet: bool,
}

const EXAMPLES: &str = "\
Examples:
  wavesim mutate kernel.rdna
  wavesim mutate kernel.rdna --kind wait --random 0
  wavesim mutate vadd/launch.json --target gfx1201 --tests vadd/large.json --json

A variant is needed if the result changes in one of its schedules; reported, if
only `wavesim check` notices it; and not shown to be needed otherwise: nothing in
these launches depends on it.";

fn parse_kind(name: &str) -> Result<Weakening, String> {
    let names = || Weakening::ALL.map(Weakening::name).join(", ");
    Weakening::from_name(name).ok_or_else(|| format!("kinds are {}", names()))
}

/// What is known of a variant.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Verdict {
    /// Results differ: in which launch and schedule, and how.
    Needed(String),
    /// Only a check reports it.
    Reported(String),
    /// Nothing shows that it is needed.
    NotSeen,
    /// No launch executes it.
    NotExecuted,
}

/// A launch, with the outcome of the kernel as it is.
struct Test<'a> {
    input: InputArgs,
    name: String,
    first: Outcome,
    /// Errors that the kernel has as it is.
    findings: Vec<Finding>,
    /// By instruction: number of executions.
    counts: Vec<u64>,
    /// By instruction: the clocks that an execution is predicted to take, stalls included; empty without a prediction.
    clocks: Vec<f64>,
    /// Steps of a run.
    steps: u64,
    args: &'a MutateArgs,
}

/// Counts the executions of each instruction.
struct Counts(Vec<u64>);

impl Observer for Counts {
    fn skip(&mut self, step: &Step<'_>) -> Skip {
        self.0[step.index] += 1;
        Skip::default()
    }
}

/// Steps after which waves take turns.
const LIMIT: u64 = 10_000;

impl<'a> Test<'a> {
    fn new(args: &'a MutateArgs, input: InputArgs) -> anyhow::Result<Test<'a>> {
        let prepared = input.prepare(0)?;
        let dispatch = input.dispatch(&prepared)?;
        let mut counts = Counts(vec![0; prepared.program.insts.len()]);
        let (stats, result) = dispatch::run_observed(&dispatch, &prepared.memory, &mut counts);
        let first = Outcome::of_run(&prepared, result.map(|()| stats));
        drop(dispatch);
        let name = super::input_name(&input.file);
        let (counts, clocks) = (counts.0, predicted(&input)?);
        let mut test = Test { name, first, findings: Vec::new(), counts, clocks, steps: 0, input, args };
        test.findings = test.check(None)?;
        let prepared = test.input.prepare(0)?;
        let dispatch = test.input.dispatch(&prepared)?;
        let mut machine = Machine::new(&prepared, &dispatch)?;
        test.steps = run_schedule(&mut machine, &mut Follow::new(&[]), LIMIT).steps;
        Ok(test)
    }

    /// Prepares the launch, with a variant of the kernel.
    fn prepare(&self, guard: u64, variant: Option<&Variant>) -> anyhow::Result<Prepared> {
        let mut prepared = self.input.prepare(guard)?;
        if let Some(variant) = variant {
            let Some(program) = variant.apply(&prepared.program) else {
                bail!("the variant has another size")
            };
            prepared.program = program;
        }
        Ok(prepared)
    }

    /// Returns the errors that the checks report.
    fn check(&self, variant: Option<&Variant>) -> anyhow::Result<Vec<Finding>> {
        let prepared = self.prepare(GUARD_BYTES, variant)?;
        let dispatch = self.input.dispatch(&prepared)?;
        let mut checker = Checker::new(&prepared, Check::default_of(prepared.program.arch))?;
        let (_, result) = checker.run(&dispatch);
        let findings = checker.finish(result.err().as_deref());
        Ok(findings.into_iter().filter(|finding| finding.severity == Severity::Error).collect())
    }

    /// Returns an error that a variant has and the kernel has not.
    fn new_finding(&self, variant: &Variant) -> anyhow::Result<Option<String>> {
        let key = |f: &Finding| (f.check, f.kind, f.site.pc, f.other.as_ref().map(|other| other.site.pc));
        let found = self.check(Some(variant))?;
        let new = found.iter().find(|finding| self.findings.iter().all(|known| key(known) != key(finding)));
        Ok(new.map(|f| format!("{}: {} ({})", f.check.name(), f.message, f.site.place())))
    }

    /// Returns in what an outcome of a variant differs.
    fn difference(&self, variant: &Variant) -> anyhow::Result<Option<String>> {
        let tolerance = Tolerance { rtol: self.args.tolerance, atol: 0.0 };
        let line = |difference: Difference| match difference.first() {
            Some((output, index, first, other)) => format!("{output}[{index}] is {other} instead of {first}"),
            None => match difference {
                Difference::Ends(_, other) => other,
                Difference::Outputs(_) => "the outputs differ".to_string(),
            },
        };
        let prepared = self.prepare(0, Some(variant))?;
        let model = self.args.memory.model(&prepared);
        let mut dispatch = self.input.dispatch(&prepared)?;
        self.args.memory.apply(&mut dispatch, model.as_ref());
        let mut machine = Machine::new(&prepared, &dispatch)?;
        let limit = self.steps.saturating_mul(20).max(LIMIT);
        let compare = |end: End, how: &str| {
            let outcome = Outcome::read(&prepared, end);
            let difference = self.first.difference(&outcome, tolerance)?;
            Some(format!("{}{how}", line(difference)))
        };
        if let Some(end) = run_schedule(&mut machine, &mut Follow::new(&[]), limit).end
            && let Some(found) = compare(end, "")
        {
            return Ok(Some(found));
        }
        for seed in 0..self.args.random {
            if INTERRUPT.load(Ordering::Relaxed) {
                break;
            }
            let mut pct = Pct::new(seed, machine.threads(), self.steps, self.args.depth);
            if machine.has_delays() {
                pct = pct.with_delays();
            }
            if let Some(end) = run_schedule(&mut machine, &mut pct, limit).end
                && let Some(found) = compare(end, &format!(" (schedule {})", seed + 1))
            {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }
}

/// Returns the clocks that an execution of each instruction is predicted to take on the first device of the architecture.
fn predicted(input: &InputArgs) -> anyhow::Result<Vec<f64>> {
    let prepared = input.prepare(0)?;
    // No device, no prediction.
    let Ok(device) = data::device_of(prepared.program.arch) else { return Ok(Vec::new()) };
    let dispatch = input.dispatch(&prepared)?;
    let (regions, costs) = (profile::regions(&prepared), Costs::of(device)?);
    let history = &mut History::default();
    let (_, result) = profile::run(
        &dispatch,
        &prepared.memory,
        &regions,
        &costs,
        &Effort::time(&costs.model),
        (history, true),
    )?;
    let Ok(profile) = result else { return Ok(Vec::new()) };
    let mut clocks = vec![0.0; prepared.program.insts.len()];
    for row in &profile.rows {
        let numbers = report::numbers(&profile, row);
        clocks[row.index] = numbers.clocks / numbers.executed.max(1) as f64;
    }
    Ok(clocks)
}

/// Finds out if a variant is wrong.
fn judge(tests: &[Test<'_>], variant: &Variant) -> anyhow::Result<Verdict> {
    let executing =
        || tests.iter().filter(|test| test.counts.get(variant.index).is_some_and(|count| *count > 0));
    if executing().next().is_none() {
        return Ok(Verdict::NotExecuted);
    }
    let named = |test: &Test<'_>, text: String| match tests.len() {
        1 => text,
        _ => format!("{}: {text}", test.name),
    };
    for test in executing() {
        if let Some(text) = test.difference(variant)? {
            return Ok(Verdict::Needed(named(test, text)));
        }
    }
    for test in executing() {
        if let Some(text) = test.new_finding(variant)? {
            return Ok(Verdict::Reported(named(test, text)));
        }
    }
    Ok(Verdict::NotSeen)
}

pub fn run(args: &MutateArgs, out: &mut dyn Write) -> anyhow::Result<u8> {
    progress::catch_interrupts();
    let inputs = std::iter::once(args.input.clone())
        .chain(args.tests.iter().map(|file| InputArgs { file: file.clone(), ..args.input.clone() }));
    let tests: Vec<Test<'_>> = inputs.map(|input| Test::new(args, input)).collect::<anyhow::Result<_>>()?;
    let prepared = args.input.prepare(0)?;
    let program = &prepared.program;
    for test in &tests[1..] {
        let other = test.input.prepare(0)?;
        if other.program.insts != program.insts {
            bail!("{}: this is another kernel", test.name);
        }
    }
    let mut list = variants(program);
    list.retain(|variant| args.kind.is_empty() || args.kind.contains(&variant.kind));
    let next = AtomicUsize::new(0);
    let verdicts: Mutex<Vec<Option<Verdict>>> = Mutex::new(vec![None; list.len()]);
    let work = || -> anyhow::Result<()> {
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(variant) = list.get(index) else { return Ok(()) };
            let verdict = judge(&tests, variant)?;
            if INTERRUPT.load(Ordering::Relaxed) {
                return Ok(());
            }
            let mut verdicts = verdicts.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            verdicts[index] = Some(verdict);
        }
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..args.threads).map(|_| scope.spawn(work)).collect();
        let join = |thread: std::thread::ScopedJoinHandle<'_, _>| {
            thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        };
        threads.into_iter().map(join).collect::<anyhow::Result<Vec<()>>>()
    })?;
    let verdicts = verdicts.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    let rows: Vec<(&Variant, &Verdict)> = list
        .iter()
        .zip(&verdicts)
        .filter_map(|(variant, verdict)| Some((variant, verdict.as_ref()?)))
        .collect();
    let executed = |variant: &Variant| {
        tests.iter().map(|test| test.counts.get(variant.index).copied().unwrap_or(0)).sum::<u64>()
    };
    let clocks = |variant: &Variant| {
        tests.iter().find_map(|test| test.clocks.get(variant.index).copied().filter(|clocks| *clocks > 0.0))
    };
    match args.json {
        true => {
            let rows: Vec<Value> = rows
                .iter()
                .map(|(variant, verdict)| {
                    row_json(&prepared, variant, verdict, executed(variant), clocks(variant))
                })
                .collect();
            writeln!(out, "{}", json!({ "schema": "wavesim-mutate-1", "variants": rows }))?;
        }
        false => table(&prepared, &rows, executed, clocks, out)?,
    }
    if verdicts.iter().any(Option::is_none) {
        emit("note: interrupted: the other variants have not run");
        return Ok(INTERRUPTED);
    }
    Ok(OK)
}

fn table(
    prepared: &Prepared,
    rows: &[(&Variant, &Verdict)],
    executed: impl Fn(&Variant) -> u64,
    clocks: impl Fn(&Variant) -> Option<f64>,
    out: &mut dyn Write,
) -> anyhow::Result<()> {
    let program = &prepared.program;
    let mut last = None;
    for (variant, verdict) in rows {
        if last != Some(variant.index) {
            let (place, text) = (program.place(program.pcs[variant.index]), program.text(variant.index));
            writeln!(out, "{place}: {text}")?;
        }
        last = Some(variant.index);
        let change = variant.text.clone().unwrap_or_else(|| "removed".to_string());
        let what = match verdict {
            Verdict::Needed(how) => format!("needed: {how}"),
            Verdict::Reported(finding) => format!("reported by check only: {finding}"),
            Verdict::NotSeen => {
                let costs =
                    clocks(variant).map(|clocks| format!(", costs about {clocks:.0} clocks each time"));
                format!(
                    "nothing seen needs it: executed {} times{}",
                    executed(variant),
                    costs.unwrap_or_default()
                )
            }
            Verdict::NotExecuted => "not executed".to_string(),
        };
        writeln!(out, "  {change}\n      {what}")?;
    }
    let count = |of: fn(&Verdict) -> bool| rows.iter().filter(|(_, verdict)| of(verdict)).count();
    writeln!(
        out,
        "{} variants: {} needed, {} reported by check only, {} not seen to be needed, {} not executed",
        rows.len(),
        count(|v| matches!(v, Verdict::Needed(_))),
        count(|v| matches!(v, Verdict::Reported(_))),
        count(|v| *v == Verdict::NotSeen),
        count(|v| *v == Verdict::NotExecuted)
    )?;
    Ok(())
}

fn row_json(
    prepared: &Prepared,
    variant: &Variant,
    verdict: &Verdict,
    executed: u64,
    clocks: Option<f64>,
) -> Value {
    let program = &prepared.program;
    let pc = program.pcs[variant.index];
    let location = program.location(pc);
    let (name, detail) = match verdict {
        Verdict::Needed(how) => ("needed", Some(how)),
        Verdict::Reported(finding) => ("reported", Some(finding)),
        Verdict::NotSeen => ("not seen", None),
        Verdict::NotExecuted => ("not executed", None),
    };
    json!({
        "file": location.as_ref().and_then(|location| location.file.as_deref()),
        "line": location.as_ref().map(|location| location.line),
        "pc": program.address(pc),
        "instruction": program.text(variant.index),
        "kind": variant.kind.name(),
        "variant": variant.text,
        "verdict": name,
        "detail": detail,
        "executed": executed,
        "clocks_each": clocks,
    })
}
