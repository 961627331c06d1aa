//! Programs for non-AMD machines.
//!
//! - `ARCH/pass/x.as` and `examples/ARCH/x.as`: with the data in `x.data`, the program leaves the words in
//!   `x.expected` in memory;
//! - `ARCH/fail/x.as` and `ARCH/fault/x.as`: the assembler's errors, or the fault, are `x.expected`.

use crate::expect;
use libtest_mimic::{Failed, Trial};
use std::path::Path;
use wavesim::arch::Arch;
use wavesim::exec::observe::Observers;
use wavesim::sched::dispatch::{self, Dispatch, Schedule};
use wavesim_golden::{blessing, compare, same};
use wavesim_tests::programs;

/// Limit on wave-instructions per program.
const LIMIT: u64 = 1_000_000;

pub fn trials() -> Vec<Trial> {
    let mut trials = Vec::new();
    for arch in Arch::ALL.into_iter().filter(|a| a.machine().is_some()) {
        let name = arch.name();
        let folders = [
            ("tests/filetests", "pass", pass as fn(&Path, Arch) -> Result<(), Failed>),
            ("examples", "", pass),
            ("tests/filetests", "fail", fail),
            ("tests/filetests", "fault", fault),
        ];
        for (root, folder, run) in folders {
            let paths = programs::programs(&format!("{root}/{name}/{folder}"), arch);
            assert!(!paths.is_empty(), "no programs in {root}/{name}/{folder}");
            for path in paths {
                let stem = path.file_stem().unwrap_or_default().to_string_lossy();
                let kind = if folder.is_empty() { "example" } else { folder };
                trials.push(Trial::test(format!("{name}::{kind}::{stem}"), move || run(&path, arch)));
            }
        }
    }
    trials
}

/// Checks the final memory of a program with every schedule and number of threads, observed and not observed.
fn pass(path: &Path, arch: Arch) -> Result<(), Failed> {
    let lines = |words: &mut dyn Iterator<Item = (u32, u32)>| {
        words.map(|(address, value)| format!("{address}: {value}\n")).collect::<String>()
    };
    let expected = path.with_extension("expected");
    if blessing() {
        let prepared = programs::prepare(path, arch)?;
        dispatch::run(&prepared.dispatch(LIMIT), &prepared.memory).map_err(|e| e.to_string())?;
        return Ok(compare(&expected, &lines(&mut prepared.memory.touched()))?);
    }
    let mut expected = programs::read_data(&expected)?;
    expected.sort();
    let expected = lines(&mut expected.into_iter());
    let schedules = [Schedule::RoundRobin, Schedule::Reverse, Schedule::Random(1)];
    for (schedule, threads, observed) in
        schedules.into_iter().flat_map(|s| [(s, 1, false), (s, 2, false), (s, 1, true)])
    {
        let prepared = programs::prepare(path, arch)?;
        let dispatch = Dispatch { schedule, threads, ..prepared.dispatch(LIMIT) };
        match observed {
            false => dispatch::run(&dispatch, &prepared.memory).map(|_| ()).map_err(|e| e.to_string())?,
            true => dispatch::run_observed(&dispatch, &prepared.memory, &mut Observers::default())
                .1
                .map_err(|e| e.to_string())?,
        }
        let what = format!("memory differs ({schedule:?}, {threads} threads, observed: {observed})");
        same(&what, &expected, &lines(&mut prepared.memory.touched()))?;
    }
    Ok(())
}

fn fail(path: &Path, arch: Arch) -> Result<(), Failed> {
    match programs::prepare(path, arch) {
        Ok(_) => Err("there is no error in this file".into()),
        Err(report) => expect(path, &report),
    }
}

fn fault(path: &Path, arch: Arch) -> Result<(), Failed> {
    let prepared = programs::prepare(path, arch)?;
    match dispatch::run(&prepared.dispatch(LIMIT), &prepared.memory) {
        Ok(_) => Err("this program does not fault".into()),
        Err(fault) => expect(path, &format!("{fault}\n")),
    }
}
