//! `cargo xtask leaks`: loads, runs and frees a code object repeatedly with the C library, under memcheck.

use crate::shell;
use anyhow::{Context as _, bail};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

/// Look for memory leaks of the C library with valgrind
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Number of rounds of loading, running and freeing
    #[arg(default_value_t = 20)]
    rounds: u32,
    /// An existing build of the library
    #[arg(long, value_name = "FILE")]
    library: Option<PathBuf>,
}

pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    for tool in ["valgrind", "cc"] {
        if !shell::is_installed(tool) {
            return shell::skipped(&format!("{tool} is not installed"));
        }
    }
    let library = match &args.library {
        Some(library) => library.canonicalize().with_context(|| library.display().to_string())?,
        None => {
            shell::run(shell::cargo_in_root().args(["build", "--quiet", "--release", "-p", "wavesim-capi"]))?;
            shell::built("release").join("libwavesim_capi.so")
        }
    };
    let scratch = shell::Scratch::new("leaks")?;
    let program = scratch.file("loop");
    let folder = library.parent().unwrap_or(Path::new("."));
    shell::run(
        shell::command("cc")
            .args(["-g", "-I", "capi/include", "capi/tests/programs/loop.c"])
            .arg(&library)
            .arg(format!("-Wl,-rpath,{}", folder.display()))
            .arg("-o")
            .arg(&program),
    )?;
    // A leak in each round would grow with the number of rounds.
    let (few, many) = (reachable(&program, 2)?, reachable(&program, args.rounds)?);
    if few != many {
        bail!("{few} bytes are reachable after 2 rounds, {many} after {}", args.rounds);
    }
    println!("{} rounds: no leak; {many} bytes are reachable, as after 2", args.rounds);
    Ok(ExitCode::SUCCESS)
}

/// Returns the bytes that are still reachable at the end.
fn reachable(program: &Path, rounds: u32) -> anyhow::Result<String> {
    let mut command: Command = shell::command("valgrind");
    command
        .args(["--leak-check=full", "--errors-for-leak-kinds=definite,indirect", "--error-exitcode=99"])
        .arg(program)
        .arg("tests/filetests/code_objects/vadd/vadd.gfx1100.co")
        .arg(rounds.to_string());
    let output = command.stdout(Stdio::piped()).stderr(Stdio::piped()).output().context("valgrind")?;
    let text = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() {
        bail!("{}{text}", String::from_utf8_lossy(&output.stdout));
    }
    let found = text.lines().find_map(|line| line.split_once("still reachable: ")?.1.split_once(" bytes"));
    Ok(found.map_or_else(|| "0".to_string(), |(bytes, _)| bytes.to_string()))
}
