//! `cargo xtask build-wasm`, and the target WebAssembly of other tasks.

use crate::shell;
use anyhow::bail;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

pub const TARGET: &str = "wasm32-unknown-unknown";

/// Packages with a level of their own in the profile.
const OPTIMISED: [&str; 14] = [
    "array",
    "asm",
    "assembler",
    "debug",
    "engine",
    "handlers",
    "inspect",
    "isa",
    "loader",
    "program",
    "rt",
    "state",
    "text",
    "trace",
];

/// Build the library for WebAssembly, without threads, files and processes, and run a kernel in it with node
///
/// The target is installed by `rustup target add wasm32-unknown-unknown`. Without it, $RUST_LIBRARY is the folder `library`
/// of the compiler's sources (Debian: the package rust-src), from which the standard library is built.
#[derive(Debug, clap::Args)]
pub struct Args {}

/// Runs the function of the module whose path is the argument.
const RUN: &str = r#"
const module = new WebAssembly.Module(require("fs").readFileSync(process.argv[1]));
const sum = new WebAssembly.Instance(module, {}).exports.saxpy_sum();
console.log("examples/saxpy.rdna: the sum of its results is", sum);
// Of 2.5 * (i / 4) + (256 - i) for i below 256.
process.exitCode = sum === 53296 ? 0 : 1;
"#;

pub fn run(_: &Args) -> anyhow::Result<ExitCode> {
    let Some(library) = Library::find()? else { return shell::skipped(MISSING) };
    let mut cargo = shell::cargo_in_root();
    cargo.args(["build", "--release", "--target", TARGET, "-p", "wavesim-wasm"]);
    // The module is only for testing, so it is not optimised. (The profile is that of the native build, to share the
    // macros.)
    cargo.args(["--config", "profile.release.opt-level=0"]);
    for package in OPTIMISED {
        cargo.arg("--config").arg(format!("profile.release.package.wavesim-{package}.opt-level=0"));
    }
    library.add_to(&mut cargo);
    shell::run(&mut cargo)?;
    let module = shell::target().join(TARGET).join("release/wavesim_wasm.wasm");
    println!("{}: {} bytes", module.display(), std::fs::metadata(&module)?.len());
    if !shell::is_installed("node") {
        println!("not run: node is not installed");
        return Ok(ExitCode::SUCCESS);
    }
    shell::run(shell::command("node").args(["-e", RUN]).arg(&module))?;
    Ok(ExitCode::SUCCESS)
}

/// Where the standard library of the target comes from.
pub struct Library {
    /// The sources, if it is not installed.
    sources: Option<PathBuf>,
}

pub const MISSING: &str = "the target wasm32-unknown-unknown is not installed (rustup target add \
                           wasm32-unknown-unknown, or RUST_LIBRARY: cargo xtask build-wasm --help)";

impl Library {
    /// Returns `None` if there is no standard library.
    pub fn find() -> anyhow::Result<Option<Library>> {
        if let Some(sources) = std::env::var_os("RUST_LIBRARY").filter(|folder| !folder.is_empty()) {
            let sources = PathBuf::from(sources);
            if !sources.join("std/Cargo.toml").is_file() {
                bail!("RUST_LIBRARY={} has no std", sources.display());
            }
            return Ok(Some(Library { sources: Some(sources) }));
        }
        let mut rustc = shell::command("rustc");
        rustc.args(["--print", "target-libdir", "--target", TARGET]);
        let folder = rustc.output().map(|output| String::from_utf8_lossy(&output.stdout).trim().to_string());
        let is_std = |name: &str| name.starts_with("libstd-") && name.ends_with(".rlib");
        let found = folder.is_ok_and(|folder| {
            shell::files(Path::new(&folder), is_std).is_ok_and(|files| !files.is_empty())
        });
        Ok(found.then_some(Library { sources: None }))
    }

    /// Adds what a build with the library needs.
    pub fn add_to(&self, cargo: &mut Command) {
        if let Some(sources) = &self.sources {
            // -Zbuild-std, which stable compilers accept with RUSTC_BOOTSTRAP, with a library outside of the toolchain.
            cargo.env("RUSTC_BOOTSTRAP", "1").env("__CARGO_TESTS_ONLY_SRC_ROOT", sources);
            cargo.arg("-Zbuild-std=std,panic_abort");
        }
    }
}
