//! Loops with versioned iterations: they end by their counters, by the end of a turn, and by leaving memory; the
//! state is that of the interpreter, also in registers that each iteration overwrites.

use super::{compare_in_turns, program, random, registers, run_in, start};
use wavesim_jit::Jit;
use wavesim_machine::memory::Memory;
use wavesim_machine::state::LaneVec;

/// The start of memory.
const BASE: u64 = 0x10_0000;
const BYTES: usize = 64 * 16 * 8;

/// Compares registers, memory and LDS after a loop of `count` iterations, for offsets in v1 and v2, in turns
/// of several lengths. s[2:3] is the start of memory; s4 counts down, s5 has `step`, and s6 counts up.
fn compare(body: &[&str], [count, step]: [i32; 2], size: u32, offsets: [&dyn Fn(u32) -> u32; 2]) {
    let (count, step) = (format!("s_mov_b32 s4, {count}"), format!("s_mov_b32 s5, {step}"));
    let mut all = vec!["s_mov_b32 s2, 0x100000", "s_mov_b32 s3, 0", &count, &step, "s_mov_b32 s6, 0"];
    all.extend(body);
    let tail = ["s_add_i32 s6, s6, 1", "s_add_i32 s4, s4, -1", "s_cmp_lg_u32 s4, 0", "s_cbranch_scc1 @5"];
    all.extend(tail.iter().chain(&["v_mul_f32 v39, v14, v15", "s_endpgm"]));
    // Code is entered if at least 1024 instructions are left of a turn.
    for budget in [2000, 1024 + 5 * (body.len() as u64 + 4), 1301] {
        let stats = compare_in_turns(BASE, BYTES, &all, size, offsets, budget);
        assert!(stats.units > 0);
    }
}

const COPY: [&str; 3] = [
    "global_load_b128 v[10:13], v1, s[2:3]",
    "global_store_b128 v1, v[10:13], s[2:3] offset:1024",
    "v_add_nc_u32 v1, s5, v1",
];

/// Loops of loads and stores have a fast path and versioned iterations.
#[test]
fn loops_have_versioned_iterations() {
    let loop_of = |body: &[&'static str]| {
        let begin =
            ["s_mov_b32 s2, 0x100000", "s_mov_b32 s3, 0", "s_movk_i32 s4, 0x9", "s_movk_i32 s5, 0x100"];
        let end = ["s_add_i32 s4, s4, -1", "s_cmp_lg_u32 s4, 0", "s_cbranch_scc1 @4", "s_endpgm"];
        let lines = [&begin[..], body, &end].concat();
        compare_in_turns(BASE, BYTES, &lines, 32, [&|lane| 16 * lane, &|_| 0], 2000).paths
    };
    let paths = loop_of(&COPY);
    assert_eq!((paths.fast_runs, paths.versioned_loops), (1, 1), "{paths:?}");
    // Each lane has its own step.
    let paths = loop_of(&[COPY[0], COPY[1], "v_add_nc_u32 v1, v1, v1"]);
    assert_eq!((paths.fast_runs, paths.versioned_loops), (1, 0), "{paths:?}");
}

/// A loop of loads and stores whose offsets grow or shrink, also beyond either end of memory.
#[test]
fn copies() {
    for size in [32, 64] {
        for step in [1024, 512, 16, 0, -16, -512, 4096, i32::MAX, i32::MIN, 20] {
            for first in [0, 16, 2048, 5 * 1024, 6 * 1024 + 512, BYTES as u32 - 2048] {
                for count in [1, 2, 3, 12, 6000] {
                    compare(&COPY, [count, step], size, [&|lane| first + 16 * lane, &|_| 0]);
                }
            }
        }
    }
}

