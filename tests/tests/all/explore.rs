//! Exploration of schedules: against all interleavings, and against the race check.

use clap::Parser;
use std::collections::{BTreeMap, BTreeSet};
use wavesim::check::{Check, Checker, GUARD_BYTES, Severity};
use wavesim::cli::{self, Cli};
use wavesim::debug::command::Debugger;
use wavesim::debug::timeline::Timeline;
use wavesim::explore::choice::{Chooser, Follow, run};
use wavesim::explore::dpor::{Bounds, Search, parts};
use wavesim::explore::machine::{End, Event, Machine, Thread};
use wavesim::explore::outcome::Outcome;
use wavesim::explore::pct::Pct;
use wavesim::explore::state::{Part, State};
use wavesim::loader::prepared::Prepared;
use wavesim::loader::text_kernel::{self, Options};
use wavesim::sched::order::splitmix64;

/// Random numbers.
pub(super) struct Random(pub u64);

impl Random {
    pub fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        splitmix64(self.0) % n
    }
}

/// What the waves of a random kernel do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Operations {
    /// Loads, stores and barriers.
    Plain,
    /// Atomics that return the old value, too.
    Atomic,
}

/// A small kernel of `waves` waves that access two words, in memory or in LDS.
pub(super) fn kernel(random: &mut Random, waves: u64, most: u64, operations: Operations) -> String {
    let lds = random.below(3) == 0;
    let barrier_after: Vec<u64> = (0..random.below(2)).map(|_| random.below(most)).collect();
    let mut out = format!(
        "---\narg_s: u32[2] = repeat(0)\nout_r: u32[{}]\nlocal = {}, 1, 1\nglobal = 1, 1, 1\nwave = 32\nlds = 16\n---\n",
        4 * waves,
        32 * waves
    );
    out += "  s_load_b128 s[8:11], s[3:4], 0\n  v_readfirstlane_b32 s5, v0\n  s_mov_b32 exec_lo, 1\n  v_mov_b32 v0, 0\n";
    out += "  v_mov_b32 v8, 0\n  v_mov_b32 v9, 0\n  v_mov_b32 v10, 0\n  v_mov_b32 v11, 0\n  s_waitcnt lgkmcnt(0)\n";
    if lds {
        // Undefined LDS is another error than a race.
        out += "  s_cmp_lg_u32 s5, 0\n  s_cbranch_scc1 cleared\n  ds_store_b64 v0, v[8:9]\n  s_waitcnt lgkmcnt(0)\n";
        out += "cleared:\n  s_barrier\n";
    }
    for wave in 1..waves {
        out += &format!("  s_cmp_eq_u32 s5, {}\n  s_cbranch_scc1 wave{wave}\n", 32 * wave);
    }
    for wave in 0..waves {
        if wave > 0 {
            out += &format!("wave{wave}:\n");
        }
        let mut loaded = 0;
        for step in 0..1 + random.below(most) {
            let offset = 4 * random.below(2);
            let kinds = if operations == Operations::Atomic { 3 } else { 2 };
            match (random.below(kinds), lds) {
                (0, false) if loaded < 4 => {
                    out += &format!("  global_load_b32 v{}, v0, s[8:9] offset:{offset}\n", 8 + loaded);
                    loaded += 1;
                }
                (0, true) if loaded < 4 => {
                    out += &format!("  ds_load_b32 v{}, v0 offset:{offset}\n", 8 + loaded);
                    loaded += 1;
                }
                (2, false) if loaded < 4 => {
                    out += &format!("  v_mov_b32 v1, {}\n", 1 + random.below(3));
                    out += &format!(
                        "  global_atomic_add_u32 v{}, v0, v1, s[8:9] offset:{offset} glc\n",
                        8 + loaded
                    );
                    loaded += 1;
                }
                (2, true) if loaded < 4 => {
                    out += &format!("  v_mov_b32 v1, {}\n", 1 + random.below(3));
                    out += &format!("  ds_add_rtn_u32 v{}, v0, v1 offset:{offset}\n", 8 + loaded);
                    loaded += 1;
                }
                (_, false) => {
                    out += &format!("  v_mov_b32 v1, {}\n", 1 + 10 * wave + random.below(9));
                    out += &format!("  global_store_b32 v0, v1, s[8:9] offset:{offset}\n");
                }
                (_, true) => {
                    out += &format!("  v_mov_b32 v1, {}\n", 1 + 10 * wave + random.below(9));
                    out += &format!("  ds_store_b32 v0, v1 offset:{offset}\n");
                }
            }
            out += "  s_waitcnt vmcnt(0) lgkmcnt(0)\n  s_waitcnt_vscnt null, 0x0\n";
            if barrier_after.contains(&step) {
                out += "  s_barrier\n  buffer_gl0_inv\n";
            }
        }
        // A barrier that only some waves reach would be another error.
        out += &format!("  global_store_b128 v0, v[8:11], s[10:11] offset:{}\n  s_endpgm\n", 16 * wave);
    }
    out
}

