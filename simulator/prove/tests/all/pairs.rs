use super::{ask, ask_within};
use std::collections::BTreeSet;
use wavesim_isa::arch::Arch;
use wavesim_prove::{Setup, Verdict};

fn setups() -> [Setup; 3] {
    [Setup::new(Arch::Rdna3, 32), Setup::new(Arch::Rdna3, 64), Setup::new(Arch::Rdna4, 32)]
}

#[track_caller]
fn equal(texts: [&str; 2], assume: &[&str]) {
    for setup in setups() {
        match ask(setup.clone(), texts, assume, None) {
            None => return,
            Some(verdict) => assert_eq!(verdict.expect("an answer"), Verdict::Equal, "{texts:?} {setup:?}"),
        }
    }
}

#[track_caller]
fn different(texts: [&str; 2]) {
    for setup in setups() {
        match ask(setup.clone(), texts, &[], None) {
            None => return,
            Some(Ok(Verdict::Differ(example))) => assert!(!example.outputs.is_empty(), "{texts:?}"),
            Some(other) => panic!("{texts:?} {setup:?}: {other:?}"),
        }
    }
}

#[test]
fn shifts_and_sums() {
    equal(["v_lshl_add_u32 v0, v1, 2, v2", "v_lshlrev_b32 v0, 2, v1; v_add_nc_u32 v0, v0, v2"], &[]);
    different(["v_lshl_add_u32 v0, v1, 2, v2", "v_lshlrev_b32 v0, 3, v1; v_add_nc_u32 v0, v0, v2"]);
    equal(["v_mul_lo_u32 v0, v1, 9", "v_lshl_add_u32 v0, v1, 3, v1"], &[]);
    equal(["s_lshl_b32 s0, s1, 4", "s_mul_i32 s0, s1, 16; s_cmp_lg_u32 s0, 0"], &[]);
}

/// What no solver decides as a whole: operands of which the upper bits are 0, distributivity, and signed products of
/// unsigned ones.
#[test]
fn products() {
    equal(
        ["v_mul_u32_u24 v0, v1, v2", "v_mul_lo_u32 v0, v1, v2"],
        &["v1 < 1024 && s2 == 0", "v2 <= 0xffffff"],
    );
    equal(
        [
            "v_add_nc_u32 v0, v1, v2; v_mul_lo_u32 v0, v0, v3; v_mul_lo_u32 v0, v0, v1",
            "v_mul_lo_u32 v0, v1, v3; v_mul_lo_u32 v4, v2, v3; v_add_nc_u32 v0, v0, v4; v_mul_lo_u32 v0, v1, v0; v_mov_b32 v4, v5",
        ],
        &["v4 == v5"],
    );
    let parts = "v_mul_hi_u32 v0, v1, v2; v_ashrrev_i32 v3, 31, v1; v_mul_lo_u32 v3, v3, v2; v_add_nc_u32 v0, v0, v3; \
                 v_ashrrev_i32 v3, 31, v2; v_mul_lo_u32 v3, v3, v1; v_add_nc_u32 v0, v0, v3; v_mov_b32 v3, v4";
    equal(["v_mul_hi_i32 v0, v1, v2", parts], &["v3 == v4"]);
    different(["v_mul_hi_i32 v0, v1, v2", "v_mul_hi_u32 v0, v1, v2"]);
}

/// Counts of bits, of whole words and of parts; sums of bytes.
#[test]
fn counts_and_sums() {
    equal(
        [
            "v_bcnt_u32_b32 v0, v1, v2",
            "v_and_b32 v3, 0xffff, v1; v_lshrrev_b32 v4, 16, v1; v_bcnt_u32_b32 v0, v3, v2; v_bcnt_u32_b32 v0, v4, v0; v_mov_b32 v3, v5; v_mov_b32 v4, v5",
        ],
        &["v3 == v5 && v4 == v5"],
    );
    equal(["v_sad_u8 v0, v1, v2, v3", "v_sad_u8 v0, v2, v1, v3"], &[]);
    equal(["v_perm_b32 v0, v1, v2, v3", "v_perm_b32 v0, v1, v2, v3; v_mov_b32 v0, v0"], &[]);
}

