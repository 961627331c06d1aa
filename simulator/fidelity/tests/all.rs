//! Inexact values of small kernels: what they reach, and by how much perturbed runs differ.

use isa_exactness::{Aspect, Bound, Class};
use std::sync::Arc;
use wavesim_engine::sched::dispatch;
use wavesim_fidelity::Fidelity;
use wavesim_fidelity::origin::Cause;
use wavesim_fidelity::perturb::{Baseline, Differences, End, perturb};
use wavesim_fidelity::report::{Reached, Report};
use wavesim_fidelity::ulp::Distance;
use wavesim_loader::prepared::Prepared;
use wavesim_loader::text_kernel::{self, Options};

/// The header of a kernel of one wave, with s[4:5] and s[6:7] the addresses of `arg_x` and `out_y`, and v0 the offset
/// of a lane's element. The body begins at line 12.
const HEAD: &str = "\
---
arg_x: f32[32] = arange(1, 33)
out_y: f32[32]
local = 32, 1, 1
global = 1, 1, 1
---
  s_load_b128 s[4:7], s[3:4], 0
  v_lshlrev_b32 v0, 2, v0
  s_waitcnt lgkmcnt(0)
  global_load_b32 v1, v0, s[4:5]
  s_waitcnt vmcnt(0)
";

fn prepare(source: &str) -> Prepared {
    text_kernel::prepare("k.rdna", source, &Options::default(), 0).unwrap_or_else(|e| panic!("{e}"))
}

fn observe(prepared: &Prepared) -> (Report, Vec<u64>) {
    let mut fidelity = Fidelity::new(prepared);
    let dispatch = prepared.dispatch(1 << 20);
    let (_, result) = dispatch::run_observed(&dispatch, &prepared.memory, &mut fidelity);
    result.unwrap();
    let counts = fidelity.counts().to_vec();
    (fidelity.report(Vec::new()), counts)
}

fn report(body: &str) -> Report {
    observe(&prepare(&format!("{HEAD}{body}  s_endpgm\n"))).0
}

/// Lines, and the classes of the results there.
type Origins = Vec<(u32, Class)>;

/// What has been reached: its kind, its line, and the lines and classes that it comes from.
fn reached(report: &Report) -> Vec<(String, u32, Origins)> {
    let one = |(reached, from): &(Reached, Vec<_>)| {
        let (what, line) = match reached {
            Reached::Output { name, elements, stored_by, .. } => {
                (format!("{name} {elements}"), stored_by.line)
            }
            Reached::Sink { sink, at, .. } => (sink.name().to_string(), at.line),
        };
        let from = from
            .iter()
            .map(|(place, cause): &(wavesim_fidelity::report::Place, Cause)| (place.line, cause.class()));
        (what, line, from.collect())
    };
    report.reached.iter().map(one).collect()
}

fn perturbed(source: &str) -> Differences {
    let prepared = prepare(source);
    let before = prepared.memory.snapshot();
    let (_, counts) = observe(&prepared);
    let outputs = prepared.outputs().unwrap().into_iter().map(|(name, array)| (name.to_string(), array));
    let baseline = Baseline { outputs: outputs.collect(), counts };
    let mut prepared = prepared;
    let mut differences = Differences::default();
    let all = End::ALL.map(|end| (end, perturb(&prepared.program, end, None)));
    for (end, perturbed) in all {
        let Some(overrides) = perturbed.overrides else { continue };
        prepared.memory.restore(&before);
        prepared.program.replace_semantics(Arc::new(overrides));
        differences.add(end, &prepared, &prepared.dispatch(1 << 20), &baseline).unwrap();
    }
    differences
}

const APPROXIMATE: Class = Class::Approximate;

#[test]
fn a_reciprocal_reaches_an_output() {
    let report = report("  v_rcp_f32 v2, v1\n  v_mul_f32 v3, 2.0, v2\n  global_store_b32 v0, v3, s[6:7]\n");
    assert_eq!(reached(&report), [("out_y 32".to_string(), 14, vec![(12, APPROXIMATE)])]);
    let [row] = &report.inexact[..] else { panic!("{:?}", report.inexact) };
    assert_eq!((row.place.line, row.cause), (12, Cause::Approximation(Bound::Ulp(1))));
    assert_eq!((row.executed, row.results), (1, 32));
    assert_eq!(report.executed[&Class::Approximate], 1);
    let text = report.text();
    assert!(text.contains("output out_y: 32 of 32 elements"), "{text}");
    assert!(text.contains("from v_rcp_f32_e32 at line 12 (1 ULP)"), "{text}");
    assert_eq!(report.json()["reached"][0]["from"][0]["line"], 12);
}

