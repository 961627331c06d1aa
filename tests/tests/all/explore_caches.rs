//! Exploration of caches: random executions against all, and what the seed of delayed memory changes.

use super::explore::{BOUNDS, LIMIT, Operations, Random, kernel, prepare};
use std::collections::BTreeSet;
use std::sync::Arc;
use wavesim::caches::Arrangement;
use wavesim::delayed::{DelayedMemory, Delays, Timing};
use wavesim::explore::choice::{Chooser, run};
use wavesim::explore::dpor::{Bounds, Search};
use wavesim::explore::machine::{Event, IsLate, Machine, StoredLines, Thread};
use wavesim::explore::outcome::Outcome;
use wavesim::explore::pct::Pct;
use wavesim::loader::text_kernel::{self, Options};
use wavesim::sched::dispatch::{self, Dispatch, Schedule};
use wavesim::sched::poison::Poison;
use wavesim_tests::root;

/// Random schedules with an arrangement of caches.
struct With(Pct, Option<Arrangement>);

impl Chooser for With {
    fn choose(&mut self, machine: &Machine<'_>, enabled: &[Thread]) -> Option<Thread> {
        self.0.choose(machine, enabled)
    }

    fn executed(&mut self, event: &Event) {
        self.0.executed(event);
    }

    fn caches(&self) -> Option<Arrangement> {
        self.1
    }

    fn is_late(&self) -> Option<IsLate> {
        self.0.is_late()
    }
}

/// A random kernel in which a workgroup stores to two words in two lines, and another one loads them, with some of the
/// controls that it needs.
fn two_workgroups(random: &mut Random) -> String {
    let mut out = "---\narg_s: u32[66] = repeat(0)\nout_r: u32[8]\nlocal = 32, 1, 1\nglobal = 2, 1, 1\nwave = 32\n---\n".to_string();
    out += "  s_load_b128 s[8:11], s[3:4], 0\n  s_mov_b32 exec_lo, 1\n  v_mov_b32 v0, 0\n  v_mov_b32 v8, 0\n";
    out += "  v_mov_b32 v9, 0\n  v_mov_b32 v10, 0\n  v_mov_b32 v11, 0\n  s_waitcnt lgkmcnt(0)\n  s_cmp_eq_u32 s0, 1\n";
    out += "  s_cbranch_scc1 reader\n";
    let wait = |random: &mut Random| match random.below(3) {
        0 => "",
        _ => "  s_waitcnt vmcnt(0)\n  s_waitcnt_vscnt null, 0x0\n",
    };
    for value in 1..=2 + random.below(2) {
        let offset = 256 * random.below(2);
        out += &format!("  v_mov_b32 v1, {value}\n  global_store_b32 v0, v1, s[8:9] offset:{offset}\n");
        out += wait(random);
    }
    out += "  s_endpgm\nreader:\n";
    let first = random.below(2);
    for load in 0..3 {
        let offset = 256 * ((first + load) % 2);
        let glc = if random.below(4) == 0 { " glc" } else { "" };
        out += &format!("  global_load_b32 v{}, v0, s[8:9] offset:{offset}{glc}\n", 8 + load);
        out += "  s_waitcnt vmcnt(0)\n";
        out +=
            ["", "", "  buffer_gl0_inv\n", "  buffer_gl1_inv\n  buffer_gl0_inv\n"][random.below(4) as usize];
    }
    out + "  global_store_b128 v0, v[8:11], s[10:11]\n  s_endpgm\n"
}

