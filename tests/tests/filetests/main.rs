//! Tests that are files: one named test a file, `cargo test -p wavesim-tests --test filetests -- NAME`.
//!
//! A folder of `tests/filetests` is a kind of test; its module below says how its files are run. What is expected stands in the file, or
//! beside it in `NAME.expected`. `BLESS=1` rewrites the expectations; read the diff.

mod asm;
mod code_objects;
mod commands;
mod compiled;
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

/// Runs one file.
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

/// A test for each file with the extension in `tests/filetests/KIND`.
fn files(kind: &str, extension: &str, run: Run) -> Vec<Trial> {
    files_in(&format!("tests/filetests/{kind}"), kind, extension, run)
}

/// A test for each file with the extension in a folder of the workspace, called `KIND::NAME`.
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

/// Compares with the `.expected` file beside `path`.
fn expect(path: &Path, found: &str) -> Result<(), Failed> {
    Ok(compare(&path.with_extension("expected"), found)?)
}
