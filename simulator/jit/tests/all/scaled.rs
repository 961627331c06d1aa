//! Loads and stores of CDNA 5 whose offsets SCALE_OFFSET multiplies by the size of the element.

use super::{compare_in_turns_of, program_by, registers, run_in, start};
use wavesim_asm::Options;
use wavesim_isa::arch::Arch;
use wavesim_jit::CompileStats;
use wavesim_machine::memory::Memory;
use wavesim_machine::state::LaneVec;

/// The start of memory.
const BASE: u64 = 0x10_0000;
const BYTES: usize = 32 * 16 * 8;

/// Returns a loop of `count` iterations. s[2:3] is the start of memory; s4 counts down, and s5 is `step`.
fn looped(body: &[&str], [count, step]: [i32; 2]) -> Vec<String> {
    let (count, step) = (format!("s_mov_b32 s4, {count}"), format!("s_mov_b32 s5, {step}"));
    let mut all = vec!["s_mov_b32 s2, 0x100000", "s_mov_b32 s3, 0", &count, &step];
    all.extend(body);
    all.extend(["s_add_co_i32 s4, s4, -1", "s_cmp_lg_u32 s4, 0", "s_cbranch_scc1 @4", "s_endpgm"]);
    all.into_iter().map(String::from).collect()
}

/// Compares the engines, for offsets in v1 and v2, which are numbers of elements.
fn compare(body: &[&str], numbers: [i32; 2], offsets: [&dyn Fn(u32) -> u32; 2]) -> CompileStats {
    let all = looped(body, numbers);
    let lines: Vec<&str> = all.iter().map(String::as_str).collect();
    compare_in_turns_of(Arch::Cdna5, BASE, BYTES, &lines, 32, offsets, 2000)
}

const COPY: [&str; 3] = [
    "global_load_b128 v[10:13], v1, s[2:3] scale_offset",
    "global_store_b128 v1, v[10:13], s[2:3] offset:1024 scale_offset",
    "v_add_nc_u32 v1, s5, v1",
];

/// Offsets of the same register count elements of different sizes, and bytes.
const MIXED: [&str; 11] = [
    "global_load_b32 v10, v1, s[2:3] scale_offset",
    "global_load_b32 v11, v1, s[2:3]",
    "global_load_b128 v[12:15], v1, s[2:3] offset:64 scale_offset",
    "global_load_u16 v16, v2, s[2:3] offset:32 scale_offset",
    "global_load_u8 v17, v2, s[2:3] scale_offset",
    "v_xor_b32 v10, v10, v11",
    "v_add_nc_u32 v16, v16, v17",
    "global_store_b64 v2, v[10:11], s[2:3] offset:2048 scale_offset",
    "global_store_b16 v2, v16, s[2:3] offset:1024 scale_offset",
    "global_store_b32 v1, v12, s[2:3] offset:3072 scale_offset",
    "v_add_nc_u32 v1, s5, v1",
];

/// Scaled offsets are contiguous: loops have a fast path and versioned iterations.
#[test]
fn consecutive_elements_are_contiguous() {
    for (scaled, stride) in [(true, 1), (false, 16)] {
        let body = COPY.map(|line| if scaled { line.to_string() } else { line.replace(" scale_offset", "") });
        let paths = compare(
            &body.each_ref().map(String::as_str),
            [9, stride],
            [&|lane| stride as u32 * lane, &|_| 0],
        )
        .paths;
        assert_eq!((paths.fast_runs, paths.versioned_loops), (1, 1), "scaled: {scaled}, {paths:?}");
    }
}

/// Offsets that grow or shrink, also beyond either end of memory, or to products of more than 31 or 32 bits.
#[test]
fn copies() {
    for step in [64, 1, 0, -1, -32, i32::MAX, i32::MIN, 1 << 28, 5] {
        for first in
            [0, 1, 128, 7 * 32 - 64, 8 * 32 - 32, 8 * 32, 1 << 27, 1 << 28, (1 << 28) - 8, u32::MAX - 7]
        {
            for count in [1, 3, 700] {
                compare(&COPY, [count, step], [&|lane| lane.wrapping_add(first), &|_| 0]);
            }
        }
    }
}

