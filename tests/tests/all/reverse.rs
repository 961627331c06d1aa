//! Reverse debugging: going back restores the exact state, whichever waves ran and whatever was edited in
//! between.

use clap::Parser;
use proptest::prelude::*;
use std::path::Path;
use wavesim::cli::{Cli, Command};
use wavesim::debug::timeline::{Edit, Timeline};
use wavesim::loader::prepared::Prepared;

const KERNELS: [&str; 3] =
    ["examples/matmul.rdna", "examples/collatz.rdna", "tests/filetests/check/clean_lds_exchange.rdna"];

fn prepare(kernel: &str) -> Prepared {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(kernel);
    let path = path.display().to_string();
    let cli = Cli::try_parse_from(["wavesim", "debug", path.as_str()]).unwrap();
    let Command::Debug(args) = cli.command else { panic!("not the debugger") };
    args.input.prepare(0).unwrap_or_else(|e| panic!("{e}"))
}

/// Serialises all state that execution can observe or change.
fn state(timeline: &Timeline<'_>) -> Vec<u8> {
    let mut out = timeline.memory().snapshot();
    out.extend(timeline.time().to_le_bytes());
    out.extend(timeline.workgroup().iter().flat_map(|v| v.to_le_bytes()));
    for slot in &timeline.group.slots {
        let wave = &slot.wave;
        out.extend(format!("{:?} {:?} {:?}", slot.status, wave.passed, wave.joined).bytes());
        let vgprs = (0..256).flat_map(|r| (0..wave.size()).map(move |l| wave.vgpr(l, r)));
        out.extend(vgprs.flat_map(u32::to_le_bytes));
        out.extend((0..128).flat_map(|code| wave.sgpr(code).to_le_bytes()));
        out.extend([wave.scc, wave.mode].iter().flat_map(|v| v.to_le_bytes()));
        out.extend(wave.pc.to_le_bytes());
    }
    out.extend(format!("{:?}", timeline.group.shared).bytes());
    out.extend(&timeline.group.lds);
    out.extend(&timeline.group.scratch);
    out
}

#[derive(Debug, Clone)]
enum Action {
    /// Steps a wave, as far as it can run.
    Wave(usize, u64),
    /// Steps the wave that is scheduled next.
    Any(u64),
    Vgpr(u32, u16, u32),
    Sgpr(u16, u32),
}

fn actions() -> impl Strategy<Value = Vec<Action>> {
    let one = prop_oneof![
        (0..4usize, 1..40u64).prop_map(|(w, n)| Action::Wave(w, n)),
        (1..900u64).prop_map(Action::Any),
        (0..32u32, 8..40u16, any::<u32>()).prop_map(|(l, r, v)| Action::Vgpr(l, r, v)),
        (40..100u16, any::<u32>()).prop_map(|(r, v)| Action::Sgpr(r, v)),
    ];
    proptest::collection::vec(one, 1..12)
}

fn act(timeline: &mut Timeline<'_>, action: &Action) {
    match *action {
        Action::Wave(wave, n) => {
            let wave = wave % timeline.waves();
            (0..n).for_each(|_| drop(timeline.step(wave)));
        }
        Action::Any(n) => {
            for _ in 0..n {
                let Some(wave) = timeline.next_wave() else { break };
                timeline.step(wave);
            }
        }
        Action::Vgpr(lane, register, value) => {
            timeline.edit(Edit::Vgpr { wave: 0, lane, register, value }).unwrap();
        }
        Action::Sgpr(code, value) => timeline.edit(Edit::Sgpr { wave: 0, code, value }).unwrap(),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, ..ProptestConfig::default() })]

    #[test]
    fn forward_and_back(kernel in 0..KERNELS.len(), actions in actions(), back in 0.0..1.0f64) {
        let prepared = prepare(KERNELS[kernel]);
        let dispatch = prepared.dispatch(1_000_000);
        let mut timeline = Timeline::new(&prepared, &dispatch).unwrap();
        // The state after the last action at each time.
        let mut seen = vec![(0, state(&timeline))];
        for action in &actions {
            act(&mut timeline, action);
            seen.retain(|s| s.0 != timeline.time());
            seen.push((timeline.time(), state(&timeline)));
        }
        let end = timeline.time();
        timeline.go_to((end as f64 * back) as u64);
        for (time, wanted) in seen.iter().rev() {
            timeline.go_to(*time);
            prop_assert!(state(&timeline) == *wanted, "back at step {time} of {end}");
        }
        for (time, wanted) in &seen {
            timeline.go_to(*time);
            prop_assert!(state(&timeline) == *wanted, "again at step {time} of {end}");
        }
    }
}

/// A run with repeated rewinds ends in the same state as a plain run.
#[test]
fn rewinds_do_not_affect_the_result() {
    for kernel in KERNELS {
        let prepared = prepare(kernel);
        let dispatch = prepared.dispatch(1_000_000);
        let mut timeline = Timeline::new(&prepared, &dispatch).unwrap();
        while let Some(wave) = timeline.next_wave() {
            timeline.step(wave);
            if timeline.time() % 777 == 776 {
                let now = timeline.time();
                timeline.go_to(now / 2);
                timeline.go_to(now);
            }
        }
        let debugged = prepared.memory.snapshot();
        let plain = prepare(kernel);
        wavesim::sched::dispatch::run(&plain.dispatch(1_000_000), &plain.memory).unwrap();
        assert!(debugged == plain.memory.snapshot(), "{kernel}");
    }
}

/// The checkpoints of a long run stay within the memory limit, and going back still restores the state.
#[test]
fn checkpoints_are_bounded() {
    const LIMIT: usize = 4 << 20;
    let source = "---\nlocal = 32, 1, 1\nglobal = 1, 1, 1\n---\nagain:\n  s_add_u32 s5, s5, 1\n  v_add_nc_u32 v1, s5, v1\n  s_branch again\n";
    let prepared = wavesim_tests::prepare(source, &wavesim_tests::Setup::default()).unwrap();
    let dispatch = prepared.dispatch(10_000_000);
    let mut timeline = Timeline::new(&prepared, &dispatch).unwrap();
    timeline.limit_checkpoints(LIMIT);
    while timeline.time() < 1_200_000 {
        timeline.run(0, 4096, None);
    }
    let (count, bytes) = timeline.checkpoints();
    assert!(count > 10 && bytes <= LIMIT, "{count} checkpoints, {bytes} bytes");
    for time in [1_199_999, 1_000_000, 999_998, 600_001, 300_000, 3, 0, 900_000] {
        timeline.go_to(time);
        assert_eq!(timeline.time(), time);
        // Each iteration has three instructions, the first of which increments s5.
        assert_eq!(timeline.wave(0).sgpr(5) as u64, time.div_ceil(3), "at step {time}");
        assert!(timeline.checkpoints().1 <= LIMIT);
    }
}