/// With the same caches, random executions have no outcome that the search through all executions does not have. Some
/// outcomes need caches.
#[test]
fn all_executions_have_the_outcomes_of_random_ones() {
    let (mut compared, mut stale, mut all, mut fewer) = (0, 0, 0, 0);
    for seed in 0..120 {
        let source = match seed % 4 {
            0..3 => two_workgroups(&mut Random(seed)),
            _ => kernel(&mut Random(seed), 2, 2, Operations::Atomic),
        };
        let prepared = prepare(&source, 0);
        let model =
            DelayedMemory::new(&prepared.program, prepared.shape.wave_size, Delays::Demanded).unwrap();
        let mut dispatch = prepared.dispatch(1 << 20);
        (dispatch.delayed, dispatch.poison) = (Some(&model), Some(Poison(1)));
        let mut machine = Machine::new(&prepared, &dispatch).unwrap();
        let mut coherent = BTreeSet::new();
        let search = |machine: &mut Machine<'_>, caches| {
            let mut search = Search::new(Bounds { caches, ..BOUNDS });
            let mut outcomes = BTreeSet::new();
            while search.counts.executions < 600 {
                let Some(run) = search.next(machine, &|| false) else { break };
                outcomes.insert(Outcome::read(&prepared, run.end.unwrap()).line());
            }
            (outcomes, search.counts.executions)
        };
        for caches in machine.arrangements() {
            machine.record_stores();
            let (outcomes, executions) = search(&mut machine, *caches);
            if executions >= 600 {
                break;
            }
            compared += 1;
            // Loads of constant lines need no order.
            let mut stored = StoredLines::default();
            stored.add(&machine);
            let stored = Arc::new(stored);
            machine.assume_constant(Some(stored.clone()));
            let (same, reduced) = search(&mut machine, *caches);
            assert!(!stored.are_incomplete());
            assert_eq!(same, outcomes, "seed {seed}, {caches:?}\n{source}");
            assert!(reduced <= executions, "seed {seed}, {caches:?}: {reduced}, {executions}\n{source}");
            (all, fewer) = (all + executions, fewer + reduced);
            // A store elsewhere is noticed.
            let none = Arc::new(StoredLines::default());
            machine.assume_constant(Some(none.clone()));
            search(&mut machine, *caches);
            machine.assume_constant(None);
            assert!(none.are_incomplete());
            match caches {
                None => coherent = outcomes.clone(),
                Some(_) => stale += usize::from(!outcomes.is_subset(&coherent)),
            }
            for run_seed in 0..60 {
                let pct = Pct::new(run_seed, machine.threads(), 8, 3).with_delays();
                let end = run(&mut machine, &mut With(pct, *caches), LIMIT).end.unwrap();
                let line = Outcome::read(&prepared, end).line();
                assert!(
                    outcomes.contains(&line),
                    "seed {seed}, run {run_seed}, {caches:?}: {line}\n{outcomes:#?}\n{source}"
                );
            }
        }
    }
    assert!(compared >= 200 && stale >= 3, "{compared} compared, {stale} with stale values");
    assert!(fewer < all, "{fewer} of {all} executions");
}

/// Kernels that lack a cache control compute something else with delayed memory, for some seeds.
#[test]
fn missing_cache_controls_change_results_of_delayed_runs() {
    for name in ["race_stale_cache", "race_write_back_cdna3"] {
        let path = root().join("tests/filetests/check").join(name).with_extension("rdna");
        let source = std::fs::read_to_string(&path).unwrap();
        let outputs = |timing: Timing| {
            let prepared = text_kernel::prepare(name, &source, &Options::default(), 0).unwrap();
            let model = timing.model(&prepared.program, prepared.shape.wave_size).unwrap();
            let dispatch = Dispatch {
                delayed: model.as_ref(),
                poison: timing.poison(),
                schedule: Schedule::Fine(1),
                ..prepared.dispatch(1 << 24)
            };
            dispatch::run(&dispatch, &prepared.memory).unwrap();
            prepared.outputs().unwrap().into_iter().map(|(_, array)| array.bytes).collect::<Vec<_>>()
        };
        let expected = outputs(Timing::Immediate);
        let different = (0..64).filter(|seed| outputs(Timing::Delayed(*seed)) != expected).count();
        assert!(different > 0, "{name} computes the same with every seed");
        assert!(different < 64, "{name}: caches are always stale");
    }
}
