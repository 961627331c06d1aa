//! `cargo xtask test-python`: builds the Python package, installs it, and runs its tests.
//!
//! `cargo test -p wavesim-python` runs only the tests that need just NumPy and pytest, with the module that cargo has built.

use crate::shell;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

/// Test the Python package in a virtual environment, with Triton, tinygrad, Dask, Ray and pandas if pip can install them
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The folder of the environment, which is kept
    #[arg(default_value = "target/python")]
    folder: PathBuf,
}

pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let folder = shell::root().join(&args.folder);
    if !shell::succeeds(shell::command("python3").args(["-c", "import venv, ensurepip"])) {
        return shell::skipped("python3 with venv is not installed");
    }
    let python = folder.join("bin/python");
    if !python.is_file() {
        shell::run(shell::command("python3").args(["-m", "venv"]).arg(&folder))?;
    }
    if !install(&python, &["maturin>=1.7,<2", "pytest", "numpy"]) {
        return shell::skipped("pip cannot install maturin, pytest and numpy");
    }
    let wheels = folder.join("wheels");
    if wheels.exists() {
        std::fs::remove_dir_all(&wheels)?;
    }
    shell::run(
        shell::command(folder.join("bin/maturin"))
            .args([
                "build",
                "--quiet",
                "--release",
                "--manifest-path",
                "hosts/python/Cargo.toml",
                "--interpreter",
            ])
            .arg(&python)
            .arg("--out")
            .arg(&wheels),
    )?;
    let built = shell::files(&wheels, |name| name.starts_with("wavesim-") && name.ends_with(".whl"))?;
    shell::run(pip(&python).args(["--force-reinstall", "--no-deps"]).args(built))?;
    for package in ["triton>=3.9", "tinygrad", "dask[distributed]", "ray", "pandas"] {
        if !install(&python, &[package]) {
            println!("skipped: pip cannot install {package}");
        }
    }
    shell::run(shell::command(&python).args(["-m", "pytest", "--quiet", "hosts/python/tests"]))?;
    Ok(ExitCode::SUCCESS)
}

fn pip(python: &Path) -> Command {
    let mut pip = shell::command(python);
    pip.args(["-m", "pip", "--disable-pip-version-check", "--quiet", "install"]);
    pip
}

fn install(python: &Path, packages: &[&str]) -> bool {
    pip(python).args(packages).status().is_ok_and(|status| status.success())
}