pub(super) fn prepare(source: &str, guard: u64) -> Prepared {
    text_kernel::prepare("kernel.rdna", source, &Options::default(), guard)
        .unwrap_or_else(|e| panic!("{e}\n{source}"))
}

pub(super) const LIMIT: u64 = 10_000;
pub(super) const BOUNDS: Bounds = Bounds { preemptions: None, steps: LIMIT, caches: None, late: None };

/// Takes given choices first, then the first wave that can run.
struct Given<'g> {
    given: &'g [Thread],
    index: usize,
    enabled: Vec<Vec<Thread>>,
    events: Vec<Event>,
}

impl Chooser for Given<'_> {
    fn choose(&mut self, _machine: &Machine<'_>, enabled: &[Thread]) -> Option<Thread> {
        let next = self.given.get(self.index).or(enabled.first()).copied();
        self.index += 1;
        self.enabled.push(enabled.to_vec());
        next
    }

    fn executed(&mut self, event: &Event) {
        self.events.push(event.clone());
    }
}

/// The pairs of conflicting steps in their order, which equivalent executions have in common.
fn order_of(events: &[Event]) -> BTreeSet<[(Thread, usize); 2]> {
    let mut counts: BTreeMap<Thread, usize> = BTreeMap::new();
    let mut keys = Vec::new();
    for event in events {
        let count = counts.entry(event.thread).or_default();
        *count += 1;
        keys.push((event.thread, *count));
    }
    let mut out = BTreeSet::new();
    for (after, second) in events.iter().enumerate() {
        for (before, first) in events[..after].iter().enumerate() {
            if first.thread != second.thread && first.footprint.conflict(&second.footprint).is_some() {
                out.insert([keys[before], keys[after]]);
            }
        }
    }
    out
}

/// Runs every interleaving; returns the outcomes, and the number of executions no two of which are equivalent.
fn every_interleaving(machine: &mut Machine<'_>, most: usize) -> Option<(BTreeSet<String>, usize)> {
    let (mut outcomes, mut orders) = (BTreeSet::new(), BTreeSet::new());
    let mut given: Vec<Thread> = Vec::new();
    for _ in 0..most {
        let mut chooser = Given { given: &given, index: 0, enabled: Vec::new(), events: Vec::new() };
        let end = run(machine, &mut chooser, LIMIT).end?;
        outcomes.insert(Outcome::read(machine.prepared, end).line());
        orders.insert(order_of(&chooser.events));
        let (enabled, events) = (chooser.enabled, chooser.events);
        let mut taken: Vec<Thread> = events.iter().map(|event| event.thread).collect();
        // The next interleaving in the order of choices.
        loop {
            let Some(last) = taken.pop() else { return Some((outcomes, orders.len())) };
            if let Some(next) = enabled[taken.len()].iter().copied().find(|thread| *thread > last) {
                taken.push(next);
                break;
            }
        }
        given = taken;
    }
    None
}

/// Runs the executions of a search.
fn reduced(machine: &mut Machine<'_>, mut search: Search) -> (BTreeSet<String>, u64) {
    let mut outcomes = BTreeSet::new();
    while let Some(run) = search.next(machine, &|| false) {
        outcomes.insert(Outcome::read(machine.prepared, run.end.unwrap()).line());
    }
    assert_eq!(search.counts.cut, 0);
    (outcomes, search.counts.executions)
}

