//! Vector loads and stores with unit-stride offsets, with exceptions in single lanes, and at the end of
//! memory.

use super::compare_in_memory;

const BASE: u64 = 0x10_0000;
const LDS: usize = 64 * 16 + 64;

/// Compares registers, memory and LDS, with word offsets in v1 and offsets of four words in v2.
fn compare(size: u32, words: impl Fn(u32) -> u32, quads: impl Fn(u32) -> u32) {
    compare_program(&ACCESSES, size, words, quads);
}

const ACCESSES: [&str; 12] = [
    "s_mov_b32 s2, 0x100000",
    "s_mov_b32 s3, 0",
    "global_load_b32 v4, v1, s[2:3]",
    "ds_load_b32 v5, v1",
    "v_add_nc_u32 v6, v4, v5",
    "global_store_b32 v1, v6, s[2:3]",
    "ds_store_b32 v1, v4",
    "global_load_b128 v[8:11], v2, s[2:3] offset:16",
    "ds_load_b128 v[12:15], v2 offset:32",
    "global_store_b128 v2, v[12:15], s[2:3]",
    "ds_store_b128 v2, v[8:11] offset:16",
    "s_endpgm",
];

/// As [`compare`], for a given program.
fn compare_program(lines: &[&str], size: u32, words: impl Fn(u32) -> u32, quads: impl Fn(u32) -> u32) {
    compare_in_memory(BASE, LDS, lines, size, [&words, &quads]);
}

#[test]
fn unit_stride_except_for_one_lane() {
    for size in [32, 64] {
        compare(size, |lane| 4 * lane, |lane| 16 * lane);
        for other in 0..size {
            let moved = |lane: u32| if lane == other { (lane + 3) % size } else { lane };
            compare(size, |lane| 4 * moved(lane), |lane| 16 * lane);
            compare(size, |lane| 4 * lane, |lane| 16 * moved(lane));
        }
    }
}

/// The last lane is at the last word of memory, or beyond it; offsets that wrap around, and negative ones.
#[test]
fn lanes_at_the_end_of_memory() {
    for size in [32, 64] {
        for beyond in [0, 4, 8, 16, 32] {
            compare(size, |lane| LDS as u32 - 4 * size + 4 * lane + beyond, |lane| 16 * lane);
            compare(size, |lane| 4 * lane, |lane| LDS as u32 - 16 * (size + 1) + 16 * lane + beyond - 16);
        }
        for first in [1u32 << 31, (1 << 31) - 64, 0u32.wrapping_sub(64), 0u32.wrapping_sub(4 * size)] {
            compare(size, |lane| first.wrapping_add(4 * lane), |lane| 16 * lane);
            compare(size, |lane| 4 * lane, |lane| first.wrapping_add(16 * lane));
        }
    }
}

/// A classification that was cached with all lanes active must not cause stores of lanes that are inactive in
/// other iterations.
#[test]
fn cached_offsets_with_inactive_lanes() {
    let lines = [
        "s_movk_i32 s4, 4",
        "s_mov_b32 exec_lo, -1",
        "v_mov_b32 v7, s4",
        "s_bitcmp1_b32 s4, 1",
        "s_cselect_b32 exec_lo, 0x00ffff01, -1",
        "ds_load_b32 v5, v1",
        "v_add_nc_u32 v6, s4, v5",
        "ds_store_b32 v1, v7",
        "s_add_i32 s4, s4, -1",
        "s_cmp_lg_u32 s4, 1",
        "s_cbranch_scc1 @1",
        "s_endpgm",
    ];
    for size in [32, 64] {
        compare_program(&lines, size, |lane| 4 * lane, |_| 0);
    }
}

/// A load of several SGPRs ends the run of the lanes before it. That run has a path for full and one for partial
/// EXEC, each of which computes the halves of a uniform operand for itself.
#[test]
fn scalar_loads_after_packed_operations_and_stores() {
    let lines = [
        "s_mov_b32 s2, 0x100000",
        "s_mov_b32 s3, 0",
        "s_movk_i32 s4, 4",
        "v_mov_b32 v7, 0",
        "v_max_i16 v7, s4, v7",
        "v_pk_add_u16 v8, s4, v7",
        "global_store_b32 v1, v7, s[2:3]",
        "s_load_b256 s[16:23], s[2:3], 0",
        "v_add_nc_u32 v9, s16, v8",
        "s_add_i32 s4, s4, -1",
        "s_cmp_lg_u32 s4, 1",
        "s_cselect_b32 exec_lo, -1, 0x00ffff01",
        "s_cbranch_scc1 @3",
        "s_endpgm",
    ];
    for size in [32, 64] {
        compare_program(&lines, size, |lane| 4 * lane, |_| 0);
    }
}
