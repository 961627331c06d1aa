//! Text and words of CDNA 5: those of LLVM 22 (`llvm-mc -mcpu=gfx1250`).

use wavesim_asm::{NoSymbols, Options, listing, parse, print};
use wavesim_isa::arch::Arch;
use wavesim_isa::codec::{decode, encode};

/// LLVM's text and words of an instruction.
const LINES: &[(&str, &[u32])] = &[
    ("s_mov_b64 s[0:1], 0x123456789abcdef0", &[0xbe8001fe, 0x9abcdef0, 0x12345678]),
    ("s_mov_b64 s[0:1], 0x12345678", &[0xbe8001ff, 0x12345678]),
    ("s_mov_b64 s[0:1], lit64(0x92345678)", &[0xbe8001fe, 0x92345678, 0x00000000]),
    ("s_mov_b64 s[0:1], 0xffffffff92345678", &[0xbe8001fe, 0x92345678, 0xffffffff]),
    ("s_mov_b64 s[0:1], lit64(0x12345678)", &[0xbe8001fe, 0x12345678, 0x00000000]),
    ("s_mov_b64 s[0:1], lit64(0x1)", &[0xbe8001fe, 0x00000001, 0x00000000]),
    ("v_add_f64_e32 v[0:1], 0x400921fb, v[2:3]", &[0x040004ff, 0x400921fb]),
    ("v_add_f64_e32 v[0:1], 0x400921fb54442d18, v[2:3]", &[0x040004fe, 0x54442d18, 0x400921fb]),
    ("v_add_f64_e32 v[0:1], lit64(0x3ff8000000000000), v[2:3]", &[0x040004fe, 0x00000000, 0x3ff80000]),
    ("v_fmamk_f64 v[0:1], v[2:3], 0x400921fb54442d18, v[4:5]", &[0x46000902, 0x54442d18, 0x400921fb]),
    ("v_fmaak_f64 v[0:1], v[2:3], v[4:5], 0x400921fb54442d18", &[0x48000902, 0x54442d18, 0x400921fb]),
    ("v_add_nc_u64_e32 v[0:1], 0xfffffffffffedcbb, v[2:3]", &[0x500004fe, 0xfffedcbb, 0xffffffff]),
    ("s_cmp_eq_u64 s[0:1], 0x123456789abcd", &[0xbf10fe00, 0x6789abcd, 0x00012345]),
    ("v_mov_b64_e32 v[0:1], 0x123456789abcd", &[0x7e003afe, 0x6789abcd, 0x00012345]),
    ("v_add_nc_u64_e32 v[0:1], src_flat_scratch_base_lo, v[2:3]", &[0x500004e6]),
    ("v_xor_b32_e32 v0, src_flat_scratch_base_hi, v2", &[0x3a0004e7]),
    ("flat_load_b32 v0, v1, s[2:3]", &[0xec050002, 0x00000000, 0x00000001]),
    ("flat_load_b32 v0, v[2:3]", &[0xec05007c, 0x00000000, 0x00000002]),
    ("flat_load_b32 v0, v1, s[2:3] offset:16 scale_offset", &[0xec050002, 0x00010000, 0x00001001]),
    ("flat_store_b32 v1, v0, s[2:3] offset:-16", &[0xec068002, 0x00000000, 0xfffff001]),
    ("flat_atomic_add_u32 v0, v1, s[2:3]", &[0xec0d4002, 0x00800000, 0x00000000]),
    ("flat_atomic_add_u32 v[2:3], v1", &[0xec0d407c, 0x00800000, 0x00000002]),
    ("flat_atomic_add_u32 v0, v[2:3], v1 th:TH_ATOMIC_RETURN", &[0xec0d407c, 0x00900000, 0x00000002]),
    ("flat_atomic_add_u32 v0, v2, v1, s[4:5] th:TH_ATOMIC_RETURN", &[0xec0d4004, 0x00900000, 0x00000002]),
    ("s_set_vgpr_msb 64", &[0xbf860040]),
    ("s_set_vgpr_msb 0x4000", &[0xbf864000]),
    (
        "v_dual_fma_f32 v0, v1, v2, v3 :: v_dual_fma_f32 v4, -v6, v7, -v8",
        &[0xcf4d3101, 0x03025106, 0x04080700],
    ),
    (
        "v_dual_cndmask_b32 v0, v1, v2, s5 :: v_dual_bitop2_b32 v3, v4, v5 bitop3:0x54",
        &[0xcf252101, 0x05020104, 0x03540500],
    ),
    (
        "v_dual_fma_f64 v[0:1], v[2:3], v[4:5], v[6:7] :: v_dual_mov_b32 v10, v4",
        &[0xcf808102, 0x06040104, 0x0a000000],
    ),
    ("v_dual_add_f32 v0, v1, v2 :: v_dual_add_f32 v2, v1, v2", &[0xcf104101, 0x00020101, 0x02000200]),
    ("v_dual_add_f32 v0, v1, v2 :: v_dual_add_f32 v3, v1, v2", &[0xc9080501, 0x00020501]),
    ("v_bitop3_b32 v0, v1, v2, v3 bitop3:0x40", &[0xd6340000, 0x0c0e0501]),
    ("v_wmma_f32_16x16x128_f8f6f4 v[0:7], v[8:23], v[24:39], v[40:47]", &[0xcc330000, 0x04a23108]),
    (
        "v_wmma_f32_16x16x128_f8f6f4 v[0:7], v[8:15], v[24:35], v[40:47] matrix_a_fmt:MATRIX_FMT_FP4 matrix_b_fmt:MATRIX_FMT_FP6 neg_lo:[0,0,1] neg_hi:[0,0,1]",
        &[0xcc332400, 0x94a23108],
    ),
    ("v_wmma_f32_32x16x128_f4 v[0:15], v[16:31], v[32:39], v[40:55]", &[0xcc884000, 0x1ca24110]),
    (
        "v_wmma_scale_f32_16x16x128_f8f6f4 v[0:7], v[8:23], v[24:39], v[40:47], s1, v2 matrix_a_fmt:MATRIX_FMT_BF8 matrix_a_scale:MATRIX_SCALE_ROW1 matrix_b_scale_fmt:MATRIX_SCALE_FMT_E4M3 matrix_a_reuse",
        &[0xcc352a00, 0x04020401, 0xcc330800, 0x04a23108],
    ),
    (
        "v_wmma_scale16_f32_16x16x128_f8f6f4 v[0:7], v[8:23], v[24:39], v[40:47], v[2:3], v[4:5]",
        &[0xcc3a0000, 0x04020902, 0xcc330000, 0x04a23108],
    ),
    (
        "v_swmmac_f32_16x16x64_f16 v[0:7], v[8:15], v[24:39], v40 index_key:1 matrix_a_reuse",
        &[0xcc652800, 0x1ca23108],
    ),
    (
        "v_wmma_f32_16x16x32_f16 v[0:7], v[8:15], v[24:31], v[40:47] matrix_a_reuse neg_lo:[0,0,1] neg_hi:[0,0,1]",
        &[0xcc602400, 0x9ca23108],
    ),
    (
        "v_wmma_i32_16x16x64_iu8 v[0:7], v[8:15], v[24:31], v[40:47] matrix_a_reuse neg_lo:[1,1,0] clamp",
        &[0xcc72a000, 0x7ca23108],
    ),
    ("v_cvt_scale_pk8_f16_fp8 v[0:3], v[4:5], v6 scale_sel:3", &[0xd6a81800, 0x00020d04]),
    ("v_cvt_f32_fp8_e64 v0, v1 byte_sel:1 clamp", &[0xd5ec9000, 0x00000101]),
    ("v_cvt_sr_bf8_f16 v1, v2, v3 op_sel:[1,0,0] byte_sel:3", &[0xd7756801, 0x00020702]),
    ("v_bitop3_b32 v0, v1, v2, v3 bitop3:10", &[0xd6340100, 0x440e0501]),
    ("ds_load_tr6_b96 v[3:5], v0", &[0xdbec0000, 0x03000000]),
    ("flat_prefetch_b8 v[2:3] th:TH_LOAD_HT", &[0xec17407c, 0x00200000, 0x00000002]),
    ("s_load_b32 s4, s[2:3], 0xa scale_offset nv", &[0xf4100101, 0xf900000a]),
];

