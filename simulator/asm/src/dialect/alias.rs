//! Old instruction names that LLVM still accepts: `ds_read_b32` for `ds_load_b32`, `s_add_u32` on RDNA 4.
//!
//! An alias applies only if the architecture has no instruction with the old name and has one with the new
//! name.

use wavesim_isa::arch::Arch;

/// Aliases of whole names.
pub const NAMES: [(&str, &str); 91] = [
    ("s_waitcnt_depctr", "s_wait_alu"),
    ("s_ff1_i32_b32", "s_ctz_i32_b32"),
    ("s_ff1_i32_b64", "s_ctz_i32_b64"),
    ("s_flbit_i32_b32", "s_clz_i32_u32"),
    ("s_flbit_i32_b64", "s_clz_i32_u64"),
    ("s_flbit_i32", "s_cls_i32"),
    ("s_flbit_i32_i64", "s_cls_i32_i64"),
    ("s_inst_prefetch", "s_set_inst_prefetch_distance"),
    ("s_add_u32", "s_add_co_u32"),
    ("s_add_i32", "s_add_co_i32"),
    ("s_sub_u32", "s_sub_co_u32"),
    ("s_sub_i32", "s_sub_co_i32"),
    ("s_addc_u32", "s_add_co_ci_u32"),
    ("s_subb_u32", "s_sub_co_ci_u32"),
    ("s_addk_i32", "s_addk_co_i32"),
    ("s_add_u64", "s_add_nc_u64"),
    ("s_sub_u64", "s_sub_nc_u64"),
    ("v_ffbh_u32", "v_clz_i32_u32"),
    ("v_ffbl_b32", "v_ctz_i32_b32"),
    ("v_ffbh_i32", "v_cls_i32"),
    ("v_cvt_rpi_i32_f32", "v_cvt_nearest_i32_f32"),
    ("v_cvt_flr_i32_f32", "v_cvt_floor_i32_f32"),
    ("v_cvt_pkrtz_f16_f32", "v_cvt_pk_rtz_f16_f32"),
    ("v_cvt_pknorm_i16_f32", "v_cvt_pk_norm_i16_f32"),
    ("v_cvt_pknorm_u16_f32", "v_cvt_pk_norm_u16_f32"),
    ("v_cvt_pknorm_i16_f16", "v_cvt_pk_norm_i16_f16"),
    ("v_cvt_pknorm_u16_f16", "v_cvt_pk_norm_u16_f16"),
    ("v_mul_legacy_f32", "v_mul_dx9_zero_f32"),
    ("v_fma_legacy_f32", "v_fma_dx9_zero_f32"),
    ("v_fmac_legacy_f32", "v_fmac_dx9_zero_f32"),
    ("v_dot2c_f32_f16", "v_dot2acc_f32_f16"),
    ("v_mad_u64_u32", "v_mad_co_u64_u32"),
    ("v_mad_i64_i32", "v_mad_co_i64_i32"),
    ("v_min_f16", "v_min_num_f16"),
    ("v_max_f16", "v_max_num_f16"),
    ("v_min_f32", "v_min_num_f32"),
    ("v_max_f32", "v_max_num_f32"),
    ("v_min_f64", "v_min_num_f64"),
    ("v_max_f64", "v_max_num_f64"),
    ("v_min3_f16", "v_min3_num_f16"),
    ("v_max3_f16", "v_max3_num_f16"),
    ("v_med3_f16", "v_med3_num_f16"),
    ("v_min3_f32", "v_min3_num_f32"),
    ("v_max3_f32", "v_max3_num_f32"),
    ("v_med3_f32", "v_med3_num_f32"),
    ("v_minmax_f16", "v_minmax_num_f16"),
    ("v_maxmin_f16", "v_maxmin_num_f16"),
    ("v_minmax_f32", "v_minmax_num_f32"),
    ("v_maxmin_f32", "v_maxmin_num_f32"),
    ("v_pk_min_f16", "v_pk_min_num_f16"),
    ("v_pk_max_f16", "v_pk_max_num_f16"),
    ("image_atomic_add", "image_atomic_add_uint"),
    ("image_atomic_sub", "image_atomic_sub_uint"),
    ("image_atomic_smin", "image_atomic_min_int"),
    ("image_atomic_umin", "image_atomic_min_uint"),
    ("image_atomic_smax", "image_atomic_max_int"),
    ("image_atomic_umax", "image_atomic_max_uint"),
    ("image_atomic_inc", "image_atomic_inc_uint"),
    ("image_atomic_dec", "image_atomic_dec_uint"),
    ("image_atomic_fmin", "image_atomic_min_flt"),
    ("image_atomic_fmax", "image_atomic_max_flt"),
    ("image_atomic_min_num_flt", "image_atomic_min_flt"),
    ("image_atomic_max_num_flt", "image_atomic_max_flt"),
    ("flat_atomic_csub_u32", "flat_atomic_sub_clamp_u32"),
    ("buffer_gl1_inv_", "buffer_gl1_inv"),
    ("v_add_u32", "v_add_nc_u32"),
    ("v_sub_u32", "v_sub_nc_u32"),
    ("v_subrev_u32", "v_subrev_nc_u32"),
    ("v_add_i32", "v_add_nc_i32"),
    ("v_sub_i32", "v_sub_nc_i32"),
    ("v_add_i16", "v_add_nc_i16"),
    ("v_sub_i16", "v_sub_nc_i16"),
    ("s_min_f16", "s_min_num_f16"),
    ("s_max_f16", "s_max_num_f16"),
    ("s_min_f32", "s_min_num_f32"),
    ("s_max_f32", "s_max_num_f32"),
    ("ds_min_f32", "ds_min_num_f32"),
    ("ds_max_f32", "ds_max_num_f32"),
    ("ds_min_f64", "ds_min_num_f64"),
    ("ds_max_f64", "ds_max_num_f64"),
    ("ds_min_rtn_f32", "ds_min_num_rtn_f32"),
    ("ds_max_rtn_f32", "ds_max_num_rtn_f32"),
    ("ds_min_rtn_f64", "ds_min_num_rtn_f64"),
    ("ds_max_rtn_f64", "ds_max_num_rtn_f64"),
    ("exp", "export"),
    ("global_atomic_csub", "global_atomic_csub_u32"),
    ("global_atomic_csub", "global_atomic_sub_clamp_u32"),
    ("global_atomic_csub_u32", "global_atomic_sub_clamp_u32"),
    ("buffer_atomic_csub", "buffer_atomic_csub_u32"),
    ("buffer_atomic_csub", "buffer_atomic_sub_clamp_u32"),
    ("buffer_atomic_csub_u32", "buffer_atomic_sub_clamp_u32"),
];

