//! Memory in checkpoints: pages, which checkpoints share until a store changes them.

use wavesim_debug::timeline::{Outcome, Timeline};
use wavesim_loader::text_kernel::{self, Options};
use wavesim_machine::memory::OWNED_BASE;

/// Page size in bytes.
const PAGE: usize = 1 << 16;

/// Runs for a while, stores across the border of two out of four pages, runs on, stores the same data again,
/// and runs on.
const KERNEL: &str = "---
out_y: u32[60000]
local = 32, 1, 1
global = 1, 1, 1
wave = 32
---
  s_load_b64 s[6:7], s[3:4], 0
  v_lshlrev_b32 v1, 2, v0
  v_add_nc_u32 v1, 0x1ffc0, v1
  v_mov_b32 v2, 7
  s_mov_b32 s9, 3
  s_waitcnt lgkmcnt(0)
phase:
  s_movk_i32 s8, 0x1000
wait:
  s_sub_u32 s8, s8, 1
  s_cmp_lg_u32 s8, 0
  s_cbranch_scc1 wait
  s_sub_u32 s9, s9, 1
  s_cmp_eq_u32 s9, 0
  s_cbranch_scc1 end
  global_store_b32 v1, v2, s[6:7]
  s_branch phase
end:
  s_endpgm
";

/// Checkpoints share the pages that no store has changed, and restoring a checkpoint restores their content.
#[test]
fn only_changed_pages_are_copied() {
    let options = Options { global_bytes: 1 << 20, ..Options::default() };
    let prepared = text_kernel::prepare("k.rdna", KERNEL, &options, 0).unwrap();
    let dispatch = prepared.dispatch(1_000_000);
    let mut timeline = Timeline::new(&prepared, &dispatch).unwrap();
    let memory = timeline.memory().snapshot();
    assert_eq!(memory.len().div_ceil(PAGE), 4);
    let registers = timeline.group.bytes();
    assert_eq!(timeline.checkpoints(), (1, registers + memory.len()), "the first one has all of it");
    // The bytes copied by each of the other checkpoints, and the memory at its time.
    let (mut copied, mut states) = (Vec::new(), vec![(0, memory)]);
    let mut before = timeline.checkpoints();
    while timeline.run(0, 1024, None) == Outcome::Stepped {
        let after = timeline.checkpoints();
        if after.0 > before.0 {
            copied.push(after.1 - before.1 - registers);
            states.push((timeline.time(), timeline.memory().snapshot()));
        }
        before = after;
    }
    // The second stores change nothing.
    assert!(copied.len() >= 6, "{copied:?}");
    let changed: Vec<usize> = copied.iter().copied().filter(|bytes| *bytes > 0).collect();
    assert_eq!(changed, [2 * PAGE]);
    assert_eq!(copied[0], 0);
    assert!(copied.ends_with(&[0, 0, 0, 0]), "{copied:?}");
    // Go back and forth.
    for at in [0, states.len() - 1, 1, states.len() - 2, 2, 0, states.len() / 2] {
        let (time, expected) = &states[at];
        timeline.go_to(*time);
        assert!(timeline.memory().snapshot() == *expected, "at step {time}");
    }
    let word = |at: u64| {
        let mut bytes = [0; 4];
        timeline.memory().read(OWNED_BASE + at, &mut bytes).unwrap();
        u32::from_le_bytes(bytes)
    };
    let border = 2 * PAGE as u64;
    assert_eq!(
        [border - 68, border - 64, border - 4, border, border + 60, border + 64].map(word),
        [0, 7, 7, 7, 7, 0]
    );
}