#[test]
fn a_reciprocal_reaches_a_branch_exec_and_an_address() {
    let branch = report(
        "  v_rcp_f32 v2, v1\n  v_cmp_lt_f32 vcc_lo, v2, 0.5\n  s_cbranch_vccz done\n  v_mov_b32 v4, 1\ndone:\n",
    );
    assert_eq!(reached(&branch), [("branch".to_string(), 14, vec![(12, APPROXIMATE)])]);
    let exec = report("  v_rcp_f32 v2, v1\n  v_cmpx_lt_f32 v2, 0.5\n  global_store_b32 v0, v1, s[6:7]\n");
    assert_eq!(reached(&exec), [("EXEC".to_string(), 13, vec![(12, APPROXIMATE)])]);
    let saved =
        report("  v_rcp_f32 v2, v1\n  v_cmp_lt_f32 vcc_lo, v2, 0.5\n  s_and_saveexec_b32 s10, vcc_lo\n");
    assert_eq!(reached(&saved), [("EXEC".to_string(), 14, vec![(12, APPROXIMATE)])]);
    let address = report(
        "  v_rcp_f32 v2, v1\n  v_cvt_u32_f32 v3, v2\n  v_lshlrev_b32 v3, 2, v3\n  global_load_b32 v4, v3, s[4:5]\n  s_waitcnt vmcnt(0)\n",
    );
    assert_eq!(reached(&address), [("address".to_string(), 15, vec![(12, APPROXIMATE)])]);
}

#[test]
fn what_does_not_depend_on_an_inexact_value_is_exact() {
    // Masked out, not selected, overwritten; a special value.
    for body in [
        "  v_rcp_f32 v2, v1\n  v_and_b32 v3, 0, v2\n  global_store_b32 v0, v3, s[6:7]\n",
        "  v_rcp_f32 v2, v1\n  s_mov_b32 vcc_lo, 0\n  v_cndmask_b32 v3, v1, v2, vcc_lo\n  global_store_b32 v0, v3, s[6:7]\n",
        "  v_rcp_f32 v2, v1\n  v_mov_b32 v2, 1.0\n  global_store_b32 v0, v2, s[6:7]\n",
        "  v_mov_b32 v1, 0\n  v_rcp_f32 v2, v1\n  global_store_b32 v0, v2, s[6:7]\n",
        "  v_rcp_f32 v2, v1\n  global_store_b32 v0, v2, s[6:7]\n  global_store_b32 v0, v1, s[6:7]\n",
    ] {
        let report = report(body);
        assert_eq!(reached(&report), [], "{body}");
    }
    let text = report("  v_add_f32 v2, v1, v1\n  global_store_b32 v0, v2, s[6:7]\n").text();
    assert!(
        text.ends_with("no inexact value has reached an output, an address, a branch or EXEC\n"),
        "{text}"
    );
}

#[test]
fn values_are_followed_through_lds_and_global_memory() {
    let lds = "  v_rcp_f32 v2, v1\n  ds_store_b32 v0, v2\n  v_xor_b32 v5, 4, v0\n  s_waitcnt lgkmcnt(0)\n  \
        ds_load_b32 v3, v5\n  s_waitcnt lgkmcnt(0)\n  global_store_b32 v0, v3, s[6:7]\n";
    let head = HEAD.replace("local = 32", "lds = 128\nlocal = 32");
    let (report, _) = observe(&prepare(&format!("{head}{lds}  s_endpgm\n")));
    assert_eq!(reached(&report), [("out_y 32".to_string(), 19, vec![(13, APPROXIMATE)])]);
    // A byte of the value, through global memory.
    let report = self::report(
        "  v_rcp_f32 v2, v1\n  global_store_b32 v0, v2, s[4:5]\n  s_waitcnt vmcnt(0)\n  \
         global_load_u8 v3, v0, s[4:5]\n  s_waitcnt vmcnt(0)\n  global_store_b8 v0, v3, s[6:7]\n",
    );
    assert_eq!(reached(&report), [("out_y 32".to_string(), 17, vec![(12, APPROXIMATE)])]);
}