/// Aliases of whole names that LLVM accepts only for RDNA 4.
pub const RDNA4: [(&str, &str); 4] = [
    ("ds_subrev_u32", "ds_rsub_u32"),
    ("ds_subrev_u64", "ds_rsub_u64"),
    ("ds_subrev_rtn_u32", "ds_rsub_rtn_u32"),
    ("ds_subrev_rtn_u64", "ds_rsub_rtn_u64"),
];

/// Old names that LLVM accepts for CDNA 5: of control flow, and RDNA 4's and earlier ones of matrix loads.
pub const CDNA5: [(&str, &str); 18] = [
    ("s_getpc_b64", "s_get_pc_i64"),
    ("s_setpc_b64", "s_set_pc_i64"),
    ("s_swappc_b64", "s_swap_pc_i64"),
    ("s_call_b64", "s_call_i64"),
    ("s_rfe_b64", "s_rfe_i64"),
    ("ds_load_tr_b64", "ds_load_tr8_b64"),
    ("ds_load_tr_b128", "ds_load_tr16_b128"),
    ("ds_load_b64_tr_b4", "ds_load_tr4_b64"),
    ("ds_load_b64_tr_b8", "ds_load_tr8_b64"),
    ("ds_load_b96_tr_b6", "ds_load_tr6_b96"),
    ("ds_load_b128_tr_b16", "ds_load_tr16_b128"),
    ("global_load_tr_b64", "global_load_tr8_b64"),
    ("global_load_tr_b128", "global_load_tr16_b128"),
    ("global_load_b64_tr_b4", "global_load_tr4_b64"),
    ("global_load_b64_tr_b8", "global_load_tr8_b64"),
    ("global_load_b96_tr_b6", "global_load_tr6_b96"),
    ("global_load_b128_tr_b16", "global_load_tr16_b128"),
    ("v_fma_mix_f32_f16", "v_fma_mix_f32"),
];

/// Aliases of whole names that LLVM accepts only for CDNA.
pub const CDNA: [(&str, &str); 3] = [
    ("v_mul_lo_i32", "v_mul_lo_u32"),
    ("v_accvgpr_read", "v_accvgpr_read_b32"),
    ("v_accvgpr_write", "v_accvgpr_write_b32"),
];

/// Prefix, old infix, new infix; longer infixes first.
const PARTS: [(&str, &str, &str); 9] = [
    ("s_", "_andn2_", "_and_not1_"),
    ("s_", "_orn2_", "_or_not1_"),
    ("s_", "_andn1_", "_and_not0_"),
    ("s_", "_orn1_", "_or_not0_"),
    ("v_cmp", "_tru_", "_t_"),
    ("buffer_", "_format_d16_hi_", "_d16_hi_format_"),
    ("buffer_", "_format_d16_", "_d16_format_"),
    ("tbuffer_", "_format_d16_hi_", "_d16_hi_format_"),
    ("tbuffer_", "_format_d16_", "_d16_format_"),
];