#[test]
fn float_operations_commute() {
    equal(["v_add_f32 v0, v1, v2", "v_add_f32 v0, v2, v1"], &["v1 < 0x7f800000 && v2 < 0x7f800000"]);
}

#[test]
fn identities_of_bits() {
    equal(
        ["v_bfi_b32 v0, v1, v2, v3", "v_xor_b32 v0, v2, v3; v_and_b32 v0, v0, v1; v_xor_b32 v0, v0, v3"],
        &[],
    );
    equal(["v_not_b32 v0, v1", "v_xor_b32 v0, -1, v1"], &[]);
    equal(["v_alignbit_b32 v0, v1, v1, 8", "v_perm_b32 v0, v1, v1, v2"], &["v2 == 0x00030201"]);
    different(["v_and_or_b32 v0, v1, v2, v3", "v_or_b32 v0, v1, v3; v_and_b32 v0, v0, v2"]);
    equal(["v_and_b32 v0, 0xffff, v1", "v_mov_b32 v0, v1"], &["v1 < 65536"]);
    different(["v_and_b32 v0, 0xffff, v1", "v_mov_b32 v0, v1"]);
}

#[test]
fn halves_and_modifiers() {
    equal(
        [
            "v_pk_add_u16 v0, v1, v2 op_sel:[1,0] op_sel_hi:[0,1]",
            "v_alignbit_b32 v0, v1, v1, 16; v_pk_add_u16 v0, v0, v2",
        ],
        &[],
    );
    equal(["v_mul_f32 v0, -v1, v2", "v_xor_b32 v0, 0x80000000, v1; v_mul_f32 v0, v0, v2"], &[]);
    different(["v_mul_f32 v0, -v1, v2", "v_mul_f32 v0, v1, v2"]);
}

/// A comparison and a choice, written with the condition and with its complement.
#[test]
fn masks_are_compared_lane_by_lane() {
    for (setup, mask) in [(Setup::new(Arch::Rdna3, 32), "vcc_lo"), (Setup::new(Arch::Rdna3, 64), "vcc")] {
        let a = format!("v_cmp_lt_u32 {mask}, v1, v2; v_cndmask_b32 v0, v1, v2, {mask}");
        let b = format!("v_cmp_gt_u32 {mask}, v2, v1; v_max_u32 v0, v1, v2");
        let Some(verdict) = ask(setup.clone(), [&a, &b], &[], None) else { return };
        assert_eq!(verdict.expect("an answer"), Verdict::Equal, "{setup:?}");
        let c = format!("v_cmp_ge_u32 {mask}, v2, v1; v_max_u32 v0, v1, v2");
        let Some(verdict) = ask(setup, [&a, &c], &[], None) else { return };
        assert!(matches!(verdict, Ok(Verdict::Differ(_))), "{verdict:?}");
    }
}