/// The same register has offsets of several units; lanes may be scattered or uniform.
#[test]
fn several_units() {
    let words = |lane: u32| lane;
    for other in [0, 7, 8, 31] {
        let moved = |lane: u32| if lane == other { (lane + 3) % 32 } else { lane };
        let far = |lane: u32| if lane == other { 1 << 30 } else { lane };
        for (a, b) in
            [(&words as &dyn Fn(u32) -> u32, &moved as &dyn Fn(u32) -> u32), (&moved, &words), (&far, &words)]
        {
            compare(&MIXED, [4, 1], [a, b]);
            let inactive: Vec<&str> = ["s_bitset0_b32 exec_lo, 5"].iter().chain(&MIXED).copied().collect();
            compare(&inactive, [4, 1], [a, b]);
        }
    }
    for step in [0, 1, 8, -1] {
        compare(&MIXED, [20, step], [&words, &words]);
        compare(&MIXED, [20, step], [&|lane| lane / 8, &|_| 5]);
        compare(&MIXED[..10], [20, step], [&words, &|lane| 31 - lane]);
    }
}

/// A scaled access is one at the product, in the interpreter, too.
#[test]
fn scaled_offsets_are_products() {
    let outcome = |lines: &[&str], offset: &dyn Fn(u32) -> u32| {
        let program = program_by(&Options::new(Arch::Cdna5), lines, 32);
        let mut wave = start(32, 0xc0);
        wave.set_lane_vec(0, 1, LaneVec(std::array::from_fn(|lane| offset(lane as u32))));
        let mut data: Vec<u32> = (0..BYTES as u32 / 4).map(|n| n.wrapping_mul(0x9e37_79b9)).collect();
        let mut memory = Memory::empty();
        // SAFETY: `data` outlives `memory`.
        unsafe { memory.map_host(BASE, data.as_mut_ptr().cast(), BYTES as u64, true) }.expect("room");
        let ended = run_in(&memory, &mut [], &program, &mut wave, 2000, None).0;
        drop(memory);
        (format!("{ended:?}"), registers(&wave, 24).split_off(4), data)
    };
    for (size, stored, loaded) in [
        ("b8", "v8", "v12"),
        ("b16", "v8", "v12"),
        ("b32", "v8", "v12"),
        ("b64", "v[8:9]", "v[12:13]"),
        ("b96", "v[8:10]", "v[12:14]"),
        ("b128", "v[8:11]", "v[12:15]"),
    ] {
        let bytes: u32 = size[1..].parse::<u32>().expect("bits") / 8;
        let load = if bytes < 4 { format!("u{}", 8 * bytes) } else { size.to_string() };
        let program = |scaled: bool| {
            let (v, suffix) = if scaled { (1, " scale_offset") } else { (2, "") };
            [
                "s_mov_b32 s2, 0x100000".to_string(),
                "s_mov_b32 s3, 0".to_string(),
                format!("v_mul_u32_u24 v2, {bytes}, v1"),
                "v_mov_b32 v4, v2".to_string(),
                format!("global_load_{load} {}, v{v}, s[2:3] offset:16{suffix}", loaded),
                format!("global_store_{size} v{v}, {stored}, s[2:3] offset:512{suffix}"),
                "v_mov_b32 v2, 0".to_string(),
                "s_endpgm".to_string(),
            ]
        };
        for offset in
            [&|lane| lane, &|lane| 3 * lane % 32, &|_| 7, &|lane| 128 * (lane & 1), &|lane| 40 * lane]
                as [&dyn Fn(u32) -> u32; 5]
        {
            let [scaled, plain] = [true, false].map(|scaled| {
                let lines = program(scaled);
                outcome(&lines.each_ref().map(String::as_str), offset)
            });
            assert_eq!(scaled, plain, "{size}");
        }
    }
}
