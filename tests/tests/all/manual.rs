//! Examples and layouts from the ISA manuals, for instructions that conformance vectors do not cover.

use std::collections::BTreeMap;
use wavesim::arch::Arch;
use wavesim::conform::run::semantics;
use wavesim::exec::interp;
use wavesim::exec::machine_ops::Event;
use wavesim::exec::program::Program;
use wavesim::exec::reference;
use wavesim::fault::FaultKind;
use wavesim::inst::Inst;
use wavesim::state::Wave;
use wavesim_tests::{inst, with_context};

const BASE: u64 = 0x10_0000;

/// Runs one instruction on `bytes` of global memory at `BASE`, and LDS.
fn step(arch: Arch, inst: &Inst, wave: &mut Wave, bytes: &mut [u8], lds: &mut [u8]) {
    with_context(Some((BASE, bytes)), lds, (&mut [], 0), |cx| wavesim::exec::step(arch, inst, wave, cx))
        .unwrap()
        .unwrap();
}

fn set_address(wave: &mut Wave, lane: u32, reg: u32, address: u64) {
    wave.set_vgpr(lane, reg, address as u32);
    wave.set_vgpr(lane, reg + 1, (address >> 32) as u32);
}

/// Returns the results of DS_SWIZZLE_B32 for lanes 0 to 31 with the values 1 to 32.
fn swizzled(offset: u32) -> Vec<u32> {
    let fields = [("VDST", 1), ("ADDR", 0), ("OFFSET0", offset & 0xff), ("OFFSET1", offset >> 8)];
    let swizzle = inst(Arch::Rdna3, "DS_SWIZZLE_B32", "ENC_DS", &fields).unwrap();
    let mut wave = Wave::new(32);
    for lane in 0..32 {
        wave.set_vgpr(lane, 0, lane + 1);
    }
    step(Arch::Rdna3, &swizzle, &mut wave, &mut [], &mut []);
    (0..32).map(|lane| wave.vgpr(lane, 1)).collect()
}

fn hex(list: &str) -> Vec<u32> {
    list.split(',').map(|n| u32::from_str_radix(n, 16).unwrap()).collect()
}

#[test]
fn swizzle_fft_and_rotate() {
    let fft0 = "1,11,9,19,5,15,d,1d,3,13,b,1b,7,17,f,1f,2,12,a,1a,6,16,e,1e,4,14,c,1c,8,18,10,20";
    let fft10 = "1,9,5,d,3,b,7,f,2,a,6,e,4,c,8,10,11,19,15,1d,13,1b,17,1f,12,1a,16,1e,14,1c,18,20";
    let left = "2,3,4,5,6,7,8,9,a,b,c,d,e,f,10,11,12,13,14,15,16,17,18,19,1a,1b,1c,1d,1e,1f,20,1";
    let right = "20,1,2,3,4,5,6,7,8,9,a,b,c,d,e,f,10,11,12,13,14,15,16,17,18,19,1a,1b,1c,1d,1e,1f";
    let left_masked = "1,4,3,6,5,8,7,a,9,c,b,e,d,10,f,12,11,14,13,16,15,18,17,1a,19,1c,1b,1e,1d,20,1f,2";
    let right_masked = "1f,2,1,4,3,6,5,8,7,a,9,c,b,e,d,10,f,12,11,14,13,16,15,18,17,1a,19,1c,1b,1e,1d,20";
    assert_eq!(swizzled(0xe000), hex(fft0));
    assert_eq!(swizzled(0xe010), hex(fft10));
    assert_eq!(swizzled(0xe01f), (1..=32).collect::<Vec<_>>());
    assert_eq!(swizzled(0xc000 | 1 << 5), hex(left));
    assert_eq!(swizzled(0xc000 | 1 << 10 | 1 << 5), hex(right));
    assert_eq!(swizzled(0xc000 | 1 << 5 | 1), hex(left_masked));
    assert_eq!(swizzled(0xc000 | 1 << 10 | 1 << 5 | 1), hex(right_masked));
}

#[test]
fn swizzle_quads_and_masks() {
    // Reversal within quads; reversal of all 32 lanes; broadcast of lane 5.
    assert_eq!(swizzled(0x801b)[..8], [4, 3, 2, 1, 8, 7, 6, 5]);
    assert_eq!(swizzled(0x1f << 10 | 0x1f), (1..=32).rev().collect::<Vec<_>>());
    assert_eq!(swizzled(5 << 5), [6; 32]);
}

