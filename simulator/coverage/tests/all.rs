//! Coverage of small kernels, and the laws of merging.

use proptest::prelude::*;
use std::process::Command;
use wavesim_coverage::file::{Coverage, CoverageError, Instruction, Program};
use wavesim_coverage::report::Totals;
use wavesim_coverage::{Recorder, html, lcov, lines, report};
use wavesim_engine::sched::dispatch;
use wavesim_loader::text_kernel::{self, Options};

/// Half of the lanes take the branch; the last block never runs.
const SOURCE: &str = "\
---
out_y: u32[32]
local = 32, 1, 1
global = 2, 1, 1
---
  s_load_b64 s[4:5], s[3:4], 0
  v_cmp_gt_u32 vcc_lo, 16, v0
  s_and_saveexec_b32 s6, vcc_lo
  v_mov_b32 v1, 0x12345
  s_mov_b32 exec_lo, s6
  s_cbranch_vccnz done
  v_add_f32 v1, -v1, v1 clamp
done:
  s_cmp_eq_u32 s4, s4
  s_cbranch_scc0 never
  s_endpgm
never:
  v_mov_b32 v1, 0
  s_endpgm
";

fn record(source: &str) -> Coverage {
    let prepared =
        text_kernel::prepare("k.rdna", source, &Options::default(), 0).unwrap_or_else(|e| panic!("{e}"));
    let mut recorder = Recorder::new(&prepared, "k");
    let dispatch = prepared.dispatch(1 << 20);
    let (_, result) = dispatch::run_observed(&dispatch, &prepared.memory, &mut recorder);
    result.unwrap();
    recorder.finish()
}

#[test]
fn lines_branches_and_lanes_are_counted() {
    let coverage = record(SOURCE);
    let [program] = &coverage.programs[..] else { panic!("{coverage:?}") };
    assert_eq!((program.waves, program.launches, coverage.launches), (2, 1, 1));
    let files = lines::by_file(&coverage);
    let file = &files["k.rdna"];
    let line = |number: u32| &file.lines[&number];
    assert_eq!((line(9).executed, line(9).lanes), (2, [32, 64]));
    assert_eq!((line(12).executed, line(18).executed), (0, 0));
    assert_eq!((&line(11).branches[..], &line(14).branches[..]), (&[[2, 0]][..], &[][..]));
    assert_eq!(line(15).branches, [[0, 2]]);
    assert_eq!(file.missing(), [(12, 12), (18, 19)]);
    assert_eq!((file.line_share().covered, file.line_share().total), (9, 12));
    assert_eq!((file.branch_share().covered, file.branch_share().total), (2, 4));
    let inst = program.instructions.iter().find(|inst| inst.line == 9).unwrap();
    assert_eq!(inst.lane_mask, 0xffff);
}

#[test]
fn kinds_are_counted() {
    let coverage = record(SOURCE);
    let totals = Totals::of(&coverage);
    assert_eq!(totals.mnemonics["v_mov_b32_e32"], 2, "{:?}", totals.mnemonics);
    assert!(totals.mnemonics.iter().any(|(name, count)| name.starts_with("v_add_f32") && *count == 0));
    assert_eq!(totals.modifiers.get("clamp"), Some(&0), "{:?}", totals.modifiers);
    assert_eq!(totals.operands["source literal"], 2, "{:?}", totals.operands);
    assert!(totals.operands.contains_key("result VGPR") && totals.operands.contains_key("source SGPR"));
    assert!(totals.modes.keys().any(|name| name.starts_with("f32 rounded to nearest")), "{:?}", totals.modes);
    assert!(totals.encodings.contains_key("vop1"), "{:?}", totals.encodings);
    let text = report::text(&coverage);
    assert!(text.contains("  not run     12, 18-19\n") && text.contains("  one way     11, 15\n"), "{text}");
    let json = report::json(&coverage);
    assert_eq!(json["files"]["k.rdna"]["counts"]["9"]["executed"], 2);
}

#[test]
fn files_are_read_as_they_are_written() {
    let coverage = record(SOURCE);
    assert_eq!(Coverage::parse(&coverage.text()).unwrap(), coverage);
    let newer = coverage.text().replace("wavesim-run-coverage-1", "wavesim-run-coverage-2");
    assert_eq!(
        Coverage::parse(&newer).unwrap_err().to_string(),
        "a coverage file of another version: wavesim-run-coverage-2; this wavesim reads wavesim-run-coverage-1"
    );
    for text in ["", "{}", "[1]", "{\"schema\":\"wavesim-run-1\"}", &coverage.text()[..200]] {
        assert!(matches!(Coverage::parse(text), Err(CoverageError::Form(_))), "{text}");
    }
    // The same program under one identity, truncated.
    let mut other = coverage.clone();
    other.programs[0].instructions.pop();
    let error = coverage.clone().merge(&other).unwrap_err();
    assert!(matches!(error, CoverageError::Conflict { .. }), "{error}");
}

