//! Runs with memory accesses on the fast path, with stores in the packet, and on the slow path.

use super::compare_in_memory;

/// The start of memory, which extends across 4 GiB.
const BASE: u64 = 0xffff_fc00;
const BYTES: usize = 64 * 16 * 3;

/// Compares registers, memory and LDS. v1 and v2 have the offsets; s[2:3] is an address inside memory; v[6:7]
/// and v[8:9] are the sum of it and the offsets in v1 and v2.
fn compare(lines: &[&str], size: u32, offsets: [&dyn Fn(u32) -> u32; 2]) {
    let mut all = vec![
        "s_mov_b32 s2, 0xfffffc00",
        "s_mov_b32 s3, 0",
        "s_mov_b32 s4, 3",
        "v_add_co_u32 v6, vcc_lo, s2, v1",
        "v_ashrrev_i32 v7, 31, v1",
        "v_add_co_ci_u32 v7, vcc_lo, 0, v7, vcc_lo",
        "v_add_co_u32 v8, vcc_lo, s2, v2",
        "v_ashrrev_i32 v9, 31, v2",
        "v_add_co_ci_u32 v9, vcc_lo, 0, v9, vcc_lo",
    ];
    all.extend(lines);
    all.extend(["s_add_i32 s4, s4, -1", "s_cmp_lg_u32 s4, 0", "s_cbranch_scc1 @9", "s_endpgm"]);
    compare_in_memory(BASE, BYTES, &all, size, offsets);
}

/// Lanes store to addresses that other lanes load or store, by different registers or by different constant
/// offsets.
#[test]
fn overlapping_stores_and_loads() {
    for size in [32, 64] {
        for away in (-9..10).chain([-65, -64, -33, -32, -31, 31, 32, 33, 63, 64, 65]) {
            // Packets in ascending and in descending order.
            let words = |lane: u32| 4 * lane + 512;
            let reversed = |lane: u32| words(size - 8 - lane / 8 * 8 + lane % 8);
            let lines = [
                "global_load_b32 v10, v1, s[2:3]",
                "global_store_b32 v2, v10, s[2:3]",
                "v_add_nc_u32 v10, 1, v10",
                "ds_load_b32 v11, v1",
                "ds_store_b32 v2, v11",
                "v_add_nc_u32 v11, 1, v11",
                "ds_store_b32 v1, v10",
                "ds_store_b32 v2, v11",
                "v_xor_b32 v12, v10, v11",
                "global_store_b32 v2, v12, s[2:3]",
                "global_store_b32 v1, v11, s[2:3]",
                "global_load_b32 v13, v[6:7], off",
                "global_store_b32 v[8:9], v13, off",
            ];
            compare(&lines, size, [&words, &|lane| (words(lane) as i32 + 4 * away) as u32]);
            compare(&lines, size, [&reversed, &|lane| (reversed(lane) as i32 + 4 * away) as u32]);
            let quads = |lane: u32| 16 * lane + 1024;
            let moved = |lane: u32| (quads(lane) as i32 + 4 * away) as u32;
            let (before, after) = (4 * away, 1024 + 4 * away);
            compare(
                &[
                    "global_load_b128 v[10:13], v1, s[2:3]",
                    "global_store_b128 v2, v[10:13], s[2:3]",
                    "v_add_nc_u32 v10, 1, v10",
                    &format!("global_load_b128 v[14:17], v1, s[2:3] offset:{before}"),
                    "v_mov_b32 v20, v14",
                    "global_store_b128 v1, v[14:17], s[2:3]",
                    "v_mov_b32 v14, v15",
                    "v_mov_b32 v15, v20",
                    &format!("ds_load_b128 v[16:19], v3 offset:{after}"),
                    "ds_store_b128 v3, v[16:19] offset:1024",
                    "global_load_b64 v[22:23], v[6:7], off",
                    &format!("global_store_b64 v[6:7], v[22:23], off offset:{before}"),
                ],
                size,
                [&quads, &moved],
            );
        }
    }
}