/// The reduction finds every outcome that interleavings have, and runs one of each set of equivalent executions. So do
/// its parts together, and a search that is interrupted and goes on.
#[test]
fn reduction_equals_all_interleavings() {
    let mut compared = 0;
    for seed in 0..150 {
        let mut random = Random(seed);
        let operations = if seed % 2 == 0 { Operations::Plain } else { Operations::Atomic };
        let source = kernel(&mut random, 2 + seed % 2, if seed % 2 == 0 { 3 } else { 2 }, operations);
        let prepared = prepare(&source, 0);
        let dispatch = prepared.dispatch(1 << 20);
        let mut machine = Machine::new(&prepared, &dispatch).unwrap();
        let Some((outcomes, count)) = every_interleaving(&mut machine, 4000) else { continue };
        compared += 1;
        let (found, executions) = reduced(&mut machine, Search::new(BOUNDS));
        assert_eq!(found, outcomes, "seed {seed}\n{source}");
        assert_eq!(executions, count as u64, "seed {seed}\n{source}");
        let (mut found, mut executions) = (BTreeSet::new(), 0);
        for part in parts(&mut machine, BOUNDS, 6) {
            let search = Search::of_part(&mut machine, BOUNDS, &part).unwrap();
            let (outcomes, count) = reduced(&mut machine, search);
            found.extend(outcomes);
            executions += count;
        }
        assert_eq!((&found, executions), (&outcomes, count as u64), "parts, seed {seed}\n{source}");
        // Every execution in a search of its own.
        let mut state = State::Systematic(vec![Part::default()]);
        let mut found = BTreeSet::new();
        loop {
            let State::Systematic(saved) = State::parse(&state.json("").to_string(), "").unwrap() else {
                panic!()
            };
            let mut search = match &saved[0].position {
                None => Search::new(BOUNDS),
                Some(position) => Search::resume(&mut machine, BOUNDS, position, 0, saved[0].counts).unwrap(),
            };
            let Some(run) = search.next(&mut machine, &|| false) else {
                assert_eq!(search.counts.executions, count as u64, "resumed, seed {seed}\n{source}");
                break;
            };
            found.insert(Outcome::read(&prepared, run.end.unwrap()).line());
            let part = Part { position: Some(search.position()), counts: search.counts, ..Part::default() };
            state = State::Systematic(vec![part]);
        }
        assert_eq!(found, outcomes, "resumed, seed {seed}\n{source}");
    }
    assert!(compared >= 75, "{compared} kernels have few enough interleavings");
}

/// Whether some schedule has another outcome than the first one.
fn differs(prepared: &Prepared) -> bool {
    let dispatch = prepared.dispatch(1 << 20);
    let mut machine = Machine::new(prepared, &dispatch).unwrap();
    let end = run(&mut machine, &mut Follow::new(&[]), LIMIT).end.unwrap();
    let first = Outcome::read(prepared, end);
    let mut search = Search::new(BOUNDS);
    while let Some(run) = search.next(&mut machine, &|| false) {
        if Outcome::read(prepared, run.end.unwrap()).hash() != first.hash() {
            return true;
        }
    }
    false
}

/// The race check reports every kernel of loads and stores whose result depends on the schedule.
#[test]
fn the_race_check_agrees() {
    let (mut different, mut clean, mut missed) = (0, 0, Vec::new());
    for seed in 1000..1500 {
        let source = kernel(&mut Random(seed), 2 + seed % 2, 3, Operations::Plain);
        let differs = differs(&prepare(&source, 0));
        let prepared = prepare(&source, GUARD_BYTES);
        let mut checker = Checker::new(&prepared, &[Check::Race]).unwrap();
        let (_, result) = checker.run(&prepared.dispatch(1 << 20));
        let reported = checker.finish(result.err().as_deref()).iter().any(|f| f.severity == Severity::Error);
        match (differs, reported) {
            (true, true) => different += 1,
            (true, false) => missed.push((seed, source)),
            (false, false) => clean += 1,
            // The stores that race have the same values, or nobody loads them.
            (false, true) => {}
        }
    }
    assert!(missed.is_empty(), "{} missed, such as {}\n{}", missed.len(), missed[0].0, missed[0].1);
    assert!(different >= 100 && clean >= 50, "{different} differ, {clean} are clean");
}

/// A random schedule, replayed from its record, has the same outcome in the engine and in the debugger, which go from
/// workgroup to workgroup as it does.
#[test]
fn recorded_schedules_are_exact() {
    for seed in 0..60 {
        let source = kernel(&mut Random(seed), 3, 4, Operations::Atomic);
        let source = source.replace("global = 1, 1, 1", "global = 3, 1, 1");
        let prepared = prepare(&source, 0);
        let dispatch = prepared.dispatch(1 << 20);
        let initial = prepared.memory.snapshot();
        let mut machine = Machine::new(&prepared, &dispatch).unwrap();
        let mut pct = Pct::new(seed, machine.threads(), 20, 4);
        let end = run(&mut machine, &mut pct, LIMIT).end.unwrap();
        let outcome = Outcome::read(&prepared, end);
        let recorded = machine.recorded(7);
        prepared.memory.restore(&initial);
        let mut dispatch = prepared.dispatch(1 << 20);
        dispatch.follow(std::sync::Arc::new(recorded));
        let result = wavesim::sched::dispatch::run(&dispatch, &prepared.memory);
        assert_eq!(Outcome::of_run(&prepared, result), outcome, "seed {seed}\n{source}");
        prepared.memory.restore(&initial);
        let mut debugger = Debugger::new(Timeline::new(&prepared, &dispatch).unwrap(), || false);
        let executed = machine.executed();
        debugger.execute("continue").0.unwrap();
        assert_eq!(debugger.timeline.time(), executed, "seed {seed}\n{source}");
        assert_eq!(Outcome::read(&prepared, End::Finished), outcome, "debugger, seed {seed}\n{source}");
        debugger.execute(&format!("goto {}", executed / 2)).0.unwrap();
        debugger.execute("continue").0.unwrap();
        assert_eq!(Outcome::read(&prepared, End::Finished), outcome, "back and forth, seed {seed}\n{source}");
    }
}

