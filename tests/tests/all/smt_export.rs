//! `wavesim isa export --format smtlib`: solvers read it, and prove that its functions equal the reference evaluator on
//! the operands of conformance vectors.

use isa_spec::data::files_below;
use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use wavesim::arch::Arch;
use wavesim::conform::{self, Engine};
use wavesim::isa;
use wavesim_tests::smt_export::{self, OperationFunctions};
use wavesim_tests::{root, wavesim};

/// Solvers, with the arguments by which they read a script from standard input.
const SOLVERS: [(&str, &[&str]); 3] = [
    ("z3", &["-in"]),
    ("cvc5", &["--lang=smt2", "--incremental", "--fp-exp"]),
    ("bitwuzla", &["--lang=smt2", "/dev/stdin"]),
];

/// What a solver says of a script; `None` if it is not installed.
fn answers(solver: (&str, &[&str]), script: &str) -> Option<String> {
    let mut child = Command::new(solver.0)
        .args(solver.1)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .ok()?;
    let mut stdin = child.stdin.take()?;
    let script = script.to_string();
    let writer = std::thread::spawn(move || stdin.write_all(script.as_bytes()));
    let output = child.wait_with_output().ok()?;
    let _ = writer.join();
    Some(String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr))
}

fn export(arguments: &[&str]) -> String {
    let (code, text) = wavesim(&[&["isa", "export", "--format", "smtlib"], arguments].concat());
    assert_eq!(code, 0, "{text}");
    text
}

/// The executions that an architecture's vectors have of each of its instructions' bodies, by the functions' names.
fn cases(arch: Arch, folder: &Path) -> BTreeMap<String, Vec<smt_export::Case>> {
    for file in files_below(folder, "gz") {
        for record in conform::read_file(&file).unwrap() {
            conform::run(&record, arch, Engine::Evaluator(smt_export::record), &BTreeMap::new());
        }
    }
    let taken = smt_export::taken();
    let mut cases = BTreeMap::new();
    for (at, instruction) in arch.table().instructions.iter().enumerate() {
        if let Some(operation) = isa::number(arch, at).and_then(isa::operation)
            && let Some(list) = taken.get(&(std::ptr::from_ref(&operation.sem) as usize))
        {
            let name = format!("{}_{}", arch.table().name, instruction.name.to_lowercase());
            cases.insert(name, list.iter().cloned().collect());
        }
    }
    cases
}

/// Asks all solvers about all cases of some operations. Returns the number of cases.
fn check(
    text: &str,
    groups: &[OperationFunctions],
    cases: &BTreeMap<String, Vec<smt_export::Case>>,
) -> usize {
    let mut script = text.to_string();
    let mut asked = Vec::new();
    for group in groups.iter().filter(|group| !group.unknown) {
        for case in cases.get(&group.name).into_iter().flatten() {
            script += &smt_export::question(group, case);
            asked.push((group, case));
        }
    }
    for solver in SOLVERS {
        let Some(said) = answers(solver, &script) else {
            println!("skipped: {} is not installed", solver.0);
            continue;
        };
        let lines: Vec<&str> = said.lines().collect();
        for (line, (group, case)) in lines.iter().zip(&asked) {
            assert_eq!(*line, "unsat", "{} of {}: {case:?}", solver.0, group.name);
        }
        assert_eq!(lines.len(), asked.len(), "{}: {:?}", solver.0, lines.last());
    }
    asked.len()
}

const INSTRUCTIONS: [&str; 10] = [
    "v_bfe_u32",
    "v_add_co_ci_u32",
    "v_fma_f32",
    "v_cmp_lt_i32",
    "v_readlane_b32",
    "s_add_u32",
    "s_bcnt1_i32_b32",
    "ds_add_rtn_u32",
    "global_load_b64",
    "v_cvt_f16_f32",
];

#[test]
fn ten_instructions() {
    let text = export(&[&["--arch", "rdna3"], &INSTRUCTIONS[..]].concat());
    wavesim_golden::check(&root().join("tests/filetests/export/rdna3.smt2"), &text);
    for solver in SOLVERS {
        match answers(solver, &text) {
            Some(said) => assert_eq!(said, "", "{}", solver.0),
            None => println!("skipped: {} is not installed", solver.0),
        }
    }
    let cases = cases(Arch::Rdna3, &root().join("tests/filetests/vectors/rdna3"));
    let count = check(&text, &smt_export::groups(&text), &cases);
    assert!(count > 20 * 7, "{count} cases");
}

/// All operations of an architecture that the vectors of the tree cover.
#[test]
#[ignore = "takes minutes: a nightly test"]
fn all_instructions() {
    for arch in [Arch::Rdna3, Arch::Rdna4, Arch::Cdna4] {
        let name = arch.table().name;
        let text = export(&["--arch", name]);
        let groups = smt_export::groups(&text);
        let cases = cases(arch, &root().join("tests/filetests/vectors").join(name));
        let count = check(&text, &groups, &cases);
        println!("{name}: {} operations, {count} cases", groups.len());
        assert!(count > 10_000, "{count} cases");
    }
}
