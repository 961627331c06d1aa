//! Scratch memory.

use super::families::{handler_lines, integer};
use super::{program_by, random, registers, run_with, start, twice};
use wavesim_asm::Options;
use wavesim_isa::arch::Arch;
use wavesim_jit::Jit;
use wavesim_machine::exec::machine_ops::Event;
use wavesim_machine::memory::Memory;
use wavesim_machine::state::LaneVec;

/// The size of scratch per lane in bytes.
const BYTES: u32 = 136;

/// Compares registers and scratch memory; the addresses of some lanes may be outside. Returns the number of
/// runs that ended by a fault.
fn compare_all(arch: Arch, sizes: &[u32], accesses: &[&str]) -> usize {
    let lines = twice(accesses);
    let (mut seed, mut faults) = (7, 0);
    for &size in sizes {
        let program = program_by(&Options::new(arch), &lines, size);
        assert_eq!(handler_lines(&program, &lines), ["s_endpgm"]);
        let code = Jit::with_threshold(&program, 0).expect("a supported host");
        for round in 0..60 {
            let mut plain = start(size, 0xc0);
            for (half, reg) in (0..plain.halves()).flat_map(|half| (0..32).map(move |reg| (half, reg))) {
                plain.set_lane_vec(half, reg, LaneVec(std::array::from_fn(|_| integer(&mut seed))));
            }
            // Addresses up to the end of scratch, sometimes beyond it in one lane. Compiled code leaves misaligned ones to
            // the interpreter.
            let align = if round % 3 == 1 { 1 } else { 4 };
            for half in 0..plain.halves() {
                let mut addresses: [u32; 32] =
                    std::array::from_fn(|_| random(&mut seed) as u32 % (BYTES - 40) / align * align);
                if round % 5 == 4 {
                    let outside = [BYTES - 32, BYTES, u32::MAX - 3, 1 << 31][random(&mut seed) as usize % 4];
                    addresses[random(&mut seed) as usize % 32] = outside;
                }
                plain.set_lane_vec(half, 1, LaneVec(addresses));
            }
            plain.sgprs[6] =
                if round % 11 == 10 { BYTES - 3 } else { random(&mut seed) as u32 % 24 / align * align };
            if round % 3 == 0 {
                plain.set_exec(random(&mut seed) | random(&mut seed) << 32);
            }
            let filled: Vec<u8> = (0..BYTES * size).map(|_| random(&mut seed) as u8).collect();
            let mut compiled = plain.clone();
            let (mut own, mut other) = (filled.clone(), filled);
            let memory = Memory::empty();
            let a = run_with(&memory, &mut [], (&mut own, BYTES), &program, &mut plain, 2000, None);
            let b =
                run_with(&memory, &mut [], (&mut other, BYTES), &program, &mut compiled, 2000, Some(&code));
            faults += matches!(a.0, Err(Event::Fault(_))) as usize;
            assert_eq!(a, b, "wave{size} {round} {lines:#?}");
            assert_eq!((plain.sgprs, plain.pc), (compiled.sgprs, compiled.pc));
            assert_eq!(registers(&plain, 64), registers(&compiled, 64), "wave{size} {round} {lines:#?}");
            assert!(own == other, "wave{size} {round} scratch {lines:#?}");
        }
        assert_eq!(code.stats().failed, 0);
        assert!(code.stats().operations as usize >= accesses.len());
    }
    faults
}

/// Uniform and per-lane addresses; stored values are loaded again in the same run.
#[test]
fn loads_and_stores_of_lanes() {
    let words = [
        "scratch_store_b32 off, v2, off offset:16",
        "scratch_load_b32 v3, off, off offset:16",
        "v_add_nc_u32 v4, v3, v2",
        "scratch_store_b32 off, v4, s6 offset:4",
        "scratch_load_b32 v5, v1, off offset:4",
        "v_xor_b32 v6, v5, v4",
        "scratch_store_b32 v1, v6, off",
        "scratch_load_b64 v[20:21], v1, off",
        "scratch_load_b32 v7, off, s6 offset:4",
    ];
    let faults = compare_all(Arch::Rdna3, &[32, 64], &words);
    assert!((10..100).contains(&faults), "{faults}");
    let wide = [
        "scratch_store_b64 v1, v[2:3], off",
        "scratch_load_b96 v[20:22], v1, off offset:4",
        "scratch_store_b128 v1, v[4:7], s6",
        "scratch_store_b96 off, v[8:10], off offset:80",
        "scratch_load_b128 v[24:27], off, s6 offset:64",
    ];
    assert!(compare_all(Arch::Rdna3, &[32, 64], &wide) > 0);
    assert!(compare_all(Arch::Rdna4, &[32, 64], &wide) > 0);
}

#[test]
fn parts_of_words_of_lanes() {
    let parts = [
        "scratch_store_b8 v1, v2, off offset:3",
        "scratch_load_u8 v20, v1, off offset:3",
        "scratch_load_i8 v21, off, s6 offset:7",
        "scratch_store_b16 off, v20, s6",
        "scratch_load_u16 v22, v1, off offset:2",
        "scratch_load_i16 v23, v1, off",
        "v_lshlrev_b32 v24, 3, v23",
        "scratch_store_b8 off, v24, off offset:1",
        "scratch_load_d16_u8 v25, v1, off",
        "scratch_load_d16_hi_b16 v26, v1, off",
        "scratch_store_d16_hi_b16 v1, v26, off",
    ];
    assert!(compare_all(Arch::Rdna3, &[32, 64], &parts) > 0);
    let cdna = [
        "scratch_store_byte v1, v2, off offset:3",
        "scratch_load_ubyte v20, v1, off offset:3",
        "scratch_store_dwordx2 off, v[20:21], s6",
        "scratch_load_dword v22, v1, off offset:4",
    ];
    assert!(compare_all(Arch::Cdna3, &[64], &cdna) > 0);
}

/// An address that is computed by a preceding instruction.
#[test]
fn addresses_that_are_computed() {
    let lines = [
        "v_mov_b32 v3, 4",
        "v_readfirstlane_b32 s20, v3",
        "v_and_b32 v3, 0x8c, v2",
        "scratch_store_b32 v3, v2, off",
        "v_and_b32 v3, 0x8c, v4",
        "scratch_load_b32 v3, v3, off",
        "v_and_b32 v3, 0x3c, v3",
        "scratch_load_b32 v5, v3, off",
        "scratch_store_b32 v3, v1, off",
    ];
    let faults = compare_all(Arch::Rdna3, &[32, 64], &lines);
    assert!((10..120).contains(&faults), "{faults}");
}
