//! Long-running tasks of developers: `cargo xtask TASK`.

mod program_fuzz;

use clap::Parser;

/// Long-running tasks of developers
#[derive(Debug, clap::Parser)]
#[command(name = "cargo xtask")]
enum Task {
    ProgramFuzz(program_fuzz::Args),
}

fn main() -> anyhow::Result<std::process::ExitCode> {
    match Task::parse() {
        Task::ProgramFuzz(args) => program_fuzz::run(&args),
    }
}