/// Runs a command. Returns its output and exit code, or the error message if its input is rejected.
fn command(words: &[&str]) -> Result<(String, u8), String> {
    let cli = Cli::try_parse_from(std::iter::once("wavesim").chain(words.iter().copied()))
        .map_err(|e| e.to_string())?;
    let mut out = Vec::new();
    let code = cli::dispatch(&cli.command, &mut out).map_err(|e| format!("{e:#}"))?;
    Ok((String::from_utf8(out).unwrap(), code))
}

/// An exploration goes on where a saved one has ended, and does not take the state of another one.
#[test]
fn a_saved_exploration_goes_on() {
    let root = wavesim_tests::root();
    let kernel = |name: &str| root.join("examples/explore").join(name).display().to_string();
    let (exchange, other) = (kernel("exchange.rdna"), kernel("triple.rdna"));
    let random = crate::temporary(module_path!(), "random.state").display().to_string();
    let systematic = crate::temporary(module_path!(), "systematic.state").display().to_string();
    for path in [&random, &systematic] {
        let _ = std::fs::remove_file(path);
    }
    let explore = |kernel: &str, words: &[&str]| command(&[&["explore", kernel, "-q"], words].concat());
    for count in ["5", "8", "8"] {
        let (text, code) = explore(&exchange, &["--random", count, "--state", &random]).unwrap();
        assert!(code == 0 && text.starts_with(&format!("{count} random schedules of 2 waves")), "{text}");
    }
    for _ in 0..2 {
        let (text, code) = explore(&exchange, &["--systematic", "--state", &systematic]).unwrap();
        assert!(
            code == 0 && text.starts_with("complete: 3 inequivalent executions in 3 arrangements"),
            "{text}"
        );
    }
    let wrong = explore(&other, &["--random", "5", "--state", &random]).unwrap_err();
    assert!(wrong.contains("one of another kernel"), "{wrong}");
    let wrong = explore(&exchange, &["--random", "5", "--depth", "2", "--state", &random]).unwrap_err();
    assert!(wrong.contains("of other options"), "{wrong}");
    let text = std::fs::read_to_string(&systematic).unwrap();
    std::fs::write(&systematic, &text[..text.len() / 2]).unwrap();
    let wrong = explore(&exchange, &["--systematic", "--state", &systematic]).unwrap_err();
    assert!(wrong.contains("truncated"), "{wrong}");
}

/// A schedule of another kernel, and a part of one, are errors.
#[test]
fn wrong_schedules_are_errors() {
    let root = wavesim_tests::root();
    let kernel = |name: &str| root.join("examples/explore").join(name).display().to_string();
    let path = crate::temporary(module_path!(), "found.sched").display().to_string();
    let early = kernel("early_flag.rdna");
    let found =
        command(&["explore", &early, "-q", "--depth", "2", "--save", &path, "--expect", "out_y[1] == 7"]);
    assert_eq!(found.unwrap().1, 1);
    assert_eq!(command(&["run", &early, "-q", "--schedule", &path]).unwrap().1, 0);
    let wrong = command(&["run", &kernel("exchange.rdna"), "--schedule", &path]).unwrap_err();
    assert!(wrong.contains("one of another kernel"), "{wrong}");
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, &text[..text.len() - 6]).unwrap();
    let wrong = command(&["debug", &early, "--batch", "--schedule", &path]).unwrap_err();
    assert!(wrong.contains("truncated"), "{wrong}");
    let wrong = command(&["run", &early, "--schedule", "backward"]).unwrap_err();
    assert!(wrong.contains("files whose names end in .sched"), "{wrong}");
}
