//! DPP and output modifiers.

use super::ask;
use wavesim_isa::arch::Arch;
use wavesim_prove::{Setup, Verdict};

fn full(arch: Arch, wave_size: u32) -> Setup {
    Setup { full_exec: true, ..Setup::new(arch, wave_size) }
}

#[track_caller]
fn equal(setup: Setup, texts: [&str; 2], assume: &[&str]) {
    let Some(verdict) = ask(setup, texts, assume, None) else { return };
    assert_eq!(verdict.expect("an answer"), Verdict::Equal, "{texts:?}");
}

#[track_caller]
fn different(setup: Setup, texts: [&str; 2]) {
    let Some(verdict) = ask(setup, texts, &[], None) else { return };
    assert!(matches!(verdict, Ok(Verdict::Differ(_))), "{texts:?}: {verdict:?}");
}

const SWAP: &str = "v_mov_b32_dpp v0, v1 quad_perm:[1,0,3,2] row_mask:0xf bank_mask:0xf bound_ctrl:1";

/// A permutation and its inverse; what lanes read of inactive ones.
#[test]
fn permutations() {
    let twice = format!("{SWAP}; {}", SWAP.replace("v0, v1", "v0, v0"));
    for (arch, size) in [(Arch::Rdna3, 32), (Arch::Cdna3, 64)] {
        equal(full(arch, size), [&twice, "v_mov_b32 v0, v1"], &[]);
        // An inactive lane is read as 0.
        different(Setup::new(arch, size), [&twice, "v_mov_b32 v0, v1"]);
    }
    let ror = |n: u32| format!("v_mov_b32_dpp v0, v1 row_ror:{n} row_mask:0xf bank_mask:0xf");
    let again = format!("{}; {}", ror(5), ror(11).replace("v0, v1", "v0, v0"));
    equal(full(Arch::Rdna3, 32), [&again, "v_mov_b32 v0, v1"], &[]);
    let dpp8 = "v_mov_b32_dpp v0, v1 dpp8:[1,0,3,2,5,4,7,6]";
    equal(full(Arch::Rdna3, 32), [SWAP, dpp8], &[]);
}

/// Rows and banks that are not enabled, and lanes that read outside of their row, keep the old value.
#[test]
fn disabled_lanes() {
    let setup = full(Arch::Rdna3, 32);
    let shift = "v_mov_b32_dpp v0, v1 row_shr:1 row_mask:0xf bank_mask:0xf";
    different(setup.clone(), [shift, &format!("{shift} bound_ctrl:1")]);
    let zeroed = format!("v_mov_b32 v0, 0; {shift}");
    equal(setup.clone(), [&zeroed, &format!("{shift} bound_ctrl:1")], &[]);
    let none = "v_mov_b32_dpp v0, v1 row_shr:1 row_mask:0x0 bank_mask:0xf";
    equal(setup, [none, "v_mov_b32 v0, v0"], &[]);
}

/// Sources with modifiers, which also apply to the 0 of an invalid lane.
#[test]
fn modifiers_of_permuted_sources() {
    let setup = full(Arch::Rdna3, 32);
    let a = "v_add_f32_dpp v0, -v1, v2 row_shr:1 row_mask:0xf bank_mask:0xf bound_ctrl:1";
    let b = "v_mov_b32_dpp v3, v1 row_shr:1 row_mask:0xf bank_mask:0xf bound_ctrl:1; v_add_f32 v0, -v3, v2; v_mov_b32 v3, v4";
    equal(setup, [a, b], &["v3 == v4"]);
}

#[test]
fn clamped_results() {
    for arch in [Arch::Rdna3, Arch::Rdna4] {
        let setup = Setup::new(arch, 32);
        let max = if arch == Arch::Rdna4 { "v_max_num_f32" } else { "v_max_f32" };
        let two = format!("v_add_f32 v0, v1, v2; {max}_e64 v0, v0, v0 clamp");
        equal(setup.clone(), ["v_add_f32_e64 v0, v1, v2 clamp", &two], &[]);
        different(setup, ["v_add_f32_e64 v0, v1, v2 clamp", "v_add_f32_e64 v0, v1, v2"]);
    }
    // Without MODE.DX10_CLAMP, RDNA 3 keeps a NaN.
    let bounds = "v_max_f32 v0, 0, v1; v_min_f32 v0, 1.0, v0";
    let clamp = "v_max_f32_e64 v0, v1, v1 clamp";
    equal(Setup::new(Arch::Rdna3, 32), [bounds, clamp], &["v1 <= 0x3f800000"]);
    different(Setup::new(Arch::Rdna3, 32), [bounds, clamp]);
}

#[test]
fn multiplied_results() {
    let setup = Setup::new(Arch::Rdna4, 32);
    different(setup, ["v_add_f32_e64 v0, v1, v2 mul:2", "v_add_f32_e64 v0, v1, v2 mul:4"]);
    // RDNA 3 multiplies only if denormals are flushed.
    equal(Setup::new(Arch::Rdna3, 32), ["v_add_f32_e64 v0, v1, v2 mul:2", "v_add_f32 v0, v1, v2"], &[]);
}
