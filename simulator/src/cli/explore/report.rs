//! The result of an exploration: what differs, why, and how to replay it.

use super::formats::Difference;
use super::{
    Coverage, Expected, Exploration, OutcomeRuns, Wrong, exit_code, lock, note, schedule_file, with_machine,
};
use anyhow::Context as _;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;
use wavesim_engine::delayed::OperationId;
use wavesim_engine::sched::recorded::{Noted, Recorded};
use wavesim_explore::cause::{self, Place};
use wavesim_explore::choice::segments_of;
use wavesim_explore::delay::{self, Delay};
use wavesim_explore::machine::{Event, Machine};
use wavesim_explore::minimise::{Found, follow, minimise};
use wavesim_explore::pct;
use wavesim_explore::stale;
use wavesim_files as files;

/// Runs of the minimisation, at most.
const BUDGET: u64 = 2000;
/// Pairs of accesses that are printed.
const SHOWN: usize = 3;

/// A minimised schedule whose outcome is not as expected.
struct Shown {
    recorded: Recorded,
    /// By turn: where its wave is at its end.
    notes: Vec<Option<String>>,
    /// What differs.
    difference: String,
    /// The accesses whose order makes the difference.
    causes: Vec<String>,
    /// The places of the second and the first access of these, if any.
    places: Vec<Place>,
    /// Only the order of atomics on floats differs.
    float_order: bool,
    preemptions: usize,
    preempted: Vec<String>,
    /// The delayed operations.
    delays: Vec<Delay>,
    /// Accesses that did not see the newest value.
    stale: Vec<Delay>,
    /// Comments about them.
    operations: BTreeMap<OperationId, String>,
    /// Without garbage in registers, LDS and scratch, the outcome is as expected.
    garbage: bool,
    found: Wrong,
}

/// Prints the result; returns the exit code.
pub fn report(exploration: &Exploration<'_>, coverage: &Coverage, out: &mut dyn Write) -> anyhow::Result<u8> {
    let wrong = lock(&exploration.wrong).clone();
    let shown = match wrong {
        Some(wrong) => Some(with_machine(exploration.args, |machine| explain(exploration, machine, wrong))?),
        None => None,
    };
    let path = schedule_file(exploration.args);
    if let Some(shown) = &shown {
        let text = shown.recorded.text(|noted| match noted {
            Noted::Turn(at, _) => shown.notes.get(at).cloned().flatten(),
            Noted::Late(id) => shown.operations.get(&id).cloned(),
            Noted::Action(_) => None,
        });
        files::write(&path, |out| out.write_all(text.as_bytes()))
            .with_context(|| path.display().to_string())?;
    }
    let groups: Vec<OutcomeRuns> = lock(&exploration.outcomes).values().cloned().collect();
    let mut told = Vec::new();
    if !exploration.args.json || exploration.args.html.is_some() {
        text(exploration, coverage, shown.as_ref(), groups.clone(), &path, &mut told)?;
    }
    match exploration.args.json {
        true => writeln!(out, "{}", as_json(exploration, coverage, shown.as_ref(), &groups, &path))?,
        false => out.write_all(&told)?,
    }
    let wrong = shown.as_ref().map(|shown| Difference {
        message: shown.difference.lines().next().unwrap_or_default().to_string(),
        details: format!("{}\n{}", shown.difference, shown.causes.join("\n")),
        places: &shown.places,
    });
    super::formats::write(exploration, wrong.as_ref(), out)?;
    if let Some(path) = &exploration.args.html {
        super::html::write(path, exploration, wrong.as_ref(), &groups, &String::from_utf8_lossy(&told))?;
    }
    Ok(exit_code(exploration, shown.is_some()))
}

