//! Code of single instructions, correct and with planted faults.

use std::time::Duration;
use wavesim_asm::{NoSymbols, Options, parse};
use wavesim_isa::arch::Arch;
use wavesim_machine::exec::program::Program;
use wavesim_prove::{Setup, Solver};
use wavesim_verify::{Answer, VerifyError, function, verify, verify_function};
use wavesim_x64::Code;
use wavesim_x64::inst::{Cc, Inst, Int2};

fn solver() -> Option<Solver> {
    let found = Solver::find(Duration::from_secs(20)).ok();
    if found.is_none() {
        println!("skipped: no SMT solver");
    }
    found.filter(|_| wavesim_x64::Host::detect().is_ok())
}

fn program(arch: Arch, wave_size: u32, text: &str) -> Program {
    let options = Options::new(arch).wave(wave_size);
    let list = text.split(';').map(|line| (parse(line.trim(), &options, &NoSymbols).expect(line).inst, 0));
    Program::new(arch, list.collect()).expect(text).for_wave_size(wave_size)
}

/// Instructions for which code is generated in different ways.
const INSTRUCTIONS: [&str; 28] = [
    "v_xor_b32 v0, v1, v2",
    "v_add_nc_u32 v0, s1, v2",
    "v_sub_nc_u32 v0, 5, v2",
    "v_mul_lo_u32 v0, v1, v2",
    "v_mul_u32_u24 v0, v1, v2",
    "v_lshlrev_b32 v0, v1, v2",
    "v_lshrrev_b32 v0, 7, v2",
    "v_ashrrev_i32 v0, v1, v2",
    "v_lshlrev_b64 v[0:1], v2, v[4:5]",
    "v_bfe_u32 v0, v1, v2, v3",
    "v_bfe_i32 v0, v1, 3, 9",
    "v_bfi_b32 v0, v1, v2, v3",
    "v_alignbit_b32 v0, v1, v2, v3",
    "v_bfrev_b32 v0, v1",
    "v_min_i32 v0, v1, v2",
    "v_med3_u32 v0, v1, v2, v3",
    "v_add_co_u32 v0, vcc_lo, v1, v2",
    "v_add_co_ci_u32 v0, vcc_lo, v1, v2, vcc_lo",
    "v_cmp_lt_u32 vcc_lo, v1, v2",
    "v_cndmask_b32 v0, v1, v2, vcc_lo",
    "v_pk_add_u16 v0, v1, v2",
    "v_lshl_add_u32 v0, v1, 2, v3",
    "s_add_u32 s0, s1, s2",
    "s_bfe_u32 s0, s1, s2",
    "s_and_saveexec_b32 s0, s1",
    "s_mul_hi_u32 s0, s1, s2",
    "s_cselect_b32 s0, s1, s2",
    "s_lshl_b64 s[0:1], s[2:3], s4",
];

#[test]
fn compiled_code_computes_what_the_pseudocode_says() {
    let Some(solver) = solver() else { return };
    let setup = Setup::new(Arch::Rdna3, 32);
    let mut refused = Vec::new();
    for text in INSTRUCTIONS {
        match verify(&setup, &program(Arch::Rdna3, 32, text), &solver) {
            Ok(Answer::Equal) => {}
            Ok(other) => panic!("{text}: {other:?}"),
            Err(why @ VerifyError::Unsupported(_)) => refused.push(format!("{text}: {why}")),
            Err(why) => panic!("{text}: {why}"),
        }
    }
    println!("{refused:#?}");
    assert!(refused.len() <= 2, "{refused:#?}");
}

/// Several instructions, whose code shares facts about values.
#[test]
fn facts_of_earlier_instructions_are_part_of_the_proof() {
    let Some(solver) = solver() else { return };
    let setup = Setup::new(Arch::Rdna3, 32);
    for text in [
        "v_and_b32 v0, 0xff, v1; v_lshlrev_b32 v0, 8, v0; v_or_b32 v0, v0, v2",
        "v_cmp_gt_i32 vcc_lo, v1, v2; v_cndmask_b32 v0, v2, v1, vcc_lo",
        "v_add_co_u32 v0, vcc_lo, v2, v4; v_add_co_ci_u32 v1, vcc_lo, v3, v5, vcc_lo",
    ] {
        assert_eq!(verify(&setup, &program(Arch::Rdna3, 32, text), &solver), Ok(Answer::Equal), "{text}");
    }
}

/// Sequence versions, which compute registers of all lanes at once, and the general code where a test fails.
#[test]
fn sequence_versions() {
    let Some(solver) = solver() else { return };
    let setup = Setup::new(Arch::Rdna3, 32);
    for text in [
        "v_and_b32 v1, 0x3ff, v0; v_add_nc_u32 v2, s0, v1; v_cmp_gt_u32 vcc_lo, s1, v2",
        "v_add_co_u32 v4, vcc_lo, s0, v0; v_add_co_ci_u32_e64 v5, null, s1, 0, vcc_lo; v_lshrrev_b32 v6, 5, v4; v_sub_nc_u32 v7, v4, s2",
    ] {
        let program = program(Arch::Rdna3, 32, text);
        let unit = wavesim_jit::list(&program, 32).expect("a host").expect("code");
        assert_eq!(unit.paths.sequence_blocks, 1, "{text}");
        assert_eq!(verify(&setup, &program, &solver), Ok(Answer::Equal), "{text}");
    }
}

