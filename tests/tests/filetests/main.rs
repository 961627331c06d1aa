//! File tests, with one named test per file: `cargo test -p wavesim-tests --test filetests -- NAME`.
//!
//! Each directory of `tests/filetests` is a kind of test; the module of the same name documents how its files
//! are run. The expectation is in the file itself or in `NAME.expected` next to it. `BLESS=1` rewrites the
//! expectations; review the diff.

mod asm;
mod code_objects;
mod commands;
mod compiled;
mod jit;
mod kernels;
mod pcode;
mod programs;
mod run;
mod screens;
mod text;
mod vectors;

use isa_spec::data::files_below;
use libtest_mimic::{Arguments, Failed, Trial};
use std::path::{Path, PathBuf};
use wavesim_golden::compare;
use wavesim_tests::root;

/// Function that runs the test of one file.
type Run = fn(&Path) -> Result<(), Failed>;

fn main() {
    let args = Arguments::from_args();
    // Paths in expectations are relative to the workspace.
    std::env::set_current_dir(root()).unwrap_or_else(|e| panic!("{e}"));
    let kinds = [
        asm::trials(),
        code_objects::trials(),
        commands::trials(),
        compiled::trials(),
        jit::trials(),
        kernels::trials(),
        pcode::trials(),
        programs::trials(),
        run::trials(),
        screens::trials(),
        text::trials(),
        vectors::trials(),
    ];
    libtest_mimic::run(&args, kinds.into_iter().flatten().collect()).exit();
}

/// Returns a test for each file with the extension in `tests/filetests/KIND`.
fn files(kind: &str, extension: &str, run: Run) -> Vec<Trial> {
    files_in(&format!("tests/filetests/{kind}"), kind, extension, run)
}

/// Returns a test named `KIND::NAME` for each file with the extension in a directory of the workspace.
fn files_in(folder: &str, kind: &str, extension: &str, run: Run) -> Vec<Trial> {
    let mut paths = files_below(Path::new(folder), extension);
    paths.retain(|p| p.parent() == Some(Path::new(folder)));
    assert!(!paths.is_empty(), "no .{extension} file in {folder}");
    let trial = |path: PathBuf| {
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        let name = format!("{}::{name}", kind.replace('/', "::"));
        Trial::test(name, move || run(&path))
    };
    paths.into_iter().map(trial).collect()
}

/// Compares output with the `.expected` file next to `path`.
fn expect(path: &Path, found: &str) -> Result<(), Failed> {
    Ok(compare(&path.with_extension("expected"), found)?)
}