/// Minimises a schedule, and finds the accesses that it makes in another order.
fn explain(exploration: &Exploration<'_>, machine: &mut Machine<'_>, found: Wrong) -> anyhow::Result<Shown> {
    let wrong = |outcome: &_| exploration.expected.is_wrong(outcome);
    let stop = || exploration.is_interrupted();
    let limit = exploration.limit;
    let mut minimal = minimise(machine, &found.schedule, limit, BUDGET, &wrong, &stop);
    if minimal.is_none() {
        // Interrupted before the first run.
        minimal = follow(machine, &found.schedule, limit);
    }
    let minimal = minimal.context("the schedule does not lead to the same outcome again")?;
    let pairs = cause::of_difference(machine, &minimal, limit, &wrong);
    let float_order = !pairs.is_empty() && pairs.iter().all(|pair| cause::is_float_order(machine, pair));
    let causes = pairs.iter().take(SHOWN).map(|pair| cause::describe(machine, pair)).collect();
    let first = pairs.first();
    let events = first.iter().flat_map(|pair| [&pair.second, &pair.first]);
    let places = events.filter_map(|event| Place::of(machine, event)).collect();
    // The schedule is that of the last run of the machine.
    let again = follow(machine, &minimal.schedule, limit).context("the schedule cannot be repeated")?;
    debug_assert_eq!(again.outcome, minimal.outcome);
    let recorded = machine.recorded(exploration.kernel);
    let delays = delay::describe(machine, &minimal);
    let stale = stale::describe(machine, &minimal);
    let ids = recorded.late().operations.iter().copied();
    let operations = ids.zip(delays.iter().map(|delay| delay.operation.clone())).collect();
    let in_order =
        minimal.preemptions == 0 && minimal.schedule.late.is_empty() && pairs.is_empty() && stale.is_empty();
    let garbage = in_order && machine.has_delays();
    let difference = match &exploration.expected {
        Expected::Equal(first, tolerance) => first
            .difference(&minimal.outcome, *tolerance)
            .map_or_else(String::new, |difference| difference.to_string()),
        Expected::Condition(assertion) => {
            format!("not as expected: {}\n  {}", assertion.text(), minimal.outcome.line())
        }
    };
    let mut notes = notes(machine, &minimal);
    if notes.len() != recorded.turns().len() {
        notes.clear();
    }
    Ok(Shown {
        recorded,
        notes,
        difference,
        causes,
        places,
        float_order,
        preemptions: minimal.preemptions,
        preempted: preempted(machine, &minimal),
        delays,
        stale,
        operations,
        garbage,
        found,
    })
}

/// Returns, for each turn, a comment about its wave, and about its next visible operation if it has one.
fn notes(machine: &Machine<'_>, minimal: &Found) -> Vec<Option<String>> {
    let program = &machine.prepared.program;
    let (mut out, mut end) = (Vec::new(), 0);
    let events = wave_events(machine, minimal);
    for segment in segments_of(events.iter().map(|event| event.thread)) {
        end += segment.steps as usize;
        let later = events.get(end..).unwrap_or_default().iter();
        let next = later.filter(|event| event.thread == segment.thread).find_map(|event| event.index);
        let name = machine.name(segment.thread);
        out.push(Some(match next {
            Some(index) => {
                format!("{name}, up to {}: {}", program.place(program.pcs[index]), program.text(index))
            }
            None => format!("{name}, to its end"),
        }));
    }
    out
}

/// The steps of waves, without those of delayed operations.
fn wave_events<'f>(machine: &Machine<'_>, minimal: &'f Found) -> Vec<&'f Event> {
    minimal.events.iter().filter(|event| !machine.is_operation(event.thread)).collect()
}

/// Describes where waves that could have gone on are preempted.
fn preempted(machine: &Machine<'_>, minimal: &Found) -> Vec<String> {
    let events = wave_events(machine, minimal);
    let mut out = Vec::new();
    for (at, pair) in events.windows(2).enumerate() {
        let [last, next] = pair else { continue };
        if last.thread == next.thread {
            continue;
        }
        // The wave goes on later with this step.
        let later = events[at + 1..].iter().find(|event| event.thread == last.thread);
        let Some(later) = later else { continue };
        let Some(index) = later.index else { continue };
        let program = &machine.prepared.program;
        let (place, text) = (program.place(program.pcs[index]), program.text(index));
        out.push(format!(
            "{} stops before {place}: {text}; {} runs",
            machine.name(last.thread),
            machine.name(next.thread)
        ));
    }
    out
}

