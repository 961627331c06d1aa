//! Instructions that compute the same. Without a solver, these tests are skipped.

use std::time::Duration;
use wavesim_asm::describe;
use wavesim_isa::arch::Arch;
use wavesim_prove::{Found, Search, SearchError, Setup, Solver};

fn search(arch: Arch, name: &str, pairs: bool) -> Option<Result<Found, SearchError>> {
    let time = Duration::from_secs(60);
    let Ok(solver) = Solver::find(time) else {
        println!("skipped: no SMT solver");
        return None;
    };
    let (instruction, _) = describe::instruction(arch, name).expect(name);
    let setup = Setup::new(arch, arch.wave_sizes()[0]);
    Some(Search { setup, solver, pairs, time: Duration::from_secs(15), limit: 12 }.run(instruction))
}

/// The answers that are proven, each as text.
fn proven(found: &Found) -> Vec<String> {
    let all = found.equivalent.iter().filter(|one| one.proof.is_ok());
    all.map(|one| one.instructions.join("; ")).collect()
}

#[test]
fn a_constant_makes_other_instructions_the_same() {
    for arch in [Arch::Rdna3, Arch::Rdna4] {
        let Some(found) = search(arch, "v_xor_b32", false) else { return };
        let found = proven(&found.expect("a search"));
        assert!(found.contains(&"v_xor3_b32 v0, v1, v2, 0".to_string()), "{found:?}");
        assert!(found.contains(&"v_xad_u32 v0, v1, v2, 0".to_string()), "{found:?}");
        let Some(found) = search(arch, "v_lshrrev_b32", false) else { return };
        let found = proven(&found.expect("a search"));
        assert!(found.contains(&"v_alignbit_b32 v0, 0, v2, v1".to_string()), "{found:?}");
    }
}

/// SCC is a part of what scalar instructions compute.
#[test]
fn scalar_instructions_have_a_condition_code() {
    let Some(found) = search(Arch::Cdna3, "s_not_b32", false) else { return };
    let found = found.expect("a search");
    assert!(proven(&found).contains(&"s_xor_b32 s0, s1, -1".to_string()), "{found:?}");
    assert!(found.equivalent.iter().all(|one| !one.instructions[0].starts_with("s_sub")), "{found:?}");
}

#[test]
fn pairs_are_found() {
    let Some(found) = search(Arch::Rdna3, "v_lshl_add_u32", true) else { return };
    let found = proven(&found.expect("a search"));
    let sum = "v_lshlrev_b32 v0, v2, v1; v_add_nc_u32 v0, v0, v3".to_string();
    assert!(found.contains(&sum), "{found:?}");
}

#[test]
fn what_is_no_function_of_operands_is_refused() {
    for (name, why) in [
        ("global_load_b32", "global_load_b32: it accesses memory"),
        ("s_barrier", "s_barrier: it is no function of its operands"),
        ("v_readlane_b32", "v_readlane_b32: it sees other lanes, or works on the wave as a whole"),
    ] {
        let Some(found) = search(Arch::Rdna3, name, false) else { return };
        assert_eq!(found.expect_err(name).to_string(), why);
    }
}