/// Stores of whole cache lines, of values that were loaded, or computed, whose lines may be split and differ
/// by packet.
#[test]
fn stores_of_lines() {
    let bodies: [&[&str]; 4] = [
        &["v_add_nc_u32 v10, v10, v11", "global_store_b128 v1, v[10:13], s[2:3]"],
        &["v_add_nc_u32 v10, v10, v11", "global_store_b64 v1, v[10:11], s[2:3] offset:64"],
        &["global_load_b64 v[10:11], v2, s[2:3]", "global_store_b64 v1, v[10:11], s[2:3]"],
        &[
            "v_mov_b32 v10, s6",
            "global_store_b128 v1, v[10:13], s[2:3]",
            "global_store_b128 v2, v[10:13], s[2:3]",
        ],
    ];
    for size in [32, 64] {
        for body in bodies {
            for (width, first) in [(8, 0), (8, 16), (16, 0), (16, 64), (16, 32), (16, 4)] {
                let body = [body, &["v_add_nc_u32 v1, s5, v1"]].concat();
                let other = |lane| BYTES as u32 - 1024 - 64 * size + width * lane;
                compare(&body, [5, 256], size, [&|lane| first + width * lane, &other]);
                // Packets in another order, some of them within cache lines.
                let packet = |lane: u32| [2048, 0, 1040, 520, 4096, 3104][lane as usize / 8 % 6];
                let mixed = |lane: u32| first + packet(lane) + 256 * (lane / 48) + width * (lane % 8);
                compare(&body, [5, 128], size, [&mixed, &other]);
            }
        }
    }
}

/// Lanes that are not contiguous, offsets in the upper half, and one inactive lane.
#[test]
fn other_lanes() {
    for size in [32, 64] {
        for other in [0, 7, 8, 31] {
            let moved = |lane: u32| 16 * if lane == other { (lane + 3) % size } else { lane };
            compare(&COPY, [9, 64], size, [&moved, &|_| 0]);
        }
        compare(&COPY, [9, 64], size, [&|lane| (16 * (size - lane)).wrapping_sub(64), &|_| 0]);
        compare(&COPY, [9, 64], size, [&|lane| 0u32.wrapping_sub(64).wrapping_add(16 * lane), &|_| 0]);
        let inactive = ["s_bitset0_b32 exec_lo, 5"].iter().chain(&COPY).copied().collect::<Vec<_>>();
        compare(&inactive, [9, 64], size, [&|lane| 16 * lane, &|_| 0]);
        // All packets have the same addresses, or descending ones.
        compare(&COPY, [9, 128], size, [&|lane| 16 * (lane % 8), &|_| 0]);
        compare(&COPY, [9, 64], size, [&|lane| 16 * (size - 8 - lane / 8 * 8 + lane % 8), &|_| 0]);
    }
}