/// Carries between two halves, in the scalar and in the vector unit.
#[test]
fn sums_of_64_bits() {
    let setup = Setup::new(Arch::Rdna3, 32);
    let a =
        "v_add_co_u32 v0, vcc_lo, v2, v4; v_add_co_ci_u32 v1, vcc_lo, v3, v5, vcc_lo; s_mov_b32 vcc_lo, 0";
    let b = "v_add_co_u32 v0, s4, v4, v2; v_add_co_ci_u32 v1, s4, v5, v3, s4; s_mov_b32 vcc_lo, 0; s_mov_b32 s4, s6";
    let Some(verdict) = ask(setup.clone(), [a, b], &["s4 == s6"], None) else { return };
    assert_eq!(verdict.expect("an answer"), Verdict::Equal);
    let a = "s_add_u32 s0, s2, s4; s_addc_u32 s1, s3, s5";
    let b = "s_sub_u32 s6, 0, s4; s_subb_u32 s7, 0, s5; s_sub_u32 s0, s2, s6; s_subb_u32 s1, s3, s7";
    let live = |names: &[&str]| {
        Some(wavesim_prove::Live::Registers(
            names.iter().filter_map(|name| wavesim_prove::register(name)).collect(),
        ))
    };
    let Some(verdict) = ask(setup.clone(), [a, b], &[], live(&["s0", "s1"])) else { return };
    assert_eq!(verdict.expect("an answer"), Verdict::Equal);
    // The carry out is another one.
    let Some(verdict) = ask(setup, [a, b], &[], live(&["scc"])) else { return };
    assert!(matches!(verdict, Ok(Verdict::Differ(_))), "{verdict:?}");
}

/// Carries between two halves are those of one sum.
#[test]
fn carries_are_those_of_wider_sums() {
    let live: BTreeSet<_> = ["v4", "v5"].into_iter().filter_map(wavesim_prove::register).collect();
    let pairs = [
        (
            Setup::new(Arch::Cdna5, 32),
            "v_add_co_u32 v4, vcc_lo, v0, v2; v_add_co_ci_u32 v5, vcc_lo, v1, v3, vcc_lo",
            "v_add_nc_u64 v[4:5], v[0:1], v[2:3]",
        ),
        (
            Setup::new(Arch::Cdna3, 64),
            "v_add_co_u32 v4, vcc, v0, v2; v_addc_co_u32 v5, vcc, v1, v3, vcc",
            "v_lshl_add_u64 v[4:5], v[0:1], 0, v[2:3]",
        ),
    ];
    for (setup, a, b) in pairs {
        let live = Some(wavesim_prove::Live::Registers(live.clone()));
        let Some(verdict) = ask_within(4, setup, [a, b], &[], live) else { return };
        assert_eq!(verdict.expect("an answer"), Verdict::Equal, "{b}");
    }
}

/// Lanes that see each other are modelled together.
#[test]
fn other_lanes() {
    let setup = Setup::new(Arch::Rdna3, 32);
    let a = "v_readfirstlane_b32 s0, v1; v_mov_b32 v0, s0";
    let b = "s_ff1_i32_b32 s1, exec_lo; v_readlane_b32 s0, v1, s1; v_mov_b32 v0, s0; s_mov_b32 s1, s2";
    let Some(verdict) = ask(setup.clone(), [a, b], &["s1 == s2 && exec_lo != 0"], None) else { return };
    assert_eq!(verdict.expect("an answer"), Verdict::Equal);
    let Some(verdict) = ask(setup, [a, "v_readlane_b32 s0, v1, 0; v_mov_b32 v0, s0"], &[], None) else {
        return;
    };
    assert!(matches!(verdict, Ok(Verdict::Differ(_))), "{verdict:?}");
}

/// Memory: the order of stores to places that are different does not matter to one lane, but may to others.
#[test]
fn memory() {
    let setup = Setup { full_exec: true, ..Setup::new(Arch::Rdna3, 32) };
    let a = "global_load_b64 v[2:3], v0, s[0:1]; s_waitcnt vmcnt(0); global_store_b32 v1, v3, s[0:1]";
    let b = "global_load_b32 v3, v0, s[0:1] offset:4; s_waitcnt vmcnt(0); global_store_b32 v1, v3, s[0:1]";
    let live = Some(wavesim_prove::Live::Memory);
    let Some(verdict) = ask(setup.clone(), [a, b], &[], live.clone()) else { return };
    assert_eq!(verdict.expect("an answer"), Verdict::Equal);
    let c = "global_load_b32 v3, v0, s[0:1]; s_waitcnt vmcnt(0); global_store_b32 v1, v3, s[0:1]";
    let Some(verdict) = ask(setup, [a, c], &[], live) else { return };
    assert!(matches!(verdict, Ok(Verdict::Differ(_))), "{verdict:?}");
}

