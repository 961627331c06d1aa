//! Delayed memory: kernels without errors compute what they compute with immediate memory, and kernels that lack a
//! wait compute something else.

use clap::Parser;
use std::path::{Path, PathBuf};
use std::time::Instant;
use wavesim::arch::Processor;
use wavesim::check::{Check, Checker, GUARD_BYTES};
use wavesim::cli::{Cli, Command};
use wavesim::delayed::{DelayedMemory, Delays, Timing};
use wavesim::exec::observe::NoObserver;
use wavesim::files::Files;
use wavesim::loader::launch::{self, TargetSelection};
use wavesim::loader::prepared::Prepared;
use wavesim::sched::dispatch::{self, Dispatch, Schedule};
use wavesim::sched::group::RunningGroup;
use wavesim_tests::{root, shared};

/// Returns the outputs of a run, or its fault. Memory is that of a fresh `prepared`.
fn outputs(prepared: &Prepared, dispatch: Dispatch<'_>, timing: Timing) -> Result<Vec<Vec<u8>>, String> {
    let model = timing.model(&prepared.program, prepared.shape.wave_size).map_err(|e| e.to_string())?;
    let dispatch = Dispatch { delayed: model.as_ref(), poison: timing.poison(), ..dispatch };
    dispatch::run(&dispatch, &prepared.memory).map_err(|fault| fault.to_string())?;
    Ok(prepared.outputs().unwrap().into_iter().map(|(_, array)| array.bytes).collect())
}

/// Loads and runs a text kernel with the arguments in its first line, as `wavesim check` does.
fn run_text(path: &Path, timing: Timing) -> Result<Vec<Vec<u8>>, String> {
    // Workgroups that wait for others are suspended soon.
    with_text(path, 0, |prepared, dispatch| {
        outputs(prepared, Dispatch { cooperative: true, ..dispatch }, timing)
    })
}

