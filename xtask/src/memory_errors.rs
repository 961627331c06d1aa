//! `cargo xtask memory-errors`: a corpus of kernels under a tool that detects accesses outside of allocated host memory,
//! and uses of uninitialised memory.
//!
//! First, the tool must find planted errors. Compiled code runs under memcheck only: AddressSanitizer does not instrument
//! it.

use crate::shell;
use anyhow::{Context as _, bail};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::sync::Mutex;

const TARGET: &str = "x86_64-unknown-linux-gnu";

/// The exit code if the tool reports an error; distinct from those of wavesim.
const FOUND: i32 = 99;

/// Look for invalid accesses to host memory
#[derive(Debug, clap::Args)]
pub struct Args {
    tool: Tool,
    /// Another binary
    #[arg(long, value_name = "FILE", requires = "planted")]
    wavesim: Option<PathBuf>,
    /// Another build of simulator/examples/planted_errors.rs
    #[arg(long, value_name = "FILE", requires = "wavesim")]
    planted: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Tool {
    /// The release binary under memcheck, as in CI, since the binary exists already
    Valgrind,
    /// A build with AddressSanitizer, which also covers the stack and statics; takes minutes
    Asan,
}

pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    if args.tool == Tool::Valgrind && !shell::is_installed("valgrind") {
        return shell::skipped("valgrind is not installed");
    }
    let absolute = |file: &PathBuf| file.canonicalize().with_context(|| file.display().to_string());
    let (wavesim, planted) = match (&args.wavesim, &args.planted) {
        (Some(wavesim), Some(planted)) => (absolute(wavesim)?, absolute(planted)?),
        _ => build(args.tool)?,
    };
    let engines: &[&str] =
        if args.tool == Tool::Valgrind { &["interpreter", "jit"] } else { &["interpreter"] };
    for engine in engines {
        find_planted(args.tool, &planted, engine)?;
    }
    let scratch = shell::Scratch::new("memory-errors")?;
    let many_constants = scratch.file("constants.rdna");
    shell::write(&many_constants, &constants())?;
    let runs = runs(engines, &many_constants)?;
    let failed = Mutex::new(false);
    shell::in_parallel(&runs, |_, run| {
        let mut command = args.tool.command(&wavesim);
        // Compiled code runs from the first instruction on.
        command.args(run).env("WAVESIM_COMPILE_AFTER", "0");
        let why = match command.output() {
            Ok(output) if output.status.success() => return,
            Ok(output) => {
                let texts = [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text));
                format!("{}{}{}", texts[0], texts[1], output.status)
            }
            Err(error) => error.to_string(),
        };
        println!("wavesim {}: {why}", run.join(" "));
        *failed.lock().unwrap_or_else(|poisoned| poisoned.into_inner()) = true;
    });
    if failed.into_inner().unwrap_or(true) {
        return Ok(ExitCode::FAILURE);
    }
    let tool = if args.tool == Tool::Valgrind { "valgrind" } else { "asan" };
    println!("{tool}: no memory error in {} runs; the planted ones were found", runs.len());
    Ok(ExitCode::SUCCESS)
}

impl Tool {
    /// Returns a program under the tool.
    fn command(self, program: &Path) -> Command {
        match self {
            Tool::Valgrind => {
                let mut command = shell::command("valgrind");
                command.arg("--quiet").arg(format!("--error-exitcode={FOUND}"));
                command.args(["--partial-loads-ok=no", "--leak-check=no", "--num-callers=8"]).arg(program);
                command
            }
            Tool::Asan => {
                let mut command = shell::command(program);
                command.env("ASAN_OPTIONS", format!("exitcode={FOUND}:detect_leaks=0"));
                command
            }
        }
    }
}