/// Other spellings that LLVM accepts.
const SPELLINGS: &[(&str, &[u32])] = &[
    ("s_mov_b64 s[0:1], 0x92345678", &[0xbe8001fe, 0x92345678, 0x00000000]),
    ("v_cvt_sr_bf8_f16 v1, v2.h, v3 byte_sel:3", &[0xd7756801, 0x00020702]),
    ("v_cvt_sr_bf8_f16 v1, v2, v3 byte_sel:3 op_sel:[1]", &[0xd7756801, 0x00020702]),
    ("v_cvt_f16_bf8 v1.h, v2 byte_sel:2", &[0xd5f84801, 0x00000102]),
    ("v_cvt_f16_bf8 v1, v2 op_sel:[0,1] byte_sel:2", &[0xd5f84801, 0x00000102]),
    ("global_load_b64_tr_b8 v[2:3], v0, s[0:1]", &[0xee160000, 0x00000002, 0x00000000]),
    ("ds_load_tr_b128 v[2:5], v0", &[0xdbf00000, 0x02000000]),
];

/// Lines that LLVM rejects.
const REJECTED: &[&str] = &[
    "v_cvt_f16_bf8 v1, v2 op_sel:[1,0]",
    "v_cvt_sr_bf8_f16 v1, v2, v3 op_sel:[0,1,0]",
    "v_tanh_bf16 v1, v2 clamp",
    "v_sqrt_bf16 v1, v2 mul:2",
    "v_cvt_pk_f16_fp8 v1, v2 mul:2",
    "v_mul_u64 v[4:5], v[2:3], v[8:9] clamp",
    "v_pk_add_min_i16 v10, v1, v2, v3 neg_lo:[1,0,0]",
    "tensor_load_to_lds null, s[4:11]",
    "tensor_store_from_lds s[0:3], null",
    "s_prefetch_data s[18:19], 100, s10, 7 nv",
];

