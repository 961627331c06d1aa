//! The `wavesim` command.

use clap::{Parser, Subcommand};
use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;
use wavesim::cli::isa::IsaArgs;
use wavesim::conform::{self, Engine, Outcome};

/// Functional simulator for AMD RDNA GPUs.
#[derive(Parser)]
#[command(version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run a compiled kernel as its launch.json says and compare the expected outputs
    Launch {
        /// launch.json files
        #[arg(required = true)]
        files: Vec<PathBuf>,
        /// Key of the launch's `code`
        #[arg(long, default_value = "gfx1100")]
        target: String,
        /// Stop with a fault after this many wave-instructions
        #[arg(long, default_value_t = 10_000_000_000)]
        max_instructions: u64,
    },
    /// Run instruction conformance vectors
    Conform {
        #[arg(required = true)]
        files: Vec<PathBuf>,
        /// Execute with the evaluator in place of the compiled handlers
        #[arg(long)]
        reference: bool,
        /// Show what differs, this many per instruction
        #[arg(long, default_value_t = 1)]
        show: u32,
    },
    /// What the ISA description holds
    Isa(IsaArgs),
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    if let Some(problems) = wavesim::isa::problems() {
        eprintln!("{problems}");
        return ExitCode::from(2);
    }
    match run(&cli.command) {
        Ok(code) => ExitCode::from(code),
        Err(e) => {
            eprintln!("error: {e:#}");
            ExitCode::from(2)
        }
    }
}

fn run(command: &Command) -> anyhow::Result<u8> {
    match command {
        Command::Isa(args) => Ok(wavesim::cli::isa::run(args, &mut std::io::stdout().lock())?),
        Command::Launch { files, target, max_instructions } => {
            let mut code = 0;
            for file in files {
                let out = &mut std::io::stdout().lock();
                match wavesim::loader::launch::run(file, target, *max_instructions) {
                    Ok(r) if r.mismatches.is_empty() => writeln!(
                        out,
                        "{}: ok, {} of {} outputs as expected; {} wave-instructions, {} waves, {:.3} s",
                        file.display(),
                        r.compared,
                        r.compared,
                        r.stats.instructions,
                        r.stats.waves,
                        r.seconds
                    )?,
                    Ok(r) => {
                        code = 1;
                        writeln!(out, "{}: MISMATCH\n  {}", file.display(), r.mismatches.join("\n  "))?;
                    }
                    Err(e) => {
                        code = 1;
                        writeln!(out, "{}: FAULT\n  {e:#}", file.display())?;
                    }
                }
            }
            Ok(code)
        }
        Command::Conform { files, reference, show } => {
            let engine = if *reference { Engine::Reference } else { Engine::Interpreter };
            conformance(files, engine, *show)
        }
    }
}

fn conformance(files: &[PathBuf], engine: Engine, show: u32) -> anyhow::Result<u8> {
    let out = &mut std::io::stdout().lock();
    let (mut passed, mut failed, mut unsupported) = (0, 0, 0);
    let mut shown: BTreeMap<String, u32> = BTreeMap::new();
    for path in files {
        for record in conform::read_file(path)? {
            let Some(arch) = record.architecture() else {
                unsupported += 1;
                continue;
            };
            match conform::run(&record, arch, engine, &BTreeMap::new()) {
                Outcome::Passed => passed += 1,
                Outcome::Unsupported(_) => unsupported += 1,
                Outcome::Failed(diffs) => {
                    failed += 1;
                    let seen =
                        shown.entry(format!("{} {} {}", record.arch, record.enc, record.op)).or_default();
                    *seen += 1;
                    if *seen <= show {
                        writeln!(out, "{} {}\n    {}", record.id, record.op, diffs.join("\n    "))?;
                    }
                }
            }
        }
    }
    writeln!(out, "{passed} passed, {failed} failed, {unsupported} unsupported")?;
    Ok((failed > 0) as u8)
}