/// Lanes that are contiguous in pieces, uniform or scattered, by either register; the last elements of
/// memory, and addresses beyond it.
#[test]
fn partially_contiguous_lanes() {
    let lines = [
        "global_load_b32 v10, v[6:7], off",
        "global_load_b32 v11, v[6:7], off offset:4",
        "global_load_b32 v12, v[8:9], off offset:16",
        "v_add_nc_u32 v10, v10, v12",
        "global_store_b32 v[6:7], v10, off offset:1024",
        "ds_load_2addr_b32 v[14:15], v1 offset1:1",
        "ds_load_2addr_b32 v[16:17], v2 offset1:16",
        "v_xor_b32 v14, v14, v17",
        "v_xor_b32 v15, v15, v16",
        "ds_store_b32 v1, v14 offset:2048",
        "ds_store_b32 v2, v15 offset:2048",
        "v_add_nc_u32 v18, v14, v18",
        "global_load_b128 v[20:23], v[8:9], off offset:32",
        "global_store_b128 v[8:9], v[20:23], off offset:1600",
        "global_store_b64 v1, v[20:21], s[2:3] offset:1200",
    ];
    for size in [32, 64] {
        for piece in [1, 4, 8, 16, 32, 64] {
            for step in [0, 4, 16] {
                let of = |lane: u32| lane % piece * step + lane / piece * 96 % 256;
                compare(&lines, size, [&of, &|lane| 4 * lane]);
                compare(&lines, size, [&|lane| 16 * lane % 512, &of]);
                compare(&lines, size, [&of, &of]);
            }
        }
        for other in 0..size {
            // One lane is elsewhere: at another address, before memory, or 4 GiB further.
            let moved = |lane: u32| if lane == other { 128 } else { 4 * lane };
            compare(&lines, size, [&moved, &|lane| 16 * lane % 512]);
            compare(&lines, size, [&|lane| 16 * lane % 512, &moved]);
            // All lanes but one are at one address, or packets are uniform or contiguous by turns.
            let one = |lane: u32| if lane == other { 260 } else { 256 };
            compare(&lines, size, [&one, &|lane| 4 * lane]);
            compare(&lines, size, [&|lane| 16 * lane % 512, &one]);
            let mixed = |lane: u32| if lane / 8 == other / 8 { 128 } else { 4 * lane };
            compare(&lines, size, [&mixed, &|lane| 16 * (lane / 8)]);
            let before = |lane: u32| if lane == other { 0u32.wrapping_sub(16) } else { 4 * lane };
            compare(&lines[..2], size, [&before, &before]);
        }
        for beyond in [0, 4, 16, 64, 1024] {
            let last = |lane: u32| BYTES as u32 - 1024 - 4 * (size - lane) + beyond;
            compare(&lines[4..5], size, [&last, &last]);
            compare(&lines[1..2], size, [&|lane| last(lane) + 1020, &last]);
            compare(&lines[0..2], size, [&|lane| last(lane) + 1020, &last]);
            compare(
                &["global_load_b32 v10, v[6:7], off offset:-4"],
                size,
                [&|lane| (4 * lane + 4).wrapping_sub(beyond), &last],
            );
        }
    }
}

/// A loaded value is used after another store to the same address.
#[test]
fn load_before_store_to_the_same_address() {
    for size in [32, 64] {
        let words = |lane: u32| 4 * lane;
        compare(
            &[
                "global_load_b32 v14, v1, s[2:3]",
                "global_store_b32 v1, v20, s[2:3]",
                "v_add_nc_u32 v14, v14, v21",
                "ds_load_b32 v15, v1",
                "ds_store_b32 v1, v14",
                "v_add_nc_u32 v15, v15, v21",
                "v_xor_b32 v20, v15, v14",
                "ds_load_b32 v16, v1 offset:4",
                "ds_load_b32 v17, v1",
                "v_sub_nc_u32 v17, v17, v16",
                "ds_store_b32 v1, v17",
            ],
            size,
            [&words, &words],
        );
    }
}

