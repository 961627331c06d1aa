//! DPP: sources from other lanes.

use super::families::{compare_all, compare_on, integer, single};
use wavesim_isa::arch::Arch;

#[test]
fn sources_of_other_lanes() {
    let lines = [
        "v_mov_b32_dpp v20, v0 quad_perm:[3,1,0,2] row_mask:0xf bank_mask:0xf",
        "v_add_nc_u32_dpp v21, v1, v2 row_shr:1 row_mask:0xf bank_mask:0xf",
        "v_add_nc_u32_dpp v22, v1, v2 row_shl:3 row_mask:0xf bank_mask:0xf bound_ctrl:1",
        "v_add_nc_u32_dpp v23, v3, v2 row_ror:5 row_mask:0xf bank_mask:0xf fi:1",
        "v_xor_b32_dpp v24, v4, v5 row_mirror row_mask:0xa bank_mask:0xf",
        "v_xor_b32_dpp v25, v4, v5 row_half_mirror row_mask:0xf bank_mask:0x6 bound_ctrl:1",
        "v_xor_b32_dpp v26, v6, v5 row_share:7 row_mask:0xf bank_mask:0xf",
        "v_xor_b32_dpp v27, v6, v5 row_xmask:9 row_mask:0x5 bank_mask:0xb fi:1",
        "v_mov_b32_dpp v28, v7 dpp8:[7,6,5,4,3,2,1,0]",
        "v_mov_b32_dpp v29, v7 dpp8:[1,1,1,4,5,0,0,0] fi:1",
        "v_perm_b32_e64_dpp v32, v0, v1, v2 row_shr:1 row_mask:0xf bank_mask:0xf",
        "v_max_u16 v30, v20, v21",
        "v_mov_b32_dpp v31, v30 row_ror:9 row_mask:0xf bank_mask:0xf",
    ];
    compare_all(&lines, integer);
}

/// An instruction reads the values that other lanes had before it, even if it overwrites its source.
#[test]
fn sources_that_are_overwritten() {
    let lines = [
        "v_add_nc_u32_dpp v0, v0, v0 row_shr:1 row_mask:0xf bank_mask:0xf",
        "v_add_nc_u32_dpp v0, v0, v0 row_shr:8 row_mask:0xf bank_mask:0xf bound_ctrl:1",
        "v_mov_b32 v1, v0",
        "v_xor_b32_dpp v2, v1, v0 row_mirror row_mask:0xf bank_mask:0xf",
        "v_xor_b32_dpp v3, v0, v2 quad_perm:[1,0,3,2] row_mask:0xf bank_mask:0xf",
        "v_not_b32 v0, v3",
        "v_mov_b32_dpp v20, v0 row_share:0 row_mask:0xf bank_mask:0xf fi:1",
        "v_add_nc_u32_dpp v20, v20, v1 dpp8:[7,6,5,4,3,2,1,0]",
    ];
    compare_all(&lines, integer);
}

#[test]
fn floats_and_masks_of_other_lanes() {
    let lines = [
        "v_add_f32_dpp v20, -v0, |v1| row_shr:2 row_mask:0xf bank_mask:0xf",
        "v_mul_f32_dpp v21, |v0|, v1 row_ror:4 row_mask:0xf bank_mask:0xf bound_ctrl:1",
        "v_fmac_f32_dpp v22, v2, v3 row_shl:7 row_mask:0xf bank_mask:0xf",
        "v_fma_f32_e64_dpp v23, v4, -v5, v6 clamp row_half_mirror row_mask:0xf bank_mask:0xd",
        "v_cmp_lt_f32_e64_dpp s20, v4, v5 row_shr:1 row_mask:0xf bank_mask:0xf",
        "v_cmp_lt_f32_e64_dpp s22, v4, -v5 row_shr:1 row_mask:0x7 bank_mask:0xf bound_ctrl:1",
        "v_cndmask_b32_dpp v24, v5, v6, vcc_lo row_mirror row_mask:0xf bank_mask:0xf",
        "v_cvt_f32_f16_dpp v25, v7 row_xmask:1 row_mask:0xf bank_mask:0xf",
        "v_mul_f32 v26, v20, v21",
        "v_mul_f32_dpp v27, v26, v26 row_xmask:15 row_mask:0xf bank_mask:0xf",
        "v_add_co_ci_u32_dpp v28, vcc_lo, v1, v2, vcc_lo row_ror:1 row_mask:0xe bank_mask:0xf",
    ];
    compare_all(&lines, single);
}

/// More sources than hidden registers, so that runs must be closed.
#[test]
fn more_sources_than_hidden_registers() {
    let lines: Vec<String> = (0..40)
        .map(|n| {
            let (from, to) = (n % 16, 20 + n);
            format!(
                "v_add_nc_u32_dpp v{to}, v{from}, v{from} row_ror:{} row_mask:0xf bank_mask:0xf",
                1 + n % 15
            )
        })
        .collect();
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    compare_all(&lines, integer);
}

/// Sources from the next row, from the whole wave, and of 64 bits.
#[test]
fn sources_of_other_rows() {
    let lines = [
        "v_add_u32_dpp v20, v0, v1 row_bcast:15 row_mask:0xa bank_mask:0xf",
        "v_add_u32_dpp v21, v0, v1 row_bcast:31 row_mask:0xc bank_mask:0xf",
        "v_add_u32_dpp v22, v2, v3 wave_shr:1 row_mask:0xf bank_mask:0xf",
        "v_add_u32_dpp v23, v2, v3 wave_shl:1 row_mask:0xf bank_mask:0xf bound_ctrl:0",
        "v_add_u32_dpp v24, v4, v5 wave_ror:1 row_mask:0xf bank_mask:0xf",
        "v_mov_b32_dpp v25, v5 row_newbcast:3 row_mask:0xf bank_mask:0xf",
        "v_mov_b64_dpp v[26:27], v[6:7] row_newbcast:3 row_mask:0xf bank_mask:0xf",
        "v_add_u32_dpp v0, v0, v0 row_shr:1 row_mask:0xf bank_mask:0xf",
    ];
    compare_on(Arch::Cdna3, &[64], &lines, integer);
}
