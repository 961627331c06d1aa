//! Remarks about code.

use wavesim_cost::lint::{self, Remark};
use wavesim_isa::arch::Arch;
use wavesim_loader::text_kernel::{self, Options};

fn remarks(arch: Arch, header: &str, code: &str) -> Vec<Remark> {
    let text = format!("---\n{header}local = 32, 1, 1\nglobal = 1, 1, 1\n---\n{code}\n  s_endpgm\n");
    let options = Options { arch: Some(arch), ..Options::default() };
    let prepared = text_kernel::prepare("k.rdna", &text, &options, 0).expect("a kernel");
    lint::lint(&prepared, "k.rdna").expect("costs").remarks
}

fn rules(arch: Arch, code: &str) -> Vec<&'static str> {
    remarks(arch, "", code).iter().map(|r| r.rule).filter(|r| *r != "occupancy").collect()
}

#[test]
fn missed_dual_instructions_are_reported_with_the_instruction() {
    let all = remarks(Arch::Rdna3, "", "  v_mul_f32 v4, v1, v2\n  v_add_f32 v5, v2, v3");
    let dual = all.iter().find(|r| r.rule == "dual-issue").expect("a remark");
    assert_eq!(dual.help.as_deref(), Some("`v_dual_mul_f32 v4, v1, v2 :: v_dual_add_f32 v5, v2, v3`"));
    // The second uses the first.
    assert!(!rules(Arch::Rdna3, "  v_mul_f32 v4, v1, v2\n  v_add_f32 v5, v4, v3").contains(&"dual-issue"));
    // First sources in the same bank.
    let banks = rules(Arch::Rdna3, "  v_mul_f32 v4, v1, v2\n  v_add_f32 v5, v9, v3");
    assert!(banks.contains(&"register-banks"), "{banks:?}");
    // Waves of 64 lanes have none.
    assert!(rules(Arch::Cdna3, "  v_mul_f32 v4, v1, v2\n  v_add_f32 v5, v2, v3").is_empty());
}

#[test]
fn delays_are_judged() {
    let missing = rules(Arch::Rdna3, "  v_mul_f32 v4, v1, v2\n  v_add_f32 v5, v4, v3");
    assert_eq!(missing, ["missing-delay"]);
    let code = "  v_mul_f32 v4, v1, v2\n  s_delay_alu instid0(VALU_DEP_1)\n  v_add_f32 v5, v4, v3";
    assert!(rules(Arch::Rdna3, code).is_empty());
    let code = "  v_mul_f32 v4, v1, v2\n  s_delay_alu instid0(VALU_DEP_1)\n  v_add_f32 v8, v1, v3";
    assert!(rules(Arch::Rdna3, code).contains(&"needless-delay"));
}

#[test]
fn strict_waits_are_reported_with_the_one_that_is_enough() {
    let header = "arg_x: u32[256] = repeat(1)\n";
    let code = "  global_load_b32 v1, v0, s[4:5]
  global_load_b32 v2, v0, s[4:5] offset:128
  s_waitcnt vmcnt(0)
  v_add_nc_u32 v3, v1, 1
  s_waitcnt vmcnt(0)
  v_add_nc_u32 v4, v2, 1";
    let all = remarks(Arch::Rdna3, header, code);
    let strict = all.iter().find(|r| r.rule == "strict-wait").expect("a remark");
    assert_eq!(strict.help.as_deref(), Some("`s_waitcnt vmcnt(1)` is enough"));
    let needed = code.replacen("vmcnt(0)", "vmcnt(1)", 1);
    assert!(remarks(Arch::Rdna3, header, &needed).iter().all(|r| r.rule != "strict-wait"));
}

/// What is known of the whole program is computed once, not for each of its blocks, which took hours here.
#[test]
fn long_code_is_judged_in_seconds() {
    let block = |n: u32| {
        format!(
            "b{n}:\n  s_cmp_eq_u32 s4, {}\n  s_cbranch_scc1 b{}\n  global_load_b32 v2, v1, s[4:5]\n  s_waitcnt vmcnt(0)\n",
            n % 60,
            n + 1
        )
    };
    let code: String = (0..4000).map(block).collect();
    let started = std::time::Instant::now();
    let found = rules(Arch::Rdna3, &format!("{code}b4000:\n  s_nop 0"));
    assert!(!found.contains(&"strict-wait"), "{found:?}");
    assert!(started.elapsed().as_secs() < 60, "{:?}", started.elapsed());
}

#[test]
fn remarks_become_sarif_and_lines() {
    let text = "---\nlocal = 32, 1, 1\nglobal = 1, 1, 1\n---\n  v_mul_f32 v4, v1, v2\n  v_add_f32 v5, v2, v3\n  s_endpgm\n";
    let prepared = text_kernel::prepare("k.rdna", text, &Options::default(), 0).expect("a kernel");
    let lint = lint::lint(&prepared, "k.rdna").expect("costs");
    assert!(lint.to_string().contains("k.rdna:5: warning: `v_mul_f32_e32 v4, v1, v2`"), "{lint}");
    let log = lint::sarif_of_files(&[lint], "1");
    let results = log["runs"][0]["results"].as_array().expect("results");
    assert!(results.iter().any(|r| r["ruleId"] == "lint/dual-issue" && r["level"] == "warning"), "{log:#}");
}
