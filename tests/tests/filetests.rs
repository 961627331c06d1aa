//! Tests that are files: one named test a file, `cargo test -p wavesim-tests --test filetests -- NAME`.
//!
//! - `filetests/pcode/ok/x.pcode`: parses and checks without a message, and prints to the same tree;
//! - `filetests/pcode/fail/x.pcode`: its messages are `x.stderr`. `BLESS=1` rewrites the expectations; read the diff.
//! - `filetests/text/fail/x.rdna`: a text kernel with errors, its report `x.stderr`;
//! - `filetests/text/fault/x.rdna`: a text kernel that faults, what the user sees `x.stderr`;
//! - `filetests/run/x.rdna`: small programs with the state before and after, worked out by hand from the manuals (`wavesim_tests::cases`).
//! - `ARCH/pass/x.as`, and `examples/ARCH/x.as`: a program of a machine of its own, its data `x.data`, the words it leaves `x.expected`;
//!   `ARCH/fail/x.as` and `ARCH/fault/x.as`: what is wrong with it, or how its run ends, `x.stderr`.

use isa_spec::pcode::{parse, print};
use isa_spec::source::{FileId, SourceMap};
use isa_spec::{data, diag, report, tables::ArchTable};
use libtest_mimic::{Arguments, Failed, Trial};
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use wavesim::arch::Arch;
use wavesim::exec::observe::Many;
use wavesim::sched::dispatch::{self, Dispatch, Schedule};
use wavesim_tests::{Setup, programs};

fn main() {
    let args = Arguments::from_args();
    let mut trials = Vec::new();
    for (folder, run) in [("ok", pcode_ok as fn(&Path) -> Result<(), Failed>), ("fail", pcode_fail)] {
        for path in data::files_below(&filetests().join("pcode").join(folder), "pcode") {
            let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            trials.push(Trial::test(format!("pcode::{folder}::{name}"), move || run(&path)));
        }
    }
    for (folder, run) in [("fail", text_fail as fn(&Path) -> Result<(), Failed>), ("fault", text_fault)] {
        for path in data::files_below(&filetests().join("text").join(folder), "rdna") {
            let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            trials.push(Trial::test(format!("text::{folder}::{name}"), move || run(&path)));
        }
    }
    for path in data::files_below(&filetests().join("run"), "rdna") {
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        trials.push(Trial::test(format!("run::{name}"), move || {
            wavesim_tests::cases::check(&std::fs::read_to_string(&path)?)?;
            Ok(())
        }));
    }
    for arch in Arch::ALL.into_iter().filter(|a| a.machine().is_some()) {
        let name = arch.name();
        let folders = [
            (format!("tests/{name}/pass"), program_pass as fn(&Path, Arch) -> Result<(), Failed>),
            (format!("examples/{name}"), program_pass),
            (format!("tests/{name}/fail"), program_fail),
            (format!("tests/{name}/fault"), program_fault),
        ];
        for (folder, run) in folders {
            for path in programs::programs(&folder, arch) {
                let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
                let test = format!("{}::{stem}", folder.replace('/', "::"));
                trials.push(Trial::test(test, move || run(&path, arch)));
            }
        }
    }
    libtest_mimic::run(&args, trials).exit();
}

fn filetests() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("filetests")
}

/// The RDNA tables and the helper functions that memory instructions call.
static ISA: LazyLock<(Vec<&'static ArchTable>, String)> = LazyLock::new(|| {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let none = root.join("tests/filetests/none");
    let loaded = data::load(data::RDNA, &root.join("data"), &root.join("data/overlay"), &none, &root);
    let address = std::fs::read_to_string(root.join("pseudocode/memory/address.pcode")).unwrap_or_default();
    (loaded.tables, address)
});

/// The file under its plain name, checked.
fn load(path: &Path) -> Result<(SourceMap, FileId, report::Report), Failed> {
    let mut sources = SourceMap::default();
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let file = sources.add(name, std::fs::read_to_string(path)?);
    let base = sources.add("address.pcode", ISA.1.as_str());
    let report = report::check_files(&sources, &[file], &[base], &ISA.0);
    Ok((sources, file, report))
}

