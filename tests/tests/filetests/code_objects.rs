//! `code_objects/x/launch.json`, `programs/x/launch.json` (random programs that have found an error), and those
//! of a larger set outside the repository, if available: on every target, the kernel computes the outputs that
//! the description expects, and `wavesim check` reports no findings.

use libtest_mimic::{Failed, Trial};
use std::path::Path;
use wavesim::arch::Processor;
use wavesim::files::Files;
use wavesim::jit::Jit;
use wavesim::loader::launch::{self, TargetSelection};
use wavesim::sched::dispatch;
use wavesim::sharing::{Threads, sharing};
use wavesim_tests::{shared, wavesim};

pub fn trials() -> Vec<Trial> {
    let mut trials = Vec::new();
    of("code_objects", Path::new("tests/filetests/code_objects"), &mut trials);
    assert!(trials.len() >= 16, "{} targets", trials.len());
    of("programs", Path::new("tests/filetests/programs"), &mut trials);
    // The second set has the same kernels for CDNA 5.
    for name in ["kernels", "kernels-cdna5"] {
        match shared(name) {
            Some(folder) => of(&name.replace("kernels", "shared").replace('-', "_"), &folder, &mut trials),
            None => eprintln!("skipped: no {name} below WAVESIM_SHARED or ../shared"),
        }
    }
    trials
}

/// Adds a test for each target of each launch description one level below a directory.
fn of(kind: &str, folder: &Path, trials: &mut Vec<Trial>) {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut launches: Vec<_> =
        entries.map(|e| e.path().join("launch.json")).filter(|p| p.is_file()).collect();
    launches.sort();
    for path in launches {
        let name = path.parent().and_then(Path::file_name).unwrap_or_default().to_string_lossy();
        let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        let json: serde_json::Value =
            serde_json::from_str(&text).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        let targets = json["code"].as_object().unwrap_or_else(|| panic!("{}: no code", path.display()));
        for target in targets.keys().filter(|t| Processor::from_name(t).is_some()) {
            let (path, target) = (path.to_string_lossy().into_owned(), target.clone());
            let checked = kind != "programs";
            trials.push(Trial::test(format!("{kind}::{name}::{target}"), move || {
                outputs(&path, &target, "interpreter")?;
                outputs(&path, &target, "jit")?;
                outputs(&path, &target, "auto")?;
                on_threads(&path, &target)?;
                if checked { clean(&path, &target) } else { thresholds(&path, &target) }
            }));
        }
    }
}

fn outputs(path: &str, target: &str, engine: &str) -> Result<(), Failed> {
    let arguments = ["launch", path, "--target", target, "--engine", engine, "--check", "--json"];
    let (code, out) = wavesim(&arguments);
    let result: serde_json::Value = serde_json::from_str(&out).map_err(|e| format!("{e}: {out}"))?;
    if code == 0 && result["check"]["passed"] == true {
        Ok(())
    } else {
        Err(result["check"].to_string().into())
    }
}

/// Runs kernels whose workgroups cannot observe one another on several threads, from the start.
fn on_threads(path: &str, target: &str) -> Result<(), Failed> {
    for compiled in [false, true] {
        let selection = TargetSelection::target(target);
        let loaded = launch::load(Path::new(path), &selection, &Files::any(), 8 << 20, 0)?;
        let prepared = &loaded.prepared;
        let code = if compiled { Jit::new(&prepared.program).ok() } else { None };
        let mut dispatch = prepared.dispatch(20_000_000_000);
        Threads::Auto.apply(&mut dispatch, || sharing(&prepared.program, prepared.shape.entry_pc));
        (dispatch.threads, dispatch.alone) = (if dispatch.threads == 1 { 1 } else { 3 }, 0);
        dispatch.compiled = code.as_ref().map(|code| code as _);
        dispatch::run(&dispatch, &prepared.memory).map_err(|fault| fault.to_string())?;
        if let Some(mismatch) = loaded.mismatches()?.first() {
            return Err(format!("{} threads: {mismatch}", dispatch.threads).into());
        }
    }
    Ok(())
}

/// Compares the outputs of compiled code that is compiled earlier and later, and thus together with other code.
fn thresholds(path: &str, target: &str) -> Result<(), Failed> {
    for threshold in [0, 1, 2, 4, 8, 30] {
        let selection = TargetSelection::target(target);
        let loaded = launch::load(Path::new(path), &selection, &Files::any(), 8 << 20, 0)?;
        let Ok(code) = Jit::with_threshold(&loaded.prepared.program, threshold) else { return Ok(()) };
        let mut dispatch = loaded.prepared.dispatch(20_000_000);
        dispatch.compiled = Some(&code);
        dispatch::run(&dispatch, &loaded.prepared.memory).map_err(|fault| fault.to_string())?;
        if let Some(mismatch) = loaded.mismatches()?.first() {
            return Err(format!("compiled after {threshold} executions: {mismatch}").into());
        }
    }
    Ok(())
}

/// True positives: kernel, target, and the prefix of all findings.
///
/// In `life`, clang 19 omits the wait for LDS stores before the barrier at a loop header on gfx942, but not
/// on other targets.
const TRUE_POSITIVES: [(&str, &str, &str); 1] = [("life", "gfx942", "waits: load of 1 byte at LDS offset")];

fn clean(path: &str, target: &str) -> Result<(), Failed> {
    let (code, text) = wavesim(&["check", path, "--target", target]);
    let known =
        TRUE_POSITIVES.iter().find(|(kernel, of, _)| path.contains(&format!("/{kernel}/")) && *of == target);
    let expected = match known {
        Some((_, _, finding)) => {
            let mut findings = text.lines().filter(|line| !line.is_empty() && !line.starts_with([' ', '6']));
            code == 1 && findings.all(|line| line.starts_with(finding))
        }
        None => code == 0,
    };
    if expected { Ok(()) } else { Err(text.into()) }
}