/// A transposing load of a column-major matrix equals a plain load of the row-major one (*WMMA Load-Transpose
/// Instructions*).
#[test]
fn transposing_loads_equal_plain_loads_of_the_transposed_matrix() {
    for (transposing, plain32, plain64, element) in [
        ("GLOBAL_LOAD_TR_B128", "GLOBAL_LOAD_B128", "GLOBAL_LOAD_B64", 2usize),
        ("GLOBAL_LOAD_TR_B64", "GLOBAL_LOAD_B64", "GLOBAL_LOAD_B32", 1),
    ] {
        // Element (m, k), in column-major and row-major order.
        let value = |m: usize, k: usize| (m * 16 + k) as u16 ^ 0x5a;
        let (mut columns, mut rows) = (vec![0u8; 256 * element], vec![0u8; 256 * element]);
        for m in 0..16 {
            for k in 0..16 {
                let bytes = &value(m, k).to_le_bytes()[..element];
                columns[(k * 16 + m) * element..][..element].copy_from_slice(bytes);
                rows[(m * 16 + k) * element..][..element].copy_from_slice(bytes);
            }
        }
        for size in [32u32, 64] {
            let fields = [("VDST", 8), ("VADDR", 0), ("SADDR", 124)];
            let load = |name: &str| inst(Arch::Rdna4, name, "ENC_VGLOBAL", &fields).unwrap();
            let (mut by_columns, mut by_rows) = (Wave::new(size), Wave::new(size));
            for lane in 0..size {
                // Each of the first 32 lanes loads 8 elements along m.
                let at = ((lane % 16) * 16 + lane % 32 / 16 * 8) as usize * element;
                set_address(&mut by_columns, lane, 0, BASE + at as u64);
                // Row m, starting at k: 8 elements in wave32, 4 in wave64 (bit 4 of the lane is the highest
                // bit of k).
                let (m, mut k) = (lane % 16, lane % 32 / 16 * 8);
                if size == 64 {
                    k += lane / 32 * 4;
                }
                set_address(&mut by_rows, lane, 0, BASE + (m * 16 + k) as u64 * element as u64);
            }
            step(Arch::Rdna4, &load(transposing), &mut by_columns, &mut columns.clone(), &mut []);
            let plain = if size == 32 { plain32 } else { plain64 };
            step(Arch::Rdna4, &load(plain), &mut by_rows, &mut rows.clone(), &mut []);
            for lane in 0..size {
                for reg in 8..12 {
                    let (t, p) = (by_columns.vgpr(lane, reg), by_rows.vgpr(lane, reg));
                    assert_eq!(t, p, "{transposing} wave{size} lane {lane} v{reg}");
                }
            }
        }
    }
}

/// Block accesses skip the registers whose bits in M0 are clear.
#[test]
fn block_loads_and_stores_skip_masked_registers() {
    let load =
        inst(Arch::Rdna4, "GLOBAL_LOAD_BLOCK", "ENC_VGLOBAL", &[("VDST", 8), ("VADDR", 0), ("SADDR", 124)]);
    let store =
        inst(Arch::Rdna4, "GLOBAL_STORE_BLOCK", "ENC_VGLOBAL", &[("VSRC", 8), ("VADDR", 0), ("SADDR", 124)]);
    let (load, store) = (load.unwrap(), store.unwrap());
    let mut bytes: Vec<u8> = (0..256u32).map(|n| n as u8).collect();
    let mut wave = Wave::new(32);
    wave.set_exec(0b10);
    set_address(&mut wave, 1, 0, BASE);
    wave.set_sgpr(125, 0x8000_0005);
    step(Arch::Rdna4, &load, &mut wave, &mut bytes, &mut []);
    let registers = [8, 9, 10, 39].map(|reg| wave.vgpr(1, reg));
    assert_eq!(registers, [0x0302_0100, 0, 0x0b0a_0908, 0x7f7e_7d7c]);
    assert_eq!(wave.vgpr(0, 8), 0, "inactive");
    wave.set_vgpr(1, 10, 0x1234_5678);
    wave.set_vgpr(1, 9, u32::MAX);
    step(Arch::Rdna4, &store, &mut wave, &mut bytes, &mut []);
    assert_eq!(bytes[4..12], [4, 5, 6, 7, 0x78, 0x56, 0x34, 0x12]);
}