/// Builds the binary and the planted errors.
fn build(tool: Tool) -> anyhow::Result<(PathBuf, PathBuf)> {
    let mut cargo = shell::cargo_in_root();
    cargo.args(["build", "-p", "wavesim", "--bin", "wavesim", "--example", "planted_errors"]);
    let folder = match tool {
        Tool::Valgrind => {
            cargo.arg("--release");
            shell::built("release")
        }
        Tool::Asan => {
            let folder = shell::root().join("target/asan");
            // An unstable flag, which stable compilers accept with RUSTC_BOOTSTRAP. The sanitizer does not instrument asm!.
            cargo.env("RUSTC_BOOTSTRAP", "1").env("RUSTFLAGS", "-Zsanitizer=address --cfg portable_memory");
            cargo.args(["--target", TARGET, "--target-dir"]).arg(&folder);
            folder.join(TARGET).join("debug")
        }
    };
    shell::run(&mut cargo)?;
    Ok((folder.join("wavesim"), folder.join("examples/planted_errors")))
}

/// Checks that the tool finds errors that violate the contract of `map_host`: a load and a store beyond the caller's bytes.
fn find_planted(tool: Tool, planted: &Path, engine: &str) -> anyhow::Result<()> {
    let how = if engine == "jit" { "compiled" } else { engine };
    for access in ["load", "store", "nothing"] {
        let output = tool.command(planted).args([access, how]).output().context("planted_errors")?;
        let expected = if access == "nothing" { 0 } else { FOUND };
        if output.status.code() != Some(expected) {
            print!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
            bail!("the planted {access} in the {engine}: {}, not code {expected}", output.status);
        }
    }
    Ok(())
}

/// A kernel with many constants: more than the register files of a wave hold.
fn constants() -> String {
    let mut text = String::from(
        "---\nout_y: u32[32]\nlocal = 32, 1, 1\n---\n  s_load_b64 s[6:7], s[3:4], 0\n  v_mov_b32 v1, 0\n",
    );
    for n in 1000..=1700 {
        let _ = writeln!(text, "  v_add_nc_u32 v1, {}, v1", n * 77);
    }
    for n in 1000..=1300 {
        let _ = writeln!(text, "  s_add_u32 s8, s8, {}", n * 91);
    }
    text + "  v_lshlrev_b32 v0, 2, v0\n  s_waitcnt lgkmcnt(0)\n  global_store_b32 v0, v1, s[6:7]\n  s_endpgm\n"
}

/// The command lines: all kinds of memory (global, LDS, scratch, buffers, atomics), both wave sizes, threads, engines,
/// observed runs.
fn runs(engines: &[&str], many_constants: &Path) -> anyhow::Result<Vec<Vec<String>>> {
    let mut runs = Vec::new();
    let mut add = |words: &str| runs.push(words.split(' ').map(str::to_string).collect());
    let root = shell::root();
    let kernels = shell::files(&root.join("tests/filetests/kernels"), |name| name.ends_with(".rdna"))?;
    let examples =
        ["arange", "mandelbrot", "matmul", "saxpy"].map(|name| root.join(format!("examples/{name}.rdna")));
    for engine in engines {
        for kernel in examples.iter().chain(&kernels) {
            let path = kernel.strip_prefix(&root).unwrap_or(kernel).display().to_string();
            add(&format!("run {path} --engine {engine}"));
            // Compilation takes most of the time of compiled runs, so that few of them have waves of 64.
            let few = ["/matmul.rdna", "/scan.rdna", "/spill.rdna"];
            if *engine == "jit" && !few.iter().any(|name| path.ends_with(name)) {
                continue;
            }
            // CDNA 5 has no waves of 64.
            if !shell::read(kernel)?.lines().any(|line| line.starts_with("arch = cdna5")) {
                add(&format!("run {path} --wave 64 --threads 2 --engine {engine}"));
            }
        }
        add(&format!("run {} --engine {engine}", many_constants.display()));
        for kernel in ["saxpy", "matmul"] {
            add(&format!("run examples/{kernel}.rdna --arch rdna4 --engine {engine}"));
        }
        for launch in ["dynlds", "relocated", "struct_arg", "vadd"] {
            let launch = format!("tests/filetests/code_objects/{launch}/launch.json");
            add(&format!("launch {launch} --check --engine {engine}"));
        }
    }
    for kernel in ["bitonic", "histogram", "spill", "typed_buffer"] {
        add(&format!("check tests/filetests/kernels/{kernel}.rdna"));
    }
    add("run examples/riscv_gpu/vector_add.as examples/riscv_gpu/vector_add.data");
    Ok(runs)
}
