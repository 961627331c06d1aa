//! Pseudocode files.
//!
//! - `pcode/ok/x.pcode`: parses and checks without diagnostics, and its printed form parses to the same tree;
//! - `pcode/fail/x.pcode`: its diagnostics are `x.expected`.

use crate::{expect, files};
use isa_spec::pcode::{parse, print};
use isa_spec::source::{FileId, SourceMap};
use isa_spec::{data, diag, report, tables::ArchTable};
use libtest_mimic::{Failed, Trial};
use std::path::Path;
use std::sync::LazyLock;
use wavesim_golden::same;
use wavesim_tests::root;

pub fn trials() -> Vec<Trial> {
    [files("pcode/ok", "pcode", ok), files("pcode/fail", "pcode", fail)].into_iter().flatten().collect()
}

/// Files of the records and functions that memory instructions use.
const SHARED: [&str; 2] = ["descriptor.pcode", "address.pcode"];

/// The RDNA tables and the texts of the [`SHARED`] files.
static ISA: LazyLock<(Vec<&'static ArchTable>, [String; 2])> = LazyLock::new(|| {
    let root = root();
    let none = root.join("tests/filetests/none");
    let loaded = data::load(data::AMD, &root.join("data"), &root.join("data/overlay"), &none, &root);
    let read = |name| std::fs::read_to_string(root.join("pseudocode/memory").join(name)).unwrap_or_default();
    (loaded.tables, SHARED.map(read))
});

/// Loads and checks a file under its base name.
fn load(path: &Path) -> Result<(SourceMap, FileId, report::Report), Failed> {
    let mut sources = SourceMap::default();
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let file = sources.add(name, std::fs::read_to_string(path)?);
    let shared = [0, 1].map(|i| sources.add(SHARED[i], ISA.1[i].as_str()));
    let report = report::check_files(&sources, &[file], &shared, &ISA.0);
    Ok((sources, file, report))
}

fn ok(path: &Path) -> Result<(), Failed> {
    let (sources, file, mut report) = load(path)?;
    // The ISA descriptions lack instructions invented for tests.
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
    Ok(same("printed twice", &printed, &print::file(&tree))?)
}

fn fail(path: &Path) -> Result<(), Failed> {
    let (sources, _, report) = load(path)?;
    if report.ok() {
        return Err("there is no error in this file".into());
    }
    expect(path, &diag::render_all(&sources, &report.diagnostics))
}