/// RDNA3 manual, *Range Checking*: the end of the accessed bytes is compared with the number of records.
#[test]
fn buffer_range_checks_include_the_access_size() {
    // Returns the values of num_records, in bytes, for which an access at byte 16 has an effect.
    let touched = |name: &str, bytes: u32| -> Vec<u32> {
        let (encoding, fields) =
            ("ENC_MUBUF", [("VDATA", 8), ("SRSRC", 4), ("SOFFSET", 124), ("OFFSET", 16)]);
        let inst = inst(Arch::Rdna3, name, encoding, &fields).unwrap();
        (0..=24 + bytes)
            .filter(|records| {
                let mut wave = Wave::new(32);
                wave.set_exec(1);
                wave.set_sgpr(4, BASE as u32);
                wave.set_sgpr(6, *records);
                // Out-of-range rule: raw, in bytes. Without a format, the buffer would be unbound.
                wave.set_sgpr(7, 3 << 28 | 4 << 12);
                (8..10).for_each(|reg| wave.set_vgpr(0, reg, 0x0101_0101));
                let (mut memory, mut lds) = (vec![7; 64], vec![0; 64]);
                step(Arch::Rdna3, &inst, &mut wave, &mut memory, &mut lds);
                memory != vec![7; 64] || wave.vgpr(0, 8) == 7 || lds != vec![0; 64]
            })
            .collect()
    };
    for (name, bytes) in [
        ("BUFFER_LOAD_U8", 1),
        ("BUFFER_STORE_B16", 2),
        ("BUFFER_ATOMIC_ADD_U32", 4),
        ("BUFFER_ATOMIC_ADD_U64", 8),
    ] {
        assert_eq!(touched(name, bytes), (16 + bytes..=24 + bytes).collect::<Vec<_>>(), "{name}");
    }
}

/// Runs one instruction with v0, v1 … = 1000, 1001 … and s0, s1 … = 2000, 2001 … in a wave with `vgprs`
/// VGPRs. Returns the changed registers, after checking that handler and evaluator agree.
fn indexed(name: &str, m0: u32, vgprs: u32) -> Vec<(char, u32, u32)> {
    let arch = Arch::Rdna3;
    let (encoding, fields) = match name.starts_with('V') {
        true => ("ENC_VOP1", [("VDST", 5), ("SRC0", 256 + 7)]),
        false => ("ENC_SOP1", [("SDST", 4), ("SSRC0", 8)]),
    };
    let inst = inst(arch, name, encoding, &fields).unwrap();
    let mut start = Wave::new(32);
    start.set_vgpr_count(vgprs);
    start.set_exec(1);
    (0..256).for_each(|reg| start.set_vgpr(0, reg, 1000 + reg));
    (0..124).for_each(|reg| start.set_sgpr(reg, 2000 + reg));
    start.set_sgpr(125, m0);
    let changes = |wave: &Wave| {
        let vgprs = (0..256).map(|reg| ('v', reg, wave.vgpr(0, reg), start.vgpr(0, reg)));
        let sgprs = (0..128).map(|reg| ('s', reg, wave.sgpr(reg), start.sgpr(reg)));
        vgprs.chain(sgprs).filter(|c| c.2 != c.3).map(|c| (c.0, c.1, c.2)).collect::<Vec<_>>()
    };
    let (mut compiled, mut evaluated) = (start.clone(), start.clone());
    step(arch, &inst, &mut compiled, &mut [], &mut []);
    let meanings = BTreeMap::new();
    let (sem, _) = semantics(arch, &inst, &meanings).unwrap();
    with_context(None, &mut [], (&mut [], 0), |cx| {
        reference::step(arch, &inst, sem, None, &mut evaluated, cx).unwrap();
    });
    assert_eq!(changes(&compiled), changes(&evaluated), "{name} with M0 = {m0:#x}");
    changes(&compiled)
}

/// Register file, number and new value of a changed register.
type Expected = (char, u32, u32);

