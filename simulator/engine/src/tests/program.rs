//! Tests of `wavesim_machine::exec::program` with whole instructions.

use crate::interp;
use wavesim_isa::arch::Arch;
use wavesim_machine::exec::Context;
use wavesim_machine::exec::machine_ops::Event;
use wavesim_machine::exec::op::Op;
use wavesim_machine::exec::program::Program;
use wavesim_machine::fault::FaultKind;
use wavesim_machine::memory::Memory;
use wavesim_machine::state::{LaneVec, Wave, Workgroup};

/// Runs a program and returns the wave's final state.
fn run(words: &[u32], size: u32) -> Wave {
    let program = Program::from_words(Arch::Rdna3, words).expect("a program").for_wave_size(size);
    let (memory, mut workgroup) = (Memory::empty(), Workgroup::new(1));
    let mut context = Context::new(&memory, &mut [], &mut workgroup);
    let mut wave = Wave::new(size);
    assert_eq!(interp::run(&program, &mut wave, &mut context, u64::MAX, &mut 0), Err(Event::EndPgm));
    wave
}

/// Distinct numbers, none of which is an inline constant.
fn constants(count: u32) -> impl Iterator<Item = u32> {
    (0..count).map(|n| 1000 + n.wrapping_mul(0x9e37_79b1))
}

/// Checks that each constant of a program has its value, however many there are: as sources of vector
/// instructions with and without modifiers, of scalar ones, and of those that read one lane.
#[test]
fn every_constant_has_its_value() {
    const END: u32 = 0xbfb0_0000;
    for count in [60, 300, 9_000, 100_000] {
        let mut words = Vec::new();
        for value in constants(count) {
            words.extend([0x4a02_02ff, value]); // v_add_nc_u32 v1, value, v1
            words.extend([0x800a_0aff, value]); // s_add_u32 s10, value, s10
        }
        // As f32, and the magnitude of each: v_max_f32 v2, v2, |value|
        for value in constants(count) {
            words.extend([0xd510_0202, 0x0001_ff02, value]);
        }
        words.push(END);
        let sum = constants(count).fold(0, u32::wrapping_add);
        let magnitudes = constants(count).map(|v| f32::from_bits(v).abs()).filter(|v| !v.is_nan());
        let greatest = magnitudes.fold(0.0, f32::max).to_bits();
        for size in [32, 64] {
            let wave = run(&words, size);
            for lane in [0, size - 1] {
                let found = [wave.vgpr(lane, 1), wave.vgpr(lane, 2), wave.sgpr(10)];
                assert_eq!(found, [sum, greatest, sum], "{count} constants, wave{size}");
            }
        }
    }
}

/// Checks that executing an instruction with an operand beyond the last VGPR faults; a 32-bit address may be
/// in the last one.
#[test]
fn operands_end_with_the_last_vgpr() {
    let add = |dst: u32, src: u32| [0xd727_0000 | dst, 0x0001_0000 | (256 + src)];
    let run = |words: [u32; 2]| {
        let program =
            Program::from_words(Arch::Rdna3, &[words[0], words[1], 0xbfb0_0000]).expect("a program");
        let (memory, mut workgroup) = (Memory::empty(), Workgroup::new(1));
        let mut context = Context::new(&memory, &mut [], &mut workgroup);
        let mut wave = Wave::new(32);
        interp::run(&program, &mut wave, &mut context, u64::MAX, &mut 0).expect_err("an end")
    };
    // v_add_f64 v[d:d+1], v[s:s+1], 0
    let is_fault = |event: Event| match event {
        Event::Fault(cause) => cause.message.contains("v_add_f64 extends beyond v255"),
        _ => false,
    };
    assert_eq!(run(add(254, 254)), Event::EndPgm);
    assert!(is_fault(run(add(255, 2))));
    assert!(is_fault(run(add(2, 255))));
    let reaches_beyond = |words: [u32; 2]| {
        let load = Program::from_words(Arch::Rdna3, &[words[0], words[1], 0xbfb0_0000]).expect("a program");
        load.lowered().ops().iter().any(|op| op.code == Op::OUT_OF_RANGE)
    };
    // global_load_b32 v1, v255, s[4:5]; with v[255:256] for the address; with v[254:255]
    assert!(!reaches_beyond([0xdc52_0000, 0x0104_00ff]));
    assert!(reaches_beyond([0xdc52_0000, 0x017c_00ff]));
    assert!(!reaches_beyond([0xdc52_0000, 0x017c_00fe]));
    // buffer_load_b32 v1, v255, s[4:7], 0 offen; with idxen too
    assert!(!reaches_beyond([0xe050_0000, 0x8041_01ff]));
    assert!(reaches_beyond([0xe050_0000, 0x80c1_01ff]));
}

