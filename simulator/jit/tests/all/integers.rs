//! Integers: known bits, carries and byte selectors.

use super::compare;

/// Byte selectors below 8, others, a mixture in one packet, and constants.
#[test]
fn selectors_of_bytes() {
    compare(&[
        "s_movk_i32 s4, 0x20",
        "v_mul_lo_u32 v5, 0x9e3779b1, v5",
        "v_xor_b32 v6, v5, v6",
        "v_and_b32 v7, 0x7070707, v5",
        "v_perm_b32 v1, v5, v6, v7",
        "v_perm_b32 v2, v6, v5, v7",
        "v_perm_b32 v3, v5, v6, v6",
        "v_lshrrev_b32 v8, 4, v5",
        "v_and_or_b32 v8, v14, v8, v7",
        "v_perm_b32 v4, v5, v6, v8",
        "s_mov_b32 s6, 0x01050302",
        "v_perm_b32 v9, v5, v6, s6",
        "v_perm_b32 v10, v5, v6, 0x0c010c00",
        "v_perm_b32 v11, v5, v6, 0x0d080b07",
        "v_perm_b32 v12, -3, v6, 0x07060504",
        "v_perm_b32 v7, v7, v7, v7",
        "s_mov_b32 exec_lo, 0x55aa5a3c",
        "v_perm_b32 v13, v5, v6, v6",
        "s_mov_b32 exec_lo, -1",
        "s_add_i32 s4, s4, -1",
        "s_cmp_lg_u32 s4, 0",
        "s_cbranch_scc1 @1",
        "s_endpgm",
    ]);
}

#[test]
fn carries_and_wide_sums() {
    compare(&[
        "s_movk_i32 s4, 0x40",
        "v_mul_lo_u32 v5, 0x9e3779b1, v5",
        "v_xor_b32 v6, v5, v6",
        "v_add_co_u32 v1, vcc_lo, v5, v6",
        "v_add_co_ci_u32 v2, vcc_lo, v6, v5, vcc_lo",
        "v_add_co_ci_u32 v3, vcc_lo, -1, v14, vcc_lo",
        "v_add_co_u32 v4, s8, s4, v5",
        "v_add_co_ci_u32 v7, s8, v6, -1, s8",
        "v_add_co_ci_u32 v7, s10, v7, v14, s8",
        "v_sub_co_u32 v8, vcc_lo, v5, v6",
        "v_sub_co_ci_u32 v9, vcc_lo, v6, v5, vcc_lo",
        "v_mad_u64_u32 v[10:11], s12, v5, v6, v[1:2]",
        "v_mad_u64_u32 v[10:11], vcc_lo, v10, v11, v[10:11]",
        "v_mad_u64_u32 v[12:13], s14, v5, 7, -1",
        "v_alignbit_b32 v1, v5, v6, v7",
        "v_alignbit_b32 v2, v5, v6, 0",
        "v_alignbit_b32 v3, v5, v6, s4",
        "v_mul_hi_u32 v4, v5, v6",
        "s_add_i32 s4, s4, -1",
        "s_cmp_lg_u32 s4, 0",
        "s_cbranch_scc1 @1",
        "s_endpgm",
    ]);
}

#[test]
fn choices_and_known_bits() {
    compare(&[
        "s_movk_i32 s4, 0x20",
        "v_mul_lo_u32 v5, 0x9e3779b1, v5",
        "v_xor_b32 v6, v5, v6",
        "v_max_u32 v1, v5, v6",
        "v_min_i32 v2, v5, v6",
        "v_max3_i32 v3, v5, v6, v1",
        "v_med3_u32 v4, v5, v6, v14",
        "v_cmp_le_u32 vcc_lo, v5, v6",
        "v_cndmask_b32 v7, v5, v6, vcc_lo",
        "v_cndmask_b32 v8, 0, v6, vcc_lo",
        "v_cndmask_b32 v9, v6, 0, vcc_lo",
        "v_and_b32 v10, 0xff, v5",
        "v_lshlrev_b32 v11, 24, v10",
        "v_and_b32 v12, 0xffffff, v11",
        "v_lshrrev_b32 v13, 24, v5",
        "v_and_b32 v13, 0xff, v13",
        "v_or_b32 v12, 0xffffff00, v12",
        "v_and_b32 v12, 0xffffff00, v12",
        "s_add_i32 s4, s4, -1",
        "s_cmp_lg_u32 s4, 0",
        "s_cbranch_scc1 @1",
        "s_endpgm",
    ]);
}