/// RDNA3 manual, *VGPR Out of Range Behavior*: an out-of-range source reads v0, and an instruction with an
/// out-of-range destination does nothing. An index above 255 is always out of range.
#[test]
fn indexed_vgprs_are_range_checked() {
    let cases: &[(&str, u32, u32, &[Expected])] = &[
        ("V_MOVRELS_B32", 10, 256, &[('v', 5, 1017)]),
        ("V_MOVRELS_B32", 248, 256, &[('v', 5, 1255)]),
        ("V_MOVRELS_B32", 249, 256, &[('v', 5, 1000)]),
        ("V_MOVRELS_B32", 256, 256, &[('v', 5, 1000)]),
        ("V_MOVRELS_B32", 500, 256, &[('v', 5, 1000)]),
        ("V_MOVRELS_B32", u32::MAX, 256, &[('v', 5, 1000)]),
        ("V_MOVRELS_B32", 8, 16, &[('v', 5, 1015)]),
        ("V_MOVRELS_B32", 9, 16, &[('v', 5, 1000)]),
        ("V_MOVRELD_B32", 10, 256, &[('v', 15, 1007)]),
        ("V_MOVRELD_B32", 10, 16, &[('v', 15, 1007)]),
        ("V_MOVRELD_B32", 11, 16, &[]),
        ("V_MOVRELD_B32", 251, 256, &[]),
        ("V_MOVRELD_B32", 300, 256, &[]),
        ("V_MOVRELSD_B32", 10, 256, &[('v', 15, 1017)]),
        ("V_MOVRELSD_B32", 9, 16, &[('v', 14, 1000)]),
        ("V_MOVRELSD_2_B32", 20 << 16 | 10, 256, &[('v', 25, 1017)]),
        ("V_MOVRELSD_2_B32", 20 << 16 | 10, 25, &[]),
        ("V_MOVRELSD_2_B32", 10 << 16 | 20, 26, &[('v', 15, 1000)]),
        ("V_SWAPREL_B32", 20 << 16 | 10, 256, &[('v', 17, 1025), ('v', 25, 1017)]),
        ("V_SWAPREL_B32", 20 << 16 | 10, 25, &[]),
        ("V_SWAPREL_B32", 10 << 16 | 20, 25, &[]),
        ("V_SWAPREL_B32", 260 << 16 | 10, 256, &[]),
    ];
    for (name, m0, vgprs, expected) in cases {
        assert_eq!(&indexed(name, *m0, *vgprs), expected, "{name} with M0 = {m0:#x} and {vgprs} VGPRs");
    }
}

/// RDNA3 manual, *SGPR Out of Range Behavior*: the last valid register is VCC_HI (VCC_LO for a pair). An
/// out-of-range source reads s0, and out-of-range destinations are not written. The index of a pair is
/// rounded down to even.
#[test]
fn indexed_sgprs_are_range_checked() {
    let cases: &[(&str, u32, &[Expected])] = &[
        ("S_MOVRELS_B32", 10, &[('s', 4, 2018)]),
        ("S_MOVRELS_B32", 99, &[('s', 4, 2107)]),
        ("S_MOVRELS_B32", 100, &[('s', 4, 2000)]),
        ("S_MOVRELS_B32", 117, &[('s', 4, 2000)]),
        ("S_MOVRELS_B32", u32::MAX, &[('s', 4, 2000)]),
        ("S_MOVRELS_B64", 11, &[('s', 4, 2018), ('s', 5, 2019)]),
        ("S_MOVRELS_B64", 99, &[('s', 4, 2106), ('s', 5, 2107)]),
        ("S_MOVRELS_B64", 100, &[('s', 4, 2000), ('s', 5, 2001)]),
        ("S_MOVRELD_B32", 103, &[('s', 107, 2008)]),
        ("S_MOVRELD_B32", 104, &[]),
        ("S_MOVRELD_B32", 122, &[]),
        ("S_MOVRELD_B64", 102, &[('s', 106, 2008), ('s', 107, 2009)]),
        ("S_MOVRELD_B64", 104, &[]),
        ("S_MOVRELSD_2_B32", 20 << 16 | 10, &[('s', 24, 2018)]),
        ("S_MOVRELSD_2_B32", 20 << 16 | 100, &[('s', 24, 2000)]),
        ("S_MOVRELSD_2_B32", 104 << 16 | 10, &[]),
    ];
    for (name, m0, expected) in cases {
        assert_eq!(&indexed(name, *m0, 256), expected, "{name} with M0 = {m0:#x}");
    }
}

/// Undecodable words fault only when they are executed.
#[test]
fn undecodable_words_fault_when_executed() {
    let (jump, nop, hole, end) = (0xbfa0_0001, 0xbf80_0000, 0xffff_ffff, 0xbfb0_0000);
    let run = |words: &[u32]| {
        let program = Program::from_words(Arch::Rdna3, words).expect("a small program");
        let mut wave = Wave::new(32);
        let event = with_context(None, &mut [], (&mut [], 0), |cx| {
            interp::run(&program, &mut wave, cx, 100, &mut 0).unwrap_err()
        });
        (event, wave.pc)
    };
    assert_eq!(run(&[jump, hole, end]).0, Event::EndPgm, "jumped over");
    let (event, pc) = run(&[nop, hole, end]);
    assert!(
        matches!(&event, Event::Fault(cause) if cause.kind == FaultKind::IllegalInstruction),
        "{event:?}"
    );
    assert_eq!(pc, 4);
}
