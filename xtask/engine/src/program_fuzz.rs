//! `cargo xtask program-fuzz`: random programs, compiled for all targets and compared with the host.

use anyhow::bail;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;
use wavesim_tests::progfuzz::{self, Reason, Settings, build, generate, source};

/// Compile and run random programs on all engines, and compare the results with the host's
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The first seed; each program has the next one
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Number of programs
    #[arg(long, default_value_t = 100)]
    programs: u64,
    /// Number of programs at a time
    #[arg(long, default_value_t = 2)]
    jobs: usize,
    /// Number of builds of each program, each with random options
    #[arg(long, default_value_t = 4)]
    builds: usize,
    /// Only these targets
    #[arg(long)]
    target: Vec<String>,
    /// Another option of clang for targets, such as -DFEW_REGISTERS
    #[arg(long, allow_hyphen_values = true)]
    option: Vec<String>,
    /// Stop programs that have undefined behaviour on the host
    #[arg(long)]
    sanitize: bool,
    /// Run every build under all checks, too
    #[arg(long)]
    check: bool,
    /// Reduce failing programs, and write them to this directory
    #[arg(long, value_name = "DIR")]
    keep: Option<PathBuf>,
    /// Print the program of the first seed
    #[arg(long)]
    print: bool,
}

pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    if args.print {
        print!("{}", source::source(&generate::program(args.seed)));
        return Ok(ExitCode::SUCCESS);
    }
    if !build::installed() {
        bail!("{} is not installed", build::CLANG);
    }
    if let Some(unknown) = args.target.iter().find(|t| !build::TARGETS.contains(&t.as_str())) {
        bail!("--target {unknown}: targets are {}", build::TARGETS.join(", "));
    }
    let selected = |t: &&str| args.target.is_empty() || args.target.iter().any(|a| a == t);
    let settings = Settings {
        builds: args.builds,
        targets: build::TARGETS.into_iter().filter(selected).collect(),
        options: args.option.clone(),
        sanitize: args.sanitize,
        check: args.check,
    };
    let started = Instant::now();
    let (next, runs, builds) = (AtomicU64::new(0), AtomicU64::new(0), AtomicU64::new(0));
    let failed = Mutex::new(Vec::new());
    let (too_long, compiler, errors) = (AtomicU64::new(0), AtomicU64::new(0), AtomicU64::new(0));
    let worker = || -> anyhow::Result<()> {
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            if index >= args.programs {
                return Ok(());
            }
            let seed = args.seed + index;
            let outcome = progfuzz::fuzz(seed, &settings);
            runs.fetch_add(outcome.runs, Ordering::Relaxed);
            builds.fetch_add(outcome.builds, Ordering::Relaxed);
            for reason in &outcome.abandoned {
                let counter = match reason {
                    Reason::TooLong => &too_long,
                    Reason::Compiler(_) => &compiler,
                    Reason::Error(_) => &errors,
                };
                counter.fetch_add(1, Ordering::Relaxed);
                let text = reason.to_string();
                eprintln!("seed {seed}: abandoned: {}", text.lines().take(2).collect::<Vec<_>>().join("\n"));
            }
            for (number, failure) in outcome.failures.into_iter().enumerate() {
                let differences = failure.differences.iter().map(|d| format!("  {d}\n")).collect::<String>();
                println!("seed {seed}, program {}: {}\n{differences}", index + 1, failure.configuration);
                if let (0, Some(folder)) = (number, &args.keep) {
                    let folder = folder.join(format!("seed{seed}_{}", failure.configuration.target));
                    // The whole program first, as the reduction takes long.
                    progfuzz::keep::keep(&failure, failure.until_first_failure(), &folder)
                        .map_err(anyhow::Error::msg)?;
                    let reduced = progfuzz::reduce::reduce(&failure)?;
                    progfuzz::keep::keep(&failure, reduced, &folder).map_err(anyhow::Error::msg)?;
                    println!("seed {seed}: reduced to {}", folder.display());
                }
                failed.lock().unwrap_or_else(|e| e.into_inner()).push(seed);
            }
        }
    };
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..args.jobs.max(1)).map(|_| scope.spawn(worker)).collect();
        workers
            .into_iter()
            .try_for_each(|w| w.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    })?;
    let (mut failed, errors) = (failed.into_inner()?, errors.into_inner());
    failed.sort_unstable();
    failed.dedup();
    println!(
        "{} programs, {} builds, {} runs, {} programs with differences, {:.0} s\n\
         abandoned: {} too long, {} failures of the compiler, {} errors",
        args.programs,
        builds.into_inner(),
        runs.into_inner(),
        failed.len(),
        started.elapsed().as_secs_f64(),
        too_long.into_inner(),
        compiler.into_inner(),
        errors
    );
    Ok(if failed.is_empty() && errors == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