/// Branches that merge, a loop of constant length, and one that is unrolled.
#[test]
fn branches_and_loops() {
    let setup = Setup::new(Arch::Rdna3, 32);
    let a = "s_cmp_lt_u32 s1, s2; s_cbranch_scc1 2; s_mov_b32 s0, s1; s_branch 1; s_mov_b32 s0, s2";
    let b = "s_max_u32 s0, s1, s2";
    let live = |names: &[&str]| {
        Some(wavesim_prove::Live::Registers(
            names.iter().filter_map(|name| wavesim_prove::register(name)).collect(),
        ))
    };
    let Some(verdict) = ask(setup.clone(), [a, b], &[], live(&["s0"])) else { return };
    assert_eq!(verdict.expect("an answer"), Verdict::Equal);
    // Multiplication by repeated addition.
    let a = "s_mov_b32 s0, 0; s_cmp_eq_u32 s2, 0; s_cbranch_scc1 4; s_add_u32 s0, s0, s1; s_add_i32 s2, s2, -1; s_cmp_lg_u32 s2, 0; s_cbranch_scc1 65532";
    let b = "s_mul_i32 s0, s1, s2";
    let Some(verdict) = ask(setup.clone(), [a, b], &["s2 < 5"], live(&["s0"])) else { return };
    assert_eq!(verdict.expect("an answer"), Verdict::Equal);
    let Some(verdict) = ask(setup, [a, b], &["s2 < 50 && s1 < 16"], live(&["s0"])) else { return };
    assert_eq!(verdict.expect("an answer"), Verdict::EqualUpTo(8));
}

/// Lanes that write the same place see one another in an atomic, but not in a load and a store.
#[test]
fn atomics_are_not_loads_and_stores() {
    let setup = Setup { full_exec: true, ..Setup::new(Arch::Rdna3, 32) };
    let a = "global_atomic_add_u32 v0, v1, v2, s[0:1] glc; s_waitcnt vmcnt(0)";
    let b = "global_load_b32 v0, v1, s[0:1]; s_waitcnt vmcnt(0); v_add_nc_u32 v3, v0, v2; global_store_b32 v1, v3, s[0:1]";
    let live = Some(wavesim_prove::Live::Memory);
    // All lanes at one address, which makes the question small.
    let Some(verdict) = ask(setup, [a, b], &["v1 == 0 && v2 == 1"], live) else { return };
    assert!(!matches!(verdict, Ok(Verdict::Equal | Verdict::EqualUpTo(_))), "{verdict:?}");
}

/// What is assumed of EXEC is about one lane, and not about the others.
#[test]
fn assumptions_on_exec_are_of_single_lanes() {
    let setup = Setup::new(Arch::Rdna3, 32);
    let texts = ["v_mov_b32 v0, v1", "v_mov_b32 v0, v2"];
    let Some(verdict) = ask(setup.clone(), texts, &["exec_lo == 2"], None) else { return };
    assert!(matches!(verdict, Ok(Verdict::Differ(_))), "{verdict:?}");
    let Some(verdict) = ask(setup, texts, &["exec_lo == 0"], None) else { return };
    assert_eq!(verdict.expect("an answer"), Verdict::Equal);
}

