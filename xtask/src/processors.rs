//! `cargo xtask test-processors`: the conformance vectors on processors that qemu emulates.

use crate::shell;
use anyhow::{Context as _, bail};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

/// Run the conformance vectors on aarch64, with both engines, and on x86-64 without AVX2, in qemu's emulation of a process
///
/// It needs qemu-user, and for aarch64 the Rust target and a linker (Debian: gcc-aarch64-linux-gnu); what is missing is skipped.
/// The program for aarch64 is simulator/conform/examples/vectors.rs, whose build takes minutes.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Folders of vectors
    #[arg(default_values = ["tests/filetests/vectors"])]
    vectors: Vec<PathBuf>,
    /// Build nothing: aarch64 is skipped unless a former run has built its program
    #[arg(long)]
    no_build: bool,
    /// The binary for this machine
    #[arg(long, value_name = "FILE", default_value = "target/release/wavesim")]
    wavesim: PathBuf,
}

const TARGET: &str = "aarch64-unknown-linux-gnu";

/// This machine runs programs for that target.
const NATIVE: bool = cfg!(all(target_arch = "aarch64", target_os = "linux"));

/// The last x86-64 processors of Intel without AVX.
const WITHOUT_AVX2: &str = "Westmere";

pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let root = shell::root();
    let folders: Vec<PathBuf> = args.vectors.iter().map(|folder| root.join(folder)).collect();
    let mut failed = false;
    let mut runs: Vec<_> = x86_64(args)?.map(|run| ("x86-64 without AVX2", run)).into_iter().collect();
    if let Some(program) = aarch64(args)? {
        for (name, first) in [("aarch64", vec![]), ("aarch64, compiled", vec!["--jit"])] {
            runs.extend(on_aarch64(&program)?.map(|command| (name, (command, first))));
        }
    }
    for (name, (mut command, first)) in runs {
        let output = command.args(first).args(&folders).output().with_context(|| name.to_string())?;
        let text = String::from_utf8_lossy(&output.stdout);
        print!("{name}: {text}");
        if !output.status.success() {
            println!("{name}: {}: {}", output.status, String::from_utf8_lossy(&output.stderr));
            failed = true;
        }
    }
    Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// A command, and its arguments before the folders.
type Run = Option<(Command, Vec<&'static str>)>;

/// Returns the command for an x86-64 processor, or `None` if it is skipped.
fn x86_64(args: &Args) -> anyhow::Result<Run> {
    if !cfg!(target_arch = "x86_64") {
        shell::skipped("x86-64 without AVX2: this machine is not an x86-64")?;
        return Ok(None);
    }
    let Some(mut command) = qemu("qemu-x86_64")? else { return Ok(None) };
    let wavesim = shell::root().join(&args.wavesim);
    if !wavesim.is_file() {
        bail!("{} is missing: cargo build --release -p wavesim, or --wavesim FILE", wavesim.display());
    }
    command.args(["-cpu", WITHOUT_AVX2]).arg(wavesim);
    Ok(Some((command, vec!["conform"])))
}

/// Returns the program for aarch64, after a build, or `None` if it is skipped.
fn aarch64(args: &Args) -> anyhow::Result<Option<PathBuf>> {
    let program = shell::target().join(TARGET).join("release/examples/vectors");
    if args.no_build && !program.is_file() {
        shell::skipped("aarch64: `cargo xtask test-processors` builds its program")?;
        return Ok(None);
    }
    if !args.no_build {
        if !NATIVE && !shell::is_installed("aarch64-linux-gnu-gcc") {
            shell::skipped("aarch64: aarch64-linux-gnu-gcc is not installed")?;
            return Ok(None);
        }
        if !has_target()? {
            shell::skipped(&format!("aarch64: `rustup target add {TARGET}` installs the target"))?;
            return Ok(None);
        }
        let mut cargo = shell::cargo_in_root();
        cargo.args([
            "build",
            "--release",
            "--package",
            "wavesim-conform",
            "--example",
            "vectors",
            "--target",
            TARGET,
        ]);
        if !NATIVE {
            cargo.env("CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER", "aarch64-linux-gnu-gcc");
        }
        shell::run(&mut cargo)?;
    }
    Ok(Some(program))
}

/// Returns the command that runs a program for aarch64, or `None` if it is skipped.
fn on_aarch64(program: &Path) -> anyhow::Result<Option<Command>> {
    if NATIVE {
        return Ok(Some(Command::new(program)));
    }
    let Some(mut command) = qemu("qemu-aarch64")? else { return Ok(None) };
    // The C library of Debian's packages for cross compilation.
    command.args(["-L", "/usr/aarch64-linux-gnu"]).arg(program);
    Ok(Some(command))
}

/// Returns qemu's command for a processor, or `None` if it is not installed.
fn qemu(program: &str) -> anyhow::Result<Option<Command>> {
    if shell::is_installed(program) {
        return Ok(Some(Command::new(program)));
    }
    shell::skipped(&format!("{program} is not installed"))?;
    Ok(None)
}

/// Returns whether the compiler has the standard library of the target.
fn has_target() -> anyhow::Result<bool> {
    let mut rustc = Command::new(std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()));
    let output = shell::output(rustc.args(["--print", "target-libdir", "--target", TARGET]))?;
    Ok(Path::new(String::from_utf8_lossy(&output).trim()).is_dir())
}
