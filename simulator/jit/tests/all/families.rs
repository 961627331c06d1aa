//! Instruction families: every instruction is compiled instead of calling its handler, and agrees with the
//! interpreter on edge cases.

use super::{program_by, random, run, start, twice};
use wavesim_asm::Options;
use wavesim_isa::arch::Arch;
use wavesim_jit::{Jit, selections};
use wavesim_machine::exec::program::Program;
use wavesim_machine::state::LaneVec;

/// Returns the lines whose operations call their handlers.
pub fn handler_lines<'l>(program: &Program, lines: &[&'l str]) -> Vec<&'l str> {
    // The end of the program has no line.
    let calls = selections(program).into_iter().filter(|selection| selection.call.is_some());
    calls.filter_map(|selection| lines.get(selection.instruction)).copied().collect()
}

/// Compares the registers after interpreted and compiled execution, for all compiled wave sizes and modes,
/// with some and with all lanes active. The sources v0 to v15 and s8 to s15 are initialised by `number`;
/// results go to other registers. All instructions must be compiled.
pub fn compare_all(instructions: &[&str], number: impl Fn(&mut u64) -> u32) {
    compare_on(Arch::Rdna3, &[32, 64], instructions, number);
}

/// [`compare_all`], on one architecture and for these wave sizes.
pub fn compare_on(arch: Arch, sizes: &[u32], instructions: &[&str], number: impl Fn(&mut u64) -> u32) {
    let lines = twice(instructions);
    let mut seed = 5;
    for &size in sizes {
        let program = program_by(&Options::new(arch), &lines, size);
        assert_eq!(handler_lines(&program, &lines), ["s_endpgm"]);
        let code = Jit::with_threshold(&program, 0).expect("a supported host");
        for (mode, round) in [0xf0, 0xc0, 0x2f0, 0x2c0, 0x1f0, 0x3c0]
            .into_iter()
            .flat_map(|mode| (0..25).map(move |n| (mode, n)))
        {
            let mut plain = start(size, mode);
            for half in 0..plain.halves() {
                for reg in 0..64 {
                    plain.set_lane_vec(half, reg, LaneVec(std::array::from_fn(|_| number(&mut seed))));
                }
            }
            (8..16).for_each(|reg| plain.sgprs[reg] = number(&mut seed));
            if round % 3 == 0 {
                plain.set_exec(random(&mut seed) | random(&mut seed) << 32);
            }
            let mut compiled = plain.clone();
            let before = plain.clone();
            let (a, b) =
                (run(&program, &mut plain, 2000, None), run(&program, &mut compiled, 2000, Some(&code)));
            assert_eq!(a, b, "wave{size} mode {mode:x}");
            assert_eq!((plain.sgprs, plain.scc, plain.pc), (compiled.sgprs, compiled.scc, compiled.pc));
            for (half, reg) in (0..plain.halves()).flat_map(|half| (0..64).map(move |reg| (half, reg))) {
                let (a, b) = (plain.lane_vec(half, reg).0, compiled.lane_vec(half, reg).0);
                let differs = |lane: &usize| a[*lane] != b[*lane];
                if let Some(lane) = (0..32).find(differs) {
                    let sources: Vec<String> =
                        (0..16).map(|reg| format!("{:x}", before.lane_vec(half, reg).0[lane])).collect();
                    let (a, b) = (a[lane], b[lane]);
                    panic!("wave{size} {mode:x} v{reg}[{lane}]: {a:x} {b:x} {lines:#?} {sources:?}");
                }
            }
        }
        assert_eq!(code.stats().failed, 0);
        assert!(code.stats().operations as usize >= instructions.len());
    }
}

/// Returns an edge-case float with `width` bits, `significand` of them in the significand: denormals, the
/// smallest and greatest normal numbers, zeros, infinities, both kinds of NaN, and others.
fn float(seed: &mut u64, width: u32, significand: u32) -> u32 {
    let bits = random(seed) as u32;
    let sign = 1 << (width - 1);
    let (least, quiet) = (1 << significand, 1 << (significand - 1));
    let (infinity, one) = (sign - least, ((sign - least) / 2) & !(least - 1));
    let negative = (random(seed) as u32 & 1) * sign;
    negative
        | match random(seed) % 12 {
            0 => bits % least,
            1 => least + bits % 3,
            2 => infinity - 1 - bits % 3,
            3 => 1 << (bits % significand),
            4 => 0,
            5 => infinity,
            6 => infinity + quiet + bits % quiet,
            7 => infinity + 1 + bits % (quiet - 1),
            8 => bits % sign,
            _ => one - least + bits % (2 * least),
        }
}

