//! Output modifiers and parts of registers.

use super::families::{compare_all, compare_on, halves, integer, single};
use wavesim_isa::arch::Arch;

const SINGLES: [&str; 12] = [
    "v_add_f32 v20, v0, v1 clamp",
    "v_mul_f32 v21, v0, v1 mul:2",
    "v_mul_f32 v22, v2, v3 mul:4",
    "v_fma_f32 v23, v2, v3, v4 div:2",
    "v_fma_f32 v24, v2, v3, v4 clamp div:2",
    "v_max_f32 v25, v5, v5 clamp",
    "v_mul_f32 v26, s8, s9 clamp",
    "v_mul_f32 v27, v26, v25 mul:4",
    "v_sqrt_f32 v28, v6 mul:2",
    "v_cvt_f32_u32 v29, v7 clamp",
    "v_cvt_f32_f16 v30, v7 mul:2",
    "v_add_f32 v31, 1.0, v1 clamp",
];

#[test]
fn scaled_and_clamped_singles() {
    compare_all(&SINGLES, single);
    let renamed = SINGLES.map(|line| line.replace("v_max_f32", "v_max_num_f32"));
    compare_on(Arch::Rdna4, &[32, 64], &renamed.each_ref().map(String::as_str), single);
}

#[test]
fn clamped_doubles() {
    let lines = [
        "v_add_f64 v[20:21], v[0:1], 0.5 clamp",
        "v_mul_f64 v[22:23], -v[4:5], 0.5 clamp",
        "v_fma_f64 v[24:25], v[2:3], 2.0, -0.5 clamp",
        "v_max_f64 v[26:27], v[6:7], v[6:7] clamp",
    ];
    compare_all(&lines, single);
}

#[test]
fn clamped_halves() {
    let lines = [
        "v_add_f16 v20, v0, v1 clamp",
        "v_fma_f16 v21, v0, v1, v2 clamp",
        "v_fma_f16 v21, v3, v4, v2 op_sel:[0,1,0,1] clamp",
        "v_pk_add_f16 v22, v3, v4 clamp",
        "v_pk_fma_f16 v23, v5, v6, v7 op_sel:[1,0,0] op_sel_hi:[0,1,1] clamp",
        "v_fma_mixlo_f16 v24, v1, v2, v3 op_sel_hi:[1,1,1] clamp",
        "v_fma_mix_f32 v25, v1, v2, v3 op_sel_hi:[1,1,1] clamp",
    ];
    compare_all(&lines, halves);
}

#[test]
fn saturated_integers() {
    let lines = [
        "v_add_nc_i32 v20, v0, v1 clamp",
        "v_sub_nc_i32 v21, v2, v3 clamp",
        "v_add_nc_u32 v22, v4, v5 clamp",
        "v_sub_nc_u32 v23, v4, v5 clamp",
        "v_add_nc_i16 v24, v6, v7 clamp",
        "v_sub_nc_u16 v25, v6, v7 clamp",
        "v_mad_u32_u24 v26, v0, v1, v2 clamp",
        "v_mad_i32_i24 v27, v3, v4, v5 clamp",
        "v_pk_add_u16 v28, v1, v2 clamp",
        "v_pk_sub_i16 v29, v3, v4 clamp",
        "v_pk_mad_i16 v30, v5, v6, v7 clamp",
        "v_mad_u16 v31, v5, v6, v7 clamp",
        "v_add_nc_i32 v32, s8, s9 clamp",
    ];
    compare_all(&lines, integer);
}

#[test]
fn parts_of_registers() {
    let lines = [
        "v_xor_b32_sdwa v20, v0, v1 dst_sel:DWORD src0_sel:BYTE_3 src1_sel:WORD_0",
        "v_add_u32_sdwa v21, v0, v1 dst_sel:WORD_1 dst_unused:UNUSED_PRESERVE src0_sel:BYTE_1 src1_sel:WORD_1",
        "v_add_u32_sdwa v22, sext(v2), v3 dst_sel:BYTE_2 dst_unused:UNUSED_SEXT src0_sel:WORD_1 src1_sel:DWORD",
        "v_add_u32_sdwa v23, v2, sext(v3) dst_sel:BYTE_0 dst_unused:UNUSED_PAD src0_sel:WORD_1 src1_sel:BYTE_2",
        "v_mul_i32_i24_sdwa v24, sext(v4), sext(v5) dst_sel:DWORD src0_sel:BYTE_0 src1_sel:BYTE_1",
        "v_cmp_lt_u32_sdwa vcc, v0, v1 src0_sel:BYTE_0 src1_sel:BYTE_1",
        "v_lshlrev_b16 v28, v0, v1",
    ];
    compare_on(Arch::Cdna3, &[64], &lines, integer);
    let lines = [
        "v_mul_f32_sdwa v25, -v6, |v7| clamp dst_sel:DWORD src0_sel:DWORD src1_sel:DWORD",
        "v_add_f16_sdwa v26, -v6, v7 dst_sel:WORD_1 dst_unused:UNUSED_PRESERVE src0_sel:WORD_1 src1_sel:WORD_0",
        "v_add_f16 v27, v0, v1",
    ];
    compare_on(Arch::Cdna3, &[64], &lines[..1], single);
    compare_on(Arch::Cdna3, &[64], &lines[1..], halves);
}

#[test]
fn parts_of_floats() {
    let lines = [
        "v_mul_f32_sdwa v21, v2, v3 mul:2 dst_sel:DWORD src0_sel:DWORD src1_sel:DWORD",
        "v_mul_f32_sdwa v22, v2, v3 dst_sel:DWORD src0_sel:WORD_1 src1_sel:DWORD",
        "v_mul_f32_sdwa v23, v4, v5 dst_sel:DWORD src0_sel:BYTE_3 src1_sel:DWORD",
        "v_mul_f32_sdwa v26, -v4, |v5| dst_sel:DWORD src0_sel:WORD_0 src1_sel:WORD_1",
    ];
    for line in lines {
        compare_on(Arch::Cdna4, &[64], &[line], single);
    }
}