#[test]
fn text_and_words_are_llvms() {
    let options = Options::new(Arch::Cdna5);
    for (text, words) in LINES {
        let parsed = parse(text, &options, &NoSymbols).unwrap_or_else(|e| panic!("{text}: {e}"));
        let own = encode(Arch::Cdna5, &parsed.inst).unwrap_or_else(|e| panic!("{text}: {e}"));
        assert_eq!(&own[..], *words, "{text}");
        let inst = decode(Arch::Cdna5, words).unwrap_or_else(|e| panic!("{text}: {e}"));
        assert_eq!(print::instruction(&inst, &options), *text);
    }
}

#[test]
fn spellings_are_llvms() {
    for (text, words) in SPELLINGS {
        assert_eq!(assembled(text).as_deref(), Ok(*words), "{text}");
    }
    for text in REJECTED {
        assert!(assembled(text).is_err(), "{text}");
    }
}

/// Comments have the numbers that MODE gives to VGPRs.
#[test]
fn extended_numbers_are_comments() {
    let mut options = Options::new(Arch::Cdna5);
    let line = |text: &str, options: &Options| {
        let inst = parse(text, options, &NoSymbols).unwrap_or_else(|e| panic!("{text}: {e}")).inst;
        (print::instruction(&inst, options), print::vgpr_msbs_after(&inst, options))
    };
    let (_, bits) = line("s_set_vgpr_msb 0x45", &options);
    options.vgpr_msbs = bits.expect("it sets the bits");
    let text = "v_fma_f32 v0 /*v256*/, v1 /*v257*/, v2 /*v258*/, v3";
    assert_eq!(line("v_fma_f32 v0, v1, v2, v3", &options), (text.to_string(), None));
    let text = "v_add_f64_e32 v[2:3] /*v[258:259]*/, s[2:3], v[4:5] /*v[260:261]*/";
    assert_eq!(line("v_add_f64_e32 v[2:3], s[2:3], v[4:5]", &options).0, text);
    // Text that assembles to exactly these words may have such comments.
    let inst = parse("v_add_f64_e32 v[2:3], s[2:3], v[4:5]", &options, &NoSymbols).unwrap().inst;
    let words = encode(Arch::Cdna5, &inst).unwrap();
    assert_eq!(listing::exact(&words, &inst, &options, None), text);
}

