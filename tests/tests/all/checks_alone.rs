//! A check that runs alone reports the same findings as when it runs with all others. Checks share
//! bookkeeping, parts of which are skipped when no active check needs them.

use clap::Parser;
use std::path::Path;
use wavesim::check::{Check, Checker, Finding, GUARD_BYTES};
use wavesim::cli::{self, Cli, Command};
use wavesim_tests::root;

/// Returns the arguments in the first line of a file of `filetests/check`; those that name a file are relative to the root.
fn arguments(source: &str) -> Vec<String> {
    let line = source.lines().next().and_then(|l| l.strip_prefix("; args: ")).unwrap_or("");
    let absolute = |word: &str| Some(root().join(word)).filter(|path| path.is_file());
    line.split_whitespace()
        .map(|word| absolute(word).map_or_else(|| word.to_string(), |path| path.display().to_string()))
        .collect()
}

/// Returns the findings of some checks in a file of `filetests/check`, and whether the run ended in a fault.
fn findings(path: &Path, checks: &[Check]) -> (Vec<Finding>, bool) {
    let source = std::fs::read_to_string(path).unwrap();
    let (name, arguments) = (path.display().to_string(), arguments(&source));
    let words = ["wavesim", "check", &name].into_iter().chain(arguments.iter().map(String::as_str));
    let cli = Cli::try_parse_from(words).unwrap();
    let Command::Check(args) = cli.command else { panic!("not a check") };
    let prepared = args.input.prepare(GUARD_BYTES).unwrap_or_else(|e| panic!("{name}: {e:#}"));
    let dispatch = args.input.dispatch(&prepared).unwrap();
    let checks: Vec<Check> =
        checks.iter().copied().filter(|c| Check::of(prepared.program.arch).contains(c)).collect();
    if checks.is_empty() {
        return (Vec::new(), false);
    }
    let mut checker = Checker::new(&prepared, &checks).unwrap();
    let fault = checker.run(&dispatch).1.err();
    (checker.finish(fault.as_deref()), fault.is_some())
}

#[test]
fn checks_find_the_same_alone() {
    let folder = root().join("tests/filetests/check");
    let mut failures = Vec::new();
    let mut compared = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|e| e != "rdna") {
            continue;
        }
        let (default, fault) = findings(&path, &Check::DEFAULT);
        let (all, _) = findings(&path, &Check::ALL);
        for check in Check::ALL {
            // `lanes` makes errors of its own of some notes of `race`.
            let all = if Check::DEFAULT.contains(&check) { &default } else { &all };
            let mut alone = findings(&path, &[check]);
            if alone.1 && !fault {
                // Without the memory check, the first out-of-bounds access ends the run.
                alone = findings(&path, &[check, Check::Mem]);
            }
            if let Some(other) = alone.0.iter().find(|f| f.check != check && f.check != Check::Mem) {
                failures.push(format!("{}: {other}", check.name()));
            }
            let of_kind = |list: &[Finding]| -> Vec<String> {
                let mut list: Vec<String> =
                    list.iter().filter(|f| f.check == check).map(Finding::to_string).collect();
                list.sort();
                list
            };
            let (expected, found) = (of_kind(all), of_kind(&alone.0));
            compared += expected.len();
            if expected != found {
                let name = path.file_name().unwrap_or_default().display();
                let (expected, found) = (expected.join("\n"), found.join("\n"));
                failures
                    .push(format!("{name}: {}\n--- with all\n{expected}\n--- alone\n{found}", check.name()));
            }
        }
    }
    assert!(compared > 300, "{compared} findings");
    assert!(failures.is_empty(), "{} of them differ:\n{}", failures.len(), failures.join("\n\n"));
}

/// Returns the output of `wavesim check` on a file, without the lanes of earlier accesses and the numbers of
/// occurrences. If several lanes access the same address, any of them may be reported.
fn printed(path: &str, more: &[&str]) -> String {
    let source = std::fs::read_to_string(path).unwrap();
    let arguments = arguments(&source);
    let words = ["wavesim", "check", path].into_iter().chain(arguments.iter().map(String::as_str));
    let cli = Cli::try_parse_from(words.chain(more.iter().copied())).unwrap();
    let mut out = Vec::new();
    let code = cli::dispatch(&cli.command, &mut out).unwrap_or_else(|e| panic!("{path}: {e:#}"));
    let text = String::from_utf8(out).expect("text");
    let lines = text.lines().filter(|line| !line.contains("= seen "));
    let lines =
        lines.map(|line| if line.contains("  earlier ") { line.split(", lane ").next() } else { Some(line) });
    format!("{}\nexit {code}", lines.flatten().collect::<Vec<_>>().join("\n"))
}

/// Checks observe loads and stores whose semantics are supplied at run time. The test supplies the project's
/// own semantics.
#[test]
fn accesses_of_supplied_semantics_are_checked() {
    let own: Vec<String> = ["load_store", "scalar_load"]
        .iter()
        .map(|name| std::fs::read_to_string(root().join(format!("pseudocode/memory/{name}.pcode"))).unwrap())
        .collect();
    let given = crate::temporary(module_path!(), "memory.pcode");
    std::fs::write(&given, own.concat()).expect("writable");
    let given = given.display().to_string();
    let of =
        |folder: &str| std::fs::read_dir(root().join(folder)).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<String> = of("tests/filetests/check")
        .filter(|path| path.extension().is_some_and(|e| e == "rdna"))
        .map(|path| path.display().to_string())
        .collect();
    files.sort();
    let mut found = 0;
    for file in files.iter().step_by(6) {
        let (plain, evaluated) = (printed(file, &[]), printed(file, &["--semantics", &given]));
        found += plain.ends_with("exit 1") as usize;
        assert_eq!(plain, evaluated, "{file}");
    }
    assert!(found > 30, "{found} files with findings");
}
