//! f64 operations with a slow path, and f32 operations that are computed by way of f64.

use super::compare;

/// Sums and results that are zero, denormal, infinite or normal, with and without a scale; constant and
/// variable scales.
#[test]
fn scaled_doubles() {
    compare(&[
        "s_movk_i32 s4, 0x20",
        "v_mul_lo_u32 v5, 0x9e3779b1, v5",
        "v_cvt_f64_i32 v[0:1], v5",
        "v_cvt_f64_u32 v[2:3], v5",
        "v_sub_nc_u32 v6, s4, v14",
        "v_lshlrev_b32 v6, 5, v6",
        "v_ldexp_f64 v[8:9], v[0:1], v6",
        "v_ldexp_f64 v[10:11], v[8:9], v6",
        "v_ldexp_f64 v[10:11], v[10:11], 64",
        "v_ldexp_f64 v[12:13], v[2:3], 0xfffffbb0",
        "v_cmp_lt_u32 vcc_lo, v5, v6",
        "v_div_fmas_f64 v[0:1], v[8:9], v[2:3], v[10:11]",
        "v_div_fmas_f64 v[2:3], v[12:13], v[2:3], v[10:11]",
        "v_rsq_f64 v[10:11], v[8:9]",
        "v_rcp_f64 v[12:13], v[12:13]",
        "v_sqrt_f64 v[8:9], v[8:9]",
        "v_cvt_f32_f64 v6, v[10:11]",
        "v_cvt_f64_f32 v[10:11], v14",
        "v_cvt_u32_f64 v7, v[0:1]",
        "v_cvt_i32_f64 v6, v[2:3]",
        "s_add_i32 s4, s4, -1",
        "s_cmp_lg_u32 s4, 0",
        "s_cbranch_scc1 @1",
        "s_endpgm",
    ]);
}

/// f32 operations by way of f64 in runs with MXCSR.DAZ set.
#[test]
fn singles_by_doubles() {
    compare(&[
        "s_movk_i32 s4, 0x20",
        "v_mul_f32 v1, v14, v15",
        "v_rsq_f32 v2, v14",
        "v_rsq_f32 v3, v1",
        "v_mul_f32 v4, v3, v14",
        "v_ldexp_f32 v5, v15, -3",
        "v_ldexp_f32 v6, v4, v14",
        "v_cvt_f64_f32 v[8:9], v5",
        "v_cvt_f64_f32 v[10:11], v14",
        "v_add_f32 v7, v5, v6",
        "v_ldexp_f32 v12, v2, 0x12c",
        "v_rsq_f32 v13, v12",
        "s_add_i32 s4, s4, -1",
        "s_cmp_lg_u32 s4, 0",
        "s_cbranch_scc1 @1",
        "s_endpgm",
    ]);
}
