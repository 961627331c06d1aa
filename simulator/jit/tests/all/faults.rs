//! Accesses at and beyond the end of memory: faults are the interpreter's, and everything before them has
//! been executed.

use super::families::handler_lines;
use super::program;
use super::random::{BYTES, compare_runs};
use wavesim_jit::Jit;
use wavesim_machine::exec::machine_ops::Event;

/// One lane is outside of memory and earlier ones are inside: the interpreter's fault (none for LDS), after
/// everything before it has been executed.
#[test]
fn vector_memory_faults() {
    let accesses = [
        "global_load_b32 v1, v0, s[4:5]",
        "global_load_b128 v[4:7], v0, s[4:5]",
        "global_store_b32 v0, v1, s[4:5]",
        "global_load_b64 v[4:5], v[251:252], off",
        "global_store_b128 v[251:252], v[4:7], off",
        "global_load_u8 v1, v0, s[4:5]",
        "global_store_b16 v0, v1, s[4:5]",
        "ds_load_b32 v1, v0",
        "ds_load_u16 v1, v0",
        "ds_store_b8 v0, v1",
        "ds_store_b64 v0, v[4:5]",
    ];
    for (access, size) in accesses.into_iter().flat_map(|access| [32, 64].map(|size| (access, size))) {
        let lines = [
            "s_movk_i32 s6, 0x3",
            "v_mbcnt_lo_u32_b32 v0, -1, 0",
            // From lane 21 on, further in each iteration of the loop.
            "v_mul_u32_u24 v0, 16, v0",
            "v_cmp_lt_u32 vcc_lo, 0x150, v0",
            "v_mov_b32 v2, 0x4000000",
            "v_cndmask_b32 v2, 0, v2, vcc_lo",
            "v_mul_lo_u32 v2, v2, s7",
            "v_add_nc_u32 v0, v0, v2",
            "v_add_co_u32 v251, vcc_lo, s4, v0",
            "v_mov_b32 v252, s5",
            "v_add_co_ci_u32 v252, vcc_lo, 0, v252, vcc_lo",
            "v_add_nc_u32 v9, v9, v0",
            access,
            "v_add_nc_u32 v10, v9, v1",
            "s_add_i32 s7, s7, 1",
            "s_add_i32 s6, s6, -1",
            "s_cmp_lg_u32 s6, 0",
            "s_cbranch_scc1 @1",
            "s_endpgm",
        ];
        let program = program(&lines, size);
        let code = Jit::with_threshold(&program, 0).expect("a supported host");
        let ended = compare_runs(&program, &code, (size, 0xf0, u64::MAX), 9, &lines);
        // Beyond LDS, loads give 0 and stores do nothing (RDNA 3 ISA, *Data Share Indexed and Atomic Access*).
        if access.starts_with("ds_") {
            assert!(matches!(ended, Err(Event::EndPgm)), "{access}: {ended:?}");
        } else {
            assert!(
                matches!(&ended, Err(Event::Fault(cause)) if cause.lane.is_some()),
                "{access}: {ended:?}"
            );
        }
        // With these lanes disabled, there is no fault.
        let ended = compare_runs(&program, &code, (size, 0xf0, 0x1f_ffff), 9, &lines);
        assert!(matches!(ended, Err(Event::EndPgm)), "{access}: {ended:?}");
    }
}

/// Subword accesses and multiple stores are compiled, and fault exactly at the end of memory.
#[test]
fn accesses_at_the_end_of_memory() {
    for (access, bytes, size) in [
        ("global_load_u8 v1, v0, s[4:5]", 1, 32),
        ("global_load_i8 v1, v[251:252], off", 1, 32),
        ("global_load_d16_hi_b16 v1, v0, s[4:5]", 2, 64),
        ("global_store_b8 v0, v1, s[4:5]", 1, 64),
        ("global_store_d16_hi_b16 v[251:252], v1, off", 2, 32),
        ("ds_load_u8 v1, v0", 1, 32),
        ("ds_load_i16 v1, v0", 2, 32),
        ("ds_store_b8 v0, v1", 1, 32),
        ("ds_store_b16 v0, v1", 2, 64),
        ("ds_store_2addr_b32 v0, v1, v2 offset1:1", 8, 32),
        ("ds_store_2addr_b64 v0, v[4:5], v[2:3] offset0:1", 16, 64),
    ] {
        let mut ends = [0; 2];
        for (last, step) in (2106..2122).flat_map(|last| [0, 1, 2, 3, 64].map(|step| (last, step))) {
            // The last lane is at `last`.
            let step = step.min(last / size as usize);
            let from = format!("v_add_nc_u32 v0, {:#x}, v0", last - step * (size as usize - 1));
            let by = format!("v_mul_u32_u24 v0, {step}, v0");
            let lines = [
                "v_mbcnt_lo_u32_b32 v0, -1, 0",
                if size == 64 { "v_mbcnt_hi_u32_b32 v0, -1, v0" } else { "v_mov_b32 v0, v0" },
                &by,
                &from,
                "v_add_co_u32 v251, vcc_lo, s4, v0",
                "v_mov_b32 v252, s5",
                "v_add_co_ci_u32 v252, vcc_lo, 0, v252, vcc_lo",
                access,
                "v_add_nc_u32 v3, v1, v0",
                "s_endpgm",
            ];
            let program = program(&lines, size);
            assert_eq!(handler_lines(&program, &lines), ["s_endpgm"]);
            let code = Jit::with_threshold(&program, 0).expect("a supported host");
            let ended = compare_runs(&program, &code, (size, 0xf0, u64::MAX), 9, &lines);
            let fault = matches!(ended, Err(Event::Fault(_)));
            assert_eq!(fault, access.starts_with("global") && last + bytes > BYTES + 64, "{access} {last}");
            ends[fault as usize] += 1;
            assert_eq!(code.stats().failed, 0);
        }
    }
}

