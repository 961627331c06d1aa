//! Functions that the host has no instruction for.

use super::families::{compare_all, compare_on, halves, integer, single};
use super::random;
use wavesim_isa::arch::Arch;

#[test]
fn powers_logarithms_and_sines() {
    let lines = [
        "v_exp_f32 v20, v0",
        "v_log_f32 v21, v1",
        "v_sin_f32 v22, -v2",
        "v_cos_f32 v23, |v3|",
        "v_exp_f32 v24, s8",
        "v_mul_f32 v25, v20, v21",
        "v_exp_f32 v26, v25 clamp",
        "v_log_f32 v27, v25 mul:2",
        "v_exp_f32_dpp v28, v4 row_ror:1 row_mask:0xf bank_mask:0xf",
    ];
    compare_all(&lines, single);
    // At the limits of the range, and where the polynomial's error matters.
    let near = |seed: &mut u64| match random(seed) % 3 {
        0 => ((random(seed) as i32 % 300 - 150) as f32 + random(seed) as f32 / 4e9).to_bits(),
        1 => 0x3f80_0000 + random(seed) as u32 % 64,
        _ => single(seed),
    };
    compare_all(&lines, near);
    let lines = [
        "v_exp_f16 v20, v0",
        "v_log_f16 v21, v1",
        "v_sin_f16 v22, -v2",
        "v_cos_f16 v23, v3 op_sel:[1,1]",
        "v_ldexp_f16 v24, v4, v5",
        "v_frexp_mant_f16 v25, v6",
        "v_frexp_exp_i16_f16 v26, -v7",
    ];
    compare_all(&lines, halves);
}

#[test]
fn divisions() {
    let lines = [
        "v_div_scale_f32 v20, vcc_lo, v0, v1, v0",
        "v_div_fmas_f32 v21, v2, v3, v4",
        "v_cmp_lt_f32 vcc_lo, v5, v6",
        "v_div_fmas_f32 v22, -v2, v3, |v4|",
        "v_div_fmas_f32 v23, v7, s8, v1 clamp",
        "v_div_fixup_f32 v24, v22, v1, v2",
        "v_trig_preop_f64 v[26:27], v[2:3], v4",
        "v_trig_preop_f64 v[28:29], v[4:5], 1",
    ];
    compare_all(&lines, single);
}

#[test]
fn normalised_conversions_and_bytes() {
    let lines = [
        "v_cvt_pk_norm_i16_f32 v20, v0, -v1",
        "v_cvt_pk_norm_u16_f32 v21, v2, |v3|",
        "v_cvt_pk_u8_f32 v22, v0, 2, v1",
        "v_cvt_pk_u8_f32 v23, v3, v4, v5",
    ];
    compare_all(&lines, single);
    let small = |seed: &mut u64| ((random(seed) as i32 % 600 - 200) as f32 / 2.0).to_bits();
    compare_all(&lines, small);
    let lines = [
        "v_cvt_pk_norm_i16_f16 v20, v0, v1",
        "v_cvt_pk_norm_u16_f16 v21, v2, v3",
        "v_cvt_norm_i16_f16 v22, v4",
        "v_cvt_norm_u16_f16 v23, v5",
    ];
    compare_all(&lines, halves);
}

#[test]
fn small_floats() {
    let lines = ["v_cvt_f32_fp8 v20, v0", "v_cvt_f32_bf8 v21, v1", "v_cvt_pk_f32_fp8 v[22:23], v2"];
    compare_on(Arch::Cdna3, &[64], &lines, single);
    let lines = [
        "v_cvt_pk_fp8_f32 v24.l, v3, v4",
        "v_cvt_pk_bf8_f32 v25.h, -v3, v4",
        "v_cvt_sr_fp8_f32 v26, v5, v6",
        "v_cvt_sr_bf8_f32 v27, v5, v6 byte_sel:2",
    ];
    compare_on(Arch::Rdna4, &[32, 64], &lines, single);
    compare_on(Arch::Cdna4, &[64], &["v_cvt_pk_bf16_f32 v20, v0, v1"], single);
}

#[test]
fn products_of_bytes() {
    let lines = [
        "v_dot4_i32_iu8 v20, v0, v1, v2 neg_lo:[1,0,0]",
        "v_dot4_i32_iu8 v21, v3, v4, v5 neg_lo:[1,1,0] clamp",
        "v_dot4_u32_u8 v22, v6, v7, v8",
        "v_dot8_i32_iu4 v23, v0, v1, v2 neg_lo:[0,1,0]",
        "v_dot8_u32_u4 v24, v3, s8, v5 clamp",
        "v_lerp_u8 v25, v6, v7, v8",
        "v_mad_i64_i32 v[26:27], null, v0, v1, v[2:3]",
        "v_mad_i64_i32 v[28:29], s20, v4, s8, v[6:7]",
        "v_mad_i64_i32 v[30:31], vcc_lo, s9, v4, s[10:11]",
        "v_add_co_ci_u32 v32, vcc_lo, v1, v2, vcc_lo",
        "v_mad_i64_i32 v[34:35], s22, s8, s9, v[26:27]",
    ];
    compare_all(&lines, integer);
}

/// Arguments whose results are too close to a rounding boundary for the polynomial.
#[test]
fn results_near_ties() {
    use isa_spec::arith::approx::{MARGIN, quick};
    let unsure = |y: f64| (y - y * MARGIN) as f32 != (y + y * MARGIN) as f32;
    let find = |first: u32, function: fn(f64) -> f64| -> Vec<u32> {
        let all = first..first + (1 << 23);
        all.filter(|bits| unsure(function(f32::from_bits(*bits) as f64))).collect()
    };
    let powers: Vec<u32> = [0x3f00_0000, 0xbf00_0000, 0x3f80_0000, 0x4000_0000]
        .into_iter()
        .flat_map(|first| find(first, quick::exp2::<false>))
        .collect();
    let logarithms: Vec<u32> = [0x4000_0000, 0x4080_0000, 0x4100_0000]
        .into_iter()
        .flat_map(|first| find(first, quick::log2::<false>))
        .collect();
    for (line, found) in [("v_exp_f32 v20, v0", powers), ("v_log_f32 v20, v0", logarithms)] {
        assert!(found.len() > 1, "{line}: {found:x?}");
        compare_all(&[line], |seed| found[random(seed) as usize % found.len()]);
    }
}
