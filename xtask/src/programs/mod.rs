//! `cargo xtask programs`: programs that others have built, fetched and run on the simulator. `docs/programs.md` has
//! the results.
//!
//! Debian's packages are unpacked into a folder with their own C library, which is the root directory of the programs;
//! wavesim's libraries are put beside theirs. Nothing is installed.

mod list;
mod outcome;
mod records;
mod root;

use anyhow::{Context as _, bail};
use list::{PROGRAMS, Program, Run};
use outcome::Outcome;
use root::Root;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

/// Fetch prebuilt programs of ROCm, OpenCL and Python, run them on the simulator, and print a table
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Only these programs (--list names them)
    names: Vec<String>,
    /// Only runs that take seconds or a few minutes
    #[arg(long)]
    sample: bool,
    /// List the programs with their packages
    #[arg(long)]
    list: bool,
    /// The folder of the packages and logs
    #[arg(long, value_name = "DIR", default_value = "target/programs")]
    folder: PathBuf,
    /// The folder of wavesim's libraries; without it, they are built
    #[arg(long, value_name = "DIR")]
    libraries: Option<PathBuf>,
    /// A folder with checkouts of projects whose packages lack their tests: cupy
    #[arg(long, value_name = "DIR")]
    sources: Option<PathBuf>,
    /// Multiply the time limits of the runs
    #[arg(long, value_name = "FACTOR", default_value_t = 1)]
    patience: u32,
    /// Run a command in the root directory of the programs, with wavesim's libraries, instead
    #[arg(long, value_name = "COMMAND", num_args = 1.., allow_hyphen_values = true)]
    command: Vec<String>,
}

pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    if args.list {
        for program in PROGRAMS {
            println!("{:<12} {}", program.name, program.packages.join(" "));
        }
        return Ok(ExitCode::SUCCESS);
    }
    if let Some(unknown) = args.names.iter().find(|name| PROGRAMS.iter().all(|p| p.name != **name)) {
        let names: Vec<&str> = PROGRAMS.iter().map(|p| p.name).collect();
        bail!("`{unknown}` is not a program; programs are {}", names.join(", "));
    }
    let selected: Vec<&Program> =
        PROGRAMS.iter().filter(|p| args.names.is_empty() || args.names.iter().any(|n| n == p.name)).collect();
    let root = match Root::open(&args.folder)? {
        Ok(root) => root,
        Err(missing) => {
            println!("skipped: {missing}");
            return Ok(ExitCode::SUCCESS);
        }
    };
    root.install_libraries(args.libraries.as_deref())?;
    if !args.command.is_empty() {
        let status = root.command(&args.command, &[]).status().context("unshare")?;
        return Ok(if status.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE });
    }
    let mut failed = false;
    println!("{:<30} {:>7} {:>7} {:>7} {:>8}  remark", "run", "passed", "failed", "skipped", "seconds");
    for program in selected {
        match prepare(&root, program, args) {
            Ok(versions) => println!("{}: {}", program.name, versions.join(", ")),
            Err(e) => {
                println!("{}: not run: {e:#}", program.name);
                continue;
            }
        }
        for run in program.runs.iter().filter(|run| run.sample || !args.sample) {
            if run.source && program.source.is_some_and(|(project, _)| !root.has(&format!("opt/{project}"))) {
                println!("  {:<28} not run: --sources names no checkout", run.name);
                continue;
            }
            let (outcome, seconds) = execute(&root, program, run, args.patience)?;
            failed |= outcome.failed > 0 || outcome.crashed;
            let Outcome { passed, failed, skipped, ref remark, .. } = outcome;
            println!("  {:<28} {passed:>7} {failed:>7} {skipped:>7} {seconds:>8.1}  {remark}", run.name);
        }
    }
    Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// Fetches what a program needs. Returns the versions of its packages.
fn prepare(root: &Root, program: &Program, args: &Args) -> anyhow::Result<Vec<String>> {
    if program.compiles {
        root.install_compiler()?;
    }
    let mut versions = root.install(program.packages)?;
    versions.extend(root.install_alone(program.alone)?);
    if !program.python.is_empty() {
        root.install_python(program.python)?;
    }
    if let Some((from, to)) = program.data {
        root.select(from, to)?;
    }
    if let Some((project, tests)) = program.source
        && let Some(sources) = &args.sources
    {
        root.copy(&sources.join(project).join(tests), &format!("opt/{project}"))?;
    }
    Ok(versions.into_iter().chain(program.python.iter().map(|name| name.to_string())).collect())
}

/// Runs one command, or that of each program that matches its pattern. Returns what they have counted and their time in
/// seconds.
fn execute(root: &Root, program: &Program, run: &Run, patience: u32) -> anyhow::Result<(Outcome, f64)> {
    let limit = run.seconds.saturating_mul(patience).to_string();
    let started = Instant::now();
    let mut all = Outcome::default();
    let (mut number, mut stopped) = (0, 0);
    for path in root.matches(run.command[0])? {
        let name = path.rsplit('/').next().unwrap_or_default();
        let name = if path == run.command[0] { "".into() } else { format!("-{name}") };
        let log = root.log(&format!("{}-{}{name}", program.name, run.name));
        let words: Vec<String> =
            std::iter::once(path).chain(run.command[1..].iter().map(|word| word.to_string())).collect();
        let (mut outcome, ended) = execute_one(root, program, run, &words, &limit, &log)?;
        if outcome.failed > 0 || outcome.crashed {
            outcome.remark = format!("{} ({})", outcome.remark, log.display());
        }
        (number, stopped) = (number + 1, stopped + usize::from(!ended));
        all.add(outcome);
    }
    if stopped > 0 {
        let which = if number > 1 { format!("{stopped} of {number} ") } else { String::new() };
        all.remark = format!("{which}stopped after {limit} s {}", all.remark).trim_end().to_string();
    }
    Ok((all, started.elapsed().as_secs_f64()))
}

/// Runs a program with its arguments, and returns what it has counted, and whether it ended by itself.
fn execute_one(
    root: &Root,
    program: &Program,
    run: &Run,
    words: &[String],
    limit: &str,
    log: &Path,
) -> anyhow::Result<(Outcome, bool)> {
    let file = create_log(log)?;
    let mut command = std::process::Command::new("timeout");
    // The program and its children end after the limit.
    command.args(["--kill-after=5", limit]);
    let inner = root.command(words, program.environment);
    command.arg(inner.get_program()).args(inner.get_args());
    for (name, value) in inner.get_envs() {
        if let Some(value) = value {
            command.env(name, value);
        }
    }
    if run.every > 1 {
        // GoogleTest takes every n-th test of those that its filter selects.
        command.env("GTEST_TOTAL_SHARDS", run.every.to_string()).env("GTEST_SHARD_INDEX", "0");
    }
    command.stdin(std::process::Stdio::null()).stdout(file.try_clone()?).stderr(file);
    let status = command.status().context("timeout")?;
    let text = String::from_utf8_lossy(&std::fs::read(log)?).into_owned();
    let mut outcome = (run.count)(&text, status.success());
    // `timeout` ends itself with the program that ignores its first signal.
    let ended = !matches!(status.code(), Some(124 | 137)) && status.signal() != Some(9);
    outcome.crashed &= ended;
    Ok((outcome, ended))
}

/// Creates a log. Unlike other outputs, it is useful while it grows.
fn create_log(log: &Path) -> anyhow::Result<std::fs::File> {
    std::fs::File::create(log).with_context(|| log.display().to_string())
}