fn text(
    exploration: &Exploration<'_>,
    coverage: &Coverage,
    shown: Option<&Shown>,
    mut groups: Vec<OutcomeRuns>,
    path: &Path,
    out: &mut dyn Write,
) -> anyhow::Result<()> {
    let args = exploration.args;
    if args.litmus {
        groups.sort_by(|a, b| b.count.cmp(&a.count).then_with(|| a.line.cmp(&b.line)));
        writeln!(out, "outcomes:")?;
        for OutcomeRuns { count, line, wrong } in &groups {
            writeln!(out, "{count:>10}  {line}{}", if *wrong { "  (not as expected)" } else { "" })?;
        }
        writeln!(out)?;
    }
    if let Some(shown) = shown {
        writeln!(out, "{}", shown.difference)?;
        writeln!(out)?;
        let found = match shown.found.seed {
            Some(seed) => format!("schedule {} (seed {seed})", shown.found.number + 1),
            None => format!("execution {}", (shown.found.number & ((1 << 40) - 1)) + 1),
        };
        let preemptions = match shown.preemptions {
            0 => "no preemption".to_string(),
            1 => "1 preemption".to_string(),
            n => format!("{n} preemptions"),
        };
        let delays = match shown.delays.len() {
            0 => String::new(),
            n => format!(" and {}", count(n as u64, "delay")),
        };
        writeln!(out, "found in {found}; minimised to {preemptions}{delays}:")?;
        for line in shown.preempted.iter().take(8) {
            writeln!(out, "  {line}")?;
        }
        for Delay { operation, why } in shown.delays.iter().take(8) {
            writeln!(out, "  late: {operation}")?;
            for line in why.iter().take(SHOWN) {
                writeln!(out, "    {line}")?;
            }
        }
        for Delay { operation, why } in shown.stale.iter().take(SHOWN) {
            writeln!(out, "  stale: {operation}")?;
            for line in why {
                writeln!(out, "    {line}")?;
            }
        }
        if shown.garbage {
            writeln!(out, "  registers, LDS and scratch hold garbage at first, and not zeros")?;
        }
        for cause in &shown.causes {
            writeln!(out, "{cause}")?;
        }
        if shown.float_order {
            writeln!(
                out,
                "the difference comes from the order in which atomics round floats; --tolerance accepts a small one"
            )?;
        }
        writeln!(out, "replay: wavesim debug {} --schedule {}", args.input.file.display(), path.display())?;
        writeln!(out)?;
    }
    let done = exploration.done.load(std::sync::atomic::Ordering::Relaxed);
    match coverage {
        Coverage::Random { steps } => {
            let (threads, delays) = with_machine(args, |m| Ok((m.threads(), m.has_delays())))?;
            // The bound is one for runs without delays.
            let runs = if delays { done.div_ceil(2) } else { done };
            let p = pct::bound_of_runs(threads, *steps, args.depth, runs);
            writeln!(
                out,
                "{done} random schedules of {threads} waves and about {steps} steps: a bug of depth {} is found with a \
                 probability of at least {p:.2e}",
                args.depth
            )?;
        }
        Coverage::Complete { redundant, arrangements } => {
            let what = match args.preemptions {
                None if args.delays.is_some() => {
                    let delays = args.delays.unwrap_or_default().into();
                    format!("{} with at most {}", count(done, "execution"), count(delays, "delay"))
                }
                None => count(done, "inequivalent execution"),
                Some(n) => {
                    format!("{} with at most {}", count(done, "execution"), count(n.into(), "preemption"))
                }
            };
            let part = match args.shard.count {
                1 => String::new(),
                count => format!(" of part {}/{count}", args.shard.index),
            };
            let caches = match arrangements {
                1 => String::new(),
                n => format!(" in {n} arrangements of caches"),
            };
            let redundant = count(*redundant, "redundant one");
            writeln!(out, "complete: {what}{part}{caches} ({redundant} ended early)")?;
        }
        Coverage::Partial { redundant, reason } => {
            let (done, redundant) = (count(done, "execution"), count(*redundant, "redundant one"));
            writeln!(out, "not complete: {done} ({redundant} ended early); {reason}")?;
        }
    }
    if shown.is_none() && !exploration.is_interrupted() {
        match &exploration.expected {
            Expected::Equal(..) => writeln!(out, "every schedule has the outcome of the first run")?,
            Expected::Condition(assertion) => {
                writeln!(out, "every schedule is as expected: {}", assertion.text())?
            }
        }
    }
    for (name, count, worst, low, high) in lock(&exploration.spread).differing() {
        note(&format!(
            "{name}: {count} elements depend on the order within the tolerance, [{worst}] most: from {low} to {high}"
        ));
    }
    Ok(())
}

/// `1 execution`, `2 executions`.
fn count(n: u64, what: &str) -> String {
    format!("{n} {what}{}", if n == 1 { "" } else { "s" })
}

fn as_json(
    exploration: &Exploration<'_>,
    coverage: &Coverage,
    shown: Option<&Shown>,
    groups: &[OutcomeRuns],
    path: &Path,
) -> Value {
    let done = exploration.done.load(std::sync::atomic::Ordering::Relaxed);
    let mut out = json!({
        "schema": "wavesim-explore-1",
        "executions": done,
        "complete": matches!(coverage, Coverage::Complete { .. }),
        "as_expected": shown.is_none(),
        "first": exploration.first.line(),
    });
    match coverage {
        Coverage::Random { steps } => out["steps"] = json!(steps),
        Coverage::Complete { redundant, arrangements } => {
            (out["redundant"], out["arrangements"]) = (json!(redundant), json!(arrangements));
        }
        Coverage::Partial { redundant, reason } => {
            (out["redundant"], out["reason"]) = (json!(redundant), json!(reason));
        }
    }
    if let Some(shown) = shown {
        out["difference"] = json!({
            "text": shown.difference,
            "seed": shown.found.seed,
            "preemptions": shown.preemptions,
            "preempted": shown.preempted,
            "delays": shown.delays.iter().map(|delay| json!({ "operation": delay.operation, "why": delay.why }))
                .collect::<Vec<_>>(),
            "stale": shown.stale.iter().map(|stale| json!({ "operation": stale.operation, "why": stale.why }))
                .collect::<Vec<_>>(),
            "garbage": shown.garbage,
            "causes": shown.causes,
            "float_order": shown.float_order,
            "schedule": path.display().to_string(),
        });
    }
    if exploration.args.litmus {
        let one = |group: &OutcomeRuns| json!({ "count": group.count, "outcome": group.line, "as_expected": !group.wrong });
        out["outcomes"] = groups.iter().map(one).collect();
    }
    out
}