/// Registers that an iteration reads before it writes them, or writes only in part, keep their values; so do
/// values that depend on scalar registers.
#[test]
fn registers_of_iterations() {
    let bodies: [&[&str]; 12] = [
        &[
            "v_add_nc_u32 v20, v20, v10",
            "global_load_b32 v10, v1, s[2:3]",
            "v_xor_b32 v21, v10, v20",
            "v_mov_b32 v22, s6",
            "v_add_nc_u32 v1, s5, v1",
        ],
        &[
            "global_load_b64 v[10:11], v1, s[2:3]",
            "v_mov_b32 v20, v11",
            "v_mov_b32 v11, v10",
            "v_mov_b32 v10, v20",
            "global_store_b64 v1, v[10:11], s[2:3]",
            "v_add_nc_u32 v1, s5, v1",
        ],
        &[
            "global_load_b32 v10, v1, s[2:3]",
            "v_add_f16 v20.h, v10.l, v10.h",
            "v_mov_b32 v21, v10",
            "v_mov_b32 v21, s4",
            "v_add_nc_u32 v1, s5, v1",
        ],
        &[
            "global_load_b32 v10, v1, s[2:3]",
            "v_fma_f32 v20, v10, v14, v15",
            "v_mul_f32 v21, v14, 0.5",
            "global_store_b32 v1, v20, s[2:3]",
            "v_add_nc_u32 v1, s5, v1",
        ],
        &[
            "global_load_u16 v10, v1, s[2:3]",
            "global_load_d16_hi_b16 v20, v1, s[2:3]",
            "v_add_nc_u32 v21, v10, v20",
            "v_add_nc_u32 v1, s5, v1",
        ],
        // Denormals that are kept, where others are flushed.
        &[
            "global_load_b32 v10, v1, s[2:3]",
            "v_and_b32 v11, 0x800fffff, v10",
            "v_add_f64 v[20:21], v[10:11], v[10:11]",
            "v_add_f64 v[22:23], v[20:21], v[22:23]",
            "v_add_nc_u32 v1, s5, v1",
        ],
        // Other lanes, scratch, and stores in loops of their own read registers before the loads write them.
        &[
            "v_mov_b32_dpp v20, v10 row_shr:1 row_mask:0xf bank_mask:0xf",
            "global_load_b32 v10, v1, s[2:3]",
            "v_add_nc_u32 v1, s5, v1",
        ],
        &[
            "scratch_load_b32 v20, v2, off",
            "global_load_b32 v10, v1, s[2:3]",
            "v_add_nc_u32 v2, 16, v2",
            "v_add_nc_u32 v1, s5, v1",
        ],
        &[
            "global_store_b8 v1, v10, s[2:3] offset:512",
            "global_load_b32 v10, v1, s[2:3]",
            "v_add_nc_u32 v1, s5, v1",
        ],
        &[
            "ds_store_2addr_b32 v1, v10, v11 offset1:3",
            "global_load_b64 v[10:11], v1, s[2:3]",
            "v_add_nc_u32 v1, s5, v1",
        ],
        // A scalar instruction reads a lane, or the loop depends on a mask of lanes.
        &[
            "v_readfirstlane_b32 s8, v10",
            "global_load_b32 v10, v1, s[2:3]",
            "v_mov_b32 v20, s8",
            "v_add_nc_u32 v1, s5, v1",
        ],
        &[
            "global_load_b32 v10, v1, s[2:3]",
            "v_cmp_lt_u32 vcc_lo, v10, v2",
            "v_cndmask_b32 v20, v10, v2, vcc_lo",
            "v_add_nc_u32 v1, s5, v1",
        ],
    ];
    for size in [32, 64] {
        for body in bodies {
            for (step, count) in [(4 * size as i32, 7), (256, 40), (-128, 9), (4, 3)] {
                for width in [4, 8, 0] {
                    compare(body, [count, step], size, [&|lane| 1024 + width * lane, &|lane| lane << 26]);
                }
                compare(body, [count, step], size, [&|lane| 1024 + 4 * lane, &|lane| lane / 2]);
            }
        }
    }
}

/// What a versioned iteration relies on changes: the base address, the step, EXEC, or the offsets by more than
/// one addition of a uniform value.
#[test]
fn changing_loops() {
    let lines: [&[&str]; 12] = [
        &["s_add_u32 s2, s2, 64"],
        &["s_add_i32 s5, s5, 16"],
        &["s_lshl_b32 s5, s5, 1"],
        &["v_add_nc_u32 v1, s5, v2"],
        &["v_add_nc_u32 v1, 32, v2"],
        &["s_lshr_b32 exec_lo, exec_lo, 1"],
        &["v_add_nc_u32 v1, s5, v1"],
        &["v_add_nc_u32 v1, v1, v3"],
        &["v_add_nc_u32 v1, s4, v1", "v_mov_b32 v10, s4"],
        &["v_mov_b32 v1, s5"],
        &["v_lshlrev_b32 v1, 1, v1"],
        &["s_bitcmp1_b32 s4, 0", "s_cselect_b32 s5, 64, 128"],
    ];
    for size in [32, 64] {
        for more in lines {
            let body: Vec<&str> = COPY.iter().chain(more).copied().collect();
            compare(&body, [9, 32], size, [&|lane| 16 * lane, &|_| 0]);
            compare(&body, [29, 32], size, [&|lane| 16 * lane, &|lane| BYTES as u32 - 64 + 16 * lane]);
            let body: Vec<&str> = more.iter().chain(&COPY).copied().collect();
            compare(&body, [9, 32], size, [&|lane| 16 * lane, &|_| 0]);
            compare(
                &COPY[..1].iter().chain(more).copied().collect::<Vec<_>>(),
                [29, 32],
                size,
                [&|lane| 16 * lane, &|lane| BYTES as u32 - 64 + 16 * lane],
            );
        }
    }
}