#[test]
fn invalid_dual_instructions_are_refused() {
    for text in [
        // Register banks, results that overlap, three scalar values, halves that do not exist.
        "v_dual_fma_f64 v[0:1], v[2:3], v[4:5], v[6:7] :: v_dual_add_f32 v10, v3, v9",
        "v_dual_add_f32 v0, v1, v2 :: v_dual_add_f32 v0, v1, v2",
        "v_dual_fma_f64 v[0:1], v[2:3], v[4:5], v[6:7] :: v_dual_mov_b32 v1, v4",
        "v_dual_cndmask_b32 v0, v1, v2, s5 :: v_dual_cndmask_b32 v3, s4, v4, s6",
        "v_dual_max_i32 v0, v1, v2 :: v_dual_mov_b32 v3, 5",
        "v_dual_mov_b32 v3, 1 :: v_dual_mul_f64 v[0:1], v[2:3], v[4:5]",
        "v_dual_add_f32 v0, v1, v2 :: v_dual_lshlrev_b32 v4, -v4, v3",
    ] {
        assert!(parse(text, &Options::new(Arch::Cdna5), &NoSymbols).is_err(), "{text}");
    }
}

/// Words of `text`, or the message of its error.
fn assembled(text: &str) -> Result<Vec<u32>, String> {
    let options = Options::new(Arch::Cdna5);
    let parsed = parse(text, &options, &NoSymbols).map_err(|e| e.message)?;
    encode(Arch::Cdna5, &parsed.inst).map(|words| words.to_vec()).map_err(|e| e.to_string())
}

#[test]
fn tensor_groups_are_given_both_or_not_at_all() {
    assert_eq!(
        assembled("tensor_load_to_lds s[0:3], s[4:11]"),
        Ok(vec![0xd071_0001, 0x7c00_0000, 0x7c7c_0400])
    );
    let all = "tensor_load_to_lds s[0:3], s[4:11], s[12:15], s[16:19] th:TH_LOAD_NT_HT scope:SCOPE_DEV";
    assert_eq!(assembled(all), Ok(vec![0xd071_0001, 0x7c68_0000, 0x100c_0400]));
    for wrong in ["s[12:15]", "s[12:15], null", "null, null"] {
        assert!(assembled(&format!("tensor_load_to_lds s[0:3], s[4:11], {wrong}")).is_err(), "{wrong}");
    }
}

#[test]
fn both_halves_of_a_packed_product_read_one_scalar() {
    assert!(assembled("v_pk_mul_f32 v[2:3], s[0:1], v[4:5] op_sel_hi:[0,1]").is_ok());
    let error = assembled("v_pk_mul_f32 v[2:3], s[0:1], v[4:5]").unwrap_err();
    assert!(error.contains("both halves read s0"), "{error}");
}

#[test]
fn literals_of_64_bits_need_operands_of_64_bits() {
    assert!(assembled("s_bfe_u64 s[2:3], 0x10abcdef12345678, 5").is_ok());
    assert!(assembled("s_add_co_u32 s2, 0x10abcdef12345678, s3").is_err());
    // A number of 32 bits is the upper half of a double.
    assert_eq!(assembled("v_rndne_f64_e32 v[2:3], -17"), Ok(vec![0x7e04_32ff, 0xffff_ffef]));
}