/// Suffixes of memory instructions, longer ones first.
const MEMORY: [(&str, &str); 20] = [
    ("_dwordx16", "_b512"),
    ("_dwordx8", "_b256"),
    ("_dwordx4", "_b128"),
    ("_dwordx3", "_b96"),
    ("_dwordx2", "_b64"),
    ("_dword", "_b32"),
    ("_ubyte_d16_hi", "_d16_hi_u8"),
    ("_sbyte_d16_hi", "_d16_hi_i8"),
    ("_short_d16_hi", "_d16_hi_b16"),
    ("_byte_d16_hi", "_d16_hi_b8"),
    ("_ubyte_d16", "_d16_u8"),
    ("_sbyte_d16", "_d16_i8"),
    ("_short_d16", "_d16_b16"),
    ("_ubyte", "_u8"),
    ("_sbyte", "_i8"),
    ("_ushort", "_u16"),
    ("_sshort", "_i16"),
    ("_byte", "_b8"),
    ("_short", "_b16"),
    ("_dword_addtid", "_addtid_b32"),
];

/// Operations of flat and buffer atomics; the suffix `_x2` selects 64 bits.
const ATOMICS: [(&str, &str); 16] = [
    ("swap", "swap_b"),
    ("cmpswap", "cmpswap_b"),
    ("add", "add_u"),
    ("sub", "sub_u"),
    ("smin", "min_i"),
    ("umin", "min_u"),
    ("smax", "max_i"),
    ("umax", "max_u"),
    ("and", "and_b"),
    ("or", "or_b"),
    ("xor", "xor_b"),
    ("inc", "inc_u"),
    ("dec", "dec_u"),
    ("fcmpswap", "cmpswap_f"),
    ("fmin", "min_f"),
    ("fmax", "max_f"),
];

/// Prefixes of LDS instructions, longer ones first.
const SHARED: [(&str, &str); 9] = [
    ("ds_read2st64_", "ds_load_2addr_stride64_"),
    ("ds_read2_", "ds_load_2addr_"),
    ("ds_read_", "ds_load_"),
    ("ds_write2st64_", "ds_store_2addr_stride64_"),
    ("ds_write2_", "ds_store_2addr_"),
    ("ds_write_", "ds_store_"),
    ("ds_wrxchg2st64_rtn_", "ds_storexchg_2addr_stride64_rtn_"),
    ("ds_wrxchg2_rtn_", "ds_storexchg_2addr_rtn_"),
    ("ds_wrxchg_rtn_", "ds_storexchg_rtn_"),
];

/// Prefixes of CDNA's matrix products.
const MATRIX: [&str; 2] = ["v_mfma_", "v_smfmac_"];

/// Reduces a matrix product's name to the parts that the old name has: without underscores and without the
/// number of blocks (`_4b`).
fn joined(name: &str) -> String {
    let name = name.strip_suffix("_1k").unwrap_or(name);
    let blocks = |part: &&str| !part.strip_suffix('b').is_some_and(|n| n.bytes().all(|b| b.is_ascii_digit()));
    name.split('_').filter(blocks).collect()
}

/// New names for an old name, most likely first. `names` are the names of the architecture's instructions.
pub fn candidates<'n>(name: &str, arch: Arch, names: impl Iterator<Item = &'n str>) -> Vec<String> {
    let newer = RDNA4.iter().filter(|_| matches!(arch, Arch::Rdna4 | Arch::Cdna5));
    let newest = CDNA5.iter().filter(|_| arch == Arch::Cdna5);
    let cdna = CDNA.iter().filter(|_| arch.is_cdna());
    let whole = NAMES.iter().chain(newer).chain(newest).chain(cdna).filter(|n| n.0 == name);
    let mut out: Vec<String> = whole.map(|n| n.1.to_string()).collect();
    let parts = PARTS.iter().filter(|p| name.starts_with(p.0) && name.contains(p.1));
    out.extend(parts.map(|p| name.replacen(p.1, p.2, 1)));
    if let Some((op, rest)) = name.split_once("_atomic_") {
        let (operation, width) = rest.strip_suffix("_x2").map_or((rest, "32"), |r| (r, "64"));
        // The old names of float atomics are not those of CDNA.
        let known = |a: &&(&str, &str)| a.0 == operation && !(arch.is_cdna() && operation.starts_with('f'));
        for (_, new) in ATOMICS.iter().filter(known) {
            out.push(format!("{op}_atomic_{new}{width}"));
        }
        for (old, new) in [("min_f", "min_num_f"), ("max_f", "max_num_f")] {
            let own = format!("{op}_atomic_{operation}");
            let now =
                ATOMICS.iter().find(|a| a.0 == operation).map(|a| format!("{op}_atomic_{}{width}", a.1));
            out.extend(
                [Some(own), now]
                    .into_iter()
                    .flatten()
                    .filter(|n| n.contains(old))
                    .map(|n| n.replacen(old, new, 1)),
            );
        }
    }
    if let Some(shape) = MATRIX.iter().find(|start| name.starts_with(*start)).map(|_| joined(name)) {
        // CDNA 2's names have fewer underscores and omit the number of blocks.
        let all = names.filter(|n| MATRIX.iter().any(|start| n.starts_with(start)));
        out.extend(all.filter(|n| joined(n) == shape).map(str::to_string));
    }
    out.extend(MEMORY.iter().filter_map(|m| Some(format!("{}{}", name.strip_suffix(m.0)?, m.1))));
    out.extend(SHARED.iter().filter_map(|m| Some(format!("{}{}", m.1, name.strip_prefix(m.0)?))));
    out
}