/// High words of addresses that differ in one lane, or that change at 4 GiB; packets before the start of
/// memory.
#[test]
fn addresses_around_4_gib() {
    for size in [32, 64] {
        let lines =
            ["global_load_b32 v10, v[6:7], off", "global_store_b32 v[8:9], v10, off", "ds_store_b32 v1, v10"];
        let zeros = |_: u32| 0;
        let words = |lane: u32| 4 * lane;
        for lane in [1, 7, 8, 31] {
            let one = format!("s_mov_b32 exec_lo, {:#x}", 1u32 << lane);
            let high = [one.as_str(), "v_add_nc_u32 v7, 1, v7", "s_mov_b32 exec_lo, -1"];
            compare(&[&high[..], &lines].concat(), size, [&words, &words]);
        }
        // The last lane is at the start of the address space.
        let last = |lane: u32| if lane / 8 == 1 { 1024 - 28 + 4 * (lane % 8) } else { 4 * lane };
        compare(&[&["v_mov_b32 v7, 0"][..], &lines].concat(), size, [&last, &words]);
        for first in [1024 - 256, 1024 - 64, 1024 - 32, 1024 - 28, 1024 - 20, 1024 - 16, 1024 - 4, 1024] {
            let around = |lane: u32| first + 4 * lane;
            compare(&lines, size, [&around, &words]);
            compare(&lines, size, [&words, &around]);
            compare(&[&["v_mov_b32 v7, 0"][..], &lines].concat(), size, [&around, &words]);
            compare(&[&["v_mov_b32 v9, 1"][..], &lines].concat(), size, [&words, &around]);
        }
        for packet in 0..size / 8 {
            let before =
                |lane: u32| if lane / 8 == packet { (4 * lane).wrapping_sub(1024) } else { 4 * lane };
            compare(&lines[..1], size, [&before, &zeros]);
            compare(&lines[1..2], size, [&words, &before]);
        }
    }
}

/// Registers that are written more than once, read before and after, and stored in between; masks and scalar
/// loads around stores.
#[test]
fn registers_and_masks_around_stores() {
    for size in [32, 64] {
        for piece in [8, 64] {
            let of = |lane: u32| lane % piece * 16 + lane / piece * 16;
            compare(
                &[
                    "global_load_b128 v[10:13], v1, s[2:3]",
                    "v_mov_b32 v20, v10",
                    "v_mov_b32 v10, v11",
                    "global_store_b128 v2, v[10:13], s[2:3]",
                    "v_mov_b32 v21, v20",
                    "v_mov_b32 v20, v12",
                    "v_mov_b32 v12, v22",
                    "v_add_nc_u32 v22, v12, v21",
                    "global_store_b64 v1, v[12:13], s[2:3] offset:1024",
                    "global_load_b128 v[10:13], v1, s[2:3]",
                    "v_mov_b32 v12, v22",
                    "global_store_b128 v2, v[10:13], s[2:3] offset:1024",
                    // The old content of a register is used after it has been overwritten.
                    "v_mov_b32 v32, v30",
                    "v_mov_b32 v30, v31",
                    "v_add_nc_u32 v32, v32, v31",
                    "v_add_nc_u32 v31, v32, v20",
                    "v_mov_b32 v1, v1",
                    "v_add_nc_u32 v2, 0, v2",
                    "global_load_b32 v24, v1, s[2:3] offset:4",
                    "v_cmp_lt_u32 vcc_lo, v24, v20",
                    "v_cndmask_b32 v25, v20, v21, vcc_lo",
                    "ds_store_b32 v1, v25 offset:1024",
                    "v_cndmask_b32 v26, v21, v20, vcc_lo",
                    "v_cmp_gt_i32 s10, v26, v25",
                    "ds_store_b32 v1, v26 offset:1028",
                    "v_mul_f32 v27, v14, v3",
                    "ds_store_b32 v1, v27 offset:1032",
                    "v_mul_f32 v27, v27, v14",
                    "global_store_b32 v1, v27, s[2:3] offset:2048",
                    "s_load_b32 s12, s[2:3], 0x800",
                    "s_load_b64 s[14:15], s[2:3], 0x10",
                    "v_add_nc_u32 v28, s12, v28",
                    "s_bitcmp1_b32 s4, 1",
                    "s_cselect_b32 exec_lo, -1, 0x00ffff01",
                ],
                size,
                [&of, &|lane| 16 * lane],
            );
        }
    }
}