/// Functions differ with a return address, which the replay has.
#[test]
fn functions_that_differ_are_run() {
    for (arch, size) in [(Arch::Rdna3, 32), (Arch::Cdna3, 64)] {
        let setup = Setup::new(arch, size);
        let function = |line: &str| format!("{line}; s_setpc_b64 s[30:31]");
        let [a, b] = ["v_bfe_i32 v1, v1, 0, 1", "v_bfe_i32 v1, v0, 0, 1"].map(function);
        let live = Some(wavesim_prove::Live::Registers(wavesim_prove::register("v1").into_iter().collect()));
        let Some(verdict) = ask(setup.clone(), [&a, &b], &[], live) else { return };
        let Ok(Verdict::Differ(example)) = verdict else { panic!("{verdict:?}") };
        assert!(example.outputs.iter().all(|one| one.name.starts_with("v1")), "{example:?}");
        // A register that is no result may differ; the address of the code is the same in both.
        let [a, b] = ["v_mov_b32 v9, 1", "v_mov_b32 v9, 2"].map(function);
        let Some(verdict) = ask(setup.clone(), [&a, &b], &[], None) else { return };
        assert_eq!(verdict.expect("an answer"), Verdict::Equal);
        let pc = |shift: &str| function(&format!("s_getpc_b64 s[0:1]; v_lshlrev_b32 v0, {shift}, s0"));
        let Some(verdict) = ask(setup, [&pc("1"), &pc("2")], &[], None) else { return };
        assert!(matches!(verdict, Ok(Verdict::Differ(_))), "{verdict:?}");
    }
}

/// What is missing for a proof about memory is said.
#[test]
fn a_missing_assumption_is_named() {
    let setup = Setup::new(Arch::Rdna3, 32);
    let a = "global_store_b32 v[0:1], v2, off; global_load_b32 v4, v[6:7], off";
    let b = "global_load_b32 v4, v[6:7], off; global_store_b32 v[0:1], v2, off";
    let Some(verdict) = ask_within(1, setup.clone(), [a, b], &[], None) else { return };
    match verdict.expect("an answer") {
        Verdict::Unknown(why) => assert!(why.contains("--assume 'v1 == 1 && v7 == 2'"), "{why}"),
        other => assert!(matches!(other, Verdict::Differ(_)), "{other:?}"),
    }
    let Some(endless) = ask_within(1, setup, ["s_branch 65535", "s_nop 0"], &[], None) else { return };
    assert_eq!(
        endless.expect_err("a refusal").to_string(),
        "s_branch: no path ends within 8 iterations (--unroll)"
    );
}

/// Stores through two pointers in another order: equal only if they do not overlap.
#[test]
fn pointers_may_be_apart() {
    // The first question of a pair, without the assumption, takes the whole limit.
    let setup = Setup { full_exec: true, ..Setup::new(Arch::Rdna3, 32) };
    let a = "global_store_b32 v0, v1, s[0:1]; global_store_b32 v0, v2, s[2:3]";
    let b = "global_store_b32 v0, v2, s[2:3]; global_store_b32 v0, v1, s[0:1]";
    let live = Some(wavesim_prove::Live::Memory);
    let Some(verdict) = ask_within(2, Setup { apart: true, ..setup.clone() }, [a, b], &[], live.clone())
    else {
        return;
    };
    assert_eq!(verdict.expect("an answer"), Verdict::EqualApart);
    // A load between them, through one of them, and other stored values.
    let a = "global_store_b32 v0, v1, s[0:1]; global_load_b32 v2, v0, s[2:3]; s_waitcnt vmcnt(0)";
    let b = "global_load_b32 v2, v0, s[2:3]; s_waitcnt vmcnt(0); global_store_b32 v0, v1, s[0:1]";
    let Some(verdict) = ask_within(2, Setup { apart: true, ..setup.clone() }, [a, b], &[], None) else {
        return;
    };
    assert_eq!(verdict.expect("an answer"), Verdict::EqualApart);
    let c = "global_load_b32 v2, v0, s[2:3]; s_waitcnt vmcnt(0); global_store_b32 v0, v2, s[0:1]";
    let Some(verdict) = ask_within(2, Setup { apart: true, ..setup }, [a, c], &[], None) else { return };
    assert!(matches!(verdict, Ok(Verdict::Differ(_) | Verdict::Unknown(_))), "{verdict:?}");
}