fn pcode_ok(path: &Path) -> Result<(), Failed> {
    let (sources, file, mut report) = load(path)?;
    // Instructions made for the test are in no description.
    report.diagnostics.retain(|d| !(d.message.contains("has an instruction") && d.message.contains("_TEST")));
    report.diagnostics.retain(|d| !(d.message.contains("has no instruction") && d.message.contains("_TEST")));
    if !report.diagnostics.is_empty() {
        return Err(diag::render_all(&sources, &report.diagnostics).into());
    }
    if report.blocks.is_empty() {
        return Err("there is no instruction in this file".into());
    }
    let (tree, _) = parse::parse_file(&sources, file);
    let printed = print::file(&tree);
    let mut again = SourceMap::default();
    let file = again.add("printed", printed.as_str());
    let (tree, errors) = parse::parse_file(&again, file);
    if !errors.is_empty() {
        return Err(format!("printed:\n{printed}\n{}", diag::render_all(&again, &errors)).into());
    }
    same("printed twice", &printed, &print::file(&tree))
}

fn pcode_fail(path: &Path) -> Result<(), Failed> {
    let (sources, _, report) = load(path)?;
    if report.ok() {
        return Err("there is no error in this file".into());
    }
    expect(path, &diag::render_all(&sources, &report.diagnostics))
}

/// The machine that the header asks for.
fn as_written(source: &str) -> Setup {
    let arch = source.lines().find_map(|l| Arch::from_name(l.strip_prefix("arch = ")?));
    Setup { arch: arch.unwrap_or(Arch::Rdna3), ..Setup::default() }
}

fn text_fail(path: &Path) -> Result<(), Failed> {
    let source = std::fs::read_to_string(path)?;
    match wavesim_tests::parse(&source, &as_written(&source)) {
        Ok(_) => Err("there is no error in this file".into()),
        Err(report) => expect(path, &report),
    }
}

fn text_fault(path: &Path) -> Result<(), Failed> {
    let source = std::fs::read_to_string(path)?;
    match wavesim_tests::run(&source, &as_written(&source)) {
        Ok(_) => Err("this kernel runs to its end".into()),
        Err(fault) => expect(path, &format!("{fault}\n")),
    }
}

/// The words a program leaves, whatever the order of its waves and the number of threads, observed or not.
fn program_pass(path: &Path, arch: Arch) -> Result<(), Failed> {
    let expected = programs::read_data(&path.with_extension("expected"))?;
    let schedules = [Schedule::RoundRobin, Schedule::Reverse, Schedule::Random(1)];
    for (schedule, threads, observed) in
        schedules.into_iter().flat_map(|s| [(s, 1, false), (s, 2, false), (s, 1, true)])
    {
        let prepared = programs::prepare(path, arch)?;
        let dispatch = Dispatch { schedule, threads, ..prepared.dispatch(LIMIT) };
        match observed {
            false => dispatch::run(&dispatch, &prepared.memory).map(|_| ()).map_err(|e| e.to_string())?,
            true => dispatch::run_observed(&dispatch, &prepared.memory, &mut Many::default())
                .1
                .map_err(|e| e.to_string())?,
        }
        let lines = |words: &mut dyn Iterator<Item = (u32, u32)>| {
            words.map(|(address, value)| format!("{address}: {value}\n")).collect::<String>()
        };
        let mut wanted = expected.clone();
        wanted.sort();
        let what = format!("memory differs ({schedule:?}, {threads} threads, observed: {observed})");
        same(&what, &lines(&mut wanted.into_iter()), &lines(&mut prepared.memory.touched()))?;
    }
    Ok(())
}

/// Wave-instructions of a program.
const LIMIT: u64 = 1_000_000;

fn program_fail(path: &Path, arch: Arch) -> Result<(), Failed> {
    match programs::prepare(path, arch) {
        Ok(_) => Err("there is no error in this file".into()),
        Err(report) => expect(path, &report),
    }
}

fn program_fault(path: &Path, arch: Arch) -> Result<(), Failed> {
    let prepared = programs::prepare(path, arch)?;
    match dispatch::run(&prepared.dispatch(LIMIT), &prepared.memory) {
        Ok(_) => Err("this program runs to its end".into()),
        Err(fault) => expect(path, &format!("{fault}\n")),
    }
}

/// Compares with the `.stderr` file beside `path`.
fn expect(path: &Path, found: &str) -> Result<(), Failed> {
    let expected = path.with_extension("stderr");
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&expected, found)?;
        return Ok(());
    }
    let wanted = std::fs::read_to_string(&expected)
        .map_err(|e| format!("{}: {e}; BLESS=1 writes it:\n{found}", expected.display()))?;
    same("messages differ from the .stderr file (BLESS=1 rewrites it)", &wanted, found)
}

fn same(what: &str, wanted: &str, found: &str) -> Result<(), Failed> {
    if wanted.replace("\r\n", "\n") == found {
        return Ok(());
    }
    Err(format!("{what}\n--- wanted\n{wanted}\n--- found\n{found}").into())
}
