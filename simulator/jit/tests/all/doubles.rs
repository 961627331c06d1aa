//! f64 operations with a slow path, and f32 operations that are computed by way of f64.

use super::{compare, program, registers, run, start, twice};
use wavesim_jit::Jit;
use wavesim_machine::exec::machine_ops::Event;

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

/// Reciprocal roots of f32 of every significand, for an even and an odd exponent: results of other exponents
/// differ by powers of two.
#[test]
fn reciprocal_roots_of_all_significands() {
    let program = program(
        &[
            "v_cvt_u32_f32 v1, v0",
            "v_add_nc_u32 v1, 1.0, v1",
            "v_mov_b32 v3, 0",
            "s_mov_b32 s4, 0x80000",
            "v_rsq_f32 v2, v1",
            "v_alignbit_b32 v3, v3, v3, 7",
            "v_xor_b32 v3, v3, v2",
            "v_add_nc_u32 v1, 32, v1",
            "s_add_i32 s4, s4, -1",
            "s_cmp_lg_u32 s4, 0",
            "s_cbranch_scc1 @4",
            "s_endpgm",
        ],
        32,
    );
    let code = Jit::with_threshold(&program, 0).expect("a supported host");
    let [plain, compiled] = [None, Some(&code)].map(|code| {
        let mut wave = start(32, 0xf0);
        assert_eq!(run(&program, &mut wave, u64::MAX, code).0, Err(Event::EndPgm));
        registers(&wave, 4)
    });
    assert!(code.has_code());
    assert_eq!(plain, compiled);
    // The inputs have passed all significands.
    assert_eq!(compiled[1].0[0], 0x4080_0000);
}

/// Reciprocal roots of zeros, infinities, NaN, negative, denormal and extreme numbers, some of them in a packet
/// with ordinary ones.
#[test]
fn reciprocal_roots_of_special_numbers() {
    let lines =
        [0u32, 1 << 31, 0x7f80_0000, 0xff80_0000, 0x7fc0_0000, 0x7f80_0001, 0xbf80_0000, 1, 0x007f_ffff]
            .into_iter()
            .chain([0x0080_0000, 0x0080_0001, 0x7f7f_ffff, 0x7f00_0000, 0x8080_0000])
            .zip(20..)
            .flat_map(|(bits, register)| {
                [
                    format!("v_mov_b32 v18, 0x{bits:x}"),
                    format!("v_rsq_f32 v{register}, v18"),
                    // Ordinary numbers in every other lane.
                    "v_cndmask_b32 v18, v18, v1, vcc_lo".to_string(),
                    format!("v_rsq_f32 v{}, v18", register + 20),
                ]
            });
    let lines: Vec<String> =
        ["v_cvt_u32_f32 v17, v0", "v_and_b32 v17, 1, v17", "v_cmp_eq_u32 vcc_lo, 0, v17"]
            .map(String::from)
            .into_iter()
            .chain(lines)
            .collect();
    compare(&twice(&lines.iter().map(String::as_str).collect::<Vec<_>>()));
}