pub fn single(seed: &mut u64) -> u32 {
    float(seed, 32, 23)
}

/// Returns any bits, often small numbers or the limits of integer ranges.
pub fn integer(seed: &mut u64) -> u32 {
    let bits = random(seed) as u32;
    match random(seed) % 4 {
        0 => bits % 64,
        1 => [0, u32::MAX, 1 << 31, i32::MAX as u32, 0x8000, 0x7fff_8000][bits as usize % 6],
        _ => bits << 1 ^ random(seed) as u32,
    }
}

/// The treatment of signalling NaNs depends on MODE.
#[test]
fn minima_and_maxima() {
    let lines = [
        "v_max_f32 v20, v0, v1",
        "v_min_f32 v21, v2, v3",
        "v_max_f32 v22, s8, -|v4|",
        "v_max_f32 v23, v5, v5",
        "v_max3_f32 v24, v1, v2, v3",
        "v_med3_f32 v25, v4, v5, v6",
        "v_min3_f32 v26, v7, 0, v6",
        "v_max_f64 v[28:29], v[0:1], v[2:3]",
        "v_min_f64 v[30:31], v[4:5], v[6:7]",
        "v_minmax_f32 v32, v4, v5, v6",
    ];
    compare_all(&lines, single);
}

#[test]
fn significands_and_exponents() {
    let lines = [
        "v_frexp_mant_f32 v20, v0",
        "v_frexp_exp_i32_f32 v21, v0",
        "v_frexp_mant_f32 v22, -|v1|",
        "v_frexp_exp_i32_f32 v23, s8",
        "v_frexp_mant_f64 v[24:25], v[2:3]",
        "v_frexp_exp_i32_f64 v26, v[2:3]",
        "v_frexp_mant_f64 v[28:29], -v[4:5]",
        "v_frexp_exp_i32_f64 v30, s[8:9]",
        "v_mul_f32 v31, 0.5, v6",
        "v_frexp_mant_f32 v32, v31",
        "v_frexp_exp_i32_f32 v33, v31",
        "v_ldexp_f32 v34, v32, v33",
    ];
    compare_all(&lines, single);
}

#[test]
fn sums_of_128_bits() {
    let lines = [
        "v_mad_u64_u32 v[20:21], null, s8, v1, v[2:3]",
        "v_mad_u64_u32 v[22:23], s16, v1, v2, v[4:5]",
        "v_mad_u64_u32 v[24:25], vcc_lo, v3, s9, s[10:11]",
        "v_add_co_ci_u32 v26, vcc_lo, v1, v2, vcc_lo",
        "v_mad_u64_u32 v[28:29], null, s8, s9, 0",
    ];
    compare_all(&lines, integer);
}

/// Returns two f16 in a word.
pub fn halves(seed: &mut u64) -> u32 {
    float(seed, 16, 10) | float(seed, 16, 10) << 16
}

#[test]
fn arithmetic_of_halves() {
    let lines = [
        "v_add_f16 v20, v0, v1",
        "v_sub_f16 v21, v2, v3",
        "v_mul_f16 v22, v4, v5",
        "v_fma_f16 v23, v0, v1, v2",
        "v_fma_f16 v24, -v3, |v4|, s8",
        "v_fmac_f16 v25, v5, v6",
        "v_mul_f16 v26, 0.5, v7",
        "v_add_f16 v27, v20, v22",
        "v_mul_f16 v28, v27, v27",
        "v_floor_f16 v29, v1",
        "v_rndne_f16 v30, v2",
        "v_fract_f16 v31, v3",
        "v_sqrt_f16 v32, v4",
        "v_rcp_f16 v33, v5",
        "v_rsq_f16 v34, v6",
        "v_min_f16 v35, v7, v8",
        "v_max_f16 v36, v9, v10",
        "v_med3_f16 v37, v0, v1, v2",
        "v_cmp_lt_f16 vcc_lo, v1, v2",
        "v_cmp_class_f16 s20, v1, v2",
        "v_cmp_u_f16 s22, v3, v4",
        "v_pk_fma_f16 v38, v0, v1, v2",
        "v_pk_add_f16 v39, v3, s9",
        "v_pk_mul_f16 v40, v4, v5",
        "v_pk_max_f16 v41, v6, v7",
        "v_pk_fma_f16 v42, v38, v39, v40",
    ];
    compare_all(&lines, halves);
}