/// Stores that come closer to loads, or keep their distance, by the same or by different registers, in memory
/// and in LDS.
#[test]
fn stores_and_loads_at_all_distances() {
    for size in [32, 64] {
        for away in [-260, -128, -68, -64, -32, -4, 0, 4, 8, 32, 60, 128, 256, 1024] {
            let other = |lane: u32| (2048 + 4 * lane as i32 + away) as u32;
            let this = |lane: u32| 2048 + 4 * lane;
            for steps in [
                ["v_add_nc_u32 v1, s5, v1", "v_add_nc_u32 v2, s5, v2"],
                ["v_add_nc_u32 v1, 32, v1", "v_add_nc_u32 v2, 32, v2"],
                ["v_add_nc_u32 v1, 32, v1", "v_add_nc_u32 v2, 64, v2"],
                ["v_add_nc_u32 v1, s5, v1", "v_nop"],
                ["v_nop", "v_add_nc_u32 v2, s5, v2"],
                ["v_nop", "v_nop"],
            ] {
                let global = ["global_load_b32 v10, v1, s[2:3]", "global_store_b32 v2, v10, s[2:3]"];
                compare(&[&global[..], &steps].concat(), [9, -32], size, [&this, &other]);
                let lds = ["ds_load_b32 v10, v1 offset:16", "ds_store_b32 v2, v10"];
                compare(&[&lds[..], &steps].concat(), [9, 32], size, [&this, &other]);
                let both =
                    ["ds_load_2addr_b32 v[10:11], v1 offset1:1", "global_store_b64 v2, v[10:11], s[2:3]"];
                compare(&[&both[..], &steps].concat(), [99, 64], size, [&this, &other]);
            }
        }
    }
}

/// Loops whose last instruction depends on something else than the counter.
#[test]
fn other_branches() {
    for size in [32, 64] {
        for branch in ["s_cbranch_vccnz", "s_cbranch_vccz", "s_cbranch_scc0", "s_cbranch_execnz", "s_branch"]
        {
            let last = format!("{branch} @3");
            let lines = [
                "s_mov_b32 s2, 0x100000",
                "s_mov_b32 s3, 0",
                "s_mov_b32 s4, 9",
                "global_load_b128 v[10:13], v1, s[2:3]",
                "v_add_nc_u32 v1, 64, v1",
                "s_add_i32 s4, s4, -1",
                "s_cmp_lg_u32 s4, 0",
                "s_cselect_b32 vcc_lo, s4, 0",
                &last,
                "s_endpgm",
            ];
            for budget in [2000, 1040, 1301] {
                compare_in_turns(BASE, BYTES, &lines, size, [&|lane| 16 * lane, &|_| 0], budget);
            }
        }
    }
}