/// Another instruction in place of one, as if a rule had selected it.
fn other_inst(inst: &Inst) -> Option<Inst> {
    use Code::*;
    let mut inst = inst.clone();
    match &mut inst {
        Inst::Rvm { code, .. } => {
            *code = match code {
                VEX_Vpaddd_ymm_ymm_ymmm256 => VEX_Vpsubd_ymm_ymm_ymmm256,
                VEX_Vpsubd_ymm_ymm_ymmm256 => VEX_Vpaddd_ymm_ymm_ymmm256,
                VEX_Vpand_ymm_ymm_ymmm256 => VEX_Vpor_ymm_ymm_ymmm256,
                VEX_Vpor_ymm_ymm_ymmm256 => VEX_Vpxor_ymm_ymm_ymmm256,
                VEX_Vpxor_ymm_ymm_ymmm256 => VEX_Vpor_ymm_ymm_ymmm256,
                VEX_Vpminsd_ymm_ymm_ymmm256 => VEX_Vpminud_ymm_ymm_ymmm256,
                VEX_Vpminud_ymm_ymm_ymmm256 => VEX_Vpminsd_ymm_ymm_ymmm256,
                VEX_Vpsravd_ymm_ymm_ymmm256 => VEX_Vpsrlvd_ymm_ymm_ymmm256,
                VEX_Vpsrlvd_ymm_ymm_ymmm256 => VEX_Vpsravd_ymm_ymm_ymmm256,
                VEX_Vpmuludq_ymm_ymm_ymmm256 => VEX_Vpmuldq_ymm_ymm_ymmm256,
                VEX_Vpunpckldq_ymm_ymm_ymmm256 => VEX_Vpunpckhdq_ymm_ymm_ymmm256,
                _ => return None,
            }
        }
        Inst::Rm { code, .. } => {
            *code = match code {
                VEX_Vpsrld_ymm_ymm_imm8 => VEX_Vpsrad_ymm_ymm_imm8,
                VEX_Vpsrad_ymm_ymm_imm8 => VEX_Vpsrld_ymm_ymm_imm8,
                VEX_Vpmovzxdq_ymm_xmmm128 => VEX_Vpmovsxdq_ymm_xmmm128,
                _ => return None,
            }
        }
        Inst::Int2 { op, .. } => {
            *op = match op {
                Int2::And => Int2::Or,
                Int2::Shr => Int2::Sar,
                Int2::Sar => Int2::Shr,
                Int2::Xor => Int2::Or,
                _ => return None,
            }
        }
        Inst::Compare { cc, .. } => {
            *cc = match cc {
                Cc::LtU => Cc::LeU,
                Cc::LtS => Cc::LtU,
                Cc::GtS => Cc::GeS,
                _ => return None,
            }
        }
        _ => return None,
    }
    Some(inst)
}

/// Wrong rules are found: each operation of the code is replaced by a similar one. The only ones that may remain equal
/// are those that make no difference for the operands that they have.
#[test]
fn planted_faults_are_found() {
    let Some(solver) = solver() else { return };
    let setup = Setup::new(Arch::Rdna3, 32);
    let solver = Solver { limit: Duration::from_secs(10), ..solver };
    let (mut found, mut harmless) = (0, Vec::new());
    // A part of them, which takes seconds.
    for text in INSTRUCTIONS.into_iter().step_by(2) {
        let program = program(Arch::Rdna3, 32, text);
        let Ok(listed) = function(&program, 32) else { continue };
        if !matches!(verify_function(&setup, &program, &listed, &solver), Ok(Answer::Equal)) {
            continue;
        }
        for at in 0..listed.function.insts().len() {
            let Some(other) = other_inst(&listed.function.insts()[at]) else { continue };
            let mut wrong = listed.clone();
            let mut number = 0;
            wrong.function.edit(|inst| {
                if number == at {
                    *inst = other.clone();
                }
                number += 1;
            });
            match verify_function(&setup, &program, &wrong, &solver) {
                Ok(Answer::Differ(example)) => {
                    assert!(!example.registers.is_empty());
                    found += 1;
                }
                // An address that is computed in another way, or a product of which the solver does not know.
                Err(VerifyError::Unsupported(_)) | Ok(Answer::Unknown(_)) => {}
                Ok(Answer::Equal) => harmless.push(format!("{text}: {other:?}")),
                other => panic!("{text}: {other:?}"),
            }
        }
    }
    println!("{found} faults found; harmless: {harmless:#?}");
    assert!(found >= 25, "{found}");
    // Such as an arithmetic shift of what is not negative, OR for XOR of disjoint bits, and code that is not used.
    assert!(harmless.len() * 2 <= found, "{found} found, but not {harmless:#?}");
}
