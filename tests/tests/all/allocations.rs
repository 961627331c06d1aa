//! The hot loop does not allocate: the number of allocations of a run does not depend on the number of
//! instructions or workgroups that it executes.

use crate::counting::ALLOCATIONS;
use wavesim::sched::dispatch;
use wavesim_tests::{Setup, prepare};

/// A loop with every kind of instruction: scalar, vector, transcendental, DPP, divergent, memory of each
/// address space, atomics, barriers.
const KERNEL: &str = "
---
arg_x: f32[64] = arange(64)
out_y: f32[64]
local = 64, 1, 1
global = GROUPS, 1, 1
wave = 32
lds = 256
---
  s_load_b64 s[6:7], s[3:4], 0
  s_load_b64 s[8:9], s[3:4], 8
  v_lshlrev_b32 v1, 2, v0
  v_mov_b32 v4, 0
  s_mov_b32 s5, ROUNDS
  s_waitcnt lgkmcnt(0)
loop:
  global_load_b32 v2, v1, s[6:7]
  s_waitcnt vmcnt(0)
  v_fma_f32 v4, v2, 0.5, v4
  v_sqrt_f32 v3, |v4|
  v_add_f32_dpp v4, v3, v4 quad_perm:[1,0,3,2] row_mask:0xf bank_mask:0xf
  ds_store_b32 v1, v4
  s_waitcnt lgkmcnt(0)
  s_barrier
  ds_load_b32 v5, v1
  v_cmp_lt_f32 vcc_lo, 4.0, v4
  s_and_saveexec_b32 s10, vcc_lo
  v_mul_f32 v4, 0.25, v4
  s_mov_b32 exec_lo, s10
  s_waitcnt lgkmcnt(0)
  global_atomic_add_f32 v1, v5, s[8:9]
  s_sub_u32 s5, s5, 1
  s_cmp_lg_u32 s5, 0
  s_cbranch_scc1 loop
  global_store_b32 v1, v4, s[8:9]
  s_endpgm
";

/// Returns the number of allocations of a run, and the number of instructions that it executes.
fn cost(rounds: u32, groups: u32) -> (u64, u64) {
    let source = KERNEL.replace("ROUNDS", &rounds.to_string()).replace("GROUPS", &groups.to_string());
    let prepared = prepare(&source, &Setup::default()).unwrap_or_else(|e| panic!("{e}"));
    let dispatch = prepared.dispatch(u64::MAX);
    // The first launch of a process builds tables of handlers.
    dispatch::run(&dispatch, &prepared.memory).unwrap();
    let before = ALLOCATIONS.get();
    let stats = dispatch::run(&dispatch, &prepared.memory).unwrap();
    (ALLOCATIONS.get() - before, stats.instructions)
}

#[test]
fn allocations_do_not_depend_on_instructions() {
    let (few, short) = cost(10, 1);
    let (many, long) = cost(2000, 1);
    assert!(short > 100 && long > 100 * short, "{short} and {long} instructions");
    assert!(few > 0, "nothing was counted");
    assert_eq!(few, many, "{} instructions more", long - short);
}

#[test]
fn allocations_do_not_depend_on_workgroups() {
    let (few, short) = cost(2, 2);
    let (many, long) = cost(2, 500);
    assert!(long > 200 * short, "{short} and {long} instructions");
    assert_eq!(few, many, "498 workgroups more");
}
