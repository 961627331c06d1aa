//! Atomic read-modify-writes, whose lanes are resolved together: addresses that lanes share, in any order, outside of
//! memory and misaligned, with some lanes and with all.

use super::{compare_in_turns, compare_in_turns_of, program, random};
use wavesim_isa::arch::Arch;
use wavesim_jit::selections;

const BASE: u64 = 0x10_0000;
const BYTES: usize = 64 * 16 + 64;
const UPDATES: [&str; 10] = ["add", "sub", "and", "or", "xor", "swap", "min_u", "max_u", "min_i", "max_i"];

/// The name of an update, in the spelling of the instructions.
fn named(update: &str, bits: u32) -> String {
    match update {
        "add" | "sub" => format!("{update}_u{bits}"),
        "and" | "or" | "xor" | "swap" => format!("{update}_b{bits}"),
        other => format!("{other}{bits}"),
    }
}

/// Every update of global memory and of LDS, with and without a result, by the offsets in v1 and the 64-bit addresses in
/// v[1:2].
fn instructions(bits: u32) -> Vec<String> {
    let (data, result) = if bits == 64 { ("v[4:5]", "v[6:7]") } else { ("v4", "v6") };
    let of = |update: &&str| {
        let name = named(update, bits);
        let returning = match (*update, name.rsplit_once('_')) {
            ("swap", _) => format!("storexchg_rtn_b{bits}"),
            // `ds_min_rtn_u32`
            (_, Some((operation, ty))) => format!("{operation}_rtn_{ty}"),
            (_, None) => name.clone(),
        };
        let mut list = vec![
            format!("global_atomic_{name} v1, {data}, s[2:3]"),
            format!("global_atomic_{name} {result}, v1, {data}, s[2:3] offset:8 glc"),
            format!("ds_{returning} {result}, v1, {data} offset:16"),
        ];
        if *update != "swap" {
            list.push(format!("ds_{name} v1, {data}"));
        }
        list
    };
    UPDATES.iter().flat_map(of).collect()
}

/// Compares a program of all updates, with these bits of EXEC.
fn compare(bits: u32, size: u32, exec: &str, offsets: &dyn Fn(u32) -> u32) {
    let instructions = instructions(bits);
    let half = if size == 64 { [exec, "exec_hi"] } else { [exec, "vcc_hi"] };
    let second = format!("s_mov_b32 {}, {}", half[1], half[0]);
    let first = format!("s_mov_b32 exec_lo, {exec}");
    let mut lines = vec!["s_mov_b32 s2, 0x100000", "s_mov_b32 s3, 0", &first, &second];
    lines.extend(instructions.iter().map(String::as_str));
    lines.push("s_endpgm");
    let stats = compare_in_turns(BASE, BYTES, &lines, size, [offsets, &|lane| 7 * lane], 2000);
    assert_eq!(stats.paths.atomics as usize, instructions.len(), "{lines:#?}");
}

#[test]
fn lanes_that_share_cells_and_lanes_that_do_not() {
    for (bits, size) in [(32, 32), (32, 64), (64, 32), (64, 64)] {
        let bytes = bits / 8;
        for exec in ["-1", "0x80018001", "0x7fffffff", "1"] {
            compare(bits, size, exec, &|_| 40);
            compare(bits, size, exec, &|lane| bytes * lane);
            compare(bits, size, exec, &|lane| bytes * (size - 1 - lane));
            compare(bits, size, exec, &|lane| bytes * (lane % 5));
            let mut seed = 3;
            let cells: Vec<u32> = (0..size).map(|_| random(&mut seed) as u32 % 64).collect();
            compare(bits, size, exec, &|lane| bytes * cells[lane as usize]);
        }
    }
}

/// Faults, lanes before which others have had their effect, and LDS beyond its end, are those of the interpreter.
#[test]
fn lanes_outside_of_memory_and_misaligned() {
    for (bits, size) in [(32, 32), (32, 64), (64, 64)] {
        for bad in [BYTES as u32 - 4, BYTES as u32, 0x8000_0000, u32::MAX - 3, 2, 6, 9] {
            for lane in [0, 5, size - 1] {
                for exec in ["-1", "0x80000021"] {
                    compare(bits, size, exec, &|l| if l == lane { bad } else { bits / 8 * l });
                }
            }
        }
    }
}

/// Addresses of 64 bits, and CDNA 5's scaled offsets.
#[test]
fn other_forms_of_addresses() {
    let lines = [
        "v_add_nc_u32 v1, 0x100000, v1",
        "v_mov_b32 v2, 0",
        "global_atomic_add_u32 v[1:2], v4, off",
        "global_atomic_max_i64 v[6:7], v[1:2], v[8:9], off offset:8 glc",
        "s_endpgm",
    ];
    for size in [32, 64] {
        for first in [0, 1 << 31, BYTES as u32] {
            let stats = compare_in_turns(BASE, BYTES, &lines, size, [&|l| first + 8 * (l % 9), &|_| 0], 2000);
            assert_eq!(stats.paths.atomics, 2);
        }
    }
    let scaled = [
        "s_mov_b32 s2, 0x100000",
        "s_mov_b32 s3, 0",
        "global_atomic_add_u32 v1, v4, s[2:3] scale_offset",
        "global_atomic_xor_b64 v1, v[4:5], s[2:3] scale_offset",
        "s_endpgm",
    ];
    for first in [0, BYTES as u32 / 8, 1 << 30] {
        let offsets: [&dyn Fn(u32) -> u32; 2] = [&|l| first + l % 7, &|_| 0];
        let stats = compare_in_turns_of(Arch::Cdna5, BASE, BYTES, &scaled, 32, offsets, 2000);
        assert_eq!(stats.paths.atomics, 2);
    }
}

/// Atomics of floats, and comparisons, call their handlers.
#[test]
fn other_updates_call_handlers() {
    let lines =
        ["global_atomic_add_f32 v1, v4, s[2:3]", "global_atomic_cmpswap_b32 v1, v[4:5], s[2:3]", "s_endpgm"];
    let calls = selections(&program(&lines, 32)).iter().filter(|selection| selection.call.is_some()).count();
    assert!(calls >= 2);
}
