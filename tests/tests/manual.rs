//! Examples and layouts that the ISA manuals give, for instructions that conformance vectors do not reach.

use wavesim::arch::Arch;
use wavesim::exec::interp;
use wavesim::exec::machine_ops::Event;
use wavesim::exec::program::Program;
use wavesim::fault::FaultKind;
use wavesim::inst::Inst;
use wavesim::machine::Wave;
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

/// DS_SWIZZLE_B32: what lanes 0 to 31, holding 1 to 32, receive.
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
    // 3 2 1 0 within each four lanes; reversal of all 32; lane 5 to all.
    assert_eq!(swizzled(0x801b)[..8], [4, 3, 2, 1, 8, 7, 6, 5]);
    assert_eq!(swizzled(0x1f << 10 | 0x1f), (1..=32).rev().collect::<Vec<_>>());
    assert_eq!(swizzled(5 << 5), [6; 32]);
}

/// Transposing a matrix stored by columns gives what a plain load gives for one stored by rows (*WMMA Load-Transpose Instructions*).
#[test]
fn transposing_loads_equal_plain_ones_of_the_transposed() {
    for (transposing, plain32, plain64, element) in [
        ("GLOBAL_LOAD_TR_B128", "GLOBAL_LOAD_B128", "GLOBAL_LOAD_B64", 2usize),
        ("GLOBAL_LOAD_TR_B64", "GLOBAL_LOAD_B64", "GLOBAL_LOAD_B32", 1),
    ] {
        // Element (m, k), by columns and by rows.
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
                // One lane of the first 32 loads 8 elements along m.
                let at = ((lane % 16) * 16 + lane % 32 / 16 * 8) as usize * element;
                set_address(&mut by_columns, lane, 0, BASE + at as u64);
                // Row m, from k on: 8 elements in wave32, 4 in wave64 (bit 4 of the lane is k's highest).
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

/// Clear bits of M0 leave holes in registers and memory.
#[test]
fn block_loads_and_stores_have_holes() {
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

/// Words that decode to nothing are a fault when they are reached, and only then.
#[test]
fn holes_in_a_program_fault_where_they_stand() {
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
    assert!(matches!(event, Event::Fault { kind: FaultKind::IllegalInstruction, .. }), "{event:?}");
    assert_eq!(pc, 4);
}
