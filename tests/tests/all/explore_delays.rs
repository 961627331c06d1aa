//! Exploration of the times at which memory operations take effect: random executions against all, and replays.

use super::explore::{BOUNDS, LIMIT, Operations, Random, kernel, prepare};
use std::collections::BTreeSet;
use std::sync::Arc;
use wavesim::debug::command::Debugger;
use wavesim::debug::timeline::Timeline;
use wavesim::delayed::{DelayedMemory, Delays};
use wavesim::explore::choice::{Schedule, run};
use wavesim::explore::dpor::{Bounds, Search};
use wavesim::explore::machine::{End, Machine};
use wavesim::explore::minimise::{follow, minimise};
use wavesim::explore::outcome::Outcome;
use wavesim::explore::pct::Pct;
use wavesim::loader::prepared::Prepared;
use wavesim::sched::dispatch;
use wavesim::sched::poison::Poison;
use wavesim::sched::recorded::Recorded;

/// A random kernel whose waves do not wait for their accesses.
fn without_waits(seed: u64, waves: u64, most: u64, operations: Operations) -> String {
    let source = kernel(&mut Random(seed), waves, most, operations);
    source.replace("  s_waitcnt vmcnt(0) lgkmcnt(0)\n  s_waitcnt_vscnt null, 0x0\n", "")
}

fn model(prepared: &Prepared) -> DelayedMemory {
    DelayedMemory::new(&prepared.program, prepared.shape.wave_size, Delays::Demanded).unwrap()
}

/// Random executions have no outcome that the search through all executions does not have, whether or not waves wait for
/// loads before they use the results.
#[test]
fn all_executions_have_the_outcomes_of_random_ones() {
    let (mut compared, mut several) = (0, 0);
    for seed in 0..200 {
        let operations = if seed % 2 == 0 { Operations::Plain } else { Operations::Atomic };
        let mut source = without_waits(seed, 2, 2, operations);
        if seed % 3 == 0 {
            source =
                source.replace("  global_store_b128", "  s_waitcnt vmcnt(0) lgkmcnt(0)\n  global_store_b128");
        }
        let prepared = prepare(&source, 0);
        let model = model(&prepared);
        let mut dispatch = prepared.dispatch(1 << 20);
        (dispatch.delayed, dispatch.poison) = (Some(&model), Some(Poison(1)));
        let mut machine = Machine::new(&prepared, &dispatch).unwrap();
        let mut outcomes = BTreeSet::new();
        let mut executions = 0;
        for caches in machine.arrangements() {
            let mut search = Search::new(Bounds { caches: *caches, ..BOUNDS });
            while executions + search.counts.executions < 2000 {
                let Some(run) = search.next(&mut machine, &|| false) else { break };
                outcomes.insert(Outcome::read(&prepared, run.end.unwrap()).line());
            }
            executions += search.counts.executions;
        }
        if executions >= 2000 {
            continue;
        }
        compared += 1;
        several += usize::from(outcomes.len() > 1);
        for run_seed in 0..200 {
            let mut pct = Pct::new(run_seed, machine.threads(), 8, 3).with_delays();
            let end = run(&mut machine, &mut pct, LIMIT).end.unwrap();
            let line = Outcome::read(&prepared, end).line();
            assert!(outcomes.contains(&line), "seed {seed}, run {run_seed}: {line}\n{outcomes:#?}\n{source}");
        }
    }
    assert!(compared >= 60 && several >= 30, "{compared} compared, {several} with several outcomes");
}

/// A random schedule with delays, replayed from its file, has the same outcome in the engine and in the debugger. So has
/// the minimised one.
#[test]
fn recorded_delays_are_exact() {
    let (mut delayed, mut cached) = (0, 0);
    for seed in 0..60 {
        let source = without_waits(seed, 2, 4, Operations::Atomic);
        let source = source.replace("global = 1, 1, 1", "global = 2, 1, 1");
        let prepared = prepare(&source, 0);
        let model = model(&prepared);
        let mut dispatch = prepared.dispatch(1 << 20);
        (dispatch.delayed, dispatch.poison) = (Some(&model), Some(Poison(1)));
        let initial = prepared.memory.snapshot();
        let mut machine = Machine::new(&prepared, &dispatch).unwrap();
        let mut pct = Pct::new(2 * seed + 1, machine.threads(), 20, 4).with_delays();
        let end = run(&mut machine, &mut pct, LIMIT).end.unwrap();
        let outcome = Outcome::read(&prepared, end);
        let recorded = machine.recorded(7);
        delayed += usize::from(!recorded.late().operations.is_empty());
        cached += usize::from(recorded.late().caches.is_some());
        let executed = machine.executed();
        replay(&prepared, &initial, &recorded, executed, &outcome, &format!("seed {seed}\n{source}"));
        let schedule = Schedule::of(&machine, pct.threads);
        let again = follow(&mut machine, &schedule, LIMIT).unwrap();
        assert_eq!(again.outcome, outcome, "seed {seed}\n{source}");
        let wrong = |other: &Outcome| *other == outcome;
        let minimal = minimise(&mut machine, &schedule, LIMIT, 200, &wrong, &|| false).unwrap();
        assert!(minimal.schedule.late.len() <= schedule.late.len());
        let again = follow(&mut machine, &minimal.schedule, LIMIT).unwrap();
        assert_eq!(again.outcome, outcome, "minimised, seed {seed}\n{source}");
        let (recorded, executed) = (machine.recorded(7), machine.executed());
        replay(
            &prepared,
            &initial,
            &recorded,
            executed,
            &outcome,
            &format!("minimised, seed {seed}\n{source}"),
        );
    }
    assert!(delayed >= 40 && cached >= 10, "{delayed} schedules have delays, {cached} have caches");
}

fn replay(
    prepared: &Prepared,
    initial: &[u8],
    recorded: &Recorded,
    executed: u64,
    outcome: &Outcome,
    what: &str,
) {
    let text = recorded.text(|_| None);
    let recorded = Recorded::parse(&text).unwrap();
    let model = recorded.model(&prepared.program, prepared.shape.wave_size).unwrap();
    let mut dispatch = prepared.dispatch(1 << 20);
    dispatch.follow(Arc::new(recorded));
    dispatch.delayed = model.as_ref();
    prepared.memory.restore(initial);
    let result = dispatch::run(&dispatch, &prepared.memory);
    assert_eq!(Outcome::of_run(prepared, result), *outcome, "{what}\n{text}");
    if outcome.end != End::Finished {
        return;
    }
    prepared.memory.restore(initial);
    let mut debugger = Debugger::new(Timeline::new(prepared, &dispatch).unwrap(), || false);
    debugger.execute("continue").0.unwrap();
    assert_eq!(debugger.timeline.time(), executed, "{what}\n{text}");
    assert_eq!(Outcome::read(prepared, End::Finished), *outcome, "debugger, {what}\n{text}");
    for time in [executed / 2, executed / 3] {
        debugger.execute(&format!("goto {time}")).0.unwrap();
        debugger.execute("continue").0.unwrap();
        assert_eq!(Outcome::read(prepared, End::Finished), *outcome, "from {time}, {what}\n{text}");
    }
}
