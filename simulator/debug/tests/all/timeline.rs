//! Switching of workgroups, and the number of checkpoints.

use wavesim_debug::stop_points::StopPoints;
use wavesim_debug::timeline::{Edit, MIN_CHECKPOINTS, Outcome, Timeline};
use wavesim_engine::sched::dispatch::Dispatch;
use wavesim_inspect::check::Check;
use wavesim_loader::prepared::Prepared;
use wavesim_loader::text_kernel::{self, Options};
use wavesim_machine::exec::effects;

fn prepared(kernel: &str) -> Prepared {
    let options = Options { global_bytes: 1 << 20, ..Options::default() };
    text_kernel::prepare("k.rdna", kernel, &options, 0).unwrap()
}

/// The first workgroup waits for a flag that the second one sets.
const LATER: &str = include_str!("../../../../tests/filetests/check/clean_flag_of_later_group.rdna");

/// The state that a step can change, in short form.
fn state(timeline: &Timeline<'_>) -> (u64, [u32; 3], u64, Vec<u32>, Vec<u8>, Vec<u8>) {
    let wave = timeline.wave(0);
    let registers = (0..6).flat_map(|r| (0..32).map(move |lane| wave.vgpr(lane, r))).collect();
    let memory = timeline.memory().snapshot();
    (timeline.time(), timeline.workgroup(), wave.pc, registers, timeline.group.lds.clone(), memory)
}

/// Runs one turn of a wave, as commands do.
fn turn(timeline: &mut Timeline<'_>) -> bool {
    let Some(wave) = timeline.next_wave() else { return false };
    let stop_points = StopPoints::none(&effects::table(&timeline.prepared.program, 32));
    assert_eq!(timeline.run(wave, u64::MAX, Some(&stop_points)), Outcome::Stepped);
    true
}

#[test]
fn workgroups_take_turns_in_both_directions() {
    for checks in [&[][..], &[Check::Race]] {
        let prepared = prepared(LATER);
        let dispatch = Dispatch { cooperative: true, ..prepared.dispatch(1_000_000) };
        let mut timeline = Timeline::new(&prepared, &dispatch).unwrap();
        timeline.check(checks).unwrap();
        let mut states = vec![state(&timeline)];
        while turn(&mut timeline) {
            if states.last().unwrap().1 != timeline.workgroup() || timeline.finished() {
                states.push(state(&timeline));
            }
        }
        let groups: Vec<u32> = states.iter().map(|s| s.1[0]).collect();
        assert_eq!(groups, [0, 1, 0, 0], "the second one starts and ends, then the first goes on");
        assert_eq!(timeline.findings().count(), 0);
        let word = |at: u64| {
            let mut bytes = [0; 4];
            timeline.memory().read(wavesim_machine::memory::OWNED_BASE + at, &mut bytes).unwrap();
            u32::from_le_bytes(bytes)
        };
        assert_eq!(word(0), 1);
        // Go back and forth, and also to the last step before each switch.
        for at in [3, 1, 2, 0, 3] {
            let expected = &states[at];
            timeline.go_to(expected.0);
            assert!(state(&timeline) == *expected, "at step {}", expected.0);
            if at == 1 || at == 2 {
                timeline.go_to(expected.0 - 1);
                assert_eq!(timeline.workgroup()[0], 1 - expected.1[0]);
                timeline.repeat();
                assert!(state(&timeline) == *expected, "after step {}", expected.0 - 1);
            }
        }
        // Take a different course from the middle on: the first workgroup ends when memory contains the flag.
        timeline.go_to(1000);
        timeline.edit(Edit::Memory { address: wavesim_machine::memory::OWNED_BASE, value: 1 }).unwrap();
        while turn(&mut timeline) {}
        assert!(timeline.time() < 2000 && timeline.finished(), "{}", timeline.time());
    }
}

#[test]
fn minimum_of_checkpoints_is_kept() {
    let prepared = prepared(LATER);
    let dispatch = prepared.dispatch(1_000_000);
    let mut timeline = Timeline::new(&prepared, &dispatch).unwrap();
    timeline.limit_checkpoints(0);
    let mut most = 0;
    for _ in 0..40 {
        turn(&mut timeline);
        most = most.max(timeline.checkpoints().0);
    }
    assert_eq!((most, timeline.checkpoints().0), (MIN_CHECKPOINTS, MIN_CHECKPOINTS));
    timeline.limit_checkpoints(usize::MAX);
    for _ in 0..40 {
        turn(&mut timeline);
    }
    assert!(timeline.checkpoints().0 > MIN_CHECKPOINTS);
}