#[test]
fn a_changed_kernel_is_another_program() {
    let mut both = record(SOURCE);
    both.merge(&record(&SOURCE.replace("0x12345", "0x54321"))).unwrap();
    assert_eq!((both.programs.len(), both.launches), (2, 2));
    both.merge(&record(SOURCE)).unwrap();
    assert_eq!((both.programs.len(), both.launches), (2, 3));
    assert_eq!(lines::by_file(&both)["k.rdna"].lines[&9].executed, 6);
}

#[test]
fn the_page_is_self_contained() {
    let coverage = record(SOURCE);
    let source = |name: &str| (name == "k.rdna").then(|| format!("{SOURCE}; <script>alert(1)</script>\n"));
    let page = html::page(&coverage, &source);
    assert!(!page.contains("http") && !page.contains("<script") && !page.contains("src="), "{page}");
    assert!(page.contains("<tr class=missing><td class=n>12<td class=n>0"), "{page}");
    assert!(
        page.contains("<tr class=partly><td class=n>11<td class=n>2<td class=n>100 %<td>2 taken, 0 not"),
        "{page}"
    );
    assert!(page.contains("&lt;script&gt;"));
    // Without the source, the lines with code.
    assert!(html::page(&coverage, &|_| None).contains("cannot be read"));
}

#[test]
fn genhtml_accepts_the_tracefile() {
    let folder = std::env::temp_dir().join(format!("wavesim-lcov-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("k.rdna"), SOURCE).unwrap();
    let text = lcov::text(&record(SOURCE));
    for line in [
        "SF:k.rdna",
        "FN:6,k",
        "FNDA:2,k",
        "DA:9,2",
        "DA:12,0",
        "BRDA:11,0,0,2",
        "BRDA:15,0,0,0",
        "LF:12",
        "LH:9",
    ] {
        assert!(text.lines().any(|own| own == line), "{line} in\n{text}");
    }
    std::fs::write(folder.join("coverage.info"), text).unwrap();
    let run = Command::new("genhtml")
        .args(["--branch-coverage", "coverage.info", "--output-directory", "html"])
        .current_dir(&folder)
        .output();
    match run {
        Err(_) => println!("skipped: genhtml (lcov) is not installed"),
        Ok(run) => {
            let output = [run.stdout, run.stderr].concat();
            assert!(run.status.success(), "{}", String::from_utf8_lossy(&output));
            assert!(folder.join("html/index.html").exists());
        }
    }
    std::fs::remove_dir_all(&folder).unwrap();
}

fn programs() -> impl Strategy<Value = Coverage> {
    let instruction =
        (0u64..5, any::<u64>(), any::<u64>(), proptest::option::of(proptest::array::uniform2(any::<u64>())))
            .prop_map(|(executed, lanes, lane_mask, branch)| Instruction {
                text: "v_mov_b32 v0, v1".to_string(),
                executed,
                lanes,
                lane_mask,
                branch,
                ..Instruction::default()
            });
    let program = (
        0u8..3,
        proptest::collection::btree_map(any::<u8>(), any::<u64>(), 0..3),
        [instruction.clone(), instruction],
    )
        .prop_map(|(name, modes, instructions)| Program {
            name: format!("k{name}"),
            arch: "rdna3".to_string(),
            wave_size: 32,
            identity: "1".to_string(),
            launches: 1,
            waves: 3,
            modes,
            instructions: instructions.to_vec(),
        });
    proptest::collection::vec(program, 0..4).prop_map(|list| {
        let mut all = Coverage::default();
        for program in list {
            all.merge(&Coverage { launches: 1, programs: vec![program], ..Coverage::default() }).unwrap();
        }
        all
    })
}

fn merged(a: &Coverage, b: &Coverage) -> Coverage {
    let mut all = a.clone();
    all.merge(b).unwrap();
    all
}

proptest! {
    #[test]
    fn merging_is_associative_and_commutative(a in programs(), b in programs(), c in programs()) {
        prop_assert_eq!(merged(&merged(&a, &b), &c), merged(&a, &merged(&b, &c)));
        prop_assert_eq!(merged(&a, &b), merged(&b, &a));
        prop_assert_eq!(merged(&a, &Coverage::default()), a.clone());
        prop_assert_eq!(Coverage::parse(&a.text()).unwrap(), a);
    }
}