/// Random loops of accesses, additions and moves.
#[test]
fn random_loops() {
    let mut seed = 3;
    for _ in 0..400 {
        let mut any = |n: u64| random(&mut seed) % n;
        let size = [32, 64][any(2) as usize];
        let mut body = Vec::new();
        for _ in 0..2 + any(6) {
            let (d, a) = (10 + any(4), 10 + any(4));
            let (offsets, at) = (1 + any(2), 16 * any(8));
            let memory = ["global", "ds"][any(2) as usize];
            let base = if memory == "global" { ", s[2:3]" } else { "" };
            body.push(match any(8) {
                0 | 1 => format!("{memory}_load_b32 v{d}, v{offsets}{base} offset:{at}"),
                2 => format!("{memory}_load_b64 v[{d}:{}], v{offsets}{base} offset:{at}", d + 1),
                3 => format!("{memory}_store_b32 v{offsets}, v{a}{base} offset:{at}"),
                4 => format!("{memory}_store_b64 v{offsets}, v[{a}:{}]{base} offset:{at}", a + 1),
                5 => format!("v_add_nc_u32 v{d}, v{a}, v{}", 10 + any(4)),
                6 => format!("v_mov_b32 v{d}, s6"),
                _ => format!("v_xor_b32 v{d}, v{d}, v{a}"),
            });
        }
        for register in [1, 2] {
            match any(4) {
                0 => body.push(format!("v_add_nc_u32 v{register}, s5, v{register}")),
                1 => body.push(format!("v_add_nc_u32 v{register}, 64, v{register}")),
                2 => body.insert(0, format!("v_add_nc_u32 v{register}, s5, v{register}")),
                _ => {}
            }
        }
        let step = [4, 64, 128, 1024, -4, -64, -512][any(7) as usize];
        let (first, second) = (4 * any(1024) as u32, 4 * any(1024) as u32);
        let width = [4, 4, 8, 0][any(4) as usize];
        let count = 1 + any(30) as i32;
        let body: Vec<&str> = body.iter().map(String::as_str).collect();
        compare(&body, [count, step], size, [&|lane| first + width * lane, &|lane| second + width * lane]);
    }
}

/// Memory of more than 2 GiB: the lanes' offsets extend from 0 across 2 GiB, and advance to the end of memory.
/// Only the pages that are accessed exist.
#[test]
fn offsets_across_2_gib() {
    const BYTES: usize = (1 << 31) + 4096;
    let mut bytes = Vec::<u8>::new();
    if bytes.try_reserve_exact(2 * BYTES).is_err() {
        println!("skipped: the host has no room for {} bytes", 2 * BYTES);
        return;
    }
    drop(bytes);
    let lines = [
        "s_mov_b32 s2, 0x100000",
        "s_mov_b32 s3, 0",
        "s_mov_b32 s4, 3000",
        "global_load_b128 v[10:13], v1, s[2:3]",
        "v_add_nc_u32 v1, 16, v1",
        "s_add_i32 s4, s4, -1",
        "s_cmp_lg_u32 s4, 0",
        "s_cbranch_scc1 @3",
        "s_endpgm",
    ];
    let program = program(&lines, 32);
    let code = Jit::with_threshold(&program, 0).expect("a supported host");
    let outcome = |code: Option<&Jit>| {
        // The second half is not mapped: accesses beyond the first one can be told from faults.
        let mut data = vec![0u8; 2 * BYTES];
        let mut memory = Memory::empty();
        // SAFETY: `data` outlives `memory`.
        unsafe { memory.map_host(BASE, data.as_mut_ptr(), BYTES as u64, true) }.expect("room");
        let mut wave = start(32, 0xc0);
        let first = |lane: u32| if lane < 8 { 0 } else { i32::MAX as u32 - 31 };
        wave.set_lane_vec(0, 1, LaneVec(std::array::from_fn(|l| first(l as u32) + 16 * (l as u32 % 8))));
        let ended = run_in(&memory, &mut [0; 256], &program, &mut wave, 2000, code);
        drop(memory);
        (format!("{ended:?}"), registers(&wave, 20), wave.sgprs, wave.pc)
    };
    let (found, expected) = (outcome(Some(&code)), outcome(None));
    assert!(expected.0.contains("Fault"), "{}", expected.0);
    assert_eq!(found.0, expected.0);
    assert!(found == expected);
}