/// Checks that executing an instruction with an operand code that names nothing, or that its operand does not
/// accept, faults with all state unchanged.
#[test]
fn unlisted_operand_codes_fault() {
    // s_mov_b32 s0, <218>
    const RESERVED: &[u32] = &[0xbe80_00da];
    // buffer_load_b32 v1, off, <VGPR 0>, null: RSRC has nine bits.
    const VECTOR_DESCRIPTOR: &[u32] = &[0xc405_007c, 0x0002_0001, 0];
    // v_wmma_f32_16x16x16_f16 v[32:39], s[2:5], v[0:3], v[32:39]
    const SCALAR_MATRIX: &[u32] = &[0xcc40_4020, 0x1c82_0002];
    // v_permlane16_b32 v1, 0x1234, s1, s2
    const LITERAL: &[u32] = &[0xd65b_0001, 0x0008_02ff, 0x1234];
    // v_dual_mov_b32 v0, v1 :: v_dual_mov_b32 v1, <218>
    const SECOND_HALF: &[u32] = &[0xca10_0101, 0x0000_00da];
    // s_mov_b32 m0, <125>, which is no register of CDNA
    const NULL: &[u32] = &[0xbefc_007d];
    for (arch, words, name, code) in [
        (Arch::Rdna3, RESERVED, "s_mov_b32", 218),
        (Arch::Rdna4, VECTOR_DESCRIPTOR, "buffer_load_b32", 256),
        (Arch::Rdna4, SCALAR_MATRIX, "v_wmma_f32_16x16x16_f16", 2),
        (Arch::Rdna4, LITERAL, "v_permlane16_b32", 255),
        (Arch::Rdna3, SECOND_HALF, "v_dual_mov_b32", 218),
        (Arch::Cdna3, NULL, "s_mov_b32", 125),
    ] {
        let program = Program::from_words(arch, words).expect("a program");
        let (memory, mut workgroup) = (Memory::empty(), Workgroup::new(1));
        let mut context = Context::new(&memory, &mut [], &mut workgroup);
        let start = Wave::new(arch.wave_sizes()[0]);
        let mut wave = start.clone();
        let event = interp::run(&program, &mut wave, &mut context, u64::MAX, &mut 0);
        let message = format!("an operand of {name} has the code {code}, which is none that it accepts");
        assert_eq!(event, Err(Event::fault(FaultKind::IllegalInstruction, message)), "{words:x?}");
        assert_eq!((wave.pc, wave.sgprs, wave.vgpr(0, 0)), (start.pc, start.sgprs, start.vgpr(0, 0)));
    }
}

/// Checks that null reads as zero whatever its width, and not as the registers after it.
#[test]
fn null_is_zero_in_every_dword() {
    // s_mov_b32 m0, 5; s_mov_b64 s[2:3], null; s_endpgm
    let wave = run(&[0xbefd_0085, 0xbe82_017c, 0xbfb0_0000], 32);
    assert_eq!([wave.sgpr(125), wave.sgpr(2), wave.sgpr(3)], [5, 0, 0]);
    // s_mov_b32 m0, 5; s_mov_b64 null, -1; v_sub_co_u32 v0, null, 0, 1; v_add_co_ci_u32 v0, s[4:5], 0, 0, null; s_endpgm
    let words = [0xbefd_0085, 0xbefc_01c1, 0xd701_7c00, 0x0001_0280, 0xd520_0400, 0x01f1_0080, 0xbfb0_0000];
    for size in [32, 64] {
        let wave = run(&words, size);
        assert_eq!([wave.sgpr(125), wave.vgpr(size / 2, 0)], [5, 0], "wave{size}");
    }
}

/// Checks that a build without portable handlers computes the same: the evaluator runs all instructions in
/// any float mode.
#[test]
fn a_table_without_handlers_evaluates() {
    let lines = [
        "s_movk_i32 s4, 0",
        "v_mov_b32 v1, 0x3f800001",
        "v_mov_b32 v2, 0x33800000",
        // Round up, then toward zero.
        "s_round_mode 5",
        "v_add_f32 v3, v1, v2",
        "v_pk_add_f16 v4, v1, v2 neg_lo:[1,0]",
        "v_dual_mul_f32 v5, v1, v1 :: v_dual_add_f32 v6, v2, v2",
        "v_mov_b32_dpp v7, v3 quad_perm:[1,0,3,2] row_mask:0xf bank_mask:0xf",
        "ds_store_b32 v0, v3",
        "ds_load_b32 v8, v0",
        "s_round_mode 15",
        "v_mul_f32 v9, v1, v1",
        "v_cmp_lt_f32 vcc_lo, v9, v3",
        "s_add_u32 s4, s4, 1",
        "s_cmp_lt_u32 s4, 3",
        "s_cbranch_scc1 0",
        "s_endpgm",
    ];
    let options = wavesim_asm::Options::new(Arch::Rdna3);
    let inst = |line: &str| wavesim_asm::parse(line, &options, &wavesim_asm::NoSymbols).expect(line).inst;
    let mut insts = lines.map(|line| (inst(line), 0)).to_vec();
    // Back to the first change of the mode.
    let back: i32 = insts[3..16].iter().map(|(inst, _)| inst.size as i32 / 4).sum();
    insts[15].0 = inst(&format!("s_cbranch_scc1 {}", -back));
    let program = Program::new(Arch::Rdna3, insts).expect("a program").for_wave_size(32);
    let run = |evaluated: bool| {
        let (memory, mut workgroup, mut lds) = (Memory::empty(), Workgroup::new(1), [0; 256]);
        let mut context = Context::new(&memory, &mut lds, &mut workgroup);
        let (mut wave, mut executed) = (Wave::new(32), 0);
        wave.mode = 0xf0;
        wave.set_lane_vec(0, 0, LaneVec(std::array::from_fn(|l| 4 * l as u32)));
        let ended = match evaluated {
            true => interp::run_evaluated(&program, &mut wave, &mut context, 1000, &mut executed),
            false => interp::run(&program, &mut wave, &mut context, 1000, &mut executed),
        };
        let registers: Vec<LaneVec> = (0..10).map(|reg| *wave.lane_vec(0, reg)).collect();
        (ended, registers, wave.sgpr(4), wave.sgpr(106), wave.mode, executed, lds)
    };
    let expected = run(false);
    assert_eq!(expected.0, Err(Event::EndPgm));
    assert_eq!(expected.1[3].0[5], 0x3f80_0002, "rounded up");
    assert_eq!(run(true), expected);
}