#[test]
fn conversions_of_halves() {
    let lines = [
        "v_cvt_f32_f16 v20, v0",
        "v_cvt_f32_f16 v21, s8",
        "v_cvt_f16_f32 v22, v20",
        "v_cvt_u16_f16 v24, v2",
        "v_cvt_i16_f16 v25, v3",
        "v_cvt_f16_u16 v26, v4",
        "v_cvt_f16_i16 v27, v5",
        "v_cvt_pk_rtz_f16_f32 v28, v20, v21",
        "v_fma_mix_f32 v30, v1, v2, v3 op_sel:[0,1,0] op_sel_hi:[1,1,0]",
        "v_fma_mix_f32 v31, -v1, |v2|, s9 op_sel_hi:[1,0,1]",
        "v_fma_mixlo_f16 v32, v1, v2, v3 op_sel:[1,0,0] op_sel_hi:[1,1,1]",
        "v_fma_mixhi_f16 v32, v4, v5, v6 op_sel_hi:[1,1,0]",
        "v_add_nc_u16 v33, v1, v2",
        "v_lshlrev_b16 v34, v1, v2",
        "v_mul_lo_u16 v35, v1, v2",
        "v_max_i16 v36, v1, v2",
    ];
    compare_all(&lines, halves);
    let lines = ["v_cvt_f16_f32 v22, v0", "v_cvt_pk_rtz_f16_f32 v28, v1, -v2", "v_cvt_f16_f32 v22, -|v3|"];
    compare_all(&lines, single);
    // Around the range of f16.
    let near =
        |seed: &mut u64| (single(seed) & 0x8000_0000) | (0x3200_0000 + random(seed) as u32 % 0x1700_0000);
    compare_all(&lines, near);
}

#[test]
fn op_sel() {
    let lines = [
        "v_pk_fma_f16 v20, v0, v1, v2 op_sel:[1,0,0] op_sel_hi:[0,1,0]",
        "v_pk_fma_f16 v21, v3, s8, v4 op_sel_hi:[1,0,1] neg_lo:[1,0,1] neg_hi:[0,1,1]",
        "v_pk_add_f16 v22, v20, v21 op_sel:[1,1] op_sel_hi:[0,0] neg_hi:[1,0]",
        "v_pk_mul_f16 v23, v5, 0.5 op_sel_hi:[1,0]",
        "v_pk_add_u16 v24, v6, v7 op_sel:[1,0] op_sel_hi:[0,0]",
        "v_pk_min_i16 v25, v8, s9 op_sel_hi:[0,0]",
        "v_pk_max_f16 v26, v23, v22 op_sel:[0,1]",
        "v_add_f16 v28, v1, v2 op_sel:[1,0,0]",
        "v_mul_f16 v29, v3, v4 op_sel:[0,1,1]",
        "v_fma_f16 v30, -v5, |v6|, v7 op_sel:[1,1,0,1]",
        "v_fma_f16 v31, v29, v30, v28 op_sel:[1,0,1,0]",
        "v_add_nc_u16 v32, v9, v10 op_sel:[1,0,1]",
        "v_cvt_f32_f16 v33, v11 op_sel:[1,0]",
        "v_cvt_f16_f32 v34, v12 op_sel:[0,1]",
    ];
    compare_all(&lines, halves);
}

/// Sums of 64 bits, which saturate with the clamp bit: CDNA 5 computes addresses with them. Literals of 64 bits.
#[test]
fn sums_of_64_bits() {
    let lines = [
        "v_add_nc_u64 v[20:21], v[0:1], v[2:3]",
        "v_add_nc_u64 v[22:23], s[8:9], v[2:3]",
        "v_add_nc_u64_e64 v[24:25], v[0:1], v[2:3] clamp",
        "v_sub_nc_u64 v[26:27], v[0:1], v[2:3]",
        "v_sub_nc_u64_e64 v[28:29], v[0:1], v[2:3] clamp",
        "v_mad_nc_u64_u32 v[30:31], v0, v1, v[2:3]",
        "v_mad_nc_u64_u32 v[32:33], v0, s8, v[2:3] clamp",
        "v_mad_nc_i64_i32 v[34:35], v0, v1, v[2:3]",
        "v_mad_nc_i64_i32 v[36:37], v0, v1, v[2:3] clamp",
        "v_lshl_add_u64 v[38:39], v[0:1], 3, v[2:3]",
        "v_fmaak_f64 v[40:41], v[0:1], v[2:3], 0x3ff8000000000001",
    ];
    compare_on(Arch::Cdna5, &[32], &lines, integer);
}