fn with_text<R>(path: &Path, guard: u64, run: impl FnOnce(&Prepared, Dispatch<'_>) -> R) -> R {
    let source = std::fs::read_to_string(path).unwrap();
    let line = source.lines().next().and_then(|l| l.strip_prefix("; args: ")).unwrap_or("");
    with_arguments(path, line, guard, run)
}

/// Loads a file with the arguments of the command line.
fn with_arguments<R>(
    path: &Path,
    arguments: &str,
    guard: u64,
    run: impl FnOnce(&Prepared, Dispatch<'_>) -> R,
) -> R {
    let name = path.display().to_string();
    let words = ["wavesim", "check", &name].into_iter().chain(arguments.split_whitespace());
    let cli = Cli::try_parse_from(words).unwrap();
    let Command::Check(args) = cli.command else { panic!("not a check") };
    let prepared = args.input.prepare(guard).unwrap_or_else(|e| panic!("{name}: {e:#}"));
    let dispatch = args.input.dispatch(&prepared).unwrap();
    run(&prepared, dispatch)
}

/// Returns the text kernels of a folder, sorted.
fn text_kernels(folder: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(root().join(folder)).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<PathBuf> =
        entries.filter(|path| path.extension().is_some_and(|e| e == "rdna")).collect();
    files.sort();
    files
}

fn name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

const SEEDS: [u64; 3] = [1, 2, 3];

#[test]
fn text_kernels_without_errors_compute_the_same() {
    let mut failures = Vec::new();
    let mut compared = 0;
    let mut files = text_kernels("tests/filetests/check");
    files.retain(|path| name(path).starts_with("clean_"));
    files.extend(text_kernels("tests/filetests/kernels"));
    // One of the examples leaves its size open.
    files.extend(text_kernels("examples").into_iter().filter(|path| name(path) != "header.rdna"));
    for path in files {
        let expected = run_text(&path, Timing::Immediate);
        for seed in SEEDS {
            let found = run_text(&path, Timing::Delayed(seed));
            compared += 1;
            if found != expected {
                let text = |result: &Result<Vec<Vec<u8>>, String>| match result {
                    Ok(outputs) => {
                        format!("{:x?}", outputs.iter().map(|o| &o[..o.len().min(64)]).collect::<Vec<_>>())
                    }
                    Err(fault) => fault.clone(),
                };
                failures.push(format!(
                    "{} seed {seed}\n  {}\n  {}",
                    name(&path),
                    text(&expected),
                    text(&found)
                ));
            }
        }
    }
    assert!(compared > 500, "{compared}");
    assert!(failures.is_empty(), "{} of {compared} differ:\n{}", failures.len(), failures.join("\n"));
}

/// Runs the workgroups one after the other, in turns of a wave of at most `turn` instructions. Returns the outputs, and the
/// lengths of the turns; `None` after a fault, and of runs that do not end. With `lengths`, the turns have these, and
/// consist of single steps.
fn in_turns(
    prepared: &Prepared,
    dispatch: &Dispatch<'_>,
    turn: u64,
    lengths: Option<&[u64]>,
) -> Option<(Vec<Vec<u8>>, Vec<u64>)> {
    let mut group = RunningGroup::new(dispatch, &prepared.memory);
    let mut ran: Vec<u64> = Vec::new();
    for index in 0..dispatch.workgroups() {
        group.start(index);
        while (0..group.slots.len()).any(|wave| group.can_run(wave)) {
            for wave in 0..group.slots.len() {
                if !group.can_run(wave) {
                    continue;
                }
                group.ready(wave);
                let before = group.executed;
                match lengths {
                    None => group.advance(wave, turn).ok()?,
                    Some(lengths) => {
                        (0..*lengths.get(ran.len())?).try_for_each(|_| group.advance(wave, 1)).ok()?
                    }
                }
                ran.push(group.executed - before);
            }
            if group.executed > 1 << 13 {
                return None;
            }
        }
    }
    Some((prepared.outputs().unwrap().into_iter().map(|(_, array)| array.bytes).collect(), ran))
}

/// A turn of single steps computes what the whole turn does, also in kernels with errors: an operation takes effect at once
/// only if nobody sees the difference.
#[test]
fn single_steps_compute_what_turns_compute() {
    let (mut failures, mut compared) = (Vec::new(), 0);
    let mut files = text_kernels("tests/filetests/check");
    files.retain(|path| !name(path).contains("cluster"));
    files.extend(text_kernels("tests/filetests/kernels"));
    for (path, seed) in files.iter().flat_map(|path| [4, 5].map(|seed| (path, seed))) {
        let turn = [20, 300][seed as usize % 2];
        let run = |lengths: Option<&[u64]>| {
            with_text(path, 0, |prepared, dispatch| {
                let timing = Timing::Delayed(seed);
                let model = timing.model(&prepared.program, prepared.shape.wave_size).unwrap();
                let dispatch = Dispatch { delayed: model.as_ref(), poison: timing.poison(), ..dispatch };
                in_turns(prepared, &dispatch, turn, lengths)
            })
        };
        let Some(whole) = run(None) else { continue };
        compared += 1;
        if run(Some(&whole.1)).as_ref() != Some(&whole) {
            failures.push(format!("{} seed {seed}", name(path)));
        }
    }
    assert!(compared > 500, "{compared}");
    assert!(failures.is_empty(), "{} of {compared} differ: {failures:?}", failures.len());
}

#[test]
fn kernels_that_lack_a_wait_compute_something_else() {
    let mut same = Vec::new();
    let mut different = 0;
    for path in text_kernels("tests/filetests/check") {
        let lacks_wait = with_text(&path, GUARD_BYTES, |prepared, dispatch| {
            let Ok(mut checker) = Checker::new(prepared, &[Check::Waits]) else { return false };
            let fault = checker.run(&dispatch).1.err();
            fault.is_none() && checker.finish(None).iter().any(|finding| finding.check == Check::Waits)
        });
        if !lacks_wait {
            continue;
        }
        // Waves and workgroups take short turns, so that others see what is not complete.
        let run = |timing| {
            with_text(&path, 0, |prepared, dispatch| {
                outputs(prepared, Dispatch { schedule: Schedule::Fine(1), ..dispatch }, timing)
            })
        };
        let expected = run(Timing::Immediate);
        match (0..32).any(|seed| run(Timing::Delayed(seed)) != expected) {
            true => different += 1,
            false => same.push(name(&path)),
        }
    }
    println!("{different} differ, the same: {same:?}");
    assert!(different > 30, "{different} differ; the same: {same:?}");
}

/// Copies to LDS by the copy engines of CDNA 5 take effect until the waits for their own counters.
#[test]
fn copies_to_lds_arrive_late() {
    let objects = "tests/filetests/check/objects";
    let arguments = "--grid 1 --block 32 --arg x:i32[64]=arange(64) --arg out_y:i32[32]";
    for (file, arguments, is_waited) in [
        ("tests/filetests/check/waits_async_cdna5.rdna".to_owned(), "", false),
        ("tests/filetests/check/clean_lds_mask_cdna5.rdna".to_owned(), "", true),
        (format!("{objects}/tensor_missing.gfx1250.co"), arguments, false),
        (format!("{objects}/tensor_waited.gfx1250.co"), arguments, true),
    ] {
        let run = |timing| {
            with_arguments(&root().join(&file), arguments, 0, |prepared, dispatch| {
                outputs(prepared, dispatch, timing).unwrap_or_else(|fault| panic!("{file}: {fault}"))
            })
        };
        let expected = run(Timing::Immediate);
        let different = (0..32).filter(|seed| run(Timing::Delayed(*seed)) != expected).count();
        assert_eq!(different == 0, is_waited, "{file}: {different} of 32 seeds differ");
    }
}

/// Here clang 19 omits the wait for LDS stores before a barrier; `wavesim check` reports it, too.
const LACKS_A_WAIT: &str = "life gfx942 ";

/// Compiled kernels, with the outputs that their descriptions expect.
#[test]
fn compiled_kernels_compute_the_same() {
    let mut failures = Vec::new();
    let mut compared = 0;
    let mut folders =
        vec![root().join("tests/filetests/code_objects"), root().join("tests/filetests/programs")];
    for set in ["kernels", "kernels-cdna5"] {
        match shared(set) {
            Some(folder) => folders.push(folder),
            None => println!("skipped: no {set} below WAVESIM_SHARED or ../shared"),
        }
    }
    for folder in folders {
        let entries = std::fs::read_dir(folder).unwrap().flatten();
        let mut launches: Vec<_> =
            entries.map(|e| e.path().join("launch.json")).filter(|p| p.is_file()).collect();
        launches.sort();
        for path in launches {
            let json: serde_json::Value =
                serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
            let targets = json["code"].as_object().unwrap().keys();
            for target in targets.filter(|t| Processor::from_name(t).is_some()) {
                for seed in SEEDS {
                    let what = format!("{} {target} seed {seed}", name(path.parent().unwrap()));
                    compared += 1;
                    let selection = TargetSelection::target(target);
                    let loaded = launch::load(&path, &selection, &Files::any(), 64 << 20, 0)
                        .unwrap_or_else(|e| panic!("{what}: {e:#}"));
                    let dispatch = loaded.prepared.dispatch(1_000_000_000);
                    let result = outputs(&loaded.prepared, dispatch, Timing::Delayed(seed));
                    if what.starts_with(LACKS_A_WAIT) {
                        assert!(!loaded.mismatches().unwrap().is_empty(), "{what} computes the same");
                        continue;
                    }
                    match result {
                        Err(fault) => failures.push(format!("{what}: {fault}")),
                        Ok(_) => {
                            if let Some(mismatch) = loaded.mismatches().unwrap().first() {
                                failures.push(format!("{what}: {mismatch}"));
                            }
                        }
                    }
                }
            }
        }
    }
    assert!(compared >= 40, "{compared}");
    assert!(failures.is_empty(), "{} of {compared} differ:\n{}", failures.len(), failures.join("\n"));
}

/// An operation is outstanding until it is completed, and is performed before.
#[test]
fn operations_can_be_performed_and_completed_one_by_one() {
    with_text(&root().join("examples/broken/missing_wait.rdna"), 0, |prepared, dispatch| {
        let wave_size = prepared.shape.wave_size;
        let model = DelayedMemory::new(&prepared.program, wave_size, Delays::Demanded).unwrap();
        let dispatch = Dispatch { delayed: Some(&model), ..dispatch };
        let mut group = RunningGroup::new(&dispatch, &prepared.memory);
        group.start(0);
        // The wait demands the scalar loads, and nothing demands the vector load after it.
        group.advance(0, 5).unwrap();
        let load = |group: &RunningGroup<'_>| {
            let list: Vec<_> = group.outstanding(0).map(|o| (o.index, o.performed, o.returned)).collect();
            (list, group.slots[0].wave.vgpr(3, 2))
        };
        assert_eq!(load(&group), (vec![(4, false, false)], 0));
        let copy = group.clone();
        group.perform::<NoObserver>(0, 0, None).unwrap();
        assert_eq!(load(&group), (vec![(4, true, false)], 0));
        group.complete::<NoObserver>(0, 0, None).unwrap();
        assert_eq!(load(&group), (vec![], 3f32.to_bits()));
        // The end of the wave completes everything.
        let mut group = copy;
        group.advance(0, 3).unwrap();
        assert_eq!(load(&group), (vec![], 3f32.to_bits()));
        let output = &prepared.outputs().unwrap()[0].1.bytes;
        assert_eq!(&output[12..16], &1f32.to_le_bytes());
    });
}

/// The ratios in `docs/delayed-memory.md`.
#[test]
#[ignore = "prints only"]
fn print_speed() {
    let kernels = "tests/filetests/kernels";
    let files = ["examples/mandelbrot.rdna".to_owned(), "examples/saxpy.rdna".to_owned()].into_iter();
    let files =
        files.chain(["histogram", "transpose", "matmul_lds"].map(|name| format!("{kernels}/{name}.rdna")));
    for file in files {
        let time = |timing: Timing| {
            let one = |_| {
                with_text(&root().join(&file), 0, |prepared, dispatch| {
                    let model = timing.model(&prepared.program, prepared.shape.wave_size).unwrap();
                    let (delayed, poison) = (model.as_ref(), timing.poison());
                    let dispatch = Dispatch { delayed, poison, ..dispatch };
                    let started = Instant::now();
                    dispatch::run(&dispatch, &prepared.memory).unwrap();
                    started.elapsed().as_secs_f64()
                })
            };
            let mut times: Vec<f64> = (0..15).map(one).collect();
            times.sort_by(f64::total_cmp);
            times[times.len() / 2]
        };
        let immediate = time(Timing::Immediate);
        let ratios = (1..=6).map(|seed| format!("{:.1}", time(Timing::Delayed(seed)) / immediate));
        println!("{file}: {}", ratios.collect::<Vec<_>>().join(", "));
    }
}
