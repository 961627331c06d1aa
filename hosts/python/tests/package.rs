//! Runs those of the package's own tests that need only NumPy and pytest, with the module that cargo built.
//! `cargo xtask test-python` builds a wheel, installs it, and runs all tests.
#![cfg(target_os = "linux")]

use std::path::Path;
use std::process::Command;

/// Finds a Python with the tests' dependencies: WAVESIM_PYTHON, that of `cargo xtask test-python`, or the
/// system's.
fn python() -> Option<String> {
    let own = Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("python/bin/python");
    let list =
        [std::env::var("WAVESIM_PYTHON").ok(), own.to_str().map(String::from), Some("python3".to_string())];
    list.into_iter().flatten().find(|python| {
        let found = Command::new(python).args(["-c", "import numpy, pytest"]).output();
        found.is_ok_and(|output| output.status.success())
    })
}

#[test]
fn package() {
    let Some(python) = python() else {
        println!("skipped: no Python with numpy and pytest (cargo xtask test-python installs them)");
        return;
    };
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("package");
    let package = folder.join("wavesim");
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&package).unwrap();
    for file in std::fs::read_dir(here.join("python/wavesim")).unwrap() {
        let file = file.unwrap().path();
        if file.extension().is_some_and(|e| e == "py" || e == "pyi") {
            std::os::unix::fs::symlink(&file, package.join(file.file_name().unwrap())).unwrap();
        }
    }
    // Cargo places the library next to the test executable.
    let built = std::env::current_exe().unwrap().with_file_name("lib_native.so");
    std::os::unix::fs::symlink(built, package.join("_native.abi3.so")).unwrap();
    let output = Command::new(&python)
        .args([
            "-B",
            "-m",
            "pytest",
            "-q",
            "-p",
            "no:cacheprovider",
            "tests/test_campaign.py",
            "tests/test_device.py",
            "tests/test_docs.py",
            "tests/test_hostile.py",
            "tests/test_notebook.py",
            "tests/test_pytest_plugin.py",
            "tests/test_text.py",
        ])
        .current_dir(here)
        .env("PYTHONPATH", &folder)
        .output()
        .unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(output.status.success(), "{}{}", text(&output.stdout), text(&output.stderr));
    println!("{}", text(&output.stdout).lines().last().unwrap_or_default());
}