/// Scalar loads leave memory in some iteration, while a run is pending: the interpreter's fault, after
/// everything before it has been executed.
#[test]
fn scalar_memory_faults() {
    let loads = [
        "s_load_b32 s8, s[4:5], s7",
        "s_load_b64 s[4:5], s[4:5], s7",
        "s_load_b128 s[8:11], s[4:5], s7",
        "s_load_b256 s[0:7], s[4:5], s7",
        "s_load_b512 s[8:23], s[4:5], s7",
    ];
    for (load, size) in loads.into_iter().flat_map(|load| [32, 64].map(|size| (load, size))) {
        let mut ends = [0; 2];
        // Around the end of memory.
        for last in (2000..2200).step_by(4) {
            let last = format!("s_mov_b32 s7, {last:#x}");
            let lines = [
                "s_movk_i32 s30, 0x3",
                "s_add_i32 s31, s31, s30",
                "v_add_nc_u32 v9, s31, v9",
                "v_cmp_gt_u32 vcc_lo, v9, v3",
                load,
                "v_xor_b32 v10, s8, v9",
                "s_add_i32 s31, s31, s8",
                "s_mov_b32 s7, 64",
                "s_add_i32 s30, s30, -1",
                "s_cmp_gt_i32 s30, 1",
                "s_cbranch_scc1 @1",
                &last,
                "s_cmp_eq_u32 s30, 1",
                "s_cbranch_scc1 @1",
                "s_endpgm",
            ];
            let program = program(&lines, size);
            assert_eq!(handler_lines(&program, &lines), ["s_endpgm"]);
            let code = Jit::with_threshold(&program, 0).expect("a supported host");
            let ended = compare_runs(&program, &code, (size, 0xf0, u64::MAX), 9, &lines);
            assert!(matches!(ended, Err(Event::EndPgm | Event::Fault(_))), "{load}: {ended:?}");
            assert_eq!(code.stats().failed, 0);
            ends[matches!(ended, Err(Event::Fault(_))) as usize] += 1;
        }
        // Loads that overwrite their base are outside in the second iteration.
        let keeps = load.contains("s8,") || load.contains("s[8:");
        assert!((ends[0] > 0 || !keeps) && ends[1] > 0, "{load}: {ends:?}");
    }
}

/// A single lane is outside of memory.
#[test]
fn every_lane_is_checked() {
    for (size, lane) in (0..32).map(|lane| (32, lane)).chain((0..64).map(|lane| (64, lane))) {
        for access in ["global_load_b32 v1, v0, s[4:5]", "global_store_b32 v0, v1, s[4:5]"] {
            let id = format!("v_cmp_eq_u32 vcc_lo, {lane}, v0");
            let count = if size == 64 { "v_mbcnt_hi_u32_b32 v0, -1, v0" } else { "v_mov_b32 v0, v0" };
            let lines = [
                "v_mbcnt_lo_u32_b32 v0, -1, 0",
                count,
                id.as_str(),
                "v_lshlrev_b32 v0, 2, v0",
                "v_mov_b32 v2, 0x4000000",
                "v_cndmask_b32 v2, 0, v2, vcc_lo",
                "v_add_nc_u32 v0, v0, v2",
                access,
                "s_endpgm",
            ];
            let program = program(&lines, size);
            let code = Jit::with_threshold(&program, 0).expect("a supported host");
            let ended = compare_runs(&program, &code, (size, 0xf0, u64::MAX), 9, &lines);
            assert!(
                matches!(&ended, Err(Event::Fault(cause)) if cause.lane == Some(lane)),
                "{access} {lane}: {ended:?}"
            );
        }
    }
}
