//! Instructions that read other lanes by computed lane numbers.

use super::families::{compare_all, compare_on, integer};
use super::{program, random, registers, run, start};
use wavesim_isa::arch::Arch;
use wavesim_jit::Jit;
use wavesim_machine::state::LaneVec;

#[test]
fn permutations_of_lanes() {
    let lines = [
        "v_add_nc_u32 v20, v0, v1",
        "ds_bpermute_b32 v21, v2, v20",
        "ds_bpermute_b32 v22, v3, v21 offset:8",
        "ds_swizzle_b32 v23, v4 offset:swizzle(BITMASK_PERM, \"01pip\")",
        "ds_swizzle_b32 v24, v5 offset:swizzle(QUAD_PERM, 3, 1, 0, 2)",
        "ds_swizzle_b32 v25, v5 offset:swizzle(BROADCAST, 8, 3)",
        "v_permlane16_b32 v26, v6, s8, s9",
        "v_permlanex16_b32 v27, v6, s10, s11",
        "v_permlane16_b32 v26, v7, s8, s9 op_sel:[1,0]",
        "v_permlanex16_b32 v27, v7, s10, s11 op_sel:[0,1]",
        "ds_bpermute_b32 v20, v20, v20",
        "v_add_nc_u32 v28, v20, v26",
    ];
    let lane = |seed: &mut u64| match random(seed) % 3 {
        0 => integer(seed),
        _ => random(seed) as u32 % 260,
    };
    compare_all(&lines, lane);
    let lines = [
        "ds_bpermute_b32 v21, v2, v20 offset:4",
        "ds_swizzle_b32 v23, v4 offset:0xe01f",
        "ds_swizzle_b32 v24, v4 offset:0xc4a3",
    ];
    compare_on(Arch::Cdna3, &[64], &lines, lane);
}

#[test]
fn swaps_and_single_lanes() {
    let lines = [
        "v_mul_lo_u32 v20, v0, v1",
        "v_swap_b32 v20, v2",
        "v_add_nc_u32 v21, v20, v2",
        "v_readlane_b32 s20, v21, 5",
        "v_writelane_b32 v21, s20, 7",
        "v_writelane_b32 v22, s8, s9",
        "v_writelane_b32 v23, 17, s10",
        "v_mov_b32_dpp v24, v21 row_ror:1 row_mask:0xf bank_mask:0xf",
        "v_swap_b32 v23, v23",
        "v_readfirstlane_b32 s21, v22",
    ];
    compare_all(&lines, integer);
}

/// Computed registers beyond the wave's allocation: writes are dropped, and reads return v0.
#[test]
fn registers_beyond_the_allocation() {
    let lines = [
        "s_movk_i32 s4, 0x2",
        "v_add_nc_u32 v1, v1, v0",
        "v_swap_b32 v1, v9",
        "v_permlane16_b32 v2, v10, s8, s9",
        "v_permlane16_b32 v11, v3, s8, s9",
        "v_writelane_b32 v8, s8, 3",
        "s_add_i32 s4, s4, -1",
        "s_cmp_lg_u32 s4, 0",
        "s_cbranch_scc1 @1",
        "s_endpgm",
    ];
    for size in [32, 64] {
        let program = program(&lines, size);
        let code = Jit::with_threshold(&program, 0).expect("a supported host");
        let mut plain = start(size, 0xf0);
        (0..plain.halves()).for_each(|half| plain.set_lane_vec(half, 9, LaneVec([7; 32])));
        plain.set_vgpr_count(8);
        let mut compiled = plain.clone();
        let (a, b) = (run(&program, &mut plain, 2000, None), run(&program, &mut compiled, 2000, Some(&code)));
        assert_eq!(a, b);
        assert!(code.stats().operations > 8 && code.stats().failed == 0);
        assert_eq!(registers(&plain, 16), registers(&compiled, 16));
    }
}

/// The cached classification of lane offsets is invalidated when an instruction writes one lane.
#[test]
fn cached_offsets_that_writelane_changes() {
    let lines = [
        "v_mbcnt_lo_u32_b32 v0, -1, 0",
        "v_lshlrev_b32 v0, 2, v0",
        "s_movk_i32 s4, 0x3",
        "ds_store_b32 v0, v1",
        "ds_load_b32 v2, v0",
        "v_writelane_b32 v0, s8, s4",
        "v_add_nc_u32 v1, v1, v2",
        "s_add_i32 s4, s4, -1",
        "s_cmp_lg_u32 s4, 0",
        "s_cbranch_scc1 @3",
        "s_endpgm",
    ];
    let program = program(&lines, 32);
    let code = Jit::with_threshold(&program, 0).expect("a supported host");
    let mut plain = start(32, 0xf0);
    plain.sgprs[8] = 40;
    let mut compiled = plain.clone();
    let (a, b) = (run(&program, &mut plain, 2000, None), run(&program, &mut compiled, 2000, Some(&code)));
    assert_eq!(a, b);
    assert_eq!(registers(&plain, 16), registers(&compiled, 16));
}