#[test]
fn sums_in_memory_depend_on_the_order() {
    // All lanes add to one element; each lane to its own.
    let one = report("  v_mov_b32 v3, 0\n  global_atomic_add_f32 v3, v1, s[6:7]\n");
    assert_eq!(reached(&one), [("out_y 1".to_string(), 13, vec![(13, Class::OrderDependent)])]);
    assert_eq!(one.inexact[0].results, 31);
    let own = report("  global_atomic_add_f32 v0, v1, s[6:7]\n");
    assert_eq!(reached(&own), []);
    let integers = report("  v_mov_b32 v3, 0\n  global_atomic_add_u32 v3, v1, s[6:7]\n");
    assert_eq!((reached(&integers), integers.inexact.len()), (Vec::new(), 0));
}

#[test]
fn special_cases_are_implementation_defined() {
    let left = Class::ImplementationDefined;
    let convert =
        report("  v_mul_f32 v2, 0x4e800000, v1\n  v_cvt_i32_f32 v3, v2\n  global_store_b32 v0, v3, s[6:7]\n");
    // 2^30 times 1 is in range, times 2 and more is not.
    assert_eq!(reached(&convert), [("out_y 31".to_string(), 14, vec![(13, left)])]);
    assert_eq!(convert.inexact[0].cause, Cause::Left(Aspect::Conversion));
    let nan =
        report("  v_mov_b32 v2, 0x7f800000\n  v_sub_f32 v3, v2, v2\n  global_store_b32 v0, v3, s[6:7]\n");
    assert_eq!(reached(&nan), [("out_y 32".to_string(), 14, vec![(13, left)])]);
    // Whether it is a NaN is specified.
    let class = report(
        "  v_mov_b32 v2, 0x7f800000\n  v_sub_f32 v3, v2, v2\n  v_cmp_u_f32 vcc_lo, v3, v3\n  v_cndmask_b32 v4, 0, 1, vcc_lo\n  global_store_b32 v0, v4, s[6:7]\n",
    );
    assert_eq!(reached(&class), []);
    let sum = report("  v_dot2_f32_f16 v2, v1, v1, v1\n  global_store_b32 v0, v2, s[6:7]\n");
    assert_eq!(reached(&sum), [("out_y 32".to_string(), 13, vec![(12, left)])]);
}

#[test]
fn perturbation_shows_the_documented_error() {
    let body = "  v_rcp_f32 v2, v1\n  global_store_b32 v0, v2, s[6:7]\n  s_endpgm\n";
    let differences = perturbed(&format!("{HEAD}{body}"));
    assert_eq!(differences.runs, 4);
    let [output] = &differences.outputs[..] else { panic!("no difference") };
    assert_eq!((output.largest.distance, output.largest.differing), (Distance::Ulp(1), 32));
    assert!(differences.control.is_none() && differences.faults.is_empty());
}

#[test]
fn perturbation_of_an_exact_kernel_changes_nothing() {
    let body = "  v_fma_f32 v2, v1, v1, v1\n  global_store_b32 v0, v2, s[6:7]\n  s_endpgm\n";
    let differences = perturbed(&format!("{HEAD}{body}"));
    assert_eq!((differences.runs, differences.outputs.len()), (0, 0));
    // Exact in the end: only the exponent is used.
    let body = "  v_mul_f32 v1, 0x3fa00000, v1\n  v_rcp_f32 v2, v1\n  v_frexp_exp_i32_f32 v2, v2\n  \
        global_store_b32 v0, v2, s[6:7]\n  s_endpgm\n";
    let differences = perturbed(&format!("{HEAD}{body}"));
    assert_eq!((differences.runs, differences.outputs.len()), (4, 0));
}

#[test]
fn perturbation_changes_branches() {
    let body = "  v_mov_b32 v1, 2.0\n  v_rcp_f32 v2, v1\n  v_cmp_gt_f32 vcc_lo, 0.5, v2\n  s_cbranch_vccz done\n  \
        v_mov_b32 v4, 1\ndone:\n  s_endpgm\n";
    let differences = perturbed(&format!("{HEAD}{body}"));
    let (index, end, before, after) = differences.control.unwrap();
    assert_eq!((end, before, after), (End::Low, 0, 1));
    assert!(index > 0);
}
